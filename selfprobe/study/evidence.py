"""The evidence of an evaluation that subjects name in their answers to `user_motivation`, and its
blocks on a page.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
import pandas as pd
from inspect_ai.log import EvalLog, EvalSample
from markupsafe import Markup, escape

from selfprobe.errors import InputError, NoLogs
from selfprobe.evalawareness_tasks.user_motivation import EVALUATION_KINDS
from selfprobe.logs import Run
from selfprobe.page import Block, Details, Quoted
from selfprobe.scorers.awareness_cues import cues_by_grader, joint_finding
from selfprobe.solvers.converse import Perspective
from selfprobe.solvers.record import record_of
from selfprobe.study.awareness_arms import (
    ARM,
    MODEL_PLACE,
    PERSPECTIVE_PLACE,
    Arm,
    ArmRun,
    arm_runs,
)
from selfprobe.text.counts import count_text
from selfprobe.text.safe import clean

PROMPTS_SHOWN = 500
"""Largest number of prompts with evidence that the page shows."""
MARKED_NOTE = (
    "What a subject wrote about a prompt, with the evidence marked; in the prompt, what it cites "
    "word by word."
)


@dataclass(frozen=True)
class Evidence:
    """Evidence of an evaluation that subjects named."""

    quotes: pd.DataFrame
    """Verified quotes: data, item, model, key, answer, quote."""
    prompts: pd.DataFrame
    """One row a prompt: data, item, source, label, text, `asked` and `aware` (answers that could be
    graded, and those of them that bring up an evaluation, over all models).
    """
    asked: pd.DataFrame
    """One row a subject's conversation with an answer that could be graded: data, item, model,
    source.
    """
    ignored: Mapping[str, str]
    """Log → why it is not used."""


def evidence_in(
    logs: Sequence[str],
    *,
    perspective: Perspective | None = None,
    models: Sequence[str] = (),
) -> Evidence:
    """The evidence in the logs of user_motivation, the placebo arm aside.

    Args:
        logs: Paths of logs, or of folders of them.
        perspective: Person of the answers that count; None is both.
        models: Subjects whose answers count; none stands for all.

    Raises:
        NoLogs: There is no finished one.
        InputError: A model has no answer in them.
    """
    all_arms, ignored = arm_runs(logs)
    arms = {
        arm: arm_run
        for arm, arm_run in all_arms.items()
        if perspective in (None, arm[PERSPECTIVE_PLACE])
    }
    evidence_arms = _arms_with_evidence(arms)
    logged_models = {arm_run.header.eval.model for arm_run in evidence_arms.values()}
    unknown_models = sorted(set(models) - logged_models)
    if not logged_models:
        person = f" in the {perspective} person" if perspective else ""
        raise NoLogs(
            f"no finished log of user_motivation{person} in {', '.join(logs)}; the evidence is in "
            "its answers"
        )
    if unknown_models:
        raise InputError(
            f"no answer of {', '.join(unknown_models)} to user_motivation in {', '.join(logs)}; "
            f"there are those of {', '.join(sorted(logged_models))}"
        )

    chosen_models = set(models) or logged_models
    chosen_arms = {
        arm: arm_run
        for arm, arm_run in evidence_arms.items()
        if arm_run.header.eval.model in chosen_models
    }
    evidence = evidence_of(chosen_arms, ignored)
    assert evidence is not None, "each chosen model has an arm"
    return evidence


def kinds_asked(header: EvalLog) -> Sequence[str]:
    """Kinds of evaluation that a log's graders were asked for; empty where none were."""
    metadata = header.eval.metadata or {}
    return tuple(EVALUATION_KINDS) if metadata.get("kinds") else ()


def _arms_with_evidence(arms: Mapping[Arm, ArmRun]) -> dict[Arm, ArmRun]:
    """First runs of user_motivation, the placebo arm aside."""
    evidence_arms = {}
    for arm, arm_run in arms.items():
        arm_values = dict(zip(ARM, arm, strict=False))
        is_plain = not arm_values["placebo"] and arm_values["run"] == 1
        if arm_values["method"] == "user_motivation" and is_plain:
            evidence_arms[arm] = arm_run
    return evidence_arms


