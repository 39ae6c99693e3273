"""Does noticing matter? The score of any Inspect task, with and without what makes a model notice a test."""

import csv
import hashlib
import io
import json
from collections.abc import Iterator, Mapping
from functools import cached_property
from typing import Any, ClassVar, Self

from pydantic import Field, model_validator

from selfprobe.data import read_text
from selfprobe.data.items import Item, foreign, giveaways, task_items
from selfprobe.data.prices import Cost
from selfprobe.errors import InputError, NoLogs, RunError
from selfprobe.errors.arguments import locate
from selfprobe.errors.output import place_file
from selfprobe.evalawareness_tasks.arm_texts import ARMS as REWORDED
from selfprobe.evalawareness_tasks.arm_texts import CHECK_PROMPT, NO_TEXT, PROMPTS
from selfprobe.evalawareness_tasks.awareness_effect import AS_IS, CALLS, CONTROL, DEFAULT, effect_arms, sample_of
from selfprobe.evalawareness_tasks.cue_removal import QUESTIONS
from selfprobe.logs import logs_in, runs
from selfprobe.logs.decision import last_decisions
from selfprobe.page import Page
from selfprobe.solvers.record import record_of
from selfprobe.stats.paired import visible
from selfprobe.studies import effect_page
from selfprobe.studies.effect_numbers import SMALL, Found, ReadScores, found_in
from selfprobe.study import Logs, OneModel, Plan, Study, Wave
from selfprobe.study.described import DescribedRun, NamedModel, identities_of
from selfprobe.study.options import LOG_DIR_HELP, MODELS_HELP, OUT_HELP
from selfprobe.study.waves import JOINS

TASK, TEXTS = "awareness_effect", "arm_texts"
REPLY, ANSWER = 200, 5
"""A rough guess of the tokens of a reply and of an answer."""


