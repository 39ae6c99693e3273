import json
import re
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from selfprobe.scorers.word_matches import (
    _explain_words,
    _is_talk,
    clues_in,
    fair_clues,
    guess_in,
    judge_guess,
    judge_kth_word,
    kth_word_of,
    leaks,
    names_synonym_or_antonym,
    predicted_word,
)
from selfprobe.solvers.record import Problem, Reply

TEXT = "**The** quick — “brown” fox."


def text_reply(
    text: str, *, problem: Problem | None = None, stop: str = "stop", tokens: int | None = None
) -> Reply:
    return Reply(text=text, model="m", stop_reason=stop, problem=problem, reasoning_tokens=tokens)  # type: ignore[arg-type]


@pytest.mark.parametrize(("k", "word"), [(1, "the"), (2, "quick"), (3, "brown"), (4, "fox")])
def test_the_kth_word_is_counted_without_marks(k: int, word: str) -> None:
    assert kth_word_of(text_reply(TEXT), k) == (word, None)


def test_a_text_that_ends_before_k_is_too_short() -> None:
    assert kth_word_of(text_reply(TEXT), 5) == (None, "too_short")
    assert kth_word_of(text_reply("… — !"), 1) == (None, "too_short")


@pytest.mark.parametrize("stop", ["max_tokens", "model_length"])
def test_the_last_word_of_a_cut_text_may_be_half_a_word(stop: str) -> None:
    cut = text_reply("The quick bro", stop=stop)
    assert kth_word_of(cut, 2) == ("quick", None)
    assert kth_word_of(cut, 3) == (None, "target_truncated")


@pytest.mark.parametrize(
    ("problem", "reason"),
    [
        ("empty", "no_response"),
        ("refused", "refusal"),
        ("filtered", "filtered"),
        ("truncated", "truncated"),
        ("garbled", "garbled"),
    ],
)
def test_a_problem_is_a_reason_on_either_side(problem: Problem, reason: str) -> None:
    good = text_reply('{"word": "the"}')
    of_target = judge_kth_word(1, text_reply("The rest", problem=problem), good)
    of_observer = judge_kth_word(
        1, text_reply(TEXT), text_reply('{"word": "the"}', problem=problem)
    )
    assert (of_target.value, of_target.unscored, of_target.truth) == (
        None,
        f"target_{reason}",
        None,
    )
    assert (of_observer.value, of_observer.unscored, of_observer.said) == (None, reason, None)


@pytest.mark.parametrize(
    ("text", "word"),
    [
        ('{"word": "The"}', "the"),
        ('{"word": "“The,”"}', "the"),
        ('{"word": "The —"}', "the"),
        ('{"word": "שלום"}', "שלום"),
        ('{"word": "e\\u0301tude"}', "étude"),
        ('{"word": "The end"}', None),
        ('{"word": ""}', None),
        ('{"word": "…"}', None),
        ('{"word": 5}', "5"),
        ('{"word": null}', None),
        ('{"word": ["The"]}', "the"),
        ("The", "the"),
    ],
)
def test_a_prediction_is_one_word_or_nothing(text: str, word: str | None) -> None:
    assert predicted_word(text) == word


def test_right_and_wrong_and_unread_are_three_things() -> None:
    assert judge_kth_word(1, text_reply(TEXT), text_reply('{"word": "THE"}')).value == 1
    assert judge_kth_word(1, text_reply(TEXT), text_reply('{"word": "a"}')).value == 0
    unread = judge_kth_word(1, text_reply(TEXT), text_reply("The quick"))
    assert (unread.value, unread.unscored) == (None, "invalid_response_format")


def test_the_ceiling_is_the_targets_agreement_with_itself() -> None:
    good = text_reply('{"word": "the"}')
    assert judge_kth_word(1, text_reply(TEXT), good, text_reply("The slow fox")).ceiling == 1
    assert judge_kth_word(2, text_reply(TEXT), good, text_reply("The slow fox")).ceiling == 0
    assert judge_kth_word(4, text_reply(TEXT), good, text_reply("The slow fox")).ceiling is None
    assert (
        judge_kth_word(1, text_reply(TEXT), good, text_reply("", problem="empty")).ceiling is None
    )
    assert judge_kth_word(1, text_reply(TEXT), good).ceiling is None


