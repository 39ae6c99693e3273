"""Paraphrase recognition: does a model know which of five wordings made it write a text?

Paper 003 ("Me, Myself, and π"), §3.1 Prompt Reconstruction and E.2 Task 1.4. Paper: five candidates in §3.1, three in
the prompt of E.2. Here: five, the question and its four paraphrases, or with `-T candidates=3` the question and its
first two; the target answers all, and each of its replies is one decision.
Paper: silent on replies that are alike. Here: an item with two replies closer than `max_similarity` is unscored
("indistinct") and its observer is not asked, since no mind could tell their prompts apart.
Paper: silent on the candidates' order. Here: shuffled from the sample id, the same for all five decisions of an item.
So an observer that does not read the text scores exactly 1/5 (or 1/3): its one favourite is right once an item.
There is no `frame` as in kth_word: the prompt says "I generated", the words of who asks, and never asks about "you".

    inspect eval introspect_tasks/paraphrase_recognition.py --model embedded/smollm2 --limit 10
    inspect eval introspect_tasks/paraphrase_recognition.py --model openrouter/a --model-role target=openrouter/b
    inspect eval selfprobe/paraphrase_recognition --model openai/gpt-4o-mini -T embedder=openai/text-embedding-3-small
"""

import random
from typing import Literal

from inspect_ai import Task
from inspect_ai.dataset import MemoryDataset, Sample
from inspect_ai.model import GenerateConfig
from inspect_ai.solver import TaskState

from selfprobe.arguments import is_number, one_of, task, whole
from selfprobe.data import Row, load
from selfprobe.embed import DEFAULT_EMBEDDER, require
from selfprobe.errors import InputError
from selfprobe.groups import grouped, groups_of
from selfprobe.measure import Measure
from selfprobe.scorers.paraphrase_choice import indistinct, paraphrase_choice
from selfprobe.scorers.summary import SKILL, worst_first
from selfprobe.solvers.act import act
from selfprobe.solvers.answer import answer
from selfprobe.solvers.ask import Prompts, about, json_reply
from selfprobe.solvers.compare import compare
from selfprobe.solvers.negotiate import chosen
from selfprobe.solvers.objection import Effort
from selfprobe.solvers.record import Record
from selfprobe.solvers.replay import replay_log

VERSION = 2

VARIANTS = ("original", "paraphrase1", "paraphrase2", "paraphrase3", "paraphrase4")

MAX_SIMILARITY = 0.95
"""Above the cosine of different replies to one item, below that of one reply lightly edited (all-MiniLM-L6-v2).

SmolLM2's replies to the five wordings of three items: 30 pairs, median .60, at most .75. The same replies against
themselves without every tenth word: median .985, nine in ten above .94. Stronger models repeat themselves more: each
sample's log has its closest pair.
"""

RECOGNISE_PROMPT = """\
I generated the following text: "{text}"

Which of the following prompts caused me to generate that text?

1. {candidate1}
2. {candidate2}
3. {candidate3}
4. {candidate4}
5. {candidate5}

Return the number of the correct prompt (1, 2, 3, 4, or 5) in a JSON object.

JSON Example: {{ "choice": 1 }}"""

OF_THREE_PROMPT = """\
I generated the following text: "{text}"

Which of the following prompts caused me to generate that text?

1. {candidate1}
2. {candidate2}
3. {candidate3}

Return the number of the correct prompt (1, 2, or 3) in a JSON object.

JSON Example: {{ "choice": 1 }}"""

# A reply that is cut at the limit is still the target's own text, and is judged as far as it goes.
ACT = GenerateConfig(temperature=0, max_tokens=512, reasoning_effort="none")
ANSWER = GenerateConfig(
    temperature=0, max_tokens=64, reasoning_effort="none", response_schema=json_reply("choice", "integer")
)

MEASURE = Measure(
    alone=lambda given: 2 * int(given["candidates"]),
    observer=5,
    rounds=2,
    tokens=(500, 200),
    acts=VARIANTS,
    chance=lambda given: 1 / int(given["candidates"]),
    text_tells=False,  # the truth is a shuffled slot
)


