"""Outcomes of models in logs of any Inspect task: solved, refused, wrote at length; and what they
were asked.

Any score that Inspect can turn into 0..1 is a truth; several epochs have their mean. A sample that
ended in an error or at a limit has none. One log counts for each task and model, and a line says
which.
"""

import math
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from difflib import get_close_matches
from functools import lru_cache
from hashlib import sha256
from typing import Any, Literal, TypeVar, get_args

from inspect_ai.log import EvalSample, EvalSampleSummary
from inspect_ai.model import ModelOutput
from inspect_ai.scorer import Score, value_to_float
from inspect_ai.tool import ToolInfo

from selfprobe.data import Row, Table, table_of
from selfprobe.data.conversations import conversation
from selfprobe.data.inspect_data import (
    calls_in,
    calls_of,
    first_text,
    goes_on,
    missing_call,
    plain_messages,
)
from selfprobe.data.messages import Unaskable, call_text, numbered
from selfprobe.errors import InputError
from selfprobe.logs import (
    CANNOT,
    Run,
    first_of,
    in_thread,
    question_of,
    read_best,
    runs,
    summaries,
    titles,
    transcripts,
)
from selfprobe.logs.files import stamp
from selfprobe.text.kinds import is_refusal
from selfprobe.text.thoughts import split_thought

T = TypeVar("T")
Question = Literal["solve", "refuse", "length"]
When = Literal["before", "after"]
QUESTIONS: tuple[Question, ...] = get_args(Question)
OURS = "outcome"
"""The task that asks about outcomes: its own logs are none of what it asks about."""
_WORDS = {"c", "i", "p", "n", "yes", "no", "true", "false"}
"""Values that Inspect turns into numbers."""
NEAREST = 3


@dataclass(frozen=True)
class LoggedOutcomes:
    """Items of logs, with what the target and the other models did at them."""

    table: Table
    """One row an item: id, text (the conversation), task, cluster, outcomes, why, tokens. What was
    asked, hashed.
    """
    others: Mapping[str, Mapping[str, Mapping[str, float]]]
    """Item → other model → question → outcome."""
    notes: Sequence[str]
    """Lines for the user: which log, scorer and items count."""


@dataclass(frozen=True)
class ItemOutcomes:
    """One model's outcomes at one item."""

    text: str
    """Digest of the item's input."""
    outcomes: Mapping[str, float]
    why: Mapping[str, str]
    """Question → why it has no outcome."""
    cluster: str


@dataclass(frozen=True)
class LogOutcomes:
    """One model's outcomes in one log."""

    items: Mapping[str, ItemOutcomes]
    tokens: float
    """Number of tokens from which a reply is long; NaN where nobody asks."""
    notes: Sequence[str] = field(default=())


@dataclass(frozen=True)
class OutcomeQuestions:
    """The questions about outcomes, one set for all models."""

    ask: tuple[Question, ...] = ("solve",)
    when: When = "before"
    at: int | None = None
    score: str | None = None
    tokens: int | None = None
    cluster: str | None = None

    @property
    def epochs(self) -> int | None:
        """Epochs that count: what is shown of an epoch foretells that one alone."""
        return 1 if self.when == "after" or self.at else None


def _counted(logs: Sequence[str]) -> tuple[dict[tuple[str, str], Run], list[str]]:
    """(task, model) → the finished log that counts, the best first; and a line for each that does
    not count.

    Raises:
        InputError: A path does not exist, or holds no finished log of a task.
    """
    there = runs(logs)
    aside = {run.log: run.why_unfinished for run in there.counted if not run.finished}
    aside |= {log: why for log, why in there.aside.items() if why.startswith(CANNOT)}
    same: dict[tuple[str, str], list[Run]] = defaultdict(list)
    for run in there.finished:
        if run.identity.task != OURS:
            same[run.identity.task, run.identity.model].append(run)
    if not same:
        ours = f"; logs of {OURS} itself are not asked about" if there.finished else ""
        raise InputError(f"no finished Inspect log in {', '.join(logs)}{ours}{first_of(aside)}")
    best = {key: max(each, key=lambda run: run.weight) for key, each in same.items()}
    named = titles(run.identity for each in same.values() for run in each)
    lines = [f"{log} does not count: {why}" for log, why in aside.items()]
    for (task, model), each in same.items():
        taken, count = best[task, model], sum(1 + len(run.others) for run in each)
        other = " with other settings" if len(each) > 1 else ""
        date = str(taken.header.eval.created)[:19]
        if invalidated := str(taken.invalidated):
            lines.append(f"{task} of {model}: {invalidated}")
        if count > 1:
            lines.append(
                f"{task}: {count} logs of {model}{other}; {named[taken.identity]!r} of {date} counts"
            )
    return best, lines


