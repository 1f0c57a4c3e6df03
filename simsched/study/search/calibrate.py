"""`calibrate`: the settings under which simulated waits are nearest to those of a log.

Each setting is tried by itself. Then the one that helps most is kept, and the others are tried beside it,
until none helps. A rule of a site holds all the time, so a setting has to help in each third of the training
time; without this condition a setting is chosen that fits one part of the log and harms the rest. A setting
that does much harm by itself is not tried beside others. Two rules may help only together, so a step of some
size need not be beyond chance, and an earlier setting may be replaced; all steps together must be beyond
chance, or the last ones are undone. If none is left, the search begins again with steps that are beyond
chance by themselves. Only the error of training blocks chooses; that of the held-out blocks, which come
later, is measured for every run and decides nothing.
"""

from __future__ import annotations

from contextlib import nullcontext
from typing import TYPE_CHECKING, Any

import numpy as np

from simsched.arguments import options_of
from simsched.errors import ConfigError
from simsched.files import scratch_folder
from simsched.simulation.options.run_config import RunConfig, in_use
from simsched.simulation.options.run_rules import PolicyRules
from simsched.study.runs.input_cache import INPUTS
from simsched.study.runs.sweep_plan import warn_of_rules
from simsched.study.search.calibration import LEAST_GAIN, PARTS, Calibration, Effect
from simsched.study.search.knobs import KNOBS, LEFT_OUT, LogFacts, knobs_named
from simsched.study.search.search_answer import about_of
from simsched.study.search.search_request import CalibrationRequest, opened
from simsched.study.search.trials import Choice, Resampler, TimeSplit, Trial, Trials
from simsched.study.spec.run_task import MODEL

if TYPE_CHECKING:
    from collections.abc import Sequence

    from simsched.graph.cluster import ClusterLike
    from simsched.study.search.knobs import Knob, KnobSetting
    from simsched.workload.load import WorkloadLike

#: a setting that takes this share of the error away may be kept without being beyond chance
LARGE_GAIN = 0.05


@options_of(CalibrationRequest, PolicyRules, declared=RunConfig)
def calibrate(cluster: ClusterLike, workload: WorkloadLike, **options: Any) -> Calibration:
    """Search for the settings under which simulated waits are nearest to the recorded ones.

    Parameters
    ----------
    cluster, workload : as for `simulate`; the workload is a log with start times.  A site brings its queues
        and rules.
    options : the fields of `CalibrationRequest`, and the rules of the baseline, as for `simulate`.

    Returns
    -------
    Calibration
        true if the held-out error is smaller than that of the baseline beyond chance; ``.config`` is the
        configuration to use.

    Raises
    ------
    SimschedError
        for an option or an input that is not valid, and for a log without starts or too short to learn from.
    """
    request = CalibrationRequest.of(cluster, workload, options)
    knobs = knobs_named(request.knobs)
    given = request.base()
    rules = {key: rule for key, rule in given.options.items() if key != "calibration"}
    base = given.changed(options=in_use(rules))
    if base.options.get("queue-policy") == "recorded":
        raise ConfigError(
            "the queue policy 'recorded' plays the log and leaves nothing to calibrate",
            where="--queue-policy",
            expected="the policy of a scheduler",
        )
    jobs = () if base.workload.kind == MODEL else INPUTS.workload(base).jobs
    if all(job.wait is None for job in jobs):
        raise ConfigError(
            "the workload has no recorded starts to compare with",
            where=base.workload.name,
            expected="a log with start times, such as SWF or sacct with Start",
        )
    warn_of_rules([base])
    split = TimeSplit.of(np.array([job.submit for job in jobs], dtype=float), request.held_out)
    training = [job for job in jobs if job.wait is not None and job.submit < split.training_end()]
    facts = LogFacts.of(INPUTS.cluster(base.cluster), jobs, training)
    kept = scratch_folder("simsched-calibrate-") if request.runs is None else nullcontext(request.runs)
    with kept as folder, opened(request, base) as workers:
        trials = Trials(base, split, workers, folder, request.progress)
        return _Search(trials, split, facts, knobs, request).run(about_of(base, **request.use_of(base)))


