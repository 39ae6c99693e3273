"""A reply as a server sent it, split into the model's thought and its answer.

`selfprobe.text.thought_markers` has the table of the markers that chat formats write around a
thought. A server that knows its model's format takes them out (vLLM and SGLang with
--reasoning-parser, llama.cpp with --reasoning-format); what another one leaves in the text is split
here. The opening is optional: most templates write it into the prompt.

A marker counts where a chat format writes it. One inside of a sentence, in quotation marks or in
code is a text about markers, and stays.
"""

import json
import re
from bisect import bisect_left
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import islice

from selfprobe.text.thought_markers import (
    FORMS,
    HARMONY,
    MARKER_START,
    MOST_MARKERS,
    THOUGHT_NAME,
    Marker,
    marker_at,
    markers_in,
)

_MODELS_OWN_TAGS = frozenset(("think", "thinking"))
"""Tags that are a chat format's wherever a line begins with them; Inspect cuts the first of them
out, too.
"""

# A server that drops special tokens leaves the names of the channels: "analysisOkay,
# …assistantfinalThe rain". "analysisResult = 3" is code, and not the channel.
_BARE_WORD = r"(?=[A-Za-z][\w'’]*[,.!?:;]?(?:\s(?!\s*=)|\Z))"
_BARE_OPENING = re.compile(rf"(?:analysis|commentary){_BARE_WORD}")
_BARE_START = re.compile(r"analysis|commentary")
_BARE_FINAL_NAME = re.compile("assistantfinal")
_BARE_CLOSING = re.compile(
    r"(?:(?<![\s\"'`(/])|(?<=[\w.!?][\"'`]))assistantfinal(?![\s\"'`.,;)/])"
    r"|(?<=\n)assistantfinal(?=\S|[ \t]*\n)"
)
_BARE_FINAL = re.compile(rf"(?:assistant)?final(?=[A-Z{{\"]){_BARE_WORD[:-1]}|[{{\"])")

_PROSE_FORMS = (
    (
        re.compile(r"Here(?: is|['’]s) my thought process:"),
        re.compile(r"Here(?: is|['’]s) my response:"),
    ),  # Granite
    (
        re.compile(r"Here are my reasoning steps:"),
        re.compile(r"\[BEGIN FINAL RESPONSE\]"),
    ),  # Apriel
    (
        re.compile(
            r"<details\b[^<>]{0,200}\breasoning\b[^<>]{0,200}>"
            r"|<details[^<>]{0,200}>\s*<summary>[^<>]{0,80}(?:think|thought"
            r"|reason)[^<>]{0,80}</summary>",
            re.IGNORECASE,
        ),
        re.compile(r"</details>", re.IGNORECASE),  # Open WebUI
    ),
)
_LABEL_ALONE = re.compile(r"thought\n")
"""Gemma's channel where the server dropped the special tokens: where the thought ends cannot be
told.
"""

_SPECIAL_TOKEN = re.compile(
    r"<\|[^<>|\n]{1,60}\|>|<｜[^<>｜\n]{1,60}｜>|</?s>|<[be]os>|<(?:start|end)_of_turn>|<\|turn>"
    r"|<turn\|>"
    r"|\[(?:EOS|END FINAL RESPONSE|unused10)\]"
)
_END_NAME = re.compile(r"end|eo[tsmd]|return|close|unused10", re.IGNORECASE)
"""Special tokens that end a turn, a message or a text."""
_TURN_NAME = re.compile(
    r"start|begin|user|human|system|assistant|turn|close|sep\b|pad\b|role|message|tool|call"
    r"|content|plamo:tag|/?s>",
    re.IGNORECASE,
)
"""Special tokens that stand between turns."""
_TURN_HEADER = re.compile(r"\s*(?:assistant|model)\b[ \t]*(?:\n|\Z|(?=<))")
_CHANNEL_HEADER = re.compile(r"<\|open\|>\w+<\|sep\|>")  # Kimi K3's answer
_TURN_FOLLOWS = re.compile(r"[ \t]*(?:\Z|\n|\w+\s*\n|<\||<｜)")
_BOX = re.compile(r"<\|(?:begin|end)_of_box\|>")
"""GLM's frame around an answer."""

_ANSWER_TAG = re.compile(
    r"\s*<(?P<name>answer|response|output|final|final_answer|final_response|solution|conclusion"
    r"|reply)>",
    re.IGNORECASE,
)

