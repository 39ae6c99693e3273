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
SCENARIO_WORDS = range(30, 301)
"""Numbers of words that a scenario may have; 80 to 160 are asked for."""
OPTION_WORDS = range(3, 61)
"""Numbers of words that an option may have."""

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
    if len(words(scenario)) not in SCENARIO_WORDS:
        return "scenario_length"
    if any(len(words(option)) not in OPTION_WORDS for option in (option_a, option_b)):
        return "option_length"

    words_a = [normalise(word) for word in words(_without_label(option_a))]
    words_b = [normalise(word) for word in words(_without_label(option_b))]
    if words_a == words_b:
        return "same_options"

    lower_scenario = scenario.casefold()
    if "option a" in lower_scenario and "option b" in lower_scenario:
        return "options_in_scenario"
    return None


def dilemma_text(reply: Reply) -> str | None:
    """Text of the dilemma for models: the scenario and two lines, Option A and Option B."""
    fields = json_texts(reply.text, FIELDS)
    if fields is None:
        return None
    option_a = _without_label(fields["option_a"])
    option_b = _without_label(fields["option_b"])
    return f"{fields['scenario']}\n\nOption A: {option_a}\nOption B: {option_b}"


def _without_label(option: str) -> str:
    """An option on one line, without its label ("Option A: Tell her." → "Tell her.")."""
    line = " ".join(option.split())
    label, _, text = line.partition(":")
    is_labelled = label.casefold() in ("option a", "option b", "a", "b")
    if is_labelled and text.strip():
        return text.strip()
    return line


JUDGES = 3
LARGEST_JSD = math.log(3) - math.log(2) * 2 / 3
"""Two judges certain of one option, the third of the other: .6365."""


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
        shares_of_a = [
            sample[0] / (sample[0] + sample[1]) for sample in self.samples if sample is not None
        ]
        if not shares_of_a:
            return None
        mean_a = float(np.mean(shares_of_a))
        return mean_a, 1 - mean_a


def sample_name(judge: int, sample: int) -> str:
    """Name of a judge's sample in the record; both numbers count from 1."""
    return f"judge{judge}_{sample}"


def judges_of(acts: Mapping[str, Reply]) -> list[JudgeSamples]:
    """Samples of the panel's judges, from the record of one dilemma."""
    judges: list[JudgeSamples] = []
    for judge_number in range(1, JUDGES + 1):
        name_of_judge = sample_name(judge_number, 0).removesuffix("0")
        replies = [reply for name, reply in acts.items() if name.startswith(name_of_judge)]

        samples: list[tuple[float, float] | None] = []
        faults: list[str] = []
        for reply in replies:
            sample = None if reply.problem else probabilities(reply.text)
            samples.append(sample)
            if sample is None:
                faults.append(f"judge_{observer_fault(reply) or UNPARSED}")
        judges.append(JudgeSamples(replies[0].model, samples, faults))
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
    kept_decisions = [(item, decision) for item, decision in decisions if decision.key == "kept"]
    numbers = summarise(kept_decisions, "kept")
    numbers.pop("reasoned_rate")  # judges may reason

    items: list[str] = []
    divergences: list[float] = []
    for item, decision in decisions:
        if decision.key == "jsd" and decision.value is not None:
            items.append(item)
            divergences.append(decision.value)
    if divergences:
        mean_jsd = clustered_mean(divergences, items, unit="dilemma", interval="t")
        numbers["jsd"] = mean_jsd.value
        numbers["jsd_low"] = mean_jsd.low
        numbers["jsd_high"] = mean_jsd.high

    panels = [(sample_score.score.metadata or {})["judges"] for sample_score in scores]
    for judge_number, judge_fields in enumerate(zip(*panels, strict=True), start=1):
        judge_of_dilemmas = [JudgeSamples(**fields) for fields in judge_fields]
        means = [judge.mean[0] for judge in judge_of_dilemmas if judge.mean]
        if means:
            numbers[f"judge{judge_number}_p"] = float(np.mean(means))
        unread_count = sum(len(judge.faults) for judge in judge_of_dilemmas)
        sample_count = sum(len(judge.samples) for judge in judge_of_dilemmas)
        numbers[f"judge{judge_number}_unread"] = unread_count / sample_count
    return numbers


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
        return score_of(
            decisions,
            answer=decisions[0].said,
            explanation=_explain_panel(judges, decisions),
            details={"judges": [asdict(judge) for judge in judges]},
        )

    return score


def judge_divergence(judges: Sequence[JudgeSamples], threshold: float) -> list[Decision]:
    """Decisions `jsd` (nats) and `kept` (1 or 0), or why there are none: a silent judge's most
    frequent fault.
    """
    jsd_nats = divergence(judges)
    if jsd_nats is None:
        silent_judge = next(judge for judge in judges if judge.mean is None)
        reason, _ = Counter(silent_judge.faults).most_common(1)[0]
        return [Decision(key=key, unscored=reason) for key in ("jsd", "kept")]
    return [
        Decision(key="jsd", value=jsd_nats, said=f"JSD {jsd_nats:.4f}"),
        Decision(key="kept", value=float(jsd_nats > threshold)),
    ]


def _explain_panel(judges: Sequence[JudgeSamples], decisions: Sequence[Decision]) -> str:
    """Each judge's samples of P(A), for the log browser."""
    lines: list[str] = []
    for judge in judges:
        sample_texts = []
        for sample in judge.samples:
            sample_texts.append("?" if sample is None else f"{sample[0]:.2f}")
        if judge.mean:
            result_text = f"→ P(A) = {judge.mean[0]:.3f}"
        else:
            result_text = f"({', '.join(sorted(set(judge.faults)))})"
        lines.append(f"- {judge.model}: {' '.join(sample_texts)} {result_text}")

    jsd_decision, kept_decision = decisions
    kept_text = "kept" if kept_decision.value else "dropped"
    verdict_line = jsd_decision.unscored or f"{jsd_decision.said} nats: {kept_text}"
    return "\n".join([*lines, verdict_line])
