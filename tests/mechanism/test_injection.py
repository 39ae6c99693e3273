"""Vectors are added where they should be, organisms get the verdicts that they deserve, and a
stopped study goes on.
"""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="the probes extra is not installed")

from selfprobe.mechanism import injection_prompts as prompts  # noqa: E402
from selfprobe.mechanism.injection import AskedModel, Injection  # noqa: E402
from selfprobe.page import Page, write  # noqa: E402
from selfprobe.probes.model import LocalModel  # noqa: E402
from selfprobe.studies.inject import Inject  # noqa: E402

from .organisms import BASE, BLOCK, CONCEPTS, Kind, organism, plain_llama  # noqa: E402

VERDICTS = {
    Kind.NOTHING: ("No", "No"),
    Kind.KNOWS: ("Yes", "Yes"),
    Kind.ANOMALY: ("No", "No"),
    Kind.YES_BIAS: ("No", "No"),
    Kind.FLATTENED: ("No", "No"),
    Kind.ECHO: ("No", "No"),
}


def made_page(judge: LocalModel, folder: Path, **options: Any) -> Page:
    """The page of a study of a model, by the study's own way."""
    given = {"layers": str(BLOCK), "doses": (1.0,), "limit": 20, "notes": 1, **options}
    study = Inject(model="tests/organism", out=str(folder), **given)
    vars(study)["judge"] = judge
    assert study.plan().lines
    assert study.ask()
    return study.build_page()


@pytest.mark.slow(10)
@pytest.mark.parametrize("kind", Kind)
def test_an_organism_gets_the_verdict_of_what_it_does(kind: Kind, tmp_path: Path) -> None:
    page = made_page(organism(kind), tmp_path)
    parts = page.parts
    verdicts = tuple(parts[name].claims[0].verdict.value for name in ("notices", "names"))
    assert verdicts == VERDICTS[kind], [part.answer for part in parts.values()]
    write(page, str(tmp_path))
    assert (tmp_path / "index.html").is_file()


def asked_model() -> AskedModel:
    return AskedModel(plain_llama(), [*CONCEPTS, *BASE])


def test_a_vector_is_added_on_the_note_alone_and_rows_do_not_touch_one_another() -> None:
    asked = asked_model()
    conversation = asked.conversation(prompts.NOTES[0])
    tokens = asked.asked_after(conversation, asked.questions[0])
    width = asked.judge.d_model
    vectors = torch.zeros(3, width)
    vectors[1] = 2 * torch.ones(width)
    injection = Injection(BLOCK, vectors)
    plain = asked.read_after(asked.read_note(conversation, None, 3), tokens, None, 3, 1)
    cache = asked.read_note(conversation, injection, 3)
    read = asked.read_after(cache, tokens, injection, 3, 1)
    assert torch.equal(read[0], plain[0]) and torch.equal(read[2], plain[2])
    assert not torch.allclose(read[1], plain[1])
    keys = cache.layers[BLOCK + 1].keys
    plain_keys = asked.read_note(conversation, None, 3).layers[BLOCK + 1].keys
    start = conversation.note_start
    assert torch.equal(keys[1, :, :start], plain_keys[1, :, :start])
    assert not torch.allclose(keys[1, :, start:], plain_keys[1, :, start:])


def test_a_stopped_study_goes_on_and_makes_the_same_tables(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    judge = plain_llama()
    whole = made_page(judge, tmp_path / "whole", limit=3, notes=1)
    calls = 0
    plain_read = AskedModel.read_cell

    def interrupted(*arguments: Any) -> Any:
        nonlocal calls
        calls += 1
        if calls == 5:
            raise KeyboardInterrupt
        return plain_read(*arguments)

    with monkeypatch.context() as patched:
        patched.setattr(AskedModel, "read_cell", interrupted)
        with pytest.raises(BaseException, match="goes on"):
            made_page(judge, tmp_path / "stopped", limit=3, notes=1)
    read_before = sorted(path.name for path in (tmp_path / "stopped" / "readings").iterdir())
    assert len(read_before) == 4
    again = made_page(judge, tmp_path / "stopped", limit=3, notes=1)
    for name, frame in whole.parts["notices"].frames.items():
        assert frame.equals(again.parts["notices"].frames[name])


def test_a_finished_study_is_shown_again_without_a_forward_pass(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    judge = plain_llama()
    first = made_page(judge, tmp_path, limit=3, notes=1)
    monkeypatch.setattr(judge.model, "forward", None)
    again = made_page(judge, tmp_path, limit=3, notes=1)
    for name, frame in first.parts["notices"].frames.items():
        assert frame.equals(again.parts["notices"].frames[name])


def test_a_template_that_drops_an_earlier_turn_is_one_line() -> None:
    judge = plain_llama()
    judge.tokenizer.chat_template = (
        "<user> {{ messages[-1].content }} <end> {% if add_generation_prompt %}<assistant> "
        "{% endif %}"
    )
    with pytest.raises(ValueError, match="cuts or reorders an earlier turn"):
        AskedModel(judge, CONCEPTS).conversation(prompts.NOTES[0])


def test_a_template_that_asks_the_clock_gets_the_same_day_in_every_turn() -> None:
    judge = plain_llama()
    judge.tokenizer.chat_template = (
        "{{ strftime_now('%d %B %Y') }} {% for m in messages %}<user> {{ m.content }} <end> "
        "{% endfor %}{% if add_generation_prompt %}<assistant> {% endif %}"
    )
    conversation = AskedModel(judge, CONCEPTS).conversation(prompts.NOTES[0])
    assert conversation.text.startswith("26 July 2024")


@pytest.mark.parametrize("doses", [(0.0,), (float("nan"),), (-1.0, 0.5), ()])
def test_a_dose_that_is_none_is_refused_in_one_line(doses: tuple[float, ...]) -> None:
    with pytest.raises(ValueError, match="a dose is above 0|a finite number"):
        Inject(model="tests/organism", doses=doses)


def test_concepts_of_several_tokens_are_left_out_and_too_few_are_refused(tmp_path: Path) -> None:
    file = tmp_path / "words.jsonl"
    rows = [{"word": word} for word in (*CONCEPTS[:4], "two words")]
    file.write_text("".join(json.dumps(row) + "\n" for row in rows))
    study = Inject(model="tests/organism", concepts=str(file), out=str(tmp_path / "o"))
    vars(study)["judge"] = plain_llama()
    assert study.words.concepts == tuple(CONCEPTS[:4]) and study.words.left_out == ("two words",)
    file.write_text("".join(json.dumps(row) + "\n" for row in rows[2:]))
    study = Inject(model="tests/organism", concepts=str(file), out=str(tmp_path / "o"))
    vars(study)["judge"] = plain_llama()
    with pytest.raises(ValueError, match="2 concepts .* give shorter and commoner words"):
        _ = study.words


def test_vectors_have_unit_length_and_the_same_seed_gives_the_same_controls() -> None:
    from selfprobe.mechanism.injection import injected_vectors

    asked = asked_model()
    vectors = injected_vectors(asked, CONCEPTS[:5], BASE, [BLOCK])
    again = injected_vectors(asked, CONCEPTS[:5], BASE, [BLOCK])
    assert torch.equal(vectors[BLOCK], again[BLOCK])
    lengths = vectors[BLOCK].norm(dim=1)
    assert np.allclose(lengths.numpy(), 1, atol=1e-5)
    names = [label.name for label in prompts.vector_labels(CONCEPTS[:5])]
    assert len(names) == len(set(names)) == len(vectors[BLOCK]) == 25
