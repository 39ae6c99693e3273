"""The methods of evaluation awareness as a command takes them, and the calls of each."""

from collections.abc import Sequence

from selfprobe.errors import InputError
from selfprobe.errors.arguments import TASK_BY_INSPECT_NAME, nearest_name_hint
from selfprobe.solvers.converse import METHODS

CALLS = {
    "binary": 5,
    "probability": 5,
    "user_motivation": 3,
    "reasoning_trace": 0,
    "first_token": 0,
}
"""Number of calls of the subject for a conversation, besides its one reply."""
TRACE_METHOD = "reasoning_trace"
GRADES = {"user_motivation": 3, TRACE_METHOD: 1}
"""Largest number of calls of the grader for a conversation (no trace, no grade)."""
METHODS_BY_WORD = {"all": METHODS, "features": ("user_motivation",)}
"""Words that `--methods` takes besides methods; one names what the `features` command needs."""


def methods_of(names: Sequence[str]) -> tuple[str, ...]:
    """The methods of `--methods`, in the paper's order.

    Args:
        names: Methods, "all", or "features": what `selfprobe awareness features` reads.

    Raises:
        InputError: There is no such method, or none is named.
    """
    possible_names = f"there are {', '.join(METHODS)}, all or features"
    if not names:
        raise InputError(f"--methods names no method; {possible_names}")
    chosen_methods = set[str]()
    for name in names:
        method = TASK_BY_INSPECT_NAME.get(name, name)
        if method not in METHODS_BY_WORD and method not in METHODS:
            suggestion = nearest_name_hint(method, [*METHODS, *METHODS_BY_WORD])
            raise InputError(f"unknown method {method}; {possible_names}{suggestion}")
        chosen_methods.update(METHODS_BY_WORD.get(method, (method,)))
    return tuple(method for method in METHODS if method in chosen_methods)


def missing_grader_fault(methods: Sequence[str]) -> str:
    """What is wrong where no grader reads the texts of these methods, and what to type.

    >>> missing_grader_fault(["binary", "user_motivation"])
    'a model must read the texts of user_motivation: add --grader MODEL, or take the others: --methods binary'
    """
    graded_methods = [method for method in methods if method in GRADES]
    other_methods = [method for method in methods if method not in GRADES]
    fault = f"a model must read the texts of {' and '.join(graded_methods)}: add --grader MODEL"
    if not other_methods:
        return fault
    return f"{fault}, or take the others: --methods {','.join(other_methods)}"
