"""An exhaustive matcher for tiny graphs, written from the matching rules M1-M9 and nothing else.

It is the oracle of ``tests/match/search/test_bruteforce.py`` and shares no code with simsched: plain
dicts and sets, every choice tried.  Slow is fine.

A graph maps vertex names to :class:`Vertex`; a request is a tuple of :class:`Want`; what
is taken is a :class:`Claims`.  How the rules are read here:

* Going down a path of the request, each vertex matches a strict descendant of the vertex above
  it, or one that it dominates in another subsystem or that lies in such; levels may be skipped
  (M1).  A vertex under a down vertex is down.
* A `Want` with children, or whose type has vertices beneath it, counts distinct vertices; any
  other counts units of pools (M2).
* Every copy of a slot is matched by itself.  If neither the path above nor the content names
  targets or what is above targets, the copy chooses one target and stays in it (M3), save for
  what no target has, such as licences of the whole cluster.
* An exclusive claim of a vertex with a subtree refuses everybody but its own children from that
  subtree, and is refused where anything is claimed in it.  A shared claim refuses exclusive
  claims of the same vertex or unit and of what contains it (M4).  Two shared claims may meet,
  also within one job, except within one count, which is of distinct things.
"""

from __future__ import annotations

from itertools import combinations, combinations_with_replacement
from typing import NamedTuple


class Vertex(NamedTuple):
    """One pool.  `units` are the ids of its units; a vertex with children has one unit."""

    type: str
    parent: str | None
    units: tuple = (0,)
    properties: frozenset = frozenset()
    up: bool = True
    rank: int | None = None
    host: str | None = None
    over: tuple = ()  # what dominates it in another subsystem
    unit: str = ""  # what its units are, if they are measured (GB)


class Want(NamedTuple):
    """One vertex of a request; `counts` are the acceptable values, ascending."""

    type: str
    counts: tuple
    children: tuple = ()
    exclusive: bool | None = None
    unit: str = ""  # what is counted (MB); the pool's own unit if empty
    ids: tuple | None = None  # ids of the vertices or units that may serve
    names: tuple | None = None  # the same by name


#: Bytes of each unit that requests and pools use.
BYTES = {"MB": 10**6, "GB": 10**9, "GiB": 2**30}


class Piece(NamedTuple):
    """One instance of a `Want` that was given a vertex and some of its units."""

    want: Want
    vertex: str
    units: frozenset
    exclusive: bool
    path: tuple  # the pieces it lies under, as indices


class Claims:
    """What is taken: exclusive subtrees (vertex → owner), exclusive units and shared units."""

    def __init__(self):
        self.subtrees = {}
        self.units = set()
        self.shared = set()

    def copy(self):
        other = Claims()
        other.subtrees, other.units, other.shared = dict(self.subtrees), set(self.units), set(self.shared)
        return other

    def add(self, graph, pieces):
        """Claim a match, for a job whose pieces may go where others may not from now on."""
        for piece in pieces:
            take(graph, self, piece, owner=object())


# --- the graph -----------------------------------------------------------------------------------------


class Graph(dict):
    """Vertex name → Vertex, with what lies above and below each looked up once."""

    def __init__(self, vertices):
        super().__init__(vertices)
        self.up_from = {name: tuple(self.climb(name)) for name in self}
        self.number = {name: self.numbered(name) for name in self}
        self.below = {name: set() for name in self}
        for name, chain in self.up_from.items():
            for above in chain[1:]:
                self.below[above].add(name)
        self.reach = {name: set(below) for name, below in self.below.items()}
        for name, vertex in self.items():
            for above in vertex.over:
                self.reach[above] |= {name, *self.below[name]}

    def numbered(self, name):
        """The logical id of a vertex: its place among those of its type."""
        return [v for v in self if self[v].type == self[name].type].index(name)

    def climb(self, name):
        while name is not None:
            yield name
            name = self[name].parent


def ancestors(graph, name):
    """`name` itself and what contains it, upwards."""
    return graph.up_from[name]


def descendants(graph, name):
    return graph.below[name]


