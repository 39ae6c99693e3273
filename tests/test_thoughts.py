"""Thoughts in replies: what the marker forms of open models hold is split; prose about markers
stays as it is.
"""

import gzip
import json
import re
import time
from pathlib import Path

import pytest
from gateways import EMPTY_THOUGHTS, INLINE_THOUGHTS, LEFT_OVER, TEXT, THOUGHT, WORD
from hypothesis import given
from hypothesis import strategies as st

from selfprobe.text.thought_markers import FORMS, HARMONY, HARMONY_TURN, answer_opening
from selfprobe.text.thoughts import Split, split_thought

REAL_REPLIES = Path(__file__).parents[2] / "shared" / "data" / "real_replies" / "replies.jsonl.gz"


def reply(form: str, answer: str = TEXT) -> str:
    return form.replace("{thought}", THOUGHT).replace("{answer}", answer)


@pytest.mark.parametrize(
    "answer",
    [TEXT, WORD, "rain", "# Rain\n\n- It falls.\n", "“Rain,” she said.", "<b>Rain</b> falls."],
)
@pytest.mark.parametrize("form", INLINE_THOUGHTS)
def test_a_thought_in_the_text_is_split_from_any_answer(form: str, answer: str) -> None:
    split = split_thought(reply(INLINE_THOUGHTS[form], answer))
    assert split.answer.strip() == answer.strip() and not split.has_marker
    assert split.thought is not None and THOUGHT in split.thought


@pytest.mark.parametrize("form", EMPTY_THOUGHTS)
def test_special_tokens_around_a_reply_are_no_part_of_it(form: str) -> None:
    split = split_thought(reply(EMPTY_THOUGHTS[form]))
    assert split.answer.strip() == TEXT and not split.thought and not split.has_marker


@pytest.mark.parametrize("form", LEFT_OVER)
def test_where_nobody_can_tell_where_the_thought_ends_a_marker_is_left_over(form: str) -> None:
    assert split_thought(reply(LEFT_OVER[form])).has_marker


def beginnings(form: str) -> list[str]:
    """A reply in a form, cut inside of its thought: after the opening, in its words, before its
    end.
    """
    whole = reply(form)
    start = whole.index(THOUGHT)
    return [whole[: start + length] for length in (2, 40, len(THOUGHT))]


@pytest.mark.parametrize(
    "form", [form for form in INLINE_THOUGHTS if not INLINE_THOUGHTS[form].startswith("{")]
)
def test_of_a_reply_that_is_cut_inside_its_thought_nothing_is_an_answer(form: str) -> None:
    for cut in beginnings(INLINE_THOUGHTS[form]):
        split = split_thought(cut, is_cut=True)
        assert split.answer == "" and split.thought, cut


@pytest.mark.parametrize(
    "opening", ["<think>", HARMONY.opening, "analysis", *(form.opening for form in FORMS)]
)
def test_a_reply_that_is_cut_inside_a_marker_is_no_answer(opening: str) -> None:
    for length in range(3, len(opening) + 1):
        assert split_thought(opening[:length], is_cut=True).answer == ""


@pytest.mark.parametrize("opens_thought", [True, False])
def test_a_cut_thought_whose_opening_is_in_the_prompt_is_told_by_its_model_or_by_its_words(
    opens_thought: bool,
) -> None:
    assert split_thought(THOUGHT, is_cut=True, opens_thought=opens_thought) == Split("", THOUGHT)
    assert split_thought(TEXT, is_cut=True, opens_thought=opens_thought) == (
        Split("", TEXT) if opens_thought else Split(TEXT)
    )
    assert split_thought(TEXT, opens_thought=opens_thought) == Split(TEXT)


PROSE = (
    "The tags <think> and </think> hold a model's thoughts.",
    "R1 writes `<think>` before a thought and `</think>` after it.",
    "<thought> is a tag of some prompts.",
    "<thought></thought> is a pair of tags.",
    "The <thought> tag is used by some prompts. Close it with </thought>.",
    "Wrap it as <think>...</think>.\nThen go on.",
    "Use:\n```\n<think>\nhello\n</think>\n```\nThat is all.",
    'In Python, text.split("</think>")[-1] gives the answer.',
    'pattern = re.compile(r"<think>(.*?)</think>", re.DOTALL)',
    "analysis of the data shows much",
    "Analysis: the rain falls.",
    "analysisResult = compute()\n",
    "final words",
    "finalScore = 3",
    "The string assistantfinal stands between the channels.",
    "thought is free",
    "commentary on the text",
    "The <|endoftext|> token ends a text.",
    "- <|im_start|>\n- <|im_end|>\nare special tokens",
    'ChatML: prompt = "<|im_start|>user\\nHi<|im_end|>"',
    "Here is my thought process:\n1. One\n2. Two",
    "[Thinking] Well, no.",
    "*thinking* Well, no.",
    "<thinking about it> Well, no.",
    "List<Reason> reasons = new ArrayList<Reason>();",
    '{"aware": true, "quotes": ["I think.</think> Yes.", "<|im_end|>"]}',
    "<s>Struck</s> through",
    "<h2>Title</h2>\n<p>Text</p>",
    "Okay, the user interface has three parts.",
    "a < b and c > d",
    "The thought is closed by </think>\n\nThen the answer begins.",
    "A **</think>** ends it.",
    "1. <|im_start|>: begins a turn\n2. <|im_end|>: ends it",
    "<|im_start|> begins a turn.\n<|im_end|> ends it.",
    "| token | use |\n|---|---|\n| <|endoftext|> | end |",
    "analysis of the words assistantfinal and commentary",
)


