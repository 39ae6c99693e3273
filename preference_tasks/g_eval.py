"""G-Eval: which of two texts has the higher expected score, over the model's probabilities of 1 to
5?

Latent-preference probes, §4.3, after Liu et al. 2023: the score is Σ s·p(s). Asks what
direct scoring asks (direct_scoring.py has the prompts), and can replay its log. Where the provider
gives no token probabilities they are estimated from sampled scores (Liu et al.: 20 draws), and the
log says so.

    inspect eval preference_tasks/g_eval.py --model embedded/smollm2 --limit 10
    inspect eval selfprobe/g_eval --model openrouter/meta-llama/llama-3.3-70b-instruct -T dataset=summeval -T pairs=200
    inspect eval selfprobe/g_eval --model openrouter/a -T dataset=summeval -T observer_log=logs
"""

from inspect_ai import Task
from inspect_ai.dataset import MemoryDataset

from selfprobe.data.preferences import preferences, record_to_sample
from selfprobe.errors.arguments import task
from selfprobe.preference_tasks.direct_scoring import ANSWER, score_prompts
from selfprobe.scorers.preference import g_eval_score, unsettled_rating
from selfprobe.solvers.act import answer
from selfprobe.solvers.draw import draw
from selfprobe.solvers.negotiate import Effort, user_settings
from selfprobe.solvers.replay import leave_out_failed, replay_log

VERSION = 3
PAPER = "latent-preference probes"
CALLS = 2


@task
def g_eval(
    dataset: str = "ours",
    pairs: int | None = None,
    question: str | None = None,
    item: str | None = None,
    draws: int = 20,
    answer_tokens: int | None = None,
    effort: Effort | None = None,
    observer_log: str | None = None,
) -> Task:
    """The model scores two texts, each alone; a score is weighted by its probability.

    Args:
        dataset: ours (bundled); llmbar, mt_bench, summeval, newsroom, hanna; NAME=PATH for a local
            copy; or your own .jsonl, .json, .csv, .tsv, .parquet or hf:owner/name@REVISION with
            question, text_1, text_2, label. Other sets only have comparisons.
        pairs: Use a random sample of this many pairs.
        question: Question about your own pairs, llmbar and mt_bench, as a comparative. Default:
            "more helpful".
        item: Name of their texts. Default: "response".
        draws: Number of sampled scores per text, where the provider gives no token probabilities.
        answer_tokens: Most tokens of an answer, reasoning included. Default: 32, and 8192 more for
            a model that thinks although it is asked not to.
        effort: Reasoning effort, instead of none (or the least that the model takes).
        observer_log: A log of this task or of direct_scoring, or a folder of logs, to take the
            answers from.
    """
    loaded = preferences(dataset, pairs=pairs, scored=True, question=question, item=item)
    needs = user_settings(answer_tokens, effort)
    replay = replay_log(observer_log, ("g_eval", "direct_scoring"), loaded.table, "answers")
    return Task(
        dataset=MemoryDataset([record_to_sample(row) for row in loaded.table.rows], name=dataset),
        solver=[
            answer(score_prompts, config=ANSWER, needs=needs, replay=replay),
            draw(
                score_prompts,
                unsettled_rating,
                draws=draws,
                config=ANSWER,
                needs=needs,
                replay=replay,
            ),
        ],
        scorer=g_eval_score(),
        continue_on_fail=True,
        early_stopping=leave_out_failed(replay),
        version=loaded.table.version(VERSION),
        metadata=loaded.metadata | {"draws": draws},
    )
