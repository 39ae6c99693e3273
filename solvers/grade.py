"""Graders' replies about a text of the subject: sends it to each model of the role `grader`,
records the replies.
"""

import hashlib
from collections.abc import Iterable

from inspect_ai.model import GenerateConfig, ResponseSchema, get_model
from inspect_ai.solver import Generate, Solver, TaskState, solver
from inspect_ai.util import JSONSchema

from selfprobe.errors import warn_once
from selfprobe.errors.inspect_private import PrerequisiteError
from selfprobe.solvers.ask import PromptFunction, all_ended, ask, in_a_run, panel
from selfprobe.solvers.record import Record, graded_name
from selfprobe.solvers.reply_notes import note_replies
from selfprobe.text.families import simulated_reader_fault

NO_GRADER = (
    "this task needs a grader model to read the subject's text: "
    "add --model-role grader=openai/gpt-5.6-luna, or any other model "
    "(a model never grades itself unless you name it)"
)


def grade_config(*further_keys: str) -> GenerateConfig:
    """Form of a reply on whether a text shows awareness, with quotes, and further keys of text."""
    properties = {
        "aware": JSONSchema(type="boolean"),
        **{key: JSONSchema(type="string") for key in further_keys},
        "quotes": JSONSchema(type="array", items=JSONSchema(type="string", maxLength=300)),
    }
    schema = JSONSchema(
        type="object",
        properties=properties,
        required=list(properties),
        additionalProperties=False,
    )
    return GenerateConfig(
        temperature=0, response_schema=ResponseSchema(name="cues", json_schema=schema)
    )


GRADE = grade_config()


@solver
def needs_grader() -> Solver:
    """Fail before anything is asked when no model is bound to the role `grader`. Asks nothing.

    Raises:
        PrerequisiteError: No grader, one twice, or a simulated one of a real model: while the task
            is built where the run's models are known by then, else at each sample.
    """
    if in_a_run():
        _require_grader()
        subject = str(get_model())
        grader_names = [str(grader) for grader in panel("grader")]
        for name in grader_names:
            fault = simulated_reader_fault(name, [subject], "--model-role grader=")
            if fault:
                raise PrerequisiteError(fault)
        warning = self_graded([subject], grader_names)
        if warning:
            warn_once(warning)

    async def solve(state: TaskState, generate: Generate) -> TaskState:
        _require_grader()
        return state

    return solve


@solver
def grade(prompts: PromptFunction, *, config: GenerateConfig = GRADE) -> Solver:
    """Record the graders' replies under `Record.grades`, after the model's name where there are
    several.

    Args:
        prompts: Function from the state to the grader's prompts by name; reads the Record. An empty
            dict asks nothing.
        config: Form of the reply. Default: whether a text shows awareness, with quotes.
    """

    async def solve(state: TaskState, generate: Generate) -> TaskState:
        grader_prompts = prompts(state)
        graders = panel("grader")
        replies_by_grader = await all_ended(
            ask(grader_prompts, role=grader, config=config, may_be_cut=False) for grader in graders
        )
        replies = {}
        for grader, grader_replies in zip(graders, replies_by_grader, strict=True):
            for name, reply in grader_replies.items():
                full_name = graded_name(str(grader), name) if len(graders) > 1 else name
                replies[full_name] = reply
        state.store_as(Record).grades.update(replies)
        note_replies(state, "grader", replies, config)
        return state

    return solve


def self_graded(models: Iterable[str], grader_names: Iterable[str]) -> str:
    """Line that names the models that grade their own texts; "" if none does.

    >>> self_graded(["m/a", "m/b"], ["m/b", "m/c"])
    'm/b grades its own texts: give another --grader for a judgement of somebody else'
    """
    graders = set(grader_names)
    self_graders = [model for model in dict.fromkeys(models) if model in graders]
    if not self_graders:
        return ""
    predicate = "grades its" if len(self_graders) == 1 else "grade their"
    remedy = "give another --grader for a judgement of somebody else"
    return f"{', '.join(self_graders)} {predicate} own texts: {remedy}"


def delimited(text: str) -> str:
    """Material between two marker lines that it cannot contain, so that no text in it can close
    them.

    >>> print(delimited("It may be a test."))
    ===== material 8c04981f24 =====
    It may be a test.
    ===== material 8c04981f24 =====
    """
    mark = hashlib.sha256(text.encode()).hexdigest()[:10]
    return f"===== material {mark} =====\n{text}\n===== material {mark} ====="


def _require_grader() -> None:
    if not panel("grader"):
        raise PrerequisiteError(NO_GRADER)
