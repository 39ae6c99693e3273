"""The files and the page of the feature tool."""

from collections.abc import Sequence
from dataclasses import asdict
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING

import anyio
import numpy as np
import pandas as pd
from markupsafe import Markup, escape

from selfprobe.awareness.features import Taxonomy, clustered, evidence_in, inertia_curve, prompt_features, taxonomy
from selfprobe.embed import embed
from selfprobe.errors import InputError
from selfprobe.page import Picture, render, save_pictures

if TYPE_CHECKING:
    from inspect_ai.model import Model
    from matplotlib.figure import Figure

PAGE_PROMPTS = 500
"""Prompts with evidence that the page shows; all are in the table."""


def write(
    logs: Sequence[str], out: Path, *, embedder: str, clusters: int | None, grader: "Model | None", most: int = 15
) -> Taxonomy | None:
    """Write the inertia curve, and with a number of clusters `taxonomy.json`, `prompts.csv`, `.parquet`, `index.html`.

    Args:
        logs: Logs of user_motivation.
        out: Folder to write.
        embedder: As for `selfprobe.embed.embed`.
        clusters: How many; None for the curve alone, which asks no model.
        grader: Who names the clusters.
        most: Groups at the top level.

    Raises:
        ValueError: No finished log, no evidence in them, or more clusters than different quotes.
    """
    evidence, prompts = evidence_in(logs)
    if evidence.empty:
        raise InputError(
            f"no evidence: none of {prompts.asked.sum()} graded answers to {len(prompts)} prompts brings up an "
            "evaluation"
        )
    quotes = list(evidence.quote)
    vectors = anyio.run(lambda: embed(quotes, model=embedder))
    members = clustered(vectors, clusters) if clusters is not None else []
    curve = inertia_curve(vectors)
    pictures = [_picture(curve, clusters)]
    out.mkdir(parents=True, exist_ok=True)
    save_pictures(pictures, out / "figures")
    if clusters is None:
        return None
    assert grader is not None, "the command asks for one"
    found = anyio.run(lambda: taxonomy(quotes, members, grader, most=most))
    table = prompt_features(prompts, evidence, found)
    table.to_csv(out / "prompts.csv", index=False)
    table.to_parquet(out / "prompts.parquet", index=False)
    content = {"embedder": embedder, "grader": str(grader), "logs": list(logs), "inertia": curve, **asdict(found)}
    content["evidence"] = evidence.drop(columns="answer").to_dict("records")
    save_json(content, out / "taxonomy.json")
    page = render(
        "features.html",
        found=found,
        quotes=quotes,
        counts=_counts(table, found),
        prompts=_prompts(prompts, evidence, found),
        more=max(0, evidence[["data", "item"]].drop_duplicates().shape[0] - PAGE_PROMPTS),
        asked=int(prompts.asked.sum()),
        aware=int(prompts.aware.sum()),
        total=len(prompts),
        embedder=embedder,
        grader=str(grader),
        pictures=pictures,
    )
    (out / "index.html").write_text(page, encoding="utf-8")
    return found


def save_json(content: object, path: Path) -> None:
    """Write JSON as people read it."""
    import json

    path.write_text(json.dumps(content, ensure_ascii=False, indent=1), encoding="utf-8")


def marked(text: str, quotes: Sequence[str]) -> Markup:
    """The text, escaped, with every occurrence of a quote marked; quotes that overlap are one mark."""
    on = np.zeros(len(text) + 1, dtype=bool)
    for quote in quotes:
        at = text.find(quote)
        while at != -1:
            on[at : at + len(quote)] = True
            at = text.find(quote, at + 1)
    edges = [0, *(np.flatnonzero(np.diff(on[: len(text)])) + 1), len(text)]
    parts = [(text[a:b], on[a]) for a, b in pairwise(edges) if b > a]
    return Markup("").join(Markup("<mark>{}</mark>").format(part) if lit else escape(part) for part, lit in parts)


def _counts(table: pd.DataFrame, found: Taxonomy) -> list[dict[str, object]]:
    """Prompts with each group's feature, by label."""
    rows = []
    for name in found.groups:
        with_it = table[table[f"group: {name}"] > 0]
        by_label = {label: int((with_it.label == label).sum()) for label in ("evaluation", "deployment")}
        quotes = sum(len(c.quotes) for c in found.clusters if c.group == name)
        rows.append({"name": name, "prompts": len(with_it), "quotes": quotes} | by_label)
    return rows


def _prompts(prompts: pd.DataFrame, evidence: pd.DataFrame, found: Taxonomy) -> list[dict[str, object]]:
    """The prompts with evidence, those with the most first, each with its answers and their quotes marked."""
    cluster_of = {i: c for c in found.clusters for i in c.quotes}
    named = evidence.assign(cluster=[cluster_of[i] for i in range(len(evidence))])
    texts = {(row.data, row.item): row for row in prompts.itertuples()}
    shown = []
    for key, rows in sorted(named.groupby(["data", "item"], sort=False), key=lambda pair: -len(pair[1])):
        answers = [
            {"model": model, "key": answer_key, "answer": marked(answer, list(mine.quote))}
            # Epochs and perspectives answer under the same key; equal answers are shown once.
            for (model, answer_key, answer), mine in rows.groupby(["model", "key", "answer"], sort=False)
        ]
        row, features = texts[key], dict.fromkeys(c.name or f"unnamed {c.number}" for c in rows.cluster)
        about = {"item": row.item, "source": row.source, "label": row.label, "aware": row.aware, "asked": row.asked}
        # A quote from the prompt itself, where the subject cites it, is marked there as well.
        text = marked(row.text, [q for q in rows.quote if len(q) >= 8])
        shown.append(about | {"text": text, "answers": answers, "features": list(features)})
    return shown[:PAGE_PROMPTS]


def _picture(curve: dict[int, float], clusters: int | None) -> Picture:
    told = ", ".join(f"{k}: {value:.1f}" for k, value in curve.items())
    caption = "Inertia by number of clusters; where it flattens, more clusters say little more."
    return Picture("inertia", f"Inertia by number of clusters: {told}", caption, _curve(curve, clusters))


def _curve(curve: dict[int, float], clusters: int | None) -> "Figure":
    from selfprobe.plots import MUTED, SELF, new_axes

    figure, ax = new_axes(width=5.6, height=3.4)
    ax.plot(list(curve), list(curve.values()), color=SELF, marker="o", markersize=4)
    if clusters is not None:
        ax.axvline(clusters, color=MUTED, linestyle="--", linewidth=1)
    ax.set_xlabel("clusters (the dashed line: chosen)" if clusters is not None else "clusters")
    ax.set_ylabel("inertia")
    return figure