class Noticing(Study):
    """Does noticing matter? The score of TASK with and without what makes a model notice a test.

    TASK is any Inspect task, by name (inspect_evals/gsm8k) or as FILE.py@TASK. It runs with its own solver, tools,
    scorer, epochs and limits on the same items under each arm, and P(evaluation) is asked apart. Resumes with the same
    command.
    """

    reads: ClassVar[frozenset[str]] = frozenset({TASK, TEXTS})

    task: str = Field(examples=["TASK"])
    models: tuple[str, ...] = Field(min_length=1, description=MODELS_HELP)
    arms: tuple[str, ...] = Field(
        DEFAULT,
        description="Arms: cue_out, cue_in, paraphrase, told_test, told_use, placebo. The task as it is and each arm's "
        "control always run.",
    )
    grader: OneModel | None = Field(
        None, description="Model that rewords the prompts and checks that the task is unchanged. Default: the model."
    )
    cues: str | None = Field(
        None,
        description="Giveaways to take out: tables/effects.csv of `awareness cues`. Default: what rules for English "
        "match.",
    )
    score: str | None = Field(None, description="Scorer, or key of its score, that is compared. Default: the first.")
    smallest: float = Field(SMALL, gt=0, description="The smallest effect that matters.")
    args: dict[str, Any] = Field({}, description="Argument of the task.")
    role: dict[str, Any] = Field({}, description="Model role of the task, such as grader=openai/a.")
    out: str = Field("awareness_effect", description=OUT_HELP)
    log_dir: str = Field("logs/awareness_effect", description=LOG_DIR_HELP)

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        effect_arms(self.arms)
        if set(effect_arms(self.arms)) & set(REWORDED) and not self.grader and len(self.models) > 1:
            raise InputError("several models need one writer of their texts: give --grader MODEL")
        return self

    @cached_property
    def cued(self) -> list[bool]:
        """Whether an item holds a giveaway, for each that a limit takes and that has a text."""
        return [bool(giveaways(item.text, self.passages)) for item in self.first if item.text]

    @property
    def wanted(self) -> list[str]:
        """Arms that can be asked: cue_out equals the task as it is where nothing is to be taken out.

        Raises:
            InputError: No other arm was named, or no item has a text to reword.
        """
        named = [arm for arm in self.arms if arm != "cue_out" or any(self.cued)]
        if reworded := [arm for arm in self.arms if arm in REWORDED and not self.cued]:
            raise InputError(f"{self.task}: {NO_TEXT.format(arms=', '.join(reworded))}")
        if not named:
            raise InputError(f"no prompt of {self.task} holds a giveaway: cue_out equals as_is; name other --arms")
        return effect_arms(named)

    @property
    def reworded(self) -> list[str]:
        """Arms whose texts are written by a model."""
        return [arm for arm in self.wanted if arm in REWORDED]

    @property
    def writer(self) -> str:
        """Model that rewords."""
        return self.grader or self.models[0]

    @cached_property
    def passages(self) -> list[str]:
        """Giveaways that were found before; empty where the rules name them.

        Raises:
            InputError: The file is no such table, or names none.
        """
        if self.cues is None:
            return []
        place = locate(self.cues)
        rows = list(csv.DictReader(io.StringIO(read_text(place))))
        if not rows or not {"taken_out", "effect", "p_holm"} <= rows[0].keys():
            raise InputError(f"{self.cues}: expected columns taken_out, effect and p_holm, as `awareness cues` writes")
        sure = [row for row in rows if float(row["p_holm"] or 1) < 0.05 and float(row["value"] or 0) > 0]
        if not sure:
            raise InputError(f"{self.cues}: no giveaway is shown there (p_holm below .05); leave --cues out")
        return list(dict.fromkeys(row["taken_out"] for row in sure))

    @cached_property
    def built(self) -> tuple[list[Item], int]:
        """The task's items and its epochs. No model is asked.

        Raises:
            InputError: See `sources.items.foreign`.
        """
        made = foreign(self.task, self.args)
        return task_items(made), made.epochs or 1

    @property
    def first(self) -> list[Item]:
        """Items that a limit takes."""
        return self.built[0][: self.limit]

    @property
    def own(self) -> dict[str, Any]:
        """Arguments that both tasks share."""
        return {"task": self.task, **({"args": self.args} if self.args else {}), **self.how.shared}

    @property
    def writing(self) -> DescribedRun:
        """The writer's part."""
        cues = {"cues": self.passages} if self.passages else {}
        return DescribedRun(TEXTS, {**self.own, "arms": ",".join(self.reworded), **cues}, NamedModel(self.writer))

    @property
    def versions(self) -> dict[str, dict[str, str]]:
        """Arm → message of the task → usable version of it; empty before the writer's run has ended well."""
        folder, made = f"{self.base}/texts", dict[str, dict[str, str]]()
        there = runs([folder], {TEXTS}).of(identities_of([self.writing])).finished if logs_in(folder) else []
        for run in there[:1]:
            for sample in run.samples:
                usable = [one.key for one in last_decisions(sample.scores) if not one.unscored]
                for arm in usable:
                    made.setdefault(arm, {})[str(sample.input)] = record_of(sample).answers[arm].text.strip()
        return made

    def asking(self, texts: Mapping[str, Mapping[str, str]]) -> list[DescribedRun]:
        """A run a model, of the arms that can be asked; none where nothing can be compared."""
        wanted = [arm for arm in self.wanted if arm not in REWORDED or (texts.get(arm) and texts.get("paraphrase"))]
        if wanted == [AS_IS]:
            return []
        about = {"arms": ",".join(wanted)}
        if any(arm in REWORDED for arm in wanted):
            lines = [
                {"original": original, "arm": arm, "text": text}
                for arm, of in texts.items()
                for original, text in of.items()
            ]
            key = json.dumps([self.writer, self.passages, sorted(PROMPTS.items())])
            about["texts"] = f"{self.base}/texts/{hashlib.sha256(key.encode()).hexdigest()[:12]}.jsonl"
            about["reworded_by"] = self.writer
            place_file("".join(json.dumps(line) + "\n" for line in lines).encode(), about["texts"])
        roles = {role: NamedModel(str(model)) for role, model in self.role.items()}
        models = [NamedModel(model, self.how.model_args) for model in self.models]
        return [DescribedRun(TASK, {**self.own, **about}, model, roles) for model in models]

    def waves(self) -> Iterator[Wave]:
        """The writer's run, then the task under its arms.

        Raises:
            RunError: No text can be used, and no other arm is there.
        """
        texts: dict[str, dict[str, str]] = {}
        if self.reworded:
            yield Wave([self.writing], "Texts", "texts", {**JOINS, "limit": len(self.first)})
            if not (texts := self.versions):
                why = "the prompts were not reworded, or no version keeps its task"
                raise RunError(f"{why}; see above. The same command goes on, or take another --grader")
        if not (asked := self.asking(texts)):
            raise RunError(f"no item has a text for {', '.join(self.reworded)}: nothing can be compared")
        wanted = effect_arms(str(asked[0].args["arms"]))
        samples = sum(sample_of(item, arm, texts) is not None for item in self.first for arm in wanted)
        yield Wave(asked, "Arms", "", {**JOINS, "limit": samples})

    @property
    def items(self) -> int | None:
        """Number of samples that are shown; each wave has a limit of its own."""
        if self.limit is None:
            return None
        texts = self.versions if self.reworded else {}
        return sum(sample_of(item, arm, texts) is not None for item in self.first for arm in self.wanted)

    @property
    def rounds(self) -> int:
        """Calls that wait for one another: reword, check, reply, answer."""
        return 4 if self.reworded else 2

    def plan(self) -> Plan:
        """Calls by arm, and the effect that so many items can show."""
        items, (_, epochs), counts = self.first, self.built, self.counts
        calls = {arm: n * (epochs + CALLS - 1) for arm, n in counts.items()}
        length = sum(len(item.text or "") for item in items) // 4 // len(items)
        sent = sum(calls.values()) * length + 2 * sum(counts.values()) * len(QUESTIONS["evaluation"]) // 4
        written = sum(counts.values()) * (epochs * REPLY + 2 * ANSWER)
        costs = [Cost(model, sum(calls.values()), sent, written) for model in self.models]
        times = f" × {epochs} epochs" * (epochs > 1)
        lines = [f"{len(items)} items{times} of {self.task} × {', '.join(self.models)}, each under {len(counts)} arms"]
        if len(items) < len(self.built[0]):
            lines.append(f"--limit {self.limit} takes the first of {len(self.built[0])} items.")
        if added := [arm for arm in counts if arm not in (*self.arms, AS_IS)]:
            lines.append(f"Added: {', '.join(added)}, which other arms are compared with.")
        lines.append(f"Calls by arm: {', '.join(f'{arm} {n:,}' for arm, n in calls.items())}.")
        lines.append("Counted: one call a reply, which an agent exceeds; two about P(evaluation) an item and arm.")
        if "cue_out" in self.arms and "cue_out" not in counts:
            lines.append("cue_out is left out: no prompt holds a giveaway, so that it equals as_is.")
        if self.reworded:
            lines += self._of_writer(counts)
            n = sum(counts[arm] for arm in self.reworded)
            texts = n * (3 * length + (len(PROMPTS["cue_out"]) + len(CHECK_PROMPT)) // 4)
            costs.append(Cost(self.writer, 2 * n, texts, n * (length + ANSWER)))
        compared = [counts[arm] for arm in counts if arm in CONTROL and counts[arm]]
        least = 100 * visible(min(compared or [len(items)]), len(compared) or 1)
        lines.append(
            f"Power: of {min(compared or [len(items)])} items or more, an effect of {least:.0f} points on a score of 0 "
            f"or 1 would be seen ({len(compared) or 1} comparison{'s' * (len(compared) > 1)} by Holm, power .8)."
        )
        return Plan(lines, costs)

    @property
    def counts(self) -> dict[str, int]:
        """Arm → items that can be asked under it, before any text is written."""
        counts = dict.fromkeys(self.wanted, len(self.first)) | dict.fromkeys(self.reworded, len(self.cued))
        return counts | ({"cue_out": sum(self.cued)} if "cue_out" in counts else {})

    def _of_writer(self, counts: Mapping[str, int]) -> Iterator[str]:
        """Lines on who rewords, and on items with nothing to reword."""
        whose = "" if self.grader else ", the model itself (--grader names another)"
        yield f"{self.writer} rewords the prompts and checks that their task stays{whose}."
        items, paraphrased = len(self.first), counts["paraphrase"]
        if paraphrased < items:
            yield f"{items - paraphrased} of {items} items have no user message of text alone: no reworded arm."
        if "cue_out" in counts:
            rest = "; the others are left out of it" * (counts["cue_out"] < paraphrased)
            yield f"cue_out: {counts['cue_out']} of {paraphrased} prompts hold a giveaway{rest}."

    def collected(self) -> "ReadScores":
        """Logs of the study, with the score that is compared and the effect that matters."""
        return ReadScores(**vars(super().collected()), score=self.score, smallest=self.smallest)

    @classmethod
    def numbers(cls, logs: Logs) -> "list[Found]":
        """The effects in each run.

        Raises:
            NoLogs: No run ended well, or no score is a number.
        """
        how = logs if isinstance(logs, ReadScores) else ReadScores(**vars(logs))
        mine = [run for run in how.runs.finished if run.identity.task == TASK]
        found = [found_in(run, how.models[how.names[run.identity]], how) for run in mine]
        if not found:
            raise NoLogs("no run under the arms ended well; see above. The same command goes on")
        return found

    @classmethod
    def page(cls, found: "list[Found]") -> Page:
        """The answer by run, with tables arms, effects and items."""
        return effect_page.page(found)
