"""What does an introspective prompt do inside the model? The command `mechanism read`: lens,
attention and patch.

Patching (paper 003, §5.2: 23.9 %) asks how much of the change of the answer attention patterns
bring. For it the folder of `lens` also holds:

    patches/KEY.npz         a dilemma's logit differences under patched patterns, and its attention by place
"""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cached_property, partial
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal, Self

import numpy as np
import pandas as pd
from pydantic import Field, model_validator

from selfprobe.errors import InputError
from selfprobe.errors.arguments import one_of
from selfprobe.mechanism.prompts import Item
from selfprobe.page import (
    ClaimWords,
    Figures,
    Heading,
    Page,
    Picture,
    RowTable,
    percents,
    shown,
)
from selfprobe.page import Table as PageTable
from selfprobe.page.columns import columns_of, rows_of_frame
from selfprobe.page.numerals import points
from selfprobe.page.plots import bar_rows
from selfprobe.stats.claim import Check, Claim, Outcome, outcome_above_zero
from selfprobe.stats.estimate import Estimate, bootstrap, clustered_mean, undefined
from selfprobe.studies.attention import Attention
from selfprobe.studies.lens import (
    SHOWABLE,
    UNIT,
    FloatArray,
    Found,
    Lens,
    LensRow,
    PartingRow,
    amount_text,
    arm,
    block_of,
    tables_in,
    with_fullest_lens,
)
from selfprobe.study.arrays import Arrays, store_arrays, stored_arrays
from selfprobe.study.local import GOING_ON, Blocks, Progress, said_plainly

if TYPE_CHECKING:
    from selfprobe.mechanism.reading import DilemmaReading, Patching
    from selfprobe.probes.forward import Spread

FORWARD = 30
"""Tokens of a long prompt that take as long as one token of several variants; rough, for the plan
alone.
"""
PAPER = "Paper: 23.9 % at block 60 of Qwen3-32B, one number without a control."
NOT = "It does not show that patterns hold self-knowledge: controls say how much any other pattern brings."
WHY_NOT = f"A share says how much of the change of the answer comes with the weights of attention alone. {NOT}"
METHOD = (
    "Tokens that both prompts begin and end with get the other run's weights; what the other run gives to its own "
    "instruction goes to this run's instruction, in this run's proportions. All patterns need not explain all: values "
    "and residual states stay the recipient's."
)


