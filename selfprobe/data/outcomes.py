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
from typing import Any, Literal, NoReturn, TypeVar, get_args

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

Question = Literal["solve", "refuse", "length"]
When = Literal["before", "after"]
QUESTIONS: tuple[Question, ...] = get_args(Question)

Content = TypeVar("Content")

OUTCOME_TASK = "outcome"
"""The task that asks about outcomes: its own logs are none of what it asks about."""

_NUMBER_WORDS = {"c", "i", "p", "n", "yes", "no", "true", "false"}
"""Values that Inspect turns into numbers."""

NAMED_AT_MOST = 3
"""Names, of models, scorers or items, that a line lists."""

SampleKey = tuple[str, int]
"""Item and epoch."""


@dataclass(frozen=True)
class LoggedOutcomes:
    """Items of logs, with what the target and the other models did at them."""

    table: Table
    """One row an item: id, text (the conversation), task, cluster, outcomes, why, tokens. What was
    asked, hashed.
    """
    others: Mapping[str, Mapping[str, Mapping[str, float]]]
    """Item → other model → question → outcome."""
    answers: Mapping[str, Sequence[str]]
    """Item → its right answer and those that the target gave, where its log has them as texts."""
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
    answers: tuple[str, ...]
    """Its right answer and those that the model gave, as scorers have them."""
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
    folder_runs = runs(logs)
    reason_by_log = {run.log: run.why_unfinished for run in folder_runs.counted if not run.finished}
    for log, reason in folder_runs.set_aside_reasons.items():
        if reason.startswith(CANNOT):
            reason_by_log[log] = reason
    runs_of_pair: dict[tuple[str, str], list[Run]] = defaultdict(list)
    for run in folder_runs.finished:
        if run.identity.task != OUTCOME_TASK:
            runs_of_pair[run.identity.task, run.identity.model].append(run)
    if not runs_of_pair:
        own_logs = ""
        if folder_runs.finished:
            own_logs = f"; logs of {OUTCOME_TASK} itself are not asked about"
        raise InputError(
            f"no finished Inspect log in {', '.join(logs)}{own_logs}{first_of(reason_by_log)}"
        )

    run_titles = titles(run.identity for pair_runs in runs_of_pair.values() for run in pair_runs)
    best_runs: dict[tuple[str, str], Run] = {}
    lines = [f"{log} does not count: {reason}" for log, reason in reason_by_log.items()]
    for (task, model), pair_runs in runs_of_pair.items():
        best_run = max(pair_runs, key=lambda run: run.weight)
        best_runs[task, model] = best_run
        if invalidated := str(best_run.invalidated):
            lines.append(f"{task} of {model}: {invalidated}")
        log_count = sum(1 + len(run.others) for run in pair_runs)
        if log_count > 1:
            other_settings = " with other settings" if len(pair_runs) > 1 else ""
            date = str(best_run.header.eval.created)[:19]
            lines.append(
                f"{task}: {log_count} logs of {model}{other_settings}; "
                f"{run_titles[best_run.identity]!r} of {date} counts"
            )
    return best_runs, lines


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


