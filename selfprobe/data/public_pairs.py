"""The paper's data sets as contrast pairs, from their public sources at pinned revisions (paper
004, §4.1, E.2).

    load_pairs("ours")                           # comes with the package
    load_pairs("llmbar")                         # fetched once into the cache
    load_pairs("rocstories=cloze_val.csv")       # a file of the source's schema: gated sets, samples
    load_pairs("mine.jsonl")                     # a user's own, see `own`; also NAME=PATH and hf:owner/name@REVISION

Likert scores (after Liu et al. 2024b) become pairs within one article or story prompt; equal scores
make no pair.
"""

import hashlib
import html
import itertools
import random
import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from itertools import combinations
from pathlib import Path
from typing import Any

import httpx
from filelock import FileLock

from selfprobe.data import BUNDLED, from_hub
from selfprobe.data.files import read_text, text_lines
from selfprobe.data.own import (
    FORMATS,
    Words,
    is_user_place,
    name_at,
    rows_in_file,
    stored_rows,
    user_pairs,
)
from selfprobe.data.pairs import ASPECTS, Kind, Label, Pair, checked, digest, in_drawn_order
from selfprobe.embed.weights import Progress, SourceError, cache_folder, is_verified, to_stderr
from selfprobe.errors import warn_once
from selfprobe.errors.arguments import locate, meant

Row = dict[str, Any]


# ---- two answers to one instruction: LLMBar and MT-Bench (§4.1)


def judged_outputs(rows: list[Row]) -> Iterator[Pair | None]:
    """LLMBar's schema: {input, output_1, output_2, label}; also of its copy of MT-Bench."""
    for number, row in enumerate(rows):
        subset = str(row.get("subset", ""))
        yield Pair(
            id=str(row.get("id", f"{subset}:{number}")),
            text_1=row["output_1"],
            text_2=row["output_2"],
            label=row["label"],
            context=row["input"],
            subset=subset,
        )


def mt_bench(rows: list[Row]) -> Iterator[Pair | None]:
    """MT-Bench's human judgements: the majority of the judges of one question, turn and two models.

    Paper: "majority-vote of this panel". Here: over all human judges; a tie counts for neither
    side, whichever way round a judge saw the models. Texts of the second turn are both the whole
    conversation after the first question.
    """
    if rows and "output_1" in rows[0]:
        yield from judged_outputs(rows)
        return
    votes: Counter[tuple[Any, ...]] = Counter()
    texts: dict[tuple[Any, ...], tuple[str, str, str]] = {}
    for row in rows:
        names = [row["model_a"], row["model_b"]]
        sides = [
            _conversation(row["conversation_a"], row["turn"]),
            _conversation(row["conversation_b"], row["turn"]),
        ]
        vote = {"model_a": 1, "model_b": -1}.get(row["winner"], 0)
        if names[0] > names[1]:
            names, sides, vote = names[::-1], sides[::-1], -vote
        key = (row["question_id"], row["turn"], *names)
        texts[key] = (row["conversation_a"][0]["content"], sides[0], sides[1])
        votes[key] += vote
    for key, total in votes.items():
        context, text_1, text_2 = texts[key]
        name = ":".join(map(str, key))
        pair = Pair(
            name, text_1, text_2, 1 if total > 0 else 2, context=context, subset=f"turn {key[1]}"
        )
        yield in_drawn_order(pair) if total else None


def agreements(rows: list[Row]) -> tuple[tuple[str, bool], ...]:
    """Pairs of human judges who both named a winner of one pair of answers: (question, whether they
    agree).

    MT-Bench's paper (setup S2, ties aside) has 81 % of these, paper 004 quotes 80 %. All human
    judges, authors too.
    """
    votes: dict[tuple[Any, ...], dict[str, str]] = {}
    for row in rows:
        if row.get("judge") and row["winner"] in ("model_a", "model_b"):
            key = (row["question_id"], row["turn"], *sorted((row["model_a"], row["model_b"])))
            votes.setdefault(key, {})[str(row["judge"])] = row[row["winner"]]
    return tuple(
        (str(key[0]), one == other)
        for key, named in votes.items()
        for one, other in combinations(named.values(), 2)
    )


def _conversation(turns: list[dict[str, str]], turn: int) -> str:
    if turn == 1:
        return turns[1]["content"]
    later = [
        f"{'User' if x['role'] == 'user' else 'Assistant'}: {x['content']}" for x in turns[2:4]
    ]
    return "\n\n".join([turns[1]["content"], *later])


