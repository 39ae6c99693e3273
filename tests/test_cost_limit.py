"""--cost-limit: a command stops when its calls have cost so much."""

import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from selfprobe.cli import main
from selfprobe.providers.planted import PlantedAPI
from selfprobe.text.busy import Calls

PRICES = "planted/limited: {input: 10.0, output: 10.0, input_cache_write: 0, input_cache_read: 0}\n"


ANSWER, CALLS = PlantedAPI.generate, [0]


async def counted(self: PlantedAPI, *given: Any, **named: Any) -> Any:
    """Inspect keeps models from run to run, so this is one function for all tests, and the model is
    this file's.
    """
    CALLS[0] += 1
    return await ANSWER(self, *given, **named)


def test_the_call_that_reaches_the_limit_interrupts_and_no_later_one_does(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    raised: list[int] = []
    monkeypatch.setattr(signal, "raise_signal", raised.append)
    calls = Calls(dollar_limit=0.5)
    for _ in range(4):
        calls.note("a", 10, 0.2)
    assert raised == [signal.SIGINT]
    assert (calls.answered, calls.is_over) == (4, True)
    free = Calls()
    free.note("a", 10, 100.0)
    assert not free.is_over


@pytest.mark.parametrize(
    ("more", "said"),
    [
        (["--engine", "ray"], "--cost-limit counts in one process: leave --engine ray out"),
        (
            ["--prices", "p.yaml", "--models", "openai/gpt-4o-mini"],
            "--cost-limit needs the price of openai/gpt-4o-mini in --prices",
        ),
        (["--models", "openai/x"], "--cost-limit needs the price of openai/x in --prices"),
    ],
)
def test_a_limit_that_could_not_hold_is_refused(
    more: list[str], said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("p.yaml").write_text(PRICES)
    call = [
        "awareness",
        "run",
        "--methods",
        "binary",
        "--limit",
        "4",
        "--cost-limit",
        "1",
        "--dry-run",
        *more,
    ]
    done = CliRunner().invoke(
        main, call if "--models" in more else [*call, "--models", "planted/limited"]
    )
    assert done.exit_code == 2 and said in done.output, done.output


@pytest.fixture(params=[signal.default_int_handler, signal.SIG_IGN], ids=["shell", "background"])
def interrupts(request: pytest.FixtureRequest) -> Iterator[None]:
    """What a shell does with Ctrl-C: a process in the background of a script ignores it."""
    before = signal.signal(signal.SIGINT, request.param)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.slow(6)
@pytest.mark.usefixtures("interrupts")
def test_a_run_stops_at_its_limit_and_the_same_command_asks_what_has_no_reply_yet(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    CALLS[0] = 0
    monkeypatch.setattr(PlantedAPI, "generate", counted)
    monkeypatch.chdir(tmp_path)
    Path("p.yaml").write_text(PRICES)
    call = [
        "awareness",
        "run",
        "--models",
        "planted/limited",
        "--methods",
        "binary",
        "--limit",
        "40",
        "--prices",
        "p.yaml",
    ]
    stopped = CliRunner().invoke(main, [*call, "--yes", "--cost-limit", "0.001"])
    assert stopped.exit_code == 130 and "Stopped at --cost-limit, $0." in stopped.output, (
        stopped.output
    )
    assert 0 < CALLS[0] < 40 * 6, "a reply and five questions each"
    assert CliRunner().invoke(main, [*call, "--yes", "--cost-limit", "100"]).exit_code == 0
    assert CALLS[0] == 40 * 6
