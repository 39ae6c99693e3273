"""`selfprobe.probes`: what it exports, what it says without PyTorch, and the lines of the docs,
which are run.
"""

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import selfprobe.probes
from selfprobe.probes.harvesting import harvest
from selfprobe.probes.probe_file import load_probe
from selfprobe.text.extras import install_command

from .conftest import tiny_judge
from .test_probe_command import rows, written

DOCS = Path(__file__).parents[2] / "docs" / "probes.md"


def test_every_name_is_there_and_another_is_told_them() -> None:
    for name in selfprobe.probes.__all__:
        assert getattr(selfprobe.probes, name).__doc__, name
    assert selfprobe.probes.harvest is harvest
    with pytest.raises(
        AttributeError, match="has no attribute 'Probes'; it has Chat, ContrastProbe, Harvest"
    ):
        _ = selfprobe.probes.Probes


def test_without_pytorch_the_import_is_quick_and_a_name_says_what_to_install() -> None:
    code = (
        "import sys\nsys.modules['torch'] = None\nimport selfprobe.probes\n"
        "assert not {'numpy', 'sklearn', 'transformers'} & set(sys.modules)\n"
        "from selfprobe.probes import Pair\n"
        "try:\n    from selfprobe.probes import harvest\n"
        "except ImportError as error:\n    print(error)\n"
    )
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert ran.stdout == f"selfprobe.probes.harvest needs torch: {install_command('probes')}\n", (
        ran.stderr
    )


def test_the_lines_of_the_docs_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Any
) -> None:
    code, _ = re.findall(r"```python\n(.*?)```", DOCS.read_text("utf-8"), re.S)
    written(tmp_path / "mine.jsonl", rows("mine", 48))
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("SELFPROBE_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr("selfprobe.probes.model.load_model", lambda name: tiny_judge())
    exec(compile(code, str(DOCS), "exec"), {})
    assert "tiny-llama" in capsys.readouterr().out
    assert load_probe(tmp_path / "p.safetensors").card.train_pairs == 24
    assert (
        json.loads(next((tmp_path / "cache").rglob("identity.json")).read_text())["model"]
        == "tiny-llama"
    )