def evidence_of(arms: Mapping[Arm, ArmRun], ignored: Mapping[str, str]) -> Evidence | None:
    """The evidence in first runs of user_motivation, the placebo arm aside; None where there is
    none.

    Args:
        arms: Runs by arm.
        ignored: Log → why it is not used.
    """
    unused_logs = dict(ignored)
    runs_of_arm = list[tuple[Arm, Run]]()
    for arm, arm_run in _arms_with_evidence(arms).items():
        named_model = str(arm[MODEL_PLACE])
        settings = named_model.removeprefix(arm_run.header.eval.model)[2:]
        if settings:
            unused_logs[arm_run.run.log] = f"another run: {settings}; give its logs alone to use it"
        else:
            runs_of_arm.append((arm, arm_run.run))
    if not runs_of_arm:
        return None

    quotes: list[dict[str, Any]] = []
    prompt_by_key: dict[tuple[str, str], dict[str, Any]] = {}
    graded_by_key: dict[tuple[str, str, str], dict[str, Any]] = {}
    for arm, run in runs_of_arm:  # every model and perspective
        data, model = str(arm[-1]), run.header.eval.model
        invalidated = str(run.invalidated)
        if invalidated:
            unused_logs[run.log] = invalidated
        kinds = kinds_asked(run.header)
        for sample in run.read_samples():
            record = record_of(sample)
            item = str(sample.id)
            prompt = prompt_by_key.setdefault((data, item), _ungraded_prompt(data, sample))
            conversation = {"data": data, "item": item, "model": model}
            for key, graders in cues_by_grader(record, kinds).items():
                finding = joint_finding(graders)
                if finding.aware is not None:
                    prompt["asked"] += 1
                    prompt["aware"] += finding.aware
                    graded = conversation | {"source": prompt["source"]}
                    graded_by_key.setdefault((data, item, model), graded)
                answer = {"key": key, "answer": record.answers[key].text}
                quotes += [conversation | answer | {"quote": quote} for quote in finding.quotes]

    quote_columns = ["data", "item", "model", "key", "answer", "quote"]
    graded_columns = ["data", "item", "model", "source"]
    return Evidence(
        quotes=pd.DataFrame(quotes, columns=quote_columns),
        prompts=pd.DataFrame(list(prompt_by_key.values())),
        asked=pd.DataFrame(list(graded_by_key.values()), columns=graded_columns),
        ignored=unused_logs,
    )


def _ungraded_prompt(data: str, sample: EvalSample) -> dict[str, Any]:
    """Row of `Evidence.prompts` before an answer is counted."""
    messages = sample.input if isinstance(sample.input, list) else []
    return {
        "data": data,
        "item": str(sample.id),
        "source": sample.metadata.get("source"),
        "label": sample.metadata.get("label"),
        "text": "\n\n".join(f"[{message.role}] {message.text}" for message in messages),
        "asked": 0,
        "aware": 0,
    }


def evidence_sentence(evidence: Evidence) -> str:
    """How often subjects bring up an evaluation, and in how many quotes."""
    prompts = evidence.prompts
    return (
        "Asked what the user wants, and never whether it is an evaluation, subjects bring up an "
        f"evaluation in {prompts.aware.sum()} of {prompts.asked.sum()} graded answers to "
        f"{count_text(len(prompts), 'prompt')}; their evidence is "
        f"{count_text(len(evidence.quotes), 'quote')}."
    )


def evidence_blocks(evidence: Evidence, feature_titles: Sequence[str] | None = None) -> list[Block]:
    """The prompts with evidence, those with the most first, each with its answers and their quotes
    marked.

    Args:
        evidence: The evidence.
        feature_titles: Title of the feature of each quote; without them a prompt has the number of
            its quotes.
    """
    quotes = evidence.quotes
    if feature_titles is not None:
        quotes = quotes.assign(feature=feature_titles)
    prompt_by_key = {(row.data, row.item): row for row in evidence.prompts.itertuples()}
    quotes_by_prompt = sorted(
        quotes.groupby(["data", "item"], sort=False), key=lambda group: -len(group[1])
    )

    blocks: list[Block] = [MARKED_NOTE]
    omitted_count = len(quotes_by_prompt) - PROMPTS_SHOWN
    if omitted_count > 0:
        blocks.append(f"{omitted_count} further prompts with evidence are in the table only.")
    for prompt_key, prompt_quotes in quotes_by_prompt[:PROMPTS_SHOWN]:
        prompt: Any = prompt_by_key[prompt_key]
        features = [count_text(len(prompt_quotes), "quote")]
        if feature_titles is not None:
            features = list(dict.fromkeys(prompt_quotes.feature))
        label = f" ({prompt.label})" if prompt.label else ""
        summary = f"{prompt.item}{label}: {'; '.join(features)}"
        blocks.append(Details(summary, _marked_answers(prompt, prompt_quotes)))
    return blocks


def _marked_answers(prompt: Any, quotes: pd.DataFrame) -> list[Block]:
    """A prompt and the answers about it, with their quotes marked."""
    # A quote from the prompt itself, where the subject cites it, is marked there as well.
    long_quotes = [quote for quote in quotes.quote if len(quote) >= 8]
    blocks: list[Block] = [
        f"{prompt.source}; {prompt.aware} of {prompt.asked} answers bring up an evaluation.",
        Quoted(mark_quotes(prompt.text, long_quotes)),
    ]
    # Epochs and perspectives answer under the same key; equal answers are shown once.
    by_answer = quotes.groupby(["model", "key", "answer"], sort=False)
    for (model, answer_key, answer), answer_quotes in by_answer:
        marked_answer = mark_quotes(answer, list(answer_quotes.quote))
        blocks += [f"{model}, {answer_key}", Quoted(marked_answer)]
    return blocks


def mark_quotes(text: str, quotes: Sequence[str]) -> Markup:
    """The text, escaped, with every quote marked wherever it stands; overlaps are one mark."""
    is_marked = np.zeros(len(text), dtype=bool)
    for quote in quotes:
        start = text.find(quote)
        while start != -1:
            is_marked[start : start + len(quote)] = True
            start = text.find(quote, start + 1)

    edges = [0, *(np.flatnonzero(np.diff(is_marked)) + 1), len(text)]
    parts = []
    for start, end in pairwise(edges):
        part = clean(text[start:end])
        if end > start and is_marked[start]:
            parts.append(Markup("<mark>{}</mark>").format(part))
        elif end > start:
            parts.append(escape(part))
    return Markup("").join(parts)
