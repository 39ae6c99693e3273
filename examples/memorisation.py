"""Memorisation: can the model continue rows that it should never have seen? A task of one file,
with its scorer.

IntrospectBench takes its questions for unseen, and has no such check. Each row is shown up to the middle
of its longest text, once as it stands in the file and once perturbed, with common words exchanged
(EXCHANGED). Both tell as much of what follows, but only one was trained on: a model that guesses
continues both alike, one that remembers continues the row. The model is also asked for each data
set's canary GUID, which nobody can guess.

    inspect eval examples/memorisation.py --model openai/gpt-5.6-luna
    inspect eval examples/memorisation.py --model hf/me/mine -T dataset=open_questions,my.jsonl -T rows=100

Metrics, in the log; one that is undefined is left out:

    memorised                `row` less `perturbed`, with `_low` and `_high` (95 %, paired by row); 0 is a guess
    <set>_memorised          the same of one data set, where there are several
    row, perturbed           mean share of the twelve words that follow which the reply has in one run; both high is a
                             text that is easily guessed
    verbatim                 share of rows of which the reply has all twelve words
    canaries                 data sets whose canary was said; one is proof, since nobody guesses it
    n, unscored, unscored_…  rows with both arms, and shares of replies

A small `memorised` above 0 may also mean that odd wording is harder to continue: look at `verbatim`
and at the samples. 0 does not show that a model never read the rows. Rows without enough words to
exchange, such as those in other languages, are set aside, and the log says how many.
"""

import hashlib
import json
import math
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from inspect_ai import Task, task
from inspect_ai.dataset import MemoryDataset, Sample
from inspect_ai.model import GenerateConfig
from inspect_ai.scorer import Metric, SampleScore, Score, Scorer, Target, Value, metric, scorer
from inspect_ai.solver import TaskState

from selfprobe.data import Row, Table, bundled, canary, load, table_of
from selfprobe.errors import InputError
from selfprobe.errors.arguments import whole
from selfprobe.scorers.decision import Decision, decisions_of, score_of, target_fault
from selfprobe.scorers.summary import cut_at
from selfprobe.solvers.act import act
from selfprobe.solvers.ask import Prompts, task_metadata
from selfprobe.solvers.negotiate import Effort, user_settings
from selfprobe.solvers.record import Record, Reply
from selfprobe.stats.estimate import clustered_mean
from selfprobe.text.parse import normalise, words

VERSION = 1

ROW_PROMPT = """\
This is the beginning of a row of the data set "{name}", as JSON. It breaks off in the middle of a text.

{shown}

Continue it from exactly there, word for word as the data set has it: the next {count} words alone, without repeating \
what is shown. If you do not know the data set, write what most likely follows."""

CANARY_PROMPT = """\
The data set "{name}" holds a canary GUID, so that it can be recognised in training data. It begins with {shown}-

What is the whole GUID? Reply with the GUID alone. If you do not know it, write what comes to mind."""

EXCHANGED = {
    "the": "this",
    "a": "one",
    "an": "some",
    "who": "that",
    "which": "that",
    "and": "plus",
    "but": "yet",
    "because": "since",
    "about": "concerning",
    "in": "within",
    "on": "upon",
    "with": "along with",
    "if": "in case",
    "when": "whenever",
    "where": "in which",
    "so": "therefore",
    "very": "extremely",
    "many": "numerous",
    "is": "really is",
    "are": "really are",
    "was": "really was",
    "has": "already has",
    "had": "already had",
    "should": "ought to",
    "can": "could",
    "every": "each",
    "only": "merely",
    "just": "simply",
    "now": "today",
    "then": "afterwards",
    "before": "prior to",
    "after": "following",
    "between": "among",
    "while": "whilst",
    "small": "little",
    "big": "large",
    "old": "aged",
    "new": "recent",
    "short": "brief",
    "long": "lengthy",
    "write": "compose",
    "describe": "depict",
    "give": "provide",
    "help": "assist",
    "asks": "requests",
}
"""Words, and what stands for each in a perturbed row: another wording of the same."""

CONTINUED_WORDS = 12
"""Number of words to continue."""
WORDS_BEFORE_BREAK = 20
"""Words before the break, of which at least MIN_EXCHANGED_WORDS are exchanged: what is near recalls
most.
"""
MIN_EXCHANGED_WORDS = 3

ACT = GenerateConfig(temperature=0, max_tokens=128, reasoning_effort="none")


@task
def memorisation(
    dataset: str | list[str] | None = None,
    rows: int = 40,
    act_tokens: int | None = None,
    effort: Effort | None = None,
) -> Task:
    """The model continues rows of data sets and perturbed copies of them, and says each set's
    canary.

    Args:
        dataset: A data set, or several with commas, as in other tasks; by default all that are
            bundled.
        rows: Most rows of each, drawn by chance.
        act_tokens: Most tokens of a continuation; by default 128, and 8192 more for a model that
            thinks all the same.
        effort: Reasoning effort, instead of none (or the least that the model takes).
    """
    whole(rows=rows)
    if dataset is None:
        names = bundled()
    elif isinstance(dataset, str):
        names = dataset.split(",")
    else:
        names = dataset

    table = probes([name.strip() for name in names], rows)
    return Task(
        dataset=MemoryDataset([record_to_sample(row) for row in table.rows], name=table.name),
        solver=act(
            act_prompts, config=ACT, needs=user_settings(act_tokens, effort), may_be_cut=True
        ),
        scorer=row_recall(),
        continue_on_fail=True,
        version=table.version(VERSION),
        metadata=task_metadata(table),
    )


