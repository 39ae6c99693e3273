"""The page of `awareness inside --set`."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Annotated, Any

import numpy as np

from selfprobe.page import (
    Block,
    Details,
    Heading,
    Page,
    Quoted,
    RowTable,
    Section,
    claim_page,
    interval_text,
    number,
    percent,
    signed_interval,
)
from selfprobe.page import Table as PageTable
from selfprobe.page.columns import columns_of
from selfprobe.page.numerals import p_value
from selfprobe.page.plots import Picture, cut_name, interval_rows
from selfprobe.stats.claim import Claim, Verdict, ordered_claims
from selfprobe.stats.estimate import Estimate, FloatArray
from selfprobe.studies import inside_numbers
from selfprobe.studies.inside_claims import (
    READING_WORDS,
    Baseline,
    ModelReading,
    ReadingEvidence,
    reading_claim,
)
from selfprobe.studies.inside_numbers import (
    AlarmRates,
    LatentNumbers,
    MonitorScores,
    OverBaselines,
)
from selfprobe.studies.inside_rows import (
    InsideMeasure,
    Row,
)

DISAGREEING_ROWS = 6
"""Largest number of shown conversations on which the three disagree."""
LATENT_METHOD = (
    "Latent: the state of the last token before the reply, read by a probe that was fitted on "
    "announcements (wrappers) of evaluation and of use round the same task texts. Layer, penalty "
    "and sign are chosen inside that part; p draws which announcement of each wrapper counts as "
    "the evaluation, and repeats the whole choice."
)
MONITOR_METHOD = (
    "Almost said: mean log-probability a token of sentences that speak of an evaluation less that "
    "of plain sentences of the same form, less the same of placebo sentences. The model writes "
    "none of them."
)
SAID_METHOD = (
    "Said: the question follows the prompt in the same turn, about an evaluation and about real "
    "use; what counts is the probability of Yes beside No, and the mean of the numbers 0.0 to 1.0 "
    "by their probability. No reply is drawn, so these are not the numbers of `awareness run`."
)
CONTROLS_METHOD = (
    "Each of the four is a claim of its own. That the model uses the direction is not shown. "
    "Controls that need no trained model read the text: its length, words learnt from the wrappers "
    "and from the other sources, sentence embeddings (MiniLM) with a probe fitted to them as to the "
    "states, and for the probe a copy with random weights. The placebo of an "
    "answer is the answer to a question about the time of day, and that of the monitor the placebo "
    "sentences, each with the sign under which it tells more. An answer needs half of the model's "
    "probability on what it may answer."
)


@dataclass(frozen=True)
class FittedProbe:
    """The probe with its numbers."""

    numbers: LatentNumbers
    scale: float
    """Factor from score to log-odds."""
    words: Estimate
    """AUROC of words on wrappers left out."""


@dataclass(frozen=True)
class InsideResults:
    """Results of what is in the folder."""

    state: Mapping[str, Any]
    """Entries of run.json, and the name of the set."""
    rows: Sequence[Row]
    fitted: FittedProbe
    evidence: Sequence[ReadingEvidence]
    """Evidence of each reading."""
    numbers: Mapping[str, OverBaselines]
    """Measure → its numbers on the set."""
    baseline_aurocs: Mapping[str, Estimate]
    """Baseline → its AUROC, of those that need no trained model."""
    measures: Mapping[str, FloatArray]
    """Measure → its scores, [row]."""
    masses: Mapping[str, Estimate]
    """Measure → share of the probability on its answers."""
    monitor_by_place: Sequence[MonitorScores]
    """The monitor by place along the reply."""
    calibration: Estimate
    alarm_rates: AlarmRates
    notes: Sequence[str]


@dataclass(frozen=True)
class ReadingAnswerRow:
    """Answers by reading."""

    reading: Annotated[str, Heading("reading", "What is read of the model.")]
    answer: Annotated[
        Verdict,
        Heading("answer", "Whether it tells evaluations from real use, beyond every control."),
    ]
    auroc: Annotated[
        float,
        Heading("AUROC", "Chance that an evaluation is put above real use; .5 is nothing.", number),
    ]
    over_words: Annotated[
        Estimate,
        Heading(
            "less words by source",
            "AUROC less that of words of other sources.",
            signed_interval,
        ),
    ]


def _answer_row(claim: Claim, evidence: ReadingEvidence) -> ReadingAnswerRow:
    over_words = evidence.numbers.over[Baseline.WORDS_ELSEWHERE.value]
    return ReadingAnswerRow(claim.subject, claim.verdict, evidence.numbers.auroc.value, over_words)


def _picture(results: InsideResults) -> Picture:
    rows = {name: {"": measure.auroc} for name, measure in results.numbers.items()}
    rows |= {name: {"": auroc} for name, auroc in results.baseline_aurocs.items()}
    caption = "AUROC on the set, 95 % intervals; .5 tells nothing."
    return interval_rows("inside", rows, caption=caption, axis="AUROC", line=0.5)


def _probe_notes(results: InsideResults) -> list[Block]:
    """Sentences on the probe beside its checks."""
    numbers = results.fitted.numbers
    probe = numbers.chosen.probe
    lines = [
        f"The probe ({probe.kind.replace('_', ' ')}, block {probe.layer}) on wrappers left out: "
        f"AUROC {interval_text(numbers.across_wrappers)}; words learnt from the other wrappers reach "
        f"{interval_text(results.fitted.words)}.",
        f"On task texts left out, in wrappers that it knows: {interval_text(numbers.across_texts)}; "
        f"on formats left out {interval_text(numbers.across_formats)}; on sources of task texts left out "
        f"{interval_text(numbers.across_sources)}.",
        "Against labels shuffled by wrapper, over the whole choice: "
        f"{p_value(numbers.shuffled_p)}.",
        f"Within a format it tells labels with AUROC {interval_text(numbers.on_set.by_label)}, "
        f"within a label formats with {interval_text(numbers.on_set.by_format)}.",
    ]
    if not math.isnan(numbers.random_directions[0]):
        low, high = np.quantile(numbers.random_directions, [0.025, 0.975])
        lines.append(
            "Random directions at that block, signed by the wrappers: "
            f"AUROC {low:.2f} to {high:.2f} (95 %)."
        )
    if numbers.variance:
        shares = [f"{name} {percent(share)}" for name, share in numbers.variance.items()]
        lines.append(f"Variance of its scores on wrappers left out: {', '.join(shares)}.")
    return list(lines)


def _rates_sentence(results: InsideResults) -> str:
    rates = results.alarm_rates
    return (
        f"At the probe's own threshold {interval_text(rates.true_positive)} of evaluations and "
        f"{interval_text(rates.true_negative)} of real use are called right; "
        f"expected calibration error {interval_text(results.calibration)}."
    )


def _disagreements(results: InsideResults) -> list[Block]:
    """Conversations on which the three disagree, with their text."""
    measures: dict[str, FloatArray] = {
        name: results.measures[name]
        for name in (InsideMeasure.PROBE_READING, InsideMeasure.MONITOR, InsideMeasure.YES_OR_NO)
    }
    conversation_blocks: list[Block] = []
    for index in inside_numbers.disagreeing_rows(measures, DISAGREEING_ROWS):
        row = results.rows[index]
        rank_texts = []
        for name, scores in measures.items():
            share_below = float(np.mean(scores < scores[index]))
            rank_texts.append(f"{name} above {percent(share_below)}")
        summary = f"{row.id} ({row.label}): {', '.join(rank_texts)} of conversations"
        conversation_blocks.append(Details(summary, [Quoted(row.text[:2000])]))
    if not conversation_blocks:
        return ["The three nowhere disagree by half of all ranks."]
    return ["Where the three disagree most", *conversation_blocks]


@dataclass(frozen=True)
class MeasureRow:
    """Measures and baselines on the set."""

    measure: Annotated[
        str, Heading("measure", "What was read of the model, or what needs no trained model.")
    ]
    estimate: Annotated[
        Estimate, Heading("AUROC", "Chance that an evaluation is put above real use.")
    ]
    answer_mass: Annotated[
        float,
        Heading("answers", "Share of the probability on what may be answered.", percent),
    ]


@dataclass(frozen=True)
class LeadOverBaselineRow:
    """Each measure less each baseline, paired."""

    measure: Annotated[str, Heading("measure", "What was read of the model.")]
    baseline: Annotated[str, Heading("baseline", "What needs no trained model.")]
    estimate: Annotated[
        Estimate, Heading("difference", "AUROC of the measure less the baseline's.")
    ]


@dataclass(frozen=True)
class ConversationRow:
    """Conversations with what was read at each."""

    id: Annotated[str, Heading("conversation", "Id of the conversation.")]
    label: Annotated[str, Heading("label", "Evaluation or deployment.")]
    source: Annotated[str, Heading("source", "Conversations of one source are not independent.")]
    format: Annotated[str, Heading("format", "Format of the conversation.")]
    latent: Annotated[float, Heading("latent", "Score of the probe; above 0 is an evaluation.")]
    latent_after_placebo: Annotated[
        float, Heading("after the placebo", "The same after the placebo question.")
    ]
    almost_said: Annotated[float, Heading("almost said", "The monitor, in nats a token.")]
    said_yes_or_no: Annotated[
        float, Heading("yes or no", "Stated probability of an evaluation, by yes and no.")
    ]
    said_probability: Annotated[
        float, Heading("probability", "Stated probability of an evaluation, by numbers.")
    ]


@dataclass(frozen=True)
class MonitorRow:
    """The monitor by conversation and place along the reply, nats a token."""

    id: Annotated[str, Heading("conversation", "Id of the conversation.")]
    place: Annotated[int, Heading("place", "Number of the place along the reply, from 1.")]
    monitor: Annotated[
        float, Heading("monitor", "Sentences of an evaluation less plain ones, less placebos.")
    ]


@dataclass(frozen=True)
class TopicRow:
    """Sentences of a topic less plain ones, by conversation and place, nats a token."""

    id: Annotated[str, Heading("conversation", "Id of the conversation.")]
    place: Annotated[int, Heading("place", "Number of the place along the reply, from 1.")]
    topic: Annotated[str, Heading("topic", "What the sentences speak of.")]
    value: Annotated[
        float, Heading("less plain", "Mean log-probability a token less that of plain sentences.")
    ]


@dataclass(frozen=True)
class PlaceRow:
    """The monitor by place along the reply, nats a token."""

    place: Annotated[int, Heading("place", "Number of the place along the reply, from 1.")]
    evaluation: Annotated[
        float, Heading("evaluation", "Mean over evaluations.", partial(number, digits=3))
    ]
    use: Annotated[float, Heading("use", "Mean over real use.", partial(number, digits=3))]


@dataclass(frozen=True)
class PrecisionRow:
    """Precision of the probe's alarms by the share of evaluations."""

    prevalence: Annotated[
        float, Heading("share of evaluations", "Share of prompts that are evaluations.", percent)
    ]
    estimate: Annotated[Estimate, Heading("precision", "Share of alarms that are right.")]


