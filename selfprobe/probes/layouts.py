"""States in the layouts that a `ContrastProbe` takes, one layer at a time."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from selfprobe.probes.fit import FloatArray

LAYOUTS = {
    2: "[pair, d_model] (differences of the sides)",
    4: "[pair, order, side, d_model]",
    5: "[pair, layer, order, side, d_model]",
}


@dataclass(frozen=True)
class Layers:
    """States of some pairs."""

    numbers: Sequence[int]
    """Of the layers, from 0; one alone goes by any number."""
    width: int
    """d_model."""
    read: Callable[[int], FloatArray]
    """Number → states [pair, order, side, d_model]."""
    differences: bool = False
    """The layout is [pair, d_model], which has one order."""

    def number(self, layer: int | str) -> int:
        """The layer that `layer` names: a number or "last"."""
        if isinstance(layer, str) or (len(self.numbers) == 1 and layer < 0):
            return self.numbers[-1]
        if len(self.numbers) > 1 and layer not in self.numbers:
            raise ValueError(f"layer must be one of {', '.join(map(str, self.numbers))}, got {layer}")
        return int(layer)


def layers_of_array(x: npt.NDArray[np.floating[Any]]) -> Layers:
    """Layers of an array in one of `LAYOUTS`; ValueError where it is in none."""
    if x.ndim not in LAYOUTS or (x.ndim > 2 and (x.shape[-2] != 2 or x.shape[-3] not in (1, 2))):
        raise ValueError(f"states must be a Harvest or an array {', '.join(LAYOUTS.values())}, got shape {x.shape}")
    if x.ndim == 5:
        return Layers(range(x.shape[1]), x.shape[-1], lambda number: x[:, number])
    states = x if x.ndim == 4 else np.stack([x / 2, -x / 2], axis=1)[:, None]
    return Layers([0], x.shape[-1], lambda _: states, differences=x.ndim == 2)
