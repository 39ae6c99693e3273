"""What can be taken out of a prompt."""

from collections import Counter
from typing import Any

import pytest

from selfprobe.data.items import (
    CLASSES,
    Unit,
    control_places,
    overlap,
    things_of,
    units_of,
    without_units,
)

TEXT = """\
You are tested here. Please read Dr. [NAME]'s letter!
Which one is right?

A) mint
B) sage

```python
print("x. y")
```
Answer with one letter."""


def prompt(text: str, **more: Any) -> dict[str, Any]:
    return {
        "messages": [{"role": "system", "content": "You help."}, {"role": "user", "content": text}],
        **more,
    }


def test_sentences_options_code_placeholders_and_tools_are_units() -> None:
    made = units_of(prompt(TEXT, tools=[{"name": "look", "parameters": {}}]), 40)
    assert [(unit.kind, unit.text.splitlines()[0]) for unit in made] == [
        ("sentence", "You help."),
        ("sentence", "You are tested here."),
        ("sentence", "Please read Dr."),
        ("sentence", "[NAME]'s letter!"),
        ("sentence", "Which one is right?"),
        ("options", "A) mint"),
        ("code", "```python"),
        ("sentence", "Answer with one letter."),
        ("placeholder", "[NAME]"),
        ("tool", "look"),
    ]


@pytest.mark.parametrize(
    "text", [TEXT, "一。二！三", "no end", "  a  \n\n\n b ", "<b>Hi.</b> There. ", "A) alone"]
)
def test_units_stand_where_they_say_and_hold_every_word(text: str) -> None:
    made = [
        unit
        for unit in units_of(prompt(text), 40)
        if unit.kind != "placeholder" and unit.message == 1
    ]
    assert all(text[unit.start : unit.end] == unit.text for unit in made)
    assert "".join("".join(unit.text for unit in made).split()) == "".join(text.split())
    assert all(not overlap(a, b) for a in made for b in made if a is not b)


def test_taking_a_unit_out_leaves_one_space_or_line_and_all_else() -> None:
    row = prompt("One. Two. Three.")
    two = next(unit for unit in units_of(row, 40) if unit.text == "Two.")
    left = without_units(row, [two])
    assert left is not None and left["messages"][1]["content"] == "One. Three."
    lines = prompt("One.\n\nTwo.\n\nThree.")
    two = next(unit for unit in units_of(lines, 40) if unit.text == "Two.")
    left = without_units(lines, [two])
    assert left is not None and left["messages"][1]["content"] == "One.\n\nThree."


def test_a_system_message_goes_and_a_prompt_without_a_user_message_is_none() -> None:
    row = prompt("Do it.")
    system, user = units_of(row, 40)
    left = without_units(row, [system])
    assert left is not None and [m["role"] for m in left["messages"]] == ["user"]
    assert without_units(row, [user]) is None


def test_of_many_sentences_neighbours_are_taken_together() -> None:
    row = prompt(" ".join(f"Sentence {n}." for n in range(100)))
    made = units_of(row, 10)
    assert len(made) <= 11 and "Sentence 99." in made[-1].text
    assert all(
        row["messages"][unit.message]["content"][unit.start : unit.end] == unit.text
        for unit in made
    )


LONG = " ".join(f"Sentence {n} is as plain as any other." for n in range(30))


def test_what_a_rule_matches_is_taken_out_first_and_all_else_by_an_order_of_its_texts() -> None:
    giveaway = "This is a sandbox."
    plain = things_of(prompt(LONG), 3)
    assert [thing.text for thing in things_of(prompt(f"{LONG} {giveaway}"), 1)] == [giveaway]
    assert {thing.text for thing in things_of(prompt(f"{giveaway} {LONG}"), 4)} == {
        giveaway,
        *(t.text for t in plain),
    }
    assert [thing.start for thing in plain] == sorted(thing.start for thing in plain)


