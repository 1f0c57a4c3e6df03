"""How often do the intervals that simsched prints contain the true value?  Replicated months of a model."""

from __future__ import annotations

import json
from dataclasses import dataclass

import numpy as np

import simsched as ss
from analysis.studies.common import BLUE, GREY, ORANGE, QUICK, Page, key, new_figure, scratch, simsched, tidy
from analysis.studies.estimates import with_limits
from simsched import human
from simsched.report.compare import compare, paired
from simsched.report.metrics.intervals import mean_interval, periods_of
from simsched.report.metrics.metrics import measured
from simsched.study.stats import interval, prediction

DAY = 86400.0
WARM_UP = 5  # days that are simulated and left out
SAMPLES = 200 if QUICK else 4000  # samples of seeds
RESAMPLES = 1000
SEEDS = (2, 3, 5, 10, 20)
DIFFERENCES = {"FCFS less EASY": ("EASY", "FCFS"), "exact less EASY": ("EASY", "exact")}
NAMES = {"wait": "mean wait", "turnaround": "turnaround", "slowdown": "bounded slowdown"}
FIGURES = ("wait", "turnaround", "slowdown")


@dataclass(frozen=True)
class Setting:
    """A machine of one-core nodes and the model of its jobs; `first` is the seed of the first replicate."""

    title: str
    nodes: int
    largest: int
    model: str
    load: float
    factor: float
    days: int
    replicates: int
    first: int

    def workload(self, folder, number: int):
        """The jobs of a replicate."""
        file = folder / "jobs.swf"
        simsched("workload", "make", "lublin", "--seed", str(self.first + number), "-o", str(file),
                 "--machine", str(self.largest), "--capacity", str(self.nodes), "--type", self.model,
                 "--load", str(self.load), "--span", f"{self.days + WARM_UP}d",
                 "--run-time-factor", str(self.factor), "--estimates", "2d")  # fmt: skip
        return ss.load_workload(str(file))


SETTINGS = (
    Setting("four weeks, 16 nodes", 16, 8, "typeless", 0.6, 0.8, 28, 160, 50_000),
    Setting("four weeks, 64 nodes, two classes", 64, 32, "both", 0.6, 2.0, 28, 80, 60_000),
    Setting("four weeks, 16 nodes, long jobs", 16, 8, "typeless", 0.65, 2.0, 28, 80, 70_000),
    Setting("sixteen weeks, 16 nodes", 16, 8, "typeless", 0.6, 0.8, 112, 30, 80_000),
)


def main() -> None:
    """Run the study and write its page."""
    page = Page("coverage", "How often do the intervals contain the true value?")
    page.section(
        "Question",
        """simsched prints intervals that should contain the true mean in 95 of 100 cases: intervals of
        the difference between two runs, job by job (`simsched report A B`), and of means and differences
        over seeds (studies, `simsched size`). The waits of jobs depend on each other, busy days follow
        busy days, and a few busy days determine most of a mean. How often do the intervals contain the
        true value?""",
    )
    page.section(
        "Method",
        f"""Each setting is simulated many times, with different jobs by the Lublin-Feitelson model and
        limits by Tsafrir's model. Every replicate runs under FCFS, under EASY, and under EASY with exact
        estimates; its first {WARM_UP} days are excluded. The true mean is the mean over the jobs of all
        replicates. Coverage is the share of replicates whose interval contains it. The last column is the
        share of intervals that contain 0, so that an existing difference is not shown.""",
        """The method was chosen with replicates of the first and the third setting, with other seeds. The
        other two settings were not used for this choice.""",
    )
    found = [replicated(setting) for setting in SETTINGS]
    within_a_run(page, found)
    over_seeds(page, found[0])
    page.write()


