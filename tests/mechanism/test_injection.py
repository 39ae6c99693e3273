"""Vectors are added where they should be, organisms get the verdicts that they deserve, and a
stopped study goes on.
"""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="the probes extra is not installed")

from transformers import CONFIG_MAPPING, AutoModelForCausalLM  # noqa: E402

from selfprobe.mechanism import injection_prompts as prompts  # noqa: E402
from selfprobe.mechanism.injection import (  # noqa: E402
    AskedModel,
    Injection,
    continued,
    keeps_all_tokens,
    read_together,
)
from selfprobe.page import Page, write  # noqa: E402
from selfprobe.probes.model import LocalModel, decoder_blocks  # noqa: E402
from selfprobe.probes.tokens import Chat  # noqa: E402
from selfprobe.stats.injection import fact_slopes  # noqa: E402
from selfprobe.studies.inject import Inject  # noqa: E402
from selfprobe.studies.inject_numbers import answers_check  # noqa: E402

from .organisms import BASE, BLOCK, CONCEPTS, Kind, organism, plain_llama  # noqa: E402
from .test_lower_blocks import FAMILIES  # noqa: E402

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


FINDERS = {Kind.NOTHING: "No", Kind.FINDS: "Yes", Kind.DRAWN: "No"}


@pytest.mark.slow(10)
@pytest.mark.parametrize("kind", VERDICTS)
def test_an_organism_gets_the_verdict_of_what_it_does(kind: Kind, tmp_path: Path) -> None:
    page = made_page(organism(kind), tmp_path)
    parts = page.parts
    verdicts = tuple(parts[name].claims[0].verdict.value for name in ("notices", "names"))
    assert verdicts == VERDICTS[kind], [part.answer for part in parts.values()]
    write(page, str(tmp_path))
    assert (tmp_path / "index.html").is_file()


@pytest.mark.parametrize("kind", [Kind.ANOMALY, Kind.FLATTENED, Kind.ECHO])
def test_an_organism_reads_notes_together_as_it_reads_them_alone(kind: Kind) -> None:
    plain_ending = prompts.CEILING.format(word="note")
    odd_note = " ".join(reversed(prompts.NOTES[0].split()))
    texts = [
        prompts.NOTES[0] + plain_ending,
        odd_note + plain_ending,
        prompts.NOTES[0] + prompts.CEILING.format(word=CONCEPTS[0]),
    ]
    readers = [AskedModel(organism(kind), [*CONCEPTS, *BASE]) for _ in range(2)]
    conversations = [readers[0].conversation(text) for text in texts]
    assert read_together(conversations, len(texts)) == [[0, 1, 2]]
    token_rows = tuple(conversation.tokens for conversation in conversations)
    group = replace(conversations[0], token_rows=token_rows)
    together = readers[0].read_cell(group, None, len(texts))
    for row, conversation in enumerate(conversations):
        alone = readers[1].read_cell(conversation, None, 1)
        assert np.allclose(together.log_odds[row], alone.log_odds[0], atol=1e-3)
        assert np.allclose(together.names[row], alone.names[0], atol=1e-3)


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


@pytest.mark.parametrize("family", FAMILIES)
def test_a_cache_that_was_read_on_with_is_as_before(family: str) -> None:
    config = CONFIG_MAPPING[family](**FAMILIES[family])
    model = AutoModelForCausalLM.from_config(config).eval()
    tokens = torch.arange(5, 45)[None]  # past the windows

    def logits_after(cache: Any, start: int) -> Any:
        ids = tokens[:, start : start + 10]
        with torch.inference_mode():
            return model(ids, past_key_values=cache, use_cache=True).logits

    with torch.inference_mode():
        cache = model(tokens[:, :20], use_cache=True).past_key_values
    with continued(cache) as branch_cache:
        first = logits_after(branch_cache, 20)
        with continued(branch_cache) as inner_cache:
            first_inner = logits_after(inner_cache, 30)
        second_inner = logits_after(branch_cache, 30)
    second = logits_after(cache, 20)
    assert torch.equal(first, second) and torch.equal(first_inner, second_inner)


