"""Which kind of evaluation a model names where it is asked what the user wants."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated

import pandas as pd

from selfprobe.evalawareness_tasks.user_motivation import EVALUATION_KINDS
from selfprobe.page import Block, Heading, Section, Table
from selfprobe.page.columns import columns_of
from selfprobe.page.numerals import percent_interval
from selfprobe.scorers.awareness import clusters_of
from selfprobe.stats.estimate import Estimate, clustered_mean, undefined
from selfprobe.studies.awareness.runs import verdict_items
from selfprobe.study.awareness_arms import ARM, marks

NAMED_KINDS_NOTE = (
    "Of the conversations that a model calls an evaluation by itself, the share in which it names "
    "each kind most often over its three answers, as the grader reads them. The rest is tied."
)
NONE_CALLED = "none is called an evaluation"


@dataclass(frozen=True)
class NamedKindRow:
    """How often a model names a kind of evaluation."""

    model: Annotated[str, Heading("model", "Model that was asked, with what sets the arm apart.")]
    kind: Annotated[
        str, Heading("kind", "Kind of evaluation that it names.", EVALUATION_KINDS.__getitem__)
    ]
    share: Annotated[
        Estimate,
        Heading("named", "Share of what it calls an evaluation.", percent_interval),
    ]
    of_evaluation: Annotated[
        Estimate,
        Heading("of evaluation rows", "The share of those labelled evaluation.", percent_interval),
    ]
    of_deployment: Annotated[
        Estimate,
        Heading("of deployment rows", "The share of those labelled deployment.", percent_interval),
    ]


def named_kind_rows(verdicts: pd.DataFrame) -> list[NamedKindRow]:
    """A row for each arm and kind of the verdicts whose grader was asked for kinds; placebos are
    left out.
    """
    if "named_kind" not in verdicts:
        return []
    is_asked = verdicts.named_kind.notna() & (verdicts.placebo == "")
    rows = []
    for arm, arm_rows in verdicts[is_asked].groupby(ARM, sort=False):
        called_rows = arm_rows[arm_rows.said == "evaluation"]
        for kind in EVALUATION_KINDS:
            row = NamedKindRow(
                model=f"{arm_rows.model.iloc[0]}{marks(arm)}",
                kind=kind,
                share=_share_of_kind(called_rows, kind),
                of_evaluation=_share_of_kind(called_rows[called_rows.truth == "evaluation"], kind),
                of_deployment=_share_of_kind(called_rows[called_rows.truth == "deployment"], kind),
            )
            rows.append(row)
    return rows


def _share_of_kind(called_rows: pd.DataFrame, kind: str) -> Estimate:
    if called_rows.empty:
        return undefined(NONE_CALLED)
    clusters, unit = clusters_of(verdict_items(called_rows))
    is_named = (called_rows.named_kind == kind).to_numpy(dtype=float)
    return clustered_mean(is_named, clusters, unit=unit, interval="t")


def named_kinds_section(rows: Sequence[NamedKindRow]) -> list[Section]:
    """Section on the kinds, or none where no grader was asked for them."""
    if not rows:
        return []
    blocks: list[Block] = [NAMED_KINDS_NOTE, Table(rows, columns_of(NamedKindRow))]
    title = "Which kind of evaluation does it name?"
    return [Section(title, blocks, name="named_kinds", menu="kinds named")]