class _Search:
    """The state of one calibration."""

    def __init__(
        self,
        trials: Trials,
        split: TimeSplit,
        facts: LogFacts,
        knobs: Sequence[Knob],
        request: CalibrationRequest,
    ) -> None:
        self.trials, self.split, self.request = trials, split, request
        self.settings: dict[str, Sequence[KnobSetting]] = {}
        self.untried: dict[str, str] = {knob.name: LEFT_OUT for knob in KNOBS if knob not in knobs}
        for knob in knobs:
            found = knob.settings(facts, trials.base.options)
            if isinstance(found, str):
                self.untried[knob.name] = found
            else:
                self.settings[knob.name] = found
        rng = np.random.default_rng([request.seed, 19])
        self.training = Resampler(split.training, rng, request.confidence)
        self.held_out = Resampler(split.held_out, rng, request.confidence)

    def run(self, about: Any) -> Calibration:
        (base,) = self.trials.make([()])
        singles = self.trials.make(self._beside(()))
        alone = tuple(self.effect(trial, base) for trial in singles if not trial.refused)
        self._keep_promising(alone, base)
        steps = self._together(base) or self._together(base, certain=True)
        final = steps[-1].trial if steps else base
        return Calibration(
            self.split,
            self.request.confidence,
            base,
            final,
            self.effect(base),
            self.effect(final),
            self.effect(final, base),
            alone,
            tuple(steps),
            self._left_out(final),
            self.untried,
            tuple(trial for trial in self.trials.made if trial.refused),
            len(self.trials.made),
            about,
        )

    def _beside(self, choice: Choice) -> list[Choice]:
        """Return the choice with each setting of each knob that it does not have."""
        chosen = {knob for knob, _ in choice}
        return [
            (*choice, (knob, setting))
            for knob, settings in self.settings.items()
            if knob not in chosen
            for setting in settings
        ]

    def _instead(self, choice: Choice) -> list[Choice]:
        """Return the choice with another setting of each knob in it but the last, which was just chosen."""
        return [
            (*(part for part in choice if part[0] != knob), (knob, other))
            for knob, setting in choice[:-1]
            for other in self.settings[knob]
            if other is not setting
        ]

    def _keep_promising(self, alone: Sequence[Effect], base: Trial) -> None:
        """Keep the settings that are worth a try beside others: those that do little harm by themselves.

        Rounds would be twice as long with the others, and a queue that one setting makes too long is slow.
        """
        least = -LARGE_GAIN * base.training.error
        best = sorted(alone, key=lambda effect: -effect.training.estimate)  # stable: ties keep their order
        good = [effect.trial.choice[0] for effect in best if effect.training.estimate >= least]
        for knob, settings in self.settings.items():
            kept = [setting for name, setting in good if name == knob][: self.request.beside]
            self.settings[knob] = [setting for setting in settings if setting in kept]

    def _together(self, base: Trial, *, certain: bool = False) -> list[Effect]:
        """Keep the setting that helps most in training, and go on beside it until none helps enough.

        If `certain`, each step has to be beyond chance.
        """
        steps: list[Effect] = []
        now = base
        while True:
            tried = self.trials.make([*self._beside(now.choice), *self._instead(now.choice)])
            helping = [self.effect(trial, now) for trial in tried if self._helps_throughout(now, trial)]
            if certain:
                helping = [effect for effect in helping if effect.training.low > 0]
            if not helping:
                break
            effect = max(helping, key=lambda effect: effect.training.estimate)
            share = effect.training.estimate / max(now.training.error, 1e-12)
            if share < LEAST_GAIN or (share < LARGE_GAIN and effect.training.low <= 0):
                break
            steps.append(effect)
            now = effect.trial
        while steps and self.effect(steps[-1].trial, base).training.low <= 0:
            steps.pop()
        return steps

    def _helps_throughout(self, before: Trial, after: Trial) -> bool:
        """Whether the error of each part of the training time is smaller after than before."""
        if after.refused:
            return False
        number = np.arange(self.split.training)
        parts = [number * PARTS // self.split.training == part for part in range(PARTS)]
        weights = np.stack(parts).astype(np.float64)
        return bool((before.training.errors(weights) > after.training.errors(weights)).all())

    def _left_out(self, final: Trial) -> dict[str, Effect]:
        """Return what leaving out each knob of the final choice does to its error."""
        if len(final.choice) < 2:
            return {}
        less = [tuple(part for part in final.choice if part is not gone) for gone in final.choice]
        found = zip(final.choice, self.trials.make(less), strict=True)
        return {gone[0]: self.effect(trial, final) for gone, trial in found if not trial.refused}

    def effect(self, after: Trial, before: Trial | None = None) -> Effect:
        """Return the error of a trial, or by how much it is smaller than `before`."""
        less = (None, None) if before is None else (before.training, before.held_out)
        return Effect(
            after, self.training.error(after.training, less[0]), self.held_out.error(after.held_out, less[1])
        )
