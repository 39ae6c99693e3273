"""What Inspect finds through the entry point: tasks by name, and the models that need no key."""

from selfprobe.evalawareness_tasks.binary import binary
from selfprobe.evalawareness_tasks.first_token import first_token
from selfprobe.evalawareness_tasks.probability import probability
from selfprobe.evalawareness_tasks.reasoning_trace import reasoning_trace
from selfprobe.evalawareness_tasks.user_motivation import user_motivation
from selfprobe.introspect_tasks.dilemma_generation import dilemma_generation
from selfprobe.introspect_tasks.dilemma_judging import dilemma_judging
from selfprobe.introspect_tasks.ethical_dilemma import ethical_dilemma
from selfprobe.introspect_tasks.heads_up import heads_up
from selfprobe.introspect_tasks.kth_word import kth_word
from selfprobe.introspect_tasks.paraphrase_recognition import paraphrase_recognition
from selfprobe.introspect_tasks.prompt_reconstruction import prompt_reconstruction
from selfprobe.providers.embedded import embedded
from selfprobe.providers.planted import planted

__all__ = [
    "binary",
    "dilemma_generation",
    "dilemma_judging",
    "embedded",
    "ethical_dilemma",
    "first_token",
    "heads_up",
    "kth_word",
    "paraphrase_recognition",
    "planted",
    "probability",
    "prompt_reconstruction",
    "reasoning_trace",
    "user_motivation",
]
