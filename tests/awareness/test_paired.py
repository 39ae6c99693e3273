"""Two arms of a method on the same conversations: planted agreement is recovered, equal shares are
not agreement.
"""

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy import stats
from sklearn.metrics import cohen_kappa_score

from selfprobe.page import RowTable
from selfprobe.studies.awareness.numbers import LOW_KAPPA, ArmPair, arm_pairs
from selfprobe.studies.awareness.runs import AwarenessTables
from selfprobe.studies.awareness.sections import (
    PairedRow,
    pair_sentence,
    paired_row,
    paired_section,
)
from selfprobe.study.awareness_arms import PLAIN

N = 240


@pytest.fixture
def rng() -> np.random.Generator:
    return np.random.default_rng(11)


def truths() -> np.ndarray:
    return np.arange(N) % 2 == 1


def arm(scores: Any, *, data: str = "d", labels: bool = True, **changed: Any) -> pd.DataFrame:
    """Verdict rows of `probability`: an evaluation from .5 on; twelve sources with both labels."""
    rows = [
        {
            "method": "probability",
            "model": "m",
            **PLAIN,
            "data": data,
            "read": "r",
            "item": f"i{i}",
            "epoch": 1,
        }
        | {"source": f"s{i // 2 % 12}", "pair": None, "flip": False, "turns": 1, "unscored": None}
        | {"truth": ("evaluation" if truth else "deployment") if labels else None}
        | {
            "said": "evaluation" if x >= 0.5 else "deployment",
            "score": float(x),
            "probability": float(x),
        }
        | changed
        for i, (truth, x) in enumerate(zip(truths(), scores, strict=True))
    ]
    return pd.DataFrame(rows)


def found(*arms: pd.DataFrame, runs: pd.DataFrame | None = None) -> tuple[ArmPair, ...]:
    table = pd.DataFrame() if runs is None else runs
    return arm_pairs(
        AwarenessTables(pd.concat(arms, ignore_index=True), pd.DataFrame(), pd.DataFrame(), table)
    )


def paired_table(pairs: Sequence[ArmPair]) -> pd.DataFrame:
    return RowTable(PairedRow, [paired_row(pair) for pair in pairs]).frame


def signal(rng: np.random.Generator, share: float = 0.0, of: Any = None) -> np.ndarray:
    """A subject's noise; `share` of it is another's."""
    return (
        rng.normal(0, 1, N)
        if of is None
        else share * of + math.sqrt(1 - share**2) * rng.normal(0, 1, N)
    )


def stated(noise: np.ndarray) -> np.ndarray:
    return 1 / (1 + np.exp(-(noise + truths() - 0.5)))


def test_r_kappa_and_the_number_right_are_those_of_scipy_and_scikit_learn(
    rng: np.random.Generator,
) -> None:
    one = signal(rng)
    first, third = stated(one), stated(signal(rng, 0.8, one))
    (h,) = found(arm(first), arm(third, perspective="third"))
    assert h.kind == "first and third person" and (h.n, h.labelled) == (N, N)
    assert (
        h.r.value == pytest.approx(stats.pearsonr(first, third).statistic)
        and h.r.low < h.r.value < h.r.high
    )
    assert h.kappa.value == pytest.approx(cohen_kappa_score(first >= 0.5, third >= 0.5))
    assert h.right == (
        int(((first >= 0.5) == truths()).sum()),
        int(((third >= 0.5) == truths()).sum()),
    )
    assert h.error.value == pytest.approx(
        np.mean(np.abs(third - truths()) - np.abs(first - truths()))
    )
    assert h.wrong.value == pytest.approx((h.right[0] - h.right[1]) / N)
    (row,) = paired_table([h]).to_dict("records")
    assert (row["r"], row["kappa"], row["right_first"]) == (h.r.value, h.kappa.value, h.right[0])


