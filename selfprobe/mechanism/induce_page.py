"""Table, figure and page of a study of induced introspection."""

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from selfprobe.mechanism.induce import Induced, Study
from selfprobe.mechanism.induce_findings import LIMITS, findings
from selfprobe.mechanism.induce_prompts import ASKED, NTH, WORDINGS
from selfprobe.mechanism.induce_table import CONTRASTS, KINDS, tables
from selfprobe.page import Bullets, Column, Details, Figures, Page, Picture, Section, Table, estimated, number, write
from selfprobe.plots import GRID, INK, MUTED, SELF, bars, label

if TYPE_CHECKING:
    from matplotlib.figure import Figure

LEAD = (
    "A model learnt to reply to each question with two random labels, and was never asked about its replies. Numbers "
    "are P of a label among all labels, means over wordings and trainings, with 95 % intervals by question. "
    "'permuted' is the same for the labels of the other questions."
)
ROWS = (
    *(("learnt", kind) for kind in KINDS),
    ("held-out", "introspective"),
)
"""Bars of the figure, top to bottom."""
NAMES = {"direct": "direct answer", "introspective": "asked what it would say", "fact": "asked for a word of the text"}
NAMES["another assistant"] = "asked about another assistant"
HELD_OUT = "not learnt: its own\ndirect answer predicted"


def publish(out: Path, name: str, study: Study, found: Induced) -> tuple[Path, list[str]]:
    """Write index.html, tables/ and figures/ into `out`; the page's path, and what was found."""
    made = tables(found)
    said = findings(made)
    return Path(write(_page(name, study, found, made, said), str(out))), [*said, LIMITS]


def _page(name: str, study: Study, found: Induced, made: dict[str, pd.DataFrame], said: list[str]) -> Page:
    trained, full = found.trainings[0], found.trainings[0].full
    data = [
        f"{study.taught} questions learnt, {len(study.questions) - study.taught} held out; {len(study.labels.words)} "
        "labels; " + _trainings(len(found.trainings), full=full),
        f"{trained.parameters:,} {'weights' if full else 'parameters of the adapters'}; {len(trained.losses)} steps, "
        f"{trained.tokens:,} tokens, "
        f"{sum(t.seconds for t in found.trainings):.0f} s of training in all",
        f"Labels: {', '.join(study.labels.words)}",
    ]
    if study.left_out:
        data.append(f"{study.left_out} questions left out: too long, or with a special token")
    chance = 1 / len(study.labels.words)
    figure = Picture(
        "figure4", "The numbers of the table below", "Before and after", bars_figure(made["figure4"], chance)
    )
    training = Picture("training", "Loss by step", "Training", curve_figure(made["training"]))
    sections = [
        Section("What was found", [*said, LIMITS], name="found", menu="found"),
        Section("Before and after (Figure 4)", [Figures([figure]), _bars_table(made["figure4"])], name="figure4"),
        Section("Contrasts", [_contrast_table(made["contrasts"])], name="contrasts"),
        Section("By training", [_plain(made["seeds"])], name="seeds"),
        Section("By wording", [_plain(made["wordings"])], name="wordings"),
        Section("Training", [Figures([training])], name="training"),
        Section("What was asked", [*_prompts(), Details("Data", [Bullets(data)])], name="asked"),
    ]
    return Page(f"Introspection induced in {name}", LEAD, sections, tables=made)


def _trainings(count: int, *, full: bool) -> str:
    if count == 1:
        return f"one training, of {'all weights' if full else 'adapters'}"
    anew = ", and all weights trained anew" if full else " and other first adapters"
    return f"{count} trainings, each with other labels for the questions{anew}"


def _prompts() -> list[Bullets | str]:
    blocks: list[Bullets | str] = ["Each of these stood behind the question, after an empty line:"]
    for kind, texts in WORDINGS.items():
        asked = [ASKED.format(question="…", asked=t.format(nth=" / ".join(NTH))).replace("\n\n", " ") for t in texts]
        blocks += [NAMES[kind], Bullets(asked)]
    return blocks


def _bars_table(rows: pd.DataFrame) -> Table:
    columns = [
        Column("questions", "questions"),
        Column("asked", "kind"),
        Column("word", "word"),
        Column("phase", "phase"),
        estimated("P of the label"),
        Column("permuted", "permuted", lambda x: number(x, 2)),
        Column("P of all labels", "mass", lambda x: number(x, 2)),
        Column("questions, n", "n", str),
    ]
    ordered = rows.sort_values(["questions", "kind", "word", "phase"], ascending=[False, True, True, False])
    return Table(list(ordered.itertuples()), columns)


def _contrast_table(rows: pd.DataFrame) -> Table:
    columns = [
        Column("contrast", lambda row: CONTRASTS[row.contrast]),
        Column("word", "word"),
        estimated("difference of P"),
        Column("questions, n", "n", str),
    ]
    return Table(list(rows.itertuples()), columns)


def _plain(rows: pd.DataFrame) -> Table:
    numbers = {name: pd.api.types.is_float_dtype(dtype) for name, dtype in rows.dtypes.items()}
    columns = [
        Column(str(name), str(name), (lambda x: number(x, 2)) if is_float else None)
        for name, is_float in numbers.items()
    ]
    return Table(rows.to_dict("records"), columns)


def bars_figure(rows: pd.DataFrame, chance: float) -> "Figure":
    """Figure 4: P of the label before and after for both words, with the controls below."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(8.6, 3.9), layout="constrained", dpi=110)
    panels = figure.subplots(1, 2, sharey=True, sharex=True)
    at = np.arange(len(ROWS))
    for word, ax in zip(NTH, panels, strict=True):
        for phase, colour, shift in (("before", MUTED, -0.2), ("after", SELF, 0.2)):
            mine = rows[(rows.word == word) & (rows.phase == phase)].set_index(["questions", "kind"]).reindex(ROWS)
            bars(ax, at + shift, list(mine.itertuples()), colours=colour, width=0.36, name=phase)
            name = "other questions' labels (permuted)" if phase == "after" else ""
            ax.plot(mine.permuted, at + shift, "|", color=INK, markersize=11, markeredgewidth=1.6, label=name or None)
        ax.axvline(chance, color=MUTED, linewidth=0.8, linestyle=":")
        ax.set_title(f"{word} word", fontsize=10, loc="left")
        for side in ("top", "right"):
            ax.spines[side].set_visible(False)
        ax.grid(axis="x", color=GRID)
        ax.set_axisbelow(True)
        ax.tick_params(labelsize=8.5)
    names = [NAMES[kind] if part == "learnt" else HELD_OUT for part, kind in ROWS]
    panels[0].set_yticks(at, names)
    panels[0].invert_yaxis()
    panels[0].set_xlim(0, 1)
    figure.supxlabel(
        f"P of the label among all labels, 95 % interval by question; dotted: chance {chance:.2f}", fontsize=9
    )
    handles, told = panels[0].get_legend_handles_labels()
    figure.legend(handles, told, frameon=False, fontsize=8, loc="outside upper right", ncols=3)
    return figure


def curve_figure(rows: pd.DataFrame) -> "Figure":
    """The loss of each training by step, log scale."""
    from selfprobe.plots import new_axes

    figure, ax = new_axes(width=6.4, height=2.8)
    for seed, mine in rows.groupby("seed"):
        ax.plot(mine.step, mine.loss, linewidth=1, label=label(f"training {int(seed) + 1}"))
    ax.set_yscale("log")
    ax.set_xlabel("step")
    ax.set_ylabel("−log P of a label's token")
    ax.grid(axis="y", color=GRID)
    ax.legend(frameon=False, fontsize=8)
    return figure
