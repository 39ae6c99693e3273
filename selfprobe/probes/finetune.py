"""The fine-tuned judge compared with the probe (paper 004, section 5.2, Figure 3, appendix D): same
pairs, same half.

The model is trained (adapters, or all weights) on the training half of the run's first split, which
its saved probes learnt from, to say "1" or "2" after the priming text; in both orders where the run
reads both. Then it is asked as in prompting, P("1") and P("2") in both orders, on the test half.
Paper: OpenRLHF, LoRA of rank 64, alpha 64, all modules, and full fine-tuning, 5,000 samples, one
epoch; its public scripts have rates of 5e-5 and 5e-7, a batch of 32, and one judge for each group
of data sets. Here: those, or a rate that moves small models and a judge for each data set.
"""

import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from selfprobe.data.public_pairs import GROUPS
from selfprobe.embed.weights import Progress, to_stderr
from selfprobe.probes.ablate import answers
from selfprobe.probes.evaluate import (
    METRICS,
    by_length,
    estimate,
    first_text_answers,
    no_model,
    own_answers,
    split_pairs,
)
from selfprobe.probes.fit import (
    KINDS,
    FitInputs,
    FitSettings,
    Half,
    Scores,
    learn,
    learnable,
    means,
)
from selfprobe.probes.folder import cached_array, probe_name, read_run, write_tables
from selfprobe.probes.forward import cut_batches
from selfprobe.probes.harvesting import Harvest, batch_budget, open_harvest
from selfprobe.probes.model import LocalModel
from selfprobe.probes.plan import seconds_a_token
from selfprobe.probes.probe_file import ProbeFile, load_probe
from selfprobe.probes.tokens import Prompt, encode
from selfprobe.probes.training import Example, Recipe, Training, finetuned, forward_flops

PAPER = Recipe(rank=64, alpha=64, rate=1e-4, epochs=1, batch=8)
"""Settings of appendix D, with the rate and the batch of small models."""
SAMPLES = 5000
"""Number of training texts in appendix D, a pair in one order each."""
JUDGE = "fine-tuned judge"
JUDGES = {"lora": JUDGE, "full": f"{JUDGE}, all weights"}
"""Name of the judge by what was trained."""
KEYS = ("dataset", "training", "method", "samples", "probe", "against", "what", "metric")
"""Columns that identify a row of a table."""


@dataclass(frozen=True)
class Lesson:
    """One data set of a finished run, or one of its aspects with its own probes, and the half that
    they learnt from.
    """

    name: str
    aspect: str
    """Name of the aspect; "" where one probe learnt from all pairs."""
    harvest: Harvest
    settings: FitSettings
    half: Half
    probes: dict[str, ProbeFile]
    prompts: tuple[Prompt, ...]
    """Prompts of the training half, every pair in both orders (in one where the run reads one)."""
    right: tuple[int, ...]
    """[prompt]: 0 where "1" is right, 1 where "2" is."""

    @property
    def title(self) -> str:
        """Name of the lesson in files."""
        return probe_name(self.name, self.aspect)


@dataclass(frozen=True)
class Course:
    """The lessons of one judge: a single one, or all of a group of data sets."""

    name: str
    lessons: tuple[Lesson, ...]

    def chosen(self, samples: int | None, *, seed: int = 0) -> list[list[int]]:
        """[lesson]: numbers of its prompts among at most `samples` texts, drawn with a fixed seed."""
        sizes = [len(lesson.prompts) for lesson in self.lessons]
        drawn: Sequence[int] = range(sum(sizes))
        if samples is not None and samples < len(drawn):
            drawn = sorted(
                np.random.default_rng([seed, 5]).choice(len(drawn), samples, replace=False)
            )
        ends = np.cumsum([0, *sizes])
        return [
            [int(i - start) for i in drawn if start <= i < end] for start, end in pairwise(ends)
        ]

    def examples(self, samples: int | None = SAMPLES, *, seed: int = 0) -> list[Example]:
        """Training texts, at most `samples`, drawn with a fixed seed."""
        drawn = zip(self.lessons, self.chosen(samples, seed=seed), strict=True)
        shown = [(lesson.prompts[i], lesson.right[i]) for lesson, numbers in drawn for i in numbers]
        return [Example(prompt.prefix, (prompt.contrast[right],)) for prompt, right in shown]

    @property
    def sizes(self) -> tuple[int, int]:
        """Numbers of pairs to learn from and to test on."""
        return sum(len(one.half.train) for one in self.lessons), sum(
            len(one.half.test) for one in self.lessons
        )