def _mt_bench_conversations(rows: list[Row]) -> Iterator[Pair | None]:
    """MT-Bench as the paper's public code takes it: no judges who are authors, the user's turns in
    both texts.

    It sums the votes of judges who saw the models in one order, so that a pair seen in both orders
    is two.
    """
    votes: Counter[tuple[Any, ...]] = Counter()
    texts: dict[tuple[Any, ...], Row] = {}
    for number, row in enumerate(rows, start=1):
        if "judge" not in row:
            raise ValueError(
                f"mt_bench, row {number}: no judge, so that judges who are authors cannot be left out, which goes with "
                "whole conversations; take the set from its source, or say --prompts paper"
            )
        if str(row["judge"]).startswith("author"):
            continue
        key = (row["question_id"], row["turn"], row["model_a"], row["model_b"])
        texts[key] = row
        votes[key] += {"model_a": 1, "model_b": -1}.get(row["winner"], 0)
    for key, total in votes.items():
        row, name = texts[key], ":".join(map(str, key))
        first, second = (_spoken(row[f"conversation_{side}"][: 2 * key[1]]) for side in "ab")
        asked = row["conversation_a"][0]["content"]
        label: Label = 1 if total > 0 else 2
        pair = Pair(
            name, first, second, label, kind="conversation", context=asked, subset=f"turn {key[1]}"
        )
        yield pair if total else None


def _spoken(turns: list[dict[str, str]]) -> str:
    return "\n".join(
        f"{('User', 'Assistant')[k % 2]}: {turn['content']}" for k, turn in enumerate(turns)
    )


def _as_conversations(pair: Pair) -> Pair:
    """A pair of the general kind as two conversations; one that answers nothing stays as it is."""
    if pair.kind != "general" or not pair.context:
        return pair
    first, second = (
        _spoken([{"content": pair.context}, {"content": text}])
        for text in (pair.text_1, pair.text_2)
    )
    return replace(pair, kind="conversation", text_1=first, text_2=second)


# ---- texts with scores: text quality; and common sense


@dataclass(frozen=True)
class Scored:
    """One text with its mean scores."""

    id: str
    context: str
    text: str
    scores: Mapping[str, float]
    """Aspect → mean over raters."""


