"""The cache of inputs of this process: clusters and workloads, each read and compiled once.

Keys are digests of the content and of the edits or transforms applied to it, so that every worker has
the same cluster and the same jobs for a task.  The cache is bounded by numbers of vertices and jobs; the
least recently used inputs are dropped first.
"""

from __future__ import annotations

import atexit
import shutil
import tempfile
import threading
from collections import Counter, OrderedDict
from dataclasses import replace
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from simsched.errors import RunError, SimschedError
from simsched.study.spec.edits import apply_edits, edit_recipe, recipe_edits
from simsched.study.spec.run_task import MODEL, TaskInput, canonical_json, digest_of
from simsched.workload.transforms.steps import apply_steps, draws

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    import numpy as np

    from simsched.graph.cluster import Cluster
    from simsched.study.spec.run_task import RunTask
    from simsched.workload.job import Workload

T = TypeVar("T")
#: bounds of each worker, about 300 MB each; a single larger input is kept, too
MAX_VERTICES = 300_000
MAX_JOBS = 1_000_000


class LruCache(Generic[T]):
    """Values by key; the least recently used are dropped once the sizes add up to more than `limit`."""

    def __init__(self, limit: int, size: Callable[[T], int]) -> None:
        self.limit = limit
        self._size = size
        self._kept: OrderedDict[str, T] = OrderedDict()

    def get(self, key: str, make: Callable[[], T]) -> T:
        """Return the value of a key; it is made at the first call."""
        found = self._kept.get(key)
        if found is not None:
            self._kept.move_to_end(key)
            return found
        made = self._kept[key] = make()
        while len(self._kept) > 1 and sum(map(self._size, self._kept.values())) > self.limit:
            self._kept.popitem(last=False)
        return made

    def __len__(self) -> int:
        return len(self._kept)

    def clear(self) -> None:
        """Drop all values."""
        self._kept.clear()


