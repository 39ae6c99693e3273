"""Runs and models in words: what a process needs to make them itself, since no open model goes from one to another."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from inspect_ai import Task, task_with
from inspect_ai.model import GenerateConfig, Model, ModelConfig, get_model

from selfprobe._registry import tasks
from selfprobe.arguments import meant
from selfprobe.errors import InputError, one_line
from selfprobe.inspect_private import PrerequisiteError, registry_find, registry_info
from selfprobe.logs import Identity, identified


def opened(name: str, **args: Any) -> Model:
    """A model that can be had; Inspect gives one handle for equal arguments.

    Args:
        name: As Inspect names it.
        args: Of `get_model`.

    Raises:
        InputError: No such provider, no key, a wrong argument, no weights.
    """
    try:
        return get_model(name, **args)
    except (PrerequisiteError, ValueError, TypeError, OSError, ImportError) as error:
        said = one_line(error).removeprefix(f"{name}: ")
        if "not recognized" in said:
            said = said.removesuffix(".") + (meant(name.partition("/")[0], _providers()) or ".")
        raise InputError(f"{name}: {said}") from None


def _providers() -> list[str]:
    found = [registry_info(one).name for one in registry_find(lambda info: info.type == "modelapi")]
    return [name.rpartition("/")[2] for name in found]


@dataclass(frozen=True)
class NamedModel:
    """A model that is not open yet."""

    name: str
    """As Inspect names it, provider/name."""
    args: Mapping[str, Any] = field(default_factory=dict)
    """Of `get_model`: model arguments, config, base_url."""

    def open(self) -> Model:
        """The model.

        Raises:
            InputError: See `opened`.
        """
        return opened(self.name, **self.args)

    def refuse_impossible(self) -> None:
        """Refuse what no key and no weights would make a model; where these are needed, they are left for the run.

        Raises:
            InputError: No such provider, or a wrong setting of a simulated model; in the words of `opened`.
        """
        if self.provider == "planted" or "/" not in self.name or self.provider not in _providers():
            self.open()

    @property
    def described(self) -> ModelConfig:
        """The model as a log names it."""
        model = self.open()
        args = {name: value for name, value in self.args.items() if name not in ("config", "base_url")}
        return ModelConfig(model=str(model), config=self.args.get("config") or GenerateConfig(), args=args)

    @property
    def provider(self) -> str:
        """What its name begins with."""
        return self.name.partition("/")[0]


@dataclass(frozen=True)
class DescribedRun:
    """A run of one of the suite's tasks, before its task is made."""

    task: str
    """Its name."""
    args: Mapping[str, Any]
    """Of the task."""
    model: NamedModel
    roles: Mapping[str, NamedModel] = field(default_factory=dict)
    metadata: Mapping[str, Any] = field(default_factory=dict)
    """Beside the task's own."""

    def made(self) -> Task:
        """The task with its models.

        Raises:
            InputError: A model cannot be had, or the task refuses an argument.
        """
        made = tasks()[self.task](**self.args)
        made = task_with(made, model=self.model.open(), metadata={**(made.metadata or {}), **self.metadata})
        return task_with(made, model_roles={r: one.open() for r, one in self.roles.items()}) if self.roles else made

    def identified(self, metadata: Mapping[str, Any]) -> Identity:
        """What its log is found by, whichever folder that is in.

        Args:
            metadata: Of its task.
        """
        roles = {role: [model.described] for role, model in self.roles.items()}
        return identified(self.task, self.model.described, roles, self.args, metadata)

    @property
    def models(self) -> tuple[NamedModel, ...]:
        """The evaluated model and those in roles."""
        return self.model, *self.roles.values()


def identities_of(runs: Iterable[DescribedRun]) -> list[Identity]:
    """What the logs of these runs are found by; a task is built once, whichever models it asks."""
    metadata: dict[str, Mapping[str, Any]] = {}
    out = []
    for run in runs:
        task = repr((run.task, sorted(run.args.items())))
        if task not in metadata:
            metadata[task] = tasks()[run.task](**run.args).metadata or {}
        out.append(run.identified(metadata[task]))
    return list(dict.fromkeys(out))