def _to_pairs(kind: Kind, texts: list[Scored]) -> Iterator[Pair | None]:
    """Every two texts of one context, for every aspect; None where their mean scores are equal.

    Which text comes first is decided by the pair's id, so that a source's order of systems tells
    nothing.
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
    yield from _to_pairs("newsroom", texts)


def _plain(text: str) -> str:
    """The text without the paragraph marks and HTML entities that the source keeps of the scraped
    page.
    """
    return html.unescape(re.sub(r"</?p>", "\n", text)).strip()


def summeval(rows: list[Row]) -> Iterator[Pair | None]:
    """SummEval: an article a row with its summaries and their scores, or {doc_id, source, summary,
    scores}.
    """
    texts = []
    for number, row in enumerate(rows):
        if "machine_summaries" in row:
            for k, summary in enumerate(row["machine_summaries"]):
                scores = {aspect: float(row[aspect][k]) for aspect in ASPECTS["summeval"]}
                texts.append(Scored(f"{row['id']}:M{k}", row["text"], summary, scores))
        else:
            texts.append(
                Scored(str(row.get("id", number)), row["source"], row["summary"], row["scores"])
            )
    yield from _to_pairs("summeval", texts)


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
            {
                a: sum(float(r[a.capitalize()]) for r in ratings) / len(ratings)
                for a in ASPECTS["hanna"]
            },
        )
        for story, ratings in raters.items()
    ]
    yield from _to_pairs("hanna", texts)


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
    answers: dict[tuple[str, str], dict[str, list[str]]] = defaultdict(
        lambda: {"yes": [], "no": []}
    )
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
            # A passage has several questions; one group, or what is learnt about it would cross the
            # split.
            pair = Pair(**{**pair.__dict__, "group": digest(passage)})
            yield pair.swapped if int(name, 16) % 2 else pair


BEFORE = re.compile(r"(?:CAUSE_|ENABLE_|PREVENT_|CAUSE_TO_END_)?BEFORE")


def caters(rows: list[Row]) -> Iterator[Pair | None]:
    """CaTeRS: two statements of a story, ordered by the annotated BEFORE relations between their
    events.

    Rows are brat files {name, text, annotations}; stories in a text are set apart by "***",
    statements by lines. Paper: does not say how two statements are ordered. Here: by all BEFORE
    relations (causal ones too) between events of the two; where they disagree it is a tie. The list
    is shown in an order that the story decides.
    """
    for row in rows:
        spans = {
            m[1]: int(m[2]) for m in re.finditer(r"^(T\d+)\t\S+ (\d+) ", row["annotations"], re.M)
        }
        links = re.findall(r"^R\d+\t(\S+) Arg1:(T\d+) Arg2:(T\d+)", row["annotations"], re.M)
        links = [
            (spans[a], spans[b]) for tag, a, b in links if BEFORE.fullmatch(tag.replace("-", "_"))
        ]
        start = 0
        for number, story in enumerate(row["text"].split("***")):
            yield from _ordered(f"{row['name']}:{number}", story, start, links)
            start += len(story) + len("***")


def _ordered(
    name: str, story: str, start: int, links: list[tuple[int, int]]
) -> Iterator[Pair | None]:
    """Pairs of one story that begins at character `start`; `links` are (earlier, later) event
    positions.
    """
    lines = [
        (m.start() + start, m.end() + start, m[0].strip()) for m in re.finditer(r"[^\n]+", story)
    ]
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
        pair = Pair(
            pair_id,
            lines[i][2],
            lines[j][2],
            1 if label == 1 else 2,
            kind="caters",
            context="\n".join(shown),
        )
        yield pair.swapped if int(digest(pair_id), 16) % 2 else pair


LARGEST = 1_000_000_000
"""Most bytes of a file that is fetched."""
ATTEMPTS = (
    20  # each goes on where the one before stopped; one that brings nothing ends the download
)


GROUPS: Mapping[str, tuple[str, ...]] = {
    "text quality": ("newsroom", "summeval", "hanna"),
    "common sense": ("rocstories", "mctaco", "caters"),
}
"""Data sets that figures 2 and 3 average over, and that a fine-tuned judge of the public scripts
learns together.
"""


@dataclass(frozen=True)
class Source:
    """The public source of a data set."""

    convert: Callable[[list[Row]], Iterator[Pair | None]]
    """Rows of the public schema → pairs; None for a tie."""
    columns: tuple[str, ...]
    """Columns that every row must have."""
    files: Mapping[str, str]
    """URL → subset of all its rows ("" where rows say it themselves)."""
    hub: tuple[str, str, str] | None = None
    """Data set on the hub, commit and split, in place of `files`."""
    gated: str = ""
    """Way to get the file, where it cannot be fetched."""


@dataclass(frozen=True)
class PairSet:
    """Pairs of one data set."""

    name: str
    pairs: tuple[Pair, ...]
    origin: str
    """Path, or source and revision."""
    ties: int
    """Rows (or combinations) that made no pair because none is better."""
    left_out: int
    """Pairs beyond `limit`, drawn at random."""
    agreements: tuple[tuple[str, bool], ...] = ()
    """Agreements of two human judges of one pair of answers, if the source has single votes; see
    `answers.agreements`.
    """
    unread: str = ""
    """Sentence that names the columns that are not used; "" if there are none."""


def _raw(repository: str, commit: str, files: Mapping[str, str]) -> dict[str, str]:
    return {
        f"https://raw.githubusercontent.com/{repository}/{commit}/{path}": s
        for path, s in files.items()
    }


LLMBAR_NATURAL = ("Natural", "Normal")
"""The subsets that are not adversarial (paper 004, §5.4)."""
_LLMBAR = {
    f"Dataset/LLMBar/Adversarial/{s}/dataset.json": s
    for s in ("Neighbor", "GPTInst", "GPTOut", "Manual")
}
_LLMBAR |= {
    f"Dataset/CaseStudy/{s}/dataset.json": s
    for s in ("Base-9", "Base-10", "Constraint", "Negation", "Normal")
}

SOURCES: Mapping[str, Source] = {
    "llmbar": Source(
        judged_outputs,
        ("input", "output_1", "output_2", "label"),
        _raw(
            "princeton-nlp/LLMBar",
            "caa7bee794bfed74baed038b99229fa3f0c4c511",
            {"Dataset/LLMBar/Natural/dataset.json": "Natural"} | _LLMBAR,
        ),
    ),
    "mt_bench": Source(
        mt_bench,
        ("question_id", "model_a", "model_b", "winner", "conversation_a", "conversation_b", "turn"),
        {},
        hub=("lmsys/mt_bench_human_judgments", "f7d2896d2cc5d80f8b55c2bbc722613555233c25", "human"),
    ),
    "summeval": Source(
        summeval,
        ("id", "text", "machine_summaries", "coherence", "consistency", "fluency", "relevance"),
        {},
        hub=("mteb/summeval", "cda12ad7615edc362dbf25a00fdd61d3b1eaf93c", "test"),
    ),
    "newsroom": Source(
        newsroom,
        ("doc_id", "source", "system_output", "scores"),
        _raw(
            "cambridgeltl/PairS",
            "b767e1a028d51360dd3f7ca2809d0c5de6cce279",
            {"data/newsroom/newsroom.json": ""},
        ),
    ),
    "hanna": Source(
        hanna,
        (
            "Story ID",
            "Prompt",
            "Story",
            "Relevance",
            "Coherence",
            "Empathy",
            "Surprise",
            "Engagement",
            "Complexity",
        ),
        _raw(
            "dig-team/hanna-benchmark-asg",
            "282f27536a5d05ad4ce14298abcd70c45668fed2",
            {"hanna_stories_annotations.csv": ""},
        ),
    ),
    "rocstories": Source(
        rocstories,
        (
            *("InputStoryid", *(f"InputSentence{k}" for k in range(1, 5))),
            *("RandomFifthSentenceQuiz1", "RandomFifthSentenceQuiz2", "AnswerRightEnding"),
        ),
        {},
        gated="the Story Cloze Test is given on request at https://cs.rochester.edu/nlp/rocstories/; then say "
        "rocstories=PATH with its CSV file",
    ),
    "mctaco": Source(
        mctaco,
        ("sentence", "question", "answer", "label"),
        _raw(
            "CogComp/MCTACO",
            "1f90a62c4735dfb28a8ae4d6494eb3a0fa1161fd",
            {"data/dev_3783.tsv": "dev"},
        )
        | _raw(
            "CogComp/MCTACO",
            "94d3264b9cf2325a4a5eb94e3da0719ce93505ab",
            {"dataset/test_9442.tsv": "test"},
        ),
    ),
    "caters": Source(
        caters,
        ("name", "text", "annotations"),
        {},
        gated="CaTeRS is at https://cs.rochester.edu/nlp/rocstories/CaTeRS/; then say caters=FOLDER with its "
        ".txt and .ann files",
    ),
}


OURS = "ours"
"""The pairs that come with the package: datasets/ours, in the columns of a user's own."""


