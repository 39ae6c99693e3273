"""What a vendor refuses for good is told once, and a model that refuses every call of a run is
asked no more.
"""

import json
import logging
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from inspect_ai.log import EvalLog
from inspect_ai.model import get_model

Run = Callable[..., EvalLog]
MODEL = "openai-api/refuses/m"


ANSWER = {"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": "A"}}
REPLY = {"id": "1", "object": "chat.completion", "created": 1, "model": "m", "choices": [ANSWER]}


class _Vendor(BaseHTTPRequestHandler):
    """Answers with `status` and `words` from request number `after` on, before with a reply;
    counts.
    """

    status, words, after, asked, told_as_200 = 401, "", 0, 0, False

    def do_POST(self) -> None:
        prompt = json.loads(self.rfile.read(int(self.headers["Content-Length"])))["messages"][-1][
            "content"
        ]
        kind = type(self)
        kind.asked += 1
        good = kind.asked <= kind.after
        error = {"error": {"message": kind.words.replace("PROMPT", prompt), "code": kind.status}}
        data = json.dumps(REPLY if good else error).encode()
        self.send_response(200 if good or kind.told_as_200 else kind.status)
        self.send_header("content-length", str(len(data)))
        self.send_header("content-type", "application/json")
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, *args: object) -> None:
        """Quiet."""


@pytest.fixture
def vendor(monkeypatch: pytest.MonkeyPatch) -> Iterator[type[_Vendor]]:
    kind = type("Vendor", (_Vendor,), {})
    with ThreadingHTTPServer(("127.0.0.1", 0), kind) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        monkeypatch.setenv("REFUSES_BASE_URL", f"http://127.0.0.1:{server.server_port}/v1")
        monkeypatch.setenv("REFUSES_API_KEY", "x")
        yield kind
        server.shutdown()


def ran(
    run_task: Run, folder: Path, caplog: pytest.LogCaptureFixture, **given: Any
) -> tuple[EvalLog, list[str]]:
    """A run of eight samples, and the warnings that are shown in it."""
    caplog.clear()
    with caplog.at_level(logging.WARNING):
        log = run_task(
            "selfprobe/kth_word", get_model(MODEL, memoize=False), folder, **{"limit": 8} | given
        )
    return log, [record.getMessage().rpartition("\n")[2] for record in caplog.records]


def errors(log: EvalLog) -> list[str]:
    return [sample.error.message for sample in log.samples or [] if sample.error]


