"""Sampled answers at temperature 1, where one reply does not show how probable the answers are."""

from collections.abc import Callable

from inspect_ai.model import GenerateConfig
from inspect_ai.solver import Solver, TaskState

from selfprobe.errors.arguments import whole
from selfprobe.solvers.act import answer
from selfprobe.solvers.ask import NO_SETTINGS, PromptFunction, Prompts, together
from selfprobe.solvers.record import Record, Reply
from selfprobe.solvers.replay import Replay


def draw(
    prompts: PromptFunction,
    again: Callable[[Reply], bool],
    *,
    draws: int,
    config: GenerateConfig,
    needs: GenerateConfig = NO_SETTINGS,
    replay: Replay | None = None,
) -> Solver:
    """Record `draws` sampled answers to each prompt whose first answer needs it, as `<name>#1`,
    `<name>#2` …

    Comes after an `answer` with the same prompts. Each draw has its own seed.

    Args:
        prompts: Function from the state to the prompts by name, as for `answer`.
        again: Function: whether the first answer leaves open how probable the answers are (no
            logprobs).
        draws: Number of draws, from 1.
        config: Settings that the method would like; temperature and seed are set here.
        needs: Settings that the user chose.

    Raises:
        InputError: `draws` is no whole number from 1.
    """
    whole(draws=draws)

    def repeat(r: int) -> Solver:
        def open_ones(state: TaskState) -> Prompts:
            first = state.store_as(Record).answers
            return {
                f"{name}#{r}": prompt
                for name, prompt in prompts(state).items()
                if again(first[name])
            }

        def sampled(state: TaskState) -> GenerateConfig:
            return config.merge(GenerateConfig(temperature=1, seed=draws * (state.epoch - 1) + r))

        return answer(open_ones, config=sampled, needs=needs, replay=replay)

    return together(*(repeat(r) for r in range(1, draws + 1)))


def draws_of(record: Record, name: str) -> list[Reply]:
    """Draws recorded for a prompt, in order."""
    return [reply for key, reply in record.answers.items() if key.startswith(f"{name}#")]