def load_pairs(
    spec: str,
    *,
    limit: int | None = None,
    seed: int = 0,
    words: Words | None = None,
    conversations: bool = False,
) -> PairSet:
    """Pairs of `spec`: a name of `known()`, NAME=PATH, the path of a user's own file, or
    `hf:owner/name@REVISION`.

    `limit` keeps so many pairs, drawn with `seed`. `words`: another question than the usual one.
    `conversations`: pairs of the general kind as conversations that hold the question, in the
    paper's template as it is; of MT-Bench without judges who are authors, as in the paper's public
    code. Errors name the file, the row and the column.
    """
    if conversations and words and words != Words():
        raise ValueError(
            "the prompts of conversations have their own question: leave --question and --item out"
        )
    name, given = name_and_place(spec)
    votes: tuple[tuple[str, bool], ...] = ()
    unread = ""
    if name in SOURCES and (not given or spec.startswith(f"{name}=")):
        rows, origin = (_read(given, name), given) if given else _fetch(name)
        source_pairs = _converted(rows, name, origin, conversations)
        votes = agreements(rows) if name == "mt_bench" else ()

        def each_pair() -> Iterator[Pair | None]:
            return iter(source_pairs)

    elif spec == OURS or is_user_place(given):
        origin = f"datasets/{OURS}" if spec == OURS else given
        user_rows = stored_rows(str(BUNDLED / OURS / "rows.jsonl") if spec == OURS else given)
        unread = "" if spec == OURS else user_rows.unread

        def each_pair() -> Iterator[Pair | None]:
            return user_pairs(user_rows.rows, OURS if spec == OURS else given)

    else:
        raise ValueError(
            f"unknown data set {name!r}: expected one of {', '.join(known())}, NAME=PATH, or a "
            f"{', '.join(FORMATS)} file of your own or hf:owner/name@REVISION{meant(name, known())}"
        )

    def as_asked(pair: Pair) -> Pair:
        worded = (words or Words()).asked_of(pair)
        return _as_conversations(worded) if conversations else worded

    with _naming(origin):
        drawn = draw_pairs(each_pair, limit=limit, seed=seed)
        pairs = checked(map(as_asked, drawn.pairs))
    if unread:
        warn_once(unread)
    return PairSet(name, pairs, origin, drawn.ties, drawn.left_out, votes, unread)


