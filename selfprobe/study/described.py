"""Descriptions of runs and models, with which a process makes them itself, and the calls that a
task will make.

No open model goes to another process. Calls and their tokens are counted on a task's first items,
without asking a model: the task is built as for a run, and a planted model stands in for every
model. It knows a fitting reply to each prompt of the suite, so that prompts that come after a reply
are counted too.
"""

import asyncio
import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass, field
from functools import cache
from statistics import mean
from typing import Any

from inspect_ai import Task, task_with
from inspect_ai.model import (
    ChatMessage,
    ChatMessageUser,
    GenerateConfig,
    Model,
    ModelConfig,
    ModelName,
    get_model,
)
from inspect_ai.solver import TaskState

from selfprobe.errors import InputError, one_line
from selfprobe.errors.arguments import nearest_name_hint, unknown_names_fault
from selfprobe.errors.inspect_private import PrerequisiteError, registry_find, registry_info
from selfprobe.logs import Identity, identified, in_thread
from selfprobe.solvers.ask import rehearsal
from selfprobe.solvers.record import Record, Reply, reply_from
from selfprobe.study._registry import measures, tasks
from selfprobe.text import user_input
from selfprobe.text.families import simulated_reader_fault
from selfprobe.text.safe import concealed


def available_model(name: str, **args: Any) -> Model:
    """A model that can be had; Inspect gives one handle for equal arguments.

    Args:
        name: Name of the model in Inspect.
        args: Arguments of `get_model`.

    Raises:
        InputError: No such provider, no key, a wrong argument, no weights.
    """
    concealed(args)  # from now on secrets among them are masked in every message
    try:
        return get_model(name, **args)
    except (PrerequisiteError, ValueError, TypeError, OSError, ImportError) as error:
        message = one_line(error).removeprefix(f"{name}: ")
        if "not recognized" in message:
            suggestion = nearest_name_hint(name.partition("/")[0], _providers())
            message = message.removesuffix(".") + (suggestion or ".")
        raise InputError(f"{name}: {message}") from None


def _providers() -> list[str]:
    provider_classes = registry_find(lambda info: info.type == "modelapi")
    full_names = [registry_info(provider).name for provider in provider_classes]
    return [name.rpartition("/")[2] for name in full_names]


@dataclass(frozen=True)
class NamedModel:
    """A model that is not open yet."""

    name: str
    """Name of the model in Inspect, provider/name."""
    args: Mapping[str, Any] = field(default_factory=dict)
    """Arguments of `get_model`: model arguments, config, base_url."""

    def open(self) -> Model:
        """The model.

        Raises:
            InputError: See `available_model`.
        """
        return available_model(self.name, **self.args)

    def refuse_impossible(self) -> None:
        """Refuse what no key and no weights would make a model; where these are needed, they are
        left for the run.

        Raises:
            InputError: No such provider, or a wrong setting of a simulated model; in the words of
                `available_model`.
        """
        if self.provider == "planted" or "/" not in self.name or self.provider not in _providers():
            self.open()

    @property
    def logged_config(self) -> ModelConfig:
        """Name of the model in logs; no client is opened for it."""
        args = {
            name: value for name, value in self.args.items() if name not in ("config", "base_url")
        }
        return ModelConfig(
            model=self.name, config=self.args.get("config") or GenerateConfig(), args=args
        )

    @property
    def provider(self) -> str:
        """Provider, with which the name begins."""
        return self.name.partition("/")[0]


def unopened_models(entries: Iterable[object]) -> tuple[NamedModel, ...]:
    """The models of names and of mappings, not open yet.

    Args:
        entries: A mapping has `model`, `base_url`, `config` (generation settings; what a task fixes
            wins) and `args` (model arguments, e.g. the pinned provider of OpenRouter).

    Raises:
        InputError: An entry is neither or has a wrong field, or a model is listed twice.
    """
    models = []
    for entry in entries:
        model = entry if isinstance(entry, NamedModel) else _named_model(entry)
        models.append(model)
    name_counts = Counter(model.name for model in models)
    repeated_names = sorted(name for name, count in name_counts.items() if count > 1)
    if repeated_names:
        names = ", ".join(repeated_names)
        raise InputError(f"model {names} is listed twice; list each model once")
    return tuple(models)


MODEL_FIELDS = ("args", "base_url", "config", "model")
"""Fields of a mapping that describes a model."""


def _named_model(entry: object) -> NamedModel:
    fields = {"model": entry} if isinstance(entry, str) else entry
    name = fields.get("model") if isinstance(fields, Mapping) else None
    if not isinstance(fields, Mapping) or not isinstance(name, str):
        raise InputError(
            f"a model is a name or a mapping of {', '.join(MODEL_FIELDS)}; got {entry!r}"
        )
    wrong_fields = unknown_names_fault(fields, MODEL_FIELDS)
    if wrong_fields:
        raise InputError(f"model {name}: unknown field {wrong_fields}")

    settings = fields.get("config") or {}
    known_settings = GenerateConfig.model_fields
    for setting in settings:
        if setting not in known_settings:
            suggestion = nearest_name_hint(setting, known_settings)
            raise InputError(f"model {name}: config has no setting {setting}{suggestion}")
    try:
        config = GenerateConfig(**settings)
    except ValueError as error:
        raise InputError(f"model {name}: wrong config: {one_line(error)}") from None
    headers = settings.get("extra_headers")
    if headers != concealed(headers, "headers"):
        remedy = (
            "every log would hold it; give it under args, as default_headers, or by the environment"
        )
        raise InputError(
            f"model {name}: config.extra_headers has a header that may be secret: {remedy}"
        )
    open_args: dict[str, Any] = {"config": config}
    if fields.get("base_url") is not None:
        open_args["base_url"] = fields["base_url"]
    return NamedModel(name, open_args | (fields.get("args") or {}))


