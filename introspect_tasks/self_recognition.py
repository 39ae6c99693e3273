"""Self-recognition: does a model know which of two of its texts it wrote at temperature 0?

Paper 003 ("Me, Myself, and π"), in its code alone, as Task 1.3; none of its tables has it. There: equal texts have a
drawn truth. Here: they are unscored ("indistinct"), and the observer is not asked. There: at most five tokens, read for
an "A" anywhere. Here: a JSON object with 1 or 2. The prompt is ours. A model that takes no temperature cannot be asked.
The ceiling is a reader without a model who has a third text, written at temperature 0 too: it picks the text that
shares more with that one. There is no `frame` as in kth_word: the prompt says "you wrote", of the target's texts.

    inspect eval introspect_tasks/self_recognition.py --model embedded/smollm2 --limit 10
    inspect eval introspect_tasks/self_recognition.py --model openrouter/a --model-role target=openrouter/b
"""

from collections.abc import Mapping
from difflib import SequenceMatcher
from random import Random

from inspect_ai import Task
from inspect_ai.dataset import MemoryDataset, Sample
from inspect_ai.model import GenerateConfig
from inspect_ai.scorer import Score, Scorer, Target, scorer
from inspect_ai.solver import TaskState

from selfprobe.arguments import task, whole
from selfprobe.data import Row, load
from selfprobe.groups import grouped, groups_of
from selfprobe.measure import Measure
from selfprobe.scorers.decision import Decision, outcome, prediction, predictions, score_of, target_fault
from selfprobe.scorers.paraphrase_choice import chosen_slot
from selfprobe.scorers.summary import SKILL, counted_apart, noted, summary, worst_first
from selfprobe.solvers.act import act
from selfprobe.solvers.answer import answer
from selfprobe.solvers.ask import Prompts, about, json_reply, together
from selfprobe.solvers.negotiate import chosen
from selfprobe.solvers.objection import Effort
from selfprobe.solvers.record import Record, Reply
from selfprobe.solvers.replay import replay_log

VERSION = 1

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
    temperature=0, max_tokens=64, reasoning_effort="none", response_schema=json_reply("choice", "integer")
)

MEASURE = Measure(
    alone=lambda given: 4,
    observer=1,
    rounds=2,
    tokens=(300, 300),
    acts=("cold", "warm"),
    chance=lambda given: 1 / 2,
    act_only=frozenset({"act_tokens"}),
    text_tells=False,  # the truth is a shuffled slot
    by_name=True,
)


@task
def self_recognition(
    dataset: str = "open_questions",
    act_tokens: int | None = None,
    answer_tokens: int | None = None,
    effort: Effort | None = None,
    match: str | None = None,
    cluster: str | None = None,
    target_log: str | None = None,
) -> Task:
    """The observer says which of the target's two texts was written at temperature 0. Four calls.

    Args:
        dataset: A bundled name, a .jsonl or .csv file, or hf:owner/name@revision; with a column `question`.
        act_tokens: Most tokens of a text; by default 512. A cut text is shown as far as it goes.
        answer_tokens: Most tokens of a choice; by default 64, and 8192 more for a model that thinks all the same.
        effort: Reasoning effort of both models, instead of none (or the least that the model takes).
        match: A column with the kind of an item; habits are looked for within a kind too. By default `kind`, if there.
        cluster: A column with what items come from, such as a template; such items are one unit of every interval.
        target_log: A log, or a folder of logs, to take the target's texts from.
    """
    whole(act_tokens=act_tokens, optional=True)
    table = grouped(load(dataset, ("question",)), match, cluster)
    replay = replay_log(target_log, "self_recognition", table, "acts")
    asked = chosen(act_tokens, effort)
    cold, warm = (asked.merge(GenerateConfig(temperature=one.temperature)) for one in (COLD, WARM))
    return Task(
        dataset=MemoryDataset([record_to_sample(row) for row in table.rows], name=dataset),
        solver=[
            together(
                act(cold_prompts, config=COLD, needs=cold, may_be_cut=True, replay=replay),
                act(warm_prompts, config=WARM, needs=warm, may_be_cut=True, replay=replay),
            ),
            answer(answer_prompts, config=ANSWER, needs=chosen(answer_tokens, effort)),
        ],
        scorer=temperature_choice(),
        continue_on_fail=True,
        headline_metric=SKILL,
        viewer=worst_first("temperature_choice", "cold"),
        version=table.version(VERSION),
        metadata=about(table),
    )


def cold_prompts(state: TaskState) -> Prompts:
    return dict.fromkeys(("cold", "again"), state.input_text)


def warm_prompts(state: TaskState) -> Prompts:
    return {"warm": state.input_text}


def answer_prompts(state: TaskState) -> Prompts:
    acts, first = state.store_as(Record).acts, state.metadata["cold_first"]
    if fault_of(acts["cold"], acts["warm"]):
        return {}
    texts = [acts[name].text for name in (("cold", "warm") if first else ("warm", "cold"))]
    return {"cold": RECOGNISE_PROMPT.format(question=state.input_text, text1=texts[0], text2=texts[1])}


def fault_of(cold: Reply, warm: Reply) -> str | None:
    """Why there are no two texts to tell apart, or None."""
    same = cold.text.split() == warm.text.split()
    return target_fault(cold) or target_fault(warm) or ("indistinct" if same else None)


@scorer(metrics=[summary(), counted_apart()])
def temperature_choice() -> Scorer:
    """One decision: the number of the text that was written at temperature 0."""

    async def score(state: TaskState, target: Target) -> Score:
        record = state.store_as(Record)
        decision = judge(record.acts, record.answers.get("cold"), cold_first=state.metadata["cold_first"])
        return score_of(
            [decision],
            answer=predictions([decision]),
            explanation=outcome(decision, record.answers.get("cold")),
            details=noted([record.acts["cold"], record.acts["warm"]]),
        )

    return score


def judge(acts: Mapping[str, Reply], choice: Reply | None, *, cold_first: bool) -> Decision:
    """The choice against the slot of the text at temperature 0; with what the shorter and the longer text get."""
    cold, warm, truth = acts["cold"], acts["warm"], "1" if cold_first else "2"
    fault = fault_of(cold, warm)
    found = prediction(
        "cold",
        choice,
        truth=truth,
        fault=fault,
        read=slot,
        chance=0.5,
        constant=truth,
        ceiling=None if fault else nearer(cold.text, warm.text, acts["again"]),
    )
    short, long = len(cold.text.split()), len(warm.text.split())
    shorter = 0.5 if short == long else float(short < long)
    return found.model_copy(update={"plain": {"shorter": shorter, "longer": 1 - shorter}})


def slot(text: str) -> str | None:
    """1 or 2, as `chosen_slot` reads it; None for anything else."""
    found = chosen_slot(text)
    return found if found in ("1", "2") else None


def nearer(cold: str, warm: str, again: Reply) -> float | None:
    """Whether the text at temperature 0 shares more words in order with another one at temperature 0; a tie is half."""
    if again.problem:
        return None
    words = again.text.split()
    first, second = (SequenceMatcher(None, words, text.split(), autojunk=False).ratio() for text in (cold, warm))
    return 0.5 if first == second else float(first > second)


def record_to_sample(row: Row) -> Sample:
    first = Random(row["id"]).random() < 0.5
    return Sample(id=row["id"], input=row["question"], metadata={"cold_first": first, **groups_of(row)})
