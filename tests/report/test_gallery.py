"""The gallery of published tables: its pages, and what they do without traces."""

from __future__ import annotations

import re

import pytest

import simsched as ss
from analysis.gallery import carastan2017, lelong2017, logs, tsafrir2007
from analysis.gallery.__main__ import PAGES, main
from tests import REPOSITORY

FOLDER = REPOSITORY / "analysis" / "gallery"


@pytest.mark.slow
@pytest.mark.parametrize("name", PAGES)
def test_a_quick_run_writes_the_page(name, tmp_path, monkeypatch):
    pytest.importorskip("matplotlib")
    monkeypatch.delenv(logs.TRACES, raising=False)
    main([name, "--quick", "-o", str(tmp_path)])
    page = (tmp_path / f"{name}.md").read_text()
    for part in ("**A quick run**", "## Question", "## Setting", "## Why the numbers differ", "## Sources"):
        assert part in page
    assert "| :-- | --:" in page
    assert logs.NOT_FOUND in page
    assert not re.search(r"\bnan\b|\binf\b", page)
    figures = re.findall(r"\]\((figures/[^)]+)\)", page)
    assert figures
    for figure in figures:
        assert (tmp_path / figure).read_bytes().startswith(b"\x89PNG")


@pytest.mark.parametrize("name", PAGES)
def test_the_page_that_is_kept_is_of_a_full_run(name):
    page = (FOLDER / f"{name}.md").read_text()
    assert "**A quick run**" not in page
    assert re.search(rf"Made by `python -m analysis\.gallery {name}` .* min of processor time", page)
    assert len(re.findall(r"^\| :--", page, re.MULTILINE)) >= 2
    assert not re.search(r"\bnan\b|\binf\b", page)
    for figure in re.findall(r"\]\((figures/[^)]+)\)", page):
        assert (FOLDER / figure).is_file()
    assert f"({name}.md)" in (FOLDER / "README.md").read_text()


@pytest.mark.parametrize("file", sorted(FOLDER.glob("*.py")), ids=lambda file: file.stem)
def test_a_page_uses_the_public_interface_only(file):
    public = {"simsched", "simsched.cli", "simsched.workload.transforms.steps"}
    own = "simsched.schedule.orders."  # what an order of one's own needs
    public |= {f"{own}order", f"{own}ranking"}
    for module in re.findall(r"^\s*(?:from|import) (simsched[\w.]*)", file.read_text(), re.MULTILINE):
        assert module in public or module.startswith("simsched.report"), module


def test_without_traces_the_command_says_so(tmp_path, monkeypatch, capsys):
    monkeypatch.setenv(logs.TRACES, str(tmp_path))
    with pytest.raises(SystemExit) as stop:
        main(["tsafrir2007"])
    assert stop.value.code == 2
    said = capsys.readouterr().err
    assert f"there are no traces: {logs.TRACES} is {tmp_path}" in said
    assert "KTH-SP2-1996-2.1-cln.swf.gz" in said


def test_an_unknown_page(capsys):
    with pytest.raises(SystemExit) as stop:
        main(["tsafrir"])
    assert stop.value.code == 2
    assert "'tsafrir' is not a page (expected mualem2001, tsafrir2007" in capsys.readouterr().err


def test_logs_that_are_left_out_are_named(tmp_path, monkeypatch):
    monkeypatch.setenv(logs.TRACES, str(tmp_path))
    (tmp_path / logs.LOGS["HPC2N"].file).write_bytes(b"")
    assert logs.missing("CTC-SP2", "KTH-SP2", "HPC2N") == (
        "Left out, because the gallery has no such log: CTC-SP2."
        " Left out, because the folder that SIMSCHED_TRACES names has no such file: KTH-SP2."
    )
    assert logs.missing("HPC2N") == ""
    setting = logs.Setting(quick=False, output=tmp_path)
    assert [log.name for log in setting.logs("KTH-SP2", "HPC2N")] == ["HPC2N"]


def job(number, submit, runtime=10, duration=20):
    spec = ss.Jobspec.from_shape("slot=1/core", duration=duration)
    return ss.Job(id=number, submit=submit, runtime=runtime, duration=duration, jobspec=spec)


DAY = 86400


def test_a_sequence_begins_with_its_first_job():
    submits = [5, 5 + 15 * DAY, 6 + 15 * DAY, 40 * DAY, 100 * DAY]
    workload = ss.Workload(tuple(job(at, submit) for at, submit in enumerate(submits)))
    found = carastan2017.sequences(workload, slice(None))
    assert [[(j.id, j.submit) for j in part.jobs] for part in found] == [
        [(0, 0), (1, 15 * DAY)],
        [(2, 0)],
        [(3, 0)],  # the last sequence, that of job 4, is not complete
    ]
    assert [part.jobs[0].id for part in carastan2017.sequences(workload, slice(0, 9, 2))] == [0, 3]


def test_a_window_sorts_the_jobs_that_came_first(monkeypatch):
    """All processors are busy until 100; five jobs wait, and the window has three."""
    monkeypatch.setattr(carastan2017, "WINDOW", 3)
    wide = ss.Jobspec.from_shape("slot=16/core")  # all of tiny
    durations = [100, 40, 30, 20, 10, 5]
    jobs = [ss.Job(id=n, submit=n, jobspec=wide, duration=d, runtime=d) for n, d in enumerate(durations)]
    run = ss.simulate("tiny", ss.Workload(tuple(jobs)), "fcfs", order=carastan2017.windowed("sjf"))
    assert run.jobs.sort_values("start")["id"].tolist() == list("034521")
    whole = ss.simulate("tiny", ss.Workload(tuple(jobs)), "fcfs", order="sjf")
    assert whole.jobs.sort_values("start")["id"].tolist() == list("054321")


def test_halves_have_all_jobs_and_begin_at_0():
    workload = ss.Workload(tuple(job(at, submit) for at, submit in enumerate([100, 150, 200, 301])))
    first, second = lelong2017.halves(workload)
    assert [(j.id, j.submit) for j in first.jobs] == [(0, 0), (1, 50)]
    assert [(j.id, j.submit) for j in second.jobs] == [(2, 0), (3, 101)]


def test_jobs_are_cut_at_their_limits_and_others_left_out(monkeypatch, tmp_path):
    jobs = (job(1, 0, 30, 20), job(2, 1, 5, 20), job(3, 2, 0, 20), job(4, 3, 5, None))
    monkeypatch.setattr(logs.ss, "load_workload", lambda *_, **__: ss.Workload(jobs))
    found = logs.Setting(quick=True, output=tmp_path).workload(logs.SMALL)
    assert [(j.id, j.runtime) for j in found.jobs] == [(1, 20), (2, 5)]


def test_published_numbers_are_of_cases_that_are_run():
    for cases in tsafrir2007.PUBLISHED.values():
        assert set(cases) <= set(tsafrir2007.CASES)
    assert set(carastan2017.CTC) <= set(carastan2017.ORDERS)
