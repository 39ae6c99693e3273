"""Copies of a model on a local Ray cluster: what several harvest a second, beside one.

    python bench/replicas.py --model smollm2 --copies 1,2 --count 24
    python bench/replicas.py --smoke

Each number of copies reads the same pairs on a cluster of as many nodes with one CPU each, on this machine, after all
are loaded. Must reach on free cores: two copies 1.7 times one. How many threads wanted a core meanwhile is said with
each figure: where they are more than copies and one, other work shared the cores, and the ratio is none of free cores.
"""

import argparse
import math
import os
import sys
import tempfile
import time
from collections.abc import Iterable, Iterator
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from selfprobe.on_ray import joined, replicas
from selfprobe.probes.forward import Batch, States
from selfprobe.probes.harvesting import harvest
from selfprobe.probes.model import LocalModel, load_model
from selfprobe.probes.tokens import encode
from selfprobe.sources.pairs import Pair


def pairs_of(count: int, words: int) -> list[Pair]:
    """Made-up pairs of one length, so that every batch is as long."""
    return [
        Pair(f"p{i}", f"left {i} " * words, f"right {i} " * words, 1, context=f"Question {i}?") for i in range(count)
    ]


def running() -> float:
    """Threads of this machine that run or wait for a core, now; NaN where it is no Linux."""
    file = Path("/proc/loadavg")
    return float(file.read_text().split()[3].partition("/")[0]) if file.is_file() else math.nan


def timed(name: str, judge: LocalModel, pairs: list[Pair], copies: int, folder: Path) -> tuple[float, float]:
    """Prompts a second of so many copies, from the first batch to the last; the batches in flight are left out.

    And the mean of `running` meanwhile: on free cores little more than there are copies.
    """
    from ray.cluster_utils import Cluster

    cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 1, "include_dashboard": False})
    for _ in range(copies - 1):
        cluster.add_node(num_cpus=1)
    came: list[tuple[float, int]] = []
    wanting: list[float] = []
    try:
        with joined(cluster.address) as ray:
            reader = replicas(ray, judge, partial(load_model, name), count=copies)

            def noted(judge: LocalModel, batches: Iterable[Batch]) -> Iterator[tuple[Batch, States]]:
                for batch, states in reader(judge, batches):
                    came.append((time.perf_counter(), len(batch.rows)))
                    wanting.append(running())
                    yield batch, states

            harvest(judge, pairs[:1], folder / f"first-{copies}", reader=reader, progress=lambda _: None)
            prompt = encode(judge.tokenizer, pairs[:1])[0]
            ray.get([copy.check.remote(judge.revision, prompt) for copy in reader.copies])  # type: ignore[attr-defined]
            harvest(judge, pairs, folder / str(copies), reader=noted, batch_tokens=1, progress=lambda _: None)
    finally:
        cluster.shutdown()
    return sum(rows for _, rows in came[1:]) / (came[-1][0] - came[0][0]), sum(wanting) / len(wanting)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", default="smollm2", help="a name or folder that each node can load")
    parser.add_argument("--copies", default="1,2", help="numbers of copies, separated by commas")
    parser.add_argument("--count", type=int, default=24, help="pairs")
    parser.add_argument("--words", type=int, default=20, help="of a text")
    parser.add_argument("--smoke", action="store_true", help="four short pairs: shows that it runs, not how fast")
    options = parser.parse_args()
    if find_spec("ray") is None:
        print("Ray is not installed: not measured (pip install 'ray>=2.60')")
        sys.exit(0 if options.smoke else 1)
    count, words = (4, 2) if options.smoke else (options.count, options.words)
    judge, rates = load_model(options.model), dict[int, Any]()
    with tempfile.TemporaryDirectory() as folder:
        for copies in map(int, options.copies.split(",")):
            rates[copies], wanting = timed(options.model, judge, pairs_of(count, words), copies, Path(folder))
            first = next(iter(rates.values()))
            print(
                f"{copies} copies: {rates[copies]:.2f} prompts/s, {rates[copies] / first:.2f} times the first "
                f"({wanting:.1f} threads wanted one of {os.cpu_count()} cores)",
                flush=True,
            )


if __name__ == "__main__":
    main()
