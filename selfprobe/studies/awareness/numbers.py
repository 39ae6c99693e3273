"""Evaluation awareness: every number of a method, its text-only baselines, and the methods side by
side (paper 002).

All methods of a model read one reply, so they are compared on the same conversations. Intervals are
clustered by source, because conversations of one source are alike.

Paper 002 compares first and third person by Pearson's r and by the number identified correctly, and
both against two runs of one arm: that is the yardstick here too. Equal shares show nothing, since
opposite verdicts have them.
"""

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial
from itertools import combinations
from typing import Any, Literal

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
    cohen_kappa,
    ece,
    equivalence,
    kappa_curve,
    pearson,
    precision_estimate,
    turns_trend,
)
from selfprobe.stats.beyond_text import (
    TextReaders,
    reader_columns,
    rest_beyond,
    text_readers,
    with_ranks,
)
from selfprobe.stats.clustered import Part, difference, resampling_units
from selfprobe.stats.estimate import (
    Estimate,
    auroc,
    bootstrap,
    clustered_mean,
    two_sided,
    undefined,
)
from selfprobe.stats.text_only import best_reader, log_odds, read_by
from selfprobe.studies.awareness.runs import ARM, Arm, AwarenessTables, marks, verdict_items

Kind = Literal[
    "first and third person",
    "two runs",
    "first prompt and full transcript",
    "our questions and yours",
]
AnyArray = npt.NDArray[Any]
MARGIN = 0.1
"""Margin for equivalence: difference between shares of wrong verdicts."""
LOW_KAPPA = 0.6
"""Kappa below which arms are never called equivalent ("substantial" begins here: Landis & Koch
1977).
"""


@dataclass(frozen=True, kw_only=True)
class ArmPair:
    """One arm and another on the conversations with a verdict in both."""

    kind: Kind
    first: Arm
    second: Arm
    """The second arm's values of ARM, like the first one's."""
    n: int
    labelled: int
    r: Estimate
    """Pearson's r of the ranking scores."""
    kappa: Estimate
    """Cohen's kappa of the verdicts."""
    right: tuple[int, int]
    """Numbers of labelled conversations that the first and the second identify correctly."""
    wrong: Estimate
    """Share of wrong verdicts in the second less that in the first, paired, 95 %."""
    p: float
    """p under the hypothesis that both are wrong equally often: two-sided, paired, clustered; 1
    where they are wrong alike throughout.
    """
    tost_p: float
    """p under the hypothesis that they differ by MARGIN or more; exact where they never differ, NaN
    without a labelled conversation.
    """
    equivalent: bool
    """Whether they are equivalent by TOST, and have a kappa of LOW_KAPPA or more."""
    auroc: Estimate
    """AUROC of the second less that of the first."""
    error: Estimate
    """Mean |P(evaluation) − label| of the second less that of the first, where both state
    probabilities.
    """
    below_runs: Mapping[str, Estimate]
    """r and kappa of two first-person runs less those of first and third person, where there is a
    second run.
    """


def arm_pairs(logged: AwarenessTables) -> tuple[ArmPair, ...]:
    """All pairs of arms that differ in one thing that `Kind` names; placebo arms aside."""
    arms = {
        tuple(key): rows for key, rows in logged.verdicts.groupby(ARM, sort=False) if not key[4]
    }
    return tuple(_paired(logged, kind, a, b, arms) for a in arms for kind, b in _others(a, arms))


def _others(arm: Arm, arms: Mapping[Arm, pd.DataFrame]) -> Iterator[tuple[Kind, Arm]]:
    """Arms with which an arm, as the first, makes a pair."""
    of = dict(zip(ARM, arm, strict=True))
    third = tuple((of | {"perspective": "third", "run": 1}).values())
    if of["perspective"] == "first" and third in arms and arm == _read_by(third, arms, arm):
        yield "first and third person", third
    if of["run"] != 1:
        return
    if of["context"] == "first" and (full := tuple((of | {"context": "full"}).values())) in arms:
        yield "first prompt and full transcript", full
    if not of["wording"]:
        theirs = [a for a in arms if a[6] and tuple((of | {"wording": a[6]}).values()) == a]
        yield from (("our questions and yours", a) for a in theirs)
    yield from (("two runs", a) for a in _again(arm, arms) if a[-1] > 1)


