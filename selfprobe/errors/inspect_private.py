"""All that we use of Inspect's private modules, and why: the one place to mend when a version of
Inspect moves it.

Here and in `errors` alone is `inspect_ai._…` imported (tests/test_imports.py). What only one
feature needs is looked up when that feature is used, so that a version of Inspect which moved it
takes nothing else away.
"""

import inspect
import logging
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from functools import wraps
from importlib import import_module
from importlib.metadata import version
from typing import TYPE_CHECKING, Any

import anyio
import rich

# Draws the tables of a run's results.
from inspect_ai._display.rich import display as _rich_display

# Tells which logs of a set are complete, so that they are not asked again.
from inspect_ai._eval import evalset

# Writes the samples of a run into its log.
from inspect_ai._eval.task.log import TaskLogger

# Reads the keys of a `.env` file, as Inspect's own commands do.
from inspect_ai._util.dotenv import init_dotenv as load_env_file

# `inspect eval` prints this error's message alone, without a traceback.
from inspect_ai._util.error import PrerequisiteError

# The names of all installed tasks, to say which one was meant.
from inspect_ai._util.registry import (
    has_registry_params,
    registry_add,
    registry_find,
    registry_info,
    registry_lookup,
    registry_params,
    set_registry_info,
)

# Hears of a sample's events before its log is written.
from inspect_ai.hooks import _hooks

# A killed run whose buffer is gone or belongs to another process: nothing to restore, and no error.
from inspect_ai.log._recover import RecoveryNotAvailable

# Ends a sample from inside of a model's call, past what its solver may catch.
from inspect_ai.log._samples import sample_active

# Writes the models of a run's roles into its log.
from inspect_ai.model import Model, ModelConfig, _model_config

# What the command line set (retries, timeouts, cache), and whether a task runs: no public name
# tells a solver either. A solver that binds roles in its sample: `eval` takes only roles whose
# names are known.
from inspect_ai.model._generate_config import active_generate_config
from inspect_ai.model._model import active_model, init_model_roles
from inspect_ai.util import _store

from selfprobe.text.safe import concealed, masked

suspend_store_events = getattr(_store, "suspend_store_events", nullcontext)
"""Context in which spans log no change of the store; a version of Inspect without it loses only
time.
"""

if TYPE_CHECKING:
    from inspect_ai._eval.loader import load_tasks
    from inspect_ai.model._openai import OpenAIResponseError
    from inspect_ai.model._providers.hf import HuggingFaceAPI
    from inspect_ai.model._providers.openai_compatible import OpenAICompatibleAPI
    from inspect_ai.util._concurrency import _active_controller as active_controller

__all__ = [
    "HuggingFaceAPI",
    "OpenAICompatibleAPI",
    "OpenAIResponseError",
    "PrerequisiteError",
    "RecoveryNotAvailable",
    "active_controller",
    "active_generate_config",
    "active_model",
    "also_named",
    "check_overrides",
    "done_samples_logged",
    "has_registry_params",
    "init_model_roles",
    "load_env_file",
    "load_tasks",
    "registry_find",
    "registry_info",
    "registry_lookup",
    "registry_params",
    "sample_active",
    "set_logged_target",
    "sets_complete_only",
    "suspend_store_events",
]

TESTED_INSPECT = "0.3.285"
"""The version of Inspect that constraints.txt installs."""

LAZY_NAMES = {
    # Speaks the protocol of llama.cpp's server, tool calls and logprobs included; brings the openai
    # package (0.8 s).
    "OpenAICompatibleAPI": (
        "inspect_ai.model._providers.openai_compatible",
        "OpenAICompatibleAPI",
        "embedded/… models",
    ),
    # Generates with transformers in this process; brings torch.
    "HuggingFaceAPI": ("inspect_ai.model._providers.hf", "HuggingFaceAPI", "steered/… models"),
    # What such providers try again.
    "OpenAIResponseError": (
        "inspect_ai.model._openai",
        "OpenAIResponseError",
        "errors under status 200",
    ),
    # Inspect's limit of requests at once, which starts at 20 and never asks the provider how many
    # slots a server has.
    "active_controller": (
        "inspect_ai.util._concurrency",
        "_active_controller",
        "embedded/… models",
    ),
    # Builds a task as `inspect eval` does, from a name or a file, to read its data set without
    # running it.
    "load_tasks": ("inspect_ai._eval.loader", "load_tasks", "conversations of another task"),
}
"""Name that is looked up when it is used → its module, its name there and the feature that needs
it.
"""


