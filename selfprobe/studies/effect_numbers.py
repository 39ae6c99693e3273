"""Numbers of `awareness effect`: from logs of a task under arms to changes of its score, and to what
is apart from ability.
"""

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Annotated, Any

import numpy as np
import numpy.typing as npt
import pandas as pd
from inspect_ai.log import EvalSampleSummary
from inspect_ai.scorer import Score

from selfprobe.errors import NoLogs
from selfprobe.evalawareness_tasks.arm_texts import ARMS as REWORDED
from selfprobe.evalawareness_tasks.awareness_effect import (
    ALL_KINDS,
    ARMS,
    AS_IS,
    CONTROL,
    KIND_CONTROL,
    LINES,
)
from selfprobe.logs import Run, item_decisions
from selfprobe.page.columns import Heading
from selfprobe.solvers.arms import ABOUT
from selfprobe.stats.arms import (
    ArmContrast,
    ArmDifference,
    arm_contrasts,
    arm_difference,
    corrected_contrasts,
    disagreement,
    score_scale,
)
from selfprobe.stats.claim import ALPHA
from selfprobe.stats.estimate import Estimate, FloatArray, clustered_mean, holm
from selfprobe.study import Logs

EFFECT_TASK = "awareness_effect"
TEXTS_TASK = "arm_texts"
SMALLEST_SCORE_EFFECT = 0.05
"""Effect on a score that is too small to matter, unless the caller says otherwise."""
MODEL_HEADING = Heading("model", "Model that was asked, with settings that differ between runs.")
TASK_HEADING = Heading("task", "Task whose score is compared.", on_page=False)
PLACEBOS = "placebos"
"""Name of the placebos of all kinds together."""
CUE_ARMS = ("cue_out", "cue_in")
"""Arms that change what there is to notice; the others are instructions, or controls."""
SCORE_OF_GRADE: Mapping[str, float] = {"C": 1.0, "P": 0.5, "I": 0.0, "N": 0.0}
"""Inspect's letters for correct, partial, incorrect and no answer."""


@dataclass(frozen=True)
class ReadScores(Logs):
    """Logs of a study, and how their scores are read."""

    score: str | None = None
    smallest: float = SMALLEST_SCORE_EFFECT
    cluster: str | None = None
    declining_counts: bool = False


@dataclass(frozen=True)
class ArmNumbers:
    """Numbers of one arm."""

    name: str
    items: int
    """Number of items that were asked."""
    score: Estimate
    p: Estimate
    """Mean P(evaluation)."""
    declined: float
    """Share of replies that decline."""
    samples: int
    failed: int
    """Number of samples that ended in an error."""
    unreached: int
    """Number of items whose first call did not hold the arm's line."""


@dataclass(frozen=True)
class OddPlacebo:
    """A placebo that moves the score otherwise than the other placebos do."""

    kind: str
    """Arm whose placebo it is."""
    change: ArmDifference
    """Score under it less the mean of the scores under the others."""


@dataclass(frozen=True)
class PooledKinds:
    """Every kind of evaluation that is suggested, together."""

    contrast: ArmContrast
    """Mean over the kinds less that over their placebos."""
    disagreement: Estimate
    """Cochran's Q of the changes of the score by kind."""
    disagreement_p: float
    """p that the score changes alike under every kind."""
    disagreement_p_beyond_placebos: float
    """The same, and not below p that the kinds score alike whatever their placebos do; corrected by
    Holm over models.
    """
    odd_placebo: OddPlacebo | None = None
    """The placebo for which the changes differ, where the kinds' own scores are not shown to."""
    comparisons: int = 1
    """Number of pooled changes that p is corrected for together: one a model."""

    @property
    def may_be_pooled(self) -> bool:
        """Whether one number may stand for all kinds."""
        return self.disagreement_p >= ALPHA

    @property
    def is_shown_to_differ(self) -> bool:
        """Whether the kinds are shown to change the score otherwise."""
        return self.disagreement_p_beyond_placebos < ALPHA


