"""Direct scoring and G-Eval of the judge itself: by hand, against plain forwards, kept on disk,
refused in time.
"""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from selfprobe.data.pairs import LEVELS, Pair, score_priming, score_prompt
from selfprobe.data.public_pairs import PairSet
from selfprobe.probes.harvesting import harvest
from selfprobe.probes.model import LocalModel
from selfprobe.probes.rate import (
    DIRECT,
    G_EVAL,
    check_scoring,
    is_scored_alone,
    rate_texts,
    score_margins,
)
from selfprobe.probes.tokens import contrast_prompts, opened_chat

from .conftest import byte_tokenizer


def silent(_: str) -> None:
    pass


def summaries(count: int = 5) -> list[Pair]:
    return [
        Pair(
            f"s{i}",
            "short " * (i + 1),
            "long",
            1 + i % 2,
            kind="summeval",
            context=f"Article {i}",
            aspect="coherence",
        )
        for i in range(count)
    ]


def test_two_scores_make_a_verdict_by_hand() -> None:
    shares = np.array(
        [[[0.1, 0.1, 0.2, 0.5, 0.1], [0.5, 0.0625, 0.125, 0.25, 0.0625]], [[0.2] * 5, [0.2] * 5]]
    )
    found = score_margins(np.log(shares / 2))  # the levels need not have all of the probability
    assert found[DIRECT].tolist() == [4 - 1, 0]
    # 1·.1 + 2·.1 + 3·.2 + 4·.5 + 5·.1 = 3.4; 1·.5 + 2·.0625 + 3·.125 + 4·.25 + 5·.0625 = 2.3125
    assert found[G_EVAL] == pytest.approx([3.4 - 2.3125, 0])
    unread = score_margins(np.full((1, 2, 5), np.nan))
    assert np.isnan(unread[DIRECT]).all() and np.isnan(unread[G_EVAL]).all()


def test_the_text_is_scored_alone_in_the_words_of_the_task() -> None:
    pair = summaries()[1]
    text = opened_chat(byte_tokenizer(), score_prompt(pair, 1)) + score_priming(pair)
    assert "short short" in text and "long" not in text.replace("belong", "")
    assert text.endswith(
        "Responses must be a single score.<end><assistant>I would rate the coherence as a"
    )
    assert score_priming(Pair("g", "a", "b")) == "I would rate this response as a"
    (prompt,) = contrast_prompts(byte_tokenizer(), [text], LEVELS)
    assert byte_tokenizer().decode(prompt.contrast) == "12345"


def test_ratings_are_those_of_a_plain_forward_of_one_text(
    llama: LocalModel, tmp_path: Path
) -> None:
    states = harvest(llama, summaries(), tmp_path, progress=silent)
    found = rate_texts(llama, states, batch_tokens=2000, progress=silent)
    assert set(found) == {DIRECT, G_EVAL} and set(found[DIRECT]) == {f"s{i}" for i in range(5)}
    for pair in states.pairs:
        expected = []
        for side in (1, 2):
            text = opened_chat(llama.tokenizer, score_prompt(pair, side)) + score_priming(pair)
            tokens = llama.tokenizer(text + " ", add_special_tokens=False)["input_ids"]
            logits = llama.model(torch.tensor([tokens])).logits[0, -1].double()
            shares = torch.softmax(
                logits[llama.tokenizer.convert_tokens_to_ids(list("12345"))], dim=0
            ).numpy()
            expected.append((1 + shares.argmax(), shares @ np.arange(1, 6)))
        assert found[DIRECT][pair.id] == expected[0][0] - expected[1][0]
        assert found[G_EVAL][pair.id] == pytest.approx(expected[0][1] - expected[1][1], abs=1e-4)


def test_what_was_scored_is_not_scored_again(
    llama: LocalModel, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    states = harvest(llama, summaries(), tmp_path, progress=silent)
    first = rate_texts(llama, states, progress=silent)
    monkeypatch.setattr("selfprobe.probes.rate.model_output", None)
    assert rate_texts(llama, states, progress=silent) == first


def test_an_interrupted_scoring_goes_on(
    llama: LocalModel, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    states = harvest(llama, summaries(), tmp_path, progress=silent)
    from selfprobe.probes import rate as module

    real, asked = module.model_output, []

    def interrupted(*given: Any, **more: Any) -> Any:
        asked.append(len(more["input_ids"]))
        if len(asked) > 2:
            raise KeyboardInterrupt
        return real(*given, **more)

    monkeypatch.setattr(module, "model_output", interrupted)
    with pytest.raises(KeyboardInterrupt):
        rate_texts(llama, states, batch_tokens=400, progress=silent)
    kept = sum(asked[:-1])
    asked.clear()
    monkeypatch.setattr(
        module,
        "model_output",
        lambda *g, **more: asked.append(len(more["input_ids"])) or real(*g, **more),
    )
    rate_texts(llama, states, batch_tokens=400, progress=silent)
    assert 0 < kept < 10 and sum(asked) == 10 - kept


def test_a_text_that_does_not_fit_has_no_verdict(llama: LocalModel, tmp_path: Path) -> None:
    states = harvest(llama, summaries(), tmp_path, progress=silent)
    longest = max(p.length for p in contrast_prompts(
        llama.tokenizer,
        [opened_chat(llama.tokenizer, score_prompt(p, 1)) + score_priming(p) for p in states.pairs],
        LEVELS,
    ))  # fmt: skip
    short = replace(llama, model=llama.model)
    before = short.model.config.max_position_embeddings
    short.model.config.max_position_embeddings = longest - 1
    try:
        assert set(rate_texts(short, states, progress=silent)[DIRECT]) == {
            f"s{i}" for i in range(4)
        }
    finally:
        short.model.config.max_position_embeddings = before


def test_by_default_text_quality_alone_is_scored_and_what_has_no_prompt_is_refused() -> None:
    own, cloze = [Pair("g", "a", "b", 1)], [Pair("c", "a", "b", 1, kind="rocstories")]
    assert [is_scored_alone(pairs, None) for pairs in (summaries(), own, cloze)] == [
        True,
        False,
        False,
    ]
    assert [is_scored_alone(pairs, True) for pairs in (summaries(), own, cloze)] == [
        True,
        True,
        False,
    ]
    assert not is_scored_alone(summaries(), False)
    assert not is_scored_alone([Pair("g", "a", "b", 1, criterion="better")], True)
    check_scoring({"c": PairSet("c", tuple(cloze), "", 0, 0)}, None)
    with pytest.raises(
        ValueError,
        match=r"c cannot be scored text by text: there are prompts for general, .*--scoring out",
    ):
        check_scoring({"c": PairSet("c", tuple(cloze), "", 0, 0)}, True)
