"""The model of `selfprobe probe` and `mechanism`, and what makes its forward passes: this process, Ray, or vLLM."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from typing import Any

import click

from selfprobe import options
from selfprobe.probes.options import Command, gathered

RAY = "ray: copies of the model read on the nodes of a Ray cluster."
VLLM = "vllm: vLLM reads, on all GPUs; no --path."


def engine_options(*, vllm: bool = False) -> Callable[[Command], Command]:
    """Where the forward passes are made."""
    kinds = ["transformers", "ray", *["vllm"] * vllm]
    told = f"{RAY} {VLLM}" if vllm else RAY
    copies = "So many copies on the cluster; by default one for each GPU (or as many as one takes), else one a node."
    return gathered(
        "engine",
        click.option("--engine", type=click.Choice(kinds), default="transformers", show_default=True, help=told),
        click.option("--ray-address", metavar="HOST:PORT", help="Of the cluster.  [default: RAY_ADDRESS, or one here]"),
        click.option("--replicas", type=options.COUNT, metavar="N", help=copies),
    )


@contextmanager
def cluster(engine: str, ray_address: str | None, replicas: int | None) -> Iterator[Any]:
    """Ray within its cluster, or None where this process reads."""
    if engine != "ray":
        if ray_address or replicas:
            raise click.UsageError(f"{'--ray-address' if ray_address else '--replicas'} goes with --engine ray")
        yield None
        return
    from selfprobe.cluster import joined

    with joined(ray_address) as ray:
        yield ray


def quiet_model(name: str, loading: dict[str, Any]) -> Any:
    """The model, without transformers' bars; ValueError, before it is loaded, where memory does not suffice."""
    from selfprobe.probes.memory import check_memory
    from selfprobe.probes.model import load_model, without_bars

    without_bars()
    check_memory(name, loading)
    return load_model(name, **loading)


def check_engine(engine: str, reading: dict[str, Any], loading: dict[str, Any]) -> None:
    """ValueError, before a model is loaded, where vLLM is not there or is given what is transformers' alone."""
    if engine != "vllm":
        return
    from selfprobe.probes.vllm_reader import check_vllm

    if loading["device"] != "cpu" or loading["device_map"]:
        raise ValueError("vLLM takes all GPUs itself: leave out --device and --device-map")
    if reading["path"] != "auto":
        raise ValueError(
            f"--path {reading['path']} is a way of transformers, and vLLM has its own, each side read whole: leave out "
            "--path, or --engine vllm"
        )
    if loading["quantize"]:
        raise ValueError("--engine vllm reads full weights: leave out --quantize")
    check_vllm()


def read_by(
    judge: Any, name: str, loading: dict[str, Any], engine: str, ray: Any, replicas: int | None
) -> tuple[Any, Any]:
    """The model, and what makes its forward passes: this process, vLLM, or copies on a cluster and their GPUs."""
    from selfprobe.probes import forward

    if engine == "vllm":
        from selfprobe.probes.vllm_reader import vllm_reader

        return replace(judge, reader="vllm"), vllm_reader(judge, name)
    return judge, forward.in_process if engine == "transformers" else copies(judge, name, loading, ray, replicas)


def copies(judge: Any, name: str, loading: dict[str, Any], ray: Any, count: int | None) -> Any:
    """`Copies` of the model that was loaded from `name`, on the nodes of a cluster and their GPUs."""
    from selfprobe.probes.model import load_model
    from selfprobe.probes.replicas import replicas

    there = loading | {"chat": judge.chat, "device": str(loading["device"]).partition(":")[0]}
    return replicas(ray, judge, partial(load_model, name, **there), count=count)