def test_a_cache_of_plain_attention_is_not_copied() -> None:
    judge = plain_llama()
    with torch.inference_mode():
        cache = judge.model(torch.arange(5, 15)[None], use_cache=True).past_key_values
    assert keeps_all_tokens(cache)
    with continued(cache) as branch_cache:
        assert branch_cache is cache


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
    read_before = len(list((tmp_path / "stopped" / "readings").iterdir()))
    assert 4 <= read_before < len(list((tmp_path / "whole" / "readings").iterdir()))
    again = made_page(judge, tmp_path / "stopped", limit=3, notes=1)
    for name, frame in whole.parts["notices"].frames.items():
        assert frame.equals(again.parts["notices"].frames[name])


@pytest.mark.parametrize(
    ("fewer", "advice"),
    [
        ({"layers": "1"}, "--layers 1,2 --doses 0.5,1"),
        ({"doses": (1.0,)}, "--layers 1,2 --doses 0.5,1"),
        ({"layers": "0,1"}, "--layers 0,1,2 --doses 0.5,1"),
    ],
)
def test_cells_that_were_read_are_not_left_out_of_the_correction_for_the_choice(
    fewer: dict[str, Any], advice: str, tmp_path: Path
) -> None:
    cells = {"layers": "1,2", "doses": (0.5, 1.0)}
    made_page(plain_llama(), tmp_path, limit=3, **cells)
    with pytest.raises(ValueError, match=f"holds readings of more cells.*give {advice}, or"):
        made_page(plain_llama(), tmp_path, limit=3, **cells | fewer)


def test_a_model_that_answers_nothing_is_not_told_to_take_smaller_doses() -> None:
    check = answers_check(2e-5)
    assert (check.outcome.name, check.remedy) == ("OPEN", "use a model that was trained to chat")
    assert answers_check(0.8).outcome.name == "HOLDS"


def test_facts_that_are_answered_wrongly_are_not_known() -> None:
    clean_signals = np.array([[-6.0, -5.0]])
    signals = np.full((1, 1, 1, 2), -4.0)
    assert np.isnan(fact_slopes(signals, clean_signals)).all()


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


def test_a_template_that_writes_an_empty_thought_into_the_last_reply_alone_is_read() -> None:
    judge = plain_llama()
    judge.tokenizer.chat_template = (
        "{% for m in messages %}<{{ m.role }}> "
        "{% if m.role == 'assistant' and loop.last %}{ } {% endif %}{{ m.content }} <end> "
        "{% endfor %}{% if add_generation_prompt %}<assistant> {% endif %}"
    )
    asked = AskedModel(judge, CONCEPTS)
    for conversation in (
        asked.conversation(prompts.NOTES[0]),
        asked.sentence_conversation(prompts.SENTENCE_NOTES[0]),
    ):
        question = asked.questions[0]
        turns = (*conversation.turns, {"role": "user", "content": question.text})
        whole = asked._rendered(turns, opens_reply=True)
        read_tokens = [*conversation.tokens, *asked.asked_after(conversation, question)]
        assert conversation.text.endswith(prompts.ACKNOWLEDGEMENT)
        assert read_tokens == asked.tokens_of(whole)


def test_a_template_that_asks_the_clock_gets_the_same_day_in_every_turn() -> None:
    judge = plain_llama()
    judge.tokenizer.chat_template = (
        "{{ strftime_now('%d %B %Y') }} {% for m in messages %}<user> {{ m.content }} <end> "
        "{% endfor %}{% if add_generation_prompt %}<assistant> {% endif %}"
    )
    conversation = AskedModel(judge, CONCEPTS).conversation(prompts.NOTES[0])
    assert conversation.text.startswith("26 July 2024")


@pytest.mark.parametrize(
    ("doses", "message"),
    [
        ((0.0,), r"at most 100, got --doses 0: take --doses \.5,1$"),
        ((-1.0, 0.5), "at most 100, got --doses -1: take"),
        ((0.5, 101.0), "at most 100, got --doses 101: take"),
        ((1e300,), r"at most 100, got --doses 1e\+300: take"),
        ((float("nan"),), "a finite number"),
        ((), "--doses is empty"),
        ((0.5, 0.5000000001), r"0\.5 and 0\.5000000001 are both written 0\.5: give doses that"),
    ],
)
def test_a_dose_that_is_none_is_refused_in_one_line(doses: tuple[float, ...], message: str) -> None:
    with pytest.raises(ValueError, match=message) as error:
        Inject(model="tests/organism", doses=doses)
    assert str(error.value).count("got ") <= 1


