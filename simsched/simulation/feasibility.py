"""Whether a cluster with queues would ever run a request: the graph's answer and the configuration's in one.

The rules are those of `admission`, so a run rejects a job at its submission exactly if the answer here has
a reason of the configuration or the graph refuses the request.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

from simsched.arguments import check, check_path, check_real
from simsched.errors import ConfigError, did_you_mean
from simsched.formats.jobspec.jobspec import as_jobspec
from simsched.formats.rfc.constraint import gpu_type_of
from simsched.formats.rfc.duration import format_duration
from simsched.match.explain.reason_codes import Reason
from simsched.match.explain.suggestions import named_part
from simsched.match.matcher import Matcher
from simsched.match.outcome import Infeasible, Outcome, Placement
from simsched.match.requests.compile import compile_request
from simsched.simulation.admission import (
    constrained,
    disabled_queue,
    duration_in,
    name_of_queue,
    too_long,
    unknown_queue,
    wrong_sizes,
)
from simsched.simulation.jobs.sizes import Sizes
from simsched.simulation.limits.limit_counters import LimitTable
from simsched.simulation.limits.limit_rules import ANY
from simsched.simulation.queues import INF, Queues

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from simsched.formats.jobspec.jobspec import Jobspec
    from simsched.graph.cluster import ClusterLike
    from simsched.match.explain.reasons import Suggestion
    from simsched.match.policies.policy import MatchPolicy
    from simsched.simulation.limits.limit_rules import LimitRule
    from simsched.simulation.queues import Queue


@dataclass(frozen=True, slots=True)
class QueueRules:
    """The part of a configuration that decides which jobs are accepted; `no_limit` as in `RunConfig`."""

    queues: Queues
    no_limit: str = "queue"
    limits: tuple[LimitRule, ...] = ()


def queue_rules(config: QueueRules | Queues | Mapping[str, Any] | str | Path, where: str = "") -> QueueRules:
    """Return the rules of a configuration: a file, its content as plain data (RFC 33), or a value of ours.

    A configuration without queues gives one without rules.  Tables of a Flux configuration that are not
    about queues are ignored.

    Raises
    ------
    ConfigError, FormatError
        As `options.config_file.read_config`, with the place.
    """
    from simsched.simulation.options.config_file import queue_document, read_document
    from simsched.simulation.options.run_config import from_document

    if isinstance(config, QueueRules):
        return config
    if isinstance(config, Queues):
        return QueueRules(config)
    if not isinstance(config, Mapping):
        check_path("config", config)
        config, where = read_document(config), str(config)
    options = from_document(queue_document(config), where or "config")
    queues, no_limit = options.get("queues") or Queues({}), options.get("no_limit", "queue")
    return QueueRules(queues, no_limit, options.get("limits", ()))


def feasible(
    cluster: ClusterLike,
    jobspec: Jobspec,
    *,
    now: bool = False,
    policy: str | MatchPolicy = "first",
    config: QueueRules | Queues | Mapping[str, Any] | str | Path | None = None,
    queue: str | None = None,
    duration: float | None = None,
) -> Outcome:
    """Whether a jobspec can match on a cluster: ever, or with `now` in its present up/down state.

    With `config`, a configuration of queues (`queue_rules`), the answer is that of the request's queue: the
    one named here, or by the jobspec, or the default.  `duration` (seconds) is for a jobspec without one.

    Raises
    ------
    RequestError
        if the jobspec has no meaning on this cluster.
    ConfigError, FormatError
        for a configuration that cannot be read, and a queue or a duration without one.

    >>> import simsched as ss
    >>> config = {"queues": {"debug": {"policy": {"limits": {"job-size": {"max": {"nnodes": 2}}}}}}}
    >>> answer = ss.feasible("tiny", ss.Jobspec.from_shape("slot=3/node"), config=config, queue="debug")
    >>> bool(answer), [reason.code for reason in answer.reasons.coded]
    (False, ['limit-nodes-max'])
    """
    check("queue", queue, str | None, "the name of a queue")
    if duration is not None:
        check_real("duration", duration, 0)
    if config is None and (queue is not None or duration is not None):
        raise ConfigError("a queue or a duration needs a configuration", expected="config=…")
    matcher = Matcher(cluster, policy=policy)
    if config is None:
        return matcher.feasible_now(jobspec) if now else matcher.satisfiable(jobspec)
    return QueueFeasibility(matcher, queue_rules(config)).answer(
        jobspec, queue=queue, duration=duration, now=now
    )


class _Verdict(NamedTuple):
    """The answer for one queue: the reasons of the configuration, and the outcome on the graph."""

    reasons: tuple[Reason, ...]
    outcome: Outcome

    @property
    def codes(self) -> tuple[str, ...]:
        """The codes of all reasons; () if the queue takes the request."""
        coded = () if self.outcome else self.outcome.reasons.coded
        return tuple(dict.fromkeys(reason.code for reason in (*self.reasons, *coded)))


class QueueFeasibility:
    """Answers requests on one matcher's cluster under the rules of its queues."""

    def __init__(self, matcher: Matcher, rules: QueueRules) -> None:
        self._matcher = matcher
        self._rules = rules
        self._sizes = Sizes(matcher.index)
        self._limits = LimitTable(rules.limits, matcher.index)

    def answer(
        self,
        jobspec: Jobspec,
        *,
        queue: str | None = None,
        duration: float | None = None,
        now: bool = False,
    ) -> Outcome:
        """Return the answer for a request in its queue; arguments and errors as `feasible`."""
        jobspec = as_jobspec(jobspec)
        queues = self._rules.queues
        requested = jobspec.duration or duration or INF  # 0 means no limit (RFC 14)
        ask = self._matcher.feasible_now if now else self._matcher.satisfiable
        name = name_of_queue(queue, jobspec, queues) if queues.queues else queue
        found = queues.queues.get(name) if name is not None else None
        if name is not None and found is None:
            reason = unknown_queue(name)
            text = f"{reason.text}{did_you_mean(name, queues.queues)}"
            verdict = _Verdict((replace(reason, text=text),), ask(jobspec))
        else:
            verdict = self._verdict(jobspec, found, requested, ask)
        by_default = queue is None and jobspec.queue is None
        placement = Placement(
            name,
            self._duration(found, requested),
            tuple(self._notes(found, requested, by_default=by_default)),
            partial(self._every_queue, jobspec, requested, ask),
        )
        return _outcome(verdict, placement, partial(_is_own_change, jobspec))

    def _duration(self, queue: Queue | None, requested: float) -> float | None:
        """Return the duration (seconds) that a request has in a queue; None for no limit."""
        own = None if requested == INF else requested
        return own if queue is None else duration_in(queue, own, self._rules.no_limit)

    def _verdict(
        self, jobspec: Jobspec, queue: Queue | None, requested: float, ask: Callable[[Jobspec], Outcome]
    ) -> _Verdict:
        if queue is None:
            return _Verdict(tuple(self._over_limits(jobspec, None, requested)), ask(jobspec))
        spec = constrained(jobspec, queue)
        request = compile_request(spec, self._matcher.index, self._matcher.dialect)
        outcome = ask(spec)
        found = [disabled_queue(queue), too_long(queue, self._duration(queue, requested))]
        found += wrong_sizes(queue, self._sizes.counts(request))
        found += self._over_limits(spec, queue, requested)
        if not outcome and self._fits_outside_alone(jobspec, spec):
            found.append(self._outside(queue))
        return _Verdict(tuple(reason for reason in found if reason is not None), outcome)

    def _over_limits(self, spec: Jobspec, queue: Queue | None, requested: float) -> Iterator[Reason]:
        """Yield a reason for each limit that never allows a request, whoever its user is.

        Limits on users, accounts and QoS count where they are the same for each of them.
        """
        if not self._rules.limits:
            return
        request = compile_request(spec, self._matcher.index, self._matcher.dialect)
        duration = self._duration(queue, requested)
        seconds = INF if duration is None else duration
        names = (ANY, ANY, None if queue is None else queue.name, ANY, None, gpu_type_of(spec.constraint))
        name = "" if queue is None else queue.name
        for breach in self._limits.breaches(names, self._limits.demand(request, seconds), seconds):
            yield Reason("limit-scope", breach.text, name, breach.limit.most, breach.asked)

    def _fits_outside_alone(self, jobspec: Jobspec, spec: Jobspec) -> bool:
        """Whether the idle cluster fits a jobspec, but not with the queue's constraint (`spec`)."""
        fits = self._matcher.satisfiable
        return spec is not jobspec and not fits(spec) and bool(fits(jobspec))

    def _outside(self, queue: Queue) -> Reason:
        """Return the reason against a request that fits on the cluster, but not on the queue's targets."""
        index = self._matcher.index
        there = int(index.targets_matching(queue.constraint).sum())
        kind = index.target_type
        text = f"queue {queue.name} has {there} of the {len(index)} {kind}s ({queue.constraint})"
        return Reason("queue-constraint", text, queue.name)

    def _notes(self, queue: Queue | None, requested: float, *, by_default: bool) -> Iterator[Reason]:
        if queue is None:
            if self._rules.queues.queues and by_default:
                yield Reason("queue-none", _NO_QUEUE)
            return
        if by_default:
            yield Reason("default-queue", f"the request names no queue and goes to {queue.name}", queue.name)
        given = self._duration(queue, requested)
        if requested == INF and given is not None:
            text = f"the request has no duration and gets {format_duration(given)}"
            yield Reason("default-duration", text, queue.name)
        if not queue.started:
            yield Reason("queue-stopped", f"queue {queue.name} is stopped: no job starts", queue.name)

    def _every_queue(
        self, jobspec: Jobspec, requested: float, ask: Callable[[Jobspec], Outcome]
    ) -> Mapping[str, tuple[str, ...]]:
        codes: dict[str, tuple[str, ...]] = {}
        for name, queue in self._rules.queues.queues.items():
            stopped = () if queue.started else ("queue-stopped",)
            codes[name] = (*self._verdict(jobspec, queue, requested, ask).codes, *stopped)
        return codes


_NO_QUEUE = (
    "the request names no queue and there is no default queue: "
    "a run places it on any node, and Flux rejects it"
)


def _is_own_change(jobspec: Jobspec, change: Suggestion) -> bool:
    """Whether a change is in the request itself: the constraint of a queue cannot be dropped."""
    own = jobspec.constraint
    return change.kind != "constraint" or (own is not None and change.text == f"without {named_part(own)}")


def _outcome(verdict: _Verdict, placement: Placement, keep: Callable[[Suggestion], bool]) -> Outcome:
    """Return the graph's outcome with the reasons of the configuration and the placement."""
    graph = verdict.outcome
    if verdict.reasons:
        return Infeasible(reasons=graph.reasons.with_configured(verdict.reasons, keep), placement=placement)
    return replace(graph, placement=placement)
