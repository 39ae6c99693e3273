"""Tables of awareness logs: what the logs say, and which label each set stands for."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import pandas as pd
from inspect_ai.log import EvalSample, EvalSampleSummary
from inspect_ai.tool import ToolInfo

from selfprobe.data.conversations import OPPOSITE, REFERENCE, counted_label, stands_for
from selfprobe.data.messages import tools_text
from selfprobe.logs import Runs, roles_of, samples
from selfprobe.logs import runs as runs_in
from selfprobe.scorers.awareness import Item, answers_with, quotes_in
from selfprobe.scorers.decision import Decision, last_decisions, last_score
from selfprobe.scorers.votes import PANEL, SAMPLE_ERROR, Ballot, Panel, ballot
from selfprobe.solvers.converse import METHODS
from selfprobe.solvers.sent import applied_in, substitutes_in
from selfprobe.studies.awareness.panel_section import Panels
from selfprobe.studies.awareness.runs import ARM, chosen_of, missing, named

ABOUT = ("source", "domain", "format", "agentic", "language", "turns", "pair", "flip", "set")
"""Columns that a sample's metadata tells of a conversation."""


@dataclass(frozen=True)
class Logged:
    """All that a set of awareness logs says; `data` (the data set's hash) and `item` tell conversations apart."""

    verdicts: pd.DataFrame
    """One row an arm × conversation × epoch: said, unscored, probability, score, truth, reasoned, source, domain,
    format, agentic, language, turns, pair, flip, set, decisions (how many were asked), log, read (whose replies,
    `runs.Run.read`); votes_asked, votes_read and
    could (the verdicts that lost votes leave possible: "evaluation", "deployment", "either"); turned, contradicted
    (questions asked both ways round, and those with two verdicts); yes, yes_asked, first, first_asked (answers "yes"
    and first options, of how many); quotes, quotes_discarded."""
    votes: pd.DataFrame
    """One row an arm × conversation × epoch × variant: said, probability, unscored."""
    texts: pd.DataFrame
    """One row a conversation: text, source, label, pair, set."""
    runs: pd.DataFrame
    """One row a log: arm, samples, grader, dataset, and which rows of the data set were set aside."""
    ignored: Mapping[str, str] = field(default_factory=dict)
    """Log → why it is not used."""
    missing: Sequence[str] = ()
    """Arms without a finished run, and runs that lack conversations, each with what to do."""
    panels: Panels = field(default_factory=dict)
    """Verdicts of each grader of a panel, by arm."""
    contrast: str = ""
    """Labels that your set and a reference stand for, where the labels are theirs (`told_by_set`)."""


def load(paths: Sequence[str]) -> Logged:
    """Tables of all finished awareness logs under these paths; `chosen` decides between equal arms and data sets.

    Raises:
        NoLogs: There is none.
    """
    return tables(runs_in(paths, METHODS, repeats=True), paths)


def tables(there: Runs, paths: Sequence[str] = (), limit: int | None = None) -> Logged:
    """Tables of the finished runs; raises as `load`.

    Args:
        there: Runs of the five methods.
        paths: Paths that were searched, for messages.
        limit: Number of items of each run that count; None is all.
    """
    verdicts: list[dict[str, Any]] = []
    votes: list[dict[str, Any]] = []
    texts: dict[tuple[str, str], dict[str, Any]] = {}
    panels: dict[str, list[tuple[str, Panel]]] = {}
    runs = []
    logs, ignored = chosen_of(there, paths, limit)
    for arm, run in logs.items():
        log = run.header
        keys = dict(zip([*ARM, "data"], arm, strict=True))
        about = log.eval.metadata or {}
        for sample in run.samples:
            first, *rest = _decisions(sample, str(keys["method"]))
            row = keys | {"item": str(sample.id), "epoch": sample.epoch}
            known = {name: sample.metadata.get(name) for name in ABOUT}
            also = {"decisions": about.get("decisions"), "log": log.location, "read": run.read}
            also |= _counts(sample, first, rest)
            verdicts.append(row | known | first.model_dump() | also)
            votes += [row | decision.model_dump() for decision in rest]
        if any((keys["data"], str(sample.id)) not in texts for sample in run.samples):
            texts |= {(keys["data"], str(sample.id)): _text(sample) for sample in samples(log.location)}
        scores = [(str(sample.id), last_score(sample.scores)) for sample in run.samples]
        panels[named(arm)] = [(item, of) for item, s in scores if s and (of := (s.metadata or {}).get(PANEL))]
        graders = roles_of(log).get("grader", [])
        runs.append(
            keys
            | {"dataset": about.get("dataset"), "log": log.location, "samples": len(run.samples)}
            | {"set_aside": about.get("set_aside"), "unread": about.get("unread")}
            | {"grader": ", ".join(one.model for one in graders)}
            | {"applied": "; ".join(f"{role}: {told}" for role, told in applied_in(run.samples).items())}
            | {"substitutes": " ".join(substitutes_in(run.samples))}
        )
    rows = [{"data": data} | text for (data, _), text in texts.items()]
    told = tuple(missing([run.header for run in there.counted], logs, limit))
    made, voted, asked, used = (pd.DataFrame(of) for of in (verdicts, votes, rows, runs))
    return Logged(made, voted, asked, used, ignored, told, panels)


