"""What a vendor refuses is given up once, what it takes is kept, and the log says what was applied:
in whole runs.

`test_objection.py` has the refusals and what is made of them.
"""

import logging
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import anyio
import pytest
from inspect_ai.log import EvalLog
from inspect_ai.model import get_model

from selfprobe.errors import warn_once
from selfprobe.solvers.negotiate import ModelTerms, terms_of
from selfprobe.solvers.record import Reply, record_of

pytestmark = pytest.mark.filterwarnings(
    "default::DeprecationWarning"
)  # the providers' own packages

Run = Callable[..., EvalLog]

ROW = pytest.mark.slow(1)
"""A whole run whose refusal `test_objection.py` reads and gives in to without one."""


@pytest.fixture
def vendors(strict_vendors: ModuleType, monkeypatch: pytest.MonkeyPatch) -> Iterator[ModuleType]:
    """The strict stand-in, where Inspect's providers find it; its LOG holds the requests."""
    with strict_vendors.running() as address:
        for name, value in strict_vendors.environment(address).items():
            monkeypatch.setenv(name, value)
        strict_vendors.address = address
        yield strict_vendors


def model_of(vendors: ModuleType, name: str) -> Any:
    google = {"base_url": vendors.address} if name.startswith("google/") else {}
    return get_model(name, memoize=False, **google)


def replies(log: EvalLog) -> list[Reply]:
    return [
        reply
        for s in log.samples or []
        for part in (record_of(s).acts, record_of(s).answers)
        for reply in part.values()
    ]


def numbers(log: EvalLog) -> dict[str, float]:
    assert log.results
    return {
        name: metric.value for score in log.results.scores for name, metric in score.metrics.items()
    }


def refused(vendors: ModuleType) -> int:
    return sum(request["status"] == 400 for request in vendors.LOG)


CALLS = 5  # of kth_word for a question: two acts, three predictions


@pytest.mark.parametrize(
    ("name", "refusals", "tries", "effort", "temperature"),
    [
        pytest.param("openai/gpt-4o-mini", 0, 0, None, 0, marks=ROW),
        ("openai/gpt-5-mini", 1, 1, "minimal", None),
        pytest.param("openai/o3", 1, 1, "minimal", None, marks=ROW),
        pytest.param("openrouter/deepseek/deepseek-r1", 1, 1, "minimal", 0, marks=ROW),
        pytest.param("openai-api/strict/m", 1, 0, "low", 0, marks=ROW),
        pytest.param("anthropic/claude-sonnet-4-5", 0, 0, None, None, marks=ROW),
    ],
)
def test_a_refused_setting_costs_one_request_a_model_and_run_and_the_log_says_what_was_sent(
    vendors: ModuleType,
    run_task: Run,
    tmp_path: Path,
    name: str,
    refusals: int,
    tries: int,
    effort: str | None,
    temperature: float | None,
) -> None:
    log = run_task("selfprobe/kth_word", model_of(vendors, name), tmp_path, limit=4)
    assert log.status == "success" and numbers(log)["unscored"] == 0
    own = [
        request
        for request in vendors.LOG
        if request["sent"] != {"reasoning": {"effort": "low", "summary": "auto"}}
    ]
    assert refused(vendors) == refusals and len(own) == 4 * CALLS + refusals + tries, (
        "beside Inspect's own question"
    )
    for reply in replies(log):
        assert reply.applied and (reply.applied.effort, reply.applied.temperature) == (
            effort,
            temperature,
        )
        assert reply.applied.limit == (64 if reply.applied.form else 40) + 8192 * tries
        assert reply.reasoned == bool(tries)
    assert numbers(log)["reasoned_rate"] == bool(tries)
    told = log.samples[0].metadata["applied"] if log.samples else {}
    if temperature is None:
        assert (
            "temperature not sent (asked: 0)" in told["target"]
            and "temperature not sent" in told["observer"]
        )
    if tries:
        assert (
            "effort minimal (asked: none)" in told["observer"]
            and "limit 8256 (asked: 64)" in told["observer"]
        )


