"""A prompt with something taken out: its arms, and the subject's answers about each."""

import json
from collections.abc import Callable, Mapping
from typing import Any

from inspect_ai.model import (
    ChatMessage,
    ChatMessageAssistant,
    ChatMessageSystem,
    ChatMessageUser,
    GenerateConfig,
    model_roles,
)
from inspect_ai.solver import Generate, Solver, TaskState, solver
from inspect_ai.tool import ToolInfo

from selfprobe.data.items import Prompt, Unit, elsewhere, overlap, units_of, without
from selfprobe.solvers.ask import ask, in_a_run, require_model, sole
from selfprobe.solvers.negotiate import Effort, user_settings
from selfprobe.solvers.record import Record, Reply
from selfprobe.solvers.sent import note
from selfprobe.text.quotes import fold

ORIGINAL, PARAPHRASE, ALL = "original", "paraphrase", "all"
"""Names of arms; a unit's is u1, u2 …, a control's c1, c2 …"""
KINDS = {"system": ChatMessageSystem, "user": ChatMessageUser, "assistant": ChatMessageAssistant}
COLD = GenerateConfig(temperature=0)
REWRITE = GenerateConfig(temperature=0)


def edits_of(prompt: Prompt, name: str, most: int, controls: int) -> tuple[dict[str, Any], dict[str, Any]]:
    """Arms of a prompt that hold something (name → messages and tools), and its units.

    A unit is {kind, text, classes, missing}: `missing` says why it has no arm. The unit "all" is everything that a rule
    counts as a giveaway; it is left out if that is one unit or none.

    Args:
        prompt: The row.
        name: Its id, which fixes the places of the controls.
        most: Largest number of units.
        controls: Largest number of controls.
    """
    units = units_of(prompt, most)
    arms: dict[str, Any] = {ORIGINAL: {"messages": list(prompt["messages"]), "tools": list(prompt.get("tools") or ())}}
    told: dict[str, Any] = {}
    found = {f"u{n}": [unit] for n, unit in enumerate(units, start=1)}
    suspect = [unit for unit in units if unit.classes]
    if len(suspect) > 1:
        found[ALL] = suspect
    for arm, out in found.items():
        left = without(prompt, out)
        text = "\n".join(unit.text for unit in out)
        classes = list(dict.fromkeys(each for unit in out for each in unit.classes))
        told[arm] = {"kind": out[0].kind if arm != ALL else ALL, "text": text, "classes": classes}
        told[arm]["missing"] = None if left else "nothing is left of the prompt"
        if left:
            arms[arm] = left
    arms |= _controls(prompt, name, {key: out[0] for key, out in found.items() if key != ALL}, controls)
    return arms, told


def _controls(prompt: Prompt, name: str, units: Mapping[str, Unit], most: int) -> dict[str, Any]:
    """Deletions elsewhere, each as long as one of the units, with the names of the units that they touch (`hits`)."""
    texts = [unit for unit in units.values() if unit.kind != "tool"]
    places = [elsewhere(prompt, texts[n % len(texts)], f"{name} {n}") for n in range(most if texts else 0)]
    distinct = {(place.message, place.start, place.end): place for place in places if place is not None}
    left = [(place, without(prompt, [place])) for place in distinct.values()]
    hits = [[key for key, unit in units.items() if overlap(place, unit)] for place, _ in left]
    made = [{**kept, "hits": hit} for (_, kept), hit in zip(left, hits, strict=True) if kept]
    return {f"c{n}": each for n, each in enumerate(made, start=1)}


@solver
def paraphrased(prompt: Callable[[str], str]) -> Solver:
    """Record a paraphrase of each system and user message under `Record.grades`, by the role `grader` if there is one.

    Args:
        prompt: Function from a message's text to the grader's prompt.

    Raises:
        InputError: While the task is built, in a run with several graders: they would write several texts.
    """
    if in_a_run():
        sole("grader")

    async def solve(state: TaskState, generate: Generate) -> TaskState:
        if "grader" not in model_roles():
            return state
        messages = state.metadata["arms"][ORIGINAL]["messages"]
        texts = {f"m{n}": m["content"] for n, m in enumerate(messages) if m["role"] != "assistant"}
        asked = {name: prompt(text) for name, text in texts.items()}
        replies = await ask(asked, role="grader", config=REWRITE, may_be_cut=False)
        state.store_as(Record).grades.update(replies)
        note(state, "grader", replies, REWRITE)
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
    made = [{**m, "content": grades[f"m{n}"].text.strip()} if f"m{n}" in grades else m for n, m in enumerate(messages)]
    if all(fold(a["content"])[0] == fold(b["content"])[0] for a, b in zip(made, messages, strict=True)):
        return None, "the paraphrase is the text itself"
    return made, ""


@solver
def ask_arms(questions: Mapping[str, str], *, answer_tokens: int | None = None, effort: Effort | None = None) -> Solver:
    """Record the subject's answers about each arm under `Record.answers`, as "u3.evaluation".

    Args:
        questions: Questions by name; each is put after the messages of the arm, with the arm's own tools on offer.
        answer_tokens: Largest number of tokens of an answer, reasoning included. Default: the model's limit.
        effort: Reasoning effort of an answer. Default: the model's.

    Raises:
        InputError: While the task is built, in a run without a model, or with a wrong limit or effort.
    """
    require_model()
    needs = user_settings(answer_tokens, effort)

    async def solve(state: TaskState, generate: Generate) -> TaskState:
        record, arms = state.store_as(Record), dict(state.metadata["arms"])
        original = arms[ORIGINAL]
        made, _ = paraphrase_of(original["messages"], record.grades)
        if made:
            arms[PARAPHRASE] = {"messages": made, "tools": original["tools"]}
        by_tools: dict[str, dict[str, list[ChatMessage]]] = {}
        for arm, prompt in arms.items():
            chat = [KINDS[m["role"]](content=m["content"]) for m in prompt["messages"]]
            prompts = by_tools.setdefault(json.dumps(prompt["tools"], sort_keys=True), {})
            prompts |= {f"{arm}.{name}": [*chat, ChatMessageUser(content=text)] for name, text in questions.items()}
        for given, prompts in by_tools.items():
            tools = [ToolInfo.model_validate(tool) for tool in json.loads(given)]
            replies = await ask(prompts, role=None, config=COLD, needs=needs, may_be_cut=False, tools=tools)
            record.answers = {**record.answers, **replies}
            note(state, "observer", replies, COLD.merge(needs))
        return state

    return solve
