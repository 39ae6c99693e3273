"""What does an introspective prompt do inside the model? The command `mechanism read`: lens, attention and patch.

Patching (paper 003, §5.2: 23.9 %) asks how much of the change of the answer attention patterns bring. For it the folder
of `lens` also holds:

    patches/KEY.npz         a dilemma's logit differences under patched patterns, and its attention by place
"""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Self

import numpy as np
import pandas as pd
from pydantic import Field, model_validator

from selfprobe.errors import InputError
from selfprobe.errors.arguments import one_of
from selfprobe.mechanism.prompts import Item
from selfprobe.page import (
    Answer,
    Column,
    Figures,
    Finding,
    Page,
    Picture,
    estimated,
    percent,
    percents,
    shown,
    signed_number,
)
from selfprobe.page import Table as PageTable
from selfprobe.page.plots import bar_rows
from selfprobe.stats.estimate import Estimate, bootstrap, clustered_mean, undefined
from selfprobe.studies.attention import Attention
from selfprobe.studies.lens import (
    SHOWABLE,
    UNIT,
    Arrays,
    FloatArray,
    Found,
    Lens,
    arm,
    block_of,
    store_arrays,
    stored_arrays,
    tables_in,
    with_fullest_lens,
)
from selfprobe.study.local import GOING_ON, Blocks, Progress, said_plainly

if TYPE_CHECKING:
    from selfprobe.mechanism.reading import DilemmaReading, Patching
    from selfprobe.probes.forward import Spread

FORWARD = 30
"""Tokens of a long prompt that take as long as one token of several variants; rough, for the plan alone."""
PAPER = "Paper: 23.9 % at block 60 of Qwen3-32B, one number without a control."
NOT = "It does not show that patterns hold self-knowledge: controls say how much any other pattern brings."
WHY_NOT = f"A share says how much of the change of the answer comes with the weights of attention alone. {NOT}"
METHOD = (
    "Tokens that both prompts begin and end with get the other run's weights; what the other run gives to its own "
    "instruction goes to this run's instruction, in this run's proportions. All patterns need not explain all: values "
    "and residual states stay the recipient's."
)