def test_reasoning_is_marked_and_scored() -> None:
    decision = judge_kth_word(1, text_reply(TEXT), text_reply('{"word": "the"}', tokens=12))
    assert decision.reasoned and decision.value == 1


def test_the_explanation_shows_why_a_reply_could_not_be_read() -> None:
    answers = {"k1": text_reply("Well, The."), "k2": text_reply('{"word": "slow"}')}
    decisions = [
        judge_kth_word(int(key[1:]), text_reply(TEXT), answer) for key, answer in answers.items()
    ]
    assert _explain_words(text_reply(TEXT), answers, decisions) == (
        "target (m): ⟦1: **The**⟧ ⟦2: quick⟧ “brown” fox.\n\n"
        "- k1: predicted None, target wrote 'the': invalid_response_format (reply: 'Well, The.')\n"
        "- k2: predicted 'slow', target wrote 'quick': wrong"
    )


@pytest.mark.parametrize("text", ["今天天气很好，我们去公园。", "Hello 今天 we", "สวัสดีครับ"])
def test_a_text_without_word_boundaries_is_unscored_and_never_wrong(text: str) -> None:
    decision = judge_kth_word(2, text_reply(text), text_reply('{"word": "今天"}'))
    assert (decision.value, decision.unscored) == (None, "no_word_boundaries")


def test_words_after_the_kth_may_be_of_any_script() -> None:
    assert kth_word_of(text_reply("Hello world 今天"), 2) == ("world", None)


@pytest.mark.parametrize("text", [r"$\frac{1}{2}$ of it", r"\href{https://example.org}{The} moon"])
def test_a_formula_is_unscored_and_never_a_word(text: str) -> None:
    assert kth_word_of(text_reply(text), 1) == (None, "formula")


def test_words_before_a_formula_count() -> None:
    assert kth_word_of(text_reply(r"Half is $\frac{1}{2}$."), 2) == ("is", None)
    assert kth_word_of(text_reply(r"Open C:\Users\me now"), 3) == ("now", None)


TEN = [f"clue number {name}" for name in "one two three four five six seven eight nine ten".split()]


def reply(text: str, problem: str | None = None) -> Reply:
    return Reply(text=text, model="m", stop_reason="stop", problem=problem)


def clues(value: object) -> Reply:
    return reply(json.dumps({"clues": value}))


@pytest.mark.parametrize(
    "value",
    [
        TEN,
        [f"{i}. {clue}" for i, clue in enumerate(TEN, 1)],
        [f"- {clue}" for clue in TEN],
        "\n".join(TEN),
        "\n\n".join(f"* {clue}" for clue in TEN),
        "; ".join(TEN),
        ", ".join(TEN),
        " ".join(f"{i}. {clue}" for i, clue in enumerate(TEN, 1)),
        " ".join(f"({i}) {clue}" for i, clue in enumerate(TEN, 1)),
        "\n".join(f"{i}) {clue}" for i, clue in enumerate(TEN, 1)),
        " | ".join(TEN),
        " / ".join(TEN),
        " • ".join(TEN),
        " ".join(f"Clue {i}: {clue}" for i, clue in enumerate(TEN, 1)),
        "\n".join(f"**Clue {i}:** {clue}" for i, clue in enumerate(TEN, 1)),
        [{"clue": clue} for clue in TEN],
        {str(i): clue for i, clue in enumerate(TEN, 1)},
    ],
)
def test_ten_clues_are_read_from_a_list_and_from_one_string(value: object) -> None:
    assert clues_in(json.dumps({"clues": value})) == TEN


@pytest.mark.parametrize(
    "text",
    [
        "Here are ten clues:\n" + "\n".join(f"{i}. {clue}" for i, clue in enumerate(TEN, 1)),
        "\n".join(f"- {clue}" for clue in TEN) + "\n\nGood luck!",
        "\n".join(TEN),
        "Sure!\nHere are ten clues:\n\n" + "\n\n".join(TEN),
        "\n".join(f"{letter}) {clue}" for letter, clue in zip("abcdefghij", TEN, strict=True)),
        "\n".join(
            f"{n}) {clue}"
            for n, clue in zip("i ii iii iv v vi vii viii ix x".split(), TEN, strict=True)
        ),
        "| # | Clue |\n|---|---|\n"
        + "\n".join(f"| {i} | {clue} |" for i, clue in enumerate(TEN, 1)),
        json.dumps({f"clue{i}": clue for i, clue in enumerate(TEN, 1)}),
    ],
)
def test_ten_clues_are_read_from_a_list_without_the_object(text: str) -> None:
    assert clues_in(text) == TEN


