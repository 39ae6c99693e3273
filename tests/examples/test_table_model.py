"""examples/table_model.py: a table's replies are the models, and whose guesses are true is named."""

import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from .loaded import EXAMPLES, example

WORDS = [f"word{k}" for k in range(40)]


def table(folder: Path, knower: str, items: int = 60) -> Path:
    """Five models; half of the first words are everybody's; a guess is the reply or another one."""
    rng, rows = np.random.default_rng(0), []
    for i in range(items):
        shared = rng.choice(WORDS, 3)
        for model in "abcde":
            reply = [word if rng.random() < 0.4 else rng.choice(WORDS) for word in shared]
            guess = reply if model == knower and rng.random() < 0.8 else shared
            rows.append([model, f"Question {i}?", " ".join(reply), " ".join(guess)])
    file = folder / "replies.csv"
    pd.DataFrame(rows, columns=["model", "question", "reply", "guess"]).to_csv(file, index=False)
    return file


@pytest.mark.slow(20)
def test_who_knows_its_own_replies_is_named_and_strangers_are_not(tmp_path: Path) -> None:
    given = [str(table(tmp_path, "c")), "-T", "k=1", "--out", "out", "--log-dir", "logs", "--yes"]
    command = [sys.executable, str(EXAMPLES / "table_model.py"), *given]
    done = subprocess.run(
        command, cwd=tmp_path, capture_output=True, text=True, timeout=600, check=False
    )
    assert done.returncode == 0, done.stderr
    assert "Yes, for 1 of 5 models. table/c scores 80 % on itself" in done.stdout, done.stdout


def test_a_table_that_is_not_there_lacks_a_column_or_has_two_replies_is_one_line(
    tmp_path: Path,
) -> None:
    file = tmp_path / "t.csv"
    with pytest.raises(
        SystemExit,
        match=r"no file or folder '.*t\.csv'.*; give a \.csv or \.jsonl of model, question, reply, guess",
    ):
        example("table_model").read(file)
    file.write_text("model,question,reply\na,b,c\n")
    with pytest.raises(
        SystemExit, match="expected the columns model, question, reply, guess; guess is not there"
    ):
        example("table_model").read(file)
    file.write_text("model,question,reply,guess\na,b,c,d\na,b,e,f\n")
    with pytest.raises(SystemExit, match="a has two replies to 'b'; keep one"):
        example("table_model").read(file)
    for content, fault in (
        (b"", "has no rows"),
        (b"model\n\0\xff", "a binary file"),
        (b"model\na\n", "question, reply, guess is not there"),
    ):
        file.write_bytes(content)
        with pytest.raises(SystemExit, match=fault):
            example("table_model").read(file)
    file.write_text("model,question,reply,guess\na,b,c,\nd,e,f,g\n")
    with pytest.raises(SystemExit, match="no question to which all of its 2 models replied"):
        example("table_model").run(str(file))
