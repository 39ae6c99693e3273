"""What is set up on this machine: versions, keys, extras, weights. Nothing is fetched."""

import os
import platform
from collections.abc import Iterator
from dataclasses import dataclass
from importlib.metadata import version
from importlib.util import find_spec

from selfprobe.embed.weights import MODELS, Weights, at_hand
from selfprobe.errors.inspect_private import TESTED_INSPECT, load_env_file
from selfprobe.providers.keys import KEY_VARIABLES
from selfprobe.text.extras import install_command

EXTRAS = {
    "probes": ("torch", "transformers", "safetensors", "gguf", "accelerate"),
    "mechanisms": ("peft",),
    "embeddings": ("sentence_transformers",),
    "inspect_evals": ("inspect_evals",),
    "scout": ("inspect_scout",),
    "flow": ("inspect_flow",),
    "ray": ("ray",),
}
"""Extra → modules that it brings."""

USES = {
    "probes": "probe, mechanism, awareness inside, steered/… models, preference_probe",
    "mechanisms": "mechanism induce, probe run --parts finetune",
    "embeddings": "embedders other than all-MiniLM-L6-v2 and openai/…",
    "inspect_evals": "items of inspect_evals/… (-T dataset=task:…, awareness effect, realism card)",
    "scout": "the scanner selfprobe/eval_awareness of Inspect Scout",
    "flow": "examples/flow",
    "ray": "--engine ray, --replicas",
    "smollm2": "embedded/smollm2, a model without a key; mechanism and probe with --model smollm2",
    "all-MiniLM-L6-v2": "similarity of replies in reports and three tasks",
}
"""Extra or weights → what it switches on."""


COMMON_PROVIDERS = ("openai", "anthropic", "google", "mistral", "grok", "openrouter")
"""Providers whose missing keys are named; the last has models of nearly all vendors."""


@dataclass(frozen=True)
class SetupPart:
    """Something that is here, or that is missing."""

    name: str
    is_here: bool
    switches_on: str = ""
    """What it is for; "" where it is always here."""
    remedy: str = ""
    """What to type to have it."""


def setup_parts() -> list[SetupPart]:
    """Versions, weights, keys and extras, in this order."""
    load_env_file()
    weights_parts = [_weights_part(weights) for weights in MODELS.values()]
    return [_versions(), *weights_parts, *_key_parts(), *_extra_parts()]


def _versions() -> SetupPart:
    inspect_version = version("inspect_ai")
    note = "the tested version"
    if inspect_version != TESTED_INSPECT:
        note = f"tested with {TESTED_INSPECT}"
    python_version = f"Python {platform.python_version()}, {platform.system()}"
    return SetupPart(
        f"selfprobe {version('selfprobe')}, inspect_ai {inspect_version} ({note}), {python_version}",
        is_here=True,
    )


def _weights_part(weights: Weights) -> SetupPart:
    path = at_hand(weights)
    return SetupPart(
        f"weights of {weights.name}" + (f" ({path})" if path else ""),
        is_here=path is not None,
        switches_on=USES[weights.name],
        remedy=f"selfprobe fetch-model {weights.name} ({weights.megabytes} MB)",
    )


def _key_parts() -> Iterator[SetupPart]:
    for provider, variables in KEY_VARIABLES.items():
        set_variables = [variable for variable in variables if os.environ.get(variable)]
        if set_variables:
            yield SetupPart(f"key {set_variables[0]}", is_here=True, switches_on=f"{provider}/…")
    missing_keys = []
    for provider in COMMON_PROVIDERS:
        variables = KEY_VARIABLES[provider]
        if not any(map(os.environ.get, variables)):
            missing_keys.append(f"{provider}/… ({variables[0]})")
    if missing_keys:
        yield SetupPart(
            "keys",
            is_here=False,
            switches_on=f"{', '.join(missing_keys)} and others",
            remedy="export NAME=VALUE, or write it into a file .env in this folder",
        )


def _extra_parts() -> Iterator[SetupPart]:
    for extra, modules in EXTRAS.items():
        missing_modules = [module for module in modules if find_spec(module) is None]
        yield SetupPart(
            f"extra {extra}",
            is_here=not missing_modules,
            switches_on=USES[extra],
            remedy=install_command(extra),
        )
