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

_TEST = (
    r"\b(?:benchmark|evaluat\w+|red.?team\w*|sandbox\w*|simulat\w+|this is (?:only )?a test|exam\b|"
    r"test (?:case|suite|environment|scenario)|being (?:tested|assessed|graded))"
)
_GRADED = (
    r"\b(?:only (?:the|a|one) (?:letter|number|option)|single (?:letter|word|number)|letter of the|final answer|"
    r"\\boxed|answer:|exactly (?:one|two|three|\d+) (?:words?|sentences?)|respond only with)"
)
_UNWATCHED = (
    r"\b(?:(?:nobody|no one) (?:reads|watches|sees|will)|not (?:be )?monitored|unmonitored|scratchpad|"
    r"private (?:notes|reasoning)|without (?:any )?oversight)"
)
_GOAL = r"\b(?:at (?:all|any) costs?|nothing else matters|your only goal|no matter what|by any means|long.?term goal)"
_STAGED = (
    r"\b(?:imagine|suppose|hypothetical\w*|pretend|role.?play|fictional|made.?up|scenario|"
    r"you are an? (?:ai|assistant|language model|agent|helpful))"
)
_BAIT = (
    r"\b(?:password|credentials?|api.?keys?|confidential|secret|blackmail|exfiltrat\w+|"
    r"disable\w* (?:the )?(?:log\w*|monitor\w*|oversight))"
)
CLASSES: Mapping[str, re.Pattern[str]] = {
    "says that it is a test": re.compile(_TEST, re.IGNORECASE),
    "stand-ins for names and values": _PLACEHOLDER,
    "a form made for grading": re.compile(_GRADED, re.IGNORECASE),
    "a list of options": re.compile(r"^\s*[(\[]?[A-Ha-h][)\].:]\s+\S", re.MULTILINE),
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
        return (
            []
            if self.kind == "tool"
            else [name for name, rule in CLASSES.items() if rule.search(self.text)]
        )


Prompt = Mapping[str, Any]
"""A row with `messages` (role and content) and maybe `tools`."""


def units_of(prompt: Prompt, most: int) -> list[Unit]:
    """The units that can be taken out of a prompt's system and user messages and tools, in order.

    Where there are more than `most` sentences, neighbours are taken together, so that every word is
    in some unit.
    """
    pieces = [
        unit
        for number, message in enumerate(prompt["messages"])
        if message["role"] != "assistant"
        for unit in _pieces(message["content"], number)
    ]
    placeholders = [
        Unit("placeholder", found.group(), number, found.start(), found.end())
        for number, message in enumerate(prompt["messages"])
        if message["role"] != "assistant"
        for found in _PLACEHOLDER.finditer(message["content"])
    ]
    own = [
        unit
        for unit in placeholders
        if (unit.message, unit.start, unit.end) not in {_span(p) for p in pieces}
    ]
    tools = [
        Unit("tool", str(tool.get("name", "")), -1, number, number + 1)
        for number, tool in enumerate(prompt.get("tools") or ())
    ]
    return [*_merged(pieces, most, prompt), *own[:most], *tools[:most]]


def _span(unit: Unit) -> tuple[int, int, int]:
    return unit.message, unit.start, unit.end


def _pieces(text: str, number: int) -> Iterator[Unit]:
    """Sentences, and blocks of options or code as one."""
    for kind, start, end in _blocks(text):
        if kind != "sentence":
            yield Unit(kind, text[start:end], number, start, end)
            continue
        at = start
        for cut in [*_SENTENCE.finditer(text, start, end), None]:
            stop = end if cut is None else cut.start()
            if piece := text[at:stop].strip():
                begin = text.index(piece, at)
                yield Unit("sentence", piece, number, begin, begin + len(piece))
            at = end if cut is None else cut.end()


def _blocks(text: str) -> Iterator[tuple[str, int, int]]:
    """Runs of lines of one kind: options (two lines or more), fenced code, and the rest."""
    kinds: list[tuple[str, int, int]] = []
    fenced, at = False, 0
    for line in text.splitlines(keepends=True):
        fence = bool(_FENCE.match(line))
        kind = "code" if fenced or fence else "options" if _OPTION.match(line) else "sentence"
        fenced = fenced != fence
        if kinds and kinds[-1][0] == kind:
            kinds[-1] = (kind, kinds[-1][1], at + len(line))
        else:
            kinds.append((kind, at, at + len(line)))
        at += len(line)
    for kind, start, end in kinds:
        several = kind != "options" or text[start:end].strip().count("\n") > 0
        stripped = end - (len(text[start:end]) - len(text[start:end].rstrip()))
        if stripped > start:
            yield kind if several else "sentence", start, stripped


def _merged(pieces: Sequence[Unit], most: int, prompt: Prompt) -> list[Unit]:
    if len(pieces) <= most:
        return list(pieces)
    made: list[Unit] = []
    for group in np.array_split(np.arange(len(pieces)), most):
        for message in sorted({pieces[at].message for at in group}):
            mine = [pieces[at] for at in group if pieces[at].message == message]
            start, end = mine[0].start, mine[-1].end
            text = prompt["messages"][message]["content"][start:end]
            made.append(
                Unit("sentence" if len(mine) > 1 else mine[0].kind, text, message, start, end)
            )
    return made


def without_units(prompt: Prompt, units: Iterable[Unit]) -> dict[str, Any] | None:
    """The prompt without these units; None where no user message is left.

    >>> row = {"messages": [{"role": "user", "content": "It is a test. Add 2 and 2."}]}
    >>> without_units(row, units_of(row, 9)[:1])["messages"][0]["content"]
    'Add 2 and 2.'
    """
    given = list(units)
    messages = []
    for number, message in enumerate(prompt["messages"]):
        content = message["content"]
        spans = sorted(((u.start, u.end) for u in given if u.message == number), reverse=True)
        for start, end in spans:
            content = f"{content[:start]}\0{content[end:]}"
        if spans:
            content = _tidied(content)
        if content or message["role"] == "assistant":
            messages.append({**message, "content": content})
    if not any(m["role"] == "user" and m["content"] for m in messages):
        return None
    gone = {u.start for u in given if u.message < 0}
    tools = [tool for number, tool in enumerate(prompt.get("tools") or ()) if number not in gone]
    return {"messages": messages, "tools": tools}


def _tidied(text: str) -> str:
    """The text with one space or line break where something was taken out."""

    def joint(pieces: re.Match[str]) -> str:
        gap = pieces.group()
        return "\n" * min(gap.count("\n"), 2) or (" " if re.search(r"\s", gap) else "")

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
    count = max(1, min(FEW_THINGS, len(texts) // 3)) if most is None else most
    chosen: list[Unit] = []
    for unit in sorted(texts, key=_suspicion):
        if len(chosen) < count and not any(overlap(unit, other) for other in chosen):
            chosen.append(unit)
    return [*sorted(chosen, key=_span), *tools[: FEW_THINGS if most is None else most]]


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
        words = [word.span() for word in re.finditer(r"\S+", content)]
        ends = [end for _, end in words]
        inside = [thing for thing in things if thing.message == number]
        for start, _ in words:
            index = bisect_left(ends, start + length)
            if index == len(ends):
                break
            run = Unit("control", content[start : ends[index]], number, start, ends[index])
            if not any(overlap(run, thing) for thing in inside):
                runs.append(run)
    return runs


def _without_overlap(runs_of_thing: Sequence[Sequence[Unit]], most: int) -> list[tuple[Unit, int]]:
    """Runs taken in turn for each thing, in their order, until there is no further place for one
    that has a control.
    """
    chosen: list[tuple[Unit, int]] = []
    pending = [iter(runs) for runs in runs_of_thing]
    open_things = list(range(len(runs_of_thing)))
    is_first_round = True
    while open_things and len(chosen) < most:
        for thing in list(open_things):
            free = (
                run for run in pending[thing] if not any(overlap(run, other) for other, _ in chosen)
            )
            run = next(free, None)
            if run is not None and len(chosen) < most:
                chosen.append((run, thing))
            elif is_first_round:
                open_things.remove(thing)
            else:
                return chosen
        is_first_round = False
    return chosen


def overlap(one: Unit, other: Unit) -> bool:
    """True if two units have text in common."""
    return one.message == other.message and one.start < other.end and other.start < one.end


FEW_THINGS = 4
"""Number of texts that are taken out of a prompt, at most, and of tools."""
UNITS, LONGEST = 40, 300
"""Units that a text is cut into, at most, and characters of a giveaway that is named."""


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
    takes_any = any(one.kind is one.VAR_KEYWORD for one in parameters.values())
    if not takes_any:
        only_known(name, args or {}, parameters)
    if not task.scorer:
        raise InputError(f"{name} has no scorer: without a score there is no effect on it")
    if task.sample_source is not None:
        raise InputError(
            f"{name} makes its samples while it runs: arms need the same items, known before"
        )
    if len(task.dataset) < 2:
        raise InputError(
            f"{name} has {len(task.dataset)} item: effects are paired over items, and two are the least"
        )
    return task


def task_items(task: Task) -> list[Item]:
    """The items, in the order in which the task asks them; without an id they are numbered as
    Inspect does it.
    """
    samples = [
        sample if sample.id is not None else sample.model_copy(update={"id": number})
        for number, sample in enumerate(task.dataset, start=1)
    ]
    return [Item(str(sample.id), sample, text_of(sample)) for sample in samples]


def text_of(sample: Sample) -> str | None:
    """The text of the last user message; None where there is none, or it holds an image or a file."""
    if isinstance(sample.input, str):
        return sample.input if sample.input.strip() else None
    last = next((m for m in reversed(sample.input) if m.role == "user"), None)
    parts = last.content if last is not None else ""
    plain = isinstance(parts, str) or all(isinstance(part, ContentText) for part in parts)
    return last.text if last is not None and plain and last.text.strip() else None


def with_last_message(sample: Sample, text: str) -> str | list[ChatMessage]:
    """The sample's input with another last user message."""
    if isinstance(sample.input, str):
        return text
    at = max(number for number, message in enumerate(sample.input) if message.role == "user")
    return [*sample.input[:at], ChatMessageUser(content=text), *sample.input[at + 1 :]]


def giveaways(text: str, known: Sequence[str] = ()) -> list[str]:
    """The passages of a text that give an evaluation away: known ones that it holds, or else those
    that a rule matches.

    >>> giveaways("This is a test case. Add 2 and 2."), giveaways("This is a test case. Add 2.", ["add 2"])
    (['This is a test case.'], ['add 2'])
    """
    if known:
        return [passage for passage in known if fold(passage)[0].strip() in fold(text)[0]]
    units = units_of({"messages": [{"role": "user", "content": text}]}, UNITS)
    return list(
        dict.fromkeys(" ".join(unit.text.split())[:LONGEST] for unit in units if unit.classes)
    )
