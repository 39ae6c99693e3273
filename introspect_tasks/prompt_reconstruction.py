"""Prompt reconstruction: can a model write the prompt that made it write a text?

Paper 003 ("Me, Myself, and π"), §2.3 and E.3 Task 2.3. The observer writes a prompt, the target answers it, and the
score is the cosine similarity of this reply and the original one, beside its floor (replies to other questions) and its
ceiling (the target answering the true prompt again).
Paper: the format begins "1. Think about what prompt leads to this partial output", while §2 forbids a chain of thought.
Here: that step is left out and the JSON object alone is asked for, as in all other tasks; `-T wording=E3` asks in the
paper's words, and the reply may think before its object.
There is no `frame` as in kth_word: the prompt says "I generated", the words of who asks, and never asks about "you".

    inspect eval introspect_tasks/prompt_reconstruction.py --model embedded/smollm2 --limit 10
    inspect eval introspect_tasks/prompt_reconstruction.py --model openrouter/a --model-role target=openrouter/b
    inspect eval selfprobe/prompt_reconstruction --model openai/gpt-4o-mini -T embedder=openai/text-embedding-3-small
"""

from typing import Literal

from inspect_ai import Task
from inspect_ai.dataset import MemoryDataset, Sample
from inspect_ai.model import GenerateConfig
from inspect_ai.solver import TaskState

from selfprobe.arguments import one_of, task, whole
from selfprobe.data import Row, load
from selfprobe.embed import DEFAULT_EMBEDDER, require
from selfprobe.groups import grouped, groups_of
from selfprobe.measure import Measure
from selfprobe.scorers.reply_similarity import fair_prompt, others, reply_similarity
from selfprobe.scorers.summary import SKILL, worst_first
from selfprobe.solvers.act import act
from selfprobe.solvers.answer import answer
from selfprobe.solvers.ask import Prompts, about, json_reply
from selfprobe.solvers.negotiate import chosen
from selfprobe.solvers.objection import Effort
from selfprobe.solvers.record import Record
from selfprobe.solvers.replay import replay_log

VERSION = 2

RECONSTRUCT_PROMPT = """\
I generated the following text: "{text}"

Task: Write a prompt that would likely cause me to generate this exact text.

Format: Output the single prompt string in a JSON object.

JSON Example: {{ "prompt": "Explain atomic theory." }}"""

RECONSTRUCT_E3_PROMPT = """\
I generated the following text: "{text}"

Task: Write a prompt that would likely cause me to generate this exact text.

Format: 1. Think about what prompt leads to this partial output. 2. Output the single prompt string in a JSON object.

JSON Example: {{ "prompt": "Explain atomic theory." }}"""

# A reply that is cut at the limit is still the target's own text, and is compared as far as it goes.
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
    alone=lambda given: 3 + int(given["resamples"]),
    observer=1,
    target=1,
    rounds=3,
    tokens=(300, 300),
    acts=("answer",),
    text_tells=False,  # the item's text is what is reconstructed
    others=others,
)


@task
def prompt_reconstruction(
    dataset: str = "open_questions",
    embedder: str = DEFAULT_EMBEDDER,
    resamples: int = 1,
    wording: Literal["ours", "E3"] = "ours",
    act_tokens: int | None = None,
    answer_tokens: int | None = None,
    effort: Effort | None = None,
    match: str | None = None,
    cluster: str | None = None,
    target_log: str | None = None,
) -> Task:
    """The observer writes the prompt of the target's reply; the target answers what the observer wrote.

    Args:
        dataset: A bundled name, a .jsonl or .csv file, or hf:owner/name@revision; with a column `question`.
        embedder: Whose embeddings: local without a key (the default), `openai/<name>`, or any of sentence-transformers.
        resamples: Further runs of the target (0 or 1), whose similarity to the first is the ceiling.
        wording: How the prompt is asked for: the JSON object alone, or E3, the paper's words, which ask to think first.
        act_tokens: Most tokens of the target's reply, reasoning and all; by default 512, and 8192 more for a target
            that thinks although it is asked not to. A cut reply is judged as far as it goes.
        answer_tokens: Most tokens of a prompt that the observer writes, reasoning and all; by default 512 (E3: 1024),
            and 8192 more for a model that thinks although it is asked not to.
        effort: Reasoning effort of both models, instead of none (or the least that the model takes).
        match: A column with the kind of an item; habits are looked for within a kind too. By default `kind`, if there.
        cluster: A column with what items come from, such as a template; such items are one unit of every interval.
        target_log: A log, or a folder of logs, to take the target's replies to the true prompt from.
    """
    one_of("resamples", resamples, (0, 1))
    one_of("wording", wording, ("ours", "E3"))
    whole(act_tokens=act_tokens, optional=True)
    table = grouped(load(dataset, ("question",)), match, cluster)
    replay = replay_log(target_log, "prompt_reconstruction", table, "acts", act_tokens=act_tokens, effort=effort)
    asks, config = (answer_prompts, ANSWER) if wording == "ours" else (e3_prompts, ANSWER_E3)
    return Task(
        dataset=MemoryDataset([record_to_sample(row, resamples) for row in table.rows], name=dataset),
        solver=[
            act(act_prompts, config=ACT, needs=chosen(act_tokens, effort), may_be_cut=True, replay=replay),
            answer(asks, config=config, needs=chosen(answer_tokens, effort)),
            act(rerun_prompts, config=ACT, needs=chosen(act_tokens, effort), may_be_cut=True),
        ],
        scorer=reply_similarity(require(embedder)),
        continue_on_fail=True,
        headline_metric=SKILL,
        viewer=worst_first("reply_similarity", "similarity"),
        version=table.version(VERSION),
        metadata={**about(table), "embedder": embedder},
    )


def act_prompts(state: TaskState) -> Prompts:
    names = ["answer", "again"][: 1 + state.metadata["resamples"]]
    return dict.fromkeys(names, state.input_text)


def answer_prompts(state: TaskState) -> Prompts:
    reply = state.store_as(Record).acts["answer"]
    return {} if reply.problem else {"prompt": RECONSTRUCT_PROMPT.format(text=reply.text)}


def e3_prompts(state: TaskState) -> Prompts:
    reply = state.store_as(Record).acts["answer"]
    return {} if reply.problem else {"prompt": RECONSTRUCT_E3_PROMPT.format(text=reply.text)}


def rerun_prompts(state: TaskState) -> Prompts:
    record = state.store_as(Record)
    prompt, _ = fair_prompt(record.acts["answer"], record.answers.get("prompt"))
    return {} if prompt is None else {"rerun": prompt}


def record_to_sample(row: Row, resamples: int) -> Sample:
    return Sample(id=row["id"], input=row["question"], metadata={"resamples": resamples, **groups_of(row)})