@pytest.mark.parametrize("answer", [TEXT, f"```python\nprint(1)\n```\n{TEXT}"])
@pytest.mark.parametrize(
    "end", ["```json\n{", "```\nrain", "a `b", "- <think> tags", "{", "1.", "**so**"]
)
def test_whatever_a_thought_ends_with_its_closing_on_a_line_ends_it(end: str, answer: str) -> None:
    split = split_thought(f"{THOUGHT}\n{end}\n</think>\n\n{answer}")
    assert (split.answer, split.thought) == (answer, f"{THOUGHT}\n{end}")


@pytest.mark.parametrize(
    "end", ['I will say "rain"', "so `rain`", "say 'rain'", "so “rain”", '"It rains."']
)
@pytest.mark.parametrize(
    "closing", ["</think>", "</seed:think>", "[/THINK]", "◁/think▷", "<channel|>", "assistantfinal"]
)
def test_a_quotation_at_the_end_of_a_thought_does_not_quote_its_closing(
    end: str, closing: str
) -> None:
    split = split_thought(f"The user wants one word. {end}{closing}{TEXT}")
    assert split.answer == TEXT and split.thought == f"The user wants one word. {end}"


def test_a_letter_that_is_cut_is_an_answer_and_a_reason_why_a_reply_stopped_is_no_thought() -> None:
    assert [split_thought(letter, is_cut=True).answer for letter in ("a", "an", "<")] == [
        "a",
        "an",
        "<",
    ]
    reason = "<stop_reason>max_tokens</stop_reason>"
    assert split_thought(reason) == Split(reason)
    assert split_thought("</think><Answer>Yes</answer>").answer == "Yes"


@pytest.mark.parametrize("is_cut", [True, False])
@pytest.mark.parametrize("text", PROSE)
def test_prose_and_code_about_markers_stay_as_they_are(text: str, is_cut: bool) -> None:
    about_a_tag = text.startswith(("<thought>", "Here is my thought"))
    if not (is_cut and about_a_tag):  # of a cut reply nobody can tell
        assert split_thought(text, is_cut=is_cut) == Split(text)


@given(st.text())
def test_a_text_without_a_bracket_stays_as_it_is(text: str) -> None:
    if not re.search(r"[<\[◁]|assistantfinal|Here|^\s*(analysis|commentary|final|thought)", text):
        assert split_thought(text) == Split(text)


@pytest.mark.skipif(
    not REAL_REPLIES.exists(), reason="the replies of real models are not in this checkout"
)
@pytest.mark.parametrize("is_cut", [True, False])
def test_no_reply_of_sixty_real_models_changes(is_cut: bool) -> None:
    with gzip.open(REAL_REPLIES, "rt", encoding="utf-8") as lines:
        texts = [json.loads(line)["start"] for line in lines]
    assert [text for text in texts if split_thought(text, is_cut=is_cut) != Split(text)] == []


PIECES = [
    "<",
    "<think>",
    "</think>",
    "[THINK]",
    "[thinking]",
    "`",
    "\n```\n",
    "<|a|>",
    "◁",
    "<|channel|>",
    "<a b=",
]
PIECES += [
    "assistantfinal",
    "{",
    "<|im_end|>",
    "<thought> ",
    "<think a=",
    "</thought>x ",
    "<details>",
    "\t",
]


@pytest.mark.parametrize("piece", PIECES)
def test_a_reply_full_of_markers_is_read_at_once(piece: str) -> None:
    began = time.process_time()
    split_thought(piece * (100_000 // len(piece)), is_cut=True)
    assert time.process_time() - began < 2


@pytest.mark.parametrize(
    ("prompt", "opening"),
    [
        ("<｜Assistant｜><think>\n", "\n\n</think>\n\n"),
        ("<longcat_think>\n", "\n\n</longcat_think>\n\n"),
        ("<seed:think>", "</seed:think>"),
        ("<ifm|think>", "</ifm|think>"),
        ("<|START_THINKING|>", "<|END_THINKING|>"),
        ("<|think:start|>", "<|think:end|>"),
        ("<|begin_of_thought|>", "<|end_of_thought|>"),
        (HARMONY_TURN, HARMONY.closing),
        *((form.opening, form.closing) for form in FORMS),
        ("<think>\n\n</think>\n\n", None),
        ("<|im_start|>assistant\n", None),
        ("", None),
    ],
)
def test_after_a_prompt_that_opens_a_thought_the_answer_begins_with_its_end(
    prompt: str, opening: str | None
) -> None:
    assert answer_opening(prompt) == opening
    if opening is not None and prompt != HARMONY_TURN:
        assert split_thought(f"{prompt}{THOUGHT}{opening}{TEXT}").answer == TEXT
