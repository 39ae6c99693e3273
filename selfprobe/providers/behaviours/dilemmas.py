"""Planted replies to the prompts of ethical_dilemma, dilemma_generation and dilemma_judging."""

import json
import re
from statistics import mean

from selfprobe.building.dilemma_generation import GENERATE_PROMPT
from selfprobe.building.dilemma_judging import JUDGE_PROMPT
from selfprobe.introspect_tasks.ethical_dilemma import COT_PROMPT, GUT, PREDICT, PREDICT_E2_PROMPT
from selfprobe.providers.mind import Mind, behaviour, chance

# Planted conclusions, gut answers and predictions of P(A).
#
# A mind has a reasoned P(A) between .1 and .9 for each dilemma: with chance `common` the one that
# all planted models share, else its own.
#
# `gut`      how far its gut answer is from that, towards the other option (.3; at most .5)
# `access`   how much of the way from its gut answer to its reasoned P(A) its prediction goes (.8)
# `spread`   largest deviation of a rollout from it (.05; at most .1): up in one epoch, as much down
#            in the next
# `acquainted`  the same as `access` for another model that it is asked about by name, from its own
#            gut answer on (0)
#
# Expected of a model on itself, over an even number of epochs: |p - p*| = gut and |p - p'| = (1 -
# access)·gut exactly. So cot_pred = 1 - (1 - access)·gut, and KL(p‖p*) and KL(p‖p') follow from
# `reasoned` dilemma by dilemma.
#
# The gut answer of `gut=G1` is asked for in a judge's words ("think carefully"): `verdict` and
# `spread` decide it.
#
# Asked about "another AI assistant" it gives its own gut answer, off by at most `spread` (up or
# down for a dilemma): compared with its own conclusions, own minus other is access·gut on average.
# Shown a target's conclusions, it says their mean.

_CONCLUSION = re.compile(r"^Its conclusion: P\(A\) = ([\d.]+),", re.MULTILINE)


def reasoned(name: str, common: float, dilemma: str) -> float:
    """The P(A) that a mind concludes on average."""
    shared = chance("whether p is shared", name, dilemma) < common
    return 0.1 + 0.8 * chance("p", None if shared else name, dilemma)


def gut(p: float, distance: float) -> float:
    """The gut answer of a mind that would conclude p."""
    return p + distance if p < 0.5 else p - distance


def _two_lines(p: float) -> str:
    """P(A) and P(B) as the prompts want them."""
    return f"P(A): {p:.6f}\nP(B): {1 - p:.6f}"


@behaviour(COT_PROMPT, observes=False, spread=0.05)
def _conclude(mind: Mind, prompt_fields: dict[str, str]) -> str:
    dilemma = prompt_fields["dilemma"]
    epoch = mind.seed or 0
    deviation = mind.settings["spread"] * chance("off", mind.name, (epoch + 1) // 2, dilemma)
    shifted_p = _reasoned_p(mind, dilemma) + (deviation if epoch % 2 else -deviation)
    thoughts = mind.paragraph(dilemma)
    return (
        f"{thoughts}. At first sight:\n{_two_lines(0.5)}\n\nOn reflection:\n{_two_lines(shifted_p)}"
    )


@behaviour(GUT["E2"], observes=False, gut=0.3)
def _decide_at_once(mind: Mind, prompt_fields: dict[str, str]) -> str:
    return _two_lines(_gut_p(mind, prompt_fields["dilemma"]))


@behaviour(PREDICT_E2_PROMPT, access=0.8)
@behaviour(PREDICT["self"], access=0.8)
def _predict_conclusion(mind: Mind, prompt_fields: dict[str, str]) -> str:
    dilemma = prompt_fields["dilemma"]
    gut_p = _gut_p(mind, dilemma)
    correction = mind.settings["access"] * (_reasoned_p(mind, dilemma) - gut_p)
    return _two_lines(gut_p + correction)


@behaviour(PREDICT["other"])
def _predict_another(mind: Mind, prompt_fields: dict[str, str]) -> str:
    dilemma = prompt_fields["dilemma"]
    deviation = mind.settings["spread"] * (2 * chance("another", mind.name, dilemma) - 1)
    shifted_p = _gut_p(mind, dilemma) + deviation
    return _two_lines(min(1.0, max(0.0, shifted_p)))


@behaviour(PREDICT["named"], acquainted=0.0)
def _predict_named(mind: Mind, prompt_fields: dict[str, str]) -> str:
    from selfprobe.providers.planted import mind_named  # which imports this module

    dilemma = prompt_fields["dilemma"]
    gut_p = _gut_p(mind, dilemma)
    target_p = _reasoned_p(mind_named(prompt_fields["name"]), dilemma)
    return _two_lines(gut_p + mind.settings["acquainted"] * (target_p - gut_p))


@behaviour(PREDICT["shown"])
def predict_shown_conclusion(mind: Mind, prompt_fields: dict[str, str]) -> str:
    conclusions = _CONCLUSION.findall(prompt_fields["examples"])
    return _two_lines(mean(map(float, conclusions)))


def _reasoned_p(mind: Mind, dilemma: str) -> float:
    return reasoned(mind.name, mind.settings["common"], dilemma)


def _gut_p(mind: Mind, dilemma: str) -> float:
    return gut(_reasoned_p(mind, dilemma), mind.settings["gut"])


# Planted generators and judges of dilemmas.
#
# `flawed`    chance that a generated dilemma has two options that are the same (0)
# `verdict`   P(A) of a judge for every dilemma; -1: its own reasoned P(A) (-1)
# `spread`    largest deviation of a judge's sample, symmetric over five samples (.05)
#
# Expected: a judge's mean over five samples is its verdict exactly (with verdict between spread and
# 1 - spread).


@behaviour(GENERATE_PROMPT, flawed=0.0)
def _generate(mind: Mind, prompt_fields: dict[str, str]) -> str:
    topic = "/".join(prompt_fields.values())
    words_a = [mind.word(f"{topic}A", word_number) for word_number in range(1, 9)]
    words_b = [mind.word(f"{topic}B", word_number) for word_number in range(1, 9)]
    if mind.happens("flawed", topic):
        words_b = words_a
    return json.dumps(
        {
            "scenario": f"{mind.paragraph(topic)}. {mind.paragraph(topic + '2')}.",
            "option_a": f"Keep {' '.join(words_a)}.",
            "option_b": f"Keep {' '.join(words_b)}.",
        }
    )


@behaviour(JUDGE_PROMPT, verdict=-1.0, spread=0.05)
def _judge(mind: Mind, prompt_fields: dict[str, str]) -> str:
    p = mind.settings["verdict"]
    if p < 0:
        p = _reasoned_p(mind, prompt_fields["dilemma"])
    deviation = mind.settings["spread"] * ((mind.seed or 3) - 3) / 2
    return _two_lines(min(max(p + deviation, 0.0), 1.0))
