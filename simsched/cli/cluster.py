"""``simsched cluster``: show, make, convert and compare clusters."""

from __future__ import annotations

import sys
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from simsched.cli.support.output import put, write
from simsched.text_table import table_lines

if TYPE_CHECKING:
    import argparse
    from collections.abc import Iterator

    from simsched.cli import Subparsers
    from simsched.graph.cluster import Cluster
    from simsched.graph.resource_graph import ResourceGraph

FORMS = ("r", "r+jgf", "jgf", "treepool")
MAKE_OPTIONS = ("hosts", "sockets", "numa", "cores", "gpus", "memory")


def register(subparsers: Subparsers) -> None:
    """Add the verb ``cluster`` and its own verbs."""
    cluster = subparsers.add_parser(
        "cluster",
        help="show, make and convert clusters",
        description="Show, make, convert and compare clusters. A CLUSTER is a file (R, R with a graph, JGF, "
        "TreePool, GRUG, recipe; it may be compressed), - for standard input, or the name of a bundled one.",
    )
    verbs = cluster.add_subparsers(title="verbs", metavar="VERB", dest="cluster_verb", required=True)
    _add_show(verbs)
    _add_make(verbs)
    _add_convert(verbs)
    _add_diff(verbs)
    names = verbs.add_parser("list", help="name the bundled clusters")
    names.set_defaults(run=run_list)


def _add_show(verbs: Any) -> None:
    show = verbs.add_parser("show", help="counts, groups, properties and a folded tree")
    show.add_argument("cluster", metavar="CLUSTER")
    show.add_argument("--subsystem", metavar="NAME", help="the tree or picture of this subsystem")
    show.add_argument("--apart", action="store_true", help="do not fold what looks alike")
    show.add_argument("--depth", type=int, metavar="N", help="only N levels of the tree")
    how = show.add_mutually_exclusive_group()
    how.add_argument("--dot", action="store_true", help="a picture as Graphviz text")
    how.add_argument("--svg", action="store_true", help="a picture as SVG")
    how.add_argument(
        "--find",
        metavar="TERMS",
        help="vertices by type=, property=, status=, name=, rank=, id=; -TERM negates",
    )
    how.add_argument("--format", choices=("text", "json"), default="text", help="text (default) or json")
    show.add_argument("-o", "--output", metavar="FILE", help="write here, not to standard output")
    show.set_defaults(run=run_show)


def _add_make(verbs: Any) -> None:
    make = verbs.add_parser(
        "make",
        help="a cluster from a recipe, or from options",
        description="Make a cluster from a recipe file, or from options for one group of like nodes.",
    )
    make.add_argument("recipe", metavar="RECIPE", nargs="?", help="a recipe (YAML), or - for standard input")
    make.add_argument("--name", help="what the cluster is called")
    make.add_argument("--nodes", type=int, metavar="N", help="how many nodes")
    make.add_argument("--hosts", metavar="HOSTLIST", help="their names (default node[0-N])")
    make.add_argument("--sockets", type=int, metavar="N", help="sockets in each node")
    make.add_argument("--numa", type=int, metavar="N", help="NUMA domains in each socket")
    make.add_argument("--cores", type=int, metavar="N", help="cores in each node")
    make.add_argument("--gpus", type=int, metavar="N", help="gpus in each node")
    make.add_argument("--memory", metavar="AMOUNT", help="memory of each node, such as '512 GB'")
    make.add_argument("--racks", type=int, metavar="N", help="racks that the nodes are spread over")
    make.add_argument(
        "--property",
        metavar="NAME[=HOSTS]",
        action="append",
        default=[],
        dest="properties",
        help="a property of all nodes or of some (may be repeated)",
    )
    _add_output(make, choices=(*FORMS, "recipe"), flag="--format")
    make.set_defaults(run=run_make)


