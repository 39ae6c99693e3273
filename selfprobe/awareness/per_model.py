"""What `turns` and `cues` share: one run of one task for each model, and what their logs hold."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from inspect_ai.log import EvalLog, EvalSample
from inspect_ai.scorer import Score

from selfprobe.described import DescribedRun, NamedModel, opened
from selfprobe.logs import found, samples
from selfprobe.run_settings import RunSettings
from selfprobe.scorers.decision import last_score
from selfprobe.waves import JOINS, complete, run_wave

ANSWER = 5
"""A rough guess of the tokens of an answer."""


@dataclass(frozen=True, kw_only=True)
class PerModel:
    """What a command of one task for several models was asked for."""

    dataset: str
    models: tuple[str, ...]
    role: str | None = None
    """Of logs: whose conversations; None is the evaluated model."""
    label: str | None = None
    most: int
    """Places in a conversation to ask about."""
    answer_tokens: int | None = None
    effort: str | None = None
    limit: int | None = None
    log_dir: str
    settings: RunSettings = field(default_factory=RunSettings)

    @property
    def source(self) -> dict[str, Any]:
        """The conversations, as the task takes them."""
        raise NotImplementedError

    def run(self, task: str, title: str, *, roles: Mapping[str, NamedModel] | None = None, **own: Any) -> bool:
        """Run it, one run a model; True when every run ended well. What was asked is not asked again.

        Args:
            task: Of the command.
            title: What the user reads above its progress.
            roles: Further models of each run.
            own: Further arguments of the task.

        Raises:
            Interrupted: The user stopped it.
            InputError: A model cannot be had, or the log folder cannot be written.
        """
        said = {"most": self.most, "answer_tokens": self.answer_tokens, "effort": self.effort}
        given = self.source | {name: value for name, value in said.items() if value is not None} | own
        models = [NamedModel(model, self.settings.model_args) for model in self.models]
        runs = [DescribedRun(task, given, model, roles or {}) for model in models]
        further = {**JOINS, "limit": self.limit}
        return complete(run_wave(runs, self.log_dir, title=title, settings=self.settings, **further))

    def scored(self, task: str, of: Callable[[EvalLog], bool]) -> Iterator[tuple[str, EvalSample, Score]]:
        """Model, sample and score, from each model's first finished log.

        Args:
            task: Its name.
            of: Whether a log is of these conversations, asked about as here.
        """
        logs = [log for log in found([self.log_dir], {task}).headers if log.status == "success" and of(log)]
        for model in self.models:
            name = str(opened(model, **self.settings.model_args))
            mine = next((log for log in logs if log.eval.model == name), None)
            for sample in samples(mine.location) if mine else ():
                score = last_score(sample.scores)
                if score is not None:
                    yield model, sample, score
