"""The order of the rooms and the fences around libraries, read from the source."""

from __future__ import annotations

import ast
from collections import Counter
from functools import cache
from graphlib import CycleError, TopologicalSorter
from pathlib import PurePosixPath

import pytest

from tests import REPOSITORY

PACKAGE = REPOSITORY / "simsched"
parsed = cache(ast.parse)

#: Room → the rooms it may import from, besides itself.
LEFT_OF: dict[str, set[str]] = {
    name: set() for name in ("_version", "arrays", "errors", "garbage", "human", "text_table", "visible")
}
LEFT_OF["text_table"] = {"errors", "visible"}
LEFT_OF["arguments"] = {"errors"}  # what functions of the Python interface begin with
LEFT_OF["cycles"] = set()  # cycles of any directed graph
LEFT_OF["declare"] = {"errors"}  # structs from which readers, writers, schemas and options follow
LEFT_OF["plugins"] = {"errors", "arguments", "declare"}  # values of other packages in the place of ours
LEFT_OF["bundled"] = {"errors", "arguments"}  # where the bundled inputs are
LEFT_OF["extras"] = {"errors"}  # how to install an optional library
LEFT_OF["files"] = {"errors"}  # files that are written as a whole or not at all
LEFT_OF["folders"] = {"errors", "files"}  # folders of results, the same way
LEFT_OF["formats"] = {"arguments", "bundled", "cycles", "declare", "errors", "extras", "files", "folders"}
LEFT_OF["formats"] |= {"arrays", "garbage", "human", "plugins", "text_table", "visible"}
LEFT_OF["graph"] = LEFT_OF["formats"] | {"formats"}
LEFT_OF["match"] = LEFT_OF["graph"] | {"graph"}
LEFT_OF["schedule"] = LEFT_OF["match"] | {"match"}
LEFT_OF["workload"] = LEFT_OF["formats"] | {"formats"}
LEFT_OF["simulation"] = LEFT_OF["schedule"] | LEFT_OF["workload"] | {"schedule", "workload", "_version"}
LEFT_OF["report"] = LEFT_OF["simulation"] | {"simulation"}
LEFT_OF["site"] = LEFT_OF["simulation"] | {"simulation"}
LEFT_OF["check"] = LEFT_OF["site"] | {"site"}
LEFT_OF["study"] = LEFT_OF["report"] | {"report", "site"}
LEFT_OF["api"] = LEFT_OF["study"] | {"study", "check"}
LEFT_OF["live"] = LEFT_OF["api"] | {"api"}  # the open simulation, which needs simpy at once
LEFT_OF["rl"] = LEFT_OF["live"] | {"live"}  # environments of Gymnasium; imported by programs alone
LEFT_OF["cli"] = LEFT_OF["api"] | {"api", "simsched"}
LEFT_OF["flux"] = LEFT_OF["cli"] | {"cli"}  # a pool for schedulers of Flux, and its console script
LEFT_OF["__main__"] = {"cli"}
LEFT_OF["simsched"] = LEFT_OF["api"] | {"api", "live"}  # the facade, simsched/__init__.py

TEXT = {"formats", "workload", "study", "site"}
#: Library → where it may be imported: a room, or the beginning of a module's path.
FENCES: dict[str, set[str]] = {
    "networkx": {"graph", "cycles"},
    "simpy": {"simulation", "live", "api"},  # the environment that programs share
    "pandas": {"report", "study", "api"},  # the facade names the frames that it hands out
    "matplotlib": {"report/figures"},
    "bokeh": {"report/html"},
    "distributed": {"study"},
    "dask": {"study"},
    "yaml": TEXT,
    "msgspec": TEXT
    # text, and Structs for values that exist by the hundred thousand
    | {
        "graph/pool",
        "graph/build/jgf",
        "graph/write/jgf",
        "match/state/selection",
        "match/state/run_selection",
    }
    | {"declare", "simulation", "rl"}
    | {"report/data/tables"},  # the declared parts of run.json
    "jsonschema": set(),  # one judge of jobspecs; users and tests validate by the published schemas
    "json": TEXT
    | {"declare", "simulation", "report", "cli", "flux"},  # records and answers; formats reads JSON
    "xml": TEXT,
    "xmlrpc": set(),
    "pickle": set(),
    "requests": set(),
    "urllib": set(),
    "random": set(),  # a numpy Generator is passed in
    "rich": {"cli", "report", "study"},
    "gymnasium": {"rl"},
    "argparse": {"cli", "declare"},
    "shtab": {"cli"},
}


