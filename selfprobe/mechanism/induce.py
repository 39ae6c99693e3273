"""Introspection induced by plain fine-tuning (paper 003, section 5.1, Figure 4), with the controls that it needs.

A model learns to reply to each question with two random labels. Before and after, P of the labels is read for the
question itself and for questions about its reply that it never saw. What is said besides: of questions that were not
trained on, of another assistant's reply, and of a fact.

Paper: Qwen3-8B, QLoRA at a rate of 1e-6, 500 questions of Dolly; a label as the first or the second word. Here: LoRA in
the model's own precision, a rate that moves small models, and two labels a reply, so that one model shows both words.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from selfprobe.mechanism.induce_prompts import Asked, Labels, assigned, labels_of, prompt_tokens
from selfprobe.mechanism.induce_reading import Floats, Prompts, prompts_of, read
from selfprobe.probes.folder import kept
from selfprobe.probes.model import LocalModel
from selfprobe.probes.plan import span
from selfprobe.probes.shards import put_json
from selfprobe.probes.tokens import held_special, special_tokens
from selfprobe.probes.training import Example, Recipe, Training, finetuned
from selfprobe.probes.training_plan import BACKWARD, Needs
from selfprobe.sources.pairs import digest, normalised
from selfprobe.weights import Progress, to_stderr

FEWEST = 8
"""Questions to learn, and held-out ones, below which nothing can be said."""


@dataclass(frozen=True)
class Study:
    """What is taught and asked, the same for all seeds but for who gets which label."""

    questions: tuple[str, ...]
    """Those that are learnt, then the held-out ones."""
    taught: int
    """How many are learnt."""
    labels: Labels
    prompts: tuple[Prompts, ...]
    """[question]"""
    left_out: int = 0
    """Questions that could not be used: too long, or with a special token."""

    def answers(self, seed: int) -> npt.NDArray[np.int64]:
        """The labels of a seed [question, word]; −1 for held-out questions, which have none."""
        none = np.full((len(self.questions) - self.taught, 2), -1)
        return np.concatenate([assigned(self.taught, len(self.labels.words), seed=seed), none])

    def examples(self, judge: LocalModel, seed: int) -> list[Example]:
        """What is trained on: a question, and its two labels as the reply's beginning."""
        return [
            Example(
                prompt_tokens(judge, question, Asked("direct", 0)),
                (self.labels.start[first], self.labels.after[second]),
            )
            for question, (first, second) in zip(self.questions[: self.taught], self.answers(seed), strict=False)
        ]


@dataclass(frozen=True)
class Reading:
    """What one model says of all questions."""

    seed: int
    log_probs: Floats
    """[question, column, label]; columns as in `COLUMNS`."""
    answers: npt.NDArray[np.int64]
    """The labels that were taught [question, word]; −1 where none was."""


@dataclass(frozen=True)
class Induced:
    """What a study found, before any number is made of it."""

    before: Floats
    """[question, column, label]: of the model as it came."""
    after: tuple[Reading, ...]
    """By seed."""
    trainings: tuple[Training, ...]


def study_of(
    judge: LocalModel,
    questions: Sequence[str],
    *,
    taught: int = 96,
    held_out: int = 24,
    longest: int = 512,
    labels: Sequence[str] = (),
) -> Study:
    """A study of a random sample of `questions`, drawn with a fixed seed.

    Raises:
        ValueError: Too few questions that can be used, or labels that are several tokens.
    """
    if min(taught, held_out) < FEWEST:
        raise ValueError(
            f"expected {FEWEST} questions to learn and {FEWEST} held-out ones or more, got {taught} and {held_out}"
        )
    drawn = list({normalised(text): text for text in questions}.values())
    drawn = [drawn[i] for i in np.random.default_rng(0).permutation(len(drawn))]
    special, limit = special_tokens(judge.tokenizer), min(longest, judge.context)
    kept: list[tuple[str, Prompts]] = []
    left_out = 0
    for text in drawn:
        if len(kept) == taught + held_out:
            break
        prompts = prompts_of(judge, text)
        if held_special([text], special) or prompts.length + 2 > limit:
            left_out += 1
        else:
            kept.append((text, prompts))
    if len(kept) < taught + held_out:
        raise ValueError(
            f"{taught} questions to learn and {held_out} held-out ones are asked for, and there are {len(kept)}"
            + (f" ({left_out} more are longer than {limit} tokens, or hold a special token)" if left_out else "")
            + ": take fewer (--questions, --held-out), or another --dataset"
        )
    texts, prompts_ = zip(*kept, strict=True)
    return Study(texts, taught, labels_of(judge, labels), prompts_, left_out)


