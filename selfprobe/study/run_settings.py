"""Settings of how a command's runs are asked and shown, whatever they measure."""

import asyncio
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import Any

from selfprobe.data.prices import Cost, Prices, cost_table, dollars, read_prices
from selfprobe.errors import InputError
from selfprobe.errors.arguments import SAME_MODEL
from selfprobe.study.described import NamedModel, available_model
from selfprobe.study.on_ray import RayCluster, requested_cluster

SHORT = 100
"""Tokens of replies that the plan of a slow run names."""


def _minutes(seconds: float) -> str:
    return f"{seconds / 60:,.0f} minutes" if seconds >= 90 else "a minute" if seconds >= 30 else "half a minute"


@dataclass(frozen=True)
class RunSettings:
    """The options of `options.asking`, and --skip-errors and those of `options.engine` where a command has them."""

    model_args: Mapping[str, Any] = field(default_factory=dict)
    """Model arguments of the measured models; graders have none."""
    max_connections: int | None = None
    attempt_timeout: int | None = None
    """Seconds; None is the default, ask.PATIENCE."""
    max_retries: int | None = None
    batch: bool | None = None
    """Send calls in batches."""
    skip_errors: bool | None = None
    """Leave items out whose calls fail for good: unscored, "error"; None where a command cannot."""
    same_model: bool = False
    """Leave replies of another model than the one that was asked unscored."""
    prices: Prices = field(default_factory=dict)
    cost_limit: float | None = None
    """Dollars of calls at which a command stops."""
    display: str | None = None
    engine: RayCluster | None = None
    """Engine that makes described runs; None is this process."""

    @classmethod
    def taken(cls, options: dict[str, Any]) -> "RunSettings":
        """Take these options out of what a command was given.

        Raises:
            InputError: The file of prices is none, or options of where runs are made do not go together.
        """
        cluster = requested_cluster(options.pop("engine", None), options.pop("ray_address", None))
        own = {one.name: options.pop(one.name) for one in fields(cls) if one.name in options}
        if own.get("cost_limit") and (not own["prices"] or cluster):
            raise InputError("--cost-limit needs --prices, a file of what calls cost, and goes without --engine ray")
        return cls(**own | {"prices": read_prices(own["prices"]), "engine": cluster})

    @property
    def shared(self) -> dict[str, Any]:
        """Arguments that every task of the command is run with."""
        return {SAME_MODEL: True} if self.same_model else {}

    def costed(self, costs: Sequence[Cost], *, rounds: int) -> list[str]:
        """Lines of text with the costs of the runs.

        Args:
            costs: One entry a model.
            rounds: Calls that wait for one another, for the time that batches take.

        Raises:
            InputError: A name is no model's, whatever keys there are.
        """
        for cost in costs:
            NamedModel(cost.model).refuse_impossible()
        if self.cost_limit and (unknown := [cost.model for cost in costs if math.isnan(dollars(cost, self.prices))]):
            raise InputError(f"--cost-limit needs the price of {unknown[0]} in --prices")
        return cost_table(costs, self.prices, rounds=rounds if self.batch else None)

    def lasting(self, costs: Sequence[Cost], shorter: Sequence[Cost] = ()) -> list[str]:
        """Durations of the calls of embedded models on this machine, from two calls that are timed; a line each.

        Args:
            costs: One entry a model.
            shorter: Costs with replies of at most SHORT tokens; none where that cannot be chosen.
        """
        lines = []
        for cost in costs if self.engine is None else ():
            if cost.calls and cost.model.startswith("embedded/"):
                from selfprobe.providers.embedded import EmbeddedAPI  # brings the openai package: half a second

                api = available_model(cost.model, memoize=False, **self.model_args).api
                assert isinstance(api, EmbeddedAPI)
                read, written = asyncio.run(api.pace())
                whole, *less = (
                    _minutes(one.tokens_in / read + one.tokens_out / written)
                    for one in (cost, *(each for each in shorter if each.model == cost.model))
                )
                tip = f"; --reply-tokens {SHORT} makes it {less[0]}" if less and less[0] != whole else ""
                lines.append(f"{cost.model}: about {whole} on this machine{tip}")
        return lines

    def tried(self, *models: NamedModel) -> None:
        """Open models that a later wave needs, before anything is paid; on a cluster their keys are on the nodes.

        Raises:
            InputError: One cannot be had.
        """
        for model in models if self.engine is None else ():
            model.open()

    @property
    def arguments(self) -> dict[str, Any]:
        """Arguments for `eval_set`; None is its default."""
        same = ("max_connections", "attempt_timeout", "max_retries", "batch", "display")
        return {name: getattr(self, name) for name in same} | {
            "fail_on_error": False if self.skip_errors else None,
            "model_cost_config": dict(self.prices) or None,
        }
