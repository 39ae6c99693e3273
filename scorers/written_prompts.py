"""What does the target answer to a prompt that the observer wrote: a text like its own, a first
token as probable?
"""

import base64
import math
import re
from collections import Counter
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
    sample_notes,
    summarise,
    summary,
)
from selfprobe.solvers.record import Record, Reply
from selfprobe.text.parse import json_value, normalise, words

REPLY_VECTOR = "reply_vector"
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
    vectors = [_vector(sample_score.score) for sample_score in scores]
    return summarise(with_floor(judged(scores), vectors), "similarity")


@scorer(metrics=[similarity(), counted_apart()])
def reply_similarity(embedder: str) -> Scorer:
    """Cosine similarity of the target's replies to the true and the reconstructed prompt
    (IntrospectBench, E.3 Task 2.3).

    The ceiling is that of its replies to the true prompt, asked twice.

    Args:
        embedder: Name of an embedder for `selfprobe.embed.embed`.
    """

    async def score(state: TaskState, target: Target) -> Score:
        record = state.store_as(Record)
        acts = record.acts
        observer_reply = record.answers.get("prompt")
        unscored_reason = why_unscored(acts["answer"], observer_reply, acts.get("rerun"))

        text_by_act = {name: act.text for name, act in acts.items() if not act.problem}
        act_vectors = await embed(list(text_by_act.values()), model=embedder)
        vector_by_act = dict(zip(text_by_act, act_vectors, strict=True))

        value: float | None = None
        if not unscored_reason:
            value = _cosine(vector_by_act["answer"], vector_by_act["rerun"])
        ceiling: float | None = None
        if "answer" in vector_by_act and "again" in vector_by_act:
            ceiling = _cosine(vector_by_act["answer"], vector_by_act["again"])
        decision = Decision(
            key="similarity",
            value=value,
            unscored=unscored_reason,
            ceiling=ceiling,
            reasoned=observer_reply is not None and observer_reply.reasoned,
        )

        own_acts = [act for name, act in acts.items() if name != "rerun"]
        details: dict[str, object] = {**sample_notes(own_acts)}
        if "answer" in vector_by_act:
            packed_vector = vector_by_act["answer"].astype("<f2").tobytes()
            details[REPLY_VECTOR] = base64.encodebytes(packed_vector).decode().split()
        prompt = None if observer_reply is None else prompt_in(observer_reply.text)
        return score_of(
            [decision],
            answer=prompt,
            explanation=_explain_similarity(record, decision, prompt),
            details=details,
            truths={"prompt": state.input_text},
        )

    return score


def _cosine(a: Vectors, b: Vectors) -> float:
    """Cosine similarity of two unit vectors, never beyond 1 by rounding."""
    return float(np.clip(a @ b, -1, 1))


def fair_prompt(target_reply: Reply, observer_reply: Reply | None) -> tuple[str | None, str | None]:
    """Observer's prompt if the target should answer it, or why not: (prompt, None) or (None,
    reason).

    Args:
        target_reply: The target's reply to the true prompt.
        observer_reply: The observer's; None where it was not asked, since the act has a problem.

    Paper: silent on prompts that hold the text. Here: one that quotes half of it is "copied", and
    unscored: to say "repeat this" needs no knowledge of what leads to a text.
    """
    if fault := target_fault(target_reply):
        return None, fault
    assert observer_reply is not None, "a good reply of the target was not shown to the observer"
    if fault := observer_fault(observer_reply):
        return None, fault
    prompt = prompt_in(observer_reply.text)
    if prompt is None:
        return None, UNPARSED
    if holds_text(prompt, target_reply.text):
        return None, "copied"
    return prompt, None


