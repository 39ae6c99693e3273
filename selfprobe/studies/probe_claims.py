"""Claims about probes and fine-tuned judges: is one shown to judge better than asking, and than
every control?

Numbers in, claims out: the tables of a run become `ProbeEvidence`, and that a `Claim`.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import pandas as pd

from selfprobe.page.claims import ClaimWords
from selfprobe.page.numerals import interval_text, number, percent_interval, signed_interval
from selfprobe.stats.claim import (
    ALPHA,
    Check,
    Claim,
    Outcome,
    above_zero_check,
    answer_mass_check,
    outcome_if,
    remedy_unless_met,
)
from selfprobe.stats.estimate import Estimate, undefined

SMALLEST_PROBE_LEAD = 0.03
"""Smallest lead over asking that matters, in AUROC or F1."""
ProbeKind = Literal["supervised", "unsupervised"]
Tables = Mapping[str, pd.DataFrame]


@dataclass(frozen=True)
class ProbeControl:
    """Something that a probe must be above."""

    check: str
    """Key of the check."""
    method: str
    """Name in the tables of a run; {kind} is the kind of the probe."""
    label: str
    """Name in sentences."""
    is_optional: bool = False
    """Whether the question can do without it: it counts where it was run."""
    remedy: str = "run `selfprobe probe run` again"
    """What to type where it was not run."""


ASKING = ProbeControl("above_asking", "prompting", "asking")
CONTROLS = (
    ASKING,
    ProbeControl(
        "above_calibrated_asking", "prompting, one order, calibrated", "calibrated asking"
    ),
    ProbeControl("above_direct_scoring", "direct scoring", "direct scoring", is_optional=True),
    ProbeControl("above_g_eval", "G-Eval", "G-Eval", is_optional=True),
    ProbeControl("above_random_direction", "random direction", "a random direction"),
    ProbeControl("above_length", "no model (length)", "length"),
    ProbeControl("above_words", "no model (TF-IDF)", "words"),
    ProbeControl(
        "above_sentence_embeddings",
        "no model (MiniLM)",
        "sentence embeddings",
        remedy="`selfprobe fetch-model all-MiniLM-L6-v2`, then the same command",
    ),
    ProbeControl(
        "above_same_labels", "supervised, the same labels", "the same labels", is_optional=True
    ),
    ProbeControl(
        "above_random_weights",
        "random weights, {kind}",
        "random weights",
        remedy="add --random-weights (one device, full precision)",
    ),
)
"""Controls of a probe, in the order in which a sceptic asks; shuffled labels have a test of their
own.
"""
ABOVE_SHUFFLED = "above_shuffled_labels"
SHUFFLED = "shuffled labels"
"""What the best layer reaches where labels are shuffled."""


@dataclass(frozen=True)
class Lead:
    """What a probe or judge is ahead of a control."""

    score: float
    """Number of the control."""
    lead: Estimate
    """The probe less the control, paired."""


@dataclass(frozen=True)
class ShuffledLabels:
    """What the best layer reaches where labels are shuffled."""

    mean: float
    high: float
    """95 % of the shuffles stay below it."""
    lead: float
    """The probe's number less the mean."""
    p_value: float
    shuffles: int


@dataclass(frozen=True)
class ProbeEvidence:
    """Numbers on which the claim about a probe rests."""

    subject: str
    kind: ProbeKind
    metric: str
    score: Estimate
    """Number of the probe."""
    leads: Mapping[str, Lead]
    """Key of a control's check → lead over it; without those that were not run."""
    answer_mass: Estimate
    """Share of the probability on the two answers when the model is asked."""
    shuffled: ShuffledLabels | None
    no_measurement: str = ""
    """Why the number is no measurement: labels that it saw, or an arbitrary sign."""
    missing: Mapping[str, str] = field(default_factory=dict)
    """Key of a control's check → why it has no lead."""


