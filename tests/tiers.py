"""Two tiers of tests: those marked `slow(SECONDS)` run with --runslow alone, and what took long
unmarked is listed.
"""

import os
from collections.abc import Generator, Iterable

import pytest

LIMIT = 5.0
"""CPU seconds from which a test belongs to the slow tier."""
SECONDS = "CPU seconds"
"""Property of a report: what the test took, with processes that it waited for. The clock depends on
who else works.
"""


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--runslow", action="store_true", help="Also run the tests marked slow. Default: skip them."
    )


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if config.getoption("--runslow"):
        return
    skip = pytest.mark.skip(reason="slow: --runslow runs it")
    for item in items:
        if item.get_closest_marker("slow"):
            item.add_marker(skip)


def _cpu() -> float:
    return sum(os.times()[:4])


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Generator[None, object, object]:
    before = _cpu()
    try:
        return (yield)
    finally:
        item.user_properties.append((SECONDS, _cpu() - before))


def slow_and_unmarked(reports: Iterable[pytest.TestReport]) -> list[str]:
    """A line per test whose own call took LIMIT or more without a mark, the longest first; it fails
    nothing.

    Set-ups are left out: several tests share them.
    """
    took = {
        r.nodeid: dict(r.user_properties).get(SECONDS, 0)
        for r in reports
        if "slow" not in r.keywords
    }
    late = sorted((name for name in took if took[name] >= LIMIT), key=lambda name: -took[name])
    return [f"{took[name]:.0f} s {name}" for name in late]


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    found = (report for reports in terminalreporter.stats.values() for report in reports)
    reports = [r for r in found if isinstance(r, pytest.TestReport) and r.when == "call"]
    if lines := slow_and_unmarked(reports):
        terminalreporter.section("slow and unmarked: @pytest.mark.slow(SECONDS), or a cheaper test")
        terminalreporter.write_line("\n".join(lines))
