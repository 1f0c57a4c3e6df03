"""The terminal page, whole; its width; several runs side by side."""

from __future__ import annotations

import numpy as np
import pytest

from simsched.report import export, text_report
from simsched.report.metrics.metrics import JobGroups
from simsched.report.run_views import load_run


def test_the_story_as_a_page(write_run, story):
    page = text_report.page(load_run(write_run("easy", story)))
    assert (
        page
        == """\
easy · easy · first
toy: 4 nodes, 16 cores
workload story.yaml
1 of 5 jobs need more than this machine has, and did not run.
─────────────────────────────────────────────────────────────

jobs             5: completed 2 · timeout 1 · infeasible 1 · dropped 1
makespan         2 min 20 s, 77.1 jobs/h
utilisation      node 82.1 % · core 82.1 %
goodput          75 %, lost to failed, cut and repeated work 7.14 %
loss of capacity 0 % idle while a queued job was no larger
backfilled       33.3 % of jobs; run time / requested 0.833
fairness         Jain index of users 0.65
simulated in     0.5 s, 10 jobs/s

nodes in use     ████████████████████████████████████████████▆▆▆▆▅▂▂▂▂▂▂▂▂▂▂▂▂▂ of 4
cores in use     ████████████████████████████████████████████▆▆▆▆▅▂▂▂▂▂▂▂▂▂▂▂▂▂ of 16
queued jobs      ▁▁▁▁▃▄▄▄▅███████████████████████████████████▂▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁ max 2

                        mean      median         p90         p95         p99         max
wait                  56.7 s  1 min 20 s  1 min 28 s  1 min 29 s  1 min 30 s  1 min 30 s
turnaround        1 min 47 s  1 min 40 s  1 min 56 s  1 min 58 s       2 min       2 min
bounded slowdown        4.67           3         8.6         9.3        9.86          10

by queue  jobs   mean wait  median wait    p95 wait  mean bsld  of core hours
batch        2        40 s         40 s  1 min 16 s          2         95.7 %
debug        1  1 min 30 s   1 min 30 s  1 min 30 s         10         4.35 %

by cores  jobs   mean wait  median wait    p95 wait  mean bsld  of core hours
3-4          1  1 min 20 s   1 min 20 s  1 min 20 s          3          8.7 %
5-8          1  1 min 30 s   1 min 30 s  1 min 30 s         10         4.35 %
9-16         1         0 s          0 s         0 s          1           87 %

why                             jobs  e.g. job
dropped: 0 processors              1         e
infeasible: needs 5 nodes of 4     1         d
"""
    )


def test_no_line_is_wider_than_the_page(write_run, make_schedule):
    long = "a-very-long-run-name-that-somebody-thought-was-a-good-idea-" * 3
    jobs = make_schedule(1).assign(queue="q" * 90, reason="because " * 40)
    run = load_run(write_run("x", jobs), name=long)
    assert max(map(len, text_report.page(run).splitlines())) <= 100


def test_a_comparison_has_a_column_a_run_and_a_paired_verdict(write_run, make_schedule):
    jobs = make_schedule(3)
    later = jobs.assign(start=jobs["start"] + 60, end=jobs["end"] + 60)
    page = text_report.comparison([load_run(write_run("easy", jobs)), load_run(write_run("fcfs", later))])
    head = page.splitlines()[0].split()
    assert head == ["easy", "fcfs"]
    assert "mean wait" in page
    assert "fcfs against easy, 60 jobs paired: waits more" in page
    assert "mean wait +1 min (95 % between +1 min and +1 min" in page
    assert "0 % of the jobs start sooner, 0 % at the same time, 100 % later" in page


def test_a_run_in_which_nothing_ran(write_run, make_jobs, make_timeline):
    jobs = make_jobs([{"id": "x", "result": "INFEASIBLE", "reason": "needs 9 nodes", "cores": 0}])
    empty = make_timeline(make_jobs([{"start": 0, "end": 1}]), {"core": 16}).head(0)
    run = load_run(write_run("never", jobs, empty))
    page = text_report.page(run)
    assert "infeasible: needs 9 nodes" in page
    assert "nan" not in page.lower()
    assert "mean wait" not in page
    assert not {"makespan", "fairness"} & set(page.split())
    assert text_report.comparison([run, run])
    assert export.as_markdown([run, run])
    assert export.as_json([run, run])


@pytest.mark.parametrize("width", [60, 80, 100])
def test_a_page_fits_the_terminal(write_run, make_schedule, width):
    jobs = make_schedule(1, count=300).assign(queue=[f"queue{i % 30}" for i in range(300)])
    jobs["reason"] = [f"because of {i % 20}" for i in range(300)]
    run = load_run(write_run("x", jobs))
    lines = text_report.page(run, width).splitlines()
    assert max(map(len, lines)) <= width
    assert any(line.endswith("smaller ones") for line in lines)
    assert len(lines) <= 60


def test_the_groups_that_are_shown_are_the_largest(monkeypatch):
    monkeypatch.setattr(text_report, "MAX_ROWS", 2)
    shares = np.array([0.1, 0.3, 0.05, 0.2])
    figures = {name: shares if name == "share" else np.ones(4) for name in text_report.GROUP_FIGURES}
    lines = text_report._groups("queue", JobGroups(list("abcd"), figures), 96).splitlines()
    assert [line.split()[0] for line in lines[1:]] == ["b", "d", "…"]


@pytest.mark.slow
def test_runs_that_do_not_fit_beside_one_another_are_below_one_another(write_run, story):
    runs = [load_run(write_run(f"run-number-{i}", story)) for i in range(9)]
    lines = text_report.comparison(runs, 80).splitlines()
    assert max(map(len, lines)) <= 80
    assert sum(line.startswith("mean wait") for line in lines) == 3  # four beside one another
    assert all(any(f"run-number-{i}" in line for line in lines[:70]) for i in range(9))
