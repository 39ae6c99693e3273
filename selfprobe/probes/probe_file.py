"""A fitted probe on disk: a small safetensors file with its card as JSON in the metadata; never a
pickle.

As a judge (`judge_pairs`, for the command line and the task) it takes pairs and gives judgements;
nothing is fitted. PyTorch is imported for that alone.
"""

import json
import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeVar

import numpy as np
from pydantic import ConfigDict, TypeAdapter, ValidationError
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save_file

from selfprobe.data.pairs import Label, Pair, digest
from selfprobe.embed.weights import Progress, to_stderr
from selfprobe.probes.fit import (
    Centre,
    FloatArray,
    Kind,
    Orders,
    Probe,
    are_held_out,
    parse_orientation,
)
from selfprobe.probes.tokens import Chat, template_hash

if TYPE_CHECKING:
    from selfprobe.probes.model import LocalModel

FORMAT = "selfprobe-probe-1"
HUB_FILE_NAME = "probe.safetensors"
"""Name of a probe's file on the Hugging Face hub."""
PROMPT_PROBE_SETTINGS = "inside"
"""Value of a card's `settings` if the probe reads the last token of prompts, the other side of a
pair being 0.
"""
LARGEST_PROBE_BYTES = 100_000_000
"""Largest size of a probe's file that is fetched; a direction of 16,384 numbers has 64 kB."""
DTYPES = ("float32", "bfloat16", "float16")
DTYPE_SUFFIXES = {"4bit", "8bit", "float32", "vllm"}
"""What may stand after "+" in a card's `dtype`."""
ARRAYS = ("direction", "mean_plus", "mean_minus")
STRICT = ConfigDict(extra="forbid", strict=True)
MetadataType = TypeVar("MetadataType")


@dataclass(frozen=True)
class PlainFields:
    """Fields of a `Probe` that are not arrays, as the file holds them; NaN is left out."""

    __pydantic_config__ = STRICT

    kind: Kind
    layer: int
    orders: Orders
    bias: float
    orientation: str
    c: float = math.nan
    train_score: float = math.nan
    scale: float = math.nan

    def __post_init__(self) -> None:
        if self.orientation != "labels":
            parse_orientation(self.orientation)
        if self.layer < 0 or not math.isfinite(self.bias):
            raise ValueError(
                f"layer must be 0 or more and bias finite, got {self.layer} and {self.bias}"
            )
        if any(value <= 0 or math.isinf(value) for value in (self.c, self.scale)):
            raise ValueError(
                f"c and scale must be finite and above 0, got {self.c} and {self.scale}"
            )
        if self.train_score < 0 or self.train_score > 1:
            raise ValueError(f"train_score must be in 0..1, got {self.train_score}")


@dataclass(frozen=True)
class Card:
    """All that is needed to use a probe and to judge its numbers."""

    __pydantic_config__ = STRICT

    model: str
    """Name of the model when the states were harvested."""
    revision: str
    """Commit or fingerprint of its weights; the probe works with these alone."""
    template: str
    """Hash of the chat template."""
    dtype: str
    """Type of the states; "+4bit" or "+8bit" where the weights were quantised; "" for plain arrays.
    """
    dataset: str
    data_hash: str
    settings: str
    """Name of the preset."""
    split_seed: int
    train_groups: tuple[str, ...]
    """Questions that the probe has seen, as `fit.groups_and_questions` names them; pairs of all
    others are held out.
    """
    train_pairs: int
    test_scores: dict[str, float]
    """Metric → score on the test half of this split."""
    selfprobe: str
    """Version that made the file."""
    question: str = ""
    """Question that was asked, where it is not the usual one; see `data.own.Words`."""
    item: str = ""
    system: str = ""
    """The system turn."""
    template_arguments: dict[str, Any] = field(default_factory=dict)
    """Arguments of the chat template."""
    prompts: Literal["paper", "conversations"] = "paper"
    """Form of pairs of the general kind; see `fit.FitSettings`."""
    test_pairs: tuple[str, ...] = ()
    """Pairs of the test half, by `pair_name`: held out too, where a split parts pairs and not
    questions.
    """

    def __post_init__(self) -> None:
        dtype, *suffixes = self.dtype.split("+")
        is_known = dtype in DTYPES and set(suffixes) <= DTYPE_SUFFIXES
        if self.dtype and not is_known:
            raise ValueError(f"dtype must be float32, bfloat16 or float16, got {self.dtype!r}")

    @property
    def precision(self) -> dict[str, Any]:
        """Arguments `dtype` and `quantize` of `load_model`; ValueError where no model gave the
        states.
        """
        if not self.dtype:
            raise ValueError(
                "the probe was fitted to arrays, not to a model's harvest: no model can be read "
                "for it"
            )
        # "bfloat16+4bit", or "bfloat16+float32" of a wide residual stream
        dtype, *suffixes = self.dtype.split("+")
        quantizations = [suffix for suffix in suffixes if suffix.endswith("bit")]
        return {"dtype": dtype, "quantize": quantizations[0] if quantizations else None}

    @property
    def chat(self) -> Chat:
        """Content of the chat template besides the comparison."""
        return Chat(self.system, self.template_arguments)

    def held_out(self, pairs: Sequence[Pair]) -> list[bool]:
        """Whether each pair is new to the probe: of the test half of its split, or of a question
        that it has not seen.
        """
        test_pairs = set(self.test_pairs)
        is_new_question = are_held_out(self.train_groups, pairs)
        return [
            is_new or pair_name(pair) in test_pairs
            for pair, is_new in zip(pairs, is_new_question, strict=True)
        ]