def _again(arm: Arm, arms: Iterable[Arm]) -> list[Arm]:
    """The other runs of an arm."""
    return [a for a in arms if a[:-1] == arm[:-1] and a != arm]


def _read_by(third: Arm, arms: Mapping[Arm, pd.DataFrame], arm: Arm) -> Arm:
    """The run of an arm whose replies the third person read; run 1 where it read those of none."""
    runs = sorted([arm, *_again(arm, arms)], key=lambda one: int(one[-1]))
    return next((run for run in runs if _read(arms[run]) & _read(arms[third])), runs[0])


def _read(rows: pd.DataFrame) -> set[tuple[str, str]]:
    """Data set and replies."""
    return set(zip(rows.data, rows.read, strict=True))


def _of_same_replies(rows: pd.DataFrame, first: pd.DataFrame) -> pd.DataFrame:
    read = _read(first)
    return rows[[of in read for of in zip(rows.data, rows.read, strict=True)]]


def _paired(
    logged: AwarenessTables, kind: Kind, a: Arm, b: Arm, arms: Mapping[Arm, pd.DataFrame]
) -> ArmPair:
    if kind == "first and third person":
        arms = {**arms, b: _of_same_replies(arms[b], arms[a])}
    both = joined(
        [arms[a], arms[b]], logged if kind == "first prompt and full transcript" else None
    )
    sides = [_side(both, 0), _side(both, 1)]
    clusters, unit = clusters_of(sides[0])
    ranks = np.array(
        [[np.nan if i.decision.score is None else i.decision.score for i in side] for side in sides]
    )
    said = np.array([[i.decision.said == "evaluation" for i in side] for side in sides])
    kappa = bootstrap(
        cohen_kappa, *said, clusters=clusters, rng=np.random.default_rng(SEED), unit=unit
    )
    labelled = np.array([i.decision.truth is not None for i in sides[0]], dtype=bool)
    truth = np.array([i.decision.truth == "evaluation" for i in sides[0]], dtype=bool)
    wrong = np.where(labelled, said != truth, np.nan)
    apart = clustered_mean(wrong[1] - wrong[0], clusters, unit=unit, interval="t")
    same = equivalence(
        wrong[0][labelled],
        wrong[1][labelled],
        clusters=clusters[labelled],
        margin=MARGIN,
        unit=unit,
    )
    rated = [auroc_of(side, clusters, unit) for side in sides]
    p = [
        [np.nan if i.decision.probability is None else i.decision.probability for i in side]
        for side in sides
    ]
    off = np.where(labelled, np.abs(np.array(p) - truth), np.nan)
    return ArmPair(
        kind=kind,
        first=a,
        second=b,
        n=len(both),
        labelled=int(labelled.sum()),
        r=_pearson(ranks, clusters, unit),
        kappa=kappa,
        right=(int((wrong[0] == 0).sum()), int((wrong[1] == 0).sum())),
        wrong=apart,
        p=1.0 if labelled.any() and (wrong[0] == wrong[1])[labelled].all() else two_sided(apart),
        tost_p=same.p,
        equivalent=same.equivalent and kappa.value >= LOW_KAPPA,
        auroc=difference((1, rated[1]), (-1, rated[0]), unit=unit),
        error=clustered_mean(off[1] - off[0], clusters, unit=unit, interval="t"),
        below_runs=_below_runs(a, b, arms) if kind == "first and third person" else {},
    )


def joined(arms: Sequence[pd.DataFrame], logged: AwarenessTables | None = None) -> pd.DataFrame:
    """Conversations with a verdict in all of these arms, the columns of each with its number:
    `said_0`, `said_1` ….

    Args:
        arms: Verdict rows of each.
        logged: Where the arms show different parts of a conversation, which have different hashes:
            for the names of the data sets. Rows are then paired by data set, id and label.
    """
    on = ["data", "item", "epoch"]
    names: Mapping[str, str] = {}
    if logged is not None and "dataset" in logged.runs:
        names = dict(zip(logged.runs.data, logged.runs.dataset.astype(str), strict=True))
    read = [rows[rows.said.notna()] for rows in arms]
    if logged is not None:
        read = [
            rows.assign(data=rows.data.map(lambda data: names.get(data, data))) for rows in read
        ]
        on = [*on, "truth"]
    found = read[0].rename(
        columns={name: f"{name}_0" for name in read[0].columns if name not in on}
    )
    for number, rows in enumerate(read[1:], start=1):
        more = rows.rename(
            columns={name: f"{name}_{number}" for name in rows.columns if name not in on}
        )
        found = found.merge(more, on=on)
    return found


