"""Worlds of `awareness inside --by-turn`: scores of probes after the turns of transcripts, and what
is said in them.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt
from lines import Line, Lines, Noise, heavy_tailed, normal, rounded, skewed

from selfprobe.stats.claim import Claim, Outcome
from selfprobe.stats.estimate import Estimate
from selfprobe.studies.inside_numbers import Grid, auroc_across_wrappers, scores_across_wrappers
from selfprobe.studies.inside_turn_claims import (
    Band,
    BandedScores,
    TurnProbes,
    TurnRows,
    held_only_claim,
    turn_numbers,
)
from selfprobe.studies.inside_turns import banded_scores, shuffled_scores

FloatArray = npt.NDArray[np.float64]
SHUFFLES = 40
BAND = Band(0.8, 1.6)
"""Held is what lies 1.6 sd above the mean of turns in which nothing is held (5 %), as an evaluation
does that lies 3.2 sd above it.
"""
HELD_AT = 3.2
TELLS = Estimate(0.9, 0.8, 0.97, 12, "wrapper")


@dataclass(frozen=True)
class World:
    """Transcripts of evaluations and of real use, and what is held and said in their turns."""

    sources: tuple[int, ...] = (1,) * 24
    """Transcripts of evaluations of each source; of real use as many, of other sources."""
    turns: tuple[int, int] = (4, 12)
    """Fewest and most turns of evaluations."""
    real_use_turns: tuple[int, int] = (4, 12)
    holds: float = 0.0
    """Share of turns of evaluations in which an evaluation is held."""
    real_use_holds: float = 0.0
    placebo_holds: float = 0.0
    says: float = 0.0
    """Share of turns in which it is said."""
    says_what_it_holds: bool = False
    shifted: float = 0.0
    """How far every score of a probe of evaluations lies above those of its training."""
    shared: float = 0.0
    """Standard deviation of what turns of one transcript share."""
    source_shared: float = 0.0
    """Standard deviation of what transcripts of one source share."""
    by_turn: float = 0.0
    """How far a score goes with the number of the turn."""
    shuffled_spread: float = 0.3
    """Standard deviation of the mean of a shuffled probe's scores over transcripts."""
    is_shuffle: bool = False
    """Whether the probe of evaluations is itself one of shuffled labels."""
    reads_text: float = 0.0
    """Share of turns of evaluations whose text alone reads like one."""
    reads_real_use_text: float = 0.0
    """The same of turns of real use."""
    noise: Noise = normal


def claim_in(world: World, rng: np.random.Generator) -> Claim:
    """The study's own claim of a world."""
    source_count = len(world.sources)
    sizes = np.array(world.sources)
    transcript_source = np.concatenate(
        [np.repeat(np.arange(source_count), sizes), np.repeat(np.arange(source_count), sizes)]
    )
    count = len(transcript_source)
    is_real_use = np.arange(count) >= count // 2
    lengths = np.where(
        is_real_use,
        rng.integers(world.real_use_turns[0], world.real_use_turns[1] + 1, count),
        rng.integers(world.turns[0], world.turns[1] + 1, count),
    )
    transcript = np.repeat(np.arange(count), lengths)
    turn = np.concatenate([np.arange(1, length + 1) for length in lengths])
    row_count = len(transcript)
    real_use_row = is_real_use[transcript]
    source_names = np.char.add(
        np.where(is_real_use, "use ", "test "), transcript_source.astype(str)
    )

    def scores(share: npt.NDArray[np.float64] | float) -> FloatArray:
        is_held = rng.random(row_count) < share
        own = world.noise(rng, (row_count,))
        of_transcript = world.shared * world.noise(rng, (count,))[transcript]
        by_source = world.source_shared * world.noise(rng, (2, source_count))
        of_source = by_source[is_real_use.astype(int), transcript_source][transcript]
        return np.asarray(HELD_AT * is_held + own + of_transcript + of_source)

    def said(share: float) -> npt.NDArray[np.bool_]:
        return rng.random(row_count) < share

    shares = np.where(real_use_row, world.real_use_holds, world.holds)
    evaluation = scores(shares) + world.shifted + world.by_turn * turn
    is_said = said(world.says)
    if world.says_what_it_holds:
        is_said = evaluation >= BAND.unheld_below
    text_share = np.where(real_use_row, world.reads_real_use_text, world.reads_text)
    shuffled_means = world.shuffled_spread * rng.normal(size=SHUFFLES + 1)
    if world.is_shuffle:
        evaluation = scores(0.0) + shuffled_means[-1]
    shuffled = [BandedScores(scores(0.0) + shuffled_means[draw], BAND) for draw in range(SHUFFLES)]
    rows = TurnRows(
        transcript=transcript.astype(str),
        source=source_names[transcript],
        is_real_use=real_use_row,
        turn=turn,
        is_said=is_said,
        is_placebo_said=said(world.says),
    )
    probes = TurnProbes(
        evaluation=BandedScores(evaluation, BAND),
        placebo=BandedScores(scores(world.placebo_holds), BAND),
        embeddings=BandedScores(scores(text_share), BAND),
        shuffled=shuffled,
        evaluation_auroc=TELLS,
        placebo_auroc=TELLS,
        grader_count=2,
    )
    return held_only_claim(turn_numbers(rows, probes), "m")


