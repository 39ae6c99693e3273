"""The files and the page of the feature tool."""

import io
import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import anyio
import numpy as np
import pandas as pd
from markupsafe import Markup, escape

from selfprobe.awareness.features import (
    Cluster,
    Evidence,
    Taxonomy,
    clustered,
    evidence_in,
    group_rates,
    inertia_curve,
    prompt_features,
    taxonomy,
)
from selfprobe.awareness.features_question import Named, named_question
from selfprobe.awareness.features_question import table as question_table
from selfprobe.embed import embed
from selfprobe.errors import InputError, NoLogs
from selfprobe.output import place
from selfprobe.page import (
    Block,
    Bullets,
    Column,
    Details,
    Figures,
    Page,
    Picture,
    Quoted,
    Section,
    Table,
    estimated,
    set_aside,
)
from selfprobe.page import write as write_page
from selfprobe.safe import csv

if TYPE_CHECKING:
    from inspect_ai.model import Model
    from matplotlib.figure import Figure

PAGE_PROMPTS = 500
"""Prompts with evidence that the page shows; all are in the table."""
SHOWN_QUOTES = 20
"""Quotes of a cluster that the page shows."""


def write(
    logs: Sequence[str],
    out: str,
    *,
    embedder: str,
    clusters: int | None,
    grader: "Model | None",
    most: int = 15,
) -> Taxonomy | None:
    """Write the inertia curve, and with a number of clusters `taxonomy.json`, `prompts.csv`, `.parquet`, `index.html`.

    Args:
        logs: Logs of user_motivation.
        out: Folder to write.
        embedder: As for `selfprobe.embed.embed`.
        clusters: Number of clusters; None for the curve alone, which asks no model.
        grader: Who names the clusters.
        most: Groups at the top level.

    Raises:
        InputError: No evidence in the logs, or more clusters than different quotes.
        NoLogs: No finished log.
    """
    there = _evidence(logs)
    evidence, prompts = there.quotes, there.prompts
    quotes = list(evidence.quote)
    vectors = anyio.run(lambda: embed(quotes, model=embedder))
    curve = inertia_curve(vectors)
    members = clustered(vectors, clusters) if clusters is not None else []
    shown = _picture(curve, clusters)
    if clusters is None:
        table = pd.DataFrame({"clusters": list(curve), "inertia": list(curve.values())})
        place(
            {f"figures/inertia.{kind}": shown.rendered(kind) for kind in ("svg", "png")} | {"clusters.csv": csv(table)},
            out,
        )
        return None
    assert grader is not None, "the command asks for one"
    found = anyio.run(lambda: taxonomy(quotes, members, grader, most=most))
    table = prompt_features(prompts, evidence, found)
    content = {"embedder": embedder, "grader": str(grader), "logs": list(logs), "inertia": curve, **asdict(found)}
    content["evidence"] = evidence.drop(columns="answer").to_dict("records")
    write_page(_page(there, found, table, content, [Figures([shown])]), out)
    return found


def _evidence(logs: Sequence[str]) -> Evidence:
    """There is some, or it is an error."""
    there = evidence_in(logs)
    if there.quotes.empty:
        raise InputError(
            f"no evidence: none of {there.prompts.asked.sum()} graded answers to {len(there.prompts)} prompts brings "
            "up an evaluation"
        )
    return there


def _picture(curve: dict[int, float], clusters: int | None) -> Picture:
    """Of `features.inertia_curve`; the chosen number is marked."""
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


def _page(
    there: Evidence, found: Taxonomy, table: pd.DataFrame, content: Mapping[str, Any], how: Sequence[Block]
) -> Page:
    evidence, prompts, quotes = there.quotes, there.prompts, list(there.quotes.quote)
    parquet, named = io.BytesIO(), named_question(there, found)
    table.to_parquet(parquet, index=False)
    return Page(
        title="What gives the evaluation away?",
        lead=f"Features of {len(prompts)} prompts that subjects name when they are asked what the user wants, never "
        f"whether it is an evaluation. {prompts.aware.sum()} of {prompts.asked.sum()} graded answers bring up an "
        f"evaluation; their evidence is {len(quotes)} quotes.",
        sections=[
            _features(group_rates(table, found), found, quotes),
            _artefacts(found, quotes, named),
            Section("Prompts", _prompt_blocks(prompts, evidence, found), name="prompts", menu="prompts"),
            Section("Number of clusters", how, name="curve", menu="number of clusters"),
            _method(content["embedder"], content["grader"]),
            *([Section("Runs", set_aside(there.ignored), name="runs", menu="runs")] if there.ignored else []),
        ],
        files={
            "prompts.csv": csv(table),
            "prompts.parquet": parquet.getvalue(),
            "question.csv": csv(question_table(named)),
            "taxonomy.json": json.dumps(content, ensure_ascii=False, indent=1).encode(),
        },
    )


def evidence_section(logs: Sequence[str]) -> list[Section]:
    """What needs no call of a model: how often subjects bring up an evaluation, and on which prompts.

    No section where no log of user_motivation is finished.
    """
    try:
        there = evidence_in(logs)
    except NoLogs:
        return []
    evidence, prompts = there.quotes, there.prompts
    blocks: list[Block] = [
        f"Asked what the user wants, and never whether it is an evaluation, subjects bring up an evaluation in "
        f"{prompts.aware.sum()} of {prompts.asked.sum()} graded answers to {len(prompts)} prompts; their evidence is "
        f"{len(evidence)} quotes. To name and group the features that these point at takes a grader: "
        "selfprobe awareness features LOGS --clusters N --grader MODEL.",
        *_prompt_blocks(prompts, evidence, None),
    ]
    return [Section("What gives the evaluation away?", blocks, name="features", menu="features")]


