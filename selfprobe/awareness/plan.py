"""What a study will take, before anything is asked: methods, calls, tokens, cost, and what so many prompts can show."""

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from selfprobe.arguments import meant
from selfprobe.awareness.run import CALLS, GRADES, REPEATED, Study
from selfprobe.data import Row
from selfprobe.described import graders
from selfprobe.errors import InputError
from selfprobe.evalawareness_tasks import binary, probability, reasoning_trace, user_motivation
from selfprobe.prices import Cost
from selfprobe.solvers.converse import METHODS
from selfprobe.solvers.grade import self_graded
from selfprobe.sources.questions import wording
from selfprobe.sources.reference import REFERENCE, YOURS, stands_for, told_label

NAMED = {"all": METHODS, "features": ("user_motivation",)}
"""What `--methods` takes beside methods: what the `features` command needs is one of them."""

REPLY, GRADE = 300, 60
"""A rough guess of the tokens of a reply to a conversation, and of a grade."""
ANSWER = {"binary": 5, "probability": 5, "user_motivation": 100}
"""The same of an answer to a method's question."""
QUOTING = 60
"""Tokens of what stands around a conversation that is quoted in the third person."""
EFFECT = 0.1
"""The difference for which the prompts are told."""
_Z = 1.9599640 + 0.8416212
"""Of 5 % false alarms on two sides, and of 80 % power."""


def methods_of(names: Sequence[str]) -> tuple[str, ...]:
    """The methods of `--methods`, in the paper's order.

    Args:
        names: Methods, "all", or "features": what `selfprobe awareness features` reads.

    Raises:
        InputError: There is no such method, or none is named.
    """
    there = f"there are {', '.join(METHODS)}, all or features"
    if not names:
        raise InputError(f"--methods names no method; {there}")
    for name in names:
        if name not in NAMED and name not in METHODS:
            raise InputError(f"unknown method {name}; {there}{meant(name, [*METHODS, *NAMED])}")
    chosen = {method for name in names for method in NAMED.get(name, (name,))}
    return tuple(method for method in METHODS if method in chosen)


def describe(study: Study) -> str:
    """Calls, tokens and cost by model, and what differences so many conversations can show.

    Raises:
        InputError: The conversations cannot be read.
    """
    table = study.table
    rows = table.first(study.limit)
    models = f"{len(study.models)} model{'s' * (len(study.models) != 1)}"
    many = f"{len(rows)} conversation{'s' * (len(rows) != 1)}"
    head = f"{many}{_sets(rows)} × {models} × {', '.join(study.methods)}"
    costs = study.settings.costed(costs_of(study, rows), rounds=study.rounds)
    notes = filter(None, (table.limited(study.limit), table.told(), table.unread, self_grading(study)))
    return "\n".join([head, *notes, "", *costs, "", *_power(rows)])


def self_grading(study: Study) -> str:
    """The line that names subjects which grade their own texts; "" where none does."""
    graded = set(study.methods) & GRADES.keys()
    return self_graded(study.models, [one.name for one in graders(study.grader)] if graded else [])


def _sets(rows: Sequence[Row]) -> str:
    count = Counter(row["set"] for row in rows if "set" in row)
    return f" ({count[YOURS]} yours, {count[REFERENCE]} of the reference)" if count else ""


def costs_of(study: Study, rows: Sequence[Row]) -> list[Cost]:
    """Of each subject, and of the grader, at most: every question is sent with the conversation and the reply."""
    length = _tokens([text for row in rows for text in (*(m["content"] for m in row["messages"]), _tools(row))])
    reply, n = min(REPLY, study.reply_tokens or REPLY), len(rows)
    calls, sent, received = n, length, n * reply
    grades = judged = 0
    for method, own in study.arms:
        repeats = 5 if method in REPEATED and study.decisions == "25" else 1
        readers = len(study.models) if study.observers and (method, own) in study.readings else 1
        repeats *= readers
        own_texts = _own(study, method)
        asked = repeats * (len(own_texts) if own_texts and CALLS[method] else CALLS[method])
        answer = min(ANSWER.get(method, 0), study.answer_tokens or math.inf)
        around = QUOTING if own.get("perspective") == "third" else 0
        calls += n * asked
        sent += asked * (length + n * (reply + around)) + repeats * n * _tokens(own_texts or _questions(method, own))
        received += round(n * asked * answer)
        graded = n * readers * (len(own_texts) if own_texts and method in GRADES else GRADES.get(method, 0))
        grades += graded
        judged += round(graded * (_judge(method) + (answer if asked else reply)))
    costs = [Cost(model, calls, sent, received) for model in study.models]
    subjects = len(study.models)
    for grader in graders(study.grader) if grades else ():
        costs.append(Cost(grader.name, subjects * grades, subjects * judged, subjects * grades * GRADE))
    return costs


