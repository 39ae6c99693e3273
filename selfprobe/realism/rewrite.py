"""Prompts without their giveaways: a writer rewrites, a grader checks, and judges who had no part in it compare."""

import json
import math
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
import pandas as pd
from inspect_ai.log import EvalLog

from selfprobe import options
from selfprobe.awareness.table import load as load_awareness
from selfprobe.data import Table
from selfprobe.described import DescribedRun, NamedModel, graders, identities_of
from selfprobe.embed import DEFAULT_EMBEDDER
from selfprobe.errors import InputError, NoLogs, RunError
from selfprobe.evalawareness_tasks.pairwise_realism import refuse_related
from selfprobe.evalawareness_tasks.rewriting import features_of
from selfprobe.families import related
from selfprobe.logs import first_of, runs, samples
from selfprobe.output import place
from selfprobe.realism.numbers import panel_of
from selfprobe.realism.run import ASKED, PAIRS, SUBJECT, refuse_wrong, same_or_new
from selfprobe.realism.table import TASK, load
from selfprobe.run_settings import RunSettings
from selfprobe.scorers.decision import Decision, last_decisions, last_score
from selfprobe.scorers.panel import PANEL, Panel
from selfprobe.scorers.realism_choice import Pick, win_rate
from selfprobe.scorers.rewrite_check import ARMS
from selfprobe.solvers.record import record_of
from selfprobe.sources.conversations import conversations
from selfprobe.sources.messages import numbered
from selfprobe.stats.clustered import crossed, resampled
from selfprobe.stats.estimate import Estimate
from selfprobe.studies.awareness import Awareness
from selfprobe.waves import JOINS, complete, run_wave

VERSIONS, FILE = "versions", "versions.jsonl"
"""Folder of the writer's logs below the log folder, and the file of what judges and the subject read."""

MARKS = {
    "no_response": "empty",
    "same": "the same text",
    "other_task": "another task",
    "grader_failed": "the grader's reply could not be read",
    "tie": "a tie of the graders",
}
"""Why a version is not compared, by the scorer's reason."""


@dataclass(frozen=True)
class Rewriting:
    """What `selfprobe realism rewrite` was asked for."""

    dataset: str
    remove: tuple[str, ...]
    writer: str
    grader: str
    """Who checks; several, comma-separated, are a panel."""
    judges: tuple[str, ...]
    model: str | None = None
    """The subject, who has no part in the versions and is asked about them; None asks judges alone."""
    reply_tokens: int | None = None
    """Most tokens of its reply to a version."""
    embedder: str = DEFAULT_EMBEDDER
    limit: int | None = None
    log_dir: str = "logs/rewrite"
    settings: RunSettings = field(default_factory=RunSettings)

    def __post_init__(self) -> None:
        refuse_wrong(self.judges)
        features_of(list(self.remove))
        outside = [("judge", judge) for judge in self.judges] + ([("subject", self.model)] if self.model else [])
        for what, held_out in outside:
            for name, model in (("writer", self.writer), *(("grader", one.name) for one in graders(self.grader))):
                if related(held_out, model):
                    raise InputError(
                        f"the {what} {held_out} is of the family of the {name} {model}, and has a part in what it "
                        f"judges: take a {what} of another maker"
                    )
        for judge in self.judges if self.model else ():
            refuse_related(judge, str(self.model))

    @cached_property
    def table(self) -> Table:
        """The prompts. No model is asked.

        Raises:
            InputError: They cannot be read.
        """
        return conversations(self.dataset)

    @property
    def items(self) -> int | None:
        """Number of prompts that are rewritten, in whole pairs; None is all."""
        return self.limit and len(self.table.first(self.limit))

    @property
    def base(self) -> str:
        return self.log_dir.rstrip("/")

    @property
    def versions_run(self) -> DescribedRun:
        """The writer's part."""
        wanted = {"dataset": self.dataset, "remove": ";".join(self.remove), "embedder": self.embedder}
        wanted |= self.settings.shared
        writer = NamedModel(self.writer, self.settings.model_args)
        return DescribedRun("rewriting", wanted, writer, {"grader": graders(self.grader)})

    def pair_runs(self, pairs: str) -> list[DescribedRun]:
        """The part of those who compare: the graders and the judges.

        Args:
            pairs: File of the pairs.
        """
        asked = {"pairs": pairs} | self.settings.shared
        readers = (*graders(self.grader), *map(NamedModel, self.judges))
        return [DescribedRun(TASK, asked, reader) for reader in readers]

    @property
    def study(self) -> Awareness | None:
        """The subject's part: P(evaluation) of every version that can be used, and of its original."""
        if self.model is None:
            return None
        own = {"models": (self.model,), "methods": ("probability",), "context": "full", "settings": self.settings}
        own |= {"dataset": f"{self.base}/{ASKED}/{FILE}", "reply_tokens": self.reply_tokens}
        return Awareness.taken(own | {"log_dir": f"{self.base}/{SUBJECT}"})


