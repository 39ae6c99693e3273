"""Planted generators and judges of dilemmas.

`flawed`    chance that a generated dilemma has two options that are the same (0)
`verdict`   P(A) of a judge for every dilemma; -1: its own reasoned P(A) (-1)
`spread`    largest deviation of a judge's sample, symmetric over five samples (.05)

Expected: a judge's mean over five samples is its verdict exactly (with verdict between spread and 1 - spread).
"""

import json

from selfprobe.building.dilemma_generation import GENERATE_PROMPT
from selfprobe.building.dilemma_judging import JUDGE_PROMPT
from selfprobe.providers.behaviours.ethical_dilemma import reasoned, stated_lines
from selfprobe.providers.mind import Mind, behaviour


@behaviour(GENERATE_PROMPT, flawed=0.0)
def generate(mind: Mind, asked: dict[str, str]) -> str:
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
def decide(mind: Mind, asked: dict[str, str]) -> str:
    verdict = mind.settings["verdict"]
    p = reasoned(mind.name, mind.settings["common"], asked["dilemma"]) if verdict < 0 else verdict
    off = mind.settings["spread"] * ((mind.seed or 3) - 3) / 2
    return stated_lines(min(max(p + off, 0.0), 1.0))
