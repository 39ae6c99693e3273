"""What the paper of the evaluation-awareness methods prints in its table, to compare results with.
Its figures are pictures without numbers.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated

from selfprobe.page import Heading, RowTable, number

TABLE_1: Mapping[str, float] = {
    "GPT-5 Mini": 0.59,
    "Gemini 2.5 Pro": 0.75,
    "gpt-oss-120b": 0.16,
    "Qwen3 32B": 0.39,
    "DeepSeek R1 0528": 0.36,
}
"""Model → Cohen's kappa of the binary test and probability estimation."""


@dataclass(frozen=True)
class PrintedKappa:
    """Table 1 of the paper as printed."""

    model: Annotated[str, Heading("model", "Model by the paper's name.")]
    kappa: Annotated[
        float,
        Heading(
            "kappa", "Cohen's kappa of binary and probability, as the paper prints it.", number
        ),
    ]


def printed_kappas() -> RowTable:
    """Table 1 as printed."""
    rows = [PrintedKappa(model, kappa) for model, kappa in TABLE_1.items()]
    return RowTable(PrintedKappa, rows)
