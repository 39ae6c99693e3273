"""A plan counts what a task really sends: it plays the first items with a planted model."""

import asyncio
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from inspect_ai.event import ModelEvent
from inspect_ai.model import ModelOutput, get_model

from selfprobe.errors import InputError
from selfprobe.providers.planted import PlantedAPI
from selfprobe.study import _registry
from selfprobe.study.described import _rehearsed, rehearsed_calls

SETTINGS: dict[str, dict[str, Any]] = {
    "kth_word": {"k": "1,5", "resamples": 0, "about": "self,other"},
    "ethical_dilemma": {"epochs": 2, "about": "other"},
    "heads_up": {"wording": "E3"},
    "paraphrase_recognition": {"candidates": 3},
    "prompt_reconstruction": {"resamples": 0},
    "probability_targeting": {"levels": ".5,.9"},
}


@pytest.mark.parametrize("task", sorted(_registry.measures()))
def test_the_calls_of_an_item_are_those_of_a_run(
    task: str, run_task: Any, embedder: str, tmp_path: Path
) -> None:
    of = _registry.defaults_of(task)
    args = SETTINGS.get(task, {}) | ({"embedder": embedder} if "embedder" in of else {})
    counted = rehearsed_calls(task, args)
    log = run_task(f"selfprobe/{task}", "planted/plan", tmp_path, limit=2, task_args=args)
    calls = [
        event for sample in log.samples for event in sample.events if isinstance(event, ModelEvent)
    ]
    assert counted.every_call.count * 2 == len(calls)
    asked = sum(len(sample.store["Record:answers"]) for sample in log.samples)
    assert counted.observer.count * 2 == asked


def test_an_observer_that_is_shown_replies_reads_more_for_each() -> None:
    own, named, two, five = (
        rehearsed_calls("kth_word", {"about": about}).observer
        for about in ("self", "named", "shown:2", "shown:5")
    )
    assert own.count == named.count == two.count == five.count == 3
    assert own.tokens[0] < named.tokens[0] < two.tokens[0] < five.tokens[0]
    assert five.tokens[0] - two.tokens[0] == pytest.approx(
        1.5 * (two.tokens[0] - named.tokens[0]), rel=0.35
    )


def test_a_plan_counts_the_same_where_replies_take_their_time(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    args = {"k": "1", "about": "shown:2"}
    at_once = rehearsed_calls("kth_word", args)
    generate = PlantedAPI.generate

    async def delayed(api: PlantedAPI, **call: Any) -> ModelOutput:
        await asyncio.sleep(0.001)
        return await generate(api, **call)

    monkeypatch.setattr(PlantedAPI, "generate", delayed)
    monkeypatch.setattr("selfprobe.study.described.get_model", partial(get_model, memoize=False))
    monkeypatch.setattr("selfprobe.study.described._rehearsed", _rehearsed.__wrapped__)
    assert rehearsed_calls("kth_word", args) == at_once


def test_a_text_that_is_quoted_counts_as_long_as_it_may_get() -> None:
    short, long = (
        rehearsed_calls("self_recognition", {"act_tokens": limit}) for limit in (100, 200)
    )
    assert long.observer.tokens[0] - short.observer.tokens[0] == pytest.approx(2 * 100, abs=5)


def test_a_rehearsal_refuses_what_the_task_refuses() -> None:
    with pytest.raises(InputError, match="k must be whole numbers in 1"):
        rehearsed_calls("kth_word", {"k": 11})
