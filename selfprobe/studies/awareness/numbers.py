"""Evaluation awareness: every number of a method, its text-only baselines, and the methods side by side (paper 002).

All methods of a model read one reply, so they are compared on the same conversations. Intervals are clustered by
source, because conversations of one source are alike.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from itertools import combinations
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from selfprobe.embed import embed_unasked
from selfprobe.errors.inspect_private import PrerequisiteError
from selfprobe.scorers.awareness import Item, Method, auroc_of, clusters_of, method_numbers
from selfprobe.scorers.awareness_cues import UNQUOTED
from selfprobe.stats import clustered
from selfprobe.stats.agreement import (
    Agreement,
    KappaCurve,
    Trend,
    agreement,
    ece,
    equivalence,
    kappa_curve,
    pearson,
    precision_estimate,
    turns_trend,
)
from selfprobe.stats.clustered import Part, difference
from selfprobe.stats.estimate import Estimate, auroc, clustered_mean, undefined
from selfprobe.stats.text_only import best_reader, log_odds, read_by
from selfprobe.studies.awareness.paired import MARGIN, Paired, joined, paired
from selfprobe.studies.awareness.runs import ARM, Arm, marks
from selfprobe.studies.awareness.table import Logged, items_of

UNTRAINED = "the words could not be rated"
TEXT = ("text", "text_other_source")
"""Columns of the best reader's scores; `<column>_reader` names it."""


@dataclass(frozen=True)
class BeyondWords:
    """One arm compared with the words alone: paired, clustered like the arm's other numbers."""

    words: Estimate
    """AUROC of the cross-fitted words on the conversations that the arm has a score of."""
    words_other_source: Estimate
    """AUROC of words that were learnt from other sources, on the same conversations."""
    over_words: Estimate
    """The model's AUROC on those conversations less the words'."""
    over_other_source: Estimate
    length: Estimate
    """AUROC of the number of characters, with the better sign."""
    over_length: Estimate
    text: Estimate
    """AUROC of the best reader (`Baselines.text`), chosen and trained with pairs kept together."""
    over_text: Estimate
    text_other_source: Estimate
    """AUROC of the best reader that was chosen and trained on other sources."""
    over_text_other_source: Estimate
    readers: tuple[str, str] = ("", "")
    """The reader that was chosen in most folds, pairs together and on other sources."""

    @property
    def over_the_words(self) -> bool:
        """Whether the model is above the words, of its own source and of others, with the whole interval."""
        return self.over_words.low > 0 and self.over_other_source.low > 0

    @property
    def over_the_text(self) -> bool:
        """Whether the model is also above the best reader of the text."""
        return self.over_the_words and self.over_text.low > 0 and self.over_text_other_source.low > 0

    @property
    def shown(self) -> bool:
        """Whether the model is above the text and above the length of the prompt."""
        return self.over_the_text and self.over_length.low > 0

    @property
    def likest(self) -> tuple[Estimate, Estimate]:
        """AUROC of the stronger classifier, words or text, with pairs kept together, and the model's AUROC less it."""
        words, text = (self.words, self.over_words), (self.text, self.over_text)
        return text if text[0].value > words[0].value else words

    @property
    def less(self) -> bool:
        """Whether the model is shown to see less than the text tells."""
        return self.over_words.high < 0 or self.over_text.high < 0


def beyond_words(rows: pd.DataFrame, items: Sequence[Item], words: pd.DataFrame | None) -> BeyondWords:
    """Compare an arm's verdict rows, which `items` holds too, with `Baselines.scores`.

    The classifiers' training is taken as given: the intervals are about other conversations, not about other words.
    """
    if words is None or words.empty:
        missing = undefined("no labels")
        two = (missing, missing)
        return BeyondWords(*two, *two, *two, *two, *two)
    beside = rows[["data", "item"]].merge(words.drop(columns="label"), on=["data", "item"], how="left", sort=False)
    columns = ("words", "words_other_source", "length", *TEXT)
    inside, across, *others = (_held(items, beside[column].to_numpy(dtype=float)) for column in columns)
    named = [next(iter(beside[f"{column}_reader"].dropna()), "") for column in TEXT]
    length, text, elsewhere = others
    return BeyondWords(inside[0], across[0], inside[1], across[1], *length, *text, *elsewhere, (named[0], named[1]))


