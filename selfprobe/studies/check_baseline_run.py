"""What the baseline of `selfprobe check` keeps of a run."""

import hashlib
import json
import math
import re
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from string import ascii_uppercase
from typing import Any

from inspect_ai.event import ModelEvent
from inspect_ai.log import EvalSampleReductions, EvalSampleSummary
from inspect_ai.model import ChatMessage

from selfprobe.errors import InputError
from selfprobe.logs import Run, about_of, args_of, roles_of, target_of, whole_sample
from selfprobe.logs.judged import (
    FAILED,
    NO_SCORE,
    ForeignDecision,
    ScoreColumn,
    number_of,
    values_of,
)
from selfprobe.logs.reducers import MEAN, known_reducer, logged_reductions, reduced, reducers_of
from selfprobe.scorers.decision import Judged
from selfprobe.scorers.dilemma import Dilemma, dilemmas_of
from selfprobe.scorers.summary import best_of, without_a_model
from selfprobe.solvers.converse import METHODS
from selfprobe.solvers.observe import OTHER_PREFIX
from selfprobe.stats.estimate import number_or_nan
from selfprobe.studies.check_numbers import UNNAMED_SCORE
from selfprobe.studies.check_pairs import UNBOUND, BaselineRun
from selfprobe.studies.check_read import ReadRun
from selfprobe.studies.check_table import TableRow
from selfprobe.study._registry import defaults_of, measures
from selfprobe.study._registry import tasks as tasks_by_name
from selfprobe.text.safe import concealed
from selfprobe.text.thoughts import split_thought

LOCATION_ARGUMENTS = ("target_log", "observer_log", "limit")
"""Task arguments that say where replies lie, not what is asked."""
KEPT_DIGITS = 6
"""Number of digits of a value that a baseline keeps."""
KEPT_PROMPTS = 8
"""Number of prompts of a sample whose digests a baseline keeps."""
KEPT_ANSWER_CHARACTERS = 60
"""Number of characters of an answer that a baseline keeps."""
LARGEST_SCORE = 1e100
"""A score beyond it has no variance in floating point, and is not compared."""


def baseline_run(read_run: ReadRun) -> BaselineRun:
    """A run as a baseline keeps it.

    Raises:
        InputError: No score is a number that can be compared, or nothing in the run is a value.
    """
    header = read_run.run.header
    metadata = header.eval.metadata or {}
    samples = read_run.run.summaries
    is_of_suite = "selfprobe" in metadata
    left_out = _left_out(read_run)
    rows = _compared_rows(read_run, left_out)
    judged_values = [(row.item, row.decision) for row in rows if not row.failed]
    kept_values = _kept_values(rows, samples)
    clusters = _cluster_by_item(samples)
    task_args = header.eval.task_args
    if is_of_suite:
        task_args = changed_defaults(read_run.task, args_of(header))
    applied = _requested_settings(read_run)
    if is_of_suite:
        applied = dict(read_run.applied_settings)
    baseline = BaselineRun(
        task=read_run.task,
        model=header.eval.model,
        target=target_of(header),
        version=str(header.eval.task_version).partition("+")[0],
        selfprobe=str(metadata.get("selfprobe", "")),
        args=plain_json(task_args),
        model_args=plain_json(concealed(header.eval.model_args)),
        data="",
        plan="",
        prompts=_prompts(read_run.run, samples),
        applied=applied,
        metric=_metric_name(read_run, judged_values),
        metrics=_logged_metrics(read_run),
        items=kept_values.items,
        blind=_blind_scores(read_run, judged_values, clusters),
        reasoned=kept_values.reasoned_keys,
        clusters=clusters,
        left_out=left_out,
        roles=_models_by_role(read_run),
        said=kept_values.answers,
    )
    if is_of_suite:
        return replace(baseline, data=str(metadata.get("dataset_sha256", "")))
    return _with_foreign_digests(baseline, read_run)


def _compared_rows(read_run: ReadRun, left_out: Mapping[str, str]) -> list[TableRow]:
    """Rows of the score, without the keys that are left out.

    Raises:
        InputError: There is none.
    """
    rows = [row for row in _score_rows(read_run) if row.decision.key not in left_out]
    if any(not row.failed for row in rows):
        return rows
    if left_out:
        remedy = "only numbers can be compared: give its scorer numbers, or score the log again"
        raise InputError(f"{read_run.run.log}: {'; '.join(left_out.values())}; {remedy}")
    raise InputError(f"{read_run.run.log}: no sample of {read_run.task} has a score")


