"""EASY backfilling in the order of Slurm's multifactor priority, computed from scratch at each pass.

It is the oracle of ``tests/simulation/test_priorities_against_naive.py`` and imports nothing of simsched.
It is written from slurm.conf(5) and Slurm's pages on multifactor priority, fair tree and classic fair
share: usage is an integral over all spans in which jobs ran, and the tree is walked by recursion.

The machine is flat: processors, one node for each.
"""

from __future__ import annotations

import gzip
import math
from dataclasses import dataclass, field
from functools import cached_property
from typing import NamedTuple

import numpy as np


class Job(NamedTuple):
    id: int
    submit: float
    runtime: float
    requested: float
    procs: int
    user: str
    account: str

    @property
    def actual(self):
        return min(self.runtime, self.requested)


@dataclass(frozen=True)
class Rules:
    """Slurm's lines; `accounts`: account → (parent, shares), `users`: (account, user) → shares."""

    age: int = 0
    fair_share: int = 0
    size: int = 0
    favour_small: bool = False
    max_age: float = 7 * 86400
    half_life: float = 7 * 86400
    period: float = 300
    fair_tree: bool = True
    accounts: dict = field(default_factory=dict)
    users: dict = field(default_factory=dict)

    @cached_property
    def children(self):
        """Account → the names directly below it."""
        below = {}
        for name, (parent, _) in self.accounts.items():
            below.setdefault(parent, []).append(name)
        for pair in self.users:
            below.setdefault(pair[0], []).append(pair)
        return below


def read_swf(path, limit):
    """The first jobs of a trace that ran; their account is one of three, by the number of the user."""
    jobs = []
    with gzip.open(path, "rt", encoding="latin-1") as lines:
        for line in lines:
            fields = line.split(";")[0].split()
            if not fields:
                continue
            procs = int(fields[7]) if int(fields[7]) > 0 else int(fields[4])
            runtime, requested, status = int(fields[3]), int(fields[8]), int(fields[10])
            if procs <= 0 or runtime < 0 or (status == 5 and runtime <= 0) or status in (2, 3, 4):
                continue
            user = fields[11]
            limit_of_job = requested if requested > 0 else math.inf
            account = f"account{int(user) % 3}"
            jobs.append(Job(int(fields[0]), int(fields[1]), runtime, limit_of_job, procs, user, account))
            if len(jobs) == limit:
                break
    return jobs


# --- usage -------------------------------------------------------------------------------------------


class Usage:
    """All spans in which jobs ran or run, and the usage of each user at any time."""

    def __init__(self, rules, names, most):
        self.rules = rules
        self.number = {name: at for at, name in enumerate(names)}
        self.spans = np.empty((4, most))  # begin, end, rate, user
        self.count = 0

    def begin(self, now, rate, name):
        """Begin a span without an end; return its place."""
        self.spans[:, self.count] = now, math.inf, rate, self.number[name]
        self.count += 1
        return self.count - 1

    def end(self, place, now):
        self.spans[1, place] = now

    def at(self, time):
        """(account, user) → decayed usage: the integral of rate × 2^(-age / half-life) over all spans."""
        begin, end, rate, user = self.spans[:, : self.count]
        end = np.minimum(end, time)
        ran = begin < end
        begin, end, rate, user = begin[ran], end[ran], rate[ran], user[ran]
        if self.rules.half_life == math.inf:
            amount = rate * (end - begin)
        else:
            per = math.log(2) / self.rules.half_life
            # the difference of two exponentials, without the loss of digits of short spans
            amount = rate / per * np.exp(-per * (time - end)) * -np.expm1(-per * (end - begin))
        sums = np.bincount(user.astype(int), weights=amount, minlength=len(self.number))
        return {name: sums[at] for name, at in self.number.items()}


# --- fair share --------------------------------------------------------------------------------------


def children_of(rules, account):
    """The names directly below an account: texts are accounts, pairs are users."""
    return rules.children.get(account, [])


def shares_of(rules, name):
    return rules.users[name] if isinstance(name, tuple) else rules.accounts[name][1]


def totals_of(rules, used):
    """name → usage, of users and of accounts with all below them."""
    totals = dict(used)

    def total(name):
        if name not in totals:
            totals[name] = sum(total(child) for child in children_of(rules, name))
        return totals[name]

    for account in ["root", *rules.accounts]:
        total(account)
    return totals


def has_users(rules, name):
    return isinstance(name, tuple) or any(has_users(rules, child) for child in children_of(rules, name))


def level_fair_share(rules, totals, parent, name, together):
    """The share of a name among its siblings, who have some shares together, over its part of their usage."""
    above = totals[parent]
    share = shares_of(rules, name) / together if together else 0.0
    part = totals[name] / above if above else 0.0
    if share == 0:
        return 0.0
    return share / part if part else math.inf


