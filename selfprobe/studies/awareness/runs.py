"""The runs of a folder: which log counts for each arm, why the others do not, what is missing, and what they say.

Runs of one arm that were asked with other settings are arms of their own. Logs that read the same replies belong
together: those of one study do, since every method reads what the first one recorded, and what is compared with a run
has to have read the same replies as it.
"""

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice
from typing import Annotated, Any

import pandas as pd
from inspect_ai.log import EvalLog, EvalSample, EvalSampleSummary
from inspect_ai.model import ModelConfig
from inspect_ai.tool import ToolInfo

from selfprobe.data.conversations import OPPOSITE, REFERENCE, counted_label, stands_for
from selfprobe.data.messages import tools_text
from selfprobe.errors import InputError, NoLogs, one_line
from selfprobe.logs import (
    HOW_CALLED,
    UNREADABLE,
    Run,
    Runs,
    first_of,
    lost_replies,
    roles_of,
    runs,
    target_of,
    task_of,
)
from selfprobe.logs import runs as runs_in
from selfprobe.page import Block, Heading, RowTable, Section, Table, percent
from selfprobe.scorers.awareness import Item, answers_with, quotes_in
from selfprobe.scorers.decision import Decision, last_decisions, last_score
from selfprobe.scorers.votes import PANEL, SAMPLE_ERROR, Ballot, Panel, ballot, grader_pairs
from selfprobe.solvers.converse import METHODS
from selfprobe.solvers.record import record_of
from selfprobe.solvers.reply_notes import applied_in, remarks_in
from selfprobe.stats.estimate import Estimate
from selfprobe.text.safe import concealed, masked

LOOKED = 16
"""Number of conversations that are looked at: reading all takes ten times as long as the rest of a comparison."""
REPLY_TOKENS = "reply_tokens"

Place = tuple[str | int, int]
"""Sample id and epoch."""


@dataclass(frozen=True)
class ArmRun:
    """A run in use."""

    run: Run
    samples: list[EvalSampleSummary]
    read: str = ""
    """Run whose replies it read: equal in logs of one study; "" where nobody looked."""

    @property
    def header(self) -> EvalLog:
        """The run's log."""
        return self.run.header


def in_order(arms: Sequence[Sequence[ArmRun]], *, look: bool) -> list[list[tuple[ArmRun, str]]]:
    """The runs of each arm, the one that stands for it first, each with how it was asked otherwise than that one.

    The first, and each run that was asked as it was, has what was set in it otherwise than in any of the others.

    First is the run with the most conversations, then the fewest invalidated ones; of equals the one that read the
    replies that most arms read (a study's own, not a method that was asked again); of equals one with the settings of
    the newest; of those the earliest.

    Args:
        arms: All that read one model's replies to one data set.
        look: Whether the replies are looked at where each arm has one run.
    """
    every = [run for runs in arms for run in runs]
    if look or any(len(runs) > 1 for runs in arms):
        read = reply_groups({run.run.log: run for run in every})
        arms = [[replace(run, read=f"replies {read[run.run.log]}") for run in runs] for runs in arms]
    made = {run.read: run.header for runs in arms for run in runs if _records(run)}
    readers = Counter(read for runs in arms for read in {run.read for run in runs})
    return [
        _in_order(runs, readers, [settings_of(r.header, r.header if _records(r) else made.get(r.read)) for r in runs])
        for runs in arms
    ]


def _records(run: ArmRun) -> bool:
    """Whether the run asked for the replies that it read."""
    return not run.header.eval.task_args.get("target_log")


def _in_order(
    runs: Sequence[ArmRun], readers: Mapping[str, int], asked: Sequence[Mapping[str, str]]
) -> list[tuple[ArmRun, str]]:
    created = [str(run.header.eval.created) for run in runs]
    newest = asked[created.index(max(created))]
    lost = [len(arm_run.run.invalidated.provenance) for arm_run in runs]
    ranks = [
        (-arm_run.run.item_count, lost_samples, -readers[arm_run.read], bool(settings_apart(of, newest)), at)
        for arm_run, lost_samples, of, at in zip(runs, lost, asked, created, strict=True)
    ]
    first, *others = sorted(range(len(runs)), key=ranks.__getitem__)
    known = {
        n: value for at in others for n, value in settings_apart(asked[first], asked[at]).items() if value is not None
    }
    return [(runs[at], _mark(settings_apart(asked[at], asked[first]) or known)) for at in (first, *others)]


