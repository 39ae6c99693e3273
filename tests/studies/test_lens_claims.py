"""Claims of lens and attention on constructed numbers: each check that is first open, fails or
explains.
"""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from selfprobe.mechanism.prompts import ARMS, PATTERN_MEASURES
from selfprobe.page import RowTable, write
from selfprobe.page.claims import claim_clause
from selfprobe.page.columns import rows_of_frame
from selfprobe.stats.claim import Claim, Verdict
from selfprobe.stats.timing import largest_p
from selfprobe.studies.read_attention import (
    ATTENTION_WORDS,
    FAIR_SCALE,
    Attention,
    AttentionRow,
    HeadRow,
    PlaceRow,
    attention_claim,
    attention_rows,
    difference_rows,
    heads_table,
    place_rows,
)
from selfprobe.studies.read_lens import (
    COMPARED_ARMS,
    LENS_WORDS,
    FolderContents,
    Lens,
    LensRow,
    PartingRow,
    block_of,
    lens_claim,
    lens_table,
    partings,
    partings_by_comparison,
)

FloatArray = npt.NDArray[np.float64]
BLOCKS = 8
STATE = {
    "model": "m/a",
    "revision": "r",
    "precision": "float32",
    "dataset": "d",
    "opening": "o",
    "selfprobe": "0",
}


def readings(
    dilemmas: int = 12,
    blocks: int = BLOCKS,
    *,
    noise: float = 0.05,
    seed: int = 0,
    **shift_by_arm: FloatArray,
) -> dict[str, Any]:
    """Readings whose arms shift the logits by so much at each block."""
    rng = np.random.default_rng(seed)
    made = {}
    for k in range(dilemmas):
        lens = rng.normal(0, noise, (len(ARMS), blocks))
        for index, arm in enumerate(ARMS):
            lens[index] += shift_by_arm.get(arm, np.zeros(blocks))
        attention = rng.uniform(0.1, 0.3, (len(ARMS), len(PATTERN_MEASURES), blocks, 2))
        made[f"d{k}"] = SimpleNamespace(
            lens=lens, attention=attention, tokens=np.full(len(ARMS), 50)
        )
    return made


def step(at: int, size: float, blocks: int = BLOCKS) -> FloatArray:
    return np.where(np.arange(blocks) >= at, size, 0.0)


def tables_of(made: dict[str, Any], clusters: list[str] | None = None) -> dict[str, Any]:
    blocks = range(next(iter(made.values())).lens.shape[1])
    labels = clusters or list(made)
    return {
        "lens": lens_table(made, blocks, labels),
        "partings": partings(made, blocks, labels),
        "attention": RowTable(AttentionRow, attention_rows(made, blocks, labels)).frame,
        "heads": heads_table(made, blocks),
        "places": RowTable(PlaceRow, place_rows(made, blocks, labels)).frame,
    }


def claim_of(made: dict[str, Any], clusters: list[str] | None = None) -> Claim:
    tables = tables_of(made, clusters)
    parting_rows = rows_of_frame(PartingRow, tables["partings"], unit="dilemma")
    lens_rows = rows_of_frame(LensRow, tables["lens"], unit="dilemma")
    return lens_claim(partings_by_comparison(parting_rows, lens_rows), lens_rows, "m")


def said(claim: Claim) -> tuple[str, str]:
    check = claim.first_unmet_check
    return check.name if check else "", claim_clause(claim, LENS_WORDS)


def test_a_shift_beyond_both_controls_is_a_yes_with_its_block_and_the_strongest_control() -> None:
    claim = claim_of(readings(introspective=step(4, 1.0), control=step(4, 0.2), other=step(4, 0.5)))
    assert claim.verdict is Verdict.YES, said(claim)
    assert said(claim)[1].startswith(
        "separates the introspective prompt from the direct one at block 4, by 0.9"
    ), said(claim)
    assert "; closest: another assistant's prompt: 0.5" in said(claim)[1], said(claim)