_CODE = re.compile(
    r"^[ \t]*(?P<fence>```|~~~).*?(?:^[ \t]*(?P=fence)|\Z)|`[^`\n]+`", re.DOTALL | re.MULTILINE
)
_SENTENCE_END = frozenset("\n.!?…>]}。！？")
_EMPHASIS = frozenset("*_~")
_NUMBERED = re.compile(r"(?:^|\n)[ \t]*\d{1,3}\.$")
_NAMES_NEXT = re.compile(
    r"\b(?:with|by|as|the|an?|and|or|use|using|tags?|tokens?|is|are|to|of|in|like|writes?|closing"
    r"|ending|emits?|outputs?)$",
    re.IGNORECASE,
)
"""Words after which a marker is what the sentence speaks of."""
_SUBJECT = re.compile(r"[ \t]+[a-z(–—-]")
"""What follows a marker that is the subject of a sentence."""
_QUOTES = frozenset("`\"'“‘«([")
_QUOTE_ENDS = re.compile(r"[\"'`](?:[\s,;:.)\]]|\Z)|[)\]]")
_CLOSED_QUOTE = re.compile(r"[\w.,;:!?…][`\"']$|[”’»]$")
"""End of a quotation, after which a marker is not quoted."""
_SHORTEST_BEGINNING = (
    3  # characters of a cut reply that may begin a marker; a letter may be an answer
)
_MOST_BLOCKS = 20  # thoughts of one reply
_SHORTEST_THOUGHT = (
    20  # characters between a tag and its end, below which a sentence may speak of them
)

_MUSING = re.compile(
    r"\W*(?:(?:okay|ok|alright|all right|hmm+|well|right)\b[\s,.…!]*)+(?:so\b,?\s*)?"
    r"(?:(?:the|this) user(?:['’]s)?\s+(?:is|has|was|wants?|asks?|asked|says?|said|needs?|gave"
    r"|just|wrote|seems"
    r"|provided|mentioned|request|query|question|message)\b|(?<=so )i (?:need|have) to\b"
    r"|(?<=so )i['’]m trying to\b)",
    re.IGNORECASE,
)
"""A model that speaks of its user to itself, as thoughts begin."""


@dataclass(frozen=True)
class Split:
    """What a reply holds."""

    answer: str
    """The reply without thoughts and markers."""
    thought: str | None = None
    """The thought that stood in the text; "" for an empty one, None where there was none."""
    has_marker: bool = False
    """Whether a marker is left in the answer: where the thought ends cannot be told."""
    lacks_opening: bool = False
    """Whether a thought ended that never began, since the prompt opens it."""
    is_ended: bool = False
    """Whether the answer ended by the model's own token for that."""


def split_thought(
    text: str, *, is_cut: bool = False, opens_thought: bool = False, follows_thought: bool = False
) -> Split:
    """Split the thought from the answer of a reply.

    >>> split_thought("The user says hi.\\n</think>\\n\\nHello!").answer
    'Hello!'
    >>> split_thought("Write your thought into a <thought> tag.").thought is None
    True

    Args:
        text: The reply as it was sent.
        is_cut: Whether it ended at the token limit. A thought that never ended is all there is of
            such a reply.
        opens_thought: Whether the model's prompt is known to open a thought, so that a cut reply
            without a marker is one.
        follows_thought: Whether a thought before the text was split off already, so that a tag
            around it is no part of the answer.
    """
    split = Split(text)
    if _may_hold_markers(text):
        splitter = _Splitter(text, is_cut, follows_thought)
        splitter.run()
        split = splitter.result()
    unmarked = split.thought is None and not split.is_ended
    if unmarked and is_cut and (opens_thought or _MUSING.match(text) or _begins_marker(text)):
        return Split("", text.strip())
    return split


_BARE_MARKER = ("assistantfinal", "analysis", "commentary", "final", "thought\n", "Here")


def _may_hold_markers(text: str) -> bool:
    return (
        MARKER_START.search(text) is not None
        or "assistantfinal" in text
        or text.lstrip().startswith(_BARE_MARKER)
    )


def _begins_marker(text: str) -> bool:
    """Whether a cut reply is the beginning of an opening, and nothing more."""
    beginning = text.strip()
    openings = [
        HARMONY.opening,
        "analysis",
        "<thinking>",
        "<thought>",
        "<reasoning>",
        *(f.opening for f in FORMS),
    ]
    return len(beginning) >= _SHORTEST_BEGINNING and any(
        opening.startswith(beginning) for opening in openings
    )