def test_opposite_verdicts_on_nearly_all_rows_are_never_called_equivalent(
    rng: np.random.Generator,
) -> None:
    """Their shares are equal, and so are their errors: half of the rows are right in each."""
    first = np.where(np.arange(N) % 4 < 2, 0.9, 0.1)
    third = np.where(rng.random(N) < 0.06, first, 1 - first)
    (h,) = found(arm(first), arm(third, perspective="third"))
    assert h.kappa.value < -0.8 and abs(h.right[0] - h.right[1]) < 20 and h.tost_p < 0.05
    assert (
        not h.equivalent
        and "not called equivalent, since the verdicts agree too little" in pair_sentence(h)
    )


def test_arms_that_say_nearly_the_same_are_equivalent_and_arms_that_err_more_are_not() -> None:
    first = np.where(truths(), 0.9, 0.1)
    close, far = first.copy(), first.copy()
    flipped = np.random.default_rng(0).random(N) < 0.25
    close[[7, 30]], far[flipped] = 1 - first[[7, 30]], 1 - first[flipped]
    (h,) = found(arm(first), arm(close, perspective="third"))
    assert h.equivalent and h.kappa.value > LOW_KAPPA and h.right == (N, N - 2)
    (h,) = found(arm(first), arm(far, perspective="third"))
    assert not h.equivalent and h.wrong.low > 0.1 and h.p < 0.001


def test_two_arms_that_always_say_evaluation_have_no_kappa_and_are_not_called_equivalent() -> None:
    (h,) = found(arm(np.full(N, 0.9)), arm(np.full(N, 0.9), perspective="third"))
    assert math.isnan(h.kappa.value) and not h.equivalent


def test_equal_runs_of_few_sources_are_not_called_equivalent_and_have_their_p(
    rng: np.random.Generator,
) -> None:
    """Twelve sources without a difference: a tenth of all sources may differ, and .9 ** 12 of such
    draws have none.
    """
    one = stated(signal(rng))
    (h,) = found(arm(one), arm(one, run=2))
    assert (h.kind, h.kappa.value, h.p) == ("two runs", 1, 1)
    assert (
        h.tost_p == pytest.approx(0.9**12)
        and not h.equivalent
        and "TOST p = 0.28)" in pair_sentence(h)
    )


def test_the_table_has_the_columns_of_a_second_run_where_there_is_none(
    rng: np.random.Generator,
) -> None:
    one, third, again = (
        arm(stated(signal(rng))),
        arm(stated(signal(rng)), perspective="third"),
        stated(signal(rng)),
    )
    alone, with_run = (
        paired_table(found(one, third)),
        paired_table(found(one, third, arm(again, run=2))),
    )
    assert list(alone) == list(with_run) and alone.runs_less_this_r.isna().all()
    assert with_run.runs_less_this_kappa_low.notna().sum() == 1


@pytest.mark.parametrize(
    ("share", "told"), [(0.9, "not shown to differ by more"), (0.0, "differ by more than two")]
)
def test_the_perspectives_are_held_against_two_runs(
    rng: np.random.Generator, share: float, told: str
) -> None:
    one = signal(rng)
    first, again, third = (
        stated(one),
        stated(signal(rng, 0.9, one)),
        stated(signal(rng, share, one)),
    )
    perspectives, runs = found(arm(first), arm(third, perspective="third"), arm(again, run=2))
    assert (perspectives.kind, runs.kind) == ("first and third person", "two runs")
    assert runs.r.value == pytest.approx(stats.pearsonr(first, again).statistic)
    assert perspectives.below_runs["r"].value == pytest.approx(runs.r.value - perspectives.r.value)
    assert perspectives.below_runs["kappa"].value == pytest.approx(
        runs.kappa.value - perspectives.kappa.value
    )
    assert told in pair_sentence(perspectives)


@pytest.mark.parametrize("read", ["first", "second"])
def test_the_third_person_is_held_against_the_run_whose_replies_it_read(
    rng: np.random.Generator, read: str
) -> None:
    one = signal(rng)
    first, again, third = stated(one), stated(signal(rng, 0.5, one)), stated(signal(rng, 0.7, one))
    given = (
        arm(first, read="first"),
        arm(again, read="second", run=2),
        arm(third, read=read, perspective="third"),
    )
    (h,) = [h for h in found(*given) if h.kind == "first and third person"]
    held, other = (first, again) if read == "first" else (again, first)
    assert h.first[-1] == (1 if read == "first" else 2)
    assert h.r.value == pytest.approx(stats.pearsonr(held, third).statistic)
    assert h.right == tuple(int(((side >= 0.5) == truths()).sum()) for side in (held, third))
    more = stats.pearsonr(held, other).statistic - stats.pearsonr(held, third).statistic
    assert h.below_runs["r"].value == pytest.approx(more)


