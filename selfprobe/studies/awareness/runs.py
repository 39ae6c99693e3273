"""What the runs of a folder say, as tables."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import pandas as pd
from inspect_ai.log import EvalSample
from inspect_ai.tool import ToolInfo

from selfprobe.data.conversations import OPPOSITE, REFERENCE, counted_label, stands_for
from selfprobe.data.messages import tools_text
from selfprobe.logs import (
    Runs,
    roles_of,
    runs,
)
from selfprobe.logs.decision import Decision
from selfprobe.logs.judged import FAILED, JudgedSample
from selfprobe.scorers.awareness import Item, quotes_in, yes_count_and_total
from selfprobe.scorers.votes import PANEL, Ballot, Panel, ballot, most_named
from selfprobe.solvers.converse import METHODS
from selfprobe.solvers.reply_notes import applied_in, remarks_in
from selfprobe.study.awareness_arms import ARM, Arm, ArmRun, arm_name, arm_runs_of, missing
from selfprobe.study.grader_agreement import Panels

CONVERSATION_COLUMNS = (
    "source",
    "domain",
    "format",
    "agentic",
    "language",
    "turns",
    "pair",
    "flip",
    "set",
)
"""Columns that a sample's metadata tells of a conversation."""


@dataclass(frozen=True)
class AwarenessTables:
    """All that a set of awareness logs says; `data` (the data set's hash) and `item` tell
    conversations apart.
    """

    verdicts: pd.DataFrame
    """One row an arm × conversation × epoch: said, unscored, probability, score, truth, reasoned,
    source, domain, format, agentic, language, turns, pair, flip, set, decisions (how many were
    asked), log, read (whose replies, `ArmRun.read`); votes_asked, votes_read and could (the
    verdicts that lost votes leave possible: "evaluation", "deployment", "either"); turned,
    contradicted (questions asked both ways round, and those with two verdicts); yes, yes_asked,
    first, first_asked (answers "yes" and first options, of how many); quotes, quotes_discarded;
    mass (probability of the words that a first token is read by); named_kind (of evaluation, ""
    without one, None where no grader was asked for it).
    """
    votes: pd.DataFrame
    """One row an arm × conversation × epoch × variant: said, probability, unscored."""
    texts: pd.DataFrame
    """One row a conversation: text, source, label, pair, set."""
    runs: pd.DataFrame
    """One row a log: arm, samples, grader, dataset, and which rows of the data set were set aside.
    """
    ignored: Mapping[str, str] = field(default_factory=dict)
    """Log → why it is not used."""
    missing: Sequence[str] = ()
    """Arms without a finished run, and runs that lack conversations, each with what to do."""
    panels: Panels = field(default_factory=dict)
    """Verdicts of each grader of a panel, by arm."""
    contrast: str = ""
    """Labels that your set and a reference stand for, where the labels are theirs (`told_by_set`).
    """
    arms: Mapping[Arm, ArmRun] = field(default_factory=dict)
    """Runs that the tables are of."""


def load_awareness(paths: Sequence[str]) -> AwarenessTables:
    """Tables of all finished awareness logs under these paths; `arm_runs` decides between equal
    arms and data sets.

    Raises:
        NoLogs: There is none.
    """
    return awareness_tables(runs(paths, METHODS, repeats=True), paths)


