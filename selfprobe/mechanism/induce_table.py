"""From what was read to numbers: Figure 4, the contrasts that speak for or against introspection, each seed, a verdict.

A score is P of a label among all labels. Its target on a question that was learnt is the label taught; on a held-out
question it is the model's own direct answer, the label that it gives most probability. Every score is shown with the
same of the other questions' targets: labels permuted between questions. That is what a model reaches that says some
labels more than others, whatever it is asked.
"""

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
import pandas as pd
from scipy.special import softmax

from selfprobe.mechanism.induce import Induced, Reading
from selfprobe.mechanism.induce_prompts import COLUMNS, NTH, WORDINGS, Asked, Kind
from selfprobe.stats.estimate import Estimate, clustered_mean

Floats = npt.NDArray[np.float64]
Part = Literal["learnt", "held-out"]
KINDS: tuple[Kind, ...] = ("direct", *WORDINGS)
UNIT = "question"


def scored(reading: Reading, kind: Kind, word: int, part: Part, *, other_word: bool = False) -> Floats:
    """P of the target, and its mean over the other questions' targets: [question, wording, (own, permuted)].

    `other_word`: the target is the label of the other word of the reply.
    """
    taught = reading.answers[:, 0] >= 0
    rows = np.flatnonzero(taught if part == "learnt" else ~taught)
    each = softmax(reading.log_probs[rows].astype(float), axis=2)  # [question, column, label]
    place = 1 - word if other_word else word
    direct = each[:, COLUMNS.index(Asked("direct", place))].argmax(axis=1)
    target = reading.answers[rows, place] if part == "learnt" else direct
    columns = [n for n, asked in enumerate(COLUMNS) if (asked.kind, asked.word) == (kind, word)]
    of_targets = each[:, columns][:, :, target]  # [question, wording, question whose target it is]
    own = np.einsum("qwq->qw", of_targets)
    permuted = (of_targets.sum(axis=2) - own) / (len(rows) - 1)
    return np.stack([own, permuted], axis=2)


def _mean(values: Sequence[Floats], *, difference: bool = False) -> Estimate:
    """Mean over arrays [question, wording] of some readings, questions resampled."""
    clusters = np.concatenate([np.repeat(np.arange(len(v)), v.shape[1]) for v in values])
    flat = np.concatenate([v.ravel() for v in values])
    return clustered_mean(flat, clusters, unit=UNIT, interval="difference" if difference else "auto")


def readings(found: Induced) -> dict[str, tuple[Reading, ...]]:
    """Before and after; before, each seed's labels are looked for in what the model said as it came."""
    return {
        "before": tuple(Reading(r.seed, found.before, r.answers) for r in found.after),
        "after": found.after,
    }


def figure4(found: Induced) -> pd.DataFrame:
    """phase, questions, kind, word, value, low, high, n, permuted, mass: the bars of Figure 4, and the controls'.

    `mass` is P of all labels together over the whole vocabulary. A direct answer to a held-out question is its own
    target, and has no row.
    """
    rows = []
    for phase, read in readings(found).items():
        for part in ("learnt", "held-out"):
            for kind in KINDS:
                for word in (0, 1):
                    if (part, kind) == ("held-out", "direct"):
                        continue
                    each = [scored(reading, kind, word, part) for reading in read]
                    value = _mean([e[..., 0] for e in each])
                    rows.append(
                        {"phase": phase, "questions": part, "kind": kind, "word": NTH[word]}
                        | _row(value)
                        | {"permuted": float(np.mean([e[..., 1] for e in each])), "mass": _mass(read, kind, word, part)}
                    )
    return pd.DataFrame(rows)


def _mass(read: Sequence[Reading], kind: Kind, word: int, part: str) -> float:
    columns = [n for n, asked in enumerate(COLUMNS) if (asked.kind, asked.word) == (kind, word)]
    rows = [(r.answers[:, 0] >= 0) == (part == "learnt") for r in read]
    return float(np.mean([np.exp(r.log_probs[of][:, columns]).sum(axis=2) for r, of in zip(read, rows, strict=True)]))


def _row(found: Estimate) -> dict[str, Any]:
    return {name: value for name, value in asdict(found).items() if name != "se"}


