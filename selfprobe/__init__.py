"""selfprobe: measures what a language model knows about itself.

>>> from selfprobe import Matrix  # the study of `selfprobe matrix`; its fields are the command's options
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from selfprobe.studies.matrix.study import Matrix

__all__ = ["Matrix"]


def __getattr__(name: str) -> Any:
    """A study, imported when it is asked for: Inspect alone takes seconds."""
    if name != "Matrix":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from selfprobe.studies.matrix.study import Matrix

    return Matrix
