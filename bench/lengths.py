"""Who foretells the length of a real model's reply? 62 models on 805 instructions, of whom none was asked.

Truth: longer than the median of the model's replies. Predictors: the mean of the other models, of the other models of
its family, the instruction's words (a classifier), its length. Then a null: a model of another family stands for what a
model "states" of itself, so that whatever is found beyond the items is likeness of models, and no self-knowledge.

    python bench/lengths.py FOLDER    # with instructions.jsonl and replies.jsonl.gz (of tatsu-lab/alpaca_eval)
"""

import gzip
import json
import sys
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pandas as pd

from selfprobe.stats.foresight import ALPHA, above, auroc_above, ordered, solved_alike, stratified_auroc
from selfprobe.stats.text_only import log_odds
from selfprobe.studies.outcome import Stated, outcome_matrix

DRAWS, MATRICES, SIZE, ITEMS = 1000, 60, 8, 200
"""Pairs and matrices that are drawn, models of a matrix, items of a draw."""


def read(folder: Path) -> tuple[pd.DataFrame, pd.Series, list[str]]:
    """Characters of each reply [item, model], family by model, and the instructions; items that all models have."""
    with gzip.open(folder / "replies.jsonl.gz", "rt", encoding="utf-8") as lines:
        rows = pd.DataFrame(map(json.loads, lines))
    texts = pd.read_json(folder / "instructions.jsonl", lines=True).set_index("item").instruction
    lengths = rows.pivot(index="item", columns="model", values="characters").dropna()
    return lengths, rows.drop_duplicates("model").set_index("model").family, list(texts[lengths.index])


def predicted(lengths: pd.DataFrame, family: pd.Series, texts: Sequence[str]) -> pd.DataFrame:
    """AUROC [model, predictor] for replies above the model's median, and of those among items as long for as many."""
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
        out[model] = {name: ordered(np.asarray(of, dtype=float), y).auroc for name, of in score.items()}
        if kin.shape[1]:
            out[model]["family, beyond the items"] = ordered(kin.mean(axis=1).to_numpy(), y, strata).auroc
        log = np.log(lengths + 1)
        out[model]["r of log length with the others' mean"] = float(
            np.corrcoef(log[model], log.drop(columns=model).mean(axis=1))[0, 1]
        )
    return pd.DataFrame(out).T


def called_self_knowledge(
    lengths: pd.DataFrame, family: pd.Series, *, kin: bool, rng: np.random.Generator
) -> tuple[float, float]:
    """Share of draws in which another model's lengths look like self-knowledge: alone, and beside four rivals."""
    long, names = (lengths > lengths.median()).astype(float), np.array(lengths.columns)
    alone = beside = 0
    for _ in range(DRAWS):
        model = rng.choice(names)
        same = (family[names] == family[model]).to_numpy() & (names != model)
        if not (same if kin else ~same).any():
            continue
        stand_in = rng.choice(names[same if kin else ~same & (names != model)])
        others = rng.choice(names[(names != model) & (names != stand_in)], 8, replace=False)
        at = rng.choice(len(long), ITEMS, replace=False)
        y, rest = long[model].to_numpy()[at], long[others].to_numpy()[at].T
        p, strata = lengths[stand_in].to_numpy(dtype=float)[at], solved_alike(np.vstack([y, rest]))
        shown = above(stratified_auroc(p, y, at, strata), 0.5) < ALPHA
        mine = ordered(p, y, strata)
        rivals = [
            ordered(lengths[o].to_numpy(dtype=float)[at], y, solved_alike(np.vstack([y, np.delete(rest, n, 0)])))
            for n, o in enumerate(others[:4])
        ]
        alone += shown
        beside += shown and all(above(auroc_above(mine, rival, at), 0) < 0.05 for rival in rivals)
    return alone / DRAWS, beside / DRAWS


def named(lengths: pd.DataFrame, family: pd.Series, rng: np.random.Generator) -> float:
    """Share of models that the matrix's verdict names, each "stating" the lengths of a model of another family."""
    long, names, count = (lengths > lengths.median()).astype(float), np.array(lengths.columns), 0
    for _ in range(MATRICES):
        models = rng.choice(names, SIZE, replace=False)
        apart = {m: names[(family[names] != family[m]).to_numpy() & ~np.isin(names, models)] for m in models}
        at = rng.choice(len(long), ITEMS, replace=False)
        said = {m: lengths[rng.choice(apart[m])].to_numpy(dtype=float)[at] for m in models}
        of = Stated(
            items=tuple(map(str, at)),
            texts=dict.fromkeys(models, tuple(map(str, at))),
            clusters=np.arange(ITEMS),
            questions=("length",),
            observers={m: m for m in models},
            outcomes={(m, "length"): long[m].to_numpy()[at] for m in models},
            chances={(m, "self", "", "length"): p for m, p in said.items()},
            table=pd.DataFrame(),
        )
        verdict = outcome_matrix(of, "length", rng).verdict
        count += len(verdict.models) if verdict else 0
    return count / (MATRICES * SIZE)


def main(folder: str) -> None:
    """Print the tables."""
    lengths, family, texts = read(Path(folder))
    print(f"{lengths.shape[1]} models, {len(lengths)} instructions")
    found = predicted(lengths, family, texts)
    print(found.describe().loc[["count", "mean", "min", "max"]].round(2).T.to_string())
    rng = np.random.default_rng(0)
    for kin, name in ((False, "of another family"), (True, "of its family")):
        alone, beside = called_self_knowledge(lengths, family, kin=kin, rng=rng)
        print(
            f"statements that are lengths of a model {name}: beyond the items {alone:.1%}, beside rivals {beside:.1%}"
        )
    print(f"matrices of {SIZE}: {named(lengths, family, rng):.1%} of the models are named")


if __name__ == "__main__":
    main(*sys.argv[1:])
