"""Which items are alike by something that can be seen without a model.

A habit that hangs on it is no knowledge of the item: habits are taken off within such groups
(`selfprobe.matrix.habit`), and the commonest truth of a group is a baseline (`selfprobe.matrix.rows`).
"""

import re
from collections.abc import Mapping

import pandas as pd

from selfprobe.parse import normalise, words

SMALLEST = 4
"""Items of a group; smaller ones are put together, and what hangs on them is then no habit that is seen."""
ALL = "all items"
LENGTHS = 5
A_TOPIC = 25
"""Items for which there is a topic."""


def groups(texts: pd.Series, kinds: pd.Series) -> Mapping[str, pd.Series]:
    """Name of what is seen → item → group. The first is `ALL`, one group; those that part nothing are left out.

    Args:
        texts: Item → its text.
        kinds: Item → the data set's kind of it, or "".
    """
    seen = {"kind": kinds.reindex(texts.index).fillna("").astype(str)}
    seen["first word"] = texts.map(lambda text: normalise(next(iter(words(text)), "")))
    seen["punctuation"] = texts.map(lambda text: "".join(sorted(set(re.findall(r"[^\w\s]", text)))))
    seen["last sign"] = texts.map(lambda text: text.strip()[-1:] if re.search(r"[^\w\s]\s*$", text) else "")
    counts = texts.map(lambda text: len(text.split()))
    if counts.nunique() > 1:
        seen["length"] = pd.qcut(counts, LENGTHS, labels=False, duplicates="drop").astype(str)
    if len(texts) >= 2 * A_TOPIC:
        seen["topic"] = _topics(texts)
    joined = {name: _joined(group) for name, group in seen.items()}
    everything = {ALL: pd.Series("", texts.index)}
    return everything | {name: group for name, group in joined.items() if group.nunique() > 1}


def _joined(group: pd.Series) -> pd.Series:
    """Small groups as one; where that is small too it goes to the largest."""
    sizes = group.map(group.value_counts())
    out = group.where(sizes >= SMALLEST, "(others)")
    rest = out == "(others)"
    return out.where(~rest, out[~rest].mode()[0]) if 0 < rest.sum() < SMALLEST and not rest.all() else out


def _topics(texts: pd.Series) -> pd.Series:
    """Clusters of the texts' words."""
    from sklearn.cluster import KMeans
    from sklearn.feature_extraction.text import TfidfVectorizer
    from threadpoolctl import threadpool_limits

    vectorizer = TfidfVectorizer(stop_words="english", sublinear_tf=True)
    if not any(map(vectorizer.build_analyzer(), texts)):
        return pd.Series("", texts.index)
    vectors = vectorizer.fit_transform(texts)
    with threadpool_limits(1):
        found = KMeans(len(texts) // A_TOPIC, n_init=3, random_state=0).fit_predict(vectors)
    return pd.Series(found, texts.index).astype(str)
