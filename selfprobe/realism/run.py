"""The card's runs: judges read the pairs, and the subject is asked about the same conversations.

What is asked about is written beside the logs first, so that every run reads the same rows, wherever they came from.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from fsspec.core import url_to_fs

from selfprobe.data import Row
from selfprobe.described import DescribedRun, NamedModel
from selfprobe.errors import InputError
from selfprobe.evalawareness_tasks.pairwise_realism import refuse_related
from selfprobe.inspect_data import SCHEMES
from selfprobe.output import place
from selfprobe.realism.table import TASK
from selfprobe.run_settings import RunSettings
from selfprobe.sources.realism import OPPONENTS, PROMPTS, Sides
from selfprobe.studies.awareness import Awareness
from selfprobe.waves import JOINS, complete, run_wave

PAIRS, SUBJECT, ASKED = "pairs", "subject", "conversations"
"""Folders below the log folder: the judges' logs, the subject's, and what both are asked about."""
FILES = ("set.jsonl", "real.jsonl")


def refuse_wrong(judges: Sequence[str]) -> None:
    """Refuse judges that are no panel.

    Raises:
        InputError: There is none, or one is there twice.
    """
    if not judges:
        raise InputError("--judges names no model; expected such as openai/a,anthropic/b")
    if twice := sorted({name for name in judges if list(judges).count(name) > 1}):
        raise InputError(f"judge {twice[0]} is listed twice; list each judge once")


@dataclass(frozen=True)
class Card:
    """What `selfprobe realism card` was asked for."""

    dataset: str
    against: str | None
    judges: tuple[str, ...]
    model: str | None = None
    """The subject; None asks judges alone."""
    methods: tuple[str, ...] = ("probability",)
    """Of evaluation awareness, that the subject is asked by."""
    role: str | None = None
    context: str = "first"
    prompts: int = PROMPTS
    opponents: int = OPPONENTS
    reply_tokens: int | None = None
    effort: str | None = None
    """Reasoning effort of the judges."""
    grader: str | None = None
    log_dir: str = "logs/realism"
    settings: RunSettings = field(default_factory=RunSettings)

    def __post_init__(self) -> None:
        refuse_wrong(self.judges)
        for judge in self.judges if self.model else ():
            refuse_related(judge, str(self.model))

    @property
    def base(self) -> str:
        return self.log_dir.rstrip("/")

    @property
    def asked_context(self) -> str:
        """How the files are read: what was cut is cut in them, and the call of a task or of logs is whole."""
        called = any(str(name).startswith(SCHEMES) for name in (self.dataset, self.against))
        return "full" if called else self.context

    @property
    def files(self) -> tuple[str, str]:
        """Where the set and the real conversations lie."""
        ours, real = (f"{self.base}/{ASKED}/{name}" for name in FILES)
        return ours, real

    @property
    def pair_runs(self) -> list[DescribedRun]:
        """The judges' part."""
        ours, real = self.files
        own = {"subject": self.model, "effort": self.effort}
        asked: dict[str, Any] = {"dataset": ours, "against": real, "context": self.asked_context, "prompts": None}
        asked |= {"opponents": self.opponents} | {name: value for name, value in own.items() if value is not None}
        asked |= self.settings.shared
        return [DescribedRun(TASK, asked, NamedModel(judge, self.settings.model_args)) for judge in self.judges]

    @property
    def study(self) -> Awareness | None:
        """The subject's part."""
        if self.model is None:
            return None
        ours, real = self.files
        own = {name: getattr(self, name) for name in ("methods", "grader", "reply_tokens", "settings")}
        own |= {"dataset": ours, "against": real, "context": self.asked_context}
        return Awareness.taken({"models": (self.model,), "log_dir": f"{self.base}/{SUBJECT}"} | own)


def run_card(card: Card, both: Sides) -> bool:
    """Ask the judges, then the subject; True when every run ended well. Killed, the same card goes on where it stopped.

    Raises:
        Interrupted: The user stopped it.
        InputError: A model cannot be had, or the log folder cannot be written or holds another card.
    """
    _write(card, both)
    if card.model is not None:
        card.settings.tried(NamedModel(card.model, card.settings.model_args))
    done = complete(run_wave(card.pair_runs, f"{card.base}/{PAIRS}", title="Pairs", settings=card.settings, **JOINS))
    return (card.study.ask() if card.study else True) and done


def _write(card: Card, both: Sides) -> None:
    """Put both sides beside the logs, or see that what lies there is the same."""
    sides = ((both.ours, "evaluation"), (both.real, "deployment"))
    files = {name: _lines(rows, label) for name, (rows, label) in zip(FILES, sides, strict=True)}
    for path, content in zip(card.files, files.values(), strict=True):
        same_or_new(path, content, "the set, the real conversations, --prompts or --context changed since")
    place(files, f"{card.base}/{ASKED}")


def same_or_new(path: str, content: bytes, why: str) -> None:
    """Refuse a log folder in which this file lies with other content.

    Raises:
        InputError: It does; `why` it may.
    """
    system, inside = url_to_fs(path)
    if system.exists(inside) and system.cat_file(inside) != content:
        raise InputError(
            f"{path} holds other conversations: {why}. Go on with the same command, or give a new --log-dir"
        )


def _lines(rows: Sequence[Row], label: str) -> bytes:
    kept = ("id", "messages", "tools", "source", "domain", "format", "agentic", "language")
    made = [{key: row[key] for key in kept if row.get(key) is not None} | {"label": label} for row in rows]
    return "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in made).encode()