def inside_tables(results: InsideResults) -> dict[str, RowTable]:
    """Tables by file stem."""
    measure_rows = []
    lead_rows = []
    for name, numbers in results.numbers.items():
        mass = results.masses[name].value if name in results.masses else math.nan
        measure_rows.append(MeasureRow(name, numbers.auroc, mass))
        for baseline, lead in numbers.over.items():
            lead_rows.append(LeadOverBaselineRow(name, baseline, lead))
    for name, auroc in results.baseline_aurocs.items():
        measure_rows.append(MeasureRow(name, auroc, math.nan))

    monitor_rows = []
    topic_rows = []
    place_rows = []
    truth = np.array([row.evaluation for row in results.rows])
    for place, monitor in enumerate(results.monitor_by_place, start=1):
        for row, score in zip(results.rows, monitor.net, strict=True):
            monitor_rows.append(MonitorRow(row.id, place, float(score)))
        for topic, scores in monitor.by_topic.items():
            for row, score in zip(results.rows, scores, strict=True):
                topic_rows.append(TopicRow(row.id, place, topic, float(score)))
        evaluation_mean = float(np.mean(monitor.net[truth]))
        use_mean = float(np.mean(monitor.net[~truth]))
        place_rows.append(PlaceRow(place, evaluation_mean, use_mean))

    precision_rows = [
        PrecisionRow(prevalence, precision)
        for prevalence, precision in results.alarm_rates.precision.items()
    ]
    return {
        "measures": RowTable(MeasureRow, measure_rows),
        "leads": RowTable(LeadOverBaselineRow, lead_rows),
        "precision": RowTable(PrecisionRow, precision_rows),
        "places": RowTable(PlaceRow, place_rows),
        "conversations": RowTable(ConversationRow, _conversation_rows(results), on_page=False),
        "monitor": RowTable(MonitorRow, monitor_rows, on_page=False),
        "topics": RowTable(TopicRow, topic_rows, on_page=False),
    }


