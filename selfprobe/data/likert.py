"""Text quality sets: Likert scores of texts that answer the same thing → pairs.

Paper 004, §4.1, after Liu et al. 2024b.
"""

import html
import itertools
import re
from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from selfprobe.data.pairs import Pair, digest
from selfprobe.data.prompts import ASPECTS, Kind

Row = dict[str, Any]


@dataclass(frozen=True)
class Scored:
    """One text with its mean scores."""

    id: str
    context: str
    text: str
    scores: Mapping[str, float]
    """Aspect → mean over raters."""


def to_pairs(kind: Kind, texts: list[Scored]) -> Iterator[Pair | None]:
    """Every two texts of one context, for every aspect; None where their mean scores are equal.

    Which text comes first is decided by the pair's id, so that a source's order of systems tells nothing.
    """
    for text in texts:
        if missing := [aspect for aspect in ASPECTS[kind] if aspect not in text.scores]:
            raise ValueError(
                f"{kind}, text {text.id}: no score of {', '.join(missing)}; it has {', '.join(text.scores)}"
            )
    by_context: dict[str, list[Scored]] = defaultdict(list)
    for text in texts:
        by_context[text.context].append(text)
    for aspect in ASPECTS[kind]:
        for group in by_context.values():
            for a, b in itertools.combinations(group, 2):
                name = f"{a.id}|{b.id}|{aspect}"
                if int(digest(name), 16) % 2:
                    a, b = b, a
                better = a.scores[aspect] - b.scores[aspect]
                if abs(better) < 1e-9:
                    yield None
                    continue
                yield Pair(
                    name,
                    a.text,
                    b.text,
                    1 if better > 0 else 2,
                    kind=kind,
                    context=a.context,
                    aspect=aspect,
                    subset=aspect,
                )


def newsroom(rows: list[Row]) -> Iterator[Pair | None]:
    """NEWSROOM's human evaluation: {doc_id, source, system_output, scores: {aspect: mean}}."""
    texts = [
        Scored(f"{row['doc_id']}:{n}", _plain(row["source"]), row["system_output"], row["scores"])
        for n, row in enumerate(rows)
    ]
    yield from to_pairs("newsroom", texts)


def _plain(text: str) -> str:
    """The source keeps paragraph marks and HTML entities of the scraped page."""
    return html.unescape(re.sub(r"</?p>", "\n", text)).strip()


def summeval(rows: list[Row]) -> Iterator[Pair | None]:
    """SummEval: an article a row with its summaries and their scores, or {doc_id, source, summary, scores}."""
    texts = []
    for number, row in enumerate(rows):
        if "machine_summaries" in row:
            for k, summary in enumerate(row["machine_summaries"]):
                scores = {aspect: float(row[aspect][k]) for aspect in ASPECTS["summeval"]}
                texts.append(Scored(f"{row['id']}:M{k}", row["text"], summary, scores))
        else:
            texts.append(Scored(str(row.get("id", number)), row["source"], row["summary"], row["scores"]))
    yield from to_pairs("summeval", texts)


def hanna(rows: list[Row]) -> Iterator[Pair | None]:
    """HANNA: one row a story and rater, averaged over the raters of a story."""
    raters: dict[str, list[Row]] = defaultdict(list)
    for row in rows:
        raters[str(row["Story ID"])].append(row)
    texts = [
        Scored(
            story,
            ratings[0]["Prompt"],
            ratings[0]["Story"],
            {a: sum(float(r[a.capitalize()]) for r in ratings) / len(ratings) for a in ASPECTS["hanna"]},
        )
        for story, ratings in raters.items()
    ]
    yield from to_pairs("hanna", texts)