def _add_convert(verbs: Any) -> None:
    convert = verbs.add_parser(
        "convert",
        help="a cluster in another format",
        description="Write a cluster in another format; standard error says what that one cannot hold.",
    )
    convert.add_argument("cluster", metavar="CLUSTER")
    _add_output(convert, choices=FORMS, flag="--to")
    convert.add_argument("--hosts", metavar="HOSTLIST", help="only these targets")
    convert.add_argument("--remove", metavar="HOSTLIST", help="without these targets")
    convert.add_argument(
        "--constraint", metavar="TEXT", help="only targets that satisfy this RFC 35 constraint"
    )
    convert.add_argument(
        "--set",
        metavar="STATUS=HOSTLIST",
        action="append",
        default=[],
        dest="statuses",
        help="up, down or drained",
    )
    convert.add_argument(
        "--property",
        metavar="NAME=HOSTLIST",
        action="append",
        default=[],
        dest="properties",
        help="add a property",
    )
    convert.set_defaults(run=run_convert)


def _add_diff(verbs: Any) -> None:
    compare = verbs.add_parser(
        "diff",
        help="what is different between two clusters",
        description="Compare two clusters. Exit status 0: no difference, 1: some, 2: the input is wrong.",
    )
    compare.add_argument("left", metavar="A")
    compare.add_argument("right", metavar="B")
    compare.add_argument("--format", choices=("text", "json"), default="text", help="text (default) or json")
    compare.set_defaults(run=run_diff)


def _add_output(parser: argparse.ArgumentParser, *, choices: tuple[str, ...], flag: str) -> None:
    parser.add_argument(
        flag,
        choices=choices,
        dest="form",
        help=f"{', '.join(choices)} (default r, or r+jgf where r cannot hold what is asked for)",
    )
    parser.add_argument("-o", "--output", metavar="FILE", help="write here, not to standard output")
    parser.add_argument(
        "--dialect",
        choices=("as-read", "fluxion"),
        default="fluxion",
        help="JGF as Fluxion loads it (default), or vertices with the keys they were read with",
    )
    parser.add_argument(
        "--compact",
        action="store_true",
        help="JGF: keep pools with unit ids as one vertex (which Fluxion does not read)",
    )


# --- show ----------------------------------------------------------------------------


def run_show(args: argparse.Namespace) -> int:
    """Print what a cluster is made of; with ``--find``, 1 if nothing is found."""
    from simsched.graph.cluster import load_cluster

    cluster = load_cluster(args.cluster)
    if args.find is not None:
        return _show_found(cluster, args)
    if args.dot or args.svg:
        from simsched.graph.inspect import dot as picture
        from simsched.graph.resource_graph import CONTAINMENT

        draw = picture.dot if args.dot else picture.svg
        text = draw(cluster.graph, args.subsystem or CONTAINMENT, apart=args.apart or None)
        put(text, args.output, "xml" if args.svg else "other")
    elif args.format == "json":
        import json

        put(json.dumps(_facts(cluster), indent=2, ensure_ascii=False) + "\n", args.output, "json")
    else:
        put("\n".join(_text(cluster, args)) + "\n", args.output, "text")
    return 0


def _show_found(cluster: Cluster, args: argparse.Namespace) -> int:
    from simsched.graph.inspect.view import find
    from simsched.graph.resource_graph import containment_paths, pool_of

    paths = containment_paths(cluster.graph)
    lines = []
    for key in find(cluster.graph, args.find):
        pool = pool_of(cluster.graph, key)
        units = f"{pool.size} {pool.unit}".strip() if pool.ids is None else f"{pool.size} [{pool.ids}]"
        marks = " ".join([pool.status, *pool.properties])
        lines.append(f"{paths.get(key, key)}\t{pool.type}\t{units}\t{marks}")
    put("".join(f"{line}\n" for line in lines), args.output, "text")
    return 0 if lines else 1


def _facts(cluster: Cluster) -> dict[str, Any]:
    """Return the summary as JSON values."""
    from dataclasses import asdict

    from simsched.graph.inspect.view import summary

    found = summary(cluster.graph)
    return {"name": cluster.name, "source": cluster.source, **asdict(found)}


