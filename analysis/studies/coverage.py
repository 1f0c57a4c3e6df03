"""How often do the intervals that simsched prints contain the true value?  Replicated months of a model."""

from __future__ import annotations

import json
from dataclasses import dataclass

import numpy as np

import simsched as ss
from analysis.studies.common import (
    BLUE,
    GREY,
    ORANGE,
    QUICK,
    Page,
    kept_file,
    key,
    new_figure,
    scratch,
    simsched,
    tidy,
)
from analysis.studies.estimates import with_limits
from simsched import human
from simsched.report.compare import paired
from simsched.report.metrics.intervals import interval_of_periods, periods_of
from simsched.report.metrics.metrics import measured
from simsched.study.stats import interval, prediction

DAY = 86400.0
WARM_UP = 5  # days that are simulated and left out
SAMPLES = 200 if QUICK else 4000  # samples of seeds
RESAMPLES = 1000  # of the bootstrap that is shown for comparison
SEEDS = (2, 3, 5, 10, 20)
DIFFERENCES = {"FCFS less EASY": ("EASY", "FCFS"), "exact less EASY": ("EASY", "exact")}
NAMES = {"wait": "mean wait", "turnaround": "turnaround", "slowdown": "bounded slowdown"}
FIGURES = {"wait": "wait", "turnaround": "turnaround", "slowdown": "bounded_slowdown"}


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
    Setting("four weeks, 16 nodes", 16, 8, "typeless", 0.6, 0.8, 28, 600, 50_120),
    Setting("four weeks, 64 nodes, two classes", 64, 32, "both", 0.6, 2.0, 28, 600, 60_120),
    Setting("four weeks, 16 nodes, long jobs", 16, 8, "typeless", 0.65, 2.0, 28, 600, 70_600),
    Setting("sixteen weeks, 16 nodes", 16, 8, "typeless", 0.6, 0.8, 112, 400, 80_120),
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
        """The method and its constants were chosen with other seeds: with 200 replicates of the first and the
        third setting, then with 120, 120, 600 and 115 of the four settings, and the bound of the skewness
        with about 1,200, 600, 2,000 and 900. None of the replicates below had a part in the choice. After ±
        is the chance of the measurement: 1.96 standard errors of a share of 95 %.""",
        """All replicates of a setting have the same offered load, and each draws its own popular limits, as
        Tsafrir's model does. Real months differ in their load as well.""",
    )
    found = [replicated(setting) for setting in SETTINGS]
    within_a_run(page, found)
    over_seeds(page, found[0])
    page.write()


def replicated(setting: Setting) -> list[dict]:
    """The sums by day of each replicate of a setting; those of an earlier, interrupted study are kept."""
    replicates = 4 if QUICK else setting.replicates
    file = kept_file(f"coverage-{setting.first}.jsonl")
    made = [] if file is None or not file.is_file() else list(map(json.loads, file.open(encoding="utf-8")))
    with scratch() as folder:
        cluster = ss.load_cluster(flat(folder, setting.nodes))
        for number in range(len(made), replicates):
            made.append(sums_of(setting.workload(folder, number), cluster))
            if file is not None:
                with file.open("a", encoding="utf-8") as kept:
                    kept.write(json.dumps(made[-1]) + "\n")
    return made[:replicates]


def sums_of(jobs, cluster) -> dict:
    """The sums by day of the figures of one replicate: of the differences, and of EASY's waits."""
    runs = {
        "FCFS": run(cluster, jobs, "fcfs"),
        "EASY": run(cluster, jobs, "easy"),
        "exact": run(cluster, with_limits(jobs, lambda job: job.runtime or 1), "easy"),
    }
    found = {}
    for what, (a, b) in DIFFERENCES.items():
        pairs = paired(runs[a], runs[b])
        values = {figure: pairs[f"{column}_difference"] for figure, column in FIGURES.items()}
        found[what] = by_day(values, pairs["submit"])
    easy = measured(runs["EASY"])
    found["EASY"] = by_day({"wait": easy["wait"]}, easy["submit"])
    return found