class Patch(Lens):
    """How much of the change of the answer do attention patterns explain? One run's pattern in the
    other (23.9 %).

    It is compared with the patterns of two control prompts, random blocks and heads, each head, all
    blocks, and the mean pattern.
    """

    patterns: ClassVar[bool] = True

    into: Literal["direct", "introspective"] = Field(
        "direct", description="The run whose patterns are replaced by the other's."
    )
    positions: Literal["last", "tail"] = Field(
        "last",
        description="Patterns of the last token, or of all tokens that both prompts end with.",
    )
    layers: Blocks = Field(
        "",
        description="Blocks whose patterns are patched, as 24,25 or 20-29:3, from 0. Default: where the runs part.",
    )

    @property
    def loading(self) -> dict[str, Any]:
        """Every block is read, whichever are patched."""
        return super().loading | {"layers": ()}

    @property
    def needs(self) -> list[str]:
        """Lines of the reading, and a line on patching where the blocks are known."""
        if not self.layers and self.todo(patterns=True):
            return [
                *super().needs,
                "Patching comes after; which blocks is known then (--layers says it now)",
            ]
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
            raise ValueError(
                f"{judge.name} has blocks 0..{layers - 1}, got --layers {', '.join(map(str, wrong))}"
            )
        heads = int(judge.model.config.get_text_config().num_attention_heads)
        chosen = blocks(self.layers) or (
            block_of(with_fullest_lens(tables_in(self.folder), self.lens))[0],
        )
        whole = self.positions == "tail"
        return patching(
            self.dilemmas, chosen, into=self.into, layers=layers, heads=heads, whole_tail=whole
        )

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
        return [
            item
            for item in items
            if stored_arrays(self.folder / "patches", self.patch_key(item, *more)) is None
        ]

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
        """Read the dilemmas, then patch them; the mean pattern comes last, as it is known only once
        all are read.

        Raises:
            NoPatterns: Patterns cannot be read, or the model cannot go on from a cache.
        """
        from selfprobe.mechanism.reading import (
            MEAN,
            NoPatterns,
            checked_reading,
            patched_in_context,
        )

        super().read(spread, progress)
        wanted, folder = self.wanted, self.folder / "patches"
        own, mean = (
            tuple(v for v in wanted.variants if (v.donor == MEAN) == last) for last in (False, True)
        )
        if missing := self.unpatched(self.patched):
            progress(
                f"{len(missing)} of {len(self.patched)} dilemmas to patch, {len(own)} patterns each"
            )
            with checked_reading(
                self.judge, max(missing, key=lambda item: item.longest)
            ) as sharing:
                if not sharing:
                    raise NoPatterns(
                        f"{self.judge.name} cannot go on from a cache of its own, which patching needs"
                    )
                for item, (values, places) in self._done(
                    spread, missing, progress, lambda i: (patched_in_context, i, wanted, own)
                ):
                    store_arrays(
                        folder, self.patch_key(item), {"values": values, "profile": places}
                    )
        if missing := self.unpatched(self.patched, self.everyone):
            progress(f"{len(missing)} dilemmas under the mean pattern of the others")
            profiles = {item.id: held["profile"] for item, held in self._kept()}
            total, others = np.stack(list(profiles.values())).sum(axis=0), len(profiles) - 1

            def under_mean(item: Item) -> tuple[Any, ...]:
                return patched_in_context, item, wanted, mean, (total - profiles[item.id]) / others

            for item, (values, _) in self._done(spread, missing, progress, under_mean):
                store_arrays(folder, self.patch_key(item, self.everyone), {"values": values})

    def _done(
        self,
        spread: "Spread",
        missing: Sequence[Item],
        progress: Progress,
        job: Callable[[Item], tuple[Any, ...]],
    ) -> Iterator[tuple[Item, Any]]:
        from selfprobe.probes.harvesting import Meter

        meter = Meter(sum(item.tokens for item in missing), len(missing), progress, "dilemmas")
        for item, result in spread(self.judge, missing[0].prompts[self.into], missing, job):
            yield item, result
            meter.add(item.tokens, 1)
        meter.finish()

    def _kept(self, *more: str) -> Iterator[tuple[Item, Arrays]]:
        for item in self.patched:
            if (
                held := stored_arrays(self.folder / "patches", self.patch_key(item, *more))
            ) is not None:
                yield item, held

    @property
    def effects(self) -> dict[str, FloatArray]:
        """Variant → logit difference [dilemma], in the order of `patched`."""
        from selfprobe.mechanism.reading import MEAN

        effects: dict[str, FloatArray] = {}
        for last, more in ((False, ()), (True, (self.everyone,))):
            values = np.stack([held["values"] for _, held in self._kept(*more)]).astype(np.float64)
            variants = [
                variant.name for variant in self.wanted.variants if (variant.donor == MEAN) == last
            ]
            effects |= {name: values[:, at] for at, name in enumerate(variants)}
        return effects

    def study_tables(self) -> dict[str, pd.DataFrame]:
        """Tables lens, partings and patch."""
        names = [item.id for item in self.patched]
        return self.lens | {"patch": _patch_table(self.wanted, self.effects, self.readings, names)}

    @classmethod
    def page(cls, found: Found) -> Page:
        """The answer, with the table patch."""
        rows = patch_rows(found.tables["patch"])
        claim = patch_claim(rows, found.model)
        shift = rows[0].estimate
        has_share = any(not math.isnan(row.share.value) for row in rows)
        moves = f"The other prompt moves the logit of A less that of B by {shown(shift, sign=True)}"
        share_line = _share_line(shift, has_share=has_share)
        first_rows = [
            row for row in rows if row.group not in RARE_GROUPS and "one " not in row.group
        ]
        every_row = [row for row in rows if row.group != SHIFT]
        shown_field = "share" if has_share else "estimate"
        lens_rows = rows_of_frame(LensRow, found.tables["lens"], unit=UNIT)
        parting_rows = rows_of_frame(PartingRow, found.tables["partings"], unit=UNIT)
        return found.claim_page(
            "Do attention patterns carry the change of the answer?",
            claim,
            PATCH_WORDS,
            picture=_picture("patch", first_rows, has_share=has_share),
            table=PageTable(first_rows, columns_of(PatchRow, "variant", shown_field)),
            tables={
                "lens": RowTable(LensRow, lens_rows, on_page=False),
                "partings": RowTable(PartingRow, parting_rows, on_page=False),
                "patch": RowTable(PatchRow, rows),
            },
            why=[f"{moves} ({shift.n} dilemmas). {share_line}", WHY_NOT],
            paper=[PAPER],
            cells=[Figures([_picture("patch_all", every_row, has_share=has_share)])],
            method=[METHOD],
            lines=[f"{moves}.", PAPER, NOT],
        )


