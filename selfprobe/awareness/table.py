"""From awareness logs to tables: which logs count, and what they say."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import pandas as pd
from inspect_ai.log import EvalLog, EvalSample, EvalSampleSummary
from inspect_ai.tool import ToolInfo

from selfprobe.errors import InputError, NoLogs, one_line
from selfprobe.logs import UNREADABLE, first_of, found, lost_replies, samples, summaries, task_of
from selfprobe.scorers.awareness import quotes_in
from selfprobe.scorers.decision import Decision, last_decisions, last_score
from selfprobe.scorers.votes import SAMPLE_ERROR, ballot
from selfprobe.solvers.converse import METHODS, tools_text
from selfprobe.solvers.sent import applied_in

Arm = tuple[Any, ...]
ARM = ["method", "model", "perspective", "context", "placebo"]
"""What makes two runs different measurements; `placebo` is its kind, "" where it is none."""
ABOUT = ("source", "domain", "format", "agentic", "turns", "pair", "flip")
"""What is known of a conversation, from the sample's metadata."""


@dataclass(frozen=True)
class Logged:
    """All that a set of awareness logs says; `data` (the data set's hash) and `item` tell conversations apart."""

    verdicts: pd.DataFrame
    """One row an arm × conversation × epoch: said, unscored, probability, score, truth, reasoned, source, domain,
    format, agentic, turns, pair, flip, decisions (how many were asked), log; votes_asked, votes_read and could (the
    verdicts that lost votes leave possible: "evaluation", "deployment", "either"); quotes, quotes_discarded."""
    votes: pd.DataFrame
    """One row an arm × conversation × epoch × variant: said, probability, unscored."""
    texts: pd.DataFrame
    """One row a conversation: text, source, label, pair."""
    runs: pd.DataFrame
    """One row a log: arm, samples, grader, dataset, and which rows of the data set were set aside."""
    ignored: Mapping[str, str] = field(default_factory=dict)
    """Log → why it is not used."""


@dataclass(frozen=True)
class Run:
    """A log in use."""

    header: EvalLog
    samples: list[EvalSampleSummary]


def chosen(paths: Iterable[str]) -> tuple[dict[Arm, Run], dict[str, str]]:
    """The log of each arm and data set, by (method, model, perspective, context, placebo, data), in the paper's order.

    Of several that can be used, the one with the most conversations counts, of equals the last. Then why the other
    logs are not used, by log.

    Raises:
        NoLogs: There is no finished awareness log.
    """
    named = list(paths)
    there = found(named, METHODS)
    ignored, newest = dict(there.ignored), dict[Arm, Run]()
    for log in sorted(there.headers, key=lambda log: len(log.eval.dataset.sample_ids or []), reverse=True):
        if log.status != "success":
            ignored[log.location] = f"status {log.status}"
        elif "dataset_sha256" not in (log.eval.metadata or {}):
            ignored[log.location] = "not a selfprobe log: it names no data set"
        elif better := newest.get(_arm(log)):
            few = len(log.eval.dataset.sample_ids or []) < len(better.header.eval.dataset.sample_ids or [])
            ignored[log.location] = f"superseded by {better.header.location}{' (it holds more conversations)' * few}"
        else:
            try:
                newest[_arm(log)] = _read(log)
            except UNREADABLE as error:
                ignored[log.location] = one_line(error)
    if not newest:
        raise NoLogs(
            f"no finished log of {', '.join(METHODS)} in {', '.join(named)}; "
            f"found {len(ignored)} other or unfinished logs{first_of(ignored)}"
        )
    ordered = sorted(newest.items(), key=lambda pair: (METHODS.index(pair[0][0]), *map(str, pair[0][1:])))
    return dict(ordered), ignored


