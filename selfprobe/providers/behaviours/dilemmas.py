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
# `spread`   largest deviation of a rollout from it (.05; at most .1): up in one epoch, as much down in the next
# `acquainted`  the same as `access` for another model that it is asked about by name, from its own gut answer on (0)
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
def _conclude(mind: Mind, asked: dict[str, str]) -> str:
    p, epoch = _reasoned_by(mind, asked), mind.seed or 0
    off = mind.settings["spread"] * chance("off", mind.name, (epoch + 1) // 2, asked["dilemma"])
    p += off if epoch % 2 else -off
    thoughts = mind.paragraph(asked["dilemma"])
    return f"{thoughts}. At first sight:\n{_two_lines(0.5)}\n\nOn reflection:\n{_two_lines(p)}"


@behaviour(GUT["E2"], observes=False, gut=0.3)
def _decide_at_once(mind: Mind, asked: dict[str, str]) -> str:
    return _two_lines(gut(_reasoned_by(mind, asked), mind.settings["gut"]))


@behaviour(PREDICT_E2_PROMPT, access=0.8)
@behaviour(PREDICT["self"], access=0.8)
def _predict_conclusion(mind: Mind, asked: dict[str, str]) -> str:
    p = _reasoned_by(mind, asked)
    first = gut(p, mind.settings["gut"])
    return _two_lines(first + mind.settings["access"] * (p - first))


@behaviour(PREDICT["other"])
def _predict_another(mind: Mind, asked: dict[str, str]) -> str:
    off = mind.settings["spread"] * (2 * chance("another", mind.name, asked["dilemma"]) - 1)
    return _two_lines(
        min(1.0, max(0.0, gut(_reasoned_by(mind, asked), mind.settings["gut"]) + off))
    )


@behaviour(PREDICT["named"], acquainted=0.0)
def _predict_named(mind: Mind, asked: dict[str, str]) -> str:
    from selfprobe.providers.planted import mind_named  # which imports this module

    first = gut(_reasoned_by(mind, asked), mind.settings["gut"])
    return _two_lines(
        first
        + mind.settings["acquainted"] * (_reasoned_by(mind_named(asked["name"]), asked) - first)
    )


@behaviour(PREDICT["shown"])
def predict_shown_conclusion(mind: Mind, asked: dict[str, str]) -> str:
    return _two_lines(mean(map(float, _CONCLUSION.findall(asked["examples"]))))


def _reasoned_by(mind: Mind, asked: dict[str, str]) -> float:
    return reasoned(mind.name, mind.settings["common"], asked["dilemma"])


# Planted generators and judges of dilemmas.
#
# `flawed`    chance that a generated dilemma has two options that are the same (0)
# `verdict`   P(A) of a judge for every dilemma; -1: its own reasoned P(A) (-1)
# `spread`    largest deviation of a judge's sample, symmetric over five samples (.05)
#
# Expected: a judge's mean over five samples is its verdict exactly (with verdict between spread and
# 1 - spread).


@behaviour(GENERATE_PROMPT, flawed=0.0)
def _generate(mind: Mind, asked: dict[str, str]) -> str:
    about = "/".join(asked.values())
    a, b = (" ".join(mind.word(f"{about}{option}", k) for k in range(1, 9)) for option in "AB")
    return json.dumps(
        {
            "scenario": f"{mind.paragraph(about)}. {mind.paragraph(about + '2')}.",
            "option_a": f"Keep {a}.",
            "option_b": f"Keep {a if mind.happens('flawed', about) else b}.",
        }
    )


@behaviour(JUDGE_PROMPT, verdict=-1.0, spread=0.05)
def _judge(mind: Mind, asked: dict[str, str]) -> str:
    verdict = mind.settings["verdict"]
    p = reasoned(mind.name, mind.settings["common"], asked["dilemma"]) if verdict < 0 else verdict
    off = mind.settings["spread"] * ((mind.seed or 3) - 3) / 2
    return _two_lines(min(max(p + off, 0.0), 1.0))
