"""A probe on the hub: uploaded as docs/probes.md says, loaded, and what is said where there is
none.
"""

import re
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import huggingface_hub
import numpy as np
import pytest
from huggingface_hub.errors import RepositoryNotFoundError

from selfprobe.probes import ContrastProbe
from selfprobe.probes.probe_file import HUB_FILE_NAME

from .test_estimator import differences

PAGE = Path(__file__).parents[2] / "docs" / "probes.md"


class Hub:
    """A stand-in for the hub's client, on a folder."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.made, self.size = folder, list[str](), 0

    def api(self) -> "Hub":
        return self

    def create_repo(self, repository: str, *, exist_ok: bool) -> None:
        self.made.append(repository)

    def upload_file(self, *, path_or_fileobj: str, path_in_repo: str, repo_id: str) -> None:
        assert repo_id in self.made
        (self.folder / path_in_repo).write_bytes(Path(path_or_fileobj).read_bytes())

    def download(
        self,
        repository: str,
        name: str,
        *,
        revision: str | None,
        token: str | None,
        dry_run: bool = False,
    ) -> Any:
        if not (self.folder / name).is_file():
            raise OSError(f"404: {repository} has no {name}")
        if dry_run:
            return SimpleNamespace(file_size=self.size or (self.folder / name).stat().st_size)
        return str(self.folder / name)


@pytest.fixture
def hub(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Hub:
    made = Hub(tmp_path)
    monkeypatch.setattr(huggingface_hub, "HfApi", made.api)
    monkeypatch.setattr(huggingface_hub, "hf_hub_download", made.download)
    return made


def test_a_probe_goes_to_the_hub_by_the_lines_of_the_page_and_comes_back(
    hub: Hub, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    x, y, _ = differences()
    probe = ContrastProbe("mean_difference").fit(x, y)
    monkeypatch.chdir(tmp_path)
    probe.save("p.safetensors")
    (lines,) = (
        block
        for block in re.findall(r"```python\n(.*?)```", PAGE.read_text(), re.DOTALL)
        if "HfApi" in block
    )
    assert len(lines.splitlines()) <= 7
    exec(lines)
    np.testing.assert_allclose(
        ContrastProbe.from_hub("me/probe").preference(x), probe.preference(x), rtol=1e-4
    )


def test_a_probe_that_is_not_on_the_hub_is_named(hub: Hub) -> None:
    with pytest.raises(
        ValueError,
        match=r"me/none: no probe \(probe.safetensors\) can be loaded from the hub \(404",
    ):
        ContrastProbe.from_hub("me/none")


def test_the_clients_own_errors_are_among_those_that_are_said() -> None:
    from huggingface_hub.errors import HfHubHTTPError

    assert issubclass(RepositoryNotFoundError, HfHubHTTPError)


def test_a_file_on_the_hub_that_is_too_large_for_a_probe_is_not_fetched(hub: Hub) -> None:
    (hub.folder / HUB_FILE_NAME).write_bytes(b"")
    hub.size = 30_000_000_000
    with pytest.raises(
        ValueError, match="^me/x: probe.safetensors has 30,000 MB; no probe has over 100 MB$"
    ):
        ContrastProbe.from_hub("me/x")
