"""Files of public pair sets are fetched whole: an interrupted transfer goes on, and too large a one
is refused.
"""

from collections.abc import Iterator
from pathlib import Path

import pytest

from selfprobe.data import public_pairs
from selfprobe.data.public_pairs import download
from selfprobe.embed.weights import SourceError
from tests.test_weights import BODY, Hub


@pytest.fixture
def hub() -> Iterator[Hub]:
    server = Hub()
    yield server
    server.shutdown()
    server.server_close()


def fetched(hub: Hub, folder: Path) -> bytes:
    download(f"http://127.0.0.1:{hub.server_port}/file", folder / "file", lambda _: None)
    return (folder / "file").read_bytes()


def test_an_interrupted_transfer_goes_on_where_it_stopped(hub: Hub, tmp_path: Path) -> None:
    hub.breaks = 2
    assert fetched(hub, tmp_path) == BODY
    starts = [0 if wanted is None else int(wanted[6:-1]) for _, wanted in hub.asked]
    assert len(starts) == 3 and 0 == starts[0] < starts[1] < starts[2]


def test_a_server_without_ranges_is_asked_for_all_of_it_again(hub: Hub, tmp_path: Path) -> None:
    hub.breaks, hub.ranges = 1, False
    assert fetched(hub, tmp_path) == BODY


def test_a_part_that_is_longer_than_the_file_is_thrown_away(hub: Hub, tmp_path: Path) -> None:
    (tmp_path / "file.part").write_bytes(BODY + b"more")
    with pytest.raises(SourceError, match="the server answered 416"):
        fetched(hub, tmp_path)
    assert fetched(hub, tmp_path) == BODY


@pytest.mark.parametrize("with_length", [True, False])
def test_a_server_that_sends_more_than_any_file_of_ours_is_refused(
    hub: Hub, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, with_length: bool
) -> None:
    monkeypatch.setattr(public_pairs, "LARGEST_FILE_BYTES", 500_000)
    if not with_length:
        monkeypatch.setattr(hub.RequestHandlerClass, "send_header", lambda self, name, value: None)
    with pytest.raises(SourceError, match="the server sends 1 MB or more; expected at most"):
        fetched(hub, tmp_path)
    assert not list(tmp_path.rglob("*.part"))


def test_a_server_that_is_not_there_is_named_with_its_error(tmp_path: Path) -> None:
    with pytest.raises(SourceError, match="ConnectError"):
        download("http://127.0.0.1:9/file", tmp_path / "file", lambda _: None)
