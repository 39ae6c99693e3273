import json
from pathlib import Path
from typing import Any

import httpx
import pytest

from selfprobe.data import public_pairs
from selfprobe.data.public_pairs import (
    SOURCES,
    caters,
    hanna,
    judged_outputs,
    load_pairs,
    mctaco,
    mt_bench,
    newsroom,
    rocstories,
    source_rows,
    summeval,
)

SAMPLES = Path(__file__).parents[3] / "shared" / "data"


def jsonl(path: Path, *rows: dict[str, Any]) -> str:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return str(path)


def test_a_users_rows_become_pairs_and_ties_do_not(tmp_path: Path) -> None:
    row = {"question": "Q", "text_1": "a", "text_2": "b"}
    rows = [{"id": 1, "label": 2} | row, {"id": 2, "label": "tie"} | row, {"id": 3} | row]
    found = load_pairs(jsonl(tmp_path / "mine.jsonl", *rows))
    assert (found.name, found.ties, [p.label for p in found.pairs]) == ("mine", 1, [2, None])
    assert found.pairs[0].context == "Q"


@pytest.mark.parametrize(
    ("row", "message"),
    [
        (
            {"id": 1, "question": "Q", "text_1": "a"},
            r"mine.jsonl, row 1: no text_2; expected id, question, text_1",
        ),
        ({"id": 1, "text_1": "a", "text_2": "b"}, "no question"),
        (
            {"id": 1, "question": "Q", "text_1": 4, "text_2": 5},
            "pair '1': text_1 must be text, got 4",
        ),
        (
            {"id": 1, "question": "Q", "text_1": "a", "text_2": "b", "label": "A"},
            "label must be 1, 2, 'tie'.*got 'A'",
        ),
    ],
)
def test_a_wrong_row_is_named(tmp_path: Path, row: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        load_pairs(jsonl(tmp_path / "mine.jsonl", row))


def test_llmbars_own_file_needs_its_name(tmp_path: Path) -> None:
    row = {"input": "Q", "output_1": "a", "output_2": "b", "label": 1}
    with pytest.raises(ValueError, match=r"llmbar.jsonl, row 1: no text_1, text_2"):
        load_pairs(jsonl(tmp_path / "llmbar.jsonl", row))
    assert len(load_pairs("llmbar=" + jsonl(tmp_path / "llmbar.jsonl", row)).pairs) == 1


def test_an_unquoted_comma_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "mine.csv").write_text("id,question,text_1,text_2\n1,q,red,blue, or green\n")
    with pytest.raises(ValueError, match=r"mine.csv, line 2: 5 cells under 4 columns; quote cells"):
        load_pairs(str(tmp_path / "mine.csv"))


def test_a_null_question_is_no_question(tmp_path: Path) -> None:
    [pair] = load_pairs(
        jsonl(tmp_path / "mine.jsonl", {"id": 1, "question": None, "text_1": "a", "text_2": "b"})
    ).pairs
    assert pair.context == ""


def test_a_line_that_is_not_json_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "mine.jsonl").write_text("{oops\n")
    with pytest.raises(ValueError, match=r"mine.jsonl, line 1: not JSON"):
        load_pairs(str(tmp_path / "mine.jsonl"))


def test_an_unknown_data_set_lists_the_known_ones() -> None:
    with pytest.raises(
        ValueError, match="unknown data set 'llmbarr': expected one of ours, llmbar, mt_bench"
    ):
        load_pairs("llmbarr")


@pytest.mark.parametrize("name", ["rocstories", "caters"])
def test_a_gated_set_says_how_to_get_it(name: str) -> None:
    with pytest.raises(ValueError, match=f"{name} cannot be fetched.*cs.rochester.edu.*{name}="):
        load_pairs(name)


def test_every_source_is_pinned() -> None:
    for name, source in SOURCES.items():
        assert source.gated or source.hub or source.files, name
        assert all(len(url.split("/")[5]) == 40 for url in source.files), name
        assert source.hub is None or len(source.hub[1]) == 40, name


def test_a_source_that_cannot_be_reached_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: Any, **__: Any) -> Any:
        raise httpx.ConnectError("no route")

    monkeypatch.setenv("SELFPROBE_CACHE", str(tmp_path))
    monkeypatch.setattr(httpx, "stream", refuse)
    with pytest.raises(
        ConnectionError,
        match="newsroom could not be fetched.*no route.*newsroom=PATH, or take ours",
    ):
        load_pairs("newsroom")


