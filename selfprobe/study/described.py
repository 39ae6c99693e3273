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
from selfprobe.errors.arguments import meant, unknown
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
    def described(self) -> ModelConfig:
        """Name of the model in logs."""
        model = self.open()
        args = {
            name: value for name, value in self.args.items() if name not in ("config", "base_url")
        }
        return ModelConfig(
            model=str(model), config=self.args.get("config") or GenerateConfig(), args=args
        )

    @property
    def provider(self) -> str:
        """Provider, with which the name begins."""
        return self.name.partition("/")[0]


def configured(entries: Iterable[object]) -> tuple[NamedModel, ...]:
    """The models of names and of mappings, not open yet.

    Args:
        entries: A mapping has `model`, `base_url`, `config` (generation settings; what a task fixes
            wins) and `args` (model arguments, e.g. the pinned provider of OpenRouter).

    Raises:
        InputError: An entry is neither or has a wrong field, or a model is listed twice.
    """
    listed = [entry if isinstance(entry, NamedModel) else _configured(entry) for entry in entries]
    names = [model.name for model in listed]
    if twice := sorted({name for name in names if names.count(name) > 1}):
        raise InputError(f"model {', '.join(twice)} is listed twice; list each model once")
    return tuple(listed)


def _configured(entry: object) -> NamedModel:
    fields, known = (
        {"model": entry} if isinstance(entry, str) else entry,
        ["args", "base_url", "config", "model"],
    )
    if not isinstance(fields, Mapping) or not isinstance(name := fields.get("model"), str):
        raise InputError(f"a model is a name or a mapping of {', '.join(known)}; got {entry!r}")
    if wrong := unknown(fields, known):
        raise InputError(f"model {name}: unknown field {wrong}")
    settings, there = fields.get("config") or {}, GenerateConfig.model_fields
    for setting in settings:
        if setting not in there:
            raise InputError(
                f"model {name}: config has no setting {setting}{meant(setting, there)}"
            )
    try:
        config = GenerateConfig(**settings)
    except ValueError as error:
        raise InputError(f"model {name}: wrong config: {one_line(error)}") from None
    if settings.get("extra_headers") != concealed(settings.get("extra_headers"), "headers"):
        remedy = (
            "every log would hold it; give it under args, as default_headers, or by the environment"
        )
        raise InputError(
            f"model {name}: config.extra_headers has a header that may be secret: {remedy}"
        )
    return NamedModel(
        name, {"config": config, "base_url": fields.get("base_url"), **(fields.get("args") or {})}
    )


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
    listed, one = (
        user_input.names(names) if isinstance(names, str) else list(names or ()),
        option.removesuffix("s"),
    )
    if names is not None and not listed:
        raise InputError(
            f"--{option} names no model; expected such as openai/a, or openai/a,google/b for a panel"
        )
    for name, count in Counter(listed).items() if subjects is not None else ():
        own = name in set(subjects or ())
        if count > 1 and not own:
            raise InputError(f"{one} {name} is listed twice; list each {one} once")
        if count == 1 and own:
            remedy = f"take another --{option}, or list it twice (--{option} {name},{name}) if you mean that"
            raise InputError(f"{name} would grade its own texts: {remedy}")
        if fault := simulated_reader_fault(name, subjects or (), f"--{option} "):
            raise InputError(fault)
    return tuple(map(NamedModel, dict.fromkeys(listed)))


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
        made = tasks()[self.task](**self.args)
        made = task_with(
            made, model=self.model.open(), metadata={**(made.metadata or {}), **self.metadata}
        )
        opened_roles = {
            role: [model.open() for model in models] for role, models in self.bound.items()
        }
        roles = {
            role: models if len(models) > 1 else models[0] for role, models in opened_roles.items()
        }
        return task_with(made, model_roles=roles) if roles else made

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
        evaluated = self.model.described
        evaluated = evaluated.model_copy(update={"config": config.merge(evaluated.config)})
        roles = {role: [model.described for model in models] for role, models in self.bound.items()}
        return identified(self.task, evaluated, roles, self.args, metadata)

    @property
    def models(self) -> tuple[NamedModel, ...]:
        """The evaluated model and those in roles."""
        return self.model, *(model for models in self.bound.values() for model in models)

    @property
    def bound(self) -> dict[str, tuple[NamedModel, ...]]:
        """Role → its models, in their order."""
        return {role: of if isinstance(of, tuple) else (of,) for role, of in self.roles.items()}


