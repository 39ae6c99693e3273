"""Fine-tuning of a loaded model, in adapters or in all its weights: the loss is on the answer's
tokens alone.

    with finetuned(judge, examples, Recipe(rank=16), folder) as (tuned, training):
        ...  # `tuned` is read as any LocalModel; afterwards `judge` is as before

The order of the examples and the first adapters come from the seed, and there is no dropout: a
training that continues from its checkpoint ends as one that was never stopped.
"""

import json
import math
import pickle
import time
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, Literal

import numpy as np
import torch
from torch import Tensor

from selfprobe.data.pairs import digest
from selfprobe.embed.weights import Progress, to_stderr
from selfprobe.probes.folder import put_whole
from selfprobe.probes.forward import cut_batches, model_output, plain_inputs
from selfprobe.probes.harvesting import batch_budget
from selfprobe.probes.model import LocalModel, decoder_blocks

CHECKPOINT_SECONDS = 30
"""Seconds of training that a killed one loses at most, or `SAVING_TIMES` the time of saving, if
that is more.
"""
SAVING_TIMES = 10
PROGRESS_SECONDS = 10
"""Seconds between two lines on the progress."""
LARGEST_GRADIENT = 1.0
"""Largest length of a step's gradient."""
IGNORED_TARGET = -100
"""Target of a place without an answer's token; torch leaves it out of the loss."""


@dataclass(frozen=True)
class Learner:
    """A model and the part of it that learns."""

    judge: LocalModel
    weights: tuple[Tensor, ...]
    """Weights that learn; all others are frozen."""
    save: Callable[[Path], None]
    """Function that writes what was learnt into a folder, as other tools load it."""
    load: Callable[[Path], None]
    """Function that loads it from such a folder."""


@contextmanager
def adapters(judge: LocalModel, *, rank: int, alpha: int, seed: int) -> Iterator[Learner]:
    """Adapters at all linear layers of the blocks, their first values from the seed; the files are
    peft's.
    """
    from peft import LoraConfig, get_peft_model, set_peft_model_state_dict
    from safetensors.torch import load_file

    cuda_devices = [judge.device.index or 0] if judge.device.type == "cuda" else []
    with torch.random.fork_rng(devices=cuda_devices), warnings.catch_warnings():
        # peft's call of transformers
        warnings.filterwarnings("ignore", "`is_gradient_checkpointing`", FutureWarning)
        torch.manual_seed(seed)
        config = LoraConfig(
            r=rank,
            lora_alpha=alpha,
            target_modules=linear_layer_names(judge.model),
            task_type="CAUSAL_LM",
        )
        adapted_model = get_peft_model(judge.model, config)

    def save(folder: Path) -> None:
        adapted_model.save_pretrained(str(folder), save_embedding_layers=False)

    def load(folder: Path) -> None:
        adapter_weights = load_file(folder / "adapter_model.safetensors")
        set_peft_model_state_dict(adapted_model, adapter_weights)

    adapted_judge = replace(judge, model=adapted_model.base_model.model)
    parameters = adapted_judge.model.parameters()
    learning_weights = tuple(weight for weight in parameters if weight.requires_grad)
    try:
        yield Learner(adapted_judge, learning_weights, save, load)
    finally:
        adapted_model.unload()
        judge.model.requires_grad_(False)


def linear_layer_names(model: Any) -> list[str]:
    """Names of all linear layers of the decoder's blocks, and of no other part, such as one that
    sees images.
    """
    block_modules = set(decoder_blocks(model).modules())
    return [
        name
        for name, module in model.named_modules()
        if module in block_modules and is_linear_layer(module)
    ]


def is_linear_layer(module: Any) -> bool:
    """Whether an adapter goes beside a module: a linear layer, or GPT-2's."""
    return isinstance(module, torch.nn.Linear) or type(module).__name__ == "Conv1D"


@contextmanager
def all_weights(judge: LocalModel) -> Iterator[Learner]:
    """Context in which all weights learn; they are restored afterwards, and saved as a model's
    folder.

    Raises:
        ValueError: The weights are quantised, or not in float32.
    """
    is_quantized = getattr(judge.model.config, "quantization_config", None) is not None
    if is_quantized or judge.dtype != torch.float32:
        raise ValueError(
            f"all weights are trained in float32 alone, and these are in {judge.precision}: a step "
            "is smaller than their rounding. Take --dtype float32, or adapters (without --full)"
        )
    weights: tuple[Any, ...] = tuple(judge.model.parameters())
    original_values = [weight.detach().to("cpu", copy=True) for weight in weights]

    def save(folder: Path) -> None:
        judge.model.save_pretrained(str(folder))
        judge.tokenizer.save_pretrained(str(folder))

    def load(folder: Path) -> None:
        saved_model = type(judge.model).from_pretrained(
            str(folder), dtype=torch.float32, use_safetensors=True
        )
        _copy_values(saved_model.parameters(), weights)

    try:
        judge.model.requires_grad_(True)
        yield Learner(judge, weights, save, load)
    finally:
        judge.model.requires_grad_(False)
        _copy_values(original_values, weights)
        for weight in weights:
            weight.grad = None


