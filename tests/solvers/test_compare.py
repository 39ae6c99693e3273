import anyio
import pytest
from inspect_ai.model import ModelName
from inspect_ai.solver import TaskState

from selfprobe.solvers.compare import Alike, Likeness, compare, record_similarity
from selfprobe.solvers.record import Record, Reply


def likeness_of(texts: list[tuple[str, str | None]], embedder: str) -> Likeness:
    state = TaskState(
        model=ModelName("mockllm/model"), sample_id="s", epoch=1, input="", messages=[]
    )
    state.store_as(Record).acts = {
        str(i): Reply(text=text, model="m", stop_reason="stop", problem=problem)
        for i, (text, problem) in enumerate(texts)
    }

    async def run() -> TaskState:
        return await compare(embedder, lambda _: {"sea": "green sea", "ball": "red ball"})(
            state, None
        )  # type: ignore[arg-type]

    return anyio.run(run).store_as(Likeness)


def test_the_closest_two_replies_are_marked(embedder: str) -> None:
    found = likeness_of([("red ball", None), ("green sea", None), ("red cube", None)], embedder)
    assert found.closest == pytest.approx(0.5)
    assert found.embedder == embedder
    assert found.nearest == {"0": "ball", "1": "sea", "2": "ball"}, (
        "what an observer without a model would say"
    )


def test_equal_replies_have_likeness_one(embedder: str) -> None:
    assert likeness_of([("red ball", None), ("red ball", None)], embedder).closest == pytest.approx(
        1
    )


@pytest.mark.parametrize(
    "texts", [[], [("a", None)], [("a", None), ("a", "refused"), ("", "empty")]]
)
def test_fewer_than_two_good_replies_have_no_likeness(
    texts: list[tuple[str, str | None]], embedder: str
) -> None:
    assert likeness_of(texts, embedder).closest is None


def test_record_similarity_compares_good_answers_with_the_last_text(embedder: str) -> None:
    state = TaskState(
        model=ModelName("mockllm/model"),
        sample_id="s",
        epoch=1,
        input="",
        messages=[],
        metadata={"last": "red ball"},
    )
    state.store_as(Record).answers = {
        "same": Reply(text="red ball", model="m", stop_reason="stop"),
        "refused": Reply(text="red ball", model="m", stop_reason="stop", problem="refused"),
    }

    async def run() -> TaskState:
        return await record_similarity(embedder)(state, None)  # type: ignore[arg-type]

    alike = anyio.run(run).store_as(Alike)
    assert alike.embedder == embedder and alike.similarity == {"same": pytest.approx(1)}