def logged_outcomes(
    logs: str | Sequence[str], target: str, asking: OutcomeQuestions
) -> LoggedOutcomes:
    """The items that a model was asked in logs, with its outcomes and those of the other models
    there.

    Args:
        logs: Files and folders.
        target: The model, as Inspect names it.
        asking: What is asked about.

    Raises:
        InputError: There is no log of the model, or no item with an outcome; or see `outcomes_in`.
    """
    paths = [logs] if isinstance(logs, str) else list(logs)
    return in_thread(_logged, tuple(paths), target, asking)


def _logged(paths: tuple[str, ...], target: str, asking: OutcomeQuestions) -> LoggedOutcomes:
    best, lines = _counted(paths)
    mine = {task: run for (task, model), run in best.items() if model == target}
    if not mine:
        models = list(dict.fromkeys(model for _, model in best))
        near = get_close_matches(target, models, n=1)
        remedy = (
            f"did you mean {near[0]}?"
            if near
            else f"there are logs of {', '.join(models[:NEAREST])}"
        )
        missing = f"no log of {target} in {', '.join(paths)}; {remedy} (target=MODEL says whose)"
        raise InputError("; ".join([missing, *lines[:1]]))
    rows, aside, others = list[Row](), dict[str, str](), dict[str, dict[str, Mapping[str, float]]]()

    def shown(run: Run) -> tuple[LogOutcomes, tuple[tuple[str, str | Unaskable], ...]]:
        return outcomes_in(run, asking), _asked(
            run.log, stamp(run.log), target, asking.when, asking.at
        )

    for task, run in mine.items():
        own, texts = _readable(run, shown, lines)
        lines += [f"{task}: {note}" for note in own.notes]
        rest = dict[str, LogOutcomes]()
        for (_, model), other in (
            (of, run) for of, run in best.items() if of[0] == task and of[1] != target
        ):
            try:
                rest[model] = _readable(other, lambda run: outcomes_in(run, asking), lines)
            except InputError as why_not:
                lines.append(f"{task}: {model} is not compared: {why_not}")
        apart_from = Counter[str]()
        for item, text in texts:
            key, done = f"{task}:{item}", own.items[item]
            if isinstance(text, Unaskable):
                aside[key] = str(text)
            elif not done.outcomes:
                aside[key] = "; ".join(dict.fromkeys(done.why.values()))
            else:
                about = {"id": key, "text": text, "task": task, "cluster": done.cluster or key}
                length = {"tokens": own.tokens} if "length" in asking.ask else {}
                rows.append(
                    about | {"outcomes": dict(done.outcomes), "why": dict(done.why)} | length
                )
                alike = {m: other.items[item] for m, other in rest.items() if item in other.items}
                others[key] = {
                    m: one.outcomes
                    for m, one in alike.items()
                    if one.text == done.text and one.outcomes
                }
                apart_from.update(m for m, one in alike.items() if one.text != done.text)
        lines += [
            f"{task}: {n} items of {m} have another text, and are not compared"
            for m, n in apart_from.items()
        ]
    left = defaultdict[str, list[str]](list)
    for key, reason in aside.items():
        left[reason].append(key)
    for reason, keys in left.items():
        lines.append(
            f"{len(keys)} of {len(aside) + len(rows)} items left out, {reason}: {_some(keys)}"
        )
    if not rows and not aside:
        raise InputError(
            f"logs of {target} in {', '.join(paths)} hold no samples; run the task again, and log them"
        )
    if not rows:
        why, count = Counter(aside.values()).most_common(1)[0]
        raise InputError(
            f"{', '.join(paths)}: no item of {target} has an outcome: {why} ({count} items)"
        )
    return LoggedOutcomes(table_of(",".join(paths), rows, aside), others, lines)


def _readable(run: Run, read: Callable[[Run], T], lines: list[str]) -> T:
    """The content of the log that counts or, if it is useless, of its next best copy; the reason
    goes into the lines.

    Raises:
        InputError: All are; of the log that counts.
    """
    useless = dict[str, str]()
    if (best := read_best(run, lambda one: (one.log, read(one)), useless)) is None:
        raise InputError(useless[run.log])
    lines += [f"{log} does not count, and {best[0]} does: {why}" for log, why in useless.items()]
    return best[1]


def outcomes_in(run: Run, asking: OutcomeQuestions) -> LogOutcomes:
    """The outcomes of a log's model at each of its items.

    Raises:
        InputError: The log cannot be read, has no score, or one that is none of 0..1; names the
            scorers that there are.
    """
    return _did(run.log, stamp(run.log), run.identity.model, asking)