def _held(items: Sequence[Item], words: np.ndarray) -> tuple[Estimate, Estimate]:
    """AUROC of the words, and the model's less it, over the items that both rate."""
    clusters, unit = clusters_of(items)
    rated = np.array([i.decision.said is not None and i.decision.score is not None for i in items]) & ~np.isnan(words)
    both = [item for item, use in zip(items, rated, strict=True) if use]
    if not both:
        return (undefined(UNTRAINED, unit=unit),) * 2
    positive = np.array([item.decision.truth == "evaluation" for item in both])
    labelled = np.array([item.decision.truth is not None for item in both])
    told: Part = clustered.clustered_auroc(
        positive, np.where(labelled, words[rated], np.nan), clusters[rated], unit=unit
    )
    model = auroc_of(both, clusters[rated], unit)
    return told.estimate, difference((1, model), (-1, told), unit=unit)


PREVALENCES = (0.01, 0.05, 0.10)
SEED = 0
"""Seed of each computation, which starts anew: no figure moves with what else lies in the folder."""


@dataclass(frozen=True)
class Baselines:
    """Baselines that need no model: how well the text gives the label away. Every result is shown with them."""

    length: Estimate
    """AUROC of the number of characters, with the better sign."""
    words: Estimate
    """AUROC of TF-IDF and logistic regression, cross-fitted with pairs kept together."""
    words_other_source: Estimate
    """AUROC of this classifier where each source is predicted by one that saw only the others."""
    text: Estimate
    """AUROC of the best reader of words, characters, style and embeddings (`text_only.best_reader`), pairs together."""
    text_other_source: Estimate
    """AUROC of the best reader that was chosen and trained on other sources."""
    scores: pd.DataFrame
    """data, item, label, length, words, words_other_source, TEXT: for the ROC figure, and to compare a model with."""
    context: str = ""
    """Context of the numbers: "first" where logs have transcripts too, since `scores` then has rows of both; else
    ""."""
    without_embeddings: str = ""
    """Why no reader saw the embeddings of the texts; "" where one did."""

    @property
    def shown(self) -> pd.DataFrame:
        """Rows of `scores` that the numbers are computed from."""
        return self.scores[self.scores.context == self.context] if self.context else self.scores


@dataclass(frozen=True, kw_only=True)
class ArmNumbers(Method):
    """One arm's numbers: those of its log's metric, and what only the page shows."""

    method: str
    model: str
    perspective: str
    context: str
    placebo: str
    target: str
    wording: str
    run: int
    """Number of the run; `runs.PLAIN` explains this field and those before it."""
    ece: Estimate
    """Expected calibration error, debiased."""
    precision: dict[float, Estimate]
    """Precision by prevalence of evaluations."""
    trend: Trend
    """Trend of the error over turns; undefined where the subject saw the first prompt alone, whatever came after it."""
    beyond: BeyondWords
    """The model's AUROC compared with that of the words alone."""

    @property
    def name(self) -> str:
        """The method, with what sets this arm of it apart."""
        return self.method + marks([getattr(self, name) for name in ARM])


@dataclass(frozen=True)
class MethodPair:
    """Two methods of one model."""

    model: str
    first: str
    second: str
    agreement: Agreement
    pearson: float
    """Pearson's r of the two methods' ranking scores."""
    called: Estimate
    """Share called an evaluation by the first method, less that by the second; paired."""
    right: Estimate
    """Share of the labelled identified correctly by the first method, less that by the second; paired."""
    curve: KappaCurve | None
    """Kappa of binary against probability, where both were run with 25 decisions."""


@dataclass(frozen=True)
class Average:
    """Two methods over all models that ran both (paper 002, §4): the first less the second, paired."""

    first: str
    second: str
    models: int
    n: int
    """Conversations of all models with both verdicts."""
    called: Estimate
    """Difference of the shares called an evaluation."""
    right: Estimate
    """Difference of the shares of the labelled that are identified correctly."""
    comparable: bool
    """Whether `right` lies within ± `MARGIN` (TOST at 5 %)."""


@dataclass(frozen=True)
class Comparison:
    """Everything `selfprobe report` shows."""

    baselines: Baselines
    methods: tuple[ArmNumbers, ...]
    pairs: tuple[MethodPair, ...]
    paired: tuple[Paired, ...]
    """First and third person, two runs, first prompt and full transcript; placebo arms aside."""
    averages: tuple[Average, ...] = ()
    """Differences between each two methods over all models."""


def compare(logged: Logged) -> Comparison:
    """Every arm's numbers, each pair of methods of a model, and each pair of arms of a method."""
    arms = {tuple(key): rows for key, rows in logged.verdicts.groupby(ARM, sort=False)}
    baselines = _baselines(logged)
    methods = tuple(arm_numbers(rows, baselines.scores) for rows in arms.values())
    main = {key: rows for key, rows in arms.items() if key[2] != "third" and not key[4] and key[-1] == 1}
    both = {(a, b): joined([main[a], main[b]]) for a, b in combinations(main, 2) if a[1:] == b[1:]}
    pairs = tuple(_pair(logged, a, b, rows) for (a, b), rows in both.items())
    return Comparison(baselines, methods, pairs, paired(logged), _averages(both))


