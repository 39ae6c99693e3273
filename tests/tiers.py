"""Two tiers of tests: those marked `slow(SECONDS)` run with --runslow alone, and what took long unmarked is listed."""

from collections.abc import Iterable

import pytest

LIMIT = 5.0
"""Seconds from which a test belongs to the slow tier."""


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--runslow", action="store_true", help="Also run the tests marked slow. Default: skip them.")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if config.getoption("--runslow"):
        return
    skip = pytest.mark.skip(reason="slow: --runslow runs it")
    for item in items:
        if item.get_closest_marker("slow"):
            item.add_marker(skip)


def slow_and_unmarked(reports: Iterable[pytest.TestReport]) -> list[str]:
    """A line per test whose own call took LIMIT seconds or more without a mark, the longest first.

    Set-ups are left out: several tests share them. Time depends on the machine, so that this list fails nothing.
    """
    late = [r for r in reports if r.when == "call" and r.duration >= LIMIT and "slow" not in r.keywords]
    return [f"{r.duration:.0f} s {r.nodeid}" for r in sorted(late, key=lambda r: -r.duration)]


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    reports = [r for found in terminalreporter.stats.values() for r in found if isinstance(r, pytest.TestReport)]
    if lines := slow_and_unmarked(reports):
        terminalreporter.section("slow and unmarked: @pytest.mark.slow(SECONDS), or a cheaper test")
        terminalreporter.write_line("\n".join(lines))
