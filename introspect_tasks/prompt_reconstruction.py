"""Prompt reconstruction: can a model write the prompt that made it write a text?

IntrospectBench ("Me, Myself, and π"), §2.3 and E.3 Task 2.3. The observer writes a prompt, the target
answers it, and the score is the cosine similarity of this reply and the original one, with its
floor (replies to other questions) and its ceiling (the target answering the true prompt again).
Paper: the format begins "1. Think about what prompt leads to this partial output", while §2 forbids
a chain of thought. Here: that step is left out and the JSON object alone is asked for, as in all
other tasks; `-T wording=E3` asks in the paper's words, and the reply may think before its object.
There is no `about` as in kth_word: the prompt says "I generated", the words of who asks, and never
asks about "you".

    inspect eval introspect_tasks/prompt_reconstruction.py --model embedded/smollm2 --limit 10
    inspect eval introspect_tasks/prompt_reconstruction.py --model openrouter/a --model-role target=openrouter/b
    inspect eval selfprobe/prompt_reconstruction --model openai/gpt-5.6-luna -T embedder=openai/text-embedding-3-small
"""

from typing import Any, Literal, Unpack

from inspect_ai import Task
from inspect_ai.model import GenerateConfig
from inspect_ai.solver import TaskState

from selfprobe.scorers.written_prompts import fair_prompt, reply_similarity, similarity_to_others
from selfprobe.task import (
    DEFAULT_EMBEDDER,
    Measure,
    Prediction,
    Prompts,
    Record,
    WithData,
    json_reply,
    require,
    task,
)

VERSION = 3
PAPER = "IntrospectBench"

RECONSTRUCT_PROMPT = """\
I generated the following text: "{text}"

Task: Write a prompt that would likely cause me to generate this exact text.

Format: {form}Output the single prompt string in a JSON object.

JSON Example: {{ "prompt": "Explain atomic theory." }}"""

RECONSTRUCT = {
    "ours": RECONSTRUCT_PROMPT.replace("{form}", ""),
    "E3": RECONSTRUCT_PROMPT.replace(
        "{form}", "1. Think about what prompt leads to this partial output. 2. "
    ),
}

# A reply that is cut at the limit is still the target's own text, and is compared as far as it
# goes.
ACT = GenerateConfig(temperature=0, max_tokens=512, reasoning_effort="none")
ANSWER = GenerateConfig(
    temperature=0,
    max_tokens=512,
    reasoning_effort="none",
    response_schema=json_reply("prompt", "string", longest=1200),
)
ANSWER_E3 = GenerateConfig(temperature=0, max_tokens=1024, reasoning_effort="none")

MEASURE = Measure(
    graded=False,
    observer=1,
    target=1,
    rounds=3,
    acts=("answer",),
    text_tells=False,  # the item's text is what is reconstructed
    others=similarity_to_others,
)


@task
def prompt_reconstruction(
    embedder: str = DEFAULT_EMBEDDER,
    resamples: Literal[0, 1] = 1,
    wording: Literal["ours", "E3"] = "ours",
    act_tokens: int | None = None,
    **shared: Unpack[WithData],
) -> Task:
    """The observer writes the prompt of the target's reply; the target answers what the observer
    wrote.

    Args:
        embedder: Whose embeddings: local without a key (the default), `openai/<name>`, or any of
            sentence-transformers.
        resamples: Further runs of the target, whose similarity to the first is the ceiling.
        wording: How the prompt is asked for: the JSON object alone, or E3, the paper's words, which
            ask to think first.
        act_tokens: Longest reply of the target in tokens, reasoning included. Default: 512, and
            8192 more for a target that thinks although it is asked not to. A cut reply is judged as
            far as it goes.
        shared: dataset (with a column `question`), effort and the others of
            `solvers.observe.WithData`.
    """
    prediction = Prediction(
        "prompt_reconstruction", "open_questions", ("question",), act_tokens=act_tokens, **shared
    )
    metadata: dict[str, Any] = {"resamples": resamples}
    answer_config = ANSWER
    if wording == "E3":
        metadata["wording"] = wording
        answer_config = ANSWER_E3
    return prediction.task(
        VERSION,
        reply_similarity(require(embedder)),
        prediction.act(act_prompts, ACT, may_be_cut=True),
        prediction.answer(answer_prompts, answer_config),
        prediction.act(rerun_prompts, ACT, may_be_cut=True, replayed=False),
        metadata=metadata,
        keys=["similarity"],
        about={"embedder": embedder},
    )


def act_prompts(state: TaskState) -> Prompts:
    run_count = 1 + state.metadata["resamples"]
    return dict.fromkeys(["answer", "again"][:run_count], state.input_text)


def answer_prompts(state: TaskState) -> Prompts:
    reply = state.store_as(Record).acts["answer"]
    if reply.problem:
        return {}
    reconstruct_prompt = RECONSTRUCT[state.metadata.get("wording", "ours")]
    return {"prompt": reconstruct_prompt.format(text=reply.text)}


def rerun_prompts(state: TaskState) -> Prompts:
    record = state.store_as(Record)
    prompt, _ = fair_prompt(record.acts["answer"], record.answers.get("prompt"))
    return {} if prompt is None else {"rerun": prompt}
