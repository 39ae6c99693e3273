"""The own-frame arm: the same observer and item, asked about "you", about "another AI assistant", or about both."""

from typing import Literal, get_args

from inspect_ai.model import get_model
from inspect_ai.solver import TaskState

from selfprobe.arguments import one_of
from selfprobe.errors import InputError
from selfprobe.solvers.ask import PromptFunction, Prompts, in_a_run, sole

Frame = Literal["self", "other", "both"]

OTHER = "other_"
"""Before the name of an answer about another assistant, and before the key of its decision."""


def framed(frame: Frame, own: PromptFunction, other: PromptFunction) -> PromptFunction:
    """The prompts of a frame, by name; those about another assistant have `OTHER` before theirs.

    Args:
        frame: Whom the observer is asked about.
        own: The prompts about itself.
        other: The same about another assistant, by the same names.

    Raises:
        InputError: It is no frame; or while the task is built in a run with another target: both answers are held
            against what the observer does itself.
    """
    one_of("frame", frame, get_args(Frame))
    if frame != "self" and in_a_run() and (target := str(sole("target"))) != str(get_model()):
        raise InputError(
            f"frame={frame} holds both answers against what the observer does itself; the target here is {target}: "
            "leave out the role target"
        )

    def prompts(state: TaskState) -> Prompts:
        asked = {} if frame == "other" else dict(own(state))
        return asked if frame == "self" else asked | {OTHER + name: prompt for name, prompt in other(state).items()}

    return prompts
