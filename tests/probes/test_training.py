"""The training loop: what it learns, what it leaves, and that a killed one ends as one that was
never stopped.
"""

import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch

pytest.importorskip("peft", reason="the mechanisms extra is not installed")

from selfprobe.probes import training as loop
from selfprobe.probes.model import LocalModel, load_model
from selfprobe.probes.plan import adapter_parameters, check_room, estimate_needs
from selfprobe.probes.training import (
    Example,
    Recipe,
    answer_loss,
    finetuned_model,
    forward_flops,
    train_flops,
)

from .conftest import tiny_family, tiny_judge

QUICK = Recipe(rank=4, alpha=8, rate=2e-2, epochs=3, batch=4)
FULL = Recipe(rank=None, alpha=None, rate=5e-3, epochs=3, batch=4)
SHOWN = [
    Example((0, 5 + i, *range(30, 31 + i % 3)), (20 + i, 60 + i)[: 1 + i % 2]) for i in range(8)
]


def silent(_: str) -> None:
    pass


def trained(
    judge: LocalModel, folder: Path, recipe: Recipe = QUICK, **given: Any
) -> tuple[list[float], list[float]]:
    """Losses of the steps, and of the examples afterwards."""
    with (
        finetuned_model(judge, SHOWN, recipe, folder, progress=silent, **given) as (
            tuned,
            training,
        ),
        torch.no_grad(),
    ):
        return list(training.losses), answer_loss(tuned, SHOWN).tolist()


@pytest.fixture(scope="module")
def done(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, tuple[list[float], list[float]]]:
    folder = tmp_path_factory.mktemp("lora") / "a"
    return folder, trained(tiny_judge(), folder)


def test_it_learns_the_answers_and_leaves_the_model_as_it_was(done: Any, tmp_path: Path) -> None:
    judge = tiny_judge()
    before = {name: value.clone() for name, value in judge.model.state_dict().items()}
    losses, after = trained(judge, tmp_path)
    assert len(losses) == 6 and max(after) < losses[0]
    assert set(judge.model.state_dict()) == set(before)
    assert all(torch.equal(value, before[name]) for name, value in judge.model.state_dict().items())
    assert not any(p.requires_grad for p in judge.model.parameters())
    assert (losses, after) == done[1], "the seed determines a training"
    assert trained(judge, tmp_path / "other", Recipe(4, 8, 2e-2, 1, 4, seed=1))[0] != losses[:2]


