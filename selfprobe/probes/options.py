"""What the commands on open weights share: how a model is loaded and asked, and how a fault is said."""

import errno
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import wraps
from typing import Any, Literal

import click

from selfprobe import options
from selfprobe.probes import EXTRA

Command = Callable[..., None]
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
    for part in options.names(text):
        match = re.fullmatch(r"(\d+)(?:-(\d+)(?::([1-9]\d*))?)?", part)
        if not match or int(match[2] or match[1]) < int(match[1]):
            raise ValueError(f"expected blocks as 3, 8-12 or 0-31:4, got {part!r}")
        found |= set(range(int(match[1]), int(match[2] or match[1]) + 1, int(match[3] or 1)))
    return tuple(sorted(found))


class Layers(click.ParamType[tuple[int, ...]]):
    """Numbers of `blocks`."""

    name = "layers"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> tuple[int, ...]:
        """The numbers, rising, each once."""
        try:
            return value if isinstance(value, tuple) else blocks(value)
        except ValueError as error:
            self.fail(str(error), param, ctx)


def gathered(name: str, *given: Callable[[Command], Command]) -> Callable[[Command], Command]:
    """Options whose values come as one dict, the argument `name`."""

    def decorate(command: Command) -> Command:
        @wraps(command)
        def gathering(**values: Any) -> None:
            command(**{name: {each: values.pop(each) for each in names}}, **values)

        options_of: Command = gathering
        for option in reversed(given):
            options_of = option(options_of)
        names = [param.name for param in options_of.__click_params__[-len(given) :]]  # type: ignore[attr-defined]
        return options_of

    return decorate


SYSTEM = click.option("--system", metavar="TEXT", help="System turn before what is asked; by default none.")
TEMPLATE_ARGUMENT = click.option(
    "--template-arg",
    "arguments",
    type=options.Assignment(),
    multiple=True,
    help="Argument of the chat template, as enable_thinking=false.",
)

engine_options = gathered(
    "engine",
    click.option(
        "--engine",
        type=options.Choice(["transformers", "ray"]),
        default="transformers",
        show_default=True,
        help="ray: copies of the model read on the nodes of a Ray cluster.",
    ),
    click.option(
        "--ray-address", metavar="HOST:PORT", help="Address of the cluster.  [default: RAY_ADDRESS, or one here]"
    ),
    click.option(
        "--replicas",
        type=options.COUNT,
        metavar="N",
        help="Number of model copies. Default: one per GPU (or per group of GPUs that a copy needs); without GPUs one "
        "per node.",
    ),
)
"""Where the forward passes are made; as `on_ray.copies` takes them."""


def quiet_model(name: str, loading: dict[str, Any]) -> Any:
    """The model, without transformers' bars; ValueError, before it is loaded, where memory does not suffice."""
    from selfprobe.probes.memory import check_memory
    from selfprobe.probes.model import load_model, without_bars

    without_bars()
    check_memory(name, loading)
    return load_model(name, **loading)


def loading(layers: str = "") -> Callable[[Command], Command]:
    """How a model is loaded, as `load_model` takes it; `layers`: the help of --layers, "" where it has no use."""
    of_layers = [click.option("--layers", type=Layers(), default="", help=layers)] if layers else []
    return gathered(
        "loading",
        click.option("--revision", help="Commit of a hub model."),
        click.option("--device", default="cpu", show_default=True, help="cpu, cuda, cuda:1, mps …"),
        click.option(
            "--dtype",
            type=click.Choice(["float32", "bfloat16", "float16"]),
            default="float32",
            show_default=True,
        ),
        click.option("--device-map", help="Accelerate's, such as auto: spread over devices."),
        click.option("--attention", help="transformers' attn_implementation; by default its own choice."),
        click.option(
            "--quantize",
            type=click.Choice(["4bit", "8bit"]),
            help="Load with bitsandbytes, computing in --dtype.",
        ),
        *of_layers,
        ALLOW_PICKLE,
    )


FULL_RATE = 2e-5
"""Of a training of all weights, which move together: adapters take some ten times as much."""


def training(*, rank: int, alpha: Literal[1, 2], rate: float, epochs: int, batch: int) -> Callable[[Command], Command]:
    """How a model is trained, with these defaults; fields of a `Recipe`. `alpha` is that of rank 1."""
    between = options.Number(0, 1, min_open=True, max_open=True)
    each: dict[str, Any] = {"type": options.COUNT, "metavar": "N", "show_default": True}
    of_rank = {1: "the same", 2: "twice it"}[alpha]

    def decorate(command: Command) -> Command:
        @wraps(command)
        def trained(**values: Any) -> None:
            given = values.pop("training")
            full, own = given.pop("full"), given["rank"]
            if full and own:
                raise click.UsageError("--rank is of adapters, and --full trains without: give one of them")
            size = None if full else own or rank
            given |= {"rank": size, "alpha": size and alpha * size}
            given["rate"] = given["rate"] or (FULL_RATE if full else rate)
            command(training=given, **values)

        return gathered(
            "training",
            click.option("--rank", help=f"Of the adapters; by default {rank}; alpha is {of_rank}.", **each),
            click.option("--full", is_flag=True, help="Train all weights, in float32, in place of adapters."),
            click.option(
                "--rate",
                type=between,
                help=f"Falls to 0 over the last fifth; by default {rate:g}, with --full {FULL_RATE:g}.",
            ),
            click.option("--epochs", default=epochs, **each),
            click.option("--batch", default=batch, help="Examples of a step.", **each),
        )(trained)

    return decorate
