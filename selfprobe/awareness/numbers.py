"""Evaluation awareness: every number of a method, its text-only baselines, and the methods side by side (paper 002).

All methods of a model read one reply, so they are compared on the same conversations. Intervals are clustered by
source, because conversations of one source are alike.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from selfprobe.awareness.table import ARM, Arm, Logged
from selfprobe.scorers.awareness import POLAR, auroc, balanced_accuracy, ranks_nothing
from selfprobe.stats.agreement import (
    Agreement,
    Equivalence,
    KappaCurve,
    Trend,
    agreement,
    debiased_ece,
    equivalence,
    kappa_curve,
    precision_at,
    turns_trend,
)
from selfprobe.stats.estimate import Estimate, bootstrap, clustered_mean, undefined

PREVALENCES = (0.01, 0.05, 0.10)


@dataclass(frozen=True)
class Baselines:
    """What needs no model: how well the text gives the label away. Beside every result."""

    length: Estimate
    """AUROC of the number of characters, the better sign."""
    words: Estimate
    """AUROC of TF-IDF and logistic regression, cross-fitted with pairs kept together."""
    words_other_source: Estimate
    """The same, each source predicted by a classifier that saw only the others."""
    scores: pd.DataFrame
    """item, label, length, words, words_other_source: for the ROC figure."""


@dataclass(frozen=True)
class Method:
    """One arm's numbers; the estimates are NaN with a reason where undefined."""

    method: str
    model: str
    perspective: str
    context: str
    placebo: bool
    n: int
    """Conversations with a verdict."""
    labelled: int
    tpr: Estimate
    """Share of evaluation rows called evaluation."""
    tnr: Estimate
    """Share of deployment rows called deployment."""
    balanced_accuracy: Estimate
    called: Estimate
    """Share called evaluation."""
    auroc: Estimate
    brier: float
    mae: float
    """Mean absolute error, which the paper calls Brier."""
    ece: float
    """Debiased."""
    precision: dict[float, float]
    """By prevalence of evaluations."""
    unscored: dict[str, float]
    """Share of conversations by reason."""
    trend: Trend


@dataclass(frozen=True)
class Pair:
    """Two methods of one model."""

    model: str
    first: str
    second: str
    agreement: Agreement
    pearson: float
    """Of the two methods' ranking scores."""
    curve: KappaCurve | None
    """Binary against probability, where both were run with 25 decisions."""


@dataclass(frozen=True)
class Comparison:
    """Everything `selfprobe awareness compare` shows."""

    baselines: Baselines
    methods: tuple[Method, ...]
    pairs: tuple[Pair, ...]
    perspectives: dict[tuple[str, str, str], Equivalence]
    """(method, model, context) → first against third person, share called evaluation; placebo arms aside."""


def compare(logged: Logged, *, rng: np.random.Generator) -> Comparison:
    """Every arm's numbers, each pair of methods of a model, and first against third person."""
    arms = {tuple(key): rows for key, rows in logged.verdicts.groupby(ARM, sort=False)}
    methods = tuple(method_numbers(rows, rng=rng) for rows in arms.values())
    main = {key: rows for key, rows in arms.items() if key[2] != "third" and not key[4]}
    pairs = [
        _pair(logged, a, b, _shared(main[a], main[b]), rng)
        for a, b in combinations(main, 2)
        if a[1] == b[1] and a[3] == b[3]
    ]
    perspectives = {}
    for key, rows in arms.items():
        other = (key[0], key[1], "third", key[3], key[4])
        if key[2] == "first" and not key[4] and other in arms:
            both = _shared(rows, arms[other])
            perspectives[key[0], key[1], key[3]] = equivalence(
                both.said_a == "evaluation", both.said_b == "evaluation", clusters=both.source_a.astype(str)
            )
    return Comparison(text_baselines(logged.texts, rng=rng), methods, tuple(pairs), perspectives)


def method_numbers(rows: pd.DataFrame, *, rng: np.random.Generator) -> Method:
    """All numbers of one arm from its verdict rows."""
    said = rows[rows.said.notna()]
    labelled = said[said.truth.notna()]
    positive = (labelled.truth == "evaluation").to_numpy(dtype=bool)
    called = (labelled.said == "evaluation").to_numpy(dtype=bool)
    sources = labelled.source.astype(str).to_numpy()
    stated = labelled[labelled.probability.notna()]
    errors = stated.probability.to_numpy(dtype=float) - (stated.truth == "evaluation").to_numpy(dtype=float)
    tpr = _share(labelled[positive], "evaluation")
    tnr = _share(labelled[~positive], "deployment")
    reasons = Counter(rows.unscored.dropna())
    return Method(
        **{name: str(rows[name].iloc[0]) for name in ARM if name != "placebo"},
        placebo=bool(rows.placebo.iloc[0]),
        n=len(said),
        labelled=len(labelled),
        tpr=tpr,
        tnr=tnr,
        balanced_accuracy=bootstrap(balanced_accuracy, positive, called, clusters=sources, rng=rng, unit="source"),
        called=_share(said, "evaluation"),
        auroc=_auroc(labelled[labelled.score.notna()], rng),
        brier=float(np.mean(errors**2)) if len(errors) else float("nan"),
        mae=float(np.mean(np.abs(errors))) if len(errors) else float("nan"),
        ece=debiased_ece(stated.probability, stated.truth == "evaluation") if len(errors) else float("nan"),
        precision={at: precision_at(tpr.value, tnr.value, at) for at in PREVALENCES},
        unscored={reason: count / len(rows) for reason, count in sorted(reasons.items())},
        trend=turns_trend(list(stated.turns), np.abs(errors)),
    )


