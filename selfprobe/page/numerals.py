"""Formats of numbers: one form for a quantity, wherever it stands."""

import math
import re
from typing import Protocol


class Interval(Protocol):
    """An `Estimate`, or a table's row with these columns; NaN where undefined."""

    @property
    def value(self) -> float: ...
    @property
    def low(self) -> float: ...
    @property
    def high(self) -> float: ...


def shown(estimate: Interval, digits: int = 2, *, sign: bool = False) -> str:
    """`0.61 [0.55, 0.67]`; without an interval or a value the reason, `0.61 (one item)` or `– (no data)`."""
    form = f"{'+' if sign else ''}.{digits}f"
    stated = getattr(estimate, "reason", "")
    reason = stated if isinstance(stated, str) else ""  # a table has NaN for none
    if math.isnan(estimate.value):
        return f"– ({reason})" if reason else "–"
    if math.isnan(estimate.low):
        return f"{estimate.value:{form}} ({reason or 'no interval'})"
    return f"{estimate.value:{form}} [{estimate.low:{form}}, {estimate.high:{form}}]"


def number(x: float | None, digits: int = 2) -> str:
    """A number, or a dash where there is none."""
    return "–" if x is None or math.isnan(x) else f"{x:.{digits}f}"


def signed_number(x: float | None, digits: int = 2) -> str:
    """A difference with its sign, or a dash."""
    return "–" if x is None or math.isnan(x) else f"{x:+.{digits}f}"


def percent(share: float | None) -> str:
    """A share in percent, with two digits.

    >>> percent(0.8812), percent(0.0214), percent(0.004), percent(1), percent(0), percent(None)
    ('88 %', '2.1 %', '0.4 %', '100 %', '0 %', '–')
    """
    if share is None or math.isnan(share):
        return "–"
    x = 100 * share
    return f"{x:.0f} %" if abs(x) >= 9.95 else f"{round(x, 1 if abs(x) >= 0.95 else 2):g} %"


def percents(estimate: Interval) -> str:
    """`88 % [79, 94]`, or a dash."""
    ends = "" if math.isnan(estimate.low) else f" [{100 * estimate.low:.0f}, {100 * estimate.high:.0f}]"
    return percent(estimate.value) + ends


def points(estimate: Interval) -> str:
    """`+12 points [+3, +21]`: a difference of shares in points of 100; without an interval the reason."""
    if math.isnan(estimate.value):
        return "an unknown difference"
    reason = getattr(estimate, "reason", "") or "no interval"
    ends = f"({reason})" if math.isnan(estimate.low) else f"[{_points(estimate.low)}, {_points(estimate.high)}]"
    return f"{_points(estimate.value)} points {ends}"


def _points(x: float) -> str:
    return f"{100 * x:+.0f}" if abs(x) >= 0.0995 else f"{100 * x:+.1f}"


def p_digits(p: float) -> str:
    """A p with two digits; a small one as a bound, never as 0.

    >>> p_digits(0.0314), p_digits(0.1), p_digits(0.00001), p_digits(float("nan"))
    ('0.031', '0.10', '< 0.0001', '–')
    """
    if math.isnan(p):
        return "–"
    return "< 0.0001" if p < 0.0001 else f"{p:#.2g}" if p < 0.995 else "1.0"


def with_short_p(text: str) -> str:
    """A sentence with two digits in each of its p.

    >>> with_short_p("the permutation, p = 0.167, agrees; best: a, p = 3e-05")
    'the permutation, p = 0.17, agrees; best: a, p < 0.0001'
    """
    return re.sub(r"\bp = (\d*\.?\d+(?:e-?\d+)?)", lambda found: p_value(float(found[1])), text)


def p_value(p: float) -> str:
    """`p = 0.012`, `p < 0.0001`."""
    text = p_digits(p)
    return f"p {text}" if text.startswith("<") else f"p = {text}"