def test_a_dose_twice_is_read_once() -> None:
    assert Inject(model="tests/organism", doses=(1.0, 0.5, 1.0)).doses == (0.5, 1.0)


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


def study_of_words(tmp_path: Path, rows: list[dict[str, Any]], **options: Any) -> Inject:
    """A study of the plain model with words of one's own."""
    file = tmp_path / "words.jsonl"
    file.write_text("".join(json.dumps(row) + "\n" for row in rows))
    study = Inject(model="tests/organism", concepts=str(file), out=str(tmp_path / "o"), **options)
    vars(study)["judge"] = plain_llama()
    return study


@pytest.mark.parametrize("repeat", ["{}", " {} ", "{}\u00a0"])
def test_a_word_in_several_rows_is_one_concept_and_the_plan_says_so(
    repeat: str, tmp_path: Path
) -> None:
    words = CONCEPTS[:4]
    rows = [{"word": word} for word in words]
    rows += [{"word": repeat.format(word.upper())} for word in words[:2]]
    study = study_of_words(tmp_path, rows, layers=str(BLOCK), doses=(1.0,), notes=1)
    assert study.words.concepts == tuple(words)
    first_words = ", ".join(word.upper() for word in words[:2])
    assert f"Left out, as repeated: 2 rows ({first_words})" in study.needs_lines


def test_a_word_that_is_concept_and_base_is_no_base(tmp_path: Path) -> None:
    rows = [{"word": word} for word in CONCEPTS[:3]]
    rows += [{"word": word, "use": "base"} for word in (*BASE[:3], CONCEPTS[0].title())]
    study = study_of_words(tmp_path, rows, layers=str(BLOCK), doses=(1.0,), notes=1)
    assert study.words.base == tuple(BASE[:3])
    line = f"Left out of the base, as concepts too: 1 row ({CONCEPTS[0].title()})"
    assert line in study.needs_lines


def test_a_base_of_concepts_alone_is_refused_with_the_reason(tmp_path: Path) -> None:
    rows = [{"word": word, "use": use} for word in CONCEPTS[:3] for use in ("concept", "base")]
    study = study_of_words(tmp_path, rows)
    with pytest.raises(ValueError, match=r"3 concepts and 0 base words .*as concepts too: 3 rows"):
        _ = study.words


def test_a_base_of_bundled_words_has_no_concept(tmp_path: Path) -> None:
    study = study_of_words(tmp_path, [{"word": f" {word}"} for word in BASE[:4]])
    assert study.words.concepts == tuple(BASE[:4])
    assert study.words.base == tuple(BASE[4:])


@pytest.mark.parametrize(
    ("row", "message"),
    [
        (
            {"word": "ocean", "use": "concpt"},
            "row 'line-2': use must be concept or base, got 'concpt';",
        ),
        ({"word": "ocean", "use": "Base"}, "got 'Base'; did you mean base?"),
        ({"word": "ocean", "use": 1}, "use must be concept or base, got 1"),
        ({"word": "oc\nean"}, r"row 'line-2': word 'oc\\nean' holds a line break"),
        ({"word": "oc\u2028ean"}, "holds a line break"),
    ],
)
def test_a_row_of_words_that_cannot_be_used_is_one_line(
    row: dict[str, Any], message: str, tmp_path: Path
) -> None:
    with pytest.raises(ValueError, match=message) as error:
        _ = study_of_words(tmp_path, [{"word": "fire", "use": None}, row]).words
    assert "\n" not in str(error.value)


