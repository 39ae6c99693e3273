"""Sampled, whole replies of several models to the prompts of all four rows of paper 003's Table 1, for `diversity`.

One ordinary run of `open_answers` a model and row, three draws of each reply. The same command goes on where a killed
one stopped, and what is finished is not asked again.
"""

from collections.abc import Sequence

from selfprobe._registry import defaults_of, tasks
from selfprobe.described import DescribedRun
from selfprobe.errors import InputError
from selfprobe.introspect_tasks.open_answers import SETS
from selfprobe.matrix.run import Member
from selfprobe.prices import Cost
from selfprobe.run_settings import RunSettings
from selfprobe.waves import JOINS, complete, run_wave

TASK = "open_answers"
REPLY = 300
"""A rough guess of the tokens of a reply."""


def describe(members: Sequence[Member], limit: int | None, settings: RunSettings) -> str:
    """Calls, tokens and cost by model, as text.

    Raises:
        InputError: Fewer than two models, or one twice.
    """
    names = [member.model for member in members]
    if len(set(names)) < 2 or len(set(names)) < len(names):
        raise InputError(f"Table 1 compares two models or more, each once; got {', '.join(names) or 'none'}")
    items, calls, sent = [], 0, 0
    for of in SETS:
        samples = list(tasks()[TASK](of=of).dataset)[:limit]
        prompts = [prompt for sample in samples for prompt in (sample.metadata or {})["prompts"].values()]
        items.append(f"{of} ({len(samples)} items)")
        calls += len(prompts)
        sent += sum(len(prompt) // 4 for prompt in prompts)
    draws = int(defaults_of(TASK)["epochs"])
    costs = [Cost(name, draws * calls, draws * sent, draws * calls * REPLY) for name in names]
    head = f"{len(names)} models × {', '.join(items)}, {draws} draws of each reply"
    return "\n".join([head, "", *settings.costed(costs, rounds=1)])


def ask(members: Sequence[Member], folder: str, limit: int | None, settings: RunSettings) -> bool:
    """Run it; True when every run ended well, and something of each model could be compared.

    Raises:
        Interrupted: The user stopped it.
        InputError: A model cannot be had, or the folder cannot be written.
    """
    runs = [DescribedRun(TASK, {"of": of} | settings.shared, member.named) for of in SETS for member in members]
    return complete(run_wave(runs, folder, title="Open answers", settings=settings, **{**JOINS, "limit": limit}))