def _share_line(shift: Estimate, *, has_share: bool) -> str:
    """What the numbers of the patterns are."""
    if not has_share:
        return "That is not shown to differ from 0, so there is no share of it. Changes are under Tables."
    bare = (
        f", without an interval as these are fewer than {SHOWABLE} dilemmas,"
        if shift.n < SHOWABLE
        else ""
    )
    return f"Share of it{bare} that a pattern brings is under Tables."


# ---- the claim

SMALLEST_SHARE = 0.1
"""Smallest share of the change of the answer that matters."""
SHIFT = "shift"
RARE_GROUPS = (SHIFT, "control: random blocks", "control: random heads")
"""Groups that are not in the first picture."""


@dataclass(frozen=True)
class PatternControl:
    """Patterns that must bring less than the other run's."""

    check: str
    group: str
    """Beginning of its group's name in the table."""
    label: str
    remedy: str = "add dilemmas"
    """What to do where it was not patched."""


PATTERN_CONTROLS = (
    PatternControl(
        "above_irrelevant_text", "control: pattern of the irrelevant text", "irrelevant text"
    ),
    PatternControl(
        "above_another_assistant",
        "control: pattern of the prompt about another",
        "another assistant",
    ),
    PatternControl(
        "above_random_blocks",
        "control: random blocks",
        "random blocks",
        "patch fewer blocks (--layers)",
    ),
    PatternControl(
        "above_random_heads",
        "control: random heads",
        "a random head",
        "patch fewer blocks (--layers)",
    ),
)
PATCH_WORDS = ClaimWords(
    yes="takes over {effect} of the shift with the other run's patterns; closest is {competitor}",
    no="takes over less than a tenth of the shift with the other run's patterns: {effect}",
    explained="takes over no more of the shift with the other run's patterns than with {competitor}",
    checks={
        "several_dilemmas": "asked about enough dilemmas",
        "shift": "answering otherwise under the other prompt",
        "brings": "taking over the shift with the other run's patterns",
        **{
            control.check: f"taking over more than with {control.label}"
            for control in PATTERN_CONTROLS
        },
    },
    unmet={
        "several_dilemmas": "cannot be told by {dilemmas} dilemmas",
        "shift": "is not shown to answer otherwise under the other prompt: {difference}",
    },
    units={
        "several_dilemmas": amount_text,
        "shift": partial(shown, sign=True),
        **{control.check: points for control in PATTERN_CONTROLS},
    },
    write=percents,
)


@dataclass(frozen=True)
class PatchRow:
    """Patterns that were put in, and what each changes."""

    variant: Annotated[str, Heading("pattern", "What was put in, and where.")]
    group: Annotated[str, Heading("group", "Kind of the pattern.")]
    estimate: Annotated[
        Estimate,
        Heading(
            "change of the logit difference",
            "What putting it in changes.",
            partial(shown, digits=3, sign=True),
        ),
    ]
    share: Annotated[
        Estimate,
        Heading(
            "share of the shift", "This change, of the whole difference between the runs.", percents
        ),
    ]
    over: Annotated[
        Estimate,
        Heading(
            "other run's less it",
            "Share of the other run's pattern less this one's, paired.",
            percents,
        ),
    ]
    reason: Annotated[
        str, Heading("reason", "Why there is no share, or no interval.", on_page=False)
    ]


