"""The second bundled set: pairs of a test and a real request that length, marks and words do not
tell apart.
"""

import hashlib
import json
import math
import re
from collections import Counter, defaultdict
from collections.abc import Callable, Mapping
from itertools import combinations
from typing import Any

import pytest
from inspect_ai.tool import ToolInfo

from selfprobe.data import BUNDLED
from selfprobe.data.conversations import chat, conversations, tools_in, transcript_rows
from selfprobe.study.text_baselines import text_baselines

pd = pytest.importorskip("pandas")
NAME = "eval_awareness_2"
FILE = BUNDLED / NAME / "rows.jsonl"
ROWS = [json.loads(line) for line in FILE.read_text(encoding="utf-8").splitlines()]
COLUMNS = (
    "id",
    "messages",
    "label",
    "source",
    "domain",
    "format",
    "language",
    "agentic",
    "turns",
    "pair",
    "purpose",
    "tell",
)
SCRIPTS = {"hi": r"[\u0900-\u097f]", "zh": r"[\u4e00-\u9fff]"}
COMMON = {"en": "the and is", "de": "und der ist", "fr": "et les est", "es": "y el que"}

Row = Mapping[str, Any]


def text(row: Row) -> str:
    return "\n".join(message["content"] for message in row["messages"])


def pairs() -> list[tuple[Row, Row]]:
    """(evaluation, deployment) of each pair."""
    found: dict[str, dict[str, Row]] = defaultdict(dict)
    for row in ROWS:
        assert row["label"] not in found[row["pair"]], row["id"]
        found[row["pair"]][row["label"]] = row
    return [(two["evaluation"], two["deployment"]) for two in found.values()]


def test_there_are_sixty_pairs_and_every_row_has_every_column() -> None:
    assert (
        len(pairs()) >= 60
        and len(ROWS) == 2 * len(pairs())
        and len({row["id"] for row in ROWS}) == len(ROWS)
    )
    for row in ROWS:
        assert set(row) - {"tools", "canary"} == set(COLUMNS), row["id"]
        assert row["label"] in ("evaluation", "deployment") and row["format"] in (
            "benchmark",
            "natural",
        )
        assert row["turns"] == sum(message["role"] == "user" for message in row["messages"])
        assert row["messages"][-1]["role"] == "user" and all(
            m["content"] or m["tool_calls"] for m in row["messages"]
        )
        assert 20 < len(row["purpose"]) < 130 and row["purpose"] not in text(row)


def test_a_pair_differs_in_label_and_purpose_and_is_alike_in_all_else() -> None:
    for one, other in pairs():
        for column in ("source", "domain", "format", "language", "agentic", "turns"):
            assert one[column] == other[column], (one["pair"], column)
        assert one["purpose"] != other["purpose"]
        assert max(len(text(one)), len(text(other))) < 1.36 * min(
            len(text(one)), len(text(other))
        ), one["pair"]


def test_every_label_comes_in_both_formats_and_in_every_source_domain_and_language() -> None:
    for column, groups in (("format", 2), ("source", 12), ("domain", 10), ("language", 6)):
        counts = Counter((row[column], row["label"]) for row in ROWS)
        assert len(counts) == 2 * groups and min(counts.values()) >= 3
    assert Counter(row["format"] for row in ROWS)["benchmark"] >= 50


@pytest.mark.parametrize("language", ["en", "de", "fr", "es", "hi", "zh"])
def test_rows_are_in_the_language_that_they_say(language: str) -> None:
    rows = [row for row in ROWS if row["language"] == language]
    assert len(rows) >= 8
    for row in rows:
        said = "\n".join(
            m["content"] for m in row["messages"] if m["role"] in ("user", "assistant")
        )
        if script := SCRIPTS.get(language):
            assert len(re.findall(script, said)) > 0.3 * len(re.sub(r"[\s\d]", "", said)), row["id"]
        else:
            words = Counter(re.findall(r"\w+", said.lower()))
            told = {
                name: sum(words[word] for word in common.split()) for name, common in COMMON.items()
            }
            assert (
                max(told, key=lambda name: told[name]) == language or "translat" in row["purpose"]
            ), (row["id"], told)


def test_no_text_repeats_another_or_one_of_the_first_set() -> None:
    first = BUNDLED / "eval_awareness" / "rows.jsonl"
    older = [json.loads(line) for line in first.read_text(encoding="utf-8").splitlines()]

    def runs(row: Row) -> set[tuple[str, ...]]:
        words = re.findall(r"\w+", text(row).lower())
        return {tuple(words[at : at + 8]) for at in range(len(words) - 7)}

    ours = [(row["id"], runs(row)) for row in ROWS]
    for (one, here), (other, there) in [*combinations(ours, 2)]:
        assert not here & there, (one, other)
    assert not set().union(*(found for _, found in ours)) & set().union(*map(runs, older))


def test_agents_transcripts_have_calls_that_their_tools_allow_each_with_a_result() -> None:
    agents = [
        row for row in conversations(NAME, context="full", as_sent=True).rows if row["agentic"]
    ]
    assert len(agents) >= 24 and {row["id"] for row in agents} == {
        row["id"] for row in ROWS if "tools" in row
    }
    for row in agents:
        offered = {
            tool["name"]: set(ToolInfo.model_validate(tool).parameters.properties)
            for tool in row["tools"]
        }
        calls = [call for message in row["messages"] for call in message.get("calls", ())]
        assert calls and all(set(json.loads(given)) == offered[name] for name, given in calls), row[
            "id"
        ]
        assert sum(message["role"] == "tool" for message in row["messages"]) == len(calls)
        assert len(tools_in(row)) == len(offered) and "(no result)" not in [
            m.text for m in chat(row["messages"])
        ]
    assert len(transcript_rows(NAME).rows) == len(ROWS)


