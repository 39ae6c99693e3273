"""`selfprobe mechanism …`: thin command lines."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from selfprobe import options
from selfprobe.mechanism.induce_command import induce
from selfprobe.probes.options import (
    SYSTEM,
    TEMPLATE_ARGUMENT,
    Command,
    engine_options,
    gathered,
    loading,
    said_plainly,
)
from selfprobe.safe import echo

if TYPE_CHECKING:
    import pandas as pd

    from selfprobe.mechanism.run import Study

GOING_ON = "What was read is kept; the same command goes on where this one stopped."

asking = gathered(
    "asking",
    click.option("--model", required=True, help="Folder, .gguf file, hub name, or smollm2."),
    click.option(
        "--dataset",
        default="ethical_dilemmas",
        show_default=True,
        help="Bundled, a file or hf:…, with a column dilemma that names Option A and Option B.",
    ),
    options.limit,
    click.option(
        "--opening", metavar="TEXT", help="How the answer begins, before A or B; by default a neutral clause."
    ),
    SYSTEM,
    TEMPLATE_ARGUMENT,
)
"""Which model is asked what."""


def shared(layers: str) -> Callable[[Command], Command]:
    """The options of lens, attention and patch; `layers`: the help of --layers."""

    def decorate(command: Command) -> Command:
        for option in (
            loading(layers),
            click.option("--dry-run", is_flag=True, help="Only say what it would take (the model is loaded)."),
            click.option(
                "--out", type=click.Path(file_okay=False, path_type=Path), default="mechanism", show_default=True
            ),
            engine_options,
            asking,
        ):
            command = option(command)
        return command

    return decorate


BLOCKS = "Blocks that are read, as 8,16,24 or 0-31:4, from 0; by default all."


@click.group(cls=options.Group)
def mechanism() -> None:
    """Why models can introspect: lens, attention, patching and induction (paper 003, section 5)."""


@mechanism.command()
@shared(BLOCKS)
def lens(asking: dict[str, Any], out: Path, dry_run: bool, loading: dict[str, Any], engine: dict[str, Any]) -> None:
    """At which block do direct and introspective runs part? Logit of A less that of B after every block (Figure 5)."""
    with said_plainly(GOING_ON), _copies(engine) as copied:
        from selfprobe.mechanism import numbers, plan, run

        study = _study(asking, out, loading, dry_run)
        echo(plan.plan_text(study, attention=True))
        if dry_run:
            return
        found = run.readings(study, attention=None, spread=_spread(study, asking, loading, copied))
        blocks = study.judge.numbers
        _publish(out, {"lens": numbers.lens_table(found, blocks), "partings": numbers.partings(found, blocks)})


@mechanism.command()
@shared(BLOCKS)
def attention(
    asking: dict[str, Any], out: Path, dry_run: bool, loading: dict[str, Any], engine: dict[str, Any]
) -> None:
    """Does introspection spread attention? Entropy of the last token's pattern, by block and head (Figures 6, 7).

    Beside the paper's comparison: an irrelevant text of equal length, entropy over ln N, without the first token.
    """
    with said_plainly(GOING_ON), _copies(engine) as copied:
        from selfprobe.mechanism import numbers, plan, run

        study = _study(asking, out, loading, dry_run)
        echo(plan.plan_text(study, attention=True))
        if dry_run:
            return
        found = run.readings(study, spread=_spread(study, asking, loading, copied))
        makers = {
            "lens": numbers.lens_table,
            "partings": numbers.partings,
            "attention": numbers.attention_table,
            "heads": numbers.heads_table,
            "places": numbers.places_table,
        }
        _publish(out, {name: make(found, study.judge.numbers) for name, make in makers.items()}, tell="attention")


@mechanism.command()
@click.option(
    "--into",
    type=click.Choice(["direct", "introspective"]),
    default="direct",
    show_default=True,
    help="The run whose patterns are replaced by the other's.",
)
@click.option(
    "--positions",
    type=click.Choice(["last", "tail"]),
    default="last",
    show_default=True,
    help="Patterns of the last token, or of all tokens that both prompts end with.",
)
@shared("Blocks whose patterns are patched, as 24,25 or 20-29:3, from 0; by default where the runs part.")
def patch(
    asking: dict[str, Any],
    out: Path,
    dry_run: bool,
    loading: dict[str, Any],
    engine: dict[str, Any],
    into: str,
    positions: str,
) -> None:
    """How much of the change of the answer do attention patterns explain? One run's pattern in the other (23.9 %).

    Beside the patterns of two control prompts, random blocks and heads, each head, all blocks, and the mean pattern.
    """
    with said_plainly(GOING_ON), _copies(engine) as copied:
        from dataclasses import replace

        from selfprobe.mechanism import findings, numbers, page, patch_run, plan, run

        blocks = loading.pop("layers")
        study = _study(asking, out, loading, dry_run)
        echo(plan.plan_text(study, attention=True))
        if dry_run and not blocks:
            echo("Patching comes after; which blocks is known then (--layers says it now)")
            return
        how: dict[str, Any] = {"into": into, "whole_tail": positions == "tail"}
        wanted = patch_run.chosen(study, blocks, **how) if blocks else None
        if not dry_run:
            spread = _spread(study, asking, loading, copied)
            read = run.readings(study, spread=spread)
            study = replace(study, items=[item for item in study.items if item.id in read])
            makers = {"lens": numbers.lens_table, "partings": numbers.partings}
            made = {name: make(read, study.judge.numbers) for name, make in makers.items()}
            block, _ = findings.block_of(page.with_fullest_lens(out, made))
            wanted = wanted or patch_run.chosen(study, (block,), **how)
        assert wanted is not None
        echo(f"Patching: {plan.time_text(patch_run.cost(study, wanted), plan.tokens_a_second(study))}")
        if dry_run:
            return
        names = [item.id for item in study.items]
        made["patch"] = patch_run.patch_table(wanted, patch_run.effects(study, wanted, spread=spread), read, names)
        _publish(out, made, tell="patch")


def _study(asking: dict[str, Any], out: Path, loading: dict[str, Any], dry: bool) -> "Study":
    """The model, loaded if there is room for it, and the dilemmas as it reads them."""
    from dataclasses import replace

    from selfprobe.data import load
    from selfprobe.errors import InputError
    from selfprobe.mechanism import run
    from selfprobe.mechanism.prompts import OPENING
    from selfprobe.probes.memory import check_memory
    from selfprobe.probes.model import load_model, without_bars
    from selfprobe.probes.tokens import Chat

    without_bars()
    if out.is_file():
        raise InputError(f"cannot write to {out}: it is a file; give a folder")
    table = load(asking["dataset"], ("dilemma",))
    if asking["limit"]:
        table = replace(table, rows=table.first(asking["limit"]))
    check_memory(asking["model"], loading)
    chat = Chat(asking["system"] or "", dict(asking["arguments"]))
    judge = load_model(asking["model"], chat=chat, **loading)
    opening = OPENING if asking["opening"] is None else asking["opening"]
    return run.study(judge, table, out, opening=opening, dry=dry)


def _copies(engine: dict[str, Any]) -> Any:
    """What makes copies of the model on a cluster, within a block; None where this process reads."""
    from selfprobe.on_ray import copies

    return copies(**engine)


def _spread(study: "Study", asking: dict[str, Any], loading: dict[str, Any], copied: Any) -> Any:
    """What reads: this process, or copies of the model on a cluster."""
    from selfprobe.probes.forward import here

    return copied(study.judge, asking["model"], loading).spread if copied else here


def _publish(out: Path, made: "Mapping[str, pd.DataFrame]", *, tell: str = "lens") -> None:
    from selfprobe.mechanism.page import publish

    address, told = publish(out, made, tell)
    echo("\n" + "\n".join(f"- {sentence}" for sentence in told))
    echo(f"\nTables: {out}/tables   Figures: {out}/figures   Page: {address}")


mechanism.add_command(induce)
