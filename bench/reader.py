"""CPU seconds and memory of the one reader: from a folder of logs to a row a decision (`selfprobe.logs.decisions`).

    python bench/reader.py                         # 110 logs of 5 models × 4 tasks, 24 items each
    python bench/reader.py --models 8 --items 200  # about 120,000 decisions
    python bench/reader.py --smoke                 # that it runs

One run a task is made with a planted model; the other logs are copies of it under other names of models, each on
each. Of ten logs more, all of k=1, five are earlier runs of the same as the others: the reader has to choose. What is
measured runs in a process of its own: CPU seconds of reading without imports, and the largest
memory with them.
"""

import argparse
import json
import resource
import subprocess
import sys
import tempfile
import time
from itertools import product
from pathlib import Path
from typing import Any

TASKS = ("kth_word", "heads_up", "self_recognition", "ethical_dilemma")
SECONDS, MEGABYTES, DECISIONS = 6, 500, 100_000


def written(folder: Path, items: int, several: int = 5) -> int:
    """Write the logs; how many there are."""
    from inspect_ai import eval
    from inspect_ai.log import EvalLog, write_eval_log
    from inspect_ai.model import ModelConfig

    models = [f"planted/m{number}?access=.5" for number in range(several)]

    def made(task: str, **given: Any) -> EvalLog:
        args = {"epochs": 2} if task == "ethical_dilemma" else {}
        options: dict[str, Any] = {"display": "none", "log_dir": str(folder / "first"), "limit": items}
        [log] = eval(f"selfprobe/{task}", model=models[0], task_args=args | given, **options)
        assert log.status == "success", log.error
        return log

    count = 0
    for task in TASKS:
        log = made(task)
        for number, (target, observer) in enumerate(product(models, models)):
            log.eval.model = observer
            log.eval.model_roles = {"target": ModelConfig(model=target)} if target != observer else None
            log.eval.created = f"2024-01-01T{number // 60:02}:{number % 60:02}:00+00:00"
            write_eval_log(log, str(folder / "logs" / f"{task}-{number}.eval"))
            count += 1
    log = made("kth_word", k="1")
    for number, model in enumerate(models * 2):
        log.eval.model, log.eval.created = model, f"2023-01-01T00:00:{number:02}+00:00"
        write_eval_log(log, str(folder / "logs" / f"other-{number}.eval"))
        count += 1
    return count


def measured(folder: str) -> dict[str, float]:
    """Read the logs in this process: CPU seconds, rows, largest memory in MB."""
    import inspect_ai.log  # noqa: F401
    import pandas as pd

    from selfprobe.logs import decisions

    began, wall = time.process_time(), time.perf_counter()
    table: pd.DataFrame = decisions([folder])
    spent, waited = time.process_time() - began, time.perf_counter() - wall
    most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    used = {"logs": table.log.nunique(), "aside": len(table.attrs["aside"])}
    return {"cpu": spent, "wall": waited, "rows": len(table), "megabytes": most, **used}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--items", type=int, default=24, help="Items of each log.")
    parser.add_argument("--models", type=int, default=5)
    parser.add_argument("--smoke", action="store_true", help="Two items a log: that it runs.")
    parser.add_argument("--read", help="Folder of logs to read and measure in this process.")
    given = parser.parse_args()
    if given.read:
        sys.stdout.write(json.dumps(measured(given.read)))
        return
    with tempfile.TemporaryDirectory() as there:
        count = written(Path(there), 2 if given.smoke else given.items, given.models)
        command = [sys.executable, __file__, "--read", f"{there}/logs"]
        told = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
    print(
        f"{count} logs, {told['logs']:.0f} count, {told['aside']:.0f} set aside: {told['rows']:,.0f} decisions in "
        f"{told['cpu']:.1f} CPU seconds ({told['wall']:.1f} s), at most {told['megabytes']:.0f} MB"
    )
    slow, large = told["cpu"] > SECONDS, told["megabytes"] > MEGABYTES
    if (told["rows"] < DECISIONS and slow) or large:
        sys.exit(f"expected {SECONDS} CPU seconds below {DECISIONS:,} decisions, and {MEGABYTES} MB")


if __name__ == "__main__":
    main()