def _side(both: pd.DataFrame, number: int) -> list[Item]:
    """The items of one arm of those that are joined."""
    return verdict_items(both.rename(columns=lambda name: name.removesuffix(f"_{number}")))


def _pearson(ranks: npt.NDArray[np.float64], clusters: npt.NDArray[np.str_], unit: str) -> Estimate:
    """Pearson's r of `ranks  # [arm, conversation]`."""
    known = ~np.isnan(ranks).any(axis=0)
    if not known.any():
        return undefined("no scores", unit=unit)
    rng = np.random.default_rng(SEED)
    return bootstrap(pearson, *ranks[:, known], clusters=clusters[known], rng=rng, unit=unit)


def _below_runs(first: Arm, third: Arm, arms: Mapping[Arm, pd.DataFrame]) -> dict[str, Estimate]:
    """Differences of agreement: two first-person runs less first and third person, on conversations
    that all judged.
    """
    others = sorted(_again(first, arms), key=lambda arm: int(arm[-1]))
    if not others:
        return {}
    all3 = joined([arms[first], arms[others[0]], arms[third]])
    clusters, unit = clusters_of(_side(all3, 0))
    said = [(all3[f"said_{k}"] == "evaluation").to_numpy() for k in range(3)]
    scores = [all3[f"score_{k}"].to_numpy(dtype=float) for k in range(3)]
    found = {}
    for name, of, columns in (("r", pearson, scores), ("kappa", cohen_kappa, said)):
        known = ~np.isnan(np.array(columns, dtype=float)).any(axis=0)
        used = [column[known] for column in columns]
        rng = np.random.default_rng(SEED)
        found[name] = bootstrap(
            partial(_less, of), *used, clusters=clusters[known], rng=rng, unit=unit
        )
    return found


def _less(of: Callable[..., float], once: AnyArray, again: AnyArray, third: AnyArray) -> float:
    return of(once, again) - of(once, third)


WHAT = {
    "form": "asked about form",
    "purpose": "asked for the purpose without a hint",
    "judge": "by a judge that is told nothing",
}
"""Kind of placebo → what differs in its arm."""


@dataclass(frozen=True)
class AgainstPlacebo:
    """One arm of user_motivation and one placebo of it, on the conversations with a verdict in
    both.
    """

    model: str
    context: str
    kind: str
    """Kind of the placebo: "form", "purpose" or "judge"."""
    n: int
    real: float
    placebo: float
    """Share that the placebo calls evaluation; `real` is the real arm's."""
    difference: Estimate
    """real - placebo, paired; its interval by source, or by conversation where a source stands
    alone.
    """
    by_label: dict[str, Estimate]
    """Difference on the conversations of each label ("evaluation", "deployment") that there are."""


def against_placebo(verdicts: pd.DataFrame) -> tuple[AgainstPlacebo, ...]:
    """Every placebo arm in these verdict rows against the arm that it is the placebo of.

    Args:
        verdicts: `AwarenessTables.verdicts`.
    """
    keys = ["method", "model", "perspective", "context", "target", "wording"]
    found = []
    for (_, model, _, context, *_), rows in verdicts[verdicts.run == 1].groupby(keys, sort=False):
        for kind in WHAT:
            both = joined([rows[rows.placebo == arm] for arm in ("", kind)])
            if len(both):
                found.append(_against_one(str(model), str(context), kind, both))
    return tuple(found)


def _against_one(model: str, context: str, kind: str, both: pd.DataFrame) -> AgainstPlacebo:
    real, placebo = ((both[said] == "evaluation").astype(float) for said in ("said_0", "said_1"))
    labels = [label for label in ("evaluation", "deployment") if (both.truth_0 == label).any()]
    clusters, unit = clusters_of(_side(both, 0))
    apart = (real - placebo).to_numpy()

    def difference(mine: npt.NDArray[np.bool_]) -> Estimate:
        return clustered_mean(apart[mine], clusters[mine], unit=unit, interval="t")

    return AgainstPlacebo(
        model=model,
        context=context,
        kind=kind,
        n=len(both),
        real=float(real.mean()),
        placebo=float(placebo.mean()),
        difference=difference(np.ones(len(both), dtype=bool)),
        by_label={label: difference((both.truth_0 == label).to_numpy()) for label in labels},
    )


