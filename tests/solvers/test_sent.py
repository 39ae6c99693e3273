"""What the calls of a run were really sent with, as tables show it."""

import re
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from inspect_ai import Task
from inspect_ai.dataset import Sample
from inspect_ai.model import GenerateConfig, ModelAPI, ModelOutput, modelapi

from selfprobe.solvers.act import act
from selfprobe.solvers.record import record_of
from selfprobe.solvers.reply_notes import applied_in


def test_one_way_of_sending_is_told_once_whatever_the_order_of_its_calls() -> None:
    """Calls of a sample end in any order, so "A; B" and "B; A" are one way."""
    seen: list[Any] = [
        SimpleNamespace(metadata={"applied": {"target": way}}) for way in ("A; B", "B; A", "A; B")
    ]
    assert applied_in(seen) == {"target": "A; B"}
    seen.append(SimpleNamespace(metadata={"applied": {"target": "A"}}))
    assert applied_in(seen) == {"target": "A; B (3 samples); A (1 sample)"}


def test_a_simulated_model_takes_no_settings_and_nothing_of_a_request_is_known(
    run_task: Any, tmp_path: Path
) -> None:
    log = run_task("selfprobe/kth_word", "planted/a", tmp_path, limit=1, task_args={"k": 1})
    [reply] = record_of(log.samples[0]).answers.values()
    assert reply.applied is not None and (reply.applied.known, reply.applied.limit) == (False, None)
    assert log.samples[0].metadata["applied"] == {
        "target": "takes no settings",
        "observer": "takes no settings",
    }


class Failing(ModelAPI):
    async def generate(self, *_: Any, **__: Any) -> ModelOutput:
        raise RuntimeError("a bug of the provider")


class HuggingFaceAPI(Failing):
    """Known by its name, as Inspect's."""

    model = tokenizer = None


modelapi("failing")(Failing)
modelapi("failing_hf")(HuggingFaceAPI)


@pytest.mark.parametrize("model", ["failing/a", "failing_hf/a"])
def test_the_trace_from_act_to_the_provider_passes_four_modules(
    model: str, run_task: Any, tmp_path: Path
) -> None:
    task = Task([Sample("Hello")], act(lambda state: {"reply": "Hello"}, config=GenerateConfig()))
    log = run_task(task, model, tmp_path, fail_on_error=False)
    passed = set(re.findall(r"/solvers/(\w+)\.py", log.samples[0].error.traceback))
    assert passed - {"test_sent"} == {"act", "ask", "negotiate", "sent"}
