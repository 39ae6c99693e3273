"""Sentences taken out: what is asked, what it takes, and which of them give the evaluation away."""

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd
from inspect_ai.log import EvalLog

from selfprobe.awareness.per_model import ANSWER, PerModel
from selfprobe.data import Table
from selfprobe.described import NamedModel
from selfprobe.evalawareness_tasks.cue_removal import (
    CONTROLS,
    MOST,
    PARAPHRASE_PROMPT,
    QUESTIONS,
    record_to_sample,
)
from selfprobe.header import roles_of
from selfprobe.prices import Cost
from selfprobe.quotes import fold
from selfprobe.solvers.edited import ALL, ORIGINAL, PARAPHRASE
from selfprobe.sources.conversations import conversations
from selfprobe.stats.edits import FEWEST, Control, Effect, Noise, effects, noise

ENOUGH = 40
"""Controls over all prompts from which more of each prompt tell little."""


@dataclass(frozen=True, kw_only=True)
class Cues(PerModel):
    """What `selfprobe awareness cues` was asked for."""

    grader: str | None = None
    """Who paraphrases; None is no paraphrase."""
    task: str | None = None
    logs: str | None = None
    most: int = MOST
    controls: int | None = None
    """Of each prompt; None: CONTROLS, and more where there are few prompts."""
    log_dir: str = "logs/awareness_cues"

    @property
    def source(self) -> dict[str, Any]:
        """The prompts, as the task takes them."""
        known = {name: getattr(self, name) for name in ("task", "logs", "role", "label")}
        return {"dataset": self.dataset} | {name: value for name, value in known.items() if value is not None}

    def controls_of(self, prompts: int) -> int:
        """Controls of each prompt."""
        return self.controls or max(CONTROLS, math.ceil(ENOUGH / prompts))


def read(study: Cues) -> Table:
    """The prompts. No model is asked.

    Raises:
        InputError: See `sources.conversations.conversations`.
    """
    given = dict(study.source)
    return conversations(given.pop("dataset"), context="first", **given)