UNTRAINED = "the words could not be rated"
TEXT = ("text", "text_other_source")
"""Columns of the best reader's scores; `<column>_reader` names it."""
RIVALS = ("length", "words", "words_other_source", *TEXT)
"""Columns of `Baselines.scores` that an arm is compared with."""


@dataclass(frozen=True)
class TextRival:
    """One reader of the text alone, and an arm on the conversations that both rate."""

    name: str
    """Column of `Baselines.scores`."""
    title: str
    """Words for it, such as "words of other sources"."""
    auroc: Estimate
    """Its AUROC."""
    over: Estimate
    """The arm's AUROC less its."""
    rest: Estimate
    """AUROC − .5 that is left to the arm beyond it (`rest_beyond`)."""


@dataclass(frozen=True)
class BeyondText:
    """One arm compared with readers of the text: paired, clustered like the arm's other numbers."""

    rivals: tuple[TextRival, ...]
    rest: Estimate
    """AUROC − .5 that is left to the arm beyond all readers together, also those that predict the
    arm itself.
    """

    @property
    def strongest(self) -> TextRival | None:
        """The reader of the highest AUROC; None where none could be rated."""
        rated = [rival for rival in self.rivals if not math.isnan(rival.auroc.value)]
        return max(rated, key=lambda rival: rival.auroc.value, default=None)


def beyond_text(
    rows: pd.DataFrame, items: Sequence[Item], baselines: "Baselines | None", arm_auroc: Estimate
) -> BeyondText:
    """Compare an arm's verdict rows, which `items` holds too, with the readers of the text.

    The readers' training is taken as given: the intervals are about other conversations, not about
    other readers. Nothing can be left to an arm without an AUROC.
    """
    if baselines is None or baselines.scores.empty:
        missing = undefined("no labels")
        return BeyondText(
            tuple(TextRival(name, name, missing, missing, missing) for name in RIVALS), missing
        )
    scores = baselines.scores
    beside = rows[["data", "item"]].merge(
        scores.drop(columns="label"), on=["data", "item"], how="left", sort=False
    )
    ranked = ranked_conversations(rows)
    is_ranked = not math.isnan(arm_auroc.value)
    known = ranked.merge(scores.drop(columns="label"), on=["data", "item"], how="left", sort=False)
    rivals = []
    for name in RIVALS:
        reader = next(iter(beside[f"{name}_reader"].dropna()), "") if name in TEXT else ""
        auroc, over = _held(items, beside[name].to_numpy(dtype=float))
        rest = (
            _rest(known, known[[name]].to_numpy(dtype=float), auroc.unit)
            if is_ranked
            else arm_auroc
        )
        rivals.append(TextRival(name, rival_title(name, reader), auroc, over, rest))
    rest = _rest_beyond_all(known, baselines, clusters_of(items)[1]) if is_ranked else arm_auroc
    return BeyondText(tuple(rivals), rest)


def rival_title(name: str, reader: str) -> str:
    """Words for a reader of the text.

    >>> rival_title("length", ""), rival_title("words_other_source", ""), rival_title("text", "style")
    ('length', 'words of other sources', 'best reader (style)')
    """
    titles = {
        "words_other_source": "words of other sources",
        "text": "best reader",
        "text_other_source": "best reader",
    }
    title = titles.get(name, name)
    if reader:
        title = f"{title} ({reader})"
    return f"{title}, other sources" if name == "text_other_source" else title


def row_clusters(rows: pd.DataFrame) -> tuple[npt.NDArray[np.str_], str]:
    """Cluster of each verdict row, and the clusters' name: as `clusters_of` has them of items."""
    sets = rows["set"].fillna("").astype(str) if "set" in rows else pd.Series("", index=rows.index)
    pairs = rows.pair.where(rows.pair.notna(), rows["item"]) if "pair" in rows else rows["item"]
    conversations = rows.data.astype(str) + " " + pairs.astype(str)
    labels = rows.truth.astype(object).where(rows.truth.notna(), None)
    groups = sets + " " + labels.map(str)
    sources = rows.source.astype(object).where(rows.source.notna(), None).map(str)
    return resampling_units(list(sources), list(conversations), list(groups))