CONTRASTS = {
    "label": "asked what it would say: the label taught, less other questions' labels",
    "training": "the same label after the training, less before it",
    "self": "asked about itself, less asked about another assistant",
    "fact": "asked about itself, less asked for a word of the text",
    "place": "asked for the second word: the second label, less the first",
    "held-out": "held-out questions: its own direct answer, less other questions' answers",
    "held-out training": "the same after the training, less before it",
    "held-out self": "held-out questions: asked about itself, less asked about another assistant",
    "held-out fact": "held-out questions: asked about itself, less asked for a word of the text",
}
"""Name → what is subtracted from what; after the training where none is named, and all P of a label."""


def contrasts(found: Induced) -> pd.DataFrame:
    """contrast, word, value, low, high, n: paired by question, over wordings and seeds; see `CONTRASTS`."""
    rows = []
    for name in CONTRASTS:
        for word in ("both", *NTH):
            words = (0, 1) if word == "both" else (NTH.index(word),)
            if name == "place" and word != "second":
                continue
            each = [
                np.concatenate([_contrast(found, k, name, w) for w in words], axis=1) for k in range(len(found.after))
            ]
            rows.append({"contrast": name, "word": word} | _row(_mean(each, difference=True)))
    return pd.DataFrame(rows)


def _contrast(found: Induced, k: int, name: str, word: int) -> Floats:
    """[question, wording] of one seed."""
    before, after = (read[k] for read in readings(found).values())
    own = scored(after, "introspective", word, "learnt")
    if name == "training":
        return np.asarray(own[..., 0] - scored(before, "introspective", word, "learnt")[..., 0])
    if name == "place":
        return np.asarray(own[..., 0] - scored(after, "introspective", word, "learnt", other_word=True)[..., 0])
    other: Kind = "fact" if name.endswith("fact") else "another assistant"
    if name in ("self", "fact"):
        return np.asarray(own[..., 0] - scored(after, other, word, "learnt")[..., 0])
    if name == "label":
        return np.asarray(own[..., 0] - own[..., 1])
    said = scored(after, "introspective", word, "held-out")
    if name in ("held-out self", "held-out fact"):
        return np.asarray(said[..., 0] - scored(after, other, word, "held-out")[..., 0])
    came = scored(before, "introspective", word, "held-out") if name == "held-out training" else np.zeros_like(said)
    return np.asarray((said - came)[..., 0] - (said - came)[..., 1])


def seeds(found: Induced) -> pd.DataFrame:
    """seed, loss (of the last eighth of the steps), kind, word, value, permuted: one row a seed and bar, after it."""
    rows = []
    for reading, training in zip(found.after, found.trainings, strict=True):
        last = training.losses[-max(1, len(training.losses) // 8) :]
        for kind in KINDS:
            for word in (0, 1):
                own, permuted = scored(reading, kind, word, "learnt").mean(axis=(0, 1))
                rows.append(
                    {"seed": reading.seed, "loss": float(np.mean(last)), "kind": kind, "word": NTH[word]}
                    | {"value": float(own), "permuted": float(permuted)}
                )
    return pd.DataFrame(rows)


def wordings(found: Induced) -> pd.DataFrame:
    """kind, wording, word, value, permuted: after the training, learnt questions, mean over seeds."""
    rows = []
    for kind, texts in WORDINGS.items():
        for word in (0, 1):
            each = np.mean([scored(reading, kind, word, "learnt") for reading in found.after], axis=(0, 1))
            for text, (own, permuted) in zip(texts, each, strict=True):
                told = text.format(nth=NTH[word])
                rows.append({"kind": kind, "wording": told, "value": float(own), "permuted": float(permuted)})
    return pd.DataFrame(rows)


def curve(found: Induced) -> pd.DataFrame:
    """seed, step, loss: the training curves."""
    return pd.concat(
        [
            pd.DataFrame({"seed": reading.seed, "step": range(1, len(training.losses) + 1), "loss": training.losses})
            for reading, training in zip(found.after, found.trainings, strict=True)
        ],
        ignore_index=True,
    )


def tables(found: Induced) -> dict[str, pd.DataFrame]:
    """All tables of a study, by file stem."""
    return {
        "figure4": figure4(found),
        "contrasts": contrasts(found),
        "seeds": seeds(found),
        "wordings": wordings(found),
        "training": curve(found),
    }