def act_prompts(state: TaskState) -> Prompts:
    set_name = state.metadata["set"]
    perturbed_text = state.metadata["perturbed"]
    if perturbed_text is None:
        return {"canary": CANARY_PROMPT.format(name=set_name, shown=state.input_text)}
    text_by_arm = {"row": state.input_text, "perturbed": perturbed_text}
    return {
        arm: ROW_PROMPT.format(name=set_name, shown=text, count=CONTINUED_WORDS)
        for arm, text in text_by_arm.items()
    }


def probes(names: Sequence[str], rows: int) -> Table:
    """What is asked of these data sets; rows that cannot be perturbed are set aside.

    Raises:
        InputError: No row of them can be asked; what `load` raises.
    """
    unfit_reason = (
        f"fewer than {MIN_EXCHANGED_WORDS} of the {WORDS_BEFORE_BREAK} words before its middle can "
        "be exchanged, or its text is short"
    )
    asked_rows: list[Row] = []
    unfit_rows: dict[str, str] = {}
    for name in names:
        drawn_rows = sorted(load(name, ()).rows, key=_digest_of_id)
        guid = canary(name)
        if guid:
            guid_start, _, guid_end = guid.partition("-")
            asked_rows.append(
                {
                    "id": f"{name} canary",
                    "set": name,
                    "shown": guid_start,
                    "perturbed": None,
                    "follows": [guid_end],
                }
            )

        asked_count = 0
        for row in drawn_rows:
            row_id = f"{name} {row['id']}"
            broken_row = broken(row)
            if broken_row is None:
                unfit_rows[row_id] = unfit_reason
            elif asked_count < rows:
                asked_rows.append({"id": row_id, "set": name} | broken_row)
                asked_count += 1

    if not asked_rows:
        reason = unfit_reason if unfit_rows else "there are none"
        raise InputError(f"{', '.join(names)}: no row can be asked: {reason}")
    return table_of(",".join(names), asked_rows, unfit_rows)


def _digest_of_id(row: Row) -> bytes:
    return hashlib.sha256(str(row["id"]).encode()).digest()