def whole_choice(
    rng: np.random.Generator,
    *,
    shared: float = 0.0,
    held: float = 0.0,
    is_real_use_held: bool = False,
) -> Claim:
    """Real probes of states: kind, penalty and thresholds are chosen, and again for each shuffle.

    Args:
        rng: Draws the world.
        shared: How far the announcements of all wrappers lie apart, in standard deviations.
        held: Share of turns of evaluations that lie where announced evaluations do.
    """
    wrapper = np.repeat(np.arange(12), 8)
    labels = np.tile([True, False], 48)
    text = np.tile(np.repeat(np.arange(4), 2), 12)
    sign = np.where(labels, 1.0, -1.0)
    direction = rng.normal(size=6)
    direction *= shared / np.linalg.norm(direction)
    own_directions = rng.normal(size=(12, 6))[wrapper]
    states = rng.normal(size=(1, 96, 6)) + (own_directions + direction) * sign[:, None]
    looks = np.where(text % 2, "benchmark", "natural")
    columns = (wrapper.astype(str), text.astype(str), text.astype(str), looks)
    grid = Grid(states, labels, *columns, (4,))

    turn = np.tile(np.arange(1, 7), 40)
    transcript = np.repeat(np.arange(40), 6)
    is_real_use = transcript >= 20
    is_held = (rng.random(240) < held) & ~is_real_use
    turn_states = rng.normal(size=(1, 240, 6)) + rng.normal(size=(40, 6))[transcript]
    turn_states += direction * np.where(is_held, 1.0, -1.0)[:, None]
    rows = TurnRows(
        transcript=transcript.astype(str),
        source=transcript.astype(str),
        is_real_use=is_real_use,
        turn=turn,
        is_said=np.zeros(240, dtype=bool),
        is_placebo_said=np.zeros(240, dtype=bool),
    )
    placebo_states = rng.normal(size=(1, 96, 6)) + 3.0 * sign[:, None]
    probes = TurnProbes(
        evaluation=banded_scores(grid, turn_states),
        placebo=banded_scores(replace(grid, states=placebo_states), turn_states),
        embeddings=BandedScores(rng.normal(size=240), BAND),
        shuffled=[],
        evaluation_auroc=auroc_across_wrappers(grid, scores_across_wrappers(grid)),
        placebo_auroc=TELLS,
        grader_count=2,
    )
    claim = held_only_claim(turn_numbers(rows, probes), "m")
    unmet = {check.name for check in claim.checks if check.outcome is not Outcome.HOLDS}
    if unmet != {"above_shuffled_labels"}:
        return claim  # whatever the shuffles say
    probes = replace(probes, shuffled=shuffled_scores(grid, turn_states, 24))
    return held_only_claim(turn_numbers(rows, probes), "m")


def drawn(world: World) -> Callable[[np.random.Generator], Claim]:
    return lambda rng: claim_in(world, rng)


THREE_SOURCES = World(sources=(4,) * 3, shared=0.5, source_shared=1.0, shifted=0.8)
UNEQUAL = World(sources=(20, 12, 8, 5, 3, 2, 1, 1), shared=0.5, source_shared=0.8, shifted=0.8)
HALF_HELD = World(holds=0.5, real_use_holds=0.5, shared=0.5)
LINES: Lines = {
    "nothing held, nothing said": Line(drawn(World())),
    "nothing held, 3 sources × 4 with shared shocks": Line(drawn(THREE_SOURCES)),
    "nothing held, 8 unequal sources (1 to 20)": Line(drawn(UNEQUAL)),
    "every score is shifted: t with 3 degrees": Line(drawn(World(shifted=1.0, noise=heavy_tailed))),
    "every score is shifted: exponential": Line(drawn(World(shifted=1.0, noise=skewed))),
    "every score is shifted: three quarters exactly 0": Line(
        drawn(World(shifted=1.0, noise=rounded))
    ),
    "said in half of the turns, nothing held": Line(drawn(World(says=0.5))),
    "all that is held is said": Line(drawn(World(holds=0.5, says_what_it_holds=True))),
    "held as often as the placebo": Line(drawn(World(holds=0.5, placebo_holds=0.5, shared=0.5))),
    "held as often as the placebo, 12 transcripts": Line(
        drawn(World(sources=(1,) * 12, holds=0.5, placebo_holds=0.5, shared=0.5))
    ),
    "held as often in real use": Line(drawn(HALF_HELD)),
    "the same, 3 sources × 4 with shared shocks": Line(
        drawn(replace(HALF_HELD, sources=(4,) * 3, source_shared=1.0))
    ),
    "the text of the turns reads as much": Line(drawn(World(holds=0.5, reads_text=0.5))),
    "the same, and in .2 of the turns of real use both hold it": Line(
        drawn(World(holds=0.5, reads_text=0.5, real_use_holds=0.2, reads_real_use_text=0.2))
    ),
    "a probe of shuffled labels": Line(drawn(World(is_shuffle=True, shuffled_spread=2.0))),
    "a probe that reads the number of the turn": Line(drawn(World(by_turn=0.25))),
    "the same, evaluations 8 to 16 turns long, real use 2 to 8": Line(
        drawn(World(by_turn=0.25, turns=(8, 16), real_use_turns=(2, 8)))
    ),
    "evaluations 12 to 20 turns long, real use 1 to 4, held in both": Line(
        drawn(replace(HALF_HELD, turns=(12, 20), real_use_turns=(1, 4)))
    ),
    "states without an evaluation, the whole choice of real probes": Line(whole_choice),
    "held unsaid in .5 of the turns, 24 transcripts": Line(
        drawn(World(holds=0.5, shared=0.5)), True, 0.7
    ),
    "the same, and the text reads all as evaluations": Line(
        drawn(World(holds=0.5, shared=0.5, reads_text=1.0, reads_real_use_text=1.0)), True, 0.7
    ),
    "held unsaid in .2 of the turns, 24 transcripts": Line(
        drawn(World(holds=0.2, shared=0.3)), True
    ),
    "held unsaid in .1 of the turns, 48 transcripts": Line(
        drawn(World(sources=(1,) * 48, holds=0.1, shared=0.3)), True
    ),
}