def courses(given: Sequence[Lesson], *, grouped: bool = False) -> list[Course]:
    """One course per lesson; with `grouped` one per group of data sets (`GROUPS`), and one per data
    set of no group.
    """
    if not grouped:
        return [Course(lesson.title, (lesson,)) for lesson in given]
    of = {name: group.replace(" ", "-") for group, names in GROUPS.items() for name in names}
    names = dict.fromkeys(of.get(lesson.name, lesson.name) for lesson in given)
    return [
        Course(one, tuple(lesson for lesson in given if of.get(lesson.name, lesson.name) == one))
        for one in names
    ]


def lessons(out: Path, judge: LocalModel, datasets: Sequence[str]) -> list[Lesson]:
    """Lessons of each data set of the run in `out`.

    Raises:
        ValueError: A data set is not in the run, its probes are not there, or the run is of another
            model.
    """
    state = read_run(out)
    if state["revision"] != judge.revision:
        raise ValueError(
            f"{out} is a run of {state['model']} ({state['revision']}), got {judge.name}"
        )
    if lost := [name for name in datasets if name not in state["datasets"]]:
        raise ValueError(f"{out} has no data set {lost[0]!r}, only {', '.join(state['datasets'])}")
    return [lesson for name in datasets for lesson in _lessons(out, name, state, judge)]


def _lessons(out: Path, name: str, state: dict[str, Any], judge: LocalModel) -> list[Lesson]:
    """One lesson, or one per aspect with probes, each on the first half, which its probes learnt
    from.
    """
    harvested = open_harvest(out / state["datasets"][name]["activations"], judge=judge)
    settings = FitSettings(**state["settings"])
    return [
        _lesson(out, name, harvested, settings, half, judge)
        for half in split_pairs(harvested.pairs, settings)[:: settings.seeds]
    ]


def _lesson(
    out: Path, name: str, harvested: Harvest, settings: FitSettings, half: Half, judge: LocalModel
) -> Lesson:
    files = {
        str(kind): out / f"{probe_name(name, half.aspect)}-{kind}.safetensors" for kind in KINDS
    }
    probes = {kind: load_probe(file, revision=judge.revision) for kind, file in files.items()}
    pairs = [harvested.pairs[i] for i in half.train]
    orders = 2 if settings.orders == "both" else 1
    shown = [version for pair in pairs for version in (pair, pair.swapped)[:orders]]
    prompts = encode(judge.tokenizer, shown, judge.chat)
    right = tuple((p.label or 0) - 1 for p in shown)
    return Lesson(name, half.aspect, harvested, settings, half, probes, tuple(prompts), right)