def test_a_slow_rise_has_no_block() -> None:
    slope = np.linspace(0, 1, BLOCKS)
    claim = claim_of(readings(introspective=slope))
    assert claim.verdict is Verdict.YES
    assert "from the direct one between blocks " in said(claim)[1], said(claim)


def bump(first: int, last: int, size: float) -> FloatArray:
    return step(first, size) - step(last + 1, size)


@pytest.mark.parametrize("size", [1.0, -1.0])
@pytest.mark.parametrize("last", [4, 5, 6])
def test_a_shift_that_recovers_before_the_last_block_has_no_block_where_the_runs_part(
    size: float, last: int
) -> None:
    made = readings(introspective=bump(3, last, size))
    claim = claim_of(made)
    assert claim.verdict is Verdict.CANNOT_TELL and said(claim)[0] == "at_end", said(claim)
    assert said(claim)[1].startswith(
        "separates the introspective prompt from the direct one at some block, not shown after "
        "the last"
    ), said(claim)

    tables = tables_of(made)
    block, reason = block_of(tables)
    assert (block, reason) == (
        BLOCKS - 1,
        "the last that was read, as the runs differ at some block and are not shown to up to the "
        "last",
    )
    page = Lens.page(FolderContents(STATE, tables))
    assert page.answer.startswith("Cannot tell")
    assert "not lastingly" in str(page)


@pytest.mark.parametrize(("arm", "check"), [("control", "beyond_text"), ("other", "beyond_other")])
def test_a_control_that_moves_the_answer_as_much_a_few_blocks_later_explains_it(
    arm: str, check: str
) -> None:
    shift_by_arm: dict[str, Any] = {"introspective": step(3, 1.0), arm: step(6, 1.0)}
    claim = claim_of(readings(**shift_by_arm))
    assert claim.verdict is Verdict.NO, said(claim)
    assert said(claim)[0] == check and "no more than" in said(claim)[1], said(claim)


def test_a_shift_downwards_counts_as_much() -> None:
    claim = claim_of(readings(introspective=step(4, -1.0)))
    assert claim.verdict is Verdict.YES and claim.effect.value > 0.9 and claim.effect.low > 0


@pytest.mark.parametrize(
    ("made", "verdict", "check", "clause"),
    [
        (
            readings(seed=1),
            Verdict.NO,
            "change",
            "moves the answer by less than 0.10 after every block: 0.0",
        ),
        (
            readings(noise=2, seed=1),
            Verdict.CANNOT_TELL,
            "change",
            "is not shown to separate the introspective prompt",
        ),
        (
            readings(5, introspective=step(4, 1)),
            Verdict.CANNOT_TELL,
            "change",
            "5 independent dilemmas; 6 are the least",
        ),
        (
            readings(2, introspective=step(4, 1)),
            Verdict.CANNOT_TELL,
            "change",
            "2 independent dilemmas; 6 are the least",
        ),
        (
            readings(blocks=1, introspective=step(0, 1, 1)),
            Verdict.CANNOT_TELL,
            "several_blocks",
            "after one block alone",
        ),
        (
            readings(introspective=step(4, 1), control=step(4, 1)),
            Verdict.NO,
            "beyond_text",
            "no more than irrelevant text: 1.0",
        ),
        (
            readings(introspective=step(4, 1), other=step(4, 1)),
            Verdict.NO,
            "beyond_other",
            "no more than another assistant's prompt: 1.0",
        ),
        (
            readings(introspective=step(4, 2), other=step(4, 1.9), noise=0.5),
            Verdict.CANNOT_TELL,
            "beyond_other",
            "not shown from another assistant's prompt: ",
        ),
    ],
)
def test_each_check_that_is_open_or_explains_is_said(
    made: dict[str, Any], verdict: Verdict, check: str, clause: str
) -> None:
    claim = claim_of(made)
    assert (claim.verdict, said(claim)[0]) == (verdict, check), said(claim)
    assert clause in said(claim)[1], said(claim)


