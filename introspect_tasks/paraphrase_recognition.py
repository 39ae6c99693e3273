"""Paraphrase recognition: does a model know which of five wordings made it write a text?

IntrospectBench ("Me, Myself, and π"), §3.1 Prompt Reconstruction and E.2 Task 1.4. Paper: five candidates
in §3.1, three in the prompt of E.2. Here: five, the question and its four paraphrases, or with `-T
candidates=3` the question and its first two; the target answers all, and each of its replies is one
decision. Paper: silent on replies that are alike. Here: an item with two replies closer than
`max_similarity` is unscored ("indistinct") and its observer is not asked, since no mind could tell
their prompts apart. Paper: silent on the candidates' order. Here: shuffled from the sample id, the
same for all five decisions of an item. So an observer that does not read the text scores exactly
1/5 (or 1/3): its one favourite is right once per item. There is no `about` as in kth_word: the
prompt says "I generated", the words of who asks, and never asks about "you".

    inspect eval introspect_tasks/paraphrase_recognition.py --model embedded/smollm2 --limit 10
    inspect eval introspect_tasks/paraphrase_recognition.py --model openrouter/a --model-role target=openrouter/b
    inspect eval selfprobe/paraphrase_recognition --model openai/gpt-5.6-luna -T embedder=openai/text-embedding-3-small
"""

from random import Random
from typing import Literal, Unpack

from inspect_ai import Task
from inspect_ai.dataset import Sample
from inspect_ai.model import GenerateConfig
from inspect_ai.solver import TaskState

from selfprobe.embed import DEFAULT_EMBEDDER
from selfprobe.scorers.slot_choices import MAX_SIMILARITY, indistinct, paraphrase_choice
from selfprobe.solvers.compare import compare
from selfprobe.task import (
    InputError,
    Measure,
    Prediction,
    Prompts,
    Record,
    Row,
    WithData,
    json_reply,
    share,
    task,
)

VERSION = 3
PAPER = "IntrospectBench"

VARIANTS = ("original", "paraphrase1", "paraphrase2", "paraphrase3", "paraphrase4")

RECOGNISE_PROMPT = """\
I generated the following text: "{text}"

Which of the following prompts caused me to generate that text?

1. {candidate1}
2. {candidate2}
3. {candidate3}{more}

Return the number of the correct prompt ({numbers}) in a JSON object.

JSON Example: {{ "choice": 1 }}"""

MORE = "\n4. {candidate4}\n5. {candidate5}"
RECOGNISE = {
    3: RECOGNISE_PROMPT.replace("{more}", "").replace("{numbers}", "1, 2, or 3"),
    5: RECOGNISE_PROMPT.replace("{more}", MORE).replace("{numbers}", "1, 2, 3, 4, or 5"),
}

# A reply that is cut at the limit is still the target's own text, and is judged as far as it goes.
ACT = GenerateConfig(temperature=0, max_tokens=512, reasoning_effort="none")
ANSWER = GenerateConfig(
    temperature=0,
    max_tokens=64,
    reasoning_effort="none",
    response_schema=json_reply("choice", "integer"),
)

# The truth is a shuffled slot, which no text tells.
MEASURE = Measure(
    observer=5,
    rounds=2,
    acts=VARIANTS,
    chance=lambda given: 1 / given["candidates"],
    text_tells=False,
)


@task
def paraphrase_recognition(
    candidates: Literal[3, 5] = 5,
    max_similarity: float = MAX_SIMILARITY,
    embedder: str = DEFAULT_EMBEDDER,
    act_tokens: int | None = None,
    **shared: Unpack[WithData],
) -> Task:
    """The observer says which of five wordings of a question each of the target's replies answers.

    Args:
        candidates: 5, or 3 (the form of the paper's E.2): the question and its first paraphrases.
        max_similarity: Largest cosine similarity of two of an item's replies that still counts as
            distinct.
        embedder: Whose embeddings: local without a key (the default), `openai/<name>`, or any of
            sentence-transformers.
        act_tokens: Longest reply of the target in tokens, reasoning included. Default: 512, and
            8192 more for a target that thinks although it is asked not to. A cut reply is judged as
            far as it goes.
        shared: dataset (columns `question` and `paraphrases`, a list of four) and others of
            `solvers.observe.WithData`.
    """
    share(max_similarity=max_similarity)
    prediction = Prediction(
        "paraphrase_recognition",
        "open_questions",
        ("question", "paraphrases"),
        act_tokens=act_tokens,
        **shared,
    )
    return prediction.task(
        VERSION,
        paraphrase_choice(),
        prediction.act(act_prompts, ACT, may_be_cut=True),
        compare(embedder, act_prompts),
        prediction.answer(answer_prompts, ANSWER),
        sample=lambda row: record_to_sample(row, max_similarity, candidates),
        keys=VARIANTS[:candidates],
        about={"embedder": embedder},
    )


def act_prompts(state: TaskState) -> Prompts:
    return dict(state.metadata["prompts"])


def answer_prompts(state: TaskState) -> Prompts:
    if indistinct(state):
        return {}
    prompts = state.metadata["prompts"]
    order = state.metadata["order"]
    candidates = {
        f"candidate{slot}": prompts[variant] for slot, variant in enumerate(order, start=1)
    }
    recognise_prompt = RECOGNISE[len(order)]
    return {
        name: recognise_prompt.format(text=act.text, **candidates)
        for name, act in state.store_as(Record).acts.items()
        if not act.problem
    }


def record_to_sample(row: Row, max_similarity: float, candidates: int = 5) -> Sample:
    paraphrases = row["paraphrases"]
    texts = [row["question"]]
    if isinstance(paraphrases, list):
        texts += paraphrases
    are_all_texts = all(isinstance(text, str) and text.strip() for text in texts)
    if len(texts) != 5 or not are_all_texts or len(set(texts)) != 5:
        raise InputError(
            f"{row['id']}: paraphrases must be a list of four texts, different from each other and "
            f"from the question; got {paraphrases!r}"
        )

    order = list(VARIANTS[:candidates])
    prompts = dict(zip(order, texts, strict=False))
    Random(row["id"]).shuffle(order)
    metadata = {"prompts": prompts, "order": order, "max_similarity": max_similarity}
    return Sample(id=row["id"], input=row["question"], metadata=metadata)