@lru_cache(maxsize=256)  # each observer's task reads the logs of all models
def _did(log: str, changed: str, model: str, asking: OutcomeQuestions) -> LogOutcomes:
    samples = [one for one in summaries(log) if not asking.epochs or one.epoch <= asking.epochs]
    notes = list[str]()
    scores = dict[tuple[str, int], float | str]()
    if "solve" in asking.ask:
        scores, notes = _scores(log, samples, asking.score)
    replies = (
        _replies(log, changed, model, asking.epochs)
        if {"refuse", "length"} & set(asking.ask)
        else {}
    )
    lengths = sorted(tokens for _, tokens in replies.values())
    middle = float(lengths[(len(lengths) - 1) // 2]) if lengths else math.nan
    limit = float(asking.tokens) if asking.tokens else middle
    values = defaultdict[str, dict[str, list[float]]](lambda: defaultdict(list))
    why = defaultdict[str, dict[str, str]](dict)
    for sample in samples:
        item, at = str(sample.id), (str(sample.id), sample.epoch)
        fault = (
            "ended in an error"
            if sample.error
            else f"ended at its {sample.limit} limit"
            if sample.limit
            else ""
        )
        known: dict[str, float | str] = {"solve": scores.get(at, "no score")}
        refused, tokens = replies.get(at, (False, -1))
        known |= (
            {"refuse": float(refused), "length": float(tokens > limit)} if at in replies else {}
        )
        for question in asking.ask:
            value = fault or known.get(question, "no reply")
            if isinstance(value, float):
                values[item][question].append(value)
            else:
                why[item].setdefault(question, value)
    first = {str(sample.id): sample for sample in reversed(samples)}
    counts = Counter(len(each) for of in values.values() for each in of.values())
    if len(counts) > 1:
        fewer = sum(counts.values()) - counts[max(counts)]
        notes.append(f"{fewer} outcomes are means of fewer than {max(counts)} epochs")
    items = {
        item: ItemOutcomes(
            text=sha256(question_of(sample).encode(errors="replace")).hexdigest()[:16],
            outcomes={q: sum(each) / len(each) for q, each in values[item].items()},
            why={q: reason for q, reason in why[item].items() if q not in values[item]},
            cluster=str((sample.metadata or {}).get(asking.cluster or "", "")),
        )
        for item, sample in first.items()
    }
    if asking.cluster and not any(one.cluster for one in items.values()):
        known_names = list(
            dict.fromkeys(name for sample in first.values() for name in sample.metadata or {})
        )
        there = (
            f"; there are {', '.join(known_names[:NEAREST])}"
            if known_names
            else "; samples have none"
        )
        raise InputError(f"cluster={asking.cluster}: no metadata of that name in {log}{there}")
    return LogOutcomes(items, limit, notes)


def _scores(
    log: str, samples: Sequence[EvalSampleSummary], wanted: str | None
) -> tuple[dict[tuple[str, int], float | str], list[str]]:
    """(item, epoch) → its score in 0..1, or why there is none; and which scorer it is where there
    are several.
    """
    named = list(dict.fromkeys(name for sample in samples for name in sample.scores or {}))
    if not named:
        raise InputError(
            f"{log} has no scores; score it first (inspect score), or ask for refuse or length"
        )
    keys = {name: _keys(samples, name) for name in named}
    full = [f"{name}.{key}" if key else name for name in named for key in keys[name]]
    name, key = _chosen(wanted, named, keys, full, log)
    shown = f"{name}.{key}" if key else name
    others = [one for one in full if one != shown]
    rest = f"; others are {_some(others)}" if others else ""
    scores: dict[tuple[str, int], float | str] = {}
    for sample in samples:
        if (score := (sample.scores or {}).get(name)) is not None:
            value = _share(score, key)
            if value is None:
                gives = str(
                    score.value[key] if key and isinstance(score.value, Mapping) else score.value
                )[:40]
                expected = f"expected what Inspect turns into 0 to 1{rest}"
                raise InputError(f"{log}: scorer {shown} gives {gives}; {expected}")
            scores[str(sample.id), sample.epoch] = value
    return scores, [f"scored by {shown}{rest}"] if others else []


def _some(names: Sequence[str]) -> str:
    """The first names, and how many more there are."""
    more = f" and {len(names) - NEAREST} more" if len(names) > NEAREST else ""
    return ", ".join(names[:NEAREST]) + more


def _keys(samples: Sequence[EvalSampleSummary], name: str) -> list[str]:
    """Keys of a scorer's values; [""] where they have none."""
    values = [
        score.value for sample in samples if (score := (sample.scores or {}).get(name)) is not None
    ]
    found = dict.fromkeys(key for value in values if isinstance(value, Mapping) for key in value)
    return [str(key) for key in found] or [""]


def _chosen(
    wanted: str | None,
    named: Sequence[str],
    keys: Mapping[str, Sequence[str]],
    full: Sequence[str],
    log: str,
) -> tuple[str, str]:
    """Scorer and key of what the user wants; the first scorer where nothing is wanted."""
    if wanted is None or wanted in named:
        name = wanted or named[0]
        if keys[name] != [""] and len(keys[name]) > 1:
            which = f"choose one: --score (-T score=…) with {_some([f'{name}.{key}' for key in keys[name]])}"
            raise InputError(f"{log}: scorer {name} has {len(keys[name])} values; {which}")
        return name, keys[name][0]
    for name in named:
        if wanted in keys[name] or wanted in [f"{name}.{key}" for key in keys[name]]:
            return name, wanted if wanted in keys[name] else wanted.removeprefix(f"{name}.")
    near = get_close_matches(wanted, full, n=NEAREST, cutoff=0.3) or full
    raise InputError(f"{log}: no score {wanted!r}; the nearest are {_some(near)}")


def _share(score: Score, key: str) -> float | str | None:
    """A score in 0..1, or why there is none; None for a value of another kind."""
    value = score.value.get(key) if key and isinstance(score.value, Mapping) else score.value
    if value is None or value != value:
        return score.reason or "unscored"
    if isinstance(value, str) and value.lower() not in _WORDS:
        try:
            value = float(value)
        except ValueError:
            value = math.nan
    if isinstance(value, bool | int | float | str):
        number = float(_to_float(value))
        if 0 <= number <= 1:
            return number
    return None


_to_float = value_to_float()


@lru_cache(maxsize=256)
def _replies(
    log: str, changed: str, model: str, epochs: int | None
) -> dict[tuple[str, int], tuple[bool, int]]:
    """(item, epoch) → whether the model's last reply refuses, and the tokens of all its replies."""
    found = dict[tuple[str, int], tuple[bool, int]]()
    for sample in transcripts(log, epochs=epochs):
        outputs = [call.output for call in _own_calls(sample, model) if call.output.choices]
        if outputs:
            last = outputs[-1]
            refused = last.stop_reason == "content_filter" or is_refusal(
                split_thought(last.completion).answer
            )
            found[str(sample.id), sample.epoch] = refused, sum(map(_tokens, outputs))
    return found


def _tokens(output: ModelOutput) -> int:
    return output.usage.output_tokens if output.usage else len(output.completion) // 4


def _own_calls(sample: EvalSample, model: str) -> list[Any]:
    """The calls of the evaluated model in its first conversation: none of scorers, none of
    sub-agents.
    """
    calls = calls_of(list(calls_in(sample.events)), model, None)
    return [call for call in calls if first_text(call, "user") == first_text(calls[0], "user")]


@lru_cache(maxsize=64)
def _asked(
    log: str, changed: str, model: str, when: When, at: int | None
) -> tuple[tuple[str, str | Unaskable], ...]:
    """Item and the conversation that is shown of it as text, or why none is."""
    return tuple(
        (str(sample.id), _shown(sample, model, when, at)) for sample in transcripts(log, epochs=1)
    )


def _shown(sample: EvalSample, model: str, when: When, at: int | None) -> str | Unaskable:
    calls = _own_calls(sample, model)
    if not calls:
        return Unaskable(missing_call(sample, list(calls_in(sample.events)), None))
    whole = when == "after" or at is not None
    taken = next(call for call in reversed(calls) if goes_on(calls[0], call)) if whole else calls[0]
    last = [taken.output.message] if whole and taken.output.choices else []
    tools = [tool.model_dump(exclude_none=True) for tool in taken.tools]
    row = {
        "id": str(sample.id),
        "messages": list(plain_messages([*taken.input, *last])),
        "called": True,
    }
    try:
        made = conversation(
            row | ({"tools": tools} if tools else {}),
            where="what was asked",
            source="",
            label=None,
            context="full",
            as_sent=True,
        )
    except Unaskable as why:
        return why
    messages = made["messages"]
    if at is not None and at >= len(messages):
        return Unaskable(f"it has {len(messages)} messages, and the state after {at} is asked for")
    offered = [ToolInfo.model_validate(tool) for tool in made.get("tools") or ()]
    return numbered(_parts(messages[:at]), offered)


def _parts(messages: Sequence[Mapping[str, Any]]) -> Iterator[tuple[str, str]]:
    """Role and text of each message, calls of tools as text."""
    for message in messages:
        calls = [call_text(name, given) for name, given in message.get("calls", ())]
        yield message["role"], "\n".join([*filter(None, [message["content"]]), *calls])


def models_in(logs: Sequence[str]) -> list[str]:
    """Models whose logs count there, in alphabetical order."""
    return sorted({model for _, model in in_thread(_counted, list(logs))[0]})