def graders(
    names: str | Sequence[str] | None, option: str = "grader", subjects: Iterable[str] | None = None
) -> tuple[NamedModel, ...]:
    """The models of a list, comma-separated or not, one or a panel; none where no list is there.

    Args:
        names: Names of the models in Inspect.
        option: Option in which the user lists them: "grader" or "judges".
        subjects: Models whose texts they read; None where the list was checked before. One of them
            is taken as a grader where it is listed twice.

    Raises:
        InputError: The list is empty, has a model twice, has a subject once, or has a simulated
            model that would read texts of a real one.
    """
    listed_names = user_input.names(names) if isinstance(names, str) else list(names or ())
    if names is not None and not listed_names:
        raise InputError(
            f"--{option} names no model; expected such as openai/a, "
            "or openai/a,google/b for a panel"
        )
    if subjects is not None:
        _refuse_graders(listed_names, option, tuple(subjects))
    return tuple(map(NamedModel, dict.fromkeys(listed_names)))


def _refuse_graders(names: Sequence[str], option: str, subjects: Sequence[str]) -> None:
    noun = option.removesuffix("s")
    for name, count in Counter(names).items():
        is_subject = name in subjects
        if count > 1 and not is_subject:
            raise InputError(f"{noun} {name} is listed twice; list each {noun} once")
        if count == 1 and is_subject:
            twice = f"--{option} {name},{name}"
            remedy = f"take another --{option}, or list it twice ({twice}) if you mean that"
            raise InputError(f"{name} would grade its own texts: {remedy}")
        fault = simulated_reader_fault(name, subjects, f"--{option} ")
        if fault:
            raise InputError(fault)


@dataclass(frozen=True)
class DescribedRun:
    """A run of one of the suite's tasks, before its task is made."""

    task: str
    """Name of the task."""
    args: Mapping[str, Any]
    """Arguments of the task."""
    model: NamedModel
    roles: Mapping[str, NamedModel | tuple[NamedModel, ...]] = field(default_factory=dict)
    """Role → its model; several models in a role are a panel."""
    metadata: Mapping[str, Any] = field(default_factory=dict)
    """Entries in addition to the task's metadata."""

    def build(self) -> Task:
        """The task with its models.

        Raises:
            InputError: A model cannot be had, or the task refuses an argument.
        """
        task = tasks()[self.task](**self.args)
        metadata = {**(task.metadata or {}), **self.metadata}
        task = task_with(task, model=self.model.open(), metadata=metadata)
        model_roles: dict[str, str | Model | list[str | Model]] = {}
        for role, models in self.models_by_role.items():
            opened_models: list[str | Model] = [model.open() for model in models]
            model_roles[role] = opened_models if len(opened_models) > 1 else opened_models[0]
        return task_with(task, model_roles=model_roles) if model_roles else task

    def identified(
        self,
        metadata: Mapping[str, Any],
        config: GenerateConfig = GenerateConfig(),  # noqa: B008
    ) -> Identity:
        """The identity by which the run's log is found, in any folder.

        Args:
            metadata: Metadata of its task.
            config: Generation settings of its task.
        """
        evaluated = self.model.logged_config
        evaluated = evaluated.model_copy(update={"config": config.merge(evaluated.config)})
        roles = {}
        for role, models in self.models_by_role.items():
            roles[role] = [model.logged_config for model in models]
        return identified(self.task, evaluated, roles, self.args, metadata)

    @property
    def models(self) -> tuple[NamedModel, ...]:
        """The evaluated model and those in roles."""
        return self.model, *(model for models in self.models_by_role.values() for model in models)

    @property
    def models_by_role(self) -> dict[str, tuple[NamedModel, ...]]:
        """Role → its models, in their order."""
        models_by_role = {}
        for role, models in self.roles.items():
            models_by_role[role] = models if isinstance(models, tuple) else (models,)
        return models_by_role


def identities_of(runs: Iterable[DescribedRun]) -> list[Identity]:
    """Identities by which the logs of these runs are found; a task is built once, whichever models
    it asks.
    """
    return list(run_versions(runs))


def run_versions(runs: Iterable[DescribedRun]) -> dict[Identity, str]:
    """Identity by which the log of each run is found → version of its task; see `identities_of`."""
    task_by_call: dict[str, Task] = {}
    versions = {}
    for run in runs:
        call = repr((run.task, sorted(run.args.items())))
        if call not in task_by_call:
            task_by_call[call] = tasks()[run.task](**run.args)
        task = task_by_call[call]
        versions[run.identified(task.metadata or {}, task.config)] = str(task.version)
    return versions


