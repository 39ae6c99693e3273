"""How much faster N processes fit than one: wall and CPU seconds of `fit_all`, its states on disk.

    python bench/fit.py                    # 1, 2 and 4 processes
    python bench/fit.py --processes 1 8    # others
    python bench/fit.py --smoke            # that it runs

On a busy machine the wall says little. Then read the CPU seconds, the start of the processes included: N times those of
one process over those of N is the speed-up that N free cores would give.
"""

import argparse
import resource
import tempfile
import time
from pathlib import Path

import numpy as np
import torch
from joblib.externals.loky import get_reusable_executor
from threadpoolctl import threadpool_limits

from selfprobe.probes.evaluate import fit_all
from selfprobe.probes.forward import States
from selfprobe.probes.harvesting import Harvest, open_harvest
from selfprobe.probes.shards import Identity, Store
from selfprobe.sources.pairs import Pair, data_hash


def harvested(folder: Path, pairs: int, layers: int, width: int) -> Harvest:
    """Noise on disk."""
    rng = np.random.default_rng(0)
    known = [Pair(f"p{i}", f"a{i}", f"b{i}", 1 if rng.random() < 0.5 else 2, group=f"g{i}") for i in range(pairs)]
    identity = Identity("noise", "r", "t", data_hash(known), "float32", "sdpa", 2, layers, width)
    store = Store.create(folder / identity.folder_name, identity, known)
    hidden = torch.tensor(rng.standard_normal((2 * pairs, 2, layers, width)), dtype=torch.float32)
    store.add(range(2 * pairs), States(hidden, torch.tensor(rng.standard_normal((2 * pairs, 2)), dtype=torch.float32)))
    store.flush()
    return open_harvest(store.folder)


def seconds(harvest: Harvest, processes: int) -> tuple[float, float]:
    """Wall and CPU seconds of one fit, its processes' included."""
    before, start = cpu(), time.perf_counter()
    with threadpool_limits(1):
        fit_all(harvest, processes=processes)
    wall = time.perf_counter() - start
    if processes > 1:
        get_reusable_executor().shutdown(wait=True)  # their CPU counts when they have ended
    return wall, cpu() - before


def cpu() -> float:
    """CPU seconds of this process and of its children that have ended."""
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(u.ru_utime + u.ru_stime for u in used)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--processes", type=int, nargs="+", default=[1, 2, 4])
    parser.add_argument("--pairs", type=int, default=600)
    parser.add_argument("--layers", type=int, default=16)
    parser.add_argument("--width", type=int, default=1024)
    parser.add_argument("--smoke", action="store_true", help="60 pairs, 2 layers of width 16, 1 and 2 processes")
    given = parser.parse_args()
    sizes = (60, 2, 16) if given.smoke else (given.pairs, given.layers, given.width)
    with tempfile.TemporaryDirectory() as folder:
        harvest = harvested(Path(folder), *sizes)
        first = None
        for processes in [1, 2] if given.smoke else given.processes:
            wall, used = seconds(harvest, processes)
            first = first or (wall, used)
            print(
                f"{processes:3} processes: {wall:7.1f} s wall ({first[0] / wall:.2f} times as fast), {used:7.1f} CPU s "
                f"(on free cores {processes * first[1] / used:.2f}, which is {first[1] / used:.2f} N)",
                flush=True,
            )


if __name__ == "__main__":
    main()
