"""``simsched cluster``: show, make, convert, compare and list clusters."""

from __future__ import annotations

import sys
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Annotated, Any, Literal

from simsched.cli.support.messages import warn_of
from simsched.cli.support.output import answer, list_bundled, put
from simsched.cli.support.verbs import add_verb
from simsched.declare.flags import Flags, add_flags, field, flag
from simsched.declare.kinds import choice
from simsched.errors import ConfigError, FormatError, SimschedError
from simsched.text_table import table_lines

if TYPE_CHECKING:
    from collections.abc import Iterator

    from simsched.cli.support.parser import Arguments, Subparsers
    from simsched.formats.cluster.recipe import Recipe
    from simsched.graph.cluster import Cluster
    from simsched.graph.inspect.view import Summary
    from simsched.graph.resource_graph import ResourceGraph

FORMS = ("r", "r+jgf", "jgf", "treepool", "graphml")
MAX_NODES = 1_000_000
MAKE_OPTIONS = ("hosts", "sockets", "numa", "cores", "gpus", "memory")
Count = Annotated[int | None, flag("N", type=int)]
"""A number whose bounds are those of a recipe."""


class ShowFlags(Flags, frozen=True, kw_only=True):
    """Print counts, groups, properties and a tree.

    Print a cluster: counts, groups of equal nodes, properties and a tree. With --find, exit status 1 means
    that nothing was found.

    cluster : a cluster file, or a bundled name.
    subsystem : show the tree or drawing of this subsystem.
    apart : do not fold equal subtrees.
    depth : show only N levels of the tree.
    output : write to FILE (default: standard output).
    """

    cluster: Annotated[str, flag("CLUSTER", positional=True)]
    subsystem: Annotated[str | None, flag("NAME")] = None
    apart: bool = False
    depth: Count = None
    output: Annotated[str | None, flag("FILE", "-o")] = None


class CompareFlags(Flags, frozen=True, kw_only=True):
    """Compare two clusters.

    Print the differences of two clusters.

    left : a cluster file, or a bundled name.
    right : the cluster to compare with A.
    format : text (default) or json.

    Exit status: 0 no difference, 1 some differences, 2 the input is wrong.
    """

    left: Annotated[str, flag("A", positional=True)]
    right: Annotated[str, flag("B", positional=True)]
    format: Literal["text", "json"] = "text"


class ViewOfCluster(Flags, frozen=True, kw_only=True):
    """What ``cluster show`` prints.

    dot : draw the cluster as Graphviz text.
    svg : draw the cluster as SVG.
    find : list the vertices that match type=, property=, status=, name=, rank=, id=; -TERM negates.
    format : text (default) or json.
    """

    dot: bool = False
    svg: bool = False
    find: Annotated[str | None, flag("TERMS")] = None
    format: Literal["text", "json"] = "text"


FORM = replace(choice(*FORMS, "recipe"), flag={"type": str.lower})


class FormFlags(Flags, frozen=True):
    """The format of a made cluster.

    form : r, r+jgf, jgf, treepool, graphml, recipe (default r, or r+jgf if r cannot represent the result).
    """

    form: Annotated[str | None, FORM] = field(name="format", default=None)


class TargetFlags(Flags, frozen=True):
    """The format of a converted cluster.

    form : r, r+jgf, jgf, treepool, graphml, recipe (default r, or r+jgf if r cannot represent the result).
    """

    form: Annotated[str | None, replace(FORM, flag={**FORM.flag, "short": ("--to",)})] = field(
        name="format", default=None
    )


class OutputFlags(Flags, frozen=True, kw_only=True):
    """The file of a cluster.

    output : write to FILE (default: standard output).
    dialect : JGF as Fluxion loads it (default), or with the keys that its vertices were read with.
    compact : JGF: write a pool with unit ids as one vertex, which Fluxion does not read.
    """

    output: Annotated[str | None, flag("FILE", "-o")] = None
    dialect: Literal["as-read", "fluxion"] = "fluxion"
    compact: bool = False


