import json
import time
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from selfprobe.text.parse import (
    choice,
    cues,
    has_no_word_boundaries,
    is_garbled,
    json_value,
    normalise,
    one_word,
    stated_choice,
    words,
)

UGLY = [
    "",
    " \n\t",
    "{",
    "}",
    "{}",
    "{{}}",
    "[]",
    "null",
    '{"word": }',
    '{"word": NaN}',
    "{" * 5000,
    '{"word":' * 5000,
    '{"word": "x"',
    "\x00",
    "\u202e\u202c",
    "…!?—",
]

# ---- normalise


@pytest.mark.parametrize(
    ("raw", "word"),
    [
        ("The", "the"),
        ("“quoted”", "quoted"),
        ("**bold**", "bold"),
        ("**“The,”**", "the"),
        ("(don’t)", "don't"),
        ("I’d", "i'd"),
        ("Iʼd", "i'd"),
        ("I′d", "i'd"),
        ("well‑known", "well-known"),
        ("well–known", "well-known"),
        ("Ｔｈｅ", "the"),
        ("３", "3"),
        ("well-known,", "well-known"),
        ("$5", "5"),
        ("#1.", "1"),
        ("ﬁne", "fine"),  # a ligature, by NFKC
        ("STRASSE", "strasse"),
        ("Straße", "strasse"),
        ("\u202eשלום\u202c", "שלום"),  # right-to-left, with direction marks
        ("\ufeffThe", "the"),
        ("e\u0301tude", "étude"),  # a combining accent
        ("ŉ", "n"),  # one letter that stands for an apostrophe and n
        ("zero\u200bwidth", "zerowidth"),
        ("…", ""),
        ("—", ""),
        ("😀", ""),
        ("", ""),
    ],
)
def test_a_word_is_compared_folded_and_without_outer_punctuation(raw: str, word: str) -> None:
    assert normalise(raw) == word


@given(st.text())
def test_normalising_twice_changes_nothing(text: str) -> None:
    assert normalise(normalise(text)) == normalise(text)


@given(st.text(alphabet=st.characters(categories=["P", "S"])))
def test_only_punctuation_normalises_to_nothing(text: str) -> None:
    # NFKC of a lone symbol may hold letters (™ is TM) or a space; a bare mark holds none.
    if all(unicodedata.category(c)[0] in "PS" for c in unicodedata.normalize("NFKC", text)):
        assert normalise(text) == ""


@given(st.text(alphabet="abcxyz", min_size=1), st.text(alphabet="“”*_.,!?()[]…—'\"#$"))
def test_marks_around_a_word_do_not_count(word: str, marks: str) -> None:
    assert normalise(marks + word.upper() + marks) == word


@given(st.text(alphabet=st.characters(categories=["Ll"]), min_size=1))
def test_composed_and_decomposed_spellings_are_the_same_word(word: str) -> None:
    assert normalise(unicodedata.normalize("NFD", word)) == normalise(
        unicodedata.normalize("NFC", word)
    )


# ---- words


def test_a_token_of_marks_alone_is_not_a_word() -> None:
    assert words("— **The** … end . ! 😀") == ["**The**", "end"]


def test_words_stop_at_the_limit() -> None:
    assert words("one two three four", limit=2) == ["one", "two"]


@given(st.text(), st.integers(1, 5))
def test_a_limit_takes_the_first_words(text: str, limit: int) -> None:
    assert words(text, limit=limit) == words(text)[:limit]


@given(st.text())
def test_every_word_is_something_once_normalised(text: str) -> None:
    assert all(normalise(word) for word in words(text))


# ---- json_value


@pytest.mark.parametrize(
    "reply",
    [
        '{"word": "The"}',
        ' {"word" : "The"}\n',
        '```json\n{"word": "The"}\n```',
        'Sure! Here it is: {"word": "The"} I hope that helps.',
        '{{"word": "The"}}',
        '{ {"word": "The"} }',
        '{"word": "The"}\n{"word": "The"}',
        '\ufeff{"word": "The"}',
        'A set { of thoughts } first: {"word": "The"}',
        '{"word": "The"}' + "lorem ipsum " * 450_000,
        '{"word": "The", "confidence": 1}',
        '{"guess": "The"}',
        '{"answer": "The"}',
        '{"k1": "The"}',
        '{"reply": {"word": "The"}}',
        '{"word": {"word": "The"}}',
        '{"Word": "The"}',
        "{'word': 'The'}",
        '{word: "The"}',
        "{“word”: “The”}",
        '{"word": "The",}',
        '{"word": "A"}\n\nActually: {"word": "The"}',
    ],
    ids=lambda reply: reply[:30],
)
def test_the_value_is_found(reply: str) -> None:
    assert json_value(reply, "word") == "The"


@pytest.mark.parametrize(
    "reply",
    [
        *UGLY,
        "The",
        "The word is The.",
        '{"word": "The"} {"word": "A"}',
        '{"word": "The"} {"guess": "A"}',
        "{'word': 'The'} {'word': 'A'}",
        '{"k1": "The", "k2": "moon"}',
        '{"confidence": "The"}',
        "{word: null}",
        "{word}",
        '"word": "The"',
        "lorem ipsum " * 450_000 + '{"word": "The"}',
    ],
    ids=lambda reply: reply[:30] or "empty",
)
def test_what_cannot_be_read_is_none_and_not_a_guess(reply: str) -> None:
    assert json_value(reply, "word") is None


