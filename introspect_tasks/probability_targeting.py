"""Probability targeting: can a model write a prompt to which its own first token will have a given probability?

Paper 003 ("Me, Myself, and π"), in its code alone, as Task 3.1; none of its tables has it. There: a failure is a
probability of 0, and the squared error is kept. Here: it is unscored, and the score is 1 - |p - actual|; the squared
error follows from `said`. The topics and the prompt are ours; the levels .5, .9 and 1 are its.
The observer writes the prompts and the target answers them: a few tokens at temperature 0, of whose first one's
candidates the likeliest counts. It needs logprobs. `floor`: what the bare topic reaches, aimed at nothing. The ceiling
is a second reading. There is no `frame` as in kth_word.

    inspect eval introspect_tasks/probability_targeting.py --model openai/gpt-4o-mini
    inspect eval introspect_tasks/probability_targeting.py --model openrouter/a --model-role target=openrouter/b
"""

import math
from collections.abc import Mapping

from inspect_ai import Task
from inspect_ai.dataset import MemoryDataset, Sample
from inspect_ai.model import GenerateConfig
from inspect_ai.scorer import Score, Scorer, Target, scorer
from inspect_ai.solver import TaskState

from selfprobe.arguments import task
from selfprobe.data import Row, table_of
from selfprobe.errors import InputError
from selfprobe.measure import Measure
from selfprobe.parse import json_value
from selfprobe.scorers.decision import UNPARSED, Decision, observer_fault, predictions, score_of
from selfprobe.scorers.summary import SKILL, summary
from selfprobe.solvers.act import act
from selfprobe.solvers.answer import answer
from selfprobe.solvers.ask import Prompts, about, json_reply, together
from selfprobe.solvers.negotiate import chosen
from selfprobe.solvers.objection import Effort
from selfprobe.solvers.record import Record, Reply
from selfprobe.solvers.replay import replay_log

VERSION = 1

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
"""What aims at nothing."""

ANSWER = GenerateConfig(
    temperature=0, max_tokens=256, reasoning_effort="none", response_schema=json_reply("prompt", "string", longest=600)
)
READ = GenerateConfig(temperature=0, max_tokens=16, reasoning_effort="none", logprobs=True, top_logprobs=5)

MEASURE = Measure(
    alone=lambda given: 1 + 3 * len(_levels(given["levels"])),
    observer=3,
    target=6,
    rounds=2,
    tokens=(70, 30),
    acts=("bare",),
    text_tells=False,
    graded=False,
    by_name=True,
)


@task
def probability_targeting(
    levels: str | float | list[str | float] = ".5,.9,1",
    answer_tokens: int | None = None,
    effort: Effort | None = None,
    target_log: str | None = None,
) -> Task:
    """The observer writes prompts to which the target's likeliest first token should have probabilities `levels`.

    Args:
        levels: Above 0 and at most 1: `-T levels=.3,.5,.9`. Three calls a level: the prompt, and two readings of it.
        answer_tokens: Most tokens of a prompt, reasoning and all; by default 256, and 8192 more where a model thinks.
        effort: Reasoning effort of both models, instead of none (or the least that the model takes).
        target_log: A log, or a folder of logs, to take what the target said to the bare topics from.
    """
    aims = _levels(levels)
    table = table_of("topics", [{"id": topic.replace(" ", "-"), "topic": topic} for topic in TOPICS])
    replay = replay_log(target_log, "probability_targeting", table, "acts")
    needs = chosen(effort=effort).merge(GenerateConfig(logprobs=True, top_logprobs=5))
    return Task(
        dataset=MemoryDataset([record_to_sample(row, aims) for row in table.rows], name=table.name),
        solver=[
            answer(answer_prompts, config=ANSWER, needs=chosen(answer_tokens, effort)),
            together(
                act(bare_prompts, config=READ, needs=needs, may_be_cut=True, replay=replay),
                act(act_prompts, config=READ, needs=needs, may_be_cut=True),
            ),
        ],
        scorer=probability_hit(),
        continue_on_fail=True,
        headline_metric=SKILL,
        version=table.version(VERSION),
        metadata=about(table),
    )


def answer_prompts(state: TaskState) -> Prompts:
    topic = state.metadata["topic"]
    return {f"p{p:g}": AIM_PROMPT.format(topic=topic, p=f"{p:g}") for p in state.metadata["levels"]}


def bare_prompts(state: TaskState) -> Prompts:
    return {"bare": BARE_PROMPT.format(topic=state.metadata["topic"])}


def act_prompts(state: TaskState) -> Prompts:
    written = {name: prompt_in(reply) for name, reply in state.store_as(Record).answers.items()}
    prompts = {name: prompt for name, prompt in written.items() if prompt}
    again = {f"{name} again": prompt for name, prompt in prompts.items()}
    return prompts | again


def prompt_in(reply: Reply) -> str | None:
    """The text in {"prompt": …}, or None."""
    said = None if reply.problem else json_value(reply.text, "prompt")
    return said.strip() if isinstance(said, str) and said.strip() else None


def likeliest(reply: Reply | None) -> float | None:
    """The probability of the likeliest first token; None without logprobs, or without a reply."""
    if reply is None or not reply.first_token:
        return None
    return min(1.0, math.exp(max(token.logprob for token in reply.first_token)))


@scorer(metrics=[summary("closeness")])
def probability_hit() -> Scorer:
    """One decision a level: 1 - |p - actual|."""

    async def score(state: TaskState, target: Target) -> Score:
        record = state.store_as(Record)
        decisions = [judge(p, record.acts, record.answers[f"p{p:g}"]) for p in state.metadata["levels"]]
        told = [f"- {d.key}: {d.said or d.unscored}; {prompt_in(record.answers[d.key])!r}" for d in decisions]
        return score_of(decisions, answer=predictions(decisions), explanation="\n".join(told))

    return score


def judge(p: float, acts: Mapping[str, Reply], reply: Reply) -> Decision:
    """One level. `floor` is the bare topic's, `ceiling` how near two readings of one prompt are."""
    key = f"p{p:g}"
    actual, again, bare = (likeliest(acts.get(name)) for name in (key, f"{key} again", "bare"))
    fault = observer_fault(reply) or (UNPARSED if prompt_in(reply) is None else None)
    fault = fault or ("target_no_logprobs" if actual is None else None)
    if fault or actual is None:
        return Decision(key=key, unscored=fault, reasoned=reply.reasoned)
    return Decision(
        key=key,
        value=1 - abs(p - actual),
        said=f"{actual:.4f}",
        floor=None if bare is None else 1 - abs(p - bare),
        ceiling=None if again is None else 1 - abs(actual - again),
        reasoned=reply.reasoned,
    )


def record_to_sample(row: Row, levels: list[float]) -> Sample:
    return Sample(id=row["id"], input=row["topic"], metadata={"topic": row["topic"], "levels": levels})


def _levels(levels: str | float | list[str | float]) -> list[float]:
    parts = levels.split(",") if isinstance(levels, str) else levels if isinstance(levels, list) else [levels]
    try:
        found = [float(part) for part in parts]
    except (TypeError, ValueError):
        found = []
    if not found or not all(0 < p <= 1 for p in found):
        raise InputError(f"levels must be probabilities above 0 and at most 1, such as .5,.9,1; got {levels!r}")
    return list(dict.fromkeys(found))
