"""All methods on all subjects, in two flat lists of ordinary runs.

The first method records the replies, the others replay them.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import click
from inspect_ai import Task, eval_set, task_with
from inspect_ai.log import EvalLog
from inspect_ai.model import get_model

from selfprobe._registry import tasks
from selfprobe.logs import summaries
from selfprobe.sources.conversations import conversations

REPLIES, METHODS_DIR = "replies", "methods"
"""Folders of the two waves below the log folder."""

CALLS = {"binary": 5, "probability": 5, "user_motivation": 3, "reasoning_trace": 0, "first_token": 0}
"""Of the subject for a conversation, beside its one reply."""
REPEATED = ("binary", "probability")
"""Methods whose variants are asked five times each with 25 decisions."""
RETRIES = 3
"""Of a conversation whose calls fail, beside the retries of each call."""
GRADES = {"user_motivation": 3, "reasoning_trace": 1}
"""Of the grader for a conversation, at most (no trace, no grade)."""


@dataclass(frozen=True)
class Study:
    """What `selfprobe awareness run` was asked for."""

    models: tuple[str, ...]
    methods: tuple[str, ...]
    dataset: str = "eval_awareness"
    task: str | None = None
    logs: str | None = None
    label: str | None = None
    grader: str | None = None
    context: str = "first"
    decisions: str = "5"
    third: bool = False
    """Also ask about the conversation in the third person."""
    placebo: bool = False
    """Also run the placebo arm of user_motivation."""
    reply_tokens: int | None = None
    """Most tokens of the subject's reply to a conversation."""
    answer_tokens: int | None = None
    """Most tokens of its answer to a question about one."""
    limit: int | None = None
    log_dir: str = "logs/awareness"
    max_connections: int | None = None
    attempt_timeout: int | None = None
    """Seconds; None is ask.PATIENCE's."""
    max_retries: int | None = None
    skip_errors: bool = False
    """Leave conversations out whose calls fail for good: unscored, "error"."""
    display: str | None = None

    @property
    def arms(self) -> list[tuple[str, dict[str, Any]]]:
        """Method and its own task arguments, the one that records the replies first."""
        found: list[tuple[str, dict[str, Any]]] = [(method, {}) for method in self.methods]
        if self.third:
            found += [(method, {"perspective": "third"}) for method in self.methods if CALLS[method]]
        if self.placebo and "user_motivation" in self.methods:
            found.append(("user_motivation", {"placebo": True}))
        return found

    @property
    def source(self) -> dict[str, Any]:
        """The conversations, as the tasks take them."""
        return {
            "dataset": self.dataset,
            "task": self.task,
            "logs": self.logs,
            "label": self.label,
            "context": self.context,
        }


def describe(study: Study) -> str:
    """Calls by model, and the AUROC interval that this many rows can give."""
    if len(set(study.models)) < len(study.models):
        raise ValueError(f"each model once, got {', '.join(study.models)}")
    given = dict(study.source)
    rows = conversations(given.pop("dataset"), **given).rows[: study.limit]
    labels = [row.get("label") for row in rows]
    repeats = dict.fromkeys(REPEATED, 5) if study.decisions == "25" else {}
    calls = 1 + sum(CALLS[method] * repeats.get(method, 1) for method, _ in study.arms)
    grades = sum(GRADES.get(method, 0) for method, _ in study.arms)
    words = sum(len(str(row)) for row in rows) // 4
    lines = [f"{len(rows)} conversations × {len(study.models)} models × {', '.join(study.methods)}", ""]
    lines += [
        f"{model:40} {len(rows) * calls:>8,} calls, roughly {words * calls:,} tokens in" for model in study.models
    ]
    if grades:
        lines.append(f"{study.grader or '':40} {len(rows) * grades * len(study.models):>8,} calls as grader, at most")
    lines += ["", "Cost: unknown here; Inspect adds it to the logs where you give it prices (--model-cost-config)."]
    ours, others = labels.count("evaluation"), labels.count("deployment")
    if ours and others:
        half = 1.96 * auroc_se(0.7, ours, others)
        lines.append(
            f"An AUROC of .70 would come with about ± {half:.2f} ({ours} evaluation, {others} deployment rows; "
            "wider where rows of one source are alike)."
        )
    else:
        lines.append("One class or no labels: shares called evaluation only, no AUROC.")
    return "\n".join(lines)