class InputCache:
    """The inputs of one process, from local files or from contents that were sent."""

    def __init__(self, vertices: int = MAX_VERTICES, jobs: int = MAX_JOBS) -> None:
        self.clusters: LruCache[Cluster] = LruCache(vertices, lambda cluster: len(cluster.graph))
        self.workloads: LruCache[Workload] = LruCache(jobs, len)
        self._sent: dict[str, bytes] = {}
        self._users: Counter[str] = Counter()
        self._sending = threading.Lock()
        self._folder: Path | None = None
        self._patterns: dict[str, bool] = {}
        # Reentrant: `perform` holds it for a whole run, which takes its cluster and workload from here.
        self.lock = threading.RLock()

    # --- contents

    def send(self, contents: Mapping[str, bytes]) -> None:
        """Store contents by digest, for a worker that does not share files with the client."""
        with self._sending:
            self._sent.update(contents)
            self._users.update(contents.keys())

    def drop(self, contents: Iterable[str]) -> None:
        """Drop contents that were sent, unless another study sent them as well."""
        with self._sending:
            digests = list(contents)
            self._users.subtract(digests)
            for digest in digests:
                if self._users[digest] <= 0:
                    self._sent.pop(digest, None)

    def path_of(self, source: TaskInput) -> Path:
        """Return a file with the content of a source: its own, a bundled one, or a temporary copy.

        Raises
        ------
        RunError
            if there is no such file here, or it has changed since the task was made.
        """
        from simsched.bundled import bundled

        if source.text is not None:
            return self._written(source, source.text.encode())
        known = [bundled(room).get(source.name) for room in ("clusters", "workloads")]
        places = [Path(source.path)] if source.path else []
        places += [path for path in known if path is not None]
        here = [path for path in places if path.is_file()]
        for path in here:
            if _is_same(source, path):
                return path
        if source.sha256 in self._sent:
            return self._written(source, self._sent[source.sha256])
        why = "has changed since the study was planned" if here else "is not on this machine"
        raise RunError(f"the input {why}", where=source.name)

    def _written(self, source: TaskInput, data: bytes) -> Path:
        if sha256(data).hexdigest() != source.sha256:
            raise RunError(
                "the content that was sent does not have the digest of the input", where=source.name
            )
        if self._folder is None:
            self._folder = Path(tempfile.mkdtemp(prefix="simsched-inputs-"))
            atexit.register(shutil.rmtree, self._folder, ignore_errors=True)
        name = Path(source.path or source.name).name or "input"
        path = self._folder / _key(source.sha256, dict(source.parts))[:20] / name
        files = {path: data}
        files.update((path.parent / part, self._sent[digest]) for part, digest in source.parts.items())
        for file, content in files.items():
            if not file.is_file():
                file.parent.mkdir(parents=True, exist_ok=True)
                file.write_bytes(content)
        return path

    # --- clusters

    def cluster(self, source: TaskInput, edits: tuple[str, ...] = ()) -> Cluster:
        """Return a cluster after its edits."""
        with self.lock:
            key = _key(source.identity(), edits)
            return self.clusters.get(key, lambda: self._cluster(source, edits))

    def _cluster(self, source: TaskInput, edits: tuple[str, ...]) -> Cluster:
        changes, others = recipe_edits(edits)
        if others:
            cluster = apply_edits(self.cluster(source, changes), others)
        else:
            cluster = self._read_cluster(source, changes)
        cluster.source = None  # the record of a run names the input of the task instead
        return cluster

    def _read_cluster(self, source: TaskInput, changes: tuple[str, ...]) -> Cluster:
        """Return a cluster after changes of its recipe, if there are any."""
        from simsched.bundled import plain_name
        from simsched.formats.text.documents import load_document, read_text
        from simsched.graph.build.cluster_files import graph_from_document
        from simsched.graph.cluster import Cluster, load_cluster

        path = self.path_of(source)
        if not changes:
            try:
                return load_cluster(path)
            except SimschedError as error:
                raise _named(error, source, path) from None
        document = load_document(read_text(path), source.name)
        name = str(document.get("name") or plain_name(path)) if isinstance(document, dict) else "cluster"
        edited = edit_recipe(document, changes, source.name)
        return Cluster(graph_from_document(edited, name=name, where=source.name))

    # --- workloads

    def workload(self, task: RunTask) -> Workload:
        """Return the workload of a task after its transforms."""
        with self.lock:
            return self._transformed(task, task.transforms)

    def _transformed(self, task: RunTask, steps: tuple[str, ...]) -> Workload:
        source = task.workload
        # The seed and the cluster are part of the key only if the workload depends on them, so that runs
        # of other seeds and machines share it.
        chance = source.kind == MODEL or any(map(draws, steps))
        hosts = _key(task.cluster.identity(), task.edits) if self._has_patterns(source) else ""
        key = _key(source.identity(), steps, task.seed if chance else None, hosts)

        def make() -> Workload:
            if not steps:
                return self._read_workload(task)
            base = self._transformed(task, ())
            return apply_steps(base, steps, generator(task.seed))

        return self.workloads.get(key, make)

    def _has_patterns(self, source: TaskInput) -> bool:
        """Whether reading a workload needs the cluster, as for the host patterns of SSS Job Objects."""
        if source.kind == MODEL:
            return False
        if source.sha256 not in self._patterns:
            from simsched.workload.load import detect
            from simsched.workload.source import Source

            path = self.path_of(source)
            kind = source.reading.get("as_") or detect(Source.of(path).head(), path.name)
            self._patterns[source.sha256] = kind == "sss"
        return self._patterns[source.sha256]

    def _read_workload(self, task: RunTask) -> Workload:
        from simsched.formats.sss.expressions import Names
        from simsched.workload.load import load_workload

        source = task.workload
        if source.kind == MODEL:
            return draw(source, task.seed)

        def names() -> Names:
            index = self.cluster(task.cluster, task.edits).index
            return Names(tuple(index.hosts), tuple(index.property_rows))

        path = self.path_of(source)
        try:
            workload = load_workload(path, names=names, **dict(source.reading))
        except SimschedError as error:
            raise _named(error, source, path) from None
        return replace(workload, source="")

    def forget(self) -> None:
        """Drop everything but contents that were sent."""
        with self.lock:
            self.clusters.clear()
            self.workloads.clear()


def _is_same(source: TaskInput, path: Path) -> bool:
    """Whether a file and the files that it names have the digests of the input."""
    files = {path: source.sha256}
    files.update((path.parent / part, digest) for part, digest in source.parts.items())
    return all(file.is_file() and digest_of(file) == digest for file, digest in files.items())


def _named(error: SimschedError, source: TaskInput, path: Path) -> SimschedError:
    """Return the error of reading an input from `path` with the user's name of the input."""
    error = error.renamed(str(path), source.name)
    return error if error.where and source.name in error.where else error.at(source.name)


def _key(*parts: Any) -> str:
    return sha256(canonical_json([list(p) if isinstance(p, tuple) else p for p in parts])).hexdigest()


def generator(seed: int) -> np.random.Generator:
    """Return the generator for a seed of a workload, the same as for ``--seed`` of the command line."""
    import numpy as np

    return np.random.default_rng(seed)


def draw(source: TaskInput, seed: int) -> Workload:
    """Return the jobs that a model draws; its text is ``{"lublin": {…}, "map": …}`` or ``{"mix": {…}}``.

    Raises
    ------
    ConfigError
        for an unknown key of a model, or numbers that do not describe a workload.
    """
    from simsched.formats.text.json_text import load_json
    from simsched.workload.mapping import JobMap
    from simsched.workload.models.lublin import LublinWorkload
    from simsched.workload.models.model_files import model_of

    document = load_json(source.text or "", source.name)
    if "mix" in document:
        return model_of(document["mix"], source.name).make(generator(seed))
    model = LublinWorkload.read(document["lublin"], source.name)
    return model.make(generator(seed), JobMap.parse(document.get("map")))


#: the inputs of this process
INPUTS = InputCache()
