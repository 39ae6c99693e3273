"""From awareness logs to tables: which logs count, and what they say."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import pandas as pd
from inspect_ai.log import EvalLog, EvalSample, EvalSampleSummary

from selfprobe.errors import InputError
from selfprobe.logs import found, lost_replies, samples, summaries, task_of
from selfprobe.scorers.decision import Decision, last_decisions
from selfprobe.solvers.converse import METHODS

Arm = tuple[Any, ...]
ARM = ["method", "model", "perspective", "context", "placebo"]
"""What makes two runs different measurements."""
ABOUT = ("source", "domain", "format", "agentic", "turns", "pair", "flip")
"""What is known of a conversation, from the sample's metadata."""
SAMPLE_ERROR = "error"
"""Why a conversation whose sample failed is unscored."""


@dataclass(frozen=True)
class Logged:
    """All that a set of awareness logs says; `data` (the data set's hash) and `item` tell conversations apart."""

    verdicts: pd.DataFrame
    """One row an arm × conversation × epoch: said, unscored, probability, score, truth, reasoned, source, domain,
    format, agentic, turns, pair, flip, decisions (how many were asked), log."""
    votes: pd.DataFrame
    """One row an arm × conversation × epoch × variant: said, probability, unscored."""
    texts: pd.DataFrame
    """One row a conversation: text, source, label, pair."""
    runs: pd.DataFrame
    """One row a log: arm, samples, grader, dataset."""


def chosen(paths: Iterable[str]) -> dict[Arm, EvalLog]:
    """The last finished log of each arm and data set, by (method, model, perspective, context, placebo, data).

    Methods come in the paper's order.

    Raises:
        InputError: There is no finished awareness log.
    """
    named = list(paths)
    there = found(named, METHODS)
    ours = [log for log in there.headers if "dataset_sha256" in (log.eval.metadata or {})]
    finished = [log for log in ours if log.status == "success"]
    ignored = there.ignored | {log.location: f"status {log.status}" for log in there.headers if log not in finished}
    newest: dict[Arm, EvalLog] = {}
    for log in finished:
        if why := "" if _arm(log) in newest else lost_replies(log):
            ignored[log.location] = why
        else:
            newest.setdefault(_arm(log), log)
    if not newest:
        told = "".join(f"; {log}: {why}" for log, why in list(ignored.items())[:3])
        raise InputError(
            f"no finished log of {', '.join(METHODS)} in {', '.join(named)}; "
            f"found {len(ignored)} other or unfinished logs{told}"
        )
    return dict(sorted(newest.items(), key=lambda pair: (METHODS.index(pair[0][0]), *map(str, pair[0][1:]))))


def load(paths: Iterable[str]) -> Logged:
    """Tables of all finished awareness logs under these paths; the last of equal arms and data sets wins.

    Raises:
        InputError: There is none.
    """
    verdicts: list[dict[str, Any]] = []
    votes: list[dict[str, Any]] = []
    texts: dict[tuple[str, str], dict[str, Any]] = {}
    runs = []
    for arm, log in chosen(paths).items():
        named = dict(zip([*ARM, "data"], arm, strict=True))
        about = log.eval.metadata or {}
        seen = summaries(log.location)
        for sample in seen:
            first, *rest = _decisions(sample, str(named["method"]), log.location)
            row = named | {"item": str(sample.id), "epoch": sample.epoch}
            known = {name: sample.metadata.get(name) for name in ABOUT}
            also = {"decisions": about.get("decisions"), "log": log.location}
            verdicts.append(row | known | first.model_dump() | also)
            votes += [row | decision.model_dump() for decision in rest]
        if any((named["data"], str(sample.id)) not in texts for sample in seen):
            texts |= {(named["data"], str(sample.id)): _text(sample) for sample in samples(log.location)}
        grader = (log.eval.model_roles or {}).get("grader")
        first_grader = grader[0] if isinstance(grader, list) else grader
        runs.append(
            named
            | {"dataset": about.get("dataset"), "log": log.location, "samples": len(seen)}
            | {"grader": None if first_grader is None else str(first_grader.model)}
        )
    rows = [{"data": data} | text for (data, _), text in texts.items()]
    return Logged(pd.DataFrame(verdicts), pd.DataFrame(votes), pd.DataFrame(rows), pd.DataFrame(runs))


def _decisions(sample: EvalSampleSummary, method: str, log: str) -> list[Decision]:
    """The verdict and the votes; a sample that failed has an unscored verdict."""
    if not sample.scores:
        return [Decision(key=method, unscored=SAMPLE_ERROR, truth=sample.metadata.get("label"))]
    if found := last_decisions(sample.scores):
        return found
    raise InputError(
        f"{log}, sample {sample.id}: expected a score of {method}'s own scorer, got {', '.join(sample.scores)}; "
        "`inspect score --action append` keeps the one beside others"
    )


def _text(sample: EvalSample) -> dict[str, Any]:
    messages = sample.input if isinstance(sample.input, list) else []
    text = "\n".join(message.text for message in messages) if messages else str(sample.input)
    about = {name: sample.metadata.get(name) for name in ("label", "source", "pair")}
    return {"item": str(sample.id), "text": text} | about


def _arm(log: EvalLog) -> Arm:
    about = log.eval.metadata or {}
    return (
        task_of(log),
        log.eval.model,
        str(about.get("perspective") or "first"),
        str(about.get("context") or "first"),
        bool(about.get("placebo")),
        str(about["dataset_sha256"]),
    )