def imports_of(tree: ast.AST) -> list[tuple[int, str]]:
    """Every (line, dotted name) that a module imports anywhere, type-checking blocks included."""
    found = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            found += [(node.lineno, alias.name) for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"line {node.lineno}: a relative import hides its room"
            names = [alias.name for alias in node.names]
            found += [(node.lineno, f"{node.module}.{name}") for name in names]
    return found


def module_of(path: str) -> str:
    """``formats/rfc/idset.py`` → simsched.formats.rfc.idset; ``formats/__init__.py`` → simsched.formats."""
    return ".".join(["simsched", *path.removesuffix(".py").split("/")]).removesuffix(".__init__")


def cycle(sources: dict[str, str]) -> list[str]:
    """Return modules (path → source) that import each other, first and last the same; [] if there are none.

    Every import counts: inside a function, and for the type checker alone.  A name that a package hands on
    counts as an import of its module, so a face that imports lazily hides no cycle.
    """
    trees = {module_of(path): parsed(source) for path, source in sources.items()}
    homes = {
        f"{module_of(path)}.{name.rpartition('.')[2]}": name.rpartition(".")[0]
        for path in sources
        if path.endswith("__init__.py")
        for _, name in imports_of(trees[module_of(path)])
    }
    needs = {}
    for module, tree in trees.items():
        names = [name for _, name in imports_of(tree)]
        targets = [name if name in trees else homes.get(name, name.rpartition(".")[0]) for name in names]
        needs[module] = {target for target in targets if target in trees and target != module}
    try:
        TopologicalSorter(needs).prepare()
    except CycleError as error:
        return error.args[1]
    return []


def room_of(path: str) -> str:
    """``formats/rfc/idset.py`` → formats; ``errors.py`` → errors; ``__init__.py`` → simsched."""
    first = path.split("/", maxsplit=1)[0].removesuffix(".py")
    return "simsched" if first == "__init__" else first


def faults(path: str, source: str) -> list[str]:
    """What the module at `path` (relative to the package) imports and may not."""
    room, found = room_of(path), []
    for line, name in imports_of(parsed(source)):
        top, _, rest = name.partition(".")
        if top == "simsched":
            target = rest.split(".")[0]
            target = target if target in LEFT_OF else "simsched"
            if target not in LEFT_OF[room] | {room}:
                found.append(f"{path}:{line}: {room} imports {target}")
        elif top in FENCES and not any(path.startswith(place) for place in FENCES[top]):
            found.append(f"{path}:{line}: {top} is imported outside {sorted(FENCES[top])}")
    return found


MODULES = sorted(path.relative_to(PACKAGE).as_posix() for path in PACKAGE.rglob("*.py"))


def test_rooms_and_fences_hold():
    assert [fault for path in MODULES for fault in faults(path, (PACKAGE / path).read_text())] == []


def test_there_are_no_import_cycles():
    assert cycle({path: (PACKAGE / path).read_text() for path in MODULES}) == []


#: Names that several packages share on purpose: formats, and verbs of the command line.
SHARED_NAMES = {
    "__init__",
    "calibrate",
    "cluster",
    "grug",
    "jgf",
    "recipe",
    "export",
    "rset",
    "site",
    "size",
    "sweep",
    "treepool",
    "validate",
}


def test_no_file_name_occurs_twice():
    stems = Counter(PurePosixPath(path).stem for path in MODULES)
    assert {stem for stem, times in stems.items() if times > 1} <= SHARED_NAMES


def test_no_public_class_name_occurs_twice():
    names = Counter(
        node.name
        for path in MODULES
        for node in ast.walk(parsed((PACKAGE / path).read_text()))
        if isinstance(node, ast.ClassDef) and not node.name.startswith("_")
    )
    assert {name for name, times in names.items() if times > 1} == set()


def test_packages_say_what_they_hold():
    """Each package begins with a docstring."""
    for folder in {PurePosixPath(path).parent.as_posix() for path in MODULES}:
        assert ast.get_docstring(parsed((PACKAGE / folder / "__init__.py").read_text())), folder


@pytest.mark.parametrize(
    ("path", "source", "fault"),
    [
        (
            "formats/rfc/idset.py",
            "from simsched.graph import index",
            "formats/rfc/idset.py:1: formats imports graph",
        ),
        ("formats/rfc/idset.py", "import simsched", "formats/rfc/idset.py:1: formats imports simsched"),
        (
            "workload/readers/swf.py",
            "import simsched.match.matcher",
            "workload/readers/swf.py:1: workload imports match",
        ),
        (
            "match/requests/dialect.py",
            "from simsched import simulation",
            "match/requests/dialect.py:1: match imports simulation",
        ),
        (
            "errors.py",
            "def f():\n    from simsched.formats import count",
            "errors.py:2: errors imports formats",
        ),
        (
            "match/requests/dialect.py",
            "import networkx as nx",
            "match/requests/dialect.py:1: networkx is imported outside ['cycles', 'graph']",
        ),
        (
            "report/data/tables.py",
            "from matplotlib.figure import Figure",
            "report/data/tables.py:1: matplotlib is imported outside ['report/figures']",
        ),
        (
            "schedule/policies/easy.py",
            "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    import pandas as pd",
            "schedule/policies/easy.py:3: pandas is imported outside ['api', 'report', 'study']",
        ),
    ],
)
def test_the_checker_catches_a_planted_violation(path, source, fault):
    assert faults(path, source) == [fault]


def test_the_checker_lets_good_imports_pass():
    assert faults("cli/run.py", "import simsched\nimport json\nfrom simsched.report import tables") == []
    assert (
        faults("report/html/charts.py", "import bokeh.plotting\nfrom simsched.errors import RunError") == []
    )


A, B = "formats/a.py", "formats/b.py"


@pytest.mark.parametrize(
    ("sources", "found"),
    [
        ({A: "from simsched.formats import b", B: "import simsched.formats.a"}, {"a", "b"}),
        ({A: "import simsched.formats.b", B: "def f():\n    from simsched.formats.a import x"}, {"a", "b"}),
        (
            {A: "from simsched.formats.c import x", B: "def f(): import simsched.formats.a",
             "formats/c.py": "class C:\n    from simsched.formats import b"}, {"a", "b", "c"},
        ),
        (  # c hands on what b imports lazily: the circle is a and b all the same
            {A: "from simsched.formats.c import x", B: "from simsched.formats.a import y",
             "formats/c/__init__.py": "if TYPE_CHECKING:\n    from simsched.formats.b import x"}, {"a", "b"},
        ),
        ({A: "if TYPE_CHECKING:\n    import simsched.formats.b", B: "import simsched.formats.a"}, {"a", "b"}),
        (
            {A: "if typing.TYPE_CHECKING:\n    import json\nelse:\n    import simsched.formats.b",
             B: "from simsched.formats.a import x"}, {"a", "b"},
        ),
        ({A: "import simsched.formats.b, json", B: "import simsched.errors", "errors.py": ""}, set()),
    ],
)  # fmt: skip
def test_a_planted_cycle_is_found(sources, found):
    assert {module.rpartition(".")[2] for module in cycle(sources)} == found


def test_relative_imports_are_refused():
    with pytest.raises(AssertionError, match="hides its room"):
        faults("match/requests/dialect.py", "from ..graph import index")


def test_no_printing_outside_the_command_line():
    """Results go to stdout from `cli` alone; a library that prints cannot be composed."""
    for path in MODULES:
        if room_of(path) != "cli":
            calls = [n for n in ast.walk(parsed((PACKAGE / path).read_text())) if isinstance(n, ast.Call)]
            assert not [c.lineno for c in calls if isinstance(c.func, ast.Name) and c.func.id == "print"], (
                path
            )
