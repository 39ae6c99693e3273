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
FIRST_METHOD = "selfprobe/awareness_binary"
FURTHER_METHODS = ["selfprobe/awareness_probability", "selfprobe/awareness_user_motivation"]


def study(replies: str | None = None) -> FlowSpec:
    """The first method, or with the folder of its logs the others."""
    methods = [FIRST_METHOD]
    args = {}
    if replies is not None:
        methods = FURTHER_METHODS
        args = {"target_log": replies}
    return FlowSpec(
        tasks=[
            FlowTask(name=method, model=model, model_roles={"grader": JUDGE}, args=args)
            for method in methods
            for model in MODELS
        ]
    )