@dataclass(frozen=True)
class DrawnPairs:
    """Pairs of a data set that a limit takes."""

    pairs: list[Pair]
    ties: int
    left_out: int


def draw_pairs(
    each_pair: Callable[[], Iterator[Pair | None]], *, limit: int | None, seed: int
) -> DrawnPairs:
    """Draw pairs at random, which are those of one limit and seed; ties (None) are counted and
    never drawn.

    Args:
        each_pair: Begins the pairs anew at each call: with a limit they are counted first, so that
            those of a large set are never held together.
        limit: Number of pairs; None takes all.
        seed: Seed of the draw.
    """
    if limit is None:
        entries = list(each_pair())
        pairs = [pair for pair in entries if pair is not None]
        return DrawnPairs(pairs, ties=len(entries) - len(pairs), left_out=0)
    counts = Counter(pair is not None for pair in each_pair())
    pair_count = counts[True]
    taken = (
        range(pair_count)
        if limit >= pair_count
        else random.Random(seed).sample(range(pair_count), limit)
    )
    wanted = set(taken)
    decided = (pair for pair in each_pair() if pair is not None)
    pairs = [pair for number, pair in enumerate(decided) if number in wanted]
    return DrawnPairs(pairs, ties=counts[False], left_out=pair_count - len(pairs))


@contextmanager
def _naming(origin: str) -> Iterator[None]:
    """A ValueError within says which data set it is about."""
    try:
        yield
    except ValueError as error:
        raise ValueError(str(error) if origin in str(error) else f"{origin}: {error}") from None


def known() -> list[str]:
    """The names of all data sets."""
    return [OURS, *SOURCES]


def name_and_place(spec: str) -> tuple[str, str]:
    """Name and place of the set that a user asked for; the place is "" if only a name was given."""
    if match := re.fullmatch(r"([\w.-]+)=(.+)", spec):
        return match[1], match[2]
    return (name_at(spec), spec) if is_user_place(spec) else (spec, "")


def _converted(
    rows: list[Row], name: str, origin: str, conversations: bool = False
) -> list[Pair | None]:
    source = SOURCES[name]
    columns = source.columns
    if rows and "output_1" in rows[0] and source.convert in (judged_outputs, mt_bench):
        columns = SOURCES["llmbar"].columns
    if rows and "summary" in rows[0] and source.convert is summeval:
        columns = ("doc_id", "source", "summary", "scores")
    _check_columns(rows, columns, origin)
    if conversations and source.convert is mt_bench and rows and "output_1" not in rows[0]:
        return list(_mt_bench_conversations(rows))
    return list(source.convert(rows))


def _check_columns(rows: list[Row], columns: Iterable[str], origin: str) -> None:
    for number, row in enumerate(rows, start=1):
        if missing := [c for c in columns if row.get(c) in (None, "")]:
            raise ValueError(
                f"{origin}, row {number}: no {', '.join(missing)}; expected {', '.join(columns)}, got {', '.join(row)}"
            )


def _read(path: str, name: str) -> list[Row]:
    """Rows of a local file of a source's schema, or of CaTeRS' folder."""
    place = Path(locate(path))
    if place.is_dir() and name != "caters":
        raise ValueError(f"{path} is a folder: give the file of {name} in it")
    if place.is_dir():
        return [
            {
                "name": file.stem,
                "text": read_text(str(file)),
                "annotations": read_text(str(file.with_suffix(".ann"))),
            }
            for file in sorted(place.rglob("*.txt"))
            if file.with_suffix(".ann").is_file()
        ]
    return source_rows(str(place), "")


def source_rows(path: str, subset: str) -> list[Row]:
    """Rows of a file of a public source; each gets `subset`."""
    if path.endswith(".tsv"):  # MC-TACO's: no header, and quotation marks are letters
        names = ("sentence", "question", "answer", "label", "category")
        lines = (line.rstrip("\n") for line in text_lines(path) if line.strip())
        rows = [dict(zip(names, line.split("\t"), strict=False)) for line in lines]
    else:
        rows = list(rows_in_file(path))
    return [{"subset": subset} | row if subset else row for row in rows]


