"""A secret of a model's arguments or address reaches the model, and no file."""

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result
from inspect_ai import eval as inspect_eval
from inspect_ai.log import list_eval_logs, read_eval_log, write_eval_log

from selfprobe.cli import main

SECRETS = ("pw-hunter2", "tok-abcdef99", "team-blue7", "qry-secret55", "key-zzz12345")
MODELS = """
models:
- model: openai-api/fake/alpha
  base_url: "{url}"
  args: {{default_headers: {{Authorization: Bearer tok-abcdef99}}, default_query: {{token: qry-secret55}}}}
- model: openai-api/fake/beta
  base_url: "{url}"
  args: {{api_key: key-zzz12345}}
tasks: [heads_up]
limit: 2
"""


@pytest.fixture
def received(server: Any, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The headers and addresses of requests, as text."""
    requests = list[str]()

    class Noting(server.server.RequestHandlerClass):
        def parse_request(self) -> bool:
            well = bool(super().parse_request())
            requests.append(f"{self.path} {dict(self.headers)}" if well else "")
            return well

    monkeypatch.setattr(server.server, "RequestHandlerClass", Noting)
    return requests


def files(folder: Path) -> str:
    """All that was written there, logs as JSON."""
    logs = [
        read_eval_log(info).model_dump_json()
        for info in list_eval_logs(str(folder), recursive=True)
    ]
    assert logs
    return "".join([*logs, *(path.read_text() for path in folder.rglob("*.json"))])


def called(*arguments: str | Path) -> Result:
    return CliRunner().invoke(main, [*map(str, arguments)])


@pytest.mark.slow(3)
def test_a_matrix_asks_with_its_secrets_writes_none_of_them_and_is_found_again(
    server: Any, received: list[str], tmp_path: Path
) -> None:
    url = server.base_url.replace("http://", "http://me:pw-hunter2@")
    config, logs, baseline, rows = (
        tmp_path / name for name in ("c.yaml", "logs", "b.json", "rows.csv")
    )
    config.write_text(MODELS.format(url=url))
    command = (
        "matrix",
        config,
        "-M",
        'default_headers={"X-Team": "team-blue7"}',
        "--log-dir",
        logs,
        "--yes",
    )
    command = (*command, "--out", tmp_path / "page")
    outputs = [called(*command)]
    asked = len(received)
    assert outputs[0].exit_code == 0, outputs[0].output
    assert any("token=qry-secret55" in one for one in received) and any(
        "team-blue7" in one for one in received
    )
    outputs += [called(*command), called("check", logs, "--save", baseline, "--unscored", "1")]
    outputs.append(called("report", logs, "--rows", rows))
    assert len(received) == asked and [done.exit_code for done in outputs] == [0] * 4
    shown = (
        files(logs)
        + baseline.read_text()
        + rows.read_text()
        + "".join(done.output for done in outputs)
    )
    assert [secret for secret in SECRETS if secret in shown] == []
    cell = next(
        log for log in map(read_eval_log, list_eval_logs(str(logs))) if log.eval.model_roles
    )
    assert json.loads(cell.model_dump_json())["eval"]["model_roles"]["target"][
        "base_url"
    ].startswith("http://me:…@")


def test_inspects_own_command_line_writes_none_either(
    server: Any, received: list[str], tmp_path: Path
) -> None:
    [log] = inspect_eval(
        "selfprobe/kth_word",
        model="openai-api/fake/alpha",
        model_base_url=server.base_url.replace("http://", "http://me:pw-hunter2@"),
        model_args={"default_headers": {"X-Auth": "tok-abcdef99"}},
        limit=1,
        log_dir=str(tmp_path),
        display="none",
        log_level_transcript="http",
    )
    assert log.status == "success" and any("tok-abcdef99" in one for one in received)
    assert [secret for secret in SECRETS if secret in files(tmp_path)] == []


def test_a_baseline_of_a_log_that_holds_a_secret_holds_none(run_task: Any, tmp_path: Path) -> None:
    log = run_task("selfprobe/kth_word", "planted/a", tmp_path, limit=2)
    log.eval.model_args = {"default_headers": {"X-Auth": "tok-abcdef99"}}
    write_eval_log(log)
    assert called("check", tmp_path, "--save", tmp_path / "b.json").exit_code == 0
    assert "tok-abcdef99" not in (tmp_path / "b.json").read_text()


def test_a_secret_header_that_every_log_would_hold_is_refused_with_another_way(
    tmp_path: Path,
) -> None:
    config = tmp_path / "c.yaml"
    config.write_text(
        "models: [{model: planted/a, config: {extra_headers: {Authorization: tok-abcdef99}}}, planted/b]\n"
    )
    done = called(
        "matrix",
        config,
        "--tasks",
        "kth_word",
        "--limit",
        "2",
        "--yes",
        "--log-dir",
        tmp_path / "m",
    )
    assert done.exit_code == 2 and "tok-abcdef99" not in done.output
    assert (
        "config.extra_headers has a header that may be secret: every log would hold it"
        in done.output
    )
