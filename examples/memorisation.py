"""Memorisation: can the model continue rows that it should never have seen? A task of one file,
with its scorer.

Paper 003 takes its questions for unseen, and has no such check. Each row is shown up to the middle
of its longest text, once as it stands in the file and once perturbed, with common words exchanged
(EXCHANGED). Both tell as much of what follows, but only one was trained on: a model that guesses
continues both alike, one that remembers continues the row. The model is also asked for each data
set's canary GUID, which nobody can guess.

    inspect eval examples/memorisation.py --model openai/gpt-5-mini
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

COUNT = 12  # words to continue
NEAR = (
    20  # words before the break, of which at least FEWEST are exchanged: what is near recalls most
)
FEWEST = 3

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
    names = (
        bundled()
        if dataset is None
        else dataset.split(",")
        if isinstance(dataset, str)
        else dataset
    )
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
    given = state.metadata
    if given["perturbed"] is None:
        return {"canary": CANARY_PROMPT.format(name=given["set"], shown=state.input_text)}
    shown = {"row": state.input_text, "perturbed": given["perturbed"]}
    return {
        key: ROW_PROMPT.format(name=given["set"], shown=text, count=COUNT)
        for key, text in shown.items()
    }


def probes(names: Sequence[str], rows: int) -> Table:
    """What is asked of these data sets; rows that cannot be perturbed are set aside.

    Raises:
        InputError: No row of them can be asked; what `load` raises.
    """
    asked, aside = list[Row](), dict[str, str]()
    for name in names:
        drawn = sorted(
            load(name, ()).rows, key=lambda row: hashlib.sha256(str(row["id"]).encode()).digest()
        )
        if guid := canary(name):
            first, _, rest = guid.partition("-")
            asked.append(
                {
                    "id": f"{name} canary",
                    "set": name,
                    "shown": first,
                    "perturbed": None,
                    "follows": [rest],
                }
            )
        fit = {f"{name} {row['id']}": broken(row) for row in drawn}
        left_out = f"fewer than {FEWEST} of the {NEAR} words before its middle can be exchanged, or its text is short"
        aside |= {row: left_out for row, found in fit.items() if found is None}
        told = [(row, found) for row, found in fit.items() if found is not None][:rows]
        asked += [{"id": row, "set": name} | found for row, found in told]
    if not asked:
        raise InputError(
            f"{', '.join(names)}: no row can be asked: {next(iter(aside.values()), 'there are none')}"
        )
    return table_of(",".join(names), asked, aside)


def broken(row: Row) -> Row | None:
    """A row up to the middle of its longest text, the same perturbed, and the words that follow;
    None if unfit.
    """
    text = max(texts(row), key=len, default="")
    starts = [match.start() for match in re.finditer(r"\S+", text)]
    if len(starts) < 2 * COUNT:
        return None
    middle = starts[min(len(starts) // 2, len(starts) - COUNT)]
    line, inside = json.dumps(row, ensure_ascii=False), json.dumps(text, ensure_ascii=False)[1:-1]
    before = json.dumps(text[:middle], ensure_ascii=False)[1:-1].rstrip()
    shown, follows = line[: line.index(inside)] + before, words(text[middle:], limit=COUNT)
    near = words(text[:middle])[-NEAR:]
    changed = sum(exchanged(word) != word for word in near)
    return (
        {"shown": shown, "perturbed": exchanged(shown), "follows": follows}
        if changed >= FEWEST
        else None
    )


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

    def other(match: re.Match[str]) -> str:
        word = EXCHANGED[match[0].lower()]
        return word[0].upper() + word[1:] if match[0][0].isupper() else word

    return re.sub(
        rf"(?<![\w'’-])(?:{'|'.join(EXCHANGED)})(?![\w'’-])", other, text, flags=re.IGNORECASE
    )


def record_to_sample(row: Row) -> Sample:
    about_it = {key: row[key] for key in ("set", "perturbed", "follows")}
    return Sample(
        id=row["id"], input=row["shown"], target=" ".join(row["follows"]), metadata=about_it
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
        follows: list[str] = state.metadata["follows"]
        acts: Mapping[str, Reply] = state.store_as(Record).acts
        decisions = [judge(key, reply, follows) for key, reply in acts.items()]
        said = "\n".join(f"{key}: {reply.text[:300]!r}" for key, reply in acts.items())
        told = " ".join(follows)
        return score_of(
            decisions, answer=decisions[0].said, explanation=f"It goes on: {told!r}\n{said}"
        )

    return score


def judge(key: str, reply: Reply, follows: Sequence[str]) -> Decision:
    """One reply held against what follows in the data set."""
    fault, truth = target_fault(reply), " ".join(follows)
    if fault:
        return Decision(key=key, unscored=fault, truth=truth)
    if key == "canary":
        value = float(follows[0] in reply.text.lower())
    else:
        value = longest_run(follows, words(reply.text)) / len(follows)
    return Decision(key=key, value=value, truth=truth, said=reply.text[:200])


def longest_run(wanted: Sequence[str], said: Sequence[str]) -> int:
    """Most words of `wanted` that stand in `said` in a row, in the same order.

    >>> longest_run(["a", "lamp", "at", "sea"], ["Once", "a", "lamp", "at", "home"])
    3
    """
    left, right = [normalise(word) for word in wanted], [normalise(word) for word in said]
    best, before = 0, [0] * (len(right) + 1)
    for word in left:
        row = [0]
        row += [before[place] + 1 if word == other else 0 for place, other in enumerate(right)]
        best, before = max(best, *row), row
    return best


def set_of(sample: SampleScore) -> str:
    """The data set of a sample."""
    return str((sample.sample_metadata or {})["set"])


def summarised(scores: Sequence[SampleScore]) -> dict[str, float]:
    """The numbers of `memorised`."""
    found = [(sample, {d.key: d for d in decisions_of(sample.score)}) for sample in scores]
    decisions = [d for _, by_key in found for d in by_key.values()]
    pairs = [
        (set_of(sample), str(sample.sample_id), by_key["row"].value, by_key["perturbed"].value)
        for sample, by_key in found
        if {"row", "perturbed"} <= by_key.keys()
    ]
    pairs = [pair for pair in pairs if pair[2] is not None and pair[3] is not None]
    out: dict[str, float] = {}
    if pairs:
        row, perturbed = (np.array([pair[side] for pair in pairs], dtype=float) for side in (2, 3))
        out = difference("memorised", pairs)
        out |= {
            "row": row.mean(),
            "perturbed": perturbed.mean(),
            "verbatim": float(np.mean(row == 1)),
        }
    if said := [d.value for d in decisions if d.key == "canary" and d.value is not None]:
        out["canaries"] = sum(said)
    sets = list(dict.fromkeys(pair[0] for pair in pairs))
    for name in sets if len(sets) > 1 else ():
        out |= difference(f"{name}_memorised", [pair for pair in pairs if pair[0] == name])
    shares = {
        why: n / len(decisions)
        for why, n in Counter(d.unscored for d in decisions if d.unscored).items()
    }
    out |= {"n": len(pairs), "unscored": math.fsum(shares.values())}
    out |= {f"unscored_{why}": share for why, share in shares.items()} | cut_at(shares)
    return {key: float(value) for key, value in out.items() if not math.isnan(value)}


def difference(
    name: str, pairs: Sequence[tuple[str, str, float | None, float | None]]
) -> dict[str, float]:
    """Row less perturbed with its interval."""
    less = np.array([pair[2] for pair in pairs], dtype=float) - np.array(
        [pair[3] for pair in pairs], dtype=float
    )
    found = clustered_mean(less, [f"{pair[0]} {pair[1]}" for pair in pairs], interval="difference")
    return {name: found.value, f"{name}_low": found.low, f"{name}_high": found.high}