class MakeFlags(Flags, frozen=True, kw_only=True):
    """Make a cluster from a recipe, from options or for a trace.

    Make a cluster from a recipe file, from options for one group of equal nodes, from one node that another
    file describes (--like), or for a trace (--for). Assumptions are notes.

    recipe : recipe file (YAML), or - for standard input.
    trace : make the machine of a trace: from its header (SWF), otherwise from its largest requests.
    like : nodes like the one that FILE describes (hwloc XML or another cluster); with --nodes or --hosts.
    name : name of the cluster.
    nodes : number of nodes.
    hosts : names of the nodes (default node[0-N]).
    sockets : sockets per node.
    numa : NUMA domains per socket.
    cores : cores per node.
    gpus : gpus per node.
    memory : memory per node, such as '512 GB'.
    racks : number of racks.
    properties : property of all nodes or of some; may be repeated.
    """

    recipe: Annotated[str | None, flag("RECIPE", positional=True, nargs="?")] = None
    trace: Annotated[str | None, flag("TRACE")] = field(name="for", default=None)
    like: Annotated[str | None, flag("FILE")] = None
    name: Annotated[str | None, flag("NAME")] = None
    nodes: Count = None
    hosts: Annotated[str | None, flag("HOSTLIST")] = None
    sockets: Count = None
    numa: Count = None
    cores: Count = None
    gpus: Count = None
    memory: Annotated[str | None, flag("AMOUNT")] = None
    racks: Count = None
    properties: Annotated[tuple[str, ...], flag("NAME[=HOSTS]")] = field(name="property", default=())


class EditFlags(Flags, frozen=True, kw_only=True):
    """Write a cluster in another format.

    Write a cluster in another format, after edits. Standard error lists everything that the format cannot
    represent.

    cluster : a cluster file, or a bundled name.
    hosts : keep only these execution targets.
    remove : remove these execution targets.
    constraint : keep only execution targets that meet this RFC 35 constraint.
    statuses : set the status of targets: up, down or drained; may be repeated.
    properties : add a property to targets; may be repeated.
    """

    cluster: Annotated[str, flag("CLUSTER", positional=True)]
    hosts: Annotated[str | None, flag("HOSTLIST")] = None
    remove: Annotated[str | None, flag("HOSTLIST")] = None
    constraint: Annotated[str | None, flag("TEXT")] = None
    statuses: Annotated[tuple[str, ...], flag("STATUS=HOSTLIST")] = field(name="set", default=())
    properties: Annotated[tuple[str, ...], flag("NAME=HOSTLIST")] = field(name="property", default=())


def register(subparsers: Subparsers) -> None:
    """Add the verb ``cluster`` and its actions."""
    cluster = subparsers.add_parser(
        "cluster",
        help="show, make, convert, compare and list clusters",
        description="Show, make, convert and compare clusters. A CLUSTER is a file (R, R with a graph, JGF, "
        "TreePool, GRUG, GraphML, recipe, or a site's own file such as slurm.conf, a Flux configuration, "
        "pbsnodes -a or hwloc XML; it may be compressed), - for standard input, or a bundled name.",
    )
    verbs = cluster.add_subparsers(title="actions", metavar="ACTION", dest="cluster_verb", required=True)
    show = add_verb(verbs, "show", run_show, ShowFlags, answers=["cluster-summary"])
    add_flags(show.add_mutually_exclusive_group(), ViewOfCluster)
    add_verb(verbs, "make", run_make, MakeFlags, FormFlags, OutputFlags)
    add_verb(verbs, "convert", run_convert, EditFlags, TargetFlags, OutputFlags)
    add_verb(verbs, "diff", run_diff, CompareFlags, answers=["cluster-differences"])
    add_verb(verbs, "list", list_bundled("clusters"), help="list the bundled clusters")


# --- show ----------------------------------------------------------------------------


def run_show(args: Arguments) -> int:
    """Print a cluster; with ``--find``, return 1 if nothing is found."""
    from simsched.graph.cluster import load_cluster

    cluster = load_cluster(args.cluster)
    if args.find is not None:
        return _show_found(cluster, args)
    if args.dot or args.svg:
        from simsched.graph.inspect import dot as drawing
        from simsched.graph.resource_graph import CONTAINMENT

        draw = drawing.dot if args.dot else drawing.svg
        text = draw(cluster.graph, args.subsystem or CONTAINMENT, apart=args.apart or None)
        put(text, args.output, "xml" if args.svg else "other")
    else:
        from simsched.graph.inspect.view import summary

        facts = summary(cluster.graph, cluster.name, cluster.source)
        answer(args.format, lambda: facts, lambda: _text(cluster, facts, args), args.output)
    return 0