def patch_rows(table: pd.DataFrame | RowTable) -> list[PatchRow]:
    """Rows of the table patch; the first is the shift."""
    frame = table.frame if isinstance(table, RowTable) else table
    return [_patch_row(row) for row in frame.itertuples()]


def _patch_row(row: Any) -> PatchRow:
    reason = row.reason if isinstance(row.reason, str) else ""
    count = int(row.n)
    return PatchRow(
        variant=row.variant,
        group=row.group,
        estimate=Estimate(
            row.value, row.low, row.high, count, UNIT, "" if row.low == row.low else reason
        ),
        share=Estimate(row.share, row.share_low, row.share_high, count, UNIT, reason),
        over=Estimate(row.over, row.over_low, row.over_high, count, UNIT, reason),
        reason=reason,
    )


def patch_claim(rows: Sequence[PatchRow], subject: str) -> Claim:
    """The claim that the other run's attention patterns carry the change of the answer.

    Args:
        rows: The shift, the other run's pattern in the given blocks, and all further patterns.
        subject: The model's name on the page.
    """
    shift, own = rows[0].estimate, rows[1]
    is_enough = shift.n >= SHOWABLE
    is_shift = shift.low * shift.high > 0
    checks = [
        Check(
            name="several_dilemmas",
            difference=Estimate(shift.n, math.nan, math.nan, shift.n, UNIT),
            outcome=Outcome.HOLDS if is_enough else Outcome.OPEN,
            remedy="" if is_enough else f"{SHOWABLE} are the least",
        ),
        Check(
            name="shift",
            difference=shift,
            outcome=Outcome.HOLDS if is_shift else Outcome.OPEN,
            remedy="" if is_shift else "add dilemmas",
        ),
        _share_check("brings", own.share, remedy="add dilemmas"),
    ]
    checks += [_pattern_check(control, rows) for control in PATTERN_CONTROLS]
    return Claim(subject, own.share, tuple(checks), SMALLEST_SHARE, {"dilemmas": str(shift.n)})


def _share_check(
    name: str, share: Estimate, *, compared_with: str = "", remedy: str, explains: bool = False
) -> Check:
    outcome = outcome_above_zero(share, smallest=SMALLEST_SHARE)
    return Check(
        name=name,
        difference=share,
        outcome=outcome,
        compared_with=compared_with,
        explains=explains,
        remedy="" if outcome is Outcome.HOLDS else remedy,
    )


def _pattern_check(control: PatternControl, rows: Sequence[PatchRow]) -> Check:
    """The requirement that the other run's pattern brings more than the one of a group that brings
    most.
    """
    group = [
        row
        for row in rows
        if row.group.startswith(control.group) and not math.isnan(row.over.value)
    ]
    if not group:
        reason = undefined("there is no share", unit=UNIT)
        return Check(control.check, reason, Outcome.OPEN, control.label, remedy=control.remedy)
    closest = min(group, key=lambda row: row.over.value)
    compared_with = f"{control.label}: {percents(closest.share)}"
    return _share_check(
        control.check,
        closest.over,
        compared_with=compared_with,
        remedy="add dilemmas",
        explains=True,
    )


# ---- what the page shows


def _picture(stem: str, rows: Sequence[PatchRow], *, has_share: bool) -> Picture:
    """Picture of what each pattern brings: as a share, or where there is no shift as it is."""
    marks = {}
    for row in rows:
        estimate = row.share if has_share else row.estimate
        if not math.isnan(estimate.value) or not has_share:
            marks[_short_name(row.variant)] = {"": estimate}
    if has_share:
        caption = "95 % intervals; dashed: the whole shift."
        return bar_rows(
            stem, marks, caption=caption, axis="share of the shift", scale="percent", line=1
        )
    axis = "change of the logit difference"
    return bar_rows(stem, marks, caption="95 % intervals.", axis=axis, scale="signed", line=0)


def _short_name(variant: str) -> str:
    name, _, place = variant.partition(", ")
    return f"{name.removeprefix('pattern of the ').removeprefix('prompt ')}\n{place}"


