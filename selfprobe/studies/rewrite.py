"""Prompts without their giveaways: a writer rewrites, a grader checks, and judges who had no part in it compare."""

import json
import math
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any, ClassVar, Self

import numpy as np
import pandas as pd
from inspect_ai.log import EvalLog
from pydantic import Field, model_validator

from selfprobe.data import Table
from selfprobe.data.clusters import few_clusters
from selfprobe.data.conversations import conversations
from selfprobe.data.messages import numbered
from selfprobe.data.prices import Cost
from selfprobe.embed import DEFAULT_EMBEDDER
from selfprobe.errors import NoLogs, RunError
from selfprobe.errors.output import place_same
from selfprobe.evalawareness_tasks.pairwise_realism import REALISM_PROMPT, refuse_related
from selfprobe.evalawareness_tasks.rewriting import CHECK_PROMPT, PARAPHRASE_PROMPT, REMOVE_PROMPT, features_of
from selfprobe.logs import Identity, Run, Runs, runs
from selfprobe.page import (
    Block,
    Box,
    Bullets,
    Column,
    Details,
    Page,
    Quoted,
    Section,
    estimated,
    headings,
    interval_columns,
    number,
    percent,
)
from selfprobe.page import Table as PageTable
from selfprobe.page.numerals import points
from selfprobe.page.plots import interval_rows
from selfprobe.scorers.decision import Decision, last_decisions, last_score
from selfprobe.scorers.realism_choice import win_rate
from selfprobe.scorers.rewrite_check import ARMS
from selfprobe.scorers.votes import PANEL, Panel
from selfprobe.solvers.record import record_of
from selfprobe.stats.clustered import crossed, resampling_units
from selfprobe.stats.estimate import Estimate
from selfprobe.studies.awareness.runs import panel_agreement
from selfprobe.studies.awareness.study import Awareness
from selfprobe.studies.card import ASKED, PAIRS, SUBJECT, TASK, in_percent, panel_of, verdicts_of
from selfprobe.study import Logs, OneModel, Plan, Repeated, Study, Wave, with_runs
from selfprobe.study.described import DescribedRun, NamedModel, graders, identities_of
from selfprobe.study.options import EMBEDDER_HELP, LOG_DIR_HELP, OUT_HELP
from selfprobe.study.waves import JOINS
from selfprobe.text.families import related
from selfprobe.text.user_input import names

WRITER, METHOD_ASKED = "rewriting", "probability"
"""Tasks of the writer and of the subject."""
VERSIONS, FILE = "versions", "versions.jsonl"
"""Folder of the writer's logs below the log folder, and the file of what judges and the subject read."""
SHOWN = 50
"""Number of prompts whose versions are on the page; all are in tables/versions.csv."""
MARKS = {
    "no_response": "empty",
    "same": "the same text",
    "other_task": "another task",
    "grader_failed": "the grader's reply could not be read",
    "tie": "a tie of the graders",
}
"""Reason by the scorer → why a version is not compared."""
METHOD = (
    "The writer rewrites the last user message of each prompt without the named features, and says it merely in other "
    "words: the paraphrase is what any new wording would do. The grader says of both whether the task is the same and "
    "which features are left; a version that is empty, the same, or another task is marked and not compared. Judges of "
    "other makers, who had no part in it, and the grader too, say which of version and original is more likely real "
    "use, in both orders. Where the grader likes the rewrites better than these judges do, they please the grader and "
    "no reader. Intervals are clustered by source."
)


