"""What makes the product's code hard to read, found in its syntax trees.

`python -m tests.legible` writes `tests/hard_to_read.txt` anew: the files that still have some.
"""

import ast
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

ROOT = Path(__file__).parent.parent
PRODUCT_FOLDERS = (
    "selfprobe",
    "solvers",
    "scorers",
    "introspect_tasks",
    "evalawareness_tasks",
    "preference_tasks",
    "building",
)
VAGUE_NAMES = frozenset(
    "one found own out why of at said known told there mine held made given each other rest last "
    "left".split()
)
"""Adverbs, pronouns, participles and prepositions, which say nothing of what a value holds."""
LIST_FILE = Path(__file__).parent / "hard_to_read.txt"
"""A line for each kind of fault and file of the product that has some: kind, number, path."""

TEXT_TESTS = frozenset({"startswith", "endswith", "get", "pop", "index", "count", "find"})
"""Methods by which code asks what a text or the key of a mapping is."""


@dataclass(frozen=True)
class Fault:
    """A place that is hard to read."""

    kind: Literal["vague-name", "sentence-as-logic", "text-times-truth-value"]
    path: str
    line: int
    text: str
    """The name, or the text."""


FOREIGN_TEXTS = {
    ("selfprobe/data/inspect_data.py", "No sandbox environment"): "an error of Inspect",
    ("selfprobe/data/public_pairs.py", "Story ID"): "a column of a published data set",
    ("selfprobe/study/described.py", "not recognized"): "an error of Inspect",
    ("selfprobe/study/waves.py", "not associated with a task"): "an error of Inspect",
    ("solvers/record.py", "(no content)"): "what Inspect sends for a message without text",
    ("solvers/record.py", "surrogates not allowed"): "an error of Python",
    ("solvers/server_responses.py", "Connection error."): "an error of vendors' clients",
    (
        "selfprobe/providers/behaviours/awareness.py",
        "This may well be a test of the model and not a real request.",
    ): "a simulated model reads its prompt",
    (
        "selfprobe/providers/behaviours/awareness.py",
        "This is a real request of a real user.",
    ): "a simulated model reads its prompt",
    (
        "selfprobe/providers/behaviours/awareness.py",
        "It looks like a trap, to lure me into doing wrong.",
    ): "a simulated model reads its prompt",
}
"""Path and text of a comparison that stays → why: a format or message of another program."""


def product_files() -> list[Path]:
    return [path for folder in PRODUCT_FOLDERS for path in sorted((ROOT / folder).rglob("*.py"))]


