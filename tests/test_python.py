"""selfprobe from Python: every study by its name, texts for lists, our own lines, decisions."""

import json
from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest

import selfprobe
from selfprobe.errors import InputError, NoLogs
from selfprobe.page import Page
from selfprobe.studies import every
from selfprobe.study import STUDIES_FILE

LOGS = Path(__file__).parents[1] / "examples" / "logs"


def test_every_study_of_a_command_is_imported_from_the_package() -> None:
    every()
    places = {about["place"] for about in json.loads(STUDIES_FILE.read_text("utf-8")).values()}
    assert places == {
        f"selfprobe.studies.{module}:{name}" for name, module in selfprobe.STUDY_MODULES.items()
    }
    for name in selfprobe.STUDY_MODULES:
        assert getattr(selfprobe, name).__name__ == name


def test_a_name_that_the_package_lacks_is_answered_with_those_that_it_has() -> None:
    with pytest.raises(AttributeError, match="no attribute 'Matix'; it has Awareness, Check"):
        _ = selfprobe.Matix


def test_a_text_is_a_list_of_one_or_has_commas() -> None:
    study = selfprobe.Matrix(models="planted/a, planted/b", tasks="kth_word")
    assert [model.name for model in study.models] == ["planted/a", "planted/b"]
    assert study.tasks == ("kth_word",)
    awareness = selfprobe.Awareness(models="planted/a", methods="binary,probability")
    assert awareness.methods == ("binary", "probability")


@pytest.mark.parametrize("name", list(selfprobe.STUDY_MODULES))
def test_help_of_a_study_says_what_each_argument_is_and_what_comes_back(name: str) -> None:
    study = getattr(selfprobe, name)
    text = study.__doc__
    assert text.startswith(study.command_help) and f"selfprobe.{name}(" in text
    arguments = text.partition("Args:\n")[2]
    for field_name, info in study.model_fields.items():
        assert f"    {field_name}:" in arguments or info.exclude
    assert "Example:" not in study.command_help, "the command's help is its own docstring"


def test_what_the_help_of_a_study_calls_is_there() -> None:
    study = selfprobe.Matrix(models="planted/ada,planted/bo", tasks="kth_word", limit=2)
    assert study.plan().costs
    page_parts = {"answer", "claims", "frames"}
    assert page_parts <= set(dir(Page)) | {field.name for field in fields(Page)}


@pytest.mark.parametrize(
    ("fields", "line"),
    [
        ({}, "a matrix compares two models or more, got none: say --models a,b"),
        ({"model": ["planted/a"]}, "Matrix has no field model; did you mean models?"),
        ({"models": 3}, "Matrix(models=…): Input should be names, or mappings with a model, got 3"),
        (
            {"models": "planted/a,planted/b", "limit": 0},
            "Matrix(limit=…): Input should be greater than or equal to 1, got 0",
        ),
        (
            {"models": "planted/a,planted/a"},
            "model planted/a is listed twice; list each model once",
        ),
    ],
)
def test_a_wrong_value_is_one_line_of_ours(fields: dict[str, Any], line: str) -> None:
    with pytest.raises(InputError) as refused:
        selfprobe.Matrix(**fields)
    assert str(refused.value) == line


def test_a_field_that_is_missing_is_named() -> None:
    with pytest.raises(InputError, match="Turns needs dataset: give it as dataset=…"):
        selfprobe.Turns(models="planted/a")


def test_decisions_are_a_table_of_all_that_logs_hold() -> None:
    table = selfprobe.decisions(LOGS)
    assert len(table) > 800 and "kth_word" in set(table.task)
    assert {"item", "observer", "target", "key", "value", "unscored"} <= set(table.columns)
    assert table.equals(selfprobe.decisions([str(LOGS)]))
    assert table.attrs["aside"] == {}
    with pytest.raises(NoLogs, match="no decision of selfprobe in"):
        selfprobe.decisions(Path(__file__).parent / "bank")