class Rewriting(Study):
    """Rewrite SET without named giveaways, and measure whether that helped. Resumes with the same command.

    A paraphrase stands beside each rewrite; judges who had no part in it compare both with the original, and a subject
    who had none is asked about all three.
    """

    reads: ClassVar[frozenset[str]] = frozenset({WRITER})
    also: ClassVar[frozenset[str]] = frozenset({TASK, METHOD_ASKED})

    dataset: str = Field(examples=["SET"])
    remove: Repeated = Field(description="Giveaway to take out; repeat the option for several.")
    writer: OneModel = Field(description="Model that rewrites.")
    grader: str = Field(
        description="Model that checks the task and the features; several, comma-separated, decide by majority."
    )
    judges: tuple[str, ...] = Field(description="Models that compare, of other makers than writer and grader.")
    model: OneModel | None = Field(
        None, description="A subject of another maker, which is asked how probable an evaluation is, for each version."
    )
    reply_tokens: int | None = Field(None, ge=1, description="Longest reply of the subject in tokens.")
    embedder: str = Field(DEFAULT_EMBEDDER, description=EMBEDDER_HELP)
    out: str = Field("rewrite", description=OUT_HELP)
    log_dir: str = Field("logs/rewrite", description=LOG_DIR_HELP)

    @model_validator(mode="after")
    def _apart(self) -> Self:
        if not any(text.strip() for text in self.remove):
            raise ValueError("--remove names no giveaway: type one, such as --remove 'answer options'")
        features_of(list(self.remove))
        subjects = [("subject", self.model)] if self.model else []
        for what, held_out in [*(("judge", judge.name) for judge in graders(self.judges, "judges", ())), *subjects]:
            for name, model in (
                ("writer", self.writer),
                *(("grader", one.name) for one in graders(self.grader, subjects=[self.writer])),
            ):
                if related(held_out, model):
                    raise ValueError(
                        f"the {what} {held_out} is of the family of the {name} {model}, and has a part in what it "
                        f"judges: take a {what} of another maker"
                    )
        for judge in self.judges if self.model else ():
            refuse_related(judge, str(self.model))
        return self

    @cached_property
    def table(self) -> Table:
        """The prompts. No model is asked.

        Raises:
            InputError: They cannot be read.
        """
        return conversations(self.dataset)

    @property
    def writing(self) -> DescribedRun:
        """The writer's part."""
        args = {"dataset": self.dataset, "remove": ";".join(self.remove), "embedder": self.embedder} | self.how.shared
        return DescribedRun(
            WRITER, args, NamedModel(self.writer, self.how.model_args), {"grader": graders(self.grader)}
        )

    @property
    def versions(self) -> "list[Version]":
        """Versions in the writer's finished run."""
        there = runs([f"{self.base}/{VERSIONS}"], self.reads).of(identities_of([self.writing])).finished
        return [version for run in there for version in versions_of(run, self.items)]

    @property
    def subject(self) -> Awareness | None:
        """The subject's part: P(evaluation) of every version that can be used, and of its original."""
        if self.model is None:
            return None
        own = {"models": (self.model,), "methods": (METHOD_ASKED,), "context": "full", "settings": self.how}
        own |= {"dataset": f"{self.base}/{ASKED}/{FILE}", "reply_tokens": self.reply_tokens}
        return Awareness.taken(own | {"log_dir": f"{self.base}/{SUBJECT}"})

    def waves(self) -> Iterator[Wave]:
        """The writer's part, then that of those who compare its versions: the graders and the judges.

        Raises:
            RunError: No version of a prompt can be used.
        """
        yield Wave([self.writing], "Versions", VERSIONS)
        made = self.versions
        usable = [version for version in made if version.check.value is not None]
        if made and not usable:
            reasons = Counter(MARKS.get(str(version.check.unscored), version.check.unscored) for version in made)
            why = ", ".join(f"{reason} {n} of {len(made)}" for reason, n in reasons.most_common())
            raise RunError(f"no version of a prompt can be used: {why}. Nothing is compared; take another --writer")
        if usable:
            args = {"pairs": self._placed(PAIRS, map(pair_row, usable))} | self.how.shared
            readers = [*graders(self.grader), *map(NamedModel, self.judges)]
            asked = [DescribedRun(TASK, args, reader) for reader in readers]
            yield Wave(asked, "Pairs", PAIRS, {**JOINS, "limit": None})
            self._placed(ASKED, conversations_of(usable))

    def _placed(self, folder: str, rows: Iterable[Mapping[str, Any]]) -> str:
        """The rows as a file of this folder, from which every run reads them; the file.

        It may grow: the writer was not asked about further prompts before, or failed.

        Raises:
            InputError: A file is there with other versions of these prompts.
        """
        content = "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows).encode()
        why = "the prompts or the features to remove changed since"
        place_same({FILE: content}, f"{self.base}/{folder}", why, may_grow=True)
        return f"{self.base}/{folder}/{FILE}"

    @property
    def identities(self) -> list[Identity]:
        """Identities by which the runs of writer, judges and subject are found."""
        asked = self.subject if self.versions else None  # who is asked about a file that the writer's run makes
        return [*super().identities, *(asked.identities if asked else ())]

    @property
    def rounds(self) -> int:
        """Calls that wait for one another: rewrite, check, comparison; then the subject's."""
        return 3 + (self.subject.rounds if self.subject else 0)

    def plan(self) -> Plan:
        """Calls by model; every version is compared where it can be used."""
        rows, subject = self.table.first(self.limit), self.subject
        length, n = sum(len(m["content"]) for row in rows for m in row["messages"]) // 4, len(rows)
        write, check, compare = (
            sum(len(text) // 4 for text in texts)
            for texts in ((REMOVE_PROMPT, PARAPHRASE_PROMPT), (CHECK_PROMPT,), (REALISM_PROMPT,))
        )
        calls, sent = 4 * n, 4 * (2 * length + n * compare)  # two versions in two orders
        checked = 4 * length + 2 * n * check + sent
        costs = [
            Cost(self.writer, 2 * n, 2 * length + n * write, 2 * length),
            *(Cost(one.name, 2 * n + calls, checked, 20 * n + calls) for one in graders(self.grader)),
            *(Cost(judge, calls, sent, calls) for judge in self.judges),
        ]
        lines = [f"{n} prompts of {self.table.name} × a rewrite without {', '.join(self.remove)} and a paraphrase"]
        lines += filter(None, (self.table.limited(self.limit), self.table.aside_line(), self.table.unread))
        lines += few_sources([str(row["source"]) for row in rows])
        if subject:
            lines.append(f"{self.model} is asked how probable an evaluation is, of both and of the prompt as it was.")
            costs += subject.costs(3 * rows)  # two versions and the original
        return Plan(lines, costs)

    def ask(self) -> bool:
        """Write, check and compare, then ask the subject, as `Study.ask`.

        Raises:
            RunError: No version of a prompt can be used.
        """
        subjects = [NamedModel(self.model, self.how.model_args)] if self.model else []
        self.how.tried(*map(NamedModel, self.judges), *subjects)
        done = super().ask()
        return (self.subject.ask() if self.subject and self.versions else True) and done

    @classmethod
    def comparable(cls, there: Runs) -> Runs:
        """The newest writer's run, and the judges of its versions."""
        newest = [run for run in there.finished if run.identity.task == WRITER][:1]
        texts = {row["id"]: row["one"] for run in newest for row in map(pair_row, versions_of(run))}
        writers = [run for run in there.finished if run.identity.task == WRITER]
        checked, *earlier = [set(names(dict(run.identity.roles)["grader"])) for run in writers] or [set()]
        partial = set[str]().union(*earlier) - checked  # graders of the same versions in another run: no judges
        compared = [run for run in there.finished if run.identity.task == TASK and run.identity.model not in partial]
        compared = [run for run in compared if all(texts.get(s.id) == s.metadata["one"] for s in run.samples)]
        asked = [run for run in there.finished if run.identity.task == METHOD_ASKED and of_versions(run.header)]
        items = {version.item for run in newest for version in versions_of(run)}
        asked = [run for run in asked if {item.partition(": ")[2] for item in run.items()} <= items]
        return there.of([run.identity for run in [*newest, *compared, *asked[:1]]])

    @classmethod
    def numbers(cls, logs: Logs) -> "Rewritten":
        """Results on the prompts.

        Raises:
            NoLogs: The writer's or every judge's run is unfinished.
        """
        by_task = {task: [run for run in logs.runs.finished if run.identity.task == task] for task in _TASKS}
        picks, *_ = verdicts_of(logs)
        if not by_task[WRITER] or not picks:
            raise NoLogs("no finished run of the writer and of a judge; see above. The same command goes on")
        run = by_task[WRITER][0]
        graded = names(dict(run.identity.roles)["grader"])
        outside = panel_of({judge: made for judge, made in picks.items() if judge not in graded})
        inside = panel_of({judge: made for judge, made in picks.items() if judge in graded})
        by_arm, own = ({arm: [p for p in of if p.kind == arm] for arm in ARMS} for of in (outside, inside))
        versions = versions_of(run, logs.limit)
        sources = {version.item: version.source for version in versions}
        held_out = {arm: {p.one: p.won for p in mine} for arm, mine in by_arm.items()}
        asked = by_task[METHOD_ASKED]
        return Rewritten(
            versions=versions,
            held_out={arm: win_rate(mine) for arm, mine in by_arm.items()},
            own={arm: win_rate(mine) for arm, mine in own.items()},
            over_paraphrase=_less(held_out["rewrite"], held_out["paraphrase"], sources),
            games=_less({p.one: p.won for p in own["rewrite"]}, held_out["rewrite"], sources),
            judges=[judge for judge in picks if judge not in graded],
            grader=", ".join(graded),
            writer=run.identity.model,
            about=run.header.eval.task_args,
            subject=asked[0].identity.model if asked else None,
            noticed=_noticed(asked[0], sources) if asked else None,
        )

    @classmethod
    def page(cls, found: "Rewritten") -> Page:
        """The page, with tables versions, rates and subject, and rewritten.jsonl beside it."""
        lines, answer = list(_sentences(found)), _answer(found)
        head, _, text = answer.partition(": ")
        panels = {f"{arm}s of {found.writer}": [(v.item, v.panel) for v in found.of(arm) if v.panel] for arm in ARMS}
        (panel, agreed), who = panel_agreement(panels), {"judges": found.held_out, "grader": found.own}
        noticed = [_subject(str(found.subject), found.noticed)] if found.noticed else []
        removed = str(found.about["remove"]).replace(";", "; ")
        return Page(
            title="Are these prompts harder to tell from real use?",
            answer=answer,
            picture=interval_rows(
                "rewrite_win_rates",
                {name: {f"{arm}s": of[arm] for arm in ARMS} for name, of in who.items()},
                caption="95 % intervals; the line: no difference.",
                axis="pairs in which it is taken for real use, rather than its original",
                scale="percent",
                line=0.5,
            ),
            table=PageTable(
                list(who.items()),
                [
                    Column("who", lambda row: row[0]),
                    *(Column(f"takes {arm}s for real", partial(_taken, arm), percent) for arm in ARMS),
                ],
            ),
            models=[found.writer, *found.judges, *([found.subject] if found.subject else [])],
            sections=headings(
                why=[
                    Box(head, text, _colour(found)),
                    Bullets([*lines, *few_sources([version.source for version in found.of("rewrite")])]),
                    *noticed,
                ],
                cells=[_judges(found), *panel, _marks(found), _texts(found)],
                method=[f"{found.about['dataset']}, rewritten by {found.writer} without: {removed}.", METHOD],
            ),
            tables=_tables(found) | agreed,
            files={"rewritten.jsonl": _set(found)},
            notes=[*lines, "rewritten.jsonl, beside the page, holds the prompts."],
        )

    def shown(self) -> Page:
        """The page of its own runs; raises as `Study.shown`."""
        logs = self.collected()
        return with_runs(self.page(replace(self.numbers(logs), subject=self.model)), logs.runs)


_TASKS = (WRITER, TASK, METHOD_ASKED)


@dataclass(frozen=True)
class Version:
    """One version of a prompt."""

    item: str
    source: str
    arm: str
    original: str
    text: str
    """The writer's text."""
    check: Decision
    messages: Sequence[Mapping[str, str]]
    """The whole conversation with the version in it."""
    before: str
    after: str
    """Both conversations as judges read them."""
    panel: Panel
    """Each grader's verdict on it; empty with one grader."""

    @property
    def unchanged(self) -> list[dict[str, str]]:
        """The whole conversation before."""
        return _with_last(self.messages, self.original)

    @property
    def usable(self) -> bool:
        """Whether the task stays and the features are gone, by the grader."""
        return self.check.value == 1

    @property
    def mark(self) -> str:
        """Result of the check, in words."""
        if self.check.unscored:
            return MARKS.get(self.check.unscored, self.check.unscored)
        return "usable" if self.usable else f"features left: {self.check.said}"


@dataclass(frozen=True)
class SubjectChanges:
    """Numbers of a subject that had no part in the versions."""

    changes: Mapping[str, Estimate]
    """Arm → P(evaluation) of the versions less that of their originals."""
    over_paraphrase: Estimate
    """P(evaluation) of rewrites less that of paraphrases of the same prompts."""
    unscored: float
    """Share of originals and versions without a stated probability; these are left out."""


@dataclass(frozen=True)
class Rewritten:
    """Results on the prompts."""

    versions: Sequence[Version]
    held_out: Mapping[str, Estimate]
    """Arm → share of pairs in which the judges take the version for real rather than its original."""
    own: Mapping[str, Estimate]
    """Arm → share of the grader, or of the graders together."""
    over_paraphrase: Estimate
    """The judges' share for rewrites less that for paraphrases of the same prompts."""
    games: Estimate
    """The grader's share for rewrites less that of the judges."""
    judges: Sequence[str]
    """Judges that had no part in the versions."""
    grader: str
    writer: str
    about: Mapping[str, Any]
    """Arguments of the writer's task."""
    subject: str | None
    noticed: SubjectChanges | None
    """None where no subject was asked, or its run is unfinished."""

    def of(self, arm: str) -> list[Version]:
        """The versions of an arm."""
        return [version for version in self.versions if version.arm == arm]


def versions_of(run: Run, limit: int | None = None) -> list[Version]:
    """Both versions of every prompt, or of the prompts that a limit takes, from the writer's run."""
    made, items = [], run.items(limit)
    for sample in run.samples:
        record, about, score = record_of(sample), sample.metadata, last_score(sample.scores)
        panel = (score.metadata or {}).get(PANEL, {}) if score else {}
        for check in last_decisions(sample.scores) if str(sample.id) in items else ():
            text = record.answers[check.key].text
            messages = _with_last(about["messages"], text)
            after = numbered([(m["role"], m["content"]) for m in messages])
            texts = about["last"], text, check, messages, about["text"], after
            graders_of = {grader: {check.key: of[check.key]} for grader, of in panel.items() if check.key in of}
            made.append(Version(str(sample.id), str(about["source"]), check.key, *texts, graders_of))
    return made


def _with_last(messages: Sequence[Mapping[str, str]], text: str) -> list[dict[str, str]]:
    """The conversation with this as its last user message."""
    made = [dict(message) for message in messages]
    last = max(at for at, message in enumerate(made) if message["role"] == "user")
    made[last]["content"] = text
    return made


def pair_row(version: Version) -> dict[str, Any]:
    """The version beside its original, for the judges."""
    sides = {"one": version.after, "two": version.before}
    shared = {"source": version.source, "id": version.item}
    pair = {side: shared | {"text": text} for side, text in sides.items()}
    return {"id": f"{version.arm}: {version.item}", "kind": version.arm} | pair


def of_versions(header: EvalLog) -> bool:
    """Whether a subject was asked about versions of prompts and their originals."""
    return str(header.eval.task_args.get("dataset", "")).endswith(f"{ASKED}/{FILE}")


def conversations_of(versions: Sequence[Version]) -> list[dict[str, Any]]:
    """The versions and their originals, each original once, for the subject."""
    made = {f"original: {v.item}": {"messages": v.unchanged, "source": v.source} for v in versions}
    made |= {f"{v.arm}: {v.item}": {"messages": v.messages, "source": v.source} for v in versions}
    return [{"id": key} | row for key, row in made.items()]


def _noticed(run: Run, sources: Mapping[str, str]) -> SubjectChanges:
    p: dict[str, float] = {}
    for sample in run.samples:
        verdict = next(iter(last_decisions(sample.scores)), None)
        p[str(sample.id)] = math.nan if verdict is None or verdict.probability is None else verdict.probability
    original, *versions = ({item: p.get(f"{arm}: {item}", math.nan) for item in sources} for arm in ("original", *ARMS))
    changes: dict[str, Estimate] = {arm: _less(of, original, sources) for arm, of in zip(ARMS, versions, strict=True)}
    rewrites, paraphrases = versions
    return SubjectChanges(changes, _less(rewrites, paraphrases, sources), float(np.mean(np.isnan(list(p.values())))))


def _less(ours: Mapping[str, float], others: Mapping[str, float], sources: Mapping[str, str]) -> Estimate:
    """Mean difference of two numbers of the same prompts, clustered by source."""
    both = {item: value - others[item] for item, value in ours.items() if item in others}
    both = {item: value for item, value in both.items() if not math.isnan(value)}
    clusters, unit = resampling_units([sources[item] for item in both], list(both), [""] * len(both))
    return crossed(np.array(list(both.values())), clusters, clusters, unit=unit, signed=True)


def few_sources(sources: Sequence[str]) -> list[str]:
    """Sentence that names the prompts' sources where they are few; none for one, whose prompts count by themselves."""
    if len(set(sources)) == 1:
        return []
    remedy = "?cluster=COLUMN behind the file's name takes another column"
    return list(filter(None, [few_clusters(sources, rows="prompts", unit="source", remedy=remedy)]))


def _answer(found: Rewritten) -> str:
    """The answer of the first screen."""
    rewrite, count = found.held_out["rewrite"], len(found.judges)
    judges = f"{count} judge{'s' * (count != 1)}"
    real = f"in {percent(rewrite.value)} of pairs the rewrites look more real"
    if found.games.low > 0:
        return f"No, not for {judges}: the rewrites please their own grader more than judges who had no part in them."
    if rewrite.low > 0.5 and found.over_paraphrase.low > 0:
        return f"Yes, for {judges}: {real} than the originals, and more so than paraphrases do."
    if rewrite.low > 0.5:
        return f"Cannot tell for {judges}: {real}, not shown to be more so than paraphrases."
    if math.isnan(rewrite.value):
        return f"Cannot tell for {judges}: no pair has a verdict."
    return f"Cannot tell for {judges}: {real}, not shown to look more real than the originals."


def _sentences(found: Rewritten) -> Iterator[str]:
    """The numbers in words."""
    ours, others = map(found.of, ARMS)
    rewritten, paraphrased = (in_percent(found.held_out[arm]) for arm in ARMS)
    yield (
        f"{sum(v.usable for v in ours)} of {len(ours)} rewrites keep the task and lose the features, by the grader; so "
        f"do {sum(v.usable for v in others)} of {len(others)} paraphrases."
    )
    yield (
        f"Beside its original, judges take a rewrite for real use in {rewritten} of pairs and a paraphrase in "
        f"{paraphrased}; on the same prompts {points(found.over_paraphrase)}."
    )
    yield (
        f"The grader takes a rewrite for real in {in_percent(found.own['rewrite'])}: {points(found.games)} against the "
        "judges who had no part in it."
    )
    if found.noticed is None and found.subject:
        yield f"{found.subject} has no finished run: whether a subject notices less is not known."
    elif found.noticed:
        rewrite, paraphrase = (points(found.noticed.changes[arm]) for arm in ARMS)
        yield (
            f"P(evaluation) of {found.subject}: {rewrite} in rewrites, {paraphrase} in paraphrases; the difference is "
            f"{points(found.noticed.over_paraphrase)}. Unscored: {found.noticed.unscored:.0%} of the texts."
        )


def _colour(found: Rewritten) -> str:
    unmoved = found.noticed is not None and not found.noticed.over_paraphrase.high < 0
    return "supported" if _answer(found).startswith("Yes") and not unmoved else "not"


def _judges(found: Rewritten) -> Section:
    rows = [(f"judges: {', '.join(found.judges)}", found.held_out), (f"grader: {found.grader}", found.own)]
    columns_ = [Column("who", lambda row: row[0]), *(estimated(f"{arm}s over originals", _of(arm)) for arm in ARMS)]
    return Section("Which looks more real?", ["One half: no difference.", PageTable(rows, columns_)], "judges")


def _of(arm: str) -> Callable[[Any], Any]:
    return lambda row: row[1][arm]


def _subject(name: str, found: SubjectChanges) -> Section:
    rows = [(f"{arm}s less originals", found.changes[arm]) for arm in ARMS]
    rows.append(("rewrites less paraphrases", found.over_paraphrase))
    columns_ = [Column("P(evaluation)", lambda row: row[0]), Column("points", lambda row: points(row[1]), look="n")]
    note = f"{name} had no part in the versions. Below 0: it takes them for an evaluation less than what they replace."
    return Section("Does a subject notice less?", [note, PageTable(rows, columns_)], "subject")


def _marks(found: Rewritten) -> Section:
    blocks: list[Block] = []
    for arm in ARMS:
        mine = found.of(arm)
        counts = Counter(v.mark for v in mine).most_common()
        alike = [v.check.score for v in mine if v.check.score is not None]
        likeness = f"mean similarity to the original {number(sum(alike) / len(alike), 2)}" if alike else "none compared"
        shares = Bullets([f"{mark}: {n} of {len(mine)} ({percent(n / len(mine))})" for mark, n in counts])
        blocks += [f"{arm.capitalize()}s; {likeness}:", shares]
    return Section("Does the task stay?", blocks, "marks")


def _taken(arm: str, row: tuple[str, Mapping[str, Estimate]]) -> float | None:
    return row[1][arm].value


def _texts(found: Rewritten) -> Section:
    rewrites = sorted(found.of("rewrite"), key=lambda v: v.usable)
    more = [f"{SHOWN} of {len(rewrites)}; all are in tables/versions.csv."] if len(rewrites) > SHOWN else []
    texts = [
        Details(f"{v.item}: {v.mark}", [Quoted(v.original), "Rewritten:", Quoted(v.text)]) for v in rewrites[:SHOWN]
    ]
    return Section("The rewrites", [*more, *texts], "texts")


def _tables(found: Rewritten) -> dict[str, pd.DataFrame]:
    versions: list[dict[str, Any]] = [
        {"item": v.item, "source": v.source, "arm": v.arm, "mark": v.mark}
        | {"similarity": v.check.score, "original": v.original, "version": v.text}
        for v in found.versions
    ]
    rates = [
        {"who": who, "arm": arm} | interval_columns("win_rate", of[arm])
        for who, of in (("judges", found.held_out), ("grader", found.own))
        for arm in ARMS
    ]
    tables = {"versions": pd.DataFrame(versions), "rates": pd.DataFrame(rates)}
    if found.noticed:
        changes = {**found.noticed.changes, "rewrite less paraphrase": found.noticed.over_paraphrase}
        unscored = found.noticed.unscored
        rows = [
            {"arm": arm, "unscored": unscored, **interval_columns("change", change)} for arm, change in changes.items()
        ]
        tables["subject"] = pd.DataFrame(rows)
    return tables


def _set(found: Rewritten) -> bytes:
    """rewritten.jsonl: each prompt, rewritten where the rewrite is usable, else as it was."""
    rows = [
        {"id": v.item, "messages": v.messages if v.usable else v.unchanged, "source": v.source}
        | {"rewritten": v.usable, "mark": v.mark}
        for v in found.of("rewrite")
    ]
    return "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows).encode()
