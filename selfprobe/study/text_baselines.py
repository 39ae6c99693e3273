"""Baselines that read the texts alone: what a model's verdicts on conversations have to beat."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pandas as pd

from selfprobe.embed import embed_unasked
from selfprobe.errors.inspect_private import PrerequisiteError
from selfprobe.stats import clustered
from selfprobe.stats.beyond_text import TextReaders, text_readers
from selfprobe.stats.clustered import resampling_units
from selfprobe.stats.estimate import Estimate, FloatArray, auroc
from selfprobe.stats.text_only import best_reader, log_odds, read_by

BEST_READER_COLUMNS = ("text", "text_other_source")
"""Columns of the best reader's scores; `<column>_reader` names it."""


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
    """data, item, label, length, words, words_other_source, BEST_READER_COLUMNS: for the ROC
    figure, and to compare a model with.
    """
    context: str = ""
    """Context of the numbers: "first" where logs have transcripts too, since `scores` then has rows
    of both; else "".
    """
    without_embeddings: str = ""
    """Why no reader saw the embeddings of the texts; "" where one did."""
    readers: tuple[PlacedReaders, ...] = ()
    """Readers of the labelled texts, by context."""

    def readers_of(self, data: "pd.Series[str]") -> PlacedReaders | None:
        """The readers of these data sets; None where nothing could be learnt."""
        data_sets = set(data)
        for placed_readers in self.readers:
            if data_sets <= set(placed_readers.places.data):
                return placed_readers
        return None

    @property
    def shown(self) -> pd.DataFrame:
        """Rows of `scores` that the numbers are computed from."""
        return self.scores[self.scores.context == self.context] if self.context else self.scores


def text_baselines(texts: pd.DataFrame) -> Baselines:
    """Baselines: how well length and words alone tell the label, on exactly these conversations."""
    labelled = texts[texts.label.notna()].reset_index(drop=True)
    label_texts = list(labelled.text)
    is_evaluation = (labelled.label == "evaluation").to_numpy(dtype=bool)
    sources = labelled.source.astype(str).to_numpy()
    pairs = labelled.pair.fillna(labelled.item).astype(str).to_numpy()
    lengths = labelled.text.str.len().to_numpy(dtype=float)
    if len(labelled) and auroc(is_evaluation, lengths) < 0.5:
        lengths = -lengths
    word_scores = log_odds(label_texts, is_evaluation, pairs)
    word_scores_other_source = log_odds(label_texts, is_evaluation, sources, each_apart=True)
    features = read_by(label_texts)
    without_embeddings = ""
    if features:
        try:
            features |= {"embeddings": embed_unasked(label_texts)}
        except PrerequisiteError as error:
            without_embeddings = str(error.message)
    reader = best_reader(features, is_evaluation, pairs)
    reader_other_source = best_reader(features, is_evaluation, sources, each_apart=True)
    scores = labelled.reindex(columns=["data", "item", "label"]).assign(
        length=lengths,
        words=word_scores,
        words_other_source=word_scores_other_source,
        text=reader.scores,
        text_other_source=reader_other_source.scores,
        text_reader=reader.name,
        text_other_source_reader=reader_other_source.name,
    )

    set_names = labelled.get("set", pd.Series("", labelled.index)).fillna("").astype(str)
    groups = list(set_names + " " + labelled.label)
    clusters, unit = resampling_units(list(sources), list(pairs), groups)

    def auroc_of_scores(values: FloatArray) -> Estimate:
        return clustered.clustered_auroc(is_evaluation, values, clusters, unit=unit).estimate

    return Baselines(
        length=auroc_of_scores(lengths),
        words=auroc_of_scores(word_scores),
        words_other_source=auroc_of_scores(word_scores_other_source),
        text=auroc_of_scores(reader.scores),
        text_other_source=auroc_of_scores(reader_other_source.scores),
        scores=scores,
        without_embeddings=without_embeddings,
        readers=_placed_readers(labelled, features, pairs),
    )


def _placed_readers(
    labelled: pd.DataFrame,
    features: Mapping[str, FloatArray],
    pairs: npt.NDArray[np.str_],
) -> tuple[PlacedReaders, ...]:
    """Readers of the labelled texts, in an order of their own; none where conversations have no
    names.
    """
    if labelled.empty or not {"data", "item"} <= set(labelled.columns):
        return ()
    order = np.lexsort([labelled["item"].astype(str), labelled.data.astype(str)])
    ordered = labelled.iloc[order]
    is_evaluation = (ordered.label == "evaluation").to_numpy(dtype=bool)
    ordered_features = {name: values[order] for name, values in features.items()}
    readers = text_readers(list(ordered.text), is_evaluation, pairs[order], ordered_features)
    places = ordered[["data", "item"]].assign(place=range(len(ordered)))
    return (PlacedReaders(readers, places),)