def __getattr__(name: str) -> Any:
    if name not in LAZY_NAMES:
        raise AttributeError(name)
    module_name, attribute_name, feature = LAZY_NAMES[name]
    try:
        return getattr(import_module(module_name), attribute_name)
    except (ImportError, AttributeError) as error:
        raise _changed_inspect(str(error), feature) from None


def check_overrides(extended: type, first_arguments: Sequence[str]) -> None:
    """Refuse a version of Inspect in which a class that we extend lacks what we override in it.

    Such an override would be called by nobody: requests would go elsewhere, without a word.

    Args:
        extended: Class whose methods and properties marked `override` are looked for in the class
            that it extends.
        first_arguments: Arguments that it hands to that class's `__init__`, by name; positional
            ones are the first, in order.

    Raises:
        PrerequisiteError: One is missing, is no longer a method or a property, or takes other
            arguments.
    """
    base_class = extended.__mro__[1]
    base_name = base_class.__name__
    base_arguments = _argument_names(base_class)[: len(first_arguments)]
    if base_arguments != list(first_arguments):
        raise _changed_inspect(f"its {base_name} starts with other arguments", "embedded/… models")
    for name, override in vars(extended).items():
        function = override.fget if isinstance(override, property) else override
        if not getattr(function, "__override__", False):
            continue
        if not _is_same_kind(override, getattr(base_class, name, None)):
            raise _changed_inspect(
                f"its {base_name}.{name} is gone or takes other arguments", "embedded/… models"
            )


def _is_same_kind(override: Any, base_attribute: Any) -> bool:
    """Whether both are properties, or methods with the same arguments."""
    if isinstance(override, property) or isinstance(base_attribute, property):
        return isinstance(override, property) and isinstance(base_attribute, property)
    if not callable(base_attribute):
        return False
    return _argument_names(base_attribute) == _argument_names(override)


def _argument_names(function: Any) -> list[str]:
    return list(inspect.signature(function).parameters)


def _changed_inspect(change: str, feature: str) -> PrerequisiteError:
    return PrerequisiteError(
        f"Inspect {version('inspect_ai')} is not one that this version of selfprobe knows: "
        f"{change}. {feature} need it; all else works. Install a newer selfprobe, or the tested "
        f"Inspect: pip install inspect-ai=={TESTED_INSPECT}"
    )


def _conceal() -> None:
    """Have Inspect write models' arguments and addresses without secrets, as it does without
    `api_key`.

    A provider keeps the real ones, which it was made with. `Model` has its own copies for logs
    alone: for their header, for the index of an eval set, and for the hash by which the same
    command finds its runs again. Clients of HTTP say each request's address, which Inspect may
    write into its sample.
    """
    config_for_log = _model_config.model_to_model_config

    def config_without_secrets(model: Model) -> ModelConfig:
        config = config_for_log(model)
        if not config.base_url:
            return config
        return config.model_copy(update={"base_url": masked(config.base_url)})

    def masked_address(model: Model) -> str | None:
        base_url: str | None = vars(model).get("_explicit_base_url")
        return masked(base_url) if base_url else base_url

    def concealed_arguments(model: Model) -> dict[str, Any]:
        resolved_arguments = getattr(model.api, "resolved_arguments", {})
        arguments: dict[str, Any] = concealed({**vars(model)["model_args"], **resolved_arguments})
        return arguments

    def set_arguments(model: Model, arguments: dict[str, Any]) -> None:
        concealed(arguments)  # from now on secrets among them are masked in every message
        vars(model)["model_args"] = arguments

    def mask_request(record: logging.LogRecord) -> bool:
        record.msg = masked(record.getMessage())
        record.args = ()
        return True

    for logger_name in ("httpx", "httpx2", "inspect_ai.model._providers.util.hooks"):
        logging.getLogger(logger_name).addFilter(mask_request)
    _model_config.model_to_model_config = config_without_secrets
    Model.model_args = property(concealed_arguments, set_arguments)  # type: ignore[assignment]
    Model.explicit_base_url = property(masked_address)  # type: ignore[assignment,method-assign]