class _Code:
    """Parts of a text that may quote anything: fences, what stands between backticks, an object
    that it begins with.
    """

    def __init__(self, text: str) -> None:
        self.text = text

    @cached_property
    def _spans(self) -> list[tuple[int, int]]:
        start, end = self._object
        quoted = [code_match.span() for code_match in _CODE.finditer(self.text, end)]
        return [(start - 1, end), *quoted] if end else quoted

    @property
    def _object(self) -> tuple[int, int]:
        """Start and end of a JSON object at the beginning; the whole text where the object is
        damaged.
        """
        start = len(self.text) - len(self.text.lstrip())
        if not self.text.startswith("{", start):
            return 0, 0
        try:
            return start, json.JSONDecoder().raw_decode(self.text, start)[1]
        except (ValueError, RecursionError):
            return start, len(self.text)

    def holds(self, position: int) -> bool:
        span_index = bisect_left(self._spans, (position,)) - 1
        return span_index >= 0 and position < self._spans[span_index][1]


def _is_in_marker_position(
    text: str, start: int, end: int, *, begins_line: bool = False, ends_line: bool = False
) -> bool:
    """Whether a marker stands where a chat format writes it, and not in a sentence about markers.

    Args:
        text: The reply.
        start: Start of the marker.
        end: Its end.
        begins_line: Whether it has to begin a line.
        ends_line: Whether the end of a line after it is enough.
    """
    before = text[max(0, start - 100) : start]
    sentence = before.rstrip(" \t")
    if not sentence:
        return len(before) < 100
    if sentence[-1] == "\n":
        return True
    is_quoted = sentence[-1] in _QUOTES and not _CLOSED_QUOTE.search(sentence)
    if begins_line or is_quoted:
        return False
    follows = text[end : end + 1]
    if sentence[-1] in _EMPHASIS and follows == sentence[-1]:
        return False
    is_attached = sentence == before
    if is_attached or (sentence[-1] in _SENTENCE_END and not _NUMBERED.search(sentence)):
        return True
    return ends_line and follows == "\n" and not _NAMES_NEXT.search(sentence)


