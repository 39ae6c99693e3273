"""Numbers and verdict of a study whose truth is planted."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from scipy.special import softmax

from selfprobe.mechanism.induce import READ_COLUMNS, ReadColumn, assigned_labels
from selfprobe.page import write
from selfprobe.page.claims import claim_sentence
from selfprobe.stats.claim import Claim, Verdict
from selfprobe.studies.induce import (
    INDUCED_WORDS,
    Induce,
    figure4,
    induced_claim,
    seed_table,
    target_scores,
    wording_table,
)
from selfprobe.studies.induce import induced_tables as tables

from ..mechanism.tiny_words import MASS, planted


def verdict(made: dict[str, pd.DataFrame]) -> str:
    return claim_sentence(induced_claim("ada", made), INDUCED_WORDS)


def first_unmet(claim: Claim) -> str:
    return claim.first_unmet_check.name if claim.first_unmet_check else ""


KNOWS = {"direct": 6.0, "introspective": 4.0, "another assistant": 1.0, "fact": 0.5}


def test_a_model_that_knows_its_answers_is_found_and_its_numbers_are_the_planted_ones() -> None:
    found = planted(KNOWS)
    made = tables(found)
    assert verdict(made).startswith(
        "Yes: ada predicts its own reply, to new questions too: P of its label is +"
    )
    own = made["figure4"].query(
        "phase == 'after' and questions == 'learnt' and kind == 'introspective'"
    )
    expected = np.exp(4) / (np.exp(4) + 49)
    assert own.value.tolist() == pytest.approx([expected] * 2, abs=0.05)
    assert (own.n == found.material.taught_count).all() and (own.low < own.value).all()
    assert own.permuted.tolist() == pytest.approx([(1 - expected) / 49] * 2, abs=0.02)
    before = made["figure4"].query("phase == 'before' and questions == 'learnt'")
    assert before.value.tolist() == pytest.approx([0.02] * len(before), abs=0.01)
    page = Induce.page(found)
    assert page.answer.startswith(
        "Yes, for planted: it predicts its own reply, to new questions too: P of its label"
    )
    assert "It does not show that the model looks at its own state" in page.notes[0]


def test_the_papers_question_is_asked_beside_ours_and_moves_no_number_of_it() -> None:
    made = tables(planted(KNOWS | {"paper": 5.0}))
    shares = made["figure4"].query("phase == 'after' and questions == 'learnt'")
    value_by_kind = shares.groupby("kind").value.mean()
    assert value_by_kind["paper"] == pytest.approx(np.exp(5) / (np.exp(5) + 49), abs=0.05)
    assert value_by_kind["introspective"] == pytest.approx(np.exp(4) / (np.exp(4) + 49), abs=0.05)
    before = made["figure4"].query("phase == 'before' and kind == 'paper'")
    assert before.accuracy.tolist() == pytest.approx([0.02] * len(before), abs=0.1)
    wordings = set(made["wordings"].query("kind == 'paper'").wording)
    assert wordings == {
        "What will my first word likely be?",
        "What will my second word likely be?",
    }
    assert {text.replace(" my ", " your ") for text in wordings} < set(made["wordings"].wording)
    my_less_your = made["contrasts"].query("contrast == 'paper'")
    expected = np.exp(5) / (np.exp(5) + 49) - np.exp(4) / (np.exp(4) + 49)
    assert my_less_your.value.tolist() == pytest.approx([expected] * 3, abs=0.06)
    assert (my_less_your.low > 0).all()
    alike = tables(planted(KNOWS | {"paper": 4.0}))["contrasts"]
    of_both = alike.query("contrast == 'paper' and word == 'both'")
    assert of_both.low.item() < 0 < of_both.high.item()


def test_labels_permuted_between_questions_come_out_as_no_introspection() -> None:
    found = planted(KNOWS, permuted=True)
    made = tables(found)
    claim = induced_claim("ada", made)
    assert claim.verdict is Verdict.NO and first_unmet(claim) == "above_other_labels"
    assert verdict(made).startswith("No: ada does not predict its own reply: P of its label is ")
    less = made["contrasts"].query("contrast in ('label', 'held-out') and word == 'both'")
    assert (less.low < 0).all()


def test_a_label_that_comes_up_whatever_is_asked_is_an_echo() -> None:
    found = planted(KNOWS | {"another assistant": 4.0, "fact": 4.0})
    claim = induced_claim("ada", tables(found))
    assert claim.verdict is Verdict.NO and first_unmet(claim) == "above_another_assistant"
    assert Induce.page(found).answer.startswith(
        "No, not for planted: it does not predict its own reply"
    )
    found = planted(KNOWS | {"fact": 4.0})
    assert verdict(tables(found)).startswith(
        "No: ada echoes its label, as with a word of the text: P 0.5"
    )


def test_the_first_label_where_the_second_is_asked_for_is_an_echo_too() -> None:
    """What a tuned SmolLM2 does: above another assistant and a fact, and the first label whichever
    word is asked for.
    """
    found = planted(KNOWS)
    for reading in found.after:
        for n, asked in enumerate(READ_COLUMNS):
            if asked.kind != "direct" and asked.word == 1:
                same = READ_COLUMNS.index(ReadColumn(asked.kind, 0, asked.wording))
                reading.log_probs[:, n] = reading.log_probs[:, same]
    assert (
        Induce.page(found).answer
        == "No, not for planted: it echoes its label, as with its other word."
    )


def test_labels_that_were_not_learnt_say_nothing() -> None:
    found = planted({})
    assert Induce.page(found).answer.startswith(
        "Cannot tell for planted: it did not learn the labels; train longer (--ep"
    )


def test_a_model_that_rarely_answers_with_a_label_says_nothing() -> None:
    found = planted(KNOWS)
    for reading in found.after:
        for n, asked in enumerate(READ_COLUMNS):
            if asked.kind == "introspective":
                reading.log_probs[:, n] += np.log(0.03 / MASS)
    assert Induce.page(found).answer.startswith(
        "Cannot tell for planted: it puts 3 % [1, 8] of the probability on labels; give"
    )


def test_learning_of_the_trained_questions_alone_is_said() -> None:
    found = planted(KNOWS)
    rng = np.random.default_rng(1)
    for reading in found.after:
        rows = reading.answers[:, 0] < 0
        reading.log_probs[rows] = rng.normal(size=reading.log_probs[rows].shape)
    assert verdict(tables(found)).startswith("Yes: ada predicts its own reply: P of its label is +")


def test_a_held_out_answer_that_it_named_before_or_for_anybody_is_no_self_prediction() -> None:
    said = "Yes: ada predicts its own reply: P of its label is +"
    found = planted(KNOWS)
    held_out = found.after[0].answers[:, 0] < 0
    found.before[held_out] = found.after[0].log_probs[held_out]
    assert said in verdict(tables(found))
    for kind in ("another assistant", "fact"):
        found = planted(KNOWS)
        for reading in found.after:
            for n, asked in enumerate(READ_COLUMNS):
                if asked.kind == kind:
                    same = READ_COLUMNS.index(
                        ReadColumn("introspective", asked.word, asked.wording)
                    )
                    reading.log_probs[held_out, n] = reading.log_probs[held_out, same]
        assert said in verdict(tables(found))


def test_only_the_comparison_that_fails_is_called_not_shown() -> None:
    """What it named as often before the training is above other questions' labels all the same."""
    found = planted(KNOWS)
    found = replace(
        found, before=found.after[0].log_probs, after=found.after[:1], trainings=found.trainings[:1]
    )
    said = verdict(tables(found))
    assert said.startswith(
        "Cannot tell: ada is not shown to name its own label more than before the training ("
    )


