"""The tables of the manual name every transform, policy, order and column that exists, and no other."""

from __future__ import annotations

import ast
import pkgutil
import re
import shlex

import pytest

import simsched as ss
from simsched.cli import main
from simsched.match.policies.policy import POLICIES as MATCH_POLICIES
from simsched.schedule.orders.fair_share import FairShare
from simsched.schedule.orders.multifactor import Multifactor
from simsched.schedule.orders.order import ORDERS
from simsched.schedule.policies.registry import POLICIES as QUEUE_POLICIES
from simsched.workload.transforms.steps import STEPS
from tests import REPOSITORY


def page(name):
    return (REPOSITORY / "docs" / f"{name}.md").read_text(encoding="utf-8")


def section(name, title):
    return page(name).partition(f"\n## {title}\n")[2].partition("\n## ")[0]


def first_column(text):
    """The code spans of the first column of the tables in a text; headings such as `--order` do not count."""
    cells = re.findall(r"^\| (`.*?) \|", text, re.MULTILINE)
    return [word for cell in cells for word in re.findall(r"`(.+?)`", cell) if not word.startswith("--")]


@pytest.mark.parametrize("options", re.findall(r"^    (--map .*)", page("workloads"), re.MULTILINE))
def test_maps(options, capsys):
    assert main(["workload", "show", "slurm-day", "--limit", "50", *shlex.split(options, comments=True)]) == 0


def test_transforms():
    steps = {step.partition("(")[0] for step in first_column(section("workloads", "Transforms"))}
    assert steps == set(STEPS)


def test_reasons_of_ignored_records():
    reasons = first_column(section("workloads", "File formats").partition("### Ignored records")[2])
    sources = [path.read_text(encoding="utf-8") for path in (REPOSITORY / "simsched/workload").rglob("*.py")]
    assert len(reasons) > 10
    assert [reason for reason in reasons if reason.partition("{")[0] not in "".join(sources)] == []


def test_queue_policies_and_job_orders():
    assert set(first_column(section("queue_policies", "Queue policies"))) == set(QUEUE_POLICIES)
    assert set(first_column(section("queue_policies", "Job orders"))) == {
        *ORDERS,
        FairShare.name,
        Multifactor.name,
    }


def test_match_policies():
    listed = first_column(section("matching", "Match policies").partition("On 4 nodes")[0])
    assert set(listed) == set(MATCH_POLICIES)


def test_columns_of_jobs():
    table = section("reports", "Columns").partition("### `run.timeline`")[0].partition("|---|")[2]
    columns = re.findall(r"^\| ([a-z_, ]+) \|", table, re.MULTILINE)
    run = ss.simulate("tiny", "first-steps")
    assert [name for cell in columns for name in cell.split(", ")] == list(run.jobs.columns)


def test_metrics():
    names = [
        name if "." in name else f"metrics.{name}" for name in first_column(section("reports", "Metrics"))
    ]
    assert len(names) > 20
    assert [name for name in names if not exists(f"simsched.report.metrics.{name}")] == []


PAGES = sorted((REPOSITORY / "docs").glob("*.md"))
DOTTED = re.compile(r"\bsimsched(?:\.[A-Za-z_]\w*)+")
NOT_MODULES = re.compile(
    r"simsched\.(queue_policies|job_orders|match_policies|metrics|predictors|priority_factors|workload_readers"
    r"|cluster_readers|report_sections)\b|simsched\.egg"
)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_dotted_names(page):
    """Names such as ``simsched.graph.edit`` are modules, or attributes of modules."""
    names = set(DOTTED.findall(page.read_text(encoding="utf-8")))
    assert [name for name in sorted(names) if not NOT_MODULES.match(name) and not exists(name)] == []


ANALYSIS = sorted((REPOSITORY / "analysis").rglob("*.py"))


@pytest.mark.parametrize("file", ANALYSIS, ids=lambda file: file.stem)
def test_studies_and_benchmarks_import_names_that_exist(file):
    imports = [
        f"{found.module}.{name.name}"
        for found in ast.walk(ast.parse(file.read_text(encoding="utf-8")))
        if isinstance(found, ast.ImportFrom) and (found.module or "").partition(".")[0] == "simsched"
        for name in found.names
    ]
    assert [name for name in imports if not exists(name)] == []


def exists(name):
    try:
        pkgutil.resolve_name(name)
    except (ImportError, AttributeError):
        return False
    return True


def test_codes_of_reasons_and_findings():
    from simsched.check.rules import RULES
    from simsched.match.explain.reason_codes import REASON_CODES

    for title, codes in (("Codes of reasons", REASON_CODES), ("Codes of findings", RULES)):
        assert sorted(first_column(section("checks", title))) == sorted(codes)
    text = page("checks")
    for code, meaning in REASON_CODES.items():
        assert f"| `{code}` | {meaning} |" in text
    for code, rule in RULES.items():
        assert f"| `{code}` | {rule.severity} | {rule.meaning} |" in text


@pytest.mark.parametrize("name", sorted(name for name in ss.__all__ if name != "__version__"))
def test_every_public_name_is_on_the_page_of_the_api(name):
    """Listed, and used in an example that the tests run; errors are listed with their module."""
    text = page("api")
    if name.endswith("Error"):
        assert "automodule:: simsched.errors" in text
        return
    assert re.search(rf"auto(class|function):: simsched\.([\w.]+\.)?{name}$", text, re.MULTILINE)
    examples = "".join(re.findall(r"^```pycon\n(.*?)^```$", text, re.DOTALL | re.MULTILINE))
    assert re.search(rf"\bss\.{name}\b", examples)
