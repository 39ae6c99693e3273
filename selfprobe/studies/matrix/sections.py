"""Tables and pictures of a matrix: cells, models on themselves, competitors, tests, informed
observers, axes.
"""

import math
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Annotated, Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from selfprobe.logs import Run, item_decisions, metrics_in
from selfprobe.page import (
    Block,
    Figures,
    Heading,
    Picture,
    interval_text,
    number,
    p_digits,
    percent,
    signed_interval,
)
from selfprobe.page.plots import cut_names, heat_map, interval_rows
from selfprobe.scorers.dilemma import dilemma_estimates, dilemmas_of, infinite_kl
from selfprobe.scorers.frames import split
from selfprobe.stats.claim import Claim, Verdict
from selfprobe.stats.estimate import Estimate, clustered_mean, undefined
from selfprobe.stats.pairs import ABOVE_ALL_PAIRS
from selfprobe.studies.matrix.advantage import ModelsTest, SelfAdvantage
from selfprobe.studies.matrix.numbers import Analysis, TaskAnalysis, item_clusters, unit_name
from selfprobe.studies.matrix.rows import (
    EFFECT,
    InformedObserver,
    ModelRow,
    closest_informed,
    informed_observers,
)
from selfprobe.studies.matrix.table import Results, TaskMatrix, matrix_of

write_three_digits = partial(interval_text, digits=3)
DILEMMA_TASK = "ethical_dilemma"
KEYS_OF_FIGURE_2: Mapping[str, str] = {"kth_word": "k1"}
"""Task → the one decision of an item that Figure 2 of IntrospectBench counts; all of other tasks."""

PREDICTED_DIVERGENCE = Heading(
    "KL(p‖p′)", "How far the prediction is from the conclusions, in nats; 0 is the same."
)
DIRECT_DIVERGENCE = Heading(
    "KL(p‖p*)", "How far the answer without reasoning is from the conclusions, in nats."
)

# ---- cells


@dataclass(frozen=True)
class CellRow:
    """Every cell: each observer on each target."""

    task: Annotated[str, Heading("task", "Task of the matrix.")]
    target: Annotated[str, Heading("target", "Model that is predicted.")]
    observer: Annotated[str, Heading("observer", "Model that predicts.")]
    estimate: Annotated[Estimate, Heading("score", "Mean score of the cell.")]
    reason: Annotated[
        str, Heading("no interval", "Reason of an interval that is missing.", on_page=False)
    ]
    unscored: Annotated[
        float,
        Heading("unscored", "Share of decisions without a score; they are left out.", percent),
    ]
    reasoned: Annotated[
        float, Heading("reasoned", "Share of predictions that the observer reasoned out.", percent)
    ]
    hole: Annotated[str, Heading("hole", "Reason of a cell without a score.")]


def cell_rows(analysis: Analysis) -> list[CellRow]:
    """One row a task, target and observer."""
    rows = []
    for task in analysis.tasks:
        unit = unit_name(task.cluster_of_item)
        for cell in task.cells.itertuples():
            estimate = Estimate(cell.value, cell.low, cell.high, cell.n, unit, reason=cell.reason)
            rows.append(
                CellRow(
                    task=task.task,
                    target=cell.target,
                    observer=cell.observer,
                    estimate=estimate,
                    reason=cell.reason,
                    unscored=cell.unscored,
                    reasoned=cell.reasoned,
                    hole=cell.hole,
                )
            )
    return rows


def cells_picture(task: TaskAnalysis) -> Picture:
    """The matrix of a task, holes included."""
    models = list(task.matrix.models)
    names = cut_names(models)
    name_of_model = dict(zip(models, names, strict=True))

    def grid(column: str) -> pd.DataFrame:
        table = task.cells.pivot(index="target", columns="observer", values=column)
        return table.loc[models, models]

    caption = (
        "Scores with 95 % intervals by item; framed: models on themselves. “No model”: the best "
        "baseline."
    )
    if not np.isnan(task.chance):
        caption += f" A blind guess gets {task.chance:.2f}."
    if task.matrix.holes:
        caption += (
            f" Hatched: {len(task.matrix.holes)} of {len(models) ** 2} cells have no finished run."
        )
    return heat_map(
        f"{task.task}-matrix",
        grid("value"),
        names,
        caption=caption,
        title=f"{task.task}: score of each observer on each target",
        low=grid("low"),
        high=grid("high"),
        under={name_of_model[row.model]: row.without_a_model[1] for row in task.rows},
    )


