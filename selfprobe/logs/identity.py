"""What makes two logs one measurement, and the settings in which runs differ."""

import inspect
import json
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

from inspect_ai.log import EvalLog
from inspect_ai.model import ModelConfig

from selfprobe.errors.arguments import comparable_arguments
from selfprobe.errors.inspect_private import registry_lookup
from selfprobe.logs.header import roles_of, task_of
from selfprobe.text.safe import concealed

HOW_CALLED = {
    "max_connections",
    "max_retries",
    "timeout",
    "attempt_timeout",
    "adaptive_connections",
    "batch",
    "cache",
}
"""Generation settings that say how calls are sent, not what is asked."""
PATH_ARGUMENTS = {
    "dataset",
    "task",
    "logs",
    "against",
    "pairs",
    "questions",
    "target_log",
    "observer_log",
    "texts",
    "clusters",
}
"""Task arguments that say where something is found. What was found there has its hash in the log.
"""
ADDRESS_ARGUMENT = re.compile(
    r"url|key|header|port|organi[sz]ation|project|device|timeout|token$", re.IGNORECASE
)
"""Model arguments that say how a model is reached, not which one it is."""
HASH_ENTRIES = ("dataset_sha256", "questions_sha256")
"""Entries of a log's metadata that stand for what was read."""
SHOWN_HASH_LENGTH = 12
"""Number of characters of a data set's hash that people are shown."""
SettingPairs = tuple[tuple[str, str], ...]
"""Name and value of settings, in the order of the names."""


@dataclass(frozen=True)
class Identity:
    """The properties by which two logs are one measurement. Limits, folders and how calls are sent
    are none.
    """

    task: str
    model: str
    """The evaluated model."""
    roles: SettingPairs = ()
    """Role → its models, comma-separated."""
    args: SettingPairs = ()
    """Task arguments that are no path and not the task's default."""
    config: SettingPairs = ()
    """Generation settings and model arguments that the user gave, of the evaluated model and of
    roles.
    """
    data: str = ""
    """Hash of the data set; of a log of another suite the data set's name."""

    @property
    def target(self) -> str:
        """The model in the role `target`, else the evaluated one."""
        return dict(self.roles).get("target", self.model)

    @property
    def models(self) -> list[str]:
        """The evaluated model and those of all roles."""
        return [self.model, *(model for _, names in self.roles for model in names.split(","))]

    @property
    def settings(self) -> dict[str, str]:
        """Settings other than task and model: name → value, for people."""
        settings = dict(self.roles) | dict(self.args) | dict(self.config)
        if self.data:
            settings["data set"] = self.data[:SHOWN_HASH_LENGTH]
        return settings

    @property
    def asked(self) -> tuple[SettingPairs, str]:
        """Arguments and data: they are compared across models, which may differ in their generation
        settings.
        """
        return self.args, self.data


def identity_of(header: EvalLog) -> Identity:
    """The identity of a log's run."""
    spec = header.eval
    evaluated = ModelConfig(
        model=spec.model,
        config=header.plan.config.merge(spec.model_generate_config),
        args=spec.model_args,
    )
    data = spec.dataset.name or spec.dataset.location or ""
    return identified(
        task_of(header), evaluated, roles_of(header), spec.task_args, spec.metadata or {}, data
    )


def identified(
    task: str,
    evaluated: ModelConfig,
    roles: Mapping[str, Sequence[ModelConfig]],
    args: Mapping[str, Any],
    metadata: Mapping[str, Any],
    data: str = "",
) -> Identity:
    """The identity of a run, equal before and after it is made.

    Args:
        task: Name without a package.
        evaluated: The evaluated model.
        roles: Role → its models.
        args: Arguments of the task.
        metadata: Metadata of the task, with the hash of its data set.
        data: Name of a data set without a hash.
    """
    names_by_role = dict[str, str]()
    config = dict(_config(evaluated))
    for role, models in roles.items():
        models_of_role = ",".join(model.model for model in models)
        if role != "target" or models_of_role != evaluated.model:
            names_by_role[role] = models_of_role
        for model in models:
            owner = role if len(models) == 1 else model.model
            for name, value in _config(model):
                config[f"{name} of {owner}"] = value
    hashes = [str(metadata[name]) for name in HASH_ENTRIES if metadata.get(name)]
    return Identity(
        task=task,
        model=evaluated.model,
        roles=tuple(sorted(names_by_role.items())),
        args=arguments_of(task, args),
        config=tuple(sorted(config.items())),
        data="+".join(hashes) or data,
    )