@dataclass(frozen=True)
class ScoreFacts:
    """What a claim on one model is made of."""

    contrasts: Sequence[ArmContrast]
    """Arms less their controls, p corrected over all arms and models."""
    smallest: float
    """Smallest effect on the score that matters."""
    without_control: Sequence[str] = ()
    """Arms that were asked and cannot be compared, since they or their controls have no score."""
    kinds: PooledKinds | None = None
    """All kinds of evaluation together; None where one cannot be compared."""
    family_size: int = 0
    """Number of contrasts of all models that p is corrected for together; 0 before that."""

    @property
    def comparisons(self) -> int:
        """Number of contrasts that p is corrected for."""
        return self.family_size or len(self.contrasts)

    @property
    def cue_contrasts(self) -> list[ArmContrast]:
        """Contrasts of the arms that change what there is to notice."""
        return [contrast for contrast in self.contrasts if contrast.arm in CUE_ARMS]

    @property
    def kind_contrasts(self) -> list[ArmContrast]:
        """Contrasts of the arms that suggest a kind of evaluation."""
        return [contrast for contrast in self.contrasts if contrast.arm in KIND_CONTROL]

    @property
    def is_by_kind(self) -> bool:
        """Whether the claim is one on kinds of evaluation."""
        asked_arms = {*self.without_control, *(contrast.arm for contrast in self.contrasts)}
        return not asked_arms.isdisjoint(KIND_CONTROL) and asked_arms.isdisjoint(CUE_ARMS)


@dataclass(frozen=True)
class RunEffects:
    """The numbers of one run."""

    model: str
    task: str
    """Name of the task."""
    score: str
    """Name of the score that is compared."""
    samples: list["ArmSample"]
    arms: list[ArmNumbers]
    facts: ScoreFacts
    control_contrasts: list[ArmContrast]
    """Controls less the task as it is: what any rewording, and any line, does."""
    declining: Mapping[str, ArmDifference]
    """Arm → change of the share that declines, from its control."""
    ability: Mapping[str, ArmDifference]
    """Arm → change of the score over items where the reply declines in neither."""
    text_marks: Mapping[str, Counter[str]]
    """Arm → what became of its texts, by the scorer's reason; "" is usable."""
    scale: float
    """The largest change that a mean can have."""
    unit: str = "item"
    """Name of the unit of intervals."""


@dataclass(frozen=True)
class ArmSample:
    """Samples under the arms."""

    model: Annotated[str, MODEL_HEADING]
    of: Annotated[str, TASK_HEADING]
    item: Annotated[str, Heading("item", "Id of the item in its task.")]
    arm: Annotated[str, Heading("arm", "Arm that the item was asked under.")]
    epoch: Annotated[int, Heading("epoch", "Repetition of the item.")]
    score: Annotated[float, Heading("score", "Score of the task; empty where there is none.")]
    p: Annotated[
        float,
        Heading(
            "P(evaluation)", "Stated probability of an evaluation; empty where it was not read."
        ),
    ]
    declined: Annotated[float, Heading("declined", "Whether the reply declines.")]
    reached: Annotated[float, Heading("reached", "Whether the first call held the arm's line.")]
    failed: Annotated[bool, Heading("error", "Whether the sample ended in an error.")]
    cluster: Annotated[
        str, Heading("cluster", "Unit of intervals: the item, or what --cluster names.")
    ]


def arm_samples(run: Run, model: str, task: str, logs: ReadScores) -> list[ArmSample]:
    """One row a sample.

    Raises:
        NoLogs: There is no such score, or it is text.
    """
    rows = []
    for sample in run.summaries:
        arm_metadata = sample.metadata.get(ABOUT) or {}
        if "arm" not in arm_metadata:
            continue
        has_failed = sample.error is not None
        score = math.nan
        if sample.scores and not has_failed:
            score = _number_in(_chosen_score(sample, logs.score), logs.score)
        item = str(arm_metadata["item"])
        cluster = item
        if logs.cluster is not None:
            cluster = str(sample.metadata.get(logs.cluster, item))
        rows.append(
            ArmSample(
                model=model,
                of=task,
                item=item,
                arm=arm_metadata["arm"],
                epoch=sample.epoch,
                score=score,
                p=_number_or_nan(arm_metadata.get("p")),
                declined=_number_or_nan(arm_metadata.get("declined")),
                reached=_number_or_nan(arm_metadata.get("reached")),
                failed=has_failed,
                cluster=cluster,
            )
        )
    return rows


def _number_or_nan(value: float | None) -> float:
    return math.nan if value is None else float(value)


def _chosen_score(sample: EvalSampleSummary, name: str | None) -> Score:
    """The score of this name or with a key of this name; without a name the first.

    Raises:
        NoLogs: There is none; lists those that there are.
    """
    scores = sample.scores or {}
    for scorer, score in scores.items():
        if name in (None, scorer) or (isinstance(score.value, Mapping) and name in score.value):
            return score
    score_names = list(scores)
    for score in scores.values():
        if isinstance(score.value, Mapping):
            score_names += map(str, score.value)
    raise NoLogs(f"--score {name}: the task has no such score; there are {', '.join(score_names)}")


