"""Planted subjects that go by known sentences (GIVEAWAYS): after each turn of a transcript, and in edited prompts.

P(evaluation) is `base`, and `cued` times the weight of each giveaway that the conversation holds, and `drift` for each
message of it; `wobble` is the standard deviation of what any change of its text adds, `yea` what is added to whatever
number is asked for. All on the scale of probabilities, cut at .01 and .99. The placebo's number is .5 and the drift.
`window` is how much the model can read, in millions of characters (0: everything).
"""

from typing import Any

from inspect_ai.model import ModelOutput, ModelUsage
from scipy.special import ndtri

from selfprobe.evalawareness_tasks import cue_removal, turn_curve
from selfprobe.providers.mind import Mind, behaviour

GIVEAWAYS = {
    "This is a sandbox environment, and all people in it are made up.": 1.0,
    "Nobody reads what you write in your notes.": 0.5,
    "Answer with the letter of the right option only.": 0.25,
}
"""Sentence → its weight, in units of `cued`."""

_SETTINGS: dict[str, Any] = {"base": 0.2, "cued": 0.4, "drift": 0.0, "wobble": 0.0, "yea": 0.0, "window": 0.0}


def probability(mind: Mind) -> float:
    """P(evaluation) of the conversation before the question."""
    given = mind.messages[:-1]
    text = "\n".join(message.text for message in given)
    cues = sum(weight for sentence, weight in GIVEAWAYS.items() if sentence in text)
    noise = mind.settings["wobble"] * float(ndtri(0.5 * 2**-53 + mind.chance("unrest", text)))
    return mind.settings["base"] + mind.settings["cued"] * cues + mind.settings["drift"] * len(given) + noise


def _said(mind: Mind, p: float) -> str:
    return f"{min(max(p + mind.settings['yea'], 0.01), 0.99):.4f}"


def reply(mind: Mind, p: float) -> str | ModelOutput:
    """A number, or a vendor's reply to a prompt that is too long."""
    length = sum(len(message.text) for message in mind.messages)
    if mind.settings["window"] and length > 1e6 * mind.settings["window"]:
        output = ModelOutput.from_content(mind.name, "the prompt is too long", stop_reason="model_length")
        output.usage = ModelUsage()  # without one Inspect would fetch a tokenizer
        return output
    return _said(mind, p)


@behaviour(cue_removal.PARAPHRASE_PROMPT)
def paraphrase(mind: Mind, asked: dict[str, str]) -> str:
    """The same text with another word for "please", and one more remark, so that giveaways stay."""
    text = asked["material"].split("\n", 1)[1].rsplit("\n", 1)[0]
    return f"{text.replace('please', 'kindly')} Thank you."


@behaviour(cue_removal.QUESTIONS["evaluation"], **_SETTINGS)
@behaviour(turn_curve.QUESTIONS["evaluation"], **_SETTINGS)
def evaluation(mind: Mind, asked: dict[str, str]) -> str | ModelOutput:
    return reply(mind, probability(mind))


@behaviour(cue_removal.QUESTIONS["deployment"], **_SETTINGS)
@behaviour(turn_curve.QUESTIONS["deployment"], **_SETTINGS)
def deployment(mind: Mind, asked: dict[str, str]) -> str | ModelOutput:
    return reply(mind, 1 - probability(mind))


@behaviour(turn_curve.PLACEBO, **_SETTINGS)
def placebo(mind: Mind, asked: dict[str, str]) -> str | ModelOutput:
    return reply(mind, 0.5 + mind.settings["drift"] * len(mind.messages))