def _show_found(cluster: Cluster, args: Arguments) -> int:
    from simsched.graph.inspect.view import find
    from simsched.graph.resource_graph import pool_of, subsystem_paths

    paths = subsystem_paths(cluster.graph)
    lines = []
    for key in find(cluster.graph, args.find):
        pool = pool_of(cluster.graph, key)
        units = f"{pool.size} {pool.unit}".strip() if pool.ids is None else f"{pool.size} [{pool.ids}]"
        marks = " ".join([pool.status, *pool.properties])
        lines.append(f"{paths.get(key, key)}\t{pool.type}\t{units}\t{marks}")
    put("".join(f"{line}\n" for line in lines), args.output, "text")
    return 0 if lines else 1


def _text(cluster: Cluster, found: Summary, args: Arguments) -> list[str]:
    from simsched.graph.inspect.view import tree_lines
    from simsched.graph.resource_graph import CONTAINMENT

    graph = cluster.graph
    if args.subsystem not in (None, *found.subsystems):
        known = ", ".join(found.subsystems)
        raise ConfigError(
            f"the cluster has no subsystem {args.subsystem!r}", where="--subsystem", expected=known
        )
    lines = [f"{cluster.name}: {found.targets:,} execution targets, {len(graph):,} vertices"]
    others = [name for name in found.subsystems if name != CONTAINMENT]
    lines += [f"subsystems: {', '.join(found.subsystems)}"] if others else []
    kinds = [(kind, f"{count:,}", found.units[kind]) for kind, count in found.vertices.items()]
    lines += ["", *table_lines([("type", "vertices", "units"), *kinds], right=[1, 2])]
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


def _groups(found: Summary) -> list[tuple[str, str, str, str]]:
    """Return one row per group of equal targets; long hostlists are shortened."""
    rows = []
    for group in found.groups:
        hosts = group.hosts if len(group.hosts) <= 40 else f"{group.hosts[:37]}…"
        holds = ", ".join(f"{amount} {kind}" for kind, amount in group.holds.items())
        rows.append((f"{group.count:,} × {hosts}", holds, " ".join(group.properties), group.status))
    return rows


# --- diff ----------------------------------------------------------------------------


def run_diff(args: Arguments) -> int:
    """Print the differences of two clusters; return 1 if there are any."""
    from simsched.graph.cluster import load_cluster
    from simsched.graph.inspect.diff import diff

    found = diff(load_cluster(args.left).graph, load_cluster(args.right).graph)
    answer(args.format, lambda: found, lambda: found)
    return 1 if found else 0


# --- the actions ``cluster make`` and ``cluster convert``: build a cluster, edit it and write it


def run_make(args: Arguments) -> int:
    """Make a cluster from a recipe or from options, and write it."""
    from simsched.formats.cluster.recipe import format_recipe
    from simsched.graph.build.cluster_files import graph_from_document
    from simsched.graph.cluster import Cluster
    from simsched.graph.write.losses import MEASURED, losses

    document, where = _made_from_file(args) or _recipe_of(args)
    name = args.name or document.get("name") or "cluster"
    with _by_options(args):
        graph = graph_from_document({**document, "name": name}, name=name, where=where)
    if args.form == "recipe":
        some = next((text for text in args.properties if "=" in text), None)
        if some is not None:  # all nodes of a group are equal
            raise ConfigError(
                "a recipe cannot represent a property of some nodes of a group",
                where=f"--property {some}",
                expected=f"--format {', '.join(FORMS)}",
            )
        put(format_recipe({**document, "name": name}), args.output)
        return 0
    cluster = Cluster(graph, name=name)
    for text in args.properties:
        label, equals, hosts = text.partition("=")
        if equals:
            cluster = _edited(cluster, [], [f"{label}={hosts}"])
    form = args.form or ("r" if not losses(cluster.graph, "r") else "r+jgf")
    return _write(cluster.graph, args, form, [MEASURED] if args.memory is not None else [])


