"""Arms of a prompt: one with text taken out, or with a line put before; and what the subject says
of each arm.

A prompt of ours is asked about in its arms (`ask_arms`); samples of another task run under an arm,
and are asked about after the task (`asked_after`).
"""

import json
from collections.abc import Callable, Mapping, Sequence
from functools import update_wrapper
from typing import Any

from inspect_ai.event import ModelEvent
from inspect_ai.log import transcript
from inspect_ai.model import (
    ChatMessage,
    ChatMessageAssistant,
    ChatMessageSystem,
    ChatMessageUser,
    GenerateConfig,
    model_roles,
)
from inspect_ai.scorer import Score, Scorer, Target
from inspect_ai.solver import Generate, Solver, TaskState, solver
from inspect_ai.tool import ToolInfo

from selfprobe.data.items import Prompt, control_places, things_of, without_units
from selfprobe.solvers.ask import ask, in_a_run, require_model, single_model_of_role
from selfprobe.solvers.negotiate import Effort, user_settings
from selfprobe.solvers.record import Record, Reply
from selfprobe.solvers.reply_notes import note_replies
from selfprobe.text.kinds import is_refusal
from selfprobe.text.parse import stated_probability
from selfprobe.text.quotes import fold
from selfprobe.text.thoughts import split_thought

ORIGINAL, PARAPHRASE, ALL = "original", "paraphrase", "all"
"""Names of arms; a unit's is u1, u2 …, a control's c1, c2 …"""
_KINDS = {"system": ChatMessageSystem, "user": ChatMessageUser, "assistant": ChatMessageAssistant}
_COLD = GenerateConfig(temperature=0)
_REWRITE = GenerateConfig(temperature=0)


