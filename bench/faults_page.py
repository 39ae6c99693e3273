"""The page of bench/faults.py: rows by fault, each green or with the reason why it is not."""

from collections.abc import Sequence
from dataclasses import dataclass

NONE, KILL = "none", "kill"


@dataclass(frozen=True)
class Cell:
    """One task under one fault."""

    fault: str
    mode: str
    task: str
    rows: int
    scored: int
    unscored: int
    failed: int = 0
    lost: int = 0
    fewer: int = 0
    """Verdicts and means that were scored otherwise because answers of theirs are unscored."""
    changed: int = 0
    as_truth: int = 0
    marked: int = 0
    """Of the rows that were changed or have another truth, those whose log has a note of it."""
    again: int = 0
    """Calls of all tasks that were asked again after a kill."""
    under_way: int = 0
    """Calls of all tasks that the killed process had under way."""


NAMES = ("rows", "scored", "unscored", "failed", "lost", "fewer", "changed", "as_truth", "marked")
HEAD = """\
# What faults do to the rows

Made by `python bench/faults.py --table docs/faults.md`: a local server fails in each of 21 ways, at one attempt in ten
("attempts") or for one prompt in ten at every attempt ("prompts"), under {tasks} tasks of {items} items each, with two
retries. Each row, a decision of one sample, is held against an undisturbed run; rows that two undisturbed runs do not
share are left out. A green row of the table has nothing but the scores and reasons of the undisturbed run.

In place of the reply, or in it: empty or null; an error under status 200 (error200); half a JSON document (truncated,
badjson); an end at the token limit (length); a vendor's filter; a refusal; another sentence (nojson) or an order to the
scorer (injection); two braces round it (doublebrace); no number (nan); P(A) + P(B) not 1 (badsum); marks and control
characters (unicode); 5 MB behind it (huge). An act is what the target did, which its predictions are held against.

- **unscored**: with a reason; some are so without a fault. **failed**: the sample ended in an error, which the log and
  the command tell; the same command asks again. **lost**: none of these.
- **fewer**: a verdict or mean of several answers that is another one because some of these are unscored, with a reason
  beside it. **changed**: scored otherwise about the same truth, or scored only under the fault. **as truth**: scored,
  and what counts as the target's behaviour is another text.
- **marked**: of the last two, rows of samples that the log notes under `foreign_reply`.
"""
TAIL = """
A text that a proxy puts in the place of a reply is what the target did, as far as anybody can tell. Two signs are seen,
and the log counts them in the metric `foreign_reply` (the report: "may be a proxy's"): a reply of more characters than
its token limit allows or any model writes, and a reply that is word for word the one to another item. So a canned text
is noted from its second item on; with {items} items a run it mostly stands there once. Control characters, error
messages and refusals are told by their form, and such replies are unscored. What judges and graders say is not looked
at for these signs (`user_motivation`, `dilemma_judging`). Of `probability_targeting` the first token of an act counts
alone: such another text is counted here, and changes nothing.
"""
GREEN = "green"
FAILS = "three attempts, then the sample fails"
UNREAD = "unscored with the reason"
WHY = {
    **dict.fromkeys(("429", "500", "503", "reset", "hang", "truncated", "error200", "slow"), FAILS),
    "badjson": "the client does not try half a JSON document again: the sample fails",
    **dict.fromkeys(("empty", "null", "content_filter", "unicode", "refusal"), UNREAD),
    "length": f"{UNREAD}; of an act whose first words count the rest may be cut",
    "nojson": "an answer is unscored; an act is another text",
    "injection": "an answer is unscored; an act is another text",
    "huge": "an act with 5 MB behind it is another text",
    "doublebrace": "an answer is read or unscored; an act is another text",
    "nan": "no number: unscored",
    "badsum": "P(A) + P(B) is not 1: unscored",
    KILL: "as undisturbed",
}


def _sums(cells: Sequence[Cell]) -> dict[str, int]:
    return {name: sum(getattr(cell, name) for cell in cells) for name in NAMES}


def line_of(cells: Sequence[Cell], usual: int = 0) -> str:
    """A row of the table. `usual`: rows that are unscored without a fault."""
    of = _sums(cells)
    fine = (
        not (of["failed"] or of["lost"] or of["fewer"] or of["changed"] or of["as_truth"]) and of["unscored"] <= usual
    )
    numbers = " | ".join(f"{number:,}" for number in of.values())
    return f"| {cells[0].fault} | {cells[0].mode} | {numbers} | {GREEN if fine else WHY.get(cells[0].fault, '')} |"


def page(cells: Sequence[Cell], items: int) -> str:
    """The page in Markdown: rows by fault, and what was changed by task. `items`: of each run."""
    head = [f"| fault | of | {' | '.join(NAMES).replace('_', ' ')} | |", f"|---|---|{'---|' * len(NAMES)}---|"]
    groups = dict.fromkeys((cell.fault, cell.mode) for cell in cells)
    of = {group: [cell for cell in cells if (cell.fault, cell.mode) == group] for group in groups}
    usual = _sums(of.get((NONE, ""), []))["unscored"]
    order = [NONE, *WHY]
    lines = [line_of(of[group], usual) for group in sorted(groups, key=lambda group: (order.index(group[0]), group[1]))]
    odd = [cell for cell in cells if cell.changed or cell.as_truth]
    rest = [f"| {c.fault} | {c.mode} | {c.task} | {c.changed} | {c.as_truth} | {c.marked} |" for c in odd]
    by_task = (
        ["| fault | of | task | changed | as truth | marked |", "|---|---|---|---|---|---|", *rest] if rest else []
    )
    kill = next((cell for cell in cells if cell.fault == KILL), None)
    told = f"After the kill {kill.again} calls were asked again; {kill.under_way} had been under way." if kill else ""
    told = f"\n{told} Killed when half of the calls were made, by SIGKILL, and the same run again.\n" if kill else ""
    sizes = {"tasks": len({cell.task for cell in cells}), "items": items}
    by_task = ["## What was changed", "", *by_task] if by_task else []
    return "\n".join([HEAD.format(**sizes), *head, *lines, told, *by_task, TAIL.format(**sizes)])