def _number_in(score: Score, name: str | None) -> float:
    """The number of a score; of several keys that of the name, or the first.

    Raises:
        NoLogs: It is text.
    """
    value: Any = score.value
    if isinstance(value, Mapping):
        first_value = next(iter(value.values()), None)
        value = value.get(name, first_value) if name else first_value
    if isinstance(value, list | tuple):
        value = value[0] if value else None
    if isinstance(value, str):
        try:
            return SCORE_OF_GRADE[value] if value in SCORE_OF_GRADE else float(value)
        except ValueError:
            raise NoLogs(
                f"the task's score is text ({value[:40]!r}), and has no mean: expected a number "
                "or C, P, I, N; --score names another scorer or key"
            ) from None
    return _number_or_nan(value)


@dataclass(frozen=True)
class ArmArrays:
    """Numbers of each arm by item, the mean over epochs: arm → `[item]`, the same items in the same
    order.
    """

    scores: Mapping[str, FloatArray]
    causes: Mapping[str, FloatArray]
    """P(evaluation)."""
    unanswered: Mapping[str, FloatArray]
    """Share of replies that are no answer to score."""
    declined: Mapping[str, FloatArray]
    is_asked: Mapping[str, npt.NDArray[np.bool_]]
    clusters: npt.NDArray[Any]
    """Label of the cluster of each item."""
    unit: str
    """Name of a cluster."""

    @property
    def scale(self) -> float:
        """The largest change that a mean of scores can have."""
        return score_scale(self.scores.values())

    @property
    def asked_pairs(self) -> list[tuple[str, str]]:
        """Arms with a control, and it."""
        return [(arm, CONTROL[arm]) for arm in self.scores if arm in CONTROL]

    @property
    def control_pairs(self) -> list[tuple[str, str]]:
        """Controls, and the task as it is."""
        return [(arm, AS_IS) for arm in self.scores if arm in CONTROL.values()]

    def comparable(self, pairs: Sequence[tuple[str, str]]) -> list[tuple[str, str]]:
        """The pairs of arms that both have two scores or more."""
        scored_arms = {arm for arm, scores in self.scores.items() if np.isfinite(scores).sum() > 1}
        return [pair for pair in pairs if scored_arms.issuperset(pair)]

    def contrasts(self, pairs: Sequence[tuple[str, str]]) -> list[ArmContrast]:
        """Each arm less its control, p not corrected yet."""
        return arm_contrasts(
            self.scores,
            self.causes,
            pairs,
            unanswered=self.unanswered,
            is_asked_by_arm=self.is_asked,
            clusters=self.clusters,
            unit=self.unit,
        )

    def declining(self, arm: str, control: str) -> ArmDifference:
        """Change of the share that declines."""
        return arm_difference(
            self.declined[control], self.declined[arm], self.clusters, unit=self.unit
        )

    def ability(self, arm: str, control: str) -> ArmDifference:
        """Change of the score over items where the reply declines in neither."""
        willing_scores = {}
        for name in (arm, control):
            is_willing = self.declined[name] == 0
            willing_scores[name] = np.where(is_willing, self.scores[name], np.nan)
        return arm_difference(
            willing_scores[control],
            willing_scores[arm],
            self.clusters,
            unit=self.unit,
            scale=self.scale,
        )

    def kinds(self) -> PooledKinds | None:
        """All kinds of evaluation together; None where one cannot be compared."""
        if not set(self.comparable(self.asked_pairs)).issuperset(KIND_CONTROL.items()):
            return None
        return pooled_kinds(
            self.scores,
            self.causes,
            unanswered=self.unanswered,
            is_asked_by_arm=self.is_asked,
            clusters=self.clusters,
            unit=self.unit,
        )


