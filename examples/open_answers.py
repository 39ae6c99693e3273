"""Ask several models for open answers, three draws of each reply, and show how alike they are
(IntrospectBench's Table 1).

    python examples/open_answers.py --config configs/paper003.yaml --limit 200 --dry-run
    python examples/open_answers.py --models openai/gpt-5.6-luna,google/gemini-3.5-flash-lite --limit 20 --out table1

It runs `selfprobe/open_answers` for each of the four rows of the table. `selfprobe paper
introspectbench logs/open --embedder …` shows the logs again, and those that `inspect eval` made.
"""

import sys
from collections.abc import Iterator
from dataclasses import replace
from typing import Any, ClassVar, Self

from pydantic import Field, model_validator

from selfprobe.data.prices import Cost
from selfprobe.embed import DEFAULT_EMBEDDER, require
from selfprobe.errors import InputError, RunError, one_line
from selfprobe.introspect_tasks.open_answers import SETS
from selfprobe.page import Page
from selfprobe.papers.introspectbench import page_of_paper_runs
from selfprobe.papers.similar_replies import OPEN_TASK
from selfprobe.study import Models, Plan, Study, Wave, command, described_study
from selfprobe.study._registry import defaults_of, tasks
from selfprobe.study.described import DescribedRun
from selfprobe.study.options import EMBEDDER_HELP, LOG_DIR_HELP, MODELS_HELP, OUT_HELP

GUESSED_REPLY_TOKENS = 300
"""A rough guess of the tokens of a reply."""


class OpenAnswers(Study):
    """Ask models for open answers, three draws of each reply, and show how alike they are (IntrospectBench's
    Table 1).
    """

    reads: ClassVar[frozenset[str]] = frozenset()
    further_tasks: ClassVar[frozenset[str]] = frozenset({OPEN_TASK})
    skips: ClassVar[bool] = False

    models: Models = Field(description=MODELS_HELP)
    embedder: str = Field(DEFAULT_EMBEDDER, description=EMBEDDER_HELP)
    tasks: tuple[str, ...] = ()
    observers: tuple[str, ...] = ()
    args: dict[str, Any] = Field({})
    """Of a matrix's configuration, which may name the models; no option here."""
    out: str = Field("table1", description=OUT_HELP)
    log_dir: str = Field("logs/open", description=LOG_DIR_HELP)

    @model_validator(mode="after")
    def _compares(self) -> Self:
        if len(self.models) == 1:
            raise InputError(f"Table 1 compares two models or more, got {self.models[0].name}")
        return self

    def open_models(self) -> None:
        """Refuse an embedder that cannot be had, before anything is paid."""
        require(self.embedder)

    def plan(self) -> Plan:
        """The prompts of the four rows, three draws of each reply."""
        draws = int(defaults_of(OPEN_TASK)["epochs"])
        calls = 0
        sent_tokens = 0
        item_counts: list[str] = []
        for task_name in SETS:
            samples = list(tasks()[OPEN_TASK](of=task_name).dataset)[: self.limit]
            item_counts.append(f"{task_name} ({len(samples)} items)")
            for sample in samples:
                prompts = (sample.metadata or {})["prompts"].values()
                calls += draws * len(prompts)
                sent_tokens += draws * sum(len(prompt) // 4 for prompt in prompts)

        summary = (
            f"{len(self.models)} models × {', '.join(item_counts)}, {draws} draws of each reply"
        )
        costs = [
            Cost(model.name, calls, sent_tokens, calls * GUESSED_REPLY_TOKENS)
            for model in self.models
        ]
        return Plan([summary], costs)

    def waves(self) -> Iterator[Wave]:
        """One run a model and row of the table."""
        models = [
            replace(model, args={**self.run_settings.model_args, **model.args})
            for model in self.models
        ]
        described_runs: list[DescribedRun] = []
        for task_name in SETS:
            task_arguments = {"of": task_name} | self.run_settings.shared
            for model in models:
                described_runs.append(DescribedRun(OPEN_TASK, task_arguments, model))
        yield Wave(described_runs, "Open answers")

    def build_page(self) -> Page:
        """The page of its runs, as `selfprobe paper introspectbench` makes it."""
        return page_of_paper_runs(self.own_runs(self.limits), embedder=self.embedder)


open_answers = command("open_answers", described_study(OpenAnswers))

if __name__ == "__main__":
    try:
        open_answers()
    except (InputError, RunError) as error:
        sys.exit(f"Error: {one_line(error)}")
