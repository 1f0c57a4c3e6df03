"""The pool in flux-core's framework: in a stub of the interface, and in the framework's own Python files."""

from __future__ import annotations

import errno
import heapq
import importlib
import os
import sys
import time
from pathlib import Path
from types import SimpleNamespace

import pytest

import simsched as ss
import simsched.flux
from tests.flux import framework
from tests.flux.test_pool_state import entries, resources

FOLDER = os.environ.get("SIMSCHED_FLUX_CORE", "")
"""The folder src/bindings/python of a clone of flux-core."""
needs_framework = pytest.mark.skipif(
    not (Path(FOLDER) / "flux" / "resource" / "ResourcePool.py").is_file(),
    reason="SIMSCHED_FLUX_CORE is not the folder src/bindings/python of flux-core",
)


def jobspec(shape, duration=60.0):
    return ss.Jobspec.from_shape(shape, duration=duration).to_dict()


def test_without_flux_the_message_says_what_is_needed(monkeypatch):
    for name in [name for name in sys.modules if name.partition(".")[0] == "flux"]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.delitem(sys.modules, "simsched.flux.flux_pool", raising=False)
    monkeypatch.delattr(simsched.flux, "flux_pool", raising=False)
    if importlib.util.find_spec("flux") is None:
        with pytest.raises(ImportError, match=r"simsched\.flux\.Pool needs flux-core's Python bindings"):
            _ = simsched.flux.Pool
    with pytest.raises(AttributeError, match="no attribute 'Pond'"):
        _ = simsched.flux.Pond


@pytest.fixture
def pools(monkeypatch):
    framework.own_framework(monkeypatch)
    return simsched.flux.Pool


class Both:
    """The protocol of a pool; each test runs in the stub and in the framework's own files."""

    def make(self, **options):
        raise NotImplementedError

    def test_a_job_is_allocated_and_freed(self):
        pool = self.make()
        before = pool.generation
        request = pool.parse_resource_request(jobspec("slot=2/core=4", 30.0))
        assert (request.duration, request.jobspec["resources"][0]["type"]) == (30.0, "slot")
        found = pool.alloc(17, request)
        assert type(found) is type(pool)
        assert found.dumps() == "rank[0-1]/core[0-3]"
        found.set_starttime(1000.0)
        found.set_expiration(1030.0)
        execution = found.to_dict()["execution"]
        assert (execution["starttime"], execution["expiration"], execution["nslots"]) == (1000.0, 1030.0, 2)
        ((job, end),) = pool.job_end_times()
        assert job == 17
        assert abs(end - time.time() - 30) < 5
        pool.update_expiration(17, 5000.0)
        assert pool.job_end_times() == [(17, 5000.0)]
        assert entries(pool.impl.copy_allocated().to_dict()) == {"0-1": {"core": "0-3"}}
        pool.free(17, found, final=True)
        assert pool.job_end_times() == []
        assert pool.generation > before + 2

    def test_insufficient_and_infeasible_have_our_reasons(self):
        pool = self.make()
        pool.alloc(1, pool.parse_resource_request(jobspec("slot=3/core=4")))
        with pytest.raises(OSError, match="slot: 2 needed, 1 available") as error:
            pool.alloc(2, pool.parse_resource_request(jobspec("slot=2/core=4")))
        assert type(error.value).__name__ == "InsufficientResources"
        never = pool.parse_resource_request(jobspec("slot=5/core=4"))
        for call in (lambda: pool.alloc(2, never), lambda: pool.check_feasibility(never)):
            with pytest.raises(OSError, match="would fit with: slot=4 instead of 5") as error:
                call()
            assert type(error.value).__name__ == "InfeasibleRequest"
        with pytest.raises(ValueError, match="resources"):
            pool.parse_resource_request({"version": 1})

    def test_a_copy_looks_ahead(self):
        pool = self.make()
        pool.alloc(1, pool.parse_resource_request(jobspec("slot=4/core=4")))
        twin = pool.copy()
        twin.free(1)
        twin.alloc(2, twin.parse_resource_request(jobspec("slot=4/core=4")))
        assert [job for job, _ in pool.job_end_times()] == [1]
        assert twin.generation > pool.generation

    def test_ranks_go_down_and_away(self):
        pool = self.make()
        pool.mark_down("all")
        pool.mark_up("1-3")
        assert list(entries(pool.impl.copy_down().to_dict())) == ["0"]
        pool.remove_ranks([1])
        found = pool.alloc(1, pool.parse_resource_request(jobspec("slot=1-9/core=4")))
        assert list(entries(found.to_dict())) == ["2-3"]
        assert pool.impl.count("core") == 12
        assert pool.impl.nnodes() == 3

    def test_a_running_job_is_registered(self):
        pool, other = self.make(), self.make()
        mine = other.alloc(5, other.parse_resource_request(jobspec("slot/core=3")))
        mine.set_expiration(77.0)
        pool.mark_down("all")
        pool.register_alloc(5, self.make(mine.to_dict()))
        assert pool.job_end_times() == [(5, 77.0)]
        with pytest.raises(ValueError, match="is not in this pool"):
            pool.register_alloc(6, mine)

    def test_options_and_versions(self):
        pool = self.make(policy="hinode")
        found = pool.alloc(1, pool.parse_resource_request(jobspec("slot/core")))
        assert list(entries(found.to_dict())) == ["3"]
        with pytest.raises(ValueError, match="R version 2 is not supported"):
            self.make(resources() | {"version": 2})

    def test_feasibility_check(self):
        pool, handle = self.make(), framework.Handle()
        for msg, spec in enumerate((jobspec("slot/core"), jobspec("slot/core=5"), {"version": 1})):
            simsched.flux.feasibility_check(pool, handle, msg, spec)
        first, second, third = handle.responses
        assert first == (0, None)
        assert second[:2] == (1, errno.EOVERFLOW)
        assert "would fit with: core=4 instead of 5" in second[2]
        assert third[:2] == (2, errno.EINVAL)


