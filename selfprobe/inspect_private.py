"""All that we take of Inspect's private modules, and why: the one place to mend when a version of Inspect moves it.

Here and in `errors` alone is `inspect_ai._…` imported (tests/test_imports.py). What only one feature needs is looked up
when that feature is used, so that a version of Inspect which moved it takes nothing else away.
"""

import inspect
from collections.abc import Sequence
from importlib import import_module
from importlib.metadata import version
from typing import TYPE_CHECKING, Any

# `inspect eval` prints this error's message alone, without a traceback.
from inspect_ai._util.error import PrerequisiteError

# The names of all installed tasks, to say which one was meant.
from inspect_ai._util.registry import registry_find, registry_info, registry_lookup

# A killed run whose buffer is gone or belongs to another process: nothing to restore, and no error.
from inspect_ai.log._recover import RecoveryNotAvailable

# Ends a sample from inside of a model's call, past what its solver may catch.
from inspect_ai.log._samples import sample_active

# What the command line set (retries, timeouts, cache), and whether a task runs: no public name tells a solver either.
# A solver that binds roles in its sample: `eval` takes only roles whose names are known.
from inspect_ai.model._generate_config import active_generate_config
from inspect_ai.model._model import active_model, init_model_roles

if TYPE_CHECKING:
    from inspect_ai._eval.loader import load_tasks
    from inspect_ai.model._openai import OpenAIResponseError
    from inspect_ai.model._providers.openai_compatible import OpenAICompatibleAPI
    from inspect_ai.util._concurrency import _active_controller as active_controller

__all__ = [
    "OpenAICompatibleAPI",
    "OpenAIResponseError",
    "PrerequisiteError",
    "RecoveryNotAvailable",
    "active_controller",
    "active_generate_config",
    "active_model",
    "check_overrides",
    "init_model_roles",
    "load_tasks",
    "registry_find",
    "registry_info",
    "registry_lookup",
    "sample_active",
]

TESTED = "0.3.285"
"""The version of Inspect that constraints.txt installs."""

LATER = {
    # Speaks the protocol of llama.cpp's server, tool calls and logprobs included; brings the openai package (0.8 s).
    "OpenAICompatibleAPI": (
        "inspect_ai.model._providers.openai_compatible",
        "OpenAICompatibleAPI",
        "embedded/… models",
    ),
    # What such providers try again.
    "OpenAIResponseError": ("inspect_ai.model._openai", "OpenAIResponseError", "errors under status 200"),
    # Inspect's limit of requests at once, which starts at 20 and never asks the provider how many slots a server has.
    "active_controller": ("inspect_ai.util._concurrency", "_active_controller", "embedded/… models"),
    # Builds a task as `inspect eval` does, from a name or a file, to read its data set without running it.
    "load_tasks": ("inspect_ai._eval.loader", "load_tasks", "conversations of another task"),
}
"""What is looked up when it is used: its module, its name there and the feature that needs it."""


def __getattr__(name: str) -> Any:
    if name not in LATER:
        raise AttributeError(name)
    module, attribute, feature = LATER[name]
    try:
        return getattr(import_module(module), attribute)
    except (ImportError, AttributeError) as error:
        raise _changed(str(error), feature) from None


def check_overrides(ours: type, starts: Sequence[str]) -> None:
    """Refuse a version of Inspect in which a class that we extend lacks what we override in it.

    Such an override would be called by nobody: requests would go elsewhere, without a word.

    Args:
        ours: Its methods and properties marked `override` are looked for in the class that it extends.
        starts: What it hands to that class's `__init__`, by name; positional ones are the first, in order.

    Raises:
        PrerequisiteError: One is missing, is no longer a method or a property, or takes other arguments.
    """
    base = ours.__mro__[1]
    if _arguments(base)[: len(starts)] != list(starts):
        raise _changed(f"its {base.__name__} starts with other arguments", "embedded/… models")
    for name, own in vars(ours).items():
        function = own.fget if isinstance(own, property) else own
        if not getattr(function, "__override__", False):
            continue
        theirs = getattr(base, name, None)
        if isinstance(theirs, property) != isinstance(own, property) or not (
            isinstance(theirs, property) or (callable(theirs) and _arguments(theirs) == _arguments(own))
        ):
            raise _changed(f"its {base.__name__}.{name} is gone or takes other arguments", "embedded/… models")


def _arguments(function: Any) -> list[str]:
    return list(inspect.signature(function).parameters)


def _changed(what: str, feature: str) -> PrerequisiteError:
    return PrerequisiteError(
        f"Inspect {version('inspect_ai')} is not one that this version of selfprobe knows: {what}. {feature} need it; "
        f"all else works. Install a newer selfprobe, or the tested Inspect: pip install inspect-ai=={TESTED}"
    )