def _made_from_file(args: Arguments) -> tuple[dict[str, Any], str] | None:
    """Return the recipe document for ``--for`` or ``--like``; None if neither is given.

    Raises
    ------
    ConfigError
        for options that contradict them.
    """
    from simsched.formats.cluster.recipe import recipe_document

    if args.trace is None and args.like is None:
        return None
    flag = "--for" if args.like is None else "--like"
    allowed = () if args.like is None else ("hosts",)
    given = [key for key in MAKE_OPTIONS if getattr(args, key) is not None and key not in allowed]
    if args.recipe is not None or given or (args.trace is not None and args.like is not None):
        other = f"--{given[0]}" if given else "a recipe" if args.recipe is not None else "--for"
        raise ConfigError(f"{flag} and {other} are both given", where="cluster make", expected="one of them")
    recipe = _of_trace(args) if args.like is None else _like(args)
    document = recipe_document(recipe)
    for text in args.properties:
        if "=" not in text:
            for group in document["groups"]:
                group["properties"] = list(dict.fromkeys([*group.get("properties", []), text]))
    if args.racks is not None:
        document["racks"] = args.racks
    return document, args.trace or args.like


def _of_trace(args: Arguments) -> Recipe:
    """Return the machine of a trace, with its assumptions as a warning."""
    from simsched.workload.load import load_workload
    from simsched.workload.machine_of_trace import machine_of

    if args.nodes is not None:
        raise ConfigError("--for and --nodes are both given", where="cluster make", expected="one of them")
    workload = load_workload(args.trace)
    found = machine_of(workload)
    warn_of(found.notes, args.trace)
    return found.recipe


def _like(args: Arguments) -> Recipe:
    """Return nodes that are like those of a file, which has nodes of one kind."""
    from simsched.formats.cluster.recipe import Recipe
    from simsched.formats.rfc.hostlist import Hostlist

    given = _recipe_in(args.like)
    if len(given.groups) != 1:
        raise ConfigError(
            f"there are {len(given.groups)} kinds of nodes", where=args.like, expected="nodes of one kind"
        )
    like = given.groups[0]
    if args.hosts is not None:
        hosts = tuple(Hostlist.parse(args.hosts, where="--hosts").expand(MAX_NODES))
        if args.nodes not in (None, len(hosts)):
            text = f"--hosts and --nodes differ: {len(hosts):,} and {args.nodes:,}"
            raise ConfigError(text, where="cluster make", expected="one of them")
    elif args.nodes is not None and 0 < args.nodes <= MAX_NODES:
        hosts = tuple(f"node{number}" for number in range(args.nodes))
    else:
        expected = f"--hosts, or --nodes from 1 to {MAX_NODES:,}"
        raise ConfigError("the number of nodes is not given", where="--like", expected=expected)
    none: frozenset[str] = frozenset()
    group = replace(like, name="node", hosts=hosts, status="up", down=none, drained=none, levels=())
    return Recipe(name=None, groups=(group,))


@contextmanager
def _by_options(args: Arguments) -> Iterator[None]:
    """Report a fault of the recipe at the option that it comes from, if the user wrote no recipe."""
    try:
        yield
    except SimschedError as error:
        group, dot, key = (error.where or "").partition("groups[0].")
        if args.recipe is not None or group or not dot:
            raise
        option = f"--{'nodes' if key == 'count' else key}"
        raise type(error)(error.message, where=option, expected=error.expected) from None


def _recipe_of(args: Arguments) -> tuple[dict[str, Any], str | None]:
    """Return the recipe document that a file or the options describe."""
    from simsched.formats.text.documents import load_document, read_text

    options = {key: value for key in MAKE_OPTIONS if (value := getattr(args, key)) is not None}
    everywhere = [text for text in args.properties if "=" not in text]
    if args.recipe is not None:
        if options or args.nodes or args.racks or everywhere:
            raise ConfigError(
                "a recipe and options are both given", where="cluster make", expected="one of them"
            )
        document = load_document(read_text(args.recipe), args.recipe)
        if not isinstance(document, dict) or "groups" not in document:
            raise FormatError(
                "this is not a cluster recipe", where=args.recipe, expected="a mapping with 'groups'"
            )
        return document, str(args.recipe)
    if args.nodes is None and args.hosts is None:
        raise ConfigError(
            "there is nothing to make", where="cluster make", expected="a recipe, --nodes, --hosts or --for"
        )
    group: dict[str, Any] = {
        "name": "node",
        **({} if args.nodes is None else {"count": args.nodes}),
        **options,
    }
    if everywhere:
        group["properties"] = everywhere
    racks = {} if args.racks is None else {"racks": args.racks}
    return {"groups": [group], **racks}, None


