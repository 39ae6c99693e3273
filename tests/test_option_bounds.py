"""What Python takes for a field of a study, its command takes; what Python refuses, it refuses in
one line.

Values lie at and around the bounds of each field of each study, as they would be typed.
"""

import math
from collections.abc import Iterator
from typing import Any, ClassVar, Literal, get_args, get_origin

import click
import pytest
from click.testing import CliRunner
from pydantic import Field, ValidationError
from pydantic.fields import FieldInfo

from selfprobe.studies import every
from selfprobe.study import STUDIES, Study, command, described_study

EDGES = ("ge", "gt", "le", "lt")


class Bounded(Study):
    """How much? A study of this test, with every kind of bound."""

    reads: ClassVar[frozenset[str]] = frozenset({"bounded"})

    above: float = Field(0.5, gt=0, description="Above 0.")
    half_open: float = Field(0.5, gt=0, le=1, description="Above 0, at most 1.")
    from_zero: float = Field(0.5, ge=0, lt=1, description="At least 0, below 1.")
    inside: float = Field(0.5, gt=0, lt=1, description="Between 0 and 1.")
    free: float = Field(0.5, description="Any finite number.")
    whole: int = Field(3, gt=2, le=5, description="3, 4 or 5.")
    below: int = Field(3, lt=5, description="4 or less.")
    signed: int = Field(0, description="Any whole number.")
    chosen: Literal["one", "two"] = Field("one", description="One of two.")
    names: tuple[str, ...] = Field(("a",), min_length=1, description="Names.")


STUDIES.remove(Bounded)


def kind_of(field: FieldInfo) -> Any:
    """The type of a field without None."""
    parts = [part for part in get_args(field.annotation) if part is not type(None)]
    return parts[0] if type(None) in get_args(field.annotation) else field.annotation


def bounds_of(field: FieldInfo) -> list[float]:
    return [
        getattr(constraint, edge)
        for constraint in field.metadata
        for edge in EDGES
        if hasattr(constraint, edge)
    ]


def values_around_bounds(field: FieldInfo) -> list[object]:
    """Values at, just below and just above each bound, and those that are no number."""
    kind = kind_of(field)
    if kind is int or kind is float:
        numbers: list[object] = [-1, 0, 1, 1.0, 2.0, 0.5, 1.5, math.inf, -math.inf, math.nan]
        for bound in bounds_of(field):
            numbers += [bound - 1, bound, bound + 1, float(bound)]
            numbers += [math.nextafter(bound, -math.inf), math.nextafter(bound, math.inf)]
        return [*numbers, "many", ""]
    if get_origin(kind) is Literal:
        choices = get_args(kind)
        return [*choices, choices[0].upper(), f"{choices[0]}x", ""]
    return []


def cases() -> Iterator[Any]:
    for study in [*every(), Bounded]:
        for key, field in study.model_fields.items():
            if not field.exclude and values_around_bounds(field):
                yield pytest.param(study, key, id=f"{study.__name__}-{key}")


def python_fault(study: type[Study], name: str, value: object) -> str:
    """What Python says against a value of a field; "" if it takes it."""
    try:
        study.model_validate({name: value})
    except ValidationError as error:
        faults = [fault["msg"] for fault in error.errors() if fault["loc"][:1] == (name,)]
        return faults[0] if faults else ""
    return ""


def typed_value(study: type[Study], name: str, text: str) -> object:
    """What the study's command makes of a typed text.

    Raises:
        BadParameter: The command refuses it.
    """
    study_command = command(study.__name__.lower(), described_study(study))
    [option] = [param for param in study_command.params if param.name == name]
    return option.type_cast_value(click.Context(study_command), text)


@pytest.mark.parametrize(("study", "key"), list(cases()))
def test_the_command_takes_the_values_that_python_takes_and_no_other(
    study: type[Study], key: str
) -> None:
    field = study.model_fields[key]
    name = field.alias or key
    for value in values_around_bounds(field):
        refused_by_python = python_fault(study, name, value)
        try:
            typed = typed_value(study, name, str(value))
        except click.BadParameter as error:
            assert refused_by_python, f"{value!r} is taken in Python and not typed"
            assert "\n" not in error.format_message()
            continue
        refused_by_command = python_fault(study, name, typed)
        assert bool(refused_by_python) == bool(refused_by_command), (value, typed)
        assert refused_by_python or typed == value


@pytest.mark.parametrize(
    ("key", "shown"),
    [
        ("above", "; x>0]"),
        ("half-open", "; 0<x<=1]"),
        ("from-zero", "; 0<=x<1]"),
        ("inside", "; 0<x<1]"),
        ("whole", "; 3<=x<=5]"),
        ("below", "; x<=4]"),
    ],
)
def test_help_shows_on_which_side_a_bound_is_excluded(key: str, shown: str) -> None:
    help_text = CliRunner().invoke(command("bounded", described_study(Bounded)), ["--help"]).output
    help_of_option = help_text.partition(f"--{key} ")[2].partition("--")[0]
    assert shown in " ".join(help_of_option.split())


@pytest.mark.parametrize(
    ("typed", "message"),
    [
        (("--half-open", "0"), "0.0 is not in the range 0<x<=1"),
        (("--half-open", "inf"), "inf is not in the range 0<x<=1"),
        (("--above", "nan"), "nan is not finite; expected x>0"),
        (("--free", "inf"), "inf is not finite; expected a finite number"),
        (("--below", "5"), "expected a whole number up to 4, got '5'"),
        (("--whole", "2"), "expected a whole number from 3 to 5, got '2'"),
        (("--signed", "1.5"), "expected a whole number, got '1.5'"),
    ],
)
def test_a_value_outside_of_its_bounds_is_refused_with_the_bounds(
    typed: tuple[str, str], message: str
) -> None:
    refused = CliRunner().invoke(command("bounded", described_study(Bounded)), typed)
    assert refused.exit_code == 2 and message in refused.output