def by_day(values: dict, submit) -> dict:
    """The sum of each figure over the jobs of each day, and the numbers of jobs."""
    day = np.unique(periods_of(submit).to_numpy(), return_inverse=True)[1]
    sums = {figure: np.bincount(day, column).tolist() for figure, column in values.items()}
    return {**sums, "jobs": np.bincount(day).tolist()}


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


def printed(one: dict, what: str, figure: str):
    """The interval that the program prints: `mean_interval` is this function of the sums by day."""
    return interval_of_periods(np.array(one[what][figure]), np.array(one[what]["jobs"]))


def of_days(one: dict, what: str):
    """The plain percentile interval of a bootstrap over days, for comparison."""
    sums, sizes = np.array(one[what]["wait"]), np.array(one[what]["jobs"])
    drawn = np.random.default_rng(0).integers(0, len(sums), (RESAMPLES, len(sums)))
    return tuple(np.percentile(sums[drawn].sum(axis=1) / sizes[drawn].sum(axis=1), [2.5, 97.5]))


def true_mean(made: list[dict], what: str, figure: str) -> float:
    """The mean over the jobs of all replicates."""
    return sum(sum(one[what][figure]) for one in made) / sum(sum(one[what]["jobs"]) for one in made)


def within_a_run(page: Page, found: list[list[dict]]) -> None:
    """The intervals of one comparison: table and picture."""
    rows, shown, shares, alone = [], [], [], []
    for setting, made in zip(SETTINGS, found, strict=True):
        number = str(len(made))
        for what in DIFFERENCES:
            for figure in FIGURES:
                held, zero = held_by(made, what, figure)
                row = [setting.title, f"{what}: {NAMES[figure]}", "95 %", measured_share(held, len(made))]
                rows.append([*row, number, human.share(zero)])
                shares.append(held)
            truth = true_mean(made, what, "wait")
            ends = [of_days(one, what) for one in made]
            old = float(np.mean([low <= truth <= high for low, high in ends]))
            row = [setting.title, f"{what}: mean wait, bootstrap over days", "95 %"]
            rows.append([*row, measured_share(old, len(made)), number, ""])
            shown.append((f"{setting.title}\n{what}", held_by(made, what, "wait")[0], old))
        held, _ = held_by(made, "EASY", "wait")
        row = [setting.title, "EASY: mean wait of one run", "95 %", measured_share(held, len(made))]
        rows.append([*row, number, ""])
        alone.append(held)
    page.section(
        "Result",
        f"""The interval of `simsched report A B` is Student's interval from the slow waves of the days,
        corrected for skewness (see [reports](../../docs/reports.md)). In single settings it contains the true
        difference in {human.share(min(shares))} to {human.share(max(shares))} of the replicates, and the
        interval of the mean wait of one run the true mean in {human.share(min(alone))} to
        {human.share(max(alone))}. The plain percentile bootstrap over days is shown for comparison; no
        command prints it.""",
    )
    page.table(["setting", "interval", "nominal", "measured coverage", "replicates", "holds 0"], rows)
    all_settings(page, found)
    page.figure(
        picture(shown), "runs", "Measured coverage of 95 % intervals of the mean difference in waits."
    )


def measured_share(share: float, count: int) -> str:
    """A share of replicates, with the chance of its measurement if the claim of 95 % is true."""
    return f"{100 * share:.1f} % ± {196 * (0.95 * 0.05 / count) ** 0.5:.1f}"


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
    ends = [printed(one, what, figure) for one in made]
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
        "mean wait under EASY": means(made, "EASY"),
        "FCFS less EASY, seed by seed": means(made, "FCFS less EASY"),
        "exact less EASY, seed by seed": means(made, "exact less EASY"),
    }
    rows = []
    for name, known in values.items():
        for seeds in (s for s in SEEDS if s < len(known) / 4):
            held, next_held = [], []
            for _ in range(SAMPLES):
                order = rng.permutation(len(known))
                drawn, further = known[order[:seeds]], known[order[seeds]]
                held.append(interval(drawn).holds(known.mean()))
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


def means(made: list[dict], what: str):
    """The mean of each replicate."""
    return np.array([sum(one[what]["wait"]) / sum(one[what]["jobs"]) for one in made])


if __name__ == "__main__":
    main()
