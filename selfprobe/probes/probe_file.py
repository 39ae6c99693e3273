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

from selfprobe.data.pairs import Label, Pair
from selfprobe.embed.weights import Progress, to_stderr
from selfprobe.probes.fit import FloatArray, Kind, Orders, Probe, held_out, parse_orientation
from selfprobe.probes.tokens import Chat, template_hash

if TYPE_CHECKING:
    from selfprobe.probes.model import LocalModel

FORMAT = "selfprobe-probe-1"
ON_HUB = "probe.safetensors"
"""Name of a probe's file on the Hugging Face hub."""
PROMPTS = "inside"
"""Value of a card's `settings` if the probe reads the last token of prompts, the other side of a
pair being 0.
"""
LARGEST = 100_000_000
"""Largest size in bytes of a probe's file that is fetched; a direction of 16,384 numbers has 64 kB.
"""
DTYPES = ("float32", "bfloat16", "float16")
ARRAYS = ("direction", "mean_plus", "mean_minus")
STRICT = ConfigDict(extra="forbid", strict=True)
T = TypeVar("T")


@dataclass(frozen=True)
class Plain:
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
    """Questions that the probe has seen, as `fit.questions` names them; all others are held out."""
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

    def __post_init__(self) -> None:
        dtype, *more = self.dtype.split("+")
        if self.dtype and (
            dtype not in DTYPES or not set(more) <= {"4bit", "8bit", "float32", "vllm"}
        ):
            raise ValueError(f"dtype must be float32, bfloat16 or float16, got {self.dtype!r}")

    @property
    def precision(self) -> dict[str, Any]:
        """Arguments `dtype` and `quantize` of `load_model`; ValueError where no model gave the
        states.
        """
        if not self.dtype:
            raise ValueError(
                "the probe was fitted to arrays, not to a model's harvest: no model can be read for it"
            )
        dtype, *more = self.dtype.split(
            "+"
        )  # "bfloat16+4bit", or "bfloat16+float32" of a wide residual stream
        return {
            "dtype": dtype,
            "quantize": next((bits for bits in more if bits.endswith("bit")), None),
        }

    @property
    def chat(self) -> Chat:
        """Content of the chat template besides the comparison."""
        return Chat(self.system, self.template_arguments)


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
    plain = {k: v for k, v in asdict(probe).items() if k not in ARRAYS}
    plain = {
        k: float(v) if isinstance(v, np.floating) else v for k, v in plain.items() if v == v
    }  # without NaN
    metadata = {"format": FORMAT, "probe": json.dumps(plain), "card": json.dumps(asdict(card))}
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_suffix(".part")
    save_file(arrays, part, metadata=metadata)
    part.replace(path)


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
            f"no probe file {path}: `selfprobe probe run` makes probes of pairs, `selfprobe awareness inside --save` "
            "one of prompts"
        )
    try:
        with safe_open(path, framework="numpy") as file:
            metadata: dict[str, Any] = file.metadata() or {}
            arrays: dict[str, FloatArray] = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
    except (SafetensorError, OSError, TypeError) as error:  # TypeError: a dtype that numpy lacks
        raise ValueError(
            f"{path} is no safetensors file ({error}); a probe is never read from a pickle"
        ) from error
    if metadata.get("format") != FORMAT or set(arrays) != set(ARRAYS):
        found = f"{metadata.get('format', 'none')} with {', '.join(sorted(arrays)) or 'nothing'}"
        raise ValueError(
            f"{path} is no probe file: expected format {FORMAT} with {', '.join(ARRAYS)}, got {found}"
        )
    _check_arrays(arrays, path)
    plain, card = _read(Plain, "probe", metadata, path), _read(Card, "card", metadata, path)
    fields: dict[str, Any] = {**asdict(plain), **arrays}
    loaded = ProbeFile(Probe(**fields), card)
    if revision is not None and revision != loaded.card.revision:
        raise ValueError(
            f"{path} was fitted to {loaded.card.model} ({loaded.card.revision}), not to this model ({revision}): "
            "a direction means nothing in another model's states. Fit a probe for this one"
        )
    if template is not None and template != loaded.card.template:
        raise ValueError(
            f"{path} was fitted under another chat template of {loaded.card.model}: fit it again"
        )
    return loaded


def _check_arrays(arrays: dict[str, FloatArray], path: Path) -> None:
    direction = arrays["direction"]
    for name, array in arrays.items():
        if (
            array.ndim != 1
            or not array.size
            or array.shape != direction.shape
            or array.dtype.kind != "f"
        ):
            told = ", ".join(f"{each} {a.dtype} {list(a.shape)}" for each, a in arrays.items())
            raise ValueError(
                f"{path} is no sound probe: expected three vectors of floats of one length, got {told}"
            )
        if not np.isfinite(array).all():
            raise ValueError(f"{path} is no sound probe: {name} is not finite (NaN or infinite)")
    if not direction.any():
        raise ValueError(f"{path} is no sound probe: its direction is all 0")