class Patch(Lens):
    """How much of the change of the answer do attention patterns explain? One run's pattern in the other (23.9 %).

    It is compared with the patterns of two control prompts, random blocks and heads, each head, all blocks, and the
    mean pattern.
    """

    patterns: ClassVar[bool] = True

    into: Literal["direct", "introspective"] = Field(
        "direct", description="The run whose patterns are replaced by the other's."
    )
    positions: Literal["last", "tail"] = Field(
        "last", description="Patterns of the last token, or of all tokens that both prompts end with."
    )
    layers: Blocks = Field(
        "", description="Blocks whose patterns are patched, as 24,25 or 20-29:3, from 0. Default: where the runs part."
    )

    @property
    def loading(self) -> dict[str, Any]:
        """Every block is read, whichever are patched."""
        return super().loading | {"layers": ()}

    @property
    def needs(self) -> list[str]:
        """Lines of the reading, and a line on patching where the blocks are known."""
        if not self.layers and self.todo(patterns=True):
            return [*super().needs, "Patching comes after; which blocks is known then (--layers says it now)"]
        again = len(self.wanted.variants) // 4 * FORWARD * self.wanted.queries
        items = self.dilemmas if self.todo(patterns=True) else self.patched
        tokens = sum(item.tokens + again + item.shared for item in self.unpatched(items))
        return [*super().needs, f"Patching: {self.time(tokens)}"]

    @cached_property
    def wanted(self) -> "Patching":
        """Patterns to patch, and the run that each goes into.

        Raises:
            ValueError: The model has no such block.
        """
        from selfprobe.mechanism.reading import patching
        from selfprobe.probes.model import decoder_blocks
        from selfprobe.study.local import blocks

        judge, layers = self.judge, len(decoder_blocks(self.judge.model))
        if wrong := [block for block in blocks(self.layers) if block >= layers]:
            raise ValueError(f"{judge.name} has blocks 0..{layers - 1}, got --layers {', '.join(map(str, wrong))}")
        heads = int(judge.model.config.get_text_config().num_attention_heads)
        chosen = blocks(self.layers) or (block_of(with_fullest_lens(tables_in(self.folder), self.lens))[0],)
        whole = self.positions == "tail"
        return patching(self.dilemmas, chosen, into=self.into, layers=layers, heads=heads, whole_tail=whole)

    @property
    def lens(self) -> dict[str, pd.DataFrame]:
        """Tables lens and partings of the dilemmas that are patched."""
        return self.tabulated(self.readings, self.judge.numbers)

    @property
    def patched(self) -> list[Item]:
        """The dilemmas whose logits are finite."""
        return [item for item in self.dilemmas if item.id in self.readings]

    def unpatched(self, items: Sequence[Item], *more: str) -> list[Item]:
        """Dilemmas among these that are still to be patched."""
        return [item for item in items if stored_arrays(self.folder / "patches", self.patch_key(item, *more)) is None]

    def patch_key(self, item: Item, *more: str) -> str:
        """The name of what patching a dilemma gives."""
        wanted = self.wanted
        variants = [f"{v.name} {v.donor} {sorted(v.heads.items())}" for v in wanted.variants]
        return self.key(item, wanted.into, f"{wanted.queries} {wanted.tail}", *variants, *more)

    @property
    def everyone(self) -> str:
        """Text with the keys of all patched dilemmas, on which the mean pattern depends."""
        return "".join(sorted(map(self.key, self.patched)))

    def read(self, spread: "Spread", progress: Progress) -> None:
        """Read the dilemmas, then patch them; the mean pattern comes last, as it is known only once all are read.

        Raises:
            NoPatterns: Patterns cannot be read, or the model cannot go on from a cache.
        """
        from selfprobe.mechanism.reading import MEAN, NoPatterns, checked_reading, patched_in_context

        super().read(spread, progress)
        wanted, folder = self.wanted, self.folder / "patches"
        own, mean = (tuple(v for v in wanted.variants if (v.donor == MEAN) == last) for last in (False, True))
        if missing := self.unpatched(self.patched):
            progress(f"{len(missing)} of {len(self.patched)} dilemmas to patch, {len(own)} patterns each")
            with checked_reading(self.judge, max(missing, key=lambda item: item.longest)) as sharing:
                if not sharing:
                    raise NoPatterns(f"{self.judge.name} cannot go on from a cache of its own, which patching needs")
                for item, (values, places) in self._done(
                    spread, missing, progress, lambda i: (patched_in_context, i, wanted, own)
                ):
                    store_arrays(folder, self.patch_key(item), {"values": values, "profile": places})
        if missing := self.unpatched(self.patched, self.everyone):
            progress(f"{len(missing)} dilemmas under the mean pattern of the others")
            profiles = {item.id: held["profile"] for item, held in self._kept()}
            total, others = np.stack(list(profiles.values())).sum(axis=0), len(profiles) - 1

            def under_mean(item: Item) -> tuple[Any, ...]:
                return patched_in_context, item, wanted, mean, (total - profiles[item.id]) / others

            for item, (values, _) in self._done(spread, missing, progress, under_mean):
                store_arrays(folder, self.patch_key(item, self.everyone), {"values": values})

    def _done(
        self, spread: "Spread", missing: Sequence[Item], progress: Progress, job: Callable[[Item], tuple[Any, ...]]
    ) -> Iterator[tuple[Item, Any]]:
        from selfprobe.probes.harvesting import Meter

        meter = Meter(sum(item.tokens for item in missing), len(missing), progress, "dilemmas")
        for item, result in spread(self.judge, missing[0].prompts[self.into], missing, job):
            yield item, result
            meter.add(item.tokens, 1)
        meter.finish()

    def _kept(self, *more: str) -> Iterator[tuple[Item, Arrays]]:
        for item in self.patched:
            if (held := stored_arrays(self.folder / "patches", self.patch_key(item, *more))) is not None:
                yield item, held

    @property
    def effects(self) -> dict[str, FloatArray]:
        """Variant → logit difference [dilemma], in the order of `patched`."""
        from selfprobe.mechanism.reading import MEAN

        effects: dict[str, FloatArray] = {}
        for last, more in ((False, ()), (True, (self.everyone,))):
            values = np.stack([held["values"] for _, held in self._kept(*more)]).astype(np.float64)
            variants = [variant.name for variant in self.wanted.variants if (variant.donor == MEAN) == last]
            effects |= {name: values[:, at] for at, name in enumerate(variants)}
        return effects

    def study_tables(self) -> dict[str, pd.DataFrame]:
        """Tables lens, partings and patch."""
        names = [item.id for item in self.patched]
        return self.lens | {"patch": _patch_table(self.wanted, self.effects, self.readings, names)}

    @classmethod
    def page(cls, found: Found) -> Page:
        """The answer, with the table patch."""
        rows = found.tables["patch"]
        by_name = rows.set_index("variant")
        shift, there = by_name.loc["shift"], bool(rows.share.notna().any())
        first = rows[~rows.group.isin(RARE) & ~rows.group.str.contains("one ")]
        bare = f", without an interval as these are fewer than {SHOWABLE} dilemmas," * bool(shift.n < SHOWABLE)
        moves = f"The other prompt moves the logit of A less that of B by {shown(shift, sign=True)}"
        share = (
            f"Share of it{bare}" if there else "That is not shown to differ from 0, so there is no share of it. Change"
        )
        why = f"{moves} ({int(shift.n)} dilemmas). {share} that a pattern brings is under Tables."
        answer, clause = _answer(rows, shift, there)
        brings = (
            Column("share of the shift", "share", percent)
            if there
            else Column("change of the logit difference", "value", signed_number)
        )
        columns = [Column("pattern", "variant"), estimated("change of the logit difference", digits=3)]
        everything = PageTable(
            list(rows.itertuples()), [*columns, estimated("share of the shift", _share_of, 3), Column("group", "group")]
        )
        return found.page(
            "Do attention patterns carry the change of the answer?",
            Finding(found.model, answer, clause, rows, [f"{moves}.", PAPER, NOT]),
            picture=_picture("patch", first, there),
            table=PageTable(list(first.itertuples()), [Column("pattern", "variant"), brings]),
            why=[why, WHY_NOT],
            paper=[PAPER],
            cells=[Figures([_picture("patch_all", rows[rows.group != "shift"], there)]), everything],
            method=[METHOD],
            tables=("lens", "partings", "patch"),
        )


