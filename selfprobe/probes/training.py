"""Fine-tuning of a loaded model, in adapters or in all its weights: the loss is on the answer's
tokens alone.

    with finetuned(judge, examples, Recipe(rank=16), folder) as (tuned, training):
        ...                                    # `tuned` is read as any LocalModel; afterwards `judge` is as before

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

SAVED_EVERY = 30
"""Seconds of training that a killed one loses at most, or this multiple of the time of saving, if
that is more:
"""
SAVING_TIMES = 10
CLIP = 1.0
"""Largest length of a step's gradient."""


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
    """Adapters at all linear layers of the blocks, their first values from the seed; peft's files."""
    from peft import LoraConfig, get_peft_model, set_peft_model_state_dict
    from safetensors.torch import load_file

    cuda = [judge.device.index or 0] if judge.device.type == "cuda" else []
    with torch.random.fork_rng(devices=cuda), warnings.catch_warnings():
        warnings.filterwarnings(
            "ignore", "`is_gradient_checkpointing`", FutureWarning
        )  # peft's call of transformers
        torch.manual_seed(seed)
        config = LoraConfig(
            r=rank, lora_alpha=alpha, target_modules="all-linear", task_type="CAUSAL_LM"
        )
        adapted = get_peft_model(judge.model, config)

    def load(folder: Path) -> None:
        set_peft_model_state_dict(adapted, load_file(folder / "adapter_model.safetensors"))

    inner = replace(judge, model=adapted.base_model.model)
    try:
        yield Learner(
            inner,
            tuple(p for p in inner.model.parameters() if p.requires_grad),
            lambda folder: adapted.save_pretrained(str(folder), save_embedding_layers=False),
            load,
        )
    finally:
        adapted.unload()
        judge.model.requires_grad_(False)


@contextmanager
def all_weights(judge: LocalModel) -> Iterator[Learner]:
    """Context in which all weights learn; they are restored afterwards, and saved as a model's
    folder.

    Raises:
        ValueError: The weights are quantised, or not in float32.
    """
    if (
        judge.dtype != torch.float32
        or getattr(judge.model.config, "quantization_config", None) is not None
    ):
        raise ValueError(
            f"all weights are trained in float32 alone, and these are in {judge.precision}: a step is smaller than "
            "their rounding. Take --dtype float32, or adapters (without --full)"
        )
    weights: tuple[Any, ...] = tuple(judge.model.parameters())
    before = [weight.detach().to("cpu", copy=True) for weight in weights]

    def save(folder: Path) -> None:
        judge.model.save_pretrained(str(folder))
        judge.tokenizer.save_pretrained(str(folder))

    def load(folder: Path) -> None:
        held = type(judge.model).from_pretrained(
            str(folder), dtype=torch.float32, use_safetensors=True
        )
        _put(weights, held.parameters())

    try:
        judge.model.requires_grad_(True)
        yield Learner(judge, weights, save, load)
    finally:
        judge.model.requires_grad_(False)
        _put(weights, before)
        for weight in weights:
            weight.grad = None