@dataclass(frozen=True)
class _KeptValues:
    """Values of a run by item and key; see the fields of `BaselineRun`."""

    items: dict[str, dict[str, list[float | str]]]
    answers: dict[str, dict[str, list[str]]]
    reasoned_keys: dict[str, list[str]]


def _kept_values(rows: Sequence[TableRow], samples: Sequence[EvalSampleSummary]) -> _KeptValues:
    items: dict[str, dict[str, list[float | str]]] = {str(sample.id): {} for sample in samples}
    answers = defaultdict[str, dict[str, list[str]]](dict)
    reasoned_keys = defaultdict[str, list[str]](list)
    for row in rows:
        decision = row.decision
        value = decision.unscored or _rounded(decision.value)
        if value is None:
            continue
        items[row.item].setdefault(decision.key, []).append(value)
        if not row.failed:
            answer_text = " ".join((decision.said or "").split())
            kept_answer = answer_text[:KEPT_ANSWER_CHARACTERS]
            answers[row.item].setdefault(decision.key, []).append(kept_answer)
        if decision.reasoned:
            reasoned_keys[row.item].append(decision.key)
    return _KeptValues(dict(sorted(items.items())), dict(answers), dict(reasoned_keys))


def _cluster_by_item(samples: Sequence[EvalSampleSummary]) -> dict[str, str]:
    """Item → what it comes from, where items were grouped."""
    clusters = dict[str, str]()
    for sample in samples:
        if sample.metadata.get("cluster"):
            clusters[str(sample.id)] = str(sample.metadata["cluster"])
    return clusters


def _with_foreign_digests(baseline: BaselineRun, read_run: ReadRun) -> BaselineRun:
    """A run of another suite, with what its task's version does not say: digests of solvers,
    inputs, targets and scorers.
    """
    header = read_run.run.header
    samples = read_run.run.summaries
    solvers = [(step.solver, step.params) for step in header.plan.steps]
    question_digests = dict[str, str]()
    answer_digests = dict[str, str]()
    for sample in samples:
        item = str(sample.id)
        question_digests[item] = _digest(_question(sample), 8)
        right_answer = _right_answer(sample)
        if right_answer:
            answer_digests[item] = _digest(right_answer, 8)
    scorer_digests = dict[str, str]()
    for score in read_run.logged_scores:
        scorer_digests[score.scorer] = _digest(_without_replies(score.params))
    return replace(
        baseline,
        plan=_digest(solvers),
        inputs=question_digests,
        answers=answer_digests,
        scorers=scorer_digests,
        reducers=_reducers(read_run),
    )


def changed_defaults(task_name: str, arguments: Mapping[str, Any]) -> dict[str, Any]:
    """Arguments of a task of the suite that are other than its defaults, without those that only
    say where logs lie.
    """
    defaults = defaults_of(task_name) if task_name in tasks_by_name() else {}
    changed = {}
    for name, value in arguments.items():
        if value is not None and name not in LOCATION_ARGUMENTS and value != defaults.get(name):
            changed[name] = value
    return changed


def _metric_name(read_run: ReadRun, judged_values: Sequence[Judged]) -> str:
    """Name of the score of a task of the suite; "" for others."""
    if read_run.task in METHODS:
        return "accuracy"
    if read_run.task not in measures():
        return ""
    if all(decision.value is None for _, decision in judged_values):
        return UNNAMED_SCORE  # the log has other numbers alone, such as the ceiling
    for score in read_run.logged_scores:
        for name in score.metrics:
            return name  # the mean of its decisions
    return UNNAMED_SCORE


def _logged_metrics(read_run: ReadRun) -> dict[str, float]:
    """Finite metrics of a log's header, rounded: "scorer.metric" → value."""
    metrics = {}
    for score in read_run.logged_scores:
        for name, metric in score.metrics.items():
            metrics[f"{score.name}.{name}"] = float(metric.value)
    return {
        name: round(value, KEPT_DIGITS) for name, value in metrics.items() if math.isfinite(value)
    }


def _models_by_role(read_run: ReadRun) -> dict[str, str]:
    """Role → its model, for all roles but the target; the grader's always."""
    models_by_role = {"grader": UNBOUND}
    for role, models in roles_of(read_run.run.header).items():
        if role != "target":
            models_by_role[role] = ", ".join(config.model for config in models)
    return models_by_role


def _score_rows(read_run: ReadRun) -> list[TableRow]:
    """Rows that make the score: those of the suite about the model itself, a method's verdict."""
    table = read_run.table
    are_foreign = all(isinstance(row.decision, ForeignDecision) for row in table)
    if are_foreign:
        return table
    self_rows = [row for row in table if not row.decision.key.startswith(OTHER_PREFIX)]
    if read_run.task == "ethical_dilemma":
        judged_values = [(row.item, row.decision) for row in self_rows if not row.failed]
        dilemma_by_item = dilemmas_of(judged_values)
        return [
            TableRow(item, 1, _dilemma_score(dilemma)) for item, dilemma in dilemma_by_item.items()
        ]
    if read_run.task in METHODS:
        verdict_rows = [row for row in self_rows if row.decision.key == read_run.task]
        return verdict_rows or self_rows
    return self_rows


