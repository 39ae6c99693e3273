"""Worlds of `mechanism induce`: P of a label by what is asked, for questions and wordings."""

from collections.abc import Callable, Mapping

import numpy as np
from lines import Line, Lines

from selfprobe.mechanism.induce import READ_COLUMNS, ReadColumn
from selfprobe.stats.claim import Claim
from selfprobe.studies.induce import Induced, contrasts_of, figure4, induced_claim
from tests.mechanism.tiny_words import planted

KNOWS = {"direct": 6.0, "introspective": 3.0, "another assistant": 0.5, "fact": 0.5}
ECHO = KNOWS | {"another assistant": 3.0, "fact": 3.0}
Change = Callable[[Induced, np.random.Generator], None]


def unchanged(found: Induced, rng: np.random.Generator) -> None:
    """Nothing more."""


def uneven(found: Induced, rng: np.random.Generator) -> None:
    """Questions differ in how far any label is led, the same for whoever is asked about."""
    for reading in found.after:
        reading.log_probs[:] *= rng.uniform(0.4, 1.6, size=(len(reading.log_probs), 1, 1)).astype(
            np.float32
        )


def one_word(found: Induced, rng: np.random.Generator) -> None:
    """The first label comes whichever word is asked for."""
    for reading in found.after:
        for column, asked in enumerate(READ_COLUMNS):
            if asked.kind != "direct" and asked.word == 1:
                same = READ_COLUMNS.index(ReadColumn(asked.kind, 0, asked.wording))
                reading.log_probs[:, column] = reading.log_probs[:, same]


def before_as_after(found: Induced, rng: np.random.Generator) -> None:
    """It said the labels before the training already."""
    found.before[:] = found.after[0].log_probs


def world(
    strength: Mapping[str, float], change: Change = unchanged, *, permuted: bool = False
) -> Callable[[np.random.Generator], Claim]:
    """A model that adds these log-probabilities to its own labels, and what else is true of it."""

    def draw(rng: np.random.Generator) -> Claim:
        found = planted(
            dict(strength), permuted=permuted, taught=16, held_out=8, seed=int(rng.integers(2**31))
        )
        change(found, rng)
        return induced_claim("ada", {"figure4": figure4(found), "contrasts": contrasts_of(found)})

    return draw


LINES: Lines = {
    "an echo: another assistant and a fact alike": Line(world(ECHO)),
    "an echo, questions uneven": Line(world(ECHO, uneven)),
    "labels of other questions": Line(world(KNOWS, permuted=True)),
    "the first label for either word": Line(world(KNOWS, one_word)),
    "said before the training too": Line(world(KNOWS, before_as_after)),
    "nothing was learnt": Line(world({})),
    "predicts its own reply": Line(world(KNOWS), True, 0.9),
}