_NOT_ABOVE = "has a probe that may be better than {competitor}, {difference}"
_CHECK_LABELS = {control.check: f"above {control.label}" for control in CONTROLS}
PROBE_WORDS = ClaimWords(
    yes="has a probe above asking by {effect} ({metric}); closest is {competitor}",
    no="has a probe less than {smallest} above asking, {effect} ({metric})",
    explained="has a probe that is no better than {competitor} ({metric})",
    checks={
        "is_measured": "tested on labels and texts that it never saw",
        "answer_mass": "answering with 1 or 2 when it is asked",
        **_CHECK_LABELS,
        ABOVE_SHUFFLED: "above shuffled labels",
    },
    unmet={
        "is_measured": "has a probe that is no measurement: {no_measurement}",
        "answer_mass": "is answered with 1 or 2 in {difference} of the probability",
        **dict.fromkeys(_CHECK_LABELS, _NOT_ABOVE),
        ABOVE_SHUFFLED: _NOT_ABOVE,
    },
    units={"is_measured": interval_text, "answer_mass": percent_interval},
    write=signed_interval,
    kind="data sets",
)


def probe_claim(evidence: ProbeEvidence) -> Claim:
    """The claim that a probe judges better than asking, and than every control."""
    asking = evidence.leads.get(ASKING.check)
    effect = asking.lead if asking else undefined("asking has no number", unit="question")
    checks = [
        _measurement_check(evidence),
        answer_mass_check(evidence.answer_mass, remedy="take a model that follows instructions"),
    ]
    for control in CONTROLS:
        if control.check in evidence.leads or not control.is_optional:
            checks.append(_control_check(control, evidence))
    checks.append(_shuffled_check(evidence.shuffled))
    details = {"metric": evidence.metric, "no_measurement": evidence.no_measurement}
    return Claim(evidence.subject, effect, tuple(checks), SMALLEST_PROBE_LEAD, details)


def _measurement_check(evidence: ProbeEvidence) -> Check:
    if not evidence.no_measurement and not math.isnan(evidence.score.value):
        return Check("is_measured", evidence.score, Outcome.HOLDS)
    reason = evidence.no_measurement or evidence.score.reason or "it has no score"
    return Check(
        name="is_measured",
        difference=undefined(reason, unit="question"),
        outcome=Outcome.OPEN,
        remedy="take --preset strict",
    )


def _control_check(control: ProbeControl, evidence: ProbeEvidence) -> Check:
    """The requirement that a probe is above a control; one that was not run is open."""
    lead = evidence.leads.get(control.check)
    if lead is None:
        reason = evidence.missing.get(control.check, "it was not run")
        return Check(
            name=control.check,
            difference=undefined(reason, unit="question"),
            outcome=Outcome.OPEN,
            compared_with=control.label,
            remedy=control.remedy,
        )
    return lead_check(control.check, control.label, lead)


def lead_check(name: str, label: str, lead: Lead) -> Check:
    """The requirement that a lead is above 0; a control that is shown to reach as much explains
    it.
    """
    return above_zero_check(
        name,
        lead.lead,
        smallest=SMALLEST_PROBE_LEAD,
        compared_with=f"{label}: {number(lead.score)}",
        explains=True,
        remedy="add pairs",
    )


def _shuffled_check(shuffled: ShuffledLabels | None) -> Check:
    if shuffled is None:
        reason = undefined("no labels were shuffled", unit="shuffle")
        remedy = "run `selfprobe probe run` again"
        return Check(ABOVE_SHUFFLED, reason, Outcome.OPEN, SHUFFLED, remedy=remedy)
    outcome = outcome_if(shuffled.p_value < ALPHA)
    bound = f"95 % of shuffles stay below {number(shuffled.high)}"
    return Check(
        name=ABOVE_SHUFFLED,
        difference=undefined(bound, n=shuffled.shuffles, unit="shuffle", value=shuffled.lead),
        outcome=outcome,
        compared_with=f"{SHUFFLED}: {number(shuffled.mean)}",
        p_value=shuffled.p_value,
        remedy=remedy_unless_met(outcome, "add pairs"),
    )