def _text(cluster: Cluster, args: argparse.Namespace) -> list[str]:
    from simsched.errors import ConfigError
    from simsched.graph.inspect.view import summary, tree_lines
    from simsched.graph.resource_graph import CONTAINMENT

    graph = cluster.graph
    found = summary(graph)
    if args.subsystem not in (None, *found.subsystems):
        known = ", ".join(found.subsystems)
        raise ConfigError(f"no subsystem {args.subsystem!r} in this cluster", expected=known)
    lines = [f"{cluster.name}: {found.targets:,} execution targets, {len(graph):,} vertices"]
    others = [name for name in found.subsystems if name != CONTAINMENT]
    lines += [f"subsystems: {', '.join(found.subsystems)}"] if others else []
    lines += ["", *table_lines([("type", "vertices", "units"), *_rows(found)], right=[1, 2])]
    lines += ["", *table_lines([("targets", "each holds", "properties", "status"), *_groups(found)])]
    if found.properties:
        having = [(name, f"{count:,}") for name, count in found.properties.items()]
        lines += ["", *table_lines([("property", "targets"), *having], right=[1])]
    lines.append("")
    for subsystem in [args.subsystem] if args.subsystem else found.subsystems:
        if subsystem != CONTAINMENT:
            lines.append(f"{subsystem}:")
        lines += tree_lines(graph, subsystem, apart=args.apart, depth=args.depth)
    return lines


def _rows(found: Any) -> list[tuple[str, str, str]]:
    return [(kind, f"{count:,}", found.units[kind]) for kind, count in found.vertices.items()]


def _groups(found: Any) -> list[tuple[str, str, str, str]]:
    """Return rows of like targets, with long hostlists cut."""
    rows = []
    for group in found.groups:
        hosts = group.hosts if len(group.hosts) <= 40 else f"{group.hosts[:37]}…"
        holds = ", ".join(f"{amount} {kind}" for kind, amount in group.holds.items())
        rows.append((f"{group.count:,} × {hosts}", holds, " ".join(group.properties), group.status))
    return rows


# --- make, convert, diff, list -------------------------------------------------------


def run_make(args: argparse.Namespace) -> int:
    """Make a cluster from a recipe or from options and write it."""
    from simsched.formats.cluster.recipe import format_recipe
    from simsched.graph.build.cluster_files import graph_from_document
    from simsched.graph.cluster import Cluster
    from simsched.graph.write.losses import MEASURED, losses

    document, where = _recipe_of(args)
    name = args.name or document.get("name") or "cluster"
    with _by_options(args):
        graph = graph_from_document({**document, "name": name}, name=name, where=where)
    if args.form == "recipe":
        _refuse_properties_of_some(args)
        put(format_recipe({**document, "name": name}), args.output)
        return 0
    cluster = Cluster(graph, name=name)
    for text in args.properties:
        label, equals, hosts = text.partition("=")
        if equals:
            cluster = _edited(cluster, [], [f"{label}={hosts}"])
    form = args.form or ("r" if not losses(cluster.graph, "r") else "r+jgf")
    return _write(cluster.graph, args, form, [MEASURED] if args.memory is not None else [])


def _refuse_properties_of_some(args: argparse.Namespace) -> None:
    """Raise a ConfigError for properties of some hosts: the groups of a recipe are alike."""
    from simsched.errors import ConfigError

    some = next((text for text in args.properties if "=" in text), None)
    if some is not None:
        raise ConfigError(
            "a recipe cannot hold a property of some nodes of a group",
            where=f"--property {some}",
            expected=f"--format {', '.join(FORMS)}",
        )


@contextmanager
def _by_options(args: argparse.Namespace) -> Iterator[None]:
    """Let a fault of what options say be found at the option: there is no recipe that anybody wrote."""
    from simsched.errors import SimschedError

    try:
        yield
    except SimschedError as error:
        group, dot, key = (error.where or "").partition("groups[0].")
        if args.recipe is not None or group or not dot:
            raise
        option = f"--{'nodes' if key == 'count' else key}"
        raise type(error)(error.message, where=option, expected=error.expected) from None