@dataclass
class _Splitter:
    """A reply under work: thoughts are taken from `body` until none is left."""

    body: str
    is_cut: bool
    follows_thought: bool
    thoughts: list[str] | None = None
    has_marker: bool = False
    lacks_opening: bool = False
    is_ended: bool = False
    quotes_tokens: bool = False
    """Whether the answer speaks of special tokens: then they are its subject."""

    def run(self) -> None:
        original_body = self.body
        self._take_start()
        self._take_lone_closing()
        self._take_middle()
        self._end_turn()
        self._unwrap()
        if self.body.strip() == original_body.strip() and self.thoughts is None:
            self.body = original_body  # with its spaces, as it came
        self.has_marker = self._is_marked()

    def result(self) -> Split:
        thought = None
        if self.thoughts is not None:
            thought = "\n".join(part for part in self.thoughts if part)
        return Split(self.body, thought, self.has_marker, self.lacks_opening, self.is_ended)

    def _take_start(self) -> None:
        """Take all headers and thoughts that the body begins with."""
        for _ in range(_MOST_BLOCKS):
            had_header = self._take_header()
            had_thought = self._take_leading()
            if not had_header and not had_thought:
                return

    def _take(self, thought: str, remaining_body: str) -> None:
        self.thoughts = [*(self.thoughts or []), thought.strip()]
        self.body = remaining_body.lstrip()

    def _take_header(self) -> bool:
        """Take special tokens off the start, such as those of the assistant's turn."""
        body = self.body.lstrip()
        header_match = _CHANNEL_HEADER.match(body) or _SPECIAL_TOKEN.match(body)
        if (
            header_match is None
            or marker_at(body, 0) is not None
            or _SUBJECT.match(body, header_match.end())
        ):
            return False
        is_struck_through = header_match[0] == "<s>" and "</s>" in body.rstrip().removesuffix(
            "</s>"
        )
        if is_struck_through:
            return False
        header = _TURN_HEADER.match(body, header_match.end())
        self.body = body[header.end() if header else header_match.end() :].lstrip()
        return True

    def _take_leading(self) -> bool:
        """Take a thought that the body begins with."""
        body = self.body.lstrip()
        if self._take_leading_words(body):
            return True
        opening = marker_at(body, 0)
        if opening is None:
            return False
        if opening.is_closing:
            self.lacks_opening = True
            self._take("", body[opening.end :])
            return True
        closing = _closing_of(body, opening)
        if not self.is_cut and _is_mentioned(body, opening, closing):
            return False
        if closing:
            self._take(body[opening.end : closing.start], body[closing.end :])
        else:
            self._take(body[opening.end :], "")
        return True

    def _take_leading_words(self, body: str) -> bool:
        """Take a thought whose opening is a word: a channel's bare name, or a sentence."""
        if final := _BARE_FINAL.match(body):
            self._take("", body[final.end() :])
            return True
        forms = [(_BARE_OPENING, _BARE_FINAL_NAME, True), (_BARE_START, _BARE_CLOSING, False)]
        forms += [(opening, closing, self.is_cut) for opening, closing in _PROSE_FORMS]
        if self.is_cut:
            forms.append((_LABEL_ALONE, _BARE_CLOSING, True))
        for opening, closing, may_stay_open in forms:
            begun = opening.match(body)
            ended = closing.search(body, begun.end()) if begun else None
            if begun and ended:
                self._take(body[begun.end() : ended.start()], body[ended.end() :])
                return True
            if begun and may_stay_open:
                self._take(body[begun.end() :], "")
                return True
        return False

    def _take_lone_closing(self) -> None:
        """Take a thought that ends and never began: the prompt opened it."""
        closing = _lone_closing(self.body)
        if closing is None:
            return
        self.lacks_opening = True
        self._take(self.body[: closing.start], self.body[closing.end :])
        self._take_start()

    def _take_middle(self) -> None:
        """Take thoughts between parts of the answer, as Inspect does with <think>."""
        for _ in range(_MOST_BLOCKS):
            body, code = self.body, _Code(self.body)
            for opening in markers_in(body):
                is_thought_tag = opening.is_special or opening.key in _MODELS_OWN_TAGS
                if (
                    opening.is_closing
                    or not is_thought_tag
                    or code.holds(opening.start)
                    or not _opens_here(body, opening)
                ):
                    continue
                closing = _closing_of(
                    body[opening.start :],
                    replace(opening, start=0, end=opening.end - opening.start),
                )
                if closing is not None:
                    thought = body[opening.end : opening.start + closing.start]
                    remaining_body = body[: opening.start] + body[opening.start + closing.end :]
                elif self.is_cut:
                    thought, remaining_body = body[opening.end :], body[: opening.start]
                else:
                    continue
                self._take(thought, remaining_body)
                break
            else:
                return

    def _end_turn(self) -> None:
        """Cut the answer at the token that ends the model's turn; what follows is nobody's."""
        self.body = _BOX.sub("", self.body)
        body, code = self.body, _Code(self.body)
        for token in islice(_SPECIAL_TOKEN.finditer(body), MOST_MARKERS):
            start, end = token.span()
            if code.holds(start) or not self._stands_alone(token):
                self.quotes_tokens = True
                continue
            if self.quotes_tokens and body[end:].strip():
                continue
            if _ends_turn(body, token):
                self.body = body[:start].rstrip()
                self.is_ended = True
                return

    def _unwrap(self) -> None:
        """Take the answer out of its own tag, where a thought stood before it."""
        if self.thoughts is None and not self.follows_thought:
            return
        if opening := _ANSWER_TAG.match(self.body):
            inside = self.body[opening.end() :]
            closing = re.search(f"</{opening['name']}>", inside, re.IGNORECASE)
            self.body = inside[: closing.start() if closing else None].strip()

    def _is_marked(self) -> bool:
        """Whether a marker is left where a chat format writes it."""
        body, code = self.body, _Code(self.body)
        bare = _BARE_CLOSING.search(body)
        if _LABEL_ALONE.match(body.lstrip()) or (bare and not code.holds(bare.start())):
            return True
        for marker in markers_in(body):
            is_thought_marker = marker.is_special or THOUGHT_NAME.search(marker.key) is not None
            is_in_place = (
                _closes_here(body, marker) if marker.is_closing else _opens_here(body, marker)
            )
            if (
                is_thought_marker
                and is_in_place
                and not code.holds(marker.start)
                and not self._is_subject(marker)
            ):
                return True
        for token in islice(_SPECIAL_TOKEN.finditer(body), MOST_MARKERS):
            is_special = token[0].startswith(("<|", "<｜")) and not self.quotes_tokens
            if is_special and self._stands_alone(token) and not code.holds(token.start()):
                return True
        return False

    def _stands_alone(self, token: re.Match[str]) -> bool:
        """Whether a special token stands where a model ends, and in no sentence about tokens."""
        start, end = token.span()
        before = self.body[max(0, start - 1) : start]
        if before.isspace() and _SUBJECT.match(self.body, end):
            return False
        return _is_in_marker_position(self.body, start, end)

    def _is_subject(self, marker: Marker) -> bool:
        """Whether a marker belongs to the tags that the body's first sentence speaks of."""
        opening = marker_at(self.body, 0)
        if self.is_cut or opening is None or opening.is_closing:
            return False
        closing = _closing_of(self.body, opening)
        subjects = [opening, closing]
        return marker in subjects and _is_mentioned(self.body, opening, closing)