def replicated(setting: Setting) -> list[dict]:
    """What each replicate of a setting gives: estimates and intervals, by what they are of."""
    replicates = 4 if QUICK else setting.replicates
    made = []
    with scratch() as folder:
        cluster = ss.load_cluster(flat(folder, setting.nodes))
        for number in range(replicates):
            jobs = setting.workload(folder, number)
            runs = {
                "FCFS": run(cluster, jobs, "fcfs"),
                "EASY": run(cluster, jobs, "easy"),
                "exact": run(cluster, with_limits(jobs, lambda job: job.runtime or 1), "easy"),
            }
            made.append(intervals(runs))
    return made


def flat(folder, nodes: int) -> str:
    """Write a cluster of one-core nodes as R."""
    lite = [{"rank": f"0-{nodes - 1}", "children": {"core": "0"}}]
    file = folder / "flat.json"
    document = {"version": 1, "execution": {"R_lite": lite, "nodelist": [f"node[0-{nodes - 1}]"]}}
    file.write_text(json.dumps(document), encoding="utf-8")
    return str(file)


def run(cluster, jobs, policy: str):
    """The jobs of a run that were submitted after the warm-up."""
    table = ss.simulate(cluster, jobs, queue_policy=policy, allocations=False).jobs
    return table[table["submit"] >= WARM_UP * DAY].reset_index(drop=True)


def intervals(runs) -> dict:
    """(what, figure) → the interval that the program prints, and that of a bootstrap over days."""
    found = {}
    for what, (a, b) in DIFFERENCES.items():
        both = compare(runs[a], runs[b])
        for figure in FIGURES:
            found[what, figure] = getattr(both, figure)
        pairs = paired(runs[a], runs[b])
        found[what, "days"] = of_days(pairs["wait_difference"].to_numpy(), pairs["submit"].to_numpy())
        found[what, "jobs"] = len(pairs)
    easy = measured(runs["EASY"])
    found["EASY", "wait"] = mean_interval(easy["wait"], periods_of(easy["submit"]))
    found["EASY", "jobs"] = len(easy)
    return found