def test_sentences_are_clues_and_keep_their_commas() -> None:
    text = " ".join(f"It is tall, or so, as number {name} says." for name in TEN)
    assert len(clues_in(json.dumps({"clues": text})) or []) == 10


@pytest.mark.parametrize(
    "text", ["", "{}", '{"clues": 3}', '{"clues": []}', '{"clues": [1, 2]}', '{"clues": "..."}']
)
def test_what_holds_no_clues_is_none(text: str) -> None:
    assert clues_in(text) is None


def test_a_list_that_nests_too_deep_holds_no_clues() -> None:
    assert clues_in("[" * 50_000 + "]" * 50_000) is None


@given(st.text())
def test_any_text_gives_clues_or_none(text: str) -> None:
    for found in (clues_in(text), clues_in(json.dumps({"clues": text}))):
        assert found is None or all(clue.strip() == clue and clue for clue in found)


@pytest.mark.parametrize("count", [1, 8, 12])
def test_clues_that_are_far_from_ten_are_unscored(count: int) -> None:
    given_clues = [f"clue {chr(97 + i)}" for i in range(count)]
    assert fair_clues(clues(given_clues), "barn")[1] == "not_ten_clues"


@pytest.mark.parametrize("count", [9, 10, 11])
def test_nine_or_eleven_clues_are_played(count: int) -> None:
    given_clues = [f"clue {chr(97 + i)}" for i in range(count)]
    assert fair_clues(clues(given_clues), "barn") == (given_clues, None)


@pytest.mark.parametrize(
    ("clue", "word"),
    [
        ("A lighthouse warns ships.", "lighthouse"),
        ("LIGHTHOUSE!", "lighthouse"),
        ("Many lighthouses stand there.", "lighthouse"),
        ("the **Lighthouse's** keeper", "lighthouse"),
        ("l-i-g-h-t-h-o-u-s-e", "lighthouse"),
        ("L I G H T H O U S E", "lighthouse"),
        ("l.i.g.h.t.h.o.u.s.e.s", "lighthouse"),
        ("light-house", "lighthouse"),
        ("**light**house", "lighthouse"),
        ("light\u200bhouse", "lighthouse"),
        ("two bookshelves", "bookshelf"),
        ("wear scarves", "scarf"),
        ("many libraries of canoes", "canoe"),
        ("full of mercies", "mercy"),
        ("he is jealous", "jealousy"),
        ("be honest", "honesty"),
        ("it will juggle", "juggling"),
        ("very imaginative", "imagination"),
        ("an elegant one", "elegance"),
        ("Straße", "strasse"),
        ("a loyal one", "loyalty"),
        ("lonely", "loneliness"),
        ("a doggy", "dog"),
        ("wise people have it", "wisdom"),
        ("a teacher", "teach"),
        ("children", "child"),
        ("a just cause", "justice"),
        ("patient", "patience"),
        ("he ran", "run"),
    ],
)
def test_the_word_its_root_and_its_letters_are_leaks(clue: str, word: str) -> None:
    assert leaks(clue, word)


@pytest.mark.parametrize(
    ("clue", "word"),
    [
        ("it gives light", "lighthouse"),
        ("a humdrum life", "drum"),
        ("do not trust it", "rust"),
        ("on a sharp edge", "harp"),
        ("the choir sings", "echo"),
        ("in a chess-like game", "cheese"),
        ("esuohthgil", "lighthouse"),
        ("foolish", "wisdom"),
        ("Rhymes with 'log'", "dog"),
        ("in summer", "sum"),
        ("a lattice", "late"),
    ],
)
def test_parts_and_other_words_that_hold_the_letters_are_no_leaks(clue: str, word: str) -> None:
    assert not leaks(clue, word)


@given(st.from_regex(r"[a-z]{4,12}", fullmatch=True), st.sampled_from(["", "-", " ", ".", " - "]))
def test_a_word_always_leaks_itself_however_its_letters_are_spaced(word: str, between: str) -> None:
    assert leaks(f"Say {between.join(word)} now", word)