def finetune_run(
    out: Path,
    judge: LocalModel,
    given: Sequence[Lesson],
    *,
    recipe: Recipe = PAPER,
    samples: int | None = SAMPLES,
    grouped: bool = False,
    batch_tokens: int | None = None,
    progress: Progress = to_stderr,
) -> dict[str, pd.DataFrame]:
    """Train and test a judge for each data set, or for each of its aspects; the tables, which are
    also in `out`.

    Where aspects have their own probes each has its judge, and a number is the mean over aspects,
    as in all tables. With `grouped` one judge learns all data sets of a group: it may have read,
    under another aspect, texts of a pair that it is tested on.

    finetuned       dataset, method, metric, value, low, high, n …: on the test half of the run's first split alone
    finetuned_less  the judge less the probes, asking and the controls, on the same pairs
    saturation      dataset, method, samples …: F1 of the judge, and of the supervised probe that learnt from the pairs
                    of the judge's texts; rows of other numbers of samples stay, so that several calls make the curve
    finetuning      dataset, training, step, loss
    finetuning_cost dataset, what, seconds, flops, parameters

    Rows of another training in the folder's tables (all weights next to adapters) stay. The same
    call continues a killed one where it stopped.
    """
    made: dict[str, list[pd.DataFrame]] = {
        "finetuned": [],
        "finetuned_less": [],
        "saturation": [],
        "finetuning": [],
        "finetuning_cost": [],
    }
    judged = JUDGES[recipe.way]
    scored: dict[str, list[tuple[Lesson, dict[str, tuple[Scores, str]]]]] = {}
    as_many: dict[str, list[Scores]] = {}
    texts: dict[str, int] = {}
    for course in courses(given, grouped=grouped):
        examples = course.examples(samples)
        few = f"-{len(examples)}" * (len(examples) < len(course.examples(None)))
        folder = out / "finetuned" / f"{course.name}{few}{'-full' * (recipe.way == 'full')}"
        progress(f"{course.name}: training on {len(examples)} texts of {course.sizes[0]} pairs")
        sizes: dict[str, Any] = {"batch_tokens": batch_tokens, "progress": progress}
        with finetuned(judge, examples, recipe, folder, **sizes) as (tuned, training):
            progress(
                f"{course.name}: asking the fine-tuned judge about {course.sizes[1]} held-out pairs"
            )
            said = [
                _said(tuned, lesson, folder, alone=len(course.lessons) == 1, **sizes)
                for lesson in course.lessons
            ]
        steps = pd.DataFrame({"step": range(1, len(training.losses) + 1), "loss": training.losses})
        made["finetuning"].append(steps.assign(training=judged, dataset=course.name))
        for lesson, one in zip(course.lessons, said, strict=True):
            scores = _scores(
                lesson, judged, first_text_answers(one).mean(axis=1) - 0.5, _of_group(course)
            )
            scored.setdefault(lesson.name, []).append((lesson, scores))
            texts[lesson.name] = len(examples)
        for lesson, numbers in zip(course.lessons, course.chosen(samples), strict=True):
            as_many.setdefault(lesson.name, []).append(_of_as_many(lesson, numbers))
        for lesson in _firsts(course):
            cost = _training_cost(judged, training, len(examples), lesson, course)
            made["finetuning_cost"].append(cost.assign(dataset=lesson.name))
        for lesson in course.lessons:
            made["finetuning_cost"].append(
                _probe_cost(judge, lesson, batch_tokens).assign(dataset=lesson.name)
            )
    for name, parts in scored.items():
        lesson, every = parts[0][0], _together([found for _, found in parts])
        made["finetuned"].append(_methods(lesson, every).assign(dataset=name))
        made["finetuned_less"].append(_less(lesson, judged, every).assign(dataset=name))
        curve = {
            judged: every[judged],
            "supervised": (np.concatenate(as_many[name]), "of the same pairs"),
        }
        made["saturation"].append(_methods(lesson, curve).assign(dataset=name, samples=texts[name]))
    return write_tables(
        out, {name: _beside_others(out, name, pd.concat(rows)) for name, rows in made.items()}
    )


def _said(tuned: LocalModel, lesson: Lesson, folder: Path, *, alone: bool, **sizes: Any) -> Any:
    """Answers of the judge for a lesson's test half [pair, order, digit], from its folder if they
    are there.
    """
    test = [lesson.harvest.pairs[i] for i in lesson.half.test]
    file = folder / ("answers.npy" if alone else f"answers-{lesson.title}.npy")
    return cached_array(file, lambda: answers(tuned, test, {JUDGE: None}, **sizes)[JUDGE])


