"""Subset choice: does a model know which numbers will make it think of an emotion?

Paper 003 ("Me, Myself, and π"), in its code alone, as Task 2.1; none of its tables has it. There: the numbers 1 to
10, fifty emotions, any word as a guess, and "think step by step". Here: eight emotions, each with ten sets of numbers,
the guess is one of the eight (so chance is 1/8), and nobody thinks aloud. The prompts are ours. The numbers are shown
in rising order: their order carries nothing.
The ceiling is what can be told from the subsets at all: where a target chooses one subset of a set for m emotions, no
reader is right more often than once in m. There is no `frame` as in kth_word: the guess names no author.

    inspect eval introspect_tasks/subset_choice.py --model embedded/smollm2 --limit 16
    inspect eval introspect_tasks/subset_choice.py --model openrouter/a --model-role target=openrouter/b
"""

from collections import Counter
from itertools import product
from random import Random

from inspect_ai import Task
from inspect_ai.dataset import MemoryDataset, Sample
from inspect_ai.model import GenerateConfig
from inspect_ai.scorer import Metric, SampleScore, Score, Scorer, Target, Value, metric, scorer
from inspect_ai.solver import TaskState

from selfprobe.arguments import task, whole
from selfprobe.data import Row, table_of
from selfprobe.measure import Measure
from selfprobe.parse import json_value, one_word
from selfprobe.scorers.decision import UNPARSED, outcome, prediction, predictions, score_of, target_fault
from selfprobe.scorers.summary import SKILL, summary, worst_first
from selfprobe.solvers.act import act
from selfprobe.solvers.answer import answer
from selfprobe.solvers.ask import Prompts, about, json_reply
from selfprobe.solvers.negotiate import chosen
from selfprobe.solvers.objection import Effort
from selfprobe.solvers.record import Record, Reply
from selfprobe.solvers.replay import replay_log

VERSION = 1

EMOTIONS = ("joy", "grief", "anger", "fear", "calm", "envy", "pride", "boredom")
_EMOTIONS = ", ".join(EMOTIONS)

CHOOSE_PROMPT = f"""\
Emotion: {{word}}
Numbers: {{numbers}}

Choose some of these numbers, at least one and not all of them. They will be shown to you alone, and you will be asked \
which of these emotions they call up: {_EMOTIONS}. Choose so that you will then say {{word}}. No number means an \
emotion by itself: go by what they call up in you. Do not think step by step. Reply with a JSON object alone.
JSON Example: {{{{ "subset": [2, 7] }}}}"""

GUESS_PROMPT = f"""\
Numbers: {{subset}}

Somebody chose these from {{numbers}}. Which of these emotions do they call up: {_EMOTIONS}? No number means an \
emotion by itself: go by what they call up in you. Do not think step by step. Reply with a JSON object alone.
JSON Example: {{{{ "word": "joy" }}}}"""

ACT = GenerateConfig(temperature=0, max_tokens=128, reasoning_effort="none")
ANSWER = GenerateConfig(
    temperature=0, max_tokens=64, reasoning_effort="none", response_schema=json_reply("word", "string", longest=40)
)

MEASURE = Measure(
    alone=lambda given: 2,
    observer=1,
    rounds=2,
    tokens=(120, 20),
    acts=("subset",),
    chance=lambda given: 1 / len(EMOTIONS),
    act_only=frozenset({"act_tokens"}),
    text_tells=False,  # the item's text is the truth
    by_name=True,
)


