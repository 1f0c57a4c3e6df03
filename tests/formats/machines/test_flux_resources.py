"""The tables of flux resource list and status, and the JSON behind them."""

from functools import partial

import pytest

from simsched.errors import FormatError
from simsched.formats.machines import recognition
from simsched.formats.machines.read import read_as, understood
from tests.formats.machines.described import described

read_flux_list = partial(described, recognition.FLUX_LIST)
read_flux_status = partial(described, recognition.FLUX_STATUS)
read_r = partial(described, recognition.R)

LIST = """\
     STATE QUEUE      PROPERTIES NNODES   NCORES    NGPUS NODELIST
      free batch                      3       24        0 pine[1-3]
      free debug      ssd,new         2       32        4 pine[5-6]
 allocated                            0        0        0
 allocated batch                      1        8        0 pine8
      down batch                      1        8        0 pine4
"""


def states(description):
    return [
        (host, "down" if host in group.down else "drained" if host in group.drained else "up")
        for group in description.recipe.groups
        for host in group.hosts
    ]


def test_the_list_gives_units_per_node_properties_and_states():
    found = read_flux_list(LIST, "list")
    rows = [(g.hosts, g.cores, g.gpus, g.properties) for g in found.recipe.groups]
    assert rows == [
        (("pine1", "pine2", "pine3"), 8, 0, ("batch",)),
        (("pine5", "pine6"), 16, 2, ("debug", "ssd", "new")),
        (("pine8", "pine4"), 8, 0, ("batch",)),
    ]
    assert dict(states(found))["pine4"] == "down"


def test_a_list_without_queues_and_gpus_and_in_colour():
    text = "     STATE NNODES   NCORES NODELIST\n\x1b[31m      free\x1b[0m      2        8 a[0-1]\n"
    (group,) = read_flux_list(text, "list").recipe.groups
    assert (group.hosts, group.cores, group.gpus) == (("a0", "a1"), 4, 0)


def test_cores_that_do_not_divide_and_nodes_twice_are_said():
    text = "STATE NNODES NCORES NODELIST\n free      2      9 a[0-1]\n free      1      2 a1\n"
    found = read_flux_list(text, "list")
    assert [(note.kind, note.where) for note in found.notes] == [
        ("assumed", "list:2"), ("fault", "list:3"), ("assumed", "list"),
    ]  # fmt: skip
    with pytest.raises(FormatError, match="list:3: the node a1 occurs twice"):
        read_flux_list(text, "list", strict=True)


@pytest.mark.parametrize(
    ("line", "message"),
    [
        (" broken      1      2 a1", "unknown state 'broken'"),
        ("             1      2 a1", "unknown state ''"),
        ("   free      1      x a1", "'x' is not a value of NCORES"),
        ("   free      1      2 a[2-1]", "descends"),
        ("   free      1 2000000 a1", "2,000,000 cores in each node"),
    ],
)
def test_lines_that_are_not_understood(line, message):
    text = f"  STATE NNODES NCORES NODELIST\n{line}\n   free      1      2 b1\n"
    (fault,) = [note for note in read_flux_list(text, "list").notes if note.kind == "fault"]
    assert (fault.where, message in fault.text) == ("list:2", True)


def test_a_list_of_nobody_is_refused():
    for text in ("", "STATE NNODES NCORES NODELIST\n free 0 0\n"):
        with pytest.raises(FormatError, match="lists no nodes"):
            read_flux_list(text, "list")
    with pytest.raises(FormatError, match="has no NODELIST"):
        read_flux_list("STATE NNODES NCORES\n", "list")


STATUS = """\
      STATE UP NNODES REASON                         NODELIST
      avail  ✔      2                                a[0-1]
     avail*  ✗      1                                a2
    exclude  ✔      1                                a3
    drained  ✔      1 a bad disk in the last node    a4
   drained*  ✗      1 amdapu                         a5
"""


def test_the_status_gives_states_whatever_the_reasons_say():
    assert states(read_flux_status(STATUS, "status")) == [
        ("a0", "up"), ("a1", "up"), ("a2", "down"), ("a4", "drained"), ("a5", "drained"),
    ]  # fmt: skip


def test_a_node_that_one_file_excludes_is_left_out_of_all():
    machine = read_as(recognition.R, r_of("0-5", "a[0-5]"), "R")
    document = {"R": r_of("0-5", "a[0-5]"), "drain": {"4-5": {}}, "offline": "2", "exclude": "3"}
    expected = [("a0", "up"), ("a1", "up"), ("a2", "down"), ("a4", "drained"), ("a5", "drained")]
    for content in (STATUS, document):
        status = read_as(recognition.FLUX_STATUS, content, "status")
        assert understood([status]).excluded == ("a3",)
        for files in ([machine, status], [status, machine]):
            assert states(understood(files)) == expected


def r_of(ranks, hosts):
    lite = [{"rank": ranks, "children": {"core": "0-3"}}]
    return {"version": 1, "execution": {"R_lite": lite, "nodelist": [hosts]}}


def test_the_scheduler_and_the_resource_service_in_json():
    found = read_flux_list({"all": r_of("0-3", "a[0-3]"), "down": r_of("2", "a2")}, "j")
    assert [state for _, state in states(found)] == ["up", "up", "down", "up"]
    document = {"R": r_of("0-3", "a[0-3]"), "drain": {"1": {}}, "offline": "2", "exclude": "3"}
    found = read_flux_status(document, "j")
    assert states(found) == [("a0", "up"), ("a1", "drained"), ("a2", "down")]
    with pytest.raises(FormatError, match="j: offline"):
        read_flux_status({**document, "offline": "x"}, "j", strict=True)


def test_a_damaged_heading_is_a_fault_of_its_lines():
    with pytest.raises(FormatError, match="list:2: unknown state ''"):
        read_flux_list("  STATE\x1b NNODES NCORES NODELIST\n free 1 2 a1\n", "list", strict=True)