def test_a_wrong_key_is_one_request_and_one_line_with_the_variable_and_each_sample_has_the_reason(
    vendor: type[_Vendor], run_task: Run, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    vendor.status, vendor.words = 401, "Incorrect API key provided: x."
    log, said = ran(run_task, tmp_path, caplog)
    assert vendor.asked == 1 and log.status == "error"
    refusal = f"{MODEL} refused a call: Error code: 401 - Incorrect API key provided: x."
    assert said == [
        f"{refusal} Check the key (REFUSES_API_KEY). {MODEL} is asked no more in this run."
    ]
    told = errors(log)
    assert (
        len(told) == 8
        and set(told) <= {refusal, f"not asked: {refusal}"}
        and told[-1].startswith("not asked: ")
    )


@pytest.mark.parametrize(
    ("status", "words", "helps", "requests"),
    [
        (
            400,
            "Your account is not active",
            "Leaving out what the task can leave out did not help.",
            4,
        ),
        pytest.param(
            402, "Insufficient credits", "The account needs credit.", 3, marks=pytest.mark.slow(2)
        ),
        pytest.param(
            403,
            "Your country is not supported",
            "The key's account or region may not use this model.",
            3,
            marks=pytest.mark.slow(2),
        ),
        pytest.param(
            404,
            "The model m does not exist",
            "Check the model's name and the address that it is asked at",
            3,
            marks=pytest.mark.slow(2),
        ),
    ],
)
def test_three_samples_that_are_refused_alike_end_a_run_whose_others_are_not_asked(
    vendor: type[_Vendor],
    run_task: Run,
    tmp_path: Path,
    caplog: pytest.LogCaptureFixture,
    status: int,
    words: str,
    helps: str,
    requests: int,
) -> None:
    vendor.status, vendor.words = status, words
    log, said = ran(run_task, tmp_path, caplog)
    assert vendor.asked == requests and log.status == "error"
    assert len(said) == 2 and words in said[0] and helps in said[0]
    assert (
        said[1] == f"{MODEL} is asked no more in this run: it refused 3 samples in the same words."
    )
    assert len(errors(log)) == 8 and all(
        words in error and "\n" not in error for error in errors(log)
    )


@pytest.mark.parametrize(
    "words",
    [
        "Your prompt was flagged as potentially violating our policy",
        pytest.param("No: PROMPT", marks=pytest.mark.slow(3)),
    ],
)
def test_errors_about_prompts_end_no_run(
    vendor: type[_Vendor],
    run_task: Run,
    tmp_path: Path,
    caplog: pytest.LogCaptureFixture,
    words: str,
) -> None:
    vendor.status, vendor.words = 403, words
    log, said = ran(run_task, tmp_path, caplog)
    assert (
        vendor.asked >= 8
        and len(errors(log)) == 8
        and not any("asked no more" in line for line in said)
    )


@pytest.mark.slow(3)
def test_credit_that_ends_in_the_middle_of_a_run_ends_it_and_another_refusal_does_not(
    vendor: type[_Vendor], run_task: Run, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    for status, ends in ((402, True), (404, False)):
        vendor.status, vendor.words, vendor.after, vendor.asked = status, "No more.", 10, 0
        log, said = ran(run_task, tmp_path / str(status), caplog, max_samples=1)
        assert len(errors(log)) == 6 and any("asked no more" in line for line in said) == ends
        assert any(error.startswith("not asked: ") for error in errors(log)) == ends, status


def test_the_other_models_of_a_task_are_not_paid_for_samples_that_must_fail(
    vendor: type[_Vendor],
    run_task: Run,
    tmp_path: Path,
    caplog: pytest.LogCaptureFixture,
    server: Any,
) -> None:
    vendor.status, vendor.words = 401, "No."
    ran(run_task, tmp_path, caplog, model_roles={"target": "openai-api/fake/alpha"}, max_samples=1)
    assert vendor.asked == 1 and server.stats()["requests"] <= 2


def test_the_next_run_of_the_process_asks_again(
    vendor: type[_Vendor], run_task: Run, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    vendor.status, vendor.words = 401, "No."
    model = get_model(MODEL, memoize=False)
    for run in (1, 2):
        log = run_task("selfprobe/kth_word", model, tmp_path / str(run), limit=3)
        assert vendor.asked == run and len(errors(log)) == 3


def test_an_argument_that_the_user_chose_is_named_where_the_vendor_objects_to_it(
    vendor: type[_Vendor], run_task: Run, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    vendor.status, vendor.words = 400, "reasoning_effort: no such value"
    _, said = ran(run_task, tmp_path, caplog, task_args={"effort": "xhigh"})
    assert said[0].endswith("The value of -T effort was refused: choose another, or leave it out.")


def test_an_error_under_status_200_is_an_error_and_no_reply(
    vendor: type[_Vendor], run_task: Run, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    vendor.told_as_200, vendor.status, vendor.words = True, 402, "Insufficient credits"
    log, said = ran(run_task, tmp_path, caplog)
    assert (
        vendor.asked == 3
        and log.status == "error"
        and "Error code: 402 - Insufficient credits" in said[0]
    )


def test_a_busy_vendor_under_status_200_is_asked_again_and_then_named(
    vendor: type[_Vendor], run_task: Run, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    vendor.told_as_200, vendor.status, vendor.words = True, 503, "Upstream is down"
    log, _ = ran(run_task, tmp_path, caplog, limit=1, max_retries=1)
    assert vendor.asked >= 2
    assert errors(log)[0].startswith(f"{MODEL} gave no answer after all retries: ")
    assert "Upstream is down" in errors(log)[0]
