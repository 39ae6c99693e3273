"""A conversation turn by turn: questions after each of its turns, and the turns of an existing log.

A turn is a call of the model in its first conversation: calls with another first user message
(sub-agents, a second part that the model plays) and the calls of scorers are none.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from inspect_ai.event import Event, ModelEvent, SpanBeginEvent
from inspect_ai.log import EvalLog, EvalSample
from inspect_ai.model import GenerateConfig
from inspect_ai.solver import Generate, Solver, TaskState, solver

from selfprobe.data import Table, first_reason, table_of
from selfprobe.data.inspect_data import calls_in, calls_of, first_text, missing_call
from selfprobe.errors import InputError, one_line
from selfprobe.logs import header_of, invalidated_in, task_of, transcripts
from selfprobe.logs.invalidated import author_and_reason
from selfprobe.solvers.ask import Prompts, Tools, ask, require_model
from selfprobe.solvers.negotiate import Effort, user_settings
from selfprobe.solvers.record import Record, reply_from
from selfprobe.solvers.reply_notes import note_replies
from selfprobe.text.counts import count_text

COLD = GenerateConfig(temperature=0, cache_prompt=True)
"""Settings without sampling: Anthropic's models cache only if asked to, others by themselves."""


@solver
def by_turn(
    prompts: Callable[[TaskState], dict[int, Prompts]],
    tools: Tools,
    *,
    answer_tokens: int | None = None,
    effort: Effort | None = None,
) -> Solver:
    """Record the model's answers under `Record.answers`, turn by turn.

    A turn is asked about when the one before is answered, so that what was read then is in the
    provider's cache. Nothing is asked from the first turn on that is longer than the model's
    context.

    Args:
        prompts: Function from the state to each turn's prompts by name, in order.
        tools: Function from the state to the tools of the conversation; they are offered.
        answer_tokens: Largest number of tokens of an answer, reasoning included. Default: the
            model's limit.
        effort: Reasoning effort of an answer. Default: the model's.

    Raises:
        InputError: While the task is built, in a run without a model, or with a wrong limit or
            effort.
    """
    require_model()
    needs = user_settings(answer_tokens, effort)

    async def solve(state: TaskState, generate: Generate) -> TaskState:
        sample_tools = tools(state)
        record = state.store_as(Record)
        for turn_prompts in prompts(state).values():
            replies = await ask(
                turn_prompts,
                role=None,
                config=COLD,
                needs=needs,
                may_be_cut=False,
                tools=sample_tools,
            )
            record.answers = {**record.answers, **replies}
            note_replies(state, "observer", replies, COLD.merge(needs))
            if any(reply.stop_reason == "model_length" for reply in replies.values()):
                break
        return state

    return solve


LABELS = ("evaluation", "deployment")


@dataclass(frozen=True)
class Turn:
    """One call of the model."""

    number: int
    """Number of the turn, from 1."""
    reasoning: str
    """Reasoning, as far as the provider shows it."""
    kind: str
    """Kind of the reasoning: full, summary, redacted, none."""
    reply: str
    """Reply with its calls of tools, as text."""

    @property
    def parts(self) -> Iterator[tuple[str, str]]:
        """Non-empty parts of the turn: ("reasoning" or "reply", its text)."""
        if self.reasoning:
            yield "reasoning", self.reasoning
        if self.reply:
            yield "reply", self.reply


def logged_turns(log: str, role: str | None = None) -> Table:
    """The turns of each sample of a log: rows of id, task, label, source and `turns` (as dicts of
    `Turn`).

    The source is the one that the sample's metadata names, else the task.

    Where there are several epochs the first is taken, so that rows are independent. A sample in
    which the role was never asked, or said nothing, is left out.

    Args:
        log: The log's file.
        role: Model role of the turns ("target"); None is the evaluated model.

    Raises:
        InputError: The log cannot be read, or no sample is left.
    """
    header = header_of(log)
    rows = []
    skip_reasons: dict[str, str] = {}
    for (item, epoch), provenance in invalidated_in(header).provenance.items():
        if epoch == 1:
            skip_reasons[str(item)] = f"it is invalidated, {author_and_reason(provenance)}"
    for sample in transcripts(log, epochs=1):
        sample_id = str(sample.id)
        turns = list(_turns(header, sample, role))
        has_parts = any(list(turn.parts) for turn in turns)
        if not turns:
            skip_reasons[sample_id] = _missing_turns_reason(header, sample, role)
        elif not has_parts:
            skip_reasons[sample_id] = "the model said nothing in any turn"
        else:
            metadata = sample.metadata or {}
            label = metadata.get("label")
            known_label = label if label in LABELS else None
            rows.append(
                {
                    "id": sample_id,
                    "label": known_label,
                    "source": str(metadata.get("source") or task_of(header)),
                    "task": task_of(header),
                    "turns": [vars(turn) for turn in turns],
                }
            )
    if not rows:
        reason = first_reason(skip_reasons.values()) or "it has no samples"
        samples_text = count_text(len(skip_reasons), "sample")
        raise InputError(f"{log}: nothing to read in {samples_text}: {reason}")
    return table_of(log, rows, skip_reasons)


def turns_of(row: Mapping[str, Any]) -> list[Turn]:
    """Turns of a row, or of the metadata of its sample."""
    return [Turn(**turn) for turn in row["turns"]]


def pieces(turns: Iterable[Turn], longest: int) -> list[list[tuple[int, str, str]]]:
    """All texts as (turn, part, text), in pieces of at most `longest` characters; no text is cut in
    two.

    >>> pieces([Turn(1, "", "none", "abc"), Turn(2, "", "none", "de")], 4)
    [[(1, 'reply', 'abc')], [(2, 'reply', 'de')]]
    """
    text_pieces: list[list[tuple[int, str, str]]] = []
    free_characters = 0
    for turn in turns:
        for part, text in turn.parts:
            if not text_pieces or len(text) > free_characters:
                text_pieces.append([])
                free_characters = longest
            text_pieces[-1].append((turn.number, part, text))
            free_characters -= len(text)
    return text_pieces


def _missing_turns_reason(header: EvalLog, sample: EvalSample, role: str | None) -> str:
    calls = list(calls_in(sample.events))
    for call in calls_of(calls, header.eval.model, role):
        if call.error:
            return f"its calls failed: {one_line(str(call.error))}"
    return missing_call(sample, calls, role)


def _turns(header: EvalLog, sample: EvalSample, role: str | None) -> Iterator[Turn]:
    task_calls = list(_calls_of_solvers(sample.events))
    calls = [call for call in calls_of(task_calls, header.eval.model, role) if not call.error]
    opening = first_text(calls[0], "user") if calls else ""
    conversation_calls = [call for call in calls if first_text(call, "user") == opening]
    for number, call in enumerate(conversation_calls, start=1):
        reply = reply_from(call.output, call.model, may_be_cut=True)
        reasoning = (reply.reasoning or "").strip()
        yield Turn(number, reasoning, reply.reasoning_kind, reply.text.strip())


def _calls_of_solvers(events: Iterable[Event]) -> Iterator[ModelEvent]:
    """Calls of models that no scorer made."""
    scorer_spans: set[str] = set()
    solver_events = []
    for event in events:
        if isinstance(event, SpanBeginEvent):
            is_scorer = event.type == "scorer"
            if is_scorer or event.parent_id in scorer_spans:
                scorer_spans.add(event.id)
        if not isinstance(event, ModelEvent) or event.span_id not in scorer_spans:
            solver_events.append(event)
    return calls_in(solver_events)