def _fetch(name: str) -> tuple[list[Row], str]:
    """Rows of a public source, and its pinned address; files are kept in the cache folder."""
    source = SOURCES[name]
    if source.gated:
        raise ValueError(f"{name} cannot be fetched: {source.gated}")
    if source.hub:
        repository, commit, split = source.hub
        table = from_hub(name, repository, split=split, revision=commit)
        return [dict(row) for row in table], f"{repository}@{commit}"
    rows: list[Row] = []
    for url, subset in source.files.items():
        rows += source_rows(_download(url, name), subset)
    return rows, next(iter(source.files)).split("/", 3)[3]


def _download(url: str, name: str) -> str:
    """Path of the file, in the cache where it is as it came; an interrupted transfer goes on where
    it stopped.
    """
    file = cache_folder() / "datasets" / url.split("/", 3)[3]
    stamp = file.with_name(f"{file.name}.sha256")
    try:
        if not _as_it_came(file, stamp):
            file.parent.mkdir(parents=True, exist_ok=True)
            with FileLock(file.with_name(f"{file.name}.lock")):
                if not _as_it_came(file, stamp):
                    download(url, file, to_stderr)
                    stamp.write_text(hashlib.sha256(file.read_bytes()).hexdigest())
        return str(file)
    except SourceError as error:
        raise ConnectionError(
            f"{name} could not be fetched from {url}: {error}. Get the file elsewhere and say {name}=PATH, or take "
            f"{OURS}, which needs no network"
        ) from error
    except OSError as error:
        raise OSError(
            f"{name}: the cache folder {file.parent} cannot be used ({error.strerror}). Set SELFPROBE_CACHE to a "
            "folder that can be written"
        ) from error


def _as_it_came(file: Path, stamp: Path) -> bool:
    """True if the file is there with the SHA-256 that was noted when it came (earlier versions
    noted none).
    """
    return file.is_file() and (not stamp.is_file() or is_verified(file, stamp.read_text()))


def download(url: str, file: Path, progress: Progress) -> None:
    """Fetch `url` into `file`; an interrupted transfer goes on where it stopped, in this call or in
    the next one.

    Raises:
        SourceError: The server refused, cannot be reached, sends more than LARGEST, or breaks off
            again and again.
    """
    progress(f"download {url}")
    part = file.with_name(f"{file.name}.part")
    for _ in range(ATTEMPTS):
        before = part.stat().st_size if part.exists() else 0
        try:
            _append(url, part, progress)
            part.replace(file)
            return
        except SourceError:
            part.unlink(missing_ok=True)
            raise
        except httpx.HTTPStatusError as error:
            part.unlink(missing_ok=True)  # 416: what lies there is longer than the file
            raise SourceError(f"the server answered {error.response.status_code}") from error
        except httpx.TransportError as error:
            now = part.stat().st_size if part.exists() else 0
            if now == before:
                raise SourceError(f"{type(error).__name__}: {error}") from error
            progress(f"the transfer broke off at {now / 1e6:.0f} MB; going on from there")
        except OSError as error:
            raise SourceError(str(error)) from error
    raise SourceError(
        f"the transfer broke off {ATTEMPTS} times; the next attempt goes on where it stopped"
    )


def _append(url: str, part: Path, progress: Progress) -> None:
    """Fetch what `part` lacks of `url`, or all of it from a server that does not send parts."""
    have = part.stat().st_size if part.exists() else 0
    headers = {"Accept-Encoding": "identity"} | ({"Range": f"bytes={have}-"} if have else {})
    with httpx.stream("GET", url, headers=headers, follow_redirects=True, timeout=30) as response:
        response.raise_for_status()
        have = have if response.status_code == httpx.codes.PARTIAL_CONTENT else 0
        size = have + int(response.headers.get("Content-Length", 0))
        _refuse_more(size)
        tenth = have * 10 // size if size else 0
        with part.open("ab" if have else "wb") as file:
            for chunk in response.iter_bytes(1 << 16):
                have += file.write(chunk)
                _refuse_more(have)  # a server need not say how much it sends
                if size and have * 10 // size > tenth:
                    tenth = have * 10 // size
                    progress(f"{have / 1e6:.0f} of {size / 1e6:.0f} MB")


def _refuse_more(size: int) -> None:
    if size > LARGEST:
        raise SourceError(
            f"the server sends {size / 1e6:,.0f} MB or more; expected at most {LARGEST / 1e6:,.0f} MB"
        )
