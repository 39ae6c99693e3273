"""Do the intervals of the realism kit hold what they should? Simulated verdicts, curves and labels, no model.

    python bench/realism.py                          # 500 data sets a line, an hour
    python bench/realism.py --part win,turns,cues,rates   # without the order of prompts: a minute or two
    python bench/realism.py --sims 40                # minutes

Pairs: a judge's liking for a position, tastes of prompts and of real conversations, and sources that are alike are
planted; the win rate over further sources, and each prompt's log-odds, are the truths. Turns: curves with a step.
Cues: edits that do nothing, and one that does. Rates: a judge with errors, labels within its rows or elsewhere. Must
reach: .93 to .97 of intervals hold the truth, and a judge without taste gets an order in at most 5 % of data sets.
"""

import argparse
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
from scipy.special import expit

from selfprobe.stats.bradley_terry import QUANTILE, order
from selfprobe.stats.change_point import change_point
from selfprobe.stats.clustered import crossed
from selfprobe.stats.edits import Control, effects
from selfprobe.stats.estimate import Estimate, clustered_mean
from selfprobe.stats.prevalence import Share, labelled_elsewhere, labelled_within

SOURCES = 10
"""On each side, where sources are alike."""
Found = dict[str, float]
"""What is held or claimed → share of data sets."""


@dataclass(frozen=True)
class World:
    """What is planted; standard deviations are in log-odds of a single answer."""

    prompts: int = 40
    opponents: int = 4
    prompt: float = 1.0
    real: float = 0.7
    source: float = 0.0
    """Of the sources, ten on each side."""
    unequal: float = 1.0
    """How many times as large each source is as the next one."""
    mean: float = -0.5
    position: float = 0.8


WORLDS = {
    "as usual": World(),
    "prompts alike": World(prompt=0.0),
    "a random judge": World(prompt=0.0, real=0.0, mean=0.0),
    "far from real": World(prompt=1.5, mean=-1.5),
    "sources alike": World(source=0.7),
    "sources unequal": World(source=0.7, unequal=1.5),
    "eight opponents": World(opponents=8),
    "fifteen prompts": World(prompts=15),
    "strong position": World(position=2.0),
}


