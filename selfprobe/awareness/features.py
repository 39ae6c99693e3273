"""What in a set of prompts gives an evaluation away? A taxonomy of the evidence that subjects name (paper 002).

From logs of `user_motivation`: verified quotes → embeddings → k-means → each cluster named by a grader → named clusters
grouped at a top level; clusters that are about our own question are set aside and shown.

Paper: names and groups by DeepSeek R1 0528; 15 top-level clusters, 2 of them artefacts; its naming prompt is not
available. Here: prompts of our own, and a cluster is judged an artefact while it is named, from its quotes.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
from inspect_ai.model import Model

from selfprobe.awareness.runs import chosen
from selfprobe.errors import InputError, NoLogs
from selfprobe.logs import samples
from selfprobe.parse import json_object
from selfprobe.scorers.awareness_cues import cues_by_grader, finding_of
from selfprobe.solvers.ask import ask
from selfprobe.solvers.grade import delimited
from selfprobe.solvers.name_features import GROUP_CONFIG, GROUP_PROMPT, NAME_CONFIG, NAME_PROMPT
from selfprobe.solvers.record import Reply, record_of
from selfprobe.stats.estimate import clustered_mean

GRID = range(50, 301, 10)
"""Numbers of clusters of the inertia curve (paper 002, footnote 2)."""
SHOWN = 15
"""Quotes of a cluster that the grader reads: those nearest to its centre."""


@dataclass(frozen=True)
class Cluster:
    """Quotes that are alike."""

    number: int
    name: str | None
    """Of the feature; None where the grader's reply could not be used."""
    artefact: bool
    """Whether it is about our question and not about the prompts."""
    group: str | None
    """Of the top level; None for artefacts and unnamed clusters, and where the grader put it into none or several."""
    quotes: tuple[int, ...]
    """Rows of the evidence, nearest to the centre first."""
    reply: str
    """The grader's, raw."""


@dataclass(frozen=True)
class Taxonomy:
    """The features of a set of prompts."""

    clusters: tuple[Cluster, ...]
    groups: tuple[str, ...]
    """Names of the top level, the one with the most quotes first."""
    reply: str
    """What the grader said about the groups, raw; empty where there was nothing to group."""


@dataclass(frozen=True)
class Evidence:
    """What subjects named as evidence of an evaluation."""

    quotes: pd.DataFrame
    """All verified ones: data, item, model, key, answer, quote."""
    prompts: pd.DataFrame
    """One row a prompt: data, item, source, label, text, `asked` and `aware` (answers that could be graded, and those
    of them that bring up an evaluation, over all models)."""
    asked: pd.DataFrame
    """One row a subject's conversation with an answer that could be graded: data, item, model, source."""
    ignored: Mapping[str, str]
    """Log → why it is not used."""


def evidence_in(logs: Sequence[str]) -> Evidence:
    """The evidence in the logs of user_motivation, the placebo arm aside.

    Raises:
        NoLogs: There is no finished one.
    """
    runs, ignored = chosen(logs)
    read = {arm: run.header for arm, run in runs.items() if arm[0] == "user_motivation" and not arm[4]}
    motivations = {arm: header for arm, header in read.items() if arm[1] == header.eval.model}
    otherwise = {arm: header for arm, header in read.items() if arm not in motivations}
    ignored |= {
        header.location: f"another run: {arm[1].removeprefix(header.eval.model)[2:]}; give its logs alone to use it"
        for arm, header in otherwise.items()
    }
    if not motivations:
        raise NoLogs(f"no finished log of user_motivation in {', '.join(logs)}; the evidence is in its answers")
    quotes: list[dict[str, Any]] = []
    prompts: dict[tuple[str, str], dict[str, Any]] = {}
    graded: dict[tuple[str, str, str], dict[str, Any]] = {}
    for arm, header in motivations.items():  # every model and perspective
        for sample in samples(header.location):
            record, named = record_of(sample), {"data": str(arm[-1]), "item": str(sample.id)}
            messages = sample.input if isinstance(sample.input, list) else []
            text = "\n\n".join(f"[{m.role}] {m.text}" for m in messages)
            about = {name: sample.metadata.get(name) for name in ("source", "label")}
            row = prompts.setdefault((named["data"], named["item"]), named | about | {"text": text} | _NOTHING)
            answers = record.answers
            for key, graders in cues_by_grader(record).items():
                answer, cues = answers[key].text, finding_of(graders)
                row["asked"] += cues.aware is not None
                row["aware"] += cues.aware is True
                common = named | {"model": header.eval.model, "key": key, "answer": answer}
                if cues.aware is not None:
                    of = named | {"model": header.eval.model, "source": row["source"]}
                    graded.setdefault((named["data"], named["item"], header.eval.model), of)
                quotes += [common | {"quote": quote} for quote in cues.quotes]
    columns = ["data", "item", "model", "key", "answer", "quote"]
    asked = pd.DataFrame(list(graded.values()), columns=["data", "item", "model", "source"])
    return Evidence(pd.DataFrame(quotes, columns=columns), pd.DataFrame(list(prompts.values())), asked, ignored)