def reached(graph, name):
    """What it contains, and what it dominates in another subsystem with all that this contains."""
    return graph.reach[name]


def is_up(graph, name):
    return all(graph[v].up for v in ancestors(graph, name))


def is_target(graph, name):
    return graph[name].type == "node"


def targets_of(graph, name):
    """The target that `name` is or lies in, or else those that it contains."""
    above = [v for v in ancestors(graph, name) if is_target(graph, v)]
    return above or [v for v in reached(graph, name) if is_target(graph, v)]


def types_above_targets(graph):
    """Targets' own type and the types of what contains or dominates them."""
    targets = {t for t in graph if is_target(graph, t)}
    return {graph[v].type for v in graph if v in targets or targets & reached(graph, v)}


def types_outside_targets(graph):
    """Types of what neither contains targets nor lies in one: licences, a shared file system."""
    return {graph[v].type for v in graph if not targets_of(graph, v)}


def satisfies(vertex, constraint):
    """RFC 31, evaluated as written; an empty list matches everything, and an empty `not` nothing."""
    if not constraint:
        return True
    ((operator, values),) = constraint.items()
    if operator == "and":
        return all(satisfies(vertex, value) for value in values)
    if operator == "or":
        return any(satisfies(vertex, value) for value in values) or not values
    if operator == "not":
        return not all(satisfies(vertex, value) for value in values)
    if operator == "properties":
        return all(
            (p[1:] not in vertex.properties) if p[0] == "^" else (p in vertex.properties) for p in values
        )
    if operator == "hostlist":
        return vertex.host in values or not values
    if operator == "ranks":
        return vertex.rank in {int(value) for value in values} or not values
    raise ValueError(operator)


def passes(graph, name, constraint):
    """M7: through its target; above targets, through any target that passes; outside them, always."""
    targets = targets_of(graph, name)
    return not targets or any(satisfies(graph[t], constraint) for t in targets)


# --- claims --------------------------------------------------------------------------------------------


def has_subtree(graph, name):
    return bool(graph.below[name])


def reachable(graph, claims, name, owners):
    """No exclusive subtree of somebody else holds `name`."""
    return all(claims.subtrees.get(v, None) in {None, *owners} for v in ancestors(graph, name))


def free_units(graph, claims, name, exclusive):
    """The units of `name` that a claim of this kind may take, whoever holds the subtrees."""
    units = {u for u in graph[name].units if (name, u) not in claims.units}
    return {u for u in units if (name, u) not in claims.shared} if exclusive else units


def is_idle(graph, claims, name):
    """Nothing at all is claimed at `name` or beneath it."""
    below = {name, *descendants(graph, name)}
    taken = {v for v, _ in claims.units | claims.shared} | set(claims.subtrees)
    return not below & taken


def take(graph, claims, piece, owner):
    if piece.exclusive and has_subtree(graph, piece.vertex):
        claims.subtrees[piece.vertex] = owner
    elif piece.exclusive:
        claims.units |= {(piece.vertex, u) for u in piece.units}
    else:
        claims.shared |= {(piece.vertex, u) for u in piece.units}


# --- the search ----------------------------------------------------------------------------------------


class Item(NamedTuple):
    """A `Want` still to be matched inside `scope`, under the pieces of `path`."""

    want: Want
    scope: str | None
    path: tuple
    in_slot: bool


class TooBigError(Exception):
    """The search took more steps than it was given; nothing was found out."""


