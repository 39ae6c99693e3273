"""`steered/MODEL`: Inspect's own hf provider with a vector in the residual stream, under any task.

    inspect eval selfprobe/kth_word --model steered/smollm2 -M vector=concept:ocean -M block=16 -M dose=.5
    inspect eval selfprobe/awareness_binary --model steered/Qwen/Qwen3-8B -M vector=direction.probe -M dose=-.5

Model arguments (`-M`); others go to the hf provider:
    vector    a probe file of `probe run` or `awareness inside --save`, concept:WORD, or random:SEED.
    dose      length of the vector as a share of the mean length of the prompt's states at the block, without the
              first token; a negative one points away. Needed with a vector. 0 is the plain model.
    block     block after which it is added, from 0. Default: the probe file's, else two thirds of the way up; the
              log says which.
    other_model   true takes the probe file of another model, such as the base of this one, too.

A call may have its own: `GenerateConfig(extra_body={"steer": {"vector": "random:7", "dose": 1}})`, which stands in
Inspect's log and cache key. Handles of one model share its weights, and answer one at a time.
"""

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, fields, replace
from difflib import get_close_matches
from functools import cached_property
from pathlib import Path
from typing import Any

import anyio
import numpy as np
import numpy.typing as npt
import torch
from inspect_ai.model import ChatMessage, GenerateConfig, ModelAPI, ModelOutput
from inspect_ai.tool import ToolChoice, ToolInfo
from jinja2 import TemplateError
from torch import Tensor
from typing_extensions import override

from selfprobe.data.concept_words import LARGEST_DOSE, has_line_break
from selfprobe.errors import one_line, warn_once
from selfprobe.errors.inspect_private import HuggingFaceAPI, PrerequisiteError
from selfprobe.mechanism.injection import AskedModel, base_words, concept_vector
from selfprobe.probes.forward import hidden_of, with_hidden
from selfprobe.probes.model import (
    LocalModel,
    decoder_blocks,
    fingerprint,
    missing_block_text,
    model_not_loaded,
    weights_source,
)
from selfprobe.probes.probe_file import Card, load_probe

LONGEST_SEED = 100
"""Digits of a seed, at most."""
DEFAULT_DEPTH = 2 / 3
"""Relative depth of the block after which a vector is added that comes with none."""


@dataclass(frozen=True)
class Steering:
    """A vector, its block and its dose."""

    vector: str | None = None
    dose: float = 0.0
    block: int | None = None

    @classmethod
    def read(cls, settings: dict[str, Any], default: "Steering") -> "Steering":
        """Settings as a user or a call writes them.

        Raises:
            PrerequisiteError: One is unknown or no number, or there is a dose of no vector.
        """
        unknown = sorted(settings.keys() - asdict(default).keys())
        if unknown:
            raise PrerequisiteError(
                f"steering takes vector, dose and block, got {', '.join(unknown)}"
            )
        steering = replace(default, **settings)
        dose = _number("dose", steering.dose)
        if not abs(dose) <= LARGEST_DOSE:  # nan too
            raise PrerequisiteError(
                f"a dose is a finite number from -{LARGEST_DOSE:g} to {LARGEST_DOSE:g}, such as "
                f".5 or -1; got {dose:g}"
            )
        block = None
        if steering.block is not None:
            block_number = _number("block", steering.block)
            if not block_number.is_integer():
                raise PrerequisiteError(f"a block is a whole number; got block={steering.block}")
            block = int(block_number)
        if steering.vector is None and dose:
            raise PrerequisiteError(
                f"dose={dose:g} without a vector: give -M vector=concept:WORD, random:SEED or a "
                "probe file"
            )
        vector = None if steering.vector is None else str(steering.vector)
        return cls(vector, dose, block)


def _as_boolean(name: str, value: object) -> bool:
    if not isinstance(value, bool):
        raise PrerequisiteError(f"{name} must be true or false, got {value}")
    return value


def _number(name: str, value: object) -> float:
    """The number that a user or a call gave; YAML's `true` is none."""
    if isinstance(value, str | int | float) and not isinstance(value, bool):
        with suppress(ValueError, OverflowError):
            return float(value)
    raise PrerequisiteError(f"dose and block are numbers: got {name}={value}")


STEERING_SETTINGS = tuple(field.name for field in fields(Steering))
MODEL_ARGUMENTS = (*STEERING_SETTINGS, "other_model")
MISSPELLING_SIMILARITY = 0.7
"""Similarity of two names, from 0 to 1, above which one is taken for the other misspelt."""


def _refuse_misspelt_settings(model_args: dict[str, Any]) -> None:
    """Refuse a model argument that is nearly vector, dose or block: transformers would say so only
    after loading, in hundreds of lines.
    """
    for name in model_args:
        nearest_names = get_close_matches(name, MODEL_ARGUMENTS, n=1, cutoff=MISSPELLING_SIMILARITY)
        if nearest_names:
            raise PrerequisiteError(
                f"-M {name}: steered/… has no such argument; did you mean {nearest_names[0]}?"
            )


