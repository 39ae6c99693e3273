"""Two examples at the end of each help, which run as typed where the files that they name are there."""

from collections.abc import Mapping

import click

EXAMPLES: Mapping[str, tuple[str, str]] = {
    "": ("matrix --models planted/ada,planted/bo,planted/cy --limit 20", "report logs/matrix"),
    "matrix": (
        "--models planted/ada,planted/bo,planted/cy --tasks kth_word --limit 20",
        "--models openai/gpt-5-mini,google/gemini-2.5-flash,mistral/mistral-medium-latest --dry-run",
    ),
    "awareness": ("run --models planted/ada --methods binary --limit 20", "turns logs/agents --models planted/ada"),
    "awareness run": (
        "--models planted/ada --methods binary,probability --limit 20",
        "--models openai/gpt-5-mini --dataset mine.jsonl --grader google/gemini-2.5-flash --dry-run",
    ),
    "awareness turns": (
        "logs/agents --models planted/ada --limit 10",
        "mine.jsonl --models openai/gpt-5-mini --against real.jsonl --dry-run",
    ),
    "awareness cues": (
        "mine.jsonl --models planted/ada",
        "mine.jsonl --models openai/gpt-5-mini --grader google/gemini-2.5-flash --dry-run",
    ),
    "awareness effect": (
        "mine.py --models planted/ada --grader planted/g",
        "inspect_evals/agentharm --models openai/gpt-5-mini --grader google/gemini-2.5-flash --dry-run",
    ),
    "awareness inside": (
        "--model smollm2 --set eval_awareness_2 --limit 40",
        "--model smollm2 --set mine.jsonl --against real.jsonl --save direction.probe",
    ),
    "awareness scan": ("logs/agents --grader planted/g", "logs/agents --grader openai/gpt-5-mini --dry-run"),
    "awareness features": ("logs/awareness", "logs/awareness --clusters 20 --grader openai/gpt-5-mini"),
    "awareness validate": ("logs/awareness --samples 50 --out sheet.csv", "labels.csv logs/awareness"),
    "check": ("logs/nightly", "logs/nightly --baseline baseline.json --junit gate.xml"),
    "fetch-model": ("", "all-MiniLM-L6-v2"),
    "mechanism": ("read --model smollm2 --parts lens", "induce --model smollm2"),
    "mechanism read": ("--model smollm2 --parts lens,attention", "--model smollm2 --limit 10 --parts patch"),
    "mechanism induce": ("--model smollm2", "--model smollm2 --out induced"),
    "outcome": (
        "logs/sums --models planted/ada,planted/bo --limit 20",
        "logs/gsm8k --models openai/gpt-5-mini,google/gemini-2.5-flash --ask solve,length --dry-run",
    ),
    "probe": ("run --model smollm2 --datasets ours", "score mine.jsonl --probe probes/a.probe"),
    "probe run": ("--model smollm2 --datasets ours", "--model smollm2 --datasets ours --parts ablate,finetune"),
    "probe score": ("mine.jsonl --probe probes/a.probe", "mine.jsonl --probe probes/a.probe --out scored.csv"),
    "realism": ("card mine.jsonl --judges planted/j", "card mine.jsonl --judges openai/gpt-5-mini --dry-run"),
    "realism card": (
        "mine.jsonl --judges planted/j,planted/k",
        "mine.jsonl --judges openai/gpt-5-mini --model mistral/mistral-medium-latest --dry-run",
    ),
    "realism rewrite": (
        "mine.jsonl --remove 'answer options' --writer planted/w --grader planted/g --judges planted/j",
        "mine.jsonl --remove 'placeholder names' --writer openai/gpt-5-mini --grader google/gemini-2.5-flash "
        "--judges anthropic/claude-haiku-4-5 --dry-run",
    ),
    "report": ("logs", "logs/matrix logs/awareness --out report"),
    "tasks": ("", "--json"),
}
"""Path of a command → the arguments of two calls."""


def exemplified(command: click.Command | None, parent: click.Context, name: str) -> click.Command | None:
    """The command with its examples at the end of its help.

    Args:
        command: Command of a group, or None.
        parent: The group's context.
        name: Name by which it was called.
    """
    names = [name]
    while parent.parent is not None:
        names, parent = [str(parent.info_name), *names], parent.parent
    path = " ".join(names)
    if command is not None and path in EXAMPLES:
        command.epilog = epilog(path)
    return command


def epilog(path: str) -> str:
    """The examples of a command, each a line that help does not break."""
    lines = [" ".join(["  selfprobe", *filter(None, (path, further))]) for further in EXAMPLES[path]]
    return "\n".join(["\b", "Examples:", *lines])
