"""Memorisation: can the model continue rows that it should never have seen?

Paper 003 takes its questions for unseen, and has no such check. Here: each row is shown up to the middle of its longest
text, once as it stands in the file and once perturbed, with common words exchanged (EXCHANGED). Both tell as much of
what follows, but only one is what was trained on: who guesses continues both alike, who remembers continues the row.
And the model is asked for each data set's canary GUID, which nobody can guess.

    inspect eval introspect_tasks/memorisation.py --model openai/gpt-5-mini
    inspect eval selfprobe/memorisation --model hf/me/mine -T dataset=open_questions,my.jsonl -T rows=100
    inspect eval selfprobe/memorisation --model planted/ada -M memorised=.5   (simulated: it remembers half of the rows)
"""

import hashlib
import json
import re
from collections.abc import Iterator, Sequence

from inspect_ai import Task
from inspect_ai.dataset import MemoryDataset, Sample
from inspect_ai.model import GenerateConfig
from inspect_ai.solver import TaskState

from selfprobe.arguments import task, whole
from selfprobe.data import Row, Table, bundled, canary, load, table_of
from selfprobe.errors import InputError
from selfprobe.parse import words
from selfprobe.scorers.row_recall import row_recall
from selfprobe.scorers.summary import MEMORISED
from selfprobe.solvers.act import act
from selfprobe.solvers.ask import Prompts, about
from selfprobe.solvers.negotiate import chosen
from selfprobe.solvers.objection import Effort

VERSION = 1
CALLS = 2

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
NEAR = 20  # words before the break, of which at least FEWEST are exchanged: what is near recalls most
FEWEST = 3

ACT = GenerateConfig(temperature=0, max_tokens=128, reasoning_effort="none")


@task
def memorisation(
    dataset: str | list[str] | None = None,
    rows: int = 40,
    act_tokens: int | None = None,
    effort: Effort | None = None,
) -> Task:
    """The model continues rows of data sets and perturbed copies of them, and says each set's canary.

    Args:
        dataset: A data set, or several with commas, as in other tasks; by default all that are bundled.
        rows: Most rows of each, drawn by chance.
        act_tokens: Most tokens of a continuation; by default 128, and 8192 more for a model that thinks all the same.
        effort: Reasoning effort, instead of none (or the least that the model takes).
    """
    whole(rows=rows)
    names = bundled() if dataset is None else dataset.split(",") if isinstance(dataset, str) else dataset
    table = probes([name.strip() for name in names], rows)
    return Task(
        dataset=MemoryDataset([record_to_sample(row) for row in table.rows], name=table.name),
        solver=act(act_prompts, config=ACT, needs=chosen(act_tokens, effort), may_be_cut=True),
        scorer=row_recall(),
        continue_on_fail=True,
        headline_metric=MEMORISED,
        version=table.version(VERSION),
        metadata=about(table),
    )


def act_prompts(state: TaskState) -> Prompts:
    given = state.metadata
    if given["perturbed"] is None:
        return {"canary": CANARY_PROMPT.format(name=given["set"], shown=state.input_text)}
    shown = {"row": state.input_text, "perturbed": given["perturbed"]}
    return {key: ROW_PROMPT.format(name=given["set"], shown=text, count=COUNT) for key, text in shown.items()}


def probes(names: Sequence[str], rows: int) -> Table:
    """What is asked of these data sets; rows that cannot be perturbed are set aside.

    Raises:
        InputError: No row of them can be asked; what `load` raises.
    """
    asked, aside = list[Row](), dict[str, str]()
    for name in names:
        drawn = sorted(load(name, ()).rows, key=lambda row: hashlib.sha256(str(row["id"]).encode()).digest())
        if guid := canary(name):
            first, _, rest = guid.partition("-")
            asked.append({"id": f"{name} canary", "set": name, "shown": first, "perturbed": None, "follows": [rest]})
        fit = {f"{name} {row['id']}": broken(row) for row in drawn}
        left_out = f"fewer than {FEWEST} of the {NEAR} words before its middle can be exchanged, or its text is short"
        aside |= {row: left_out for row, found in fit.items() if found is None}
        told = [(row, found) for row, found in fit.items() if found is not None][:rows]
        asked += [{"id": row, "set": name} | found for row, found in told]
    if not asked:
        raise InputError(f"{', '.join(names)}: no row can be asked: {next(iter(aside.values()), 'there are none')}")
    return table_of(",".join(names), asked, aside)


def broken(row: Row) -> Row | None:
    """A row up to the middle of its longest text, the same perturbed, and the words that follow; None if unfit."""
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
    return {"shown": shown, "perturbed": exchanged(shown), "follows": follows} if changed >= FEWEST else None


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

    return re.sub(rf"(?<![\w'’-])(?:{'|'.join(EXCHANGED)})(?![\w'’-])", other, text, flags=re.IGNORECASE)


def record_to_sample(row: Row) -> Sample:
    about_it = {key: row[key] for key in ("set", "perturbed", "follows")}
    return Sample(id=row["id"], input=row["shown"], target=" ".join(row["follows"]), metadata=about_it)
