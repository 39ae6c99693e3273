"""Every study's Yes is at most 5 % under each null that can occur in it, and planted truths are
found.
"""

import sys
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

FOLDER = Path(__file__).parent
if str(FOLDER) not in sys.path:
    sys.path.insert(0, str(FOLDER))  # before bench, which has files of the same names
bank: Any = import_module("lines")

STUDIES = sorted(
    path.stem for path in FOLDER.glob("*.py") if path.stem not in ("lines", "test_bank")
)
CASES = [
    pytest.param(study, name, id=f"{study}: {name}")
    for study in STUDIES
    for name in import_module(study).LINES
]
FEW_DRAWS = 2
MANY_DRAWS = 24
DRAWS_OF_A_SUSPECT = 200
"""Fresh draws of a null that `MANY_DRAWS` called Yes too often: of 400 lines some are, by chance
alone.
"""


def line_of(study: str, name: str) -> Any:
    return import_module(study).LINES[name]


@pytest.mark.parametrize(("study", "name"), CASES)
def test_few_draws_of_a_null_are_hardly_ever_called_yes(study: str, name: str) -> None:
    """Two of 2 would happen once in 400 lines at 5 %; `bench/claims.py` draws 400."""
    line = line_of(study, name)
    rate = bank.yes_rate(line, FEW_DRAWS)
    if line.is_true:
        assert rate.high >= line.least_power, str(rate)
    else:
        assert rate.count <= 1, str(rate)


@pytest.mark.slow(20)
@pytest.mark.parametrize(("study", "name"), CASES)
def test_a_null_is_called_yes_in_at_most_5_percent_of_draws_and_a_truth_is_found(
    study: str, name: str
) -> None:
    line = line_of(study, name)
    if line.is_true:
        rate = bank.yes_rate(line, MANY_DRAWS)
        assert rate.high >= line.least_power, str(rate)
    else:
        rate = bank.yes_rate(line, MANY_DRAWS)
        if rate.low > bank.LARGEST_RATE:
            rate = bank.yes_rate(line, DRAWS_OF_A_SUSPECT, first_seed=MANY_DRAWS)
        assert rate.low <= bank.LARGEST_RATE, str(rate)
