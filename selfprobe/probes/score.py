"""A fitted probe as a judge: pairs in, judgements out; nothing is fitted (for the command line and the task)."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from selfprobe.data.pairs import Label, Pair
from selfprobe.embed.weights import Progress, to_stderr
from selfprobe.probes.evaluate import own_answers
from selfprobe.probes.harvesting import harvest
from selfprobe.probes.model import LocalModel
from selfprobe.probes.probe_file import PROMPTS, ProbeFile
from selfprobe.probes.splits import held_out
from selfprobe.probes.tokens import template_hash


@dataclass(frozen=True)
class Judgement:
    """Judgement of one pair by the probe, and by the model's own answer."""

    pair: Pair
    preferred: Label | None
    """Better text; None: unscored, or no preference; see `reason`."""
    score: float | None
    """Score, > 0: text 1; 0: neither. A supervised probe gives a logit, an unsupervised one a length along it."""
    own_answer: float | None
    """The model's P(text 1) from its answers "1" and "2", averaged over the orders shown."""
    seen: bool
    """Whether the probe was trained on this question: such a pair does not count in a test."""
    reason: str = ""


def judge_pairs(
    file: ProbeFile,
    judge: LocalModel,
    pairs: Sequence[Pair],
    *,
    cache: Path,
    progress: Progress = to_stderr,
) -> list[Judgement]:
    """Judgements of `pairs`, in their order; labels are not needed. States are kept in `cache`.

    The call raises ValueError where the probe belongs to another model or chat template.
    """
    card = file.card
    if card.settings == PROMPTS:
        raise ValueError("the probe reads prompts, not pairs: give it to `selfprobe awareness inside --probe`")
    if card.revision != judge.revision:
        raise ValueError(
            f"the probe was fitted to {card.model} ({card.revision}), not to {judge.name} ({judge.revision})"
        )
    shape = (judge.numbers[-1] + 1, judge.d_model)
    if file.probe.layer >= shape[0] or len(file.probe.direction) != shape[1]:
        raise ValueError(
            f"the probe reads block {file.probe.layer} of width {len(file.probe.direction)}, but {judge.name} has "
            f"blocks 0..{shape[0] - 1} of width {shape[1]}: its file is not what was fitted"
        )
    if card.template != template_hash(judge.tokenizer, judge.chat):
        raise ValueError(f"the probe was fitted under another chat template of {card.model}: fit it again")
    harvested = harvest(judge, pairs, cache, both_orders=file.probe.orders == "both", progress=progress)
    scores = file.probe.score(harvested.layer(file.probe.layer)) if harvested.pairs else np.empty(0)
    own = own_answers(harvested).mean(axis=1)
    by_id = {p.id: (float(s), float(o)) for p, s, o in zip(harvested.pairs, scores, own, strict=True)}
    found = []
    for pair, unseen in zip(pairs, held_out(card.train_groups, pairs), strict=True):
        if pair.id in by_id:
            preferred, value, reason = _verdict(by_id[pair.id][0])
            found.append(Judgement(pair, preferred, value, by_id[pair.id][1], not unseen, reason))
        else:
            reason = harvested.unscored[pair.id]
            found.append(Judgement(pair, None, None, None, not unseen, reason))
    return found


def _verdict(score: float) -> tuple[Label | None, float | None, str]:
    """Preferred text, score and reason, e.g. (1, .3, ""); a score of 0 or NaN prefers neither, for a reason."""
    if not math.isfinite(score):
        return None, None, f"score is not finite: {score}"
    if score == 0:
        return None, score, "no preference: the score is exactly 0"
    return (1 if score > 0 else 2), score, ""
