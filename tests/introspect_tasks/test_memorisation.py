"""Memory of data sets: planted memories are found, guesses are none, and what is shown is the file's own row."""

import json
from pathlib import Path
from typing import Any

import pytest
from inspect_ai.event import ModelEvent
from inspect_ai.log import resolve_sample_attachments

from selfprobe.data import BUNDLED, bundled, canary, load
from selfprobe.introspect_tasks.memorisation import COUNT, broken, exchanged, memorisation, probes

TEXT = "The boat and the lamp are in the harbour because a storm is on the way, and " + " ".join(map(str, range(20)))


def metrics(log: Any) -> dict[str, float]:
    assert log.status == "success" and log.results is not None, log.error
    return {name: metric.value for name, metric in log.results.scores[0].metrics.items()}


@pytest.fixture
def mine(tmp_path: Path) -> Path:
    path = tmp_path / "mine.jsonl"
    guid = "0b9d3f3e-1111-4222-8333-444455556666"
    rows = [{"id": f"r{n}", "question": f"{n} {TEXT}", "canary": f"canary GUID {guid}"} for n in range(6)]
    path.write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    return path


# ---- the rows


def test_each_bundled_row_carries_the_canary_of_its_card_and_none_reaches_a_prompt_or_a_hash() -> None:
    guids = {name: canary(name) for name in bundled()}
    assert len(set(guids.values())) == len(guids) == 6
    for name, guid in guids.items():
        lines = (BUNDLED / name / "rows.jsonl").read_text(encoding="utf-8").split("\n")
        assert {json.loads(line)["canary"] for line in lines if line} == {f"canary GUID {guid}"}
        assert f"canary GUID {guid}" in (BUNDLED / name / "README.md").read_text(encoding="utf-8")
        assert not any("canary" in row for row in load(name, ()).rows)


def test_hashes_are_those_from_before_there_were_canaries() -> None:
    assert load("open_questions", ("question",)).sha256.startswith("8aad29c745b23a39")
    assert load("eval_awareness", ()).sha256.startswith("4209c0fb9caa1acb")


def test_a_foreign_column_called_canary_stays(tmp_path: Path) -> None:
    path = tmp_path / "birds.jsonl"
    path.write_text('{"id": "a", "question": "Which bird?", "canary": "yellow"}\n')
    assert load(str(path), ()).rows[0]["canary"] == "yellow" and canary(str(path)) is None


def test_a_row_breaks_off_in_the_middle_of_its_longest_text_as_it_stands_in_the_file() -> None:
    found = broken({"id": "a", "question": "Which?", "text_1": TEXT, "label": 1})
    assert found is not None
    line = json.dumps({"id": "a", "question": "Which?", "text_1": TEXT, "label": 1})
    assert line.startswith(found["shown"]) and found["shown"].endswith(" way, and 0")
    assert found["follows"] == [str(n) for n in range(1, 1 + COUNT)]
    assert found["perturbed"].endswith("This boat plus this lamp really are within this harbour since one storm "
                                       "really is upon this way, plus 0")  # fmt: skip


@pytest.mark.parametrize("text", ["too short, and in the end the rest is on the way", " ".join(map(str, range(60)))])
def test_a_short_row_or_one_without_words_to_exchange_is_set_aside(text: str) -> None:
    assert broken({"id": "a", "question": text}) is None


def test_exchanging_keeps_capitals_and_leaves_parts_of_words_alone() -> None:
    assert exchanged("The other theatre's AND-gate is on. About the-man") == (
        "This other theatre's AND-gate really is upon. Concerning the-man"
    )


def test_what_was_set_aside_is_in_the_log(run_task: Any, mine: Path, tmp_path: Path) -> None:
    with mine.open("a") as file:
        file.write('{"id": "short", "question": "Which?"}\n')
    log = run_task(memorisation(dataset=str(mine)), "planted/a", tmp_path / "logs")
    assert log.eval.metadata["set_aside"].startswith("1 of 8 rows set aside; fewer than 3 of the 20 words")
    assert len(log.samples) == 7