def test_a_limit_that_leaves_too_few_concepts_is_what_the_error_names(tmp_path: Path) -> None:
    study = study_of_words(tmp_path, [{"word": word} for word in CONCEPTS[:4]], limit=2)
    with pytest.raises(
        ValueError, match=r"^--limit 2 leaves 2 concepts; .* give a larger --limit$"
    ):
        _ = study.words
    study = study_of_words(tmp_path, [{"word": CONCEPTS[0]}])
    with pytest.raises(ValueError, match="^1 concept and [0-9]+ base words .* are one token"):
        _ = study.words


def test_a_list_of_words_that_is_no_table_gets_a_word_as_the_example(tmp_path: Path) -> None:
    file = tmp_path / "words.txt"
    file.write_text("ocean\nfire\n")
    with pytest.raises(ValueError, match='such as {"word": "ocean"}'):
        _ = Inject(model="tests/organism", concepts=str(file)).table


@pytest.mark.parametrize("where", ["earlier", "sentence"])
def test_a_context_too_short_for_a_note_and_its_question_is_refused_before_the_work(
    where: str, tmp_path: Path
) -> None:
    study = Inject(
        model="tests/organism", where=where, layers=str(BLOCK), doses=(1.0,), notes=1,
        limit=3, out=str(tmp_path),
    )  # fmt: skip
    judge = plain_llama()
    vars(study)["judge"] = judge
    judge.model.config.max_position_embeddings = 64
    with pytest.raises(ValueError, match="reads at most 64 tokens, and the longest note .* has"):
        study.plan()
    judge.model.config.max_position_embeddings = study._longest_reading
    assert study.plan().lines


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


def test_questions_that_begin_alike_are_read_once_and_give_what_whole_readings_give() -> None:
    from selfprobe.mechanism.injection import token_branches

    asked = asked_model()
    conversation = asked.conversation(prompts.NOTES[0])
    vectors = torch.zeros(2, asked.judge.d_model)
    vectors[1] = 2 * torch.ones(asked.judge.d_model)
    injection = Injection(BLOCK, vectors, everywhere=True)
    reading = asked.read_cell(conversation, injection, 2)
    cache = asked.read_note(conversation, injection, 2)
    for number, question in enumerate(asked.questions):
        tokens = asked.asked_after(conversation, question)
        logits = asked.read_after(cache, tokens, injection, 2, 1)[:, -1]
        log_odds, _ = asked._yes_no(logits)
        assert np.allclose(log_odds, reading.log_odds[:, number], atol=1e-4), question.key
    tokens = asked.neutral_tokens(conversation)
    logits = asked.read_after(cache, tokens, injection, 2, len(tokens))
    targets = torch.tensor(tokens[1:])[None, :, None].expand(2, -1, 1)
    whole = logits[:, :-1].log_softmax(-1).gather(2, targets).mean(dim=(1, 2))
    assert np.allclose(whole.numpy(), reading.neutral, atol=1e-4)
    branches = asked.question_branches(conversation)
    separate = [len(asked.asked_after(conversation, question)) for question in asked.questions]
    assert sum(branch.token_count for branch in branches) < 0.7 * sum(separate)
    assert [branch.question for branch in token_branches({0: [1, 2], 1: [1, 2]})] == [0, 1]


def vectors_of_three_rows(asked: AskedModel) -> Any:
    vectors = torch.zeros(3, asked.judge.d_model)
    vectors[1:] = 2 * torch.randn(2, asked.judge.d_model, generator=torch.manual_seed(0))
    return vectors