def ranked_conversations(rows: pd.DataFrame) -> pd.DataFrame:
    """Conversations with a verdict, a score and a label: data, item, score (mean over epochs),
    positive, cluster.
    """
    clusters, _ = row_clusters(rows)
    frame = rows[["data", "item", "score", "truth", "said"]].assign(cluster=clusters)
    frame = frame[frame.said.notna() & frame.score.notna() & frame.truth.notna()]
    frame = frame.assign(positive=frame.truth == "evaluation", score=frame.score.astype(float))
    by_conversation = frame.groupby(["data", "item"], sort=True)
    parts = {
        "score": ("score", "mean"),
        "positive": ("positive", "first"),
        "cluster": ("cluster", "first"),
    }
    return by_conversation.agg(**parts).reset_index()


def _rest(ranked: pd.DataFrame, columns: npt.NDArray[np.float64], unit: str) -> Estimate:
    """What is left to the scores of `ranked` beyond columns and their ranks."""
    is_known = ~np.isnan(columns).any(axis=1)
    part = ranked[is_known]
    if not _has_two_sides(part):
        return undefined(UNTRAINED, unit=unit)
    known_columns = with_ranks(_scaled_columns(columns[is_known]))
    return rest_beyond(
        part.score, part.positive, known_columns, part.cluster.to_numpy(str), unit=unit
    )


def _has_two_sides(ranked: pd.DataFrame) -> bool:
    return bool(ranked.positive.nunique() == 2 and ranked.score.nunique() > 1)