class Search:
    """All matches of one request, as a generator of lists of pieces."""

    def __init__(self, graph, constraint=None, ignore_status=False, smallest=True, steps=20_000):
        self.steps = steps
        self.graph = graph
        self.constraint = constraint
        self.ignore_status = ignore_status
        self.smallest = smallest
        self.above = types_above_targets(graph)
        self.far = types_outside_targets(graph)
        self.unlike = False
        self.usable = [v for v in graph if self.is_usable(v)]

    def is_usable(self, name):
        up = self.ignore_status or is_up(self.graph, name)
        return up and passes(self.graph, name, self.constraint)

    def matches(self, request, claims):
        self.unlike = any(names_units(want) for want in request)
        items = [Item(want, None, (), False) for want in request]
        yield from self.solve(items, claims, [])

    def solve(self, items, claims, pieces):
        """Match the first item in every way, then the rest."""
        self.steps -= 1
        if self.steps < 0:
            raise TooBigError
        if not items:
            yield pieces
            return
        item, rest = items[0], items[1:]
        for count in item.want.counts[:1] if self.smallest else reversed(item.want.counts):
            if item.want.type == "slot":
                choices = self.slot_choices(item, count)
            else:
                choices = self.vertex_choices(item, count, claims)
            for new_items, new_pieces in choices:
                after = claims.copy()
                for number, piece in enumerate(new_pieces, start=len(pieces)):
                    take(self.graph, after, piece, owner=number)
                yield from self.solve(new_items(len(pieces)) + rest, after, pieces + new_pieces)

    def within(self, scope):
        return self.usable if scope is None else [v for v in self.usable if v in reached(self.graph, scope)]

    def slot_choices(self, item, count):
        """Yield the items of `count` copies, for every choice of their targets."""
        content = item.want.children
        inside = item.scope is not None and any(
            is_target(self.graph, v) for v in ancestors(self.graph, item.scope)
        )
        if inside or mentions(content, self.above):
            near, far, scopes = content, (), [(item.scope,) * count]
        else:
            far = tuple(want for want in content if want.type in self.far)
            near = tuple(want for want in content if want.type not in self.far)
            targets = [v for v in self.within(item.scope) if is_target(self.graph, v)]
            scopes = combinations_with_replacement(targets, count) if near else [(item.scope,) * count]
        for chosen in scopes:
            items = [Item(want, scope, item.path, True) for scope in chosen for want in near]
            items += [Item(want, item.scope, item.path, True) for _ in chosen for want in far]
            yield (lambda _, items=items: items), []

    def vertex_choices(self, item, count, claims):
        want = item.want
        exclusive = item.in_slot if want.exclusive is None else want.exclusive
        candidates = [
            v
            for v in self.within(item.scope)
            if self.graph[v].type == want.type and reachable(self.graph, claims, v, item.path)
        ]
        if want.unit:
            count = in_pool_units(count, want.unit, self.graph, want.type)
        alike = [v for v in self.graph if self.graph[v].type == want.type]
        if want.children or any(reached(self.graph, v) for v in alike):
            yield from self.whole_vertices(item, count, claims, exclusive, candidates)
        else:
            yield from self.units(item, count, claims, exclusive, candidates)

    def whole_vertices(self, item, count, claims, exclusive, candidates):
        def can(v):
            if is_whole(item.want, exclusive) and not self.all_pass(v):
                return False
            if not is_identified(self.graph, item.want, v):
                return False
            return is_idle(self.graph, claims, v) if exclusive else free_units(self.graph, claims, v, False)

        for chosen in combinations([v for v in candidates if can(v)], count):
            pieces = [
                Piece(item.want, v, frozenset(self.graph[v].units), exclusive, item.path) for v in chosen
            ]

            def items(first, chosen=chosen):
                return [
                    Item(child, v, (*item.path, first + offset), item.in_slot)
                    for offset, v in enumerate(chosen)
                    for child in item.want.children
                ]

            yield items, pieces

    def all_pass(self, name):
        """M7 for what R names whole: every target in it passes."""
        return all(satisfies(self.graph[t], self.constraint) for t in targets_of(self.graph, name))

    def units(self, item, count, claims, exclusive, candidates):
        """Every way to draw `count` units from the pools, the units of a pool in like state being alike.

        Where the request asks for some of them by id, no two are alike.
        """
        options = []
        for v in candidates:
            free = free_units(self.graph, claims, v, exclusive)
            if item.want.ids is not None:
                free = {u for u in free if u in item.want.ids}
            held = sorted(u for u in free if (v, u) in claims.shared)
            fresh = sorted(free - set(held))
            if self.unlike:
                options += [(v, [u], []) for u in held] + [(v, [], [u]) for u in fresh]
            else:
                options.append((v, held, fresh))
        for drawn in draws(options, count):
            pieces = [Piece(item.want, v, frozenset(us), exclusive, item.path) for v, us in drawn]
            yield (lambda _: []), pieces