@pytest.mark.parametrize("block", [0, BLOCK, 3])
@pytest.mark.parametrize("where", ["earlier", "all", "sentence"])
def test_blocks_up_to_a_vectors_are_run_once_and_give_what_a_reading_in_full_gives(
    where: str, block: int
) -> None:
    asked = asked_model()
    read: Any = asked.read_cell
    conversation = asked.conversation(prompts.NOTES[0])
    spans: tuple[tuple[int, int], ...] = ()
    if where == "sentence":
        read = asked.read_sentences
        conversation = asked.sentence_conversation(prompts.SENTENCE_NOTES[0])
        spans = conversation.sentence_spans[:3]
    vectors = vectors_of_three_rows(asked)
    injection = Injection(block, vectors, everywhere=where == "all", spans=spans)
    in_full = vars(read(conversation, injection, 3))

    asked.share_lower_blocks(conversation, [block])
    assert asked.shared_blocks == (block,)
    row_counts: list[int] = []
    first_block = decoder_blocks(asked.judge.model)[0]
    first_block.self_attn.register_forward_pre_hook(
        lambda _module, _inputs, settings: row_counts.append(len(settings["hidden_states"])),
        with_kwargs=True,
    )
    for _ in range(2):
        shared = vars(read(conversation, injection, 3))
        for name, values in in_full.items():
            assert np.allclose(shared[name], values, atol=1e-4), name
    assert row_counts and set(row_counts) == {1}
    pass_count = len(row_counts)
    read(conversation, injection, 3)
    assert len(row_counts) == pass_count
    assert np.allclose(read(conversation, None, 1).masses, in_full["masses"][:1], atol=1e-4)


def test_a_model_whose_later_blocks_read_earlier_ones_is_read_in_full() -> None:
    asked = asked_model()
    layers = decoder_blocks(asked.judge.model)
    inner_states: list[Any] = []
    layers[0].mlp.register_forward_hook(
        lambda _module, _inputs, output: inner_states.append(output)
    )
    layers[3].register_forward_hook(
        lambda _module, _inputs, output: output + 5 * inner_states[-1][:, -output.shape[1] :]
    )
    conversation = asked.conversation(prompts.NOTES[0])
    asked.share_lower_blocks(conversation, [BLOCK])
    assert asked.shared_blocks == ()
    reading = asked.read_cell(conversation, Injection(BLOCK, vectors_of_three_rows(asked)), 3)
    assert np.isfinite(reading.log_odds).all()


def test_a_block_without_a_cache_is_read_in_full_and_its_own_forward_is_put_back() -> None:
    asked = asked_model()
    layers = decoder_blocks(asked.judge.model)
    plain_forward = layers[0].forward

    def own_forward(hidden: Any, **settings: Any) -> Any:
        return plain_forward(hidden, **settings)

    layers[0].forward = own_forward
    conversation = asked.conversation(prompts.NOTES[0])
    asked.share_lower_blocks(conversation, [BLOCK])
    assert asked.shared_blocks == (BLOCK,)
    assert layers[0].forward is own_forward and "forward" not in vars(layers[1])

    layers[0].register_forward_pre_hook(
        lambda _module, inputs, settings: (inputs, settings | {"past_key_values": None}),
        with_kwargs=True,
    )
    asked = AskedModel(asked.judge, [*CONCEPTS, *BASE])
    asked.share_lower_blocks(conversation, [BLOCK])
    assert asked.shared_blocks == ()
    assert layers[0].forward is own_forward and "forward" not in vars(layers[1])


def test_the_plan_says_what_is_held_beside_the_weights_and_the_cpu_time(tmp_path: Path) -> None:
    study = Inject(model="tests/organism", layers="1", doses=(1.0,), limit=3, out=str(tmp_path))
    vars(study)["judge"] = plain_llama()
    plan_lines = study.plan().lines
    [memory] = [line for line in plan_lines if line.startswith("Memory")]
    assert memory.startswith("Memory: weights ") and memory.endswith(" besides")
    assert plan_lines[-1].startswith("Time: about ")
    assert plan_lines[-1].endswith(" of CPU time (measured on one question)")


def test_a_model_that_knows_no_fact_is_told_so_and_not_that_it_answers_too_rarely(
    tmp_path: Path,
) -> None:
    page = made_page(plain_llama(), tmp_path, limit=3)
    for part in page.parts.values():
        assert "knows no plain fact well enough to compare with" in part.answer
        assert "use a larger model" in part.answer