def test_a_cache_that_cannot_be_written_names_the_variable(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "cache").write_text("a file")
    monkeypatch.setenv("SELFPROBE_CACHE", str(tmp_path / "cache"))
    with pytest.raises(
        OSError,
        match="newsroom: the cache folder .* cannot be used .*Set SELFPROBE_CACHE to a folder",
    ):
        load_pairs("newsroom")


def test_a_fetched_file_is_kept_as_it_came_and_its_subset_noted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = []

    def serve(url: str, file: Path, _: Any) -> None:
        asked.append(url)
        file.write_text(
            json.dumps([{"input": f"Q of {url}", "output_1": "a", "output_2": "b", "label": 1}])
        )

    monkeypatch.setenv("SELFPROBE_CACHE", str(tmp_path))
    monkeypatch.setattr(public_pairs, "download", serve)
    found = load_pairs("llmbar")
    assert sorted(p.subset for p in found.pairs) == sorted(SOURCES["llmbar"].files.values())
    assert len(asked) == 10
    assert load_pairs("llmbar") == found
    assert len(asked) == 10, "the second time nothing is fetched"
    next(tmp_path.rglob("Natural/dataset.json")).write_text("[")
    assert load_pairs("llmbar") == found
    assert len(asked) == 11, "what changed in the cache is fetched again"


def test_likert_scores_become_pairs_within_an_article_and_equal_ones_do_not() -> None:
    def row(doc: str, text: str, score: float) -> dict[str, Any]:
        aspects = dict.fromkeys(("coherence", "fluency", "informativeness", "relevance"), score)
        return {
            "doc_id": doc,
            "source": f"<p>{doc} &amp; co</p>",
            "system_output": text,
            "scores": aspects,
        }

    found = list(
        newsroom(
            [row("d", "bad", 1), row("d", "good", 5), row("d", "fine", 5), row("e", "other", 3)]
        )
    )
    pairs = [p for p in found if p]
    assert (len(pairs), found.count(None)) == (2 * 4, 1 * 4)
    for pair in pairs:
        assert (pair.text_1 if pair.label == 1 else pair.text_2) in ("good", "fine")
        assert pair.context == "d & co"
        assert pair.subset == pair.aspect


def test_hanna_averages_its_raters() -> None:
    aspects = ("Relevance", "Coherence", "Empathy", "Surprise", "Engagement", "Complexity")
    rows = [
        {"Story ID": story, "Prompt": "P", "Story": f"story {story}"}
        | dict.fromkeys(aspects, str(score))
        for story, score in ((0, 1), (0, 5), (1, 2), (1, 3))
    ]
    pairs = [p for p in hanna(rows) if p]
    assert len(pairs) == 6
    assert all(
        (p.text_1 if p.label == 1 else p.text_2) == "story 0" for p in pairs
    )  # mean 3 beats mean 2.5


def test_summeval_reads_an_article_a_row() -> None:
    aspects = {a: [1.0, 2.0] for a in ("coherence", "consistency", "fluency", "relevance")}
    row = {"id": "d", "text": "T", "machine_summaries": ["s0", "s1"]} | aspects
    pairs = [p for p in summeval([row]) if p]
    assert len(pairs) == 4
    assert all((p.text_1 if p.label == 1 else p.text_2) == "s1" for p in pairs)


def test_mt_bench_takes_the_majority_whichever_way_round_a_judge_saw_it() -> None:
    def talk(name: str) -> list[dict[str, str]]:
        said = ["q1", f"{name} a1", "q2", f"{name} a2"]
        return [{"role": ("user", "assistant")[i % 2], "content": s} for i, s in enumerate(said)]

    def row(a: str, b: str, winner: str, turn: int = 1) -> dict[str, Any]:
        sides = {"model_a": a, "model_b": b, "conversation_a": talk(a), "conversation_b": talk(b)}
        return {"question_id": 81, "winner": winner, "turn": turn} | sides

    rows = [
        row("x", "y", "model_a"),
        row("y", "x", "model_b"),
        row("x", "y", "model_b"),
        row("x", "y", "tie"),
    ]
    (pair,) = mt_bench(rows)
    assert pair is not None
    assert (pair.text_1 if pair.label == 1 else pair.text_2) == "x a1"
    assert list(mt_bench([row("x", "y", "model_a"), row("x", "y", "model_b")])) == [None]
    (second,) = mt_bench([row("x", "y", "model_a", turn=2)])
    assert second is not None
    assert "x a1\n\nUser: q2\n\nAssistant: x a2" in (second.text_1, second.text_2)
    assert second.group == pair.group, "both turns of a question stay together"


