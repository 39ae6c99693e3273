"""The texts that a log holds once and refers to, put back in their places."""

from collections.abc import Mapping, Sequence
from typing import Any

from inspect_ai.log import EvalSample, resolve_sample_attachments

REFERENCE = "attachment://"
"""Beginning of a log's reference to a long text that it holds once."""


def resolved(sample: EvalSample) -> EvalSample:
    """A sample with every reference in its store, scores and messages resolved.

    Inspect restores all long texts of a sample that was finished when its run was killed as references, and resolves
    only those in messages and events. One that had not reached the log's file has its store in its events alone.
    """
    if not sample.attachments:
        return sample
    store, scores = _filled(sample.store, sample.attachments), _filled_scores(sample)
    if not sample.store or _refers(sample):
        sample = resolve_sample_attachments(sample, "core")
    return sample.model_copy(update={"store": store, "scores": scores})


def _refers(sample: EvalSample) -> bool:
    messages = [*sample.messages, *(sample.input if isinstance(sample.input, list) else [])]
    texts = [message.text for message in messages] + ([sample.input] if isinstance(sample.input, str) else [])
    return any(text.startswith(REFERENCE) for text in texts)


def _filled_scores(sample: EvalSample) -> Any:
    names = ("value", "answer", "explanation", "metadata")
    return sample.scores and {
        name: score.model_copy(update={n: _filled(getattr(score, n), sample.attachments) for n in names})
        for name, score in sample.scores.items()
    }


def _filled(value: Any, attachments: Mapping[str, str]) -> Any:
    if isinstance(value, str) and value.startswith(REFERENCE):
        return attachments.get(value.removeprefix(REFERENCE), value)
    if isinstance(value, Mapping):
        return {key: _filled(inner, attachments) for key, inner in value.items()}
    if isinstance(value, Sequence) and not isinstance(value, str):
        return [_filled(inner, attachments) for inner in value]
    return value
