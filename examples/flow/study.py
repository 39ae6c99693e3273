"""A study of evaluation awareness as a spec of Inspect Flow, in two runs: replies with the first
method, then the rest.

    flow run examples/flow/study.py --log-dir logs/study/replies
    flow run examples/flow/study.py --log-dir logs/study/methods --arg replies=logs/study/replies
    selfprobe report logs/study

The second run asks about the replies of the first one, so that every method is about the same
conversations.
"""

from inspect_flow import FlowSpec, FlowTask

MODELS = ["planted/ada?awareness=.9", "planted/bo?awareness=.2"]
JUDGE = "planted/judge"
FIRST = "selfprobe/awareness_binary"
REST = ["selfprobe/awareness_probability", "selfprobe/awareness_user_motivation"]


def study(replies: str | None = None) -> FlowSpec:
    """The first method, or with the folder of its logs the others."""
    args = {} if replies is None else {"target_log": replies}
    return FlowSpec(
        tasks=[
            FlowTask(name=task, model=model, model_roles={"grader": JUDGE}, args=args)
            for task in ([FIRST] if replies is None else REST)
            for model in MODELS
        ]
    )
