"""``simsched schema``: the JSON Schema of each document that simsched reads or prints."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Annotated, Any

from simsched.cli.support.output import print_lines, write
from simsched.cli.support.verbs import add_verb
from simsched.declare.flags import Flags, flag
from simsched.errors import ConfigError, did_you_mean

if TYPE_CHECKING:
    from simsched.cli.support.parser import Arguments, Subparsers


ANSWERS = {
    "calibration": "study.search.calibration:CalibrationAnswer",
    "check-findings": "check.rules:CheckResult",
    "cluster-differences": "graph.inspect.diff:Differences",
    "cluster-summary": "graph.inspect.view:Summary",
    "feasible-answers": "cli.options.request_answers:FeasibleAnswers",
    "fit-check": "workload.models.log_fit:FitAnswer",
    "flurries": "workload.transforms.flurries:FlurriesAnswer",
    "forecast": "simulation.forecast.start_times:Forecasts",
    "forecast-errors": "simulation.forecast.horizon_errors:HorizonErrors",
    "match-answers": "cli.options.request_answers:MatchAnswers",
    "policies": "cli.policies:Policies",
    "r": "formats.cluster.rset:WrittenR",
    "report": "report.export:ReportAnswer",
    "report-audit": "simulation.audit.audit_report:RunAudits",
    "report-promises": "report.promise_report:PromisesAnswer",
    "report-seeds": "study.search.seed_comparison:SeedsAnswer",
    "report-table": "report.export:TableRows",
    "run-allocation": "simulation.record.run_document:Allocation",
    "run-event": "simulation.record.run_document:JobEvent",
    "run-record": "simulation.record.run_document:RunDocument",
    "run-summary": "simulation.record.run_document:Summary",
    "site-facts": "site.site_tables:ShownSite",
    "site-record": "site.site_folder:SiteRecord",
    "size": "study.search.answer:SizeAnswer",
    "study-failures": "study.sweep:Failures",
    "study-record": "study.sweep:StudyRecord",
    "study-row": "study.runs.single_run:RunRow",
    "study-task": "study.spec.run_task:TaskIdentity",
    "validate-reports": "cli.validate:FileReports",
    "why-jobs": "report.waiting.job_answer:JobAnswers",
    "why-run": "report.waiting.wait_totals:WaitedHours",
    "workload-summary": "workload.describe:WorkloadSummary",
}
"""Name of the schema of an answer → the module and the type from which the answer is written."""


SCHEMAS = ("rfc14", "v1")
"""The names of the JSON Schemas of jobspecs, which are files of the package; the others are declared."""


class SchemaFlags(Flags, frozen=True):
    """Print the JSON Schema of a document.

    Print the JSON Schema of a document: a configuration (config), one of its tables, requests, cluster
    recipes, studies, column maps, and answers in JSON.

    name : name of the document (default: list them).
    """

    name: Annotated[str | None, flag("NAME", positional=True, nargs="?")] = None


def register(subparsers: Subparsers) -> None:
    """Add the verb ``schema``."""
    add_verb(subparsers, "schema", schema, SchemaFlags)


def schema(args: Arguments) -> int:
    """Print a schema, or the names of all."""
    declared = _declared()
    known = [*SCHEMAS, *declared, *ANSWERS]
    if args.name is None:
        print_lines(known)
    elif args.name in ANSWERS:
        from importlib import import_module

        from simsched.declare.answers import answer_schema

        module, _, name = ANSWERS[args.name].partition(":")
        kind = getattr(import_module(f"simsched.{module}"), name)
        write(_text(args.name, answer_schema(kind)), "json")
    elif args.name in declared:
        write(_text(args.name, declared[args.name]), "json")
    elif args.name in SCHEMAS:
        write(schema_text(args.name), "json")
    else:
        text = f"there is no schema {args.name!r}{did_you_mean(args.name, known)}"
        raise ConfigError(text, where="NAME", expected=", ".join(known))
    return 0


def schema_text(name: str) -> str:
    """Return the text of a JSON Schema of jobspecs, one of `SCHEMAS`."""
    from importlib.resources import files

    return (files("simsched.formats") / "schemas" / f"{name}.json").read_text(encoding="utf-8")


def _text(name: str, schema: dict[str, Any]) -> str:
    draft = {"$schema": "https://json-schema.org/draft/2020-12/schema", "title": name}
    return json.dumps({**draft, **schema}, indent=2, ensure_ascii=False) + "\n"


def _declared() -> dict[str, dict[str, Any]]:
    """Return name → schema: the whole configuration, each of its tables, and documents beside it."""
    from simsched.declare.table import is_declared
    from simsched.formats.cluster.recipe import RecipeTable
    from simsched.schedule.policies.registry import POLICIES, AnyPolicy
    from simsched.simulation.options.run_config import POLICY_OPTIONS, RunConfig
    from simsched.simulation.queues import POLICY
    from simsched.study.spec.study_tables import StudyTable
    from simsched.workload.models.model_files import LogModel, Mix
    from simsched.workload.queue_snapshot import DetailsEntry, SnapshotTable
    from simsched.workload.readers.jobs import jobs_schema
    from simsched.workload.readers.tables.column_map import ColumnMap

    config = RunConfig.schema()
    text = {"type": "string"}  # options may be given as on the command line
    policies = {
        name: AnyPolicy.schema()["properties"] | maker.schema()["properties"]
        for name, maker in POLICIES.items()
        if is_declared(maker)
    }
    config["properties"][POLICY_OPTIONS]["properties"] = {
        name: {
            "type": "object",
            "properties": {key: {"anyOf": [one, text]} for key, one in options.items()},
        }
        for name, options in policies.items()
    }
    tables = {key: one for key, one in config["properties"].items() if '"properties"' in json.dumps(one)}
    config["properties"] |= {"policy": POLICY.schema, "calibration": {"type": "object"}}
    tables |= {"cluster-recipe": RecipeTable.schema(), "jobs": jobs_schema(), "study": StudyTable.schema()}
    tables |= {"queue-details": DetailsEntry.schema(), "queue-snapshot": SnapshotTable.schema()}
    tables |= {"mix": Mix.schema(), "log-model": LogModel.schema()}
    return {"config": config, "column-map": ColumnMap.schema(), **tables}
