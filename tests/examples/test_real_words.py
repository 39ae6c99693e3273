"""examples/real_words.py on words of our own; the real ones are where the shared folder is."""

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from tests.matrix.truths import REAL

from .loaded import EXAMPLES, example

WORDS = example("real_words")


def rows(**starts: list[str]) -> pd.DataFrame:
    return pd.DataFrame(
        [
            {
                "model": model.replace("_", "-"),
                "family": WORDS.family(model),
                "item": item,
                "start": text,
            }
            for model, texts in starts.items()
            for item, text in enumerate(texts)
        ]
    )


def test_strangers_and_relatives_are_compared_by_first_words() -> None:
    told = rows(
        gpt_a=["**The** sea", "A cat"],
        gpt_b=["the moon", "Two"],
        gemma=["The", "One"],
        lone=["No", "One"],
    )
    table = WORDS.first_words(told)
    assert table.loc["gpt-a"].tolist() == ["the", "a"]
    found = WORDS.agreements(
        table, dict(zip(told.model, told.family, strict=True)), np.random.default_rng(0)
    )
    assert (found["relatives"].value, found["relatives"].pairs) == (0.5, 1)
    assert (found["strangers"].value, found["strangers"].pairs) == (pytest.approx(3 / 10), 5)
    assert WORDS.constant(table) == 0.5


def test_a_question_that_one_model_did_not_answer_counts_for_none() -> None:
    told = rows(a=["The", "One", "Two"], b=["The", "One"])
    assert WORDS.first_words(told).shape == (2, 2)


def test_a_folder_without_outputs_is_refused_with_what_is_expected(tmp_path: Path) -> None:
    with pytest.raises(SystemExit, match=r"expected folders with a model_outputs\.json"):
        WORDS.read(tmp_path)


def test_a_clone_of_the_public_results_is_read(tmp_path: Path) -> None:
    (tmp_path / "Qwen2-72B").mkdir()
    (tmp_path / "Qwen2-72B" / "model_outputs.json").write_text(
        '[{"instruction": "Why?", "output": "Because."}]'
    )
    (row,) = WORDS.read(tmp_path).to_dict("records")
    assert row == {"family": "qwen", "model": "Qwen2-72B", "item": "Why?", "start": "Because."}


@pytest.mark.slow(20)
@pytest.mark.skipif(not REAL.is_dir(), reason="no shared/data/real_replies beside the project")
def test_the_numbers_of_the_readme_are_those_of_62_real_models() -> None:
    command = [sys.executable, str(EXAMPLES / "real_words.py"), str(REAL / "replies.jsonl.gz")]
    done = subprocess.run(command, capture_output=True, text=True, check=True, env=os.environ)
    assert "strangers: the same first word in 30.1%" in done.stdout
    assert "relatives: the same first word in 44.6%" in done.stdout