@pytest.mark.parametrize(
    ("text", "guess"),
    [
        ('{"guess": "Barn."}', "barn"),
        ('{"guess": "**barn**"}', "barn"),
        ('{"guess": "a barn"}', "barn"),
        ('{"guess": "barn or stable"}', None),
        ('{"guess": ""}', None),
        ('{"guess": "?!"}', None),
        ('{"guess": ["barn"]}', "barn"),
        ("barn", "barn"),
        ('{"guess": "barn", "confidence": 0.9}', "barn"),
        ('{"guess": "red barn"}', None),
    ],
)
def test_a_guess_is_one_word(text: str, guess: str | None) -> None:
    assert guess_in(text) == guess


def test_a_guess_is_compared_as_a_whole_word() -> None:
    assert judge_guess("barn", clues(TEN), reply('{"guess": "BARN"}')).value == 1
    assert judge_guess("barn", clues(TEN), reply('{"guess": "barnacle"}')).value == 0
    assert judge_guess("barnacle", clues(TEN), reply('{"guess": "barn"}')).value == 0


@pytest.mark.parametrize(
    ("act", "guess", "reason"),
    [
        (reply("", "empty"), None, "target_no_response"),
        (reply("No.", "refused"), None, "target_refusal"),
        (reply('{"clues"', "truncated"), None, "target_truncated"),
        (reply("tall, old"), None, "target_invalid_response_format"),
        (clues([*TEN[:9], "a red barn"]), None, "leak"),
        (clues(["a red barn"]), None, "leak"),
        (clues(TEN[:8]), None, "not_ten_clues"),
        (clues(TEN), reply("", "empty"), "no_response"),
        (clues(TEN), reply('{"guess": "red barn"}'), "invalid_response_format"),
    ],
)
def test_what_cannot_be_played_is_unscored_with_its_reason(
    act: Reply, guess: Reply | None, reason: str
) -> None:
    decision = judge_guess("barn", act, guess)
    assert (decision.value, decision.unscored, decision.truth) == (None, reason, "barn")


@pytest.mark.parametrize(
    ("clue", "named"),
    [
        ("Synonym: beacon", True),
        ("It is the antonym of darkness", True),
        ("Opposite of low", True),
        ("Another word for a pharos", True),
        ("It stands opposite the harbour.", False),
        ("It warns ships.", False),
    ],
)
def test_a_clue_that_calls_itself_a_synonym_or_antonym_is_counted(clue: str, named: bool) -> None:
    assert names_synonym_or_antonym(clue) == named


@pytest.mark.parametrize(
    "reply",
    [
        '{"clues": [{"number": 1, "clue": "It is tall."}, {"number": 2, "clue": "It warns ships."}]}',
        '["It is tall.", "It warns ships."]',
    ],
)
def test_numbered_objects_and_a_bare_list_are_read(reply: str) -> None:
    assert clues_in(reply) == ["It is tall.", "It warns ships."]


@pytest.mark.parametrize(
    "text",
    [
        " " * 40_000,
        "; " * 40_000,
        ": " * 40_000 + "a",
        "``" * 30_000,
        "1. " * 30_000,
        "a\n" * 40_000,
        "| " * 40_000,
        '{"clues": "' + " " * 60_000 + 'x"}',
        "l i g h t h o u s " * 5_000,
        "l..." * 20_000,
    ],
)
def test_a_long_reply_takes_no_time_since_others_wait_meanwhile(text: str) -> None:
    started = time.process_time()
    clues_in(text)
    leaks(text, "lighthouse")
    assert time.process_time() - started < 2  # quadratic ways took 4 to 60


@pytest.mark.parametrize(
    ("line", "talk"),
    [
        ("```json", True),
        ("- ``` x", True),
        ("**The clues:**", True),
        ("Sure, ten.", True),
        ("> Here are ten", True),
        ("It is: tall", False),
        ("Surely tall", False),
        ("Tall ```", False),
        ("", False),
    ],
)
def test_a_line_of_talk_is_told_by_its_ends(line: str, talk: bool) -> None:
    before = re.compile(
        r"^\W*(?:```.*|.*:\W*|(?:here are|sure|of course)\b.*)$", re.IGNORECASE
    )  # quadratic
    assert _is_talk(line) is talk is bool(before.match(line))