def _firsts(course: Course) -> list[Lesson]:
    """The first lesson of each data set of a course."""
    return list({lesson.name: lesson for lesson in reversed(course.lessons)}.values())[::-1]


def _of_group(course: Course) -> str:
    """Names of the data sets that a judge learnt, where it learnt several or several aspects; else
    "".
    """
    names = dict.fromkeys(lesson.name for lesson in course.lessons)
    aspects = "'s aspects" if len(names) == 1 else ""
    return f" of {', '.join(names)}{aspects} together" if len(course.lessons) > 1 else ""


def _together(parts: Sequence[dict[str, tuple[Scores, str]]]) -> dict[str, tuple[Scores, str]]:
    """Method → scores [aspect, pair] and its notes, joined."""
    return {
        method: (
            np.concatenate([part[method][0] for part in parts]),
            "; ".join(dict.fromkeys(part[method][1] for part in parts)),
        )
        for method in parts[0]
    }


def _beside_others(out: Path, name: str, rows: pd.DataFrame) -> pd.DataFrame:
    """Rows of another training that the folder's table holds, then these."""
    file = out / "tables" / f"{name}.csv"
    if not file.is_file():
        return rows
    held = pd.read_csv(file, keep_default_na=False, na_values=[""])
    keys = [key for key in KEYS if key in rows]
    mine = set(rows[keys].itertuples(index=False, name=None))
    others = [key not in mine for key in held[keys].itertuples(index=False, name=None)]
    return pd.concat([held[others], rows], ignore_index=True)


def _scores(
    lesson: Lesson, judge: str, judged: Scores, group: str
) -> dict[str, tuple[Scores, str]]:
    """Method → scores [1, pair], NaN outside the test half, and a note."""
    harvested, half = lesson.harvest, lesson.half
    found: dict[str, tuple[Scores, str]] = {}
    inside = np.zeros(len(harvested.pairs), dtype=bool)
    inside[half.test] = True

    def tested(scores: Any) -> Scores:
        return np.where(inside, scores, np.nan)[None]

    whole = np.full(len(inside), np.nan)
    whole[half.test] = judged
    what = "adapters (LoRA)" if judge == JUDGE else "all weights"
    found[judge] = (
        tested(whole),
        f"{what} trained on the training half{group}, P(1), P(2) averaged over 2 orders",
    )
    for kind, file in lesson.probes.items():
        states = harvested.layer(file.probe.layer)
        found[kind] = (
            tested(file.probe.score(states)),
            f"the saved probe, layer {file.probe.layer}",
        )
    found["prompting"] = (tested(_own(lesson)), "the model as it came")
    folds = lesson.settings.folds
    found["no model (TF-IDF)"] = (no_model(harvested.pairs, [half], folds=folds), "same half")
    found["no model (length)"] = (
        by_length(harvested.pairs, [half]),
        "longer or shorter, by the training half",
    )
    return found