def _dilemma_score(dilemma: Dilemma) -> ForeignDecision:
    value = None if dilemma.unscored else dilemma.cot_pred
    return ForeignDecision(key="cot_pred", value=value, unscored=dilemma.unscored)


def _reducers(read_run: ReadRun) -> list[str]:
    """Names of the reducers of another suite's epochs; none where it is the mean.

    One that gives other values than the log has of it, such as `at_least(2, value=.5)`, gets a name
    that nobody knows.
    """
    reducers = reducers_of(read_run.run.header)
    if reducers == [MEAN]:
        return []
    is_whole = not read_run.run.invalidated.provenance
    reductions = logged_reductions(read_run.run.log) if is_whole else []
    names = list[str]()
    for reducer in reducers:
        reducer_name = reducer
        if known_reducer(reducer) is not None:
            logged_values = [logged for logged in reductions if logged.reducer == reducer]
            if not _agrees(read_run, reducer, logged_values):
                reducer_name = f"{reducer} with arguments of its own"
        names.append(reducer_name)
    return names


def _agrees(
    read_run: ReadRun, reducer: str, scorer_reductions: Sequence[EvalSampleReductions]
) -> bool:
    """True if a reducer gives the values that a log has of it, as far as these are numbers."""
    left_out = _left_out(read_run)
    values_of_cell = defaultdict[tuple[str, str], list[float]](list)
    for row in read_run.table:
        decision = row.decision
        if decision.unscored not in (FAILED, NO_SCORE):
            values_of_cell[decision.key, row.item].append(number_or_nan(decision.value))

    for reduction in scorer_reductions:
        for sample in reduction.samples:
            for key, logged_value in values_of(sample).items():
                score_name = ScoreColumn(reduction.scorer, key).name
                logged_number = number_of(logged_value)
                epoch_values = values_of_cell.get((score_name, str(sample.sample_id)))
                if score_name in left_out or logged_number is None or epoch_values is None:
                    continue
                value = reduced(epoch_values, reducer)
                if not math.isclose(value, logged_number, abs_tol=1e-9):
                    return False
    return True


def _left_out(read_run: ReadRun) -> dict[str, str]:
    """Keys of which a value cannot be compared, and why: the first such value."""
    reasons = dict[str, str]()
    for item, decision in read_run.values:
        score = f"{decision.key} of {read_run.task} is"
        place = f"at sample {item!r}"
        if decision.value is None and decision.unscored is None:
            reasons.setdefault(decision.key, f"{score} no number {place}, and no C, I, P or N")
        elif decision.value is not None and abs(decision.value) > LARGEST_SCORE:
            reasons.setdefault(
                decision.key, f"{score} {decision.value:g} {place}, too large to compute with"
            )
    return reasons


def _rounded(value: float | None) -> float | None:
    """Six decimals, of what is near 0 six digits."""
    if value is None:
        return None
    return float(f"{value:.{KEPT_DIGITS}g}") if abs(value) < 1 else round(value, KEPT_DIGITS)


def _blind_scores(
    read_run: ReadRun, judged_values: Sequence[Judged], clusters: dict[str, str]
) -> dict[str, dict[str, float]]:
    """Best guesses without a model, for a matrix task whose score is a mean; without them there is
    no skill.
    """
    measure = measures().get(read_run.task)
    scored_values = list[Judged]()
    for item, decision in judged_values:
        if decision.value is not None and not isinstance(decision, ForeignDecision):
            scored_values.append((item, decision))
    if measure is None or measure.item_scores is not None or len(scored_values) < 2:
        return {}

    cluster_values = [(clusters.get(item, item), decision) for item, decision in scored_values]
    candidates = without_a_model(cluster_values, measure.right)
    if not candidates:
        return {}
    best_guesses = best_of(candidates).tolist()
    scores_of_cell = defaultdict[tuple[str, str], list[float]](list)
    for (item, decision), guess_score in zip(scored_values, best_guesses, strict=False):
        score = 0.0 if math.isnan(guess_score) else guess_score
        scores_of_cell[item, decision.key].append(score)

    blind_scores = defaultdict[str, dict[str, float]](dict)
    for (item, key), scores in scores_of_cell.items():
        if any(scores):
            blind_scores[item][key] = round(sum(scores) / len(scores), KEPT_DIGITS)
    return dict(blind_scores)


