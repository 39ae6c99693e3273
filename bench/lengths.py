"""Who foretells the length of a real model's reply? 62 models on 805 instructions, of whom none was
asked.

Truth: longer than the median of the model's replies. Predictors: the mean of the other models, of
the other models of its family, the instruction's words (a classifier), its length. Then a null: a
model of another family stands for what a model "states" of itself, so that whatever is found beyond
the items is likeness of models, and no self-knowledge.

    python bench/lengths.py FOLDER    # with instructions.jsonl and replies.jsonl.gz (of tatsu-lab/alpaca_eval)
"""

import gzip
import json
import sys
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pandas as pd

from selfprobe.stats.claim import Verdict
from selfprobe.stats.foresight import ordered, solved_alike
from selfprobe.stats.text_only import log_odds
from selfprobe.studies.outcome_numbers import BEYOND_ALPHA, StatedChances, all_facts, outcome_claim

DRAWN_SETS = 60
"""Number of sets of models that are drawn."""
MODELS_PER_SET = 8
ITEMS_PER_SET = 200


def read(folder: Path) -> tuple[pd.DataFrame, pd.Series, list[str]]:
    """Characters of each reply [item, model], family by model, and the instructions; items that all
    models have.
    """
    with gzip.open(folder / "replies.jsonl.gz", "rt", encoding="utf-8") as lines:
        rows = pd.DataFrame(map(json.loads, lines))
    texts = pd.read_json(folder / "instructions.jsonl", lines=True).set_index("item").instruction
    lengths = rows.pivot(index="item", columns="model", values="characters").dropna()
    family = rows.drop_duplicates("model").set_index("model").family
    return lengths, family, list(texts[lengths.index])


def predicted(lengths: pd.DataFrame, family: pd.Series, texts: Sequence[str]) -> pd.DataFrame:
    """AUROC [model, predictor] for replies above the model's median, and of those among items as
    long for as many.
    """
    is_long = (lengths > lengths.median()).astype(float)
    log_lengths = np.log(lengths + 1)
    items = np.arange(len(is_long))
    text_lengths = np.array([len(text) for text in texts])
    strata = solved_alike(is_long.to_numpy().T)

    numbers_by_model: dict[str, dict[str, float]] = {}
    for model in is_long:
        truth = is_long[model].to_numpy()
        other_models = is_long.drop(columns=model)
        other_log_lengths = log_lengths[other_models.columns].mean(axis=1)
        relatives = other_models.loc[:, family[other_models.columns] == family[model]]

        scores = {
            "mean of the others": other_models.mean(axis=1),
            "their log length": other_log_lengths,
        }
        if relatives.shape[1]:
            scores["family"] = relatives.mean(axis=1)
        scores["text"] = log_odds(texts, truth > 0.5, items)
        scores["length of the instruction"] = text_lengths

        numbers = {
            name: ordered(np.asarray(values, dtype=float), truth).auroc
            for name, values in scores.items()
        }
        if relatives.shape[1]:
            family_scores = relatives.mean(axis=1).to_numpy()
            numbers["family, beyond the items"] = ordered(family_scores, truth, strata).auroc
        correlations = np.corrcoef(log_lengths[model], other_log_lengths)
        numbers["r of log length with the others' mean"] = float(correlations[0, 1])
        numbers_by_model[model] = numbers
    return pd.DataFrame(numbers_by_model).T


def called_self_knowledge(
    lengths: pd.DataFrame, family: pd.Series, *, of_family: bool, rng: np.random.Generator
) -> tuple[float, float]:
    """Share of models that "state" another model's lengths and are called Yes, and of those shown
    beyond observers.

    Args:
        lengths: Characters of each reply [item, model].
        family: Family by model.
        of_family: Whether each states the lengths of a model of its family, which is not asked, or
            of another one.
        rng: Generator of the draws.
    """
    is_long = (lengths > lengths.median()).astype(float)
    model_names = np.array(lengths.columns)
    families = family[model_names].to_numpy()
    claim_count = 0
    yes_count = 0
    beyond_count = 0
    for _ in range(DRAWN_SETS):
        models = rng.choice(model_names, MODELS_PER_SET, replace=False)
        items = rng.choice(len(is_long), ITEMS_PER_SET, replace=False)
        chances = {}
        for model in models:
            is_candidate = (families == family[model]) == of_family
            candidates = model_names[is_candidate & ~np.isin(model_names, models)]
            if len(candidates):
                stand_in_lengths = lengths[rng.choice(candidates)].to_numpy(dtype=float)[items]
                ranks = stand_in_lengths.argsort().argsort()
                chances[model, "self", "", "length"] = ranks / ITEMS_PER_SET

        item_names = tuple(map(str, items))
        outcomes = {}
        for model in models:
            outcomes[model, "length"] = is_long[model].to_numpy()[items]
        stated = StatedChances(
            items=item_names,
            texts=dict.fromkeys(models, item_names),
            clusters=np.arange(ITEMS_PER_SET),
            questions=("length",),
            observers={key[0]: key[0] for key in chances},
            outcomes=outcomes,
            chances=chances,
        )
        for facts in all_facts(stated):
            claim_count += 1
            yes_count += outcome_claim(facts, facts.run).verdict is Verdict.YES
            beyond_count += facts.p_value < BEYOND_ALPHA
    return yes_count / claim_count, beyond_count / claim_count


def main(folder: str) -> None:
    """Print the tables."""
    lengths, family, texts = read(Path(folder))
    print(f"{lengths.shape[1]} models, {len(lengths)} instructions")
    summary = predicted(lengths, family, texts).describe()
    print(summary.loc[["count", "mean", "min", "max"]].round(2).T.to_string())
    rng = np.random.default_rng(0)
    for of_family, name in ((False, "of another family"), (True, "of its family")):
        yes_share, beyond_share = called_self_knowledge(
            lengths, family, of_family=of_family, rng=rng
        )
        print(
            f"statements that are lengths of a model {name}: Yes {yes_share:.1%}, "
            f"shown beyond observers {beyond_share:.1%}"
        )


if __name__ == "__main__":
    main(*sys.argv[1:])
