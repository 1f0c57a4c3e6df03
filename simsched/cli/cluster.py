"""``simsched cluster``: show, make, convert, compare and list clusters."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Annotated, Any, Literal

from simsched.cli.cluster_make import FORMS, run_convert, run_make
from simsched.cli.support.output import put, write
from simsched.cli.support.verbs import add_verb
from simsched.declare.flags import Flags, add_flags, field, flag
from simsched.declare.kinds import choice
from simsched.text_table import table_lines

if TYPE_CHECKING:
    import argparse

    from simsched.cli.support.parser import Subparsers
    from simsched.graph.cluster import Cluster


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
    add_verb(verbs, "list", run_list, help="list the bundled clusters")


# --- show ----------------------------------------------------------------------------


def run_show(args: argparse.Namespace) -> int:
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
    elif args.format == "json":
        from simsched.declare.answers import json_text
        from simsched.graph.inspect.view import summary

        facts = summary(cluster.graph, cluster.name, cluster.source)
        put(json_text(facts, ensure_ascii=False) + "\n", args.output, "json")
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


def _text(cluster: Cluster, args: argparse.Namespace) -> list[str]:
    from simsched.errors import ConfigError
    from simsched.graph.inspect.view import summary, tree_lines
    from simsched.graph.resource_graph import CONTAINMENT

    graph = cluster.graph
    found = summary(graph)
    if args.subsystem not in (None, *found.subsystems):
        known = ", ".join(found.subsystems)
        raise ConfigError(
            f"the cluster has no subsystem {args.subsystem!r}", where="--subsystem", expected=known
        )
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
    """Return one row per group of equal targets; long hostlists are shortened."""
    rows = []
    for group in found.groups:
        hosts = group.hosts if len(group.hosts) <= 40 else f"{group.hosts[:37]}…"
        holds = ", ".join(f"{amount} {kind}" for kind, amount in group.holds.items())
        rows.append((f"{group.count:,} × {hosts}", holds, " ".join(group.properties), group.status))
    return rows


# --- diff, list ----------------------------------------------------------------------


def run_diff(args: argparse.Namespace) -> int:
    """Print the differences of two clusters; return 1 if there are any."""
    from simsched.graph.cluster import load_cluster
    from simsched.graph.inspect.diff import diff

    found = diff(load_cluster(args.left).graph, load_cluster(args.right).graph)
    if args.format == "json":
        from simsched.declare.answers import json_text

        write(json_text(found, ensure_ascii=False) + "\n", "json")
    else:
        for one in found:
            print(one)
    return 1 if found else 0


def run_list(_: argparse.Namespace) -> int:
    """Print the names of the bundled clusters, with a line on each."""
    from simsched.bundled import summaries
    from simsched.text_table import table_lines

    print("\n".join(table_lines(summaries("clusters").items())))
    return 0