def test_a_page_without_a_cell_that_can_be_asked_draws_nothing_under_a_vector(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("selfprobe.studies.inject_numbers.LEAST_MASS", 2.0)
    page = made_page(plain_llama(), tmp_path, limit=3)
    for part in page.parts.values():
        assert part.picture is not None
        assert "no block and dose can be asked" in part.picture.caption
        assert part.claims[0].verdict.value == "Cannot tell"
    questions = ("Does it notice a thought that is put into it? ", "Can it name the thought? ")
    for note, question in zip(page.notes, questions, strict=True):
        assert str(note).startswith(f"{question}Cannot tell")
    write(page, str(tmp_path))
    drawn = (tmp_path / "figures" / "noticing.svg").read_text("utf-8")
    assert "odd text" in drawn and "concepts" not in drawn


@pytest.mark.slow(10)
@pytest.mark.parametrize("kind", FINDERS)
def test_who_finds_the_sentence_is_told_from_who_is_drawn_to_it(kind: Kind, tmp_path: Path) -> None:
    page = made_page(organism(kind), tmp_path, where="sentence")
    [claim] = page.claims
    assert claim.verdict.value == FINDERS[kind], page.answer
    write(page, str(tmp_path))
    head = (tmp_path / "tables" / "cells.csv").read_text("utf-8").partition("\n")[0]
    assert "which_right" in head and "longest_right" in head


def test_a_vector_is_added_on_one_sentence_alone() -> None:
    asked = asked_model()
    sentences = prompts.SENTENCE_NOTES[0]
    conversation = asked.sentence_conversation(sentences)
    decode = asked.judge.tokenizer.decode
    texts = [decode(conversation.tokens[start:end]) for start, end in conversation.sentence_spans]
    assert [text.split() for text in texts] == [
        decode(asked.tokens_of(sentence)).split() for sentence in sentences
    ]
    vectors = torch.ones(2, asked.judge.d_model)
    injection = Injection(BLOCK, vectors, spans=conversation.sentence_spans[1:3])
    keys = asked.read_note(conversation, injection, 2).layers[BLOCK + 1].keys
    plain = asked.read_note(conversation, None, 2).layers[BLOCK + 1].keys
    differs = (keys != plain).any(dim=-1).any(dim=1)  # [row, token]
    for row, (start, end) in enumerate(conversation.sentence_spans[1:3]):
        places = torch.arange(differs.shape[1])
        assert torch.equal(differs[row], (places >= start) & (places < end))


def test_a_stopped_study_of_sentences_goes_on(tmp_path: Path) -> None:
    judge = plain_llama()
    options = {"limit": 5, "where": "sentence"}
    whole = made_page(judge, tmp_path, **options)
    [*_, last] = sorted((tmp_path / "readings").glob("block-*"))
    last.unlink()
    again = made_page(judge, tmp_path, **options)
    assert whole.frames["cells"].equals(again.frames["cells"])


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"notes": 3}, "--where sentence has 2 notes, got --notes 3"),
        ({"reader": "smollm2"}, "--where sentence writes nothing: leave out --reader"),
    ],
)
def test_options_that_a_study_of_sentences_lacks_are_refused(
    options: dict[str, Any], message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        Inject(model="tests/organism", where="sentence", **options)


def test_several_residual_streams_and_a_cache_that_cannot_be_copied_are_one_line(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    judge = plain_llama()
    streams = plain_llama()
    streams.model.config.altup_active_idx = 0
    with pytest.raises(ValueError, match="several residual streams.*use a model with one"):
        AskedModel(streams, CONCEPTS)
    asked = AskedModel(judge, CONCEPTS)
    conversation = asked.conversation(prompts.NOTES[0])
    monkeypatch.setattr(asked, "read_after", raising_type_error)
    with pytest.raises(ValueError, match="cannot go on from a copy of its cache .no copies.: use"):
        asked.check_cache(conversation)


def raising_type_error(*_arguments: Any) -> Any:
    raise TypeError("no copies")


def test_a_system_turn_that_the_template_refuses_is_one_line() -> None:
    judge = plain_llama()
    judge.tokenizer.chat_template = (
        "{% if messages[0].role == 'system' %}{{ raise_exception('no system role') }}{% endif %}"
        "{% for m in messages %}<user> {{ m.content }} <end> {% endfor %}<assistant> "
    )
    asked = AskedModel(replace(judge, chat=Chat("Be brief.", {})), CONCEPTS)
    with pytest.raises(ValueError) as error:
        asked.conversation(prompts.NOTES[0])
    assert "system" in str(error.value) and "\n" not in str(error.value)