def test_dilemmas_of_three_sources_show_nothing() -> None:
    made = readings(introspective=step(4, 1.0))
    claim = claim_of(made, [f"s{k % 3}" for k in range(12)])
    assert claim.verdict is Verdict.CANNOT_TELL and said(claim)[0] == "change"
    assert "3 independent dilemmas" in said(claim)[1]


def spread(*differences: float, n: int = 12, noise: float = 0.002) -> Claim:
    """A claim on differences of entropy, in the order of PAIRS, at one block of two."""
    rng = np.random.default_rng(0)
    rows = {}
    for (first, second), difference in zip(COMPARED_ARMS, differences, strict=True):
        values = difference + rng.normal(0, noise, (n, 2))
        row = difference_rows(
            f"{first} − {second}", FAIR_SCALE, values, [0, 1], [f"d{k}" for k in range(n)]
        )[1]
        rows[FAIR_SCALE, row.what] = row
    return attention_claim(rows, 1, "m")


@pytest.mark.parametrize(
    ("claim", "verdict", "clause"),
    [
        (spread(0.1, 0.03, 0.07, 0.05), Verdict.YES, "at block 1, by +0.1"),
        (
            spread(0.1, 0.03, 0.07, 0.05),
            Verdict.YES,
            "; closest: another assistant's prompt: +0.049",
        ),
        (spread(0.1, 0.1, 0.0, 0.05), Verdict.NO, "no more than under irrelevant text: +0.1"),
        (
            spread(0.1, 0.03, 0.07, 0.0),
            Verdict.NO,
            "no more than under another assistant's prompt: +0.099",
        ),
        (
            spread(-0.1, 0.0, -0.1, 0.0),
            Verdict.NO,
            "spreads its attention by less than 0.01 at block 1: −0.1",
        ),
        (spread(0.0, 0.0, 0.0, 0.0), Verdict.NO, "by less than 0.01 at block 1"),
        (
            spread(0.1, 0.03, 0.07, 0.05, noise=0.5),
            Verdict.CANNOT_TELL,
            "is not shown to spread its attention",
        ),
        (
            spread(0.1, 0.03, 0.07, 0.05, n=5),
            Verdict.CANNOT_TELL,
            "(5 independent dilemmas; 6 are the least)",
        ),
        (
            spread(0.1, 0.09, 0.01, 0.05, noise=0.02),
            Verdict.CANNOT_TELL,
            "not shown to be more than under irrelevant",
        ),
    ],
)
def test_attention_says_each_check(claim: Claim, verdict: Verdict, clause: str) -> None:
    assert claim.verdict is verdict, claim_clause(claim, ATTENTION_WORDS)
    assert clause in claim_clause(claim, ATTENTION_WORDS), claim_clause(claim, ATTENTION_WORDS)


def test_pages_are_made_of_the_tables_as_files_have_them(tmp_path: Path) -> None:
    made = readings(introspective=step(4, 1.0), control=step(4, 0.2), other=step(4, 0.5))
    found = FolderContents(STATE, tables_of(made))
    for kind in (Lens, Attention):
        page = kind.page(found)
        assert write(page, str(tmp_path / kind.__name__)).endswith("index.html")
        again = kind.page(FolderContents(STATE, {**found.tables, **page.frames}))
        assert again.answer == page.answer and page.claims
    assert Lens.page(found).answer.startswith("Yes, for a: it separates")
    heads = rows_of_frame(HeadRow, found.tables["heads"], unit="dilemma")
    assert {row.n for row in heads} == {12}


def test_the_p_of_several_blocks_is_the_largest_statistics() -> None:
    """Six clusters with one sign: 2 of 64 draws reach it; a block of zeros has no p."""
    values = np.column_stack([np.ones(6), np.zeros(6)])
    p = largest_p(values, np.arange(6), rng=np.random.default_rng(0), draws=20_000)
    assert p[0] == pytest.approx(2 / 64, abs=0.005) and np.isnan(p[1])
    assert np.isnan(largest_p(values[:5], np.arange(5), rng=np.random.default_rng(0))).all()
