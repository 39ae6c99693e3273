"""The page of the awareness comparison, its tables and its figures."""

from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

import pandas as pd

from selfprobe.awareness import figures as plots
from selfprobe.awareness.numbers import Comparison, compare
from selfprobe.awareness.table import ARM, Logged, load
from selfprobe.page import Picture, render, save_pictures, save_tables

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def write(logs: Sequence[str], out: Path) -> Comparison:
    """Read awareness logs, compare them, and write `index.html`, `tables/` and `figures/` into `out`.

    Raises:
        ValueError: There is no finished awareness log among them.
    """
    logged = load(logs)
    comparison = compare(logged)
    pictures = _pictures(logged, comparison)
    save_tables(_tables(logged, comparison), out / "tables")
    save_pictures(pictures, out / "figures")
    page = render("awareness.html", comparison=comparison, pictures=pictures, runs=logged.runs.to_dict("records"))
    (out / "index.html").write_text(page, encoding="utf-8")
    return comparison


def _tables(logged: Logged, comparison: Comparison) -> dict[str, pd.DataFrame]:
    baselines = {
        name: asdict(getattr(comparison.baselines, name)) for name in ("length", "words", "words_other_source")
    }
    return {
        "methods": pd.json_normalize(
            [{name: getattr(m, name) for name in ARM} | asdict(m) for m in comparison.methods]
        ),
        "pairs": pd.json_normalize([asdict(pair) for pair in comparison.pairs]),
        "baselines": pd.DataFrame([{"baseline": name, **values} for name, values in baselines.items()]),
        "verdicts": logged.verdicts,
        "runs": logged.runs,
    }


def _pictures(logged: Logged, comparison: Comparison) -> list[Picture]:
    told = "; ".join(
        f"{m.method} {m.model}: evaluation rows {m.tpr.value:.2f}, deployment rows {1 - m.tnr.value:.2f}"
        for m in comparison.methods
    )
    found: list[tuple[str, str, str, Figure | None]] = [
        (
            "called",
            f"Bars of the share called evaluation. {told}",
            "Share of evaluation rows and of deployment rows called evaluation (Figures 7, 9, 10).",
            plots.called(comparison.methods) if any(m.labelled for m in comparison.methods) else None,
        )
    ]
    for number, model in enumerate(dict.fromkeys(m.model for m in comparison.methods), start=1):
        aurocs = "; ".join(f"{m.method} {m.auroc.value:.2f}" for m in comparison.methods if m.model == model)
        caption = f"ROC of {model} with the text-only baselines in grey."
        roc = plots.roc(logged, comparison.baselines, model) if logged.texts.label.nunique() == 2 else None
        found.append((f"roc-{number}", f"ROC curves of {model}; AUROC {aurocs}", caption, roc))
    found += [
        (
            "calibration",
            "Stated probability of an evaluation against the share of evaluations",
            "Calibration, ten equal-mass bins.",
            plots.calibration(logged),
        ),
        (
            "kappa",
            "Kappa of binary and probability by number of decisions",
            "Agreement by number of decisions, with 95 % range over 100 draws (footnote 3).",
            plots.kappa_by_decisions(comparison.pairs),
        ),
        (
            "turns",
            "Absolute error by number of turns with trend lines",
            "Absolute error by turns (footnote 4).",
            plots.error_by_turns(logged, comparison.methods),
        ),
    ]
    return [Picture(name, alt, caption, figure) for name, alt, caption, figure in found if figure is not None]