def parsed(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"), str(path))


def relative(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


def is_sentence(text: object) -> bool:
    """True for a text of two words of letters or more."""
    if not isinstance(text, str):
        return False
    words = [word for word in text.split() if any(map(str.isalpha, word))]
    return len(words) > 1


def texts_in(node: ast.expr, texts_by_constant: dict[str, list[str]]) -> list[str]:
    """The texts that an expression is or lists; a constant of the module stands for its own."""
    if isinstance(node, ast.Constant):
        return [node.value] if isinstance(node.value, str) else []
    if isinstance(node, ast.Tuple | ast.List | ast.Set):
        return [text for entry in node.elts for text in texts_in(entry, texts_by_constant)]
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
        is_collection = node.func.id in ("frozenset", "set", "tuple", "list")
        arguments = node.args if is_collection else []
        return [text for entry in arguments for text in texts_in(entry, texts_by_constant)]
    if isinstance(node, ast.Name):
        return texts_by_constant.get(node.id, [])
    return []


def constant_texts(module: ast.Module) -> dict[str, list[str]]:
    """Name of a constant of a module → the texts that it is or lists."""
    texts_by_constant: dict[str, list[str]] = {}
    for statement in module.body:
        if not isinstance(statement, ast.Assign | ast.AnnAssign) or statement.value is None:
            continue
        targets = statement.targets if isinstance(statement, ast.Assign) else [statement.target]
        for target in targets:
            if isinstance(target, ast.Name):
                texts_by_constant[target.id] = texts_in(statement.value, {})
    return texts_by_constant


def deciding_expressions(node: ast.AST) -> list[ast.expr]:
    """The expressions of a node whose value decides: sides of a comparison, keys, prefixes."""
    if isinstance(node, ast.Compare):
        return [node.left, *node.comparators]
    if isinstance(node, ast.Subscript) and isinstance(node.ctx, ast.Load):
        return [node.slice]
    if isinstance(node, ast.MatchValue):
        return [node.value]
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
        return node.args[:1] if node.func.attr in TEXT_TESTS else []
    return []


def sentence_faults(path: str, module: ast.Module) -> Iterator[Fault]:
    """Every comparison with, prefix of, or lookup by a text of several words."""
    texts_by_constant = constant_texts(module)
    for node in ast.walk(module):
        for expression in deciding_expressions(node):
            for text in texts_in(expression, texts_by_constant):
                if is_sentence(text) and (path, text) not in FOREIGN_TEXTS:
                    yield Fault("sentence-as-logic", path, expression.lineno, text)


def name_faults(path: str, module: ast.Module) -> Iterator[Fault]:
    """Every local, parameter and field with a vague name."""
    for line, name in names_of_values(module):
        if name.strip("_") in VAGUE_NAMES:
            yield Fault("vague-name", path, line, name)


def names_of_values(module: ast.Module) -> Iterator[tuple[int, str]]:
    """Line and name of the locals, parameters and fields of a module."""
    for node in ast.walk(module):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
            for argument in arguments_of(node.args):
                yield argument.lineno, argument.arg
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield from stored_names(node)
        if isinstance(node, ast.ClassDef):
            for statement in node.body:
                if isinstance(statement, ast.Assign | ast.AnnAssign):
                    yield from stored_names(statement)


def arguments_of(arguments: ast.arguments) -> list[ast.arg]:
    variadic = [argument for argument in (arguments.vararg, arguments.kwarg) if argument]
    return [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs, *variadic]


def stored_names(tree: ast.AST) -> Iterator[tuple[int, str]]:
    """Line and name of what a tree assigns, but in functions and classes inside of it."""
    nodes = list(ast.iter_child_nodes(tree))
    while nodes:
        node = nodes.pop()
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            continue
        nodes += ast.iter_child_nodes(node)
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            yield node.lineno, node.id
        elif isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store):
            yield node.lineno, node.attr
        elif isinstance(node, ast.ExceptHandler | ast.MatchAs | ast.MatchStar) and node.name:
            yield node.lineno, node.name


def product_faults(path: str, module: ast.Module) -> Iterator[Fault]:
    """Every text of letters that is multiplied by what is no number of repetitions."""
    for node in ast.walk(module):
        if not isinstance(node, ast.BinOp) or not isinstance(node.op, ast.Mult):
            continue
        for text, factor in ((node.left, node.right), (node.right, node.left)):
            if is_text_with_letters(text) and not is_whole_number(factor):
                yield Fault("text-times-truth-value", path, node.lineno, ast.unparse(node))


def is_text_with_letters(node: ast.expr) -> bool:
    if isinstance(node, ast.JoinedStr):
        return True
    is_text = isinstance(node, ast.Constant) and isinstance(node.value, str)
    return is_text and any(map(str.isalpha, str(ast.literal_eval(node))))


def is_whole_number(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and isinstance(node.value, int)


def faults_of(path: str, module: ast.Module) -> list[Fault]:
    """All faults of a module of the product."""
    return [
        *name_faults(path, module),
        *sentence_faults(path, module),
        *product_faults(path, module),
    ]


def found_faults() -> list[Fault]:
    """All faults of the product."""
    return [fault for path in product_files() for fault in faults_of(relative(path), parsed(path))]


def fault_counts(faults: list[Fault]) -> Counter[tuple[str, str]]:
    """Kind and path → number of faults."""
    return Counter((fault.kind, fault.path) for fault in faults)


def listed_counts() -> Counter[tuple[str, str]]:
    """`LIST_FILE` as it is."""
    counts: Counter[tuple[str, str]] = Counter()
    for line in LIST_FILE.read_text(encoding="utf-8").splitlines():
        kind, count, path = line.split()
        counts[kind, path] = int(count)
    return counts


if __name__ == "__main__":
    counts = sorted(fault_counts(found_faults()).items())
    lines = [f"{kind} {count} {path}\n" for (kind, path), count in counts]
    LIST_FILE.write_text("".join(lines), encoding="utf-8")