def fair_tree(rules, used):
    """(account, user) → rank / number of users."""
    totals, levels = totals_of(rules, used), {}
    for parent in ["root", *rules.accounts]:
        together = sum(shares_of(rules, child) for child in children_of(rules, parent))
        for child in children_of(rules, parent):
            levels[child] = level_fair_share(rules, totals, parent, child, together)
    factors = {}
    state = {"rank": len(rules.users), "next": len(rules.users)}

    def same(a, b):
        return a == b or (math.isfinite(a) and math.isfinite(b) and math.isclose(a, b, rel_tol=1e-9))

    def visit(names, tied):
        # an account without users has no highest user, with which another one could tie
        names = [name for name in names if has_users(rules, name)]
        ordered = sorted(names, key=lambda name: (-levels[name], isinstance(name, str)))
        before, at = None, 0
        while at < len(ordered):
            name = ordered[at]
            equal = tied if at == 0 else same(before, levels[name])
            before = levels[name]
            if isinstance(name, tuple):
                if not equal:
                    state["rank"] = state["next"]
                factors[name] = state["rank"] / len(rules.users)
                state["next"] -= 1
                at += 1
                continue
            merged = []
            while at < len(ordered) and isinstance(ordered[at], str) and same(levels[ordered[at]], before):
                merged += children_of(rules, ordered[at])
                at += 1
            visit(merged, equal)

    visit(children_of(rules, "root"), False)
    return factors


def classic(rules, used):
    """(account, user) → 2^(-effective usage / normalised shares)."""
    totals = totals_of(rules, used)
    everything = totals["root"]
    factors = {}

    def visit(parent, shares, effective):
        together = sum(shares_of(rules, child) for child in children_of(rules, parent))
        for child in children_of(rules, parent):
            part = shares_of(rules, child) / together if together else 0.0
            actual = totals[child] / everything if everything else 0.0
            mine = actual if parent == "root" else actual + (effective - actual) * part
            if isinstance(child, tuple):
                factors[child] = 2 ** -(mine / (shares * part)) if shares * part else 0.0
            else:
                visit(child, shares * part, mine)

    visit("root", 1.0, 1.0)
    return factors


# --- priority ----------------------------------------------------------------------------------------


def priority(rules, job, time, procs, factors):
    """The whole number that Slurm gives a job at a time at which priorities are computed."""
    age = min(1.0, max(0.0, time - job.submit) / rules.max_age)
    if rules.favour_small:
        size = ((procs - 1) / procs + (procs - job.procs) / procs) / 2
    else:
        size = (1 / procs + job.procs / procs) / 2
    size = min(1.0, max(0.0, size))
    share = factors[job.account, job.user] if rules.fair_share else 0.0
    total = rules.age * age + rules.fair_share * share + rules.size * size
    return max(1, math.floor(total + 1e-6))


def easy(now, queue, running, idle):
    """The jobs that start now: those at the head that fit, then those that do not delay the head."""
    starts, queue = [], list(queue)
    held = [(max(now, start + job.requested), job.procs) for job, start in running]

    def start(job):
        nonlocal idle
        idle -= job.procs
        held.append((now + job.requested, job.procs))
        starts.append(job)

    while queue and queue[0].procs <= idle:
        start(queue.pop(0))
    if not queue:
        return starts
    head, available = queue.pop(0), idle
    for end, procs in sorted(held):
        available += procs
        if available >= head.procs:
            shadow = end
            break
    extra = idle + sum(procs for end, procs in held if end <= shadow) - head.procs
    for job in queue:
        in_time = now + job.requested <= shadow
        if job.procs <= idle and (in_time or job.procs <= extra):
            start(job)
            extra -= 0 if in_time else job.procs
    return starts


def schedule(jobs, procs, rules):
    """Return {job id: start}; jobs larger than the machine are left out."""
    usage = Usage(rules, rules.users, len(jobs))
    coming = sorted((job for job in jobs if job.procs <= procs), key=lambda job: job.submit)[::-1]
    place = {job.id: at for at, job in enumerate(reversed(coming))}
    queue, running, row, starts, known = [], [], {}, {}, {}
    idle = procs
    while coming or running:
        now = min([start + job.actual for job, start in running] + [job.submit for job in coming[-1:]])
        for job, start in [(job, start) for job, start in running if start + job.actual <= now]:
            running.remove((job, start))
            usage.end(row.pop(job.id), now)
            idle += job.procs
        while coming and coming[-1].submit <= now:
            queue.append(coming.pop())
        time = math.floor(now / rules.period) * rules.period if rules.period else now
        if rules.fair_share and queue and time not in known:
            known = {time: (fair_tree if rules.fair_tree else classic)(rules, usage.at(time))}
        value = {job.id: priority(rules, job, time, procs, known.get(time)) for job in queue}
        queue.sort(key=lambda job: (-value[job.id], job.submit, place[job.id]))
        for job in easy(now, queue, running, idle):
            queue.remove(job)
            running.append((job, now))
            row[job.id] = usage.begin(now, job.procs, (job.account, job.user))
            starts[job.id] = now
            idle -= job.procs
    assert not queue
    return starts
