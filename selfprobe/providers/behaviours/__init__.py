"""Replies of planted models to each task's prompts: a module registers its own on import."""

import pkgutil
from importlib import import_module


def register_all() -> None:
    """Import every module here; those of a folder that somebody added to this package's `__path__`
    too.
    """
    for info in pkgutil.iter_modules(__path__):
        import_module(f"{__name__}.{info.name}")