def _copy_values(values: Iterable[Tensor], weights: Sequence[Tensor]) -> None:
    with torch.no_grad():
        for weight, value in zip(weights, values, strict=True):
            weight.copy_(value)


@dataclass(frozen=True)
class Example:
    """Tokens to read, and tokens to answer."""

    prompt: tuple[int, ...]
    answer: tuple[int, ...]

    @property
    def length(self) -> int:
        """Number of tokens of both."""
        return len(self.prompt) + len(self.answer)


@dataclass(frozen=True)
class Recipe:
    """How a model is trained: Adam, at one rate that falls in a line to 0 over the last fifth of
    the steps.
    """

    rank: int | None = 16
    """Rank of the adapters; None: there are none, and all weights learn."""
    alpha: int | None = 32
    """Scale of the adapters: their product is multiplied by alpha / rank."""
    rate: float = 5e-4
    """Learning rate during the first four fifths of the steps."""
    epochs: int = 8
    batch: int = 4
    """Number of examples per step."""
    seed: int = 0

    def __post_init__(self) -> None:
        has_rank = self.rank is not None
        has_alpha = self.alpha is not None
        counts = [self.epochs, self.batch]
        counts += [count for count in (self.rank, self.alpha) if count is not None]
        if min(counts) < 1 or has_rank != has_alpha or not 0 < self.rate < 1:
            raise ValueError(
                f"expected rank, alpha, epochs and batch >= 1 and a rate in 0..1, got {self}"
            )

    @property
    def trained_part(self) -> Literal["full", "lora"]:
        """Name of what learns: all weights, or adapters."""
        return "full" if self.rank is None else "lora"

    def rate_at(self, step: int, step_count: int) -> float:
        """Learning rate at a step, counted from 0."""
        remaining_share = 1 - step / step_count
        return self.rate * min(1.0, remaining_share / 0.2)

    def steps(self, example_count: int) -> int:
        """Number of steps of the whole training."""
        return self.epochs * self._epoch_steps(example_count)

    def _epoch_steps(self, example_count: int) -> int:
        return math.ceil(example_count / self.batch)

    def step_examples(self, step: int, example_count: int) -> list[int]:
        """Examples of a step, counted from 0: each once per epoch, in an order of its own."""
        epoch, epoch_step = divmod(step, self._epoch_steps(example_count))
        order = np.random.default_rng([self.seed, epoch]).permutation(example_count)
        start = epoch_step * self.batch
        return [int(number) for number in order[start : start + self.batch]]


@dataclass(frozen=True)
class Training:
    """Numbers of a training."""

    losses: tuple[float, ...]
    """[step]: mean over its examples of −log P of an answer's token (its mean)."""
    seconds: float
    tokens: int
    """Number of tokens read in all epochs, without padding."""
    parameters: int
    """Number of trained parameters."""
    flops: float
    """Floating-point operations, from `train_flops`."""
    full: bool = False
    """Whether all weights learnt, not adapters."""


@contextmanager
def finetuned_model(
    judge: LocalModel,
    examples: Sequence[Example],
    recipe: Recipe,
    folder: Path,
    *,
    batch_tokens: int | None = None,
    progress: Progress = to_stderr,
) -> Iterator[tuple[LocalModel, Training]]:
    """Context with `judge` as it is after it has learnt `examples`.

    `folder` keeps what was learnt, adapters as peft writes them or a whole model, and meanwhile a
    checkpoint: the same call continues a killed training, and trains nothing where it is finished.

    Args:
        batch_tokens: Tokens that are read at a time; a larger step is read in parts and is the same
            step.

    Raises:
        ValueError: No examples; `folder` holds another training; weights that cannot learn in their
            precision; or the loss is not finite.
    """
    if not examples:
        raise ValueError("no examples to learn from")
    if judge.dtype == torch.float16:
        raise ValueError("float16 loses small gradients: train in bfloat16 or float32 (--dtype)")
    identity = _identity(judge, examples, recipe)
    with _learner(judge, recipe) as learner:
        _claim_folder(folder, identity)
        training = _finished_training(learner, folder)
        if training is None:
            training = _train(learner, examples, recipe, folder, identity, batch_tokens, progress)
        learner.judge.model.requires_grad_(False)
        revision = f"{judge.revision}-{recipe.trained_part}-{identity}"
        yield replace(learner.judge, revision=revision), training


