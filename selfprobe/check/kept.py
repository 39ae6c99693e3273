"""A run as a baseline keeps it: what it was, and what it decided item by item, without texts."""

import hashlib
import json
import math
from collections import defaultdict
from dataclasses import dataclass, field
from typing import Any

from inspect_ai.log import EvalLog

from selfprobe._registry import defaults_of, measures, tasks
from selfprobe.check.prompts import prompts_of
from selfprobe.check.table import Run, Value, about
from selfprobe.errors import InputError
from selfprobe.header import roles_of, task_of
from selfprobe.logs import summaries
from selfprobe.safe import concealed
from selfprobe.scorers.decision import Judged
from selfprobe.scorers.dilemma import dilemmas_of
from selfprobe.scorers.frames import split
from selfprobe.scorers.summary import best_of, without_a_model
from selfprobe.solvers.converse import METHODS

Cell = dict[str, list[float | str]]
"""Key → of every epoch its value, or why there is none."""

ELSEWHERE = ("target_log", "observer_log", "limit")
"""Task arguments that say where replies lie, not what is asked."""
DIGITS = 6
LARGEST = 1e100
"""A score beyond it has no variance in floating point, and is not compared."""
UNBOUND = "the evaluated model"
"""Who has a role that nobody was given."""
MEND = "only numbers can be compared: give its scorer numbers, or score the log again"


@dataclass(frozen=True)
class Kept:
    """One run. All of it is JSON."""

    task: str
    model: str
    target: str
    version: str
    """Of the task, without the data set's hash."""
    selfprobe: str
    """Version of the suite; "" of other suites' logs."""
    args: dict[str, Any]
    """Task arguments that are set, of the suite's those that are no default."""
    model_args: dict[str, Any]
    data: str
    """Hash of the whole data set; "" of other suites', whose `inputs` are compared."""
    plan: str
    """Digest of the solvers and their arguments; "" of the suite's, whose version says it."""
    prompts: list[str]
    """See `prompts.prompts_of`, of the first sample."""
    applied: dict[str, int]
    """How the model was really asked, of other suites how it was to be asked → samples."""
    metric: str
    """What the score of the suite's task is called; "" of other suites', which have one a scorer."""
    metrics: dict[str, float]
    """As the log has them, for the reader."""
    items: dict[str, Cell]
    """Item → what was decided; nothing of a sample that failed."""
    blind: dict[str, dict[str, float]] = field(default_factory=dict)
    """The same cells: what the best guess without a model gets (chance, the most frequent truth), 0 where left out."""
    reasoned: dict[str, list[str]] = field(default_factory=dict)
    """Item → keys at which the model reasoned although it was not to, once an epoch."""
    inputs: dict[str, str] = field(default_factory=dict)
    """Item → digest of what it asks."""
    clusters: dict[str, str] = field(default_factory=dict)
    """Item → what it comes from, where items were grouped."""
    answers: dict[str, str] = field(default_factory=dict)
    """Item → digest of its options and its target; nothing in files of earlier versions."""
    left_out: dict[str, str] = field(default_factory=dict)
    """Key of another suite's score → why it is not compared."""
    roles: dict[str, str] = field(default_factory=dict)
    """Role → its model, of all but the target; nothing in files of earlier versions."""
    scorers: dict[str, str] = field(default_factory=dict)
    """Scorer of another suite → digest of its arguments; nothing in files of earlier versions."""

    @property
    def epochs(self) -> int:
        """Of the item that has most."""
        return max((len(given) for cell in self.items.values() for given in cell.values()), default=0)

    @property
    def name(self) -> str:
        """For people: the task and its model."""
        return f"{self.task} of {self.model}{about(self.model, self.target)}"


def kept(run: Run) -> Kept:
    """A run of `check.table.load` as a baseline keeps it.

    Raises:
        InputError: No score is a number that can be compared, or nothing in the run is a value.
    """
    header, ours = run.header, "selfprobe" in (run.header.eval.metadata or {})
    left_out = _left_out(run)
    values = [value for value in _values(run) if value.key not in left_out]
    if not values and left_out:
        raise InputError(f"{run.log}: {'; '.join(left_out.values())}; {MEND}")
    if not values:
        raise InputError(f"{run.log}: no sample of {run.task} has a score")
    items: dict[str, Cell] = {item: {} for item in run.inputs}  # one whose sample failed stays empty
    reasoned: dict[str, list[str]] = {}
    for value in values:
        given = value.unscored or (None if value.value is None else _rounded(value.value))
        if given is not None:
            items.setdefault(value.item, {}).setdefault(value.key, []).append(given)
        if value.decision is not None and value.decision.reasoned:
            reasoned.setdefault(value.item, []).append(value.key)
    metadata = header.eval.metadata or {}
    return Kept(
        task=run.task,
        model=run.model,
        target=run.target,
        version=str(header.eval.task_version).partition("+")[0],
        selfprobe=str(metadata.get("selfprobe", "")),
        args=_arguments(header) if ours else _plain(header.eval.task_args),
        model_args=_plain(concealed(header.eval.model_args)),
        data=str(metadata.get("dataset_sha256", "")) if ours else "",
        plan="" if ours else _plan(header),
        prompts=_prompts(run),
        applied=dict(sorted(run.asked.items())) if ours else _settings(run),
        metric=_metric(run),
        metrics=_metrics(header),
        items=dict(sorted(items.items())),
        blind=_blind(run, values),
        reasoned=dict(sorted(reasoned.items())),
        inputs={} if ours else dict(sorted(run.inputs.items())),
        clusters=dict(sorted(run.clusters.items())),
        answers={} if ours else dict(sorted(run.answers.items())),
        left_out=dict(sorted(left_out.items())),
        roles=_roles(header),
        scorers={} if ours else _scorers(header),
    )


