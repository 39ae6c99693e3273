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

MATRICES, SIZE, ITEMS = 60, 8, 200
"""Number of sets of models that are drawn, of models of a set, and of items of a draw."""


def read(folder: Path) -> tuple[pd.DataFrame, pd.Series, list[str]]:
    """Characters of each reply [item, model], family by model, and the instructions; items that all
    models have.
    """
    with gzip.open(folder / "replies.jsonl.gz", "rt", encoding="utf-8") as lines:
        rows = pd.DataFrame(map(json.loads, lines))
    texts = pd.read_json(folder / "instructions.jsonl", lines=True).set_index("item").instruction
    lengths = rows.pivot(index="item", columns="model", values="characters").dropna()
    return (
        lengths,
        rows.drop_duplicates("model").set_index("model").family,
        list(texts[lengths.index]),
    )


def predicted(lengths: pd.DataFrame, family: pd.Series, texts: Sequence[str]) -> pd.DataFrame:
    """AUROC [model, predictor] for replies above the model's median, and of those among items as
    long for as many.
    """
    long = (lengths > lengths.median()).astype(float)
    items, out = np.arange(len(long)), {}
    for model in long:
        y, rest = long[model].to_numpy(), long.drop(columns=model)
        kin = rest.loc[:, family[rest.columns] == family[model]]
        score = {
            "mean of the others": rest.mean(axis=1),
            "their log length": np.log(lengths[rest.columns] + 1).mean(axis=1),
        }
        score |= {"family": kin.mean(axis=1)} if kin.shape[1] else {}
        score |= {
            "text": log_odds(texts, y > 0.5, items),
            "length of the instruction": np.array([len(t) for t in texts]),
        }
        strata = solved_alike(long.to_numpy().T)
        out[model] = {
            name: ordered(np.asarray(of, dtype=float), y).auroc for name, of in score.items()
        }
        if kin.shape[1]:
            out[model]["family, beyond the items"] = ordered(
                kin.mean(axis=1).to_numpy(), y, strata
            ).auroc
        log = np.log(lengths + 1)
        out[model]["r of log length with the others' mean"] = float(
            np.corrcoef(log[model], log.drop(columns=model).mean(axis=1))[0, 1]
        )
    return pd.DataFrame(out).T


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
    long = (lengths > lengths.median()).astype(float)
    names = np.array(lengths.columns)
    families = family[names].to_numpy()
    judged = called = beyond = 0
    for _ in range(MATRICES):
        models = rng.choice(names, SIZE, replace=False)
        places = rng.choice(len(long), ITEMS, replace=False)
        chances = {}
        for model in models:
            is_kin = families == family[model]
            candidates = names[(is_kin if of_family else ~is_kin) & ~np.isin(names, models)]
            if len(candidates):
                stand_in = lengths[rng.choice(candidates)].to_numpy(dtype=float)[places]
                chances[model, "self", "", "length"] = stand_in.argsort().argsort() / ITEMS
        stated = StatedChances(
            items=tuple(map(str, places)),
            texts=dict.fromkeys(models, tuple(map(str, places))),
            clusters=np.arange(ITEMS),
            questions=("length",),
            observers={key[0]: key[0] for key in chances},
            outcomes={(model, "length"): long[model].to_numpy()[places] for model in models},
            chances=chances,
        )
        for facts in all_facts(stated):
            judged += 1
            called += outcome_claim(facts, facts.run).verdict is Verdict.YES
            beyond += facts.p_value < BEYOND_ALPHA
    return called / judged, beyond / judged


def main(folder: str) -> None:
    """Print the tables."""
    lengths, family, texts = read(Path(folder))
    print(f"{lengths.shape[1]} models, {len(lengths)} instructions")
    found = predicted(lengths, family, texts)
    print(found.describe().loc[["count", "mean", "min", "max"]].round(2).T.to_string())
    rng = np.random.default_rng(0)
    for of_family, name in ((False, "of another family"), (True, "of its family")):
        called, beyond = called_self_knowledge(lengths, family, of_family=of_family, rng=rng)
        print(
            f"statements that are lengths of a model {name}: Yes {called:.1%}, shown beyond observers {beyond:.1%}"
        )


if __name__ == "__main__":
    main(*sys.argv[1:])
