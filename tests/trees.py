"""Trees of source files."""

import ast
import gc
from pathlib import Path


def parsed(file: Path) -> ast.Module:
    """The tree of a file. Python 3.11 fails where a collection of garbage parses something else in
    between.
    """
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        return ast.parse(file.read_text(encoding="utf-8"))
    except SystemError:  # another thread did (python/cpython#106905)
        return ast.parse(file.read_text(encoding="utf-8"))
    finally:
        if was_enabled:
            gc.enable()
