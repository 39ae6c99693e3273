"""What the commands on open weights share: how a model is loaded and asked, and how a fault is said."""

import errno
import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import click

from selfprobe.probes import EXTRA
from selfprobe.text.near import names

ALLOW_PICKLE = click.option("--allow-pickle", is_flag=True, help="Load weights that exist only as pickle.")


@contextmanager
def said_plainly(going_on: str) -> Iterator[None]:
    """What the user can mend is an `InputError` (probes know nothing of Inspect); an interrupt says how to go on."""
    from selfprobe.errors import InputError, Interrupted

    try:
        yield
    except InputError:
        raise
    except ImportError as error:
        if (error.name or "").partition(".")[0] not in EXTRA:
            raise
        needed = ("fine-tuning needs", "mechanisms") if error.name == "peft" else ("probes need", "probes")
        raise InputError(f"{needed[0]} {error.name}: pip install 'selfprobe[{needed[1]}]'") from None
    except (ValueError, OSError) as error:  # OSError: files, folders and the network
        full = isinstance(error, OSError) and error.errno == errno.ENOSPC  # from wherever something is written
        raise InputError(f"the disk is full: {error}. Make room. {going_on}" if full else str(error)) from None
    except RuntimeError as error:
        if type(error).__name__ != "OutOfMemoryError":
            raise
        raise InputError(f"the device has too little memory; take fewer --batch-tokens: {error}") from None
    except KeyboardInterrupt:
        raise Interrupted(f"Interrupted. {going_on}") from None


def blocks(text: str) -> tuple[int, ...]:
    """Numbers of blocks: 3, 8-12, 0-31:4 (every fourth), and lists of these; rising, each once.

    Raises:
        ValueError: It is none of these.
    """
    found: set[int] = set()
    for part in names(text):
        match = re.fullmatch(r"(\d+)(?:-(\d+)(?::([1-9]\d*))?)?", part)
        if not match or int(match[2] or match[1]) < int(match[1]):
            raise ValueError("expected blocks as 3, 8-12 or 0-31:4")
        found |= set(range(int(match[1]), int(match[2] or match[1]) + 1, int(match[3] or 1)))
    return tuple(sorted(found))


def quiet_model(name: str, loading: dict[str, Any]) -> Any:
    """The model, without transformers' bars; ValueError, before it is loaded, where memory does not suffice."""
    from selfprobe.probes.memory import check_memory
    from selfprobe.probes.model import load_model, without_bars

    without_bars()
    check_memory(name, loading)
    return load_model(name, **loading)


FULL_RATE = 2e-5
"""Of a training of all weights, which move together: adapters take some ten times as much."""