# ---- from the tables of a run


def estimate_of(row: Any, unit: str = "question") -> Estimate:
    """Estimate of a row with value, low, high, n and reason."""
    reason = getattr(row, "reason", "")
    if not isinstance(reason, str):
        reason = ""  # an empty cell of a table is NaN
    return Estimate(row.value, row.low, row.high, int(row.n), unit, reason)


def evidence_of_run(
    tables: Tables, kind: ProbeKind, metric: Literal["auroc", "f1"]
) -> list[ProbeEvidence]:
    """Evidence by data set, from the tables methods, differences, floors and data of a run."""
    methods = tables["methods"]
    methods = methods[methods.metric == metric]
    return [
        _evidence_of_data_set(str(name), tables, kind, metric)
        for name in dict.fromkeys(methods.dataset)
    ]


def _evidence_of_data_set(
    dataset: str, tables: Tables, kind: ProbeKind, metric: Literal["auroc", "f1"]
) -> ProbeEvidence:
    scores = {row.method: row for row in _rows(tables, "methods", dataset, metric).itertuples()}
    differences = _rows(tables, "differences", dataset, metric)
    differences = differences[differences.probe == kind]
    lead_rows = {row.against: row for row in differences.itertuples()}
    leads = {}
    for control in CONTROLS:
        method = control.method.format(kind=kind)
        if method in lead_rows:
            score = float(scores[method].value) if method in scores else math.nan
            leads[control.check] = Lead(score, estimate_of(lead_rows[method]))
    no_measurement = getattr(scores[kind], "no_measurement", "")
    if not isinstance(no_measurement, str):
        no_measurement = ""  # an empty cell of a table is NaN
    return ProbeEvidence(
        subject=dataset,
        kind=kind,
        metric="AUROC" if metric == "auroc" else "F1",
        score=estimate_of(scores[kind]),
        leads=leads,
        answer_mass=_answer_mass(tables, dataset),
        shuffled=_shuffled_labels(tables, dataset, kind, metric),
        no_measurement=no_measurement,
    )


def _rows(tables: Tables, name: str, dataset: str, metric: str) -> pd.DataFrame:
    table = tables.get(name)
    if table is None:
        return pd.DataFrame(columns=["dataset", "metric", "method", "probe", "against", "over"])
    return table[(table.dataset == dataset) & (table.metric == metric)]


def _answer_mass(tables: Tables, dataset: str) -> Estimate:
    data = tables["data"]
    rows = data[data.dataset == dataset]
    if "answer_mass" not in data or rows.empty:
        return undefined("the run does not hold it", unit="question")
    row = rows.iloc[0]
    return Estimate(
        row.answer_mass, row.answer_mass_low, row.answer_mass_high, int(row.scored), "pair"
    )


def _shuffled_labels(
    tables: Tables, dataset: str, kind: ProbeKind, metric: str
) -> ShuffledLabels | None:
    """What the best layer, its sign known, reaches where labels are shuffled."""
    floors = _rows(tables, "floors", dataset, metric)
    floors = floors[(floors.probe == kind) & ~floors.over.astype(str).str.contains("signs")]
    if floors.empty:
        return None
    row: Any = next(iter(floors.itertuples()))
    return ShuffledLabels(row.mean, row.high, row.reached - row.mean, row.p_value, int(row.n))


