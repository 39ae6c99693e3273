"""All methods on all subjects, in two flat lists of ordinary runs.

The first method records the replies, the others replay them.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, get_args

from inspect_ai.log import EvalLog

from selfprobe.data import Table
from selfprobe.described import DescribedRun, NamedModel, graders, identities_of
from selfprobe.errors import InputError
from selfprobe.evalawareness_tasks.user_motivation import Placebo
from selfprobe.logs import Identity
from selfprobe.run_settings import RunSettings
from selfprobe.sources.conversations import DEFAULT, conversations
from selfprobe.sources.questions import wording
from selfprobe.waves import JOINS, complete, run_wave

REPLIES, METHODS_DIR = "replies", "methods"
"""Folders of the two waves below the log folder."""

CALLS = {"binary": 5, "probability": 5, "user_motivation": 3, "reasoning_trace": 0, "first_token": 0}
"""Of the subject for a conversation, beside its one reply."""
REPEATED = ("binary", "probability")
"""Methods whose variants are asked five times each with 25 decisions."""
GRADES = {"user_motivation": 3, "reasoning_trace": 1}
"""Of the grader for a conversation, at most (no trace, no grade)."""


@dataclass(frozen=True)
class Study:
    """What `selfprobe awareness run` was asked for."""

    models: tuple[str, ...]
    methods: tuple[str, ...]
    dataset: str = DEFAULT
    task: str | None = None
    logs: str | None = None
    role: str | None = None
    """Whose conversations of `task` or `logs`; None is the evaluated model."""
    label: str | None = None
    against: str | None = None
    """The reference, asked in the same runs."""
    grader: str | None = None
    """Who reads the texts; several, comma-separated, are a panel."""
    context: str = "first"
    decisions: str = "5"
    third: bool = False
    """Also ask about the conversation in the third person."""
    questions: str | None = None
    """A YAML file with questions of your own for each method."""
    observers: bool = False
    """Also ask every other model, in the third person, about a model's conversations."""
    placebo: bool = False
    """Also run the placebo arms of user_motivation."""
    reply_tokens: int | None = None
    """Most tokens of the subject's reply to a conversation."""
    answer_tokens: int | None = None
    """Most tokens of its answer to a question about one."""
    effort: str | None = None
    """Reasoning effort of the subject; None is the model's own."""
    limit: int | None = None
    log_dir: str = "logs/awareness"
    settings: RunSettings = field(default_factory=RunSettings)

    def __post_init__(self) -> None:
        if twice := sorted({name for name in self.models if self.models.count(name) > 1}):
            raise InputError(f"model {twice[0]} is listed twice; list each model once")
        if not self.models:
            raise InputError("--models names no model; expected such as openai/a,openrouter/b")
        if self.questions and self.placebo:
            raise InputError("a placebo has questions of its own: leave --placebo out, or leave --questions out")
        graders(self.grader)
        for method in self.methods:
            wording(self.questions, method)
        if self.observers and len(self.models) < 2:
            raise InputError(f"--observers reads other models' conversations: name two or more, got {self.models[0]}")

    @property
    def arms(self) -> list[tuple[str, dict[str, Any]]]:
        """Method and its own task arguments, the one that records the replies first."""
        found: list[tuple[str, dict[str, Any]]] = [(method, {}) for method in self.methods]
        if self.third or self.observers:
            found += [(method, {"perspective": "third"}) for method in self.methods if CALLS[method]]
        if self.placebo and "user_motivation" in self.methods:
            found += [("user_motivation", {"placebo": kind}) for kind in get_args(Placebo)]
        return found

    @property
    def readings(self) -> list[tuple[str, dict[str, Any]]]:
        """Method and arguments by which a model reads another's conversations."""
        return [(method, own) for method, own in self.arms if own.get("perspective") == "third"]

    @property
    def rounds(self) -> int:
        """Calls that wait for one another: a reply, the first method's questions and grades, the other methods'."""
        each = [(CALLS[method] > 0) + (method in GRADES) for method, _ in self.arms]
        return 1 + each[0] + max(each[1:], default=0)

    @property
    def subjects(self) -> list[NamedModel]:
        """The models that are asked."""
        return [NamedModel(model, self.settings.model_args) for model in self.models]

    @property
    def first_wave(self) -> list[DescribedRun]:
        """The runs that record the replies."""
        first = self.arms[0][0]
        own: dict[str, Any] = {}
        if first != "first_token" and "first_token" in self.methods:
            own["logprobs"] = True  # of no use to the others, and refused by some vendors
        return [_described(self, first, subject, **own) for subject in self.subjects]

    @property
    def second_wave(self) -> list[DescribedRun]:
        """The runs that read them, if all are recorded."""
        replies: dict[str, Any] = {"target_log": f"{self.log_dir.rstrip('/')}/{REPLIES}"}
        second = [
            _described(self, method, subject, **own, **replies)
            for method, own in sorted(self.arms[1:], key=lambda arm: arm[0] not in GRADES)  # beside the grader
            for subject in self.subjects
        ]
        if self.observers:
            second += [
                _described(self, method, reader, target=writer, **own, **replies)
                for method, own in self.readings
                for writer in self.subjects
                for reader in self.subjects
                if reader != writer
            ]
        return second

    @property
    def identities(self) -> list[Identity]:
        """What its runs are found by."""
        return identities_of([*self.first_wave, *self.second_wave])

    @cached_property
    def table(self) -> Table:
        """The conversations. No model is asked.

        Raises:
            InputError: They cannot be read.
        """
        source = self.source
        return conversations(source.pop("dataset"), **source)

    @property
    def items(self) -> int | None:
        """Number of conversations of each run, in whole pairs; None is all."""
        return self.limit and len(self.table.first(self.limit))

    @property
    def source(self) -> dict[str, Any]:
        """The conversations, as the tasks take them."""
        return {
            "dataset": self.dataset,
            "task": self.task,
            "logs": self.logs,
            "role": self.role,
            "label": self.label,
            "against": self.against,
            "context": self.context,
        }


