"""Acts of the target, and answers of the observer about it: sends the prompts and records the
replies.
"""

from inspect_ai.model import GenerateConfig
from inspect_ai.solver import Generate, Solver, TaskState, solver

from selfprobe.solvers.ask import (
    NO_SETTINGS,
    PromptFunction,
    Settings,
    Tools,
    ask,
    no_tools,
    require_model,
    settings_for,
    show_in_log,
)
from selfprobe.solvers.negotiate import merged_settings
from selfprobe.solvers.record import Record
from selfprobe.solvers.replay import Replay
from selfprobe.solvers.reply_notes import note_replies


@solver
def act(
    prompts: PromptFunction,
    *,
    config: Settings,
    needs: GenerateConfig = NO_SETTINGS,
    may_be_cut: bool = False,
    replay: Replay | None = None,
    tools: Tools = no_tools,
) -> Solver:
    """Record the target's replies under `Record.acts`.

    The target is the role `target`; without one it is the evaluated model itself
    (self-introspection).

    Args:
        prompts: Function from the state to the prompts by name. An empty dict asks nothing.
        config: Settings that the method would like; settings of the command line never reach a
            role.
        needs: Settings that the method cannot do without, or that the user chose.
        may_be_cut: Whether a reply that ends at the token limit is good (when only its first words
            are read).
        replay: An earlier log of the same task, to take its acts instead of asking.
        tools: Function from the state to the tools that are offered.

    Raises:
        InputError: While the task is built, in a run without a model.
    """
    if replay is None:
        require_model("target")

    async def solve(state: TaskState, generate: Generate) -> TaskState:
        sample_prompts = prompts(state)
        wishes = settings_for(state, config)
        if replay is not None:
            replies = replay(state, sample_prompts)
        else:
            replies = await ask(
                sample_prompts,
                role="target",
                config=wishes,
                needs=needs,
                may_be_cut=may_be_cut,
                tools=tools(state),
            )
        state.store_as(Record).acts.update(replies)
        note_replies(state, "target", replies, merged_settings(wishes, needs))
        show_in_log(state, sample_prompts, replies)
        return state

    return solve


@solver
def answer(
    prompts: PromptFunction,
    *,
    config: Settings,
    needs: GenerateConfig = NO_SETTINGS,
    replay: Replay | None = None,
    tools: Tools = no_tools,
) -> Solver:
    """Record the observer's replies under `Record.answers`. The observer is Inspect's `--model`.

    Args:
        prompts: Function from the state to the prompts by name; may read the Record, since acts
            come first.
        config: Settings that the method would like.
        needs: Settings that the method cannot do without, or that the user chose.
        replay: An earlier log of the same task, to take its answers instead of asking.
        tools: Function from the state to the tools that are offered.

    Raises:
        InputError: While the task is built, in a run without a model.
    """
    if replay is None:
        require_model()

    async def solve(state: TaskState, generate: Generate) -> TaskState:
        sample_prompts = prompts(state)
        wishes = settings_for(state, config)
        if replay is not None:
            replies = replay(state, sample_prompts)
        else:
            replies = await ask(
                sample_prompts,
                role=None,
                config=wishes,
                needs=needs,
                may_be_cut=False,
                tools=tools(state),
            )
        state.store_as(Record).answers.update(replies)
        note_replies(state, "observer", replies, merged_settings(wishes, needs))
        show_in_log(state, sample_prompts, replies)
        return state

    return solve
