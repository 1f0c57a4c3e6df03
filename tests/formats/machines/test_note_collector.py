"""Notes of one reading: what is joined, what stays apart, and what strict readers raise."""

import pytest

from simsched.errors import ClusterError, FormatError, LimitError
from simsched.formats.machines.description import MOST_CAUSES, MOST_FAULTS, NoteCollector


def test_equal_notes_are_one_with_their_number():
    notes = NoteCollector()
    for line in range(1, 4):
        notes.left_out("a key", f"f:{line}")
        notes.fault("odd", f"f: nodes[{line}]", "even")
    notes.assumed("a key", "f:9")
    assert list(map(str, notes.notes())) == [
        "left out: f:1: a key (and 2 more lines)",
        "ignored: f: nodes[1]: odd (expected even) (and 2 more places)",
        "assumed: f:9: a key",
    ]


def test_faults_of_one_cause_have_a_note_each_up_to_a_number():
    notes = NoteCollector()
    for line in range(MOST_FAULTS):
        assert notes.has_room("keys")
        notes.fault(f"key {line}", f"f:{line}", cause="keys")
    assert len(notes.notes()) == MOST_FAULTS
    assert not notes.has_room("keys")
    notes.fault("one more", "f:99", cause="keys")
    assert notes.notes()[-1].text == f"key {MOST_FAULTS - 1} (and 1 more line)"


def test_other_sentences_than_the_first_thousand_are_counted():
    notes = NoteCollector()
    for line in range(MOST_CAUSES + 2):
        notes.assumed(f"value {line}")
    assert notes.notes()[-1].text == "2 more faults and notes of this file"
    assert len(notes.notes()) == MOST_CAUSES + 1


def test_strict_raises_faults_as_they_are_and_limits_are_always_raised():
    with pytest.raises(ClusterError, match="f:1: odd"):
        NoteCollector(strict=True).error(ClusterError("odd", where="f:1"))
    with pytest.raises(FormatError, match="f:2: odd"):
        NoteCollector(strict=True).fault("odd", "f:2")
    with pytest.raises(LimitError):
        NoteCollector().error(LimitError("too many"))


def test_a_file_that_describes_nothing_is_refused_with_its_first_fault():
    notes = NoteCollector()
    with pytest.raises(FormatError, match="nothing here"):
        notes.refuse("nothing here", "f", "nodes")
    notes.attempt(int, "3", "f:1", "cpus")
    notes.fault("odd", "f:2")
    notes.fault("even", "f:3")
    with pytest.raises(FormatError, match="f:2: odd"):
        notes.refuse("nothing here", "f", "nodes")