def drawn(world: World, rng: np.random.Generator) -> tuple[np.ndarray, ...]:
    """Pairs (prompt, real), the verdict of each (1, .5, 0), the sources of either, and the prompts' own log-odds."""
    n, k = world.prompts, world.opponents
    ours = np.repeat(np.arange(n), k)
    theirs = (np.clip(np.arange(n) - k // 2, 0, n - k)[:, None] + np.arange(k)).ravel()
    sizes = world.unequal ** -np.arange(SOURCES)
    kinds = [rng.choice(SOURCES, size=n, p=sizes / sizes.sum()) for _ in range(2)]
    effects = [rng.normal(0, world.source, SOURCES)[kind] for kind in kinds]
    u = rng.normal(0, world.prompt, n) + effects[0]
    v = rng.normal(0, world.real, n) + effects[1]
    odds = world.mean + u[ours] - v[theirs]
    won = [rng.random(len(odds)) < expit(odds + sign * world.position) for sign in (1, -1)]
    return ours, theirs, np.mean(won, axis=0), kinds[0][ours], kinds[1][theirs], world.mean + u


def expected_rate(world: World, rng: np.random.Generator) -> float:
    """The win rate of all prompts there could be against all real conversations."""
    odds = world.mean + rng.normal(0, np.hypot(np.hypot(world.prompt, world.real), world.source * 2**0.5), 400_000)
    return float(np.mean([expit(odds + sign * world.position).mean() for sign in (1, -1)]))


def win(world: World, sims: int) -> Found:
    """Win rates."""
    rng = np.random.default_rng(1)
    truth, held = expected_rate(world, rng), []
    for _ in range(sims):
        ours, theirs, won, a, b, _ = drawn(world, rng)
        held.append(holds(crossed(won, a if world.source else ours, b if world.source else theirs, unit="u"), truth))
    return {"win rate": float(np.mean(held))}


def orders(world: World, sims: int) -> Found:
    """Scores of prompts, and data sets in which an order is claimed."""
    rng, scores, claimed = np.random.default_rng(1), [], []
    for _ in range(sims):
        ours, theirs, won, _, _, own = drawn(world, rng)
        clear = won != 0.5
        fit = order(ours[clear], theirs[clear], won[clear] == 1, prompts=world.prompts, real=world.prompts)
        # Given that both orders name the same one, the odds are those of two answers.
        scores.append(np.mean(np.abs(fit.scores - 2 * own) < QUANTILE * fit.errors))
        claimed.append(fit.p < 0.05)
    return {"scores": float(np.mean(scores)), "order claimed": float(np.mean(claimed))}


def turns(n: int, step: float, sims: int) -> Found:
    """The mean after a turn, the turn of change and the step of `n` curves of ten turns, noise .15."""
    rng, times, at = np.random.default_rng(5), np.arange(1, 11), 5
    held = np.zeros((sims, 4))
    for row in held:
        y = step * (at <= times) + 0.15 * rng.normal(size=(n, 10)) + 0.1 * rng.normal(size=(n, 1))
        found = change_point(y, times, rng=rng, from_zero=False, unit="transcript", resamples=1000)
        mean = clustered_mean(y[:, 6], np.arange(n), unit="transcript", interval="t")
        row[:] = holds(mean, step), holds(found.at, at), holds(found.step, step), found.shown
    return dict(zip(("mean by turn", "turn", "step", "change claimed"), held.mean(axis=0).tolist(), strict=True))


def cues(effect: float, sims: int) -> Found:
    """Ten things in three prompts, one of which has an effect, beside 40 controls."""
    rng, held, claimed = np.random.default_rng(0), [], []
    for _ in range(sims):
        changes = {f"s{n}": (0.06 * rng.normal(size=3) + effect * (n == 0)).tolist() for n in range(10)}
        found = effects(changes, [Control(x, frozenset()) for x in 0.06 * rng.normal(size=40)])
        held.append(np.mean([holds(each.estimate, effect * (each.name == "s0")) for each in found]))
        claimed.append(any(each.holm < 0.05 for each in found if effect == 0 or each.name == "s0"))
    return {"effect": float(np.mean(held)), "effect claimed": float(np.mean(claimed))}


def rates(p: float, sensitivity: float, specificity: float, n: int, sims: int) -> Found:
    """A rate put right by 150 labels, elsewhere (50 true rows, 100 others) or within (50 flagged, 100 others)."""
    rng, held = np.random.default_rng(0), np.zeros((sims, 2))
    for row in held:
        flagged = int(rng.binomial(n, p * sensitivity + (1 - p) * (1 - specificity)))
        checks = Share(int(rng.binomial(50, sensitivity)), 50), Share(int(rng.binomial(100, specificity)), 100)
        true = rng.random(n) < p
        said = np.where(true, rng.random(n) < sensitivity, rng.random(n) < 1 - specificity)
        ours, others = np.flatnonzero(said)[:50], np.flatnonzero(~said)[:100]
        shares = Share(int(true[ours].sum()), len(ours)), Share(int(true[others].sum()), len(others))
        both = labelled_elsewhere(Share(flagged, n), *checks), labelled_within(Share(int(said.sum()), n), *shares)
        row[:] = [holds(found.corrected, p) for found in both]
    return dict(zip(("labels elsewhere", "labels within"), held.mean(axis=0).tolist(), strict=True))


def holds(found: Estimate, truth: float) -> bool:
    """Whether the interval does."""
    return found.low <= truth <= found.high


def lines(part: str, sims: int) -> Iterator[tuple[str, Callable[[], Found]]]:
    """What is run of a part, by name."""
    if part in ("win", "order"):
        for name, world in WORLDS.items():
            yield name, lambda world=world: (win if part == "win" else orders)(world, sims)
    elif part == "turns":
        for n, step in ((20, 0.15), (40, 0.15), (20, 0.3), (20, 0.0)):
            yield f"{n} curves, step {step}", lambda n=n, step=step: turns(n, step, sims)
    elif part == "cues":
        for effect in (0.0, 0.2):
            yield f"effect {effect}", lambda effect=effect: cues(effect, sims)
    else:
        for case in ((0.03, 0.9, 0.97, 1000), (0.2, 0.7, 0.9, 400), (0.5, 0.8, 0.8, 300)):
            yield f"rate {case[0]}", lambda case=case: rates(*case, sims)


def main() -> None:
    """Print a line for each world."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--sims", type=int, default=500)
    parser.add_argument("--part", default="win,turns,cues,rates,order", help="of these, those to run")
    parser.add_argument("--only", help="names of lines, with commas; by default all")
    given = parser.parse_args()
    for part in given.part.split(","):
        for name, run in lines(part, given.sims):
            if not given.only or name in given.only.split(","):
                told = "".join(f"  {what} {share:.3f}" for what, share in run().items())
                print(f"{part:6}{name:22}{told}", flush=True)


if __name__ == "__main__":
    main()
