"""Placements on rows: the copies that another request loses are those that are counted after the claim."""

from __future__ import annotations

import random

import numpy as np
import pytest

from simsched.match.policies.policy import find_policy
from simsched.match.requests.compile import compile_request
from simsched.match.search.count_table import CountTable, counted_request
from simsched.match.search.placements import FEW
from simsched.match.search.select import select
from simsched.match.state.availability import Availability
from tests.schedule.test_mixed_sites import drawn_cluster, drawn_specs


def drawn_table(seed, folder):
    """Return a state with some claims, its table, and requests with their counts."""
    rng = random.Random(seed)
    index = drawn_cluster(rng, folder).index
    requests = [compile_request(spec, index) for spec, _ in drawn_specs(rng)]
    counted = [(request, each) for request in requests if (each := counted_request(request)) is not None]
    state = Availability(index)
    table = state.table = CountTable(state, [each.content for _, each in counted])
    for _ in range(rng.randint(0, 12)):
        selection = select(rng.choice(requests), state)
        if selection is not None:
            state.claim(selection)
    table.follow()
    return state, table, [pair for pair in counted if table.number_of(pair[1].content) is not None]


def fits_now(table, counted):
    number = table.number_of(counted.content)
    total, some = table.sums_of(number)
    return (total if counted.copies else some) >= counted.amount


def after(rows, change):
    found = rows.copy()
    np.subtract.at(found.reshape(-1), change.places, change.amounts)
    return found


@pytest.mark.parametrize("seed", range(40))
@pytest.mark.parametrize("policy", ["first", "hinode"])
def test_lost_copies_are_those_that_are_counted_after_the_claim(tmp_path, seed, policy):
    _, table, counted = drawn_table(seed, tmp_path)
    chosen = find_policy(policy)
    for _, each in counted:
        spot = table.spot(each, chosen)
        placed = table.placed_now(spot) if spot is not None and fits_now(table, each) else None
        if placed is None or len(placed.targets) > FEW:
            continue
        rows = table.rows_now()
        rest = after(rows, placed.change(rows))
        for _, other in counted:
            number = table.number_of(other.content)
            before, later = table.copies_in(number, rows), table.copies_in(number, rest)
            lost = placed.lost(table.demands[number], before, rows, rows)
            assert lost == (int((before - later).sum()), int((before > 0).sum() - (later > 0).sum()))


@pytest.mark.parametrize("seed", range(40))
def test_a_placement_changes_the_rows_as_its_selection_does(tmp_path, seed):
    state, table, counted = drawn_table(seed, tmp_path)
    for request, each in counted:
        spot = table.spot(each, find_policy("first"))
        placed = table.placed_now(spot) if spot is not None and fits_now(table, each) else None
        selection = select(request, state)
        if placed is None or selection is None:
            continue
        change = table.change(selection)
        assert change is not None
        rows = table.rows_now()
        assert (after(rows, placed.change(rows)) == after(rows, change)).all()


@pytest.mark.parametrize("seed", range(40))
def test_the_rows_of_now_count_as_the_table_does(tmp_path, seed):
    _, table, counted = drawn_table(seed, tmp_path)
    rows = table.rows_now()
    for _, each in counted:
        number = table.number_of(each.content)
        assert (table.copies_in(number, rows) == table.fits[number]).all()
        assert table.fits[number].max() <= table.most_on_a_target[number]


@pytest.mark.parametrize("seed", range(20))
def test_counts_do_not_grow_unless_something_is_released(tmp_path, seed):
    state, table, counted = drawn_table(seed, tmp_path)
    claims = []
    for request, _ in counted:
        selection = select(request, state)
        if selection is not None:
            table.follow()
            before = table.joined().copy()
            state.claim(selection)
            claims.append(selection)
            assert table.pending
            assert not table.grew
            table.follow()
            assert (table.joined() <= before).all()
    for selection in claims:
        state.release(selection)
        assert table.grew
