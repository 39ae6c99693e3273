"""Markers that chat formats write around a thought: the one table of them, and where they stand in
a text.

`FORMS`, `TAG` and the channels of gpt-oss are the table. `selfprobe.text.thoughts` splits replies
with it.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass


@dataclass(frozen=True)
class Form:
    """How a chat format marks a thought, in letters that nobody writes by accident."""

    opening: str
    closing: str


FORMS = (
    Form("[THINK]", "[/THINK]"),  # Magistral
    Form("◁think▷", "◁/think▷"),  # Kimi-VL
    Form("<|open|>think<|sep|>", "<|close|>think<|sep|>"),  # Kimi K3
    Form("<|channel>thought", "<channel|>"),  # Gemma 4
    Form("<unused94>thought", "<unused95>"),  # MedGemma
    Form("[unused16]", "[unused17]"),  # openPangu
    Form("<|inner_prefix|>", "<|inner_suffix|>"),  # Apertus
    Form("<|im_start|>think", "<|im_start|>answer"),  # s1
)

TAG = re.compile(
    r"<(?P<slash>/?)(?P<name>[\w:.|｜▁/-]{2,60}?)(?:\s+[\w:-]+\s*=[^<>]{0,200})?\s*(?P<void>/?)>",
    re.IGNORECASE,
)
"""<think>, <seed:think>, <|START_THINKING|>, </ifm|think>, also with attributes; `_is_thought` says
which count.
"""

_BRACKETS = re.compile(
    r"\[(?P<slash>/?)(?P<name>think|thinking|thoughts?|reasoning)\]", re.IGNORECASE
)
"""[thinking], which is a stage direction where no [/thinking] follows."""

THOUGHT_NAME = re.compile(r"think|thought|reason|思考|推理", re.IGNORECASE)
_NO_THOUGHT_NAME = re.compile(r"(?:stop|end|finish|close)[_-]?reason", re.IGNORECASE)
_OTHER_NAMES = frozenset(
    "analysis scratchpad scratch_pad reflection reflect monologue inner_monologue "
    "internal_monologue deliberation rationale cot contemplation contemplator introspection "
    "planning brainstorming".split()
)
_NAME_PARTS = re.compile(r"[a-z]+")
_OPENING_PARTS = frozenset(("begin", "start", "open", "of"))
_CLOSING_PARTS = frozenset(("end", "close", "stop"))

_HARMONY_HEADER = r"(?:<\|start\|>\s*)?(?:assistant\s*)?<\|channel\|>\s*"
_HARMONY_OPENING = re.compile(
    _HARMONY_HEADER
    + r"(?:\Z|(?:analysis|commentary)\b[^<]{0,200}(?:<\|constrain\|>[^<]{0,60})?(?:<\|message\|>"
    r"|\Z))"
)
_HARMONY_CLOSING = re.compile(
    r"(?:<\|(?:end|call)\|>\s*)?"
    + _HARMONY_HEADER
    + r"final\b[^<]{0,60}(?:<\|constrain\|>[^<]{0,60})?<\|message\|>"
)
HARMONY = Form("<|channel|>analysis<|message|>", "<|channel|>final<|message|>")
"""The channels of gpt-oss: the reply is what the final channel holds."""
HARMONY_TURN = "<|start|>assistant"
"""End of gpt-oss' generation prompt, which leaves the channel to the model."""

MOST_MARKERS = 500
"""Largest number of markers of one reply."""


@dataclass(frozen=True)
class Marker:
    """One marker in a text."""

    start: int
    end: int
    key: str
    """What an opening and its closing have in common."""
    is_closing: bool
    is_special: bool
    """Whether it is no tag of plain letters."""


_FORM_MARKER = re.compile(
    "|".join(
        f"(?P<opening{number}>{re.escape(form.opening)})|(?P<closing{number}>{re.escape(form.closing)})"
        for number, form in enumerate(FORMS)
    )
)
MARKER_START = re.compile(r"[<\[◁]")


def _is_thought(name: str) -> bool:
    if _NO_THOUGHT_NAME.search(name):
        return False
    return THOUGHT_NAME.search(name) is not None or name.strip("|/").lower() in _OTHER_NAMES


def _tag_marker(tag: re.Match[str]) -> Marker | None:
    """Marker of a tag; None for one that has nothing to do with thoughts."""
    name = tag["name"]
    if not _is_thought(name):
        return None
    parts = _NAME_PARTS.findall(name.lower())
    closes = (
        bool(tag["slash"] or tag["void"]) or "/" in name or bool(_CLOSING_PARTS.intersection(parts))
    )
    key = " ".join(part for part in parts if part not in _OPENING_PARTS | _CLOSING_PARTS)
    return Marker(*tag.span(), key, closes, is_special=re.fullmatch(r"/?[\w-]+", name) is None)


def marker_at(text: str, position: int) -> Marker | None:
    """Marker that begins at a position."""
    if found := _HARMONY_CLOSING.match(text, position):
        return Marker(*found.span(), "channel", True, True)
    if found := _HARMONY_OPENING.match(text, position):
        return Marker(*found.span(), "channel", False, True)
    if found := _FORM_MARKER.match(text, position):
        group = str(found.lastgroup)
        number = group.removeprefix("opening").removeprefix("closing")
        return Marker(*found.span(), f"form {number}", group.startswith("closing"), True)
    if brackets := _BRACKETS.match(text, position):
        closing = re.compile(rf"\[/{brackets['name']}\]", re.IGNORECASE)
        is_pair = bool(brackets["slash"]) or closing.search(text, brackets.end()) is not None
        return (
            Marker(*brackets.span(), brackets["name"].lower(), bool(brackets["slash"]), False)
            if is_pair
            else None
        )
    tag = TAG.match(text, position)
    return _tag_marker(tag) if tag else None


def markers_in(text: str) -> Iterator[Marker]:
    """Markers of a text in order, wherever they stand."""
    end, count = 0, 0
    for start in MARKER_START.finditer(text):
        if start.start() < end or count >= MOST_MARKERS:
            continue
        if marker := marker_at(text, start.start()):
            end = marker.end
            count += 1
            yield marker


def _end_word(opening_word: re.Match[str]) -> str:
    return "END" if opening_word[0].isupper() else "end"


def answer_opening(prompt: str) -> str | None:
    """What ends an empty thought after a prompt that opens one, so that the answer begins; None
    after any other.

    >>> answer_opening("<｜Assistant｜><think>\\n"), answer_opening("[THINK]"), answer_opening("Hello.")
    ('\\n\\n</think>\\n\\n', '[/THINK]', None)
    """
    ended = prompt.rstrip()
    if ended.endswith(HARMONY_TURN):
        return HARMONY.closing
    if ended.endswith(HARMONY.opening):
        return f"<|end|>{HARMONY_TURN}{HARMONY.closing}"
    for form in FORMS:
        if ended.endswith(form.opening):
            return form.closing
    last = ended.rfind("<")
    tag = TAG.fullmatch(ended, last) if last != -1 else None
    marker = _tag_marker(tag) if tag else None
    if tag is None or marker is None or marker.is_closing:
        return None
    if "|" in tag["name"] and not tag["name"].startswith("|"):  # <ifm|think>
        return f"</{tag['name']}>"
    if marker.is_special and _OPENING_PARTS & set(_NAME_PARTS.findall(tag["name"].lower())):
        return re.sub("start|begin", _end_word, tag[0], flags=re.IGNORECASE)
    return f"</{tag['name']}>" if marker.is_special else f"\n\n</{tag['name']}>\n\n"