def of_days(values, submit):
    """The plain percentile interval of a bootstrap over days, for comparison."""
    day = ((submit - submit.min()) // DAY).astype(int)
    sums, sizes = np.bincount(day, values), np.bincount(day)
    drawn = np.random.default_rng(0).integers(0, len(sums), (RESAMPLES, len(sums)))
    return tuple(np.percentile(sums[drawn].sum(axis=1) / sizes[drawn].sum(axis=1), [2.5, 97.5]))


def true_mean(made: list[dict], what: str, figure: str) -> float:
    """The mean over the jobs of all replicates."""
    weights = [one[what, "jobs"] for one in made]
    return float(np.average([one[what, figure].estimate for one in made], weights=weights))


def within_a_run(page: Page, found: list[list[dict]]) -> None:
    """The intervals of one comparison: table and picture."""
    rows, shown = [], []
    for setting, made in zip(SETTINGS, found, strict=True):
        number = str(len(made))
        for what in DIFFERENCES:
            for figure in FIGURES:
                held, zero = held_by(made, what, figure)
                row = [setting.title, f"{what}: {NAMES[figure]}", "95 %", human.share(held), number]
                rows.append([*row, human.share(zero)])
            truth = true_mean(made, what, "wait")
            old = float(np.mean([one[what, "days"][0] <= truth <= one[what, "days"][1] for one in made]))
            row = [setting.title, f"{what}: mean wait, bootstrap over days", "95 %", human.share(old), number]
            rows.append([*row, ""])
            shown.append((f"{setting.title}\n{what}", held_by(made, what, "wait")[0], old))
        held, _ = held_by(made, "EASY", "wait")
        rows.append([setting.title, "EASY: mean wait of one run", "95 %", human.share(held), number, ""])
    page.section(
        "Result",
        """The interval of `simsched report A B` is Student's interval over blocks of time, corrected for
        skewness (see [reports](../../docs/reports.md)). The plain percentile bootstrap over days is shown
        for comparison; no command prints it.""",
    )
    page.table(["setting", "interval", "nominal", "measured coverage", "replicates", "holds 0"], rows)
    all_settings(page, found)
    page.figure(
        picture(shown), "runs", "Measured coverage of 95 % intervals of the mean difference in waits."
    )


def all_settings(page: Page, found: list[list[dict]]) -> None:
    """The intervals of all settings together: the share of all replicates."""
    kinds = [(what, figure, f"{what}: {NAMES[figure]}") for what in DIFFERENCES for figure in FIGURES]
    kinds.append(("EASY", "wait", "EASY: mean wait of one run"))
    number = [len(made) for made in found]
    rows, apart = [], []
    for what, figure, name in kinds:
        share = float(np.average([held_by(made, what, figure)[0] for made in found], weights=number))
        apart.append(abs(share - 0.95))
        rows.append([name, "95 %", human.share(share), str(sum(number))])
    page.parts.append(
        f"Over all settings together the coverage is within {100 * max(apart):.1f} points of the claimed one:"
    )
    page.table(["interval", "nominal", "measured coverage", "replicates"], rows)


def held_by(made: list[dict], what: str, figure: str) -> tuple[float, float]:
    """The shares of replicates whose interval holds the true mean, and 0."""
    truth = true_mean(made, what, figure)
    ends = [one[what, figure] for one in made]
    return float(np.mean([end.holds(truth) for end in ends])), float(np.mean([end.holds(0) for end in ends]))


def picture(shown):
    """Coverage of the printed interval and of the plain bootstrap over days."""
    figure = new_figure(8, 4)
    axes = figure.add_subplot()
    place = np.arange(len(shown))
    axes.barh(place - 0.2, [100 * s[1] for s in shown], 0.38, color=BLUE, label="as printed")
    axes.barh(place + 0.2, [100 * s[2] for s in shown], 0.38, color=ORANGE, label="plain bootstrap over days")
    axes.axvline(95, color=GREY, ls="--")
    axes.set_yticks(place, [s[0] for s in shown], fontsize=8)
    axes.invert_yaxis()
    axes.set_xlim(40, 100)
    tidy(axes, "measured coverage (%)", "")
    key(axes)
    return figure


def over_seeds(page: Page, made: list[dict]) -> None:
    """The intervals over seeds: samples of the replicates of the first setting."""
    rng = np.random.default_rng(1)
    values = {
        "mean wait under EASY": np.array([one["EASY", "wait"].estimate for one in made]),
        "FCFS less EASY, seed by seed": np.array([one["FCFS less EASY", "wait"].estimate for one in made]),
        "exact less EASY, seed by seed": np.array([one["exact less EASY", "wait"].estimate for one in made]),
    }
    rows = []
    for name, known in values.items():
        for seeds in (s for s in SEEDS if s < len(known) / 4):
            held, next_held = [], []
            for _ in range(SAMPLES):
                order = rng.permutation(len(known))
                drawn, further = known[order[:seeds]], known[order[seeds]]
                held.append(interval(drawn, resamples=RESAMPLES, rng=rng).holds(known.mean()))
                next_held.append(prediction(drawn).holds(further))
            rows.append([name, str(seeds), "95 %", human.share(float(np.mean(held))),
                         human.share(float(np.mean(next_held))), f"{SAMPLES:,}"])  # fmt: skip
    page.section(
        "Over seeds",
        f"""Seeds are independent, and so are the values over which the interval is computed (see
        [sizing](../../docs/sizing.md)). Here a seed is a replicate of the first setting
        ({SETTINGS[0].title}); {SAMPLES:,} samples of each number of seeds were drawn from the {len(made)}
        replicates. With the interval of a further seed, `size` decides whether a target is within noise.""",
    )
    head = [
        "mean of",
        "seeds",
        "nominal",
        "measured coverage",
        "a further seed is within its interval",
        "samples",
    ]
    page.table(head, rows)


if __name__ == "__main__":
    main()
