"""A matrix as a spec of Inspect Flow, in two runs: each model on itself, then each on the others.

    flow run examples/flow/matrix.py --log-dir logs/flow/diagonal
    flow run examples/flow/matrix.py --log-dir logs/flow/cells --arg replies=logs/flow/diagonal
    selfprobe report logs/flow

The second run is for tasks in which the observer reads the target's text, such as heads_up. Cells
of the others need no call: the report joins the models' runs on themselves.
"""

from itertools import permutations

from inspect_flow import FlowSpec, FlowTask, tasks_matrix

MODELS = ["planted/ada?access=.9", "planted/bo?access=.2", "planted/cy?access=.8"]
JOINED, READ = ["selfprobe/kth_word"], ["selfprobe/heads_up"]
"""Tasks whose other cells are joined, and those in which the target's text is read."""


def matrix(replies: str | None = None) -> FlowSpec:
    """The runs on themselves, or with the folder of their logs the other cells."""
    if replies is None:
        return FlowSpec(tasks=tasks_matrix(task=[*JOINED, *READ], model=MODELS))
    return FlowSpec(
        tasks=[
            FlowTask(
                name=task,
                model=observer,
                model_roles={"target": target},
                args={"target_log": replies},
            )
            for task in READ
            for observer, target in permutations(MODELS, 2)
        ]
    )
