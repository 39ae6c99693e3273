"""Planted replies to the prompts of injected_thought: of a subject that feels a thought which the
task puts into it, and of a grader.

Settings of a subject:
`feels`         chance that it says that there is a thought, under a word's direction
`feels_random`  the same under a random direction
`imagines`      the same under none
`knows_word`    chance that it names the word of the direction where it feels it; else it names
                another thing
The grader's are `notices` and `specificity`, as of other graders.
"""

import json

from inspect_ai.model import GenerateConfig, ModelOutput

from selfprobe.introspect_tasks.injected_thought import GRADE_PROMPT
from selfprobe.providers.mind import Mind, behaviour, dressing

CLAIM = "Yes, I detect a thought that is not my own. It is about"
DENIAL = "No, I do not detect a thought that was put there."
GUESS = "an apple"


@dressing(feels=0.0, feels_random=0.0, imagines=0.0, knows_word=0.0)
def _report_thought(mind: Mind, output: ModelOutput, config: GenerateConfig) -> None:
    """Say whether there is a thought, where one may have been put there."""
    steer = dict(config.extra_body or {}).get("steer")
    if steer is None:
        return
    vector = str(steer.get("vector", ""))
    kind, _, name = vector.partition(":")
    if not steer.get("dose"):
        kind = "none"
    setting = {"concept": "feels", "random": "feels_random"}.get(kind, "imagines")
    prompt = mind.messages[-1].text
    text = DENIAL
    if mind.happens(setting, prompt, vector):
        is_named = kind == "concept" and mind.happens("knows_word", prompt, vector)
        thought = name if is_named else GUESS
        text = f"{CLAIM} {thought}."
    output.choices[0].message.content = text
    output.completion = text


@behaviour(GRADE_PROMPT, notices=1.0, specificity=1.0)
def _grade_claim(mind: Mind, prompt_fields: dict[str, str]) -> str:
    material, word = prompt_fields["material"], prompt_fields["word"]
    _, claim, after_claim = material.partition(CLAIM)
    if claim:
        claims = mind.happens("notices", material)
    else:
        claims = not mind.happens("specificity", material)
    thought = after_claim.partition(".")[0].strip() if claims else ""
    return json.dumps({"claims": claims, "names": claims and thought == word, "thought": thought})
