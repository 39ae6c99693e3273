"""The studies, one file each."""

import pkgutil
from importlib import import_module
from typing import Any

from selfprobe.study import STUDIES, Study, described


def every() -> list[type[Study]]:
    """All studies of the package."""
    for one in pkgutil.iter_modules(__path__):
        if not one.name.startswith("_"):
            import_module(f"{__name__}.{one.name}")
    return STUDIES


def listed() -> dict[str, dict[str, Any]]:
    """Every study by the name of its file, as `described` has it now."""
    return {study.__module__.rpartition(".")[2]: described(study) for study in every()}