def _decisions(sample: EvalSampleSummary, method: str) -> list[Decision]:
    """The verdict and the votes; a sample that failed has an unscored verdict."""
    failed = Decision(key=method, unscored=SAMPLE_ERROR, truth=sample.metadata.get("label"))
    return last_decisions(sample.scores) or [failed]


def _counts(sample: EvalSampleSummary, verdict: Decision, votes: Sequence[Decision]) -> dict[str, object]:
    """Counts of what was read of the votes, and of the grader's quotes."""
    found, score = ballot(verdict, votes), last_score(sample.scores)
    details = (score.metadata if score else None) or {}
    kept, discarded = quotes_in(details)
    (yes, yes_asked), (first, first_asked) = answers_with(details, "yes"), answers_with(details, "first")
    return {
        "votes_asked": found.asked,
        "votes_read": found.read,
        "could": found.could,
        "turned": found.turned,
        "contradicted": found.contradicted,
        "yes": yes,
        "yes_asked": yes_asked,
        "first": first,
        "first_asked": first_asked,
        "quotes": kept + discarded,
        "quotes_discarded": discarded,
    }


def _text(sample: EvalSample) -> dict[str, Any]:
    messages = sample.input if isinstance(sample.input, list) else []
    text = "\n".join(message.text for message in messages) if messages else str(sample.input)
    if tools := [ToolInfo.model_validate(tool) for tool in sample.metadata.get("tools", ())]:
        text = f"{tools_text(tools)}\n{text}"
    about = {name: sample.metadata.get(name) for name in ("label", "source", "pair", "set")}
    return {"item": str(sample.id), "text": text} | about


def told_by_set(logged: Logged) -> Logged:
    """Tables with the sets as labels, where your rows have one label or none and a reference is there.

    `sources.reference.stands_for` says what each set stands for. Where your rows have both labels, the numbers by label
    are of them alone. Without a reference nothing changes.
    """
    texts = logged.texts
    if "set" not in texts:
        return logged
    rows = list(_rows(texts, "label"))
    own = stands_for(rows)
    if own is None:
        return logged
    made = [_told(frame, column, own) for frame, column in ((texts, "label"), (logged.verdicts, "truth"))]
    beside = sum(label == own for of_set, label in rows if of_set == REFERENCE)
    left = f" {beside} of its rows, labelled {own}, stand for neither." if beside else ""
    told = f"Your prompts stand for {own} and the reference for {OPPOSITE.get(own)} in every rate and AUROC.{left}"
    return replace(logged, texts=made[0], verdicts=made[1], contrast=told if own else "")


def _rows(frame: pd.DataFrame, column: str) -> Iterable[tuple[str | None, str | None]]:
    """Set and label of each row; what is missing is None."""
    known = frame[["set", column]].astype(object).where(frame[["set", column]].notna(), None)
    return zip(known["set"], known[column], strict=True)


def _told(frame: pd.DataFrame, column: str, own: str) -> pd.DataFrame:
    """The column with the labels that rows count with."""
    labels = [counted_label(own, of_set, label) for of_set, label in _rows(frame, column)]
    return frame.assign(**{column: pd.Series(labels, index=frame.index, dtype=object)})


def items_of(rows: pd.DataFrame) -> list[Item]:
    """Verdict rows as the scorer's items."""
    known = rows.astype(object).where(rows.notna(), None)
    fields = [name for name in Decision.model_fields if name in known]
    return [
        Item(
            decision=Decision(**{"key": row["method"]} | {name: row[name] for name in fields}),
            source=str(row["source"]),
            flip=bool(row["flip"]),
            votes=_ballot(row),
            details=_details(row),
            conversation=f"{row.get('data')} {row.get('pair') or row['item']}",
            of_set=str(row.get("set") or ""),
        )
        for row in known.to_dict("records")
    ]


def _ballot(row: dict[str, Any]) -> Ballot | None:
    if "could" not in row:
        return None
    return Ballot(
        row["votes_asked"], row["votes_read"], row["could"], row.get("turned") or 0, row.get("contradicted") or 0
    )


def _details(row: dict[str, Any]) -> dict[str, Any]:
    """Details of the grader's quotes, and of the answers by word, from a score's metadata."""
    found: dict[str, Any] = {
        name: dict(enumerate([True] * row[name] + [False] * (row[f"{name}_asked"] - row[name])))
        for name in ("yes", "first")
        if row.get(f"{name}_asked")
    }
    if "quotes" in row:
        found["quoted"] = {"kept": row["quotes"] - row["quotes_discarded"], "discarded": row["quotes_discarded"]}
    return found
