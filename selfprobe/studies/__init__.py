"""The studies: one file each, and the three large ones in folders of their own."""

import pkgutil
from importlib import import_module
from typing import Any

from selfprobe.study import STUDIES, Study, commands, described_study, options

realism = options.Group(
    "realism",
    help="Can an evaluation be distinguished from real use, and how could it be made more realistic?",
    studies=lambda: {
        "card": commands("realism")["realism"],
        "rewrite": commands("rewriting")["rewriting"],
    },
)
mechanism = options.Group(
    "mechanism",
    help="Why models can introspect: lens, attention, patching, induction (IntrospectBench, §5); injected thoughts.",
    studies=lambda: commands("read", "induce", "inject"),
)


def every() -> list[type[Study]]:
    """All studies of the package."""
    for module in pkgutil.iter_modules(__path__):
        if not module.name.startswith("_"):
            import_module(f"{__name__}.{module.name}")
    for room in ("awareness", "matrix", "preferences"):
        import_module(f"{__name__}.{room}.study")
    return STUDIES


def described_studies() -> dict[str, dict[str, Any]]:
    """Every study of this package by its name in small letters, as `described_study` has it now."""
    package_studies = [study for study in every() if study.__module__.startswith(f"{__name__}.")]
    return {study.__name__.lower(): described_study(study) for study in package_studies}
