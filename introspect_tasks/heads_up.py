"""Heads up: does a model guess a word from clues that it wrote itself?

IntrospectBench ("Me, Myself, and π"), E.3 Task 2.2. Paper: silent on clues that say the word, and on
another number of clues. Here: a clue with the word, a word of its root or its letters spaced out is
a "leak", clues that are not nine to eleven are "not_ten_clues"; both are unscored, and no guess is
asked. Paper: §3.1 excludes synonyms and antonyms, its prompt (E.3) does not ask for that. Here: the
prompt asks (version 3), and `-T wording=E3` asks in E.3's words; `synonym_named` is the share of
plays with a clue that calls itself a synonym or an antonym. Others are not counted. Paper: prints
each prompt as one paragraph. Here: "Task:" begins a line, as in Task 1.1. Paper: shows the clues as
they came. Here: without the JSON around them, numbered, on one line. There is no `about` as in
kth_word: the prompt names no author of the clues, so there is no "you" to ask about another.

    inspect eval introspect_tasks/heads_up.py --model embedded/smollm2 --limit 10
    inspect eval introspect_tasks/heads_up.py --model openrouter/a --model-role target=openrouter/b
"""

from typing import Literal, Unpack

from inspect_ai import Task
from inspect_ai.dataset import Sample
from inspect_ai.model import GenerateConfig
from inspect_ai.solver import TaskState

from selfprobe.scorers.word_matches import fair_clues, guessed_word
from selfprobe.task import (
    InputError,
    Measure,
    Prediction,
    Prompts,
    Record,
    Row,
    WithData,
    json_reply,
    task,
    words,
)

VERSION = 5
PAPER = "IntrospectBench"

CLUES_PROMPT = """\
Target: '{word}'
Task: Provide a list of 10 clues describing '{word}' without saying the word itself{nor}. \
Output the final clues in a JSON object: {{ "clues": "... " }}"""

CLUES = {
    "ours": CLUES_PROMPT.replace("{nor}", ", a synonym or an antonym of it"),
    "E3": CLUES_PROMPT.replace("{nor}", ""),
}

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
    ),  # as in the prompt's example; a list is read too
)
ANSWER = GenerateConfig(
    temperature=0,
    max_tokens=64,
    reasoning_effort="none",
    response_schema=json_reply("guess", "string", longest=40),
)

MEASURE = Measure(
    observer=1,
    rounds=2,
    acts=("clues",),
    act_only=frozenset({"act_tokens"}),
    text_tells=False,  # the item's text is the word
)


WORD_COLUMNS = ("category", "concreteness")
"""Columns about the word that a sample's metadata keeps."""


@task
def heads_up(
    wording: Literal["ours", "E3"] = "ours",
    act_tokens: int | None = None,
    **shared: Unpack[WithData],
) -> Task:
    """The observer guesses a word from ten clues that the target wrote.

    Args:
        wording: How clues are asked for: ours excludes synonyms and antonyms, the paper's E3 the
            word alone.
        act_tokens: Longest clues in tokens, reasoning included. Default: 600, and 8192 more for a
            target that thinks although it is asked not to.
        shared: dataset (with a column `word`), effort and the others of `solvers.observe.WithData`.
    """
    prediction = Prediction(
        "heads_up",
        "heads_up_words",
        ("word",),
        further=WORD_COLUMNS,
        act_tokens=act_tokens,
        **shared,
    )
    return prediction.task(
        VERSION,
        guessed_word(),
        prediction.act(act_prompts, ACT, wording=wording),
        prediction.answer(answer_prompts, ANSWER),
        sample=record_to_sample,
        metadata={} if wording == "ours" else {"wording": wording},
        keys=["guess"],
    )


def act_prompts(state: TaskState) -> Prompts:
    clues_prompt = CLUES[state.metadata.get("wording", "ours")]
    return {"clues": clues_prompt.format(word=state.metadata["word"])}


def answer_prompts(state: TaskState) -> Prompts:
    clues, fault = fair_clues(state.store_as(Record).acts["clues"], state.metadata["word"])
    if fault:
        return {}
    numbered_clues = [f"{number}. {clue}" for number, clue in enumerate(clues, start=1)]
    return {"guess": GUESS_PROMPT.format(clues=" ".join(numbered_clues))}


def record_to_sample(row: Row) -> Sample:
    word = str(row["word"]).strip()
    if len(words(word)) != 1:
        raise InputError(
            f"{row['id']}: word must be a single word, since one word is guessed; got {word!r}"
        )
    metadata = {"word": word}
    for column in WORD_COLUMNS:
        if row.get(column):
            metadata[column] = row[column]
    return Sample(id=row["id"], input=word, metadata=metadata)