def _mark(settings: Mapping[str, str | None]) -> str:
    return ", ".join(f"no {name}" if value is None else f"{name} {value}" for name, value in settings.items())


def reply_groups(arm_runs: Mapping[str, ArmRun]) -> dict[str, int]:
    """The number of the group that each log is of; logs whose common conversations have equal replies are of one.

    Two runs that gave the same replies throughout, as a model at temperature 0 may, are of one group too.

    Args:
        arm_runs: The run of each log, by location; all of one data set and one writer of replies.
    """
    places = {
        log: [(sample.id, sample.epoch) for sample in arm_run.samples if sample.error is None]
        for log, arm_run in arm_runs.items()
    }
    held = Counter(place for of in places.values() for place in of)
    order = {place: at for at, place in enumerate(sorted(held, key=lambda place: (-held[place], str(place))))}
    found: dict[str, int] = {}
    groups: list[dict[Place, str]] = []
    for log in sorted(places, key=lambda log: len(places[log]), reverse=True):
        replies = _replies(arm_runs[log].run, sorted(places[log], key=order.__getitem__)[:LOOKED])
        found[log] = next((at for at, group in enumerate(groups) if _same(replies, group)), len(groups))
        if found[log] == len(groups):
            groups.append({})
        groups[found[log]] |= replies
    return found


def _same(replies: Mapping[Place, str], group: Mapping[Place, str]) -> bool:
    common = replies.keys() & group.keys()
    return bool(common) and all(replies[place] == group[place] for place in common)


def _replies(run: Run, places: Sequence[Place]) -> dict[Place, str]:
    """Each reply with all that was recorded of it; none of a log that cannot be read."""
    try:
        return {(sample.id, sample.epoch): act for sample in run.samples_at(places) if (act := _act(sample))}
    except InputError:
        return {}


def _act(sample: EvalSample) -> str | None:
    reply = record_of(sample).acts.get("reply")
    return reply.model_dump_json() if reply else None


def settings_of(log: EvalLog, recorded: EvalLog | None) -> dict[str, str]:
    """Settings that two runs of an arm share; the data set's hash in the version is that of the arm.

    Args:
        log: Log of a run.
        recorded: Log of the run whose replies it read, which says how long they could be; None where it is not there.
    """
    spec, about = log.eval, log.eval.metadata or {}
    own = ModelConfig(
        model=spec.model, config=spec.model_generate_config, base_url=spec.model_base_url, args=spec.model_args
    )
    roles = roles_of(log)
    models = {"": own} | {
        f" of {role if len(bound) == 1 else one.model}": one for role, bound in roles.items() for one in bound
    }
    given: dict[str, object] = {
        role: ",".join(one.model for one in bound) for role, bound in roles.items() if role != "target"
    }
    for of, model in models.items():
        given |= {f"model argument {name}{of}": value for name, value in concealed(model.args).items()}
        given |= {f"base_url{of}": model.base_url and masked(model.base_url)}
        given |= {f"{name}{of}": value for name, value in model.config.model_dump().items() if name not in HOW_CALLED}
    given |= {name: spec.task_args.get(name) for name in ("effort", "answer_tokens")}
    given |= {"decisions": about.get("decisions"), "version": str(spec.task_version).partition("+")[0]}
    told = {name: str(value) for name, value in given.items() if value is not None}
    if recorded is not None:
        told[REPLY_TOKENS] = str(recorded.eval.task_args.get(REPLY_TOKENS))
    return told


def settings_apart(ours: Mapping[str, str], theirs: Mapping[str, str]) -> dict[str, str | None]:
    """Ours where two runs were asked differently, None where it was not set.

    A limit of replies that one of them does not report is left out.
    """
    unknown = {REPLY_TOKENS} - (ours.keys() & theirs.keys())
    names = [name for name in sorted(ours.keys() | theirs.keys() - unknown) if ours.get(name) != theirs.get(name)]
    return {name: None if ours.get(name) == "None" else ours.get(name) for name in names if name not in unknown}


Arm = tuple[Any, ...]
PLAIN: dict[str, str | int] = {
    "perspective": "first",
    "context": "first",
    "placebo": "",
    "target": "",
    "wording": "",
    "run": 1,
}
"""Values of an arm where nothing else is asked for.

`placebo` is its kind, "" where it is none. `target` is the model whose replies the conversations hold, "" where it is
the model itself. `wording` is the short hash of the user's own questions, "" where they are ours. `run` is 1, or 2, 3 …
where the same was asked again.
"""
ARM = ["method", "model", *PLAIN]
"""Keys whose values make two runs different measurements."""
SHORT = 8
"""Number of a hash's characters that stand for it."""
RESUME = "the same command goes on with it"


