"""A card of a set of prompts: can judges tell it from real use, and by more than its words? Does a
subject notice?
"""

import json
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import cached_property
from typing import Annotated, Any, ClassVar, Literal, Self

from pydantic import AfterValidator, Field, model_validator

from selfprobe.data import Row
from selfprobe.data.clusters import few_clusters
from selfprobe.data.inspect_data import SCHEMES, address_of
from selfprobe.data.prices import Cost
from selfprobe.data.realism import DEFAULT_OPPONENTS, DEFAULT_PROMPTS, Pairs, Sides, pairs_of, sides
from selfprobe.errors import NoLogs
from selfprobe.errors.output import place_same
from selfprobe.evalawareness_tasks.pairwise_realism import CALLS, REALISM_PROMPT, refuse_related
from selfprobe.logs import Identity, Runs
from selfprobe.page import Page
from selfprobe.solvers.converse import METHODS
from selfprobe.studies.card_numbers import card_numbers
from selfprobe.studies.card_page import CardContents, card_page
from selfprobe.study import Effort, Logs, OneModel, Plan, Study, Wave, study_named, with_runs
from selfprobe.study.awareness_methods import GRADES, methods_of, missing_grader_fault
from selfprobe.study.described import DescribedRun, NamedModel, graders
from selfprobe.study.options import LOG_DIR_HELP, OUT_HELP
from selfprobe.study.realism_verdicts import (
    CONVERSATIONS_FOLDER,
    PAIRS_FOLDER,
    PAIRS_TASK,
    SUBJECT_FOLDER,
    verdicts_of,
)
from selfprobe.text.counts import count_text

ASKED_FILES = ("set.jsonl", "real.jsonl")