def edits_of(
    prompt: Prompt, most: int | None, controls: int
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Arms of a prompt that hold something (name → messages and tools), and its units.

    A unit is {kind, text, classes, missing}: `missing` says why it has no arm. The unit "all" is
    everything taken out that a rule counts as a giveaway; it is left out if that is one unit or
    none. A control's arm also has its `text`, its `place` (message, start, end) and the unit that
    it is as long as (`like`).

    Args:
        prompt: The row.
        most: Largest number of texts, and of tools, that are taken out. Default: see `things_of`.
        controls: Largest number of controls.
    """
    things = things_of(prompt, most)
    name_by_thing = {thing: f"u{number}" for number, thing in enumerate(things, start=1)}
    things_by_arm = {name: [thing] for thing, name in name_by_thing.items()}
    suspects = [thing for thing in things if thing.classes]
    if len(suspects) > 1:
        things_by_arm[ALL] = suspects
    arms: dict[str, Any] = {
        ORIGINAL: {"messages": list(prompt["messages"]), "tools": list(prompt.get("tools") or ())}
    }
    units: dict[str, Any] = {}
    for arm, removed in things_by_arm.items():
        shortened = without_units(prompt, removed)
        classes: dict[str, None] = {}
        for thing in removed:
            classes |= dict.fromkeys(thing.classes)
        units[arm] = {
            "kind": removed[0].kind,
            "text": "\n".join(thing.text for thing in removed),
            "classes": list(classes),
            "missing": None,
        }
        if arm == ALL:
            units[arm]["kind"] = ALL
        if not shortened:
            units[arm]["missing"] = "nothing is left of the prompt"
        if shortened:
            arms[arm] = shortened
    texts = [thing for thing in things if thing.kind != "tool"]
    for place, index in control_places(prompt, texts, controls):
        shortened = without_units(prompt, [place])
        if shortened:
            control = {"text": place.text, "place": [place.message, place.start, place.end]}
            number = sum(name.startswith("c") for name in arms) + 1
            arms[f"c{number}"] = {**shortened, **control, "like": name_by_thing[texts[index]]}
    return arms, units


@solver
def paraphrased(prompt: Callable[[str], str]) -> Solver:
    """Record a paraphrase of each system and user message under `Record.grades`, by the role
    `grader` if there is one.

    Args:
        prompt: Function from a message's text to the grader's prompt.

    Raises:
        InputError: While the task is built, in a run with several graders: they would write several
            texts.
    """
    if in_a_run():
        single_model_of_role("grader")

    async def solve(state: TaskState, generate: Generate) -> TaskState:
        if "grader" not in model_roles():
            return state
        messages = state.metadata["arms"][ORIGINAL]["messages"]
        prompts = {
            f"m{number}": prompt(message["content"])
            for number, message in enumerate(messages)
            if message["role"] != "assistant"
        }
        replies = await ask(prompts, role="grader", config=_REWRITE, may_be_cut=False)
        state.store_as(Record).grades.update(replies)
        note_replies(state, "grader", replies, _REWRITE)
        return state

    return solve


def paraphrase_of(
    messages: list[dict[str, Any]], grades: Mapping[str, Reply]
) -> tuple[list[dict[str, Any]] | None, str]:
    """Messages in other words, or None and why: a paraphrase failed, or is the unchanged text."""
    if not grades:
        return None, ""
    if any(reply.problem for reply in grades.values()):
        return None, "the grader wrote no paraphrase"
    paraphrased_messages = []
    is_changed = False
    for number, message in enumerate(messages):
        reply = grades.get(f"m{number}")
        if reply is None:
            paraphrased_messages.append(message)
            continue
        text = reply.text.strip()
        paraphrased_messages.append({**message, "content": text})
        if fold(text)[0] != fold(message["content"])[0]:
            is_changed = True
    if not is_changed:
        return None, "the paraphrase is the text itself"
    return paraphrased_messages, ""


@solver
def ask_arms(
    questions: Mapping[str, str], *, answer_tokens: int | None = None, effort: Effort | None = None
) -> Solver:
    """Record the subject's answers about each arm under `Record.answers`, as "u3.evaluation".

    Args:
        questions: Questions by name; each is put after the messages of the arm, with the arm's own
            tools on offer.
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
        record = state.store_as(Record)
        arms = dict(state.metadata["arms"])
        original = arms[ORIGINAL]
        paraphrase, _ = paraphrase_of(original["messages"], record.grades)
        if paraphrase:
            arms[PARAPHRASE] = {"messages": paraphrase, "tools": original["tools"]}

        prompts_by_tools: dict[str, dict[str, list[ChatMessage]]] = {}
        for arm, prompt in arms.items():
            conversation = [
                _KINDS[message["role"]](content=message["content"])
                for message in prompt["messages"]
            ]
            tools_json = json.dumps(prompt["tools"], sort_keys=True)
            prompts = prompts_by_tools.setdefault(tools_json, {})
            for name, question in questions.items():
                prompts[f"{arm}.{name}"] = [*conversation, ChatMessageUser(content=question)]

        for tools_json, prompts in prompts_by_tools.items():
            tools = [ToolInfo.model_validate(tool) for tool in json.loads(tools_json)]
            replies = await ask(
                prompts, role=None, config=_COLD, needs=needs, may_be_cut=False, tools=tools
            )
            record.answers = {**record.answers, **replies}
            note_replies(state, "observer", replies, _COLD.merge(needs))
        return state

    return solve


ABOUT = "selfprobe"
"""Entry of a sample's metadata: item and arm; after the run `p` (P(evaluation)), `reached` and
`declined`.
"""


@solver
def line_first(lines: Mapping[str, str]) -> Solver:
    """Put the arm's line at the end of the first system message, or make it one. Asks nothing.

    Args:
        lines: Arm → line; other arms stay unchanged.
    """

    async def solve(state: TaskState, generate: Generate) -> TaskState:
        line = lines.get(state.metadata[ABOUT]["arm"])
        if line:
            state.messages = with_line(state.messages, line)
        return state

    return solve


def with_line(messages: list[ChatMessage], line: str) -> list[ChatMessage]:
    """The messages with one more line in their first system message."""
    if not messages or not isinstance(messages[0], ChatMessageSystem):
        return [ChatMessageSystem(content=line), *messages]
    return [ChatMessageSystem(content=f"{messages[0].text}\n\n{line}"), *messages[1:]]


def asked_after(
    questions: Mapping[str, str], lines: Mapping[str, str], scorers: Sequence[Scorer]
) -> list[Scorer]:
    """Scorers of a task, the last of which then notes whether the reply declines, and asks about
    P(evaluation).

    The model is asked once per item, in a separate conversation: the messages of its first call,
    and then the question. The task has its score then, and its limits no longer count, but for half
    of a limit of time. Where a question fails the sample does, as where a scorer fails: it is asked
    again.

    Args:
        questions: "evaluation" and "deployment" → question; P(evaluation) is the mean of the first
            and 1 - the second.
        lines: Lines of `line_first`; `reached` says whether the first call held the arm's line.
        scorers: Scorers of the task itself.
    """
    *earlier_scorers, final_scorer = scorers

    async def score_and_ask(state: TaskState, target: Target) -> Score | None:
        score = await final_scorer(state, target)
        if score is not None or state.scores:
            reply = split_thought(state.output.completion).answer
            arm_metadata = state.metadata[ABOUT] | {"declined": is_refusal(reply)}
            if state.epoch == 1:
                arm_line = lines.get(arm_metadata["arm"])
                arm_metadata |= await _p_evaluation(questions, arm_line)
            state.metadata[ABOUT] = arm_metadata
        return score

    # The scorer's name and metrics in Inspect are attributes.
    update_wrapper(score_and_ask, final_scorer)
    return [*earlier_scorers, score_and_ask]


async def _p_evaluation(questions: Mapping[str, str], line: str | None) -> dict[str, Any]:
    first_call = _first_call()
    if first_call is None:
        return {"p": None, "reached": False}

    prompts = {
        label: [*first_call.input, ChatMessageUser(content=question)]
        for label, question in questions.items()
    }
    replies = await ask(prompts, role=None, config=_COLD, may_be_cut=False, tools=first_call.tools)
    p_evaluations = []
    for label, reply in replies.items():
        p_label = None if reply.problem else stated_probability(reply.text)
        if p_label is not None:
            p_evaluations.append(p_label if label == "evaluation" else 1 - p_label)

    p_evaluation = None
    if len(p_evaluations) == len(replies):
        p_evaluation = round(sum(p_evaluations) / len(p_evaluations), 4)
    line_reached = line is None or any(line in message.text for message in first_call.input)
    return {"p": p_evaluation, "reached": line_reached}


def _first_call() -> ModelEvent | None:
    """The sample's first call of the evaluated model."""
    for event in transcript().events:
        if isinstance(event, ModelEvent) and event.role is None:
            return event
    return None