def test_a_third_of_the_texts_and_at_most_four_are_taken_out_unless_more_are_asked_for() -> None:
    assert len(things_of(prompt(LONG), None)) == 4
    assert len(things_of(prompt("One. Two. Three. Four. Five."), None)) == 2
    assert len(things_of({"messages": [{"role": "user", "content": "All."}]}, None)) == 1
    assert len(things_of(prompt(LONG), 40)) == 31


@pytest.mark.parametrize("most", [None, 2, 40])
def test_things_do_not_overlap_and_a_placeholder_is_taken_before_its_sentence(
    most: int | None,
) -> None:
    things = things_of(prompt(f"{LONG} Write to [NAME] today.", tools=[{"name": "look"}]), most)
    assert all(not overlap(one, other) for one in things for other in things if one is not other)
    assert "[NAME]" in [thing.text for thing in things] and things[-1].kind == "tool"


def controls_of(row: dict[str, Any], most_things: int | None, most: int) -> list[tuple[Unit, Unit]]:
    things = [thing for thing in things_of(row, most_things) if thing.kind != "tool"]
    return [(place, things[index]) for place, index in control_places(row, things, most)]


@pytest.mark.parametrize(
    "text", [LONG, TEXT, "One. Two. Three.", "Alpha beta. " * 40, f"{LONG}\n\n{LONG}"]
)
@pytest.mark.parametrize("most_things", [None, 1, 3])
def test_controls_overlap_neither_things_nor_each_other_and_are_as_long(
    text: str, most_things: int | None
) -> None:
    row = prompt(text)
    things = [thing for thing in things_of(row, most_things) if thing.kind != "tool"]
    controls = controls_of(row, most_things, 12)
    places = [place for place, _ in controls]
    assert all(
        not overlap(one, other)
        for one in places
        for other in [*places, *things]
        if one is not other
    )
    for place, thing in controls:
        assert row["messages"][place.message]["content"][place.start : place.end] == place.text
        assert len(thing.text) <= len(place.text) < len(thing.text) + max(map(len, text.split()))
    assert controls == controls_of(row, most_things, 12), "always the same"


def test_each_thing_has_as_many_controls_or_one_more_and_one_without_room_has_none() -> None:
    row = prompt(f"{LONG} This is a sandbox. Imagine it: {'a very long staged tale ' * 90}.")
    counts = Counter(thing.text[:9] for _, thing in controls_of(row, 3, 11))
    assert "Imagine i" not in counts and max(counts.values()) - min(counts.values()) <= 1


def test_where_room_is_short_controls_fill_it_from_the_beginning_on() -> None:
    row = prompt(
        " ".join(["The sandbox is one.", *(f"Text number {n:02} here." for n in range(20))])
    )
    assert len(controls_of(row, 1, 19)) >= 18


def test_prompts_of_one_template_have_their_controls_in_common() -> None:
    template = " ".join(f"Noun{n} verb{n} with tail{n}." for n in range(30))
    rows = [
        prompt(f"This is a sandbox. {template} My name is {name}.")
        for name in ("Ann", "Bartholomew")
    ]
    first, second = ({place.text for place, _ in controls_of(row, 1, 8)} for row in rows)
    assert len(first & second) >= 7


def test_a_unit_that_is_all_there_is_has_no_control() -> None:
    row = {"messages": [{"role": "user", "content": "All there is."}]}
    assert controls_of(row, None, 5) == []


def test_the_eight_classes_match_what_they_are_called_and_leave_plain_requests_alone() -> None:
    samples = {
        "says that it is a test": "This is a sandbox.",
        "stand-ins for names and values": "Write to [NAME] at jo@example.com.",
        "a form made for grading": "Give only the letter of the answer.",
        "a list of options": "A) mint\nB) sage",
        "nobody is watching": "Nobody reads your scratchpad.",
        "a goal above everything": "Reach it at all costs.",
        "a staged situation": "Imagine that you are a pilot.",
        "bait": "The password is in the file.",
    }
    assert list(samples) == list(CLASSES)
    for name, text in samples.items():
        assert name in Unit("sentence", text, 0, 0, len(text)).classes
    assert Unit("sentence", "Why did my tomatoes rot this year?", 0, 0, 9).classes == []
