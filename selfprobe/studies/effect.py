"""Does noticing matter? The score of any Inspect task, with and without what makes a model notice a
test.
"""

import hashlib
import json
import math
from collections.abc import Iterator, Mapping
from functools import cached_property
from typing import Any, ClassVar, Self

from pydantic import Field, model_validator

from selfprobe.data.files import csv_rows, text_lines
from selfprobe.data.items import Item, foreign, giveaways, task_items
from selfprobe.data.prices import Cost
from selfprobe.errors import InputError, NoLogs, RunError
from selfprobe.errors.arguments import locate
from selfprobe.errors.output import place_file
from selfprobe.evalawareness_tasks.arm_texts import ARMS as REWORDED
from selfprobe.evalawareness_tasks.arm_texts import CHECK_PROMPT, NO_TEXT, PROMPTS
from selfprobe.evalawareness_tasks.awareness_effect import (
    AS_IS,
    CALLS,
    CONTROL,
    DEFAULT,
    KIND_CONTROL,
    effect_arms,
    sample_of,
)
from selfprobe.evalawareness_tasks.cue_removal import QUESTIONS
from selfprobe.logs import logs_in, runs
from selfprobe.logs.decision import last_decisions
from selfprobe.page import Page
from selfprobe.solvers.record import record_of
from selfprobe.stats.arms import (
    clusters_needed,
    visible_effect,
)
from selfprobe.stats.claim import ALPHA
from selfprobe.studies.effect_numbers import (
    EFFECT_TASK,
    SMALLEST_SCORE_EFFECT,
    TEXTS_TASK,
    ReadScores,
    RunEffects,
    corrected_effects,
    effects_of,
)
from selfprobe.studies.effect_page import page_of_effects
from selfprobe.study import Logs, OneModel, Plan, Study, Wave
from selfprobe.study.described import DescribedRun, NamedModel, identities_of
from selfprobe.study.options import LOG_DIR_HELP, MODELS_HELP, OUT_HELP
from selfprobe.study.waves import JOINED_FOLDER_ARGUMENTS
from selfprobe.text.counts import count_text

REPLY_TOKENS = 200
"""A rough guess of the tokens of a reply."""
EFFECT_ANSWER_TOKENS = 5
"""A rough guess of the tokens of an answer."""
WHOLE_SCALE = 0.995
"""Change of a score of 0 or 1 that is 100 points when it is rounded."""


