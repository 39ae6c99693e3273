"""The data sets of the latent-preference probes as contrast pairs, from their public sources at
pinned revisions (§4.1, E.2).

    load_pairs("ours")                      # comes with the package
    load_pairs("llmbar")                    # fetched once into the cache
    load_pairs("rocstories=cloze_val.csv")  # a file of the source's schema: gated sets, samples
    load_pairs("mine.jsonl")                # a user's own, see `own`; also NAME=PATH and
                                            # hf:owner/name@REVISION

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
from selfprobe.errors.arguments import locate, nearest_name_hint

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


VOTES = {"model_a": 1, "model_b": -1}
"""Vote of a judge who names a winner; any other is a tie."""


def mt_bench(rows: list[Row]) -> Iterator[Pair | None]:
    """MT-Bench's human judgements: the majority of the judges of one question, turn and two models.

    Paper: "majority-vote of this panel". Here: over all human judges; a tie counts for neither
    side, whichever way round a judge saw the models. Texts of the second turn are both the whole
    conversation after the first question.
    """
    if rows and "output_1" in rows[0]:
        yield from judged_outputs(rows)
        return
    vote_totals: Counter[tuple[Any, ...]] = Counter()
    texts: dict[tuple[Any, ...], tuple[str, str, str]] = {}
    for row in rows:
        models = [row["model_a"], row["model_b"]]
        answers = [
            _answer_text(row["conversation_a"], row["turn"]),
            _answer_text(row["conversation_b"], row["turn"]),
        ]
        vote = VOTES.get(row["winner"], 0)
        if models[0] > models[1]:
            models.reverse()
            answers.reverse()
            vote = -vote
        key = (row["question_id"], row["turn"], *models)
        texts[key] = (row["conversation_a"][0]["content"], *answers)
        vote_totals[key] += vote
    for key, vote_total in vote_totals.items():
        if not vote_total:
            yield None
            continue
        context, text_1, text_2 = texts[key]
        pair = Pair(
            id=":".join(map(str, key)),
            text_1=text_1,
            text_2=text_2,
            label=_better(vote_total),
            context=context,
            subset=f"turn {key[1]}",
        )
        yield in_drawn_order(pair)


def _better(difference: float) -> Label:
    """Number of the better text, from what the first has more than the second."""
    return 1 if difference > 0 else 2


def agreements(rows: list[Row]) -> tuple[tuple[str, bool], ...]:
    """Pairs of human judges who both named a winner of one pair of answers: (question, whether they
    agree).

    MT-Bench's paper (setup S2, ties aside) has 81 % of these, the latent-preference paper quotes 80
    %. All human judges, authors too.
    """
    winners: dict[tuple[Any, ...], dict[str, str]] = {}
    for row in rows:
        if row.get("judge") and row["winner"] in VOTES:
            models = sorted((row["model_a"], row["model_b"]))
            key = (row["question_id"], row["turn"], *models)
            winners.setdefault(key, {})[str(row["judge"])] = row[row["winner"]]
    judge_pairs = []
    for (question, *_), winner_by_judge in winners.items():
        for first_winner, second_winner in combinations(winner_by_judge.values(), 2):
            judge_pairs.append((str(question), first_winner == second_winner))
    return tuple(judge_pairs)


def _answer_text(turns: list[dict[str, str]], turn: int) -> str:
    """What a model wrote at a turn; of the second turn the whole conversation after the first
    question.
    """
    first_answer = turns[1]["content"]
    if turn == 1:
        return first_answer
    parts = [first_answer]
    for message in turns[2:4]:
        speaker = "User" if message["role"] == "user" else "Assistant"
        parts.append(f"{speaker}: {message['content']}")
    return "\n\n".join(parts)


def _mt_bench_conversations(rows: list[Row]) -> Iterator[Pair | None]:
    """MT-Bench as the paper's public code takes it: no judges who are authors, the user's turns in
    both texts.

    It sums the votes of judges who saw the models in one order, so that a pair seen in both orders
    is two.
    """
    vote_totals: Counter[tuple[Any, ...]] = Counter()
    row_by_key: dict[tuple[Any, ...], Row] = {}
    for number, row in enumerate(rows, start=1):
        if "judge" not in row:
            raise ValueError(
                f"mt_bench, row {number}: no judge, so that judges who are authors cannot be left "
                "out, which goes with whole conversations; take the set from its source, or say "
                "--prompts paper"
            )
        if str(row["judge"]).startswith("author"):
            continue
        key = (row["question_id"], row["turn"], row["model_a"], row["model_b"])
        row_by_key[key] = row
        vote_totals[key] += VOTES.get(row["winner"], 0)
    for key, vote_total in vote_totals.items():
        row, turn = row_by_key[key], key[1]
        pair = Pair(
            id=":".join(map(str, key)),
            text_1=_spoken(row["conversation_a"][: 2 * turn]),
            text_2=_spoken(row["conversation_b"][: 2 * turn]),
            label=_better(vote_total),
            kind="conversation",
            context=row["conversation_a"][0]["content"],
            subset=f"turn {turn}",
        )
        yield pair if vote_total else None


def _spoken(turns: list[dict[str, str]]) -> str:
    speakers = itertools.cycle(("User", "Assistant"))
    return "\n".join(
        f"{speaker}: {turn['content']}" for speaker, turn in zip(speakers, turns, strict=False)
    )


def _as_conversations(pair: Pair) -> Pair:
    """A pair of the general kind as two conversations; one that answers nothing stays as it is."""
    if pair.kind != "general" or not pair.context:
        return pair
    question = {"content": pair.context}
    return replace(
        pair,
        kind="conversation",
        text_1=_spoken([question, {"content": pair.text_1}]),
        text_2=_spoken([question, {"content": pair.text_2}]),
    )


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
    texts_by_context: dict[str, list[Scored]] = defaultdict(list)
    for text in texts:
        missing_aspects = [aspect for aspect in ASPECTS[kind] if aspect not in text.scores]
        if missing_aspects:
            raise ValueError(
                f"{kind}, text {text.id}: no score of {', '.join(missing_aspects)}; "
                f"it has {', '.join(text.scores)}"
            )
        texts_by_context[text.context].append(text)
    for aspect in ASPECTS[kind]:
        for context_texts in texts_by_context.values():
            for text_1, text_2 in combinations(context_texts, 2):
                yield _scored_pair(kind, aspect, text_1, text_2)


def _scored_pair(kind: Kind, aspect: str, text_1: Scored, text_2: Scored) -> Pair | None:
    pair_id = f"{text_1.id}|{text_2.id}|{aspect}"
    if int(digest(pair_id), 16) % 2:
        text_1, text_2 = text_2, text_1
    difference = text_1.scores[aspect] - text_2.scores[aspect]
    if abs(difference) < SAME_SCORE:
        return None
    return Pair(
        pair_id,
        text_1.text,
        text_2.text,
        _better(difference),
        kind=kind,
        context=text_1.context,
        aspect=aspect,
        subset=aspect,
    )


SAME_SCORE = 1e-9
"""Difference of two mean scores below which they are equal."""


def newsroom(rows: list[Row]) -> Iterator[Pair | None]:
    """NEWSROOM's human evaluation: {doc_id, source, system_output, scores: {aspect: mean}}."""
    texts = [
        Scored(
            id=f"{row['doc_id']}:{number}",
            context=_without_markup(row["source"]),
            text=row["system_output"],
            scores=row["scores"],
        )
        for number, row in enumerate(rows)
    ]
    yield from _to_pairs("newsroom", texts)


