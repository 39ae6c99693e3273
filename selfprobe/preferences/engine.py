"""The model of `selfprobe probe`, and what makes its forward passes: this process, a Ray cluster, or vLLM."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from typing import Any

import click

from selfprobe import options
from selfprobe.probes.options import gathered

engine_options = gathered(
    "engine",
    click.option(
        "--engine",
        type=click.Choice(["transformers", "ray", "vllm"]),
        default="transformers",
        show_default=True,
        help="ray: copies of the model read on the nodes of a Ray cluster. vllm: vLLM reads, on all GPUs; no --path.",
    ),
    click.option("--ray-address", metavar="HOST:PORT", help="Of the cluster.  [default: RAY_ADDRESS, or one here]"),
    click.option(
        "--replicas",
        type=options.COUNT,
        metavar="N",
        help="So many copies on the cluster; by default one for each GPU (or as many as one takes), else one a node.",
    ),
)
"""Where the forward passes are made."""


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
    from selfprobe.probes import forward, model

    if engine == "vllm":
        from selfprobe.probes.vllm_reader import vllm_reader

        return replace(judge, reader="vllm"), vllm_reader(judge, name)
    if engine == "transformers":
        return judge, forward.in_process
    from selfprobe.probes.replicas import replicas as copies

    there = loading | {"chat": judge.chat, "device": str(loading["device"]).partition(":")[0]}
    return judge, copies(ray, judge, partial(model.load_model, name, **there), count=replicas)