def mean_evidence(subject: str, parts: Sequence[ProbeEvidence], mean: Any) -> ProbeEvidence:
    """Evidence over several data sets: means of their numbers, and the largest p of shuffled
    labels.

    Args:
        subject: The model's name.
        parts: Evidence of each data set, at least one.
        mean: Function from estimates of independent data sets to their mean.
    """
    leads: dict[str, Lead] = {}
    missing: dict[str, str] = {}
    for control in CONTROLS:
        control_leads = []
        datasets_without_lead = []
        for part in parts:
            if control.check in part.leads:
                control_leads.append(part.leads[control.check])
            else:
                datasets_without_lead.append(part.subject)
        if not datasets_without_lead:
            score = sum(lead.score for lead in control_leads) / len(control_leads)
            leads[control.check] = Lead(score, mean([lead.lead for lead in control_leads]))
        elif control_leads:
            missing[control.check] = f"not run on {', '.join(datasets_without_lead)}"

    shuffled_of_parts = [part.shuffled for part in parts if part.shuffled is not None]
    weakest_shuffled = None
    if len(shuffled_of_parts) == len(parts):
        weakest_shuffled = max(shuffled_of_parts, key=lambda shuffled: shuffled.p_value)
    no_measurements = [part.no_measurement for part in parts if part.no_measurement]
    scores = [part.score for part in parts]
    answer_masses = [part.answer_mass for part in parts]
    return ProbeEvidence(
        subject=subject,
        kind=parts[0].kind,
        metric=parts[0].metric,
        score=mean(scores),
        leads=leads,
        answer_mass=mean(answer_masses),
        shuffled=weakest_shuffled,
        no_measurement=no_measurements[0] if no_measurements else "",
        missing=missing,
    )


# ---- fine-tuned judges

JUDGE_CONTROLS = (
    ProbeControl("above_probe", "supervised", "its probe"),
    ProbeControl("above_asking", "prompting", "asking"),
    ProbeControl("above_words", "no model (TF-IDF)", "words"),
    ProbeControl("above_length", "no model (length)", "length"),
)
JUDGES = ("fine-tuned judge", "fine-tuned judge, all weights")
_JUDGE_LABELS = {control.check: f"above {control.label}" for control in JUDGE_CONTROLS}
JUDGE_WORDS = ClaimWords(
    yes="has a fine-tuned judge above its probe by {effect} (AUROC); closest is {competitor}",
    no="has a fine-tuned judge less than {smallest} above its probe, {effect} (AUROC)",
    explained="has a fine-tuned judge that is no better than {competitor} (AUROC)",
    checks=_JUDGE_LABELS,
    unmet=dict.fromkeys(
        _JUDGE_LABELS, "has a judge not shown to be above {competitor}, {difference}"
    ),
    write=signed_interval,
    kind="data sets",
)


@dataclass(frozen=True)
class JudgeEvidence:
    """Numbers on which the claim about a fine-tuned judge rests."""

    subject: str
    dataset: str
    score: float
    leads: Mapping[str, Lead]


def judge_claim(evidence: JudgeEvidence) -> Claim:
    """The claim that a fine-tuned judge judges better than the model's probe."""
    checks = []
    for control in JUDGE_CONTROLS:
        lead = evidence.leads.get(
            control.check, Lead(math.nan, undefined("it was not run", unit="question"))
        )
        checks.append(lead_check(control.check, control.label, lead))
    return Claim(evidence.subject, checks[0].difference, tuple(checks), SMALLEST_PROBE_LEAD)


def judge_evidence(tables: Tables) -> list[JudgeEvidence]:
    """Evidence by data set and training, from the tables finetuned and finetuned_less."""
    methods = tables["finetuned"]
    methods = methods[methods.metric == "auroc"]
    differences = tables["finetuned_less"]
    differences = differences[differences.metric == "auroc"]
    judges = []
    for (dataset, judge), rows in differences.groupby(["dataset", "probe"], sort=False):
        dataset_methods = methods[methods.dataset == dataset].drop_duplicates("method")
        scores = dataset_methods.set_index("method").value
        lead_rows = {row.against: row for row in rows.itertuples()}
        leads = {}
        for control in JUDGE_CONTROLS:
            if control.method in lead_rows:
                score = float(scores[control.method])
                leads[control.check] = Lead(score, estimate_of(lead_rows[control.method]))
        subject = str(dataset)
        if judge != JUDGES[0]:
            subject += "\N{NO-BREAK SPACE}(all\N{NO-BREAK SPACE}weights)"
        judges.append(JudgeEvidence(subject, str(dataset), float(scores[judge]), leads))
    return judges
