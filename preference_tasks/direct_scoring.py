"""Direct scoring: which of two texts does a model score higher from 1 to 5, each alone?

Latent-preference probes, §4.3, appendix E.1. Paper: for the text quality sets. Here: also
for your own pairs, LLMBar and MT-Bench, in the same words; a pair's verdict comes from two scores,
and equal ones are a tie. The score is the most probable of 1 to 5 as the first token, or what is
written where the provider gives no token probabilities.

    inspect eval preference_tasks/direct_scoring.py --model embedded/smollm2 --limit 10
    inspect eval selfprobe/direct_scoring --model openai/gpt-5.6-luna -T dataset=summeval -T pairs=200
"""

from inspect_ai import Task
from inspect_ai.dataset import MemoryDataset
from inspect_ai.model import GenerateConfig
from inspect_ai.solver import TaskState

from selfprobe.data.pairs import score_prompt
from selfprobe.data.preferences import pair_of, preferences, record_to_sample
from selfprobe.errors.arguments import task
from selfprobe.scorers.preference import direct_score
from selfprobe.solvers.act import answer
from selfprobe.solvers.ask import Prompts
from selfprobe.solvers.negotiate import Effort, user_settings
from selfprobe.solvers.replay import leave_out_failed, replay_log

VERSION = 3
PAPER = "latent-preference probes"
CALLS = 2

# The prompts are the paper's: selfprobe/data/pairs.py.
ANSWER = GenerateConfig(
    temperature=0, max_tokens=32, logprobs=True, top_logprobs=20, reasoning_effort="none"
)


@task
def direct_scoring(
    dataset: str = "ours",
    pairs: int | None = None,
    question: str | None = None,
    item: str | None = None,
    answer_tokens: int | None = None,
    effort: Effort | None = None,
    observer_log: str | None = None,
) -> Task:
    """The model scores two texts, each alone.

    Args:
        dataset: ours (bundled); llmbar, mt_bench, summeval, newsroom, hanna; NAME=PATH for a local
            copy; or your own .jsonl, .json, .csv, .tsv, .parquet or hf:owner/name@REVISION with
            question, text_1, text_2, label. Other sets only have comparisons.
        pairs: Use a random sample of this many pairs.
        question: Question about your own pairs, llmbar and mt_bench, as a comparative. Default:
            "more helpful".
        item: Name of their texts. Default: "response".
        answer_tokens: Most tokens of an answer, reasoning included. Default: 32, and 8192 more for
            a model that thinks although it is asked not to.
        effort: Reasoning effort, instead of none (or the least that the model takes).
        observer_log: A log of this task or of g_eval, or a folder of logs, to take the answers
            from.
    """
    loaded = preferences(dataset, pairs=pairs, scored=True, question=question, item=item)
    replay = replay_log(observer_log, ("direct_scoring", "g_eval"), loaded.table, "answers")
    return Task(
        dataset=MemoryDataset([record_to_sample(row) for row in loaded.table.rows], name=dataset),
        solver=answer(
            score_prompts, config=ANSWER, needs=user_settings(answer_tokens, effort), replay=replay
        ),
        scorer=direct_score(),
        continue_on_fail=True,
        early_stopping=leave_out_failed(replay),
        version=loaded.table.version(VERSION),
        metadata=loaded.metadata,
    )


def score_prompts(state: TaskState) -> Prompts:
    pair = pair_of(state)
    if pair.has_equal_texts:
        return {}
    return {"text_1": score_prompt(pair, 1), "text_2": score_prompt(pair, 2)}