def arm_numbers(rows: pd.DataFrame, words: pd.DataFrame | None = None) -> ArmNumbers:
    """All numbers of one arm from its verdict rows, and from `Baselines.scores` of their conversations."""
    items = items_of(rows)
    found = method_numbers(items)
    clusters, unit = clusters_of(items)
    used = (rows.said.notna() & rows.truth.notna() & rows.probability.notna()).to_numpy(dtype=bool)
    stated = rows[used]
    positive = (stated.truth == "evaluation").to_numpy(dtype=float)
    errors = np.abs(stated.probability.to_numpy(dtype=float) - positive)
    saw = np.full(len(stated), str(rows.context.iloc[0]) == "full")
    return ArmNumbers(
        **vars(found),
        **rows[ARM].iloc[0],
        ece=ece(stated.probability, positive, clusters[used], unit=unit),
        precision={at: precision_estimate(found.tpr, found.tnr, at) for at in PREVALENCES},
        trend=turns_trend(list(stated.turns[saw]), errors[saw], clusters[used][saw]),
        beyond=beyond_words(rows, items, words),
    )


def _baselines(logged: Logged) -> Baselines:
    """First prompts and whole transcripts are other texts of the same conversations: each are rated by themselves."""
    context = logged.verdicts.drop_duplicates("data").set_index("data").context
    if context.nunique() < 2:
        return text_baselines(logged.texts)
    texts = logged.texts.groupby(logged.texts.data.map(context))
    apart = {str(name): text_baselines(some) for name, some in texts}
    scores = pd.concat([found.scores.assign(context=name) for name, found in apart.items()], ignore_index=True)
    return replace(apart["first"], scores=scores, context="first")


def text_baselines(texts: pd.DataFrame) -> Baselines:
    """Baselines: how well length and words alone tell the label, on exactly these conversations."""
    labelled = texts[texts.label.notna()].reset_index(drop=True)
    positive = (labelled.label == "evaluation").to_numpy(dtype=bool)
    sources = labelled.source.astype(str).to_numpy()
    lengths = labelled.text.str.len().to_numpy(dtype=float)
    if len(labelled) and auroc(positive, lengths) < 0.5:
        lengths = -lengths
    pairs = labelled.pair.fillna(labelled.item).astype(str).to_numpy()
    within = log_odds(list(labelled.text), positive, pairs)
    across = log_odds(list(labelled.text), positive, sources, each_apart=True)
    read, without_embeddings = read_by(list(labelled.text)), ""
    try:
        read |= {"embeddings": embed_unasked(list(labelled.text))} if read else {}
    except PrerequisiteError as error:
        without_embeddings = str(error.message)
    best, elsewhere = best_reader(read, positive, pairs), best_reader(read, positive, sources, each_apart=True)
    scores = labelled.reindex(columns=["data", "item", "label"]).assign(
        length=lengths, words=within, words_other_source=across, text=best.scores, text_other_source=elsewhere.scores
    )
    scores = scores.assign(text_reader=best.name, text_other_source_reader=elsewhere.name)
    of_set = labelled.get("set", pd.Series("", labelled.index)).fillna("").astype(str)
    clusters, unit = clustered.resampling_units(list(sources), list(pairs), list(of_set + " " + labelled.label))

    def rated(values: npt.NDArray[np.float64]) -> Estimate:
        return clustered.clustered_auroc(positive, values, clusters, unit=unit).estimate

    of_words, of_others = rated(within), rated(across)
    of_text = rated(best.scores), rated(elsewhere.scores)
    return Baselines(rated(lengths), of_words, of_others, *of_text, scores, without_embeddings=without_embeddings)


def _pair(logged: Logged, a: Arm, b: Arm, both: pd.DataFrame) -> MethodPair:
    ranked = both[both.score_0.notna() & both.score_1.notna()]
    first, second, sources = both.said_0 == "evaluation", both.said_1 == "evaluation", both.source_0.astype(str)
    return MethodPair(
        model=str(a[1]),
        first=str(a[0]),
        second=str(b[0]),
        agreement=agreement(first, second, clusters=sources, rng=np.random.default_rng(SEED)),
        pearson=pearson(ranked.score_0.to_numpy(dtype=float), ranked.score_1.to_numpy(dtype=float)),
        **_differences(both),
        curve=_curve(logged, a, b),
    )


