"""Common sense sets: ROCStories' two endings, MC-TACO's answers, CaTeRS' order of events (paper 004, §4.1, E.2)."""

import itertools
import random
import re
from collections import defaultdict
from collections.abc import Iterator
from typing import Any

from selfprobe.data.pairs import Pair, digest

Row = dict[str, Any]


def rocstories(rows: list[Row]) -> Iterator[Pair | None]:
    """The Story Cloze Test: four sentences, two endings, `AnswerRightEnding` 1 or 2."""
    for row in rows:
        yield Pair(
            id=row["InputStoryid"],
            text_1=row["RandomFifthSentenceQuiz1"],
            text_2=row["RandomFifthSentenceQuiz2"],
            label=1 if int(row["AnswerRightEnding"]) == 1 else 2,
            kind="rocstories",
            context=" ".join(row[f"InputSentence{k}"] for k in range(1, 5)),
        )


def mctaco(rows: list[Row]) -> Iterator[Pair | None]:
    """MC-TACO: every likely ("yes") with every unlikely ("no") answer of one question.

    Paper: does not say how answers are paired. Here: all such pairs; `limit` draws from them.
    """
    answers: dict[tuple[str, str], dict[str, list[str]]] = defaultdict(lambda: {"yes": [], "no": []})
    for number, row in enumerate(rows, start=1):
        if row["label"] not in ("yes", "no"):
            raise ValueError(f"mctaco, row {number}: label must be yes or no, got {row['label']!r}")
        known = answers[row["sentence"], row["question"]][row["label"]]
        if row["answer"] not in known:
            known.append(row["answer"])
    for (passage, question), of in answers.items():
        for good, bad in itertools.product(of["yes"], of["no"]):
            name = digest(passage, question, good, bad)
            pair = Pair(name, good, bad, 1, kind="mctaco", context=passage, question=question)
            # A passage has several questions; one group, or what is learnt about it would cross the split.
            pair = Pair(**{**pair.__dict__, "group": digest(passage)})
            yield pair.swapped if int(name, 16) % 2 else pair


BEFORE = re.compile(r"(?:CAUSE_|ENABLE_|PREVENT_|CAUSE_TO_END_)?BEFORE")


def caters(rows: list[Row]) -> Iterator[Pair | None]:
    """CaTeRS: two statements of a story, ordered by the annotated BEFORE relations between their events.

    Rows are brat files {name, text, annotations}; stories in a text are set apart by "***", statements by lines.
    Paper: does not say how two statements are ordered. Here: by all BEFORE relations (causal ones too) between
    events of the two; where they disagree it is a tie. The list is shown in an order that the story decides.
    """
    for row in rows:
        spans = {m[1]: int(m[2]) for m in re.finditer(r"^(T\d+)\t\S+ (\d+) ", row["annotations"], re.M)}
        links = re.findall(r"^R\d+\t(\S+) Arg1:(T\d+) Arg2:(T\d+)", row["annotations"], re.M)
        links = [(spans[a], spans[b]) for tag, a, b in links if BEFORE.fullmatch(tag.replace("-", "_"))]
        start = 0
        for number, story in enumerate(row["text"].split("***")):
            yield from _ordered(f"{row['name']}:{number}", story, start, links)
            start += len(story) + len("***")


def _ordered(name: str, story: str, start: int, links: list[tuple[int, int]]) -> Iterator[Pair | None]:
    """Pairs of one story that begins at character `start`; `links` are (earlier, later) event positions."""
    lines = [(m.start() + start, m.end() + start, m[0].strip()) for m in re.finditer(r"[^\n]+", story)]
    lines = [line for line in lines if line[2]]
    shown = [text for *_, text in lines]
    random.Random(name).shuffle(shown)

    def statement(position: int) -> int | None:
        return next((i for i, (a, b, _) in enumerate(lines) if a <= position < b), None)

    order: dict[tuple[int, int], set[bool]] = defaultdict(set)
    for first, second in links:
        a, b = statement(first), statement(second)
        if a is not None and b is not None and a != b:
            order[min(a, b), max(a, b)].add(a < b)
    for (i, j), verdicts in order.items():
        if len(verdicts) > 1:
            yield None
            continue
        label = 1 if verdicts == {True} else 2
        pair_id = f"{name}:{i}-{j}"
        pair = Pair(pair_id, lines[i][2], lines[j][2], 1 if label == 1 else 2, kind="caters", context="\n".join(shown))
        yield pair.swapped if int(digest(pair_id), 16) % 2 else pair