def _recipe_of(args: argparse.Namespace) -> tuple[dict[str, Any], str | None]:
    """Return the recipe document that a file or the options describe."""
    from simsched.errors import ConfigError, FormatError
    from simsched.formats.text.documents import load_document, read_text

    options = {key: value for key in MAKE_OPTIONS if (value := getattr(args, key)) is not None}
    everywhere = [text for text in args.properties if "=" not in text]
    if args.recipe is not None:
        if options or args.nodes or args.racks or everywhere:
            raise ConfigError("both a recipe and options", expected="one of them")
        document = load_document(read_text(args.recipe), args.recipe)
        if not isinstance(document, dict) or "groups" not in document:
            raise FormatError(
                "this is no cluster recipe", where=args.recipe, expected="a mapping with 'groups'"
            )
        return document, str(args.recipe)
    if args.nodes is None and args.hosts is None:
        raise ConfigError("nothing to make", expected="a recipe, --nodes or --hosts")
    group: dict[str, Any] = {
        "name": "node",
        **({} if args.nodes is None else {"count": args.nodes}),
        **options,
    }
    if everywhere:
        group["properties"] = everywhere
    racks = {} if args.racks is None else {"racks": args.racks}
    return {"groups": [group], **racks}, None


def run_convert(args: argparse.Namespace) -> int:
    """Write a cluster in another format, after the edits that were asked for."""
    from simsched.graph import edit
    from simsched.graph.cluster import load_cluster
    from simsched.graph.write.losses import STATUS, losses

    cluster = load_cluster(args.cluster)
    if args.hosts:
        cluster = edit.restrict(cluster, args.hosts)
    if args.remove:
        cluster = edit.remove_nodes(cluster, args.remove)
    if args.constraint:
        from simsched.formats.rfc.constraint_text import parse_constraint

        cluster = edit.restrict(cluster, parse_constraint(args.constraint))
    graph = _edited(cluster, args.statuses, args.properties).graph
    asked = [STATUS] if any(not text.startswith("up=") for text in args.statuses) else []
    lost = any(sentence.startswith(STATUS) for sentence in losses(graph, "r"))
    return _write(graph, args, args.form or ("r+jgf" if asked and lost else "r"), asked)


def _edited(cluster: Cluster, statuses: list[str], properties: list[str]) -> Cluster:
    """Apply ``STATUS=HOSTS`` and ``NAME=HOSTS``."""
    from simsched.errors import ConfigError
    from simsched.graph import edit

    for text in (*statuses, *properties):
        if "=" not in text:
            raise ConfigError(f"no hosts in {text!r}", expected="NAME=HOSTLIST")
    for text in statuses:
        status, _, hosts = text.partition("=")
        cluster = edit.set_status(cluster, hosts, status)
    for text in properties:
        name, _, hosts = text.rpartition("=")
        cluster = edit.add_properties(cluster, hosts, name)
    return cluster


def _write(graph: ResourceGraph, args: argparse.Namespace, form: str, asked: list[str]) -> int:
    """Write a graph; say on standard error what the format cannot hold of it.

    ConfigError for a format that was asked for and cannot hold what was `asked` for with it (the
    beginnings of sentences of `losses`).
    """
    from simsched.errors import ConfigError
    from simsched.graph.write.documents_of import to_bytes
    from simsched.graph.write.losses import losses

    lost = losses(graph, form)
    refused = next((text for text in lost if text.startswith(tuple(asked))), None) if asked else None
    if refused is not None:
        raise ConfigError(f"{form} cannot hold what is asked for: {refused}", expected="r+jgf or jgf")
    expand = False if args.compact else None
    put(to_bytes(graph, form, dialect=args.dialect, expand=expand), args.output)
    if args.form is None and form != "r":
        print(f"written as {form}: r cannot hold what is asked for", file=sys.stderr)
    for sentence in lost:
        print(f"not held by {form}: {sentence}", file=sys.stderr)
    return 0


def run_diff(args: argparse.Namespace) -> int:
    """Print the differences of two clusters; 1 if there are some."""
    from simsched.graph.cluster import load_cluster
    from simsched.graph.inspect.diff import diff

    found = diff(load_cluster(args.left).graph, load_cluster(args.right).graph)
    if args.format == "json":
        import json

        rows = [{"what": one.what, "left": one.left, "right": one.right} for one in found]
        write(json.dumps(rows, indent=2, ensure_ascii=False) + "\n", "json")
    else:
        for one in found:
            print(one)
    return 1 if found else 0


def run_list(_: argparse.Namespace) -> int:
    """Print the names of the bundled clusters."""
    from simsched.bundled import bundled

    print("\n".join(bundled("clusters")))
    return 0
