"""The answers of ``feasible`` and ``match`` in JSON."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from simsched.cli.options.requests import REFUSALS, NamedRequest, Refusal
from simsched.declare.answers import UNSET, UnsetType, Written
from simsched.formats.cluster.rset import WrittenR
from simsched.match.explain.reason_codes import Reason, ReasonCode
from simsched.match.explain.reasons import ReasonsAnswer

if TYPE_CHECKING:
    from simsched.match.outcome import Outcome

Yes = Literal["yes", "now"]


class FeasibleAnswer(Written, frozen=True, kw_only=True):
    """The answer about one request.

    cluster : where several clusters were asked.
    reasons : why the request is refused.
    queue : with a configuration: the queue of the request; null without one.
    duration : seconds, the request's own or a default; null if unlimited.
    notes : remarks that do not refuse the request.
    queues : each queue: the codes of the reasons against the request there.
    """

    cluster: str | None = None
    version: Literal[1]
    request: str
    answer: Yes | Refusal
    reasons: ReasonsAnswer | None = None
    queue: str | UnsetType | None = UNSET
    duration: float | UnsetType | None = UNSET
    notes: tuple[Reason, ...] | UnsetType = UNSET
    queues: dict[str, tuple[ReasonCode, ...]] | UnsetType = UNSET


FeasibleAnswers = list[FeasibleAnswer]


def answer_of(
    request: NamedRequest, outcome: Outcome, yes: Yes, cluster: str | None = None
) -> FeasibleAnswer:
    """Return an answer as it is written; a refusal has its reasons."""
    return FeasibleAnswer(
        cluster=cluster,
        version=1,
        request=request.label,
        answer=yes if outcome else REFUSALS[outcome.status],
        reasons=None if outcome else outcome.reasons.answer(),
        **({} if outcome.placement is None else outcome.placement.to_dict()),
    )


class MatchAnswer(Written, frozen=True, kw_only=True):
    """The answer about one request.

    reasons : why the request is refused.
    id : the number of the allocation.
    R : the allocation (RFC 20).
    """

    version: Literal[1]
    request: str
    answer: Literal["matched"] | Refusal
    reasons: ReasonsAnswer | None = None
    id: int | None = None
    R: WrittenR | None = None


MatchAnswers = list[MatchAnswer]