def centred_picture(task: TaskAnalysis, advantage: SelfAdvantage) -> Picture:
    """Picture of what is left of the cells without skill and difficulty."""
    return heat_map(
        f"{task.task}-centred",
        advantage.centred,
        cut_names(task.models),
        caption=(
            "What is left of a cell without the observer's skill and the target's difficulty, if "
            "these add up. Skill times difficulty makes the diagonal violet too, so no answer "
            "rests on this picture."
        ),
        title=f"{task.task}: row and column means removed",
        centred=True,
    )


def advantage_picture(task: TaskAnalysis, advantage: SelfAdvantage) -> Picture:
    """Each model's own advantage."""
    names = cut_names([model.model for model in advantage.models])
    estimates_by_name = {
        name: {"advantage": model.advantage}
        for name, model in zip(names, advantage.models, strict=True)
    }
    return interval_rows(
        f"{task.task}-advantage",
        estimates_by_name,
        caption="Self advantage of each model over what skill and difficulty predict.",
        axis="self advantage, 95 % interval by item",
        title=f"{task.task}: self advantage by model",
        scale="signed",
        line=0,
    )


def task_figures(task: TaskAnalysis) -> list[Block]:
    """Pictures of every cell of a task, and of what skill and difficulty leave of them."""
    if task.cells.n.sum() == 0:
        return [f"{task.task}: nothing was scored: {task.holes}."]
    pictures = [cells_picture(task)]
    if task.advantage:
        pictures.append(centred_picture(task, task.advantage))
        if task.advantage.models:
            pictures.append(advantage_picture(task, task.advantage))
    return [Figures(pictures)]


REASONED_SHARE = 0.05
"""Share of a model's predictions that came with reasoning, above which its row is named."""


def reasoned_lines(task: TaskAnalysis) -> list[str]:
    """Sentence on models that reasoned although they were asked not to: their rows are of another
    kind.
    """
    own_cells = task.cells[task.cells.target == task.cells.observer]
    reasoned_cells = own_cells[own_cells.reasoned > REASONED_SHARE]
    if reasoned_cells.empty:
        return []
    model_texts = [
        f"{cell.observer} (of {percent(cell.reasoned)} of its predictions)"
        for cell in reasoned_cells.itertuples()
    ]
    sentence = (
        f"{task.task}: reasoned before predicting, although asked not to: "
        f"{', '.join(model_texts)}. What such a model says of itself was reasoned out, and is no "
        "immediate introspection"
    )
    other_count = len(task.matrix.models) - len(reasoned_cells)
    if other_count:
        sentence += f": compare its row with the other {other_count} with that in mind"
    return [f"{sentence}."]


# ---- what each model's claim rests on