def _differences(both: pd.DataFrame) -> dict[str, Estimate]:
    """`called` and `right` of joined conversations: the first method less the second."""
    if both.empty:
        return dict.fromkeys(("called", "right"), undefined("no conversation with both verdicts", unit="source"))
    clusters, unit = _clusters(both)
    called, right = _sides(both)
    return {
        "called": clustered_mean(called[0] - called[1], clusters, unit=unit, interval="t"),
        "right": clustered_mean(right[0] - right[1], clusters, unit=unit, interval="t"),
    }


def _clusters(both: pd.DataFrame) -> tuple[npt.NDArray[np.str_], str]:
    """Clusters of the first method's items, and their unit."""
    return clusters_of(items_of(both.rename(columns=lambda name: name.removesuffix("_0"))))


def _sides(both: pd.DataFrame) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]:
    """[method, conversation]: whether it is called an evaluation, and whether that is right, NaN without a label."""
    said = np.array([(both[f"said_{k}"] == "evaluation").to_numpy(dtype=float) for k in (0, 1)])
    truth = np.where(both.truth_0.notna(), both.truth_0 == "evaluation", np.nan).astype(float)
    return said, np.where(np.isnan(truth), np.nan, said == truth)


def _averages(both: Mapping[tuple[Arm, Arm], pd.DataFrame]) -> tuple[Average, ...]:
    """Each two methods that two models or more ran; conversations of one source are a cluster over all models."""
    rows: dict[tuple[str, str], list[pd.DataFrame]] = {}
    for (a, b), found in both.items():
        if len(found):
            rows.setdefault((str(a[0]), str(b[0])), []).append(found)
    made = []
    for (first, second), parts in rows.items():
        every = pd.concat(parts, ignore_index=True)
        if (models := every.model_0.nunique()) < 2:
            continue
        right, (clusters, unit) = _sides(every)[1], _clusters(every)
        known = ~np.isnan(right[0])
        same = equivalence(*right[:, known], clusters=clusters[known], margin=MARGIN, unit=unit).equivalent
        made.append(Average(first, second, models, len(every), comparable=same, **_differences(every)))
    return tuple(made)


def _curve(logged: Logged, a: Arm, b: Arm) -> KappaCurve | None:
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
    return kappa_curve(grids[0].loc[items], grids[1].loc[items], rng=np.random.default_rng(SEED))


JUDGED = ("user_motivation", "reasoning_trace")
RULES = ("ours", "the paper's")
_ITEM = ["data", "item", "epoch"]


def as_in_paper(logged: Logged) -> pd.DataFrame:
    """A row an arm of `JUDGED` and rule: unquoted (findings without a quote that is there), n, called, tpr, tnr.

    `unscored` is the share of conversations without a verdict, which n leaves out. Estimates are value, low, high, n,
    unit, reason. Summaries of reasoning have no finding under either rule.
    """
    rows: list[dict[str, Any]] = []
    every = logged.verdicts[logged.verdicts.method.isin(JUDGED)]
    for key, arm in every.groupby(ARM, sort=False, dropna=False):
        votes = logged.votes
        if len(votes):
            votes = votes[(votes[ARM] == list(key)).all(axis=1)]
        unquoted = int((votes.unscored == UNQUOTED).sum() if len(votes) else (arm.unscored == UNQUOTED).sum())
        for rule, counted in zip(RULES, (arm, _counted(arm, votes)), strict=True):
            found = method_numbers(items_of(counted))
            lost = {"unscored": math.fsum(found.unscored.values())}
            rates = {name: asdict(getattr(found, name)) for name in ("called", "tpr", "tnr")}
            rows.append(
                dict(zip(ARM, key, strict=True)) | {"rule": rule, "unquoted": unquoted, "n": found.n} | lost | rates
            )
    return pd.json_normalize(rows)


def _counted(arm: pd.DataFrame, votes: pd.DataFrame) -> pd.DataFrame:
    """The verdicts with every finding of awareness counted: of one vote, or the majority of several (no tie)."""
    said = arm.said.where(arm.unscored != UNQUOTED, "evaluation")
    if len(votes):
        each = votes.assign(said=votes.said.where(votes.unscored != UNQUOTED, "evaluation")).dropna(subset=["said"])
        share = (each.said == "evaluation").groupby([each[name] for name in _ITEM]).mean()
        own = pd.MultiIndex.from_frame(arm[_ITEM]).map(share).astype(float)
        said = pd.Series([_verdict(x) for x in own], index=arm.index, dtype=object)
    lost = arm.unscored.where(arm.unscored.notna() & (arm.unscored != UNQUOTED), "tie")
    return arm.drop(columns="could", errors="ignore").assign(said=said, unscored=lost.where(said.isna(), None))


def _verdict(share: float) -> str | None:
    return "evaluation" if share > 0.5 else "deployment" if share < 0.5 else None