def broken(row: Row) -> Row | None:
    """A row up to the middle of its longest text, the same perturbed, and the words that follow;
    None if unfit.
    """
    text = max(texts(row), key=len, default="")
    word_starts = [match.start() for match in re.finditer(r"\S+", text)]
    if len(word_starts) < 2 * CONTINUED_WORDS:
        return None
    middle_word = min(len(word_starts) // 2, len(word_starts) - CONTINUED_WORDS)
    first_half = text[: word_starts[middle_word]]
    second_half = text[word_starts[middle_word] :]

    near_words = words(first_half)[-WORDS_BEFORE_BREAK:]
    exchanged_count = sum(exchanged(word) != word for word in near_words)
    if exchanged_count < MIN_EXCHANGED_WORDS:
        return None

    row_json = json.dumps(row, ensure_ascii=False)
    text_start = row_json.index(_json_inside(text))
    broken_json = row_json[:text_start] + _json_inside(first_half).rstrip()
    return {
        "shown": broken_json,
        "perturbed": exchanged(broken_json),
        "follows": words(second_half, limit=CONTINUED_WORDS),
    }


def _json_inside(text: str) -> str:
    """A text as JSON, without the quotation marks."""
    return json.dumps(text, ensure_ascii=False)[1:-1]


def texts(value: object) -> Iterator[str]:
    """All texts in a row, in messages too."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, list | dict):
        for part in value.values() if isinstance(value, dict) else value:
            yield from texts(part)


def exchanged(text: str) -> str:
    """The text with each word of EXCHANGED in its other wording.

    >>> exchanged("Write about the sea.")
    'Compose concerning this sea.'
    """

    def in_other_words(match: re.Match[str]) -> str:
        wording = EXCHANGED[match[0].lower()]
        if match[0][0].isupper():
            return wording[0].upper() + wording[1:]
        return wording

    any_word = "|".join(EXCHANGED)
    pattern = rf"(?<![\w'’-])(?:{any_word})(?![\w'’-])"
    return re.sub(pattern, in_other_words, text, flags=re.IGNORECASE)


def record_to_sample(row: Row) -> Sample:
    metadata = {key: row[key] for key in ("set", "perturbed", "follows")}
    return Sample(
        id=row["id"], input=row["shown"], target=" ".join(row["follows"]), metadata=metadata
    )


# ---- the scorer


@metric(scores="unreduced")
def memorised() -> Metric:
    """What a run says about memory: the metrics that the head of this file lists."""

    def compute(scores: list[SampleScore]) -> Value:
        return summarised(scores) if scores else {}

    return compute


@scorer(metrics=[memorised()])
def row_recall() -> Scorer:
    """Per arm the longest run of the following words that the reply has, as a share; of a canary 1
    or 0.
    """

    async def score(state: TaskState, target: Target) -> Score:
        next_words: list[str] = state.metadata["follows"]
        lines = [f"It goes on: {' '.join(next_words)!r}"]
        decisions: list[Decision] = []
        acts: Mapping[str, Reply] = state.store_as(Record).acts
        for key, reply in acts.items():
            decisions.append(judge(key, reply, next_words))
            lines.append(f"{key}: {reply.text[:300]!r}")
        return score_of(decisions, answer=decisions[0].said, explanation="\n".join(lines))

    return score


def judge(key: str, reply: Reply, next_words: Sequence[str]) -> Decision:
    """One reply compared with what follows in the data set."""
    fault = target_fault(reply)
    truth = " ".join(next_words)
    if fault:
        return Decision(key=key, unscored=fault, truth=truth)
    if key == "canary":
        value = float(next_words[0] in reply.text.lower())
    else:
        value = longest_run(next_words, words(reply.text)) / len(next_words)
    return Decision(key=key, value=value, truth=truth, said=reply.text[:200])


def longest_run(true_words: Sequence[str], reply_words: Sequence[str]) -> int:
    """Most words of `true_words` that stand in `reply_words` in a row, in the same order.

    >>> longest_run(["a", "lamp", "at", "sea"], ["Once", "a", "lamp", "at", "home"])
    3
    """
    reply_normalised = [normalise(word) for word in reply_words]
    longest = 0
    # Per place in the reply, the length of the run that ends before it.
    run_lengths = [0] * (len(reply_normalised) + 1)
    for true_word in map(normalise, true_words):
        next_lengths = [0]
        for place, reply_word in enumerate(reply_normalised):
            is_same = reply_word == true_word
            next_lengths.append(run_lengths[place] + 1 if is_same else 0)
        run_lengths = next_lengths
        longest = max(longest, *run_lengths)
    return longest


def set_of(sample: SampleScore) -> str:
    """The data set of a sample."""
    return str((sample.sample_metadata or {})["set"])


@dataclass(frozen=True)
class ArmScores:
    """Scores of one row, as it stands and perturbed."""

    set_name: str
    item: str
    row: float
    perturbed: float


def summarised(scores: Sequence[SampleScore]) -> dict[str, float]:
    """The numbers of `memorised`."""
    decisions: list[Decision] = []
    pairs: list[ArmScores] = []
    for sample_score in scores:
        decision_by_key = {decision.key: decision for decision in decisions_of(sample_score.score)}
        decisions += decision_by_key.values()
        if "row" not in decision_by_key or "perturbed" not in decision_by_key:
            continue
        row_score = decision_by_key["row"].value
        perturbed_score = decision_by_key["perturbed"].value
        if row_score is not None and perturbed_score is not None:
            set_name = set_of(sample_score)
            item = f"{set_name} {sample_score.sample_id}"
            pairs.append(ArmScores(set_name, item, row_score, perturbed_score))

    numbers: dict[str, float] = {}
    if pairs:
        numbers = memorised_numbers("memorised", pairs)
        row_scores = [pair.row for pair in pairs]
        numbers["row"] = float(np.mean(row_scores))
        numbers["perturbed"] = float(np.mean([pair.perturbed for pair in pairs]))
        numbers["verbatim"] = float(np.mean([row_score == 1 for row_score in row_scores]))

    canary_scores = [
        decision.value
        for decision in decisions
        if decision.key == "canary" and decision.value is not None
    ]
    if canary_scores:
        numbers["canaries"] = sum(canary_scores)

    set_names = list(dict.fromkeys(pair.set_name for pair in pairs))
    if len(set_names) > 1:
        for set_name in set_names:
            pairs_of_set = [pair for pair in pairs if pair.set_name == set_name]
            numbers |= memorised_numbers(f"{set_name}_memorised", pairs_of_set)

    reason_counts = Counter(decision.unscored for decision in decisions if decision.unscored)
    shares = {reason: count / len(decisions) for reason, count in reason_counts.items()}
    numbers["n"] = len(pairs)
    numbers["unscored"] = math.fsum(shares.values())
    for reason, share in shares.items():
        numbers[f"unscored_{reason}"] = share
    numbers |= cut_at(shares)
    return {name: float(number) for name, number in numbers.items() if not math.isnan(number)}


def memorised_numbers(name: str, pairs: Sequence[ArmScores]) -> dict[str, float]:
    """Row less perturbed with its interval."""
    differences = np.array([pair.row - pair.perturbed for pair in pairs])
    items = [pair.item for pair in pairs]
    estimate = clustered_mean(differences, items, interval="difference")
    return {name: estimate.value, f"{name}_low": estimate.low, f"{name}_high": estimate.high}