@dataclass(frozen=True)
class ModelNumbers:
    """Numbers behind the claim of each model."""

    task: Annotated[str, Heading("task", "Task of the matrix.")]
    model: Annotated[str, Heading("model", "Model that predicts itself.")]
    verdict: Annotated[
        Verdict, Heading("answer", "Whether it predicts itself better than the others explain.")
    ]
    score: Annotated[Estimate, Heading("on itself", "Mean score of the model about itself.")]
    unscored: Annotated[
        float,
        Heading("unscored", "Share of its decisions without a score.", percent, on_page=False),
    ]
    habit: Annotated[
        float, Heading("its habit", "What its answers get against its own acts at other items.")
    ]
    item_specific: Annotated[
        Estimate, Heading("item-specific", "Its score less its habit: what it knows of this item.")
    ]
    rival: Annotated[
        str,
        Heading(
            "best other observer", "The other model that scores best about this one.", on_page=False
        ),
    ]
    rival_score: Annotated[
        float, Heading("its score", "Score of the best other observer.", on_page=False)
    ]
    baseline: Annotated[
        str,
        Heading("best without a model", "The best prediction that needs no model.", on_page=False),
    ]
    baseline_score: Annotated[
        float,
        Heading("its score", "Score of the best prediction that needs no model.", on_page=False),
    ]
    informed: Annotated[
        str,
        Heading(
            "closest informed observer", "The informed observer that comes closest to the model."
        ),
    ]
    informed_score: Annotated[
        float, Heading("its score", "Score of the closest informed observer.")
    ]
    likest: Annotated[
        str,
        Heading(
            "likest other's replies",
            "The other model whose own replies predict this one best.",
            on_page=False,
        ),
    ]
    likest_replies: Annotated[
        float, Heading("their score", "Score of these replies as predictions.", on_page=False)
    ]
    estimate: Annotated[
        Estimate,
        Heading("additive advantage", "Its own cell above what row and column means predict."),
    ]
    over_fit: Annotated[
        Estimate,
        Heading(
            "over the fit",
            "Its own cell above what skill and predictability give, as fitted to the other cells.",
        ),
    ]
    pairs: Annotated[
        float,
        Heading(
            "pairs differ by",
            "How much pairs of these models differ without self-knowledge.",
            number,
        ),
    ]
    p: Annotated[float, Heading("p", "The largest p of all its tests.", p_digits)]
    p_holm: Annotated[
        float, Heading("p, Holm", "The same, corrected over all models and tasks.", p_digits)
    ]
    p_noise: Annotated[
        float,
        Heading(
            "beyond noise",
            "Its own cell is above the fit by more than the noise of the items, on every scale.",
            p_digits,
        ),
    ]
    p_pairs: Annotated[
        float,
        Heading(
            "beyond pairs", "By more than noise and what pairs of these models differ by.", p_digits
        ),
    ]
    beyond_all_pairs: Annotated[
        bool | None,
        Heading(
            "beyond all pairs",
            "Its own cell stands out above every other one, in units of its own spread.",
        ),
    ]
    p_itself_above_others: Annotated[
        float,
        Heading(
            "beyond others",
            "It does better on itself. –: it predicts no other model beyond its skill.",
            p_digits,
        ),
    ]
    p_without_its_likest: Annotated[
        float,
        Heading(
            "beyond its likest",
            "It does better without what a pair of its own shares. –: no pair of its own stands out.",
            p_digits,
        ),
    ]
    p_above_0: Annotated[float, Heading("above 0", "Its item-specific score is above 0.", p_digits)]
    detects: Annotated[
        float,
        Heading(
            "stands out from",
            "The advantage from which a model would stand out above pairs of models in 80 % of such "
            "matrices, by the means of cells alone. Replies that can stand in are not counted on, "
            "and easy items, baselines and other orders of observers can ask for more.",
        ),
    ]
    items_needed: Annotated[
        float,
        Heading(
            f"items for {EFFECT:.2f}",
            f"Items with which an advantage of {EFFECT:.2f} would stand out above pairs of models, "
            "by the means of cells alone.",
            partial(number, digits=0),
        ),
    ]


def model_numbers(analysis: Analysis) -> list[ModelNumbers]:
    """One row a task and model that has all its cells."""
    numbers = list[ModelNumbers]()
    for task in analysis.tasks:
        claim_by_model = {claim.subject: claim for claim in task.claims}
        own_cells = task.cells[task.cells.target == task.cells.observer]
        unscored_by_model = own_cells.set_index("target").unscored
        additive_by_model = dict[str, Estimate]()
        if task.advantage:
            for model in task.advantage.models:
                additive_by_model[model.model] = model.advantage
        for row, p_holm in zip(task.rows, task.rows_p_holm, strict=True):
            model_row = _numbers_of_model(
                task,
                row,
                claim_by_model[row.model],
                p_holm=p_holm,
                unscored=float(unscored_by_model[row.model]),
                additive=additive_by_model.get(row.model, undefined("no additive fit")),
            )
            numbers.append(model_row)
    return numbers


def _numbers_of_model(
    task: TaskAnalysis,
    row: ModelRow,
    claim: Claim,
    *,
    p_holm: float,
    unscored: float,
    additive: Estimate,
) -> ModelNumbers:
    baseline, baseline_score = row.without_a_model
    likest, likest_score = row.stand_in
    informed_name = ""
    informed_score = math.nan
    informed = closest_informed(task.informed, row.model)
    if informed:
        informed_name = f"{informed.observer} ({informed.arm})"
        informed_score = informed.score.value
    above_all_pairs_p = row.p_by_step[ABOVE_ALL_PAIRS]
    beyond_all_pairs: bool | None = None
    if not math.isnan(above_all_pairs_p):
        beyond_all_pairs = above_all_pairs_p == 0
    return ModelNumbers(
        task=task.task,
        model=row.model,
        verdict=claim.verdict,
        score=row.score,
        unscored=unscored,
        habit=row.habit,
        item_specific=row.specific,
        rival=row.rival,
        rival_score=row.rival_score,
        baseline=baseline,
        baseline_score=baseline_score,
        informed=informed_name,
        informed_score=informed_score,
        likest=likest,
        likest_replies=likest_score,
        estimate=additive,
        over_fit=row.advantage,
        pairs=row.pairs,
        p=row.p,
        p_holm=p_holm,
        p_noise=row.p_of("noise"),
        p_pairs=row.p_of("pairs"),
        beyond_all_pairs=beyond_all_pairs,
        p_itself_above_others=row.p_of("itself above others"),
        p_without_its_likest=row.p_of("without its likest"),
        p_above_0=row.p_of("above 0"),
        detects=row.power.detects,
        items_needed=row.power.items,
    )


