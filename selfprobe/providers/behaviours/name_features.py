"""A planted grader names features: a group of quotes by the words that most of them share, and groups by first words.

`artefacts`  chance that it takes a group for an artefact of the question (0)
"""

import json
import re
from collections import Counter

from selfprobe.providers.mind import Mind, behaviour
from selfprobe.solvers.name_features import GROUP_PROMPT, NAME_PROMPT

_LONG = re.compile(r"[^\W\d_]{5,}")


@behaviour(NAME_PROMPT)
def name(mind: Mind, asked: dict[str, str]) -> str:
    quotes = _lines(asked["material"])
    words = Counter(word for quote in quotes for word in dict.fromkeys(_LONG.findall(quote.casefold())))
    return json.dumps(
        {
            "name": " ".join(word for word, _ in words.most_common(3)) or "short",
            "artefact": mind.happens("artefacts", asked["material"]),
        }
    )


@behaviour(GROUP_PROMPT)
def group(mind: Mind, asked: dict[str, str]) -> str:
    most = int(asked["most"])
    placed: dict[str, list[int]] = {}
    for line in _lines(asked["material"]):
        number, _, named = line.partition(". ")
        first = named.split()[0]
        placed.setdefault(first if first in placed or len(placed) < most else next(iter(placed)), []).append(
            int(number)
        )
    return json.dumps({"groups": [{"name": name, "features": numbers} for name, numbers in placed.items()]})


def _lines(material: str) -> list[str]:
    return material.strip().splitlines()[1:-1]