class Noticing(Study):
    """Does noticing matter? The score of TASK with and without what makes a model notice a test.

    TASK is any Inspect task, by name (inspect_evals/gsm8k) or as FILE.py@TASK. It runs with its own
    solver, tools, scorer, epochs and limits on the same items under each arm, and P(evaluation) is
    asked apart. Resumes with the same command.
    """

    reads: ClassVar[frozenset[str]] = frozenset({EFFECT_TASK, TEXTS_TASK})

    task: str = Field(examples=["TASK"])
    models: tuple[str, ...] = Field(min_length=1, description=MODELS_HELP)
    arms: tuple[str, ...] = Field(
        DEFAULT,
        description="Arms: cue_out, cue_in, paraphrase, told_test, told_use, placebo. The task as "
        "it is and each arm's control always run.",
    )
    kinds: bool = Field(
        False,
        description="Ask by perceived kind of evaluation in place of --arms: a line that suggests a "
        "puzzle, a simulation, a trap or a safety test, each beside an irrelevant line as long.",
    )
    grader: OneModel | None = Field(
        None,
        description="Model that rewords the prompts and checks that the task is unchanged. "
        "Default: the model.",
    )
    cues: str | None = Field(
        None,
        description="Giveaways to take out: tables/effects.csv of `awareness cues`. Default: what "
        "rules for English match.",
    )
    score: str | None = Field(
        None, description="Scorer, or key of its score, that is compared. Default: the first."
    )
    smallest: float = Field(
        SMALLEST_SCORE_EFFECT, gt=0, description="The smallest effect that matters."
    )
    cluster: str | None = Field(
        None, description="Metadata of the samples whose equal values are one unit of intervals."
    )
    declining_counts: bool = Field(
        False,
        description="Declining is what the task scores: arms in which it declines more often are "
        "compared all the same.",
    )
    args: dict[str, Any] = Field({}, description="Argument of the task.")
    role: dict[str, Any] = Field({}, description="Model role of the task, such as grader=openai/a.")
    out: str = Field("awareness_effect", description=OUT_HELP)
    log_dir: str = Field("logs/awareness_effect", description=LOG_DIR_HELP)

    @model_validator(mode="after")
    def _has_one_writer(self) -> Self:
        if self.kinds and self.arms != DEFAULT:
            raise InputError("kinds has arms of its own: leave --arms out, or --kinds")
        is_any_reworded = not set(effect_arms(self.asked_arms)).isdisjoint(REWORDED)
        if is_any_reworded and not self.grader and len(self.models) > 1:
            raise InputError("several models need one writer of their texts: give --grader MODEL")
        return self

    @cached_property
    def holds_giveaway(self) -> list[bool]:
        """Whether an item holds a giveaway, for each that a limit takes and that has a text."""
        return [bool(giveaways(item.text, self.passages)) for item in self.items_run if item.text]

    @property
    def asked_arms(self) -> tuple[str, ...]:
        """Arms that were asked for, without controls."""
        return tuple(KIND_CONTROL) if self.kinds else self.arms

    @property
    def arms_run(self) -> list[str]:
        """Arms that can be asked: cue_out equals the task as it is where nothing is to be taken
        out.

        Raises:
            InputError: No other arm was named, or no item has a text to reword.
        """
        has_giveaways = any(self.holds_giveaway)
        named_arms = [arm for arm in self.asked_arms if arm != "cue_out" or has_giveaways]
        arms_without_text = []
        if not self.holds_giveaway:
            arms_without_text = [arm for arm in self.asked_arms if arm in REWORDED]
        if arms_without_text:
            raise InputError(f"{self.task}: {NO_TEXT.format(arms=', '.join(arms_without_text))}")
        if not named_arms:
            raise InputError(
                f"no prompt of {self.task} holds a giveaway: cue_out equals as_is; name other "
                "--arms"
            )
        return effect_arms(named_arms)

    @property
    def reworded_arms(self) -> list[str]:
        """Arms whose texts are written by a model."""
        return [arm for arm in self.arms_run if arm in REWORDED]

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
        cues_file = locate(self.cues)
        rows = [row for _, row in csv_rows(text_lines(cues_file), cues_file)]
        expected = (
            "expected columns taken_out, effect, value and p_holm, as `awareness cues` writes"
        )
        if not rows or not {"taken_out", "effect", "value", "p_holm"} <= rows[0].keys():
            raise InputError(f"{self.cues}: {expected}")

        passages = dict[str, None]()
        for row in rows:
            try:
                p_corrected = float(row["p_holm"] or 1)
                effect = float(row["value"] or 0)
            except ValueError as error:
                raise InputError(f"{self.cues}: {expected}; {error}") from None
            if p_corrected < ALPHA and effect > 0:
                passages[row["taken_out"]] = None
        if not passages:
            raise InputError(
                f"{self.cues}: no giveaway is shown there (p_holm below .05); leave --cues out"
            )
        return list(passages)

    @cached_property
    def items_and_epochs(self) -> tuple[list[Item], int]:
        """The task's items and its epochs. No model is asked.

        Raises:
            InputError: See `data.items.foreign`.
        """
        task = foreign(self.task, self.args)
        return task_items(task), task.epochs or 1

    @property
    def items_run(self) -> list[Item]:
        """Items that a limit takes."""
        items, _ = self.items_and_epochs
        return items[: self.limit]

    @property
    def shared_args(self) -> dict[str, Any]:
        """Arguments that both tasks share."""
        task_args = {"args": self.args} if self.args else {}
        return {"task": self.task, **task_args, **self.run_settings.shared}

    @property
    def writer_run(self) -> DescribedRun:
        """The run in which the writer rewords."""
        cues = {"cues": self.passages} if self.passages else {}
        args = {**self.shared_args, "arms": ",".join(self.reworded_arms), **cues}
        return DescribedRun(TEXTS_TASK, args, NamedModel(self.writer))

    @property
    def written_texts(self) -> dict[str, dict[str, str]]:
        """Arm → message of the task → usable version of it; empty before the writer's run has ended
        well.
        """
        folder = f"{self.log_folder}/texts"
        if not logs_in(folder):
            return {}
        writer_runs = (
            runs([folder], {TEXTS_TASK}).with_identities(identities_of([self.writer_run])).finished
        )
        texts: dict[str, dict[str, str]] = {}
        for run in writer_runs[:1]:
            for sample in run.samples:
                answers = record_of(sample).answers
                for decision in last_decisions(sample.scores):
                    if not decision.unscored:
                        versions = texts.setdefault(decision.key, {})
                        versions[str(sample.input)] = answers[decision.key].text.strip()
        return texts

    def arm_runs(self, texts: Mapping[str, Mapping[str, str]]) -> list[DescribedRun]:
        """A run a model, of the arms that can be asked; none where nothing can be compared."""
        arms = []
        for arm in self.arms_run:
            has_texts = bool(texts.get(arm) and texts.get("paraphrase"))
            if arm not in REWORDED or has_texts:
                arms.append(arm)
        if arms == [AS_IS]:
            return []
        arm_args = {"arms": ",".join(arms)}
        if not set(arms).isdisjoint(REWORDED):
            arm_args["texts"] = self._place_texts(texts)
            arm_args["reworded_by"] = self.writer
        args = {**self.shared_args, **arm_args}
        roles = {role: NamedModel(str(model)) for role, model in self.role.items()}
        models = [NamedModel(model, self.run_settings.model_args) for model in self.models]
        return [DescribedRun(EFFECT_TASK, args, model, roles) for model in models]

    def _place_texts(self, texts: Mapping[str, Mapping[str, str]]) -> str:
        """Write the texts into a file, whose name says who wrote them and how; returns its
        address.
        """
        lines = []
        for arm, versions in texts.items():
            for original, text in versions.items():
                line = {"original": original, "arm": arm, "text": text}
                lines.append(json.dumps(line) + "\n")
        instructions = json.dumps([self.writer, self.passages, sorted(PROMPTS.items())])
        digest = hashlib.sha256(instructions.encode()).hexdigest()[:12]
        address = f"{self.log_folder}/texts/{digest}.jsonl"
        place_file("".join(lines).encode(), address)
        return address

    def waves(self) -> Iterator[Wave]:
        """The writer's run, then the task under its arms.

        Raises:
            RunError: No text can be used, and no other arm is there.
        """
        texts: dict[str, dict[str, str]] = {}
        if self.reworded_arms:
            limit = len(self.items_run)
            yield Wave(
                [self.writer_run], "Texts", "texts", {**JOINED_FOLDER_ARGUMENTS, "limit": limit}
            )
            texts = self.written_texts
            if not texts:
                raise RunError(
                    "the prompts were not reworded, or no version keeps its task; see above. The "
                    "same command goes on, or take another --grader"
                )
        arm_runs = self.arm_runs(texts)
        if not arm_runs:
            arms = ", ".join(self.reworded_arms)
            raise RunError(f"no item has a text for {arms}: nothing can be compared")

        sample_count = 0
        for arm in effect_arms(str(arm_runs[0].args["arms"])):
            samples = [sample_of(item, arm, texts) for item in self.items_run]
            sample_count += sum(sample is not None for sample in samples)
        yield Wave(arm_runs, "Arms", "", {**JOINED_FOLDER_ARGUMENTS, "limit": sample_count})

    @property
    def rounds(self) -> int:
        """Calls that wait for one another: reword, check, reply, answer."""
        return 4 if self.reworded_arms else 2

    def plan(self) -> Plan:
        """Calls by arm, and the effect that so many items can show."""
        items = self.items_run
        all_items, epochs = self.items_and_epochs
        item_counts = self.item_counts
        call_counts = {arm: count * (epochs + CALLS - 1) for arm, count in item_counts.items()}
        call_count = sum(call_counts.values())
        asked_count = sum(item_counts.values())

        prompt_tokens = sum(len(item.text or "") for item in items) // 4 // len(items)
        question_tokens = 2 * asked_count * len(QUESTIONS["evaluation"]) // 4
        sent_tokens = call_count * prompt_tokens + question_tokens
        written_tokens = asked_count * (epochs * REPLY_TOKENS + 2 * EFFECT_ANSWER_TOKENS)
        costs = [Cost(model, call_count, sent_tokens, written_tokens) for model in self.models]

        epochs_text = f" × {epochs} epochs" if epochs > 1 else ""
        models = ", ".join(self.models)
        lines = [
            f"{count_text(len(items), 'item')}{epochs_text} of {self.task} × {models}, each under "
            f"{count_text(len(item_counts), 'arm')}"
        ]
        if len(items) < len(all_items):
            lines.append(
                f"--limit {self.limit} takes the first of {count_text(len(all_items), 'item')}."
            )
        added_arms = [arm for arm in item_counts if arm not in (*self.asked_arms, AS_IS)]
        if added_arms:
            lines.append(f"Added: {', '.join(added_arms)}, which other arms are compared with.")
        calls_by_arm = ", ".join(f"{arm} {count:,}" for arm, count in call_counts.items())
        lines.append(f"Calls by arm: {calls_by_arm}.")
        lines.append(
            "Counted: one call a reply, which an agent exceeds; two about P(evaluation) an item "
            "and arm."
        )
        if "cue_out" in self.asked_arms and "cue_out" not in item_counts:
            lines.append(
                "cue_out is left out: no prompt holds a giveaway, so that it equals as_is."
            )
        if self.reworded_arms:
            lines += self._writer_lines(item_counts)
            costs.append(self._writer_cost(item_counts, prompt_tokens))
        lines.append(self._power_line(item_counts))
        return Plan(lines, costs)

    @property
    def item_counts(self) -> dict[str, int]:
        """Arm → items that can be asked under it, before any text is written."""
        counts = dict.fromkeys(self.arms_run, len(self.items_run))
        counts |= dict.fromkeys(self.reworded_arms, len(self.holds_giveaway))
        if "cue_out" in counts:
            counts["cue_out"] = sum(self.holds_giveaway)
        return counts

    def _writer_lines(self, item_counts: Mapping[str, int]) -> list[str]:
        """Lines on who rewords, and on items with nothing to reword."""
        writer_note = "" if self.grader else ", the model itself (--grader names another)"
        lines = [
            f"{self.writer} rewords the prompts and checks that their task stays{writer_note}."
        ]
        item_count = len(self.items_run)
        paraphrase_count = item_counts["paraphrase"]
        if paraphrase_count < item_count:
            lines.append(
                "Without a user message of text alone, and so without a reworded arm: "
                f"{item_count - paraphrase_count} of {count_text(item_count, 'item')}."
            )
        if "cue_out" in item_counts:
            cued_count = item_counts["cue_out"]
            is_partial = cued_count < paraphrase_count
            others_note = "; the others are left out of it" if is_partial else ""
            lines.append(
                f"cue_out: giveaways in {cued_count} of {count_text(paraphrase_count, 'prompt')}"
                f"{others_note}."
            )
        return lines

    def _writer_cost(self, item_counts: Mapping[str, int], prompt_tokens: int) -> Cost:
        """Calls and tokens of rewording and checking."""
        text_count = sum(item_counts[arm] for arm in self.reworded_arms)
        instruction_tokens = (len(PROMPTS["cue_out"]) + len(CHECK_PROMPT)) // 4
        sent_tokens = text_count * (3 * prompt_tokens + instruction_tokens)
        written_tokens = text_count * (prompt_tokens + EFFECT_ANSWER_TOKENS)
        return Cost(self.writer, 2 * text_count, sent_tokens, written_tokens)

    def _power_line(self, item_counts: Mapping[str, int]) -> str:
        """The effect that so many items, or clusters, can show by the test that decides."""
        compared_arms = [arm for arm, count in item_counts.items() if arm in CONTROL and count]
        test_count = max(1, len(compared_arms) * len(self.models))
        unit_counts = [self._unit_count(arm) for arm in compared_arms]
        fewest_units = min(unit_counts, default=len(self.items_run))
        units_text = count_text(fewest_units, self.cluster or "item")
        tests_text = f"{count_text(test_count, 'comparison')} by Holm"
        alike_text = ", whose items are taken to come out alike," if self.cluster else ""
        effect = visible_effect(fewest_units, test_count)
        if math.isinf(effect):
            return (
                f"Power: with {units_text} no change, however large, would be noticed "
                f"({tests_text}); {clusters_needed(test_count)} are the least."
            )
        change_text = f"a change of {100 * effect:.0f} points on a score of 0 or 1"
        if effect >= WHOLE_SCALE:
            change_text = "only a change from 0 to 1"
        return (
            f"Power: with {units_text} or more{alike_text} {change_text} would be noticed "
            f"({tests_text}, power .8)."
        )

    def _unit_count(self, arm: str) -> int:
        """Number of items, or of clusters, that can be asked under an arm."""
        items = self.items_run
        if arm in REWORDED:
            items = [item for item in items if item.text]
        if arm == "cue_out":
            items = [item for item in items if giveaways(item.text or "", self.passages)]
        if self.cluster is None:
            return len(items)
        cluster_names = set()
        for item in items:
            metadata = item.sample.metadata or {}
            cluster_names.add(str(metadata.get(self.cluster, item.id)))
        return len(cluster_names)

    def collected(self) -> "ReadScores":
        """Logs of the study, with the score that is compared, its clusters and the effect that
        matters.
        """
        return ReadScores(
            **vars(super().collected()),
            score=self.score,
            smallest=self.smallest,
            cluster=self.cluster,
            declining_counts=self.declining_counts,
        )

    @classmethod
    def numbers(cls, logs: Logs) -> "list[RunEffects]":
        """The effects in each run.

        Raises:
            NoLogs: No run ended well, or its score is text.
        """
        score_logs = logs if isinstance(logs, ReadScores) else ReadScores(**vars(logs))
        effects = []
        for run in score_logs.runs.finished:
            if run.identity.task == EFFECT_TASK:
                model = score_logs.models[score_logs.names[run.identity]]
                effects.append(effects_of(run, model, score_logs))
        if not effects:
            raise NoLogs("no run under the arms ended well; see above. The same command goes on")
        return corrected_effects(effects)

    @classmethod
    def page(cls, effects: "list[RunEffects]") -> Page:
        """The answer by run, with tables arms, effects, statements and items."""
        return page_of_effects(effects)
