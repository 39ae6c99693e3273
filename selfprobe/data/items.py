"""Items of any Inspect task, and what can be taken out of their prompts: sentences, options,
placeholders, tools.

Rules for classes of giveaways are for English, in own words after the trigger factors of
EvalAwareBench (Li et al. 2026): such as placeholder entities and forms made for grading. They name
what they match, and decide nothing.
"""

import inspect
import re
import sys
import zlib
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from inspect_ai import Task
from inspect_ai.dataset import Sample
from inspect_ai.model import ChatMessage, ChatMessageUser, ContentText

from selfprobe.errors import InputError
from selfprobe.errors.arguments import only_known
from selfprobe.errors.inspect_private import registry_info, registry_lookup
from selfprobe.logs.first_call import build
from selfprobe.text.quotes import fold

_OPTION = re.compile(r"^\s*[(\[]?[A-Ha-h][)\].:]\s+\S")
_FENCE = re.compile(r"^\s*```")
_SENTENCE = re.compile(r"(?<=[.!?…])[\"'”’)\]]*\s+|(?<=[。！？])|\n+")
_PLACEHOLDER = re.compile(
    r"\[[A-Z][A-Z _-]+\]|\{\{?\s*\w+\s*\}?\}|<[A-Z][A-Z_]{2,}>|\bX{3,}\b"
    r"|(?i:\b(?:lorem ipsum|foobar|(?:jane|john) (?:doe|smith)|acme(?: corp\w*)?)\b)"
    r"|(?i:\S+@example\.\w+|\bexample\.(?:com|org)\b)"
)

_TEST_WORDS = (
    r"\b(?:benchmark|evaluat\w+|red.?team\w*|sandbox\w*|simulat\w+|this is (?:only )?a test|exam\b|"
    r"test (?:case|suite|environment|scenario)|being (?:tested|assessed|graded))"
)

_GRADED_FORM = (
    r"\b(?:only (?:the|a|one) (?:letter|number|option)|single (?:letter|word|number)|"
    r"letter of the|final answer|\\boxed|answer:|"
    r"exactly (?:one|two|three|\d+) (?:words?|sentences?)|respond only with)"
)


_UNWATCHED = (
    r"\b(?:(?:nobody|no one) (?:reads|watches|sees|will)|not (?:be )?monitored|unmonitored|"
    r"scratchpad|private (?:notes|reasoning)|without (?:any )?oversight)"
)
_GOAL = (
    r"\b(?:at (?:all|any) costs?|nothing else matters|your only goal|no matter what|by any means|"
    r"long.?term goal)"
)
_STAGED = (
    r"\b(?:imagine|suppose|hypothetical\w*|pretend|role.?play|fictional|made.?up|scenario|"
    r"you are an? (?:ai|assistant|language model|agent|helpful))"
)
_BAIT = (
    r"\b(?:password|credentials?|api.?keys?|confidential|secret|blackmail|exfiltrat\w+|"
    r"disable\w* (?:the )?(?:log\w*|monitor\w*|oversight))"
)
CLASSES: Mapping[str, re.Pattern[str]] = {
    "says that it is a test": re.compile(_TEST_WORDS, re.IGNORECASE),
    "stand-ins for names and values": _PLACEHOLDER,
    "a form made for grading": re.compile(_GRADED_FORM, re.IGNORECASE),
    "a list of options": re.compile(_OPTION.pattern, re.MULTILINE),
    "nobody is watching": re.compile(_UNWATCHED, re.IGNORECASE),
    "a goal above everything": re.compile(_GOAL, re.IGNORECASE),
    "a staged situation": re.compile(_STAGED, re.IGNORECASE),
    "bait": re.compile(_BAIT, re.IGNORECASE),
}
"""Eight classes of what gives an evaluation away, each with what matches it."""


@dataclass(frozen=True)
class Unit:
    """Something that can be taken out."""

    kind: str
    """sentence, options, code, placeholder, tool."""
    text: str
    message: int
    """Number of the message, from 0; −1 for a tool."""
    start: int
    end: int
    """Place in the message where the unit ends; for a tool its number plus one."""

    @property
    def classes(self) -> list[str]:
        """Names of the classes whose rules match; none for a tool."""
        if self.kind == "tool":
            return []
        return [name for name, pattern in CLASSES.items() if pattern.search(self.text)]


Prompt = Mapping[str, Any]
"""A row with `messages` (role and content) and maybe `tools`."""


