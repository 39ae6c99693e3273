"""What does the target answer to a prompt that the observer wrote: a text like its own, a first
token as probable?
"""

import base64
import math
import re
from collections import defaultdict
from collections.abc import Mapping, Sequence
from difflib import SequenceMatcher

import numpy as np
from inspect_ai.log import EvalSample
from inspect_ai.scorer import Score, Scorer, Target, scorer
from inspect_ai.solver import TaskState

from selfprobe.embed import Vectors, embed
from selfprobe.scorers.decision import (
    UNPARSED,
    Decision,
    Judged,
    observer_fault,
    predictions,
    score_of,
    target_fault,
)
from selfprobe.scorers.summary import (
    Scores,
    counted_apart,
    judged,
    metric_of,
    noted,
    summarise,
    summary,
)
from selfprobe.solvers.record import Record, Reply
from selfprobe.text.parse import json_value, normalise, words

VECTOR = "reply_vector"
"""Key in the score's metadata of the embedding of the target's reply: float16 in base64, in lines
of 76 characters, since Inspect keeps longer texts as references. 1 kB for 384 dimensions.
"""


@metric_of
def similarity(scores: Scores) -> dict[str, float]:
    """Numbers of `summary`, with the floor filled in: skill is (similarity - floor)/(1 - floor).

    Paper: no baseline. Here: an item's `floor` is the similarity that its reply has with another
    item's, as the mean over all other items of the run rather than a random one of them, so that it
    is no draw.
    """
    return summarise(with_floor(judged(scores), [_vector(s.score) for s in scores]), "similarity")


@scorer(metrics=[similarity(), counted_apart()])
def reply_similarity(embedder: str) -> Scorer:
    """Cosine similarity of the target's replies to the true and the reconstructed prompt (paper
    003, E.3 Task 2.3).

    The ceiling is that of its replies to the true prompt, asked twice.

    Args:
        embedder: Name of an embedder for `selfprobe.embed.embed`.
    """

    async def score(state: TaskState, target: Target) -> Score:
        record = state.store_as(Record)
        act, reply = record.acts["answer"], record.answers.get("prompt")
        unscored = why_unscored(act, reply, record.acts.get("rerun"))
        good = {name: reply for name, reply in record.acts.items() if not reply.problem}
        vectors = dict(
            zip(good, await embed([r.text for r in good.values()], model=embedder), strict=True)
        )
        decision = Decision(
            key="similarity",
            value=None if unscored else _cosine(vectors["answer"], vectors["rerun"]),
            unscored=unscored,
            ceiling=_cosine(vectors["answer"], vectors["again"])
            if {"answer", "again"} <= set(vectors)
            else None,
            reasoned=reply is not None and reply.reasoned,
        )
        prompt = prompt_in(reply.text) if reply is not None else None
        details: dict[str, object] = {
            **noted(r for name, r in record.acts.items() if name != "rerun")
        }
        if "answer" in vectors:
            details[VECTOR] = (
                base64.encodebytes(vectors["answer"].astype("<f2").tobytes()).decode().split()
            )
        return score_of(
            [decision],
            answer=prompt,
            explanation=_explain_similarity(record, decision, prompt),
            details=details,
        )

    return score


def _cosine(a: Vectors, b: Vectors) -> float:
    """Cosine similarity of two unit vectors, never beyond 1 by rounding."""
    return float(np.clip(a @ b, -1, 1))


def fair_prompt(act: Reply, reply: Reply | None) -> tuple[str | None, str | None]:
    """Observer's prompt if the target should answer it, or why not: (prompt, None) or (None,
    reason).

    Args:
        act: The target's reply to the true prompt.
        reply: The observer's; None where it was not asked, since the act has a problem.

    Paper: silent on prompts that hold the text. Here: one that quotes half of it is "copied", and
    unscored: to say "repeat this" needs no knowledge of what leads to a text.
    """
    if fault := target_fault(act):
        return None, fault
    assert reply is not None, "a good reply of the target was not shown to the observer"
    if fault := observer_fault(reply):
        return None, fault
    prompt = prompt_in(reply.text)
    if prompt is None:
        return None, UNPARSED
    return (None, "copied") if holds_text(prompt, act.text) else (prompt, None)


