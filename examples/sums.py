"""Two hundred sums, which planted models solve or not by a known rule: a plain Inspect task to try
`outcome` on.

inspect eval examples/sums.py --model planted/ada --log-dir logs/sums
selfprobe outcome logs/sums --models planted/ada
"""

from itertools import product
from random import Random

from inspect_ai import Task, task
from inspect_ai.dataset import MemoryDataset, Sample
from inspect_ai.scorer import match
from inspect_ai.solver import generate

SUM_PROMPT = "What is {first} + {second}? Reply with the number alone."


@task
def sums(items: int = 200) -> Task:
    """Sums of two numbers of three digits, scored by an exact match."""
    all_pairs = list(product(range(100, 1000, 7), range(100, 1000, 11)))
    pairs = Random(0).sample(all_pairs, items)
    samples = [record_to_sample(first, second) for first, second in pairs]
    return Task(
        dataset=MemoryDataset(samples, name="sums"),
        solver=generate(),
        scorer=match(),
    )


def record_to_sample(first: int, second: int) -> Sample:
    prompt = SUM_PROMPT.format(first=first, second=second)
    return Sample(id=f"{first}+{second}", input=prompt, target=str(first + second))