REHEARSED_ITEMS = 2
"""Number of items that are played."""
CHARACTERS_PER_TOKEN = 4
"""A rough guess."""
LONGEST_TARGET_REPLY = 300
"""Tokens of a text that the target writes, where its limit allows as many."""


@dataclass(frozen=True)
class Counted:
    """Calls of an item, at most, and a rough guess of their tokens."""

    count: int
    """Epochs included."""
    tokens: tuple[int, int]
    """Tokens of a call on average, in and out."""


@dataclass(frozen=True)
class Rehearsed:
    """Calls for an item of a task in a run of a model on itself."""

    every_call: Counted
    observer: Counted
    """Calls of the observer alone."""


def rehearsed_calls(task: str, args: Mapping[str, Any]) -> Rehearsed:
    """Calls for an item of a task.

    Args:
        task: Name of the task.
        args: Arguments of the task as one types them, without a log.

    Raises:
        InputError: The task refuses an argument, or its MEASURE names an act that it does not
            record.
    """
    measure = measures().get(task)
    if measure is not None:
        _, acts = _rehearsed(task, "{}")  # an argument may leave acts out, such as candidates=3
        wrong_acts = unknown_names_fault(measure.acts, acts)
        if wrong_acts:
            raise InputError(f"{task}: MEASURE names the act {wrong_acts}")
    calls, _ = _rehearsed(task, json.dumps(dict(args), sort_keys=True))
    return calls


@cache
def _rehearsed(task: str, args: str) -> tuple[Rehearsed, tuple[str, ...]]:
    """Calls for an item of a task, and the names of the acts that it records."""
    calls_by_item, acts = in_thread(lambda: asyncio.run(_played(task, json.loads(args))))
    observer_calls = []
    for item_calls in calls_by_item:
        observer_calls.append([call for call in item_calls if call.role is None])
    return Rehearsed(_counted(calls_by_item), _counted(observer_calls)), acts


@dataclass(frozen=True)
class _RehearsedCall:
    role: str | None
    tokens_in: float
    tokens_out: float


def _counted(calls_by_item: Sequence[Sequence[_RehearsedCall]]) -> Counted:
    calls = [call for item_calls in calls_by_item for call in item_calls]
    if not calls:
        return Counted(0, (0, 0))
    most_calls = max(map(len, calls_by_item))
    tokens_in = round(mean(call.tokens_in for call in calls))
    tokens_out = round(mean(call.tokens_out for call in calls))
    return Counted(most_calls, (tokens_in, tokens_out))


async def _played(
    task_name: str, args: Mapping[str, Any]
) -> tuple[list[list[_RehearsedCall]], tuple[str, ...]]:
    """Every call of the first items, an item a list, and the names of the recorded acts."""
    model = get_model("planted/plan")
    item_calls: list[_RehearsedCall] = []
    missing_tokens_by_text: dict[str, float] = {}
    """Text of the target → tokens by which a real one is longer where it is quoted."""

    async def stand_in(
        role: str | None,
        name: str,
        prompt: str | list[ChatMessage],
        config: GenerateConfig,
        may_be_cut: bool,
    ) -> Reply:
        messages: list[ChatMessage] = (
            [ChatMessageUser(content=prompt)] if isinstance(prompt, str) else prompt
        )
        output: Any = await model.api.generate(
            input=messages, tools=[], tool_choice="none", config=config
        )
        prompt_text = "\n".join(message.text for message in messages)
        tokens_in = len(prompt_text) / CHARACTERS_PER_TOKEN
        for quoted_text, missing_tokens in missing_tokens_by_text.items():
            if quoted_text in prompt_text:
                tokens_in += missing_tokens

        tokens_out = len(output.completion) / CHARACTERS_PER_TOKEN
        if role == "target":
            limit = config.max_tokens or LONGEST_TARGET_REPLY
            target_tokens = min(limit, LONGEST_TARGET_REPLY)
            missing_tokens_by_text[output.completion] = max(0.0, target_tokens - tokens_out)
            tokens_out = target_tokens
        item_calls.append(_RehearsedCall(role, tokens_in, tokens_out))
        return reply_from(output, model, may_be_cut=may_be_cut)

    async def generate(state: TaskState, *_: Any, **__: Any) -> TaskState:
        return state

    calls_by_item: list[list[_RehearsedCall]] = []
    acts: dict[str, Reply] = {}
    with rehearsal(stand_in):
        task = tasks()[task_name](**args)
        for sample in task.dataset[:REHEARSED_ITEMS]:
            state = TaskState(
                ModelName(model),
                str(sample.id),
                1,
                sample.input,
                messages=[],
                metadata=deepcopy(sample.metadata or {}),
            )
            item_calls.clear()
            await task.solver(state, generate)
            calls_by_item.append(list(item_calls) * (task.epochs or 1))
            acts |= state.store_as(Record).acts
    return calls_by_item, tuple(acts)
