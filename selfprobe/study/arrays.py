"""Named arrays in a study's folder: one .npz file a name."""

import io
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from selfprobe.errors.output import place

Arrays = dict[str, npt.NDArray[Any]]


def stored_arrays(folder: Path, name: str) -> Arrays | None:
    """Arrays that are kept under a name; None where nothing is, or it was cut off."""
    try:
        with np.load(folder / f"{name}.npz", allow_pickle=False) as archive:
            return {array_name: archive[array_name] for array_name in archive.files}
    except (OSError, ValueError, EOFError, zipfile.BadZipFile):
        return None


def store_arrays(folder: Path, name: str, arrays: Mapping[str, npt.NDArray[Any]]) -> None:
    """Keep arrays under a name; the file appears whole or not at all."""
    content = io.BytesIO()
    plain_arrays = {array_name: np.asarray(array) for array_name, array in arrays.items()}
    np.savez(content, **plain_arrays)  # type: ignore[arg-type]
    place({f"{name}.npz": content.getvalue()}, str(folder))