def arm_runs(paths: Iterable[str]) -> tuple[dict[Arm, ArmRun], dict[str, str]]:
    """The log of each arm and data set, by the values of ARM (run 1) and the data set, in the paper's order.

    Where several can be used, run 1 is the one with the most conversations; of equals, that of the study with the
    most arms, then the earliest. Then why the other logs are not used, by log; second runs are not among them.

    Raises:
        NoLogs: There is no finished awareness log.
    """
    there = runs(paths, METHODS, repeats=True)
    used, aside = arm_runs_of(there, list(paths))
    return {arm: run for arm, run in used.items() if arm[ARM.index("run")] == 1}, aside


def arm_runs_of(there: Runs, paths: Sequence[str]) -> tuple[dict[Arm, ArmRun], dict[str, str]]:
    """`arm_runs` of these runs with all second runs, for messages under the paths as they were typed.

    A run that was asked otherwise (another grader, effort, answer limit …) is no second run: it is an arm of its own.
    The model of each is named with its settings that differ.
    """
    aside, held = dict(there.aside), dict[Arm, list[ArmRun]]()
    for counted in sorted(there.counted, key=lambda run: run.item_count, reverse=True):
        log = counted.header
        if not counted.finished:
            aside[log.location] = counted.why_unfinished
        elif "dataset_sha256" not in (log.eval.metadata or {}):
            aside[log.location] = "not a selfprobe log: it names no data set"
        else:
            try:
                run = _read(counted)
            except UNREADABLE as error:
                aside[log.location] = one_line(error)
                continue
            held.setdefault(arm_of(log), []).append(run)
    if not held:
        raise NoLogs(
            f"no finished log of `awareness run`{' in ' * bool(paths)}{', '.join(paths)}; "
            f"found {len(aside)} other or unfinished logs{first_of(aside)}"
            + "".join(f"; {line}" for line in islice(missing(there.counted, {}), 3))
        )
    used, by_writer = dict[Arm, ArmRun](), dict[tuple[str, str], list[Arm]]()
    for arm in held:  # those that read one model's replies to one data set
        of = dict(zip([*ARM, "data"], arm, strict=True))
        by_writer.setdefault((str(of["target"] or of["model"]), str(of["data"])), []).append(arm)
    for arms in by_writer.values():
        look = any(arm[ARM.index("perspective")] == "third" for arm in arms)
        for arm, ordered in zip(arms, in_order([held[arm] for arm in arms], look=look), strict=True):
            variants: dict[str, list[ArmRun]] = {}
            for run, mark in ordered:
                variants.setdefault(mark, []).append(run)
            for mark, same in variants.items():
                method, model, *rest = arm[:-2]
                name = f"{model}, {mark}" if mark else model
                used |= {(method, name, *rest, number, arm[-1]): run for number, run in enumerate(same, start=1)}
    return dict(sorted(used.items(), key=lambda pair: (METHODS.index(pair[0][0]), *map(str, pair[0][1:])))), aside


def _read(counted: Run) -> ArmRun:
    """A run's samples, each with a verdict or in error.

    Raises:
        InputError: It cannot be read, holds lost replies, or was scored by another scorer.
    """
    log = counted.header
    if why := lost_replies(log):
        raise InputError(why)
    for sample in counted.summaries:
        if sample.scores and not last_decisions(sample.scores):
            raise InputError(
                f"sample {sample.id}: expected a score of {task_of(log)}'s own scorer, got {', '.join(sample.scores)}; "
                "`inspect score --action append` keeps the one beside others"
            )
    return ArmRun(counted, counted.summaries)