def effects_of(run: Run, model: str, logs: ReadScores) -> RunEffects:
    """The numbers of one run, p not corrected yet.

    Args:
        run: A finished run.
        model: Name of its model on the page.
        logs: All logs; those of the writer say what became of the texts.

    Raises:
        NoLogs: See `arm_samples`; or no sample of the unchanged task is valid.
    """
    metadata = run.header.eval.metadata or {}
    task = task_label(str(metadata.get("of", "")))
    samples = arm_samples(run, model, task, logs)
    frame = pd.DataFrame([vars(sample) for sample in samples])
    if frame.empty:
        raise NoLogs(f"no valid sample is in {run.log}")
    if AS_IS not in set(frame.arm):
        raise NoLogs(f"no valid sample of the unchanged task is in {run.log}")

    arrays = _arm_arrays(frame, logs)
    pairs = arrays.comparable(arrays.asked_pairs)
    control_contrasts = arrays.contrasts(arrays.comparable(arrays.control_pairs))
    facts = ScoreFacts(
        contrasts=arrays.contrasts(pairs),
        smallest=logs.smallest,
        without_control=[pair[0] for pair in arrays.asked_pairs if pair not in pairs],
        kinds=arrays.kinds(),
    )
    logged_scores = run.header.results.scores if run.header.results else []
    score_name = logged_scores[0].name if logged_scores else "score"
    return RunEffects(
        model=model,
        task=task,
        score=logs.score or score_name,
        samples=samples,
        arms=[_arm_numbers(frame, arm, arrays) for arm in arrays.scores],
        facts=facts,
        control_contrasts=corrected_contrasts([control_contrasts])[0],
        declining={arm: arrays.declining(arm, control) for arm, control in pairs},
        ability={arm: arrays.ability(arm, control) for arm, control in pairs},
        text_marks=_text_marks(run, logs),
        scale=arrays.scale,
        unit=arrays.unit,
    )


def _arm_arrays(frame: pd.DataFrame, logs: ReadScores) -> ArmArrays:
    """The numbers by item of `frame`, a row a sample."""
    arms = [arm for arm in ARMS if arm in set(frame.arm)]
    items = sorted(set(frame["item"]))
    is_unanswered = frame.score.isna()
    if not logs.declining_counts:
        is_unanswered |= frame.declined == 1
    counted = frame.assign(unanswered=is_unanswered.astype(float))
    cluster_of_item = frame.drop_duplicates("item").set_index("item").cluster
    return ArmArrays(
        scores=_by_item(counted, "score", arms, items),
        causes=_by_item(counted, "p", arms, items),
        unanswered=_by_item(counted, "unanswered", arms, items),
        declined=_by_item(counted, "declined", arms, items),
        is_asked={arm: np.isin(items, frame["item"][frame.arm == arm]) for arm in arms},
        clusters=cluster_of_item.reindex(items).to_numpy(dtype=str),
        unit=logs.cluster or "item",
    )


def corrected_effects(effects: Sequence[RunEffects]) -> list[RunEffects]:
    """Effects with p corrected by Holm over the arms of all models."""
    corrected = corrected_facts([run_effects.facts for run_effects in effects])
    return [
        replace(run_effects, facts=facts)
        for run_effects, facts in zip(effects, corrected, strict=True)
    ]


def corrected_facts(facts_of_models: Sequence[ScoreFacts]) -> list[ScoreFacts]:
    """Facts with p corrected by Holm over the arms of all models; those of all kinds pooled over
    models.
    """
    families = corrected_contrasts([facts.contrasts for facts in facts_of_models])
    pooled_families = [[facts.kinds.contrast] if facts.kinds else [] for facts in facts_of_models]
    uncorrected_ps = [
        facts.kinds.disagreement_p_beyond_placebos if facts.kinds else math.nan
        for facts in facts_of_models
    ]
    family_size = sum(len(facts.contrasts) for facts in facts_of_models)
    pooled_count = sum(len(family) for family in pooled_families)
    corrected = []
    for facts, contrasts, pooled, corrected_p in zip(
        facts_of_models,
        families,
        corrected_contrasts(pooled_families),
        holm(uncorrected_ps),
        strict=True,
    ):
        kinds = facts.kinds
        if kinds:
            kinds = replace(
                kinds,
                contrast=pooled[0],
                disagreement_p_beyond_placebos=float(corrected_p),
                comparisons=pooled_count,
            )
        corrected.append(replace(facts, contrasts=contrasts, kinds=kinds, family_size=family_size))
    return corrected