class _ItemCollector:
    """The items of one model's logs, task by task."""

    def __init__(self, target: str, asking: OutcomeQuestions, lines: list[str]) -> None:
        self._target = target
        self._asking = asking
        self.lines = lines
        self.rows: list[Row] = []
        self.reason_by_item: dict[str, str] = {}
        self.outcomes_of_others: dict[str, dict[str, Mapping[str, float]]] = {}
        self.answers: dict[str, Sequence[str]] = {}

    def add_task(self, task: str, run: Run, other_runs: Mapping[str, Run]) -> None:
        """Add the items of the target's log of one task.

        Args:
            task: The task.
            run: The target's run of it.
            other_runs: Other model → its run of it.
        """
        target_outcomes, shown_texts = _readable(run, self._outcomes_and_texts, self.lines)
        self.lines += [f"{task}: {note}" for note in target_outcomes.notes]
        outcomes_by_model: dict[str, LogOutcomes] = {}
        for model, other_run in other_runs.items():
            try:
                outcomes_by_model[model] = _readable(other_run, self._outcomes, self.lines)
            except InputError as error:
                self.lines.append(f"{task}: {model} is not compared: {error}")

        unlike_counts = Counter[str]()
        for item, shown_text in shown_texts:
            item_id, target_item = f"{task}:{item}", target_outcomes.items[item]
            if isinstance(shown_text, Unaskable):
                self.reason_by_item[item_id] = str(shown_text)
                continue
            if not target_item.outcomes:
                self.reason_by_item[item_id] = "; ".join(dict.fromkeys(target_item.why.values()))
                continue
            row: Row = {
                "id": item_id,
                "text": shown_text,
                "task": task,
                "cluster": target_item.cluster or item_id,
                "outcomes": dict(target_item.outcomes),
                "why": dict(target_item.why),
            }
            if "length" in self._asking.ask:
                row["tokens"] = target_outcomes.tokens
            self.rows.append(row)
            self.answers[item_id] = target_item.answers
            self.outcomes_of_others[item_id] = {}
            for model, log_outcomes in outcomes_by_model.items():
                other_item = log_outcomes.items.get(item)
                if other_item is None:
                    continue
                if other_item.text != target_item.text:
                    unlike_counts[model] += 1
                elif other_item.outcomes:
                    self.outcomes_of_others[item_id][model] = other_item.outcomes
        self.lines += [
            f"{task}: {count} items of {model} have another text, and are not compared"
            for model, count in unlike_counts.items()
        ]

    def _outcomes(self, run: Run) -> LogOutcomes:
        return outcomes_in(run, self._asking)

    def _outcomes_and_texts(
        self, run: Run
    ) -> tuple[LogOutcomes, tuple[tuple[str, str | Unaskable], ...]]:
        texts = _shown_texts(
            run.log, stamp(run.log), self._target, self._asking.when, self._asking.at
        )
        return self._outcomes(run), texts

    def left_out_lines(self) -> list[str]:
        """Lines on the items that are left out, one a reason."""
        items_by_reason = defaultdict[str, list[str]](list)
        for item_id, reason in self.reason_by_item.items():
            items_by_reason[reason].append(item_id)
        total = len(self.reason_by_item) + len(self.rows)
        return [
            f"{len(item_ids)} of {total} items left out, {reason}: {_first_names(item_ids)}"
            for reason, item_ids in items_by_reason.items()
        ]


def _logged(paths: tuple[str, ...], target: str, asking: OutcomeQuestions) -> LoggedOutcomes:
    best_runs, lines = _counted(paths)
    target_runs = {task: run for (task, model), run in best_runs.items() if model == target}
    where = ", ".join(paths)
    if not target_runs:
        models = list(dict.fromkeys(model for _, model in best_runs))
        nearest_models = get_close_matches(target, models, n=1)
        if nearest_models:
            remedy = f"did you mean {nearest_models[0]}?"
        else:
            remedy = f"there are logs of {', '.join(models[:NAMED_AT_MOST])}"
        missing = f"no log of {target} in {where}; {remedy} (target=MODEL says whose)"
        raise InputError("; ".join([missing, *lines[:1]]))

    collector = _ItemCollector(target, asking, lines)
    for task, target_run in target_runs.items():
        other_runs = {
            model: run
            for (other_task, model), run in best_runs.items()
            if other_task == task and model != target
        }
        collector.add_task(task, target_run, other_runs)
    lines += collector.left_out_lines()
    if not collector.rows:
        if not collector.reason_by_item:
            raise InputError(
                f"logs of {target} in {where} hold no samples; run the task again, and log them"
            )
        reason, count = Counter(collector.reason_by_item.values()).most_common(1)[0]
        raise InputError(f"{where}: no item of {target} has an outcome: {reason} ({count} items)")
    table = table_of(",".join(paths), collector.rows, collector.reason_by_item)
    return LoggedOutcomes(table, collector.outcomes_of_others, collector.answers, lines)


def _readable(run: Run, read: Callable[[Run], Content], lines: list[str]) -> Content:
    """The content of the log that counts or, if it is useless, of its next best copy; the reason
    goes into the lines.

    Raises:
        InputError: All are; of the log that counts.
    """
    reason_by_log = dict[str, str]()
    best = read_best(run, lambda copy: (copy.log, read(copy)), reason_by_log)
    if best is None:
        raise InputError(reason_by_log[run.log])
    counting_log, content = best
    lines += [
        f"{log} does not count, and {counting_log} does: {reason}"
        for log, reason in reason_by_log.items()
    ]
    return content


