"""Start-up stays cheap because what is heavy is not imported; seconds would only measure the machine."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest

HEAVY = {
    "numpy",
    "pandas",
    "networkx",
    "simpy",
    "duckdb",
    "msgspec",
    "yaml",
    "jsonschema",
    "rich",
    "matplotlib",
    "bokeh",
    "distributed",
    "importlib.metadata",
    "xml.etree.ElementTree",
}


def imported_by(code: str) -> set[str]:
    """The names in sys.modules after `code` ran in a fresh interpreter."""
    script = f"import sys\n{code}\nsys.stderr.write('\\n'.join(sys.modules))"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return set(done.stderr.splitlines())


@pytest.mark.parametrize(
    "arguments",
    [["--help"], ["shape", "slot=10/[core=2;gpu]"], ["shape", "--help"], ["shape", "node=2-4{x}/core"]],
)
def test_light_verbs_import_nothing_heavy(arguments):
    modules = imported_by(f"from simsched.cli import main\nassert main({arguments!r}) == 0")
    assert modules & HEAVY <= ({"msgspec"} if arguments[0] == "shape" else set())  # for the flags of a verb


@pytest.mark.parametrize("verb", ["workload", "match", "feasible"])
def test_help_imports_no_answers(verb):
    modules = imported_by(f"from simsched.cli import main\nassert main([{verb!r}, '--help']) == 0")
    assert modules & HEAVY <= {"msgspec"}  # flags are declared structs
    assert "simsched.declare.answers" not in modules


def test_run_refuses_an_unknown_cluster_before_heavy_imports(tmp_path):
    arguments = ["run", "no-such-cluster", "month", "-o", str(tmp_path / "run")]
    code = f"""import contextlib, io
from simsched.cli import main
with contextlib.redirect_stderr(io.StringIO()) as told:
    assert main({arguments!r}) == 2
assert "no-such-cluster: no such file" in told.getvalue()"""
    assert imported_by(code) & HEAVY <= {"importlib.metadata", "msgspec"}  # options are declared structs


def test_a_run_of_counts_imports_only_what_it_uses(tmp_path):
    """A machine of R alone, an SWF log and EASY: the whole process is short enough for imports to count."""
    execution = {
        "R_lite": [{"rank": "0-3", "children": {"core": "0-1"}}],
        "nodelist": ["n[0-3]"],
        "starttime": 0,
        "expiration": 0,
    }
    machine, log = tmp_path / "r.json", tmp_path / "log.swf"
    machine.write_text(json.dumps({"version": 1, "execution": execution}))
    log.write_text("".join(f"{n} {n} -1 9 3 -1 -1 3 9 -1 1 1 1 -1 1 -1 -1 -1\n" for n in range(1, 5)))
    arguments = ["run", str(machine), str(log), "-o", str(tmp_path / "run"), "--quiet"]
    modules = imported_by(f"from simsched.cli import main\nassert main({arguments!r}) == 0")
    of_networkx = {"networkx", "xml.etree.ElementTree"}
    ours = {"numpy", "simpy", "duckdb", "msgspec", "importlib.metadata"}
    assert modules & HEAVY == ours | of_networkx
    needless = {"formats.machines.read", "graph.build.networkx_graph", "schedule.graph_supply"}
    needless |= {"match.explain.suggestions", "formats.cluster.treepool", "formats.machines.slurm.notation"}
    needless |= {"match.explain.explanation", "workload.readers.sacct", "workload.transforms.steps"}
    assert {f"simsched.{name}" for name in needless} & modules == set()


@pytest.mark.parametrize("verb", ["cluster show", "run"])
def test_a_recipe_is_judged_without_its_schema(verb, tmp_path):
    recipe = tmp_path / "recipe.yaml"
    recipe.write_text("groups: [{name: n, count: 4, cores: 4}]\n")
    more = ["first-steps", "-o", str(tmp_path / "run")] if verb == "run" else []
    arguments = [*verb.split(), str(recipe), *more]
    modules = imported_by(f"from simsched.cli import main\nassert main({arguments!r}) == 0")
    assert "jsonschema" not in modules


@pytest.mark.parametrize(("given", "expected"), [(None, "1"), ("3", "3")])
def test_a_verb_starts_no_threads_of_linear_algebra_unless_the_user_wants_some(given, expected):
    name = "OPENBLAS_NUM_THREADS"
    code = "import os, sys\nfrom simsched.cli import main\nmain()\nsys.stdout.flush()\n"
    code += f"sys.stderr.write(os.environ[{name!r}])"
    env = {key: value for key, value in os.environ.items() if key != name}
    env |= {} if given is None else {name: given}
    done = subprocess.run(
        [sys.executable, "-c", code, "shape", "core"], capture_output=True, text=True, check=True, env=env
    )
    assert done.stderr == expected


#: The modules that every verb needs.
SHARED = {"simsched.cli", "simsched.cli.support"} | {
    f"simsched.cli.support.{name}" for name in ("messages", "output", "parser", "signals")
}


def test_help_imports_no_verb():
    modules = imported_by("from simsched.cli import main\nassert main(['--help']) == 0")
    ours = {m for m in modules if m.startswith("simsched")}
    assert ours == {"simsched", "simsched.errors", "simsched.visible"} | SHARED


def test_shape_imports_its_own_verb_only():
    modules = imported_by("from simsched.cli import main\nassert main(['shape', 'core']) == 0")
    rooms = {m.split(".")[1] for m in modules if m.startswith("simsched.")}
    assert rooms == {"cli", "declare", "errors", "formats", "visible"}
    own = {"simsched.cli.convert", "simsched.cli.support.verbs"}
    assert {m for m in modules if m.startswith("simsched.cli.")} - SHARED == own


@pytest.mark.parametrize("name", ["first-steps", "slurm-day"])
def test_a_workload_that_is_not_a_table_needs_no_table_reader(name):
    modules = imported_by(f"from simsched.workload.load import load_workload\nload_workload({name!r})")
    assert {"duckdb", "simsched.workload.readers.tables.column_map"}.isdisjoint(modules)


def test_importing_the_package_imports_nothing():
    modules = imported_by("import simsched")
    assert modules & HEAVY == set()
    assert {m for m in modules if m.startswith("simsched")} == {"simsched"}


def test_every_public_name_of_the_facade_exists():
    import simsched

    for name in simsched.__all__:
        assert getattr(simsched, name) is not None
    assert set(simsched.__all__) <= set(dir(simsched))
    with pytest.raises(AttributeError, match="no attribute 'nonsense'"):
        _ = simsched.nonsense


def test_the_function_simulate_is_a_name_of_the_package():
    import simsched

    assert simsched.simulate.__module__ == "simsched.api"
