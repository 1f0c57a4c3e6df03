"""The value of ``scheduling`` under the writer TreePool (RFC 49)."""

import pytest

from simsched.errors import FormatError, LimitError
from simsched.formats.cluster.treepool import from_scheduling, to_scheduling

FULL = {
    "writer": "TreePool",
    "children": [
        {
            "ranks": "0-3",
            "topo": {
                "memory": 512,
                "storage": [{"path": "/local", "capacity": 2, "unit": "TB"}],
                "socket": [
                    {"cores": "0-3", "gpus": "0", "memory": 256},
                    {"cores": "4-7", "gpus": "1", "memory": 256},
                ],
            },
        },
        {"ranks": "4,6", "topo": {"cores": "0-63"}},
    ],
    "note": {"kept": True},
}


def test_it_comes_out_as_it_went_in():
    assert to_scheduling(from_scheduling(FULL)) == FULL


def test_domains_are_walked_depth_first():
    topo = from_scheduling(FULL).children[0].topo
    assert [str(domain.cores) for domain in topo.walk() if domain.cores] == ["0-3", "4-7"]
    assert topo.memory == 512
    assert topo.storage[0].path == "/local"


def scheduling(topo, ranks="0"):
    return {"writer": "TreePool", "children": [{"ranks": ranks, "topo": topo}]}


@pytest.mark.parametrize(
    ("value", "fault"),
    [
        ({"writer": "TreePool"}, "children: found nothing .expected a list"),
        ({"children": [3]}, r"children\[0\]: found 3 .expected an object"),
        ({"children": [{"topo": {}}]}, r"children\[0\].ranks: found nothing .expected a string"),
        (scheduling({}, ranks=""), r"ranks: there are no ranks"),
        (scheduling({}, ranks="3-1"), r"children\[0\].ranks"),
        (scheduling([]), r"children\[0\].topo: found an empty list"),
        (scheduling({"cores": "x"}), r"topo.cores"),
        (scheduling({"cores": 4}), r"topo.cores: found 4 .expected a string"),
        (scheduling({"memory": -1}), r"topo.memory: found -1"),
        (scheduling({"memory": True}), r"topo.memory: found True"),
        (scheduling({"socket": {}}), r"topo.socket: found an object .expected a list"),
        (scheduling({"socket": [{"numa": [4]}]}), r"topo.socket\[0\].numa\[0\]: found 4"),
        (scheduling({"storage": [{"capacity": 1, "size": 2}]}), r"storage\[0\]: unknown key 'size'"),
        (scheduling({"storage": [{"path": "/a"}]}), r"storage\[0\].capacity: found None"),
    ],
)
def test_faults_name_their_path(value, fault):
    with pytest.raises(FormatError, match=fault):
        from_scheduling(value)


def test_ranks_that_are_described_twice_are_refused():
    children = [{"ranks": "0-3", "topo": {}}, {"ranks": "2-5", "topo": {}}]
    with pytest.raises(FormatError, match=r"S.children\[1\].ranks: ranks 2-3 are described twice"):
        from_scheduling({"children": children}, where="S")


def test_deep_nesting_is_refused():
    topo = {}
    for _ in range(50):
        topo = {"numa": [topo]}
    with pytest.raises(LimitError, match="nested too deeply"):
        from_scheduling(scheduling(topo))