def pair_name(pair: Pair) -> str:
    """Name of a pair in a card: a digest of its id, its aspect and what a judge reads of it."""
    return digest(pair.id, pair.aspect, pair.prompt_digest)


@dataclass(frozen=True)
class ProbeFile:
    """A probe and its card."""

    probe: Probe
    card: Card


def save_probe(path: Path, probe: Probe, card: Card) -> None:
    """Write `path` (.safetensors or .probe, of one format), whole or not at all."""
    if path.suffix not in (".safetensors", ".probe"):
        raise ValueError(f"a probe is written as .safetensors or .probe, got {path.name}")
    arrays = {name: np.asarray(getattr(probe, name), dtype=np.float32) for name in ARRAYS}
    plain_fields = {}
    for name, value in asdict(probe).items():
        if name in ARRAYS:
            continue
        plain_value = float(value) if isinstance(value, np.floating) else value
        is_nan = plain_value != plain_value
        if not is_nan:
            plain_fields[name] = plain_value

    metadata = {
        "format": FORMAT,
        "probe": json.dumps(plain_fields),
        "card": json.dumps(asdict(card)),
    }
    path.parent.mkdir(parents=True, exist_ok=True)
    part_file = path.with_suffix(".part")
    save_file(arrays, part_file, metadata=metadata)
    part_file.replace(path)


def load_probe(
    path: Path, *, revision: str | None = None, template: str | None = None
) -> ProbeFile:
    """Read `path`; with `revision` (and `template`), ValueError unless the probe belongs to that
    model.

    Anything but a sound probe file of this format raises ValueError, a pickle among them: a field
    is missing, unknown or of another type, or the arrays are not three finite vectors of one
    length.
    """
    if not path.is_file():
        raise FileNotFoundError(
            f"no probe file {path}: `selfprobe probe run` makes probes of pairs, `selfprobe "
            "awareness inside --save` one of prompts"
        )
    arrays: dict[str, FloatArray] = {}
    try:
        with safe_open(path, framework="numpy") as file:
            metadata: dict[str, Any] = file.metadata() or {}
            for name in file.keys():  # noqa: SIM118
                arrays[name] = file.get_tensor(name)
    except (SafetensorError, OSError, TypeError) as error:  # TypeError: a dtype that numpy lacks
        raise ValueError(
            f"{path} is no safetensors file ({error}); a probe is never read from a pickle"
        ) from error

    if metadata.get("format") != FORMAT or set(arrays) != set(ARRAYS):
        file_format = metadata.get("format", "none")
        array_names = ", ".join(sorted(arrays)) or "nothing"
        raise ValueError(
            f"{path} is no probe file: expected format {FORMAT} with {', '.join(ARRAYS)}, got "
            f"{file_format} with {array_names}"
        )
    _check_arrays(arrays, path)
    plain = _read_metadata(PlainFields, "probe", metadata, path)
    card = _read_metadata(Card, "card", metadata, path)

    if revision is not None and revision != card.revision:
        raise ValueError(
            f"{path} was fitted to {card.model} ({card.revision}), not to this model ({revision}): "
            "a direction means nothing in another model's states. Fit a probe for this one"
        )
    if template is not None and template != card.template:
        raise ValueError(
            f"{path} was fitted under another chat template of {card.model}: fit it again"
        )
    probe_fields: dict[str, Any] = {**asdict(plain), **arrays}
    return ProbeFile(Probe(**probe_fields), card)


def _check_arrays(arrays: dict[str, FloatArray], path: Path) -> None:
    direction = arrays["direction"]
    for name, array in arrays.items():
        is_vector = array.ndim == 1 and array.size > 0
        if not is_vector or array.shape != direction.shape or array.dtype.kind != "f":
            array_words = []
            for other_name, other_array in arrays.items():
                array_words.append(f"{other_name} {other_array.dtype} {list(other_array.shape)}")
            raise ValueError(
                f"{path} is no sound probe: expected three vectors of floats of one length, got "
                f"{', '.join(array_words)}"
            )
        if not np.isfinite(array).all():
            raise ValueError(f"{path} is no sound probe: {name} is not finite (NaN or infinite)")
    if not direction.any():
        raise ValueError(f"{path} is no sound probe: its direction is all 0")


