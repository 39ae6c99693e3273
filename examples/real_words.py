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
    if not path.is_dir():
        rows = pd.read_json(path, lines=True).to_dict("records")
    else:
        rows = []
        for file in sorted(path.glob("*/model_outputs.json")):
            model = file.parent.name
            for row in json.loads(file.read_text(encoding="utf-8")):
                reply = row["output"] or ""
                rows.append({"model": model, "item": row["instruction"], "start": reply})
        if not rows:
            sys.exit(
                f"{path}: expected folders with a model_outputs.json, such as alpaca_eval/results"
            )
    return pd.DataFrame([{"family": family(str(row["model"])), **row} for row in rows])


def family(model: str) -> str:
    """The family by the model's name; the name itself if no part of it is known.

    >>> family("Mixtral-8x7B-Instruct-v0.1"), family("openbuddy-llama2-70b"), family("NullModel")
    ('mistral', 'openbuddy', 'nullmodel')
    """
    name = model.lower()
    for family_name in FAMILIES:
        if family_name in name:
            return SAME.get(family_name, family_name)
    return SAME.get(name, name)


def first_words(rows: pd.DataFrame) -> pd.DataFrame:
    """A row a model and a column a question, of those that all models answered: the reply's first
    word.
    """
    rows = rows.assign(word=rows.start.map(_first_word))
    table = rows.pivot_table(index="model", columns="item", values="word", aggfunc="first")
    return table.dropna(axis=1)


def _first_word(reply: str) -> str:
    reply_words = words(reply, limit=1)
    return normalise(reply_words[0]) if reply_words else ""


def agreements(
    table: pd.DataFrame, families: dict[str, str], rng: np.random.Generator
) -> dict[str, Agreement]:
    """Of strangers and of relatives: the mean share of questions at which both models begin with
    the same word.
    """
    model_count, question_count = table.shape
    word_codes = pd.factorize(table.to_numpy().ravel())[0].reshape(table.shape)
    first_models, second_models = np.triu_indices(model_count, 1)
    family_of_model = np.array([families[model] for model in table.index])
    is_related = family_of_model[first_models] == family_of_model[second_models]

    equal_chances = np.full(question_count, 1 / question_count)
    draw_counts = rng.multinomial(question_count, equal_chances, DRAWS)
    question_weights = draw_counts / question_count  # [draw, question]

    agreement_by_kind: dict[str, Agreement] = {}
    for kind, is_of_kind in (("strangers", ~is_related), ("relatives", is_related)):
        first_codes = word_codes[first_models[is_of_kind]]
        second_codes = word_codes[second_models[is_of_kind]]
        share_by_question = np.mean(first_codes == second_codes, axis=0)
        low, high = np.quantile(question_weights @ share_by_question, (0.025, 0.975))
        agreement_by_kind[kind] = Agreement(
            value=float(share_by_question.mean()),
            low=float(low),
            high=float(high),
            pairs=int(is_of_kind.sum()),
        )
    return agreement_by_kind


def constant(table: pd.DataFrame) -> float:
    """The mean over models of what always saying the model's commonest first word reaches."""
    commonest_shares: list[float] = []
    for _, model_words in table.iterrows():
        word_shares = model_words.value_counts(normalize=True)
        commonest_shares.append(word_shares.iloc[0])
    return float(np.mean(commonest_shares))


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
    family_of_model = dict(zip(rows.model, rows.family, strict=True))
    model_count, question_count = table.shape
    print(f"{model_count} models, {question_count} questions that all of them answered")

    agreement_by_kind = agreements(table, family_of_model, np.random.default_rng(0))
    for kind, agreement in agreement_by_kind.items():
        interval = f"[{agreement.low:.1%}, {agreement.high:.1%}]"
        print(
            f"{kind}: the same first word in {agreement.value:.1%} {interval}, "
            f"{agreement.pairs:,} pairs"
        )
    print(f"the model's own commonest word: {constant(table):.1%}")


if __name__ == "__main__":
    main()