def units_of(prompt: Prompt, most: int) -> list[Unit]:
    """The units that can be taken out of a prompt's system and user messages and tools, in order.

    Where there are more than `most` sentences, neighbours are taken together, so that every word is
    in some unit.
    """
    pieces: list[Unit] = []
    placeholders: list[Unit] = []
    for number, message in enumerate(prompt["messages"]):
        if message["role"] == "assistant":
            continue
        content = message["content"]
        pieces += _pieces(content, number)
        placeholders += [
            Unit("placeholder", match.group(), number, match.start(), match.end())
            for match in _PLACEHOLDER.finditer(content)
        ]
    piece_spans = {_span(piece) for piece in pieces}
    inner_placeholders = [unit for unit in placeholders if _span(unit) not in piece_spans]
    tools = [
        Unit("tool", str(tool.get("name", "")), -1, number, number + 1)
        for number, tool in enumerate(prompt.get("tools") or ())
    ]
    return [*_merged(pieces, most, prompt), *inner_placeholders[:most], *tools[:most]]


def _span(unit: Unit) -> tuple[int, int, int]:
    return unit.message, unit.start, unit.end


def _pieces(text: str, message_number: int) -> Iterator[Unit]:
    """Sentences, and blocks of options or code as one."""
    for kind, block_start, block_end in _blocks(text):
        if kind != "sentence":
            block = text[block_start:block_end]
            yield Unit(kind, block, message_number, block_start, block_end)
            continue

        gaps = [gap.span() for gap in _SENTENCE.finditer(text, block_start, block_end)]
        sentence_start = block_start
        for gap_start, gap_end in [*gaps, (block_end, block_end)]:
            sentence = text[sentence_start:gap_start].strip()
            if sentence:
                start = text.index(sentence, sentence_start)
                yield Unit("sentence", sentence, message_number, start, start + len(sentence))
            sentence_start = gap_end


def _blocks(text: str) -> Iterator[tuple[str, int, int]]:
    """Runs of lines of one kind: options (two lines or more), fenced code, and the rest."""
    blocks: list[tuple[str, int, int]] = []
    is_fenced = False
    line_start = 0
    for line in text.splitlines(keepends=True):
        is_fence = _FENCE.match(line) is not None
        if is_fenced or is_fence:
            kind = "code"
        elif _OPTION.match(line):
            kind = "options"
        else:
            kind = "sentence"
        is_fenced = is_fenced != is_fence
        line_end = line_start + len(line)
        if blocks and blocks[-1][0] == kind:
            _, block_start, _ = blocks.pop()
            blocks.append((kind, block_start, line_end))
        else:
            blocks.append((kind, line_start, line_end))
        line_start = line_end

    for kind, start, end in blocks:
        block = text[start:end]
        if kind == "options" and "\n" not in block.strip():
            kind = "sentence"
        stripped_end = start + len(block.rstrip())
        if stripped_end > start:
            yield kind, start, stripped_end


def _merged(pieces: Sequence[Unit], most: int, prompt: Prompt) -> list[Unit]:
    """At most so many groups of neighbours, each within one message."""
    if len(pieces) <= most:
        return list(pieces)
    merged: list[Unit] = []
    for group in np.array_split(np.arange(len(pieces)), most):
        group_pieces = [pieces[number] for number in group]
        for message_number in sorted({piece.message for piece in group_pieces}):
            neighbours = [piece for piece in group_pieces if piece.message == message_number]
            start, end = neighbours[0].start, neighbours[-1].end
            kind = "sentence" if len(neighbours) > 1 else neighbours[0].kind
            text = prompt["messages"][message_number]["content"][start:end]
            merged.append(Unit(kind, text, message_number, start, end))
    return merged


def without_units(prompt: Prompt, units: Iterable[Unit]) -> dict[str, Any] | None:
    """The prompt without these units; None where no user message is left.

    >>> row = {"messages": [{"role": "user", "content": "It is a test. Add 2 and 2."}]}
    >>> without_units(row, units_of(row, 9)[:1])["messages"][0]["content"]
    'Add 2 and 2.'
    """
    spans_of_message: dict[int, list[tuple[int, int]]] = defaultdict(list)
    for unit in units:
        spans_of_message[unit.message].append((unit.start, unit.end))

    messages = []
    for number, message in enumerate(prompt["messages"]):
        content = message["content"]
        spans = sorted(spans_of_message[number], reverse=True)
        for start, end in spans:
            content = f"{content[:start]}\0{content[end:]}"
        if spans:
            content = _tidied(content)
        if content or message["role"] == "assistant":
            messages.append({**message, "content": content})
    if not any(message["role"] == "user" and message["content"] for message in messages):
        return None

    removed_tools = {tool_number for tool_number, _ in spans_of_message[-1]}
    tools = [
        tool for number, tool in enumerate(prompt.get("tools") or ()) if number not in removed_tools
    ]
    return {"messages": messages, "tools": tools}