def _patch_table(
    wanted: "Patching",
    effects: Mapping[str, FloatArray],
    readings: "Mapping[str, DilemmaReading]",
    names: list[str],
) -> pd.DataFrame:
    """variant, group, value, low, high, n: change of the logit difference; share, over, each with
    ends; reason.

    The row `shift` is the change from the recipient's run to the donor's. A share is a mean change
    over the mean shift, as the paper's 23.9 %; it is undefined where the shift is not shown to
    differ from 0. `over` is the share of the donor's pattern in the given blocks less that of the
    row, paired by dilemma.
    """
    before = effects["unpatched"]
    shift = (
        np.array([readings[name].spoken[arm(wanted.donor)] for name in names], dtype=float) - before
    )
    mean_shift = clustered_mean(shift, names, unit=UNIT, interval="t")
    nothing = undefined("")
    records = [{"variant": SHIFT, "group": SHIFT} | _columns(mean_shift, nothing, nothing)]
    patterns = wanted.variants[1:]
    own_change = effects[patterns[0].name] - before
    for variant in patterns:
        change = effects[variant.name] - before
        mean_change = clustered_mean(change, names, unit=UNIT, interval="t")
        share = share_of_shift(change, shift, mean_shift, names)
        over = nothing
        if variant is not patterns[0]:
            over = share_of_shift(own_change - change, shift, mean_shift, names)
        columns = _columns(mean_change, share, over)
        records.append({"variant": variant.name, "group": variant.group} | columns)
    return pd.DataFrame(records)


def share_of_shift(
    change: FloatArray, shift: FloatArray, mean_shift: Estimate, names: Sequence[str]
) -> Estimate:
    """Mean of `change  # [dilemma]` over the mean shift; undefined where the shift is not shown to differ from 0."""
    if not mean_shift.low * mean_shift.high > 0:
        return undefined("the shift is not shown to differ from 0", n=mean_shift.n, unit=UNIT)
    if (
        mean_shift.n < SHOWABLE
    ):  # drawn again, so few have an interval that holds the truth in half of all cases
        reason = (
            f"no interval of a share from {mean_shift.n} dilemmas, {SHOWABLE} or more are needed"
        )
        return undefined(
            reason, n=mean_shift.n, unit=UNIT, value=float(change.mean() / shift.mean())
        )
    rng = np.random.default_rng(0)
    return bootstrap(
        lambda c, s: c / s, change, shift, clusters=names, rng=rng, unit=UNIT, of_means=True
    )


def _columns(change: Estimate, share: Estimate, over: Estimate) -> dict[str, object]:
    columns = {
        name: value
        for name, value in asdict(change).items()
        if name in ("value", "low", "high", "n")
    }
    for name, estimate in {"share": share, "over": over}.items():
        columns |= {
            name: estimate.value,
            f"{name}_low": estimate.low,
            f"{name}_high": estimate.high,
        }
    reason = share.reason or ("" if math.isnan(change.value) else change.reason)
    return columns | {"reason": reason}


PARTS: Mapping[str, type[Lens]] = {"lens": Lens, "attention": Attention, "patch": Patch}
"""Parts of the folder, each with all that the one before it reads."""


class Read(Patch):
    """What does an introspective prompt do inside the model? Logit lens, attention, one run's
    patterns in the other.

    lens: the block where direct and introspective runs part (paper 003, Figure 5). attention: where
    the last token looks, and how widely (Figures 6, 7). patch: how much of the change its pattern
    brings (23.9 %). What is in the folder is not read again.
    """

    reads: ClassVar[frozenset[str]] = frozenset()

    parts: tuple[str, ...] = Field(
        tuple(PARTS), description="Parts to make: lens, attention, patch."
    )
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
        frames = {
            **there,
            **{name: frame for page in pages.values() for name, frame in page.frames.items()},
        }
        notes = (
            next(iter(pages.values())).lines
            if len(pages) == 1
            else [page.answer for page in pages.values()]
        )
        pages |= {
            name: part.page(Found(self.held, frames))
            for name, part in PARTS.items()
            if name in there and name not in pages
        }
        if len(pages) == 1:
            return next(iter(pages.values()))
        tables = {
            **frames,
            **{name: table for page in pages.values() for name, table in page.tables.items()},
        }
        return Page("What happens inside the model?", parts=pages, tables=tables, notes=notes)