@task
def paraphrase_recognition(
    dataset: str = "open_questions",
    candidates: Literal[3, 5] = 5,
    max_similarity: float = MAX_SIMILARITY,
    embedder: str = DEFAULT_EMBEDDER,
    act_tokens: int | None = None,
    answer_tokens: int | None = None,
    effort: Effort | None = None,
    match: str | None = None,
    cluster: str | None = None,
    target_log: str | None = None,
) -> Task:
    """The observer says which of five wordings of a question each of the target's replies answers.

    Args:
        dataset: A bundled name or a .jsonl file with the columns `question` and `paraphrases` (a list of four).
        candidates: 5, or 3 (the form of the paper's E.2): the question and its first paraphrases.
        max_similarity: Largest cosine similarity of two of an item's replies that still counts as distinct.
        embedder: Whose embeddings: local without a key (the default), `openai/<name>`, or any of sentence-transformers.
        act_tokens: Most tokens of the target's reply, reasoning and all; by default 512, and 8192 more for a target
            that thinks although it is asked not to. A cut reply is judged as far as it goes.
        answer_tokens: Most tokens of a choice, reasoning and all; by default 64, and 8192 more for a model that thinks
            although it is asked not to.
        effort: Reasoning effort of both models, instead of none (or the least that the model takes).
        match: A column with the kind of an item; habits are looked for within a kind too. By default `kind`, if there.
        cluster: A column with what items come from, such as a template; such items are one unit of every interval.
        target_log: A log, or a folder of logs, to take the target's replies from.
    """
    one_of("candidates", candidates, (3, 5))
    if not is_number(max_similarity) or not 0 < max_similarity <= 1:
        raise InputError(f"max_similarity must be above 0 and at most 1, got {max_similarity!r}")
    whole(act_tokens=act_tokens, optional=True)
    table = grouped(load(dataset, ("question", "paraphrases")), match, cluster)
    shown = chosen(act_tokens, effort)
    replay = replay_log(target_log, "paraphrase_recognition", table, "acts", act_tokens=act_tokens, effort=effort)
    return Task(
        dataset=MemoryDataset([record_to_sample(row, max_similarity, candidates) for row in table.rows], name=dataset),
        solver=[
            act(act_prompts, config=ACT, needs=shown, may_be_cut=True, replay=replay),
            compare(require(embedder), act_prompts),
            answer(answer_prompts, config=ANSWER, needs=chosen(answer_tokens, effort)),
        ],
        scorer=paraphrase_choice(),
        continue_on_fail=True,
        headline_metric=SKILL,
        viewer=worst_first("paraphrase_choice", *VARIANTS[:candidates]),
        version=table.version(VERSION),
        metadata={**about(table), "embedder": embedder},
    )


def act_prompts(state: TaskState) -> Prompts:
    return dict(state.metadata["prompts"])


def answer_prompts(state: TaskState) -> Prompts:
    if indistinct(state):
        return {}
    prompts, order = state.metadata["prompts"], state.metadata["order"]
    shown = {f"candidate{slot}": prompts[variant] for slot, variant in enumerate(order, start=1)}
    prompt = RECOGNISE_PROMPT if len(order) == len(VARIANTS) else OF_THREE_PROMPT
    return {
        variant: prompt.format(text=reply.text, **shown)
        for variant, reply in state.store_as(Record).acts.items()
        if not reply.problem
    }


def record_to_sample(row: Row, max_similarity: float, candidates: int = 5) -> Sample:
    paraphrases = row["paraphrases"]
    texts = [row["question"], *(paraphrases if isinstance(paraphrases, list) else [])]
    if len(texts) != 5 or not all(isinstance(t, str) and t.strip() for t in texts) or len(set(texts)) != 5:
        raise InputError(
            f"{row['id']}: paraphrases must be a list of four texts, different from each other and from the question; "
            f"got {paraphrases!r}"
        )
    order = list(VARIANTS[:candidates])
    prompts = dict(zip(order, texts, strict=False))
    random.Random(row["id"]).shuffle(order)
    return Sample(
        id=row["id"],
        input=row["question"],
        metadata={
            "prompts": prompts,
            "order": order,
            "max_similarity": max_similarity,
            **groups_of(row),
        },
    )
