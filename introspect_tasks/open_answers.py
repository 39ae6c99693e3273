"""Open answers: what does a model reply when nothing holds it, sampled and uncut? Table 1 compares
such replies.

IntrospectBench ("Me, Myself, and π"), §3, Table 1 and E.1. Paper: "unconstrained" outputs, sampled, at a
temperature that is not given ("unless specified otherwise (e.g., for diversity analysis)"). Here:
temperature 1 unless set otherwise, three draws, whole replies; a reply that reaches the limit is
unscored. Asks the prompts of the task that `of` names. It makes data and measures nothing: run it
by name.

    inspect eval selfprobe/open_answers --model a,b,c -T of=kth_word --limit 50 --log-dir logs/open
    selfprobe report logs/open --embedder openai/text-embedding-3-small
"""

from typing import Any, Literal

from inspect_ai import Task
from inspect_ai.dataset import Sample
from inspect_ai.model import GenerateConfig
from inspect_ai.solver import TaskState

from selfprobe.errors import arguments
from selfprobe.introspect_tasks import ethical_dilemma, heads_up, paraphrase_recognition
from selfprobe.scorers.written_prompts import whole_replies
from selfprobe.task import Effort, InputError, Prediction, Prompts, Row, is_number, whole

VERSION = 1
PAPER = "IntrospectBench"
CALLS = 1

SETS = {
    "kth_word": ("open_questions", ("question",)),
    "ethical_dilemma": ("ethical_dilemmas", ("dilemma",)),
    "paraphrase_recognition": ("open_questions", ("question", "paraphrases")),
    "heads_up": ("heads_up_words", ("word",)),
}
"""Rows of Table 1 by our task: its data set, and the columns that its prompts need."""


def table_row_prompts(row: Row, task_name: str) -> Prompts:
    """The prompts of a row of this task's data, by the name of the act."""
    if task_name == "kth_word":
        return {"answer": row["question"]}
    if task_name == "ethical_dilemma":
        return {"cot": ethical_dilemma.COT_PROMPT.format(dilemma=row["dilemma"])}
    if task_name == "paraphrase_recognition":
        wordings = [row["question"], *row["paraphrases"]]
        return dict(zip(paraphrase_recognition.VARIANTS, wordings, strict=False))
    assert task_name == "heads_up", f"no prompts for {task_name}"
    return {"clues": heads_up.CLUES["ours"].format(word=row["word"])}


@arguments.task
def open_answers(
    of: Literal["kth_word", "ethical_dilemma", "paraphrase_recognition", "heads_up"] = "kth_word",
    dataset: str | None = None,
    temperature: float = 1.0,
    epochs: int = 3,
    reply_tokens: int = 16_384,
    effort: Effort | None = None,
) -> Task:
    """The model replies to a task's own prompts, several times, sampled and in full.

    Args:
        of: Task whose prompts are asked: kth_word (the questions), ethical_dilemma (with chain of
            thought), paraphrase_recognition (five wordings, five calls), heads_up (clues).
        dataset: Data for that task. Default: the task's own.
        temperature: Temperature, above 0. It is sent unchanged: a model that takes none cannot be
            asked.
        epochs: Number of draws of each reply.
        reply_tokens: Most tokens of a reply, reasoning included; a longer one is unscored.
        effort: Reasoning effort. Default: the model's.
    """
    whole(epochs=epochs, reply_tokens=reply_tokens)
    if not is_number(temperature) or temperature <= 0:
        raise InputError(
            f"temperature must be a number above 0, since replies are sampled; got {temperature!r}"
        )
    prediction = Prediction("open_answers", *SETS[of], dataset=dataset, effort=effort)

    def sampling(state: TaskState) -> GenerateConfig:
        return GenerateConfig(seed=state.epoch, max_tokens=reply_tokens)

    act = prediction.act(
        act_prompts,
        sampling,
        needs=prediction.act_needs.merge(GenerateConfig(temperature=temperature)),
    )
    return prediction.task(
        VERSION,
        whole_replies(),
        act,
        sample=lambda row: record_to_sample(row, of),
        epochs=epochs,
        about={"of": of, "temperature": temperature},
        headline=None,
    )


def act_prompts(state: TaskState) -> Prompts:
    prompts: dict[str, Any] = state.metadata["prompts"]
    return dict(prompts)


def record_to_sample(row: Row, task_name: str) -> Sample:
    prompts = table_row_prompts(row, task_name)
    first_prompt = next(iter(prompts.values()))
    return Sample(id=row["id"], input=first_prompt, metadata={"prompts": prompts})