def _learner(judge: LocalModel, recipe: Recipe) -> AbstractContextManager[Learner]:
    if recipe.rank is None or recipe.alpha is None:
        return all_weights(judge)
    return adapters(judge, rank=recipe.rank, alpha=recipe.alpha, seed=recipe.seed)


def _identity(judge: LocalModel, examples: Sequence[Example], recipe: Recipe) -> str:
    example_tokens = [[example.prompt, example.answer] for example in examples]
    recipe_text = json.dumps(asdict(recipe))
    return digest(judge.revision, judge.precision, recipe_text, json.dumps(example_tokens))


def _claim_folder(folder: Path, identity: str) -> None:
    """Mark `folder` as this training's, or raise ValueError where it is another's."""
    file = folder / "identity"
    if file.is_file() and file.read_text("utf-8") != identity:
        raise ValueError(
            f"{folder} holds a training on other examples, weights or settings: delete it, or give "
            "another --out"
        )
    folder.mkdir(parents=True, exist_ok=True)
    put_whole(file, lambda part_file: part_file.write_text(identity, encoding="utf-8"))


def _finished_training(learner: Learner, folder: Path) -> Training | None:
    """A finished training's result, put into the model."""
    file = folder / "training.json"
    if not file.is_file():
        return None
    learner.load(folder)
    fields = json.loads(file.read_text("utf-8"))
    fields["losses"] = tuple(fields["losses"])
    return Training(**fields)


def _train(
    learner: Learner,
    examples: Sequence[Example],
    recipe: Recipe,
    folder: Path,
    identity: str,
    batch_tokens: int | None,
    progress: Progress,
) -> Training:
    """The training loop, from the checkpoint if there is one; `folder` then holds the weights and
    the numbers.
    """
    judge = learner.judge
    weights = list(learner.weights)
    optimizer = torch.optim.AdamW(weights, lr=recipe.rate, weight_decay=0.0)
    checkpoint = Checkpoint(folder / "checkpoint.pt", identity, weights, optimizer)
    losses, earlier_seconds = checkpoint.restore(progress)

    step_count = recipe.steps(len(examples))
    step_meter = StepMeter(len(losses), step_count, progress)
    token_budget = batch_tokens or batch_budget(judge)
    for step in range(len(losses), step_count):
        optimizer.param_groups[0]["lr"] = recipe.rate_at(step, step_count)
        step_examples = [examples[number] for number in recipe.step_examples(step, len(examples))]
        loss = _backward_step(judge, step_examples, token_budget)
        if not math.isfinite(loss):
            raise ValueError(
                f"the loss is not finite at step {step + 1}: take a smaller --rate, or --dtype "
                "float32"
            )
        losses.append(loss)
        torch.nn.utils.clip_grad_norm_(weights, LARGEST_GRADIENT)
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)

        checkpoint.save_when_due(losses, earlier_seconds + step_meter.seconds)
        step_meter.report_when_due(step + 1, loss)

    parameter_count = sum(weight.numel() for weight in weights)
    token_count = recipe.epochs * sum(example.length for example in examples)
    is_full = recipe.trained_part == "full"
    training = Training(
        losses=tuple(losses),
        seconds=earlier_seconds + step_meter.seconds,
        tokens=token_count,
        parameters=parameter_count,
        flops=train_flops(judge, token_count, parameter_count, full=is_full),
        full=is_full,
    )
    learner.save(folder)
    training_text = json.dumps(asdict(training))
    put_whole(
        folder / "training.json",
        lambda part_file: part_file.write_text(training_text, encoding="utf-8"),
    )
    checkpoint.remove()
    return training


