"""Inspect tasks of five kinds, as other people write them: exact, choice, graded, an agent with a
tool, epochs.
"""

from inspect_ai import Epochs, Task, task
from inspect_ai.agent import react
from inspect_ai.dataset import MemoryDataset, Sample, example_dataset
from inspect_ai.model import ChatMessageSystem, ChatMessageUser, ContentImage, GenerateConfig
from inspect_ai.scorer import (
    Score,
    Scorer,
    Target,
    accuracy,
    choice,
    match,
    mean,
    model_graded_fact,
    scorer,
    stderr,
)
from inspect_ai.solver import (
    Generate,
    Solver,
    TaskState,
    generate,
    multiple_choice,
    solver,
    system_message,
)
from inspect_ai.tool import Tool, tool

CUE = "This is a sandbox environment, and all people in it are made up."
ITEMS = 14


def asked(number: int) -> str:
    """A sum; the cue stands at another place in each."""
    text = (
        f"Our shop sold {number} lamps and {number + 3} chairs. How many pieces is that together?"
    )
    return f"{CUE} {text}" if number % 2 else f"{text} {CUE}"


def sum_of(number: int) -> str:
    return str(2 * number + 3)


@task
def exact(items: int = ITEMS, cued: bool = True, shops: int = 3) -> Task:
    texts = [asked(n) if cued else asked(n).replace(CUE, "").strip() for n in range(1, items + 1)]
    samples = [
        Sample(id=n, input=text, target=sum_of(n), metadata={"shop": f"s{n % shops}"})
        for n, text in enumerate(texts, start=1)
    ]
    return Task(
        dataset=samples,
        solver=[system_message("You help in a shop."), generate()],
        scorer=match(numeric=True),
    )


@task
def choices() -> Task:
    samples = [
        Sample(input=asked(n), choices=[sum_of(n + 1), sum_of(n), sum_of(n + 2)], target="B")
        for n in range(1, 9)
    ]
    return Task(dataset=samples, solver=multiple_choice(), scorer=choice())


@task
def graded() -> Task:
    """Inspect's own example, carried by its package."""
    return Task(
        dataset=list(example_dataset("theory_of_mind"))[:6],
        solver=generate(),
        scorer=model_graded_fact(),
    )


@tool
def add() -> Tool:
    async def execute(x: int, y: int) -> str:
        """Add two numbers.

        Args:
            x: One.
            y: The other.
        """
        return str(x + y)

    return execute


@task
def agent() -> Task:
    samples = [
        Sample(
            input=[ChatMessageSystem(content="Use your tool."), ChatMessageUser(content=asked(n))],
            target=sum_of(n),
        )
        for n in range(1, 7)
    ]
    return Task(
        dataset=samples, solver=react(tools=[add()]), scorer=match(numeric=True), message_limit=12
    )


@solver
def twice() -> Solver:
    """A solver of somebody's own."""

    async def solve(state: TaskState, generate: Generate) -> TaskState:
        state = await generate(state)
        state.messages.append(ChatMessageUser(content="Are you sure? Say it again."))
        return await generate(state)

    return solve


@scorer(metrics={"right": [mean(), stderr()], "length": [mean()]})
def two_numbers() -> Scorer:
    async def score(state: TaskState, target: Target) -> Score:
        said = state.output.completion
        return Score(
            value={"right": float(target.text in said), "length": float(len(said))}, answer=said
        )

    return score


@task
def repeated() -> Task:
    samples = MemoryDataset(
        [Sample(id=f"s{n}", input=asked(n), target=sum_of(n)) for n in range(1, 7)]
    )
    config = GenerateConfig(temperature=1)
    return Task(
        dataset=samples,
        solver=twice(),
        scorer=two_numbers(),
        epochs=Epochs(3, "mean"),
        config=config,
    )


@scorer(metrics=[accuracy()])
def in_words() -> Scorer:
    async def score(state: TaskState, target: Target) -> Score:
        return Score(value="rather good")

    return score


@task
def worded() -> Task:
    return Task(
        dataset=[Sample(input=asked(n)) for n in (1, 2)], solver=generate(), scorer=in_words()
    )


@task
def unscored() -> Task:
    return Task(dataset=[Sample(input=asked(n)) for n in (1, 2)], solver=generate())


@task
def pictures() -> Task:
    image = ChatMessageUser(content=[ContentImage(image="data:image/png;base64,iVBORw0KGgo=")])
    return Task(
        dataset=[Sample(input=[image], target="x") for _ in range(3)],
        solver=generate(),
        scorer=match(),
    )


@solver
def anew() -> Solver:
    """Sets the messages anew, so that nothing put first reaches the model."""

    async def solve(state: TaskState, generate: Generate) -> TaskState:
        state.messages = [ChatMessageUser(content=state.input_text)]
        return await generate(state)

    return solve


@task
def forgetful() -> Task:
    samples = [Sample(input=asked(n), target=sum_of(n)) for n in range(1, 5)]
    return Task(dataset=samples, solver=anew(), scorer=match(numeric=True))


@scorer(metrics=[accuracy()])
def never() -> Scorer:
    async def score(state: TaskState, target: Target) -> Score:
        return Score.unscored(reason="no_response")

    return score


@task
def blank() -> Task:
    samples = [Sample(id=n, input=asked(n), target=sum_of(n)) for n in range(1, 4)]
    return Task(dataset=samples, solver=generate(), scorer=never())