@dataclass(frozen=True)
class BaselineRow:
    """Baselines, other models' own replies and habits of each model."""

    task: Annotated[str, Heading("task", "Task of the matrix.")]
    model: Annotated[str, Heading("model", "Model that is predicted.")]
    baseline: Annotated[
        str, Heading("baseline", "Prediction that is no observer's, or a habit of the model.")
    ]
    gets: Annotated[float, Heading("gets", "Mean score of this baseline about the model.")]
    above_it: Annotated[
        Estimate, Heading("above it", "The model's score about itself less this one's.")
    ]


MOST_STAND_INS = 15
"""Largest number of other models whose replies are compared with a model, one a row."""


def baseline_rows(analysis: Analysis) -> list[BaselineRow]:
    """One row a task, model and baseline; of stand-ins the closest ones."""
    rows = list[BaselineRow]()
    for task in analysis.tasks:
        for row in task.rows:
            rows += _baselines_of_model(task.task, row)
    return rows


def _baselines_of_model(task: str, row: ModelRow) -> list[BaselineRow]:
    rows = list[BaselineRow]()
    for name, difference in row.above_baselines.items():
        rows.append(BaselineRow(task, row.model, name, row.baselines[name], difference))
    for other_model, difference in _closest_stand_ins(row):
        name = f"{other_model}'s own replies"
        replies_score = row.score.value - difference.value
        rows.append(BaselineRow(task, row.model, name, replies_score, difference))
    for feature, habit in row.habits.items():
        name = f"its habit by {feature}"
        rows.append(BaselineRow(task, row.model, name, habit, undefined("taken off")))
    return rows


def _closest_stand_ins(row: ModelRow) -> list[tuple[str, Estimate]]:
    """The other models whose own replies come closest to a model, and how far it is above them, in
    their order.
    """
    names_by_closeness = sorted(row.stand_ins, key=lambda name: row.stand_ins[name].value)
    closest_names = names_by_closeness[:MOST_STAND_INS]
    return [
        (name, difference) for name, difference in row.stand_ins.items() if name in closest_names
    ]


@dataclass(frozen=True)
class TestRow:
    """Tests of each task over all its models."""

    task: Annotated[str, Heading("task", "Task of the matrix.")]
    quantity: Annotated[str, Heading("quantity", "What was computed.")]
    estimate: Annotated[Estimate, Heading("value", "The number.", write_three_digits)]
    p: Annotated[float, Heading("p", "One-sided p.", p_digits)]
    p_holm: Annotated[float, Heading("p, Holm", "The same, corrected over the tasks.", p_digits)]
    note: Annotated[str, Heading("what it says", "How the number is made.")]


def test_rows(analysis: Analysis) -> list[TestRow]:
    """The tests of each task that has two complete models."""
    rows = list[TestRow]()
    for task in analysis.tasks:
        if task.advantage is not None:
            rows += _tests_of_task(task, task.advantage)
    return rows


def _tests_of_task(task: TaskAnalysis, advantage: SelfAdvantage) -> list[TestRow]:
    assert task.capability is not None and task.test is not None
    specific_note = "nothing could be taken off"
    if task.taken_off:
        specific_note = f"each score minus what {task.taken_off} reach"
    capability_note = "capability control"
    if not math.isnan(task.capability.low) and task.capability.reason:
        capability_note += f"; {task.capability.reason}"
    rows = [
        _total_row(task, advantage.total),
        _row_without_p(task, "T, item-specific", task.total_advantage, specific_note),
        _complete_cells_row(task),
        _row_without_p(task, "over like observers", task.capability, capability_note),
        _permutation_row(task),
        _wilcoxon_row(task, task.test),
    ]
    for name, reason in task.reason_by_missing_baseline.items():
        note = f"not applied, so no claim asks for it: {reason}"
        rows.append(_row_without_p(task, f"over “{name}”", undefined("not applied"), note))
    return rows


