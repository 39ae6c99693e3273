"""Planted transformers: lens, attention and patching find the block and head that carry the shift,
and nothing else.
"""

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from selfprobe.page.claims import claim_sentence
from selfprobe.probes.forward import do_jobs_here
from selfprobe.stats.claim import Outcome, Verdict
from selfprobe.studies.read import PATCH_WORDS, Patch, patch_claim, patch_rows
from selfprobe.studies.read_attention import SCALES, Attention
from selfprobe.studies.read_lens import Comparison, Lens

from ..mechanism.tiny import CARRIER, HEAD, HEADS, LAYERS, WRITER, dilemmas
from .test_lens import saved


def quiet(_: str) -> None: ...


def read(folder: Path, *, carries: bool) -> dict[str, Any]:
    given = {
        "model": str(saved(folder / "model", carries=carries)),
        "dataset": str(dilemmas(folder)),
    }
    given |= {"out": str(folder / "out")}
    Attention(**given).read(do_jobs_here, quiet)
    return given


@pytest.fixture(scope="module")
def carried(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    return read(tmp_path_factory.mktemp("carried"), carries=True)


@pytest.fixture(scope="module")
def silent(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    return read(tmp_path_factory.mktemp("silent"), carries=False)


def patched(given: dict[str, Any], **more: Any) -> tuple[Patch, pd.DataFrame]:
    study = Patch(**given, layers=str(CARRIER), **more)
    study.claim_folder(study.state)
    study.read(do_jobs_here, quiet)
    return study, study.study_tables()["patch"]


def test_the_lens_finds_the_block_and_what_another_assistant_shares(carried: Any) -> None:
    tables = Lens(**carried).study_tables()
    parts = tables["partings"].set_index("what")
    parting = parts.loc[Comparison.INTROSPECTIVE_LESS_DIRECT]
    assert (parting.block, parting.earliest, parting.latest) == (CARRIER, CARRIER - 1, CARRIER)
    assert parting.p < 0.05 and parting.sharp_p < 0.05
    assert parts.block[Comparison.INTROSPECTIVE_LESS_CONTROL] == CARRIER
    assert np.isnan(parts.block[Comparison.INTROSPECTIVE_LESS_OTHER]), (
        "the prompt about another assistant has the same hyphens"
    )
    lens = tables["lens"].set_index(["what", "block"])
    assert (
        lens.value[Comparison.INTROSPECTIVE_LESS_DIRECT, CARRIER - 1] == 0
        and lens.low[Comparison.INTROSPECTIVE_LESS_DIRECT, CARRIER] > 0.3
    )


def test_the_lens_finds_nothing_where_nothing_is(silent: Any) -> None:
    parts = Lens(**silent).study_tables()["partings"]
    assert parts.block.isna().all() and parts.p.isna().all(), "nothing changes at all"


def test_attention_finds_the_two_heads_beside_the_control(carried: Any) -> None:
    heads = Attention(**carried).study_tables()["heads"]
    heads = heads[
        (heads.what == Comparison.INTROSPECTIVE_LESS_CONTROL)
        & (heads.holm < 0.05)
        & (heads.value.abs() > 1e-3)
    ]
    assert {
        scale: sorted(zip(rows.block, rows["head"], strict=True))
        for scale, rows in heads.groupby("scale")
    } == {scale: [(WRITER, 0), (CARRIER, HEAD)] for scale in SCALES}
    assert (heads.value < 0).all(), "both look at few tokens where they looked at all"


def test_length_alone_is_diffusion_in_nats_and_nothing_over_its_logarithm(silent: Any) -> None:
    """The paper's comparison in a model whose attention is even everywhere."""
    rows = Attention(**silent).study_tables()["attention"].set_index(["scale", "what", "block"])
    for block in range(LAYERS):
        nats = rows.loc[(SCALES[0], Comparison.INTROSPECTIVE_LESS_DIRECT, block)]
        assert nats.low > 0.1 and nats.p < 1e-4
        for scale in SCALES[1::2]:
            assert abs(rows.value[scale, Comparison.INTROSPECTIVE_LESS_DIRECT, block]) < 1e-6
        assert abs(rows.value[SCALES[0], Comparison.INTROSPECTIVE_LESS_CONTROL, block]) < 1e-6


def test_where_nothing_is_no_answer_is_yes(silent: Any) -> None:
    answers = {Lens: "Cannot tell for ", Attention: "No, not for ", Patch: "Cannot tell for "}
    for kind, answer in answers.items():
        study = kind(**silent | ({"layers": str(CARRIER)} if kind is Patch else {}))
        study.claim_folder(study.state)
        study.read(do_jobs_here, quiet)
        page = study.page(study.folder_content())
        assert page.answer.startswith(answer) and len(page.notes) <= 5, page.answer


@pytest.mark.parametrize("whole_tail", [False, pytest.param(True, marks=pytest.mark.slow(2))])
def test_patching_finds_the_head_and_controls_find_nothing(carried: Any, whole_tail: bool) -> None:
    """A little more than all: the recipient's last state lacks FLAG, so that its final norm divides
    by less.
    """
    _, table = patched(carried, positions="tail" if whole_tail else "last")
    share = table.set_index("variant").share
    assert share[f"introspective pattern, blocks {CARRIER}"] == pytest.approx(1, abs=0.05)
    assert share["introspective pattern, all blocks"] == pytest.approx(1, abs=0.05)
    for head in range(HEADS):
        alone = share[f"introspective pattern, head {CARRIER}.{head}"]
        assert alone == pytest.approx(1.0 if head == HEAD else 0.0, abs=0.05)
    controls = table[table.group.str.startswith("control")]
    about_another = controls.group.str.contains("another")
    assert len(controls) > 5 and (controls[~about_another].share.abs() < 0.01).all()
    assert controls[about_another].share.item() == pytest.approx(1, abs=0.05)
    assert abs(share[f"mean introspective pattern, blocks {CARRIER}"]) < 0.05, (
        "the mean does not know where the ! is"
    )
    claim = patch_claim(patch_rows(table), "m")
    held = {check.name: check.outcome for check in claim.checks}
    assert held.pop("above_another_assistant") is Outcome.FAILS, (
        "the prompt about another brings all of it too"
    )
    assert set(held.values()) == {Outcome.HOLDS} and claim.verdict is Verdict.NO
    assert (
        "no more of the shift with the other run's patterns than with another assistant: 10"
        in claim_sentence(claim, PATCH_WORDS)
    )


def test_patched_the_other_way_the_direct_pattern_takes_the_shift_away(carried: Any) -> None:
    table = patched(carried, into="introspective")[1].set_index("variant")
    assert table.value["shift"] < -0.3
    assert table.share[f"direct pattern, blocks {CARRIER}"] == pytest.approx(1, abs=0.05)


def test_a_share_of_a_few_dilemmas_has_no_interval_and_the_sentence_says_so(carried: Any) -> None:
    """A bootstrap over 3 dilemmas holds the truth in 74 of 100 cases, over 2 in 48."""
    study, table = patched(carried, limit=5)
    row = table.set_index("variant").loc[f"introspective pattern, blocks {CARRIER}"]
    assert (
        row.share == pytest.approx(1, abs=0.05) and np.isnan([row.share_low, row.share_high]).all()
    )
    assert row.reason == "no interval of a share from 5 dilemmas, 6 or more are needed"
    page = study.build_page()
    assert "Share of it, without an interval as these are fewer than 6 dilemmas, that" in str(
        page.sections[0].blocks
    )
    assert page.answer.startswith("Cannot tell for ")
    assert page.answer.endswith("cannot be told by 5 dilemmas; 6 are the least.")


def test_without_a_shift_there_is_no_share_and_the_reason_is_said(silent: Any) -> None:
    study, table = patched(silent)
    assert table.share.isna().all() and (table.value == 0).all()
    assert set(table.reason[1:]) == {"the shift is not shown to differ from 0"}
    assert (
        study.build_page().answer.startswith("Cannot tell for ")
        and "not shown to answer otherwise" in study.build_page().answer
    )