def _without_markup(text: str) -> str:
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
        if "machine_summaries" not in row:
            text_id = str(row.get("id", number))
            texts.append(Scored(text_id, row["source"], row["summary"], row["scores"]))
            continue
        for system, summary in enumerate(row["machine_summaries"]):
            scores = {aspect: float(row[aspect][system]) for aspect in ASPECTS["summeval"]}
            texts.append(Scored(f"{row['id']}:M{system}", row["text"], summary, scores))
    yield from _to_pairs("summeval", texts)


def hanna(rows: list[Row]) -> Iterator[Pair | None]:
    """HANNA: one row a story and rater, averaged over the raters of a story."""
    ratings_of_story: dict[str, list[Row]] = defaultdict(list)
    for row in rows:
        ratings_of_story[str(row["Story ID"])].append(row)
    texts = []
    for story_id, ratings in ratings_of_story.items():
        mean_scores = {}
        for aspect in ASPECTS["hanna"]:
            total = sum(float(rating[aspect.capitalize()]) for rating in ratings)
            mean_scores[aspect] = total / len(ratings)
        texts.append(Scored(story_id, ratings[0]["Prompt"], ratings[0]["Story"], mean_scores))
    yield from _to_pairs("hanna", texts)


def rocstories(rows: list[Row]) -> Iterator[Pair | None]:
    """The Story Cloze Test: four sentences, two endings, `AnswerRightEnding` 1 or 2."""
    for row in rows:
        sentences = [row[f"InputSentence{k}"] for k in range(1, 5)]
        yield Pair(
            id=row["InputStoryid"],
            text_1=row["RandomFifthSentenceQuiz1"],
            text_2=row["RandomFifthSentenceQuiz2"],
            label=1 if int(row["AnswerRightEnding"]) == 1 else 2,
            kind="rocstories",
            context=" ".join(sentences),
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
        labelled_answers = answers[row["sentence"], row["question"]][row["label"]]
        if row["answer"] not in labelled_answers:
            labelled_answers.append(row["answer"])
    for (passage, question), answers_by_label in answers.items():
        # A passage has several questions; one group, or what is learnt about it would cross the
        # split.
        group = digest(passage)
        for likely, unlikely in itertools.product(answers_by_label["yes"], answers_by_label["no"]):
            pair = Pair(
                id=digest(passage, question, likely, unlikely),
                text_1=likely,
                text_2=unlikely,
                label=1,
                kind="mctaco",
                context=passage,
                question=question,
                group=group,
            )
            yield pair.swapped if int(pair.id, 16) % 2 else pair


BEFORE_RELATION = re.compile(r"(?:CAUSE_|ENABLE_|PREVENT_|CAUSE_TO_END_)?BEFORE")

EVENT_LINE = re.compile(r"^(T\d+)\t\S+ (\d+) ", re.MULTILINE)

RELATION_LINE = re.compile(r"^R\d+\t(\S+) Arg1:(T\d+) Arg2:(T\d+)", re.MULTILINE)

STORY_MARK = "***"
"""Mark between two stories of a text of CaTeRS."""


def caters(rows: list[Row]) -> Iterator[Pair | None]:
    """CaTeRS: two statements of a story, ordered by the annotated BEFORE relations between their
    events.

    Rows are brat files {name, text, annotations}; stories in a text are set apart by "***",
    statements by lines. Paper: does not say how two statements are ordered. Here: by all BEFORE
    relations (causal ones too) between events of the two; where they disagree it is a tie. The list
    is shown in an order that the story decides.
    """
    for row in rows:
        place_of_event = {
            event[1]: int(event[2]) for event in EVENT_LINE.finditer(row["annotations"])
        }
        ordered_places = []
        for relation, earlier, later in RELATION_LINE.findall(row["annotations"]):
            if BEFORE_RELATION.fullmatch(relation.replace("-", "_")):
                ordered_places.append((place_of_event[earlier], place_of_event[later]))
        story_start = 0
        for number, story in enumerate(row["text"].split(STORY_MARK)):
            yield from _ordered_pairs(f"{row['name']}:{number}", story, story_start, ordered_places)
            story_start += len(story) + len(STORY_MARK)


def _ordered_pairs(
    name: str, story: str, story_start: int, ordered_places: list[tuple[int, int]]
) -> Iterator[Pair | None]:
    """Pairs of one story that begins at character `story_start`; `ordered_places` are (earlier,
    later) places of events.
    """
    lines = [line for line in re.finditer(r"[^\n]+", story) if line[0].strip()]
    statements = [line[0].strip() for line in lines]
    shuffled = list(statements)
    random.Random(name).shuffle(shuffled)

    def statement_at(place: int) -> int | None:
        for number, line in enumerate(lines):
            if line.start() <= place - story_start < line.end():
                return number
        return None

    orders: dict[tuple[int, int], set[bool]] = defaultdict(set)
    for earlier_place, later_place in ordered_places:
        earlier, later = statement_at(earlier_place), statement_at(later_place)
        if earlier is not None and later is not None and earlier != later:
            orders[min(earlier, later), max(earlier, later)].add(earlier < later)
    for (first, second), is_first_earlier in orders.items():
        if len(is_first_earlier) > 1:
            yield None
            continue
        pair = Pair(
            id=f"{name}:{first}-{second}",
            text_1=statements[first],
            text_2=statements[second],
            label=1 if is_first_earlier == {True} else 2,
            kind="caters",
            context="\n".join(shuffled),
        )
        yield in_drawn_order(pair)


LARGEST_FILE_BYTES = 1_000_000_000
"""Most bytes of a file that is fetched."""

DOWNLOAD_ATTEMPTS = 20
"""Attempts of a download; each goes on where the one before stopped, and one that brings nothing
ends it.
"""


def _raw_files(repository: str, commit: str, subset_by_path: Mapping[str, str]) -> dict[str, str]:
    return {
        f"https://raw.githubusercontent.com/{repository}/{commit}/{path}": subset
        for path, subset in subset_by_path.items()
    }


BUNDLED_PAIRS = "ours"
"""The pairs that come with the package: datasets/ours, in the columns of a user's own."""


DATA_SET_GROUPS: Mapping[str, tuple[str, ...]] = {
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
    `agreements`.
    """
    unread: str = ""
    """Sentence that names the columns that are not used; "" if there are none."""


LLMBAR_NATURAL = ("Natural", "Normal")
"""The subsets that are not adversarial (latent-preference probes, §5.4)."""
_LLMBAR_FILES = {"Dataset/LLMBar/Natural/dataset.json": "Natural"}
for _subset in ("Neighbor", "GPTInst", "GPTOut", "Manual"):
    _LLMBAR_FILES[f"Dataset/LLMBar/Adversarial/{_subset}/dataset.json"] = _subset
for _subset in ("Base-9", "Base-10", "Constraint", "Negation", "Normal"):
    _LLMBAR_FILES[f"Dataset/CaseStudy/{_subset}/dataset.json"] = _subset

SOURCES: Mapping[str, Source] = {
    "llmbar": Source(
        judged_outputs,
        ("input", "output_1", "output_2", "label"),
        _raw_files(
            "princeton-nlp/LLMBar",
            "caa7bee794bfed74baed038b99229fa3f0c4c511",
            _LLMBAR_FILES,
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
        _raw_files(
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
        _raw_files(
            "dig-team/hanna-benchmark-asg",
            "282f27536a5d05ad4ce14298abcd70c45668fed2",
            {"hanna_stories_annotations.csv": ""},
        ),
    ),
    "rocstories": Source(
        rocstories,
        (
            "InputStoryid",
            "InputSentence1",
            "InputSentence2",
            "InputSentence3",
            "InputSentence4",
            "RandomFifthSentenceQuiz1",
            "RandomFifthSentenceQuiz2",
            "AnswerRightEnding",
        ),
        {},
        gated=(
            "the Story Cloze Test is given on request at https://cs.rochester.edu/nlp/rocstories/; "
            "then say rocstories=PATH with its CSV file"
        ),
    ),
    "mctaco": Source(
        mctaco,
        ("sentence", "question", "answer", "label"),
        _raw_files(
            "CogComp/MCTACO",
            "1f90a62c4735dfb28a8ae4d6494eb3a0fa1161fd",
            {"data/dev_3783.tsv": "dev"},
        )
        | _raw_files(
            "CogComp/MCTACO",
            "94d3264b9cf2325a4a5eb94e3da0719ce93505ab",
            {"dataset/test_9442.tsv": "test"},
        ),
    ),
    "caters": Source(
        caters,
        ("name", "text", "annotations"),
        {},
        gated=(
            "CaTeRS is at https://cs.rochester.edu/nlp/rocstories/CaTeRS/; then say caters=FOLDER "
            "with its .txt and .ann files"
        ),
    ),
}


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
    name, place = name_and_place(spec)
    votes: tuple[tuple[str, bool], ...] = ()
    unread = ""
    if name in SOURCES and (not place or spec.startswith(f"{name}=")):
        rows, origin = (_read(place, name), place) if place else _fetch(name)
        source_pairs = _converted(rows, name, origin, conversations)
        votes = agreements(rows) if name == "mt_bench" else ()

        def each_pair() -> Iterator[Pair | None]:
            return iter(source_pairs)

    elif spec == BUNDLED_PAIRS:
        origin = f"datasets/{BUNDLED_PAIRS}"
        bundled_rows = stored_rows(str(BUNDLED / BUNDLED_PAIRS / "rows.jsonl")).rows

        def each_pair() -> Iterator[Pair | None]:
            return user_pairs(bundled_rows, BUNDLED_PAIRS)

    elif is_user_place(place):
        origin = place
        user_rows = stored_rows(place)
        unread = user_rows.unread

        def each_pair() -> Iterator[Pair | None]:
            return user_pairs(user_rows.rows, place)

    else:
        raise ValueError(
            f"unknown data set {name!r}: expected one of {', '.join(known())}, NAME=PATH, or a "
            f"{', '.join(FORMATS)} file of your own or hf:owner/name@REVISION{nearest_name_hint(name, known())}"
        )

    def as_asked(pair: Pair) -> Pair:
        worded_pair = (words or Words()).asked_of(pair)
        return _as_conversations(worded_pair) if conversations else worded_pair

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

    tie_count = 0
    pair_count = 0
    for entry in each_pair():
        if entry is None:
            tie_count += 1
        else:
            pair_count += 1
    drawn_numbers = set(range(pair_count))
    if limit < pair_count:
        drawn_numbers = set(random.Random(seed).sample(range(pair_count), limit))
    decided_pairs = (pair for pair in each_pair() if pair is not None)
    pairs = [pair for number, pair in enumerate(decided_pairs) if number in drawn_numbers]
    return DrawnPairs(pairs, ties=tie_count, left_out=pair_count - len(pairs))


@contextmanager
def _naming(origin: str) -> Iterator[None]:
    """A ValueError within says which data set it is about."""
    try:
        yield
    except ValueError as error:
        message = str(error)
        if origin not in message:
            message = f"{origin}: {message}"
        raise ValueError(message) from None


def known() -> list[str]:
    """The names of all data sets."""
    return [BUNDLED_PAIRS, *SOURCES]


def name_and_place(spec: str) -> tuple[str, str]:
    """Name and place of the set that a user asked for; the place is "" if only a name was given."""
    if named_place := re.fullmatch(r"([\w.-]+)=(.+)", spec):
        return named_place[1], named_place[2]
    return (name_at(spec), spec) if is_user_place(spec) else (spec, "")


def _converted(
    rows: list[Row], name: str, origin: str, conversations: bool = False
) -> list[Pair | None]:
    source = SOURCES[name]
    columns = source.columns
    first_row = rows[0] if rows else {}
    has_judged_outputs = "output_1" in first_row
    if has_judged_outputs and source.convert in (judged_outputs, mt_bench):
        columns = SOURCES["llmbar"].columns
    if "summary" in first_row and source.convert is summeval:
        columns = ("doc_id", "source", "summary", "scores")
    _check_columns(rows, columns, origin)
    if conversations and rows and source.convert is mt_bench and not has_judged_outputs:
        return list(_mt_bench_conversations(rows))
    return list(source.convert(rows))


def _check_columns(rows: list[Row], columns: Iterable[str], origin: str) -> None:
    for number, row in enumerate(rows, start=1):
        missing_columns = [column for column in columns if row.get(column) in (None, "")]
        if missing_columns:
            raise ValueError(
                f"{origin}, row {number}: no {', '.join(missing_columns)}; "
                f"expected {', '.join(columns)}, got {', '.join(row)}"
            )


def _read(path: str, name: str) -> list[Row]:
    """Rows of a local file of a source's schema, or of CaTeRS' folder."""
    place = Path(locate(path))
    if not place.is_dir():
        return source_rows(str(place), "")
    if name != "caters":
        raise ValueError(f"{path} is a folder: give the file of {name} in it")
    rows = []
    for text_file in sorted(place.rglob("*.txt")):
        annotation_file = text_file.with_suffix(".ann")
        if annotation_file.is_file():
            row = {
                "name": text_file.stem,
                "text": read_text(str(text_file)),
                "annotations": read_text(str(annotation_file)),
            }
            rows.append(row)
    return rows


def source_rows(path: str, subset: str) -> list[Row]:
    """Rows of a file of a public source; each gets `subset`."""
    if path.endswith(".tsv"):  # MC-TACO's: no header, and quotation marks are letters
        columns = ("sentence", "question", "answer", "label", "category")
        rows = []
        for line in text_lines(path):
            if line.strip():
                cells = line.rstrip("\n").split("\t")
                rows.append(dict(zip(columns, cells, strict=False)))
    else:
        rows = list(rows_in_file(path))
    if not subset:
        return rows
    return [{"subset": subset} | row for row in rows]


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
    first_url = next(iter(source.files))
    return rows, _path_of_url(first_url)


def _path_of_url(url: str) -> str:
    return url.split("/", 3)[3]


def _download(url: str, name: str) -> str:
    """Path of the file, in the cache where it is as it came; an interrupted transfer goes on where
    it stopped.
    """
    file = cache_folder() / "datasets" / _path_of_url(url)
    hash_file = file.with_name(f"{file.name}.sha256")
    try:
        if not _is_as_it_came(file, hash_file):
            file.parent.mkdir(parents=True, exist_ok=True)
            with FileLock(file.with_name(f"{file.name}.lock")):
                if not _is_as_it_came(file, hash_file):
                    download(url, file, to_stderr)
                    hash_file.write_text(hashlib.sha256(file.read_bytes()).hexdigest())
        return str(file)
    except SourceError as error:
        raise ConnectionError(
            f"{name} could not be fetched from {url}: {error}. Get the file elsewhere and say "
            f"{name}=PATH, or take {BUNDLED_PAIRS}, which needs no network"
        ) from error
    except OSError as error:
        raise OSError(
            f"{name}: the cache folder {file.parent} cannot be used ({error.strerror}). "
            "Set SELFPROBE_CACHE to a folder that can be written"
        ) from error


def _is_as_it_came(file: Path, hash_file: Path) -> bool:
    """True if the file is there with the SHA-256 that was noted when it came."""
    if not file.is_file() or not hash_file.is_file():
        return False
    return is_verified(file, hash_file.read_text())


def download(url: str, file: Path, progress: Progress) -> None:
    """Fetch `url` into `file`; an interrupted transfer goes on where it stopped, in this call or in
    the next one.

    Raises:
        SourceError: The server refused, cannot be reached, sends more than LARGEST_FILE_BYTES, or
            breaks off again and again.
    """
    progress(f"download {url}")
    part_file = file.with_name(f"{file.name}.part")
    for _ in range(DOWNLOAD_ATTEMPTS):
        size_before = _size_of(part_file)
        try:
            _append(url, part_file, progress)
            part_file.replace(file)
            return
        except SourceError:
            part_file.unlink(missing_ok=True)
            raise
        except httpx.HTTPStatusError as error:
            part_file.unlink(missing_ok=True)  # 416: what lies there is longer than the file
            raise SourceError(f"the server answered {error.response.status_code}") from error
        except httpx.TransportError as error:
            size = _size_of(part_file)
            if size == size_before:
                raise SourceError(f"{type(error).__name__}: {error}") from error
            progress(f"the transfer broke off at {size / 1e6:.0f} MB; going on from there")
        except OSError as error:
            raise SourceError(str(error)) from error
    raise SourceError(
        f"the transfer broke off {DOWNLOAD_ATTEMPTS} times; "
        "the next attempt goes on where it stopped"
    )


def _size_of(file: Path) -> int:
    return file.stat().st_size if file.exists() else 0


def _append(url: str, part_file: Path, progress: Progress) -> None:
    """Fetch what a file lacks of `url`, or all of it from a server that does not send parts."""
    received_bytes = _size_of(part_file)
    headers = {"Accept-Encoding": "identity"}
    if received_bytes:
        headers["Range"] = f"bytes={received_bytes}-"
    with httpx.stream("GET", url, headers=headers, follow_redirects=True, timeout=30) as response:
        response.raise_for_status()
        if response.status_code != httpx.codes.PARTIAL_CONTENT:
            received_bytes = 0
        total_bytes = received_bytes + int(response.headers.get("Content-Length", 0))
        _refuse_more(total_bytes)
        reported_tenth = received_bytes * 10 // total_bytes if total_bytes else 0
        with part_file.open("ab" if received_bytes else "wb") as file:
            for chunk in response.iter_bytes(1 << 16):
                received_bytes += file.write(chunk)
                _refuse_more(received_bytes)  # a server need not say how much it sends
                if total_bytes and received_bytes * 10 // total_bytes > reported_tenth:
                    reported_tenth = received_bytes * 10 // total_bytes
                    progress(f"{received_bytes / 1e6:.0f} of {total_bytes / 1e6:.0f} MB")


def _refuse_more(size: int) -> None:
    if size > LARGEST_FILE_BYTES:
        raise SourceError(
            f"the server sends {size / 1e6:,.0f} MB or more; expected at most "
            f"{LARGEST_FILE_BYTES / 1e6:,.0f} MB"
        )