def _ends_turn(body: str, token: re.Match[str]) -> bool:
    """Whether a special token ends what the model says, so that the rest is another turn's."""
    if token[0] in ("</s>", "<s>"):  # also HTML's
        return not body[token.end() :].strip() and "<s>" not in body[: token.start()]
    if _END_NAME.search(token[0]):
        return True
    return (
        _TURN_NAME.search(token[0]) is not None
        and _TURN_FOLLOWS.match(body, token.end()) is not None
    )


def _opens_here(text: str, marker: Marker) -> bool:
    return _is_in_marker_position(text, marker.start, marker.end, begins_line=not marker.is_special)


def _closes_here(text: str, marker: Marker) -> bool:
    if _QUOTE_ENDS.match(text, marker.end):
        return False
    return _is_in_marker_position(
        text, marker.start, marker.end, ends_line=True
    ) and not _is_pair_in_line(text, marker)


def _is_line(text: str, marker: Marker) -> bool:
    """Whether a marker is alone on its line."""
    line_start = text.rfind("\n", 0, marker.start) + 1
    is_first = not text[line_start : marker.start].strip()
    return (
        is_first and re.match(r"[ \t]*(?:\n|\Z)", text[marker.end : marker.end + 100]) is not None
    )


def _is_pair_in_line(text: str, closing: Marker) -> bool:
    """Whether an opening stands before a closing in the same sentence: "put it between <think> and
    </think>".
    """
    line_start = text.rfind("\n", 0, closing.start) + 1
    line = text[max(line_start, closing.start - 1000) : closing.start]
    opened = [
        marker for marker in markers_in(line) if marker.key == closing.key and not marker.is_closing
    ]
    follows = text[closing.end : closing.end + 2]
    goes_on = follows != "\n\n" and (
        not follows or (not follows[0].isalnum() and follows[0] != "{")
    )
    return bool(opened) and goes_on


def _is_mentioned(body: str, opening: Marker, closing: Marker | None) -> bool:
    """Whether a leading tag is the subject of a sentence: "<thought> is a tag",
    "<thought>…</thought> is a pair".
    """
    if opening.is_special or opening.key in _MODELS_OWN_TAGS:
        return False
    end = closing.end if closing else opening.end
    holds_little = closing is None or closing.start - opening.end < _SHORTEST_THOUGHT
    return holds_little and re.match(r" +[a-z]", body[end : end + 20]) is not None


def _closing_of(body: str, opening: Marker) -> Marker | None:
    """The closing of the opening at the start of a text; of thoughts in each other the outer one's."""
    same = [
        marker
        for marker in markers_in(body)
        if marker.key == opening.key and marker.start >= opening.end
    ]
    depth = 1
    standing = []
    for marker in same:
        if marker.is_closing and _is_in_marker_position(
            body, marker.start, marker.end, ends_line=True
        ):
            standing.append(marker)
            depth -= 1
        elif not marker.is_closing and _opens_here(body, marker):
            depth += 1
        if depth == 0:
            return marker
    closings = standing[-1:] or [marker for marker in same if marker.is_closing][:1]
    if closings or not opening.is_special or opening.key == "channel":
        return closings[0] if closings else None
    ended = re.compile(r"<\|(?:end|eom)\w*\|>").search(body, opening.end)  # <|think|>…<|end|>
    return Marker(*ended.span(), opening.key, True, True) if ended else None


def _lone_closing(body: str) -> Marker | None:
    """The first closing without an opening before it."""
    code = _Code(body)
    is_open: set[str] = set()
    is_quoted: set[str] = set()
    for marker in markers_in(body):
        if code.holds(marker.start):
            if not marker.is_closing:
                is_quoted.add(marker.key)
            elif marker.key not in is_quoted and _is_line(
                body, marker
            ):  # after a fence that the thought left open
                return marker
            continue
        if not marker.is_closing:
            is_open |= {marker.key} if _opens_here(body, marker) else set()
        elif marker.key in is_open:
            is_open.remove(marker.key)
        elif _closes_here(body, marker):
            return marker
    bare = _BARE_CLOSING.search(body)
    if bare and not code.holds(bare.start()):
        return Marker(*bare.span(), "channel", True, True)
    final = re.search(r"^\[BEGIN FINAL RESPONSE\]", body, re.MULTILINE)
    return Marker(*final.span(), "response", True, True) if final else None
