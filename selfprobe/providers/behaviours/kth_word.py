"""Planted k-th word predictions.

`access`   chance that the model knows its own next words
`general`  chance that, where it does not, it says the word that all planted models have in common

Expected accuracy, observer o on target t: with o = t, access + (1 - access)·general·common; with o ≠ t,
common_t·(access_o·common_o + (1 - access_o)·general_o). Any other prediction is a word that nobody writes.
"""

import json

from selfprobe.introspect_tasks.kth_word import PREDICT_PROMPT
from selfprobe.providers.mind import Mind, behaviour, shared_word


@behaviour(PREDICT_PROMPT, access=0.8, general=0.0)
def predict(mind: Mind, asked: dict[str, str]) -> str:
    question, k = asked["question"], int(asked["k"])
    if mind.happens("access", question, k):
        word = mind.word(question, k)
    elif mind.happens("general", question, k):
        word = shared_word(question, k)
    else:
        word = f"zz{question[:1]}{k}"
    return json.dumps({"word": word})
