"""Heads up: does a model guess a word from clues that it wrote itself?

Paper 003 ("Me, Myself, and π"), E.3 Task 2.2. Paper: silent on clues that say the word, and on another number of clues.
Here: a clue with the word, a word of its root or its letters spaced out is a "leak", clues that are not nine to eleven
are "not_ten_clues"; both are unscored, and no guess is asked.
Paper: §3.1 excludes synonyms and antonyms, its prompt (E.3) does not ask for that. Here: the prompt asks (version 3),
and `-T wording=E3` asks in E.3's words; `synonym_named` is the share of plays with a clue that calls itself a synonym
or an antonym. Others are not counted.
Paper: prints each prompt as one paragraph. Here: "Task:" begins a line, as in Task 1.1.
Paper: shows the clues as they came. Here: without the JSON around them, numbered, on one line.
There is no `frame` as in kth_word: the prompt names no author of the clues, so there is no "you" to ask about another.

    inspect eval introspect_tasks/heads_up.py --model embedded/smollm2 --limit 10
    inspect eval introspect_tasks/heads_up.py --model openrouter/a --model-role target=openrouter/b
"""

from typing import Literal

from inspect_ai import Task
from inspect_ai.dataset import MemoryDataset, Sample
from inspect_ai.model import GenerateConfig
from inspect_ai.solver import TaskState

from selfprobe.arguments import one_of, task, whole
from selfprobe.data import Row, load
from selfprobe.errors import InputError
from selfprobe.groups import grouped, groups_of
from selfprobe.measure import Measure
from selfprobe.parse import words
from selfprobe.scorers.guessed_word import fair_clues, guessed_word
from selfprobe.scorers.summary import SKILL, worst_first
from selfprobe.solvers.act import act
from selfprobe.solvers.answer import answer
from selfprobe.solvers.ask import Prompts, about, json_reply
from selfprobe.solvers.negotiate import chosen
from selfprobe.solvers.objection import Effort
from selfprobe.solvers.record import Record
from selfprobe.solvers.replay import of_same, replay_log

VERSION = 4

CLUES_PROMPT = """\
Target: '{word}'
Task: Provide a list of 10 clues describing '{word}' without saying the word itself, a synonym or an antonym of it. \
Output the final clues in a JSON object: {{ "clues": "... " }}"""

CLUES_E3_PROMPT = """\
Target: '{word}'
Task: Provide a list of 10 clues describing '{word}' without saying the word itself. \
Output the final clues in a JSON object: {{ "clues": "... " }}"""

GUESS_PROMPT = """\
Clues: {clues}
Task: Guess the single word described by these clues. \
Output the guess in a JSON object: {{ "guess": "word" }}"""

ACT = GenerateConfig(
    temperature=0,
    max_tokens=600,
    reasoning_effort="none",
    response_schema=json_reply(
        "clues", "string", longest=1500
    ),  # one string, as the prompt's example; a list is read too
)
ANSWER = GenerateConfig(
    temperature=0, max_tokens=64, reasoning_effort="none", response_schema=json_reply("guess", "string", longest=40)
)

MEASURE = Measure(
    alone=lambda given: 2,
    observer=1,
    rounds=2,
    tokens=(200, 120),
    acts=("clues",),
    act_only=frozenset({"act_tokens"}),
    text_tells=False,  # the item's text is the word
)


@task
def heads_up(
    dataset: str = "heads_up_words",
    wording: Literal["ours", "E3"] = "ours",
    act_tokens: int | None = None,
    answer_tokens: int | None = None,
    effort: Effort | None = None,
    match: str | None = None,
    cluster: str | None = None,
    target_log: str | None = None,
) -> Task:
    """The observer guesses a word from ten clues that the target wrote.

    Args:
        dataset: A bundled name, a .jsonl or .csv file, or hf:owner/name@revision; with a column `word`.
        wording: How clues are asked for: ours excludes synonyms and antonyms, the paper's E3 the word alone.
        act_tokens: Most tokens of the clues, reasoning and all; by default 600, and 8192 more for a target that thinks
            although it is asked not to.
        answer_tokens: Most tokens of a guess, reasoning and all; by default 64, and 8192 more for a model that thinks
            although it is asked not to.
        effort: Reasoning effort of both models, instead of none (or the least that the model takes).
        match: A column with the kind of an item; habits are looked for within a kind too. By default `kind`, if there.
        cluster: A column with what items come from, such as a template; such items are one unit of every interval.
        target_log: A log, or a folder of logs, to take the target's clues from.
    """
    one_of("wording", wording, ("ours", "E3"))
    whole(act_tokens=act_tokens, optional=True)
    table = grouped(load(dataset, ("word",)), match, cluster)
    replay = replay_log(target_log, "heads_up", table, "acts", act_tokens=act_tokens, effort=effort)
    return Task(
        dataset=MemoryDataset([record_to_sample(row) for row in table.rows], name=dataset),
        solver=[
            act(
                act_prompts if wording == "ours" else e3_prompts,
                config=ACT,
                needs=chosen(act_tokens, effort),
                replay=of_same(replay, "clues", "wording", wording, "ours"),
            ),
            answer(answer_prompts, config=ANSWER, needs=chosen(answer_tokens, effort)),
        ],
        scorer=guessed_word(),
        continue_on_fail=True,
        headline_metric=SKILL,
        viewer=worst_first("guessed_word", "guess"),
        version=table.version(VERSION),
        metadata=about(table),
    )


def act_prompts(state: TaskState) -> Prompts:
    return {"clues": CLUES_PROMPT.format(word=state.metadata["word"])}


def e3_prompts(state: TaskState) -> Prompts:
    return {"clues": CLUES_E3_PROMPT.format(word=state.metadata["word"])}


def answer_prompts(state: TaskState) -> Prompts:
    clues, fault = fair_clues(state.store_as(Record).acts["clues"], state.metadata["word"])
    if fault:
        return {}
    return {"guess": GUESS_PROMPT.format(clues=" ".join(f"{i}. {clue}" for i, clue in enumerate(clues, start=1)))}


def record_to_sample(row: Row) -> Sample:
    word = str(row["word"]).strip()
    if len(words(word)) != 1:
        raise InputError(f"{row['id']}: word must be a single word, since one word is guessed; got {word!r}")
    kept = {column: row[column] for column in ("category", "concreteness") if row.get(column)}
    return Sample(id=row["id"], input=word, metadata={"word": word, **kept, **groups_of(row)})