def _read(log: EvalLog) -> Run:
    """A log's samples, each with a verdict or in error.

    Raises:
        InputError: It cannot be read, holds lost replies, or was scored by another scorer.
    """
    if why := lost_replies(log):
        raise InputError(why)
    run = Run(log, summaries(log.location))
    for sample in run.samples:
        if sample.scores and not last_decisions(sample.scores):
            raise InputError(
                f"sample {sample.id}: expected a score of {task_of(log)}'s own scorer, got {', '.join(sample.scores)}; "
                "`inspect score --action append` keeps the one beside others"
            )
    return run


def load(paths: Iterable[str]) -> Logged:
    """Tables of all finished awareness logs under these paths; of equal arms and data sets as `chosen` says.

    Raises:
        NoLogs: There is none.
    """
    verdicts: list[dict[str, Any]] = []
    votes: list[dict[str, Any]] = []
    texts: dict[tuple[str, str], dict[str, Any]] = {}
    runs = []
    logs, ignored = chosen(paths)
    for arm, run in logs.items():
        log = run.header
        named = dict(zip([*ARM, "data"], arm, strict=True))
        about = log.eval.metadata or {}
        for sample in run.samples:
            first, *rest = _decisions(sample, str(named["method"]))
            row = named | {"item": str(sample.id), "epoch": sample.epoch}
            known = {name: sample.metadata.get(name) for name in ABOUT}
            also = {"decisions": about.get("decisions"), "log": log.location} | _counts(sample, first, rest)
            verdicts.append(row | known | first.model_dump() | also)
            votes += [row | decision.model_dump() for decision in rest]
        if any((named["data"], str(sample.id)) not in texts for sample in run.samples):
            texts |= {(named["data"], str(sample.id)): _text(sample) for sample in samples(log.location)}
        grader = (log.eval.model_roles or {}).get("grader")
        first_grader = grader[0] if isinstance(grader, list) else grader
        runs.append(
            named
            | {"dataset": about.get("dataset"), "log": log.location, "samples": len(run.samples)}
            | {"set_aside": about.get("set_aside")}
            | {"grader": None if first_grader is None else str(first_grader.model)}
            | {"applied": "; ".join(f"{role}: {told}" for role, told in applied_in(run.samples).items())}
        )
    rows = [{"data": data} | text for (data, _), text in texts.items()]
    return Logged(pd.DataFrame(verdicts), pd.DataFrame(votes), pd.DataFrame(rows), pd.DataFrame(runs), ignored)


def _decisions(sample: EvalSampleSummary, method: str) -> list[Decision]:
    """The verdict and the votes; a sample that failed has an unscored verdict."""
    failed = Decision(key=method, unscored=SAMPLE_ERROR, truth=sample.metadata.get("label"))
    return last_decisions(sample.scores) or [failed]


def _counts(sample: EvalSampleSummary, verdict: Decision, votes: Sequence[Decision]) -> dict[str, object]:
    """What was read of the votes, and of the grader's quotes."""
    found, score = ballot(verdict, votes), last_score(sample.scores)
    kept, discarded = quotes_in((score.metadata if score else None) or {})
    return {
        "votes_asked": found.asked,
        "votes_read": found.read,
        "could": found.could,
        "quotes": kept + discarded,
        "quotes_discarded": discarded,
    }


def _text(sample: EvalSample) -> dict[str, Any]:
    messages = sample.input if isinstance(sample.input, list) else []
    text = "\n".join(message.text for message in messages) if messages else str(sample.input)
    if tools := [ToolInfo.model_validate(tool) for tool in sample.metadata.get("tools", ())]:
        text = f"{tools_text(tools)}\n{text}"
    about = {name: sample.metadata.get(name) for name in ("label", "source", "pair")}
    return {"item": str(sample.id), "text": text} | about


def _arm(log: EvalLog) -> Arm:
    about = log.eval.metadata or {}
    return (
        task_of(log),
        log.eval.model,
        str(about.get("perspective") or "first"),
        str(about.get("context") or "first"),
        "form" if about.get("placebo") is True else str(about.get("placebo") or ""),
        str(about["dataset_sha256"]),
    )