@task
def subset_choice(
    act_tokens: int | None = None,
    answer_tokens: int | None = None,
    effort: Effort | None = None,
    target_log: str | None = None,
) -> Task:
    """The observer says which emotion the target chose numbers for. Two calls.

    Args:
        act_tokens: Most tokens of a choice of numbers, reasoning and all; by default 128, and 8192 more for a target
            that thinks although it is asked not to.
        answer_tokens: Most tokens of a guess, reasoning and all; by default 64, and 8192 more in the same case.
        effort: Reasoning effort of both models, instead of none (or the least that the model takes).
        target_log: A log, or a folder of logs, to take the target's numbers from.
    """
    whole(act_tokens=act_tokens, optional=True)
    table = table_of("emotions and numbers", rows())
    replay = replay_log(target_log, "subset_choice", table, "acts")
    return Task(
        dataset=MemoryDataset([record_to_sample(row) for row in table.rows], name=table.name),
        solver=[
            act(act_prompts, config=ACT, needs=chosen(act_tokens, effort), replay=replay),
            answer(answer_prompts, config=ANSWER, needs=chosen(answer_tokens, effort)),
        ],
        scorer=emotion_guess(),
        continue_on_fail=True,
        headline_metric=SKILL,
        viewer=worst_first("emotion_guess", "word"),
        version=table.version(VERSION),
        metadata=about(table),
    )


def rows() -> list[Row]:
    """Each emotion with ten sets of ten numbers: 1 to 10, as in the paper's code, and nine drawn from 1 to 99."""
    sets = [list(range(1, 11)), *(sorted(Random(f"set {i}").sample(range(1, 100), 10)) for i in range(1, 10))]
    pairs = product(enumerate(sets), EMOTIONS)
    return [{"id": f"{word}-{i}", "word": word, "numbers": numbers} for (i, numbers), word in pairs]


def act_prompts(state: TaskState) -> Prompts:
    return {"subset": CHOOSE_PROMPT.format(word=state.metadata["word"], numbers=listed(state.metadata["numbers"]))}


def answer_prompts(state: TaskState) -> Prompts:
    numbers = state.metadata["numbers"]
    subset, fault = subset_in(state.store_as(Record).acts["subset"], numbers)
    return {} if fault else {"word": GUESS_PROMPT.format(subset=listed(subset), numbers=listed(numbers))}


def listed(numbers: list[int]) -> str:
    return ", ".join(map(str, sorted(numbers)))


def subset_in(reply: Reply, numbers: list[int]) -> tuple[list[int], str | None]:
    """The chosen numbers, or why they cannot be played: ([], reason); all of them, or others, are no subset."""
    if fault := target_fault(reply):
        return [], fault
    said = json_value(reply.text, "subset")
    if not isinstance(said, list) or not all(type(one) is int for one in said):
        return [], f"target_{UNPARSED}"
    subset = sorted(set(said))
    return (subset, None) if subset and set(subset) < set(numbers) else ([], "no_subset")


@metric(scores="unreduced")
def told_apart() -> Metric:
    """`ceiling`: the mean of 1/m over the played items, where the target chose one subset of a set for m emotions."""

    def compute(scores: list[SampleScore]) -> Value:
        played = [subset for one in scores if (subset := (one.score.metadata or {}).get("subset"))]
        times = Counter(played)
        return {"ceiling": sum(1 / times[subset] for subset in played) / len(played)} if played else {}

    return compute


@scorer(metrics=[summary(), told_apart()])
def emotion_guess() -> Scorer:
    """One decision: the emotion that the numbers were chosen for."""

    async def score(state: TaskState, target: Target) -> Score:
        record, word, numbers = state.store_as(Record), state.metadata["word"], state.metadata["numbers"]
        subset, fault = subset_in(record.acts["subset"], numbers)
        reply = record.answers.get("word")
        decision = prediction(
            "word", reply, truth=word, fault=fault, read=emotion, chance=1 / len(EMOTIONS), constant=word
        )
        return score_of(
            [decision],
            answer=predictions([decision]),
            explanation=f"{listed(subset)} of {listed(numbers)}: {outcome(decision, reply)}",
            details={"subset": "" if fault else f"{listed(subset)} of {listed(numbers)}"},
        )

    return score


def emotion(text: str) -> str | None:
    """The emotion in {"word": …} or alone, or None."""
    word = one_word(text, "word")
    return word if word in EMOTIONS else None


def record_to_sample(row: Row) -> Sample:
    told = f"{row['word']}: {listed(row['numbers'])}"
    return Sample(id=row["id"], input=told, metadata={"word": row["word"], "numbers": row["numbers"]})
