"""The pages under axe, the checker of the WCAG rules: no findings, in both themes and on a phone."""

from __future__ import annotations

from pathlib import Path

import pytest

from simsched.cli import main
from simsched.report.html import page as html
from simsched.report.run_views import load_run
from simsched.study.study_page import write_page
from simsched.study.sweep import sweep
from tests.report.html.browser_page import IN_A_BROWSER
from tests.study.studyworld import small

axe = pytest.importorskip("axe_core_python", reason="axe-core-python is not installed")
pytestmark = IN_A_BROWSER
SCRIPT = (Path(axe.__file__).parent / "axe.min.js").read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def pages(tmp_path_factory, writer_in, make_schedule, make_records):
    """A page of one run, of two runs compared, and of a study."""
    folder = tmp_path_factory.mktemp("accessible")
    write_run = writer_in(folder)
    jobs = make_schedule(4, count=80)
    later = jobs.assign(start=jobs["start"] + 600, end=jobs["end"] + 600)
    runs = [load_run(write_run(n, j, records=make_records(j))) for n, j in (("easy", jobs), ("fcfs", later))]
    for name, shown in (("run", runs[:1]), ("comparison", runs)):
        (folder / f"{name}.html").write_text(html.page(shown))
    axes = {"queue-policy": ["fcfs", "easy", "conservative"], "load": [0.8, 1.2]}
    study = sweep(small(axes=axes, seeds=2), folder / "study", workers=0, report=False)
    assert write_page(study)
    (folder / "study" / "report.html").rename(folder / "study.html")
    made = ["cluster", "make", "--nodes", "16", "--cores", "4", "--racks", "4", "-o", f"{folder}/racks.json"]
    ran = ["run", f"{folder}/racks.json", "month", "-o", f"{folder}/racks", "--limit", "200", "--quiet"]
    assert main(made) == main([*ran, "--failures", "mtbf=2d,mttr=6h"]) == 0
    (folder / "room.html").write_text(html.page([load_run(folder / "racks")]))
    return folder


def findings(browser):
    browser.driver.execute_script(SCRIPT)
    result = browser.driver.execute_async_script(
        "const done = arguments[0]; axe.run().then(done, (error) => done({error: String(error)}));"
    )
    assert "error" not in result, result
    assert len(result["passes"]) > 10
    return [(one["id"], node["html"][:120]) for one in result["violations"] for node in one["nodes"]]


@pytest.mark.parametrize("width", [1280, 390])
@pytest.mark.parametrize("name", ["run", "comparison", "study", "room"])
def test_axe_finds_nothing(browser, pages, name, width):
    browser.open(pages / f"{name}.html")
    browser.resize(width, 900)
    if name == "room":  # with the wait of a job
        browser.js("const jobs = asked.get('r0-job'); jobs.show(jobs.charts.idOf(jobs.data.wait.findIndex("
                   "(ticks) => ticks > 0 && ticks !== NEVER)))")  # fmt: skip
    assert findings(browser) == []
    browser.click("#theme")
    browser.settle()
    assert findings(browser) == []
