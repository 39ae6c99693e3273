"""What IntrospectBench ("Me, Myself, and π") prints, under the true names, to compare results with.

Table 2 is one row an **observer**: its mean over the ten other targets. Its k-th values are
multiples of 1/500 (10 targets × 50 items), its heads-up values of 1/490 (49 items); the row "Self
Introspection" alone is models on themselves, 300/550 (11 models × 50). Read as models on
themselves, the ten rows and that mean would leave 131 % in CoT Pred, and -4 % in Paraphrase, for
the eleventh model, GLM-4 32B, which has no row.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated

from selfprobe.page import Heading, RowTable

SELF = "Self Introspection"
"""The paper's name of the row of models on themselves."""


@dataclass(frozen=True)
class PaperTask:
    """A task of the suite in the paper."""

    column: str
    """Column of Table 2, and the name in Figures 9 to 12."""
    figure: int
    """Number of the figure with its matrix."""
    row: str
    """Row of Table 1."""
    key: str | None = None
    """The one decision of ours that the paper's number counts; None: all."""


PAPER_TASKS: Mapping[str, PaperTask] = {
    "kth_word": PaperTask("Kth Word", 9, "K-th Word Prediction", "k1"),
    "ethical_dilemma": PaperTask("CoT Pred", 10, "Ethical Dilemma Calibration"),
    "paraphrase_recognition": PaperTask("Paraphrase", 11, "Prompt Reconstruction"),
    "heads_up": PaperTask("Headsup", 12, "Heads Up Clues"),
}
"""The paper's four tasks. Its "Prompt Reconstruction" (§3.1, Table 1) is the choice among wordings
that E.2 and Table 2 call Paraphrase; E.3's task of that name is in none of its tables. Its k-th
values are of k = 1 (1/500).
"""

MODELS: Mapping[str, str] = {
    "Google Gemini 2.0 Flash 001": "google/gemini-2.0-flash-001",
    "Google Gemini 2.5 Flash": "google/gemini-2.5-flash",
    "Google Gemini 3 Flash Preview": "google/gemini-3-flash-preview",
    "Meta Llama 3.3 70B Instruct": "meta-llama/llama-3.3-70b-instruct",
    "NousResearch Hermes 4 405B": "nousresearch/hermes-4-405b",
    "OpenAI GPT-4.1 Mini": "openai/gpt-4.1-mini",
    "OpenAI GPT-4o": "openai/gpt-4o",
    "OpenAI GPT-4o Mini": "openai/gpt-4o-mini",
    "Qwen Qwen3 235B": "qwen/qwen3-235b-a22b-2507",
    "xAI Grok 4.1 Fast": "x-ai/grok-4.1-fast",
    "Z-AI GLM-4 32B": "z-ai/glm-4-32b",
}
"""Table 3: the paper's name → OpenRouter's."""

_COLUMNS = ("kth_word", "ethical_dilemma", "paraphrase_recognition", "heads_up")

TABLE_2: Mapping[str, Mapping[str, float]] = {
    model: dict(zip(_COLUMNS, values, strict=True))
    for model, values in {
        "xAI Grok 4.1 Fast": (57.0, 58.63, 60.69, 91.43),
        "Meta Llama 3.3 70B Instruct": (60.4, 70.29, 42.19, 93.88),
        "OpenAI GPT-4o": (55.8, 62.99, 47.12, 99.18),
        "Qwen Qwen3 235B": (56.4, 65.07, 42.43, 96.53),
        "OpenAI GPT-4.1 Mini": (58.6, 67.98, 42.2, 91.02),
        SELF: (54.55, 68.69, 39.07, 94.43),
        "Google Gemini 3 Flash Preview": (42.6, 64.03, 46.33, 97.55),
        "Google Gemini 2.5 Flash": (56.0, 57.32, 39.08, 97.35),
        "OpenAI GPT-4o Mini": (50.6, 62.66, 36.44, 96.33),
        "Google Gemini 2.0 Flash 001": (47.8, 61.39, 41.47, 95.31),
        "NousResearch Hermes 4 405B": (38.2, 54.14, 36.26, 94.49),
    }.items()
}
"""Percent, by task, in the paper's order (by their mean, its column Avg)."""


@dataclass(frozen=True)
class PrintedScores:
    """Table 2 of the paper as printed."""

    observer: Annotated[
        str, Heading("observer", "Model by the paper's name; the last one is models on themselves.")
    ]
    kth_word: Annotated[float, Heading("kth_word", "Percent right of the first word.")]
    ethical_dilemma: Annotated[
        float, Heading("ethical_dilemma", "Score of the predicted distribution in percent.")
    ]
    paraphrase_recognition: Annotated[
        float, Heading("paraphrase_recognition", "Percent of right choices.")
    ]
    heads_up: Annotated[float, Heading("heads_up", "Percent of right guesses.")]
    average: Annotated[float, Heading("Avg", "Mean of the four tasks.")]


def printed_scores() -> RowTable:
    """Table 2 as printed."""
    rows = []
    for model, scores in TABLE_2.items():
        average = sum(scores.values()) / len(scores)
        rows.append(PrintedScores(observer=model, average=average, **scores))
    return RowTable(PrintedScores, rows)


@dataclass(frozen=True)
class PrintedAgreement:
    """A row of Table 1."""

    closest: float
    """"Closest Agreement (Avg.)": cosine similarity of the closest two of 11 models' replies."""
    variance: float
    """"Variance (Avg.)"; see TABLE_1."""
    size: int


TABLE_1: Mapping[str, PrintedAgreement] = {
    "kth_word": PrintedAgreement(0.83, 0.16, 200),
    "ethical_dilemma": PrintedAgreement(0.94, 0.03, 196),
    "heads_up": PrintedAgreement(0.77, 0.21, 200),
    "paraphrase_recognition": PrintedAgreement(0.88, 0.3069, 200),
}
"""The published variances cannot be variances of these similarities. Values in [-1, 1] with mean m
have at most 1 - m²: .2256 for .88, where .3069 is printed. Values in [0, 1], as such similarities
nearly always are, have at most m(1 - m): .141 for .83 and .177 for .77, where .16 and .21 are
printed. What was computed is not said.
"""

CHANCE: Mapping[str, float] = {"paraphrase_recognition": 1 / 3}
"""Score of a blind guess in the public code, whose 193 items have three wordings each, as the
prompt of E.2; §3.1 says five. There the question that was paraphrased is none of the candidates,
and a reply has at most 50 tokens.
"""

WILCOXON_P = 0.0210
"""§4.1, printed without the name of a test; 43/2048 = .02099609375 is the one-sided exact
signed-rank p of 11 models with a smaller rank sum of 10.
"""


def paper_name(model: str) -> str | None:
    """The paper's name of a model as Inspect names it, through OpenRouter or from its maker; None
    for others.

    >>> paper_name("openrouter/meta-llama/llama-3.3-70b-instruct"), paper_name("planted/ada")
    ('Meta Llama 3.3 70B Instruct', None)
    """
    name_without_options = model.partition("?")[0].rpartition("/")[2]
    for printed_name, openrouter_name in MODELS.items():
        if openrouter_name.rpartition("/")[2] == name_without_options:
            return printed_name
    return None