def _row_without_p(task: TaskAnalysis, quantity: str, estimate: Estimate, note: str) -> TestRow:
    return TestRow(task.task, quantity, estimate, math.nan, math.nan, note)


def _total_row(task: TaskAnalysis, total: Estimate) -> TestRow:
    unit = unit_name(task.cluster_of_item)
    note = f"(trace − ΣA/M)/(M − 1), t interval over {total.n} {unit}s"
    return TestRow(task.task, "self advantage T", total, task.p, task.p_holm, note)


def _complete_cells_row(task: TaskAnalysis) -> TestRow:
    unit = unit_name(task.cluster_of_item)
    total_if_wrong, total_if_right = task.worst
    note = (
        f"{task.complete.n} {unit}s; if all that is unscored in these models' runs spoke "
        f"against it T would be {number(total_if_wrong, 3)}, if for it "
        f"{number(total_if_right, 3)}"
    )
    return _row_without_p(task, "T where every cell is scored", task.complete, note)


def _permutation_row(task: TaskAnalysis) -> TestRow:
    permutation = task.permutation
    orders_text = f"{permutation.count} orders"
    if permutation.exact:
        orders_text += ", all of them"
    note = (
        f"of the item-specific scores; {orders_text}; needs four models to reach .05, and more "
        "where few of them have access"
    )
    row = _row_without_p(task, "permutation of observers", undefined("a test alone"), note)
    return replace(row, p=permutation.p)


def _wilcoxon_row(task: TaskAnalysis, test: ModelsTest) -> TestRow:
    note = (
        f"0.021 in the paper, which names no test: {test.wins} of {test.n} models "
        f"score higher on themselves{_all_decisions(task.task)}; skill not removed"
    )
    row = _row_without_p(task, "Wilcoxon over models", undefined("a test alone"), note)
    return replace(row, p=test.wilcoxon_p)


def _all_decisions(task: str) -> str:
    """What a test counts of a task of which the paper's Figure 2 counts one decision alone; else
    "".
    """
    key = KEYS_OF_FIGURE_2.get(task)
    if key is None:
        return ""
    return f" over all decisions of an item, where Figure 2 counts {key} alone"


# ---- models on themselves


@dataclass(frozen=True)
class OwnScore:
    """Models on themselves."""

    task: Annotated[str, Heading("task", "Task of the matrix.")]
    model: Annotated[str, Heading("model", "Model that predicts itself.")]
    estimate: Annotated[Estimate, Heading("score", "Mean score about itself.")]
    reason: Annotated[
        str, Heading("no interval", "Reason of an interval that is missing.", on_page=False)
    ]
    baseline: Annotated[
        float,
        Heading("best baseline of the log", "The best of the baselines that the run computed."),
    ]
    baseline_name: Annotated[str, Heading("which", "Name of this baseline.")]
    skill: Annotated[
        float,
        Heading("skill over it", "Share of the way from that baseline to 1 that the model goes."),
    ]
    skill_low: Annotated[float, Heading("skill from", "Lower end of its 95 % interval.")]
    skill_high: Annotated[float, Heading("skill to", "Upper end of its 95 % interval.")]
    ceiling: Annotated[float, Heading("ceiling", "What the target reaches when it is asked twice.")]
    ceiling_low: Annotated[float, Heading("ceiling from", "Lower end of its 95 % interval.")]
    ceiling_high: Annotated[float, Heading("ceiling to", "Upper end of its 95 % interval.")]
    worst_case: Annotated[
        float, Heading("unscored as wrong", "The score if every unscored decision were wrong.")
    ]
    best_case: Annotated[
        float, Heading("unscored as right", "The score if every unscored decision were right.")
    ]
    unsure_refusal: Annotated[
        float,
        Heading(
            "may be refusals",
            "Share of replies that may be refusals and were counted as behaviour.",
        ),
    ]
    foreign_reply: Annotated[
        float, Heading("may be a proxy's", "Share of replies that may be of another model.")
    ]
    kl_predicted: Annotated[float, PREDICTED_DIVERGENCE]
    kl_predicted_low: Annotated[float, Heading("KL(p‖p′) from", "Lower end of its 95 % interval.")]
    kl_predicted_high: Annotated[float, Heading("KL(p‖p′) to", "Upper end of its 95 % interval.")]
    kl_direct: Annotated[float, DIRECT_DIVERGENCE]
    kl_direct_low: Annotated[float, Heading("KL(p‖p*) from", "Lower end of its 95 % interval.")]
    kl_direct_high: Annotated[float, Heading("KL(p‖p*) to", "Upper end of its 95 % interval.")]
    unscored: Annotated[
        float,
        Heading("unscored", "Share of decisions without a score; they are left out.", percent),
    ]
    why_unscored: Annotated[
        str, Heading("why unscored", "Reasons with their shares, the commonest first.")
    ]
    reasoned: Annotated[
        float, Heading("reasoned", "Share of predictions that the model reasoned out.", percent)
    ]
    hole: Annotated[str, Heading("hole", "Reason of a score that is missing.")]


