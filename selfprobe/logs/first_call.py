"""First calls of a task: its solver is run, and each sample stopped at its first call. No model is
asked.

The task runs in a process of its own: Inspect runs one `eval` at a time in a process, and this one
may be in one.
"""

import json
import os
import random
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from copy import copy
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import anyio
import httpx
from inspect_ai import Task, eval, task_with
from inspect_ai.model import Model, get_model
from inspect_ai.solver import Generate, Solver, TaskState, solver

from selfprobe.errors import InputError, one_line
from selfprobe.errors.arguments import locate, meant
from selfprobe.errors.inspect_private import (
    PrerequisiteError,
    init_model_roles,
    registry_find,
    registry_info,
    sample_active,
)

SUBJECT = "selfprobe-evaluated-model"
"""Name of the model that records, as `mockllm/…`: where a task puts it into a prompt, each
subject's own goes.
"""

_OWN_ROLES = ("target",)
"""Roles that a task of this suite asks, and that are the evaluated model where nobody is bound to
them.
"""

_PATIENCE = 900
"""Seconds that a task may take to ask its first questions."""

ELSEWHERE = "Run it where it works, and give its logs (-T logs=…, or --logs)"

_REFUSAL = "refusal.json"
_UNBUILT = (
    *(OSError, ImportError, ValueError, LookupError, PrerequisiteError, httpx.HTTPError),
    *(
        NameError,
        TypeError,
        AttributeError,
        RuntimeError,
        SyntaxError,
    ),  # faults of a task's own file
)
"""Errors that building somebody else's task may raise."""


@contextmanager
def first_calls(name: str) -> Iterator[str]:
    """A folder with one log of the task, in which each sample ends at its first call of a model; it
    is removed after.

    Sandboxes are not started: a sample that needs one before its first call is in error, as is one
    that asks a model of its own choice. A role that nobody is bound to is named in the call, except
    a role of `_OWN_ROLES`.

    Args:
        name: A registered name (`inspect_evals/gsm8k`), or a file, with @task where it holds
            several.

    Raises:
        InputError: There is no such task, the file holds several, or it cannot be built here
            (network, a missing package, a key); its data set is empty.
    """
    with TemporaryDirectory(prefix="selfprobe-") as folder:
        environment = os.environ | {
            "INSPECT_DISABLE_MODEL_API": "1"
        }  # of all models but the one that records
        command = [sys.executable, "-W", "ignore", "-m", "selfprobe.logs.first_call", name, folder]
        try:
            done = subprocess.run(
                command, env=environment, capture_output=True, text=True, timeout=_PATIENCE
            )
        except subprocess.TimeoutExpired:
            raise InputError(
                f"{name}: the task called no model within {_PATIENCE} seconds. {ELSEWHERE}"
            ) from None
        refusal = Path(folder) / _REFUSAL
        if refusal.exists():
            raise InputError(json.loads(refusal.read_text(encoding="utf-8")))
        if done.returncode:
            why = (
                done.stderr.strip().rpartition("\n")[2] or f"it ended with status {done.returncode}"
            )
            raise InputError(f"{name}: the task cannot be run here ({one_line(why)}). {ELSEWHERE}")
        yield folder


def named_for(text: str, model: str) -> str:
    """The text of a task for a model, with the model's name where the task names it.

    >>> named_for(f"You are mockllm/{SUBJECT}, {SUBJECT} for short.", "openai/gpt-5")
    'You are openai/gpt-5, gpt-5 for short.'
    """
    return text.replace(f"mockllm/{SUBJECT}", model).replace(SUBJECT, model.partition("/")[2])


def build(name: str, args: Mapping[str, Any] | None = None) -> Task:
    """The one task of this name, with these arguments; raises the errors of `first_calls`."""
    from selfprobe.errors.inspect_private import load_tasks

    spec, at, which = name.partition("@")
    by_file = spec.endswith(".py")
    try:
        tasks = load_tasks(
            [_relative(locate(spec)) + at + which if by_file else name], dict(args or {})
        )
    except _UNBUILT as error:
        if by_file and isinstance(error, InputError) and spec in str(error):
            raise
        raise InputError(
            f"{name}: the task cannot be built here ({type(error).__name__}: {one_line(error)}); its data may need a "
            f"network, a login or a package. {ELSEWHERE}"
        ) from error
    if not tasks:
        raise InputError(
            f"no task {name!r}; expected a registered name as package/task (is the package installed? inspect_evals "
            "comes with pip install 'selfprobe[inspect_evals]') or a file"
            + meant(
                name,
                [
                    registry_info(known).name
                    for known in registry_find(lambda info: info.type == "task")
                ],
            )
        )
    if len(tasks) > 1:
        raise InputError(
            f"{name} holds {len(tasks)} tasks ({', '.join(t.name for t in tasks)}); pick one: {spec}@name"
        )
    return tasks[0]


def _relative(path: str) -> str:
    """Inspect's loader globs, which absolute paths break on Python 3.11."""
    return os.path.relpath(path, Path.cwd())


async def _stop(*asked: Any) -> Any:
    """End the sample at this call, which is in its transcript by now; no `except Exception` of a
    solver holds it up.
    """
    active = sample_active()
    assert active is not None, "a solver asks inside of a sample"
    active.interrupt("score")
    await anyio.sleep_forever()


class _EveryRole(dict[str, Any]):
    """Every role is bound to the model that records, under the role's name: the log tells who was
    asked first.
    """

    def __init__(self, model: Model) -> None:
        super().__init__()
        self.model = model

    def get(self, role: str, default: Any = None) -> Any:
        if role in _OWN_ROLES:
            return default
        bound = copy(self.model)
        bound._set_role(role)
        return bound


@solver
def _name_roles(model: Model) -> Solver:
    async def solve(state: TaskState, generate: Generate) -> TaskState:
        init_model_roles(_EveryRole(model))
        return state

    return solve


def _record(name: str, folder: str) -> None:
    """Run the task; one sample at a time and seeded, so that a template that draws gives the same
    text again.
    """
    random.seed(0)
    task = build(name)
    for sample in task.dataset:
        sample.sandbox = sample.files = sample.setup = None
    model = get_model(f"mockllm/{SUBJECT}", custom_outputs=_stop)
    before = task.setup if isinstance(task.setup, list) else [task.setup] if task.setup else []
    settings: dict[str, Any] = {
        "model": model,
        "model_roles": {},
        "sandbox": None,
        "scorer": None,
        "epochs": 1,
    }
    task = task_with(task, setup=[_name_roles(model), *before], **settings)
    eval(
        task,
        model=model,
        log_dir=folder,
        display="none",
        score=False,
        max_samples=1,
        fail_on_error=False,
        log_realtime=False,
        log_images=False,
    )


def _main(name: str, folder: str) -> None:
    """Main function of the process: the log, or what is wrong, goes into the folder."""
    try:
        _record(name, folder)
    except InputError as error:
        (Path(folder) / _REFUSAL).write_text(json.dumps(str(error)), encoding="utf-8")


if __name__ == "__main__":
    _main(*sys.argv[1:])