def test_a_third_person_that_read_the_replies_of_no_run_is_not_held_against_one(
    rng: np.random.Generator,
) -> None:
    first, third = stated(signal(rng)), stated(signal(rng))
    (h,) = found(arm(first), arm(third, read="others", perspective="third"))
    assert h.n == 0
    assert pair_sentence(h).endswith(
        "not held together, since no conversation has a verdict in both on the same reply."
    )


def test_without_a_second_run_the_sentence_says_how_to_get_one() -> None:
    first = np.where(truths(), 0.9, 0.1)
    (h,) = found(arm(first), arm(first, perspective="third"))
    assert h.below_runs == {} and "There is no second run to hold this against" in pair_sentence(h)


def test_full_transcripts_are_paired_with_first_prompts_by_id_though_their_texts_differ(
    rng: np.random.Generator,
) -> None:
    one = signal(rng)
    first, full = stated(one), stated(one + np.where(truths(), 0.6, -0.6))
    runs = pd.DataFrame([{"data": "d", "dataset": "x.jsonl"}, {"data": "e", "dataset": "x.jsonl"}])
    (h,) = found(arm(first), arm(full, data="e", context="full"), runs=runs)
    assert h.kind == "first prompt and full transcript" and h.n == N
    assert h.error.high < 0 and h.auroc.low > 0 and h.right[1] > h.right[0]
    assert h.p == pytest.approx(_clustered_p(first, full), rel=1e-6)
    apart = runs.assign(dataset=["x.jsonl", "y.jsonl"])
    (h,) = found(arm(first), arm(full, data="e", context="full"), runs=apart)
    assert h.n == 0 and pair_sentence(h).endswith("no conversation has a verdict in both.")


def _clustered_p(first: np.ndarray, full: np.ndarray) -> float:
    """Of wrong verdicts, paired, as statsmodels' OLS on a constant with clustered errors."""
    sm = pytest.importorskip("statsmodels.api")
    wrong = [((p >= 0.5) != truths()).astype(float) for p in (first, full)]
    groups = [i // 2 % 12 for i in range(N)]
    fit = sm.OLS(wrong[1] - wrong[0], np.ones(N)).fit(
        cov_type="cluster", cov_kwds={"groups": groups, "use_correction": True}, use_t=True
    )
    # statsmodels' correction is G/(G-1)·(N-1)/(N-k), the last factor is 1 with one column
    return float(fit.pvalues[0])


def test_another_models_conversations_are_an_arm_of_their_own(rng: np.random.Generator) -> None:
    first, own, others = (stated(signal(rng)) for _ in range(3))
    (h,) = found(
        arm(first), arm(own, perspective="third"), arm(others, perspective="third", target="b")
    )
    assert h.right[1] == int(((own >= 0.5) == truths()).sum())


def test_placebo_arms_and_unlabelled_rows_claim_nothing(rng: np.random.Generator) -> None:
    first, third = stated(signal(rng)), stated(signal(rng))
    assert found(arm(first, placebo="form"), arm(third, placebo="form", perspective="third")) == ()
    (h,) = found(arm(first, labels=False), arm(third, labels=False, perspective="third"))
    assert h.labelled == 0 and math.isnan(h.wrong.value) and not h.equivalent
    assert "identified" not in pair_sentence(h) and math.isfinite(h.r.value)


def test_the_section_is_there_only_where_arms_belong_together(rng: np.random.Generator) -> None:
    held = found(arm(stated(signal(rng))), arm(stated(signal(rng)), perspective="third"))
    (section,) = paired_section(held, ())
    assert section.name == "paired" and paired_section((), ()) == []
    assert paired_section([replace(held[0], n=0)], ())