def _of_as_many(lesson: Lesson, numbers: Sequence[int]) -> Scores:
    """[1, pair]: scores of a supervised probe that learnt from the pairs of these prompts, at the
    saved probe's layer.

    Scores are NaN outside the test half, and everywhere where these pairs are too few to learn
    from.
    """
    settings, half = lesson.settings, lesson.half
    pairs = sorted({i // (2 if settings.orders == "both" else 1) for i in numbers})
    rows, found = (
        half.train[np.array(pairs, dtype=int)],
        np.full((1, len(lesson.harvest.pairs)), np.nan),
    )
    study = FitInputs(
        settings,
        [replace(half, train=rows)],
        lesson.harvest.labels == 1,
        lesson.harvest.groups,
        _own(lesson),
    )
    learnt = study.training_supervision(0)
    if not learnable(learnt.truth(), learnt.groups, folds=settings.folds):
        return found
    layer = lesson.probes["supervised"].probe.layer
    states = lesson.harvest.layer(layer)
    seen = states[rows] if settings.centre == "train" else states[np.concatenate([rows, half.test])]
    how: dict[str, Any] = {
        "layer": layer,
        "orders": settings.orders,
        "centre": means(seen, settings.orders),
    }
    found[0, half.test] = learn("supervised", states[rows], learnt, **how).score(states[half.test])
    return found


def _own(lesson: Lesson) -> Scores:
    """[pair]: swap-averaged answers of the model itself."""
    return np.asarray(own_answers(lesson.harvest).mean(axis=1) - 0.5)


def _estimated(
    lesson: Lesson, scores: Scores, metric: str, less: Scores | None = None
) -> dict[str, Any]:
    truth, groups = lesson.harvest.labels == 1, lesson.harvest.groups
    return asdict(
        estimate(scores, truth, groups, metric, resamples=lesson.settings.resamples, less=less)
    )


def _methods(lesson: Lesson, scores: dict[str, tuple[Scores, str]]) -> pd.DataFrame:
    return pd.DataFrame(
        [
            _estimated(lesson, each, metric) | {"method": name, "metric": metric, "note": note}
            for name, (each, note) in scores.items()
            for metric in METRICS
        ]
    )


def _less(lesson: Lesson, judge: str, scores: dict[str, tuple[Scores, str]]) -> pd.DataFrame:
    return pd.DataFrame(
        [
            _estimated(lesson, scores[judge][0], metric, each)
            | {"probe": judge, "against": name, "metric": metric}
            for name, (each, _) in scores.items()
            if name != judge
            for metric in METRICS
        ]
    )


def _training_cost(
    judged: str, training: Training, examples: int, lesson: Lesson, course: Course
) -> pd.DataFrame:
    """Seconds and FLOPs of the judge's training on the training half, or halves."""
    of = _of_group(course) or (f" ({lesson.aspect})" if lesson.aspect else "")
    row = {
        "what": f"{judged}: training on {examples} texts{of}",
        "seconds": training.seconds,
        "flops": training.flops,
    }
    return pd.DataFrame([row | {"parameters": training.parameters}])


def _probe_cost(judge: LocalModel, lesson: Lesson, batch_tokens: int | None) -> pd.DataFrame:
    """Seconds and FLOPs of a probe's training on the training half; testing costs either one
    forward pass per text.
    """
    order = sorted(range(len(lesson.prompts)), key=lambda i: lesson.prompts[i].length)
    cut = list(cut_batches(lesson.prompts, order, batch_tokens or batch_budget(judge)))
    batch = [lesson.prompts[i] for i in cut[len(cut) // 2]]
    tokens = sum(p.length for p in lesson.prompts)
    states, start = (
        lesson.harvest.layer(lesson.harvest.layers[-1])[lesson.half.train],
        time.perf_counter(),
    )
    study = FitInputs(
        lesson.settings,
        [lesson.half],
        lesson.harvest.labels == 1,
        lesson.harvest.groups,
        _own(lesson),
    )
    learn(
        "supervised", states, study.training_supervision(0), layer=0, orders=lesson.settings.orders
    )
    layers = len(lesson.harvest.layers)
    fit = (time.perf_counter() - start) * layers
    width = lesson.harvest.identity.d_model
    of = f" ({lesson.aspect})" if lesson.aspect else ""
    rows: list[dict[str, Any]] = [
        {
            "what": f"probe: reading {len(lesson.prompts)} texts (measured on one batch){of}",
            "parameters": 0,
        }
        | {
            "seconds": seconds_a_token(judge, batch) / 2 * tokens,
            "flops": forward_flops(judge, tokens),
        },
        {
            "what": f"probe: fitting at {layers} layers (measured at one){of}",
            "seconds": fit,
            "flops": float("nan"),
        }
        | {"parameters": width + 1},
    ]
    return pd.DataFrame(rows)