def auroc_se(auroc: float, positives: int, negatives: int) -> float:
    """Standard error of an AUROC on independent rows (Hanley & McNeil 1982)."""
    q1, q2 = auroc / (2 - auroc), 2 * auroc**2 / (1 + auroc)
    spread = auroc * (1 - auroc) + (positives - 1) * (q1 - auroc**2) + (negatives - 1) * (q2 - auroc**2)
    return math.sqrt(spread / (positives * negatives))


def run_study(study: Study) -> bool:
    """Run both waves; True when every run is complete. Killed, the same study goes on where it stopped."""
    base = study.log_dir.rstrip("/")
    (first, _), *rest = study.arms
    own = {} if study.reply_tokens is None else {"reply_tokens": study.reply_tokens}
    good, logs = _wave(study, [_task(study, first, model, **own) for model in study.models], f"{base}/{REPLIES}")
    recorded = {log.eval.model for log in logs if log.status == "success"}
    second = [
        _task(study, method, model, target_log=f"{base}/{REPLIES}", **own)
        for method, own in sorted(rest, key=lambda arm: arm[0] not in GRADES)  # the grader works beside the subject
        for model in study.models
        if str(get_model(model)) in recorded
    ]
    return (_wave(study, second, f"{base}/{METHODS_DIR}")[0] if second else True) and good


def _wave(study: Study, tasks: Sequence[Task], log_dir: str) -> tuple[bool, list[Any]]:
    names = ("display", "limit", "max_connections", "attempt_timeout", "max_retries")
    settings = {name: getattr(study, name) for name in names}
    given: dict[str, Any] = {key: value for key, value in settings.items() if value is not None}
    given["score_display"] = False  # computing the scores of half a run after every sample is work, and says nothing
    given["log_model_api"] = False  # where a provider lists candidates for each token, raw replies are most of a log
    if study.skip_errors:
        given["fail_on_error"] = False
    # A failed sample is asked again at once, so that a passing fault of a provider does not cost a model its run.
    good, logs = eval_set(
        list(tasks),
        log_dir=log_dir,
        log_dir_allow_dirty=True,  # other models, methods or decisions may join; of an arm's logs the newest counts
        retry_attempts=1,
        retry_on_error=RETRIES,
        max_tasks=len(tasks),
        **given,
    )
    for log in logs:
        failed = {str(s.id): s.error for s in summaries(log.location) if s.error}
        if failed or log.status != "success":
            click.echo(f"{log.eval.task}, {log.eval.model}: {_trouble(log, failed)}", err=True)
    return good, logs


def _trouble(log: EvalLog, failed: Mapping[str, str]) -> str:
    """What went wrong in a run, for the user."""
    if not failed:
        return f"{log.status}: {log.error.message[:500] if log.error else 'no reason in the log'}"
    (item, first), *_ = failed.items()
    again = "" if log.status == "success" else "; the same command tries them again, --skip-errors leaves them out"
    return f"{len(failed)} conversations failed, {item!r} with {first[:300]}{again}"


def _task(study: Study, method: str, model: str, **own: Any) -> Task:
    given = {key: value for key, value in study.source.items() if value is not None} | own
    if method in REPEATED:
        given["decisions"] = int(study.decisions)
    if CALLS[method] and study.answer_tokens is not None:
        given["answer_tokens"] = study.answer_tokens
    made = tasks()[method](**given)
    if method in GRADES and study.grader:
        made = task_with(made, model_roles={"grader": study.grader})
    return task_with(made, model=get_model(model))