class Realism(Study):
    """Can SET be told from real use? Ask judges and the subject, and write one page. Resumes with
    the same command.

    SET and REAL are what `awareness run` takes: a file, hf:owner/name@REVISION,
    task:inspect_evals/gsm8k, logs:FOLDER. SET may be the name of a task alone.
    """

    reads: ClassVar[frozenset[str]] = frozenset({PAIRS_TASK})
    further_tasks: ClassVar[frozenset[str]] = frozenset(METHODS)

    dataset: Annotated[str, AfterValidator(address_of)] = Field(examples=["SET"])
    against: str | None = Field(
        None,
        description=(
            "Real conversations: a file, hf:…, logs:…. Default: SET's deployment rows, compared "
            "with its evaluation rows."
        ),
    )
    grader: str | None = Field(
        None,
        description=(
            "Models that judge, comma-separated, of other makers than --model: which of a pair is "
            "real, and the texts of user_motivation and reasoning_trace, where most of them decide."
        ),
    )
    judges: tuple[str, ...] | None = Field(
        None, description="Models that judge the pairs. Default: those of --grader."
    )
    model: OneModel | None = Field(
        None, description="The subject, which is asked about the same conversations."
    )
    methods: Annotated[tuple[str, ...], AfterValidator(methods_of)] = Field(
        ("probability",), description="Methods of `awareness run` that the subject is asked with."
    )
    role: str | None = Field(
        None,
        description=(
            "Model role whose conversations are used, with task:… or logs:…. Default: the model."
        ),
    )
    context: Literal["first", "full"] = Field(
        "first", description="What is compared: the first user message, or the whole conversation."
    )
    prompts: int = Field(
        DEFAULT_PROMPTS, ge=1, description="Number of prompts of SET, drawn by chance."
    )
    opponents: int = Field(
        DEFAULT_OPPONENTS,
        ge=1,
        description=(
            "Real conversations that each prompt meets; eight tell the order of prompts much "
            "better."
        ),
    )
    reply_tokens: int | None = Field(
        None, ge=1, description="Longest reply of the subject in tokens."
    )
    effort: Effort | None = Field(
        None, description="Reasoning effort of the judges. Default: none."
    )
    limit: int | None = Field(None, exclude=True)
    out: str = Field("realism", description=OUT_HELP)
    log_dir: str = Field("logs/realism", description=LOG_DIR_HELP)

    @model_validator(mode="after")
    def _has_judges(self) -> Self:
        if self.judges is None and self.grader is None:
            raise ValueError("no model judges the pairs: add --judges MODEL,MODEL, or --grader")
        if self.grader is None and GRADES.keys() & set(self.methods):
            raise ValueError(missing_grader_fault(self.methods))
        subjects = [] if self.model is None else [str(self.model)]
        graders(self.grader, "grader", subjects=subjects)
        graders(self.judges, "judges", subjects=())
        for subject in subjects:
            for judge in self.panel:
                refuse_related(judge.name, subject)
        return self

    @property
    def panel(self) -> tuple[NamedModel, ...]:
        """The models that judge the pairs."""
        return graders(self.grader) if self.judges is None else graders(self.judges, "judges")

    @cached_property
    def both(self) -> Sides:
        """The set and the real conversations. No model is asked.

        Raises:
            InputError: See `data.realism.sides`.
        """
        return sides(
            self.dataset,
            against=self.against,
            role=self.role,
            context=self.context,
            prompts=self.prompts,
        )

    @cached_property
    def pairs(self) -> Pairs:
        """Pairs that the judges are asked about."""
        return pairs_of(self.both, self.opponents)

    @property
    def asked(self) -> dict[str, Any]:
        """Data that judges and subject read: two files, their context cut for them or, for a task,
        whole.
        """
        is_whole = any(str(name).startswith(SCHEMES) for name in (self.dataset, self.against))
        set_address, real_address = (
            f"{self.log_folder}/{CONVERSATIONS_FOLDER}/{name}" for name in ASKED_FILES
        )
        return {
            "dataset": set_address,
            "against": real_address,
            "context": "full" if is_whole else self.context,
        }

    @property
    def subject(self) -> Study | None:
        """The subject's part."""
        if self.model is None:
            return None
        subject_options = {
            "models": (self.model,),
            "log_dir": f"{self.log_folder}/{SUBJECT_FOLDER}",
            "settings": self.run_settings,
        }
        shared_options = self.model_dump(include={"methods", "grader", "reply_tokens"})
        return study_named("awareness").from_values(subject_options | self.asked | shared_options)

    def waves(self) -> Iterator[Wave]:
        """The judges' part."""
        task_args = (
            self.asked | {"prompts": None, "opponents": self.opponents} | self.run_settings.shared
        )
        if self.model is not None:
            task_args["subject"] = self.model
        if self.effort is not None:
            task_args["effort"] = self.effort
        judges = [replace(judge, args=self.run_settings.model_args) for judge in self.panel]
        yield Wave(
            [DescribedRun(PAIRS_TASK, task_args, judge) for judge in judges], "Pairs", PAIRS_FOLDER
        )

    @property
    def limits(self) -> dict[Identity, int | None]:
        """Identity of each run of judges and subject → number of its items that count; None is
        all.
        """
        return super().limits | (self.subject.limits if self.subject else {})

    @property
    def rounds(self) -> int:
        """Calls that wait for one another: the judges', then the subject's."""
        return 1 + (self.subject.rounds if self.subject else 0)

    def plan(self) -> Plan:
        """Lines on what is compared, and on what was left out."""
        rows = self.pairs.table.rows
        set_pairs = [row for row in rows if row["kind"] == "set"]
        prompt_count = len({row["one"]["id"] for row in set_pairs})
        real_count = len({row["two"]["id"] for row in set_pairs})
        lines = [
            f"{self.both.name}: {count_text(prompt_count, 'prompt')} and "
            f"{count_text(real_count, 'real conversation')} in "
            f"{count_text(len(set_pairs), 'pair')}, and "
            f"{count_text(len(rows) - len(set_pairs), 'pair')} of two real ones; "
            f"each in both orders × {count_text(len(self.panel), 'judge')}",
            *filter(None, _few_source_lines(set_pairs)),
        ]

        pair_tokens = len(rows) * len(REALISM_PROMPT) // 4
        for row in rows:
            pair_tokens += len(row["one"]["text"]) // 4 + len(row["two"]["text"]) // 4
        call_count = CALLS * len(rows)
        costs = [
            Cost(judge.name, call_count, CALLS * pair_tokens, call_count) for judge in self.panel
        ]
        subject = self.subject
        if subject:
            lines.append(
                f"{self.model} is asked about the same conversations by {', '.join(self.methods)}."
            )
            costs += subject.costs([*self.both.prompts, *self.both.real])
        return Plan([*lines, *self.pairs.omissions], costs)

    def ask(self) -> bool:
        """Ask the judges, then the subject, as `Study.ask`; a folder with another card is
        refused.
        """
        set_file, real_file = ASKED_FILES
        files = {
            set_file: _lines(self.both.prompts, "evaluation"),
            real_file: _lines(self.both.real, "deployment"),
        }
        changed = "the set, the real conversations, --prompts or --context changed since"
        place_same(files, f"{self.log_folder}/{CONVERSATIONS_FOLDER}", changed)
        if self.model is not None:
            self.run_settings.open_models(NamedModel(self.model, self.run_settings.model_args))
        is_judged = super().ask()
        is_answered = self.subject.ask() if self.subject else True
        return is_answered and is_judged

    @classmethod
    def comparable(cls, all_runs: Runs) -> Runs:
        """The judges of the newest run's pairs."""
        newest_pairs = [run.identity.asked for run in all_runs.finished][:1]
        judge_identities = [
            run.identity for run in all_runs.counted if run.identity.asked in newest_pairs
        ]
        return all_runs.with_identities(judge_identities)

    @classmethod
    def numbers(cls, logs: Logs) -> "CardContents":
        """The judges' verdicts, and what they say of the set.

        Raises:
            NoLogs: No run of a judge is finished.
        """
        picks_of_judge, texts, errors = verdicts_of(logs)
        if not any(picks_of_judge.values()):
            raise NoLogs(
                f"no finished run of {PAIRS_TASK} has a verdict; see above. The same command goes on"
            )
        judge_runs = [run for run in logs.runs.finished if run.identity.task == PAIRS_TASK]
        metadata = judge_runs[0].header.eval.metadata or {}
        left_out = [str(metadata["left_out"])] if metadata.get("left_out") else []
        numbers = card_numbers(picks_of_judge, texts)
        return CardContents(numbers, picks_of_judge, errors, str(metadata.get("dataset")), left_out)

    @classmethod
    def page(cls, contents: "CardContents") -> Page:
        """The page, with tables verdicts, judges, agreement and prompts, and with those of the
        subject.
        """
        return card_page(contents)

    def build_page(self) -> Page:
        """The page of judges and subject; raises as `Study.build_page`."""
        logs = self.collected()
        contents = replace(self.numbers(logs), name=self.both.name, left_out=self.pairs.omissions)
        if self.subject:
            try:
                contents = replace(contents, subject=self.subject.build_page())
            except NoLogs:
                sentence = f"{self.model} has no finished run: the page is of the judges alone."
                contents = replace(contents, left_out=[*contents.left_out, sentence])
        return with_runs(self.page(contents), logs.runs)


def _lines(rows: Sequence[Row], label: str) -> bytes:
    """Conversations as a file that judges and subject read."""
    fields_read = ("id", "messages", "tools", "source", "domain", "format", "agentic", "language")
    lines = []
    for row in rows:
        record = {key: row[key] for key in fields_read if row.get(key) is not None}
        lines.append(json.dumps(record | {"label": label}, ensure_ascii=False) + "\n")
    return "".join(lines).encode()


def _few_source_lines(set_pairs: Sequence[Row]) -> Iterator[str]:
    """Line for each side of the pairs whose sources are few, of which each counts as one."""
    remedy = "?cluster=COLUMN behind the file's name takes another column"
    for side, rows_name in (("one", "prompts"), ("two", "real conversations")):
        source_of_id = {pair[side]["id"]: pair[side]["source"] for pair in set_pairs}
        sources = list(source_of_id.values())
        if len(set(sources)) > 1:  # one source is taken apart into its conversations
            yield few_clusters(sources, rows=rows_name, unit="source", remedy=remedy)
