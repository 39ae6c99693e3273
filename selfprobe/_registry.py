"""What Inspect finds through the entry point: tasks by name, and the models that need no key."""

from inspect_ai.model import ModelAPI, modelapi

from selfprobe.building.dilemma_generation import dilemma_generation
from selfprobe.building.dilemma_judging import dilemma_judging
from selfprobe.evalawareness_tasks.binary import binary
from selfprobe.evalawareness_tasks.first_token import first_token
from selfprobe.evalawareness_tasks.probability import probability
from selfprobe.evalawareness_tasks.reasoning_trace import reasoning_trace
from selfprobe.evalawareness_tasks.user_motivation import user_motivation
from selfprobe.introspect_tasks.ethical_dilemma import ethical_dilemma
from selfprobe.introspect_tasks.heads_up import heads_up
from selfprobe.introspect_tasks.kth_word import kth_word
from selfprobe.introspect_tasks.paraphrase_recognition import paraphrase_recognition
from selfprobe.introspect_tasks.prompt_reconstruction import prompt_reconstruction
from selfprobe.preference_tasks.direct_scoring import direct_scoring
from selfprobe.preference_tasks.g_eval import g_eval
from selfprobe.preference_tasks.pairwise_preference import pairwise_preference
from selfprobe.preference_tasks.preference_probe import preference_probe
from selfprobe.providers.planted import planted

__all__ = [
    "binary",
    "dilemma_generation",
    "dilemma_judging",
    "direct_scoring",
    "embedded",
    "ethical_dilemma",
    "first_token",
    "g_eval",
    "heads_up",
    "kth_word",
    "pairwise_preference",
    "paraphrase_recognition",
    "planted",
    "preference_probe",
    "probability",
    "prompt_reconstruction",
    "reasoning_trace",
    "user_motivation",
]


@modelapi(name="embedded")
def embedded() -> type[ModelAPI]:
    """Models that llama.cpp serves inside this process."""
    from selfprobe.providers.embedded import EmbeddedAPI  # brings the openai package: 0.8 s of every start otherwise

    return EmbeddedAPI