LOGGED_METRICS = (
    "skill",
    "skill_low",
    "skill_high",
    "ceiling",
    "ceiling_low",
    "ceiling_high",
    "worst_case",
    "best_case",
    "unsure_refusal",
    "foreign_reply",
    "kl_predicted",
    "kl_predicted_low",
    "kl_predicted_high",
    "kl_direct",
    "kl_direct_low",
    "kl_direct_high",
)
"""Metrics of a run's log beside the score."""


def own_scores(results: Results, matrices: Mapping[str, TaskMatrix]) -> list[OwnScore]:
    """Each model on itself, task by task, from the item scores that the matrices hold.

    Args:
        results: The tables.
        matrices: Those at hand, by task; a task of a single model has none in an analysis.
    """
    own_cells = results.cells[results.cells.target == results.cells.observer]
    own_decisions = results.decisions[results.decisions.target == results.decisions.observer]
    run_by_log = {run.log: run for run in results.runs}
    rows = list[OwnScore]()
    for task_name, task_cells in own_cells.groupby("task"):
        task = str(task_name)
        matrix = matrices.get(task) or matrix_of(results, task)
        clusters = item_clusters(results, matrix)
        task_decisions = own_decisions[own_decisions.task == task]
        log_by_model = dict(zip(task_cells.target, task_cells.log, strict=True))
        for model in sorted(log_by_model):
            run = run_by_log.get(log_by_model[model])
            decisions = task_decisions[task_decisions.target == model]
            rows.append(_own_score(matrix, model, clusters, decisions, run))
    return rows


def _own_score(
    matrix: TaskMatrix,
    model: str,
    clusters: npt.NDArray[np.intp],
    decisions: pd.DataFrame,
    run: Run | None,
) -> OwnScore:
    """One model on itself.

    Args:
        matrix: The scores of the task.
        model: The model.
        clusters: [item]: the number of the cluster that it counts with.
        decisions: The model's decisions about itself.
        run: Its run on itself; None where its log is not at hand.
    """
    model_index = matrix.models.index(model)
    estimate = clustered_mean(
        matrix.scores[model_index, model_index], clusters, unit=unit_name(clusters)
    )
    hole = matrix.holes.get((model, model), "")
    if not hole and not estimate.n:
        hole = "nothing was scored"
    metrics = dict(metrics_in(run.results)) if run else {}
    baseline_name, baseline = best_logged_baseline(metrics)
    logged_metrics = {name: metrics.get(name, math.nan) for name in LOGGED_METRICS}
    return OwnScore(
        task=matrix.task,
        model=model,
        estimate=estimate,
        reason=estimate.reason,
        baseline=baseline,
        baseline_name=baseline_name,
        unscored=float(decisions.value.isna().mean()),
        why_unscored=_reasons(decisions.unscored),
        reasoned=float(decisions.reasoned.mean()),
        hole=hole,
        **logged_metrics,
    )


def best_logged_baseline(metrics: Mapping[str, float]) -> tuple[str, float]:
    """Name and score of the best baseline among a run's metrics; ("", NaN) without any. A
    divergence is none.
    """
    baselines = {
        name.removeprefix("baseline_"): value
        for name, value in metrics.items()
        if name.startswith("baseline_") and not name.startswith("baseline_kl_")
    }
    return max(baselines.items(), key=lambda entry: entry[1], default=("", math.nan))


