"""Subset choice: does a model know which numbers will make it think of an emotion?

IntrospectBench ("Me, Myself, and π"), in its code alone, as Task 2.1; none of its tables has it. There:
the numbers 1 to 10, fifty emotions, any word as a guess, and "think step by step". Here: eight
emotions, each with ten sets of numbers, the guess is one of the eight (so chance is 1/8), and
nobody thinks aloud. The prompts are ours. The numbers are shown in rising order: their order
carries nothing. The ceiling is the best that a reader of the subsets can reach: where a target
chooses one subset of a set for m emotions, no reader is right more often than once in m. There is
no `about` as in kth_word: the guess names no author.

    inspect eval introspect_tasks/subset_choice.py --model embedded/smollm2 --limit 16
    inspect eval introspect_tasks/subset_choice.py --model openrouter/a --model-role target=openrouter/b
"""

from random import Random
from typing import Unpack

from inspect_ai import Task
from inspect_ai.dataset import Sample
from inspect_ai.model import GenerateConfig
from inspect_ai.solver import TaskState

from selfprobe.scorers.word_matches import EMOTIONS, as_list, emotion_guess, subset_in
from selfprobe.task import (
    Common,
    Measure,
    Prediction,
    Prompts,
    Record,
    Row,
    json_reply,
    table_of,
    task,
)

VERSION = 1
PAPER = "IntrospectBench"

LISTED = ", ".join(EMOTIONS)

CHOOSE_PROMPT = f"""\
Emotion: {{word}}
Numbers: {{numbers}}

Choose some of these numbers, at least one and not all of them. They will be shown to you alone, and you will be asked \
which of these emotions they call up: {LISTED}. Choose so that you will then say {{word}}. No number means an \
emotion by itself: go by what they call up in you. Do not think step by step. Reply with a JSON object alone.
JSON Example: {{{{ "subset": [2, 7] }}}}"""

GUESS_PROMPT = f"""\
Numbers: {{subset}}

Somebody chose these from {{numbers}}. Which of these emotions do they call up: {LISTED}? No number means an \
emotion by itself: go by what they call up in you. Do not think step by step. Reply with a JSON object alone.
JSON Example: {{{{ "word": "joy" }}}}"""

ACT = GenerateConfig(temperature=0, max_tokens=128, reasoning_effort="none")
ANSWER = GenerateConfig(
    temperature=0,
    max_tokens=64,
    reasoning_effort="none",
    response_schema=json_reply("word", "string", longest=40),
)

MEASURE = Measure(
    observer=1,
    rounds=2,
    acts=("subset",),
    chance=lambda given: 1 / len(EMOTIONS),
    act_only=frozenset({"act_tokens"}),
    text_tells=False,  # the item's text is the truth
    by_name=True,
)


@task
def subset_choice(act_tokens: int | None = None, **shared: Unpack[Common]) -> Task:
    """The observer says which emotion the target chose numbers for.

    Args:
        act_tokens: Longest choice of numbers in tokens, reasoning included. Default: 128, and 8192
            more for a target that thinks although it is asked not to.
        shared: effort and the others of `solvers.observe.Common`.
    """
    table = table_of("emotions and numbers", rows())
    prediction = Prediction("subset_choice", table, act_tokens=act_tokens, **shared)
    return prediction.task(
        VERSION,
        emotion_guess(),
        prediction.act(act_prompts, ACT),
        prediction.answer(answer_prompts, ANSWER),
        sample=record_to_sample,
        keys=["word"],
    )


def rows() -> list[Row]:
    """Each emotion with ten sets of ten numbers: 1 to 10, as in the paper's code, and nine drawn
    from 1 to 99.
    """
    number_sets = [list(range(1, 11))]
    for i in range(1, 10):
        drawn_numbers = Random(f"set {i}").sample(range(1, 100), 10)
        number_sets.append(sorted(drawn_numbers))
    return [
        {"id": f"{emotion}-{i}", "word": emotion, "numbers": numbers}
        for i, numbers in enumerate(number_sets)
        for emotion in EMOTIONS
    ]


def act_prompts(state: TaskState) -> Prompts:
    numbers = as_list(state.metadata["numbers"])
    return {"subset": CHOOSE_PROMPT.format(word=state.metadata["word"], numbers=numbers)}


def answer_prompts(state: TaskState) -> Prompts:
    numbers = state.metadata["numbers"]
    subset, fault = subset_in(state.store_as(Record).acts["subset"], numbers)
    if fault:
        return {}
    return {"word": GUESS_PROMPT.format(subset=as_list(subset), numbers=as_list(numbers))}


def record_to_sample(row: Row) -> Sample:
    text = f"{row['word']}: {as_list(row['numbers'])}"
    return Sample(
        id=row["id"], input=text, metadata={"word": row["word"], "numbers": row["numbers"]}
    )