RARE = ("shift", "control: random blocks", "control: random heads")
"""Groups that are not in the first picture."""


def _answer(rows: pd.DataFrame, shift: Any, there: bool) -> tuple[Answer, str]:
    own = rows.iloc[1]  # behind the shift
    if not there:
        return "Cannot tell", f"is not shown to answer otherwise under the other prompt: {shown(shift, sign=True)}"
    text = rows[rows.group == "control: pattern of the irrelevant text, given blocks"].iloc[0]
    share, control = (percents(_share_of(row)) for row in (own, text))
    clause = f"takes over {share} of the shift with the {own.group.split()[0]} run's pattern"
    if math.isnan(own.share_low):
        return "Cannot tell", f"{clause}, and {int(shift.n)} dilemmas are too few for an interval"
    beside = f"{clause}, and {control} with that of irrelevant text"
    if own.share_high <= 0:
        return "No", beside
    return ("Yes" if own.share_low > max(0.0, text.share_high) else "Cannot tell"), beside


def _share_of(row: Any) -> Any:
    return pd.Series({"value": row.share, "low": row.share_low, "high": row.share_high, "reason": row.reason})


def _picture(stem: str, rows: pd.DataFrame, there: bool) -> Picture:
    """Picture of what each pattern brings: as a share, or where there is no shift as it is."""
    part = rows[rows.share.notna()] if there else rows
    marks = {_short(row.variant): {"": _share_of(row) if there else row} for row in part.itertuples()}
    if there:
        whole = "95 % intervals; dashed: the whole shift."
        return bar_rows(stem, marks, caption=whole, axis="share of the shift", scale="percent", line=1)
    axis = "change of the logit difference"
    return bar_rows(stem, marks, caption="95 % intervals.", axis=axis, scale="signed", line=0)


def _short(variant: str) -> str:
    name, _, place = variant.partition(", ")
    return f"{name.removeprefix('pattern of the ').removeprefix('prompt ')}\n{place}"


def _patch_table(
    wanted: "Patching", found: Mapping[str, FloatArray], readings: "Mapping[str, DilemmaReading]", names: list[str]
) -> pd.DataFrame:
    """variant, group, value, low, high, n: change of the logit difference; share, share_low, share_high, reason.

    The row `shift` is the change from the recipient's run to the donor's. A share is a mean change over the mean shift,
    as the paper's 23.9 %; it is undefined where the shift is not shown to differ from 0.
    """
    before = found["unpatched"]
    shift = np.array([readings[name].spoken[arm(wanted.donor)] for name in names], dtype=float) - before
    whole = clustered_mean(shift, names, unit=UNIT, interval="t")
    rows = [{"variant": "shift", "group": "shift"} | _columns(whole, undefined(""))]
    for variant in wanted.variants[1:]:
        change = found[variant.name] - before
        share = _share(change, shift, whole, names)
        row = _columns(clustered_mean(change, names, unit=UNIT, interval="t"), share)
        rows.append({"variant": variant.name, "group": variant.group} | row)
    return pd.DataFrame(rows)