def _reasons(unscored: pd.Series) -> str:
    """The reasons with their shares, the commonest first."""
    counts = unscored.dropna().value_counts().sort_index()
    ordered_counts = counts.sort_values(ascending=False, kind="stable")
    reason_texts = [
        f"{reason} {percent(count / len(unscored))}" for reason, count in ordered_counts.items()
    ]
    return ", ".join(reason_texts)


# ---- informed observers


@dataclass(frozen=True)
class InformedRow:
    """Observers that were told of their target."""

    task: Annotated[str, Heading("task", "Task of the matrix.")]
    target: Annotated[str, Heading("target", "Model that is predicted.")]
    observer: Annotated[str, Heading("observer", "Model that predicts.")]
    arm: Annotated[
        str, Heading("told", "Hint about the target: its name, or replies of it to other items.")
    ]
    estimate: Annotated[Estimate, Heading("score", "Mean score of the observer.")]
    target_over: Annotated[
        Estimate,
        Heading(
            "target on itself minus this",
            "The model about itself less this observer about it.",
            signed_interval,
        ),
    ]
    unscored: Annotated[
        float,
        Heading("unscored", "Share of decisions without a score; they are left out.", percent),
    ]
    hole: Annotated[str, Heading("hole", "Reason why it is not used.")]


def informed_rows(results: Results, analysis: Analysis) -> list[InformedRow]:
    """Informed observers of all tasks, including those with a single model on itself, which are in
    no analysis.
    """
    rows = list[InformedRow]()
    for task_analysis in analysis.tasks:
        for observer in task_analysis.informed:
            rows.append(_informed_row(task_analysis.task, observer))
    if results.informed.empty:
        return rows

    analysed_tasks = {task_analysis.task for task_analysis in analysis.tasks}
    run_tasks = set(results.cells.task)
    for task in sorted(set(results.informed.task) - analysed_tasks):
        if task in run_tasks:
            for observer in informed_observers(results, matrix_of(results, task)):
                rows.append(_informed_row(task, observer))
    return rows


def _informed_row(task: str, observer: InformedObserver) -> InformedRow:
    return InformedRow(
        task=task,
        target=observer.target,
        observer=observer.observer,
        arm=observer.arm,
        estimate=observer.score,
        target_over=observer.target_above,
        unscored=observer.unscored,
        hole=observer.hole,
    )


def informed_lines(rows: Iterable[InformedRow], analysis: Analysis) -> list[str]:
    """A line each for the terminal, of the tasks without a matrix; a matrix says it in its
    claims.
    """
    analysed_tasks = {task.task for task in analysis.tasks}
    lines = list[str]()
    for row in rows:
        if row.task not in analysed_tasks and not row.hole:
            difference = interval_text(row.target_over, sign=True)
            lines.append(
                f"{row.task}, {row.observer} ({row.arm}) on {row.target}: {interval_text(row.estimate)}; "
                f"{row.target} on itself minus this {difference}"
            )
    return lines


# ---- frames: itself and another assistant


FRAMES_TEXT = (
    "About itself, and about another assistant: the same model and item, asked about itself and "
    "about “another AI assistant”; both answers are compared with what the model does itself (-T "
    "about=self,other). The difference (gain) is what its picture of itself adds to its picture of "
    "an assistant; it needs no other model. The interval is paired, over items."
)


@dataclass(frozen=True)
class FrameRow:
    """About itself, and about another assistant."""

    task: Annotated[str, Heading("task", "Task of the matrix.")]
    model: Annotated[str, Heading("model", "Model that was asked.")]
    quantity: Annotated[
        str, Heading("asked about", "Itself (own), another assistant (other), or their difference.")
    ]
    estimate: Annotated[Estimate, Heading("score", "Mean score, or the difference of the two.")]
    unscored: Annotated[
        float,
        Heading(
            "unscored, another",
            "Share of the answers about another assistant without a score.",
            percent,
        ),
    ]


def frame_rows(results: Results) -> list[FrameRow]:
    """One row a task, model and quantity (own, other, gain)."""
    rows = list[FrameRow]()
    for (task, model, *_), frames in sorted(results.frames.items()):
        estimates = {"own": frames.self_score, "other": frames.other_score, "gain": frames.gain}
        for quantity, estimate in estimates.items():
            rows.append(FrameRow(task, model, quantity, estimate, frames.unscored))
    return rows


