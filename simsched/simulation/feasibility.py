"""Whether a cluster with queues would ever run a request: the graph's answer and the configuration's in one.

The rules are those of `admission`, so a run rejects a job at its submission exactly if the answer here has
a reason of the configuration or the graph refuses the request.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property, partial
from itertools import chain
from math import floor
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

from simsched import human
from simsched.arguments import check, check_path, check_real, options_named
from simsched.errors import ConfigError, SimschedError, did_you_mean
from simsched.formats.jobspec.jobspec import as_jobspec
from simsched.formats.rfc import constraint as rfc31
from simsched.formats.rfc.clock import Clock
from simsched.formats.rfc.constraint import gpu_type_of
from simsched.formats.rfc.duration import format_duration
from simsched.formats.rfc.hostlist import Hostlist, encode_hosts
from simsched.graph.cluster import SITE_QUEUES
from simsched.match.explain.reason_codes import Reason
from simsched.match.explain.reasons import Suggestion
from simsched.match.explain.suggestions import named_part, other_counts
from simsched.match.matcher import Matcher
from simsched.match.outcome import Infeasible, Outcome, Placement
from simsched.match.policies.policy import find_policy
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
from simsched.simulation.limits.limit_counters import LimitTable
from simsched.simulation.limits.limit_rules import ANY
from simsched.simulation.outages.outages import MAINTENANCE
from simsched.simulation.queues import INF, Queues

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from simsched.formats.jobspec.jobspec import Jobspec
    from simsched.graph.cluster import ClusterLike
    from simsched.match.policies.policy import MatchPolicy
    from simsched.simulation.limits.limit_rules import LimitRule
    from simsched.simulation.outages.outages import Outage
    from simsched.simulation.queues import Queue
    from simsched.simulation.reservations.reservation_rules import AdvanceReservation

    _Codes: TypeAlias = Callable[[Jobspec, Queue, float], tuple[str, ...]]


YEAR = 365 * 86400


@dataclass(frozen=True, slots=True)
class QueueRules:
    """The part of a configuration that decides which jobs are accepted.

    `no_limit` and `match_policy` are as in `RunConfig`: under a policy of whole nodes jobs count with these.
    `reservations` and `outages` are those that a job may have to end before.
    Without `named` queues there is one at most, which has no name in the configuration and takes all jobs.
    """

    queues: Queues
    no_limit: str = "queue"
    limits: tuple[LimitRule, ...] = ()
    match_policy: str | MatchPolicy = "first"
    named: bool = True
    reservations: tuple[AdvanceReservation, ...] = ()
    outages: tuple[Outage, ...] = ()


def queue_rules(config: QueueRules | Queues | Mapping[str, Any] | str | Path, where: str = "") -> QueueRules:
    """Return the rules of a configuration: a file, its content as plain data (RFC 33), or a value of ours.

    A policy without queues is that of all jobs, as in Flux.  Tables of a Flux configuration that are not
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
    match_policy = options.get("match_policy", "first")
    return QueueRules(
        queues,
        no_limit,
        options.get("limits", ()),
        match_policy,
        named=bool(config.get("queues")),
        reservations=options.get("reservations", ()),
        outages=options.get("outages", ()),
    )


@options_named
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

    `cluster` may be a site, whose queues are then the `config`.

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
    if config is None:
        config = _config_of_site(cluster)
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