def in_pool_units(count, unit, graph, type_):
    """M2: a count in the pool's own unit, rounded up."""
    own = next((v.unit for v in graph.values() if v.type == type_), unit)
    return -(-count * BYTES[unit] // BYTES[own])


def names_units(want):
    """Whether a request asks for anything by id."""
    return want.ids is not None or any(names_units(child) for child in want.children)


def is_identified(graph, want, name):
    """M2: whether a vertex is one of those that `id` names."""
    by_number = want.ids is None or graph.number[name] in want.ids
    return by_number and (want.names is None or graph[name].host in want.names)


def mentions(wants, types):
    """Whether a request tree names one of the types, at any depth."""
    return any(want.type in types or mentions(want.children, types) for want in wants)


def draws(options, count):
    """Yield lists of (pool, units): the first of each pool's shared and of its free units."""
    if count == 0:
        yield []
        return
    if not options:
        return
    (name, held, free), rest = options[0], options[1:]
    for shared in range(min(len(held), count) + 1):
        for fresh in range(min(len(free), count - shared) + 1):
            for more in draws(rest, count - shared - fresh):
                here = [(name, held[:shared] + free[:fresh])] if shared + fresh else []
                yield here + more


# --- the questions -------------------------------------------------------------------------------------


def match_exists(graph, request, claims=None, constraint=None):
    """Whether the request can be had now, next to what is claimed (M1-M7, M9, M10)."""
    search = Search(graph, constraint)
    return next(search.matches(request, (claims or Claims()).copy()), None) is not None


def is_feasible(graph, request, constraint=None):
    """Whether the idle machine could hold it, down or not (M11)."""
    search = Search(graph, constraint, ignore_status=True)
    return next(search.matches(request, Claims()), None) is not None


def is_whole(want, exclusive):
    """Whether R names the whole subtree (M5); of a shared vertex it cannot: the job does not hold it."""
    return (exclusive and not want.children) or want.exclusive


def named(graph, pieces):
    """What R names on targets: {rank: {type: ids}} of the units counted, and of whole subtrees (M5).

    What is down in a whole subtree is not named.

    Only leaves have a place in R; a target with nothing counted on it is named without any.
    """
    answer = {}
    for piece in pieces:
        whole = is_whole(piece.want, piece.exclusive)
        beneath = [v for v in descendants(graph, piece.vertex) if is_up(graph, v)] if whole else []
        vertices = [piece.vertex, *beneath]
        for v in vertices:
            for target in targets_of(graph, v):
                if v == target or target in ancestors(graph, v):
                    on_target = answer.setdefault(graph[target].rank, {})
                    if not has_subtree(graph, v) and v != target:
                        units = piece.units if v == piece.vertex else graph[v].units
                        on_target.setdefault(graph[v].type, set()).update(units)
    return answer


def check_selection(graph, request, answer, claims=None, constraint=None):
    """Whether some match, of any acceptable counts, names exactly `answer` = {rank: {type: ids}} (M1-M6)."""
    return next(matches_naming(graph, request, answer, claims, constraint), None) is not None


def matches_naming(graph, request, answer, claims=None, constraint=None):
    """Yield the matches that name exactly `answer`.

    The search sees only the units that the answer names; what R names of whole subtrees is
    judged on the whole graph.
    """
    seen = dict(graph)
    for name, vertex in graph.items():
        target = next((t for t in ancestors(graph, name)[1:] if is_target(graph, t)), None)
        if target and not has_subtree(graph, name):
            given = answer.get(graph[target].rank, {}).get(vertex.type, set())
            seen[name] = vertex._replace(units=tuple(u for u in vertex.units if u in given))
    search = Search(Graph(seen), constraint, smallest=False)
    wanted = without_empty(answer)
    for pieces in search.matches(request, (claims or Claims()).copy()):
        if without_empty(named(graph, pieces)) == wanted:
            yield pieces


def without_empty(answer):
    return {rank: {kind: set(ids) for kind, ids in kinds.items() if ids} for rank, kinds in answer.items()}
