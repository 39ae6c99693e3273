"""What does an introspective prompt do inside the model? The command `mechanism read`: lens,
attention and patch.

Patching (IntrospectBench, §5.2: 23.9 %) asks how much of the change of the answer attention
patterns bring. For it the folder of `lens` also holds:

    patches/KEY.npz     a dilemma's logit differences under patched patterns, and its attention by
                        place
"""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal, Self

import numpy as np
import pandas as pd
from pydantic import Field, model_validator

from selfprobe.errors import InputError
from selfprobe.errors.arguments import one_of
from selfprobe.mechanism.prompts import DilemmaItem
from selfprobe.page import (
    ClaimWords,
    Figures,
    Heading,
    Page,
    Picture,
    RowTable,
    interval_text,
    percent_interval,
)
from selfprobe.page import Table as PageTable
from selfprobe.page.columns import columns_of, rows_of_frame
from selfprobe.page.numerals import points
from selfprobe.page.plots import bar_rows
from selfprobe.stats.claim import (
    Check,
    Claim,
    Outcome,
    outcome_above_zero,
    remedy_unless_met,
)
from selfprobe.stats.estimate import (
    Estimate,
    bootstrap,
    clustered_mean,
    interval_numbers,
    undefined,
)
from selfprobe.studies.read_attention import Attention
from selfprobe.studies.read_lens import (
    FEWEST_WITH_INTERVAL,
    UNIT,
    FloatArray,
    FolderContents,
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
from selfprobe.study.local import RESUME_ADVICE, Blocks, Progress, user_errors_as_input_errors
from selfprobe.text.counts import count_text

if TYPE_CHECKING:
    from selfprobe.mechanism.reading import DilemmaReading, Patching, Variant
    from selfprobe.probes.forward import JobRunner

TOKENS_A_PATCHED_TOKEN = 30
"""Tokens of a long prompt that take as long as one token of several variants; rough, for the plan
alone.
"""
PATCH_PAPER = "Paper: 23.9 % at block 60 of Qwen3-32B, one number without a control."
PATCH_LIMIT = (
    "It does not show that patterns hold self-knowledge: controls say how much any other pattern "
    "brings."
)
PATCH_LIMITS_NOTE = (
    "A share says how much of the change of the answer comes with the weights of attention alone. "
    f"{PATCH_LIMIT}"
)
PATCH_METHOD = (
    "Tokens that both prompts begin and end with get the other run's weights; what the other run "
    "gives to its own instruction goes to this run's instruction, in this run's proportions. All "
    "patterns need not explain all: values and residual states stay the recipient's."
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
        description=(
            "Blocks whose patterns are patched, as 24,25 or 20-29:3, from 0. Default: where the "
            "runs part."
        ),
    )

    @property
    def loading(self) -> dict[str, Any]:
        """Every block is read, whichever are patched."""
        return super().loading | {"layers": ()}

    @property
    def needs_lines(self) -> list[str]:
        """Lines of the reading, and a line on patching where the blocks are known."""
        is_anything_unread = bool(self.pending_dilemmas(patterns=True))
        if not self.layers and is_anything_unread:
            return [
                *super().needs_lines,
                "Patching comes after; which blocks is known then (--layers says it now)",
            ]
        plan = self.patching_plan
        variant_batches = len(plan.variants) // 4
        tokens_of_patches = variant_batches * TOKENS_A_PATCHED_TOKEN * plan.queries
        dilemmas = self.dilemmas if is_anything_unread else self.finite_dilemmas
        tokens = 0
        for item in self.pending_patches(dilemmas):
            tokens += item.tokens + tokens_of_patches + item.shared
        return [*super().needs_lines, f"Patching: {self.time_text(tokens)}"]

    @cached_property
    def patching_plan(self) -> "Patching":
        """Patterns to patch, and the run that each goes into.

        Raises:
            ValueError: The model has no such block.
        """
        from selfprobe.mechanism.reading import patching_plan_of
        from selfprobe.probes.model import decoder_blocks
        from selfprobe.study.local import blocks

        judge = self.judge
        block_count = len(decoder_blocks(judge.model))
        patched_blocks = blocks(self.layers)
        missing_blocks = [block for block in patched_blocks if block >= block_count]
        if missing_blocks:
            raise ValueError(
                f"{judge.name} has blocks 0..{block_count - 1}, got --layers "
                f"{', '.join(map(str, missing_blocks))}"
            )
        if not patched_blocks:
            fullest_tables = with_fullest_lens(tables_in(self.folder), self.lens_tables)
            parting_block, _ = block_of(fullest_tables)
            patched_blocks = (parting_block,)
        return patching_plan_of(
            self.dilemmas,
            patched_blocks,
            into=self.into,
            layer_count=block_count,
            head_count=int(judge.model.config.get_text_config().num_attention_heads),
            whole_tail=self.positions == "tail",
        )

    @property
    def lens_tables(self) -> dict[str, pd.DataFrame]:
        """Tables lens and partings of the dilemmas that are patched."""
        return self.tables_of(self.readings, self.judge.block_numbers)

    @property
    def finite_dilemmas(self) -> list[DilemmaItem]:
        """The dilemmas whose logits are finite, which are patched."""
        return [item for item in self.dilemmas if item.id in self.readings]

    def pending_patches(self, dilemmas: Sequence[DilemmaItem], *settings: str) -> list[DilemmaItem]:
        """Dilemmas among these that are still to be patched."""
        return [item for item in dilemmas if self._stored_patch(item, *settings) is None]

    def _stored_patch(self, item: DilemmaItem, *settings: str) -> Arrays | None:
        return stored_arrays(self._patches_folder, self.patch_key(item, *settings))

    @property
    def _patches_folder(self) -> Path:
        return self.folder / "patches"

    def patch_key(self, item: DilemmaItem, *settings: str) -> str:
        """The name of what patching a dilemma gives."""
        plan = self.patching_plan
        variants = [
            f"{variant.name} {variant.donor} {sorted(variant.heads.items())}"
            for variant in plan.variants
        ]
        return self.key(item, plan.into, f"{plan.queries} {plan.tail}", *variants, *settings)

    @property
    def keys_text(self) -> str:
        """Text with the keys of all patched dilemmas, on which the mean pattern depends."""
        return "".join(sorted(map(self.key, self.finite_dilemmas)))

    def read(self, job_runner: "JobRunner", progress: Progress) -> None:
        """Read the dilemmas, then patch them; the mean pattern comes last, as it is known only once
        all are read.

        Raises:
            NoPatterns: Patterns cannot be read, or the model cannot go on from a cache.
        """
        super().read(job_runner, progress)
        self._patch_with_single_patterns(job_runner, progress)
        self._patch_with_mean_pattern(job_runner, progress)

    def _patch_with_single_patterns(self, job_runner: "JobRunner", progress: Progress) -> None:
        """Patch patterns of single dilemmas, and store the profiles that the mean is made of."""
        from selfprobe.mechanism.reading import NoPatterns, checked_reading, patched_in_context

        plan = self.patching_plan
        variants, _ = self._single_and_mean_variants
        pending = self.pending_patches(self.finite_dilemmas)
        if not pending:
            return
        progress(
            f"{len(pending)} of {count_text(len(self.finite_dilemmas), UNIT)} to patch, "
            f"{count_text(len(variants), 'pattern')} each"
        )
        longest_dilemma = max(pending, key=lambda item: item.longest)
        with checked_reading(self.judge, longest_dilemma) as sharing:
            if not sharing:
                raise NoPatterns(
                    f"{self.judge.name} cannot go on from a cache of its own, which patching needs"
                )

            def patch_job(item: DilemmaItem) -> tuple[Any, ...]:
                return patched_in_context, item, plan, variants

            for item, (values, profile) in self._job_results(
                job_runner, pending, progress, patch_job
            ):
                arrays = {"values": values, "profile": profile}
                store_arrays(self._patches_folder, self.patch_key(item), arrays)

    def _patch_with_mean_pattern(self, job_runner: "JobRunner", progress: Progress) -> None:
        """Patch each dilemma with the mean pattern of the others."""
        from selfprobe.mechanism.reading import patched_in_context

        plan = self.patching_plan
        _, variants = self._single_and_mean_variants
        keys_text = self.keys_text
        pending = self.pending_patches(self.finite_dilemmas, keys_text)
        if not pending:
            return
        progress(f"{count_text(len(pending), UNIT)} under the mean pattern of the others")
        profiles = {item.id: arrays["profile"] for item, arrays in self._stored_patches()}
        profile_sum = np.stack(list(profiles.values())).sum(axis=0)
        other_count = len(profiles) - 1

        def mean_pattern_job(item: DilemmaItem) -> tuple[Any, ...]:
            mean_profile = (profile_sum - profiles[item.id]) / other_count
            return patched_in_context, item, plan, variants, mean_profile

        for item, (values, _) in self._job_results(job_runner, pending, progress, mean_pattern_job):
            store_arrays(self._patches_folder, self.patch_key(item, keys_text), {"values": values})

    @property
    def _single_and_mean_variants(self) -> "tuple[tuple[Variant, ...], tuple[Variant, ...]]":
        """Variants with the patterns of one dilemma, and with the mean pattern of the others."""
        from selfprobe.mechanism.reading import MEAN

        variants = self.patching_plan.variants
        single_variants = [variant for variant in variants if variant.donor != MEAN]
        mean_variants = [variant for variant in variants if variant.donor == MEAN]
        return tuple(single_variants), tuple(mean_variants)

    def _job_results(
        self,
        job_runner: "JobRunner",
        pending: Sequence[DilemmaItem],
        progress: Progress,
        job: Callable[[DilemmaItem], tuple[Any, ...]],
    ) -> Iterator[tuple[DilemmaItem, Any]]:
        from selfprobe.probes.harvesting import Meter

        tokens = sum(item.tokens for item in pending)
        meter = Meter(tokens, len(pending), progress, "dilemmas")
        first_prompt = pending[0].prompts[self.into]
        for item, result in job_runner(self.judge, first_prompt, pending, job):
            yield item, result
            meter.add(item.tokens, 1)
        meter.finish()

    def _stored_patches(self, *settings: str) -> Iterator[tuple[DilemmaItem, Arrays]]:
        for item in self.finite_dilemmas:
            arrays = self._stored_patch(item, *settings)
            if arrays is not None:
                yield item, arrays

    @property
    def effects(self) -> dict[str, FloatArray]:
        """Variant → logit difference [dilemma], in the order of `finite_dilemmas`."""
        single_variants, mean_variants = self._single_and_mean_variants
        effects: dict[str, FloatArray] = {}
        for variants, settings in ((single_variants, ()), (mean_variants, (self.keys_text,))):
            values_by_dilemma = [arrays["values"] for _, arrays in self._stored_patches(*settings)]
            values = np.stack(values_by_dilemma).astype(np.float64)
            for column, variant in enumerate(variants):
                effects[variant.name] = values[:, column]
        return effects

    def study_tables(self) -> dict[str, pd.DataFrame]:
        """Tables lens, partings and patch."""
        names = [item.id for item in self.finite_dilemmas]
        patch_table = _patch_table(self.patching_plan, self.effects, self.readings, names)
        return self.lens_tables | {"patch": patch_table}

    @classmethod
    def page(cls, contents: FolderContents) -> Page:
        """The answer, with the table patch."""
        rows = patch_rows(contents.tables["patch"])
        claim = patch_claim(rows, contents.model)
        shift = rows[0].estimate
        has_share = any(not math.isnan(row.share.value) for row in rows)
        shift_line = f"The other prompt moves the logit of A less that of B by {interval_text(shift, sign=True)}"
        share_line = _share_line(shift, has_share=has_share)
        first_rows = [
            row for row in rows if row.group not in RARE_GROUPS and "one " not in row.group
        ]
        pattern_rows = [row for row in rows if row.group != SHIFT]
        estimate_field = "share" if has_share else "estimate"
        lens_rows = rows_of_frame(LensRow, contents.tables["lens"], unit=UNIT)
        parting_rows = rows_of_frame(PartingRow, contents.tables["partings"], unit=UNIT)
        all_patterns_picture = _pattern_picture("patch_all", pattern_rows, has_share=has_share)
        return contents.claim_page(
            "Do attention patterns carry the change of the answer?",
            claim,
            PATCH_WORDS,
            picture=_pattern_picture("patch", first_rows, has_share=has_share),
            table=PageTable(first_rows, columns_of(PatchRow, "variant", estimate_field)),
            tables={
                "lens": RowTable(LensRow, lens_rows, on_page=False),
                "partings": RowTable(PartingRow, parting_rows, on_page=False),
                "patch": RowTable(PatchRow, rows),
            },
            verdict_blocks=[
                f"{shift_line} ({count_text(shift.n, UNIT)}). {share_line}",
                PATCH_LIMITS_NOTE,
            ],
            paper=[PATCH_PAPER],
            further_figures=[Figures([all_patterns_picture])],
            method=[PATCH_METHOD],
            terminal_lines=[f"{shift_line}.", PATCH_PAPER, PATCH_LIMIT],
        )


def _share_line(shift: Estimate, *, has_share: bool) -> str:
    """What the numbers of the patterns are."""
    if not has_share:
        return (
            "That is not shown to differ from 0, so there is no share of it. Changes are under "
            "Tables."
        )
    if shift.n < FEWEST_WITH_INTERVAL:
        return (
            f"Share of it, without an interval as these are fewer than {FEWEST_WITH_INTERVAL} "
            "dilemmas, that a pattern brings is under Tables."
        )
    return "Share of it that a pattern brings is under Tables."


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
PATTERN_CHECKS = {
    control.check: f"taking over more than with {control.label}" for control in PATTERN_CONTROLS
}
"""Name of a control's check → what it requires."""
PATCH_WORDS = ClaimWords(
    yes="takes over {effect} of the shift with the other run's patterns; closest is {competitor}",
    no="takes over less than a tenth of the shift with the other run's patterns: {effect}",
    explained=(
        "takes over no more of the shift with the other run's patterns than with {competitor}"
    ),
    checks={
        "several_dilemmas": "asked about enough dilemmas",
        "shift": "answering otherwise under the other prompt",
        "brings": "taking over the shift with the other run's patterns",
        **PATTERN_CHECKS,
    },
    unmet={
        "several_dilemmas": "cannot be told by {dilemmas} dilemmas",
        "shift": "is not shown to answer otherwise under the other prompt: {difference}",
    },
    units={
        "several_dilemmas": amount_text,
        "shift": partial(interval_text, sign=True),
        **dict.fromkeys(PATTERN_CHECKS, points),
    },
    write=percent_interval,
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
            partial(interval_text, digits=3, sign=True),
        ),
    ]
    share: Annotated[
        Estimate,
        Heading(
            "share of the shift",
            "This change, of the whole difference between the runs.",
            percent_interval,
        ),
    ]
    over: Annotated[
        Estimate,
        Heading(
            "other run's less it",
            "Share of the other run's pattern less this one's, paired.",
            percent_interval,
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
    reason_of_change = reason if math.isnan(row.low) else ""
    n = int(row.n)
    return PatchRow(
        variant=row.variant,
        group=row.group,
        estimate=Estimate(row.value, row.low, row.high, n, UNIT, reason_of_change),
        share=Estimate(row.share, row.share_low, row.share_high, n, UNIT, reason),
        over=Estimate(row.over, row.over_low, row.over_high, n, UNIT, reason),
        reason=reason,
    )


def patch_claim(rows: Sequence[PatchRow], subject: str) -> Claim:
    """The claim that the other run's attention patterns carry the change of the answer.

    Args:
        rows: The shift, the other run's pattern in the given blocks, and all further patterns.
        subject: The model's name on the page.
    """
    shift = rows[0].estimate
    donor_share = rows[1].share
    checks = [
        _condition_check(
            "several_dilemmas",
            Estimate(shift.n, math.nan, math.nan, shift.n, UNIT),
            is_met=shift.n >= FEWEST_WITH_INTERVAL,
            remedy=f"{FEWEST_WITH_INTERVAL} are the least",
        ),
        _condition_check("shift", shift, is_met=shift.low * shift.high > 0, remedy="add dilemmas"),
        _share_check("brings", donor_share, remedy="add dilemmas"),
    ]
    checks += [_pattern_check(control, rows) for control in PATTERN_CONTROLS]
    return Claim(subject, donor_share, tuple(checks), SMALLEST_SHARE, {"dilemmas": str(shift.n)})


def _condition_check(name: str, difference: Estimate, *, is_met: bool, remedy: str) -> Check:
    """A condition without which nothing can be said."""
    if is_met:
        return Check(name, difference, Outcome.HOLDS)
    return Check(name, difference, Outcome.OPEN, remedy=remedy)


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
        remedy=remedy_unless_met(outcome, remedy),
    )


def _pattern_check(control: PatternControl, rows: Sequence[PatchRow]) -> Check:
    """The requirement that the other run's pattern brings more than the one of a group that brings
    most.
    """
    control_rows = [
        row
        for row in rows
        if row.group.startswith(control.group) and not math.isnan(row.over.value)
    ]
    if not control_rows:
        no_share = undefined("there is no share", unit=UNIT)
        return Check(control.check, no_share, Outcome.OPEN, control.label, remedy=control.remedy)
    closest_row = min(control_rows, key=lambda row: row.over.value)
    return _share_check(
        control.check,
        closest_row.over,
        compared_with=f"{control.label}: {percent_interval(closest_row.share)}",
        remedy="add dilemmas",
        explains=True,
    )


# ---- what the page shows


def _pattern_picture(stem: str, rows: Sequence[PatchRow], *, has_share: bool) -> Picture:
    """Picture of what each pattern brings: as a share, or where there is no shift as it is."""
    marks = {}
    for row in rows:
        if not has_share:
            marks[_short_name(row.variant)] = {"": row.estimate}
        elif not math.isnan(row.share.value):
            marks[_short_name(row.variant)] = {"": row.share}
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
    plan: "Patching",
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
    unpatched = effects["unpatched"]
    donor_arm = arm(plan.donor)
    donor_logits = np.array([readings[name].spoken[donor_arm] for name in names], dtype=float)
    shift = donor_logits - unpatched
    mean_shift = clustered_mean(shift, names, unit=UNIT, interval="t")
    no_share = undefined("")
    records = [
        {"variant": SHIFT, "group": SHIFT} | _estimate_columns(mean_shift, no_share, no_share)
    ]

    donor_variant, *further_variants = plan.variants[1:]
    donor_change = effects[donor_variant.name] - unpatched
    for variant in (donor_variant, *further_variants):
        change = effects[variant.name] - unpatched
        mean_change = clustered_mean(change, names, unit=UNIT, interval="t")
        share = share_of_shift(change, shift, mean_shift, names)
        lead = no_share
        if variant is not donor_variant:
            lead = share_of_shift(donor_change - change, shift, mean_shift, names)
        columns = _estimate_columns(mean_change, share, lead)
        records.append({"variant": variant.name, "group": variant.group} | columns)
    return pd.DataFrame(records)


def share_of_shift(
    change: FloatArray, shift: FloatArray, mean_shift: Estimate, names: Sequence[str]
) -> Estimate:
    """Mean of `change  # [dilemma]` over the mean shift; undefined where the shift is not shown to
    differ from 0.
    """
    n = mean_shift.n
    if not mean_shift.low * mean_shift.high > 0:
        return undefined("the shift is not shown to differ from 0", n=n, unit=UNIT)
    if n < FEWEST_WITH_INTERVAL:  # drawn again, so few miss the truth in half of all cases
        share = float(change.mean() / shift.mean())
        reason = (
            f"no interval of a share from {count_text(n, UNIT)}, {FEWEST_WITH_INTERVAL} or more "
            "are needed"
        )
        return undefined(reason, n=n, unit=UNIT, value=share)
    return bootstrap(
        lambda mean_change, mean_of_shift: mean_change / mean_of_shift,
        change,
        shift,
        clusters=names,
        rng=np.random.default_rng(0),
        unit=UNIT,
        of_means=True,
    )


def _estimate_columns(change: Estimate, share: Estimate, lead: Estimate) -> dict[str, object]:
    reason = share.reason
    if not reason and math.isnan(change.value):
        reason = change.reason
    return {
        "value": change.value,
        "low": change.low,
        "high": change.high,
        "n": change.n,
        **interval_numbers("share", share),
        **interval_numbers("over", lead),
        "reason": reason,
    }


PARTS: Mapping[str, type[Lens]] = {"lens": Lens, "attention": Attention, "patch": Patch}
"""Parts of the folder, each with all that the one before it reads."""


class Read(Patch):
    """What does an introspective prompt do inside the model? Logit lens, attention, one run's
    patterns in the other.

    lens: the block where direct and introspective runs part (IntrospectBench, Figure 5). attention:
    where the last token looks, and how widely (Figures 6, 7). patch: how much of the change its
    pattern brings (23.9 %). What is in the folder is not read again.
    """

    reads: ClassVar[frozenset[str]] = frozenset()

    parts: tuple[str, ...] = Field(
        tuple(PARTS), description="Parts to make: lens, attention, patch."
    )
    layers: Blocks = Field(
        "",
        description=(
            "Blocks, as 8,16,24 or 0-31:4, from 0: with patch those that are patched (default: "
            "where the runs part), else those that are read (default: all)."
        ),
    )

    @model_validator(mode="after")
    def _has_parts(self) -> Self:
        for part in self.parts or ("none",):
            one_of("--parts", part, tuple(PARTS))
        is_patching_set = (self.into, self.positions) != ("direct", "last")
        if "patch" not in self.parts and is_patching_set:
            raise InputError("--into and --positions go with --parts patch")
        return self

    @property
    def loading(self) -> dict[str, Any]:
        """Every block is read where some are patched."""
        if "patch" in self.parts:
            return super().loading
        return super(Patch, self).loading

    @cached_property
    def study_by_part(self) -> dict[str, Lens]:
        """The parts by name; the last reads what the others need."""
        given_options = self.model_dump()
        if "patch" in self.parts:
            given_options["layers"] = ""
        study_by_part = dict[str, Lens]()
        for part, study_type in PARTS.items():
            if part not in self.parts:
                continue
            part_options = {
                option: value
                for option, value in given_options.items()
                if option in study_type.model_fields
            }
            if part == "patch":
                part_options["layers"] = self.layers
            study = study_type(**part_options)
            vars(study)["judge"] = self.judge
            study_by_part[part] = study
        return study_by_part

    @property
    def fullest_study(self) -> Lens:
        """The part that reads most."""
        return list(self.study_by_part.values())[-1]

    @property
    def needs_lines(self) -> list[str]:
        """Lines on what its last part takes."""
        return self.fullest_study.needs_lines

    def work(self, progress: Progress) -> None:
        """Read what its last part needs."""
        self.fullest_study.work(progress)

    def build_page(self) -> Page:
        """The page of its parts, and of those that the folder had."""
        folder_tables = tables_in(self.folder)
        with user_errors_as_input_errors(RESUME_ADVICE):
            page_by_part = {
                part: study.page(study.folder_content())
                for part, study in self.study_by_part.items()
            }
        frames = dict(folder_tables)
        for page in page_by_part.values():
            frames |= page.frames

        notes = [page.answer for page in page_by_part.values()]
        if len(page_by_part) == 1:
            only_page = next(iter(page_by_part.values()))
            notes = list(only_page.lines)

        contents = FolderContents(self.run_record, frames)
        for part, study_type in PARTS.items():
            if part in folder_tables and part not in page_by_part:
                page_by_part[part] = study_type.page(contents)
        if len(page_by_part) == 1:
            return next(iter(page_by_part.values()))

        tables = dict[str, Any](frames)
        for page in page_by_part.values():
            tables |= page.tables
        return Page(
            "What happens inside the model?", parts=page_by_part, tables=tables, notes=notes
        )
