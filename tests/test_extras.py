"""A missing extra is answered with a command that works where selfprobe is installed."""

from pathlib import Path

import pytest

from selfprobe.study.setup_state import EXTRAS, USES
from selfprobe.text import extras


def test_a_checkout_names_itself_from_any_folder(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, root: Path
) -> None:
    monkeypatch.chdir(root)
    assert extras.install_command("ray") == "pip install -c constraints.txt -e '.[ray]'"
    monkeypatch.chdir(tmp_path)
    assert extras.install_command("ray") == (
        f"pip install -c {root}/constraints.txt -e '{root}[ray]'"
    )


def test_a_wheel_names_the_packages_since_no_index_has_selfprobe(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(extras, "CHECKOUT", tmp_path)
    assert extras.install_command("ray") == "pip install 'ray>=2.60'"
    assert extras.install_command("mechanisms") == (
        "pip install torch transformers safetensors gguf accelerate peft"
    )


@pytest.mark.parametrize("extra", EXTRAS)
def test_every_extra_that_the_doctor_names_has_packages_and_a_use(extra: str) -> None:
    assert extras.extra_packages(extra) and USES[extra]
