"""All that we take of Inspect's private modules, and why: the one place to mend when a version of Inspect moves it.

Here and in `errors` alone is `inspect_ai._…` imported (tests/test_imports.py).
"""

from typing import TYPE_CHECKING, Any

# Builds a task as `inspect eval` does, from a name or a file, to read its data set without running it.
from inspect_ai._eval.loader import load_tasks

# `inspect eval` prints this error's message alone, without a traceback.
from inspect_ai._util.error import PrerequisiteError

# The names of all installed tasks, to say which one was meant.
from inspect_ai._util.registry import registry_find, registry_info

# Ends a sample from inside of a model's call, past what its solver may catch.
from inspect_ai.log._samples import sample_active

# What the command line set (retries, timeouts, cache), and whether a task runs: no public name tells a solver either.
# A solver that binds roles in its sample: `eval` takes only roles whose names are known.
from inspect_ai.model._generate_config import active_generate_config
from inspect_ai.model._model import active_model, init_model_roles

# Inspect's limit of requests at once, which starts at 20 and never asks the provider how many slots its server has.
from inspect_ai.util._concurrency import _active_controller as active_controller

if TYPE_CHECKING:
    # Speaks the protocol of llama.cpp's server, tool calls and logprobs included.
    from inspect_ai.model._providers.openai_compatible import OpenAICompatibleAPI

__all__ = [
    "OpenAICompatibleAPI",
    "PrerequisiteError",
    "active_controller",
    "active_generate_config",
    "active_model",
    "init_model_roles",
    "load_tasks",
    "registry_find",
    "registry_info",
    "sample_active",
]


def __getattr__(name: str) -> Any:
    """Bring the provider's base class when it is asked for: the openai package takes 0.8 s of every start otherwise."""
    if name != "OpenAICompatibleAPI":
        raise AttributeError(name)
    from inspect_ai.model._providers.openai_compatible import OpenAICompatibleAPI

    return OpenAICompatibleAPI
