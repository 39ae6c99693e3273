"""Every fault that a provider can show, through the real `openai` client: a row is right, or it is
not scored.

The known limit: a target that answers in other words than it would have (the server's `nojson` and
`injection`, which put another sentence in the place of the text) looks like any target. Those
faults hit observers only here.
"""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from fakeserver import ANSWER_FAULTS, TRANSPORT_FAULTS
from inspect_ai import eval_retry
from inspect_ai.log import EvalLog, EvalSample

from selfprobe.introspect_tasks.kth_word import kth_word
from selfprobe.scorers.decision import decisions_of

Run = Callable[..., EvalLog]
ALPHA, BETA = "openai-api/fake/alpha", "openai-api/fake/beta"
OTHER_WORDS = ("nojson", "injection")
REASONS = {
    "empty": {"no_response", "target_no_response"},
    "null": {"no_response", "target_no_response"},
    "length": {"truncated"},  # the first words of a target's cut text are there
    "content_filter": {"filtered", "target_filtered"},
    "nojson": {"invalid_response_format"},
    "doublebrace": set(),
    "nan": {"invalid_response_format"},
    "badsum": set(),
    "unicode": {
        "garbled"
    },  # the token limit cuts the NUL off a target's text, whose words are there
    "half": {"half_character", "target_half_character"},
    "huge": set(),
    "injection": {"truncated"},  # by the token limit, before its escape sequence
    "refusal": {"refusal", "target_refusal"},
}
"""Why a row is not scored after each fault of an answer; where there is no reason, the answer can
be read.
"""


def rows(
    samples: list[EvalSample] | None,
) -> dict[tuple[str, str], tuple[float | None, str | None, str | None]]:
    """(value, truth, prediction) of every decision, by sample and key; samples that ended in an
    error have none.
    """
    return {
        (str(s.id), d.key): (d.value, d.truth, d.said)
        for s in samples or []
        for score in (s.scores or {}).values()
        for d in decisions_of(score)
    }


def reasons(samples: list[EvalSample] | None) -> set[str]:
    scores = [score for s in samples or [] for score in (s.scores or {}).values()]
    return {d.unscored for score in scores for d in decisions_of(score) if d.unscored}


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("data") / "questions.jsonl"
    path.write_text(
        "".join(f'{{"id": "q{i}", "question": "What of number {i}?"}}\n' for i in range(12))
    )
    return path


@pytest.fixture
def run(run_task: Run, data: Path, tmp_path: Path, server: Any) -> Callable[..., EvalLog]:
    """beta predicts alpha, so that each can be broken alone."""

    def once(patience: float = 60) -> EvalLog:
        return run_task(
            kth_word(k="1,2", dataset=str(data), resamples=0),
            BETA,
            tmp_path / "logs",
            model_roles={"target": ALPHA},
            attempt_timeout=patience,
            max_retries=1,
        )

    return once


@pytest.fixture(scope="module")
def clean() -> dict[str, Any]:
    """The rows of a run without faults, filled by the first test that needs them."""
    return {}


def expected(clean: dict[str, Any], run: Callable[..., EvalLog]) -> dict[tuple[str, str], Any]:
    if not clean:
        log = run()
        assert log.status == "success" and reasons(log.samples) == set()
        clean |= rows(log.samples)
        assert len(clean) == 24
    return clean


@pytest.mark.parametrize(
    "kind",
    [
        pytest.param(kind, marks=pytest.mark.slow(20) if kind == "huge" else ())
        for kind in ANSWER_FAULTS
    ],
)
def test_a_row_with_a_bad_answer_is_right_or_unscored(
    kind: str, server: Any, run: Callable[..., EvalLog], clean: dict[str, Any]
) -> None:
    truth = expected(clean, run)
    server.reset()
    broken = ["beta"] if kind in OTHER_WORDS else ["alpha", "beta"]
    server.configure({name: {"faults": {kind: 0.25}} for name in broken})
    log = run()
    found = rows(log.samples)
    assert log.status == "success" and set(found) == set(truth)
    assert server.stats()["faults"][kind] >= 3
    scored = {key for key, (value, _, _) in found.items() if value is not None}
    assert scored and {key: found[key] for key in scored} == {key: truth[key] for key in scored}
    assert reasons(log.samples) == REASONS[kind]
    assert (len(scored) == len(truth)) == (not REASONS[kind])


@pytest.mark.parametrize(
    "kind",
    [
        pytest.param(kind, marks=() if kind in ("429", "500", "reset") else pytest.mark.slow(2))
        for kind in TRANSPORT_FAULTS
    ],
)
def test_a_failed_call_is_made_again_or_ends_its_sample_and_a_resume_repairs_it(
    kind: str, server: Any, run: Callable[..., EvalLog], clean: dict[str, Any], tmp_path: Path
) -> None:
    truth = expected(clean, run)
    server.reset()
    server.configure({name: {"faults": {kind: 0.2}} for name in ("alpha", "beta")})
    log = run(patience=2 if kind == "hang" else 60)
    found = rows(log.samples)
    assert server.stats()["faults"][kind] >= 3
    assert found and found == {key: truth[key] for key in found}
    assert reasons(log.samples) == set()
    failed = [s for s in log.samples or [] if s.error is not None]
    assert len(found) + 2 * len(failed) == len(truth)
    server.configure({name: {"faults": {}} for name in ("alpha", "beta")})
    if failed:
        server.reset()
        [log] = eval_retry(log, log_dir=str(tmp_path / "logs"), display="none", log_realtime=False)
        assert server.stats()["requests"] == 3 * len(failed)
    assert log.status == "success" and rows(log.samples) == truth