class TestStub(Both):
    @pytest.fixture(autouse=True)
    def _stub(self, monkeypatch):
        framework.own_framework(monkeypatch)

    def make(self, given=None, **options):
        return simsched.flux.Pool(resources() if given is None else given, **options)


@needs_framework
class TestFramework(Both):
    @pytest.fixture(autouse=True)
    def _theirs(self, monkeypatch):
        self.scheduler = framework.their_framework(monkeypatch, Path(FOLDER))
        self.monkeypatch = monkeypatch

    def make(self, given=None, **options):
        return simsched.flux.Pool(resources() if given is None else given, **options)

    def loaded(self, *more):
        """A scheduler of the framework, with our pool chosen as on its command line."""
        module = Path(FOLDER).parents[1] / "modules" / "sched-fifo.py"
        if not module.is_file():
            pytest.skip("sched-fifo.py is not there")
        spec = importlib.util.spec_from_file_location("sched_fifo", module)
        fifo = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(fifo)
        scheduler = fifo.FIFOScheduler(framework.Handle(), "pool-class=simsched.flux:Pool", *more)
        scheduler._resources = scheduler._make_pool(resources())
        scheduler.resources.mark_down("all")
        scheduler._apply_resource_update({"up": "0-3", "expiration": 0})
        scheduler.done = []
        scheduler.alloc_success = lambda msg, found, notes: scheduler.done.append((msg.payload["id"], found))
        scheduler.alloc_deny = lambda msg, note: scheduler.done.append((msg.payload["id"], note))
        return scheduler

    def submit(self, scheduler, job, spec, priority=16):
        msg = SimpleNamespace(payload={"id": job})
        request = self.scheduler.AllocRequest(scheduler, msg)
        scheduler.alloc(request, job, priority, 0, float(job), spec)

    def play(self, scheduler):
        for _ in scheduler.schedule():
            pass
        done, scheduler.done = scheduler.done, []
        return done

    @pytest.mark.parametrize("uri", ["simsched.flux:Pool", "simsched.flux"])
    def test_the_framework_finds_the_pool_by_its_uri(self, uri):
        found = self.scheduler._pool_class_from_uri(uri)
        assert issubclass(found, self.scheduler.ResourcePool)
        assert found is simsched.flux.Pool

    def test_a_scheduler_of_the_framework_runs_jobs_on_it(self):
        scheduler = self.loaded()
        assert scheduler.resources.impl.name == "simsched"
        for job, shape in (
            (1, "slot=3/core=4"),
            (2, "slot=9/core=4"),
            (3, "slot=2/core=4"),
            (4, "slot/core"),
        ):
            self.submit(scheduler, job, jobspec(shape))
        self.submit(scheduler, 5, {"version": 1}, priority=31)
        started = dict(self.play(scheduler))
        assert entries(started[1]) == {"0-2": {"core": "0-3"}}
        assert started[1]["execution"]["expiration"] == 1060.0
        assert "would fit with" in started[2]
        assert "cannot parse jobspec" in started[5]
        assert set(started) == {1, 2, 5}  # 3 waits for the end of 1, and 4 behind it
        self.freed(scheduler, 1, started[1])
        started = dict(self.play(scheduler))
        assert (entries(started[3]), entries(started[4])) == ({"0-1": {"core": "0-3"}}, {"2": {"core": "0"}})
        assert not scheduler._queue

    def freed(self, scheduler, job, found):
        """Free as the framework does: what it hands on is a pool of its own class."""
        pool = self.scheduler.ResourcePool({**found, "scheduling": None})
        scheduler.free(job, pool, final=True)

    def test_housekeeping_frees_rank_by_rank(self):
        scheduler = self.loaded()
        self.submit(scheduler, 1, jobspec("slot=4/core=4"))
        ((_, R),) = self.play(scheduler)
        part = ss.ResourceSet.from_dict(R).shard(ss.Idset.parse("0-1")).to_dict()
        scheduler.free(1, self.scheduler.ResourcePool(part), final=False)
        self.submit(scheduler, 2, jobspec("slot=2/core=4"))
        ((job, mine),) = self.play(scheduler)
        assert (job, list(entries(mine))) == (2, ["0-1"])

    def test_its_forecast_plans_ahead_on_a_copy(self):
        scheduler = self.loaded()
        self.submit(scheduler, 1, jobspec("slot=4/core=4", 50.0))
        self.play(scheduler)
        noted = []
        scheduler.alloc_annotate = lambda msg, found: noted.append((msg.payload["id"], found["sched"]))
        self.submit(scheduler, 2, jobspec("slot=4/core=4", 50.0))
        for _ in scheduler.forecast():
            pass
        ((job, found),) = noted
        assert job == 2
        assert abs(found["t_estimate"] - time.time() - 50) < 10
        assert [job for job, _ in scheduler.resources.job_end_times()] == [1]

    def test_feasibility_and_status_as_the_framework_answers_them(self):
        scheduler = self.loaded()
        scheduler.feasibility_check("m1", jobspec("slot/core"))
        scheduler.feasibility_check("m2", jobspec("slot/core=9"))
        first, second = scheduler.handle.responses
        assert first == ("m1", None)
        assert second[1] == errno.EOVERFLOW
        assert "would fit with: core=4 instead of 9" in second[2]
        scheduler._handle_resource_status("m3")
        found = scheduler.handle.responses[-1][1]
        assert entries(found["all"]) == {"0-3": {"core": "0-3"}}
        assert entries(found["allocated"]) == {}

    def test_shrinking_and_sets_of_resources(self):
        scheduler = self.loaded()
        scheduler._apply_resource_update({"shrink": "3", "down": "2"})
        impl = scheduler.resources.impl
        assert str(impl.ranks()) == "0-2"
        assert str(impl.nodelist()) == "n[0-2]"
        assert impl.union(scheduler.resources.impl).to_dict()["execution"]["R_lite"]
        assert impl.diff(impl.copy_down()).dumps() == "rank[0-1]/core[0-3]"
        assert scheduler.resources.to_resource_set().impl.dumps() == "rank[0-2]/core[0-3]"
        self.submit(scheduler, 1, jobspec("slot=4/core=4"))
        assert "would fit with" in dict(self.play(scheduler))[1]

    def test_jobs_wait_in_a_heap_of_the_framework(self):
        scheduler = self.loaded("queue-depth=unlimited")
        for job in (3, 1, 2):
            self.submit(scheduler, job, jobspec("slot=4/core=4"))
        assert heapq.nsmallest(3, scheduler._queue)[0].jobid == 1