def run_convert(args: Arguments) -> int:
    """Write a cluster in another format, after the edits of the options."""
    from simsched.graph import edit
    from simsched.graph.cluster import load_cluster
    from simsched.graph.write.losses import STATUS, losses

    if args.form == "recipe":
        return _convert_to_recipe(args)
    cluster = load_cluster(args.cluster)
    if args.hosts:
        cluster = edit.restrict(cluster, args.hosts)
    if args.remove:
        cluster = edit.remove_nodes(cluster, args.remove)
    if args.constraint:
        from simsched.formats.rfc.constraint import parse_constraint

        cluster = edit.restrict(cluster, parse_constraint(args.constraint))
    graph = _edited(cluster, args.statuses, args.properties).graph
    required = [STATUS] if any(not text.startswith("up=") for text in args.statuses) else []
    lost = any(sentence.startswith(STATUS) for sentence in losses(graph, "r"))
    return _write(graph, args, args.form or ("r+jgf" if required and lost else "r"), required)


def _convert_to_recipe(args: Arguments) -> int:
    """Write the nodes of a site's own file, or of a recipe, as a recipe.

    Raises
    ------
    ConfigError
        for edits, and for files whose resources are vertices of a graph (JGF, GRUG).
    """
    from simsched.formats.cluster.recipe import format_recipe, recipe_document

    if args.hosts or args.remove or args.constraint or args.statuses or args.properties:
        raise ConfigError(
            "a recipe is written without edits", where="--to recipe", expected="no other option"
        )
    put(format_recipe(recipe_document(_recipe_in(args.cluster))), args.output)
    return 0


def _recipe_in(name: str) -> Recipe:
    """Return the recipe of a file, with its notes as a warning; errors as `load_cluster`."""
    from pathlib import Path

    from simsched import bundled
    from simsched.formats.cluster.recipe import is_recipe, parse_recipe
    from simsched.formats.machines.read import describe_text
    from simsched.formats.text.documents import load_document, name_of, opener, read_text

    path = bundled.resolve("clusters", name)
    text, where = read_text(path), name_of(path)
    found = describe_text(text, where, open_file=opener(path))
    if found is not None and not found.recipe.groups:
        text = f"{found.format} describes no nodes"
        raise FormatError(text, where=where, expected="a file that lists nodes")
    if found is not None:
        warn_of(found.notes, where)
        return replace(found.recipe, name=found.recipe.name or bundled.plain_name(Path(path)))
    document = load_document(text, where) if text.lstrip()[:1] != "<" else None
    if not is_recipe(document):
        expected = f"{', '.join(FORMS)}; a recipe is written of a site's own file or of a recipe"
        raise ConfigError(f"{name} cannot be written as a recipe", where="--to", expected=expected)
    return parse_recipe(document, where=where)


def _edited(cluster: Cluster, statuses: list[str], properties: list[str]) -> Cluster:
    """Apply ``STATUS=HOSTS`` and ``NAME=HOSTS``."""
    from simsched.graph import edit

    for text in (*statuses, *properties):
        if "=" not in text:
            raise ConfigError(f"{text!r} has no hosts", expected="NAME=HOSTLIST")
    for text in statuses:
        status, _, hosts = text.partition("=")
        cluster = edit.set_status(cluster, hosts, status)
    for text in properties:
        name, _, hosts = text.rpartition("=")
        cluster = edit.add_properties(cluster, hosts, name)
    return cluster


def _write(graph: ResourceGraph, args: Arguments, form: str, required: list[str]) -> int:
    """Write a graph, and list the facts that the format cannot represent on standard error.

    Raises
    ------
    ConfigError
        if the format cannot represent something `required` (the beginning of a sentence of `losses`).
    """
    from simsched.graph.write.documents_of import to_bytes
    from simsched.graph.write.losses import losses

    lost = losses(graph, form)
    refused = next((text for text in lost if text.startswith(tuple(required))), None) if required else None
    if refused is not None:
        raise ConfigError(f"{form} cannot represent the result: {refused}", expected="r+jgf or jgf")
    expand = False if args.compact else None
    put(to_bytes(graph, form, dialect=args.dialect, expand=expand), args.output)
    if args.form is None and form != "r":
        print(f"written as {form}: r cannot represent the result", file=sys.stderr)
    for sentence in lost:
        print(f"not represented by {form}: {sentence}", file=sys.stderr)
    return 0
