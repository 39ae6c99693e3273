"""Errors in the user's input are one line each."""

import pytest

from selfprobe.errors import InputError, RunError, one_line


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (ValueError("a\n  b"), "a b"),
        (ValueError(), "ValueError"),
        (InputError("planted/[b]: no"), "planted/[b]: no"),
        (RunError("[bold]x[/bold]"), "[bold]x[/bold]"),
        (ValueError("\x1b[31mred"), "\N{REPLACEMENT CHARACTER}[31mred"),
        (ValueError("x" * 400), "x" * 299 + "…"),
    ],
)
def test_an_error_is_one_line_that_a_terminal_can_show(error: Exception, said: str) -> None:
    assert one_line(error) == said
