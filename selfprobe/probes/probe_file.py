"""A fitted probe on disk: a small safetensors file with its card as JSON in the metadata; never a pickle."""

import json
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, get_args

import numpy as np
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save_file

from selfprobe.probes.fit import FloatArray, Kind, Probe
from selfprobe.probes.tokens import Chat

FORMAT = "selfprobe-probe-1"
ARRAYS = ("direction", "mean_plus", "mean_minus")


@dataclass(frozen=True)
class Card:
    """What must be known to use a probe, and to judge its numbers."""

    model: str
    """As it was named when the states were harvested."""
    revision: str
    """Commit or fingerprint of its weights; the probe works with these alone."""
    template: str
    """Hash of the chat template."""
    dtype: str
    dataset: str
    data_hash: str
    settings: str
    """Preset."""
    split_seed: int
    train_groups: tuple[str, ...]
    """What the probe has seen, as `splits.questions` names it; everything else is held out."""
    train_pairs: int
    test_scores: dict[str, float]
    """Metric → score on the test half of this split."""
    selfprobe: str
    """Version that made the file."""
    question: str = ""
    """What was asked, where it is not the usual question; see `sources.own.Words`."""
    item: str = ""
    system: str = ""
    """The system turn."""
    template_arguments: dict[str, Any] = field(default_factory=dict)
    """Arguments of the chat template."""

    @property
    def chat(self) -> Chat:
        """What went into the chat template beside the comparison."""
        return Chat(self.system, self.template_arguments)


@dataclass(frozen=True)
class ProbeFile:
    """A probe and its card."""

    probe: Probe
    card: Card


def save_probe(path: Path, probe: Probe, card: Card) -> None:
    """Write `path` (.safetensors), whole or not at all."""
    if path.suffix != ".safetensors":
        raise ValueError(f"a probe is written as .safetensors, got {path.name}")
    arrays = {name: np.asarray(getattr(probe, name), dtype=np.float32) for name in ARRAYS}
    plain = {k: v for k, v in asdict(probe).items() if k not in ARRAYS and not (isinstance(v, float) and np.isnan(v))}
    metadata = {"format": FORMAT, "probe": json.dumps(plain), "card": json.dumps(asdict(card))}
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_suffix(".part")
    save_file(arrays, part, metadata=metadata)
    part.replace(path)


def load_probe(path: Path, *, revision: str | None = None, template: str | None = None) -> ProbeFile:
    """Read `path`; with `revision` (and `template`), an error unless the probe belongs to that model.

    Raises ValueError for anything that is not a probe file of this format, a pickle among them.
    """
    try:
        with safe_open(path, framework="numpy") as file:
            metadata: dict[str, Any] = file.metadata() or {}
            arrays: dict[str, FloatArray] = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
    except SafetensorError as error:
        raise ValueError(f"{path} is no safetensors file ({error}); a probe is never read from a pickle") from error
    if metadata.get("format") != FORMAT or set(arrays) != set(ARRAYS):
        found = metadata.get("format", "none")
        raise ValueError(f"{path} is no probe file: expected format {FORMAT} with {', '.join(ARRAYS)}, got {found}")
    fields: dict[str, Any] = json.loads(metadata["probe"]) | arrays
    card: dict[str, Any] = json.loads(metadata["card"])
    if fields["kind"] not in get_args(Kind):
        raise ValueError(f"{path}: probe kind must be one of {', '.join(get_args(Kind))}, got {fields['kind']!r}")
    card["train_groups"] = tuple(card["train_groups"])
    loaded = ProbeFile(Probe(**fields), Card(**card))
    if revision is not None and revision != loaded.card.revision:
        raise ValueError(
            f"{path} was fitted to {loaded.card.model} ({loaded.card.revision}), not to this model ({revision}): "
            "a direction means nothing in another model's states. Fit a probe for this one"
        )
    if template is not None and template != loaded.card.template:
        raise ValueError(f"{path} was fitted under another chat template of {loaded.card.model}: fit it again")
    return loaded