def _share(change: FloatArray, shift: FloatArray, whole: Estimate, names: list[str]) -> Estimate:
    if not whole.low * whole.high > 0:
        return undefined("the shift is not shown to differ from 0", n=whole.n, unit=UNIT)
    if whole.n < SHOWABLE:  # drawn again, so few have an interval that holds the truth in half of all cases
        why = f"no interval of a share from {whole.n} dilemmas, {SHOWABLE} or more are needed"
        return undefined(why, n=whole.n, unit=UNIT, value=float(change.mean() / shift.mean()))
    rng = np.random.default_rng(0)
    return bootstrap(lambda c, s: c / s, change, shift, clusters=names, rng=rng, unit=UNIT, of_means=True)


def _columns(change: Estimate, share: Estimate) -> dict[str, object]:
    ends = {name: value for name, value in asdict(change).items() if name in ("value", "low", "high", "n")}
    shares = {"share": share.value, "share_low": share.low, "share_high": share.high}
    return ends | shares | {"reason": share.reason or ("" if math.isnan(change.value) else change.reason)}


PARTS: Mapping[str, type[Lens]] = {"lens": Lens, "attention": Attention, "patch": Patch}
"""Parts of the folder, each with all that the one before it reads."""


class Read(Patch):
    """What does an introspective prompt do inside the model? Logit lens, attention, one run's patterns in the other.

    lens: the block where direct and introspective runs part (paper 003, Figure 5). attention: where the last token
    looks, and how widely (Figures 6, 7). patch: how much of the change its pattern brings (23.9 %). What is in the
    folder is not read again.
    """

    reads: ClassVar[frozenset[str]] = frozenset()

    parts: tuple[str, ...] = Field(tuple(PARTS), description="Parts to make: lens, attention, patch.")
    layers: Blocks = Field(
        "",
        description="Blocks, as 8,16,24 or 0-31:4, from 0: with patch those that are patched (default: where the runs "
        "part), else those that are read (default: all).",
    )

    @model_validator(mode="after")
    def _has_parts(self) -> Self:
        for name in self.parts or ("none",):
            one_of("--parts", name, tuple(PARTS))
        if "patch" not in self.parts and (self.into, self.positions) != ("direct", "last"):
            raise InputError("--into and --positions go with --parts patch")
        return self

    @property
    def loading(self) -> dict[str, Any]:
        """Every block is read where some are patched."""
        return super().loading if "patch" in self.parts else super(Patch, self).loading

    @cached_property
    def studies(self) -> dict[str, Lens]:
        """The parts by name; the last reads what the others need."""
        given = self.model_dump() | ({"layers": ""} if "patch" in self.parts else {})
        made = dict[str, Lens]()
        for name, part in PARTS.items():
            if name in self.parts:
                own = given | ({"layers": self.layers} if name == "patch" else {})
                made[name] = part(**{key: own[key] for key in part.model_fields.keys() & own})
                vars(made[name])["judge"] = self.judge
        return made

    @property
    def last(self) -> Lens:
        """The part that reads most."""
        return list(self.studies.values())[-1]

    @property
    def needs(self) -> list[str]:
        """Lines on what its last part takes."""
        return self.last.needs

    def work(self, progress: Progress) -> None:
        """Read what its last part needs."""
        self.last.work(progress)

    def shown(self) -> Page:
        """The page of its parts, and of those that the folder had."""
        there = tables_in(self.folder)
        with said_plainly(GOING_ON):
            pages = {name: part.page(part.found()) for name, part in self.studies.items()}
        frames = {**there, **{name: frame for page in pages.values() for name, frame in page.frames.items()}}
        notes = next(iter(pages.values())).lines if len(pages) == 1 else [page.answer for page in pages.values()]
        pages |= {
            name: part.page(Found(self.held, frames))
            for name, part in PARTS.items()
            if name in there and name not in pages
        }
        if len(pages) == 1:
            return next(iter(pages.values()))
        tables = {**frames, **{name: table for page in pages.values() for name, table in page.tables.items()}}
        return Page("What happens inside the model?", parts=pages, tables=tables, notes=notes)
