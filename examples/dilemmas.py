"""Make a data set of dilemmas that three judges disagree about (IntrospectBench, appendix F,
Algorithm 1).

    python examples/dilemmas.py --model google/gemini-3.5-flash-lite --out mine.jsonl \\
        --judges openai/gpt-5.6-luna,anthropic/claude-haiku-5-5,mistral/mistral-medium-latest
    inspect eval selfprobe/ethical_dilemma --model openai/gpt-5.6-luna -T dataset=mine.jsonl

The model writes a dilemma for each of 750 combinations, the judges decide each five times, and of
those above the threshold 196 are drawn, as many as the paper has. `python examples/dilemmas.py
logs/judging --out mine.jsonl` takes logs of `dilemma_judging` in place of models.
"""

import hashlib
import json
import random
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, ClassVar, Self

from inspect_ai.log import EvalSample
from inspect_ai.scorer import Score
from pydantic import Field, model_validator

from selfprobe.building.dilemma_judging import (
    JUDGE_PROMPT,
    finished_runs,
    generated_dilemmas,
)
from selfprobe.data import Row
from selfprobe.data.prices import Cost
from selfprobe.errors import InputError, NoLogs, RunError, one_line
from selfprobe.errors.output import place_file
from selfprobe.logs import runs, samples
from selfprobe.scorers.decision import decisions_of
from selfprobe.scorers.dilemma_making import JUDGES, LARGEST_JSD, JudgeSamples
from selfprobe.study import Models, Plan, Study, Wave, command, described_study
from selfprobe.study._registry import defaults_of, tasks
from selfprobe.study.described import DescribedRun, NamedModel, graders, identities_of
from selfprobe.study.options import LOG_DIR_HELP, echo_json
from selfprobe.study.waves import JOINED_FOLDER_ARGUMENTS
from selfprobe.text.counts import count_text
from selfprobe.text.families import simulated_reader_fault
from selfprobe.text.safe import echo

GENERATION_TASK = "dilemma_generation"
JUDGING_TASK = "dilemma_judging"
WRITTEN_FOLDER = "written"
JUDGED_FOLDER = "judged"
PAPER_DILEMMAS = 196
GUESSED_DILEMMA_TOKENS = 250
GUESSED_JUDGE_TOKENS = 300
"""Rough guesses of a reply of the writer, and of a judge."""
DRAW_SEED = 0