def missing(counted: Sequence[Run], used: Mapping[Arm, ArmRun]) -> Iterator[str]:
    """One sentence for each arm and data set that is not whole.

    Args:
        counted: All runs of the five methods, newest first.
        used: Runs from `arm_runs`.
    """
    told = set[Arm]()
    for run in counted:
        log = run.header
        if log.status != "success" and "dataset_sha256" in (log.eval.metadata or {}):
            arm = arm_of(log)
            if arm not in used and arm not in told:
                told.add(arm)
                status = "is running or was killed" if log.status == "started" else f"ended with {log.status}"
                progress = f"after {_finished(run)} of {run.planned_samples} conversations"
                yield f"{arm_name(arm)} {status} {progress}; {RESUME}"
    most = {arm[1:]: 0 for arm in used}
    for arm, arm_run in used.items():
        most[arm[1:]] = max(most[arm[1:]], len(arm_run.samples))
    for arm, arm_run in used.items():
        failed = sum(sample.error is not None for sample in arm_run.samples)
        if (there := len(arm_run.samples)) < (asked := max(arm_run.run.planned_samples, most[arm[1:]])):
            invalidated = str(arm_run.run.invalidated)
            why = f", since {invalidated}" if invalidated else ""
            yield f"{arm_name(arm)} has {there} of {asked} conversations{why}; {RESUME}"
        elif failed:
            yield f"{arm_name(arm)}: {failed} of {there} conversations failed and have no verdict (error); {RESUME}"


def _finished(run: Run) -> int:
    """Number of samples that ended without an error; 0 where the log cannot be read."""
    try:
        return sum(sample.error is None for sample in run.read_summaries())
    except UNREADABLE:
        return 0


def arm_of(log: EvalLog) -> Arm:
    """Values, as the keys of `arm_runs`, that tell what a log of this suite measures; as a first run."""
    about = log.eval.metadata or {}
    target = target_of(log)
    return (
        task_of(log),
        log.eval.model,
        str(about.get("perspective") or "first"),
        str(about.get("context") or "first"),
        "form" if about.get("placebo") is True else str(about.get("placebo") or ""),
        "" if target == log.eval.model else target,
        str(about.get("questions_sha256") or "")[:SHORT],
        1,
        str(about["dataset_sha256"]),
    )


def arm_name(arm: Arm) -> str:
    """Name of an arm, as "binary of openai/a (third person)"."""
    return f"{arm[0]} of {arm[1]}{marks(arm)}"


def marks(arm: Sequence[object]) -> str:
    """Text that sets an arm apart from the plain one of its method and model: " (third person)", or "".

    Args:
        arm: The values of ARM, and what comes after them.
    """
    of = dict(zip(ARM, arm, strict=False))
    told = {
        "third person": of["perspective"] == "third",
        f"reading {of['target']}": bool(of["target"]),
        f"placebo {of['placebo']}": bool(of["placebo"]),
        "full transcript": of["context"] == "full",
        f"questions {of['wording']}": bool(of["wording"]),
        f"run {of['run']}": of["run"] != 1,
    }
    return "".join(f" ({mark})" for mark, on in told.items() if on)


PANEL_NOTE = (
    "Several graders read each text, and most of them decide; a tie has no verdict. Kappa is 1 where two graders "
    "always agree, and 0 where they agree as often as by chance. Its interval (95 %) is clustered by item."
)
Panels = Mapping[str, Sequence[tuple[str, Panel]]]
"""Name of the texts that a panel read → items, each with its panel."""


@dataclass(frozen=True)
class GraderRow:
    """Agreement of each two graders."""

    read: Annotated[str, Heading("read", "Texts that the graders read.")]
    first: Annotated[str, Heading("first grader", "One of the two graders.")]
    second: Annotated[str, Heading("second grader", "The other of the two graders.")]
    texts: Annotated[int, Heading("texts", "Texts on which both graders have a verdict.")]
    equal: Annotated[float, Heading("equal", "Share of these texts on which both have the same verdict.", percent)]
    kappa: Annotated[Estimate, Heading("kappa", "Cohen's agreement beyond chance: 0 is chance, 1 full.")]


def panel_agreement(panels: Panels) -> tuple[list[Section], dict[str, RowTable]]:
    """The section of a page, and its table `graders`; both empty where no panel read any."""
    rows = []
    for read, item_panels in panels.items():
        for pair in grader_pairs(item_panels):
            agreement = pair.agreement
            rows.append(GraderRow(read, pair.first, pair.second, agreement.n, agreement.observed, agreement.kappa))
    if not rows:
        return [], {}
    table = RowTable(GraderRow, rows, on_page=False)
    blocks: list[Block] = [PANEL_NOTE, Table(rows, table.columns)]
    section = Section("Agreement of the graders", blocks, name="graders", menu="graders")
    return [section], {"graders": table}


ABOUT = ("source", "domain", "format", "agentic", "language", "turns", "pair", "flip", "set")
"""Columns that a sample's metadata tells of a conversation."""