def _config_of_site(cluster: ClusterLike) -> Mapping[str, Any] | Path | None:
    """Return the configuration of a site, or of its folder; None for any other cluster."""
    if isinstance(cluster, str | Path):
        file = Path(cluster) / SITE_QUEUES
        return file if file.is_file() else None
    return getattr(cluster, "config", None) or None


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
        whole = matcher.policy.whole_nodes or find_policy(rules.match_policy).whole_nodes
        self._limits = LimitTable(rules.limits, matcher.index, whole=whole)

    @cached_property
    def _windows(self) -> list[tuple[str, float, list[str]]]:
        """The next window of each reservation and maintenance: its name, its begin, its hosts.

        Times are seconds from now; dates are compared with the present time.  A reservation of some nodes,
        whose choice is the scheduler's, has none.
        """
        now, index = Clock(time.time()), self._matcher.index
        found = []
        for outage in self._rules.outages:
            one = outage.on_clock(now)
            if one is not None and one.kind == MAINTENANCE:
                named = Hostlist.parse(one.hosts)  # not expanded: it may name far more hosts
                places = zip(index.hosts, index.ranks.tolist(), strict=True)
                hosts = [host for host, rank in places if rank in one.ranks or host in named]
                found.append((f"the maintenance{f' {one.note}' if one.note else ''}", one.start, hosts))
        for given in self._rules.reservations:
            reservation = given.on_clock(now) if given.days is None else None
            if reservation is None or not isinstance(reservation.start, int | float):
                continue
            if isinstance(reservation.announced, int | float) and reservation.announced > 0:
                continue  # nobody knows it now
            begins = (begin for begin, _ in reservation.spans(reservation.start) if begin > 0)
            begin = next(begins, None)
            if reservation.hosts is None or reservation.hosts == "all":
                every = reservation.hosts == "all" or (reservation.nodes or 0) >= len(index)
                hosts = list(index.hosts) if every else []
            else:
                named = Hostlist.parse(reservation.hosts)
                hosts = [host for host in index.hosts if host in named]
            if begin is not None:
                found.append((f"reservation {reservation.name}", begin, hosts))
        return sorted((window for window in found if window[2]), key=lambda window: window[1])

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
        if queues.queues and self._rules.named:
            name = name_of_queue(queue, jobspec, queues)
        else:
            name = queues.default if queue is None else queue
        found = queues.queues.get(name) if name is not None else None
        if name is not None and found is None:
            reason = unknown_queue(name)
            text = f"{reason.text}{did_you_mean(name, queues.queues)}"
            verdict = _Verdict((reason.replace(text=text),), ask(jobspec))
        else:
            verdict = self._verdict(jobspec, found, requested, ask)
        by_default = self._rules.named and queue is None and jobspec.queue is None
        placement = Placement(
            name,
            self._duration(found, requested),
            (
                *self._notes(found, requested, by_default=by_default),
                *(self._ahead(jobspec, found, requested) if verdict.outcome and not verdict.reasons else ()),
            ),
            partial(self._every_queue, jobspec, requested, ask),
        )
        more = partial(self._changes, jobspec, found, placement, requested, ask)
        limited = any(reason.code.startswith("limit-") for reason in verdict.reasons)
        graph = verdict.outcome
        if verdict.reasons:
            reasons = graph.reasons.with_configured(
                verdict.reasons, partial(_is_own_change, jobspec, limited), more
            )
            return Infeasible(reasons=reasons, placement=placement)
        return replace(graph, placement=placement)

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
        found = [disabled_queue(queue), too_long(queue, self._duration(queue, requested), requested)]
        found += wrong_sizes(queue, self._limits.sizes.counts(request))
        found += self._over_limits(spec, queue, requested)
        fits = self._matcher.satisfiable  # on the idle cluster, but not with the constraint of the queue
        if not outcome and spec is not jobspec and not fits(spec) and fits(jobspec):
            index = self._matcher.index
            there = int(index.targets_matching(queue.constraint).sum())
            kind = index.target_type
            text = f"queue {queue.name} has {there} of the {len(index)} {kind}s ({queue.constraint})"
            found.append(Reason("queue-constraint", text, queue.name))
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
        least = self._limits.amounts(request, seconds)
        for breach in self._limits.breaches(self._limits.of(names), request, least):
            asked = None if breach.asked == INF else breach.asked
            yield Reason("limit-scope", breach.text, name, breach.limit.most, asked)

    def _changes(
        self,
        jobspec: Jobspec,
        queue: Queue | None,
        placement: Placement,
        requested: float,
        ask: Callable[[Jobspec], Outcome],
    ) -> Iterator[Suggestion]:
        """Yield changes with which a request that the configuration refuses is taken; each has been tried."""

        def codes(spec: Jobspec, other: Queue | None, seconds: float) -> tuple[str, ...]:
            verdict = self._verdict(spec, other, seconds, ask)
            return verdict.codes if verdict.reasons or not verdict.outcome else ()

        if queue is None or not queue.enabled:
            return self._other_queues(jobspec, queue, placement, requested, codes)
        longest = self._longest(lambda seconds: not codes(jobspec, queue, seconds), queue, requested)
        found: list[Suggestion] = []
        if longest is not None:
            text = f"a duration of {format_duration(longest)}"
            found.append(Suggestion(kind="duration", text=text, value=longest))
        elif any(code.startswith("limit-") for code in codes(jobspec, queue, requested)):
            found = list(self._other_sizes(jobspec, queue, requested, codes))
        return chain(found, self._other_queues(jobspec, queue, placement, requested, codes))

    def _longest(self, works: Callable[[float], bool], queue: Queue, requested: float) -> float | None:
        """Return the longest duration (whole seconds) with which a request works; None if none does."""
        own = self._duration(queue, requested)
        own = INF if own is None else own
        high = min(own, queue.longest)
        if high < own and works(high):
            return high
        high = floor(min(high, 10 * YEAR))
        if high < 1 or not works(1):
            return None
        low = 1
        while high - low > 1:  # `low` works
            middle = (low + high) // 2
            low, high = (middle, high) if works(middle) else (low, middle)
        return float(low) if low < own else None

    def _other_sizes(
        self,
        jobspec: Jobspec,
        queue: Queue,
        requested: float,
        codes: _Codes,
    ) -> Iterator[Suggestion]:
        """Yield counts with which a queue takes a request, if need be together with a shorter duration."""
        refused = codes(jobspec, queue, requested)
        more = any(code.startswith("limit-") and code.endswith("-min") for code in refused)
        request = compile_request(constrained(jobspec, queue), self._matcher.index, self._matcher.dialect)
        request = replace(request, jobspec=jobspec) if request.jobspec is not jobspec else request
        own, tried = self._duration(queue, requested), [(requested, "")]
        if queue.longest < (INF if own is None else own):
            tried.append((queue.longest, f" and a duration of {format_duration(queue.longest)}"))
        for seconds, text in tried:
            found = False

            def works(spec: Jobspec, seconds: float = seconds) -> bool:
                try:
                    return not codes(spec, queue, seconds)
                except SimschedError:
                    return False

            for change in other_counts(request, works, more=more):
                found = True
                yield change.replace(text=f"{change.text}{text}", kind="several" if text else change.kind)
            if found:
                return

    def _other_queues(
        self,
        jobspec: Jobspec,
        queue: Queue | None,
        placement: Placement,
        requested: float,
        codes: _Codes,
    ) -> Iterator[Suggestion]:
        """Yield the other queues that take a request with a shorter duration, if none takes it as it is."""
        if placement.takers:
            return
        for name, other in self._rules.queues.queues.items():
            if other is not queue and other.started and other.enabled:

                def works(seconds: float, other: Queue = other) -> bool:
                    return not codes(jobspec, other, seconds)

                longest = self._longest(works, other, requested)
                if longest is not None:
                    text = f"in queue {name}, with a duration of {format_duration(longest)}"
                    yield Suggestion(kind="queue", text=text, value=longest)

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
            if queue.default_duration is None:
                text += ", the limit of the queue (Flux rejects it; no-limit = reject does so, too)"
            yield Reason("default-duration", text, queue.name)
        if not queue.started:
            yield Reason("queue-stopped", f"queue {queue.name} is stopped: no job starts", queue.name)

    def _ahead(self, jobspec: Jobspec, queue: Queue | None, requested: float) -> Iterator[Reason]:
        """Yield a note for each reservation or maintenance for which a job of this duration is too long now.

        It is the first window whose nodes the request cannot do without: a shorter job could start before.
        """
        given = self._duration(queue, requested)
        seconds = INF if given is None else given
        spec = jobspec if queue is None else constrained(jobspec, queue)
        for name, begin, hosts in self._windows:
            if not 0 < begin < seconds:
                continue
            without: dict[str, Any] = {"not": [{"hostlist": [encode_hosts(hosts)]}]}
            own = spec.constraint
            apart = without if own is None else {"and": [rfc31.to_json(own), without]}
            if not self._matcher.satisfiable(spec.with_system(constraints=apart)):
                asked = "without a limit" if seconds == INF else f"of {human.seconds(seconds)}"
                text = (
                    f"a job {asked} cannot end before {name} begins: "
                    f"it would fit with at most {human.seconds(begin)}"
                )
                yield Reason("reservation-ahead", text, "" if queue is None else queue.name, begin, given)
                return

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


def _is_own_change(jobspec: Jobspec, limited: bool, change: Suggestion) -> bool:
    """Whether a change for the graph is one for the queue: its constraint cannot be dropped.

    A count that fits on the graph does not meet a limit of the queue.
    """
    if limited and change.kind in ("count", "several"):
        return False
    own = jobspec.constraint
    return change.kind != "constraint" or (own is not None and change.text == f"without {named_part(own)}")
