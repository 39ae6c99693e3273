"""The notebook runs from its first cell to its last, and its answer is the planted truth."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parents[2] / "examples"
KERNEL = """
import ast, asyncio, json, sys

async def kernel():  # a notebook's cells run inside an event loop
    names = {}
    for source in json.load(sys.stdin):
        *lines, last = ast.parse(source).body
        exec(compile(ast.Module(lines, []), "cell", "exec"), names)
        if isinstance(last, ast.Expr):
            value = eval(compile(ast.Expression(last.value), "cell", "eval"), names)
            print(*[value] * (value is not None), end="\\n" * (value is not None))
        else:
            exec(compile(ast.Module([last], []), "cell", "exec"), names)

asyncio.run(kernel())
"""


def run_notebook(name: str, folder: Path) -> subprocess.CompletedProcess[str]:
    """The output of a notebook's cells, run in a folder."""
    cells = json.loads((EXAMPLES / name).read_text("utf-8"))["cells"]
    assert not any(cell.get("outputs") for cell in cells), "it is kept without outputs"
    sources = ["".join(cell["source"]) for cell in cells if cell["cell_type"] == "code"]
    done = subprocess.run(
        [sys.executable, "-c", KERNEL],
        input=json.dumps(sources),
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done


@pytest.mark.slow(90)
def test_the_notebook_of_probes_fits_them_and_reads_one_back(tmp_path: Path) -> None:
    pytest.importorskip("torch", reason="the probes extra is not installed")
    done = run_notebook("probes.ipynb", tmp_path)
    assert " for ours: " in done.stdout and "prompts='paper'" in done.stdout


@pytest.mark.slow(40)
def test_the_tour_runs_in_a_kernel_and_names_the_two_models_that_know_themselves(
    tmp_path: Path,
) -> None:
    done = run_notebook("tour.ipynb", tmp_path)
    assert "5 models × 5 × kth_word (80 items)" in done.stdout
    assert "\nYes, for 2 of 5 models. " in done.stdout and "[5 rows x 6 columns]" in done.stdout
    assert (
        done.stdout.endswith("tour/index.html\n") and (tmp_path / "tour" / "index.html").is_file()
    )
