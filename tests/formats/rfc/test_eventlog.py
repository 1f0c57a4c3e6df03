"""Eventlogs: RFC 18's lines, RFC 21's events, and what is wrong with bad ones."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from simsched.errors import FormatError
from simsched.formats.rfc.eventlog import (
    Event,
    check_job_events,
    format_eventlog,
    iter_eventlog,
    parse_event,
    parse_eventlog,
)

LOG = """\
{"timestamp":0.0,"name":"submit","context":{"userid":1000,"urgency":16,"flags":0,"version":1}}
{"timestamp":0.0,"name":"validate"}
{"timestamp":0.0,"name":"depend"}
{"timestamp":0.0,"name":"priority","context":{"priority":16}}
{"timestamp":5.5,"name":"alloc"}
{"timestamp":5.5,"name":"start"}
{"timestamp":65.5,"name":"finish","context":{"status":0}}
{"timestamp":65.5,"name":"release","context":{"ranks":"0-3","final":true}}
{"timestamp":65.5,"name":"free"}
{"timestamp":65.5,"name":"clean"}
"""

words = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=8)
events = st.builds(
    Event,
    st.floats(0, 1e12) | st.integers(0, 10**12),
    words,
    st.dictionaries(words, st.integers() | words | st.none(), max_size=3),
)


def test_the_story_of_a_job_comes_back_as_it_was():
    log = parse_eventlog(LOG)
    assert [event.name for event in log][-3:] == ["release", "free", "clean"]
    assert log[6] == Event(65.5, "finish", {"status": 0})
    assert format_eventlog(log) == LOG
    assert check_job_events(log) == []


@given(st.lists(events, max_size=5))
def test_logs_are_lossless(log):
    """RFC 18: one JSON object a line, each ended by a newline."""
    text = format_eventlog(log)
    assert text.count("\n") == len(log)
    assert list(parse_eventlog(text)) == log
    assert list(iter_eventlog(f"{line}\n" for line in text.split("\n"))) == log
    assert [hash(event) for event in parse_eventlog(text)] == [hash(event) for event in log]


@pytest.mark.parametrize(
    ("line", "says"),
    [
        ("[]", "log:2: not an event"),
        ("{", "log:2:1:2: not JSON"),
        ('{"name": "a"}', "log:2: the event has no timestamp"),
        ('{"timestamp": 1}', "log:2: the event has no name"),
        ('{"timestamp": "1", "name": "a"}', "log:2: '1' is not a timestamp"),
        ('{"timestamp": true, "name": "a"}', "log:2: True is not a timestamp"),
        ('{"timestamp": -1, "name": "a"}', "log:2: -1 is not a timestamp"),
        ('{"timestamp": NaN, "name": "a"}', "NaN is not a number"),
        ('{"timestamp": 1, "name": ""}', "log:2: '' is not a name"),
        ('{"timestamp": 1, "name": "a", "context": []}', "log:2: [] is not a context"),
        ('{"timestamp": 1, "name": "a", "more": 1}', "log:2: unknown key 'more'"),
    ],
)
def test_says_what_is_wrong_and_where(line, says):
    with pytest.raises(FormatError) as caught:
        parse_eventlog(LOG.split("\n", 1)[0] + "\n" + line, "log")
    assert says in str(caught.value)


def test_an_event_may_stand_alone():
    assert parse_event('{"name": "free", "timestamp": 3}') == Event(3, "free")
    assert parse_eventlog("\n\n") == ()


@pytest.mark.parametrize(
    ("event", "says"),
    [
        (Event(9, "submit"), "event submit: urgency is missing (expected 0 to 31)"),
        (Event(9, "submit", {"urgency": 32}), "urgency is 32"),
        (Event(9, "priority", {"priority": -1}), "priority is -1"),
        (Event(9, "finish", {"status": "0"}), "status is '0'"),
        (Event(9, "release", {"ranks": "3-1", "final": True}), "ranks is '3-1'"),
        (Event(9, "release", {"ranks": "all", "final": 1}), "final is 1"),
        (Event(9, "exception", {"type": "x", "severity": 8}), "severity is 8"),
        (Event(9, "exception", {"severity": 0}), "type is missing"),
        (Event(7, "free"), "event free at 7 comes after one at 8"),
    ],
)
def test_lists_what_rfc_21_forbids(event, says):
    faults = check_job_events([Event(8, "validate"), event, Event(9, "our-own", {"x": 1})], "log")
    assert len(faults) == 1
    assert str(faults[0]).startswith("log:2: ")
    assert says in str(faults[0])
