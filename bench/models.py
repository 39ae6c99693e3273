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
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from inspect_ai.log import EvalLog, EvalSample, EvalSpec, read_eval_log, write_eval_log
from shortuuid import uuid

from selfprobe.introspect_tasks.outcome import OUTCOMES_OF

SELFPROBE = str(Path(sys.executable).with_name("selfprobe"))
MAX_CPU_SECONDS = 30
"""CPU seconds that a report of 110 models may take."""
MAX_MEGABYTES = 1000
"""Memory that it may take."""
PLANTED_SETTINGS = ("access=.9", "access=.7", "access=.5", "access=.3", "access=.1")
"""The models that are asked: settings of planted ones."""


def asked_logs(study: str, items: int, folder: Path) -> list[EvalLog]:
    """The logs of the models that are asked."""
    models = ",".join(
        f"planted/asked{number}?{settings}" for number, settings in enumerate(PLANTED_SETTINGS)
    )
    command = ["matrix", "--tasks", "kth_word"]
    if study == "awareness":
        command = ["awareness", "run", "--methods", "binary"]
    log_dir = folder / "asked"
    command += ["--models", models, "--limit", str(items)]
    run([*command, "--log-dir", str(log_dir), "--out", f"{folder}/page"])

    if study == "outcome":
        command = ["outcome", str(log_dir), "--score", "kth_word_match.k1", "--models", models]
        log_dir = folder / "outcome"
        run([*command, "--log-dir", str(log_dir), "--out", f"{folder}/page"])
    return [read_eval_log(str(path)) for path in sorted(log_dir.rglob("*.eval"))]


def run(arguments: Sequence[str]) -> None:
    """Call selfprobe."""
    process = subprocess.run(
        [SELFPROBE, *arguments, "--yes"], capture_output=True, text=True, check=False
    )
    if process.returncode:
        raise RuntimeError(
            f"selfprobe {' '.join(arguments[:3])} ended with {process.returncode}: "
            f"{process.stderr[-2000:]}"
        )


def write_drawn(logs: Sequence[EvalLog], model_count: int, folder: Path) -> None:
    """Write logs of many models, each sample from the log of a model that was asked."""
    rng = random.Random(0)
    for task in sorted({log.eval.task for log in logs}):
        task_logs = [log for log in logs if log.eval.task == task]
        for model_number in range(model_count):
            template = task_logs[model_number % len(task_logs)]
            samples: list[EvalSample] = []
            for sample_index in range(len(template.samples or [])):
                candidates = [log.samples[sample_index] for log in task_logs if log.samples]
                sample = rng.choice(candidates)
                metadata = with_outcomes_of_all(sample.metadata, model_count, seed=sample_index)
                samples.append(sample.model_copy(update={"uuid": uuid(), "metadata": metadata}))

            file = folder / f"2026-01-01T00-00-00_{task.rpartition('/')[2]}_{uuid()}.eval"
            log = template.model_copy(
                update={
                    "eval": renamed_spec(template.eval, f"planted/m{model_number}"),
                    "samples": samples,
                    "location": str(file),
                }
            )
            write_eval_log(log, file)


def with_outcomes_of_all(
    metadata: Mapping[str, Any], model_count: int, *, seed: int
) -> dict[str, Any]:
    """A sample's metadata, in which the outcomes of the models that were asked stand for all."""
    outcomes = [value for name, value in metadata.items() if name.startswith(OUTCOMES_OF)]
    new_metadata = {
        name: value for name, value in metadata.items() if not name.startswith(OUTCOMES_OF)
    }
    if outcomes:
        rng = random.Random(seed)  # each log holds the outcomes of all models
        for model_number in range(model_count):
            new_metadata[f"{OUTCOMES_OF}planted/m{model_number}"] = rng.choice(outcomes)
    return new_metadata


def renamed_spec(spec: EvalSpec, model: str) -> EvalSpec:
    """The same run of another model."""
    update: dict[str, Any] = {
        "model": model,
        "eval_id": uuid(),
        "run_id": uuid(),
        "task_id": uuid(),
    }
    if "outcome_of" in (spec.metadata or {}):
        update["task_args"] = spec.task_args | {"target": model}
        update["metadata"] = (spec.metadata or {}) | {"outcome_of": model}
    return spec.model_copy(update=update)


def measured(command: Sequence[str]) -> tuple[float, float]:
    """CPU seconds of a command, and the most memory that it had, in MB."""
    process = subprocess.Popen(
        command, env=os.environ | {"OMP_NUM_THREADS": "1"}, stdout=subprocess.DEVNULL
    )
    _, status, resources = os.wait4(process.pid, 0)
    if status:
        raise SystemExit(f"{' '.join(command[:2])} ended with {os.waitstatus_to_exitcode(status)}")
    return resources.ru_utime + resources.ru_stime, resources.ru_maxrss / 1000


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
        help=f"fail beyond {MAX_CPU_SECONDS} CPU seconds or {MAX_MEGABYTES} MB",
    )
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder_name:
        folder = Path(folder_name)
        logs = asked_logs(arguments.study, arguments.items, folder)
        drawn_folder = folder / "drawn"
        drawn_folder.mkdir()
        write_drawn(logs, arguments.models, drawn_folder)
        command = [SELFPROBE, "report", str(drawn_folder), "--out", str(folder / "report")]
        cpu_seconds, megabytes = measured(command)

    size = f"{arguments.models} models × {arguments.items} items, {arguments.study}"
    print(f"report of {size}: {cpu_seconds:.0f} CPU s, {megabytes:.0f} MB")
    is_too_much = cpu_seconds > MAX_CPU_SECONDS or megabytes > MAX_MEGABYTES
    if arguments.hold and is_too_much:
        raise SystemExit(f"expected at most {MAX_CPU_SECONDS} CPU s and {MAX_MEGABYTES} MB")


if __name__ == "__main__":
    main()
