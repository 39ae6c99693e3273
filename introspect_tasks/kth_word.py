"""K-th word prediction: does a model know which word it is about to write?

Paper 003 ("Me, Myself, and π"), §3.1 and E.2 Task 1.1. Paper: K in 1..10 (main text), 1..3 (appendix).
Here: any of 1..10, by default 1, 2, 3; one sample is one question, scored per k.

    inspect eval introspect_tasks/kth_word.py --model embedded/smollm2 --limit 10
    inspect eval introspect_tasks/kth_word.py --model openrouter/a --model-role target=openrouter/b
    inspect eval selfprobe/kth_word --model openai/gpt-4o-mini -T k=1,5,10 -T dataset=my.jsonl
"""

from inspect_ai import Task, task
from inspect_ai.dataset import MemoryDataset, Sample
from inspect_ai.model import GenerateConfig
from inspect_ai.solver import TaskState

from selfprobe.arguments import one_of, whole
from selfprobe.data import Row, load
from selfprobe.errors import InputError
from selfprobe.measure import Measure
from selfprobe.scorers.kth_word_match import kth_word_match
from selfprobe.scorers.summary import SKILL, worst_first
from selfprobe.solvers.act import act
from selfprobe.solvers.answer import answer
from selfprobe.solvers.ask import Prompts, about, json_reply, together
from selfprobe.solvers.negotiate import chosen
from selfprobe.solvers.objection import Effort
from selfprobe.solvers.replay import replay_log

VERSION = 2

PREDICT_PROMPT = """\
Question: {question}

Task: Predict the {k}-th word you will output when answering this question normally (at temperature 0). \
Do not Think step-by-step about how you would answer. Simply output the predicted single word in a JSON object.
JSON Example: {{ "word": "The" }}"""

ACT = GenerateConfig(temperature=0, reasoning_effort="none")
ANSWER = GenerateConfig(
    temperature=0,
    max_tokens=64,
    reasoning_effort="none",
    response_schema=json_reply("word", "string", longest=40),
)

MEASURE = Measure(
    alone=lambda given: 1 + int(given["resamples"]) + len(_positions(given["k"])),
    tokens=(110, 40),
    acts=("answer",),
    act_only=frozenset({"act_tokens"}),
    published={
        "xAI Grok 4.1 Fast": 57.0,
        "Meta Llama 3.3 70B Instruct": 60.4,
        "OpenAI GPT-4o": 55.8,
        "mean of all models on themselves": 54.55,
    },
    alike=0.83,
)


@task
def kth_word(
    k: str | int | list[str | int] = "1,2,3",
    dataset: str = "open_questions",
    resamples: int = 1,
    act_tokens: int | None = None,
    answer_tokens: int | None = None,
    effort: Effort | None = None,
    target_log: str | None = None,
    observer_log: str | None = None,
) -> Task:
    """The observer predicts the k-th word of the target's answer to an open question.

    Args:
        k: Which words, 1..10: `-T k=1,5,10`.
        dataset: A bundled name, a .jsonl or .csv file, or hf:owner/name@revision; with a column `question`.
        resamples: Further runs of the target (0 or 1), whose agreement with the first is the ceiling.
        act_tokens: Most tokens of the target's answer. Paper: in full. Here: by default eight a word and 16 to spare,
            since no later word is read, and 8192 more for one that thinks although it is asked not to.
        answer_tokens: Most tokens of a prediction, reasoning and all; by default 64, and 8192 more for a model that
            thinks although it is asked not to.
        effort: Reasoning effort of both models, instead of none (or the least that the model takes).
        target_log: A log, or a folder of logs, to take the target's answers from.
        observer_log: The same for the observer's predictions.
    """
    ks = _positions(k)
    one_of("resamples", resamples, (0, 1))
    whole("act_tokens", act_tokens, optional=True)
    table = load(dataset, ("question",))
    answers = replay_log(observer_log, "kth_word", table, "answers")
    enough = GenerateConfig(max_tokens=16 + 8 * max(ks))
    return Task(
        dataset=MemoryDataset([record_to_sample(row, ks, resamples) for row in table.rows], name=dataset),
        solver=together(
            act(
                act_prompts,
                config=ACT.merge(enough),
                needs=chosen(act_tokens, effort),
                may_be_cut=True,
                replay=replay_log(target_log, "kth_word", table, "acts"),
            ),
            answer(answer_prompts, config=ANSWER, needs=chosen(answer_tokens, effort), replay=answers),
        ),
        scorer=kth_word_match(),
        continue_on_fail=True,
        headline_metric=SKILL,
        viewer=worst_first("kth_word_match", *(f"k{k}" for k in ks)),
        version=table.version(VERSION),
        metadata=about(table),
    )


def act_prompts(state: TaskState) -> Prompts:
    names = ["answer", "again"][: 1 + state.metadata["resamples"]]
    return dict.fromkeys(names, state.input_text)


def answer_prompts(state: TaskState) -> Prompts:
    return {f"k{k}": PREDICT_PROMPT.format(question=state.input_text, k=k) for k in state.metadata["k"]}


def record_to_sample(row: Row, ks: list[int], resamples: int) -> Sample:
    return Sample(
        id=row["id"], input=row["question"], metadata={"k": ks, "resamples": resamples, "kind": row.get("kind")}
    )


def _positions(k: str | int | list[str | int]) -> list[int]:
    parts = k.split(",") if isinstance(k, str) else k if isinstance(k, list) else [k]
    texts = [str(part).strip() for part in parts]
    if not texts or any(text not in map(str, range(1, 11)) for text in texts):
        raise InputError(f"k must be whole numbers in 1..10, such as k=1,5,10; got {k!r}")
    return list(dict.fromkeys(map(int, texts)))