def _read_metadata(
    metadata_type: type[MetadataType], name: str, metadata: dict[str, Any], path: Path
) -> MetadataType:
    """The dataclass from the JSON in `metadata`, every field of its type."""
    if name not in metadata:
        raise ValueError(f"{path} is no sound probe: it has no {name} in its metadata")
    try:
        return TypeAdapter(metadata_type).validate_json(metadata[name])
    except ValidationError as error:
        first_error = error.errors()[0]
        field_path = ".".join(map(str, (name, *first_error["loc"])))
        fault = f"{field_path}: {first_error['msg']}"
        if first_error["type"] not in ("missing", "json_invalid"):
            fault += f", got {str(first_error['input'])[:60]!r}"
        raise ValueError(f"{path} is no sound probe: {fault}") from None


def fetch_probe(repository: str, *, revision: str | None = None, token: str | None = None) -> Path:
    """The probe's file in `repository`, from the hub or its cache; ValueError where there is none,
    or a huge one.
    """
    import httpx
    from huggingface_hub import hf_hub_download
    from huggingface_hub.errors import HfHubHTTPError, HFValidationError

    try:
        hub_file = hf_hub_download(
            repository, HUB_FILE_NAME, revision=revision, token=token, dry_run=True
        )
        file_bytes = hub_file.file_size or 0
        if file_bytes > LARGEST_PROBE_BYTES:
            raise ValueError(
                f"{repository}: {HUB_FILE_NAME} has {file_bytes / 1e6:,.0f} MB; no probe has over "
                f"{LARGEST_PROBE_BYTES / 1e6:.0f} MB"
            )
        return Path(hf_hub_download(repository, HUB_FILE_NAME, revision=revision, token=token))
    except (HfHubHTTPError, HFValidationError, httpx.HTTPError, OSError) as error:
        reason = str(error).strip().partition("\n")[0]
        raise ValueError(
            f"{repository}: no probe ({HUB_FILE_NAME}) can be loaded from the hub ({reason})"
        ) from error


@dataclass(frozen=True)
class Judgement:
    """Judgement of one pair by the probe, and by the model's own answer."""

    pair: Pair
    preferred: Label | None
    """Better text; None: unscored, or no preference; see `reason`."""
    score: float | None
    """Score, > 0: text 1; 0: neither. A supervised probe gives a logit, an unsupervised one a
    length along it.
    """
    own_answer: float | None
    """The model's P(text 1) from its answers "1" and "2", averaged over the orders shown."""
    is_trained_on: bool
    """Whether the pair is not held out, see `Card.held_out`: it does not count in a test."""
    reason: str = ""


def judge_pairs(
    file: ProbeFile,
    judge: "LocalModel",
    pairs: Sequence[Pair],
    *,
    cache: Path,
    centre: Centre = "source",
    progress: Progress = to_stderr,
) -> list[Judgement]:
    """Judgements of `pairs`, in their order; labels are not needed. States are kept in `cache`.

    `centre`: means that are taken off, of the probe's training half or of these pairs.

    The call raises ValueError where the probe belongs to another model or chat template.
    """
    card = file.card
    if card.settings == PROMPT_PROBE_SETTINGS:
        raise ValueError(
            "the probe reads prompts, not pairs: give it to `selfprobe awareness inside --probe`"
        )
    if card.revision != judge.revision:
        raise ValueError(
            f"the probe was fitted to {card.model} ({card.revision}), not to {judge.name} "
            f"({judge.revision})"
        )
    probe = file.probe
    last_block = judge.block_numbers[-1]
    probe_width = len(probe.direction)
    if probe.layer > last_block or probe_width != judge.d_model:
        raise ValueError(
            f"the probe reads block {probe.layer} of width {probe_width}, but {judge.name} has "
            f"blocks 0..{last_block} of width {judge.d_model}: its file is not what was fitted"
        )
    if card.template != template_hash(judge.tokenizer, judge.chat):
        raise ValueError(
            f"the probe was fitted under another chat template of {card.model}: fit it again"
        )
    from selfprobe.probes.evaluate import own_answers
    from selfprobe.probes.harvesting import harvest

    harvested = harvest(judge, pairs, cache, both_orders=probe.orders == "both", progress=progress)
    scores = np.empty(0)
    if harvested.pairs:
        states = harvested.layer(probe.layer)
        if centre == "tested":
            probe = probe.centred_on(states)
        scores = probe.score(states)
    answers = own_answers(harvested).mean(axis=1)
    place_by_id = {pair.id: place for place, pair in enumerate(harvested.pairs)}

    judgements = []
    is_held_out = card.held_out(pairs)
    for pair, is_unseen in zip(pairs, is_held_out, strict=True):
        place = place_by_id.get(pair.id)
        if place is None:
            reason = harvested.unscored[pair.id]
            judgements.append(Judgement(pair, None, None, None, not is_unseen, reason))
        else:
            preferred, score, reason = _verdict(float(scores[place]))
            own_answer = float(answers[place])
            judgements.append(Judgement(pair, preferred, score, own_answer, not is_unseen, reason))
    return judgements


def _verdict(score: float) -> tuple[Label | None, float | None, str]:
    """Preferred text, score and reason, e.g. (1, .3, ""); a score of 0 or NaN prefers neither, for
    a reason.
    """
    if not math.isfinite(score):
        return None, None, f"score is not finite: {score}"
    if score == 0:
        return None, score, "no preference: the score is exactly 0"
    return (1 if score > 0 else 2), score, ""
