"""`BackfillEnv`: the environment ``simsched/Backfill-v0`` of Gymnasium, over an open simulation."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import gymnasium
import numpy as np
from gymnasium import spaces
from msgspec.structs import replace

from simsched.arguments import check_whole, options_of
from simsched.errors import ConfigError, WorkloadError, did_you_mean
from simsched.graph.cluster import as_cluster
from simsched.live.live_simulation import Simulation
from simsched.rl.chosen_jobs import KINDS, WITH_WAITING, ChosenJobs
from simsched.rl.observation import Observer, shapes
from simsched.rl.rewards import StartedJob, reward_of, rewarded
from simsched.simulation.options.run_config import RunConfig, make_config
from simsched.simulation.options.run_rules import RunRules
from simsched.site.site import Site
from simsched.site.site_folder import load_site, rules_on, site_given
from simsched.workload.load import as_workload

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from pathlib import Path
    from typing import Unpack

    import numpy.typing as npt

    from simsched.graph.cluster import ClusterLike
    from simsched.match.policies.policy import CandidateOrder, MatchPolicy
    from simsched.rl.chosen_jobs import Choice
    from simsched.rl.rewards import Reward
    from simsched.workload.job import Job
    from simsched.workload.load import WorkloadLike

    Observation = dict[str, npt.NDArray[np.float32]]

NEVER = float("inf")
REFUSE, REPLACE = "error", "first"
MOST_VISIBLE = 65_536
"""Waiting jobs that an agent sees at most: each step writes an observation of all of them."""
SHOWN = 10
"""Allowed actions that an error names."""


class BackfillEnv(gymnasium.Env[Any, Any]):
    """An agent chooses which waiting job starts, or is the next to start, on a simulated cluster.

    An episode is a window of the workload on an empty machine.  Its begin is drawn from `np_random`, or is
    the option ``begin`` of `reset`; times are relative to its first submission.

    Parameters
    ----------
    cluster, workload : as for `simulate`; a site brings its queues and rules.
    site : a site or its folder, in place of the cluster.
    jobs : how many jobs an episode has (all of the workload, if it has fewer).
    visible : how many waiting jobs the agent sees, the first of the queue.
    actions : ``backfill``, ``start``, ``next`` or ``next-easy`` (`simsched.rl.chosen_jobs.KINDS`).
    reward : ``bounded-slowdown``, ``wait``, ``utilisation``, or a function of the environment and the jobs
        that started in the step.
    masked : ``first``: the first allowed action takes the place of a masked one, and
        ``info["replaced"]`` is true; ``error``: it is an error.
    records : whether `simulation` records allocations, for `Simulation.result` and `audit`.
    match_policy : the match policy, by name or as an object; ``first``.
    absent : ranks of execution targets that the cluster does not have.
    queue_policy, seed : none; the agent takes the place of the policy, and `reset` takes the seed.
    options : further rules, as for `simulate`.

    Attributes
    ----------
    simulation : the simulation of the present episode.
    jobs : how many jobs an episode has.

    Raises
    ------
    ConfigError, FormatError
        For an option that does not exist, or a value that it does not take.
    """

    metadata: dict[str, Any] = {"render_modes": []}  # noqa: RUF012 (as declared by Gymnasium)

    @options_of(RunRules, declared=RunConfig)
    def __init__(
        self,
        cluster: ClusterLike | None = None,
        workload: WorkloadLike | None = None,
        *,
        site: Site | str | Path | None = None,
        jobs: int = 256,
        visible: int = 128,
        actions: str = "backfill",
        reward: str | Reward = "bounded-slowdown",
        masked: str = REPLACE,
        records: bool = False,
        match_policy: str | MatchPolicy | CandidateOrder | None = None,
        absent: int | str | Iterable[int] | None = None,
        queue_policy: None = None,
        seed: None = None,
        **options: Unpack[RunRules],
    ) -> None:
        check_whole("jobs", jobs, 1)
        check_whole("visible", visible, 1, MOST_VISIBLE)
        _among("actions", actions, KINDS)
        _among("masked", masked, (REPLACE, REFUSE))
        if (cluster is None) == (site is None):
            raise ConfigError("neither a cluster nor a site" if site is None else "a cluster and a site",
                              expected="one of the two")  # fmt: skip
        found = site_given(cluster) if site is None else site if isinstance(site, Site) else load_site(site)
        own = {"match_policy": match_policy, "absent": absent, "queue_policy": queue_policy, "seed": seed}
        self._options = _rules(found, {**own, **options})
        self._cluster = as_cluster(cluster if found is None else found)  # type: ignore[arg-type]
        if workload is None:
            raise ConfigError("there is no workload", expected="a workload, a file or a bundled name")
        self._log: Sequence[Job] = as_workload(workload).jobs
        if not self._log:
            raise WorkloadError("the workload has no jobs", expected="at least one job")
        self.jobs = min(jobs, len(self._log))
        self._visible, self._actions, self._masked = visible, actions, masked
        self._waiting = visible if actions in WITH_WAITING else None
        self._reward = reward_of(reward)
        self._records = records
        self.render_mode = None
        self._actions_count = visible + (self._waiting is not None)
        self.action_space = spaces.Discrete(self._actions_count)
        self.observation_space = spaces.Dict(
            {name: spaces.Box(0.0, 1.0, shape, np.float32) for name, shape in shapes(visible).items()}
        )
        self.simulation: Simulation
        self._told = True  # there is no episode before `reset`
        self._choice: Choice | None = None

    # -- the interface of Gymnasium -------------------------------------------------------------------

    def reset(
        self, *, seed: int | None = None, options: Mapping[str, Any] | None = None
    ) -> tuple[Observation, dict[str, Any]]:
        """Begin an episode; the option ``begin`` is the place of its first job in the workload.

        Raises
        ------
        ConfigError
            For another option, or a place at which no window begins.
        """
        super().reset(seed=seed)
        self._begin = self._begin_of(dict(options or {}))
        policy = self._policy = ChosenJobs(self._actions, self._visible)
        jobs = self._window()
        self.simulation = sim = Simulation(
            self._cluster,
            policy,
            seed=int(self.np_random.integers(2**31)),
            expect=jobs,
            allocations=self._records,
            **self._options,
        )
        free = sim.free()
        self._total = float(free.get("core") or free["node"])
        self._observer = Observer(self._visible, self.jobs, self._total)
        self._done: dict[int, StartedJob] = {}
        self._fresh: list[StartedJob] = []
        self._last_end = 0.0
        sim.submit_all(jobs)
        self._ended = self._told = False
        self._go_on()
        return self._observe(), self._info()

    def step(self, action: Any) -> tuple[Observation, float, bool, bool, dict[str, Any]]:
        """Carry out an action, and run the clock to the next choice or to the end of the episode.

        Raises
        ------
        ConfigError
            For an action that does not exist or, with ``masked="error"``, one that is masked.
        """
        if self._told:
            raise ConfigError("there is no episode, or it is over", expected="reset() first")
        value = action.item() if isinstance(action, np.ndarray) and action.ndim == 0 else action
        check_whole("action", value, 0, self._actions_count - 1)
        choice, at = self._choice, int(value)
        replaced = not self.action_masks()[at]
        if choice is not None:
            if replaced:
                at = self._replacement(at, choice)
            self._choice = None
            if at == self._waiting:
                self._policy.decline()
            else:
                self._policy.pick(int(choice.jobs[at]))
            self.simulation.engine.settle()
            self._go_on()
        self._told = self._ended
        started, self._fresh = self._fresh, []
        reward = rewarded(self._reward, self, started)
        info = self._info()
        if replaced:
            info["replaced"] = True
        return self._observe(), reward, self._ended, False, info

    def action_masks(self) -> npt.NDArray[np.bool_]:
        """Return for each action whether it may be chosen now.

        Of an episode that ended without any choice, the last action is allowed; it tells the reward.
        """
        mask = np.zeros(self._actions_count, dtype=np.bool_)
        choice = self._choice
        if choice is None:
            mask[-1] = not self._told
        else:
            mask[: len(choice.jobs)] = choice.allowed
            if self._waiting is not None:
                # only while anything is still to happen, so that waiting ends
                simulation = self.simulation
                mask[self._waiting] = simulation.engine.plan.claimants or len(simulation.arrivals) > 0
        return mask

    # -- for rewards and baselines ----------------------------------------------------------------------

    @property
    def choice(self) -> Choice | None:
        """The choice that the agent has now; None when the episode is over."""
        return self._choice

    @property
    def is_over(self) -> bool:
        """Whether nothing is left to happen in the episode."""
        return self._ended

    def metrics(self) -> dict[str, float]:
        """Return the mean wait (s), mean bounded slowdown and utilisation of the jobs that have started."""
        done = list(self._done.values())
        count = max(1, len(done))
        work = sum(job.size * job.runtime for job in done)
        return {
            "started": float(len(done)),
            "mean_wait": sum(job.wait for job in done) / count,
            "mean_bounded_slowdown": sum(job.bounded_slowdown for job in done) / count,
            "utilisation": work / self._last_end if self._last_end else 0.0,
        }

    # -- inside ---------------------------------------------------------------------------------------------

    def _begin_of(self, options: dict[str, Any]) -> int:
        last = len(self._log) - self.jobs
        begin = options.pop("begin", None)
        if options:
            raise ConfigError(f"unknown option {next(iter(options))!r} of reset", expected="begin")
        if begin is None:
            return int(self.np_random.integers(last + 1))
        check_whole("begin", begin, 0, last)
        return int(begin)

    def _window(self) -> list[Job]:
        """Return the jobs of the episode: times begin at 0, and no job depends on another."""
        some = self._log[self._begin : self._begin + self.jobs]
        origin = some[0].submit

        def moved(time: float | None) -> float | None:
            return None if time is None else max(0, time - origin)

        return [
            replace(
                job,
                submit=job.submit - origin,
                deadline=moved(job.deadline),
                cancel_at=moved(job.cancel_at),
                dependencies=(),
                preceding=None,
                think_time=None,
            )
            for job in some
        ]

    def _go_on(self) -> None:
        """Run the clock to the next choice, or to the end."""
        policy, env = self._policy, self.simulation.env
        if policy.choice is None:
            policy.reconsider()
        while policy.choice is None and not self._ended:
            if env.peek() == NEVER:
                self._ended = True
            else:
                env.step()
        self._choice = policy.choice
        self._note_starts()

    def _replacement(self, at: int, choice: Choice) -> int:
        """Return the action that takes the place of a masked one."""
        if self._masked == REFUSE:
            allowed = self.action_masks().nonzero()[0].tolist()
            shown = ", ".join(map(str, allowed[:SHOWN])) + (" …" if len(allowed) > SHOWN else "")
            raise ConfigError(f"action {at} is masked at {self.simulation.now:g} s", expected=shown)
        return int(choice.allowed.argmax())

    def _note_starts(self) -> None:
        """Note the jobs that have started since the last choice; a restart counts once."""
        prepared, total = self.simulation.prepared, self._total
        table = prepared.table
        for job, now in self._policy.take_started():
            self._observer.note_start(job, now + table.durations[job])
            runtime = prepared.runtimes[job]
            self._last_end = max(self._last_end, now + runtime)
            if job not in self._done:
                wait = now - float(table.submits[job])
                started = StartedJob(job, wait, float(runtime), float(table.sizes[job]) / total)
                self._done[job] = started
                self._fresh.append(started)

    def _observe(self) -> Observation:
        return self._observer.nothing() if self._choice is None else self._observer.observe(self._choice)

    def _info(self) -> dict[str, Any]:
        info = {"action_mask": self.action_masks(), "time": float(self.simulation.now), "begin": self._begin}
        if self._ended:
            info["metrics"] = self.metrics()
        return info


def _among(name: str, value: object, known: Iterable[str]) -> None:
    names = tuple(known)
    if value not in names:
        meant = did_you_mean(value, names) if isinstance(value, str) else ""
        raise ConfigError(f"unknown value {value!r} of {name}{meant}", expected=", ".join(names))


def _rules(site: Site | None, options: dict[str, Any]) -> dict[str, Any]:
    """Return the run options, those of a site included, without a queue policy: the agent takes its place."""
    for name in ("queue_policy", "queue_options"):
        if options.get(name) is not None:
            raise ConfigError(f"the option {name} is given", expected="none: the agent takes its place")
    if options["seed"] is not None:
        raise ConfigError("the option seed is given", expected="reset(seed=…)")
    left_out = ("queue_policy", "queue_options", "seed")
    rules = {name: value for name, value in rules_on(site, options).items() if name not in left_out}
    make_config(**{name: value for name, value in rules.items() if name != "absent"})
    return rules