@dataclass(frozen=True)
class Version:
    """One version of a prompt."""

    item: str
    source: str
    arm: str
    original: str
    text: str
    """What the writer said."""
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
        """The whole conversation as it was."""
        return _with_last(self.messages, self.original)


@dataclass(frozen=True)
class Noticed:
    """What a subject that had no part in the versions makes of them."""

    changes: Mapping[str, Estimate]
    """By arm, P(evaluation) of the versions less that of their originals."""
    over_paraphrase: Estimate
    """P(evaluation) of rewrites less that of paraphrases of the same prompts."""
    unscored: float
    """Share of originals and versions without a stated probability; these are left out."""


@dataclass(frozen=True)
class Rewritten:
    """What became of the prompts."""

    versions: tuple[Version, ...]
    held_out: Mapping[str, Estimate]
    """By arm, the share of pairs in which the judges take the version for real rather than its original."""
    own: Mapping[str, Estimate]
    """The same of the grader, or of the graders together."""
    over_paraphrase: Estimate
    """Of the held-out judges, rewrites less paraphrases of the same prompts."""
    games: Estimate
    """Of the rewrites, the grader's share less that of the held-out judges."""
    picks: Mapping[str, Sequence[Pick]]
    """By judge."""
    noticed: Noticed | None
    """None where no subject was asked, or its run is unfinished."""


def run_rewriting(given: Rewriting) -> bool:
    """Write, check and compare; True when every run ended well. Killed, the same command goes on where it stopped.

    Raises:
        RunError: No version of a prompt can be used.
        InputError: A model cannot be had, or the log folder cannot be written or holds another set.
    """
    args, settings = given.settings.model_args, given.settings
    settings.tried(*map(NamedModel, given.judges), *([NamedModel(given.model, args)] if given.model else []))
    written = run_wave(
        [given.versions_run],
        f"{given.base}/{VERSIONS}",
        title="Versions",
        settings=settings,
        limit=given.items,
        **JOINS,
    )
    ended = complete(written)
    made = versions_of(written[0]) if written[0].status == "success" else []
    usable = [version for version in made if version.check.value is not None]
    if made and not usable:
        reasons = Counter(version.check.unscored or "" for version in made)
        told = ", ".join(f"{MARKS.get(why, why)} {n} of {len(made)}" for why, n in reasons.most_common())
        raise RunError(f"no version of a prompt can be used: {told}. Nothing is compared; take another --writer")
    if not ended:
        return False
    pairs = _placed(f"{given.base}/{PAIRS}", [pair_row(version) for version in usable])
    done = complete(
        run_wave(given.pair_runs(pairs), f"{given.base}/{PAIRS}", title="Pairs", settings=settings, **JOINS)
    )
    if given.study is None:
        return done
    _placed(f"{given.base}/{ASKED}", conversations_of(usable))
    return given.study.ask() and done


def _placed(folder: str, rows: Sequence[Mapping[str, Any]]) -> str:
    """The rows as a file of this folder, from which every run reads them; the file."""
    content, file = "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows).encode(), f"{folder}/{FILE}"
    same_or_new(file, content, "the prompts or the features to remove changed since")
    place({FILE: content}, folder)
    return file


def versions_of(log: EvalLog) -> list[Version]:
    """Both versions of every prompt, from the writer's log."""
    made = []
    for sample in samples(log.location):
        record, about, score = record_of(sample), sample.metadata, last_score(sample.scores)
        panel = (score.metadata or {}).get(PANEL, {}) if score else {}
        for check in last_decisions(sample.scores):
            text, source = record.answers[check.key].text, str(about["source"])
            messages = _with_last(about["messages"], text)
            after = numbered([(m["role"], m["content"]) for m in messages])
            texts = about["last"], text, check, messages, about["text"], after
            graders_of = {grader: {check.key: of[check.key]} for grader, of in panel.items() if check.key in of}
            made.append(Version(str(sample.id), source, check.key, *texts, graders_of))
    return made


def _with_last(messages: Sequence[Mapping[str, str]], text: str) -> list[dict[str, str]]:
    """The conversation with this as its last user message."""
    made = [dict(message) for message in messages]
    last = max(at for at, message in enumerate(made) if message["role"] == "user")
    made[last]["content"] = text
    return made


def pair_row(version: Version) -> dict[str, Any]:
    """The version beside its original, for the judges."""
    shared = {"source": version.source}
    return {
        "id": f"{version.arm}: {version.item}",
        "kind": version.arm,
        "one": shared | {"id": version.item, "text": version.after},
        "two": shared | {"id": version.item, "text": version.before},
    }


def conversations_of(versions: Sequence[Version]) -> list[dict[str, Any]]:
    """The versions and their originals, each original once, for the subject."""
    made = {f"original: {v.item}": {"messages": v.unchanged, "source": v.source} for v in versions}
    made |= {f"{v.arm}: {v.item}": {"messages": v.messages, "source": v.source} for v in versions}
    return [{"id": key} | row for key, row in made.items()]


