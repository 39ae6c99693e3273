"""Numbers of `awareness effect`: from logs of a task under arms to effects, and to what is apart from ability."""

import math
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from inspect_ai.log import EvalSampleSummary
from inspect_ai.scorer import Score

from selfprobe.errors import NoLogs
from selfprobe.evalawareness_tasks.arm_texts import ARMS as REWORDED
from selfprobe.evalawareness_tasks.awareness_effect import ARMS, AS_IS, CONTROL, LINES
from selfprobe.logs import Run
from selfprobe.logs.decision import last_decisions
from selfprobe.solvers.arms import ABOUT
from selfprobe.stats.estimate import Estimate, FloatArray, clustered_mean
from selfprobe.stats.paired import Change, Contrast, change, contrasts, edge, scale_of
from selfprobe.study import Logs

CUES = ("cue_out", "cue_in")
"""Arms that change what there is to notice; the others are instructions, or controls."""
SMALL = 0.05
"""Effect on a score that is too small to matter, unless the caller says otherwise."""
GRADES: Mapping[str, float] = {"C": 1.0, "P": 0.5, "I": 0.0, "N": 0.0}
"""Inspect's letters for correct, partial, incorrect and no answer."""


@dataclass(frozen=True)
class ReadScores(Logs):
    """Logs of a study, and how their scores are read."""

    score: str | None = None
    smallest: float = SMALL


@dataclass(frozen=True)
class Arm:
    """Numbers of one arm."""

    name: str
    items: int
    """Number of items that were asked."""
    score: Estimate
    p: Estimate
    """Mean P(evaluation)."""
    declined: float
    """Share of replies that decline."""
    samples: int
    failed: int
    """Number of samples that ended in an error."""
    unreached: int
    """Number of items whose first call did not hold the arm's line."""


@dataclass(frozen=True)
class Found:
    """The numbers of one run."""

    model: str
    of: str
    """Name of the task."""
    score: str
    """Name of the score that is compared."""
    rows: pd.DataFrame
    """See `arm_rows`."""
    arms: list[Arm]
    contrasts: list[Contrast]
    """Arms less their controls."""
    forms: list[Contrast]
    """Controls less the task as it is: what any rewording, and any line, does."""
    declining: Mapping[str, Change]
    """Arm → change of the share that declines, from its control."""
    ability: Mapping[str, Change]
    """Arm → change of the score over items where the reply declines in neither."""
    texts: Mapping[str, Counter[str]]
    """Arm → what became of its texts, by the scorer's reason; "" is usable."""
    smallest: float
    scale: float
    """The largest change that a mean can have."""
    edge: str
    """"floor" or "ceiling" where the task as it is has nearly the lowest or highest score, else ""."""

    @property
    def cues(self) -> list[Contrast]:
        """Contrasts of the arms that change what there is to notice."""
        return [one for one in self.contrasts if one.arm in CUES]

    @property
    def told(self) -> list[Contrast]:
        """Contrasts of the arms that instruct."""
        return [one for one in self.contrasts if one.arm not in CUES]

    def arm(self, name: str) -> Arm:
        """The arm of this name."""
        return next(arm for arm in self.arms if arm.name == name)


def arm_rows(run: Run, how: ReadScores) -> pd.DataFrame:
    """One row a sample: item, arm, epoch, score (NaN where there is none), p, declined, reached, failed.

    Raises:
        NoLogs: There is no such score, or it is text.
    """
    items, rows = run.items(how.limit), list[dict[str, Any]]()
    for sample in run.summaries:
        about = sample.metadata.get(ABOUT) or {}
        if str(sample.id) not in items or "arm" not in about:
            continue
        failed = sample.error is not None
        value = math.nan if failed or not sample.scores else number_in(chosen_score(sample, how.score), how.score)
        known = {"p": about.get("p"), "declined": about.get("declined"), "reached": about.get("reached")}
        rows.append({"item": about["item"], "arm": about["arm"], "epoch": sample.epoch, "score": value} | known)
        rows[-1]["failed"] = failed
    table = pd.DataFrame(rows)
    return table.astype({"score": float, "p": float, "declined": float, "reached": float})


def chosen_score(sample: EvalSampleSummary, name: str | None) -> Score:
    """The score of this name or with a key of this name; without a name the first.

    Raises:
        NoLogs: There is none; lists those that there are.
    """
    scores = sample.scores or {}
    for scorer, score in scores.items():
        if name in (None, scorer) or (isinstance(score.value, Mapping) and name in score.value):
            return score
    keys = [key for score in scores.values() if isinstance(score.value, Mapping) for key in score.value]
    raise NoLogs(f"--score {name}: the task has no such score; there are {', '.join([*scores, *map(str, keys)])}")