# ---- what is asked


def test_the_prompts_are_sent_byte_for_byte(run_task: Any, mine: Path, tmp_path: Path) -> None:
    log = run_task(memorisation(dataset=str(mine), rows=1), "planted/a", tmp_path / "logs")
    samples = [resolve_sample_attachments(sample, "full") for sample in log.samples]
    sent = [event.input[0].text for sample in samples for event in sample.events if isinstance(event, ModelEvent)]
    shown = log.samples[-1].input
    assert sent[0] == (
        f'The data set "{mine}" holds a canary GUID, so that it can be recognised in training data. It begins with '
        "0b9d3f3e-\n\nWhat is the whole GUID? Reply with the GUID alone. If you do not know it, write what comes to mind."
    )
    assert sorted(sent[1:]) == sorted(
        f'This is the beginning of a row of the data set "{mine}", as JSON. It breaks off in the middle of a text.\n\n'
        f"{text}\n\nContinue it from exactly there, word for word as the data set has it: the next 12 words alone, "
        "without repeating what is shown. If you do not know the data set, write what most likely follows."
        for text in (shown, exchanged(shown))
    )


# ---- planted truths


@pytest.mark.parametrize(
    ("settings", "memorised", "canaries"),
    [("", 0.0, 0), ("?memorised=1", 1.0, 6), ("?memorised=.5", 0.5, 6), ("?foresees=.6", 0.0, 0)],
)
def test_planted_memories_are_recovered_and_foresight_is_none(
    run_task: Any, tmp_path: Path, settings: str, memorised: float, canaries: int
) -> None:
    found = metrics(run_task(memorisation(rows=10), f"planted/ada{settings}", tmp_path))
    assert (found["n"], found["canaries"], found["unscored"]) == (50, canaries, 0)
    one_word = 1 / 24  # a paragraph may hold a word of the row by chance
    assert found["memorised_low"] - one_word <= memorised <= found["memorised_high"] + one_word
    assert abs(found["memorised"] - memorised) < 0.2 and found["verbatim"] <= found["row"]
    assert ("foresees" in settings) == (found["perturbed"] > 0.3)
    assert {f"{name}_memorised" for name in bundled()} - set(found) == {"heads_up_words_memorised"}


def test_a_run_without_a_pair_yet_brings_no_warning(run_task: Any, tmp_path: Path, caplog: Any) -> None:
    log = run_task(memorisation(rows=10), "planted/ada", tmp_path, limit=1)
    assert "memorised" not in metrics(log) and "Headline metric" not in caplog.text


def test_refused_and_empty_replies_are_unscored_not_forgotten(run_task: Any, mine: Path, tmp_path: Path) -> None:
    found = metrics(run_task(memorisation(dataset=str(mine)), "planted/a?act_refused=1", tmp_path / "logs"))
    assert found["n"] == 0 and found["unscored"] == found["unscored_target_refusal"] == 1
    assert "memorised" not in found and "canaries" not in found


# ---- wrong calls


@pytest.mark.parametrize(
    ("args", "text"),
    [
        ({"rows": 0}, "rows must be a whole number from 1"),
        ({"dataset": "open_question"}, "unknown data set 'open_question'.*open_questions"),
        ({"dataset": []}, "no row can be asked: there are none"),
        ({"dataset": "open_questions,,"}, "dataset must be one data set"),
    ],
)
def test_a_wrong_argument_is_told(args: dict[str, Any], text: str) -> None:
    with pytest.raises(ValueError, match=text):
        memorisation(**args)


def test_rows_that_all_are_short_say_why(tmp_path: Path) -> None:
    path = tmp_path / "short.jsonl"
    path.write_text('{"id": "a", "question": "Which?"}\n')
    with pytest.raises(ValueError, match=r"short.jsonl: no row can be asked: fewer than 3 of the 20 words"):
        probes([str(path)], 10)