def why_unscored(act: Reply, reply: Reply | None, rerun: Reply | None) -> str | None:
    """Reason why an item has no similarity; "rerun_…" where the target failed at the reconstructed
    prompt.
    """
    _, fault = fair_prompt(act, reply)
    if fault:
        return fault
    assert rerun is not None, "a good prompt was not put to the target"
    failed = target_fault(rerun)
    return failed.replace("target_", "rerun_", 1) if failed else None


_LABEL = re.compile(
    r"^[\s*_#]*(?:(?:the|a likely|likely|my) )?prompt\b[\s*_]*(?::|is\b)[\s*_]*", re.IGNORECASE
)
_ASKS = re.compile(
    r"(?:please |can you |could you )?(?:write|describe|explain|tell|compose|create|generate|give|list|summari[sz]e"
    r"|imagine"
    r"|how|what|why|which|when|where|who|provide|discuss|compare|outline|draft|invent|suggest|design|develop)\b",
    re.IGNORECASE,
)


def prompt_in(text: str) -> str | None:
    """Prompt in {"prompt": …}, or a reply that is nothing else: quoted, labelled or one line that
    asks.

    >>> prompt_in("Prompt: Write a poem."), prompt_in("The text is a poem.")
    ('Write a poem.', None)
    """
    value = json_value(text, "prompt")
    if value is None and "{" not in text:
        value = _bare_prompt(text.strip())
    return value.strip() if isinstance(value, str) and normalise(value) else None


def _bare_prompt(text: str) -> str | None:
    bare = _LABEL.sub("", text) if len(text) <= 1000 else text
    inside = re.fullmatch(r"[\"“]([^\"“”\n]+)[\"”]", bare)
    if inside:
        return inside[1]
    return (
        bare
        if "\n" not in bare and len(bare) <= 1000 and (bare != text or _ASKS.match(bare))
        else None
    )


def holds_text(prompt: str, text: str) -> bool:
    """Whether half of the text's words or more, and at least eight, are in the prompt in one run."""
    there, here = ([normalise(word) for word in words(each)] for each in (prompt, text))
    run = SequenceMatcher(None, there, here, autojunk=False).find_longest_match().size
    return run >= max(8, len(here) / 2)


def with_floor(decisions: Sequence[Judged], vectors: Sequence[Vectors | None]) -> list[Judged]:
    """Decisions, one per score, each with the mean cosine of its reply and those of all other items
    as floor.

    Args:
        decisions: Item and decision of each score.
        vectors: Per score the unit vector of the target's reply, or None; epochs of an item have
            one each.

    Raises:
        ValueError: The vectors are not of one dimension.
    """
    held = [
        (item, vector)
        for (item, _), vector in zip(decisions, vectors, strict=True)
        if vector is not None
    ]
    if len(sizes := {len(vector) for _, vector in held}) > 1:
        raise ValueError(
            f"expected vectors of one dimension, got {sorted(sizes)}; were they made by one embedder?"
        )
    sums: dict[str, Vectors] = {}
    counts: dict[str, int] = defaultdict(int)
    for item, vector in held:
        sums[item] = sums[item] + vector if item in sums else vector
        counts[item] += 1
    total = np.sum([vector for _, vector in held], axis=0)
    out = []
    for (item, decision), own in zip(decisions, vectors, strict=True):
        others = len(held) - counts[item]
        floor = float(own @ (total - sums[item])) / others if own is not None and others else None
        out.append((item, decision.model_copy(update={"floor": floor})))
    return out


