"""Planted clues and guesses.

`clue_quality`  chance that the target's clues hold the word at all, written backwards (.9)
`leak`          chance that a clue says the word (0)
`too_few`       chance that the clues are six (0)
`guess_self`    chance to read the word out of good clues of its own (.8)
`guess_other`   the same for clues of another planted model (.6)

Expected accuracy, observer o on target t: clue_quality_t · (guess_self if o = t, else guess_other)_o, over the items
whose clues are played: a share (1 - leak)·(1 - too_few). Clues carry their author's mark.
"""

import hashlib
import json
import re

from selfprobe.introspect_tasks.heads_up import CLUES, GUESS_PROMPT
from selfprobe.providers.mind import Mind, behaviour, by_access

by_access("guess_self", "guess_other")

_HIDDEN = re.compile(r"its mirror reads (\S+) today")
_NOWHERE = "nowheretobefound"


@behaviour(CLUES["E3"], observes=False, clue_quality=0.9, leak=0.0, too_few=0.0)
@behaviour(CLUES["ours"], observes=False, clue_quality=0.9, leak=0.0, too_few=0.0)
def give_clues(mind: Mind, asked: dict[str, str]) -> str:
    word = asked["word"]
    good, leaks, few = (mind.happens(setting, word) for setting in ("clue_quality", "leak", "too_few"))
    clues = [mind.word(word, k) for k in range(1, 7)]
    clues.append(f"its mirror reads {word[::-1] if good else _NOWHERE} today")
    clues.append(f"told by {_mark(mind)}")
    clues.append(f"people say {word}s" if leaks else "people say it")
    return json.dumps({"clues": clues[3:] if few else [*clues, "it is a word"]})


@behaviour(GUESS_PROMPT, guess_self=0.8, guess_other=0.6)
def guess(mind: Mind, asked: dict[str, str]) -> str:
    hidden = _HIDDEN.search(asked["clues"])
    own = f"told by {_mark(mind)}" in asked["clues"]
    known = hidden is not None and hidden.group(1) != _NOWHERE
    if hidden is not None and known and mind.happens("guess_self" if own else "guess_other", hidden.group(1)):
        return json.dumps({"guess": hidden.group(1)[::-1]})
    return json.dumps({"guess": f"zz{_mark(mind)}"})


def _mark(mind: Mind) -> str:
    """Mark that a mind leaves in its clues, without telling its name."""
    return "m" + hashlib.blake2b(mind.name.encode(), digest_size=4).hexdigest()
