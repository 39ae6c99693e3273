"""A run as a baseline keeps it: what it was, and what it decided item by item, without texts; and the file of it.

The file is JSON for git, an item a line, the same bytes for the same runs.
"""

import hashlib
import json
import math
import re
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, field, fields
from typing import Any

from inspect_ai.event import ModelEvent
from inspect_ai.log import EvalLog, EvalSampleSummary
from pydantic import TypeAdapter, ValidationError

from selfprobe._registry import defaults_of, measures, tasks
from selfprobe.check.runs import Run, Value, about
from selfprobe.errors import InputError, one_line
from selfprobe.files import decoded, read_bytes
from selfprobe.header import roles_of, target_of, task_of
from selfprobe.logs import sample_of, summaries
from selfprobe.output import place_file
from selfprobe.safe import concealed
from selfprobe.scorers.decision import Judged
from selfprobe.scorers.dilemma import dilemmas_of
from selfprobe.scorers.frames import split
from selfprobe.scorers.summary import best_of, without_a_model
from selfprobe.solvers.converse import METHODS

PROMPTS = 8
"""Prompts of a sample that are kept."""


def prompts_of(header: EvalLog, sample: EvalSampleSummary) -> list[str]:
    """Digests of the prompts of one sample, in no order of calls, without the models' names where they are told.

    Options are left out, since tasks shuffle them; `Kept.answers` has them.

    A prompt counts where no reply stands before or in it, nobody was asked it as a grader, and it is more than the
    sample's own input: so the same for every model. None may be left.

    Raises:
        InputError: The log cannot be read.
    """
    whole = sample_of(header.location, sample.id, sample.epoch)
    calls = [e for e in whole.events if isinstance(e, ModelEvent) and e.role != "grader"]
    replies = {call.output.completion.strip() for call in calls if call.output.choices} - {""}
    told = header.eval.task_args.get("observer") == "asked"  # by name
    names = {name for one in (header.eval.model, target_of(header)) for name in (one, one.partition("/")[2])}
    own = whole.input if isinstance(whole.input, str) else "\n".join(message.text for message in whole.input)
    options = sorted({*(whole.choices or [])} - {""}, key=len, reverse=True)
    found = set[str]()
    for call in calls:
        text = "\n".join(message.text for message in call.input)
        if text == own or any(m.role in ("assistant", "tool") for m in call.input) or any(r in text for r in replies):
            continue
        for name in sorted(names - {""}, key=len, reverse=True) if told else ():
            text = re.sub(rf"(?<!\w){re.escape(name)}(?!\w)", "MODEL", text)
        text = re.sub("|".join(map(re.escape, options)), "OPTION", text) if options else text
        found.add(hashlib.sha256(text.encode()).hexdigest()[:12])
    return sorted(found)[:PROMPTS]


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


FORM = 1
"""Of the file; another one is refused."""

LONG = ("metrics", "items", "blind", "reasoned", "inputs", "clusters", "answers")
"""What has a line an entry."""
YOUNGER = ("answers", "left_out", "roles", "scorers")
"""Fields that older files lack; left out where they are empty, so that the same runs have the same bytes."""


def text_of(runs: Sequence[Kept]) -> str:
    """The file's text, runs in the order of their names."""
    body = "".join(_lines(sorted(runs, key=_order)))
    return f'{{\n"baseline": {FORM},\n"sha256": "{_sum_of(body)}",\n"runs": [\n{body}]}}\n'


def save(runs: Sequence[Kept], path: str) -> int:
    """Write a baseline; its size in bytes.

    Raises:
        InputError: It cannot be written there, or the path is no .json file.
    """
    if not path.endswith(".json"):
        raise InputError(f"a baseline is a .json file, got {path}")
    content = text_of(runs).encode()
    place_file(content, path)
    return len(content)


def read(path: str) -> list[Kept]:
    """The runs of a baseline.

    Raises:
        InputError: It cannot be read, is no baseline, is of another form, or was changed by hand.
    """
    again = f"; save a new one: selfprobe check LOGS --save {path}"
    try:
        text = decoded(read_bytes(path), path)
    except InputError as error:
        if isinstance(error.__cause__, FileNotFoundError):
            raise InputError(f"there is no baseline {path}{again.replace('a new one', 'one')}") from None
        raise
    try:
        found = json.loads(text, parse_constant=_refused)
    except (ValueError, RecursionError) as error:
        raise InputError(f"{path} is no baseline, it is not JSON ({one_line(error)}){again}") from None
    if not isinstance(found, dict) or "baseline" not in found or not isinstance(found.get("runs"), list):
        raise InputError(f"{path} is no baseline of selfprobe check{again}")
    if found["baseline"] != FORM:
        raise InputError(f"{path} is a baseline of form {found['baseline']}, this selfprobe reads form {FORM}{again}")
    try:
        runs = TypeAdapter(list[Kept]).validate_json(json.dumps(found["runs"]), strict=True)
    except ValidationError as error:
        first = error.errors()[0]
        at = " ".join(map(str, first["loc"]))
        raise InputError(f"{path} was changed by hand: run {at}: {first['msg']}{again}") from None
    if not runs:
        raise InputError(f"{path} holds no run{again}")
    try:
        same = _sum_of("".join(_lines(runs))) == found.get("sha256")
    except ValueError:  # 1e999 is JSON, and infinite
        raise InputError(f"{path} was changed by hand, it has a number that is infinite{again}") from None
    if not same:
        raise InputError(f"{path} was changed by hand, its sha256 is another{again}")
    return runs


def _refused(constant: str) -> None:
    raise ValueError(f"{constant} is no number")


def _sum_of(body: str) -> str:
    return hashlib.sha256(body.encode()).hexdigest()


def _order(run: Kept) -> tuple[str, ...]:
    return run.task, run.model, run.target, json.dumps([run.args, run.model_args], sort_keys=True)


def _lines(runs: Sequence[Kept]) -> Iterator[str]:
    for number, run in enumerate(runs):
        given = asdict(run)
        parts = []
        for one in fields(run):
            value = given[one.name]
            if one.name in YOUNGER and not value:
                continue
            if one.name in LONG and value:
                inside = ",\n".join(f"  {_json(name)}: {_json(value[name])}" for name in sorted(value))
                parts.append(f" {_json(one.name)}: {{\n{inside}\n }}")
            else:
                parts.append(f" {_json(one.name)}: {_json(value)}")
        yield "{\n" + ",\n".join(parts) + ("\n},\n" if number + 1 < len(runs) else "\n}\n")


def _json(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, sort_keys=True, allow_nan=False)
