"""What a study of induced introspection shows, in sentences, and what it does not; from its tables."""

from typing import Any

import pandas as pd

from selfprobe.page import number, shown

LIMITS = (
    "What this does not show: that the model looks at its own state. A prompt and its label are learnt together, and a "
    "question that repeats the prompt may bring up the label by that alone; the controls say how far it does so for "
    "anybody's reply and for a plain fact. Intervals are over questions: other wordings, other labels and other "
    "trainings are the rows of the tables, not part of the interval."
)


HELD_OUT = ("held-out", "held-out training", "held-out self", "held-out fact")
"""Contrasts that must all be above 0, or a prediction of what was not learnt is not said."""


def findings(tables: dict[str, pd.DataFrame]) -> list[str]:
    """The verdict, then the numbers behind it, a sentence each."""
    bars = {(r.phase, r.questions, r.kind, r.word): r for r in tables["figure4"].itertuples()}
    less = {(r.contrast, r.word): r for r in tables["contrasts"].itertuples()}
    return [verdict(tables), *_numbers(bars, less)]


def verdict(tables: dict[str, pd.DataFrame]) -> str:
    """One sentence: no introspection, an echo, or a prediction of its own reply; or that nothing was learnt."""
    bars = tables["figure4"].query("phase == 'after' and questions == 'learnt' and kind == 'direct'")
    less: dict[str, Any] = {r.contrast: r for r in tables["contrasts"].query("word == 'both'").itertuples()}
    if not (bars.low > bars.permuted).any():
        return "Nothing can be said: the labels were not learnt. Train longer (--epochs), or with a larger --rate."
    named = {"label": "other questions' labels", "training": "before the training"}
    if failed := [f"{what} ({shown(less[n], sign=True)})" for n, what in named.items() if not less[n].low > 0]:
        return (
            "No introspection shown: asked what it would say, the model is not shown to name its own label more than "
            f"{', nor more than '.join(failed)}."
        )
    place = next(tables["contrasts"].query("contrast == 'place'").itertuples())
    asked = {
        "self": (less["self"], "to do so more than when asked about another assistant"),
        "fact": (less["fact"], "to do so more than when asked for a word of the text"),
        "place": (place, "to name the second label rather than the first where its second word is asked for"),
    }
    echoed = [f"{told} ({shown(row, sign=True)})" for row, told in asked.values() if not row.low > 0]
    if echoed:
        return (
            "An echo, not shown to be introspection: the model names a label that was taught with the question when "
            f"asked what it would say, and is not shown {'; nor '.join(echoed)}."
        )
    held = [less[name] for name in HELD_OUT]
    more = (
        "It does so on questions that it did not learn too"
        if all(row.low > 0 for row in held)
        else "On questions that it did not learn this is not shown"
    )
    return (
        "The model predicts its own reply without having been trained to: above other questions' labels, above the "
        "model as it came, above what it says of another assistant and of a fact. "
        f"{more}: above other questions' answers {shown(held[0], sign=True)}, above the model as it came "
        f"{shown(held[1], sign=True)}, above another assistant's {shown(held[2], sign=True)}, above a fact's "
        f"{shown(held[3], sign=True)}."
    )


def _numbers(bars: dict[Any, Any], less: dict[Any, Any]) -> list[str]:
    said = []
    for word in ("first", "second"):
        old, new = (bars[phase, "learnt", "introspective", word] for phase in ("before", "after"))
        direct_old, direct_new = (bars[phase, "learnt", "direct", word] for phase in ("before", "after"))
        others = {kind: bars["after", "learnt", kind, word] for kind in ("another assistant", "fact")}
        said.append(
            f"The {word} word: direct {number(direct_old.value, 2)} → {number(direct_new.value, 2)}, asked what it "
            f"would say {number(old.value, 2)} → {shown(new)}; other questions' labels {number(new.permuted, 2)}, "
            + ", ".join(f"{kind} {number(row.value, 2)}" for kind, row in others.items())
            + f". Before any choice among labels it gives them {number(new.mass, 2)} of its probability."
        )
    place = less["place", "second"]
    said.append(
        "Asked for its second word, it gives the second label less the first "
        f"{shown(place, sign=True)}: "
        + (
            "it tells the two words apart."
            if place.low > 0
            else "it names the first word where the second is asked for."
            if place.high < 0
            else "it is not shown to tell the two words apart."
        )
    )
    return said