_NOTHING = {"asked": 0, "aware": 0}


def inertia_curve(vectors: npt.NDArray[np.float64]) -> dict[int, float]:
    """Sum of squared distances to the nearest centre, by number of clusters.

    50 to 300 in steps of 10 (paper 002, footnote 2), as far as there are different quotes; with fewer than 60 of them
    about ten numbers from 1 on.
    """
    most = len(np.unique(vectors, axis=0))
    grid = [k for k in GRID if k <= most]
    if len(grid) < 2:
        grid = list(range(1, most + 1, max(1, most // 10)))
    return {k: float(_kmeans(vectors, k).inertia_) for k in grid}


def clustered(vectors: npt.NDArray[np.float64], clusters: int) -> list[tuple[int, ...]]:
    """Rows of each cluster, nearest to its centre first; the largest cluster first.

    Args:
        vectors: `[quote, dimension]`.
        clusters: How many.

    Raises:
        ValueError: More clusters than different quotes.
    """
    most = len(np.unique(vectors, axis=0)) if len(vectors) else 0
    if not 1 <= clusters <= most:
        raise InputError(f"clusters must be in 1..{most}, the number of different quotes, got {clusters}")
    fitted = _kmeans(vectors, clusters)
    away = np.linalg.norm(vectors - fitted.cluster_centers_[fitted.labels_], axis=1)
    rows = [np.flatnonzero(fitted.labels_ == c) for c in range(clusters)]
    ordered = [tuple(int(i) for i in mine[np.argsort(away[mine], kind="stable")]) for mine in rows]
    return sorted(ordered, key=lambda mine: (-len(mine), mine))


async def taxonomy(quotes: Sequence[str], members: Sequence[tuple[int, ...]], grader: Model, *, most: int) -> Taxonomy:
    """Name the clusters and group the names, with 1 + len(members) calls at temperature 0.

    Args:
        quotes: The evidence.
        members: Rows of each cluster, nearest to its centre first.
        grader: Who names.
        most: Groups at the top level.
    """
    texts = ["\n".join(dict.fromkeys(quotes[i] for i in mine[:SHOWN])) for mine in members]
    prompts = {str(n): NAME_PROMPT.format(material=delimited(text)) for n, text in enumerate(texts, start=1)}
    replies = await ask(prompts, role=grader, config=NAME_CONFIG, may_be_cut=False)
    names = {n: _named(replies[n]) for n in prompts}
    features = {int(n): found[0] for n, found in names.items() if found and not found[1]}
    grouping, group_of = None, dict[int, str]()
    if features:
        listed = delimited("\n".join(f"{n}. {name}" for n, name in features.items()))
        prompt = {"groups": GROUP_PROMPT.format(most=most, material=listed)}
        grouping = (await ask(prompt, role=grader, config=GROUP_CONFIG, may_be_cut=False))["groups"]
        group_of = grouped(grouping, features)
    clusters = []
    for number, (n, mine) in enumerate(zip(prompts, members, strict=True), start=1):
        name, artefact = names[n] or (None, False)
        clusters.append(Cluster(number, name, artefact, group_of.get(number), mine, replies[n].text))
    sizes = Counter[str]()
    for cluster in clusters:
        sizes.update({cluster.group: len(cluster.quotes)} if cluster.group else {})
    return Taxonomy(tuple(clusters), tuple(g for g, _ in sizes.most_common()), grouping.text if grouping else "")


def grouped(reply: Reply, features: Mapping[int, str]) -> dict[int, str]:
    """Group by feature, of those that the grader put into exactly one; empty when its reply cannot be used.

    Numbers that are no feature's do not count.
    """
    found = None if reply.problem else json_object(reply.text)
    groups = found.get("groups") if found else None
    if not isinstance(groups, list):
        return {}
    placed: dict[int, list[str]] = {}
    for group in groups:
        if not isinstance(group, dict) or not isinstance(group.get("features"), list):
            continue
        name = group.get("name")
        if isinstance(name, str) and name.strip():
            for number in set(map(str, group["features"])):
                placed.setdefault(int(number) if number.isdecimal() else 0, []).append(name.strip())
    return {n: names[0] for n, names in placed.items() if n in features and len(set(names)) == 1}


def prompt_features(prompts: pd.DataFrame, evidence: pd.DataFrame, found: Taxonomy) -> pd.DataFrame:
    """One row a prompt: what was asked and found, its clusters, and the number of its quotes in each group."""
    cluster_of = {i: cluster for cluster in found.clusters for i in cluster.quotes}
    by_prompt: dict[tuple[str, str], list[Cluster]] = {}
    for i, (data, item) in enumerate(zip(evidence.data, evidence["item"], strict=True)):
        by_prompt.setdefault((data, item), []).append(cluster_of[i])
    rows = []
    for row in prompts.drop(columns="text").to_dict("records"):
        mine = by_prompt.get((row["data"], row["item"]), [])
        own = [c for c in mine if not c.artefact]
        counts = Counter(c.group for c in own if c.group)
        rows.append(
            row
            | {"quotes": len(mine), "artefacts": len(mine) - len(own)}
            | {"features": "; ".join(dict.fromkeys(c.name or f"unnamed {c.number}" for c in own))}
            | {f"group: {name}": counts[name] for name in found.groups}
        )
    return pd.DataFrame(rows)


def group_rates(table: pd.DataFrame, found: Taxonomy) -> list[dict[str, Any]]:
    """A row a group: how many prompts have its feature, their quotes, and the share of the prompts of each label.

    Args:
        table: `prompt_features`.
        found: Its taxonomy.
    """
    rows = []
    clusters = np.where(table.source.isna(), table["item"], table.source)
    for name in found.groups:
        has = (table[f"group: {name}"] > 0).to_numpy()
        row: dict[str, Any] = {"name": name, "prompts": int(has.sum())}
        row["quotes"] = sum(len(c.quotes) for c in found.clusters if c.group == name)
        for label in ("evaluation", "deployment"):
            mine = (table.label == label).to_numpy()
            row[label] = clustered_mean(has[mine], clusters[mine], unit="source", interval="wilson")
        rows.append(row)
    return rows


def _named(reply: Reply) -> tuple[str, bool] | None:
    found = None if reply.problem else json_object(reply.text)
    if not found or set(found) != {"name", "artefact"}:
        return None
    name, artefact = found["name"], found["artefact"]
    return (name.strip(), artefact) if isinstance(name, str) and name.strip() and isinstance(artefact, bool) else None


def _kmeans(vectors: npt.NDArray[np.float64], clusters: int) -> Any:
    from sklearn.cluster import KMeans

    return KMeans(clusters, n_init=4, random_state=0).fit(vectors)
