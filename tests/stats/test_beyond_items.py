"""What is left of a statement beyond what other observers state of the items."""

import numpy as np
import pytest
from scipy import special

from selfprobe.stats.beyond_items import (
    chances_without_own_outcomes,
    statement_residuals,
    within_strata_p,
)


def test_what_is_left_of_a_statement_is_what_the_others_line_does_not_tell() -> None:
    rng = np.random.default_rng(0)
    logits = rng.normal(size=50)
    own = rng.normal(size=50)
    left = statement_residuals(special.expit(2 * logits + own), special.expit(logits)[None])
    assert np.corrcoef(left, logits)[0, 1] == pytest.approx(0, abs=1e-9)
    assert np.corrcoef(left, own)[0, 1] > 0.9


@pytest.mark.parametrize(
    "stated", [np.full(30, 0.7), np.linspace(0.2, 0.8, 30)], ids=["a constant", "their line"]
)
def test_nothing_is_left_of_what_the_others_state(stated: np.ndarray) -> None:
    left = statement_residuals(stated, np.linspace(0.2, 0.8, 30)[None])
    assert len(np.unique(left)) == 1


def test_what_an_observer_knows_of_itself_is_taken_out_of_what_it_states_of_the_items() -> None:
    rng = np.random.default_rng(0)
    ease = rng.normal(size=4000)
    outcomes = (rng.random(4000) < 0.5).astype(float)
    stated = special.expit(ease + 1.5 * outcomes)
    purged = special.logit(chances_without_own_outcomes(stated, outcomes, np.zeros(4000)))
    assert np.corrcoef(purged, outcomes)[0, 1] == pytest.approx(0, abs=0.02)
    assert np.corrcoef(purged, ease)[0, 1] > 0.98
    unknown = chances_without_own_outcomes(stated, np.full(4000, np.nan), np.zeros(4000))
    assert unknown == pytest.approx(np.clip(stated, 0.01, 0.99))


def test_a_stratum_of_one_outcome_has_no_p() -> None:
    p = within_strata_p(
        np.arange(6), [1, 1, 1, 0, 0, 0], [0, 0, 0, 1, 1, 1], rng=np.random.default_rng(0)
    )
    assert np.isnan(p)
