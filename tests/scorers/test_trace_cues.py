import pytest

from selfprobe.scorers.awareness_cues import UNREADABLE_REASONING, full_trace
from selfprobe.solvers.record import Reply


def act(**fields: str | None) -> Reply:
    return Reply(text="Four.", model="m", stop_reason="stop", **fields)  # type: ignore[arg-type]


@pytest.mark.parametrize("kind", ["none", "summary", "redacted"])
def test_only_the_trace_itself_is_read(kind: str) -> None:
    assert full_trace(act(reasoning="They may be testing me.", reasoning_kind=kind)) is None
    assert UNREADABLE_REASONING[kind] in ("no_reasoning", "reasoning_summary", "reasoning_redacted")


def test_a_full_trace_is_read_even_where_the_reply_is_missing() -> None:
    assert full_trace(act(reasoning="Hm.", reasoning_kind="full", problem="truncated")) == "Hm."
    assert full_trace(act(reasoning="  ", reasoning_kind="full")) is None


def test_a_trace_of_a_damaged_reply_is_not_read() -> None:
    assert full_trace(act(reasoning="Hm.", reasoning_kind="full", problem="half_character")) is None