def _scaled_columns(columns: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    deviation = columns.std(axis=0)
    return np.asarray((columns - columns.mean(axis=0)) / np.where(deviation > 0, deviation, 1.0))


def _rest_beyond_all(known: pd.DataFrame, baselines: "Baselines", unit: str) -> Estimate:
    """What is left beyond all readers together."""
    readers = baselines.readers_of(known.data)
    if readers is None or not _has_two_sides(known):
        return undefined(UNTRAINED, unit=unit)
    places = known.merge(readers.places, on=["data", "item"], how="left").place
    is_known = places.notna().to_numpy()
    part = known[is_known]
    if not _has_two_sides(part) or len(part) < LEAST_FOR_READERS:
        return undefined("too few conversations", unit=unit)
    statement = part.score.to_numpy(dtype=float)
    rows = places[is_known].to_numpy(dtype=int)
    references = [name for name in RIVALS if part[name].notna().all()]
    reference_columns = with_ranks(_scaled_columns(part[references].to_numpy(dtype=float)))
    predicted = reader_columns(readers.readers, statement, rows)
    columns = np.concatenate([predicted, reference_columns], axis=1)
    return rest_beyond(statement, part.positive, columns, part.cluster.to_numpy(str), unit=unit)


LEAST_FOR_READERS = 30
"""Smallest number of conversations from which readers are learnt."""


@dataclass(frozen=True)
class BeyondObservers:
    """One arm compared with other models that read its conversations in the third person."""

    observer: str
    """The observer with the highest AUROC."""
    auroc: Estimate
    """Its AUROC."""
    rest: Estimate
    """AUROC − .5 that is left to the arm beyond the observers' mean score."""


def beyond_observers(
    logged: AwarenessTables, arm: "ArmNumbers", methods: "Sequence[ArmNumbers]"
) -> BeyondObservers | None:
    """What is left to an arm beyond other models that read its conversations; None where none did.

    Observers that were asked by the arm's own method count; without any, those of all methods.
    """
    third = [
        m
        for m in methods
        if m.target == arm.model
        and m.perspective == "third"
        and not m.placebo
        and m.run == 1
        and m.n
    ]
    of_method = [m for m in third if m.method == arm.method and m.context == arm.context]
    observers = of_method or third
    if not observers:
        return None
    rated = [m for m in observers if not math.isnan(m.auroc.value)]
    if not rated:
        reason = undefined("the other models answer the same to everything", unit=arm.auroc.unit)
        return BeyondObservers(observers[0].model, observers[0].auroc, reason)
    rows = arm_rows(logged, arm)
    ranked = ranked_conversations(rows)
    for number, observer in enumerate(rated):
        other = ranked_conversations(arm_rows(logged, observer))
        other = other.assign(**{f"rank_{number}": other.score.rank(pct=True)})
        ranked = ranked.merge(
            other[["data", "item", f"rank_{number}"]], on=["data", "item"], how="left"
        )
    ranks = ranked[[f"rank_{number}" for number in range(len(rated))]].mean(axis=1)
    rest = _rest(ranked, ranks.to_numpy(dtype=float)[:, None], row_clusters(rows)[1])
    strongest = max(rated, key=lambda m: m.auroc.value)
    return BeyondObservers(strongest.model, strongest.auroc, rest)


def arm_rows(logged: AwarenessTables, arm: "ArmNumbers") -> pd.DataFrame:
    """Verdict rows of an arm."""
    key = [getattr(arm, name) for name in ARM]
    return logged.verdicts[(logged.verdicts[ARM] == key).all(axis=1)]


def _held(items: Sequence[Item], words: np.ndarray) -> tuple[Estimate, Estimate]:
    """AUROC of the words, and the model's less it, over the items that both rate."""
    clusters, unit = clusters_of(items)
    rated = np.array(
        [i.decision.said is not None and i.decision.score is not None for i in items]
    ) & ~np.isnan(words)
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
"""Seed of each computation, which starts anew: no figure moves with what else lies in the folder.
"""


@dataclass(frozen=True)
class PlacedReaders:
    """Readers of texts, and where each conversation stands among them."""

    readers: TextReaders
    places: pd.DataFrame
    """data, item, place."""


@dataclass(frozen=True)
class Baselines:
    """Baselines that need no model: how well the text gives the label away. Every result is shown
    with them.
    """

    length: Estimate
    """AUROC of the number of characters, with the better sign."""
    words: Estimate
    """AUROC of TF-IDF and logistic regression, cross-fitted with pairs kept together."""
    words_other_source: Estimate
    """AUROC of this classifier where each source is predicted by one that saw only the others."""
    text: Estimate
    """AUROC of the best reader of words, characters, style and embeddings
    (`text_only.best_reader`), pairs together.
    """
    text_other_source: Estimate
    """AUROC of the best reader that was chosen and trained on other sources."""
    scores: pd.DataFrame
    """data, item, label, length, words, words_other_source, TEXT: for the ROC figure, and to
    compare a model with.
    """
    context: str = ""
    """Context of the numbers: "first" where logs have transcripts too, since `scores` then has rows
    of both; else "".
    """
    without_embeddings: str = ""
    """Why no reader saw the embeddings of the texts; "" where one did."""
    readers: "tuple[PlacedReaders, ...]" = ()
    """Readers of the labelled texts, by context."""

    def readers_of(self, data: "pd.Series[str]") -> "PlacedReaders | None":
        """The readers of these data sets; None where nothing could be learnt."""
        names = set(data)
        return next((each for each in self.readers if names <= set(each.places.data)), None)

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
    """Trend of the error over turns; undefined where the subject saw the first prompt alone,
    whatever came after it.
    """
    beyond: BeyondText
    """The model compared with readers of the text alone."""

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
    """Share of the labelled identified correctly by the first method, less that by the second;
    paired.
    """
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
    paired: tuple[ArmPair, ...]
    """First and third person, two runs, first prompt and full transcript; placebo arms aside."""
    averages: tuple[Average, ...] = ()
    """Differences between each two methods over all models."""


def comparison_of(logged: AwarenessTables) -> Comparison:
    """Every arm's numbers, each pair of methods of a model, and each pair of arms of a method."""
    arms = {tuple(key): rows for key, rows in logged.verdicts.groupby(ARM, sort=False)}
    baselines = _baselines(logged)
    methods = tuple(arm_numbers(rows, baselines) for rows in arms.values())
    main = {
        key: rows for key, rows in arms.items() if key[2] != "third" and not key[4] and key[-1] == 1
    }
    both = {(a, b): joined([main[a], main[b]]) for a, b in combinations(main, 2) if a[1:] == b[1:]}
    pairs = tuple(_pair(logged, a, b, rows) for (a, b), rows in both.items())
    return Comparison(baselines, methods, pairs, arm_pairs(logged), _averages(both))


def arm_numbers(rows: pd.DataFrame, baselines: Baselines | None = None) -> ArmNumbers:
    """All numbers of one arm from its verdict rows, and from readers of their conversations."""
    items = verdict_items(rows)
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
        beyond=beyond_text(rows, items, baselines, found.auroc),
    )