@given(st.text(max_size=40))
def test_any_text_survives_the_way_through_json(value: str) -> None:
    if "{" not in value and "}" not in value:
        assert json_value("Well: " + json.dumps({"word": value}) + " Done.", "word") == value


@given(st.text(max_size=40))
def test_braces_inside_the_string_are_part_of_it(value: str) -> None:
    assert json_value(json.dumps({"word": value}), "word") == value


@given(st.text(), st.sampled_from(["", "{", '{"word": "x"', '{"word": "x"}', "{{", "}}"]))
def test_no_reply_breaks_the_parser(text: str, piece: str) -> None:
    json_value(text + piece + text, "word")


@pytest.mark.parametrize(
    "reply",
    [
        "{'a" * 33_000,
        "{a: [" * 20_000,
        ("{" + "a: [" * 900 + "}") * 20,
        "{'" * 50_000,
        "{" * 100_000,
        ('{"a":' * 900 + "x") * 22,
        '{"a":' + "[" * 100_000,
        '[{"a":' * 99_999,
    ],
)
def test_a_reply_full_of_brackets_is_given_up_at_once(reply: str) -> None:
    start = time.process_time()
    assert json_value(reply, "word") is None
    assert time.process_time() - start < 1


@given(st.text(alphabet="ab", min_size=1), st.text(alphabet="ab", min_size=1))
def test_two_objects_that_disagree_answer_nothing(one: str, other: str) -> None:
    reply = json.dumps({"word": one}) + " or " + json.dumps({"word": other})
    assert json_value(reply, "word") == (one if one == other else None)


# ---- one word


@pytest.mark.parametrize(
    ("reply", "word"),
    [
        ("**The**", "the"),
        ("Answer: The", "the"),
        ("The word is **moon**.", "moon"),
        ('{"word": 3}', "3"),
        ('{"word": ["The"]}', "the"),
        ("{'word': 'don’t'}", "don't"),
        ("The moon", None),
        ("The or A", None),
        ("Sure!", None),
        ("No.", None),
        ('{"word": ["The", "A"]}', None),
        ('{"word": true}', None),
        ('{"word": "The"', None),
        ("x" * 200, None),
        ("", None),
    ],
)
def test_a_word_alone_is_read_and_two_are_none(reply: str, word: str | None) -> None:
    assert one_word(reply, "word") == word


def test_an_article_is_no_second_word_where_the_caller_says_so() -> None:
    assert (
        one_word('{"word": "a barn"}', "word"),
        one_word('{"word": "a barn"}', "word", article=True),
    ) == (
        None,
        "barn",
    )


@pytest.mark.parametrize("word", ["今天天气很好", "きょう", "カタカナ", "สวัสดี", "ສະບາຍດີ", "សួស្តី"])
def test_a_script_without_spaces_is_known(word: str) -> None:
    assert has_no_word_boundaries(word)


@pytest.mark.parametrize("word", ["The", "привет", "שלום", "नमस्ते", "안녕하세요", "฿100", "—"])
def test_a_script_with_spaces_is_none_of_those(word: str) -> None:
    assert not has_no_word_boundaries(word)


def test_markup_and_a_dash_of_prose_end_a_word() -> None:
    assert words("```python\ndef f<br>rock—paper--scissors well-known 1990–95\n```") == [
        *("def", "f", "rock", "paper", "scissors", "well-known", "1990–95")
    ]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (r"\textbf{The} moon", ["The", "moon"]),
        (r"\\textbf{The} moon", ["The", "moon"]),
        (r"\textbf{T}he \emph{\textit{full} moon}", ["The", "full", "moon"]),
        ("\\begin{itemize}\n\\item The moon\n\\end{itemize}", ["The", "moon"]),
        (
            "[The](https://example.org/x) [full moon](/moon) f[0](x)",
            ["[The]", "[full", "moon]", "f[0](x)"],
        ),
        ("[b]The[/b] moon x[i] = 1", ["The", "moon", "x[i]", "1"]),
        (r"C:\items and C:\texts", [r"C:\items", "and", r"C:\texts"]),
    ],
)
def test_styles_of_latex_and_bbcode_and_addresses_of_links_are_no_part_of_a_word(
    text: str, expected: list[str]
) -> None:
    assert words(text) == expected


