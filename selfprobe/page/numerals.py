"""Formats of numbers: one form for a quantity, wherever it stands."""

import math
from typing import Protocol


class Interval(Protocol):
    """An `Estimate`, or a table's row with these columns; NaN where undefined."""

    @property
    def value(self) -> float: ...
    @property
    def low(self) -> float: ...
    @property
    def high(self) -> float: ...


MINUS = "\N{MINUS SIGN}"
"""The one minus sign of pages and lines; a hyphen would break."""


def fixed(x: float, digits: int = 2, *, signed: bool = False) -> str:
    """A number with fixed decimals, a minus sign where it is below 0, and no sign where it is
    rounded to 0.

    >>> fixed(-0.271), fixed(-0.001), fixed(0.271, signed=True)
    ('−0.27', '0.00', '+0.27')
    """
    text = f"{abs(x):.{digits}f}"
    if float(text) == 0:
        return text
    if x < 0:
        return f"{MINUS}{text}"
    return f"+{text}" if signed else text


def interval_text(estimate: Interval, digits: int = 2, *, sign: bool = False) -> str:
    """`0.61 [0.55, 0.67]`; without an interval or a value the reason, `0.61 (one item)` or `– (no
    data)`.
    """
    reason = getattr(estimate, "reason", "")
    if not isinstance(reason, str):  # a table has NaN for none
        reason = ""
    if math.isnan(estimate.value):
        return f"– ({reason})" if reason else "–"
    value_text = fixed(estimate.value, digits, signed=sign)
    if math.isnan(estimate.low):
        return f"{value_text} ({reason or 'no interval'})"
    low_text = fixed(estimate.low, digits, signed=sign)
    high_text = fixed(estimate.high, digits, signed=sign)
    return f"{value_text} [{low_text}, {high_text}]"


def signed_interval(estimate: Interval) -> str:
    """`interval_text` of a difference: `+0.06 [+0.01, +0.11]`."""
    return interval_text(estimate, sign=True)


def number(x: float | None, digits: int = 2) -> str:
    """A number, or a dash where there is none."""
    return "–" if x is None or math.isnan(x) else fixed(x, digits)


def signed_number(x: float | None, digits: int = 2) -> str:
    """A difference with its sign, or a dash."""
    return "–" if x is None or math.isnan(x) else fixed(x, digits, signed=True)


def percent(share: float | None) -> str:
    """A share in percent, with two digits.

    >>> percent(0.8812), percent(0.0214), percent(0.004), percent(1), percent(0), percent(None)
    ('88 %', '2.1 %', '0.4 %', '100 %', '0 %', '–')
    """
    if share is None or math.isnan(share):
        return "–"
    x = 100 * share
    if abs(x) >= 9.95:
        return f"{fixed(x, 0)} %"
    digits = 1 if abs(x) >= 0.95 else 2
    return f"{round(x, digits) + 0:g} %".replace("-", MINUS)


def percent_interval(estimate: Interval) -> str:
    """`88 % [79, 94]`, or a dash."""
    if math.isnan(estimate.low):
        return percent(estimate.value)
    low_text = fixed(100 * estimate.low, 0)
    high_text = fixed(100 * estimate.high, 0)
    return f"{percent(estimate.value)} [{low_text}, {high_text}]"


def points(estimate: Interval) -> str:
    """`+12 points [+3, +21]`: a difference of shares in points of 100; without an interval the
    reason.
    """
    if math.isnan(estimate.value):
        return "an unknown difference"
    reason = getattr(estimate, "reason", "") or "no interval"
    ends = f"[{_points(estimate.low)}, {_points(estimate.high)}]"
    if math.isnan(estimate.low):
        ends = f"({reason})"
    return f"{_points(estimate.value)} points {ends}"


def _points(x: float) -> str:
    if math.isnan(x):
        return "–"
    return fixed(100 * x, 0 if abs(x) >= 0.0995 else 1, signed=True)


def p_digits(p: float) -> str:
    """A p with two digits; a small one as a bound, never as 0.

    >>> p_digits(0.0314), p_digits(0.1), p_digits(0.00001), p_digits(float("nan"))
    ('0.031', '0.10', '< 0.0001', '–')
    """
    if math.isnan(p):
        return "–"
    if p < 0.0001:
        return "< 0.0001"
    return f"{p:#.2g}" if p < 0.995 else "1.0"


def p_value(p: float) -> str:
    """`p = 0.012`, `p < 0.0001`."""
    text = p_digits(p)
    return f"p {text}" if text.startswith("<") else f"p = {text}"
