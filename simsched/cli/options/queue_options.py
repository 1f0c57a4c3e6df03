"""The options of ``feasible`` for queues: the configuration, the queue and the duration of requests."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, TypeAlias

from simsched.cli.options.requests import REFUSALS
from simsched.declare.flags import Flags, add_flags, flag
from simsched.errors import ConfigError

if TYPE_CHECKING:
    import argparse
    from collections.abc import Callable

    from simsched.cli.options.requests import NamedRequest
    from simsched.formats.jobspec.jobspec import Jobspec
    from simsched.match.matcher import Matcher
    from simsched.match.outcome import Outcome
    from simsched.site.site import Site

    QueueQuestion: TypeAlias = Callable[[Matcher, bool], Callable[[Jobspec], Outcome]]


class QueueFlags(Flags, frozen=True, kw_only=True):
    """Queues of requests.

    config : check also the queues of this configuration (TOML, YAML, JSON): constraints, limits,
        defaults.
    queue : queue of every request, instead of its own or the default.
    duration : duration of requests that state none, such as 2h.
    """

    config: Annotated[str | None, flag("FILE")] = None
    queue: Annotated[str | None, flag("NAME")] = None
    duration: Annotated[str | None, flag("D")] = None


def add_queue_options(parser: argparse.ArgumentParser) -> None:
    """Add ``--config``, ``--queue`` and ``--duration``."""
    add_flags(parser, QueueFlags)


def queue_question(args: argparse.Namespace, site: Site | None = None) -> QueueQuestion | None:
    """Return the question to the queues of a configuration (matcher, now → jobspec → outcome), or None.

    Raises
    ------
    ConfigError, FormatError
        for options without a configuration, or one that cannot be read.
    """
    if args.config is None and site is None:
        for option in ("queue", "duration"):
            if getattr(args, option) is not None:
                raise ConfigError(
                    f"--{option} needs a configuration",
                    where=f"--{option}",
                    expected="--config FILE or --site DIR",
                )
        return None
    from simsched.formats.rfc.duration import parse_duration
    from simsched.simulation.feasibility import QueueFeasibility, queue_rules

    rules = queue_rules(args.config) if site is None else queue_rules(site.config, str(site.path))
    duration = None if args.duration is None else parse_duration(args.duration, "--duration")

    def question(matcher: Matcher, now: bool) -> Callable[[Jobspec], Outcome]:
        queues = QueueFeasibility(matcher, rules)
        return lambda jobspec: queues.answer(jobspec, queue=args.queue, duration=duration, now=now)

    return question


def configured_text(request: NamedRequest, outcome: Outcome, yes: str) -> str:
    """Return an answer with its queue as text: notes, the reasons with their codes, the queues that fit."""
    placement = outcome.placement
    assert placement is not None
    queue = "" if placement.queue is None else f" in queue {placement.queue}"
    lines = [f"{request.label}: {yes if outcome else REFUSALS[outcome.status]}{queue}"]
    lines += [f"  note: {note}" for note in placement.notes]
    if not outcome:
        lines += [f"  {line}" for line in outcome.reasons.with_codes()]
        lines += [f"  queues that would take it: {', '.join(placement.takers) or 'none'}"]
    return "\n".join(lines)