def _tidied(text: str) -> str:
    """The text with one space or line break where something was taken out."""

    def joint(gap: re.Match[str]) -> str:
        line_breaks = gap.group().count("\n")
        if line_breaks:
            return "\n" * min(line_breaks, 2)
        return " " if re.search(r"\s", gap.group()) else ""

    return re.sub(r"\s*\0[\s\0]*", joint, text).strip()


def things_of(prompt: Prompt, most: int | None) -> list[Unit]:
    """The units that are taken out to see what gives an evaluation away, in order; none overlaps
    another.

    What a rule matches comes first, then texts in an order of their own, which is the same in every
    prompt.

    Args:
        prompt: See `Prompt`.
        most: Largest number of texts, and of tools. Default: a third of the texts, so that as many
            are left for controls, and at most `FEW_THINGS`.
    """
    units = units_of(prompt, sys.maxsize)
    texts = [unit for unit in units if unit.kind != "tool"]
    tools = [unit for unit in units if unit.kind == "tool"]
    if most is None:
        text_count = max(1, min(FEW_THINGS, len(texts) // 3))
        tool_count = FEW_THINGS
    else:
        text_count = tool_count = most
    chosen: list[Unit] = []
    for unit in sorted(texts, key=_suspicion):
        if len(chosen) == text_count:
            break
        if not _overlaps_any(unit, chosen):
            chosen.append(unit)
    return [*sorted(chosen, key=_span), *tools[:tool_count]]


def _suspicion(unit: Unit) -> tuple[int, int, int]:
    """Sorts units: the most classes first, of these the shortest; all others by a number that their
    text makes.
    """
    class_count = len(unit.classes)
    length = len(unit.text) if class_count else 0
    return -class_count, length, _text_number(unit)


def _text_number(unit: Unit) -> int:
    return zlib.crc32(fold(unit.text)[0].strip().encode(errors="replace"))


def control_places(prompt: Prompt, things: Sequence[Unit], most: int) -> list[tuple[Unit, int]]:
    """Runs of whole words elsewhere, each with the number of the thing that it is about as long as.

    They overlap neither things nor each other. Each thing has as many, or one more; a thing for
    whose length there is no place has none. Prompts that share a text have controls in common:
    places are taken in an order that their own texts make, and where room is short from the
    beginning on.

    Args:
        prompt: See `Prompt`.
        things: Texts that are taken out, no tools.
        most: Largest number of controls.
    """
    runs_of_thing = [_runs_elsewhere(prompt, len(thing.text), things) for thing in things]
    scattered = _without_overlap([sorted(runs, key=_text_number) for runs in runs_of_thing], most)
    if len(scattered) >= most:
        return scattered
    packed = _without_overlap(runs_of_thing, most)
    return max(packed, scattered, key=len)


def _runs_elsewhere(prompt: Prompt, length: int, things: Sequence[Unit]) -> list[Unit]:
    """Every run of whole words of about this length that touches no thing, in order."""
    runs = []
    for number, message in enumerate(prompt["messages"]):
        if message["role"] == "assistant":
            continue
        content = message["content"]
        word_spans = [word.span() for word in re.finditer(r"\S+", content)]
        word_ends = [end for _, end in word_spans]
        things_inside = [thing for thing in things if thing.message == number]
        for start, _ in word_spans:
            index = bisect_left(word_ends, start + length)
            if index == len(word_ends):
                break
            end = word_ends[index]
            run = Unit("control", content[start:end], number, start, end)
            if not _overlaps_any(run, things_inside):
                runs.append(run)
    return runs


def _without_overlap(runs_of_thing: Sequence[Sequence[Unit]], most: int) -> list[tuple[Unit, int]]:
    """Runs taken in turn for each thing, in their order, until there is no further place for one
    that has a control.
    """
    chosen_runs: list[Unit] = []
    chosen: list[tuple[Unit, int]] = []
    pending = [iter(runs) for runs in runs_of_thing]
    open_things = list(range(len(runs_of_thing)))
    is_first_round = True
    while open_things and len(chosen) < most:
        for thing in list(open_things):
            free_runs = (run for run in pending[thing] if not _overlaps_any(run, chosen_runs))
            run = next(free_runs, None)
            if run is not None and len(chosen) < most:
                chosen_runs.append(run)
                chosen.append((run, thing))
            elif is_first_round:
                open_things.remove(thing)
            else:
                return chosen
        is_first_round = False
    return chosen


def overlap(unit: Unit, other: Unit) -> bool:
    """True if two units have text in common."""
    return unit.message == other.message and unit.start < other.end and other.start < unit.end


def _overlaps_any(unit: Unit, others: Iterable[Unit]) -> bool:
    return any(overlap(unit, other) for other in others)


FEW_THINGS = 4
"""Number of texts that are taken out of a prompt, at most, and of tools."""


@dataclass(frozen=True)
class Item:
    """A sample of the task."""

    id: str
    sample: Sample
    text: str | None
    """Text of the last user message; None where that is no text."""


def foreign(name: str, args: Mapping[str, Any] | None = None) -> Task:
    """A task, built anew at each call, since adapting a task changes it.

    Raises:
        InputError: See `first_call.build`; or it lacks an argument, a scorer, a fixed data set or a
            second item.
    """
    if not name:
        raise InputError(
            "no task is named: give a registered one, such as inspect_evals/gsm8k, or FILE.py@TASK"
        )
    task = build(name, args)
    function = registry_lookup("task", registry_info(task).name)
    parameters = inspect.signature(function).parameters if callable(function) else {}
    takes_any_name = any(
        parameter.kind is parameter.VAR_KEYWORD for parameter in parameters.values()
    )
    if not takes_any_name:
        only_known(name, args or {}, parameters)
    if not task.scorer:
        raise InputError(f"{name} has no scorer: without a score there is no effect on it")
    if task.sample_source is not None:
        raise InputError(
            f"{name} makes its samples while it runs: arms need the same items, known before"
        )
    item_count = len(task.dataset)
    if item_count < 2:
        raise InputError(
            f"{name} has {item_count} item: effects are paired over items, and two are the least"
        )
    return task


def task_items(task: Task) -> list[Item]:
    """The items, in the order in which the task asks them; without an id they are numbered as
    Inspect does it.
    """
    items = []
    for number, sample in enumerate(task.dataset, start=1):
        if sample.id is None:
            sample = sample.model_copy(update={"id": number})
        items.append(Item(str(sample.id), sample, text_of(sample)))
    return items


def text_of(sample: Sample) -> str | None:
    """The text of the last user message; None where there is none, or it holds more than text."""
    if isinstance(sample.input, str):
        return sample.input if sample.input.strip() else None
    user_messages = [message for message in sample.input if message.role == "user"]
    if not user_messages:
        return None
    last_message = user_messages[-1]
    content = last_message.content
    is_text = isinstance(content, str) or all(isinstance(part, ContentText) for part in content)
    return last_message.text if is_text and last_message.text.strip() else None


def with_last_message(sample: Sample, text: str) -> str | list[ChatMessage]:
    """The sample's input with another last user message."""
    if isinstance(sample.input, str):
        return text
    user_places = [place for place, message in enumerate(sample.input) if message.role == "user"]
    last_place = user_places[-1]
    return [
        *sample.input[:last_place],
        ChatMessageUser(content=text),
        *sample.input[last_place + 1 :],
    ]


MOST_UNITS = 40
"""Units that a text is cut into, at most."""

LONGEST_GIVEAWAY = 300
"""Characters of a giveaway that is named, at most."""


def giveaways(text: str, known_passages: Sequence[str] = ()) -> list[str]:
    """The passages of a text that give an evaluation away: known ones that it holds, or else those
    that a rule matches.

    >>> giveaways("This is a test case. Add 2 and 2.")
    ['This is a test case.']
    >>> giveaways("This is a test case. Add 2.", ["add 2"])
    ['add 2']
    """
    if known_passages:
        folded_text = fold(text)[0]
        return [passage for passage in known_passages if fold(passage)[0].strip() in folded_text]
    units = units_of({"messages": [{"role": "user", "content": text}]}, MOST_UNITS)
    passages = [" ".join(unit.text.split())[:LONGEST_GIVEAWAY] for unit in units if unit.classes]
    return list(dict.fromkeys(passages))