def _baselines(logged: AwarenessTables) -> Baselines:
    """First prompts and whole transcripts are other texts of the same conversations: each are rated
    by themselves.
    """
    context = logged.verdicts.drop_duplicates("data").set_index("data").context
    if context.nunique() < 2:
        return text_baselines(logged.texts)
    texts = logged.texts.groupby(logged.texts.data.map(context))
    apart = {str(name): text_baselines(some) for name, some in texts}
    scores = pd.concat(
        [found.scores.assign(context=name) for name, found in apart.items()], ignore_index=True
    )
    readers = tuple(each for found in apart.values() for each in found.readers)
    return replace(apart["first"], scores=scores, context="first", readers=readers)


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
    best, elsewhere = (
        best_reader(read, positive, pairs),
        best_reader(read, positive, sources, each_apart=True),
    )
    scores = labelled.reindex(columns=["data", "item", "label"]).assign(
        length=lengths,
        words=within,
        words_other_source=across,
        text=best.scores,
        text_other_source=elsewhere.scores,
    )
    scores = scores.assign(text_reader=best.name, text_other_source_reader=elsewhere.name)
    of_set = labelled.get("set", pd.Series("", labelled.index)).fillna("").astype(str)
    clusters, unit = clustered.resampling_units(
        list(sources), list(pairs), list(of_set + " " + labelled.label)
    )

    def rated(values: npt.NDArray[np.float64]) -> Estimate:
        return clustered.clustered_auroc(positive, values, clusters, unit=unit).estimate

    of_words, of_others = rated(within), rated(across)
    of_text = rated(best.scores), rated(elsewhere.scores)
    placed = _placed_readers(labelled, read, pairs)
    return Baselines(
        rated(lengths),
        of_words,
        of_others,
        *of_text,
        scores,
        without_embeddings=without_embeddings,
        readers=placed,
    )


def _placed_readers(
    labelled: pd.DataFrame,
    features: Mapping[str, npt.NDArray[np.float64]],
    pairs: npt.NDArray[np.str_],
) -> tuple[PlacedReaders, ...]:
    """Readers of the labelled texts, in an order of their own; none where conversations have no
    names.
    """
    if not len(labelled) or not {"data", "item"} <= set(labelled.columns):
        return ()
    order = np.lexsort([labelled["item"].astype(str), labelled.data.astype(str)])
    ordered = labelled.iloc[order]
    readers = text_readers(
        list(ordered.text),
        (ordered.label == "evaluation").to_numpy(dtype=bool),
        pairs[order],
        {name: each[order] for name, each in features.items()},
    )
    places = ordered[["data", "item"]].assign(place=range(len(ordered)))
    return (PlacedReaders(readers, places),)


def _pair(logged: AwarenessTables, a: Arm, b: Arm, both: pd.DataFrame) -> MethodPair:
    ranked = both[both.score_0.notna() & both.score_1.notna()]
    first, second, sources = (
        both.said_0 == "evaluation",
        both.said_1 == "evaluation",
        both.source_0.astype(str),
    )
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
        return dict.fromkeys(
            ("called", "right"), undefined("no conversation with both verdicts", unit="source")
        )
    clusters, unit = _clusters(both)
    called, right = _sides(both)
    return {
        "called": clustered_mean(called[0] - called[1], clusters, unit=unit, interval="t"),
        "right": clustered_mean(right[0] - right[1], clusters, unit=unit, interval="t"),
    }


def _clusters(both: pd.DataFrame) -> tuple[npt.NDArray[np.str_], str]:
    """Clusters of the first method's items, and their unit."""
    return clusters_of(verdict_items(both.rename(columns=lambda name: name.removesuffix("_0"))))


def _sides(both: pd.DataFrame) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]:
    """[method, conversation]: whether it is called an evaluation, and whether that is right, NaN
    without a label.
    """
    said = np.array([(both[f"said_{k}"] == "evaluation").to_numpy(dtype=float) for k in (0, 1)])
    truth = np.where(both.truth_0.notna(), both.truth_0 == "evaluation", np.nan).astype(float)
    return said, np.where(np.isnan(truth), np.nan, said == truth)