def plan(study: Study, needed: Needs, seeds: int) -> str:
    """What a study takes: reading and training, with the time of all; `needed` is one training's."""
    tokens = (1 + seeds) * sum(p.tokens for p in study.prompts)
    reading = tokens * needed.seconds / (BACKWARD * needed.tokens)
    lines = [
        f"{study.taught} questions to learn, {len(study.questions) - study.taught} held out, "
        f"{len(study.labels.words)} labels" + (f"; {study.left_out} questions left out" if study.left_out else ""),
        f"Reading: {tokens:,} tokens before and after {seeds} training{'s' * (seeds > 1)}, about {span(reading)}",
        needed.text + (f", {seeds} times" if seeds > 1 else ""),
        f"All: about {span(reading + seeds * needed.seconds)}, less what is in the folder already",
    ]
    return "\n".join(lines)


def induce(
    judge: LocalModel,
    study: Study,
    recipe: Recipe,
    out: Path,
    *,
    seeds: int = 2,
    told: Mapping[str, Any] | None = None,
    batch_tokens: int | None = None,
    progress: Progress = to_stderr,
) -> Induced:
    """Read, train and read again for each seed; the same call goes on where a killed one stopped.

    `told`: what else run.json is to say.

    Raises:
        ValueError: `out` holds another study.
    """
    _claim(out, judge, study, recipe, told or {})
    sizes: dict[str, Any] = {"batch_tokens": batch_tokens, "progress": progress}
    progress(f"{judge.name}: reading {len(study.questions)} questions before any training")
    before = kept(out / "readings" / "before.npy", lambda: read(judge, study.prompts, study.labels, **sizes))
    after, trainings = [], []
    for seed in range(seeds):
        trained = Recipe(**asdict(recipe) | {"seed": seed})
        progress(f"seed {seed + 1} of {seeds}: training on {study.taught} questions, {recipe.epochs} epochs")
        with finetuned(judge, study.examples(judge, seed), trained, out / f"seed-{seed}", **sizes) as (tuned, training):
            progress(f"seed {seed + 1} of {seeds}: reading after the training")
            file = out / "readings" / f"seed-{seed}.npy"
            found = kept(file, lambda tuned=tuned: read(tuned, study.prompts, study.labels, **sizes))  # type: ignore[misc]
        after.append(Reading(seed, found, study.answers(seed)))
        trainings.append(training)
    return Induced(before, tuple(after), tuple(trainings))


def _claim(out: Path, judge: LocalModel, study: Study, recipe: Recipe, told: Mapping[str, Any]) -> None:
    """Write run.json, or raise ValueError where `out` holds another study."""
    asked = [[list(p.shared), *map(list, p.ends)] for p in study.prompts]
    state = {
        "selfprobe": version("selfprobe"),
        "model": judge.name,
        "revision": judge.revision,
        "precision": judge.precision,
        "prompts": digest(json.dumps(asked), str(study.taught)),
        "labels": list(study.labels.words),
        "recipe": {name: value for name, value in asdict(recipe).items() if name != "seed"},
    }
    file = out / "run.json"
    if file.is_file():
        try:
            held = dict(json.loads(file.read_text("utf-8")))
        except (ValueError, TypeError) as error:
            raise ValueError(f"{file} is not what a study writes ({error}): give another --out") from None
        if other := [name for name in state if name != "selfprobe" and held.get(name) != state[name]]:
            raise ValueError(f"{out} holds a study with another {' and another '.join(other)}: give another --out")
    out.mkdir(parents=True, exist_ok=True)
    texts = {"taught": study.questions[: study.taught], "held_out": study.questions[study.taught :]}
    put_json(state | dict(told) | texts, file)