@pytest.mark.parametrize(
    ("count", "most"),
    [
        (len, 10),
        (lambda said: len(re.findall("[?？]", said)), 10),
        (lambda said: len(re.findall(r'["“”„«»「」‘’]', said)), 10),
        (lambda said: len(re.findall(r"\d", said)), 10),
        (lambda said: len(re.findall(r"^\s*(?:[-*#>|]|\d+[.)])|\*\*|```", said, re.MULTILINE)), 10),
        (lambda said: len(re.findall("[!！]", said)), 10),
        (
            lambda said: len(
                re.findall(r"please|bitte|merci|gracias|请|谢|धन्यवाद", said, re.IGNORECASE)
            ),
            10,
        ),
    ],
    ids=[
        "length",
        "question marks",
        "quotation marks",
        "digits",
        "markdown",
        "exclamation marks",
        "please",
    ],
)
def test_evaluations_have_more_of_a_thing_as_often_as_less(
    count: Callable[[str], int], most: int
) -> None:
    differences = [count(text(one)) - count(text(other)) for one, other in pairs()]
    more, less = sum(d > 0 for d in differences), sum(d < 0 for d in differences)
    assert abs(more - less) <= most, (more, less)
    assert abs(more - less) < 2 * math.sqrt(len(differences)), "what a coin would give"


def frame(context: str) -> Any:
    rows = conversations(NAME, context=context).rows
    kept = ("label", "source", "pair")
    return pd.DataFrame(
        [{"item": row["id"], "text": text(row)} | {key: row[key] for key in kept} for row in rows]
    )


@pytest.mark.parametrize("context", ["first", "full"])
def test_length_and_words_alone_do_not_tell_the_label(context: str) -> None:
    found = text_baselines(frame(context))
    for estimate in (found.length, found.words, found.words_other_source):
        assert max(estimate.value, 1 - estimate.value) < 0.65
    for scores in (found.scores.words, found.scores.words_other_source):
        by_pair = (
            frame(context).assign(score=scores).pivot(index="pair", columns="label", values="score")
        )
        assert 0.35 < (by_pair.evaluation > by_pair.deployment).mean() < 0.65


@pytest.mark.parametrize("context", ["first", "full"])
@pytest.mark.parametrize("kind", ["characters", "words and punctuation", "presence"])
def test_nor_do_classifiers_of_other_kinds_with_a_source_left_out(kind: str, context: str) -> None:
    from sklearn.feature_extraction.text import CountVectorizer, TfidfVectorizer
    from sklearn.linear_model import LogisticRegression
    from sklearn.metrics import roc_auc_score
    from sklearn.model_selection import GroupKFold, cross_val_predict
    from sklearn.naive_bayes import BernoulliNB
    from sklearn.pipeline import make_pipeline
    from sklearn.svm import LinearSVC

    tokens = r"\w+|[^\w\s]"
    words = TfidfVectorizer(token_pattern=tokens, sublinear_tf=True, lowercase=False)
    characters = TfidfVectorizer(
        analyzer="char_wb", ngram_range=(2, 4), sublinear_tf=True, lowercase=False
    )
    there = CountVectorizer(binary=True, token_pattern=tokens, min_df=3)
    model, how = {
        "characters": (
            make_pipeline(characters, LogisticRegression(max_iter=2000)),
            "decision_function",
        ),
        "words and punctuation": (make_pipeline(words, LinearSVC()), "decision_function"),
        "presence": (make_pipeline(there, BernoulliNB()), "predict_log_proba"),
    }[kind]
    rows = frame(context)
    positive = (rows.label == "evaluation").to_numpy()
    folds = GroupKFold(4, shuffle=True, random_state=0)
    scores = cross_val_predict(model, rows.text, positive, groups=rows.source, cv=folds, method=how)
    found = roc_auc_score(positive, scores if scores.ndim == 1 else scores[:, 1] - scores[:, 0])
    assert max(found, 1 - found) < 0.65, found


def test_the_card_counts_what_is_there() -> None:
    card = (FILE.parent / "README.md").read_text(encoding="utf-8")
    assert hashlib.sha256(FILE.read_bytes()).hexdigest() in card
    formats = Counter(row["format"] for row in ROWS)
    languages = Counter(row["language"] for row in ROWS)
    assert f"{len(ROWS)} conversations in {len(pairs())} pairs" in card
    assert (
        f"{formats['natural'] // 2} pairs are natural, {formats['benchmark'] // 2} benchmark-like"
        in card
    )
    assert f"{languages['en'] // 2} pairs are English, {languages['de'] // 2} German" in card
    assert f"{sum(row['agentic'] for row in ROWS) // 2} pairs are transcripts of agents" in card
    longer = sum(len(text(one)) > len(text(other)) for one, other in pairs())
    assert (
        f"the longer one of {longer} pairs and the shorter one of {len(pairs()) - longer}" in card
    )
