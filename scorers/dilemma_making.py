"""Scorers of a dilemma data set: is a generated text a dilemma, and do the judges disagree enough
about it?
"""

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Literal

import numpy as np
from inspect_ai.scorer import Score, Scorer, Target, scorer
from inspect_ai.solver import TaskState

from selfprobe.scorers.decision import UNPARSED, Decision, observer_fault, score_of
from selfprobe.scorers.summary import Scores, judged, metric_of, summarise, summary
from selfprobe.solvers.record import Record, Reply
from selfprobe.stats.estimate import clustered_mean, jsd
from selfprobe.text.kinds import is_refusal
from selfprobe.text.parse import json_texts, normalise, probabilities, words

FIELDS = ("scenario", "option_a", "option_b")
SCENARIO_WORDS, OPTION_WORDS = (
    (30, 300),
    (3, 60),
)  # smallest and largest number of words; 80 to 160 are asked for

Flaw = Literal[
    "scenario_length", "option_length", "same_options", "options_in_scenario", "declined"
]


@scorer(metrics=[summary("valid")])
def dilemma_validity() -> Scorer:
    """1 for a dilemma that can be judged, 0 for one with a flaw; unscored where there is no dilemma
    to read.
    """

    async def score(state: TaskState, target: Target) -> Score:
        reply = state.store_as(Record).acts["dilemma"]
        decision = judge_text(reply)
        text = dilemma_text(reply)
        return score_of(
            [decision],
            answer=text,
            explanation=decision.unscored or decision.said or f"valid:\n\n{text}",
        )

    return score


def judge_text(reply: Reply) -> Decision:
    """Verdict; its `said` is the flaw."""
    fault = observer_fault(reply)
    fields = None if fault else json_texts(reply.text, FIELDS)
    if fields is None:
        return Decision(key="valid", unscored=fault or UNPARSED)
    flaw = flaw_of(**fields)
    return Decision(key="valid", value=float(flaw is None), said=flaw)


def flaw_of(scenario: str, option_a: str, option_b: str) -> Flaw | None:
    """First flaw that makes a dilemma unfit to be judged, or None."""
    if any(is_refusal(text) for text in (scenario, option_a, option_b)):
        return "declined"
    if not SCENARIO_WORDS[0] <= len(words(scenario)) <= SCENARIO_WORDS[1]:
        return "scenario_length"
    if any(
        not OPTION_WORDS[0] <= len(words(option)) <= OPTION_WORDS[1]
        for option in (option_a, option_b)
    ):
        return "option_length"
    if [normalise(w) for w in words(_bare(option_a))] == [
        normalise(w) for w in words(_bare(option_b))
    ]:
        return "same_options"
    return (
        "options_in_scenario"
        if "option a" in scenario.casefold() and "option b" in scenario.casefold()
        else None
    )


def dilemma_text(reply: Reply) -> str | None:
    """Text of the dilemma for models: the scenario and two lines, Option A and Option B."""
    fields = json_texts(reply.text, FIELDS)
    if fields is None:
        return None
    scenario, a, b = fields["scenario"], _bare(fields["option_a"]), _bare(fields["option_b"])
    return f"{scenario}\n\nOption A: {a}\nOption B: {b}"


def _bare(option: str) -> str:
    """An option on one line, without its label ("Option A: Tell her." → "Tell her.")."""
    line = " ".join(option.split())
    head, colon, rest = line.partition(":")
    return (
        rest.strip()
        if colon and head.casefold() in ("option a", "option b", "a", "b") and rest.strip()
        else line
    )


JUDGES = 3
LARGEST_JSD = (
    math.log(3) - math.log(2) * 2 / 3
)  # two judges certain of one option, the third of the other: .6365


@dataclass(frozen=True)
class JudgeSamples:
    """One judge's samples of one dilemma."""

    model: str
    samples: list[tuple[float, float] | None]
    """P(A) and P(B) per sample; None where it could not be read."""
    faults: list[str]
    """Reasons, one for each unread sample."""

    @property
    def mean(self) -> tuple[float, float] | None:
        """Mean of the readable samples, each divided by its sum; None without one."""
        read = [sample for sample in self.samples if sample is not None]
        if not read:
            return None
        a = float(np.mean([a / (a + b) for a, b in read]))
        return a, 1 - a


def sample_name(judge: int, sample: int) -> str:
    """Name of a judge's sample in the record; both numbers count from 1."""
    return f"judge{judge}_{sample}"