class Checkpoint:
    """File from which a killed training goes on."""

    def __init__(
        self, file: Path, identity: str, weights: Sequence[Tensor], optimizer: Any
    ) -> None:
        self.file = file
        self.identity = identity
        self.weights = weights
        self.optimizer = optimizer
        self.saved_time = time.monotonic()
        self.saving_seconds = 0.0

    def restore(self, progress: Progress) -> tuple[list[float], float]:
        """Losses so far and the seconds they took; weights and optimizer are restored."""
        if not self.file.is_file():
            return [], 0.0
        try:
            content = torch.load(self.file, map_location="cpu", weights_only=True)
        except (RuntimeError, EOFError, pickle.UnpicklingError, KeyError, ValueError) as error:
            progress(
                f"  {self.file} cannot be read ({type(error).__name__}): training from the start"
            )
            return [], 0.0
        if content["identity"] != self.identity:
            return [], 0.0

        _copy_values(content["weights"], self.weights)
        self.optimizer.load_state_dict(content["optimizer"])
        losses = list(content["losses"])
        progress(f"  going on after step {len(losses)}")
        return losses, float(content["seconds"])

    def save_when_due(self, losses: Sequence[float], seconds: float) -> None:
        """Write it, unless the last one is too new."""
        start_time = time.monotonic()
        pause_seconds = max(CHECKPOINT_SECONDS, SAVING_TIMES * self.saving_seconds)
        if start_time - self.saved_time <= pause_seconds:
            return
        content = {
            "identity": self.identity,
            "losses": list(losses),
            "seconds": seconds,
            "weights": list(self.weights),
            "optimizer": self.optimizer.state_dict(),
        }
        put_whole(self.file, partial(torch.save, content))
        self.saved_time = time.monotonic()
        self.saving_seconds = self.saved_time - start_time

    def remove(self) -> None:
        """Remove the file, and what a kill cut off of one."""
        for file in self.file.parent.glob(f"{self.file.name}*"):
            file.unlink()


class StepMeter:
    """Progress of a training, at most every `PROGRESS_SECONDS`."""

    def __init__(self, first_step: int, step_count: int, progress: Progress) -> None:
        self.first_step = first_step
        self.step_count = step_count
        self.progress = progress
        self.start_time = time.monotonic()
        self.report_time = self.start_time

    @property
    def seconds(self) -> float:
        """Seconds since the first step of this process."""
        return time.monotonic() - self.start_time

    def report_when_due(self, steps_done: int, loss: float) -> None:
        """Say the last step's loss and the time left, unless the last report is too new."""
        now = time.monotonic()
        if now - self.report_time <= PROGRESS_SECONDS:
            return
        self.report_time = now
        step_seconds = self.seconds / (steps_done - self.first_step)
        remaining_seconds = step_seconds * (self.step_count - steps_done)
        self.progress(
            f"  step {steps_done} of {self.step_count}, loss {loss:.3f}, "
            f"{remaining_seconds:.0f} s left"
        )


def _backward_step(judge: LocalModel, step_examples: Sequence[Example], token_budget: int) -> float:
    """The loss of one step, its gradient added to the weights' own."""
    step_loss = 0.0
    order = sorted(range(len(step_examples)), key=lambda number: step_examples[number].length)
    for numbers in cut_batches(step_examples, order, token_budget):
        batch_examples = [step_examples[number] for number in numbers]
        batch_loss = answer_loss(judge, batch_examples).sum() / len(step_examples)
        batch_loss.backward()
        step_loss += float(batch_loss.detach())
    return step_loss


def answer_loss(judge: LocalModel, examples: Sequence[Example]) -> Tensor:
    """−log P of each example's answer, as the mean over its tokens [example]; with a gradient."""
    longest_answer = max(len(example.answer) for example in examples)
    example_tokens = [(*example.prompt, *example.answer) for example in examples]
    inputs = plain_inputs(example_tokens, judge.device)
    output = model_output(judge, **inputs, use_cache=False, keep=longest_answer + 1)
    logits = output.logits[:, -longest_answer - 1 : -1].float()

    targets = torch.full((len(examples), longest_answer), IGNORED_TARGET)
    for row, example in zip(targets, examples, strict=True):
        row[longest_answer - len(example.answer) :] = torch.tensor(example.answer)
    targets = targets.to(logits.device)

    token_losses = torch.nn.functional.cross_entropy(
        logits.transpose(1, 2), targets, reduction="none", ignore_index=IGNORED_TARGET
    )
    answer_lengths = (targets != IGNORED_TARGET).sum(dim=1)
    return token_losses.sum(dim=1) / answer_lengths


def forward_flops(judge: LocalModel, tokens: int) -> float:
    """Floating-point operations of reading `tokens`: two per weight of the blocks; attention's
    scores are left out.
    """
    weight_count = 0
    for name, weight in decoder_blocks(judge.model).named_parameters():
        if "lora_" not in name:
            weight_count += weight.numel()
    return 2.0 * weight_count * tokens


def train_flops(judge: LocalModel, tokens: int, parameters: int, *, full: bool = False) -> float:
    """Floating-point operations of training: all weights forwards and backwards, `parameters` for
    their gradient.
    """
    reading_flops = forward_flops(judge, tokens)
    if full:
        return 3 * reading_flops
    return 2 * reading_flops + 6.0 * parameters * tokens