def _config(model: ModelConfig) -> Iterator[tuple[str, str]]:
    """The generation settings and the arguments of a model that the user gave."""
    for name, value in model.config.model_dump(exclude_none=True).items():
        if name not in HOW_CALLED:
            yield name, str(value)
    for name, value in concealed(model.args).items():
        if not ADDRESS_ARGUMENT.search(name):
            yield f"-M {name}", str(value)


def arguments_of(task: str, args: Mapping[str, Any]) -> SettingPairs:
    """The arguments that belong to a run's identity: no path, nothing that is the default.

    The name of a log that was read stays, without its folder: there the log itself is what is
    measured.

    >>> arguments_of("kth_word", {"k": [1, 2, 3], "dataset": "my.jsonl", "effort": "low"})
    (('effort', 'low'),)
    """
    defaults = task_defaults(task)
    typed_args = dict[str, str]()
    for name, value in comparable_arguments(args).items():
        if name in PATH_ARGUMENTS or value is None:
            continue
        typed_value = as_typed(value)
        if name == "log":
            typed_value = typed_value.rstrip("/").rpartition("/")[2]
        if typed_value != defaults.get(name):
            typed_args[name] = typed_value
    return tuple(sorted(typed_args.items()))


@cache
def task_defaults(task: str) -> dict[str, str]:
    """The default of each argument of a task of the suite, as one types it."""
    task_function = registry_lookup("task", f"selfprobe/{task}")
    if not callable(task_function):
        return {}
    parameters = inspect.signature(task_function).parameters.values()
    return {
        parameter.name: as_typed(parameter.default)
        for parameter in parameters
        if parameter.default is not parameter.empty
    }


def as_typed(value: object) -> str:
    """A task argument as one types it: the same text for "1,2" and [1, 2]; "null" for None."""
    if isinstance(value, list | tuple):
        return ",".join(map(as_typed, value))
    return value if isinstance(value, str) else json.dumps(value, sort_keys=True, default=str)


def differing(identity: Identity, counted_identities: Iterable[Identity]) -> str:
    """The difference between a run and the nearest of those that are shown.

    >>> differing(Identity("t", "m", args=(("k", "1"),)), [Identity("t", "m", args=(("k", "2"),))])
    'another run: k is 1, there 2'
    """
    differences_of_runs = list[list[str]]()
    for counted_identity in counted_identities:
        if counted_identity.task == identity.task:
            differences_of_runs.append(_differences(identity, counted_identity))
    if not differences_of_runs:
        return "another run: its task"
    fewest_differences = min(differences_of_runs, key=len)
    return f"another run: {'; '.join(fewest_differences)}"


def _differences(identity: Identity, counted_identity: Identity) -> list[str]:
    differences = list[str]()
    if identity.model != counted_identity.model:
        differences.append(f"of {identity.model}, there {counted_identity.model}")
    settings = identity.settings
    other_settings = counted_identity.settings
    for name in sorted(settings.keys() | other_settings.keys()):
        if settings.get(name) != other_settings.get(name):
            value = settings.get(name, "not set")
            other_value = other_settings.get(name, "not set")
            differences.append(f"{name} is {value}, there {other_value}")
    return differences


def other_version(header: EvalLog, versions: Mapping[Identity, str]) -> str:
    """Words for a log of one of these runs by another version of its task; "" where it is of this
    one or of no run.

    Args:
        header: Header of the log.
        versions: Run → version of its task now; what follows a plus sign is the hash of its data.
    """
    identity = identity_of(header)
    logged_version = str(header.eval.task_version).partition("+")[0]
    current_version = versions.get(identity, "").partition("+")[0]
    if logged_version == current_version or not current_version:
        return ""
    return (
        f"{identity.task} version {logged_version}, which is version {current_version} now, with "
        "other prompts or scores"
    )


def titles(identities: Iterable[Identity]) -> dict[Identity, str]:
    """A name for each run: its model, and the settings in which runs of one task and model differ.

    >>> identities = [Identity("t", "m", (("grader", grader),)) for grader in "ab"]
    >>> list(titles(identities).values())
    ['m, grader a', 'm, grader b']
    """
    unique_identities = list(dict.fromkeys(identities))
    all_settings = defaultdict[tuple[str, str], list[dict[str, str]]](list)
    for identity in unique_identities:
        all_settings[identity.task, identity.model].append(identity.settings)

    title_of_identity = {}
    for identity in unique_identities:
        settings_of_runs = all_settings[identity.task, identity.model]
        setting_names = {name for settings in settings_of_runs for name in settings}
        title_parts = [identity.model]
        for name in sorted(setting_names):
            values = {settings.get(name) for settings in settings_of_runs}
            if len(values) > 1:
                title_parts.append(f"{name} {identity.settings.get(name, 'not set')}")
        title_of_identity[identity] = ", ".join(title_parts)
    return title_of_identity