def rewritten(given: Rewriting) -> Rewritten:
    """The numbers of what lies in the log folder.

    Raises:
        NoLogs: The writer's or every judge's run is unfinished.
    """
    logs = runs([f"{given.base}/{VERSIONS}"], ("rewriting",)).of(identities_of([given.versions_run])).finished
    if not logs:
        raise NoLogs(f"no finished log of rewriting in {given.base}/{VERSIONS}")
    compared = identities_of(given.pair_runs(f"{given.base}/{PAIRS}/{FILE}"))
    verdicts = None
    if given.study is not None:
        with suppress(NoLogs):
            verdicts = load_awareness([given.study.log_dir], given.study.identities).verdicts
    picks = load([f"{given.base}/{PAIRS}"], compared).picks
    return _rewritten(versions_of(logs[0].header), picks, given.grader, verdicts)


def rewritings_in(paths: Sequence[str]) -> tuple[Rewriting, Rewritten, Mapping[str, str]]:
    """The newest rewriting under these paths: what was asked for, its numbers, and why other logs are not used.

    Raises:
        NoLogs: There is no finished run of a writer, or of a judge on its versions.
    """
    there = runs(paths, ("rewriting",))
    if not there.finished:
        raise NoLogs(f"no finished log of rewriting in {', '.join(paths)}{first_of(there.aside)}", there.aside)
    newest, args = there.finished[0], there.finished[0].header.eval.task_args
    versions = versions_of(newest.header)
    pairs = {str(pair_row(version)["id"]): pair_row(version) for version in versions}
    compared = [
        run
        for run in runs(paths, (TASK,)).finished
        if all(pairs.get(str(one.id), {}).get("one") == one.metadata["one"] for one in run.samples)
    ]
    picks = load(paths, [run.identity for run in compared])
    grader = dict(newest.identity.roles)["grader"]
    verdicts = None
    with suppress(NoLogs):
        verdicts = load_awareness(paths).verdicts
        verdicts = verdicts[verdicts["item"].str.startswith(("original: ", *(f"{arm}: " for arm in ARMS)))]
    given = Rewriting(
        dataset=str(args["dataset"]),
        remove=tuple(str(args["remove"]).split(";")),
        writer=newest.identity.model,
        grader=grader,
        judges=tuple(judge for judge in picks.picks if judge not in options.names(grader)),
        model=None if verdicts is None or verdicts.empty else str(verdicts.model.iloc[0]),
    )
    aside = {**there.of([newest.identity]).aside, **picks.ignored}
    return given, _rewritten(versions, picks.picks, grader, verdicts), aside


def _rewritten(
    versions: Sequence[Version], picks: Mapping[str, Sequence[Pick]], grader: str, verdicts: pd.DataFrame | None
) -> Rewritten:
    graded = options.names(grader)
    outside = panel_of({judge: made for judge, made in picks.items() if judge not in graded})
    inside = panel_of({judge: made for judge, made in picks.items() if judge in graded})
    by_arm, own = ({arm: [p for p in of if p.kind == arm] for arm in ARMS} for of in (outside, inside))
    sources = {version.item: version.source for version in versions}
    held_out = {arm: {p.one: p.won for p in mine} for arm, mine in by_arm.items()}
    return Rewritten(
        versions=tuple(versions),
        held_out={arm: win_rate(mine) for arm, mine in by_arm.items()},
        own={arm: win_rate(mine) for arm, mine in own.items()},
        over_paraphrase=_less(held_out["rewrite"], held_out["paraphrase"], sources),
        games=_less({p.one: p.won for p in own["rewrite"]}, held_out["rewrite"], sources),
        picks=picks,
        noticed=None if verdicts is None or verdicts.empty else _noticed(verdicts, sources),
    )


def _noticed(verdicts: pd.DataFrame, sources: Mapping[str, str]) -> Noticed:
    p = dict(zip(verdicts["item"], verdicts["probability"].astype(float), strict=True))
    original, *versions = ({item: p.get(f"{arm}: {item}", math.nan) for item in sources} for arm in ("original", *ARMS))
    changes: dict[str, Estimate] = {arm: _less(of, original, sources) for arm, of in zip(ARMS, versions, strict=True)}
    rewrites, paraphrases = versions
    return Noticed(changes, _less(rewrites, paraphrases, sources), float(verdicts.probability.isna().mean()))


def _less(ours: Mapping[str, float], others: Mapping[str, float], sources: Mapping[str, str]) -> Estimate:
    """Mean difference of two numbers of the same prompts, clustered by source."""
    both = {item: value - others[item] for item, value in ours.items() if item in others}
    both = {item: value for item, value in both.items() if not math.isnan(value)}
    clusters, unit = resampled([sources[item] for item in both], list(both), [""] * len(both))
    return crossed(np.array(list(both.values())), clusters, clusters, unit=unit, signed=True)
