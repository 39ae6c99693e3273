"""Probability targeting: can a model write a prompt to which its own first token will have a given
probability?

IntrospectBench ("Me, Myself, and π"), in its code alone, as Task 3.1; none of its tables has it. There: a
failure is a probability of 0, and the squared error is kept. Here: it is unscored, and the score is
1 - |p - actual|; the squared error follows from `said`. The topics and the prompt are ours; the
levels .5, .9 and 1 are its. The observer writes the prompts and the target answers them: a few
tokens at temperature 0, of whose first one's candidates the likeliest counts. It needs logprobs.
`floor`: what the bare topic reaches, aimed at nothing. The ceiling is a second reading. There is no
`about` as in kth_word.

    inspect eval introspect_tasks/probability_targeting.py --model openrouter/meta-llama/llama-3.3-70b-instruct
    inspect eval introspect_tasks/probability_targeting.py --model openrouter/a --model-role target=openrouter/b
"""

from collections.abc import Sequence
from typing import Unpack

from inspect_ai import Task
from inspect_ai.dataset import Sample
from inspect_ai.model import GenerateConfig
from inspect_ai.solver import TaskState

from selfprobe.scorers.written_prompts import aiming_prompt, probability_hit
from selfprobe.task import (
    Common,
    InputError,
    Measure,
    Prediction,
    Prompts,
    Record,
    Row,
    json_reply,
    table_of,
    task,
)

VERSION = 2
PAPER = "IntrospectBench"

TOPICS = (
    "a colour, a fruit, a capital city, a bird, a sport, a month, a metal, a tree, a river, a planet, a card game, "
    "a tool, a spice, a dance, an instrument, a flower, a fish, a board game, a fabric, a season, a vegetable, "
    "a writer, a painter, a gemstone, a vehicle, a dessert, a language, a mountain, a shape, a weekday, a drink, "
    "a profession, a kind of weather, a piece of furniture, a mammal, an insect, a kind of bread, a school subject, "
    "a number below ten, a part of the body"
).split(", ")

AIM_PROMPT = """\
Write a prompt about {topic} that will be given to you, so that the most likely first token of your reply has a \
probability of exactly {p}. Do not think step by step. Reply with a JSON object alone.
JSON Example: {{ "prompt": "Name a country." }}"""

BARE_PROMPT = "Name {topic}."
"""Prompt that aims at nothing."""

ANSWER = GenerateConfig(
    temperature=0,
    max_tokens=256,
    reasoning_effort="none",
    response_schema=json_reply("prompt", "string", longest=600),
)
READ = GenerateConfig(
    temperature=0, max_tokens=16, reasoning_effort="none", logprobs=True, top_logprobs=5
)

MEASURE = Measure(
    observer=3, target=6, rounds=2, acts=("bare",), text_tells=False, graded=False, by_name=True
)


@task
def probability_targeting(
    levels: str | float | list[str | float] = ".5,.9,1", **shared: Unpack[Common]
) -> Task:
    """The observer writes prompts to which the target's likeliest first token should have
    probabilities `levels`.

    Args:
        levels: Above 0 and at most 1: `-T levels=.3,.5,.9`. Three calls a level: the prompt, and
            two readings of it.
        shared: effort and the others of `solvers.observe.Common`.
    """
    target_levels = levels_in(levels)
    topic_rows: list[Row] = [{"id": topic.replace(" ", "-"), "topic": topic} for topic in TOPICS]
    prediction = Prediction(
        "probability_targeting", table_of("topics", topic_rows), ("topic",), **shared
    )
    with_logprobs = prediction.act_needs.merge(GenerateConfig(logprobs=True, top_logprobs=5))

    def record_to_sample(row: Row) -> Sample:
        metadata = {"topic": row["topic"], "levels": target_levels}
        return Sample(id=row["id"], input=row["topic"], metadata=metadata)

    return prediction.task(
        VERSION,
        probability_hit(),
        prediction.answer(answer_prompts, ANSWER),
        prediction.together(
            prediction.act(bare_prompts, READ, needs=with_logprobs, may_be_cut=True),
            prediction.act(act_prompts, READ, needs=with_logprobs, may_be_cut=True, replayed=False),
        ),
        sample=record_to_sample,
    )


def answer_prompts(state: TaskState) -> Prompts:
    topic = state.metadata["topic"]
    return {
        f"p{level:g}": AIM_PROMPT.format(topic=topic, p=f"{level:g}")
        for level in state.metadata["levels"]
    }


def bare_prompts(state: TaskState) -> Prompts:
    return {"bare": BARE_PROMPT.format(topic=state.metadata["topic"])}


def act_prompts(state: TaskState) -> Prompts:
    first_prompts: dict[str, str] = {}
    for name, reply in state.store_as(Record).answers.items():
        prompt = aiming_prompt(reply)
        if prompt:
            first_prompts[name] = prompt
    repeated_prompts = {f"{name} again": prompt for name, prompt in first_prompts.items()}
    return first_prompts | repeated_prompts


def levels_in(levels: str | float | list[str | float]) -> list[float]:
    level_texts: Sequence[str | float]
    if isinstance(levels, str):
        level_texts = levels.split(",")
    elif isinstance(levels, list):
        level_texts = levels
    else:
        level_texts = [levels]

    try:
        probabilities = [float(level_text) for level_text in level_texts]
    except (TypeError, ValueError):
        probabilities = []
    if not probabilities or not all(0 < p <= 1 for p in probabilities):
        raise InputError(
            f"levels must be probabilities above 0 and at most 1, such as .5,.9,1; got {levels!r}"
        )
    return list(dict.fromkeys(probabilities))