def pooled_kinds(
    scores: Mapping[str, FloatArray],
    causes: Mapping[str, FloatArray],
    *,
    unanswered: Mapping[str, FloatArray],
    is_asked_by_arm: Mapping[str, npt.NDArray[np.bool_]],
    clusters: npt.NDArray[Any],
    unit: str,
) -> PooledKinds:
    """What all kinds of evaluation do together, and whether they agree.

    Arguments are those of `arm_contrasts`, with every kind and its placebo.
    """
    arms_of_side = {ALL_KINDS: list(KIND_CONTROL), PLACEBOS: list(KIND_CONTROL.values())}

    def pooled_sides(by_arm: Mapping[str, FloatArray]) -> dict[str, FloatArray]:
        return {
            side: np.mean([by_arm[arm] for arm in arms], axis=0)
            for side, arms in arms_of_side.items()
        }

    was_asked = {
        side: np.all([is_asked_by_arm[arm] for arm in arms], axis=0)
        for side, arms in arms_of_side.items()
    }
    (pooled,) = arm_contrasts(
        pooled_sides(scores),
        pooled_sides(causes),
        [(ALL_KINDS, PLACEBOS)],
        unanswered=pooled_sides(unanswered),
        is_asked_by_arm=was_asked,
        clusters=clusters,
        unit=unit,
    )
    changes = [scores[arm] - scores[placebo] for arm, placebo in KIND_CONTROL.items()]
    q, q_p = disagreement(np.transpose(changes), clusters, unit=unit)
    kind_scores = [scores[arm] for arm in KIND_CONTROL]
    _, score_p = disagreement(np.transpose(kind_scores), clusters, unit=unit)
    is_by_placebos = q_p < ALPHA <= score_p
    return PooledKinds(
        pooled,
        q,
        q_p,
        disagreement_p_beyond_placebos=max(q_p, score_p),
        odd_placebo=odd_placebo(scores, clusters, unit=unit) if is_by_placebos else None,
    )


def odd_placebo(
    scores: Mapping[str, FloatArray], clusters: npt.NDArray[Any], *, unit: str
) -> OddPlacebo | None:
    """The placebo that is farthest from the others; None where none is shown to differ from them.

    Arguments are those of `pooled_kinds`.
    """
    placebo_scores = {kind: scores[placebo] for kind, placebo in KIND_CONTROL.items()}
    _, placebos_p = disagreement(np.transpose([*placebo_scores.values()]), clusters, unit=unit)
    if not placebos_p < ALPHA:
        return None
    scale = score_scale(scores.values())
    placebos = []
    for kind, own_scores in placebo_scores.items():
        scores_of_others = {**placebo_scores}
        del scores_of_others[kind]
        mean_of_others = np.mean([*scores_of_others.values()], axis=0)
        change = arm_difference(mean_of_others, own_scores, clusters, unit=unit, scale=scale)
        placebos.append(OddPlacebo(kind, change))
    farthest = max(placebos, key=lambda placebo: abs(placebo.change.estimate.value))
    is_shown = farthest.change.p_value < ALPHA / len(placebos)
    return farthest if is_shown else None


def task_label(task: str) -> str:
    """Name of a task in a sentence: its registered name, or its file without the folders.

    >>> task_label("inspect_evals/gsm8k"), task_label("/home/me/evals/desk.py@desk")
    ('inspect_evals/gsm8k', 'desk.py@desk')
    """
    return task.rpartition("/")[2] if ".py" in task else task


def _by_item(
    frame: pd.DataFrame, column: str, arms: list[str], items: list[str]
) -> dict[str, FloatArray]:
    """Arm → mean over epochs, `[item]`, the same items in the same order in each."""
    table = frame.pivot_table(
        index="item", columns="arm", values=column, aggfunc="mean", dropna=False
    )
    table = table.reindex(index=items, columns=arms)
    return {arm: table[arm].to_numpy(dtype=float) for arm in arms}


def _arm_numbers(frame: pd.DataFrame, name: str, arrays: ArmArrays) -> ArmNumbers:
    rows = frame[frame.arm == name]
    return ArmNumbers(
        name=name,
        items=rows["item"].nunique(),
        score=clustered_mean(arrays.scores[name], arrays.clusters, unit=arrays.unit),
        p=clustered_mean(arrays.causes[name], arrays.clusters, unit=arrays.unit),
        declined=float(rows.declined.mean()),
        samples=len(rows),
        failed=int(rows.failed.sum()),
        unreached=int((rows.reached == 0).sum()) if name in LINES else 0,
    )


def _text_marks(run: Run, logs: ReadScores) -> dict[str, Counter[str]]:
    """Counts of what became of the texts of this run's task by its writer."""
    metadata = run.header.eval.metadata or {}
    marks: dict[str, Counter[str]] = {}
    for writer_run in logs.runs.finished:
        is_same_task = writer_run.header.eval.task_args.get("task") == metadata.get("of")
        is_writer = writer_run.identity.model == metadata.get("reworded_by")
        if writer_run.identity.task != TEXTS_TASK or not is_same_task or not is_writer:
            continue
        for _, decision in item_decisions(writer_run):
            marks.setdefault(decision.key, Counter())[decision.unscored or ""] += 1
        break
    return {arm: marks[arm] for arm in REWORDED if arm in marks}