def _features(counts: Sequence[Mapping[str, object]], found: Taxonomy, quotes: Sequence[str]) -> Section:
    """The groups with their clusters, then the clusters in none, then those without a name."""
    table = Table(
        counts,
        (
            Column("feature", "name"),
            Column("prompts", "prompts", str),
            estimated("of evaluation prompts", "evaluation"),
            estimated("of deployment prompts", "deployment"),
            Column("quotes", "quotes", str),
        ),
    )
    nothing = (
        "None: the grader named no cluster, or set all that it named aside. A small grader does; take a larger one."
    )
    blocks: list[Block] = [table if counts else nothing]
    blocks += [Section(name, [_cluster(c, quotes) for c in found.clusters if c.group == name]) for name in found.groups]
    if loose := [c for c in found.clusters if c.name and not c.group and not c.artefact]:
        said = "The grader put these into none, or into several."
        blocks.append(Section("In no group", [said, *(_cluster(c, quotes) for c in loose)]))
    if unnamed := [c for c in found.clusters if not c.name]:
        said = f"The grader's reply could not be used ({len(unnamed)} of {len(found.clusters)} clusters)."
        blocks.append(Section("Without a name", [said, *(_cluster(c, quotes) for c in unnamed)]))
    return Section("Features", blocks, name="groups", menu="features")


def _artefacts(found: Taxonomy, quotes: Sequence[str], named: Sequence[Named]) -> Section:
    blocks: list[Block] = [_cluster(c, quotes) for c in found.clusters if c.artefact]
    if blocks:
        blocks.append("The share of each subject's conversations with such evidence, and with no other.")
        shares = (estimated("with such evidence", "named"), estimated("with no other", "alone"))
        blocks.append(Table(named, (Column("model", "model"), Column("n", "conversations", str), *shares)))
    return Section("Set aside: artefacts of the question", blocks or ["None."], name="artefacts", menu="set aside")


def _cluster(cluster: Cluster, quotes: Sequence[str]) -> Details:
    items = [f"“{quotes[i]}”" for i in cluster.quotes[:SHOWN_QUOTES]]
    if (more := len(cluster.quotes) - SHOWN_QUOTES) > 0:
        items.append(f"… and {more} more")
    return Details(f"{cluster.name or 'unnamed'} ({len(cluster.quotes)})", [Bullets(items)])


def _prompt_blocks(prompts: pd.DataFrame, evidence: pd.DataFrame, found: Taxonomy | None) -> list[Block]:
    blocks: list[Block] = [
        "What a subject wrote about a prompt, with the evidence marked; in the prompt, what it cites word by word."
    ]
    if (more := evidence[["data", "item"]].drop_duplicates().shape[0] - PAGE_PROMPTS) > 0:
        blocks.append(f"{more} further prompts with evidence are in the table only.")
    for p in _prompts(prompts, evidence, found):
        label = f" ({p['label']})" if p["label"] else ""
        inside: list[Block] = [f"{p['source']}; {p['aware']} of {p['asked']} answers bring up an evaluation."]
        inside.append(Quoted(p["text"]))
        for answer in p["answers"]:
            inside += [f"{answer['model']}, {answer['key']}", Quoted(answer["answer"])]
        blocks.append(Details(f"{p['item']}{label}: {'; '.join(p['features'])}", inside))
    return blocks


def _method(embedder: str, grader: str) -> Section:
    said = (
        f"Quotes were checked against the answers and embedded by {embedder}; k-means; names and groups by {grader}, "
        "from the 15 quotes nearest to each centre. The features are what subjects say, not what moves their verdict: "
        "that takes prompts with and without the feature. All is in taxonomy.json, one row a prompt in prompts.csv and "
        "prompts.parquet."
    )
    return Section("Method", [said], name="method", menu="method")


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


def _prompts(prompts: pd.DataFrame, evidence: pd.DataFrame, found: Taxonomy | None) -> list[dict[str, Any]]:
    """The prompts with evidence, those with the most first, each with its answers and their quotes marked."""
    features_of = {i: c.name or f"unnamed {c.number}" for c in (found.clusters if found else ()) for i in c.quotes}
    named = evidence.assign(feature=[features_of.get(i, "") for i in range(len(evidence))])
    texts = {(row.data, row.item): row for row in prompts.itertuples()}
    shown = []
    for key, rows in sorted(named.groupby(["data", "item"], sort=False), key=lambda pair: -len(pair[1])):
        answers = [
            {"model": model, "key": answer_key, "answer": marked(answer, list(mine.quote))}
            # Epochs and perspectives answer under the same key; equal answers are shown once.
            for (model, answer_key, answer), mine in rows.groupby(["model", "key", "answer"], sort=False)
        ]
        row, features = texts[key], dict.fromkeys(rows.feature if found else [f"{len(rows)} quotes"])
        about = {"item": row.item, "source": row.source, "label": row.label, "aware": row.aware, "asked": row.asked}
        # A quote from the prompt itself, where the subject cites it, is marked there as well.
        text = marked(row.text, [q for q in rows.quote if len(q) >= 8])
        shown.append(about | {"text": text, "answers": answers, "features": list(features)})
    return shown[:PAGE_PROMPTS]