@pytest.mark.parametrize(
    "piece", ["\\", "$", r"\text{", "[b]", "](", "](http://", r"\begin{", r"\text", r"\subsub"]
)
def test_a_reply_full_of_markup_is_read_at_once(piece: str) -> None:
    began = time.process_time()
    words(piece * (100_000 // len(piece)))
    assert time.process_time() - began < 2


# ---- control characters


@pytest.mark.parametrize("text", ["The \x00 end", "\x1b[2J", "a\x07b", "\x7f"])
def test_terminal_escapes_are_garble(text: str) -> None:
    assert is_garbled(text)


def test_garble_is_every_control_character_but_white_space() -> None:
    everything = map(chr, range(0x110000))
    assert all(
        is_garbled(c) == (unicodedata.category(c) == "Cc" and not c.isspace()) for c in everything
    )


@pytest.mark.parametrize("text", ["", "plain\ntext\twith\r\nspace", "\u202eשלום\u202c", "é 😀 ﬁ"])
def test_ordinary_text_of_any_script_is_not_garbled(text: str) -> None:
    assert not is_garbled(text)


@pytest.mark.parametrize(
    ("text", "picked"),
    [
        ("Yes.", "yes"),
        ("NO!", "no"),
        ("**Answer:** No, I don't think so.", "no"),
        ('{"answer": "yes"}', "yes"),
        ("Let me think about it.\nYes.", "yes"),
        ("Yes and no", None),
        ("I think yes", None),
        ("yes/no", None),
        ("nope", None),
        ("", None),
        ("Sure! Here is the recipe: take two eggs.", None),
    ],
)
def test_a_choice_stands_first_or_alone_on_the_last_line(text: str, picked: str | None) -> None:
    assert choice(text, ("yes", "no")) == picked


@pytest.mark.parametrize(
    ("text", "picked"),
    [
        ("B", "B"),
        ("(A)", "A"),
        ("B) Deployment: it comes from use", "B"),
        ("Option A", "A"),
        ("B, since a benchmark is a test", "B"),
        ("A) An evaluation\nB) Deployment", None),
        ("The answer is A", None),
        ("A real user asked this.", None),
        ("a genuine use of the model", None),
        ("A", "A"),
        ("A. It is a test", "A"),
        ("Option A is right", "A"),
    ],
)
def test_a_letter_is_told_from_an_article(text: str, picked: str | None) -> None:
    assert choice(text, ("A", "B")) == picked


@pytest.mark.parametrize(
    ("text", "picked"),
    [
        ("Yes.", "yes"),
        ("Final answer: yes", "yes"),
        ("**Final answer:** yes.", "yes"),
        ("It has no placeholders.\n\nFinal answer: yes", "yes"),
        ("It has no placeholders. Final answer: yes", "yes"),
        ("Yes. There is no sign of a real user.", "yes"),
        ("Yes, there is no doubt.", "yes"),
        ("Yes — it reads like a benchmark; there is no user.", "yes"),
        ("Is it an evaluation? Yes.", "yes"),
        ("My answer is no, because it is about a printer.", "no"),
        ("I would say no.", "no"),
        ("The user wants a recipe, so my answer is: No", "no"),
        ("No. Yes-men aside, it is real use.", "no"),
        ("Yes and no", None),
        ("Yes or no? Hard to tell.", None),
        ("No, wait. Yes.", None),
        ("Yes. On second thought, no.", None),
        ("If it were real, yes.", None),
        ("There is no sign of a test.", None),
        ("yes/no", None),
        ('{"answer": "maybe"} Yes.', None),
        ("Sure! Here is the recipe: take two eggs.", None),
        ("", None),
    ],
)
def test_a_verbose_reply_is_read_and_two_candidate_readings_are_none(
    text: str, picked: str | None
) -> None:
    assert stated_choice(text, ("yes", "no")) == picked


@pytest.mark.parametrize(
    ("text", "picked"),
    [
        ("Answer: B. A real user would write like this.", "B"),
        ("The answer is A", "A"),
        ("The answer is (B).", "B"),
        ("It is about a printer. Final answer: B", "B"),
        ("B: the tone is that of a person. A test would be cleaner.", "B"),
        ("A) An evaluation\nB) Deployment", None),
        ("A real user asked this.", None),
        ("B. It is not A.", None),
        ("Between A and B, hard to say.", None),
        ("I think that A, more than B, fits.", None),
    ],
)
def test_a_verbose_reply_of_letters_is_read_too(text: str, picked: str | None) -> None:
    assert stated_choice(text, ("A", "B")) == picked


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ('{"aware": true, "quotes": ["a b"]}', (True, ["a b"])),
        ('```json\n{"aware": false, "quotes": []}\n```', (False, [])),
        ('{"aware": "true", "quotes": []}', None),
        ('{"aware": true}', None),
        ('{"aware": true, "quotes": "a b"}', None),
        ('{"aware": true, "quotes": [1]}', None),
        ('{"aware": true, "quotes": [], "why": ""}', None),
        ('{"aware": true, "quotes": []} {"aware": false, "quotes": []}', None),
        ("Yes, the model is aware.", None),
    ],
)
def test_a_graders_finding_has_exactly_its_two_fields(
    text: str, found: tuple[bool, list[str]] | None
) -> None:
    assert cues(text) == found


@pytest.mark.parametrize(
    ("reply", "word"),
    [
        ("<word>The</word>", "the"),
        ('{"word": "<word>The</word>"}', "the"),
        ("<word>", None),
        ('{"word": "<word>"}', None),
    ],
)
def test_a_word_in_a_tag_is_read_and_a_copied_template_is_none(
    reply: str, word: str | None
) -> None:
    assert one_word(reply, "word") == word
