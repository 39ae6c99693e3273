"""The fine-tuned judge compared with the probe (latent-preference probes, section 5.2, Figure 3,
appendix D): same pairs, same half.

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
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from selfprobe.data.public_pairs import DATA_SET_GROUPS
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
    FITTED_KINDS,
    FitInputs,
    FitSettings,
    Half,
    Scores,
    Supervision,
    fit_probe,
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
from selfprobe.probes.training import Example, Recipe, Training, finetuned_model, forward_flops

APPENDIX_D_RECIPE = Recipe(rank=64, alpha=64, rate=1e-4, epochs=1, batch=8)
"""Settings of appendix D, with the rate and the batch of small models."""
TRAINING_TEXTS = 5000
"""Number of training texts in appendix D, a pair in one order each."""
JUDGE = "fine-tuned judge"
JUDGES = {"lora": JUDGE, "full": f"{JUDGE}, all weights"}
"""Name of the judge by what was trained."""
ROW_KEY_COLUMNS = (
    "dataset",
    "training",
    "method",
    "samples",
    "probe",
    "against",
    "what",
    "metric",
)
"""Columns that identify a row of a table."""
TABLE_NAMES = ("finetuned", "finetuned_less", "saturation", "finetuning", "finetuning_cost")


@dataclass(frozen=True)
class MethodScores:
    """Scores of one method, and what it is."""

    scores: Scores
    """[aspect, pair]; NaN outside the test half."""
    note: str


ScoresByMethod = dict[str, MethodScores]


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
    right_options: tuple[int, ...]
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

    def drawn_prompts(self, samples: int | None, *, seed: int = 0) -> list[list[int]]:
        """[lesson]: numbers of its prompts among at most `samples` texts that are drawn with a fixed
        seed.
        """
        prompt_counts = [len(lesson.prompts) for lesson in self.lessons]
        text_count = sum(prompt_counts)
        drawn_texts: Sequence[int] = range(text_count)
        if samples is not None and samples < text_count:
            rng = np.random.default_rng([seed, 5])
            drawn_texts = sorted(rng.choice(text_count, samples, replace=False))

        numbers_by_lesson = []
        lesson_ends = np.cumsum([0, *prompt_counts])
        for start, end in pairwise(lesson_ends):
            lesson_numbers = [int(text - start) for text in drawn_texts if start <= text < end]
            numbers_by_lesson.append(lesson_numbers)
        return numbers_by_lesson

    def examples(self, samples: int | None = TRAINING_TEXTS, *, seed: int = 0) -> list[Example]:
        """Training texts, at most `samples`, drawn with a fixed seed."""
        examples = []
        drawn_prompts = self.drawn_prompts(samples, seed=seed)
        for lesson, prompt_numbers in zip(self.lessons, drawn_prompts, strict=True):
            for number in prompt_numbers:
                prompt = lesson.prompts[number]
                answer_token = prompt.contrast[lesson.right_options[number]]
                examples.append(Example(prompt.prefix, (answer_token,)))
        return examples

    @property
    def sizes(self) -> tuple[int, int]:
        """Numbers of pairs to learn from and to test on."""
        train_pairs = sum(len(lesson.half.train) for lesson in self.lessons)
        test_pairs = sum(len(lesson.half.test) for lesson in self.lessons)
        return train_pairs, test_pairs

    @property
    def dataset_lessons(self) -> list[Lesson]:
        """The first lesson of each data set."""
        lesson_by_dataset: dict[str, Lesson] = {}
        for lesson in self.lessons:
            lesson_by_dataset.setdefault(lesson.name, lesson)
        return list(lesson_by_dataset.values())

    @property
    def group_words(self) -> str:
        """Names of the data sets that a judge learnt, where it learnt several or several aspects;
        else "".
        """
        if len(self.lessons) == 1:
            return ""
        dataset_names = [lesson.name for lesson in self.dataset_lessons]
        aspects = "'s aspects" if len(dataset_names) == 1 else ""
        return f" of {', '.join(dataset_names)}{aspects} together"


def courses(all_lessons: Sequence[Lesson], *, grouped: bool = False) -> list[Course]:
    """One course per lesson; with `grouped` one per group of data sets (`GROUPS`), and one per data
    set of no group.
    """
    if not grouped:
        return [Course(lesson.title, (lesson,)) for lesson in all_lessons]

    group_by_dataset = {}
    for group, dataset_names in DATA_SET_GROUPS.items():
        for dataset_name in dataset_names:
            group_by_dataset[dataset_name] = group.replace(" ", "-")

    lessons_by_course: dict[str, list[Lesson]] = {}
    for lesson in all_lessons:
        course_name = group_by_dataset.get(lesson.name, lesson.name)
        lessons_by_course.setdefault(course_name, []).append(lesson)
    return [
        Course(course_name, tuple(course_lessons))
        for course_name, course_lessons in lessons_by_course.items()
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
    missing = [name for name in datasets if name not in state["datasets"]]
    if missing:
        raise ValueError(
            f"{out} has no data set {missing[0]!r}, only {', '.join(state['datasets'])}"
        )

    settings = FitSettings(**state["settings"])
    run_lessons = []
    for name in datasets:
        harvest = open_harvest(out / state["datasets"][name]["activations"], judge=judge)
        # the first half of each aspect, which its saved probes learnt from
        first_halves = split_pairs(harvest.pairs, settings)[:: settings.seeds]
        for half in first_halves:
            run_lessons.append(_lesson(out, name, harvest, settings, half, judge))
    return run_lessons


def _lesson(
    out: Path, name: str, harvest: Harvest, settings: FitSettings, half: Half, judge: LocalModel
) -> Lesson:
    probes = {}
    for kind in FITTED_KINDS:
        file = out / f"{probe_name(name, half.aspect)}-{kind}.safetensors"
        probes[str(kind)] = load_probe(file, revision=judge.revision)

    order_count = 2 if settings.orders == "both" else 1
    ordered_pairs = []
    for pair_number in half.train:
        pair = harvest.pairs[pair_number]
        ordered_pairs += [pair, pair.swapped][:order_count]
    prompts = encode(judge.tokenizer, ordered_pairs, judge.chat)
    right_options = tuple((pair.label or 0) - 1 for pair in ordered_pairs)
    return Lesson(name, half.aspect, harvest, settings, half, probes, tuple(prompts), right_options)


def finetune_run(
    out: Path,
    judge: LocalModel,
    run_lessons: Sequence[Lesson],
    *,
    recipe: Recipe = APPENDIX_D_RECIPE,
    samples: int | None = TRAINING_TEXTS,
    grouped: bool = False,
    batch_tokens: int | None = None,
    progress: Progress = to_stderr,
) -> dict[str, pd.DataFrame]:
    """Train and test a judge for each data set, or for each of its aspects; the tables, which are
    also in `out`.

    Where aspects have their own probes each has its judge, and a number is the mean over aspects,
    as in all tables. With `grouped` one judge learns all data sets of a group: it may have read,
    under another aspect, texts of a pair that it is tested on.

    finetuned       dataset, method, metric, value, low, high, n …: on the test half of the run's
                    first split alone
    finetuned_less  the judge less the probes, asking and the controls, on the same pairs
    saturation      dataset, method, samples …: F1 of the judge, and of the supervised probe that
                    learnt from the pairs of the judge's texts; rows of other numbers of samples
                    stay, so that several calls make the curve
    finetuning      dataset, training, step, loss
    finetuning_cost dataset, what, seconds, flops, parameters

    Rows of another training in the folder's tables (all weights next to adapters) stay. The same
    call continues a killed one where it stopped.
    """
    judge_name = JUDGES[recipe.trained_part]
    rows_by_table: dict[str, list[pd.DataFrame]] = {name: [] for name in TABLE_NAMES}
    lesson_by_dataset: dict[str, Lesson] = {}
    scores_by_dataset: dict[str, list[ScoresByMethod]] = {}
    equal_probe_scores: dict[str, list[Scores]] = {}
    text_counts: dict[str, int] = {}

    for course in courses(run_lessons, grouped=grouped):
        examples = course.examples(samples)
        training, answers_by_lesson = _train_and_ask(
            out, judge, course, examples, recipe, batch_tokens, progress
        )
        loss_rows = pd.DataFrame(
            {"step": range(1, len(training.losses) + 1), "loss": training.losses}
        )
        rows_by_table["finetuning"].append(
            loss_rows.assign(training=judge_name, dataset=course.name)
        )

        drawn_prompts = course.drawn_prompts(samples)
        for lesson, judge_answers, prompt_numbers in zip(
            course.lessons, answers_by_lesson, drawn_prompts, strict=True
        ):
            judge_scores = first_text_answers(judge_answers).mean(axis=1) - 0.5
            scores = _lesson_scores(lesson, judge_name, judge_scores, course.group_words)
            lesson_by_dataset.setdefault(lesson.name, lesson)
            scores_by_dataset.setdefault(lesson.name, []).append(scores)
            equal_scores = _equal_probe_scores(lesson, prompt_numbers)
            equal_probe_scores.setdefault(lesson.name, []).append(equal_scores)
            text_counts[lesson.name] = len(examples)

        for lesson in course.dataset_lessons:
            training_cost = _training_cost(judge_name, training, len(examples), lesson, course)
            rows_by_table["finetuning_cost"].append(training_cost.assign(dataset=lesson.name))
        for lesson in course.lessons:
            probe_cost = _probe_cost(judge, lesson, batch_tokens)
            rows_by_table["finetuning_cost"].append(probe_cost.assign(dataset=lesson.name))

    for name, lesson in lesson_by_dataset.items():
        scores = _joined_aspects(scores_by_dataset[name])
        equal_scores = np.concatenate(equal_probe_scores[name])
        test_rows = _test_rows(lesson, judge_name, scores, equal_scores, text_counts[name])
        for table_name, rows in test_rows.items():
            rows_by_table[table_name].append(rows)

    tables = {}
    for table_name, frames in rows_by_table.items():
        tables[table_name] = _with_other_trainings(out, table_name, pd.concat(frames))
    return write_tables(out, tables)


def _test_rows(
    lesson: Lesson,
    judge_name: str,
    scores: ScoresByMethod,
    equal_scores: Scores,
    text_count: int,
) -> dict[str, pd.DataFrame]:
    """Rows of the tables on one data set's test half: the methods, the judge less each other one,
    and a place of the curve over numbers of texts.

    `equal_scores` are those of the supervised probe that learnt from the judge's pairs.
    """
    equal_probe = MethodScores(equal_scores, "of the same pairs")
    curve_scores = {judge_name: scores[judge_name], "supervised": equal_probe}
    method_rows = _method_rows(lesson, scores)
    difference_rows = _difference_rows(lesson, judge_name, scores)
    curve_rows = _method_rows(lesson, curve_scores)
    return {
        "finetuned": method_rows.assign(dataset=lesson.name),
        "finetuned_less": difference_rows.assign(dataset=lesson.name),
        "saturation": curve_rows.assign(dataset=lesson.name, samples=text_count),
    }


def _train_and_ask(
    out: Path,
    judge: LocalModel,
    course: Course,
    examples: Sequence[Example],
    recipe: Recipe,
    batch_tokens: int | None,
    progress: Progress,
) -> tuple[Training, list[Any]]:
    """The training of a course's judge, and its answers [pair, order, digit] to the test half of
    each lesson.
    """
    folder_name = course.name
    if len(examples) < len(course.examples(None)):
        folder_name += f"-{len(examples)}"
    if recipe.trained_part == "full":
        folder_name += "-full"
    folder = out / "finetuned" / folder_name

    train_pairs, test_pairs = course.sizes
    progress(f"{course.name}: training on {len(examples)} texts of {train_pairs} pairs")
    reading: dict[str, Any] = {"batch_tokens": batch_tokens, "progress": progress}
    with finetuned_model(judge, examples, recipe, folder, **reading) as (tuned_judge, training):
        progress(f"{course.name}: asking the fine-tuned judge about {test_pairs} held-out pairs")
        answers_by_lesson = []
        for lesson in course.lessons:
            file_name = "answers.npy" if len(course.lessons) == 1 else f"answers-{lesson.title}.npy"
            ask = partial(_judge_answers, tuned_judge, lesson, reading)
            answers_by_lesson.append(cached_array(folder / file_name, ask))
    return training, answers_by_lesson


def _judge_answers(tuned_judge: LocalModel, lesson: Lesson, reading: dict[str, Any]) -> Any:
    test_pairs = [lesson.harvest.pairs[number] for number in lesson.half.test]
    return answers(tuned_judge, test_pairs, {JUDGE: None}, **reading)[JUDGE]


def _joined_aspects(aspect_scores: Sequence[ScoresByMethod]) -> ScoresByMethod:
    joined = {}
    for method in aspect_scores[0]:
        method_parts = [scores[method] for scores in aspect_scores]
        scores = np.concatenate([part.scores for part in method_parts])
        notes = dict.fromkeys(part.note for part in method_parts)
        joined[method] = MethodScores(scores, "; ".join(notes))
    return joined


def _with_other_trainings(out: Path, table_name: str, rows: pd.DataFrame) -> pd.DataFrame:
    """Rows of another training that the folder's table holds, then these."""
    file = out / "tables" / f"{table_name}.csv"
    if not file.is_file():
        return rows
    earlier_rows = pd.read_csv(file, keep_default_na=False, na_values=[""])
    key_columns = [column for column in ROW_KEY_COLUMNS if column in rows]
    new_keys = set(rows[key_columns].itertuples(index=False, name=None))
    earlier_keys = earlier_rows[key_columns].itertuples(index=False, name=None)
    is_other_row = [key not in new_keys for key in earlier_keys]
    return pd.concat([earlier_rows[is_other_row], rows], ignore_index=True)


