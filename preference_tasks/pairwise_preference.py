"""Pairwise preference: which of two texts does a model say is better, asked in both orders?

Latent-preference probes, §4.1.1, §4.3, appendix E: compare P("1") with P("2"), averaged over
both orders, so that position drops out. Paper: the assistant's turn begins with "Between Choice 1
and Choice 2, the more … is Choice". Here: few providers continue an assistant's turn, so the user's
turn asks to complete that sentence; `-T prefill=true` is the paper's way. Without token
probabilities answers are sampled, and the log says so.

    inspect eval preference_tasks/pairwise_preference.py --model embedded/smollm2 -T prefill=true
    inspect eval preference_tasks/pairwise_preference.py --model openai/gpt-5.6-luna -T dataset=mine.jsonl
    inspect eval selfprobe/pairwise_preference --model anthropic/claude-haiku-5-5 -T dataset=summeval -T pairs=200
"""

from inspect_ai import Task
from inspect_ai.dataset import MemoryDataset
from inspect_ai.model import ChatMessageAssistant, ChatMessageUser, GenerateConfig
from inspect_ai.solver import TaskState

from selfprobe.data.pairs import Pair, comparison_prompt, priming
from selfprobe.data.preferences import pair_of, preferences, record_to_sample
from selfprobe.errors.arguments import one_of, task
from selfprobe.scorers.preference import ORDERS, pairwise_choice, unsettled_choice
from selfprobe.solvers.act import answer
from selfprobe.solvers.ask import Prompts
from selfprobe.solvers.draw import draw
from selfprobe.solvers.negotiate import Effort, user_settings
from selfprobe.solvers.replay import leave_out_failed, replay_log

VERSION = 3
PAPER = "latent-preference probes"
CALLS = 2

# The comparison and the sentence are the paper's: selfprobe/data/pairs.py.
COMPLETE_PROMPT = """\
{comparison}

Reply with one digit alone, 1 or 2, that completes this sentence:
{priming}"""

ANSWER = GenerateConfig(
    temperature=0, max_tokens=32, logprobs=True, top_logprobs=20, reasoning_effort="none"
)


@task
def pairwise_preference(
    dataset: str = "ours",
    pairs: int | None = None,
    question: str | None = None,
    item: str | None = None,
    prefill: bool = False,
    draws: int = 8,
    answer_tokens: int | None = None,
    effort: Effort | None = None,
    observer_log: str | None = None,
) -> Task:
    """The model compares two texts, in both orders.

    Args:
        dataset: ours (bundled); llmbar, mt_bench, summeval, newsroom, hanna, mctaco; NAME=PATH for
            a local copy (rocstories=…, caters=…); or your own .jsonl, .json, .csv, .tsv, .parquet
            or hf:owner/name@REVISION with question, text_1, text_2, label.
        pairs: Use a random sample of this many pairs.
        question: Question about your own pairs, llmbar and mt_bench, as a comparative. Default:
            "more helpful".
        item: Name of their texts. Default: "response".
        prefill: Begin the assistant's turn with the sentence, for providers that continue it.
        draws: Number of sampled answers per order, where the provider gives no token probabilities.
        answer_tokens: Most tokens of an answer, reasoning included. Default: 32, and 8192 more for
            a model that thinks although it is asked not to.
        effort: Reasoning effort, instead of none (or the least that the model takes).
        observer_log: A log, or a folder of logs, to take the answers from.
    """
    loaded = preferences(dataset, pairs=pairs, question=question, item=item)
    one_of("prefill", prefill, (False, True))
    prompts = prefilled_prompts if prefill else comparison_prompts
    needs = user_settings(answer_tokens, effort)
    replay = replay_log(observer_log, "pairwise_preference", loaded.table, "answers")
    return Task(
        dataset=MemoryDataset([record_to_sample(row) for row in loaded.table.rows], name=dataset),
        solver=[
            answer(prompts, config=ANSWER, needs=needs, replay=replay),
            draw(prompts, unsettled_choice, draws=draws, config=ANSWER, needs=needs, replay=replay),
        ],
        scorer=pairwise_choice(),
        continue_on_fail=True,
        early_stopping=leave_out_failed(replay),
        version=loaded.table.version(VERSION),
        metadata=loaded.metadata | {"prefill": prefill, "draws": draws},
    )


def orders(pair: Pair) -> dict[str, Pair]:
    """Pair in both orders; equal texts are not asked about."""
    if pair.has_equal_texts:
        return {}
    return dict(zip(ORDERS, (pair, pair.swapped), strict=True))


def comparison_prompts(state: TaskState) -> Prompts:
    return {
        order: COMPLETE_PROMPT.format(comparison=comparison_prompt(pair), priming=priming(pair))
        for order, pair in orders(pair_of(state)).items()
    }


def prefilled_prompts(state: TaskState) -> Prompts:
    # With the space: the tokenizers of the paper's models give it a token of its own before a
    # digit.
    return {
        order: [
            ChatMessageUser(content=comparison_prompt(pair)),
            ChatMessageAssistant(content=f"{priming(pair)} "),
        ]
        for order, pair in orders(pair_of(state)).items()
    }