def awareness_tables(all_runs: Runs, paths: Sequence[str] = ()) -> AwarenessTables:
    """Tables of the finished runs; raises as `load_awareness`.

    Args:
        all_runs: Runs of the five methods.
        paths: Paths that were searched, for messages.
    """
    verdict_rows: list[dict[str, Any]] = []
    vote_rows: list[dict[str, Any]] = []
    text_rows: dict[tuple[str, str], dict[str, Any]] = {}
    run_rows: list[dict[str, Any]] = []
    panels: dict[str, list[tuple[str, Panel]]] = {}
    run_of_arm, unused_logs = arm_runs_of(all_runs, paths)
    for arm, arm_run in run_of_arm.items():
        arm_values = dict(zip([*ARM, "data"], arm, strict=True))
        data = arm_values["data"]
        for sample in arm_run.samples:
            sample_values = arm_values | {"item": sample.item, "epoch": sample.epoch}
            verdict, *votes = _verdict_and_votes(sample, str(arm_values["method"]))
            verdict_rows.append(sample_values | _verdict_row(arm_run, sample, verdict, votes))
            vote_rows += [sample_values | vote.model_dump() for vote in votes]

        lacks_texts = any((data, sample.item) not in text_rows for sample in arm_run.samples)
        if lacks_texts:
            for full_sample in arm_run.run.read_samples():
                text_rows[data, str(full_sample.id)] = {"data": data} | _text_row(full_sample)
        panels[arm_name(arm)] = _panels(arm_run)
        run_rows.append(arm_values | _run_row(arm_run))

    return AwarenessTables(
        verdicts=pd.DataFrame(verdict_rows),
        votes=pd.DataFrame(vote_rows),
        texts=pd.DataFrame(list(text_rows.values())),
        runs=pd.DataFrame(run_rows),
        ignored=unused_logs,
        missing=tuple(missing(all_runs.counted, run_of_arm)),
        panels=panels,
        arms=run_of_arm,
    )


def _verdict_and_votes(sample: JudgedSample, method: str) -> Sequence[Decision]:
    """The verdict and the votes; a sample without a score has an unscored verdict."""
    if sample.decisions:
        return sample.decisions
    label = sample.summary.metadata.get("label")
    return [Decision(key=method, unscored=FAILED, truth=label)]


def _verdict_row(
    arm_run: ArmRun, sample: JudgedSample, verdict: Decision, votes: Sequence[Decision]
) -> dict[str, Any]:
    """What a sample says beside its place: of the conversation, the verdict, its votes and the
    grader's quotes.
    """
    log = arm_run.header
    details = sample.details
    sample_ballot = ballot(verdict, votes)
    yes_count, yes_asked = yes_count_and_total(details, "yes")
    first_count, first_asked = yes_count_and_total(details, "first")
    kept_quotes, discarded_quotes = quotes_in(details)
    conversation = {name: sample.summary.metadata.get(name) for name in CONVERSATION_COLUMNS}
    return {
        **conversation,
        **verdict.model_dump(),
        "decisions": (log.eval.metadata or {}).get("decisions"),
        "log": log.location,
        "read": arm_run.read,
        "votes_asked": sample_ballot.asked,
        "votes_read": sample_ballot.read,
        "could": sample_ballot.could,
        "turned": sample_ballot.turned,
        "contradicted": sample_ballot.contradicted,
        "yes": yes_count,
        "yes_asked": yes_asked,
        "first": first_count,
        "first_asked": first_asked,
        "quotes": kept_quotes + discarded_quotes,
        "quotes_discarded": discarded_quotes,
        "mass": _answer_mass(details),
        "named_kind": _named_kind(details),
    }


def _named_kind(details: Mapping[str, Any]) -> str | None:
    """Kind of evaluation that most answers name, "" without one; None where no kind was asked for."""
    if "kinds" not in details:
        return None
    return most_named(details["kinds"].values()) or ""


def _answer_mass(details: Mapping[str, Any]) -> float:
    """Probability of the words that a first token is read by; NaN for another method."""
    masses = details.get("mass")
    return math.fsum(masses.values()) if masses else math.nan


def _panels(arm_run: ArmRun) -> list[tuple[str, Panel]]:
    """Item and the verdicts of its graders, of each sample that several graded."""
    panels = []
    for sample in arm_run.samples:
        panel = sample.details.get(PANEL)
        if panel:
            panels.append((sample.item, panel))
    return panels


def _run_row(arm_run: ArmRun) -> dict[str, Any]:
    log = arm_run.header
    metadata = log.eval.metadata or {}
    grader_names = [grader.model for grader in roles_of(log).get("grader", [])]
    summaries = [sample.summary for sample in arm_run.samples]
    settings_by_role = applied_in(summaries)
    role_settings = [f"{role}: {settings}" for role, settings in settings_by_role.items()]
    return {
        "dataset": metadata.get("dataset"),
        "log": log.location,
        "samples": len(arm_run.samples),
        "set_aside": metadata.get("set_aside"),
        "unread": metadata.get("unread"),
        "grader": ", ".join(grader_names),
        "applied": "; ".join(role_settings),
        "remarks": " ".join(remarks_in(summaries)),
    }