def similarity_to_others(samples: Sequence[EvalSample]) -> dict[str, tuple[float, float]]:
    """Item → the mean and the largest cosine of its reply and those of the other items.

    The mean is the floor. The largest is the score of an observer without a model that answers with
    the question whose reply is most similar to the text.
    """
    vectors: dict[str, Vectors] = {}
    for sample in samples:
        held = [
            vector
            for score in (sample.scores or {}).values()
            if (vector := _vector(score)) is not None
        ]
        if held:
            vectors.setdefault(str(sample.id), held[-1])
    if len(vectors) < 2:
        return {}
    every = np.stack(list(vectors.values()))
    likeness = every @ every.T
    np.fill_diagonal(likeness, np.nan)
    return {
        item: (float(mean), float(most))
        for item, mean, most in zip(
            vectors, np.nanmean(likeness, 1), np.nanmax(likeness, 1), strict=True
        )
    }


def _vector(score: Score) -> Vectors | None:
    packed = (score.metadata or {}).get(VECTOR)
    if packed is None:
        return None
    vector = np.frombuffer(base64.b64decode("".join(packed)), dtype="<f2").astype(float)
    return np.asarray(vector / np.linalg.norm(vector))


def _explain_similarity(record: Record, decision: Decision, prompt: str | None) -> str:
    """Reconstructed prompt and the target's replies side by side, for the log browser."""
    verdict = decision.unscored or f"cosine {decision.value:.3f}"
    raw = (
        f"\nreply: {record.answers['prompt'].text[:200]!r}"
        if prompt is None and "prompt" in record.answers
        else ""
    )
    replies = [f"{name} ({act.model}): {act.text[:500]}" for name, act in record.acts.items()]
    return "\n\n".join([f"reconstructed: {prompt!r}: {verdict}{raw}", *replies])


@scorer(metrics=[summary("replied"), counted_apart()])
def whole_replies() -> Scorer:
    """1 for a whole reply; unscored, with the reason, for what cannot be compared."""

    async def score(state: TaskState, target: Target) -> Score:
        acts = state.store_as(Record).acts
        faults = {name: target_fault(reply) for name, reply in acts.items()}
        decisions = [
            Decision(key=name, value=None if why else 1.0, unscored=why)
            for name, why in faults.items()
        ]
        said = ", ".join(filter(None, faults.values())) or "whole"
        return score_of(decisions, answer=None, explanation=said, details=noted(acts.values()))

    return score


@scorer(metrics=[summary("closeness")])
def probability_hit() -> Scorer:
    """One decision per level: 1 - |p - actual|."""

    async def score(state: TaskState, target: Target) -> Score:
        record = state.store_as(Record)
        decisions = [
            judge_level(p, record.acts, record.answers[f"p{p:g}"]) for p in state.metadata["levels"]
        ]
        told = [
            f"- {d.key}: {d.said or d.unscored}; {aiming_prompt(record.answers[d.key])!r}"
            for d in decisions
        ]
        return score_of(decisions, answer=predictions(decisions), explanation="\n".join(told))

    return score


def judge_level(p: float, acts: Mapping[str, Reply], reply: Reply) -> Decision:
    """Decision on one level. `floor` is the bare topic's, `ceiling` the agreement of two readings
    of one prompt.
    """
    key = f"p{p:g}"
    actual, again, bare = (likeliest(acts.get(name)) for name in (key, f"{key} again", "bare"))
    fault = observer_fault(reply) or (UNPARSED if aiming_prompt(reply) is None else None)
    fault = fault or ("target_no_logprobs" if actual is None else None)
    if fault or actual is None:
        return Decision(key=key, unscored=fault, reasoned=reply.reasoned)
    return Decision(
        key=key,
        value=1 - abs(p - actual),
        said=f"{actual:.4f}",
        floor=None if bare is None else 1 - abs(p - bare),
        ceiling=None if again is None else 1 - abs(actual - again),
        reasoned=reply.reasoned,
    )


def aiming_prompt(reply: Reply) -> str | None:
    """Text in {"prompt": …}, or None."""
    said = None if reply.problem else json_value(reply.text, "prompt")
    return said.strip() if isinstance(said, str) and said.strip() else None


def likeliest(reply: Reply | None) -> float | None:
    """Probability of the likeliest first token; None without logprobs, or without a reply."""
    if reply is None or not reply.first_token:
        return None
    return min(1.0, math.exp(max(token.logprob for token in reply.first_token)))
