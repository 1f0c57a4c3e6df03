"""Kinds that are in the first job's way wherever they are placed stay refused after a start."""

from __future__ import annotations

import pytest

import simsched as ss
from simsched.schedule.counted_shadow import CountedShadow
from simsched.simulation.simulate import simulate

CORE = "slot=1/[core;memory=1{unit:GB}]"


@pytest.fixture
def site(tmp_path):
    path = tmp_path / "site.yaml"
    path.write_text("groups:\n  - {name: n, count: 3, sockets: 2, cores: 4, memory: 16 GiB}\n")
    return ss.load_cluster(path)


def jobs_of(*rows):
    """Jobs from (submit, shape, seconds)."""
    return ss.Workload(
        jobs=tuple(
            ss.Job(
                id=number,
                submit=submit,
                runtime=seconds,
                duration=seconds,
                jobspec=ss.Jobspec.from_shape(shape, duration=seconds),
                user="u",
            )
            for number, (submit, shape, seconds) in enumerate(rows)
        ),
        name="few",
    )


def asked_in(site, jobs, monkeypatch):
    """The jobs for which resources beside the first job were sought, in turn, and the starts."""
    asked, plain = [], CountedShadow.fit_beside

    def fit_beside(shadow, supply, job):
        asked.append(job)
        return plain(shadow, supply, job)

    monkeypatch.setattr(CountedShadow, "fit_beside", fit_beside)
    result = simulate(site, jobs, "easy")
    return asked, list(result.jobs["start"])


def test_a_kind_without_a_place_beside_the_first_job_is_not_asked_again_after_a_start(site, monkeypatch):
    jobs = jobs_of(
        (0, "slot=1/node", 100),
        (1, "slot=3/node", 50),  # waits until 100 for all nodes
        (2, "slot=1/node", 500),  # would be on one of them
        (3, CORE, 10),
        (4, CORE, 10),
        (5, CORE, 10),
    )
    asked, starts = asked_in(site, jobs, monkeypatch)
    assert starts == [0, 100, 150, 3, 4, 5]
    # When the core jobs end, all that wait are considered again.
    assert asked == [2, 2, 2, 2]


def test_a_kind_that_was_refused_for_its_vertices_is_asked_again_after_a_start(site, monkeypatch):
    seen = []
    plain = CountedShadow.note_start

    def note_start(shadow):
        unsure = set(shadow._unsure)
        plain(shadow)
        seen.append((unsure, shadow.unsettled))
        assert not shadow._unsure
        assert not unsure or not shadow.refused[sorted(unsure)].any()

    monkeypatch.setattr(CountedShadow, "note_start", note_start)
    for gap in (1, 2, 3, 5, 8):
        rows = [(gap * at, shape, seconds) for at, (shape, seconds) in enumerate(30 * MIX)]
        simulate(site, jobs_of(*rows), "easy")
    assert {(bool(unsure), unsettled) for unsure, unsettled in seen} >= {(False, False), (True, True)}


MIX = (
    *((CORE, 70), ("slot=5/[core;memory=2{unit:GB}]", 40), ("slot=1/socket", 90)),
    *(("slot=2/node", 30), ("slot=3/[core=2;memory=1{unit:GB}]", 200), ("node=2/slot=1/[core=2]", 25)),
)


def test_a_checkpoint_has_the_kinds_that_a_start_makes_worth_another_look():
    shadow = CountedShadow(3, extra=True)
    shadow._unsure = {2, 5}
    twin = CountedShadow(3, extra=True)
    _, state = shadow.__getstate__()
    twin.__setstate__(state)
    assert (twin.unsettled, twin._unsure) == (False, {2, 5})
    twin.note_start()
    assert twin.unsettled
    older = CountedShadow(3, extra=True)
    older.__setstate__({"job": 3, "extra": True, "unsettled": False})
    assert older.unsettled  # it is not known which kinds were refused for their vertices
