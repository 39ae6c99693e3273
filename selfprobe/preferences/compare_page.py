"""The page of several runs side by side: paper 004's figures and tables, of whichever models were run."""

import re
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

import pandas as pd

from selfprobe.page import Block, Bullets, Details, Figures, Page, Picture, Section, shown
from selfprobe.preferences import compare_figures, figures
from selfprobe.preferences.compare import GROUPS, Compared
from selfprobe.preferences.compare_words import counted
from selfprobe.preferences.page import text, text_table

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Tables = Mapping[str, pd.DataFrame]
LEAD = (
    "Runs of `selfprobe probe run` on the same data and under one preset, side by side. No model was asked and nothing "
    "was fitted for this page. Numbers are weighted F1 on held-out pairs, with 95 % intervals by question, which hold "
    "for the probes as fitted."
)
MEANS = (
    "The unweighted mean over the data sets of a group; its interval takes them as independent. A model without one of "
    "them has no mean. Of NEWSROOM, SummEval and HANNA "
)
ASPECTS = {
    "apart": "each aspect has a probe of its own, and a number is the mean over aspects, of every method.",
    "together": "one probe learns from all aspects; the paper's code fits and averages each (`--aspects apart`).",
}
SMALL = (
    "The same of a smaller model's probe against a larger model's own answers, each two models of a family on a data "
    "set; the intervals take both as independent (table small_above_large)."
)
DROPS = (
    "A drop is F1 on a natural subset less that on an adversarial one. In how many cases (a model and subset) the "
    "probe's is smaller than asking's (above), and in how many the interval says so; it takes the four scores as "
    "independent (table drops)."
)
RISE = (
    "Where each curve rises most from one block to the next (jump), and the first block at which it has made nine "
    "tenths of the way from .5 to its best (near); as shares of the model's blocks, without intervals. Empty where "
    "even the best block is not shown to be above .5."
)
CASES = (
    "In how many cases (a model on a data set) the probe's number is the larger one (above), and in how many the 95 % "
    "interval of the paired difference says so (shown above, shown below)."
)
PAPERS = {"mt_bench": "figure 1, right"} | {
    name: f"figures {12 + k} and {18 + k}" for k, name in enumerate(name for sets in GROUPS.values() for name in sets)
}
"""Which of the paper's figures show a data set by size."""


def page(found: Compared) -> Page:
    """The page of these runs; its tables are those of `found`."""
    sections = [section for section in _sections(found.tables) if section.blocks]
    return Page(
        title="Preference probes of several models",
        lead=f"{LEAD} Preset: {found.runs[0].state['settings']['name']}.",
        sections=sections,
        top=[Section("What is missing", [Bullets(found.holes)], name="missing", menu="missing")] if found.holes else [],
        tables=found.tables,
        told=[f"Missing: {hole}" for hole in found.holes],
    )


def slug(name: str) -> str:
    """A name as a file has it."""
    return re.sub(r"[^\w.-]+", "-", name).strip("-.") or "model"


def _sections(tables: Tables) -> Iterator[Section]:
    models = tables["models"][["model", "family", "parameters", "blocks", "dtype", "data_sets"]]
    sized = models.assign(parameters=[compare_figures.size_text(p) for p in models.parameters])
    yield Section("Models", [text_table(sized)], name="models", menu="models")
    yield Section("Means over data sets (figures 2, 3)", list(_means(tables)), name="means", menu="means")
    yield Section("By data set (figures 1, 12 to 23)", list(_sets(tables)), name="sets", menu="data sets")
    yield Section("Cases", list(_cases(tables)), name="cases", menu="cases")
    yield Section("By layer (figures 6, 7)", list(_layers(tables)), name="layers", menu="layers")
    yield Section(
        "Probes of one data set on another (table 1)", list(_transfer(tables)), name="table1", menu="transfer"
    )
    yield Section("Directions (figure 5)", list(_by_model(tables, "cosine")), name="cosine", menu="directions")
    yield Section("LLMBar (figures 4, 8 to 11)", list(_adversarial(tables)), name="llmbar", menu="LLMBar")
    yield Section("A direction taken out (table 2)", list(_ablation(tables)), name="table2", menu="ablation")
    yield Section("First two components (figure 1, left)", list(_components(tables)), name="components", menu="PCA")


def _picture(name: str, caption: str, figure: "Figure") -> Figures:
    return Figures([Picture(name, f"{caption}: the numbers are in the tables", caption, figure)])


def _means(tables: Tables) -> Iterator[Block]:
    if "groups" not in tables:
        return
    yield MEANS + ASPECTS[tables["models"].aspects.iloc[0]]
    for group, rows in tables["groups"].groupby("group", sort=False):
        if (drawn := _drawable(rows)) is not None:
            yield _picture(
                f"means-{slug(str(group))}", f"{group}, by size", compare_figures.by_size(drawn, title=str(group))
            )
        yield text_table(_by_method(rows))