@pytest.mark.parametrize(
    ("name", "refusals", "kept"),
    [
        pytest.param("openrouter/meta/plain", 1, {"temperature", "form"}, marks=ROW),
        pytest.param("openrouter/meta/bare", 2, {"temperature"}, marks=ROW),
        pytest.param("openrouter/openai/o9", 2, {"effort", "form"}, marks=ROW),
    ],
)
def test_openrouter_s_404_names_nothing_so_settings_are_left_out_alone_the_effort_first(
    vendors: ModuleType, run_task: Run, tmp_path: Path, name: str, refusals: int, kept: set[str]
) -> None:
    model = get_model(name, memoize=False, provider={"require_parameters": True})
    log = run_task("selfprobe/kth_word", model, tmp_path, limit=4)
    assert log.status == "success" and numbers(log)["unscored"] == 0
    assert [request["status"] for request in vendors.LOG if request["status"] != 200] == [
        404
    ] * refusals
    assert len(vendors.LOG) == 4 * CALLS + refusals
    last = record_of(log.samples[-1]).answers["k3"].applied if log.samples else None
    assert last is not None
    found = {
        "temperature": last.temperature == 0,
        "effort": last.effort == "none",
        "form": last.form,
    }
    assert {name for name, kept_it in found.items() if kept_it} == kept


def test_openrouter_s_404_for_want_of_logprobs_is_no_logprobs_and_nothing_is_paid(
    vendors: ModuleType, run_task: Run, tmp_path: Path
) -> None:
    for name, paid in (("meta/plain", 0), ("meta/told", 3)):
        vendors.LOG.clear()
        model = get_model(
            f"openrouter/{name}", memoize=False, provider={"require_parameters": True}
        )
        log = run_task("selfprobe/first_token", model, tmp_path / name, limit=3)
        assert log.status == "success" and ("unscored_no_logprobs" in numbers(log)) == (paid == 0)
        assert sum(request["status"] == 200 for request in vendors.LOG) == paid


@pytest.mark.parametrize(
    ("name", "refusals", "given_up"),
    [
        pytest.param("openrouter/meta/behind", 1, {"temperature"}, marks=ROW),
        pytest.param("openrouter/meta/inside", 1, {"temperature"}, marks=ROW),
        pytest.param("groq/llama-3.3-70b-versatile", 1, {"form", "effort"}, marks=ROW),
        pytest.param("mistral/mistral-large-latest", 2, {"form", "effort"}, marks=ROW),
        pytest.param("mistral/mistral-small-latest", 1, {"form"}, marks=ROW),
        pytest.param("openai-api/vllm/m", 1, {"effort"}, marks=ROW),
        pytest.param("vllm/m", 1, {"effort"}, marks=ROW),
        pytest.param("together/m", 0, {"effort"}, marks=ROW),
    ],
)
def test_errors_in_other_forms_are_negotiated_as_well(
    vendors: ModuleType, run_task: Run, tmp_path: Path, name: str, refusals: int, given_up: set[str]
) -> None:
    model = model_of(vendors, name)
    log = run_task("selfprobe/kth_word", model, tmp_path, limit=3)
    assert log.status == "success" and numbers(log)["unscored"] == 0
    assert sum(request["refusal"] is not None for request in vendors.LOG) == refusals
    assert len(vendors.LOG) == 3 * CALLS + refusals
    last = record_of(log.samples[-1]).answers["k3"].applied if log.samples else None
    assert last is not None
    kept = {
        "temperature": last.temperature == 0,
        "effort": last.effort == "none",
        "form": last.form,
    }
    assert {name for name, kept_it in kept.items() if not kept_it} == given_up


@pytest.mark.parametrize("name", ["openai-api/vllm/m", pytest.param("together/m", marks=ROW)])
def test_a_limit_above_the_context_of_a_small_model_is_lowered_once_below_it(
    vendors: ModuleType, run_task: Run, tmp_path: Path, name: str
) -> None:
    task = run_task(
        "selfprobe/ethical_dilemma", model_of(vendors, name), tmp_path, limit=2, epochs=2
    )
    asked = [request["sent"].get("max_tokens") for request in vendors.LOG]
    limits = {
        name: r.applied.limit for name, r in record_of(task.samples[0]).acts.items() if r.applied
    }
    assert max(asked) > 4096 > limits["cot"] > 1500 and limits["direct"] == 128
    assert sum(most > 4096 for most in asked) == 1, "refused once, and freely"
    assert not any(reply.problem for reply in replies(task))


def test_calls_that_were_refused_together_without_a_name_are_all_sent_again(
    vendors: ModuleType, run_task: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        "selfprobe.solvers.negotiate._NegotiatedCall.awaited_trials", []
    )  # as in a batch: nobody waits for the first one
    log = run_task(
        "selfprobe/kth_word", model_of(vendors, "openai-api/odd/nameless"), tmp_path, limit=3
    )
    assert log.status == "success" and numbers(log)["unscored"] == 0