def _put(weights: tuple[Any, ...], values: Iterable[Tensor]) -> None:
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
        counts = (1 if n is None else n for n in (self.rank, self.alpha, self.epochs, self.batch))
        if min(counts) < 1 or (self.rank is None) != (self.alpha is None) or not 0 < self.rate < 1:
            raise ValueError(
                f"expected rank, alpha, epochs and batch >= 1 and a rate in 0..1, got {self}"
            )

    @property
    def way(self) -> Literal["full", "lora"]:
        """Name of what learns: all weights, or adapters."""
        return "full" if self.rank is None else "lora"

    def rate_at(self, step: int, steps: int) -> float:
        """Learning rate at a step, counted from 0."""
        return self.rate * min(1.0, (1 - step / steps) / 0.2)

    def steps(self, examples: int) -> int:
        """Number of steps of the whole training."""
        return self.epochs * math.ceil(examples / self.batch)

    def drawn(self, step: int, examples: int) -> list[int]:
        """Examples of a step, counted from 0: each once per epoch, in an order of its own."""
        epoch, place = divmod(step, math.ceil(examples / self.batch))
        order = np.random.default_rng([self.seed, epoch]).permutation(examples)
        return [int(i) for i in order[place * self.batch : (place + 1) * self.batch]]


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
def finetuned(
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
        _claim(folder, identity)
        training = _taken(learner, folder) or _trained(
            learner, examples, recipe, folder, identity, batch_tokens, progress
        )
        learner.judge.model.requires_grad_(False)
        yield replace(learner.judge, revision=f"{judge.revision}-{recipe.way}-{identity}"), training


def _learner(judge: LocalModel, recipe: Recipe) -> AbstractContextManager[Learner]:
    if recipe.rank is None or recipe.alpha is None:
        return all_weights(judge)
    return adapters(judge, rank=recipe.rank, alpha=recipe.alpha, seed=recipe.seed)


def _identity(judge: LocalModel, examples: Sequence[Example], recipe: Recipe) -> str:
    said = json.dumps([[e.prompt, e.answer] for e in examples])
    return digest(judge.revision, judge.precision, json.dumps(asdict(recipe)), said)


def _claim(folder: Path, identity: str) -> None:
    """Mark `folder` as this training's, or raise ValueError where it is another's."""
    file = folder / "identity"
    if file.is_file() and file.read_text("utf-8") != identity:
        raise ValueError(
            f"{folder} holds a training on other examples, weights or settings: delete it, or give another --out"
        )
    folder.mkdir(parents=True, exist_ok=True)
    put_whole(file, lambda part: part.write_text(identity, encoding="utf-8"))


def _taken(learner: Learner, folder: Path) -> Training | None:
    """A finished training's result, put into the model."""
    told = folder / "training.json"
    if not told.is_file():
        return None
    learner.load(folder)
    held = json.loads(told.read_text("utf-8"))
    return Training(**held | {"losses": tuple(held["losses"])})


def _trained(
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
    tuned, weights = learner.judge, list(learner.weights)
    optimizer = torch.optim.AdamW(weights, lr=recipe.rate, weight_decay=0.0)
    losses, before = _resumed(weights, optimizer, folder / "checkpoint.pt", identity, progress)
    steps, budget = recipe.steps(len(examples)), batch_tokens or batch_budget(tuned)
    started = said = saved = time.monotonic()
    saving, first = 0.0, len(losses)
    for step in range(first, steps):
        optimizer.param_groups[0]["lr"] = recipe.rate_at(step, steps)
        losses.append(
            _step(tuned, [examples[i] for i in recipe.drawn(step, len(examples))], budget)
        )
        if not math.isfinite(losses[-1]):
            raise ValueError(
                f"the loss is not finite at step {step + 1}: take a smaller --rate, or --dtype float32"
            )
        torch.nn.utils.clip_grad_norm_(weights, CLIP)
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        now = time.monotonic()
        if now - saved > max(SAVED_EVERY, SAVING_TIMES * saving):
            state = {"identity": identity, "losses": losses, "seconds": before + now - started}
            state |= {"weights": weights, "optimizer": optimizer.state_dict()}
            put_whole(folder / "checkpoint.pt", lambda part, state=state: torch.save(state, part))  # type: ignore[misc]
            saved = time.monotonic()
            saving = saved - now
        if now - said > 10:
            said, left = now, (now - started) / (step + 1 - first) * (steps - step - 1)
            progress(f"  step {step + 1} of {steps}, loss {losses[-1]:.3f}, {left:.0f} s left")
    count, tokens = sum(p.numel() for p in weights), recipe.epochs * sum(e.length for e in examples)
    full = recipe.way == "full"
    flops = train_flops(tuned, tokens, count, full=full)
    training = Training(
        tuple(losses), before + time.monotonic() - started, tokens, count, flops, full
    )
    learner.save(folder)
    put_whole(
        folder / "training.json",
        lambda part: part.write_text(json.dumps(asdict(training)), encoding="utf-8"),
    )
    for file in folder.glob("checkpoint.pt*"):  # a kill may have cut that one off, too
        file.unlink()
    return training


def _resumed(
    weights: Sequence[Tensor], optimizer: Any, file: Path, identity: str, progress: Progress
) -> tuple[list[float], float]:
    """Losses so far and the seconds they took; weights and optimizer are restored."""
    if not file.is_file():
        return [], 0.0
    try:
        held = torch.load(file, map_location="cpu", weights_only=True)
    except (RuntimeError, EOFError, pickle.UnpicklingError, KeyError, ValueError) as error:
        progress(f"  {file} cannot be read ({type(error).__name__}): training from the start")
        return [], 0.0
    if held["identity"] != identity:
        return [], 0.0
    with torch.no_grad():
        for weight, kept in zip(weights, held["weights"], strict=True):
            weight.copy_(kept)
    optimizer.load_state_dict(held["optimizer"])
    progress(f"  going on after step {len(held['losses'])}")
    return list(held["losses"]), float(held["seconds"])


def _step(tuned: LocalModel, shown: Sequence[Example], budget: int) -> float:
    """The loss of one step, its gradient added to the weights' own."""
    total = 0.0
    for part in cut_batches(
        shown, sorted(range(len(shown)), key=lambda i: shown[i].length), budget
    ):
        loss = answer_loss(tuned, [shown[i] for i in part]).sum() / len(shown)
        loss.backward()
        total += float(loss.detach())
    return total


def answer_loss(tuned: LocalModel, shown: Sequence[Example]) -> Tensor:
    """−log P of each example's answer, as the mean over its tokens [example]; with a gradient."""
    longest = max(len(e.answer) for e in shown)
    inputs = plain_inputs([(*e.prompt, *e.answer) for e in shown], tuned.device)
    logits = (
        model_output(tuned, **inputs, use_cache=False, keep=longest + 1)
        .logits[:, -longest - 1 : -1]
        .float()
    )
    wanted = torch.full((len(shown), longest), -100)
    for row, example in zip(wanted, shown, strict=True):
        row[longest - len(example.answer) :] = torch.tensor(example.answer)
    wanted = wanted.to(logits.device)
    each = torch.nn.functional.cross_entropy(
        logits.transpose(1, 2), wanted, reduction="none", ignore_index=-100
    )
    return each.sum(dim=1) / (wanted != -100).sum(dim=1)


def forward_flops(judge: LocalModel, tokens: int) -> float:
    """Floating-point operations of reading `tokens`: two per weight of the blocks; attention's
    scores are left out.
    """
    weights: int = sum(
        p.numel()
        for name, p in decoder_blocks(judge.model).named_parameters()
        if "lora_" not in name
    )
    return 2.0 * weights * tokens


def train_flops(judge: LocalModel, tokens: int, parameters: int, *, full: bool = False) -> float:
    """Floating-point operations of training: all weights forwards and backwards, `parameters` for
    their gradient.
    """
    once = forward_flops(judge, tokens)
    return 3 * once if full else 2 * once + 6.0 * parameters * tokens