def _averages(both: Mapping[tuple[Arm, Arm], pd.DataFrame]) -> tuple[Average, ...]:
    """Each two methods that two models or more ran; conversations of one source are a cluster over
    all models.
    """
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
        same = equivalence(
            *right[:, known], clusters=clusters[known], margin=MARGIN, unit=unit
        ).equivalent
        made.append(
            Average(first, second, models, len(every), comparable=same, **_differences(every))
        )
    return tuple(made)


def _curve(logged: AwarenessTables, a: Arm, b: Arm) -> KappaCurve | None:
    """Binary against probability by number of decisions, where both asked 25."""
    arms = {str(arm[0]): arm for arm in (a, b)}
    if set(arms) != {"binary", "probability"} or logged.votes.empty:
        return None
    votes = logged.votes.assign(vote=logged.votes.said.map({"evaluation": 1.0, "deployment": 0.0}))
    grids = []
    for method, value in (("binary", "vote"), ("probability", "probability")):
        mine = votes[(votes[ARM] == list(arms[method])).all(axis=1)]
        # Another data set of the same arm may have been asked 5: its rows would be mostly NaN,
        # under keys of their own.
        mine = mine[mine.groupby("data").key.transform("nunique") >= 25]
        grids.append(
            mine.pivot(index=["data", "item", "epoch"], columns="key", values=value).astype(float)
        )
    items = grids[0].index.intersection(grids[1].index)
    if items.empty:
        return None
    return kappa_curve(grids[0].loc[items], grids[1].loc[items], rng=np.random.default_rng(SEED))


JUDGED = ("user_motivation", "reasoning_trace")
RULES = ("ours", "the paper's")
_ITEM = ["data", "item", "epoch"]


def as_in_paper(logged: AwarenessTables) -> pd.DataFrame:
    """A row an arm of `JUDGED` and rule: unquoted (findings without a quote that is there), n,
    called, tpr, tnr.

    `unscored` is the share of conversations without a verdict, which n leaves out. Estimates are
    value, low, high, n, unit, reason. Summaries of reasoning have no finding under either rule.
    """
    rows: list[dict[str, Any]] = []
    every = logged.verdicts[logged.verdicts.method.isin(JUDGED)]
    for key, arm in every.groupby(ARM, sort=False, dropna=False):
        votes = logged.votes
        if len(votes):
            votes = votes[(votes[ARM] == list(key)).all(axis=1)]
        unquoted = int(
            (votes.unscored == UNQUOTED).sum() if len(votes) else (arm.unscored == UNQUOTED).sum()
        )
        for rule, counted in zip(RULES, (arm, _counted(arm, votes)), strict=True):
            found = method_numbers(verdict_items(counted))
            lost = {"unscored": math.fsum(found.unscored.values())}
            rates = {name: asdict(getattr(found, name)) for name in ("called", "tpr", "tnr")}
            rows.append(
                dict(zip(ARM, key, strict=True))
                | {"rule": rule, "unquoted": unquoted, "n": found.n}
                | lost
                | rates
            )
    return pd.json_normalize(rows)


def _counted(arm: pd.DataFrame, votes: pd.DataFrame) -> pd.DataFrame:
    """The verdicts with every finding of awareness counted: of one vote, or the majority of several
    (no tie).
    """
    said = arm.said.where(arm.unscored != UNQUOTED, "evaluation")
    if len(votes):
        each = votes.assign(said=votes.said.where(votes.unscored != UNQUOTED, "evaluation")).dropna(
            subset=["said"]
        )
        share = (each.said == "evaluation").groupby([each[name] for name in _ITEM]).mean()
        own = pd.MultiIndex.from_frame(arm[_ITEM]).map(share).astype(float)
        said = pd.Series([_verdict(x) for x in own], index=arm.index, dtype=object)
    lost = arm.unscored.where(arm.unscored.notna() & (arm.unscored != UNQUOTED), "tie")
    return arm.drop(columns="could", errors="ignore").assign(
        said=said, unscored=lost.where(said.isna(), None)
    )


def _verdict(share: float) -> str | None:
    return "evaluation" if share > 0.5 else "deployment" if share < 0.5 else None