def _lesson_scores(
    lesson: Lesson, judge_name: str, judge_scores: Scores, group_words: str
) -> ScoresByMethod:
    """Method → scores [1, pair], NaN outside the test half, and a note."""
    harvest = lesson.harvest
    half = lesson.half
    is_tested = np.zeros(len(harvest.pairs), dtype=bool)
    is_tested[half.test] = True

    def test_half(scores: Any) -> Scores:
        return np.where(is_tested, scores, np.nan)[None]

    all_judge_scores = np.full((1, len(harvest.pairs)), np.nan)
    all_judge_scores[0, half.test] = judge_scores
    trained_part = "adapters (LoRA)" if judge_name == JUDGE else "all weights"
    judge_note = (
        f"{trained_part} trained on the training half{group_words}, P(1), P(2) averaged over 2 "
        "orders"
    )
    scores_by_method = {judge_name: MethodScores(all_judge_scores, judge_note)}

    for kind, file in lesson.probes.items():
        layer = file.probe.layer
        probe_scores = file.probe.score(harvest.layer(layer))
        scores_by_method[kind] = MethodScores(
            test_half(probe_scores), f"the saved probe, layer {layer}"
        )
    scores_by_method["prompting"] = MethodScores(
        test_half(_own_scores(lesson)), "the model as it came"
    )
    word_scores = no_model(harvest.pairs, [half], folds=lesson.settings.folds)
    scores_by_method["no model (TF-IDF)"] = MethodScores(word_scores, "same half")
    length_scores = by_length(harvest.pairs, [half])
    scores_by_method["no model (length)"] = MethodScores(
        length_scores, "longer or shorter, by the training half"
    )
    return scores_by_method