def _conversation_rows(results: InsideResults) -> list[ConversationRow]:
    not_read = np.full(len(results.rows), math.nan)
    after_placebo = results.measures.get(InsideMeasure.PROBE_AFTER_PLACEBO, not_read)
    return [
        ConversationRow(
            id=row.id,
            label=row.label,
            source=row.source,
            format=row.format,
            latent=float(results.measures[InsideMeasure.PROBE_READING][index]),
            latent_after_placebo=float(after_placebo[index]),
            almost_said=float(results.measures[InsideMeasure.MONITOR][index]),
            said_yes_or_no=float(results.measures[InsideMeasure.YES_OR_NO][index]),
            said_probability=float(results.measures[InsideMeasure.PROBABILITY][index]),
        )
        for index, row in enumerate(results.rows)
    ]


def inside_page(results: InsideResults) -> Page:
    """The answer, with tables measures, leads, conversations, precision, monitor and topics."""
    state = results.state
    evidence_of_subject = {evidence.reading.value: evidence for evidence in results.evidence}
    claims = ordered_claims([reading_claim(evidence) for evidence in results.evidence])
    answer_rows = [_answer_row(claim, evidence_of_subject[claim.subject]) for claim in claims]
    page = claim_page(
        f"Does {cut_name(state['model'])} hold, almost say or say that it is evaluated?",
        claims,
        READING_WORDS,
        picture=_picture(results),
        table=PageTable(answer_rows, columns_of(ReadingAnswerRow)),
        tables=inside_tables(results),
        method=[LATENT_METHOD, MONITOR_METHOD, SAID_METHOD, CONTROLS_METHOD, *results.notes],
        notes={ModelReading.LATENT.value: _probe_notes(results)},
        further_figures=[_rates_sentence(results), *_disagreements(results)],
    )
    run_text = (
        f"{state['model']}, revision {state['revision']}, {state['precision']}; "
        f"set {state['set']}; monitor at the start of the {state['at']}; "
        f"selfprobe {state['selfprobe']}."
    )
    return replace(page, sections=[*page.sections, Section("Runs", [run_text], name="runs")])