def stopped_at_the_fourth_step(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Interrupt a training once, in its fourth step, with all before it saved; an entry for each
    step that is made.
    """
    step, made = loop._backward_step, list[int]()

    def killed(*given: Any) -> float:
        made.append(len(made))
        if len(made) == 4:
            raise KeyboardInterrupt
        return step(*given)

    monkeypatch.setattr(loop, "CHECKPOINT_SECONDS", -1)
    monkeypatch.setattr(loop, "SAVING_TIMES", 0)
    monkeypatch.setattr(loop, "_backward_step", killed)
    return made


def test_a_killed_training_ends_as_one_that_was_never_stopped(
    done: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = stopped_at_the_fourth_step(monkeypatch)
    judge = tiny_judge()
    with pytest.raises(KeyboardInterrupt):
        trained(judge, tmp_path)
    assert not any("lora" in name for name in judge.model.state_dict()), (
        "an interrupt leaves no adapters"
    )
    assert (tmp_path / "checkpoint.pt").is_file() and not (tmp_path / "training.json").exists()
    assert trained(judge, tmp_path) == done[1]
    assert len(made) == 4 + 3 and not (tmp_path / "checkpoint.pt").exists()


def test_a_finished_training_is_read_and_not_made_again(
    done: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder, found = done
    monkeypatch.setattr(loop, "_backward_step", None)
    assert trained(tiny_judge(), folder) == found


def test_all_weights_learn_without_adapters_and_are_put_back(tmp_path: Path) -> None:
    judge = tiny_judge()
    before = {name: value.clone() for name, value in judge.model.state_dict().items()}
    losses, after = trained(judge, tmp_path, FULL)
    assert max(after) < losses[0]
    assert all(torch.equal(value, before[name]) for name, value in judge.model.state_dict().items())
    assert not any(p.requires_grad or p.grad is not None for p in judge.model.parameters())
    own = load_model(str(tmp_path))
    assert answer_loss(own, SHOWN).tolist() == pytest.approx(after, abs=1e-5), (
        "the folder is a model's"
    )
    assert not torch.equal(
        own.model.get_input_embeddings().weight, judge.model.get_input_embeddings().weight
    )


def tiny_mixture() -> LocalModel:
    """A mixture of experts, whose files name its weights otherwise than the loaded model does."""
    from transformers import MixtralConfig

    config = MixtralConfig(
        vocab_size=257,
        hidden_size=32,
        intermediate_size=48,
        num_hidden_layers=2,
        num_attention_heads=4,
        num_key_value_heads=2,
        num_local_experts=4,
    )
    return tiny_family(config)


@pytest.mark.parametrize("new_judge", [tiny_judge, tiny_mixture])
def test_a_killed_training_of_all_weights_goes_on_and_a_finished_one_is_read(
    new_judge: Callable[[], LocalModel], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    done = trained(new_judge(), tmp_path / "whole", FULL)
    made = stopped_at_the_fourth_step(monkeypatch)
    judge = new_judge()
    with pytest.raises(KeyboardInterrupt):
        trained(judge, tmp_path / "killed", FULL)
    state = new_judge().model.state_dict()
    assert all(torch.equal(value, state[name]) for name, value in judge.model.state_dict().items())
    losses, after = trained(judge, tmp_path / "killed", FULL)
    assert (
        len(made) == 4 + 3 and losses == pytest.approx(done[0]) and after == pytest.approx(done[1])
    )
    monkeypatch.setattr(loop, "_backward_step", None)
    assert trained(new_judge(), tmp_path / "killed", FULL) == (losses, after)


def test_all_weights_are_trained_in_float32_alone(tmp_path: Path) -> None:
    judge = tiny_judge()
    judge.model.bfloat16()
    with pytest.raises(
        ValueError, match="all weights are trained in float32 alone, and these are in bfloat16"
    ):
        trained(judge, tmp_path, FULL)
    assert not list(tmp_path.iterdir())


def test_a_plan_of_all_weights_counts_them(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    judge = tiny_judge()
    planned = estimate_needs(judge, SHOWN, FULL)
    with finetuned_model(judge, SHOWN, FULL, tmp_path, progress=silent) as (_, training):
        assert (planned.parameters, planned.flops) == (
            training.parameters,
            training.flops,
        ) and training.full
    assert training.flops == 3 * forward_flops(judge, training.tokens)
    assert planned.memory_bytes > 16 * sum(p.numel() for p in judge.model.parameters())
    assert f"{planned.parameters:,} weights: all of them" in planned.row()[1]
    monkeypatch.setattr("accelerate.utils.get_max_memory", lambda: {"cpu": 1000})
    with pytest.raises(
        ValueError,
        match=r"take fewer --batch-tokens, adapters \(without --full\), or a smaller model",
    ):
        check_room(judge, planned, tmp_path)


def test_the_disk_of_a_plan_holds_two_checkpoints_and_what_other_trainings_leave(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    judge, least = tiny_judge(), shutil.disk_usage(tmp_path)._replace(free=0)
    planned = estimate_needs(judge, SHOWN, FULL, trainings=3)
    stopped_at_the_fourth_step(monkeypatch)
    with pytest.raises(KeyboardInterrupt):
        trained(judge, tmp_path, FULL)
    checkpoint = (tmp_path / "checkpoint.pt").stat().st_size
    assert planned.disk_bytes == pytest.approx(2 * checkpoint + 2 * 4 * planned.parameters, rel=0.1)
    monkeypatch.setattr("shutil.disk_usage", lambda _: least)
    with pytest.raises(ValueError, match="checkpoints and what is trained take"):
        check_room(judge, planned, tmp_path)
    check_room(
        judge, replace(planned, disk_bytes=checkpoint), tmp_path
    )  # what lies there needs no room any more


def test_what_a_kill_cut_off_of_a_checkpoint_does_not_stay(tmp_path: Path) -> None:
    (tmp_path / "checkpoint.pt.part").write_bytes(b"PK")
    trained(tiny_judge(), tmp_path)
    assert not list(tmp_path.glob("checkpoint*"))


def test_a_broken_checkpoint_means_a_training_from_the_start(done: Any, tmp_path: Path) -> None:
    (tmp_path / "checkpoint.pt").write_bytes(b"PK\x03\x04 cut off")
    said: list[str] = []
    with finetuned_model(tiny_judge(), SHOWN, QUICK, tmp_path, progress=said.append) as (
        _,
        training,
    ):
        assert list(training.losses) == done[1][0]
    assert any("cannot be read" in line and "training from the start" in line for line in said)


def test_another_training_in_the_folder_is_refused(done: Any) -> None:
    folder, _ = done
    with pytest.raises(
        ValueError, match="holds a training on other examples, weights or settings: delete it"
    ):
        trained(tiny_judge(), folder, Recipe(epochs=1))
    with pytest.raises(ValueError, match="holds a training on other"):
        trained(tiny_judge(seed=1), folder)


def test_a_step_in_parts_is_the_same_step(done: Any, tmp_path: Path) -> None:
    losses, after = trained(tiny_judge(), tmp_path, batch_tokens=1)
    assert losses == pytest.approx(done[1][0], rel=1e-3) and after == pytest.approx(
        done[1][1], rel=2e-2
    )


def test_the_loss_is_of_the_answers_tokens_alone() -> None:
    judge = tiny_judge()
    found = answer_loss(judge, SHOWN[:2])
    for example, loss in zip(SHOWN[:2], found, strict=True):
        logits = (
            judge.model(torch.tensor([[*example.prompt, *example.answer]]))
            .logits[0]
            .log_softmax(-1)
        )
        first = len(example.prompt) - 1
        by_hand = [-logits[first + n, token] for n, token in enumerate(example.answer)]
        assert float(loss) == pytest.approx(float(sum(by_hand)) / len(by_hand), rel=1e-4)


def test_what_cannot_be_trained_is_said(tmp_path: Path) -> None:
    with (
        pytest.raises(ValueError, match="no examples to learn from"),
        finetuned_model(tiny_judge(), [], QUICK, tmp_path),
    ):
        pass
    half = tiny_judge()
    half.model.half()
    with (
        pytest.raises(ValueError, match="float16 loses small gradients"),
        finetuned_model(half, SHOWN, QUICK, tmp_path),
    ):
        pass
    with pytest.raises(
        ValueError, match="expected rank, alpha, epochs and batch >= 1 and a rate in 0..1"
    ):
        Recipe(rate=3)


def test_a_loss_that_is_not_finite_ends_the_training(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(loop, "_backward_step", lambda *_: float("nan"))
    with pytest.raises(ValueError, match="the loss is not finite at step 1: take a smaller --rate"):
        trained(tiny_judge(), tmp_path)


def test_every_example_is_drawn_once_an_epoch() -> None:
    recipe = Recipe(epochs=2, batch=3)
    drawn = [recipe.step_examples(step, 8) for step in range(recipe.steps(8))]
    assert [len(d) for d in drawn] == [3, 3, 2] * 2
    assert (
        all(
            sorted(i for step in epoch for i in step) == list(range(8))
            for epoch in (drawn[:3], drawn[3:])
        )
        and drawn[:3] != drawn[3:]
    )
    assert [recipe.rate_at(step, 10) / recipe.rate for step in (0, 8, 9)] == pytest.approx(
        [1, 1, 0.5]
    )


def test_operations_are_as_pytorch_counts_them(tmp_path: Path) -> None:
    """But for attention's scores and the head, which are small where a model is not tiny."""
    from torch.utils.flop_counter import FlopCounterMode

    judge, example = tiny_judge(), Example(tuple(range(40)), (50,))
    with FlopCounterMode(display=False) as counted:
        answer_loss(judge, [example])
    head = 2 * 2 * judge.d_model * 257  # two places
    assert forward_flops(judge, 41) == pytest.approx(counted.get_total_flops() - head, rel=0.15)
    assert train_flops(judge, 41, 100) == 2 * forward_flops(judge, 41) + 6 * 41 * 100


def test_a_plan_counts_what_the_training_then_has(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    judge = tiny_judge()
    planned = estimate_needs(judge, SHOWN, QUICK)
    with finetuned_model(judge, SHOWN, QUICK, tmp_path, progress=silent) as (_, training):
        assert (planned.parameters, planned.tokens) == (training.parameters, training.tokens)
        assert planned.steps == len(training.losses) and planned.flops == training.flops
    assert planned.parameters == adapter_parameters(judge, QUICK.rank) and planned.seconds > 0
    label, needs = planned.row()
    assert label == "Training" and needs.startswith("8 examples, 6 steps")
    assert "GB beside the weights" in needs and " times" not in needs
    assert planned.row(trainings=3)[1] == f"{needs}, 3 times"
    check_room(judge, planned, tmp_path / "new")
    with pytest.raises(
        ValueError,
        match=r"checkpoints and what is trained take 1000000.0 GB of disk, and .* free at",
    ):
        check_room(judge, replace(planned, disk_bytes=10**15), tmp_path / "new")
    monkeypatch.setattr("accelerate.utils.get_max_memory", lambda: {"cpu": 1000})
    with pytest.raises(
        ValueError,
        match="training tiny-llama takes about 0.0 GB beside its weights, and 0.0 GB are free",
    ):
        check_room(judge, planned, tmp_path)