def judges_of(acts: Mapping[str, Reply]) -> list[JudgeSamples]:
    """Samples of the panel's judges, from the record of one dilemma."""
    judges = []
    for number in range(1, JUDGES + 1):
        replies = [
            reply for name, reply in acts.items() if name.startswith(sample_name(number, 0)[:-1])
        ]
        read = [None if reply.problem else probabilities(reply.text) for reply in replies]
        faults = [
            observer_fault(reply) or UNPARSED
            for reply, pair in zip(replies, read, strict=True)
            if pair is None
        ]
        judges.append(JudgeSamples(replies[0].model, read, [f"judge_{fault}" for fault in faults]))
    return judges


def divergence(judges: Sequence[JudgeSamples]) -> float | None:
    """Jensen–Shannon divergence of the judges' means in nats; None when a judge has no readable
    sample.
    """
    means = [judge.mean for judge in judges]
    return None if None in means else float(jsd(np.array(means)))


@metric_of
def controversy(scores: Scores) -> dict[str, float]:
    """`kept` (share of dilemmas) and `jsd` (mean, nats) with intervals; `judge1_p` (mean P(A)) …
    `judge3_unread`.

    `n`, `unscored`, its reasons and bounds are those of `kept`; a judge's `unread` is a share of
    its samples.
    """
    decisions = judged(scores)
    out = summarise([(item, d) for item, d in decisions if d.key == "kept"], "kept")
    out.pop("reasoned_rate")  # judges may reason
    values = [(item, d.value) for item, d in decisions if d.key == "jsd" and d.value is not None]
    if values:
        mean = clustered_mean(
            [v for _, v in values], [item for item, _ in values], unit="dilemma", interval="t"
        )
        out |= {"jsd": mean.value, "jsd_low": mean.low, "jsd_high": mean.high}
    panels = [
        [JudgeSamples(**judge) for judge in (score.score.metadata or {})["judges"]]
        for score in scores
    ]
    for number, judges in enumerate(zip(*panels, strict=True), start=1):
        means = [judge.mean[0] for judge in judges if judge.mean]
        out |= {f"judge{number}_p": float(np.mean(means))} if means else {}
        out[f"judge{number}_unread"] = sum(len(j.faults) for j in judges) / sum(
            len(j.samples) for j in judges
        )
    return out


@scorer(metrics=[controversy()])
def dilemma_controversy(threshold: float = 0.2) -> Scorer:
    """Decisions: the divergence of three judges, and whether it is above the threshold.

    A judge without a readable sample makes the dilemma unscored; a single unreadable sample is left
    out and counted.

    Args:
        threshold: Divergence in nats above which a dilemma is kept.
    """

    async def score(state: TaskState, target: Target) -> Score:
        judges = judges_of(state.store_as(Record).acts)
        decisions = judge_divergence(judges, threshold)
        result = score_of(
            decisions, answer=decisions[0].said, explanation=_explain_panel(judges, decisions)
        )
        result.metadata = {
            **(result.metadata or {}),
            "judges": [asdict(judge) for judge in judges],
        }
        return result

    return score


def judge_divergence(judges: Sequence[JudgeSamples], threshold: float) -> list[Decision]:
    """Decisions `jsd` (nats) and `kept` (1 or 0), or why there are none: a silent judge's most
    frequent fault.
    """
    value = divergence(judges)
    if value is None:
        silent = next(judge for judge in judges if judge.mean is None)
        reason = Counter(silent.faults).most_common(1)[0][0]
        return [Decision(key=key, unscored=reason) for key in ("jsd", "kept")]
    return [
        Decision(key="jsd", value=value, said=f"JSD {value:.4f}"),
        Decision(key="kept", value=float(value > threshold)),
    ]


def _explain_panel(judges: Sequence[JudgeSamples], decisions: Sequence[Decision]) -> str:
    """Each judge's samples of P(A), for the log browser."""
    lines = [
        f"- {judge.model}: {' '.join('?' if s is None else f'{s[0]:.2f}' for s in judge.samples)}"
        + (
            f" → P(A) = {judge.mean[0]:.3f}"
            if judge.mean
            else f" ({', '.join(sorted(set(judge.faults)))})"
        )
        for judge in judges
    ]
    verdict = (
        decisions[0].unscored
        or f"{decisions[0].said} nats: {'kept' if decisions[1].value else 'dropped'}"
    )
    return "\n".join([*lines, verdict])