def _read(kind: type[T], name: str, metadata: dict[str, Any], path: Path) -> T:
    """The dataclass `kind` from the JSON in `metadata`, every field of its type."""
    if name not in metadata:
        raise ValueError(f"{path} is no sound probe: it has no {name} in its metadata")
    try:
        return TypeAdapter(kind).validate_json(metadata[name])
    except ValidationError as error:
        first = error.errors()[0]
        place = ".".join(map(str, (name, *first["loc"])))
        given = (
            ""
            if first["type"] in ("missing", "json_invalid")
            else f", got {str(first['input'])[:60]!r}"
        )
        raise ValueError(f"{path} is no sound probe: {place}: {first['msg']}{given}") from None


def fetched(repository: str, *, revision: str | None = None, token: str | None = None) -> Path:
    """The probe's file in `repository`, from the hub or its cache; ValueError where there is none,
    or a huge one.
    """
    import httpx
    from huggingface_hub import hf_hub_download
    from huggingface_hub.errors import HfHubHTTPError, HFValidationError

    try:
        size = (
            hf_hub_download(
                repository, ON_HUB, revision=revision, token=token, dry_run=True
            ).file_size
            or 0
        )
        if size > LARGEST:
            told = f"{size / 1e6:,.0f} MB; no probe has over {LARGEST / 1e6:.0f} MB"
            raise ValueError(f"{repository}: {ON_HUB} has {told}")
        return Path(hf_hub_download(repository, ON_HUB, revision=revision, token=token))
    except (HfHubHTTPError, HFValidationError, httpx.HTTPError, OSError) as error:
        why = str(error).strip().partition("\n")[0]
        raise ValueError(
            f"{repository}: no probe ({ON_HUB}) can be loaded from the hub ({why})"
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
    seen: bool
    """Whether the probe was trained on this question: such a pair does not count in a test."""
    reason: str = ""


def judge_pairs(
    file: ProbeFile,
    judge: "LocalModel",
    pairs: Sequence[Pair],
    *,
    cache: Path,
    progress: Progress = to_stderr,
) -> list[Judgement]:
    """Judgements of `pairs`, in their order; labels are not needed. States are kept in `cache`.

    The call raises ValueError where the probe belongs to another model or chat template.
    """
    card = file.card
    if card.settings == PROMPTS:
        raise ValueError(
            "the probe reads prompts, not pairs: give it to `selfprobe awareness inside --probe`"
        )
    if card.revision != judge.revision:
        raise ValueError(
            f"the probe was fitted to {card.model} ({card.revision}), not to {judge.name} ({judge.revision})"
        )
    shape = (judge.numbers[-1] + 1, judge.d_model)
    if file.probe.layer >= shape[0] or len(file.probe.direction) != shape[1]:
        raise ValueError(
            f"the probe reads block {file.probe.layer} of width {len(file.probe.direction)}, but {judge.name} has "
            f"blocks 0..{shape[0] - 1} of width {shape[1]}: its file is not what was fitted"
        )
    if card.template != template_hash(judge.tokenizer, judge.chat):
        raise ValueError(
            f"the probe was fitted under another chat template of {card.model}: fit it again"
        )
    from selfprobe.probes.evaluate import own_answers
    from selfprobe.probes.harvesting import harvest

    harvested = harvest(
        judge, pairs, cache, both_orders=file.probe.orders == "both", progress=progress
    )
    scores = file.probe.score(harvested.layer(file.probe.layer)) if harvested.pairs else np.empty(0)
    own = own_answers(harvested).mean(axis=1)
    by_id = {
        p.id: (float(s), float(o)) for p, s, o in zip(harvested.pairs, scores, own, strict=True)
    }
    found = []
    for pair, unseen in zip(pairs, held_out(card.train_groups, pairs), strict=True):
        if pair.id in by_id:
            preferred, value, reason = _verdict(by_id[pair.id][0])
            found.append(Judgement(pair, preferred, value, by_id[pair.id][1], not unseen, reason))
        else:
            reason = harvested.unscored[pair.id]
            found.append(Judgement(pair, None, None, None, not unseen, reason))
    return found


def _verdict(score: float) -> tuple[Label | None, float | None, str]:
    """Preferred text, score and reason, e.g. (1, .3, ""); a score of 0 or NaN prefers neither, for
    a reason.
    """
    if not math.isfinite(score):
        return None, None, f"score is not finite: {score}"
    if score == 0:
        return None, score, "no preference: the score is exactly 0"
    return (1 if score > 0 else 2), score, ""
