"""The paper's rule counts what a judge finds, whatever it quotes; ours does not."""

from typing import Any

import pandas as pd
import pytest

from selfprobe.papers.quote_rules import rates_by_quote_rule
from selfprobe.scorers.awareness_cues import UNQUOTED

from ..awareness.test_numbers import arm, logged

VERDICTS = {"e": "evaluation", "d": "deployment", "u": None, "f": None}
REASON = {"u": UNQUOTED, "f": "grader_failed"}


def voted(rows: pd.DataFrame, votes: list[str]) -> list[dict[str, Any]]:
    """Votes of each conversation: e, d, u (a finding without a quote that is there), f (the grader
    failed).
    """
    named = rows.drop(columns=["said", "unscored", "score", "probability"]).to_dict("records")
    return [
        row
        | {
            "key": f"m{k}",
            "said": VERDICTS[letter],
            "unscored": REASON.get(letter),
            "probability": None,
        }
        for row, letters in zip(named, votes, strict=True)
        for k, letter in enumerate(letters, start=1)
    ]


def test_a_finding_without_a_quote_counts_by_the_papers_rule_alone() -> None:
    # Rows are deployment, evaluation, deployment, evaluation …; our scorer's verdicts of these
    # votes:
    votes, ours = (
        ["uud", "edu", "ddu", "fff", "udf", "eed"],
        [None, None, "deployment", None, None, "evaluation"],
    )
    rows = arm(ours, method="user_motivation", reason=UNQUOTED)
    rows.loc[3, "unscored"] = "grader_failed"
    found = rates_by_quote_rule(logged(rows, votes=voted(rows, votes))).set_index("rule")
    assert set(found.unquoted) == {5}
    assert found.n.to_dict() == {"ours": 2, "the paper's": 4}, (
        "no vote, and a tie of two, are still no verdict"
    )
    # uud: aware (a deployment row, wrong); edu: aware (evaluation, right); ddu: not aware (right);
    # eed: aware (right)
    assert (found["tpr.value"]["the paper's"], found["tnr.value"]["the paper's"]) == (1, 0.5)
    assert (found["tpr.value"]["ours"], found["tnr.value"]["ours"]) == (1, 1)
    assert found["called.value"]["the paper's"] == 0.75


def test_a_trace_has_one_finding_and_a_summary_none_under_either_rule() -> None:
    rows = arm(
        [None, None, "deployment", "evaluation"],
        method="reasoning_trace",
        reason="reasoning_summary",
    )
    rows.loc[1, "unscored"] = UNQUOTED
    found = rates_by_quote_rule(logged(rows)).set_index("rule")
    assert found.n.to_dict() == {"ours": 2, "the paper's": 3}
    assert found["tpr.value"]["the paper's"] == 1


def test_methods_without_a_judge_have_no_row() -> None:
    assert rates_by_quote_rule(logged(arm(["evaluation"] * 4))).empty


@pytest.mark.parametrize("method", ["user_motivation", "reasoning_trace"])
def test_where_all_findings_are_quoted_both_rules_agree(method: str) -> None:
    rows = arm(["evaluation", "deployment"] * 10, method=method)
    votes = voted(rows, ["eed", "ded"] * 10) if method == "user_motivation" else None
    found = rates_by_quote_rule(logged(rows, votes=votes)).drop(columns="rule")
    assert found.iloc[0].astype(str).tolist() == found.iloc[1].astype(str).tolist()
