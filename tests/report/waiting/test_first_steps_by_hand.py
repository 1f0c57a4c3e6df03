"""The reasons of the bundled workload `first-steps` on `tiny`, worked out by hand from the two input files.

`tiny` has 4 nodes of 4 cores; nodes 2 and 3 have 2 gpus each.  Times are seconds; jobs queue in the order of
their submission.  Job 1 (1 core) runs from 0 to 1800 with a limit of 3600.  Job 2 needs all four nodes.

Under FCFS nothing passes job 2.  It starts when job 1 ends, at 1800, and holds the machine until 7200.
At 7200 jobs 3 to 6 (2 cores each), 13 (4 cores, 2 gpus on node 3), 7 and 8 take all 16 cores.  The six
small jobs end at 8100; jobs 9, 10, 11, 15 (2 to 4 cores) and 12 take those 12 cores.  Jobs 9 to 12 end at
9000, and jobs 16 and 17 start.  Job 13 ends at 9600 and lets job 14 start.

Under EASY job 2 has a reservation at 3600, the limit of job 1.  Jobs of 20 minutes end before it and pass
until 2040, the end of the last of them; jobs of an hour would not, and do not.  Jobs 3 to 9 leave 1 core
from 480 on.  They end one a minute from 1020 on: jobs 10, 11, 12 and 16 take the cores of the first four,
those of jobs 7, 8 and 9 stay free (1260, 1320, 1380).  Job 13 needs all of node 3, from 420 to 1380 held by
jobs 8 and 9.  Job 2 runs from 2040 to 7440.
"""

from __future__ import annotations

import pytest

import simsched as ss
from simsched.report.run_views import load_run

AT_ONCE: list[tuple[float, float, str, str | None]] = []
CORE, GPU = "short of core", "short of gpu"
BY_HAND = {
    "fcfs": {
        "1": AT_ONCE,
        "2": [(60, 1800, "short of node", None)],
        **{
            str(job): [(60 * (job - 1), 1800, "order", "2"), (1800, 7200, CORE, None)]
            for job in (3, 4, 5, 6, 7, 8)
        },
        "13": [(300, 1800, "order", "2"), (1800, 7200, GPU, None)],
        "14": [(300, 9600, "dependency", "13")],
        **{
            str(job): [(60 * (job - 1), 1800, "order", "2"), (1800, 8100, CORE, None)]
            for job in (9, 10, 11, 12)
        },
        "15": [(600, 1800, "order", "2"), (1800, 8100, CORE, None)],
        "16": [(900, 1800, "order", "2"), (1800, 9000, CORE, None)],
        "17": [(1200, 1800, "order", "2"), (1800, 9000, CORE, None)],
    },
    "easy": {
        "1": AT_ONCE,
        "2": [(60, 2040, "short of node", None)],
        **{str(job): AT_ONCE for job in range(3, 10)},
        "10": [(540, 1020, CORE, None)],
        "11": [(600, 1080, CORE, None)],
        "12": [(660, 1140, CORE, None)],
        "13": [(300, 420, "reservation", "2"), (420, 1380, CORE, None), (1380, 2040, "reservation", "2"),
               (2040, 7440, GPU, None)],
        "14": [(300, 9840, "dependency", "13")],
        "15": [(600, 1260, CORE, None), (1260, 2040, "reservation", "2"), (2040, 7440, CORE, None)],
        "16": [(900, 1200, CORE, None)],
        "17": [(1200, 1320, CORE, None), (1320, 2040, "reservation", "2"), (2040, 7440, CORE, None)],
    },
}  # fmt: skip


@pytest.mark.parametrize("policy", BY_HAND)
def test_every_job_has_the_reasons_worked_out_by_hand(tmp_path, policy):
    ss.simulate("tiny", "first-steps", queue_policy=policy).save(tmp_path / "run")
    run = load_run(tmp_path / "run")
    inputs = run.inputs()
    found = {}
    for job in BY_HAND[policy]:
        answer = run.why(job, *inputs)
        found[job] = [(part.start, part.end, part.cause, part.job) for part in answer.periods]
    assert found == BY_HAND[policy]