def frame_lines(results: Results, tasks: Collection[str]) -> list[str]:
    """A line a model of these tasks, for the terminal."""
    lines = list[str]()
    for (task, model, *_), frames in sorted(results.frames.items()):
        if task in tasks:
            self_text = interval_text(frames.self_score)
            other_text = interval_text(frames.other_score)
            gain_text = interval_text(frames.gain, sign=True)
            lines.append(
                f"{task}, {model}: {self_text} about itself, {other_text} about another assistant, "
                f"itself minus another {gain_text}"
            )
    return lines


# ---- axes of dilemmas


AXES_TEXT = (
    "ethical_dilemma by what the dilemmas are about (table by axis): divergences in nats, over the "
    "dilemmas at which both are finite. Many values are compared there: of twenty, one differs by "
    "chance."
)
INFINITE_EVERYWHERE = undefined("KL is infinite everywhere")


@dataclass(frozen=True)
class AxisRow:
    """ethical_dilemma by what the dilemmas are about."""

    model: Annotated[str, Heading("model", "Model that predicts itself.")]
    axis: Annotated[str, Heading("axis", "Axis in the data set, such as conflict or domain.")]
    value: Annotated[str, Heading("value", "Value of the axis.")]
    dilemmas: Annotated[int, Heading("dilemmas", "Scored dilemmas.")]
    infinite: Annotated[
        int, Heading("infinite", "Scored dilemmas whose divergence is infinite; they are left out.")
    ]
    kl_predicted: Annotated[Estimate, PREDICTED_DIVERGENCE]
    kl_direct: Annotated[Estimate, DIRECT_DIVERGENCE]
    kl_gain: Annotated[
        Estimate,
        Heading(
            "gut answer minus prediction",
            "KL(p‖p*) less KL(p‖p′): above 0 the prediction is nearer.",
        ),
    ]
    cot_pred: Annotated[
        Estimate, Heading("cot_pred", "1 less the distance of predicted and actual share.")
    ]


def axis_rows(results: Results) -> list[AxisRow]:
    """A row a model, axis and value, of the finished runs of models on themselves; none where no
    dilemma has axes.
    """
    if not results.runs:
        return []
    cells = results.cells
    is_own_cell = (cells.task == DILEMMA_TASK) & (cells.target == cells.observer)
    finished_cells = cells[is_own_cell & (cells.status == "complete")]
    run_by_log = {run.log: run for run in results.runs}
    rows = list[AxisRow]()
    for cell in finished_cells.itertuples():
        if cell.log in run_by_log:
            rows += _axis_rows_of_run(str(cell.target), run_by_log[cell.log])
    return rows


def _axis_rows_of_run(model: str, run: Run) -> list[AxisRow]:
    axes_of_item: dict[str, dict[str, Any]] = {}
    cluster_of_item: dict[str, str] = {}
    for sample in run.summaries:
        item = str(sample.id)
        axes = sample.metadata.get("axes")
        if isinstance(axes, dict):
            axes_of_item[item] = axes
        cluster_of_item[item] = str(sample.metadata.get("cluster") or sample.id)
    if not axes_of_item:
        return []

    decisions, _ = split(item_decisions(run))
    dilemma_of_item = {
        item: dilemma
        for item, dilemma in dilemmas_of(decisions).items()
        if not dilemma.unscored and item in axes_of_item
    }
    axis_names = dict.fromkeys(axis for axes in axes_of_item.values() for axis in axes)
    rows = list[AxisRow]()
    for axis in axis_names:
        items_of_value: dict[str, list[str]] = {}
        for item in dilemma_of_item:
            if axis in axes_of_item[item]:
                items_of_value.setdefault(str(axes_of_item[item][axis]), []).append(item)
        for value, items in sorted(items_of_value.items()):
            dilemmas = [dilemma_of_item[item] for item in items]
            clusters = [cluster_of_item[item] for item in items]
            estimates = dilemma_estimates(dilemmas, clusters)
            rows.append(
                AxisRow(
                    model=model,
                    axis=axis,
                    value=value,
                    dilemmas=len(items),
                    infinite=infinite_kl(dilemmas)["either"],
                    kl_predicted=estimates.get("kl_predicted", INFINITE_EVERYWHERE),
                    kl_direct=estimates.get("kl_direct", INFINITE_EVERYWHERE),
                    kl_gain=estimates.get("kl_gain", INFINITE_EVERYWHERE),
                    cot_pred=estimates.get("cot_pred", INFINITE_EVERYWHERE),
                )
            )
    return rows