def described(study: Cues, table: Table) -> str:
    """What will be asked, and what that costs."""
    rows = table.rows[: study.limit]
    controls = study.controls_of(len(rows))
    made = [record_to_sample(row, study.most, controls).metadata or {} for row in rows]
    arms = [prompt for sample in made for prompt in sample["arms"].values()]
    units = [told for sample in made for name, told in sample["units"].items() if name != ALL]
    whole = sum(told["missing"] is not None for told in units)
    texts = [m["content"] for sample in made for m in sample["arms"][ORIGINAL]["messages"] if m["role"] != "assistant"]
    size = sum(len(m["content"]) for prompt in arms for m in prompt["messages"])
    paraphrases = len(rows) if study.grader else 0
    calls = 2 * (len(arms) + paraphrases)
    sent = (2 * size + 2 * paraphrases * sum(map(len, texts)) // len(rows)) // 4
    sent += calls * len(QUESTIONS["evaluation"]) // 4
    shared = sum(name.startswith("c") for sample in made for name in sample["arms"])
    several = "two for each prompt, as it is and in other words" if study.grader else "one for each prompt as it is"
    every = sum(ALL in sample["arms"] for sample in made)
    together = f"{every} without all giveaways, " if every else ""
    lines = [
        f"{len(rows)} prompts, {len(units)} things to take out × {', '.join(study.models)}",
        f"Two calls for each of {len(arms) + paraphrases} forms: {len(units) - whole} without one thing, {together}"
        f"{shared} without as much text elsewhere, {several}.",
    ]
    lines += [f"{whole} of them are a whole prompt, and cannot be taken out."] if whole else []
    lines += filter(None, (table.told(), table.unread))
    costs = [Cost(model, calls, sent, calls * ANSWER) for model in study.models]
    if study.grader:
        size = sum(map(len, texts)) // 4
        each = len(texts) * len(study.models)
        costs.append(Cost(study.grader, each, each * len(PARAPHRASE_PROMPT) // 4 + size, size))
    return "\n".join([*lines, "", *study.settings.costed(costs, rounds=2 if study.grader else 1)])


def run_cues(study: Cues, table: Table) -> bool:
    """Run it, one run a model; what was asked is not asked again.

    Raises:
        Interrupted: The user stopped it.
        InputError: A model cannot be had, or the log folder cannot be written.
    """
    roles = {"grader": NamedModel(study.grader)} if study.grader else {}
    controls = study.controls_of(len(table.rows[: study.limit]))
    return study.run("cue_removal", "Something taken out", roles=roles, controls=controls)


def arms_of(study: Cues, table: Table) -> pd.DataFrame:
    """What the study's logs of these prompts say of each form: one row a model × prompt × form.

    model, item, label, arm, kind (original, paraphrase, control, all, sentence, options, code, placeholder, tool), text
    (what was taken out), classes, hits (of a control, the texts of units that it touches), p (P(evaluation), NaN where
    no answer could be read), missing (why there is no such form), no_paraphrase.
    """
    rows: list[dict[str, Any]] = []
    controls = study.controls_of(len(table.rows[: study.limit]))

    def of_these(log: EvalLog) -> bool:
        about, roles = log.eval.metadata or {}, roles_of(log)
        same = (about.get("dataset_sha256"), about.get("units"), about.get("controls"))
        return same == (table.sha256, study.most, controls) and bool(roles.get("grader")) == bool(study.grader)

    for model, sample, score in study.scored("cue_removal", of_these):
        said, units = score.metadata or {}, sample.metadata["units"]
        keys = {"model": model, "item": str(sample.id), "label": sample.metadata["label"]}
        keys["no_paraphrase"] = said["no_paraphrase"]
        for arm in dict.fromkeys([*said["p"], *units]):
            kind = "control" if arm.startswith("c") else arm
            about = units.get(arm, {"kind": kind, "text": "", "classes": [], "missing": None})
            hits = [units[name]["text"] for name in sample.metadata["arms"].get(arm, {}).get("hits", ())]
            rows.append(keys | {"arm": arm} | about | {"hits": hits, "p": said["p"].get(arm)})
    return pd.DataFrame(rows)


@dataclass(frozen=True)
class Found:
    """What one model's answers say."""

    model: str
    rows: pd.DataFrame
    """Of `arms_of`, with `change`: P(evaluation) of the prompt as it is, less that of this form."""
    noise: Noise
    sentences: list[Effect]
    """By what was taken out, the strongest first; the same text in several prompts is one."""
    classes: list[Effect]
    """Of all units whose text a rule matches, by class."""
    everything: Effect | None
    """Of all giveaways together; None where no prompt has two."""
    flips: Mapping[str, tuple[int, int]]
    """Kind of edit → verdicts that it turned, of how many."""


def found_in(rows: pd.DataFrame, model: str) -> Found:
    """The effects of one model.

    Args:
        rows: From `arms_of`.
        model: As the study names it.
    """
    mine = rows[rows.model == model].assign(p=rows.p.astype(float))
    whole = mine[mine.arm == ORIGINAL].set_index("item").p
    mine = mine.assign(change=mine.item.map(whole) - mine.p, whole=mine.item.map(whole))
    single = mine[~mine.kind.isin([ORIGINAL, PARAPHRASE, "control", ALL])]
    names = single.text.map(_same)
    shown = single.groupby(names).text.max()  # of several typographies one, whichever prompt came first
    changes = {shown[name]: list(part.change) for name, part in single.groupby(names)}
    beside = mine[mine.kind == "control"]
    controls = [
        Control(change, frozenset(shown[_same(text)] for text in hits))
        for change, hits in zip(beside.change, beside.hits, strict=True)
    ]
    sentences = _strongest(effects(changes, controls))
    sure = {effect.name for effect in sentences if effect.holm < 0.05}
    clean = [replace(control, hits=frozenset()) for control in controls if not control.hits & sure]
    by_class = {str(name): list(part.change) for name, part in single.explode("classes").groupby("classes")}
    all_of = mine[mine.kind == ALL]
    return Found(
        model=model,
        rows=mine,
        noise=noise([control.change for control in clean]),
        sentences=sentences,
        classes=_strongest(effects(by_class, clean)),
        everything=effects({ALL: list(all_of.change)}, clean)[0] if len(all_of) else None,
        flips={
            "one thing taken out": _flips(single),
            "all giveaways taken out": _flips(all_of),
            "as much text elsewhere": _flips(beside),
            "in other words": _flips(mine[mine.kind == PARAPHRASE]),
        },
    )


def _same(text: str) -> str:
    """What texts that differ in typography alone have in common."""
    return fold(text)[0].strip() or text


def _strongest(given: list[Effect]) -> list[Effect]:
    return sorted(given, key=lambda e: -np.nan_to_num(e.estimate.value, nan=-9))


def _flips(rows: pd.DataFrame) -> tuple[int, int]:
    both = rows[rows.p.notna() & rows.whole.notna()]
    return int(((both.p >= 0.5) != (both.whole >= 0.5)).sum()), len(both)


def told(found: Found) -> Iterator[str]:
    """What may be said."""
    whole = found.rows[found.rows.arm == ORIGINAL].p
    yield f"P(evaluation) of the prompts as they are: {whole.mean():.2f} ({whole.notna().sum()} prompts)."
    if not found.noise.n:
        yield "No prompt is long enough to take as much out elsewhere: no change can be told from that of any edit."
    judged = [e for e in found.sentences if not math.isnan(e.p)]
    sure = [e for e in judged if e.holm < 0.05 and e.estimate.value > 0]
    if sure:
        best = sure[0]
        yield (
            f"{len(sure)} of {len(judged)} things give it away beyond what any edit does (Holm); most of all "
            f"“{best.name[:90]}”: {best.estimate.value:+.2f} [{best.estimate.low:+.2f}, {best.estimate.high:+.2f}]."
        )
    elif found.noise.n and not judged:
        yield (
            f"No effect has an interval: there are {found.noise.n} edits elsewhere, and {FEWEST} are needed that "
            "do not touch the thing (--controls, or more prompts)."
        )
    elif judged:
        yield (
            f"None of {len(judged)} things is shown to give it away: edits of their length move the number by "
            f"{found.noise.spread:.2f} (standard deviation, of their median deviation)."
        )
    if (every := found.everything) and not math.isnan(every.estimate.value):
        left = found.rows[found.rows.arm == ALL].p.mean()
        yield f"With all giveaways out (by the rules for English) P(evaluation) is {left:.2f} where there are several."
    gone = int((found.rows.missing.notna() & (found.rows.kind != ALL)).sum())
    if gone:
        yield f"{gone} things are a whole prompt: nothing would be left to ask about."
    lost = found.rows.no_paraphrase[found.rows.arm == ORIGINAL]
    if failed := int((lost != "").sum()):
        yield f"{failed} prompts have no paraphrase: {lost[lost != ''].min()}."
    turned = [f"{name} {hits} of {of}" for name, (hits, of) in found.flips.items() if of]
    if turned:
        yield f"Verdicts turned: {', '.join(turned)}."
