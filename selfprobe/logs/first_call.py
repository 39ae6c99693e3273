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
from collections.abc import Iterator, Mapping, Sequence
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
from selfprobe.errors.arguments import INSPECT_NAME_BY_TASK, locate, nearest_name_hint
from selfprobe.errors.inspect_private import (
    PrerequisiteError,
    init_model_roles,
    registry_find,
    registry_info,
    sample_active,
)
from selfprobe.text.extras import install_command

SUBJECT = "selfprobe-evaluated-model"
"""Name of the model that records, as `mockllm/…`: where a task puts it into a prompt, each
subject's own goes.
"""

ROLES_OF_EVALUATED_MODEL = ("target",)
"""Roles that a task of this suite asks, and that are the evaluated model where nobody is bound to
them.
"""

FIRST_CALL_SECONDS = 900
"""Seconds that a task may take to ask its first questions."""

RUN_ELSEWHERE = "Run it where it works, and give its logs (-T logs=…, or --logs)"

REFUSAL_FILE = "refusal.json"
"""File in which the task's process says why it cannot run the task."""
BUILD_ERRORS = (
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
    a role of `ROLES_OF_EVALUATED_MODEL`.

    Args:
        name: A registered name (`inspect_evals/gsm8k`), or a file, with @task where it holds
            several.

    Raises:
        InputError: There is no such task, the file holds several, or it cannot be built here
            (network, a missing package, a key); its data set is empty.
    """
    with TemporaryDirectory(prefix="selfprobe-") as folder:
        # of all models but the one that records
        environment = os.environ | {"INSPECT_DISABLE_MODEL_API": "1"}
        command = [sys.executable, "-W", "ignore", "-m", "selfprobe.logs.first_call", name, folder]
        try:
            process = subprocess.run(
                command,
                env=environment,
                capture_output=True,
                text=True,
                timeout=FIRST_CALL_SECONDS,
            )
        except subprocess.TimeoutExpired:
            raise InputError(
                f"{name}: the task called no model within {FIRST_CALL_SECONDS} seconds. "
                f"{RUN_ELSEWHERE}"
            ) from None
        refusal_file = Path(folder) / REFUSAL_FILE
        if refusal_file.exists():
            raise InputError(json.loads(refusal_file.read_text(encoding="utf-8")))
        if process.returncode:
            reason = process.stderr.strip().rpartition("\n")[2]
            if not reason:
                reason = f"it ended with status {process.returncode}"
            raise InputError(
                f"{name}: the task cannot be run here ({one_line(reason)}). {RUN_ELSEWHERE}"
            )
        yield folder


def named_for(text: str, model: str) -> str:
    """The text of a task for a model, with the model's name where the task names it.

    >>> named_for(f"You are mockllm/{SUBJECT}, {SUBJECT} for short.", "openai/gpt-5")
    'You are openai/gpt-5, gpt-5 for short.'
    """
    return text.replace(f"mockllm/{SUBJECT}", model).replace(SUBJECT, model.partition("/")[2])


def build(name: str, args: Mapping[str, Any] | None = None) -> Task:
    """The one task of this name, with these arguments; raises the errors of `first_calls`.

    A task of the suite may be named without `selfprobe/`.
    """
    from selfprobe.errors.inspect_private import load_tasks

    source, separator, task_name = name.partition("@")
    is_file = source.endswith(".py")
    loaded_name = _relative(locate(source)) + separator + task_name if is_file else name
    try:
        tasks = load_tasks([loaded_name], dict(args or {}))
    except BUILD_ERRORS as error:
        if is_file and isinstance(error, InputError) and source in str(error):
            raise
        raise InputError(
            f"{name}: the task cannot be built here ({type(error).__name__}: {one_line(error)}); "
            f"its data may need a network, a login or a package. {RUN_ELSEWHERE}"
        ) from error
    if not tasks:
        registered_tasks = registry_find(lambda info: info.type == "task")
        task_names = [registry_info(registered).name for registered in registered_tasks]
        bare_name = INSPECT_NAME_BY_TASK.get(name, name)
        full_name = f"selfprobe/{bare_name}"
        if full_name in task_names:
            return build(full_name, args)
        bare_names = [full.removeprefix("selfprobe/") for full in task_names]
        raise InputError(
            f"no task {name!r}; expected a registered name as package/task (is the package "
            f"installed? inspect_evals comes with {install_command('inspect_evals')}) or a file"
            + nearest_name_hint(name, [*task_names, *bare_names])
        )
    if len(tasks) > 1:
        names_in_file = ", ".join(task.name for task in tasks)
        raise InputError(
            f"{name} holds {len(tasks)} tasks ({names_in_file}); pick one: {source}@name"
        )
    return tasks[0]


def _relative(path: str) -> str:
    """Inspect's loader globs, which absolute paths break on Python 3.11."""
    return os.path.relpath(path, Path.cwd())


async def _stop(*arguments: Any) -> Any:
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
        if role in ROLES_OF_EVALUATED_MODEL:
            return default
        role_model = copy(self.model)
        role_model._set_role(role)
        return role_model


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
    setup_solvers: list[Solver] = []
    if isinstance(task.setup, Sequence):
        setup_solvers = list(task.setup)
    elif task.setup:
        setup_solvers = [task.setup]
    settings: dict[str, Any] = {
        "model": model,
        "model_roles": {},
        "sandbox": None,
        "scorer": None,
        "epochs": 1,
    }
    task = task_with(task, setup=[_name_roles(model), *setup_solvers], **settings)
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
        (Path(folder) / REFUSAL_FILE).write_text(json.dumps(str(error)), encoding="utf-8")


if __name__ == "__main__":
    _main(*sys.argv[1:])
