"""Worlds of `awareness cues`: changes of P(evaluation) where text is taken out of prompts."""

from collections.abc import Callable, Sequence

import numpy as np
import numpy.typing as npt
from lines import Line, Lines, Noise, heavy_tailed, normal, skewed

from selfprobe.stats.claim import Claim
from selfprobe.studies.cues import FormRow, cue_claim, cue_numbers

FloatArray = npt.NDArray[np.float64]
EDIT = 0.05
"""Standard deviation of a change by a mere edit."""


def rounded(rng: np.random.Generator, shape: tuple[int, ...]) -> FloatArray:
    """Steps as large as a mere edit's changes, of which three quarters are exactly 0."""
    values = np.round(2 * rng.normal(size=shape))
    return np.where(rng.random(shape) < 0.75, 0.0, values)


def unlike_prompts(rng: np.random.Generator, shape: tuple[int, ...]) -> FloatArray:
    """Prompts that differ 1 : 6 in sensitivity."""
    return rng.normal(size=shape) * np.linspace(0.3, 1.8, shape[0])[:, None]


def shared_shift(rng: np.random.Generator, shape: tuple[int, ...]) -> FloatArray:
    """Noise of the answer to the whole prompt moves every change of it."""
    return rng.normal(size=shape) + rng.normal(size=(shape[0], 1))


def constant(rng: np.random.Generator, shape: tuple[int, ...]) -> FloatArray:
    return np.zeros(shape)


def ceiling(rng: np.random.Generator, shape: tuple[int, ...]) -> FloatArray:
    """P(evaluation) of .98 which an edit can hardly raise."""
    return np.maximum(rng.normal(size=shape), -0.4)


def by_length(rng: np.random.Generator, shape: tuple[int, ...]) -> FloatArray:
    """Things of lengths 1 : 6 with controls of the same lengths, where longer edits move the number
    more.
    """
    scales = 0.3 + 1.5 * (np.arange(shape[1]) % THINGS) / (THINGS - 1)
    return rng.normal(size=shape) * scales


def text_effects(rng: np.random.Generator, shape: tuple[int, ...]) -> FloatArray:
    """A text moves all prompts alike (half of the variance), things and controls."""
    return np.sqrt(0.5) * (rng.normal(size=(1, shape[1])) + rng.normal(size=shape))


THINGS = 4


def world(
    prompts: int,
    controls: int,
    *,
    noise: Noise = normal,
    things: int = THINGS,
    sources: Sequence[int] | None = None,
    own_things: bool = False,
    common_controls: bool = False,
    correlation: float = 0.0,
    effect: float = 0.0,
    share: float = 1.0,
) -> Callable[[np.random.Generator], Claim]:
    """A world of prompts.

    Args:
        prompts: Number of prompts.
        controls: Controls of each prompt.
        noise: Draws changes by mere edits over `EDIT`, [prompt, edit]; things come first.
        things: Things of each prompt.
        sources: Number of prompts of each source. Default: each prompt has one of its own.
        own_things: Whether each prompt has other things.
        common_controls: Whether the same texts are controls of all prompts.
        correlation: Share of the variance that the prompts of a source have in common, at each
            text.
        effect: What one thing adds to P(evaluation).
        share: Share of the prompts in which it does.
    """
    labels = np.arange(prompts) if sources is None else np.repeat(np.arange(len(sources)), sources)

    def claim(rng: np.random.Generator) -> Claim:
        shape = (len(labels), things + controls)
        changes = noise(rng, shape)
        if correlation:
            shared = noise(rng, (int(labels.max()) + 1, shape[1]))[labels]
            changes = np.sqrt(1 - correlation) * changes + np.sqrt(correlation) * shared
        changes = EDIT * changes
        changes[: round(share * len(labels)), 0] += effect
        forms = [form for index in range(len(labels)) for form in forms_of(index, changes[index])]
        return cue_claim(cue_numbers(forms, "m"), "m")

    def forms_of(index: int, changes: FloatArray) -> list[FormRow]:
        source = f"s{labels[index]}" if labels.max() else ""
        item = f"p{index}"
        forms = [form_row(item, source, "original", "original", "", "", 0.0)]
        for edit, change in enumerate(changes):
            is_thing = edit < things
            suffix = f" {index}" if (own_things if is_thing else not common_controls) else ""
            arm = f"u{edit + 1}" if is_thing else f"c{edit - things + 1}"
            like = "" if is_thing else f"u{(edit - things) % things + 1}"
            kind = "sentence" if is_thing else "control"
            forms.append(
                form_row(item, source, arm, kind, f"text {edit}{suffix}", like, float(change))
            )
        return forms

    return claim


def form_row(
    item: str, source: str, arm: str, kind: str, text: str, like: str, change: float
) -> FormRow:
    return FormRow(
        "m", item, None, source, arm, kind, text, (), None, like, 0.6 - change, 0.6, change, ""
    )


