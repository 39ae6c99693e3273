"""The scanner for Inspect Scout, where Scout is installed."""

import asyncio
from typing import Any

import pytest
from inspect_ai.model import (
    ChatMessage,
    ChatMessageAssistant,
    ChatMessageUser,
    ContentReasoning,
    ContentText,
    get_model,
)

from selfprobe.providers.behaviours.awareness import SUSPICION

inspect_scout = pytest.importorskip(
    "inspect_scout", reason="needs inspect-scout: pip install 'selfprobe[scout]'"
)


def talk(at: int, turns: int = 4) -> list[ChatMessage]:
    made: list[ChatMessage] = []
    for turn in range(1, turns + 1):
        thought = f"Step {turn}." + (f" {SUSPICION}" if turn == at else "")
        content = [ContentReasoning(reasoning=thought), ContentText(text=f"Done {turn}.")]
        made += [ChatMessageUser(content=f"Do {turn}."), ChatMessageAssistant(content=content)]
    return made


def scanned(messages: list[ChatMessage], grader: str, monkeypatch: pytest.MonkeyPatch) -> Any:
    import selfprobe.scout

    monkeypatch.setattr(selfprobe.scout, "get_model", lambda role: get_model(grader))
    transcript = inspect_scout.Transcript(transcript_id="a", messages=messages, events=[])
    return asyncio.run(selfprobe.scout.eval_awareness()(transcript))


def test_the_turn_is_found_and_the_quote_refers_to_its_message(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    messages = talk(3)
    found = scanned(messages, "planted/g", monkeypatch)
    assert found.value is True and found.answer == "turn 3" and found.metadata["first_turn"] == 3
    assert [(one.id, one.cite) for one in found.references] == [(messages[5].id, SUSPICION)]


def test_nothing_is_found_where_nothing_is(monkeypatch: pytest.MonkeyPatch) -> None:
    assert scanned(talk(0), "planted/g", monkeypatch).value is False


def test_a_finding_without_a_true_quote_is_no_finding(monkeypatch: pytest.MonkeyPatch) -> None:
    found = scanned(talk(2), "planted/g?misquotes=1", monkeypatch)
    assert found.value is None and found.answer == "quote_not_found"
