"""``allocations.jsonl`` as frames: which job held which units, from when to when.

A record is ``{"id": job, "event": "alloc" | "release", "time": t, "R": {…}}`` with an RFC 20
R; the release shards of a job add up to its alloc.  Texts of ranks and ids repeat
often, so each distinct one is parsed once.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Any

import duckdb
import numpy as np
import numpy.typing as npt
import pandas as pd

from simsched.errors import RunError, SimschedError, first_line
from simsched.files import glob_free
from simsched.formats.rfc.hostlist import Hostlist
from simsched.formats.rfc.idset import Idset
from simsched.report.columns import ALLOCATIONS

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

#: most rows that `held_pools` makes; a run of many-node jobs has one row per job and node
MAX_ROWS = 20_000_000

_READ = """
with record as (
    select row_number() over () as record, id, event, time, R.execution as x
    from read_json(?, format = 'newline_delimited', maximum_object_size = 268435456, columns = {
        id: 'VARCHAR', event: 'VARCHAR', time: 'DOUBLE',
        R: 'STRUCT(execution STRUCT(R_lite STRUCT(rank VARCHAR, children MAP(VARCHAR, VARCHAR))[],
                                    nodelist VARCHAR[]))'})
    where ? or id in (select id from wanted)
)
-- each alloc of a job opens its next attempt; the releases up to the next alloc belong to it
select record, id, event, time, x.nodelist as nodelist,
       count(*) filter (event = 'alloc') over (partition by id order by record) - 1 as attempt,
       unnest(coalesce(x.R_lite, [null]), recursive := false) as entry
from record
"""

_ENTRIES = f"""
select record, id, event, time, attempt, array_to_string(nodelist, ',') as hosts, entry.rank as ranks,
       unnest(if(cardinality(entry.children) > 0, map_keys(entry.children), ['node'])) as type,
       unnest(if(cardinality(entry.children) > 0, map_values(entry.children), [''])) as ids