def _prompts(run: Run, samples: Sequence[EvalSampleSummary]) -> list[str]:
    """Digests of the prompts of the first sample, in no order of calls, without the models' names
    where they are told.

    Options are left out, since tasks shuffle them; `BaselineRun.answers` has them. A prompt counts
    where no reply stands before or in it, nobody was asked it as a grader, and it is more than the
    sample's own input: so the same for every model. None may be left.

    Raises:
        InputError: The log cannot be read.
    """
    header = run.header
    first_summary = min(
        samples, key=lambda sample: (bool(sample.error), str(sample.id), sample.epoch)
    )
    sample = whole_sample(run.log, first_summary.id, first_summary.epoch)
    calls = list[ModelEvent]()
    replies = set[str]()
    for event in sample.events:
        if not isinstance(event, ModelEvent) or event.role == "grader":
            continue
        calls.append(event)
        if event.output.choices:
            replies.add(split_thought(event.output.completion).answer.strip())
    replies.discard("")

    sample_input = _input_text(sample.input)
    options = sorted({*(sample.choices or [])} - {""}, key=len, reverse=True)
    model_names = set[str]()
    if about_of(header) == "named":
        for model in (header.eval.model, target_of(header)):
            model_names |= {model, model.partition("/")[2]}
    names_by_length = sorted(model_names - {""}, key=len, reverse=True)

    prompt_digests = set[str]()
    for call in calls:
        prompt = _input_text(call.input)
        follows_reply = any(message.role in ("assistant", "tool") for message in call.input)
        holds_reply = any(reply in prompt for reply in replies)
        if prompt == sample_input or follows_reply or holds_reply:
            continue
        for name in names_by_length:
            prompt = re.sub(rf"(?<!\w){re.escape(name)}(?!\w)", "MODEL", prompt)
        if options:
            prompt = re.sub("|".join(map(re.escape, options)), "OPTION", prompt)
        prompt_digests.add(_digest(prompt))
    return sorted(prompt_digests)[:KEPT_PROMPTS]


def _input_text(messages: str | Sequence[ChatMessage]) -> str:
    """Texts of an input, a message a line."""
    if isinstance(messages, str):
        return messages
    return "\n".join(message.text for message in messages)


def _question(sample: EvalSampleSummary) -> str:
    """Texts that a sample asks, without the messages' other fields: messages have ids of their own
    in every run.
    """
    if isinstance(sample.input, str):
        return sample.input
    return "\n".join(f"{message.role}: {message.text}" for message in sample.input)


def _right_answer(sample: EvalSampleSummary) -> str:
    """A sample's options and its target: letters as their options' texts, and in no order, since
    tasks shuffle them.
    """
    options = sample.choices or []
    targets = [sample.target] if isinstance(sample.target, str) else sample.target
    if not any(targets):
        return ""
    option_by_letter = dict(zip(ascii_uppercase, options, strict=False))
    target_texts = [option_by_letter.get(target, target) for target in targets]
    return "\n".join([*sorted(options), "→", *sorted(target_texts)])


SETTING_NAMES = (
    "temperature",
    "top_p",
    "top_k",
    "max_tokens",
    "reasoning_effort",
    "reasoning_tokens",
    "effort",
)
"""Settings of a call that say how a model was asked."""


def _requested_settings(read_run: ReadRun) -> dict[str, int]:
    """Settings that another suite's model was to be asked with."""
    header = read_run.run.header
    settings = header.plan.config.model_dump(exclude_none=True)
    settings |= header.eval.model_generate_config.model_dump(exclude_none=True)
    setting_texts = [f"{name} {settings[name]}" for name in SETTING_NAMES if name in settings]
    settings_text = ", ".join(setting_texts) or "the model's own settings"
    return {settings_text: len(read_run.finished_samples)}


def _without_replies(scorer_arguments: dict[str, Any]) -> dict[str, Any]:
    """A scorer's arguments without `model_args`: a mock's replies have new ids in every run."""
    arguments = dict(scorer_arguments)
    for name, value in arguments.items():
        if isinstance(value, dict):
            arguments[name] = {key: part for key, part in value.items() if key != "model_args"}
    return arguments


def _digest(content: object, length: int = 12) -> str:
    text = content if isinstance(content, str) else json.dumps(content, sort_keys=True, default=str)
    return hashlib.sha256(text.encode()).hexdigest()[:length]


def plain_json(value: Any) -> dict[str, Any]:
    """A value in the form that JSON has."""
    return dict(json.loads(json.dumps(value, sort_keys=True, default=str)))