def outcomes_in(run: Run, asking: OutcomeQuestions) -> LogOutcomes:
    """The outcomes of a log's model at each of its items.

    Raises:
        InputError: The log cannot be read, has no score, or one that is none of 0..1; names the
            scorers that there are.
    """
    return _outcomes_of_log(run.log, stamp(run.log), run.identity.model, asking)


@lru_cache(maxsize=256)  # each observer's task reads the logs of all models
def _outcomes_of_log(log: str, log_stamp: str, model: str, asking: OutcomeQuestions) -> LogOutcomes:
    samples = summaries(log)
    if asking.epochs:
        samples = [sample for sample in samples if sample.epoch <= asking.epochs]
    notes = list[str]()
    scores = dict[SampleKey, float | str]()
    if "solve" in asking.ask:
        scores, notes = _scores(log, samples, asking.score)
    replies = dict[SampleKey, _Reply]()
    if "refuse" in asking.ask or "length" in asking.ask:
        replies = _replies(log, log_stamp, model, asking.epochs)
    token_limit = float(asking.tokens) if asking.tokens else _median_tokens(replies)

    values = defaultdict[str, dict[str, list[float]]](lambda: defaultdict(list))
    reasons = defaultdict[str, dict[str, str]](dict)
    answers = defaultdict[str, dict[str, None]](dict)
    for sample in samples:
        item = str(sample.id)
        answers[item] |= dict.fromkeys(_answers(sample))
        for question in asking.ask:
            outcome = _outcome(sample, question, scores, replies, token_limit)
            if isinstance(outcome, float):
                values[item][question].append(outcome)
            else:
                reasons[item].setdefault(question, outcome)
    epoch_counts = Counter(
        len(epoch_values)
        for by_question in values.values()
        for epoch_values in by_question.values()
    )
    if len(epoch_counts) > 1:
        most_epochs = max(epoch_counts)
        fewer_count = sum(epoch_counts.values()) - epoch_counts[most_epochs]
        notes.append(f"{fewer_count} outcomes are means of fewer than {most_epochs} epochs")

    first_samples = {str(sample.id): sample for sample in reversed(samples)}
    items = {}
    for item, sample in first_samples.items():
        question_text = question_of(sample).encode(errors="replace")
        outcome_by_question = {
            question: sum(epoch_values) / len(epoch_values)
            for question, epoch_values in values[item].items()
        }
        reason_by_question = {
            question: reason
            for question, reason in reasons[item].items()
            if question not in outcome_by_question
        }
        items[item] = ItemOutcomes(
            text=sha256(question_text).hexdigest()[:16],
            outcomes=outcome_by_question,
            why=reason_by_question,
            answers=tuple(answers[item]),
            cluster=str((sample.metadata or {}).get(asking.cluster or "", "")),
        )
    if asking.cluster and not any(item.cluster for item in items.values()):
        _refuse_cluster(asking.cluster, log, list(first_samples.values()))
    return LogOutcomes(items, token_limit, notes)


def _answers(sample: EvalSampleSummary) -> list[str]:
    """The right answer of a sample, and what scorers took for the model's."""
    targets = [sample.target] if isinstance(sample.target, str) else sample.target
    given_answers = [score.answer for score in (sample.scores or {}).values() if score.answer]
    return [answer for answer in (*targets, *given_answers) if answer]


def _outcome(
    sample: EvalSampleSummary,
    question: Question,
    scores: Mapping[SampleKey, float | str],
    replies: Mapping[SampleKey, "_Reply"],
    token_limit: float,
) -> float | str:
    """The outcome of one epoch, or why there is none."""
    if sample.error:
        return "ended in an error"
    if sample.limit:
        return f"ended at its {sample.limit} limit"
    sample_key = str(sample.id), sample.epoch
    if question == "solve":
        return scores.get(sample_key, "no score")
    reply = replies.get(sample_key)
    if reply is None:
        return "no reply"
    return float(reply.is_refusal) if question == "refuse" else float(reply.tokens > token_limit)


