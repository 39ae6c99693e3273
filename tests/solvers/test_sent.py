"""What the calls of a run were really sent with, as tables show it."""

from types import SimpleNamespace
from typing import Any

from selfprobe.solvers.sent import applied_in


def test_one_way_of_sending_is_told_once_whatever_the_order_of_its_calls() -> None:
    """Calls of a sample end in any order, so "A; B" and "B; A" are one way."""
    seen: list[Any] = [SimpleNamespace(metadata={"applied": {"target": way}}) for way in ("A; B", "B; A", "A; B")]
    assert applied_in(seen) == {"target": "A; B"}
    seen.append(SimpleNamespace(metadata={"applied": {"target": "A"}}))
    assert applied_in(seen) == {"target": "A; B (3 samples); A (1 sample)"}
