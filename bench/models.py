"""CPU and memory of the report of many models.

    python bench/models.py                    # 110 models × 30 items of kth_word
    python bench/models.py --hold             # and fails beyond 30 CPU seconds or 1 GB
    python bench/models.py --study awareness  # or outcome

A few planted models are asked; the others' logs are drawn from theirs, sample by sample. So the
logs take a minute, and no two models answer alike.
"""

import argparse
import os
import random
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from inspect_ai.log import EvalLog, read_eval_log, write_eval_log
from shortuuid import uuid

SELFPROBE = str(Path(sys.executable).with_name("selfprobe"))
CPU_SECONDS, MEGABYTES = 30, 1000
"""What a report of 110 models may take."""
ASKED = ("access=.9", "access=.7", "access=.5", "access=.3", "access=.1")
"""The models that are asked: settings of planted ones."""


def asked_logs(study: str, items: int, folder: Path) -> list[EvalLog]:
    """The logs of the models that are asked."""
    names = ",".join(f"planted/asked{place}?{settings}" for place, settings in enumerate(ASKED))
    words = (
        ["matrix", "--tasks", "kth_word"]
        if study != "awareness"
        else ["awareness", "run", "--methods", "binary"]
    )
    run(
        [
            *words,
            "--models",
            names,
            "--limit",
            str(items),
            "--log-dir",
            f"{folder}/asked",
            "--out",
            f"{folder}/page",
        ]
    )
    if study == "outcome":
        about = [
            f"{folder}/asked",
            "--score",
            "kth_word_match.k1",
            "--log-dir",
            f"{folder}/outcome",
        ]
        run(["outcome", *about, "--models", names, "--out", f"{folder}/page"])
    made = folder / ("outcome" if study == "outcome" else "asked")
    return [read_eval_log(str(path)) for path in sorted(made.rglob("*.eval"))]


def run(words: Sequence[str]) -> None:
    """Call selfprobe."""
    done = subprocess.run([SELFPROBE, *words, "--yes"], capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(
            f"selfprobe {' '.join(words[:3])} ended with {done.returncode}: {done.stderr[-2000:]}"
        )


def write_drawn(logs: Sequence[EvalLog], models: int, folder: Path) -> None:
    """Write logs of many models, each sample from the log of a model that was asked."""
    draw = random.Random(0)
    for task in sorted({log.eval.task for log in logs}):
        of_task = [log for log in logs if log.eval.task == task]
        for place in range(models):
            name, template = f"planted/m{place}", of_task[place % len(of_task)]
            samples = []
            for at in range(len(template.samples or [])):
                source = draw.choice([log.samples[at] for log in of_task if log.samples])
                metadata = dict(source.metadata)
                if known := [name for name in metadata if name.startswith("of ")]:
                    results = [metadata.pop(name) for name in known]
                    one_for_all = random.Random(at)  # each log holds the results of all models
                    metadata |= {
                        f"of planted/m{model}": one_for_all.choice(results)
                        for model in range(models)
                    }
                samples.append(source.model_copy(update={"uuid": uuid(), "metadata": metadata}))
            names = {"model": name} | {kind: uuid() for kind in ("eval_id", "run_id", "task_id")}
            about = {
                "task_args": template.eval.task_args,
                "metadata": dict(template.eval.metadata or {}),
            }
            if "outcome_of" in about["metadata"]:
                about["task_args"] = about["task_args"] | {"target": name}
                about["metadata"]["outcome_of"] = name
            spec = template.eval.model_copy(update=names | about)
            file = folder / f"2026-01-01T00-00-00_{task.rpartition('/')[2]}_{uuid()}.eval"
            write_eval_log(
                template.model_copy(
                    update={"eval": spec, "samples": samples, "location": str(file)}
                ),
                file,
            )


def measured(command: Sequence[str]) -> tuple[float, float]:
    """CPU seconds of a command, and the most memory that it had, in MB."""
    process = subprocess.Popen(
        command, env=os.environ | {"OMP_NUM_THREADS": "1"}, stdout=subprocess.DEVNULL
    )
    _, status, used = os.wait4(process.pid, 0)
    if status:
        raise SystemExit(f"{' '.join(command[:2])} ended with {os.waitstatus_to_exitcode(status)}")
    return used.ru_utime + used.ru_stime, used.ru_maxrss / 1000


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--study", choices=["matrix", "awareness", "outcome"], default="matrix")
    parser.add_argument("--models", type=int, default=110)
    parser.add_argument("--items", type=int, default=30)
    parser.add_argument(
        "--hold",
        action="store_true",
        help=f"fail beyond {CPU_SECONDS} CPU seconds or {MEGABYTES} MB",
    )
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        logs = asked_logs(given.study, given.items, folder)
        (drawn := folder / "drawn").mkdir()
        write_drawn(logs, given.models, drawn)
        report = [SELFPROBE, "report", str(drawn), "--out", str(folder / "report")]
        seconds, megabytes = measured(report)
    size = f"{given.models} models × {given.items} items, {given.study}"
    print(f"report of {size}: {seconds:.0f} CPU s, {megabytes:.0f} MB")
    if given.hold and (seconds > CPU_SECONDS or megabytes > MEGABYTES):
        raise SystemExit(f"expected at most {CPU_SECONDS} CPU s and {MEGABYTES} MB")


if __name__ == "__main__":
    main()