def _text_row(sample: EvalSample) -> dict[str, Any]:
    text = str(sample.input)
    if isinstance(sample.input, list) and sample.input:
        text = "\n".join(message.text for message in sample.input)
    tools = [ToolInfo.model_validate(tool) for tool in sample.metadata.get("tools", ())]
    if tools:
        text = f"{tools_text(tools)}\n{text}"
    conversation = {name: sample.metadata.get(name) for name in ("label", "source", "pair", "set")}
    return {"item": str(sample.id), "text": text} | conversation


def told_by_set(logged: AwarenessTables) -> AwarenessTables:
    """Tables with the sets as labels, where your rows have one label or none and a reference is
    there.

    `data.conversations.stands_for` says what each set stands for. Where your rows have both labels,
    the numbers by label are of them alone. Without a reference nothing changes.
    """
    if "set" not in logged.texts:
        return logged
    sets_and_labels = _sets_and_labels(logged.texts, "label")
    your_label = stands_for(sets_and_labels)
    if your_label is None:
        return logged
    contrast = ""
    if your_label:
        contrast = (
            f"Your prompts stand for {your_label} and the reference for {OPPOSITE.get(your_label)} "
            "in every rate and AUROC."
        )
        reference_labels = [label for of_set, label in sets_and_labels if of_set == REFERENCE]
        same_label_count = reference_labels.count(your_label)
        if same_label_count:
            contrast += (
                f" {same_label_count} of its rows, labelled {your_label}, stand for neither."
            )
    return replace(
        logged,
        texts=_with_set_labels(logged.texts, "label", your_label),
        verdicts=_with_set_labels(logged.verdicts, "truth", your_label),
        contrast=contrast,
    )


def _sets_and_labels(frame: pd.DataFrame, column: str) -> list[tuple[str | None, str | None]]:
    """Set and label of each row; what is missing is None."""
    columns = frame[["set", column]]
    cells = columns.astype(object).where(columns.notna(), None)
    return list(zip(cells["set"], cells[column], strict=True))


def _with_set_labels(frame: pd.DataFrame, column: str, your_label: str) -> pd.DataFrame:
    """The frame with the labels that its rows count with in this column."""
    labels = [
        counted_label(your_label, of_set, label)
        for of_set, label in _sets_and_labels(frame, column)
    ]
    return frame.assign(**{column: pd.Series(labels, index=frame.index, dtype=object)})


def verdict_items(rows: pd.DataFrame) -> list[Item]:
    """Verdict rows as the scorer's items."""
    rows_with_none = rows.astype(object).where(rows.notna(), None)
    decision_fields = [name for name in Decision.model_fields if name in rows_with_none]
    items = []
    for row in rows_with_none.to_dict("records"):
        decision_values = {name: row[name] for name in decision_fields}
        item = Item(
            decision=Decision(**{"key": row["method"]} | decision_values),
            source=str(row["source"]),
            flip=bool(row["flip"]),
            votes=_ballot(row),
            details=_details(row),
            conversation=f"{row.get('data')} {row.get('pair') or row['item']}",
            of_set=str(row.get("set") or ""),
        )
        items.append(item)
    return items


def _ballot(row: dict[str, Any]) -> Ballot | None:
    if "could" not in row:
        return None
    turned = row.get("turned") or 0
    contradicted = row.get("contradicted") or 0
    return Ballot(row["votes_asked"], row["votes_read"], row["could"], turned, contradicted)


def _details(row: dict[str, Any]) -> dict[str, Any]:
    """Details of the grader's quotes, and of the answers by word, from a score's metadata."""
    details: dict[str, Any] = {}
    for name in ("yes", "first"):
        asked_count = row.get(f"{name}_asked")
        if asked_count:
            answer_count = row[name]
            answers = [True] * answer_count + [False] * (asked_count - answer_count)
            details[name] = dict(enumerate(answers))
    if "quotes" in row:
        discarded_count = row["quotes_discarded"]
        kept_count = row["quotes"] - discarded_count
        details["quoted"] = {"kept": kept_count, "discarded": discarded_count}
    return details