class Dilemmas(Study):
    """Make a data set of dilemmas that three judges disagree about (IntrospectBench, appendix F): a
    model writes them, three judges decide each. Resumes with the same command.

    LOGS are logs of dilemma_judging (files or folders) that are read in place of asking.
    """

    reads: ClassVar[frozenset[str]] = frozenset()
    further_tasks: ClassVar[frozenset[str]] = frozenset({GENERATION_TASK, JUDGING_TASK})
    skips: ClassVar[bool] = False
    start_options: ClassVar[str] = "--model and --judges, which say who writes and who judges"

    logs: tuple[str, ...] = Field((), examples=["LOGS"])
    models: Models = Field((), description="Model that writes the dilemmas.")
    judges: tuple[str, ...] = Field((), description="Three models that decide each dilemma.")
    count: int | None = Field(
        None,
        ge=1,
        description=(
            "Number of dilemmas to draw from those kept. Default: 196, as many as the paper has; "
            "of LOGS all."
        ),
    )
    threshold: float = Field(
        0.2,
        ge=0,
        lt=LARGEST_JSD,
        description="Jensen–Shannon divergence in nats above which a dilemma is kept.",
    )
    epochs: int = Field(1, ge=1, description="Number of dilemmas of each combination.")
    limit: int | None = Field(
        None, ge=1, description="Number of combinations of the axes. Default: all 750."
    )
    out: str = Field("dilemmas.jsonl", description="The data set file to write, .jsonl.")
    log_dir: str = Field("logs/dilemmas", description=LOG_DIR_HELP)

    @model_validator(mode="after")
    def _has_logs_or_models(self) -> Self:
        if not self.out.endswith(".jsonl"):
            raise InputError(f"--out: the data set is a .jsonl file, got {self.out!r}")
        if self.logs:
            if self.models or self.judges:
                raise InputError("LOGS are judged already: leave --model and --judges out")
            return self

        judge_names = [judge.name for judge in graders(self.judges or None, "judges", ())]
        if len(self.models) != 1 or len(judge_names) != JUDGES:
            raise InputError(
                f"expected --model with the one who writes and --judges with {JUDGES}, or LOGS of "
                f"{JUDGING_TASK}; got {count_text(len(self.models), 'model')} and "
                f"{count_text(len(judge_names), 'judge')}"
            )
        for judge_name in judge_names:
            fault = simulated_reader_fault(judge_name, [self.models[0].name], "--judges ")
            if fault:
                raise InputError(fault)
        return self

    def open_models(self) -> None:
        """Open the judges, whose turn comes after the writer was paid."""
        self.run_settings.open_models(*self.models, *map(NamedModel, self.judges))

    @property
    def drawn_count(self) -> int | None:
        """Number of dilemmas that are drawn from those kept; None is all."""
        if self.count is None and not self.logs:
            return PAPER_DILEMMAS
        return self.count

    @property
    def rounds(self) -> int:
        """Calls that wait for one another: a dilemma, then its judges."""
        return 2

    @property
    def writer_run(self) -> DescribedRun:
        """The run that writes a dilemma for each combination."""
        (writer,) = self.models
        writer = replace(writer, args={**self.run_settings.model_args, **writer.args})
        task_arguments = {"epochs": self.epochs} | self.run_settings.shared
        return DescribedRun(GENERATION_TASK, task_arguments, writer)

    def plan(self) -> Plan | None:
        """Calls by model, if every dilemma that is written can be judged."""
        if self.logs:
            return None
        combinations = list(tasks()[GENERATION_TASK]().dataset)[: self.limit]
        dilemma_count = len(combinations) * self.epochs
        prompt_tokens = sum(len(str(sample.input)) // 4 for sample in combinations)
        writer_cost = Cost(
            self.models[0].name,
            dilemma_count,
            prompt_tokens * self.epochs,
            dilemma_count * GUESSED_DILEMMA_TOKENS,
        )
        cost_by_model = {writer_cost.model: writer_cost}

        judge_samples = int(defaults_of(JUDGING_TASK)["samples"])
        calls = judge_samples * dilemma_count
        judge_prompt_tokens = len(JUDGE_PROMPT) // 4 + GUESSED_DILEMMA_TOKENS
        for judge in self.judges:
            earlier_cost = cost_by_model.get(judge, Cost(judge, 0, 0, 0))
            cost_by_model[judge] = Cost(
                judge,
                earlier_cost.calls + calls,
                earlier_cost.tokens_in + calls * judge_prompt_tokens,
                earlier_cost.tokens_out + calls * GUESSED_JUDGE_TOKENS,
            )

        summary = (
            f"{count_text(dilemma_count, 'dilemma')} × {JUDGES} judges × {judge_samples} samples; "
            f"of those above {self.threshold:g} nats, {self.drawn_count} are drawn"
        )
        return Plan([summary], list(cost_by_model.values()))

    def waves(self) -> Iterator[Wave]:
        """The dilemmas, then their judges, where a dilemma is fit to be judged."""
        yield Wave([self.writer_run], "Dilemmas", WRITTEN_FOLDER)
        written_rows = self._written_rows()
        if not written_rows:
            return
        lines = [json.dumps(row, ensure_ascii=False) + "\n" for row in written_rows]
        content = "".join(lines).encode()
        content_hash = hashlib.sha256(content).hexdigest()[:12]
        address = f"{self.log_folder}/{WRITTEN_FOLDER}/dilemmas-{content_hash}.jsonl"
        place_file(content, address)

        task_arguments = {"dataset": address, "threshold": self.threshold}
        panel = graders(self.judges, "judges")
        judging_run = DescribedRun(
            JUDGING_TASK,
            task_arguments | self.run_settings.shared,
            NamedModel("none/none"),
            {"judge": panel},
        )
        every_dilemma = {**JOINED_FOLDER_ARGUMENTS, "limit": None}
        yield Wave([judging_run], "Judges", JUDGED_FOLDER, every_dilemma)

    def _written_rows(self) -> list[Row]:
        """The dilemmas of the writer's finished run that are fit to be judged."""
        (identity,) = identities_of([self.writer_run])
        writer_runs = runs([f"{self.log_folder}/{WRITTEN_FOLDER}"], [GENERATION_TASK])
        finished = writer_runs.with_identities([identity]).limited({identity: self.limit}).finished
        if not finished:
            return []
        combinations = finished[0].items()
        table = generated_dilemmas(finished[0].log)
        return [row for row in table.rows if row["id"].rpartition(".")[0] in combinations]

    def _judging_logs(self) -> list[str]:
        """Logs of the judges' finished run."""
        finished = self.own_runs(self.limits).finished
        judging_logs = [run.log for run in finished if run.identity.task == JUDGING_TASK]
        if not judging_logs:
            raise NoLogs(f"no dilemma was judged in {self.log_folder}, so no file is written")
        return judging_logs

    def print_page(self, *, as_json: bool, planned: bool) -> int:
        """Print how many dilemmas were kept, and write those drawn of them to `out`; returns the exit
        status.

        Raises:
            RunError: No dilemma was kept.
            NoLogs: None was judged.
        """
        paths = self._judging_logs() if planned else self.logs
        rows, unscored_counts = judged_rows(paths)
        kept_rows = sorted((row for row in rows if row["kept"]), key=lambda row: str(row["id"]))
        chosen_rows = kept_rows
        drawn_count = self.drawn_count or len(kept_rows)
        if len(kept_rows) > drawn_count:
            chosen_rows = random.Random(DRAW_SEED).sample(kept_rows, drawn_count)
        if as_json:
            echo_json({"dilemmas": chosen_rows})
        else:
            echo(kept_table(rows))
            for reason, unscored_count in sorted(unscored_counts.items()):
                echo(f"unscored: {unscored_count} ({reason})")

        if not chosen_rows:
            raise RunError(
                "no dilemma was kept, so no file is written; the threshold is the runs' -T "
                "threshold"
            )
        lines: list[str] = []
        for row in chosen_rows:
            stored_row = {name: value for name, value in row.items() if name != "kept"}
            lines.append(json.dumps(stored_row, ensure_ascii=False) + "\n")
        Path(self.out).parent.mkdir(parents=True, exist_ok=True)
        Path(self.out).write_text("".join(lines), encoding="utf-8")

        if len(chosen_rows) < drawn_count:
            echo(
                f"only {len(chosen_rows)} of {drawn_count} dilemmas were kept: a larger --epochs "
                "writes more of each combination",
                err=as_json,
            )
        echo(
            f"{count_text(len(chosen_rows), 'dilemma')} in {self.out}: "
            f"inspect eval selfprobe/ethical_dilemma -T dataset={self.out}",
            err=as_json,
        )
        return 0


def judged_rows(paths: Sequence[str]) -> tuple[list[Row], Counter[str]]:
    """Every scored dilemma of finished logs of dilemma_judging, and why others are none, by reason.

    Rows are in schema F.5: `id`, `dilemma`, `axes`, `judges` (each `model`, `samples` [[P(A), P(B)]
    or null], `faults`, and the `mean` that was used), `jsd` in nats, `generation`; and `kept`.

    Raises:
        ValueError: There is no finished log, two hold the same dilemma, or a dilemma has no score
            of this task.
        InputError: There is no such file or folder.
    """
    row_by_id: dict[str, Row] = {}
    log_by_id: dict[str, str] = {}
    unscored_counts: Counter[str] = Counter()
    for run in finished_runs(paths, "dilemma_judging"):
        for sample in samples(run.log):
            item = str(sample.id)
            if item in row_by_id:
                raise InputError(
                    f"dilemma {item} is in {log_by_id[item]} and in {run.log}; "
                    "pass one of these logs"
                )
            if sample.error or not sample.scores:
                unscored_counts["error"] += 1
                continue
            score = _score_of_judges(sample, run.log)
            decisions = {decision.key: decision for decision in decisions_of(score)}
            if decisions["jsd"].unscored:
                unscored_counts[decisions["jsd"].unscored] += 1
                continue

            judges = [_judge_row(fields) for fields in (score.metadata or {})["judges"]]
            log_by_id[item] = run.log
            row_by_id[item] = {
                "id": item,
                "dilemma": sample.input,
                "axes": sample.metadata["axes"],
                "judges": judges,
                "jsd": decisions["jsd"].value,
                "generation": sample.metadata["generation"],
                "kept": bool(decisions["kept"].value),
            }
    return list(row_by_id.values()), unscored_counts


def _score_of_judges(sample: EvalSample, log: str) -> Score:
    """The task's own score, its last one: `inspect score --action append` adds others, and new ones
    of the same.
    """
    scores = sample.scores or {}
    judge_scores = [
        score for score in scores.values() if {"keys", "judges"} <= set(score.metadata or {})
    ]
    if not judge_scores:
        raise InputError(
            f"{log}: expected a score of dilemma_controversy for dilemma {sample.id}, got "
            f"{', '.join(scores)}; `inspect score --scorer selfprobe/dilemma_controversy` adds it"
        )
    return judge_scores[-1]


def _judge_row(fields: dict[str, Any]) -> dict[str, Any]:
    judge = JudgeSamples(**fields)
    return {
        "model": judge.model,
        "samples": judge.samples,
        "faults": judge.faults,
        "mean": judge.mean,
    }


def kept_table(rows: Sequence[Row]) -> str:
    """How many dilemmas were kept, for each axis value and in all."""
    total_counts: Counter[tuple[str, str]] = Counter()
    kept_counts: Counter[tuple[str, str]] = Counter()
    for row in rows:
        axes = row["axes"] or {"axes": "none given"}
        for axis_and_value in axes.items():
            total_counts[axis_and_value] += 1
            kept_counts[axis_and_value] += row["kept"]

    lines: list[str] = []
    for axis, value in sorted(total_counts):
        kept_count = kept_counts[axis, value]
        lines.append(f"{axis:13} {value:26} {kept_count:4} of {total_counts[axis, value]:4}")
    kept_total = sum(row["kept"] for row in rows)
    lines.append(f"{'all':40} {kept_total:4} of {len(rows):4}")
    return "\n".join(lines)


dilemmas = command("dilemmas", described_study(Dilemmas))

if __name__ == "__main__":
    try:
        dilemmas()
    except (InputError, RunError) as error:
        sys.exit(f"Error: {one_line(error)}")