def _values(run: Run) -> list[Value]:
    """Those that make the score: of the suite's about the model itself, of a method its verdict."""
    ours = [value for value in run.values if value.decision is not None]
    if not ours:
        return run.values
    if run.task == "ethical_dilemma":
        own, _ = split(_judged(ours))
        scores = dilemmas_of(own)
        return [Value(i, 1, "cot_pred", None if d.unscored else d.cot_pred, d.unscored) for i, d in scores.items()]
    own_keys = {decision.key for _, decision in split(_judged(ours))[0]}
    if run.task in METHODS and run.task in own_keys:
        own_keys = {run.task}
    return [value for value in ours if value.key in own_keys]


def _left_out(run: Run) -> dict[str, str]:
    """Keys of which a value cannot be compared, and why: the first such value."""
    found: dict[str, str] = {}
    for value in run.values:
        what, where = f"{value.key} of {run.task} is", f"at sample {value.item!r}"
        if value.value is None and value.unscored is None:
            found.setdefault(value.key, f"{what} no number {where}, and no C, I, P or N")
        elif value.value is not None and abs(value.value) > LARGEST:
            found.setdefault(value.key, f"{what} {value.value:g} {where}, too large to compute with")
    return found


def _rounded(value: float) -> float:
    """Six decimals, of what is near 0 six digits."""
    return float(f"{value:.{DIGITS}g}") if abs(value) < 1 else round(value, DIGITS)


def _judged(values: list[Value]) -> list[Judged]:
    return [(value.item, value.decision) for value in values if value.decision is not None]


def _blind(run: Run, values: list[Value]) -> dict[str, dict[str, float]]:
    """Of a task of the matrix whose score is a mean; without it there is no skill."""
    measure = measures().get(run.task)
    scored = [value for value in values if value.value is not None and value.decision is not None]
    if measure is None or measure.item_scores is not None or len(scored) < 2:
        return {}
    judged = [(run.clusters.get(item, item), decision) for item, decision in _judged(scored)]
    candidates = without_a_model(judged, measure.right)
    hits = best_of(candidates).tolist() if candidates else []
    found = defaultdict[str, dict[str, list[float]]](dict)
    for value, hit in zip(scored, hits, strict=False):
        found[value.item].setdefault(value.key, []).append(0.0 if math.isnan(hit) else hit)
    means = {
        item: {key: round(sum(h) / len(h), DIGITS) for key, h in own.items() if any(h)} for item, own in found.items()
    }
    return {item: own for item, own in sorted(means.items()) if own}


def _prompts(run: Run) -> list[str]:
    first = min(summaries(run.log), key=lambda sample: (bool(sample.error), str(sample.id), sample.epoch), default=None)
    return prompts_of(run.header, first) if first is not None else []


def _settings(run: Run) -> dict[str, int]:
    """How another suite's model was to be asked."""
    told = run.header.plan.config.model_dump(exclude_none=True)
    told |= run.header.eval.model_generate_config.model_dump(exclude_none=True)
    names = ("temperature", "top_p", "top_k", "max_tokens", "reasoning_effort", "reasoning_tokens", "effort")
    way = ", ".join(f"{name} {told[name]}" for name in names if name in told)
    return {way or "the model's own settings": run.done}


def _plan(header: EvalLog) -> str:
    steps = [(step.solver, step.params) for step in header.plan.steps]
    return _digest(steps)


def _digest(told: object) -> str:
    return hashlib.sha256(json.dumps(told, sort_keys=True, default=str).encode()).hexdigest()[:12]


def _roles(header: EvalLog) -> dict[str, str]:
    bound = {role: ", ".join(one.model for one in models) for role, models in roles_of(header).items()}
    bound.pop("target", None)
    return dict(sorted(({"grader": UNBOUND} | bound).items()))


def _scorers(header: EvalLog) -> dict[str, str]:
    """Scorer → digest of its arguments. `model_args` are left out: a mock's replies have new ids in every run."""
    told = {}
    for score in header.results.scores if header.results else []:
        given = {
            name: {k: v for k, v in value.items() if k != "model_args"} if isinstance(value, dict) else value
            for name, value in score.params.items()
        }
        told[score.scorer] = _digest(given)
    return dict(sorted(told.items()))


def _metric(run: Run) -> str:
    """What the task calls the mean of its decisions: the first of its metrics; of a method with labels accuracy."""
    if run.task in METHODS:
        return "accuracy"
    if run.task not in measures():
        return ""
    scores = run.header.results.scores if run.header.results else []
    return next((name for score in scores for name in score.metrics), "score")


def _metrics(header: EvalLog) -> dict[str, float]:
    found = {
        f"{score.name}.{name}": round(float(metric.value), DIGITS)
        for score in (header.results.scores if header.results else [])
        for name, metric in score.metrics.items()
        if math.isfinite(metric.value)
    }
    return dict(sorted(found.items()))


def _arguments(header: EvalLog) -> dict[str, Any]:
    known = defaults_of(task_of(header)) if task_of(header) in tasks() else {}
    given = {k: v for k, v in header.eval.task_args.items() if v is not None and k not in ELSEWHERE}
    return _plain({name: value for name, value in given.items() if value != known.get(name)})


def _plain(given: Any) -> dict[str, Any]:
    """As JSON has it."""
    return dict(json.loads(json.dumps(given, sort_keys=True, default=str)))
