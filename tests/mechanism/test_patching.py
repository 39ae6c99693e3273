"""What is put in: a run's own pattern changes nothing; patterns over other tokens are matched by
what both runs share.
"""

from pathlib import Path

import pytest

from selfprobe.mechanism.reading import (
    Patching,
    Variant,
    aligned,
    patched_differences,
    patching_plan_of,
    profile,
    read_item,
    registered,
    spread,
)

from .test_patterns import judge_of
from .tiny import read_items, torch


def weights(*rows: list[float]) -> "torch.Tensor":
    return torch.tensor([rows])


def test_shared_tokens_keep_the_donors_weights_and_its_instruction_goes_to_the_recipients() -> None:
    donor = weights([0.1, 0.2, 0.1, 0.1, 0.2, 0.3])  # two shared, three between, one shared
    own = weights([0.25, 0.25, 0.3, 0.1, 0.1])  # two shared, two between, one shared
    assert aligned(donor, own, 2, 1)[0, 0].tolist() == pytest.approx([0.1, 0.2, 0.3, 0.1, 0.3])


def test_a_runs_own_pattern_aligned_to_itself_is_itself() -> None:
    own = torch.rand(3, 2, 9).softmax(dim=-1)
    assert torch.allclose(aligned(own, own, 4, 3), own)


def test_a_recipient_without_tokens_between_gets_the_rest_rescaled() -> None:
    donor = weights([0.2, 0.5, 0.3])
    assert aligned(donor, weights([0.5, 0.5]), 1, 1)[0, 0].tolist() == pytest.approx([0.4, 0.6])


def test_a_recipient_that_looks_nowhere_between_gets_it_evenly() -> None:
    assert aligned(weights([0.2, 0.5, 0.3]), weights([0.5, 0.0, 0.0, 0.5]), 1, 1)[
        0, 0
    ].tolist() == pytest.approx([0.2, 0.25, 0.25, 0.3])


def test_a_profile_spread_again_has_the_same_profile() -> None:
    donor, own = torch.rand(2, 1, 12).softmax(dim=-1), torch.rand(2, 1, 9).softmax(dim=-1)
    places = profile(donor, 5, 3)
    assert places.shape == (2, 1, 6) and torch.allclose(places.sum(dim=-1), torch.ones(2, 1))
    back = spread(places, own, 4, 3)
    assert back.shape == own.shape and torch.allclose(profile(back, 4, 3), places)
    assert back[0, 0, 1] == back[0, 0, 3]


@pytest.mark.parametrize("family", ["llama", "gemma2"])
@pytest.mark.parametrize("whole_tail", [False, True])
def test_own_patterns_change_nothing_and_others_do(
    family: str, whole_tail: bool, tmp_path: Path
) -> None:
    judge = judge_of(family)
    _, found = read_items(judge, tmp_path, 2)
    made = patching_plan_of(
        found, (1,), into="direct", layer_count=3, head_count=4, whole_tail=whole_tail
    )
    every = dict.fromkeys(range(3), ())
    own = Variant("own", "own", "direct", every)
    twin = Variant("own, aligned", "own", "introspective", every)
    variants = [made.variants[0], own, twin]
    with torch.inference_mode(), registered(judge.model):
        values, _ = patched_differences(judge, found[0], made, variants)
        same = Patching("direct", "direct", (1,), made.queries, made.tail, ())
        again, _ = patched_differences(judge, found[0], same, variants[:2])
        spoken = read_item(judge, found[0]).spoken[0]
    assert values[0] == pytest.approx(spoken, abs=1e-4)
    assert values[1] == pytest.approx(values[0], abs=1e-5)
    assert again[1] == pytest.approx(values[0], abs=1e-5)
    assert abs(values[2] - values[0]) > 1e-3


def test_random_blocks_and_heads_are_others_than_those_given(tmp_path: Path) -> None:
    judge = judge_of("llama")
    _, found = read_items(judge, tmp_path, 2)
    made = patching_plan_of(found, (3, 5), into="direct", layer_count=8, head_count=4)
    for variant in made.variants:
        if variant.group.startswith("control: random"):
            assert not set(variant.heads) & {3, 5}
    groups = [variant.group for variant in made.variants]
    assert (
        groups.count("introspective pattern, one head") == 8
        and groups.count("introspective pattern, one block") == 2
    )
    assert (
        groups.count("control: random heads") == 10
        and 1 <= groups.count("control: random blocks") <= 5
    )