def _sets(tables: Tables) -> Iterator[Block]:
    for name, rows in tables["scores"].groupby("dataset", sort=False):
        title = f"{name} ({PAPERS[str(name)]})" if name in PAPERS else str(name)
        if (drawn := _drawable(rows)) is not None:
            yield _picture(f"size-{slug(str(name))}", f"{title}, by size", compare_figures.by_size(drawn, title=title))
        yield Details(f"{name}: all methods", [text_table(_by_method(rows))])


def _drawable(rows: pd.DataFrame) -> pd.DataFrame | None:
    """The rows that a figure by size can show; None where there are none."""
    found = rows[rows.parameters.notna() & (rows.metric == "f1") & rows.value.notna()]
    return found if len(found) else None


def _by_method(rows: pd.DataFrame) -> pd.DataFrame:
    """model, then a column a method: F1 with its interval as text."""
    f1 = rows[rows.metric == "f1"]
    methods, models = list(dict.fromkeys(f1.method)), list(dict.fromkeys(f1.model))
    cells = {(row.model, row.method): shown(row) for row in f1.itertuples()}
    return pd.DataFrame([{"model": m} | {name: cells.get((m, name), "") for name in methods} for m in models])


def means(tables: Tables) -> str:
    """F1 of each group and data set for the terminal: a table each, models down, methods across."""
    parts = []
    for name in ("groups", "scores"):
        if name in tables:
            for key, rows in tables[name].groupby("group" if name == "groups" else "dataset", sort=False):
                kept = rows[rows.method.isin([method for method, _, _ in compare_figures.LINES])]
                parts.append(f"{key}, F1:\n{text(_by_method(kept))}")
    return "\n\n".join(parts)


def _cases(tables: Tables) -> Iterator[Block]:
    if "cases" in tables:
        yield CASES
        yield text_table(tables["cases"].query("metric == 'f1'").drop(columns="metric"))
    if "small_above_large" in tables:
        yield SMALL
        yield text_table(counted(tables["small_above_large"]))


def _layers(tables: Tables) -> Iterator[Block]:
    for name, rows in tables["depth"].groupby("dataset", sort=False):
        figure = compare_figures.by_depth(rows, title=f"{name}, by layer")
        yield _picture(f"depth-{slug(str(name))}", f"{name}, by layer", figure)
    if "rise" in tables:
        yield RISE
        yield text_table(tables["rise"].drop(columns=["family", "parameters"]).round(2))


def _transfer(tables: Tables) -> Iterator[Block]:
    """A table a model, as the paper's: rows tested on, columns trained on, supervised / unsupervised."""
    if "table1" not in tables:
        return
    f1 = tables["table1"].query("metric == 'f1'")
    for model, rows in f1.groupby("model", sort=False):
        cells = rows.assign(
            cell=[
                f"{s:.2f} [{a:.2f}, {b:.2f}] / {u:.2f} [{c:.2f}, {d:.2f}]"
                for s, a, b, u, c, d in zip(
                    *(
                        rows[f"{kind}_{end}"]
                        for kind in ("supervised", "unsupervised")
                        for end in ("value", "low", "high")
                    ),
                    strict=True,
                )
            ]
        )
        names = list(dict.fromkeys(rows.trained_on))
        wide = cells.pivot(index="tested_on", columns="trained_on", values="cell").loc[names, names]
        yield f"{model}: F1, supervised / unsupervised; rows tested on, columns trained on."
        yield text_table(wide.rename_axis(None, axis=1).reset_index())
    yield from _by_model(tables, "table1")


def _by_model(tables: Tables, name: str) -> Iterator[Block]:
    """A picture a model of a table that a run's own page draws too."""
    if name not in tables:
        return
    draw = {"cosine": figures.cosine, "adversarial": figures.adversarial, "table1": _transfer_map}[name]
    for model, rows in tables[name].groupby("model", sort=False):
        yield _picture(f"{name}-{slug(str(model))}", str(model), draw(rows))


def _adversarial(tables: Tables) -> Iterator[Block]:
    if "drops" in tables:
        yield DROPS
        yield text_table(counted(tables["drops"]))
    yield from _by_model(tables, "adversarial")


def _transfer_map(rows: pd.DataFrame) -> "Figure":
    keys = ["tested_on", "trained_on", "metric"]
    long = [
        rows[keys].assign(probe=kind, **{end: rows[f"{kind}_{end}"] for end in ("value", "low", "high")})
        for kind in ("supervised", "unsupervised")
    ]
    return figures.transfer(pd.concat(long, ignore_index=True))


def _ablation(tables: Tables) -> Iterator[Block]:
    if "table2" not in tables:
        return
    table = tables["table2"]
    yield _picture("table2", "Change of F1 with a direction taken out", compare_figures.changes(table))
    rows = table[table.direction != "none"]
    rows = rows.assign(change=[shown(row, sign=True) for row in rows.itertuples()])
    cells = rows.pivot_table(
        index=["dataset", "direction"], columns="model", values="change", aggfunc="first", sort=False
    )
    yield text_table(cells.rename_axis(None, axis=1).reset_index().fillna(""))


def _components(tables: Tables) -> Iterator[Block]:
    if "components" not in tables:
        return
    for name, rows in tables["components"].groupby("dataset", sort=False):
        yield _picture(f"components-{slug(str(name))}", str(name), figures.components(rows, by="model"))
