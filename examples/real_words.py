"""How often do one model's first words "predict" another model's? No model is asked.

    python examples/real_words.py alpaca_eval/results       # a clone of github.com/tatsu-lab/alpaca_eval
    python examples/real_words.py replies.jsonl             # or rows with model, item, start and, if known, family

A model that predicts its own first word in 40 % of the questions has shown little if the words of
an unrelated model reach 30 %. This prints what unrelated models and models of one family reach,
over all pairs, with an interval over questions. A model's family is its column `family`, or the
first of FAMILIES that its name holds; models of no known family are strangers to all.
"""

import argparse
import json
import sys
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pandas as pd

from selfprobe.text.parse import normalise, words

FAMILIES = (
    *(
        "openbuddy",
        "tulu",
        "vicuna",
        "wizardlm",
        "xwin",
        "zephyr",
        "guanaco",
        "nanbeige",
        "internlm",
        "storm",
        "snorkel",
    ),
    *(
        "falcon",
        "gemma",
        "gemini",
        "claude",
        "cohere",
        "deepseek",
        "dbrx",
        "phi",
        "qwen",
        "yi-",
        "mixtral",
        "mistral",
    ),
    *("llama-3", "llama3", "llama-2", "llama2", "alpaca", "gpt", "davinci"),
)
"""Parts of names, in the order in which they are tried: openbuddy-llama2 is an openbuddy."""
SAME = {"mixtral": "mistral", "llama3": "llama-3", "llama2": "llama-2", "davinci": "gpt"}
DRAWS = 1000


@dataclass(frozen=True)
class Agreement:
    """How often two models' first words are the same."""

    value: float
    low: float
    """Lower end of the 95 % interval, by drawing questions again."""
    high: float
    pairs: int


def read(path: Path) -> pd.DataFrame:
    """Rows with `model`, `family`, `item` and `start`.

    Raises:
        SystemExit: The path holds neither a folder MODEL/model_outputs.json nor JSON lines.
    """
    if path.is_dir():
        files = sorted(path.glob("*/model_outputs.json"))
        rows = [
            {"model": file.parent.name, "item": row["instruction"], "start": row["output"] or ""}
            for file in files
            for row in json.loads(file.read_text(encoding="utf-8"))
        ]
        if not rows:
            sys.exit(
                f"{path}: expected folders with a model_outputs.json, such as alpaca_eval/results"
            )
    else:
        rows = pd.read_json(path, lines=True).to_dict("records")
    return pd.DataFrame([{"family": family(str(row["model"])), **row} for row in rows])


def family(model: str) -> str:
    """The family by the model's name; the name itself if no part of it is known.

    >>> family("Mixtral-8x7B-Instruct-v0.1"), family("openbuddy-llama2-70b"), family("NullModel")
    ('mistral', 'openbuddy', 'nullmodel')
    """
    name = model.lower()
    part = next((part for part in FAMILIES if part in name), name)
    return SAME.get(part, part)


def first_words(rows: pd.DataFrame) -> pd.DataFrame:
    """A row a model and a column a question, of those that all models answered: the reply's first
    word.
    """
    rows = rows.assign(
        word=[next((normalise(word) for word in words(text)), "") for text in rows.start]
    )
    return rows.pivot_table(index="model", columns="item", values="word", aggfunc="first").dropna(
        axis=1
    )


def agreements(
    table: pd.DataFrame, families: dict[str, str], rng: np.random.Generator
) -> dict[str, Agreement]:
    """Of strangers and of relatives: the mean share of questions at which both models begin with
    the same word.
    """
    codes = pd.factorize(table.to_numpy().ravel())[0].reshape(table.shape)  # [model, question]
    first, second = np.triu_indices(len(table), 1)
    kin = np.array([families[model] for model in table.index])
    related = kin[first] == kin[second]
    draws = (
        rng.multinomial(table.shape[1], np.full(table.shape[1], 1 / table.shape[1]), DRAWS)
        / table.shape[1]
    )
    found = {}
    for name, chosen in (("strangers", ~related), ("relatives", related)):
        by_question = np.mean(codes[first[chosen]] == codes[second[chosen]], axis=0)
        low, high = np.quantile(draws @ by_question, (0.025, 0.975))
        found[name] = Agreement(
            float(by_question.mean()), float(low), float(high), int(chosen.sum())
        )
    return found


def constant(table: pd.DataFrame) -> float:
    """The mean over models of what always saying the model's commonest first word reaches."""
    values: list[npt.NDArray[np.object_]] = list(table.to_numpy())
    return float(np.mean([pd.Series(row).value_counts(normalize=True).iloc[0] for row in values]))


def main() -> None:
    """Print it."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "replies", type=Path, help="a folder of MODEL/model_outputs.json, or JSON lines"
    )
    rows = read(parser.parse_args().replies)
    table = first_words(rows)
    kin = dict(zip(rows.model, rows.family, strict=True))
    print(f"{table.shape[0]} models, {table.shape[1]} questions that all of them answered")
    for name, found in agreements(table, kin, np.random.default_rng(0)).items():
        interval = f"[{found.low:.1%}, {found.high:.1%}]"
        print(f"{name}: the same first word in {found.value:.1%} {interval}, {found.pairs:,} pairs")
    print(f"the model's own commonest word: {constant(table):.1%}")


if __name__ == "__main__":
    main()
