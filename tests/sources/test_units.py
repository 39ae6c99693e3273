"""What can be taken out of a prompt."""

from typing import Any

import pytest

from selfprobe.data.items import CLASSES, Unit, elsewhere, overlap, units_of, without_units

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
    return {"messages": [{"role": "system", "content": "You help."}, {"role": "user", "content": text}], **more}


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


@pytest.mark.parametrize("text", [TEXT, "一。二！三", "no end", "  a  \n\n\n b ", "<b>Hi.</b> There. ", "A) alone"])
def test_units_stand_where_they_say_and_hold_every_word(text: str) -> None:
    made = [unit for unit in units_of(prompt(text), 40) if unit.kind != "placeholder" and unit.message == 1]
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
    assert all(row["messages"][unit.message]["content"][unit.start : unit.end] == unit.text for unit in made)


def test_a_control_is_as_long_and_elsewhere_and_always_the_same() -> None:
    row = prompt("One two three four. " * 10 + "The giveaway is here. " + "Five six seven eight. " * 10)
    unit = next(unit for unit in units_of(row, 40) if "giveaway" in unit.text)
    found = [elsewhere(row, unit, f"seed {n}") for n in range(20)]
    assert all(place is not None and not overlap(place, unit) for place in found)
    assert all(place is not None and len(unit.text) <= len(place.text) <= len(unit.text) + 8 for place in found)
    assert found == [elsewhere(row, unit, f"seed {n}") for n in range(20)]


def test_a_unit_that_is_all_there_is_has_no_control() -> None:
    row = {"messages": [{"role": "user", "content": "All there is."}]}
    assert elsewhere(row, units_of(row, 40)[0], "seed") is None


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