_conceal()


def _draw_for_somebody() -> None:
    """Have Inspect draw the results' tables where they are seen: with --display none each run drew
    them for a second.

    A version of Inspect that calls the function elsewhere loses only time.
    """
    draw_tables = getattr(_rich_display, "tasks_results", None)
    if draw_tables is None:
        return

    def tasks_results(tasks: Sequence[Any]) -> Any:
        return "" if rich.get_console().quiet else draw_tables(tasks)

    vars(_rich_display)["tasks_results"] = tasks_results


_draw_for_somebody()


@contextmanager
def sets_complete_only(is_whole: Callable[[Any], bool]) -> Iterator[None]:
    """A block in which `eval_set` goes on with a log that ended well and is not whole.

    Inspect takes it for complete although samples ended in an error, where errors are tolerated.

    Args:
        is_whole: Function from a log's header.
    """
    has_all_samples = evalset.log_samples_complete

    def is_complete_and_whole(log: Any, *args: Any, **kwargs: Any) -> bool:
        return has_all_samples(log, *args, **kwargs) and is_whole(log.header)

    vars(evalset)["log_samples_complete"] = is_complete_and_whole
    try:
        yield
    finally:
        vars(evalset)["log_samples_complete"] = has_all_samples


@contextmanager
def done_samples_logged() -> Iterator[None]:
    """A block in which a sample that is done gets into its log, also where the run is interrupted
    meanwhile.

    Between its score and its log a sample waits: for hooks that hear of its events, and for its
    turn to be written. One that was cancelled there was in no log, with all its replies.
    """
    owners_and_names = [
        (_hooks, "drain_sample_events"),
        (TaskLogger, "complete_sample"),
        (TaskLogger, "complete_sample_streaming"),
    ]
    original_steps = [getattr(owner, name) for owner, name in owners_and_names]

    def shielded(step: Callable[..., Any]) -> Callable[..., Any]:
        @wraps(step)
        async def shielded_step(*args: Any, **kwargs: Any) -> Any:
            with anyio.CancelScope(shield=True):
                return await step(*args, **kwargs)

        return shielded_step

    for (owner, name), step in zip(owners_and_names, original_steps, strict=True):
        setattr(owner, name, shielded(step))
    try:
        yield
    finally:
        for (owner, name), step in zip(owners_and_names, original_steps, strict=True):
            setattr(owner, name, step)


def set_logged_target(target: str | list[str]) -> None:
    """Have Inspect log a target for the sample that runs, where its data set has none.

    A solver's and a scorer's target are copies; the log takes the sample's own. Outside of a run
    there is no such sample, and a later score leaves the target that is logged.
    """
    active = sample_active()
    if active is not None and not any(active.sample.target):
        active.sample.target = target


def also_named(task: Callable[..., Any], name: str, second_name: str) -> None:
    """Let Inspect find a task under another name too; its runs have the first one.

    Args:
        task: Task, returned by Inspect's `task`.
        name: Name of the task.
        second_name: Second name that finds it.
    """

    @wraps(task)
    def second_task(*args: Any, **kwargs: Any) -> Any:
        return task(*args, **kwargs)

    info = registry_info(task)
    registry_name = info.name.removesuffix(name) + second_name
    registry_add(second_task, info.model_copy(update={"name": registry_name}))
    set_registry_info(second_task, info)
