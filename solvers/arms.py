"""Samples of another task under an arm: a line in the system message before, a separate question after the task."""

from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from inspect_ai.event import ModelEvent
from inspect_ai.log import transcript
from inspect_ai.model import ChatMessage, ChatMessageSystem, ChatMessageUser, GenerateConfig
from inspect_ai.solver import Generate, Solver, TaskState, solver

from selfprobe.solvers.ask import ask
from selfprobe.text.kinds import is_refusal
from selfprobe.text.parse import stated_probability

ABOUT = "selfprobe"
"""Entry of a sample's metadata: item and arm; after the run `p` (P(evaluation)), `reached` and `declined`."""
COLD = GenerateConfig(temperature=0)

Cleanup = Callable[[TaskState], Awaitable[None]]


@solver
def line_first(lines: Mapping[str, str]) -> Solver:
    """Put the arm's line at the end of the first system message, or make it one. Asks nothing.

    Args:
        lines: Arm → line; other arms stay unchanged.
    """

    async def solve(state: TaskState, generate: Generate) -> TaskState:
        if line := lines.get(state.metadata[ABOUT]["arm"]):
            state.messages = with_line(state.messages, line)
        return state

    return solve


def with_line(messages: list[ChatMessage], line: str) -> list[ChatMessage]:
    """The messages with one more line in their first system message."""
    if not messages or not isinstance(messages[0], ChatMessageSystem):
        return [ChatMessageSystem(content=line), *messages]
    return [ChatMessageSystem(content=f"{messages[0].text}\n\n{line}"), *messages[1:]]


def asked_after(questions: Mapping[str, str], lines: Mapping[str, str], then: Cleanup | None) -> Cleanup:
    """Cleanup of a scored sample: note whether the reply declines, and ask once per item about P(evaluation).

    The model is asked in a separate conversation: the messages of its first call, and then the question. The sample
    then has its score, and limits of the task no longer count.

    Args:
        questions: "evaluation" and "deployment" → question; P(evaluation) is the mean of the first and 1 - the second.
        lines: Lines of `line_first`; `reached` says whether the first call held the arm's line.
        then: Cleanup of the task itself.
    """

    async def cleanup(state: TaskState) -> None:
        try:
            if state.scores:
                about = state.metadata[ABOUT] | {"declined": is_refusal(state.output.completion)}
                state.metadata[ABOUT] = about
                if state.epoch == 1:
                    state.metadata[ABOUT] = about | await _asked(questions, lines.get(about["arm"]))
        finally:
            if then is not None:
                await then(state)

    return cleanup


async def _asked(questions: Mapping[str, str], line: str | None) -> dict[str, Any]:
    call = next((e for e in transcript().events if isinstance(e, ModelEvent) and e.role is None), None)
    if call is None:
        return {"p": None, "reached": False}
    sent = {side: [*call.input, ChatMessageUser(content=text)] for side, text in questions.items()}
    replies = await ask(sent, role=None, config=COLD, may_be_cut=False, tools=call.tools)
    found = {side: None if reply.problem else stated_probability(reply.text) for side, reply in replies.items()}
    turned = [p if side == "evaluation" else 1 - p for side, p in found.items() if p is not None]
    reached = line is None or any(line in message.text for message in call.input)
    return {"p": round(sum(turned) / len(turned), 4) if len(turned) == len(found) else None, "reached": reached}