@dataclass
class SharedWeights:
    """Weights that several handles use, and who may use them now."""

    weights: Any
    """The model of transformers."""
    attributes: dict[str, Any]
    """What Inspect's provider made of them, before any handle was called: what is put round a call
    afterwards is of one handle.
    """
    lock: anyio.Lock
    source: str
    """Hub name or folder that they were loaded from."""

    @cached_property
    def revision(self) -> str:
        """Commit or fingerprint, as a probe's card has it; "" where there is none."""
        commit = getattr(self.weights.config, "_commit_hash", None)
        if commit:
            return str(commit)
        try:
            return fingerprint(Path(self.source))
        except (OSError, ValueError):
            return ""


_shared_weights: dict[str, SharedWeights] = {}


class SteeredAPI(HuggingFaceAPI):
    """A model of transformers whose residual stream is steered while it generates."""

    def __init__(
        self,
        model_name: str,
        base_url: str | None = None,
        api_key: str | None = None,
        config: GenerateConfig = GenerateConfig(),  # noqa: B008
        vector: str | None = None,
        dose: float | None = None,
        block: int | None = None,
        other_model: bool = False,
        **model_args: Any,
    ) -> None:
        _refuse_misspelt_settings(model_args)
        if vector is not None and dose is None:
            raise PrerequisiteError(
                f"vector={vector} without a dose adds nothing: give -M dose=.5 (0: the plain model)"
            )
        settings = {"vector": vector, "dose": 0.0 if dose is None else dose, "block": block}
        steering = Steering.read(settings, Steering())
        takes_other_model = _as_boolean("other_model", other_model)
        key = f"{model_name} {sorted(model_args.items())}"
        if key in _shared_weights:
            shared = _shared_weights[key]
            vars(self).update(shared.attributes)
            ModelAPI.__init__(self, model_name, base_url, api_key, [], config)
        else:
            try:
                source = weights_source(model_name)
            except (OSError, ValueError) as error:
                raise PrerequisiteError(f"steered/{model_name}: {error}") from error
            try:
                super().__init__(
                    model_name, base_url, api_key, config, model_path=source, **model_args
                )
            except (OSError, ValueError) as error:
                raise PrerequisiteError(str(model_not_loaded(model_name, error))) from error
            except TypeError as error:  # an argument that neither the provider nor the model takes
                raise PrerequisiteError(
                    f"steered/{model_name}: {one_line(error)}. Model arguments (-M) are "
                    f"{', '.join(MODEL_ARGUMENTS)}, and those of the hf provider"
                ) from error
            # `seeded_transformers` puts a wrapper in the place of `model` at the first call.
            attributes = dict(vars(self))
            shared = SharedWeights(self.model, attributes, anyio.Lock(), source)
            _shared_weights[key] = shared
        self.shared = shared
        self.weights = shared.weights
        self.has_dose = dose is not None
        self.steering = steering
        self.takes_other_model = takes_other_model
        self._vectors: dict[tuple[str | None, int | None], tuple[int, Tensor]] = {}
        self._with_block(self.steering)

    @property
    def resolved_arguments(self) -> dict[str, Any]:
        """Model arguments for the log's header, with the values that defaults stand for."""
        steering = self._with_block(self.steering)
        return {name: value for name, value in asdict(steering).items() if value is not None}

    def _with_block(self, steering: Steering) -> Steering:
        """The setting with the block that a default stands for; vector and block are read at any
        dose, so that a log names none that does not exist.
        """
        if steering.vector is None:
            if steering.block is not None:
                self._check_block(steering.block)
            return steering
        block, _ = self._block_and_vector(steering)
        return replace(steering, block=block)

    @override
    def close(self) -> None:
        """The weights stay for other handles."""

    @override
    def max_connections(self) -> int:
        return 1

    @override
    async def generate(
        self,
        input: list[ChatMessage],
        tools: list[ToolInfo],
        tool_choice: ToolChoice,
        config: GenerateConfig,
    ) -> ModelOutput:
        call_settings = dict(config.extra_body or {}).get("steer") or {}
        if not call_settings and not self.has_dose:
            warn_once(
                f"steered/{self.model_name} has no vector, so it answers as the plain model: give "
                "-M vector=concept:WORD -M dose=.5, or -M dose=0 where the plain model is meant"
            )
        steering = self._with_block(Steering.read(call_settings, self.steering))
        is_greedy = config.temperature == 0
        if is_greedy:
            config = config.model_copy(update={"temperature": None})
        async with self.shared.lock:
            do_sample_before = self.do_sample
            self.do_sample = do_sample_before and not is_greedy
            try:
                with self._steered(steering):
                    output: ModelOutput = await super().generate(input, tools, tool_choice, config)
            finally:
                self.do_sample = do_sample_before
        output.metadata = {**(output.metadata or {}), "steer": asdict(steering)}
        return output

    @contextmanager
    def _steered(self, steering: Steering) -> Iterator[None]:
        """A block in which the vector is added to what the block returns."""
        if not steering.dose:
            yield
            return
        block, vector = self._block_and_vector(steering)
        prompt_length = 0.0

        def add_vector(_module: Any, _inputs: Any, output: Any) -> Any:
            nonlocal prompt_length
            states = hidden_of(output)
            is_prompt = states.shape[1] > 1
            if is_prompt:
                prompt_length = float(states[:, 1:].float().norm(dim=-1).mean())
            addition = (steering.dose * prompt_length * vector).to(states.device, states.dtype)
            steered = states + addition
            if is_prompt:
                steered[:, 0] = states[:, 0]
            return with_hidden(output, steered)

        handle = decoder_blocks(self.weights)[block].register_forward_hook(add_vector)
        try:
            yield
        finally:
            handle.remove()

    def _block_and_vector(self, steering: Steering) -> tuple[int, Tensor]:
        """Where a vector is added, and the vector at unit length.

        Raises:
            PrerequisiteError: It is no vector of this model.
        """
        key = (steering.vector, steering.block)
        if key not in self._vectors:
            self._vectors[key] = self._read_vector(steering)
        return self._vectors[key]

    def _read_vector(self, steering: Steering) -> tuple[int, Tensor]:
        block = steering.block
        assert steering.vector is not None
        kind, _, name = steering.vector.partition(":")
        probe = None
        if kind not in ("random", "concept"):
            try:
                probe_file = load_probe(Path(steering.vector))
            except (OSError, ValueError) as error:
                raise PrerequisiteError(f"vector: {error}") from error
            probe = probe_file.probe
            self._check_probe_model(steering.vector, probe_file.card)
            block = probe.layer if block is None else block
        if block is None:
            block = int(DEFAULT_DEPTH * len(decoder_blocks(self.weights)))
        self._check_block(block)
        width = int(self.weights.config.get_text_config().hidden_size)
        if kind == "random":
            values = torch.tensor(_random_values(name, width))
        elif kind == "concept":
            values = self._concept_values(name, block)
        else:
            assert probe is not None
            values = torch.tensor(np.asarray(probe.direction))
        if len(values) != width:
            raise PrerequisiteError(
                f"{steering.vector} has {len(values)} numbers, and the states of "
                f"{self.model_name} have {width}: take a vector of this model"
            )
        values = values.float()
        if not float(values.norm()) > 0:
            raise PrerequisiteError(f"{steering.vector} is 0 everywhere, which is no direction")
        return block, values / values.norm()

    def _check_block(self, block: int) -> None:
        block_count = len(decoder_blocks(self.weights))
        if not 0 <= block < block_count:
            raise PrerequisiteError(
                missing_block_text(self.model_name, block_count, f"block={block}")
            )

    def _check_probe_model(self, vector: str, card: Card) -> None:
        """Refuse the probe of another model, unless it is asked for; say that it is of another
        revision.
        """
        revision = self.shared.revision
        if card.revision == revision or self.takes_other_model:
            return
        if card.model == self.model_name:
            warn_once(
                f"{vector} was saved from {card.model} at revision {card.revision}, and this is "
                f"revision {revision or 'unknown'}: fit it again if the weights differ"
            )
            return
        origin = f"{card.model} ({card.revision})" if card.model else "arrays of no named model"
        raise PrerequisiteError(
            f"{vector} was saved from {origin}, not from {self.model_name} "
            f"({revision or 'revision unknown'}): a direction means nothing in another model's "
            "states. Fit one for this model; where both share their states, as a base and its "
            "instruct model may, add -M other_model=true"
        )

    def _concept_values(self, word: str, block: int) -> Tensor:
        """Direction of a word's states."""
        if not word.strip() or has_line_break(word):
            raise PrerequisiteError(
                f"a concept is a word or phrase on one line, as concept:ocean; got concept:{word!r}"
            )
        if not self.tokenizer.chat_template:
            raise PrerequisiteError(
                f"{self.model_name} has no chat template, in which concept:{word} would be asked "
                "about: take its instruct model, random:SEED or a probe file"
            )
        judge = LocalModel(self.weights, self.tokenizer, self.model_name, "")
        try:
            return concept_vector(AskedModel(judge, []), word, base_words(), block)
        except (ValueError, TemplateError) as error:
            raise PrerequisiteError(f"concept:{word}: {one_line(error)}") from error


def _random_values(seed: str, width: int) -> npt.NDArray[np.float64]:
    """Numbers of a random vector."""
    is_seed = seed.isascii() and seed.isdigit() and len(seed) <= LONGEST_SEED
    if not is_seed:
        raise PrerequisiteError(f"a random vector has a seed, as random:7; got random:{seed}")
    return np.random.default_rng(int(seed)).standard_normal(width)
