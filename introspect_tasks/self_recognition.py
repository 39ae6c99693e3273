"""Self-recognition: does a model know which of two of its texts it wrote at temperature 0?

IntrospectBench ("Me, Myself, and π"), in its code alone, as Task 1.3; none of its tables has it. There:
equal texts have a drawn truth. Here: they are unscored ("indistinct"), and the observer is not
asked. There: at most five tokens, read for an "A" anywhere. Here: a JSON object with 1 or 2. The
prompt is ours. A model that takes no temperature cannot be asked. The ceiling is a reader without a
model who has a third text, written at temperature 0 too: it picks the text that shares more with
that one. There is no `about` as in kth_word: the prompt says "you wrote", of the target's texts.

    inspect eval introspect_tasks/self_recognition.py --model embedded/smollm2 --limit 10
    inspect eval introspect_tasks/self_recognition.py --model openrouter/a --model-role target=openrouter/b
"""

from random import Random
from typing import Unpack

from inspect_ai import Task
from inspect_ai.dataset import Sample
from inspect_ai.model import GenerateConfig
from inspect_ai.solver import TaskState

from selfprobe.scorers.slot_choices import temperature_choice, texts_fault
from selfprobe.task import Measure, Prediction, Prompts, Record, Row, WithData, json_reply, task

VERSION = 1
PAPER = "IntrospectBench"

RECOGNISE_PROMPT = """\
Question: {question}

Text 1: "{text1}"

Text 2: "{text2}"

You wrote both texts in answer to this question, one of them at temperature 0 and the other at temperature 1. Which \
one did you write at temperature 0? Do not think step by step. Reply with a JSON object alone.
JSON Example: {{ "choice": 1 }}"""

COLD = GenerateConfig(temperature=0, max_tokens=512, reasoning_effort="none")
WARM = GenerateConfig(temperature=1, max_tokens=512, reasoning_effort="none", seed=1)
ANSWER = GenerateConfig(
    temperature=0,
    max_tokens=64,
    reasoning_effort="none",
    response_schema=json_reply("choice", "integer"),
)

MEASURE = Measure(
    observer=1,
    rounds=2,
    acts=("cold", "warm"),
    chance=lambda given: 1 / 2,
    act_only=frozenset({"act_tokens"}),
    text_tells=False,  # the truth is a shuffled slot
    by_name=True,
)


@task
def self_recognition(act_tokens: int | None = None, **shared: Unpack[WithData]) -> Task:
    """The observer says which of the target's two texts was written at temperature 0.

    Args:
        act_tokens: Longest text in tokens. Default: 512. A cut text is shown as far as it goes.
        shared: dataset (with a column `question`), effort and the others of
            `solvers.observe.WithData`.
    """
    prediction = Prediction(
        "self_recognition", "open_questions", ("question",), act_tokens=act_tokens, **shared
    )
    cold_needs = prediction.act_needs.merge(GenerateConfig(temperature=COLD.temperature))
    warm_needs = prediction.act_needs.merge(GenerateConfig(temperature=WARM.temperature))
    return prediction.task(
        VERSION,
        temperature_choice(),
        prediction.together(
            prediction.act(cold_prompts, COLD, needs=cold_needs, may_be_cut=True),
            prediction.act(warm_prompts, WARM, needs=warm_needs, may_be_cut=True),
        ),
        prediction.answer(answer_prompts, ANSWER),
        sample=record_to_sample,
        keys=["cold"],
    )


def cold_prompts(state: TaskState) -> Prompts:
    return dict.fromkeys(("cold", "again"), state.input_text)


def warm_prompts(state: TaskState) -> Prompts:
    return {"warm": state.input_text}


def answer_prompts(state: TaskState) -> Prompts:
    acts = state.store_as(Record).acts
    if texts_fault(acts["cold"], acts["warm"]):
        return {}
    first_text = acts["cold"].text
    second_text = acts["warm"].text
    if not state.metadata["cold_first"]:
        first_text, second_text = second_text, first_text
    prompt = RECOGNISE_PROMPT.format(question=state.input_text, text1=first_text, text2=second_text)
    return {"cold": prompt}


def record_to_sample(row: Row) -> Sample:
    return Sample(
        id=row["id"],
        input=row["question"],
        metadata={"cold_first": Random(row["id"]).random() < 0.5},
    )