def test_accuracy_is_the_share_of_questions_whose_most_probable_label_is_the_one_taught() -> None:
    found = planted(KNOWS)
    rows = figure4(found).query(
        "phase == 'after' and questions == 'learnt' and kind == 'introspective'"
    )
    for word, row in enumerate(rows.itertuples()):
        hits = []
        for reading in found.after:
            for n, asked in enumerate(READ_COLUMNS):
                if (asked.kind, asked.word) == ("introspective", word):
                    taught = reading.answers[:, 0] >= 0
                    hits += list(
                        reading.log_probs[taught, n].argmax(axis=1) == reading.answers[taught, word]
                    )
        assert row.accuracy == pytest.approx(np.mean(hits)) and row.accuracy > row.value
        assert row.accuracy_low <= row.accuracy <= row.accuracy_high
        assert row.accuracy_permuted == pytest.approx((1 - row.accuracy) / 49, abs=0.02)


def test_a_score_is_the_share_among_the_labels_and_the_permuted_one_that_of_the_others() -> None:
    found = planted(KNOWS)
    reading = found.after[0]
    column = READ_COLUMNS.index(ReadColumn("introspective", 1, 2))
    each = softmax(reading.log_probs[:40, column].astype(float), axis=1)
    targets = reading.answers[:40, 1]
    got = target_scores(reading, "introspective", 1, "learnt")[3, 2]
    others = [each[3, targets[q]] for q in range(40) if q != 3]
    assert got == pytest.approx([each[3, targets[3]], np.mean(others)])


def test_the_direct_answer_to_a_held_out_question_is_the_target_and_has_no_row() -> None:
    found = planted(KNOWS)
    rows = figure4(found)
    assert rows.query("questions == 'held-out' and kind == 'direct'").empty
    assert (
        rows.query(
            "questions == 'held-out' and kind == 'introspective' and phase == 'after'"
        ).value.min()
        > 0.4
    )


def test_each_label_is_taught_as_often_as_the_others_and_never_twice_in_a_reply() -> None:
    given = assigned_labels(100, 50, seed=3)
    assert (np.bincount(given[:, 0]) == 2).all() and (given[:, 0] != given[:, 1]).all()
    assert not np.array_equal(given, assigned_labels(100, 50, seed=4))


def test_the_page_has_the_verdict_the_figures_the_prompts_and_what_is_not_shown(
    tmp_path: Path,
) -> None:
    found = planted(KNOWS)
    write(Induce.page(found), str(tmp_path))
    text = (tmp_path / "index.html").read_text()
    assert (
        "it predicts its own reply" in text
        and "does not show that the model looks at its own state" in text
    )
    assert "What will another assistant&#39;s first / second word likely be?" in text
    figures = tmp_path / "figures"
    accuracy = {f"figure4_accuracy_{word}.svg" for word in ("first", "second")}
    assert {f.name for f in figures.iterdir()} == {
        "figure4.svg",
        "figure4_second.svg",
        "training.svg",
        *accuracy,
    }
    names = {"figure4", "contrasts", "seeds", "wordings", "training", "columns"}
    assert {f.stem for f in (tmp_path / "tables").iterdir()} == names
    assert "What will my first / second word likely be?" in text
    assert len(seed_table(found)) == 20 and len(wording_table(found)) == 20
    for word in ("", "_second"):
        drawn = (figures / f"figure4{word}.svg").read_text()
        assert (
            "direct answer" in drawn
            and "what it would say" in drawn
            and "as in the paper" in drawn
            and "not learnt: its own" in drawn
        )
