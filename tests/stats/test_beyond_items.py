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
    item_logits = rng.normal(size=50)
    own_logits = rng.normal(size=50)
    stated_chances = special.expit(2 * item_logits + own_logits)
    residuals = statement_residuals(stated_chances, special.expit(item_logits)[None])
    assert np.corrcoef(residuals, item_logits)[0, 1] == pytest.approx(0, abs=1e-9)
    assert np.corrcoef(residuals, own_logits)[0, 1] > 0.9


@pytest.mark.parametrize(
    "stated", [np.full(30, 0.7), np.linspace(0.2, 0.8, 30)], ids=["a constant", "their line"]
)
def test_nothing_is_left_of_what_the_others_state(stated: np.ndarray) -> None:
    left = statement_residuals(stated, np.linspace(0.2, 0.8, 30)[None])
    assert len(np.unique(left)) == 1


def test_what_an_observer_knows_of_itself_is_taken_out_of_what_it_states_of_the_items() -> None:
    rng = np.random.default_rng(0)
    item_logits = rng.normal(size=4000)
    outcomes = (rng.random(4000) < 0.5).astype(float)
    stated_chances = special.expit(item_logits + 1.5 * outcomes)
    strata = np.zeros(4000)
    purged_chances = chances_without_own_outcomes(stated_chances, outcomes, strata)
    purged_logits = special.logit(purged_chances)
    assert np.corrcoef(purged_logits, outcomes)[0, 1] == pytest.approx(0, abs=0.02)
    assert np.corrcoef(purged_logits, item_logits)[0, 1] > 0.98

    unknown_outcomes = np.full(4000, np.nan)
    kept_chances = chances_without_own_outcomes(stated_chances, unknown_outcomes, strata)
    assert kept_chances == pytest.approx(np.clip(stated_chances, 0.01, 0.99))


def test_a_stratum_of_one_outcome_has_no_p() -> None:
    p = within_strata_p(
        np.arange(6), [1, 1, 1, 0, 0, 0], [0, 0, 0, 1, 1, 1], rng=np.random.default_rng(0)
    )
    assert np.isnan(p)
