"""How planted models answer each task's prompts: one module a task, registered on import."""

from selfprobe.providers.behaviours import (
    awareness,
    dilemma_judging,
    ethical_dilemma,
    heads_up,
    kth_word,
    paraphrase_recognition,
    preference,
    prompt_reconstruction,
)

__all__ = [
    "awareness",
    "dilemma_judging",
    "ethical_dilemma",
    "heads_up",
    "kth_word",
    "paraphrase_recognition",
    "preference",
    "prompt_reconstruction",
]