def _equal_probe_scores(lesson: Lesson, prompt_numbers: Sequence[int]) -> Scores:
    """[1, pair]: scores of a supervised probe that learnt from the pairs of these prompts, at the
    saved probe's layer.

    Scores are NaN outside the test half, and everywhere where these pairs are too few to learn
    from.
    """
    settings = lesson.settings
    half = lesson.half
    order_count = 2 if settings.orders == "both" else 1
    pair_places = sorted({number // order_count for number in prompt_numbers})
    train_pairs = half.train[np.array(pair_places, dtype=int)]
    scores = np.full((1, len(lesson.harvest.pairs)), np.nan)

    supervision = _supervision(lesson, replace(half, train=train_pairs))
    if not learnable(supervision.truth(), supervision.groups, folds=settings.folds):
        return scores

    layer = lesson.probes["supervised"].probe.layer
    states = lesson.harvest.layer(layer)
    centred_pairs = train_pairs
    if settings.fit_centre != "train":
        centred_pairs = np.concatenate([train_pairs, half.test])
    probe = fit_probe(
        "supervised",
        states[train_pairs],
        supervision,
        layer=layer,
        orders=settings.orders,
        centre=means(states[centred_pairs], settings.orders),
    )
    scores[0, half.test] = probe.score(states[half.test])
    return scores


def _supervision(lesson: Lesson, half: Half) -> Supervision:
    """What a probe may learn from the training pairs of a half."""
    harvest = lesson.harvest
    inputs = FitInputs(
        lesson.settings, [half], harvest.labels == 1, harvest.groups, _own_scores(lesson)
    )
    return inputs.training_supervision(0)


def _own_scores(lesson: Lesson) -> Scores:
    """[pair]: swap-averaged answers of the model itself."""
    return np.asarray(own_answers(lesson.harvest).mean(axis=1) - 0.5)


def _estimate_fields(
    lesson: Lesson, scores: Scores, metric: str, subtracted_scores: Scores | None = None
) -> dict[str, Any]:
    harvest = lesson.harvest
    resamples = lesson.settings.resamples
    first_better = harvest.labels == 1
    metric_estimate = estimate(
        scores,
        first_better,
        harvest.groups,
        metric,
        resamples=resamples,
        subtracted_scores=subtracted_scores,
    )
    return asdict(metric_estimate)


def _method_rows(lesson: Lesson, scores_by_method: ScoresByMethod) -> pd.DataFrame:
    rows = []
    for method, method_scores in scores_by_method.items():
        for metric in METRICS:
            row = _estimate_fields(lesson, method_scores.scores, metric)
            row |= {"method": method, "metric": metric, "note": method_scores.note}
            rows.append(row)
    return pd.DataFrame(rows)


def _difference_rows(
    lesson: Lesson, judge_name: str, scores_by_method: ScoresByMethod
) -> pd.DataFrame:
    judge_scores = scores_by_method[judge_name].scores
    rows = []
    for method, method_scores in scores_by_method.items():
        if method == judge_name:
            continue
        for metric in METRICS:
            row = _estimate_fields(lesson, judge_scores, metric, method_scores.scores)
            row |= {"probe": judge_name, "against": method, "metric": metric}
            rows.append(row)
    return pd.DataFrame(rows)


def _aspect_words(lesson: Lesson) -> str:
    return f" ({lesson.aspect})" if lesson.aspect else ""


def _training_cost(
    judge_name: str, training: Training, text_count: int, lesson: Lesson, course: Course
) -> pd.DataFrame:
    """Seconds and FLOPs of the judge's training on the training half, or halves."""
    lesson_words = course.group_words or _aspect_words(lesson)
    row = {
        "what": f"{judge_name}: training on {text_count} texts{lesson_words}",
        "seconds": training.seconds,
        "flops": training.flops,
        "parameters": training.parameters,
    }
    return pd.DataFrame([row])


def _probe_cost(judge: LocalModel, lesson: Lesson, batch_tokens: int | None) -> pd.DataFrame:
    """Seconds and FLOPs of a probe's training on the training half; testing costs either one
    forward pass per text.
    """
    harvest = lesson.harvest
    prompts = lesson.prompts
    prompt_order = sorted(range(len(prompts)), key=lambda number: prompts[number].length)
    batches = list(cut_batches(prompts, prompt_order, batch_tokens or batch_budget(judge)))
    middle_batch = [prompts[number] for number in batches[len(batches) // 2]]
    token_count = sum(prompt.length for prompt in prompts)

    states = harvest.layer(harvest.layers[-1])[lesson.half.train]
    start_time = time.perf_counter()
    supervision = _supervision(lesson, lesson.half)
    fit_probe("supervised", states, supervision, layer=0, orders=lesson.settings.orders)
    fit_seconds = time.perf_counter() - start_time

    layer_count = len(harvest.layers)
    aspect_words = _aspect_words(lesson)
    reading_row = {
        "what": f"probe: reading {len(prompts)} texts (measured on one batch){aspect_words}",
        "parameters": 0,
        "seconds": seconds_a_token(judge, middle_batch) / 2 * token_count,
        "flops": forward_flops(judge, token_count),
    }
    fitting_row = {
        "what": f"probe: fitting at {layer_count} layers (measured at one){aspect_words}",
        "parameters": harvest.identity.d_model + 1,
        "seconds": fit_seconds * layer_count,
        "flops": float("nan"),
    }
    return pd.DataFrame([reading_row, fitting_row])