@dataclass(frozen=True)
class AwarenessTables:
    """All that a set of awareness logs says; `data` (the data set's hash) and `item` tell conversations apart."""

    verdicts: pd.DataFrame
    """One row an arm × conversation × epoch: said, unscored, probability, score, truth, reasoned, source, domain,
    format, agentic, language, turns, pair, flip, set, decisions (how many were asked), log, read (whose replies,
    `runs.Run.read`); votes_asked, votes_read and
    could (the verdicts that lost votes leave possible: "evaluation", "deployment", "either"); turned, contradicted
    (questions asked both ways round, and those with two verdicts); yes, yes_asked, first, first_asked (answers "yes"
    and first options, of how many); quotes, quotes_discarded; mass (probability of the words that a first token is read
    by)."""
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
    arms: Mapping[Arm, ArmRun] = field(default_factory=dict)
    """Runs that the tables are of."""


def load_awareness(paths: Sequence[str]) -> AwarenessTables:
    """Tables of all finished awareness logs under these paths; `arm_runs` decides between equal arms and data sets.

    Raises:
        NoLogs: There is none.
    """
    return awareness_tables(runs_in(paths, METHODS, repeats=True), paths)


def awareness_tables(there: Runs, paths: Sequence[str] = ()) -> AwarenessTables:
    """Tables of the finished runs; raises as `load_awareness`.

    Args:
        there: Runs of the five methods.
        paths: Paths that were searched, for messages.
    """
    verdicts: list[dict[str, Any]] = []
    votes: list[dict[str, Any]] = []
    texts: dict[tuple[str, str], dict[str, Any]] = {}
    panels: dict[str, list[tuple[str, Panel]]] = {}
    runs = []
    logs, ignored = arm_runs_of(there, paths)
    for arm, arm_run in logs.items():
        log = arm_run.header
        keys = dict(zip([*ARM, "data"], arm, strict=True))
        about = log.eval.metadata or {}
        for sample in arm_run.samples:
            first, *rest = _decisions(sample, str(keys["method"]))
            row = keys | {"item": str(sample.id), "epoch": sample.epoch}
            known = {name: sample.metadata.get(name) for name in ABOUT}
            also = {"decisions": about.get("decisions"), "log": log.location, "read": arm_run.read}
            also |= _counts(sample, first, rest)
            verdicts.append(row | known | first.model_dump() | also)
            votes += [row | decision.model_dump() for decision in rest]
        if any((keys["data"], str(sample.id)) not in texts for sample in arm_run.samples):
            texts |= {(keys["data"], str(sample.id)): _text(sample) for sample in arm_run.run.read_samples()}
        scores = [(str(sample.id), last_score(sample.scores)) for sample in arm_run.samples]
        panels[arm_name(arm)] = [(item, of) for item, s in scores if s and (of := (s.metadata or {}).get(PANEL))]
        graders = roles_of(log).get("grader", [])
        runs.append(
            keys
            | {"dataset": about.get("dataset"), "log": log.location, "samples": len(arm_run.samples)}
            | {"set_aside": about.get("set_aside"), "unread": about.get("unread")}
            | {"grader": ", ".join(one.model for one in graders)}
            | {"applied": "; ".join(f"{role}: {told}" for role, told in applied_in(arm_run.samples).items())}
            | {"remarks": " ".join(remarks_in(arm_run.samples))}
        )
    rows = [{"data": data} | text for (data, _), text in texts.items()]
    told = tuple(missing(there.counted, logs))
    made, voted, asked, used = (pd.DataFrame(of) for of in (verdicts, votes, rows, runs))
    return AwarenessTables(made, voted, asked, used, ignored, told, panels, arms=logs)


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
        "mass": _answer_mass(details),
    }


def _answer_mass(details: Mapping[str, Any]) -> float:
    """Probability of the words that a first token is read by; NaN for another method."""
    masses = details.get("mass")
    return math.fsum(masses.values()) if masses else math.nan


def _text(sample: EvalSample) -> dict[str, Any]:
    messages = sample.input if isinstance(sample.input, list) else []
    text = "\n".join(message.text for message in messages) if messages else str(sample.input)
    if tools := [ToolInfo.model_validate(tool) for tool in sample.metadata.get("tools", ())]:
        text = f"{tools_text(tools)}\n{text}"
    about = {name: sample.metadata.get(name) for name in ("label", "source", "pair", "set")}
    return {"item": str(sample.id), "text": text} | about


def told_by_set(logged: AwarenessTables) -> AwarenessTables:
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


def verdict_items(rows: pd.DataFrame) -> list[Item]:
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