LINES: Lines = {
    "nothing, 12 prompts × 16 controls, own things": Line(world(12, 16, own_things=True)),
    "nothing, 12 × 16, things in all": Line(world(12, 16)),
    "nothing, 3 × 16, things in all": Line(world(3, 16)),
    "nothing, 3 × 40, own things, t with 3 degrees": Line(
        world(3, 40, own_things=True, noise=heavy_tailed)
    ),
    "nothing, 12 × 16, t with 3 degrees": Line(world(12, 16, noise=heavy_tailed)),
    "nothing, 12 × 16, own things, exponential": Line(world(12, 16, own_things=True, noise=skewed)),
    "nothing, 3 × 16, exponential": Line(world(3, 16, noise=skewed)),
    "nothing, one prompt, one thing × 20, exponential": Line(world(1, 20, things=1, noise=skewed)),
    "nothing, one prompt, 4 things × 80, exponential": Line(world(1, 80, noise=skewed)),
    "nothing, 12 × 16, own things, three quarters exactly 0": Line(
        world(12, 16, own_things=True, noise=rounded)
    ),
    "nothing, 12 × 16, three quarters exactly 0": Line(world(12, 16, noise=rounded)),
    "nothing, 3 × 40, own things, three quarters exactly 0": Line(
        world(3, 40, own_things=True, noise=rounded)
    ),
    "nothing, 12 × 16, prompts differ 1 : 6, own things": Line(
        world(12, 16, own_things=True, noise=unlike_prompts)
    ),
    "nothing, 12 × 16, prompts differ 1 : 6": Line(world(12, 16, noise=unlike_prompts)),
    "nothing, 12 × 16, all edits of a prompt share a shift": Line(
        world(12, 16, noise=shared_shift)
    ),
    "nothing, 12 × 16, at the ceiling": Line(world(12, 16, own_things=True, noise=ceiling)),
    "nothing, 12 × 16, an answer that never changes": Line(world(12, 16, noise=constant)),
    "nothing, 12 × 16, things of lengths 1 : 6": Line(
        world(12, 16, own_things=True, noise=by_length)
    ),
    "nothing, one prompt, 4 × 80, things of lengths 1 : 6": Line(world(1, 80, noise=by_length)),
    "nothing, 3 sources × 4, shared shocks": Line(world(12, 16, sources=[4] * 3, correlation=0.5)),
    "nothing, 3 sources × 4, shared shocks, own things": Line(
        world(12, 16, sources=[4] * 3, correlation=0.5, own_things=True)
    ),
    "nothing, 3 sources × 4 of prompts that differ 1 : 6, own things": Line(
        world(12, 16, sources=[4] * 3, noise=unlike_prompts, own_things=True)
    ),
    "nothing, 3 sources × 4, all edits of a prompt share a shift, own things": Line(
        world(12, 16, sources=[4] * 3, noise=shared_shift, own_things=True)
    ),
    "nothing, 8 sources of 1 to 20 prompts, own things": Line(
        world(52, 16, sources=[20, 12, 8, 5, 3, 2, 1, 1], noise=skewed, own_things=True)
    ),
    "nothing, 8 sources of 1 to 20 prompts": Line(
        world(52, 16, sources=[20, 12, 8, 5, 3, 2, 1, 1], correlation=0.3)
    ),
    "nothing, one template × 10, a text moves all alike, common controls": Line(
        world(10, 80, sources=[10], noise=text_effects, common_controls=True)
    ),
    "nothing, one template × 10, one thing, common controls": Line(
        world(10, 20, things=1, sources=[10], noise=text_effects, common_controls=True)
    ),
    "nothing, one template × 10, a text moves all alike, other controls": Line(
        world(10, 80, sources=[10], noise=text_effects)
    ),
    "one thing of .25 in 12 prompts × 16": Line(world(12, 16, effect=0.25), True, 0.95),
    "one thing of .25 in 3 prompts × 16": Line(world(3, 16, effect=0.25), True, 0.9),
    "another thing of .25 in each of 12 × 16": Line(
        world(12, 16, own_things=True, effect=0.25), True, 0.95
    ),
    "another thing of .25 in a third of 12 × 16": Line(
        world(12, 16, own_things=True, effect=0.25, share=0.34), True, 0.3
    ),
    "another thing of .25 in each of 3 sources × 4, 16 controls": Line(
        world(12, 16, sources=[4] * 3, own_things=True, effect=0.25), True, 0.9
    ),
    "one thing of .25, rounded, 12 × 16": Line(
        world(12, 16, noise=rounded, effect=0.25), True, 0.9
    ),
    "one thing of .25 in one prompt, 1 × 20": Line(world(1, 20, things=1, effect=0.25), True, 0.9),
    "one thing of .25 in one template × 10, 1 × 20": Line(
        world(
            10, 20, things=1, sources=[10], noise=text_effects, common_controls=True, effect=0.25
        ),
        True,
        0.9,
    ),
    "one thing of .1 in 12 prompts × 16": Line(world(12, 16, effect=0.1), True, 0.3),
}