def identities_of(runs: Iterable[DescribedRun]) -> list[Identity]:
    """Identities by which the logs of these runs are found; a task is built once, whichever models
    it asks.
    """
    return list(run_versions(runs))


def run_versions(runs: Iterable[DescribedRun]) -> dict[Identity, str]:
    """Identity by which the log of each run is found → version of its task; see `identities_of`."""
    built: dict[str, Task] = {}
    versions = {}
    for run in runs:
        name = repr((run.task, sorted(run.args.items())))
        if name not in built:
            built[name] = tasks()[run.task](**run.args)
        task = built[name]
        versions[run.identified(task.metadata or {}, task.config)] = str(task.version)
    return versions


ITEMS = 2
"""Number of items that are played."""
CHARACTERS = 4
"""Characters of a token, roughly."""
LONGEST = 300
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

    all: Counted
    observer: Counted
    """Calls of the observer alone."""


def rehearsed(task: str, args: Mapping[str, Any]) -> Rehearsed:
    """Calls for an item of a task.

    Args:
        task: Name of the task.
        args: Arguments of the task as one types them, without a log.

    Raises:
        InputError: The task refuses an argument, or its MEASURE names an act that it does not
            record.
    """
    if measure := measures().get(task):
        _, acts = _rehearsed(task, "{}")  # an argument may leave acts out, such as candidates=3
        if wrong := unknown(measure.acts, acts):
            raise InputError(f"{task}: MEASURE names the act {wrong}")
    calls, _ = _rehearsed(task, json.dumps(dict(args), sort_keys=True))
    return calls


@cache
def _rehearsed(task: str, args: str) -> tuple[Rehearsed, tuple[str, ...]]:
    """Calls for an item of a task, and the names of the acts that it records."""
    items, acts = in_thread(lambda: asyncio.run(_played(task, json.loads(args))))
    return Rehearsed(
        _calls(items), _calls([[one for one in sent if one.role is None] for sent in items])
    ), acts


@dataclass(frozen=True)
class _Sent:
    role: str | None
    read: float
    wrote: float


def _calls(items: Sequence[Sequence[_Sent]]) -> Counted:
    every = [one for sent in items for one in sent]
    tokens = (
        (round(mean(one.read for one in every)), round(mean(one.wrote for one in every)))
        if every
        else (0, 0)
    )
    return Counted(max((len(sent) for sent in items), default=0), tokens)


async def _played(task: str, args: Mapping[str, Any]) -> tuple[list[list[_Sent]], tuple[str, ...]]:
    """Every call of the first items, an item a list, and the names of the recorded acts."""
    model, sent, acts = get_model("planted/plan"), list[_Sent](), dict[str, Reply]()
    longer = dict[
        str, float
    ]()  # a text of the target → tokens by which a real one is longer where it is quoted

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
        text, reply = (
            "\n".join(message.text for message in messages),
            len(output.completion) / CHARACTERS,
        )
        wrote = min(config.max_tokens or LONGEST, LONGEST) if role == "target" else reply
        read = len(text) / CHARACTERS + sum(more for shown, more in longer.items() if shown in text)
        if role == "target":
            longer[output.completion] = max(0.0, wrote - reply)
        sent.append(_Sent(role, read, wrote))
        return reply_from(output, model, may_be_cut=may_be_cut)

    async def generate(state: TaskState, *_: Any, **__: Any) -> TaskState:
        return state

    out = list[list[_Sent]]()
    with rehearsal(stand_in):
        made = tasks()[task](**args)
        for sample in made.dataset[:ITEMS]:
            state = TaskState(
                ModelName(model),
                str(sample.id),
                1,
                sample.input,
                messages=[],
                metadata=deepcopy(sample.metadata or {}),
            )
            sent.clear()
            await made.solver(state, generate)
            out.append(list(sent) * (made.epochs or 1))
            acts |= state.store_as(Record).acts
    return out, tuple(acts)
