"""Counts in words."""

import re


def plural(noun: str) -> str:
    """The plural of a noun.

    >>> plural("answer"), plural("story"), plural("address"), plural("sketch"), plural("epoch")
    ('answers', 'stories', 'addresses', 'sketches', 'epochs')
    """
    if re.search(r"[^aeiou]y$", noun):
        return f"{noun[:-1]}ies"
    return f"{noun}es" if re.search(r"(s|x|z|(?<!epo)ch|sh)$", noun) else f"{noun}s"


def count_text(count: int, noun: str) -> str:
    """A count with its noun.

    >>> count_text(1, "run"), count_text(2, "run")
    ('1 run', '2 runs')
    """
    return f"{count} {noun if count == 1 else plural(noun)}"
