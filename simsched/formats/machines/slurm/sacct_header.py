"""The columns of ``sacct``, and the header line of its dumps."""

from __future__ import annotations

import re
from collections import Counter
from itertools import pairwise

#: Value → the columns that may hold it, best first.
COLUMNS = {
    "id": ("JobIDRaw", "JobID"), "submit": ("Submit",), "eligible": ("Eligible",), "start": ("Start",),
    "end": ("End",), "elapsed_raw": ("ElapsedRaw",), "elapsed": ("Elapsed",),
    "limit_raw": ("TimelimitRaw",), "limit": ("Timelimit",),
    "req_cpus": ("ReqCPUS",), "alloc_cpus": ("NCPUS", "AllocCPUS"), "req_nodes": ("ReqNodes",),
    "alloc_nodes": ("NNodes", "AllocNodes"), "req_tres": ("ReqTRES",), "alloc_tres": ("AllocTRES",),
    "req_mem": ("ReqMem",), "alloc_gres": ("AllocGRES",), "req_gres": ("ReqGRES",), "gpus": ("NGPUS",),
    "features": ("Constraints",), "partition": ("Partition",),
    "account": ("Account",), "user": ("User",), "group": ("Group",), "name": ("JobName",),
    "state": ("State",), "energy": ("ConsumedEnergyRaw", "ConsumedEnergy"), "nodelist": ("NodeList",),
    "qos": ("QOS",), "licenses": ("Licenses",), "reservation": ("Reservation",), "job": ("JobID",),
    "line": ("SubmitLine",),
}  # fmt: skip
_KNOWN = frozenset(("jobname", "exitcode", *(name.lower() for names in COLUMNS.values() for name in names)))
_NAME = re.compile(r"[A-Za-z]\w*")


def delimiter_of(head: str) -> str | None:
    r"""Return the delimiter of a header line; None for any other line.

    >>> delimiter_of("JobID|Submit|State"), delimiter_of('"JobIDRaw","Submit"'), delimiter_of("4|ann|x")
    ('|', ',', None)
    """
    bare = head.replace('"', "").strip()
    names = list(_NAME.finditer(bare))
    lower = {found.group().lower() for found in names}
    if lower.isdisjoint(("jobid", "jobidraw")) or len(lower & _KNOWN) < 2:
        return None
    gaps = Counter(bare[a.end() : b.start()] for a, b in pairwise(names))
    gap = gaps.most_common(1)[0][0]
    return gap if gap.strip(" ") or (gap and "state" in lower) else None  # squeue's table has ST