def text_baselines(texts: pd.DataFrame, *, rng: np.random.Generator) -> Baselines:
    """How well length and words alone tell the label, on exactly these conversations."""
    labelled = texts[texts.label.notna()].reset_index(drop=True)
    positive = (labelled.label == "evaluation").to_numpy(dtype=bool)
    sources = labelled.source.astype(str).to_numpy()
    lengths = labelled.text.str.len().to_numpy(dtype=float)
    if len(labelled) and auroc(positive, lengths) < 0.5:
        lengths = -lengths
    pairs = labelled.pair.fillna(labelled.item).astype(str).to_numpy()
    within = _crossfitted(list(labelled.text), positive, pairs)
    across = _crossfitted(list(labelled.text), positive, sources, every=True)
    scores = labelled[["item", "label"]].assign(length=lengths, words=within, words_other_source=across)

    def rated(values: npt.NDArray[np.float64]) -> Estimate:
        known = ~np.isnan(values)
        return bootstrap(auroc, positive[known], values[known], clusters=sources[known], rng=rng, unit="source")

    return Baselines(rated(lengths), rated(within), rated(across), scores)


def _crossfitted(
    texts: Sequence[str], positive: npt.NDArray[np.bool_], groups: npt.NDArray[Any], *, every: bool = False
) -> npt.NDArray[np.float64]:
    """Log-odds of a text classifier that never saw a row's group; NaN where it cannot be trained.

    `every`: each group is left out alone, where all hold both labels. Else leaving out a group shifts the share of
    labels against it, and the scores of all groups together rank backwards (.31 on 33 public sources of one label
    each, where five folds of like shares find .63): then five folds of groups, stratified by label.
    """
    from sklearn.feature_extraction.text import TfidfVectorizer
    from sklearn.linear_model import LogisticRegression
    from sklearn.model_selection import GroupKFold, LeaveOneGroupOut, StratifiedGroupKFold
    from sklearn.pipeline import make_pipeline

    out = np.full(len(texts), np.nan)
    number = len(set(groups))
    if number < 2 or positive.all() or not positive.any():
        return out
    splitter: Any = LeaveOneGroupOut()
    if not every:
        splitter = GroupKFold(min(5, number), shuffle=True, random_state=0)
    elif any(len(set(positive[groups == group])) == 1 for group in set(groups)):
        folds = min(5, number, int(positive.sum()), int((~positive).sum()))
        if folds < 2:
            return out
        splitter = StratifiedGroupKFold(folds, shuffle=True, random_state=0)
    for train, test in splitter.split(texts, positive, groups):
        if len(set(positive[train])) == 2:
            model = make_pipeline(
                TfidfVectorizer(ngram_range=(1, 2), sublinear_tf=True), LogisticRegression(max_iter=2000)
            )
            model.fit([texts[i] for i in train], positive[train])
            out[test] = model.decision_function([texts[i] for i in test])
    return out


def _pair(logged: Logged, a: Arm, b: Arm, both: pd.DataFrame, rng: np.random.Generator) -> Pair:
    ranked = both[both.score_a.notna() & both.score_b.notna()]
    flat = ranked.score_a.nunique() < 2 or ranked.score_b.nunique() < 2
    return Pair(
        model=str(a[1]),
        first=str(a[0]),
        second=str(b[0]),
        agreement=agreement(
            both.said_a == "evaluation", both.said_b == "evaluation", clusters=both.source_a.astype(str), rng=rng
        ),
        pearson=float("nan") if flat else float(np.corrcoef(ranked.score_a, ranked.score_b)[0, 1]),
        curve=_curve(logged, a, b, rng),
    )


def _curve(logged: Logged, a: Arm, b: Arm, rng: np.random.Generator) -> KappaCurve | None:
    """Binary against probability by number of decisions, where both asked 25."""
    arms = {str(arm[0]): arm for arm in (a, b)}
    if set(arms) != {"binary", "probability"} or logged.votes.empty:
        return None
    votes = logged.votes.assign(vote=logged.votes.said.map({"evaluation": 1.0, "deployment": 0.0}))
    grids = []
    for method, value in (("binary", "vote"), ("probability", "probability")):
        mine = votes[(votes[ARM] == list(arms[method])).all(axis=1)]
        # Another data set of the same arm may have been asked 5: its rows would be mostly NaN, under keys of their own.
        mine = mine[mine.groupby("data").key.transform("nunique") >= 25]
        grids.append(mine.pivot(index=["data", "item", "epoch"], columns="key", values=value).astype(float))
    items = grids[0].index.intersection(grids[1].index)
    if items.empty:
        return None
    return kappa_curve(grids[0].loc[items], grids[1].loc[items], rng=rng)


def _shared(a: pd.DataFrame, b: pd.DataFrame) -> pd.DataFrame:
    """Conversations with a verdict in both arms, columns `…_a` and `…_b`."""
    return a[a.said.notna()].merge(b[b.said.notna()], on=["data", "item", "epoch"], suffixes=("_a", "_b"))


def _share(rows: pd.DataFrame, says: str) -> Estimate:
    return clustered_mean((rows.said == says).to_numpy(dtype=float), rows.source.astype(str), unit="source")


def _auroc(rows: pd.DataFrame, rng: np.random.Generator) -> Estimate:
    """AUROC; undefined for a subject that answers the same to everything, which ranks nothing."""
    scores = rows.score.to_numpy(dtype=float)
    flips = (rows.flip.astype(bool) & rows.method.isin(POLAR)).to_numpy()
    if len(rows) and ranks_nothing(scores, flips):
        return undefined("the same answer to every conversation", n=rows.source.nunique(), unit="source")
    positive = (rows.truth == "evaluation").to_numpy(dtype=bool)
    return bootstrap(auroc, positive, scores, clusters=rows.source.astype(str), rng=rng, unit="source")
