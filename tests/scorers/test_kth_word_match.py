import pytest

from selfprobe.scorers.word_matches import _explain_words, judge_kth_word, kth_word_of, predicted_word
from selfprobe.solvers.record import Problem, Reply

TEXT = "**The** quick — “brown” fox."


def reply(text: str, *, problem: Problem | None = None, stop: str = "stop", tokens: int | None = None) -> Reply:
    return Reply(text=text, model="m", stop_reason=stop, problem=problem, reasoning_tokens=tokens)  # type: ignore[arg-type]


@pytest.mark.parametrize(("k", "word"), [(1, "the"), (2, "quick"), (3, "brown"), (4, "fox")])
def test_the_kth_word_is_counted_without_marks(k: int, word: str) -> None:
    assert kth_word_of(reply(TEXT), k) == (word, None)


def test_a_text_that_ends_before_k_is_too_short() -> None:
    assert kth_word_of(reply(TEXT), 5) == (None, "too_short")
    assert kth_word_of(reply("… — !"), 1) == (None, "too_short")


@pytest.mark.parametrize("stop", ["max_tokens", "model_length"])
def test_the_last_word_of_a_cut_text_may_be_half_a_word(stop: str) -> None:
    cut = reply("The quick bro", stop=stop)
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
    good = reply('{"word": "the"}')
    of_target = judge_kth_word(1, reply("The rest", problem=problem), good)
    of_observer = judge_kth_word(1, reply(TEXT), reply('{"word": "the"}', problem=problem))
    assert (of_target.value, of_target.unscored, of_target.truth) == (None, f"target_{reason}", None)
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
    assert judge_kth_word(1, reply(TEXT), reply('{"word": "THE"}')).value == 1
    assert judge_kth_word(1, reply(TEXT), reply('{"word": "a"}')).value == 0
    unread = judge_kth_word(1, reply(TEXT), reply("The quick"))
    assert (unread.value, unread.unscored) == (None, "invalid_response_format")


def test_the_ceiling_is_the_targets_agreement_with_itself() -> None:
    good = reply('{"word": "the"}')
    assert judge_kth_word(1, reply(TEXT), good, reply("The slow fox")).ceiling == 1
    assert judge_kth_word(2, reply(TEXT), good, reply("The slow fox")).ceiling == 0
    assert judge_kth_word(4, reply(TEXT), good, reply("The slow fox")).ceiling is None
    assert judge_kth_word(1, reply(TEXT), good, reply("", problem="empty")).ceiling is None
    assert judge_kth_word(1, reply(TEXT), good).ceiling is None


def test_reasoning_is_marked_and_scored() -> None:
    decision = judge_kth_word(1, reply(TEXT), reply('{"word": "the"}', tokens=12))
    assert decision.reasoned and decision.value == 1


def test_the_explanation_shows_why_a_reply_could_not_be_read() -> None:
    answers = {"k1": reply("Well, The."), "k2": reply('{"word": "slow"}')}
    decisions = [judge_kth_word(int(key[1:]), reply(TEXT), answer) for key, answer in answers.items()]
    assert _explain_words(reply(TEXT), answers, decisions) == (
        "target (m): ⟦1: **The**⟧ ⟦2: quick⟧ “brown” fox.\n\n"
        "- k1: predicted None, target wrote 'the': invalid_response_format (reply: 'Well, The.')\n"
        "- k2: predicted 'slow', target wrote 'quick': wrong"
    )


@pytest.mark.parametrize("text", ["今天天气很好，我们去公园。", "Hello 今天 we", "สวัสดีครับ"])
def test_a_text_without_word_boundaries_is_unscored_and_never_wrong(text: str) -> None:
    decision = judge_kth_word(2, reply(text), reply('{"word": "今天"}'))
    assert (decision.value, decision.unscored) == (None, "no_word_boundaries")


def test_words_after_the_kth_may_be_of_any_script() -> None:
    assert kth_word_of(reply("Hello world 今天"), 2) == ("world", None)


@pytest.mark.parametrize("text", [r"$\frac{1}{2}$ of it", r"\href{https://example.org}{The} moon"])
def test_a_formula_is_unscored_and_never_a_word(text: str) -> None:
    assert kth_word_of(reply(text), 1) == (None, "formula")


def test_words_before_a_formula_count() -> None:
    assert kth_word_of(reply(r"Half is $\frac{1}{2}$."), 2) == ("is", None)
    assert kth_word_of(reply(r"Open C:\Users\me now"), 3) == ("now", None)