def why_unscored(
    target_reply: Reply, observer_reply: Reply | None, rerun: Reply | None
) -> str | None:
    """Reason why an item has no similarity; "rerun_…" where the target failed at the reconstructed
    prompt.
    """
    _, fault = fair_prompt(target_reply, observer_reply)
    if fault:
        return fault
    assert rerun is not None, "a good prompt was not put to the target"
    rerun_fault = target_fault(rerun)
    if rerun_fault is None:
        return None
    return rerun_fault.replace("target_", "rerun_", 1)


_PROMPT_LABEL = re.compile(
    r"^[\s*_#]*(?:(?:the|a likely|likely|my) )?prompt\b[\s*_]*(?::|is\b)[\s*_]*", re.IGNORECASE
)
_REQUEST_OPENING = re.compile(
    r"(?:please |can you |could you )?"
    r"(?:write|describe|explain|tell|compose|create|generate|give|list|summari[sz]e|imagine"
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
    if not isinstance(value, str) or not normalise(value):
        return None
    return value.strip()


def _bare_prompt(text: str) -> str | None:
    bare_text = _PROMPT_LABEL.sub("", text) if len(text) <= 1000 else text
    quoted = re.fullmatch(r"[\"“]([^\"“”\n]+)[\"”]", bare_text)
    if quoted:
        return quoted[1]
    if "\n" in bare_text or len(bare_text) > 1000:
        return None
    has_label = bare_text != text
    if has_label or _REQUEST_OPENING.match(bare_text):
        return bare_text
    return None


def holds_text(prompt: str, text: str) -> bool:
    """Whether the prompt holds half of the text's words or more, and at least eight, in one run."""
    prompt_words = [normalise(word) for word in words(prompt)]
    text_words = [normalise(word) for word in words(text)]
    matcher = SequenceMatcher(None, prompt_words, text_words, autojunk=False)
    longest_run = matcher.find_longest_match().size
    return longest_run >= max(8, len(text_words) / 2)


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
    vector_counts: Counter[str] = Counter()
    vector_sums: dict[str, Vectors] = {}
    known_vectors: list[Vectors] = []
    for (item, _), vector in zip(decisions, vectors, strict=True):
        if vector is not None:
            known_vectors.append(vector)
            vector_counts[item] += 1
            vector_sums[item] = vector_sums[item] + vector if item in vector_sums else vector

    dimensions = {len(vector) for vector in known_vectors}
    if len(dimensions) > 1:
        raise ValueError(
            f"expected vectors of one dimension, got {sorted(dimensions)}; "
            "were they made by one embedder?"
        )
    total = np.sum(known_vectors, axis=0)

    decisions_with_floor: list[Judged] = []
    for (item, decision), vector in zip(decisions, vectors, strict=True):
        other_count = len(known_vectors) - vector_counts[item]
        floor: float | None = None
        if vector is not None and other_count:
            floor = float(vector @ (total - vector_sums[item])) / other_count
        decisions_with_floor.append((item, decision.model_copy(update={"floor": floor})))
    return decisions_with_floor


def similarity_to_others(samples: Sequence[EvalSample]) -> dict[str, tuple[float, float]]:
    """Item → the mean and the largest cosine of its reply and those of the other items.

    The mean is the floor. The largest is the score of an observer without a model that answers with
    the question whose reply is most similar to the text.
    """
    vector_by_item: dict[str, Vectors] = {}
    for sample in samples:
        score_vectors = [_vector(score) for score in (sample.scores or {}).values()]
        known_vectors = [vector for vector in score_vectors if vector is not None]
        if known_vectors:
            vector_by_item.setdefault(str(sample.id), known_vectors[-1])
    if len(vector_by_item) < 2:
        return {}

    item_vectors = np.stack(list(vector_by_item.values()))
    similarities = item_vectors @ item_vectors.T  # [item, item]
    np.fill_diagonal(similarities, np.nan)
    means = np.nanmean(similarities, axis=1).tolist()
    largest = np.nanmax(similarities, axis=1).tolist()
    return dict(zip(vector_by_item, zip(means, largest, strict=True), strict=True))


def _vector(score: Score) -> Vectors | None:
    packed_lines = (score.metadata or {}).get(REPLY_VECTOR)
    if packed_lines is None:
        return None
    packed_vector = base64.b64decode("".join(packed_lines))
    vector = np.frombuffer(packed_vector, dtype="<f2").astype(float)
    return np.asarray(vector / np.linalg.norm(vector))


def _explain_similarity(record: Record, decision: Decision, prompt: str | None) -> str:
    """Reconstructed prompt and the target's replies side by side, for the log browser."""
    verdict = decision.unscored or f"cosine {decision.value:.3f}"
    lines = [f"reconstructed: {prompt!r}: {verdict}"]
    if prompt is None and "prompt" in record.answers:
        lines[0] += f"\nreply: {record.answers['prompt'].text[:200]!r}"
    for name, act in record.acts.items():
        lines.append(f"{name} ({act.model}): {act.text[:500]}")
    return "\n\n".join(lines)


@scorer(metrics=[summary("replied"), counted_apart()])
def whole_replies() -> Scorer:
    """1 for a whole reply; unscored, with the reason, for what cannot be compared."""

    async def score(state: TaskState, target: Target) -> Score:
        acts = state.store_as(Record).acts
        decisions: list[Decision] = []
        faults: list[str] = []
        for name, reply in acts.items():
            fault = target_fault(reply)
            decisions.append(Decision(key=name, value=None if fault else 1.0, unscored=fault))
            if fault:
                faults.append(fault)
        return score_of(
            decisions,
            answer=None,
            explanation=", ".join(faults) or "whole",
            details=sample_notes(acts.values()),
        )

    return score


@scorer(metrics=[summary("closeness")])
def probability_hit() -> Scorer:
    """One decision per level: 1 - |p - actual|."""

    async def score(state: TaskState, target: Target) -> Score:
        record = state.store_as(Record)
        acts = record.acts
        replies = record.answers
        decisions: list[Decision] = []
        lines: list[str] = []
        for level in state.metadata["levels"]:
            reply = replies[f"p{level:g}"]
            decision = judge_level(level, acts, reply)
            decisions.append(decision)
            lines.append(
                f"- {decision.key}: {decision.said or decision.unscored}; {aiming_prompt(reply)!r}"
            )
        return score_of(decisions, answer=predictions(decisions), explanation="\n".join(lines))

    return score


def judge_level(p: float, acts: Mapping[str, Reply], reply: Reply) -> Decision:
    """Decision on one level. `floor` is the bare topic's, `ceiling` the agreement of two readings
    of one prompt.
    """
    key = f"p{p:g}"
    fault = observer_fault(reply)
    if fault is None and aiming_prompt(reply) is None:
        fault = UNPARSED
    actual = likeliest(acts.get(key))
    if fault or actual is None:
        return Decision(key=key, unscored=fault or "target_no_logprobs", reasoned=reply.reasoned)

    repeated = likeliest(acts.get(f"{key} again"))
    bare_topic = likeliest(acts.get("bare"))
    floor = None if bare_topic is None else 1 - abs(p - bare_topic)
    ceiling = None if repeated is None else 1 - abs(actual - repeated)
    return Decision(
        key=key,
        value=1 - abs(p - actual),
        said=f"{actual:.4f}",
        floor=floor,
        ceiling=ceiling,
        reasoned=reply.reasoned,
    )


def aiming_prompt(reply: Reply) -> str | None:
    """Text in {"prompt": …}, or None."""
    if reply.problem:
        return None
    prompt = json_value(reply.text, "prompt")
    if not isinstance(prompt, str) or not prompt.strip():
        return None
    return prompt.strip()


def likeliest(reply: Reply | None) -> float | None:
    """Probability of the likeliest first token; None without logprobs, or without a reply."""
    if reply is None or not reply.first_token:
        return None
    largest_logprob = max(candidate.logprob for candidate in reply.first_token)
    return min(1.0, math.exp(largest_logprob))