def test_a_first_call_that_is_at_work_holds_the_others_for_the_bound_alone(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("selfprobe.solvers.negotiate.REFUSAL_WINDOW_SECONDS", 0.2)
    terms, waited = ModelTerms(), []

    async def first() -> None:
        async with terms.trial_turn(["temperature"]):
            await anyio.sleep(1)

    async def later() -> None:
        start = anyio.current_time()
        async with terms.trial_turn(["temperature"]):
            waited.append(anyio.current_time() - start)

    async def both() -> None:
        async with anyio.create_task_group() as group:
            group.start_soon(first)
            await anyio.sleep(0.01)
            group.start_soon(later)
            group.start_soon(later)

    anyio.run(both)
    assert len(waited) == 2 and all(0.1 < seconds < 0.8 for seconds in waited)


def test_roles_of_one_model_share_what_is_known_and_both_waves_of_a_process_do(
    vendors: ModuleType, run_task: Run, tmp_path: Path
) -> None:
    model = model_of(vendors, "openai-api/strict/m")
    for wave in ("one", "two"):
        run_task(
            "selfprobe/kth_word", model, tmp_path / wave, limit=2, model_roles={"target": model}
        )
    assert refused(vendors) == 1


@ROW
@pytest.mark.parametrize(
    ("name", "asked"), [("google/gemini-2.5-pro", 2), ("google/gemini-2.5-flash", 1)]
)
def test_gemini_measures_and_a_model_that_only_thinks_gets_room(
    vendors: ModuleType, run_task: Run, tmp_path: Path, name: str, asked: int
) -> None:
    pytest.importorskip("google.genai")
    log = run_task("selfprobe/kth_word", model_of(vendors, name), tmp_path, limit=2)
    assert numbers(log)["unscored"] == 0 and numbers(log)["reasoned_rate"] == asked - 1
    assert len(vendors.LOG) == 2 * CALLS + asked - 1 and refused(vendors) == 0


@pytest.mark.parametrize(
    ("kind", "refusals", "given_up"),
    [
        pytest.param("each", 3, {"temperature", "effort", "form"}, marks=ROW),
        pytest.param("nameless", 1, {"temperature", "effort"}, marks=ROW),
        pytest.param("renamed", 1, {"effort"}, marks=ROW),
        pytest.param("fifth", 1, {"temperature"}, marks=ROW),
        pytest.param("drops", 0, set(), marks=ROW),
        pytest.param("busy", 0, set(), marks=ROW),
        ("text", 0, set()),
    ],
)
def test_odd_vendors_cost_one_request_a_refused_setting(
    vendors: ModuleType, run_task: Run, tmp_path: Path, kind: str, refusals: int, given_up: set[str]
) -> None:
    log = run_task(
        "selfprobe/kth_word", model_of(vendors, f"openai-api/odd/{kind}"), tmp_path, limit=3
    )
    assert log.status == "success" and refused(vendors) <= refusals + (kind == "nameless")
    if (
        kind == "fifth"
    ):  # which call that is hangs on the order; those that were under way keep their temperature
        assert any(reply.applied and reply.applied.temperature is None for reply in replies(log))
        return
    last = record_of(log.samples[-1]).answers["k3"].applied if log.samples else None
    assert last is not None
    kept = {
        "temperature": last.temperature == 0,
        "effort": last.effort == "none",
        "form": last.form,
    }
    assert {name for name, kept_it in kept.items() if not kept_it} == given_up | (
        {"form"} if kind == "nameless" else set()
    )
    if kind == "text":
        assert numbers(log)["unscored_target_error_text"] == 1, (
            "an error told as a reply is no refusal, and no reply"
        )


def test_an_error_about_the_prompt_that_quotes_temperature_leaves_the_temperature_alone(
    vendors: ModuleType, run_task: Run, tmp_path: Path
) -> None:
    model = model_of(vendors, "openai-api/odd/quotes")
    log = run_task("selfprobe/kth_word", model, tmp_path, limit=3)
    assert log.samples and all(
        "Your prompt was flagged" in sample.error.message for sample in log.samples
    )
    assert "temperature" not in terms_of(model).replacement_by_refused_setting
    without = [request for request in vendors.LOG if "temperature" not in request["sent"]]
    assert len(without) == 1, "tried once, and taken back"


def test_a_429_that_mentions_temperature_is_no_refusal(
    vendors: ModuleType, run_task: Run, tmp_path: Path
) -> None:
    model = model_of(vendors, "openai-api/odd/busy")
    log = run_task("selfprobe/kth_word", model, tmp_path, limit=1)
    assert terms_of(model).replacement_by_refused_setting == {} and all(
        reply.applied.temperature == 0 for reply in replies(log) if reply.applied
    )
    assert [request["status"] for request in vendors.LOG].count(429) == 2


def test_logprobs_are_asked_for_where_they_are_read_and_a_vendor_without_is_not_paid(
    vendors: ModuleType, run_task: Run, tmp_path: Path
) -> None:
    model = model_of(vendors, "openai-api/deepseek/deepseek-reasoner")
    assert numbers(run_task("selfprobe/binary", model, tmp_path / "b", limit=2))["unscored"] == 0
    assert refused(vendors) == 0
    vendors.LOG.clear()
    log = run_task("selfprobe/first_token", model, tmp_path / "f", limit=4)
    assert numbers(log)["unscored_no_logprobs"] == 1
    assert [request["status"] for request in vendors.LOG] == [400], "refused once, and nothing paid"


def test_a_proxy_that_drops_logprobs_is_found_out_by_the_first_reply(
    vendors: ModuleType, run_task: Run, tmp_path: Path
) -> None:
    log = run_task(
        "selfprobe/first_token", model_of(vendors, "openai-api/odd/drops"), tmp_path, limit=4
    )
    assert numbers(log)["unscored_no_logprobs"] == 1 and len(vendors.LOG) == 1


def test_a_vendor_that_lists_five_candidates_is_asked_for_five(
    vendors: ModuleType, run_task: Run, tmp_path: Path
) -> None:
    log = run_task(
        "selfprobe/first_token", model_of(vendors, "openai-api/odd/top5"), tmp_path, limit=3
    )
    assert [request["sent"]["top_logprobs"] for request in vendors.LOG] == [20, 5, 5, 5]
    assert all(reply.first_token for reply in replies(log))


def test_a_limit_above_the_vendors_is_lowered_to_it(
    vendors: ModuleType, run_task: Run, tmp_path: Path
) -> None:
    log = run_task(
        "selfprobe/ethical_dilemma",
        model_of(vendors, "openai-api/odd/small"),
        tmp_path,
        limit=1,
        epochs=2,
    )
    assert refused(vendors) == 1
    limits = {
        name: r.applied.limit for name, r in record_of(log.samples[0]).acts.items() if r.applied
    }
    assert limits == {"cot": 4096, "direct": 128}


def test_an_effort_that_the_user_chose_is_sent_as_it_is_or_the_run_fails_in_the_vendors_words(
    vendors: ModuleType, run_task: Run, tmp_path: Path
) -> None:
    model = model_of(vendors, "openai-api/strict/m")
    log = run_task(
        "selfprobe/kth_word", model, tmp_path / "x", limit=2, task_args={"effort": "xhigh"}
    )
    assert log.samples and all(
        "Supported values are" in sample.error.message for sample in log.samples
    )
    log = run_task(
        "selfprobe/kth_word", model, tmp_path / "h", limit=2, task_args={"effort": "high"}
    )
    assert {reply.applied.effort for reply in replies(log) if reply.applied} == {"high"}


def test_a_limit_that_the_user_chose_is_kept_and_the_metric_names_the_argument(
    vendors: ModuleType, run_task: Run, tmp_path: Path
) -> None:
    model = model_of(vendors, "openrouter/openai/gpt-5-mini")
    log = run_task("selfprobe/kth_word", model, tmp_path, limit=2, task_args={"answer_tokens": 80})
    assert numbers(log)["cut_at_answer_tokens"] == 1 and numbers(log)["unscored"] == 1
    assert {
        reply.applied.limit for reply in record_of(log.samples[0]).answers.values() if reply.applied
    } == {80}


def test_an_option_that_the_task_overrides_is_a_warning(
    vendors: ModuleType, run_task: Run, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    warn_once.cache_clear()
    with caplog.at_level(logging.WARNING):
        run_task(
            "selfprobe/kth_word",
            "openai-api/strict/m",
            tmp_path,
            limit=1,
            temperature=0.7,
            max_tokens=99,
        )
    told = [
        record.getMessage() for record in caplog.records if "is not used" in record.getMessage()
    ]
    assert [line.rpartition("\n")[2] for line in told] == [
        "--temperature 0.7 of openai-api/strict/m is not used: this task sets the temperature of its calls",
        "--max-tokens 99 of openai-api/strict/m is not used: this task sets the max_tokens of its calls; "
        "-T answer_tokens=… sets it",
    ]
