"""What is known of a model: which settings it takes, which it refuses, and which a call is trying out just now."""

from collections.abc import AsyncIterator, Collection
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any
from weakref import WeakKeyDictionary

import anyio
from inspect_ai.model import GenerateConfig, Model, ModelAPI

ROOM = 8192
"""Tokens beside a method's own limit for a model that thinks although it was asked not to."""

PROMPT = 20
"""Seconds after which a call that was not refused is at work: vendors look at the settings before they work."""


@dataclass
class Trial:
    """The call whose outcome others wait for, since it tries settings that the model was never asked with."""

    settings: frozenset[str]
    until: float
    """When it counts as not refused, on anyio's clock."""
    over: anyio.Event = field(default_factory=anyio.Event)


@dataclass
class Terms:
    """What is known of one model in this process. Settings are called as in GenerateConfig."""

    instead: dict[str, dict[str, Any]] = field(default_factory=dict)
    """Refused setting → what is sent in its place."""
    taken: set[str] = field(default_factory=set)
    """Settings that a call came through with: nobody waits for another's trial of them."""
    insisted: set[str] = field(default_factory=set)
    """Settings whose refusal came back when they were not sent: it was about something else."""
    least: int = 0
    most: int | None = None
    """Ends of a token limit, where the vendor named them."""
    thinks: bool | None = None
    """Whether a reply to a method's own limit held nothing but reasoning, and one to a larger limit was whole; False
    where the larger limit did not help."""
    mute: bool = False
    """Whether the model gave no logprobs to a method that needs them."""
    guessed: set[str] = field(default_factory=set)
    """Settings that were left out once for an error that names none."""
    trial: Trial | None = None

    def meet(self, wishes: GenerateConfig, likes: Collection[str], *, room: bool = False) -> GenerateConfig:
        """The settings to send, without wishes known to be refused. `room` adds tokens for reasoning."""
        changes: dict[str, Any] = {}
        if "max_tokens" in likes and wishes.max_tokens is not None:
            more = ROOM if (room or self.thinks) and wishes.max_tokens < ROOM else 0
            limit = max(wishes.max_tokens + more, self.least)
            changes["max_tokens"] = min(limit, self.most or limit)
        for name in likes:
            changes |= self.instead.get(name, {})
        return wishes.model_copy(update=changes)

    def learn(self, name: str, instead: dict[str, Any], sent: GenerateConfig) -> None:
        """A setting was refused: from now on send `instead`; of a limit, keep the end that the vendor named."""
        limit = instead.get("max_tokens")
        if limit is None:
            self.instead[name] = instead
        elif limit > (sent.max_tokens or 0):
            self.least = limit
        else:
            self.most = limit
        self.taken.discard(name)

    @asynccontextmanager
    async def turn(self, wanted: Collection[str]) -> AsyncIterator[None]:
        """Wait while another call tries settings, until those that this one wants are known; try those that are not.

        A trial that was not refused in `PROMPT` seconds is at work, and its settings count as taken: a reply can take
        minutes.
        """
        while (untried := frozenset(wanted) - self.taken) and self.trial is not None:
            trial = self.trial
            with anyio.CancelScope(deadline=trial.until):
                await trial.over.wait()
            if self.trial is trial:
                self.taken |= trial.settings
                self.trial = None
        if not untried:
            yield
            return
        mine = self.trial = Trial(untried, anyio.current_time() + PROMPT)
        try:
            yield
            self.taken |= untried
        finally:
            mine.over.set()
            if self.trial is mine:
                self.trial = None


_terms: WeakKeyDictionary[ModelAPI, Terms] = WeakKeyDictionary()


def terms_of(model: Model) -> Terms:
    """What is known of a model; its roles share it."""
    return _terms.setdefault(model.api, Terms())
