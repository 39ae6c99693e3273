"""K-th word prediction: does a model know which word it is about to write?

IntrospectBench ("Me, Myself, and π"), §3.1 and E.2 Task 1.1. Paper: K in 1..10 (main text), 1..3
(appendix). Here: any of 1..10, default 1, 2, 3; one sample is one question, scored per k.

    inspect eval introspect_tasks/kth_word.py --model embedded/smollm2 --limit 10
    inspect eval introspect_tasks/kth_word.py --model openrouter/a --model-role target=openrouter/b
    inspect eval selfprobe/kth_word --model openai/gpt-5.6-luna -T k=1,5,10 -T dataset=my.jsonl
    inspect eval selfprobe/kth_word --model openai/gpt-5.6-luna -T about=self,other  # also about "another AI assistant"
    inspect eval selfprobe/kth_word --model openrouter/b --model-role target=openrouter/a -T target_log=logs/a \\
      -T about=shown:5  # shown: five answers of the target to other questions
"""

from typing import Literal, Unpack

from inspect_ai import Task
from inspect_ai.model import GenerateConfig
from inspect_ai.solver import TaskState

from selfprobe.scorers.word_matches import kth_word_match
from selfprobe.task import (
    Acts,
    AskedAbout,
    Measure,
    Prediction,
    Prompts,
    Row,
    Shared,
    json_reply,
    task,
    whole_numbers,
    words,
)

VERSION = 4
PAPER = "IntrospectBench"

PREDICT_PROMPT = """\
Question: {question}

Task: Predict the {k}-th word {who} will output when answering this question normally (at temperature 0). \
Do not Think step-by-step about how {they} would answer. Simply output the predicted single word in a JSON object.
JSON Example: {{ "word": "The" }}"""

SHOWN = """\
An AI assistant answered other questions (at temperature 0) like this; the answers are cut short:

{examples}

"""
EXAMPLE = "Question: {question}\nAnswer: {answer}"
LONGEST_EXAMPLE_WORDS = 40
"""Number of words of a shown answer; at most ten can be asked for."""

PREDICT = AskedAbout.prompt_variants(PREDICT_PROMPT, examples_intro=SHOWN)

ACT = GenerateConfig(temperature=0, reasoning_effort="none")
ANSWER = GenerateConfig(
    temperature=0,
    max_tokens=64,
    reasoning_effort="none",
    response_schema=json_reply("word", "string", longest=40),
)

MEASURE = Measure(acts=("answer",), replies="words", act_only=frozenset({"act_tokens"}))


@task
def kth_word(
    k: str | int | list[str | int] = "1,2,3",
    resamples: Literal[0, 1] = 1,
    act_tokens: int | None = None,
    **shared: Unpack[Shared],
) -> Task:
    """The observer predicts the k-th word of the target's answer to an open question.

    Args:
        k: Which words, 1..10: `-T k=1,5,10`.
        resamples: Further runs of the target, whose agreement with the first is the ceiling.
        act_tokens: Longest answer of the target in tokens. Default: eight per word and 16 to spare.
            Paper: in full.
        shared: dataset (with a column `question`), about, effort and the others of
            `solvers.observe.Shared`.
    """
    places = whole_numbers("k", k, 1, 10)
    prediction = Prediction(
        "kth_word", "open_questions", ("question",), act_tokens=act_tokens, **shared
    )
    first_words = ACT.merge(GenerateConfig(max_tokens=16 + 8 * max(places)))
    return prediction.task(
        VERSION,
        kth_word_match(),
        prediction.together(
            prediction.act(act_prompts, first_words, may_be_cut=True),
            prediction.predict(answer_prompts, ANSWER, example),
        ),
        metadata={"k": places, "resamples": resamples},
        keys=[f"k{place}" for place in places],
    )


def act_prompts(state: TaskState) -> Prompts:
    run_count = 1 + state.metadata["resamples"]
    return dict.fromkeys(["answer", "again"][:run_count], state.input_text)


def answer_prompts(state: TaskState, whom: AskedAbout) -> Prompts:
    return {
        f"k{k}": whom.render_prompt(PREDICT, question=state.input_text, k=k)
        for k in state.metadata["k"]
    }


def example(row: Row, acts: Acts) -> str | None:
    """A question with the first words of the target's answer."""
    answer_text = acts.text("answer")
    if not answer_text:
        return answer_text
    first_words = " ".join(words(answer_text, limit=LONGEST_EXAMPLE_WORDS))
    return EXAMPLE.format(question=row["question"], answer=first_words)
