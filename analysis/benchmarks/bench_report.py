"""How long reports take: load_run of a million jobs, pictures and the HTML page of a whole trace.

    python -m analysis.benchmarks.bench_report

CPU seconds of this process, the least of the repetitions.  The page is made of HPC2N (202,871
jobs, all allocations) if the trace is there; where there are Chromium and selenium it is also
opened and zoomed without a head (wall seconds).
"""

from __future__ import annotations

import json
import os
import shutil
import tempfile
import time
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

import duckdb

import simsched as ss
from analysis.benchmarks.measures import print_table

if TYPE_CHECKING:
    from collections.abc import Iterator

TRACES = Path(os.environ.get("SIMSCHED_TRACES") or Path(__file__).parents[3] / "shared" / "traces")
HPC2N = TRACES / "HPC2N-2002-2.2-cln.swf.gz"


def least(function, repeat: int = 3) -> float:
    """The least CPU seconds of some calls."""
    seconds = []
    for _ in range(repeat):
        started = time.process_time()
        function()
        seconds.append(time.process_time() - started)
    return min(seconds)


def million(folder: Path) -> Path:
    """A run directory of a million jobs with every column filled."""
    folder.mkdir()
    jobs = """select i::varchar as id, 'job' || (i % 1000) as name, 'u' || (i % 300) as "user",
        'b' || (i % 20) as bank, 'q' || (i % 4) as queue, 16 as urgency, i::double as submit,
        i::double as eligible, i + 60.0 as start, i + 360.0 as "end", 600.0 as duration,
        300.0 as runtime, (i % 4)::int as nodes, (i % 64)::bigint as cores, 0::bigint as gpus,
        (i % 64)::bigint as slots, (i % 64)::bigint as procs, 'COMPLETED' as result,
        null::varchar as reason, i % 3 = 0 as backfilled, 'slot=' || (i % 64) || '/core' as shape
        from range(1000000) t(i)"""
    duckdb.sql(jobs).write_parquet(str(folder / "jobs.parquet"))
    line = """select i::double as time, (i % 64)::bigint as used_core, 0::bigint as queued_jobs
        from range(2000000) t(i)"""
    duckdb.sql(line).write_parquet(str(folder / "timeline.parquet"))
    meta = {"simsched": ss.__version__, "format": 1, "complete": True,
            "cluster": {"name": "made", "totals": {"core": 64}}}  # fmt: skip
    (folder / "run.json").write_text(json.dumps(meta))
    return folder


def tables(folder: Path) -> Iterator[tuple[str, str, str]]:
    """Loading and summing up a million jobs."""
    from simsched.report.metrics.summary import summarise

    run = ss.load_run(folder)
    summed = least(lambda: summarise(run.jobs, run.timeline, run.totals))
    loaded = least(lambda: ss.load_run(folder).jobs)
    yield "`load_run` of 1,000,000 jobs", f"{loaded:.2f} s; all figures of them {summed:.2f} s", "2 s"


def pages(folder: Path) -> Iterator[tuple[str, str, str]]:
    """The page and the pictures of a whole trace."""
    from simsched.report.figures import figures
    from simsched.report.html import page

    cluster, workload = ss.load_cluster("flat240"), ss.load_workload(str(HPC2N))
    path = ss.simulate(cluster, workload).save(folder / "hpc2n")
    file = folder / "report.html"
    seconds = least(lambda: file.write_text(page.page([ss.load_run(path)])), 2)
    size = file.stat().st_size / 1e6
    yield "HTML report of HPC2N, 202,871 jobs", f"{seconds:.1f} s, {size:.1f} MB", "30 s, 20 MB"
    run = ss.load_run(path)
    drawn = least(lambda: figures.save("gantt", [run], folder / "g.png"), 1)
    yield "its Gantt chart as PNG", f"{drawn:.1f} s", ""
    if has_chromium():
        _, opened, zoomed = in_chromium(file)
        yield (
            "it opened in headless Chromium; a zoom, wall time",
            f"{opened:.1f} s; {zoomed:.2f} s",
            "4 s; 1 s",
        )


#: eight ways to run HPC2N; no two give the same schedule
EIGHT: tuple[tuple[str, dict[str, object]], ...] = (
    ("fcfs", {}),
    ("easy", {}),
    ("easy", {"order": "sjf"}),
    ("fcfs", {"order": "sjf"}),
    ("easy", {"queue_options": {"extra": False}}),
    ("easy", {"queue_options": {"reservation": "none"}}),
    ("easy", {"queue_options": {"queue_depth": 8}}),
    ("easy", {"overrun": "allow"}),
)


def eight(folder: Path) -> Iterator[tuple[str, str, str]]:
    """The page that compares eight runs of a whole trace."""
    from simsched.report.html import page

    cluster, workload = ss.load_cluster("flat240"), ss.load_workload(str(HPC2N))
    paths = [
        ss.simulate(cluster, workload, policy, allocations=False, **options).save(folder / f"run{number}")
        for number, (policy, options) in enumerate(EIGHT)
    ]
    file = folder / "eight.html"
    seconds = least(lambda: file.write_text(page.page([ss.load_run(path) for path in paths])), 1)
    size = file.stat().st_size / 1e6
    yield "HTML comparison of eight runs of HPC2N", f"{seconds:.1f} s, {size:.1f} MB", ""
    if has_chromium():
        shown, opened, _ = in_chromium(file)
        yield "what is in view of it drawn; all of it, wall time", f"{shown:.1f} s; {opened:.1f} s", "8 s"


def has_chromium() -> bool:
    """Whether a page can be opened here."""
    return bool(shutil.which("chromium") and shutil.which("chromedriver") and find_spec("selenium"))


def in_chromium(file: Path) -> tuple[float, float, float]:
    """Seconds until what is in view is drawn, until all is, and until a Gantt chart is drawn after a zoom."""
    from selenium.webdriver import Chrome
    from selenium.webdriver.chrome.options import Options
    from selenium.webdriver.chrome.service import Service

    options = Options()
    options.binary_location = shutil.which("chromium") or ""
    for argument in ("--headless=new", "--no-sandbox", "--disable-gpu"):
        options.add_argument(argument)
    driver = Chrome(options=options, service=Service(shutil.which("chromedriver")))
    try:
        started = time.monotonic()
        driver.get(file.as_uri())
        while not driver.execute_script("return window.simsched && window.simsched.done"):
            time.sleep(0.1)  # asking takes time of the page
        opened = time.monotonic() - started
        shown = driver.execute_script("return window.simsched.shown") / 1000
        zoom = """const done = arguments[0], began = performance.now();
          document.querySelector('[data-move=in]').click();
          const after = () => done((performance.now() - began) / 1000);
          requestAnimationFrame(() => requestAnimationFrame(after));"""
        return shown, opened, min(driver.execute_async_script(zoom) for _ in range(3))
    finally:
        driver.quit()


def rows() -> Iterator[tuple[str, str, str]]:
    """Yield the lines of ``make bench``: what, measured, limit."""
    folder = Path(tempfile.mkdtemp(prefix="simsched-bench-"))
    try:
        yield from tables(million(folder / "million"))
        if HPC2N.is_file():
            yield from pages(folder)
            yield from eight(folder)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    print_table(rows())
