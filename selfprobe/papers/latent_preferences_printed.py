"""What the paper of the latent-preference probes prints in its tables, to compare results with. Its
figures are pictures without numbers.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated

from selfprobe.page import Heading, RowTable, number, signed_number

TRAINED_ON = ("newsroom", "summeval", "hanna", "rocstories", "mctaco", "caters")
"""Columns of Table 1, and its rows."""

TABLE_1: Mapping[str, tuple[tuple[float, float] | None, ...]] = {
    "newsroom": (None, (0.63, 0.77), (0.65, 0.77), (0.78, 0.77), (0.78, 0.77), (0.64, 0.77)),
    "summeval": ((0.66, 0.76), None, (0.63, 0.76), (0.77, 0.76), (0.77, 0.76), (0.58, 0.76)),
    "hanna": ((0.67, 0.71), (0.62, 0.71), None, (0.71, 0.71), (0.71, 0.71), (0.59, 0.70)),
    "rocstories": ((0.87, 0.99), (0.78, 0.99), (0.79, 0.98), None, (0.99, 0.99), (0.71, 0.99)),
    "mctaco": ((0.79, 0.95), (0.67, 0.95), (0.70, 0.95), (0.96, 0.95), None, (0.74, 0.95)),
    "caters": ((0.75, 0.78), (0.62, 0.78), (0.67, 0.78), (0.76, 0.78), (0.77, 0.78), None),
}
"""Data set tested on → F1 of the supervised and of the unsupervised probe of each of `TRAINED_ON`, of
Llama 3.1 70B.
"""

TABLE_2: Mapping[str, tuple[float, float]] = {
    "Gemma 2 2B": (-0.00, -0.01),
    "Gemma 2 9B": (0.01, 0.01),
    "Gemma 2 27B": (0.00, 0.00),
    "Llama 3.1 8B": (0.00, 0.01),
    "Llama 3.1 70B": (0.03, 0.03),
}
"""Model → change of F1 on MT-Bench with the supervised, and with the unsupervised, probe's direction
taken out.
"""


@dataclass(frozen=True)
class PrintedTransfer:
    """Table 1 of the paper as printed (Llama 3.1 70B)."""

    tested_on: Annotated[str, Heading("tested on", "Data set whose pairs are classified.")]
    trained_on: Annotated[str, Heading("trained on", "Data set that the probes learnt from.")]
    supervised: Annotated[
        float, Heading("supervised", "F1 of the supervised probe, as the paper prints it.", number)
    ]
    unsupervised: Annotated[
        float,
        Heading("unsupervised", "F1 of the unsupervised probe, as the paper prints it.", number),
    ]


def printed_transfers() -> RowTable:
    """Table 1 as printed, a row a cell off the diagonal."""
    rows = list[PrintedTransfer]()
    for tested_on, cells in TABLE_1.items():
        for trained_on, cell in zip(TRAINED_ON, cells, strict=True):
            if cell is not None:
                supervised, unsupervised = cell
                rows.append(PrintedTransfer(tested_on, trained_on, supervised, unsupervised))
    return RowTable(PrintedTransfer, rows)


@dataclass(frozen=True)
class PrintedChange:
    """Table 2 of the paper as printed (MT-Bench)."""

    model: Annotated[str, Heading("model", "Model by the paper's name.")]
    supervised: Annotated[
        float,
        Heading(
            "supervised",
            "Change of F1 without the supervised probe's direction, as printed.",
            signed_number,
        ),
    ]
    unsupervised: Annotated[
        float,
        Heading(
            "unsupervised",
            "Change of F1 without the unsupervised probe's direction, as printed.",
            signed_number,
        ),
    ]


def printed_changes() -> RowTable:
    """Table 2 as printed."""
    rows = [PrintedChange(model, *changes) for model, changes in TABLE_2.items()]
    return RowTable(PrintedChange, rows)