from ({_READ})
"""  # noqa: S608 - a constant


def no_shards() -> pd.DataFrame:
    """Return the frame of a run without allocations: the columns of `read_shards` and no row."""
    kinds = {"record": "int64", "id": "str", "event": "category", "time": "float64", "attempt": "int64"}
    texts = dict.fromkeys(["hosts", "ranks", "type", "ids"], "category")
    return pd.DataFrame({name: pd.Series([], dtype=kind) for name, kind in {**kinds, **texts}.items()})


def read_shards(file: Path, jobs: Sequence[str] | None = None) -> pd.DataFrame:
    """Read the records, one row for each R_lite entry and child type; of these `jobs` (ids) alone, if given.

    Columns: record (its line), id, event, time (s), attempt (0; a requeued job has more), hosts (of the
    whole record), ranks, type (``node`` where an entry has no children) and ids.

    Raises
    ------
    RunError : the file is not JSON Lines of such records.
    """
    with duckdb.connect() as con:
        try:
            con.register("wanted", pd.DataFrame({"id": pd.Series(list(jobs or ()), dtype="object")}))
            frame = con.execute(_ENTRIES, [glob_free(file), jobs is None]).df()
        except (duckdb.Error, ValueError) as error:  # ValueError: a message that is not UTF-8
            raise RunError(
                f"cannot be read: {first_line(error)}", where=str(file), expected="one R per line"
            ) from None
    if frame.empty:
        return no_shards()
    needed = {"id": "id", "event": "event", "time": "time", "ranks": "R"}
    empty = frame[[*needed]].isna().to_numpy()
    if empty.any():
        row = int(empty.any(axis=1).argmax())
        place = f":{frame['record'].iloc[row]}" if jobs is None else ""
        lacking = ", ".join(name for name, lacks in zip(needed.values(), empty[row], strict=True) if lacks)
        raise RunError(f"the record lacks {lacking}", where=f"{file}{place}")
    texts = {c: frame[c].astype("category") for c in ("event", "hosts", "ranks", "type", "ids")}
    return frame.assign(**texts).sort_values("record", kind="stable", ignore_index=True)


@lru_cache(maxsize=200_000)
def idset_of(text: str) -> Idset:
    """Return the idset of a text, parsed once; RunError if it is not an idset."""
    try:
        return Idset.parse(text)
    except SimschedError as error:
        raise RunError(error.message, where="allocations.jsonl", expected=error.expected) from None


def ids_of(text: str) -> npt.NDArray[np.int64]:
    """Return the ids of an idset text, expanded and ascending; RunError beyond `MAX_ROWS` of them."""
    if len(idset_of(text)) > MAX_ROWS:
        raise RunError(f"{text[:40]!r} is a set of more than {MAX_ROWS:,} ids", where="allocations.jsonl")
    parts = [np.arange(low, high + 1) for low, high in idset_of(text).ranges]
    return np.concatenate(parts) if parts else np.zeros(0, dtype=np.int64)


def held_pools(shards: pd.DataFrame) -> pd.DataFrame:
    """Return one row per job, attempt, target and resource type, with times of alloc and release.

    A shard that was released early has its own time of release.  NaN: never released.
    """
    if shards.empty:
        return pd.DataFrame({c.name: [] for c in ALLOCATIONS})
    is_alloc = (shards["event"] == "alloc").to_numpy()
    hosts = hosts_by_rank(shards)
    given = _by_rank(shards[is_alloc]).rename(columns={"time": "alloc"})
    back = _by_rank(shards[~is_alloc]).rename(columns={"time": "release"})
    keys = ["id", "attempt", "rank", "type"]
    # the pools of a rank may come back in several shards: the last one ends the row
    last = back.groupby(keys, observed=True, sort=False)["release"].max()
    table = given.merge(last.reset_index(), on=keys, how="left")
    table["host"] = table["rank"].map(hosts).astype("category")
    return table[[c.name for c in ALLOCATIONS]]


def _by_rank(shards: pd.DataFrame) -> pd.DataFrame:
    """Repeat each row for each of its ranks."""
    codes = shards["ranks"].cat.codes.to_numpy()
    lengths = np.asarray([len(idset_of(t)) for t in shards["ranks"].cat.categories], dtype=np.int64)[codes]
    if lengths.astype(np.float64).sum() > MAX_ROWS:  # as floats: a sum of integers could overflow
        raise RunError(f"more than {MAX_ROWS:,} rows", where="allocations.jsonl", expected="a smaller run")
    ranks = [ids_of(t) for t in shards["ranks"].cat.categories]
    rows = np.repeat(np.arange(len(shards)), lengths)
    units = np.asarray([max(len(idset_of(t)), 1) for t in shards["ids"].cat.categories], dtype=np.int64)
    return pd.DataFrame(
        {
            "id": shards["id"].to_numpy()[rows],
            "attempt": shards["attempt"].to_numpy()[rows],
            "rank": np.concatenate([ranks[c] for c in codes]) if len(codes) else np.zeros(0, dtype=np.int64),
            "type": shards["type"].array[rows],
            "units": units[shards["ids"].cat.codes.to_numpy()][rows],
            "ids": shards["ids"].array[rows],
            "time": shards["time"].to_numpy()[rows],
        }
    )


def hosts_by_rank(shards: pd.DataFrame) -> dict[int, str]:
    """Return the host name of each allocated rank; the nodelist of R follows its sorted ranks (RFC 20)."""
    names: dict[int, str] = {}
    records = shards[["record", "hosts", "ranks"]].drop_duplicates(["record", "ranks"])
    for hosts, group in _distinct_records(records):
        ranks = np.unique(np.concatenate([ids_of(text) for text in group])).tolist()
        if all(rank in names for rank in ranks):
            continue  # hostlists are expanded only for ranks that are still unknown
        found = _hosts(hosts)
        if len(found) == len(ranks):  # otherwise the record is damaged, and its hosts are unknown
            names.update(zip(ranks, found.expand(), strict=True))
    return names


def _distinct_records(records: pd.DataFrame) -> list[tuple[str, tuple[str, ...]]]:
    grouped: dict[tuple[str, tuple[str, ...]], None] = {}
    single = ~records["record"].duplicated(keep=False)
    pairs = records[single].drop_duplicates(["hosts", "ranks"])
    for hosts, ranks in zip(pairs["hosts"], pairs["ranks"], strict=True):
        grouped[hosts, (ranks,)] = None
    for _, group in records[~single].groupby("record", sort=False):
        grouped[group["hosts"].iloc[0], tuple(group["ranks"])] = None
    return list(grouped)


@lru_cache(maxsize=1024)
def _hosts(text: Any) -> Hostlist:
    try:
        return Hostlist.parse(text) if isinstance(text, str) else Hostlist()
    except SimschedError as error:
        raise RunError(error.message, where="allocations.jsonl", expected=error.expected) from None