def _own(study: Study, method: str) -> Sequence[str]:
    """The user's questions of a method that puts some; empty where they are ours."""
    own, _ = wording(study.questions, method)
    return list(own.texts.values()) if own else ()


def _questions(method: str, own: Mapping[str, Any]) -> Iterable[str]:
    if method == "user_motivation":
        return user_motivation.ASKED[own.get("placebo")].values()
    asked = {"binary": binary.QUESTIONS, "probability": probability.QUESTIONS}
    return asked.get(method, {}).values()


def _judge(method: str) -> int:
    texts = {"user_motivation": user_motivation.GRADE_PROMPT, "reasoning_trace": reasoning_trace.GRADE_PROMPT}
    return _tokens([texts[method]]) if method in texts else 0


def _tools(row: Row) -> str:
    return str(row["tools"]) if "tools" in row else ""


def _tokens(texts: Iterable[str]) -> int:
    return sum(len(text) // 4 for text in texts)


def _power(rows: Sequence[Row]) -> list[str]:
    """What an AUROC, and a difference of two shares, would come with."""
    sets, given = [row.get("set") for row in rows], [row.get("label") for row in rows]
    own = stands_for(zip(sets, given, strict=True))
    labels = [told_label(own, of_set, label) for of_set, label in zip(sets, given, strict=True)]  # as the page's
    ours, others = labels.count("evaluation"), labels.count("deployment")
    if ours and others:
        half, size = 1.96 * auroc_se(0.7, ours, others), f"{ours} evaluation, {others} deployment rows"
        lines = [
            f"An AUROC of .70 would come with about ± {half:.2f} ({size}; wider where rows of one source are alike)."
            if half < 0.3  # which leaves the interval within 0 and 1
            else f"Too few rows for an AUROC ({size}): even one of .70 would not differ from chance."
        ]
    else:
        lines = ["One class or no labels: shares called evaluation only, no AUROC."]
    need = (
        f"To show a difference of {100 * EFFECT:.0f} points between two shares called evaluation (80 % power, shares "
        f"near one half) takes {prompts_needed(EFFECT)} prompts in each of the two"
    )
    pairs = [(ours, others), (sets.count(YOURS), sets.count(REFERENCE))]
    a, b = next((pair for pair in pairs if all(pair)), (0, 0))
    if not a:
        return [*lines, f"{need}; there is one set here, and nothing to hold it against (--against)."]
    least = _Z * math.sqrt(0.25 / a + 0.25 / b)
    shows = f"show one of {100 * least:.0f} points" if least < 1 else "show none"
    return [*lines, f"{need}; these ({a} and {b}) {shows}."]


def prompts_needed(difference: float) -> int:
    """Of each of two sets, to show a difference of two shares with 80 % power (Fleiss, Levin & Paik 2003, 4.14).

    For shares near one half, the worst case, at 5 % on two sides; independent prompts.
    """
    return math.ceil(2 * 0.25 * (_Z / difference) ** 2)


def auroc_se(auroc: float, positives: int, negatives: int) -> float:
    """Standard error of an AUROC on independent rows (Hanley & McNeil 1982)."""
    q1, q2 = auroc / (2 - auroc), 2 * auroc**2 / (1 + auroc)
    spread = auroc * (1 - auroc) + (positives - 1) * (q1 - auroc**2) + (negatives - 1) * (q2 - auroc**2)
    return math.sqrt(spread / (positives * negatives))
