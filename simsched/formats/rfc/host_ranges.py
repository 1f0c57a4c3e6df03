"""Host names as ranges (RFC 29): names are split, joined to ranges, and ranges are read and written."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple

from simsched.errors import FormatError, LimitError
from simsched.formats.rfc.names import MAX_NAME
from simsched.formats.text.excerpts import clip

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

FORM = "host names and prefix[ids]suffix expressions, such as node[01-16,20]"
"""The form of a hostlist, for messages."""
_DIGITS = 18  # longer digit strings in a name are text, not a number
_ELEMENT = re.compile(r"([^\[\],\s]*)(?:\[([^\[\]\s]*)\]([^\[\],\s]*))?(,+|\Z)")
_RANGE = re.compile(r"([0-9]+)(?:-([0-9]+))?\Z")
_LAST_NUMBER = re.compile(r"[0-9]+(?=[^0-9]*\Z)")
_NOT_DIGITS = re.compile(r"[^0-9.]")


class HostRange(NamedTuple):
    """The names ``prefix + number + suffix`` for the numbers from `low` to `high`.

    `width` is the least number of digits, 0 if there are no leading zeroes; a name without
    a number has `width` -1 and is all prefix.
    """

    prefix: str
    suffix: str
    width: int
    low: int
    high: int

    def name(self, position: int) -> str:
        """The name at `position`, from 0."""
        if self.width < 0:
            return self.prefix
        return f"{self.prefix}{self.low + position:0{self.width}d}{self.suffix}"

    def names(self) -> Iterator[str]:
        """All names, in order."""
        if self.width < 0:
            return iter((self.prefix,))
        form = f"{self.prefix.replace('%', '%%')}%0{self.width}d{self.suffix.replace('%', '%%')}"
        return map(form.__mod__, range(self.low, self.high + 1))

    def position(self, host: str) -> int:
        """The position of `host` in this range, or -1."""
        if self.width < 0:
            return 0 if host == self.prefix else -1
        digits = host[len(self.prefix) : len(host) - len(self.suffix)]
        if len(digits) > _DIGITS + 2 or not (digits.isascii() and digits.isdigit()):
            return -1
        number = int(digits)
        if not self.low <= number <= self.high:
            return -1
        return number - self.low if self.name(number - self.low) == host else -1


# -- reading -------------------------------------------------------------------------


def parse_into(text: str, where: str | None, segments: list[HostRange]) -> None:
    """Append the ranges of one RFC 29 string; an empty expression adds nothing."""
    at, separator = 0, "," if text else ""
    while separator:
        match = _ELEMENT.match(text, at)
        if match is None or match.end(1) - at > MAX_NAME:
            raise _fault(text, at, where)
        prefix, ids, suffix, separator = match.groups()
        if ids is not None:
            try:
                segments.extend(_parse_ids(prefix, ids, suffix))
            except FormatError as error:
                place = f"{error.message} at character {at + 1} of hostlist {clip(text)!r}"
                raise type(error)(place, where=where, expected=error.expected) from None
        elif prefix:
            segments.append(split_name(prefix))
        at = match.end()


def _parse_ids(prefix: str, ids: str, suffix: str) -> Iterator[HostRange]:
    """The ranges of one bracketed list.

    The leading zeroes of its first id count for all of them (RFC 29); those of another id for that
    id alone.
    """
    first = 0
    for at, part in enumerate(ids.split(",")):
        match = _RANGE.match(part)
        if match is None:
            raise FormatError(f"{clip(part)!r} is neither an id nor a range", expected="such as 0-3,7")
        low_text, high_text = match.groups()
        if len(low_text) > _DIGITS or (high_text and len(high_text) > _DIGITS):
            raise LimitError(f"{clip(part)!r} has too many digits", expected=f"at most {_DIGITS}")
        low = int(low_text)
        high = int(high_text) if high_text else low
        if high < low:
            raise FormatError(f"the range {clip(part)!r} descends", expected="low-high")
        own = len(low_text) if low_text[0] == "0" and len(low_text) > 1 else 0
        first = own if at == 0 else first
        width = max(first, own)
        yield HostRange(prefix, suffix, width if len(str(low)) < width else 0, low, high)


def _fault(text: str, at: int, where: str | None) -> FormatError:
    """Return the fault of the element of `text` that begins at `at`."""
    end = re.compile(r"[,\]]|\Z").search(text, at)
    element = text[at : end.end() if end else len(text)]
    if re.search(r"\s", element):
        reason = f"white space in {clip(element)!r}"
    elif "[" in text[at:] and "]" not in text[at:]:
        reason = f"'[' is never closed in {clip(text[at:])!r}"
    elif "[" in element:
        reason = f"more than one pair of brackets in {clip(text[at:])!r}"
    elif "]" in element:
        reason = f"']' without '[' in {clip(element)!r}"
    else:
        reason = f"a name of more than {MAX_NAME} characters"
    return FormatError(
        f"{reason} at character {at + 1} of hostlist {clip(text)!r}", where=where, expected=FORM
    )


# -- names to ranges and back --------------------------------------------------------


@lru_cache(maxsize=1 << 16)
def split_name(host: str) -> HostRange:
    """Split a name at the number that most likely enumerates hosts: the last one before its first dot.

    An address such as 10.0.0.7 is split at its last number.
    """
    label, dot, domain = host.partition(".")
    if not _NOT_DIGITS.search(domain):
        label, dot, domain = host, "", ""
    stem = label.rstrip("0123456789")
    if stem != label:
        start, end = len(stem), len(label)
    elif match := _LAST_NUMBER.search(label[:MAX_NAME]):
        start, end = match.span()
    else:
        return HostRange(host, "", -1, 0, 0)
    digits = label[start:end]
    if len(digits) > _DIGITS:
        return HostRange(host, "", -1, 0, 0)
    number = int(digits)
    width = len(digits) if digits[0] == "0" and len(digits) > 1 else 0
    return HostRange(label[:start], label[end:] + dot + domain, width, number, number)


def follows(left: HostRange, right: HostRange) -> bool:
    """Whether `right` begins where `left` ends, so that the two are one range."""
    if right.low != left.high + 1 or right.prefix != left.prefix or right.suffix != left.suffix:
        return False
    if left.width < 0:
        return False
    # Without leading zeroes of its own, `right` still continues a padded range once its digits fill the
    # width: 09 is followed by 10, but 009 is not followed by 10.
    return left.width == right.width or (right.width == 0 and len(str(right.low)) >= left.width)


def joined(segments: Iterable[HostRange]) -> Iterator[HostRange]:
    """Join segments where one follows the other."""
    last: HostRange | None = None
    for segment in segments:
        if last is not None and follows(last, segment):
            last = HostRange(last.prefix, last.suffix, last.width, last.low, segment.high)
        else:
            if last is not None:
                yield last
            last = segment
    if last is not None:
        yield last


def ranges_of(hosts: Iterable[str]) -> Iterator[HostRange]:
    """The joined ranges of single names.

    The same as `joined` of `split_name` of each, without an object per name: a run of a million hosts costs
    one `HostRange`.  The condition is that of `follows`, written out.
    """
    prefix, suffix, width, low, high = "", "", -1, 0, -1
    for right in map(split_name, hosts):
        if (
            right[3] == high + 1
            and width >= 0
            and right[0] == prefix
            and right[1] == suffix
            and (right[2] == width or (right[2] == 0 and len(str(high + 1)) >= width))
        ):
            high += 1
            continue
        if high >= low:
            yield HostRange(prefix, suffix, width, low, high)
        prefix, suffix, width, low, high = right
    if high >= low:
        yield HostRange(prefix, suffix, width, low, high)


def format_ranges(segments: Iterable[HostRange]) -> str:
    """Write ranges, those with one prefix and suffix in one pair of brackets.

    The first id sets the least width of a bracket, so a number that this width would pad starts another one.
    """
    parts: list[str] = []
    ids: list[str] = []
    prefix, suffix, width = "", "", 0
    for before, after, digits, first, last in segments:
        if digits < 0:
            _flush(parts, prefix, ids, suffix)
            parts.append(before)
            continue
        low = str(first).zfill(digits)
        if ids and (len(low) < width or before != prefix or after != suffix):
            _flush(parts, prefix, ids, suffix)
        if not ids:
            prefix, suffix = before, after
            width = len(low) if low[0] == "0" and len(low) > 1 else 0
        ids.append(low if first == last else f"{low}-{str(last).zfill(digits)}")
    _flush(parts, prefix, ids, suffix)
    return ",".join(parts)


def _flush(parts: list[str], prefix: str, ids: list[str], suffix: str) -> None:
    """Write the open bracket, if there is one."""
    if ids:
        text = ",".join(ids)
        parts.append(f"{prefix}{text}{suffix}" if text.isdigit() else f"{prefix}[{text}]{suffix}")
        ids.clear()