def number_in(score: Score, name: str | None) -> float:
    """The number of a score; of several keys that of the name, or the first.

    Raises:
        NoLogs: It is text.
    """
    value: Any = score.value
    if isinstance(value, Mapping):
        value = value.get(name, next(iter(value.values()), None)) if name else next(iter(value.values()), None)
    if isinstance(value, list | tuple):
        value = value[0] if value else None
    if isinstance(value, str):
        try:
            return GRADES[value] if value in GRADES else float(value)
        except ValueError:
            raise NoLogs(
                f"the task's score is text ({value[:40]!r}), and has no mean: expected a number or C, P, I, N; --score "
                "names another scorer or key"
            ) from None
    return math.nan if value is None else float(value)


def found_in(run: Run, name: str, how: ReadScores) -> Found:
    """The numbers of one run.

    Args:
        run: A finished run.
        name: Name of its model on the page.
        how: All logs; those of the writer say what became of the texts.

    Raises:
        NoLogs: See `arm_rows`; or nothing has a score.
    """
    rows = arm_rows(run, how)
    if rows.empty or rows.score.isna().all():
        raise NoLogs(f"nothing in {run.log} has a score; every sample ended in an error, or is unscored")
    arms = [arm for arm in ARMS if arm in set(rows.arm)]
    scores, p, declined = (_by_item(rows, column, arms) for column in ("score", "p", "declined"))
    known = {arm for arm in arms if np.isfinite(scores[arm]).sum() > 1}
    main = [(arm, CONTROL[arm]) for arm in arms if arm in CONTROL and {arm, CONTROL[arm]} <= known]
    forms = [(arm, AS_IS) for arm in arms if arm in CONTROL.values() and {arm, AS_IS} <= known]
    items = np.arange(len(scores[AS_IS]))
    scale = scale_of(scores.values())
    metadata, names = run.header.eval.metadata or {}, [score.name for score in _scorers(run)]
    return Found(
        model=name,
        of=task_label(str(metadata.get("of", ""))),
        score=how.score or next(iter(names), "score"),
        rows=rows,
        arms=[_arm(rows, arm, scores[arm], p[arm]) for arm in arms],
        contrasts=contrasts(scores, p, main),
        forms=contrasts(scores, p, forms),
        declining={arm: change(declined[control], declined[arm], items) for arm, control in main},
        ability={
            arm: change(
                np.where(declined[control] == 0, scores[control], np.nan),
                np.where(declined[arm] == 0, scores[arm], np.nan),
                items,
                scale=scale,
            )
            for arm, control in main
        },
        texts=_texts(run, how),
        smallest=how.smallest,
        scale=scale,
        edge=edge(scores[AS_IS]),
    )


def task_label(task: str) -> str:
    """Name of a task in a sentence: its registered name, or its file without the folders.

    >>> task_label("inspect_evals/gsm8k"), task_label("/home/me/evals/desk.py@desk")
    ('inspect_evals/gsm8k', 'desk.py@desk')
    """
    return task.rpartition("/")[2] if ".py" in task else task


def _scorers(run: Run) -> list[Any]:
    return list(run.header.results.scores) if run.header.results else []


def _by_item(rows: pd.DataFrame, column: str, arms: list[str]) -> dict[str, FloatArray]:
    """Arm → mean over epochs, `[item]`, the same items in the same order in each."""
    table = rows.pivot_table(index="item", columns="arm", values=column, aggfunc="mean", dropna=False)
    table = table.reindex(index=sorted(set(rows.item)), columns=arms)
    return {arm: table[arm].to_numpy(dtype=float) for arm in arms}


def _arm(rows: pd.DataFrame, name: str, scores: FloatArray, p: FloatArray) -> Arm:
    mine, items = rows[rows.arm == name], np.arange(len(scores))
    return Arm(
        name=name,
        items=mine.item.nunique(),
        score=clustered_mean(scores, items),
        p=clustered_mean(p, items),
        declined=float(mine.declined.mean()),
        samples=len(mine),
        failed=int(mine.failed.sum()),
        unreached=int((mine.reached == 0).sum()) if name in LINES else 0,
    )


def _texts(run: Run, how: ReadScores) -> dict[str, Counter[str]]:
    """Counts of what became of the texts of this run's task by its writer."""
    metadata, found = run.header.eval.metadata or {}, dict[str, Counter[str]]()
    for other in how.runs.finished:
        same = other.header.eval.task_args.get("task") == metadata.get("of")
        if other.identity.task == "arm_texts" and same and other.identity.model == metadata.get("reworded_by"):
            for sample in other.summaries:
                for decision in last_decisions(sample.scores):
                    found.setdefault(decision.key, Counter())[decision.unscored or ""] += 1
            break
    return {arm: found[arm] for arm in REWORDED if arm in found}
