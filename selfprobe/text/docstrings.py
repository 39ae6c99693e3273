"""What a docstring says, without the line breaks that it has in its file."""

import re


def docstring_summary(docstring: str | None) -> str:
    """The first paragraph of a docstring, as one line."""
    first_paragraph = (docstring or "").strip().partition("\n\n")[0]
    return " ".join(first_paragraph.split())


def unwrapped_docstring(docstring: str) -> str:
    """A clean docstring whose paragraphs are one line each; indented lines stay as they are."""
    return re.sub(r"(?<=\S)\n(?=[^\s\-*|\d])", " ", docstring)
