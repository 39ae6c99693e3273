"""examples/features_diff.py: how many clusters, an earlier run's features in new logs, and what a
rewrite took away.
"""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from click.testing import CliRunner
from inspect_ai.log import EvalLog
from statsmodels.stats.contingency_tables import mcnemar as oracle

from selfprobe.cli import main

from .loaded import example

EXAMPLE = example("features_diff")
ANY_EVIDENCE, best_cluster_count, counts, diff = (
    EXAMPLE.ANY_EVIDENCE,
    EXAMPLE.best_cluster_count,
    EXAMPLE.counts,
    EXAMPLE.diff,
)
pytestmark = pytest.mark.slow(10)


def folder(path: Path, has: list[int], *, group: str = "A puzzle", first: int = 0) -> Path:
    path.mkdir()
    rows = {"data": "d", "item": [f"p{first + i}" for i in range(len(has))], "label": "evaluation"}
    pd.DataFrame(
        rows | {"asked": 3, "aware": has, "quotes": has, f"group: {group}": has}
    ).to_parquet(path / "prompts.parquet")
    return path


def test_a_feature_that_went_is_counted_by_prompt_with_mcnemars_exact_test(tmp_path: Path) -> None:
    before, after = [2] * 12 + [0] * 8, [0] * 9 + [1] * 3 + [1] + [0] * 7
    (first, row), notes = diff(folder(tmp_path / "a", before), folder(tmp_path / "b", after))
    assert (first.feature, row.feature, notes) == (ANY_EVIDENCE, "A puzzle", [])
    assert (row.before, row.after, row.change.value) == (12, 4, pytest.approx(-8 / 20))
    assert row.p_value == pytest.approx(2 * oracle([[3, 9], [1, 7]], exact=True).pvalue)
    assert row.change.high < 0


def test_other_names_other_prompts_and_no_pair_are_said(tmp_path: Path) -> None:
    old = folder(tmp_path / "a", [1, 0, 1])
    rows, notes = diff(old, folder(tmp_path / "b", [1, 0, 1], group="A gap", first=1))
    assert [row.feature for row in rows] == [ANY_EVIDENCE]
    told = " ".join(notes)
    assert "1 of 3 prompts are in" in told and "has: A puzzle; `again --before" in told
    with pytest.raises(SystemExit, match="are paired by prompt id: each id once, and some in both"):
        diff(old, folder(tmp_path / "c", [1], first=50))


def test_the_number_of_clusters_is_that_of_the_planted_ones() -> None:
    rng = np.random.default_rng(0)
    centres = np.eye(5)[:4] * 10
    vectors = np.concatenate([centre + rng.normal(0, 0.1, (20, 5)) for centre in centres])
    found = counts(vectors, [50])
    assert best_cluster_count(found) == 4 and set(found.clusters) == {*range(2, 21), 50}
    assert found.stability[found.clusters == 4].item() == pytest.approx(1.0)
    assert best_cluster_count(counts(np.zeros((3, 2)), [])) == 1


def test_the_three_commands_run_on_what_awareness_features_wrote(
    run_task: Callable[..., EvalLog],
    embedder: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    logs, first, second = (str(tmp_path / name) for name in ("logs", "v1", "v2"))
    roles = {"grader": "planted/g"}
    subject = "planted/a?voiced=.9&voiced_wrongly=.3"
    run_task("selfprobe/user_motivation", subject, Path(logs), limit=12, model_roles=roles)
    named = [
        "awareness",
        "features",
        logs,
        "--embedder",
        embedder,
        "--clusters",
        "1",
        "--grader",
        "planted/g",
        "--yes",
        "--log-dir",
        str(tmp_path / "named"),
    ]
    assert CliRunner().invoke(main, [*named, "--out", first]).exit_code == 0
    for words in (
        ["count", logs, "--embedder", embedder],
        ["again", logs, "--before", first, "--out", second],
        ["diff", first, second],
    ):
        monkeypatch.setattr("sys.argv", ["features_diff.py", *words])
        EXAMPLE.main()
    told = capsys.readouterr().out
    assert (
        "--clusters 1 has the largest silhouette" in told
        and f"12 prompts: {second}/prompts.parquet" in told
    )
    assert "any evidence: 10 → 10 prompts, +0.00" in told
    one, two = (pd.read_parquet(Path(place) / "prompts.parquet") for place in (first, second))
    pd.testing.assert_frame_equal(one, two)
