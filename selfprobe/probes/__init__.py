"""Preference probes from Python.

    from selfprobe.probes import ContrastProbe, harvest, load_model

PyTorch is imported when a name that needs it is asked for.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from selfprobe.text.extras import install_command

if TYPE_CHECKING:
    from selfprobe.data.own import Words as Words
    from selfprobe.data.pairs import Pair as Pair
    from selfprobe.data.public_pairs import load_pairs as load_pairs
    from selfprobe.probes.estimator import ContrastProbe as ContrastProbe
    from selfprobe.probes.harvesting import Harvest as Harvest
    from selfprobe.probes.harvesting import harvest as harvest
    from selfprobe.probes.harvesting import open_harvest as open_harvest
    from selfprobe.probes.model import load_model as load_model
    from selfprobe.probes.model import local_model as local_model
    from selfprobe.probes.probe_file import load_probe as load_probe
    from selfprobe.probes.probe_file import save_probe as save_probe
    from selfprobe.probes.tokens import Chat as Chat

_HOMES = {
    "Chat": "selfprobe.probes.tokens",
    "ContrastProbe": "selfprobe.probes.estimator",
    "Harvest": "selfprobe.probes.harvesting",
    "Pair": "selfprobe.data.pairs",
    "Words": "selfprobe.data.own",
    "harvest": "selfprobe.probes.harvesting",
    "load_model": "selfprobe.probes.model",
    "load_pairs": "selfprobe.data.public_pairs",
    "load_probe": "selfprobe.probes.probe_file",
    "local_model": "selfprobe.probes.model",
    "open_harvest": "selfprobe.probes.harvesting",
    "save_probe": "selfprobe.probes.probe_file",
}

__all__ = sorted(_HOMES)  # pyright: ignore[reportUnsupportedDunderAll]

EXTRA = ("torch", "transformers", "safetensors", "gguf", "accelerate", "peft")
"""What the extra `probes` brings; peft comes with `mechanisms`."""


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(
            f"module {__name__!r} has no attribute {name!r}; it has {', '.join(__all__)}"
        )
    try:
        return getattr(import_module(_HOMES[name]), name)
    except ImportError as error:
        if (error.name or "").partition(".")[0] not in EXTRA:
            raise
        raise ImportError(
            f"selfprobe.probes.{name} needs {error.name}: {install_command('probes')}",
            name=error.name,
        ) from error


def __dir__() -> list[str]:
    return list(__all__)