def _median_tokens(replies: Mapping[SampleKey, "_Reply"]) -> float:
    """The lower median of the replies' tokens; NaN without any."""
    token_counts = sorted(reply.tokens for reply in replies.values())
    return float(token_counts[(len(token_counts) - 1) // 2]) if token_counts else math.nan


def _refuse_cluster(cluster: str, log: str, samples: Sequence[EvalSampleSummary]) -> NoReturn:
    names = list(dict.fromkeys(name for sample in samples for name in sample.metadata or {}))
    if names:
        remedy = f"there are {', '.join(names[:NAMED_AT_MOST])}"
    else:
        remedy = "samples have none"
    raise InputError(f"cluster={cluster}: no metadata of that name in {log}; {remedy}")


def _scores(
    log: str, samples: Sequence[EvalSampleSummary], wanted_score: str | None
) -> tuple[dict[SampleKey, float | str], list[str]]:
    """(item, epoch) → its score in 0..1, or why there is none; and which scorer it is where there
    are several.
    """
    scorers = list(dict.fromkeys(name for sample in samples for name in sample.scores or {}))
    if not scorers:
        raise InputError(
            f"{log} has no scores; score it first (inspect score), or ask for refuse or length"
        )
    keys_of_scorer = {scorer: _score_keys(samples, scorer) for scorer in scorers}
    scorer, key = _chosen_score(wanted_score, keys_of_scorer, log)
    score_name = _score_name(scorer, key)
    other_names = [name for name in _score_names(keys_of_scorer) if name != score_name]
    others = f"; others are {_first_names(other_names)}" if other_names else ""

    scores: dict[SampleKey, float | str] = {}
    for sample in samples:
        score = (sample.scores or {}).get(scorer)
        if score is None:
            continue
        share = _share(score, key)
        if share is None:
            value = score.value[key] if key and isinstance(score.value, Mapping) else score.value
            raise InputError(
                f"{log}: scorer {score_name} gives {str(value)[:40]}; expected what Inspect turns "
                f"into 0 to 1{others}"
            )
        scores[str(sample.id), sample.epoch] = share
    notes = [f"scored by {score_name}{others}"] if other_names else []
    return scores, notes


def _score_name(scorer: str, key: str) -> str:
    return f"{scorer}.{key}" if key else scorer


def _score_names(keys_of_scorer: Mapping[str, Sequence[str]]) -> list[str]:
    return [_score_name(scorer, key) for scorer, keys in keys_of_scorer.items() for key in keys]


def _first_names(names: Sequence[str]) -> str:
    """The first names, and how many more there are."""
    listed = ", ".join(names[:NAMED_AT_MOST])
    unnamed_count = len(names) - NAMED_AT_MOST
    return f"{listed} and {unnamed_count} more" if unnamed_count > 0 else listed


def _score_keys(samples: Sequence[EvalSampleSummary], scorer: str) -> list[str]:
    """Keys of a scorer's values; [""] where they have none."""
    keys: dict[str, None] = {}
    for sample in samples:
        score = (sample.scores or {}).get(scorer)
        if score is not None and isinstance(score.value, Mapping):
            keys |= dict.fromkeys(map(str, score.value))
    return list(keys) or [""]


def _chosen_score(
    wanted_score: str | None, keys_of_scorer: Mapping[str, Sequence[str]], log: str
) -> tuple[str, str]:
    """Scorer and key of what the user wants; the first scorer where nothing is wanted."""
    if wanted_score is None or wanted_score in keys_of_scorer:
        scorer = wanted_score or next(iter(keys_of_scorer))
        keys = keys_of_scorer[scorer]
        if len(keys) > 1:
            listed = _first_names([f"{scorer}.{key}" for key in keys])
            raise InputError(
                f"{log}: scorer {scorer} has {len(keys)} values; choose one: --score (-T score=…) "
                f"with {listed}"
            )
        return scorer, keys[0]

    for scorer, keys in keys_of_scorer.items():
        if wanted_score in keys:
            return scorer, wanted_score
        if wanted_score in [f"{scorer}.{key}" for key in keys]:
            return scorer, wanted_score.removeprefix(f"{scorer}.")
    names = _score_names(keys_of_scorer)
    nearest_names = get_close_matches(wanted_score, names, n=NAMED_AT_MOST, cutoff=0.3)
    raise InputError(
        f"{log}: no score {wanted_score!r}; the nearest are {_first_names(nearest_names or names)}"
    )


def _share(score: Score, key: str) -> float | str | None:
    """A score in 0..1, or why there is none; None for a value of another kind."""
    value = score.value.get(key) if key and isinstance(score.value, Mapping) else score.value
    if value is None or value != value:
        return score.reason or "unscored"
    if isinstance(value, str) and value.lower() not in _NUMBER_WORDS:
        try:
            value = float(value)
        except ValueError:
            return None
    if isinstance(value, bool | int | float | str):
        number = float(_to_float(value))
        if 0 <= number <= 1:
            return number
    return None


@dataclass(frozen=True)
class _Reply:
    """What a model wrote in one epoch of an item."""

    is_refusal: bool
    """True if its last reply refuses."""
    tokens: int
    """Tokens of all its replies."""


_to_float = value_to_float()


@lru_cache(maxsize=256)
def _replies(log: str, log_stamp: str, model: str, epochs: int | None) -> dict[SampleKey, _Reply]:
    """(item, epoch) → what the model wrote."""
    replies = dict[SampleKey, _Reply]()
    for sample in transcripts(log, epochs=epochs):
        outputs = [call.output for call in _own_calls(sample, model) if call.output.choices]
        if not outputs:
            continue
        last_output = outputs[-1]
        last_answer = split_thought(last_output.completion).answer
        was_filtered = last_output.stop_reason == "content_filter"
        replies[str(sample.id), sample.epoch] = _Reply(
            was_filtered or is_refusal(last_answer), sum(map(_tokens, outputs))
        )
    return replies


@lru_cache(maxsize=64)
def _shown_texts(
    log: str, log_stamp: str, model: str, when: When, at: int | None
) -> tuple[tuple[str, str | Unaskable], ...]:
    """Item and the conversation that is shown of it as text, or why none is."""
    return tuple(
        (str(sample.id), _shown_text(sample, model, when, at))
        for sample in transcripts(log, epochs=1)
    )


def _shown_text(sample: EvalSample, model: str, when: When, at: int | None) -> str | Unaskable:
    calls = _own_calls(sample, model)
    if not calls:
        return Unaskable(missing_call(sample, list(calls_in(sample.events)), None))
    call = calls[0]
    messages = list(call.input)
    if when == "after" or at is not None:
        call = next(later for later in reversed(calls) if goes_on(calls[0], later))
        messages = list(call.input)
        if call.output.choices:
            messages.append(call.output.message)

    row: Row = {"id": str(sample.id), "messages": list(plain_messages(messages)), "called": True}
    if call.tools:
        row["tools"] = [tool.model_dump(exclude_none=True) for tool in call.tools]
    try:
        record = conversation(
            row,
            where="what was asked",
            source="",
            label=None,
            context="full",
            as_sent=True,
        )
    except Unaskable as reason:
        return reason
    record_messages = record["messages"]
    if at is not None and at >= len(record_messages):
        return Unaskable(
            f"it has {len(record_messages)} messages, and the state after {at} is asked for"
        )
    offered_tools = [ToolInfo.model_validate(tool) for tool in record.get("tools") or ()]
    return numbered(_parts(record_messages[:at]), offered_tools)


def _tokens(output: ModelOutput) -> int:
    return output.usage.output_tokens if output.usage else len(output.completion) // 4


def _own_calls(sample: EvalSample, model: str) -> list[Any]:
    """The calls of the evaluated model in its first conversation: none of scorers, none of
    sub-agents.
    """
    calls = calls_of(list(calls_in(sample.events)), model, None)
    return [call for call in calls if first_text(call, "user") == first_text(calls[0], "user")]


def _parts(messages: Sequence[Mapping[str, Any]]) -> Iterator[tuple[str, str]]:
    """Role and text of each message, calls of tools as text."""
    for message in messages:
        lines = [message["content"]] if message["content"] else []
        lines += [call_text(name, arguments) for name, arguments in message.get("calls", ())]
        yield message["role"], "\n".join(lines)


def models_in(logs: Sequence[str]) -> list[str]:
    """Models whose logs count there, in alphabetical order."""
    return sorted({model for _, model in in_thread(_counted, list(logs))[0]})