def test_mctaco_pairs_likely_with_unlikely_answers_of_one_passage(tmp_path: Path) -> None:
    text = "P\tQ\tan hour\tyes\tDuration\nP\tQ\ta year\tno\tDuration\nP\tQ\ta day\tno\tDuration\nP\tR\tdaily\tyes\tF\n"
    (tmp_path / "x.tsv").write_text(text)
    pairs = [p for p in mctaco(source_rows(str(tmp_path / "x.tsv"), "")) if p]
    assert len(pairs) == 2
    assert all((p.text_1 if p.label == 1 else p.text_2) == "an hour" for p in pairs)
    assert len({p.group for p in pairs}) == 1


def test_rocstories_reads_the_right_ending() -> None:
    row = {f"InputSentence{k}": f"s{k}." for k in range(1, 5)} | {
        "InputStoryid": "i",
        "AnswerRightEnding": "2",
    }
    (pair,) = rocstories([row | {"RandomFifthSentenceQuiz1": "a", "RandomFifthSentenceQuiz2": "b"}])
    assert pair is not None
    assert (pair.context, pair.label) == ("s1. s2. s3. s4.", 2)


def test_a_folder_in_the_place_of_a_data_sets_file_is_said(tmp_path: Path) -> None:
    with pytest.raises(
        ValueError, match=f"^{tmp_path} is a folder: give the file of mt_bench in it$"
    ):
        load_pairs(f"mt_bench={tmp_path}")


def test_caters_orders_statements_by_their_before_relations() -> None:
    text = "He woke.\nHe ate.\nHe slept.\n***\nIt rained.\nIt stopped.\n"
    spans = {"T1": "woke", "T2": "ate", "T3": "slept", "T4": "rained", "T5": "stopped"}
    lines = [f"{t}\tEvent {text.index(w)} {text.index(w) + len(w)}\t{w}" for t, w in spans.items()]
    lines += [
        "R1\tBEFORE Arg1:T1 Arg2:T2",
        "R2\tCAUSE_BEFORE Arg1:T3 Arg2:T1",
        "R3\tOVERLAPS Arg1:T2 Arg2:T3",
    ]
    lines += ["R4\tBEFORE Arg1:T4 Arg2:T5", "R5\tBEFORE Arg1:T5 Arg2:T4"]
    found = list(caters([{"name": "f", "text": text, "annotations": "\n".join(lines)}]))
    first = {
        frozenset((p.text_1, p.text_2)): p.text_1 if p.label == 1 else p.text_2 for p in found if p
    }
    assert first == {
        frozenset(("He woke.", "He ate.")): "He woke.",
        frozenset(("He woke.", "He slept.")): "He slept.",
    }
    assert found.count(None) == 1, "relations that disagree are a tie"
    assert "It rained." not in next(p.context for p in found if p)


def test_a_limit_draws_the_same_pairs_every_time(tmp_path: Path) -> None:
    rows = [
        {"id": i, "question": f"Q{i}", "text_1": "a", "text_2": "b", "label": 1} for i in range(50)
    ]
    file = jsonl(tmp_path / "mine.jsonl", *rows)
    some = load_pairs(file, limit=10)
    assert (len(some.pairs), some.left_out) == (10, 40)
    assert some == load_pairs(file, limit=10) != load_pairs(file, limit=10, seed=1)
    assert len(load_pairs(file, limit=99).pairs) == 50


@pytest.mark.skipif(not SAMPLES.is_dir(), reason="no shared/data beside the project")
@pytest.mark.parametrize(
    ("spec", "count", "groups"),
    [
        ("llmbar=llmbar/llmbar.jsonl", 419, 418),
        ("mt_bench=mt_bench_pairs/mt_bench_pairs.jsonl", 266, 139),
    ],
)
def test_samples_of_the_public_sets_load(spec: str, count: int, groups: int) -> None:
    name, _, file = spec.partition("=")
    pairs = load_pairs(f"{name}={SAMPLES / file}").pairs
    assert len(pairs) == count
    assert len({p.group for p in pairs}) == groups
    assert list(judged_outputs([])) == []


@pytest.mark.skipif(not SAMPLES.is_dir(), reason="no shared/data beside the project")
def test_summaries_without_their_articles_are_refused() -> None:
    for name, file in (("newsroom", "newsroom_scores"), ("summeval", "summeval_scores")):
        with pytest.raises(ValueError, match="row 1: no source"):
            load_pairs(f"{name}={SAMPLES / file / file}.jsonl")