def run_study(study: Study) -> bool:
    """Run both waves; True when every run ended well, and something of each model could be scored.

    Killed, the same study goes on where it stopped.

    Raises:
        Interrupted: The user stopped it.
        InputError: A model cannot be had, or the log folder cannot be written.
    """
    base = study.log_dir.rstrip("/")
    replies, second = study.first_wave, study.second_wave
    study.settings.tried(*graders(study.grader))  # they may have no part in the first wave
    logs = _wave(study, replies, f"{base}/{REPLIES}", f"Replies, and {study.arms[0][0]}")
    recorded = {log.eval.model for log in logs if log.status == "success"}
    second = [run for run in second if run.bound.get("target", (run.model,))[0].name in recorded]
    if second:
        title = f"Questions about them: {', '.join(dict.fromkeys(run.task for run in second))}"
        logs += _wave(study, second, f"{base}/{METHODS_DIR}", title)
    return complete(logs)


def _wave(study: Study, runs: Sequence[DescribedRun], folder: str, title: str) -> list[EvalLog]:
    # Where a provider lists candidates for each token, raw replies are most of a log.
    further = {**JOINS, "limit": study.items, "log_model_api": False}
    return run_wave(runs, folder, title=title, settings=study.settings, **further)


def _described(
    study: Study, method: str, subject: NamedModel, *, target: NamedModel | None = None, **own: Any
) -> DescribedRun:
    given = {key: value for key, value in study.source.items() if value is not None} | own
    if method in REPEATED:
        given["decisions"] = int(study.decisions)
    if CALLS[method] and study.answer_tokens is not None:
        given["answer_tokens"] = study.answer_tokens
    if study.effort is not None:
        given["effort"] = study.effort
    if study.reply_tokens is not None:
        given["reply_tokens"] = study.reply_tokens
    if study.questions is not None:
        given["questions"] = study.questions
    roles: dict[str, NamedModel | tuple[NamedModel, ...]] = {"target": target} if target else {}
    if study.grader and method in GRADES:
        roles["grader"] = graders(study.grader)
    return DescribedRun(method, given | study.settings.shared, subject, roles)
