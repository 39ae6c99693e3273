"""Every task that asks, on every vendor of a strict stand-in: measured or refused, and what
negotiating cost.

    python tests/vendor_drill.py              # all tasks × all rows, 4 items each; some minutes
    python tests/vendor_drill.py --smoke      # two tasks × four rows
    python tests/vendor_drill.py --cells cells.jsonl --table table.md       # in pieces: goes on where it stopped
    python tests/vendor_drill.py --cells cells.jsonl --summary summary.md   # a row a model; then put into the page by:
    python docs/parts.py vendors summary.md

The stand-in (tests/strict_vendors.py) refuses what vendors are reported to refuse. Extra requests
are refusals, which cost nothing, and replies to a short limit that held nothing but reasoning,
which are paid; both once a model and run. "again" counts refusals with the words of an earlier one.
The minimum is what is left. Not counted: one question of Inspect's own for summaries, of OpenAI's
models that reason. Without token probabilities, tasks of preferences sample their answers.
"""

import argparse
import importlib.util
import json
import math
import os
import re
import sys
import tempfile
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from itertools import product
from pathlib import Path
from typing import Any

from inspect_ai import eval
from inspect_ai.log import EvalLog
from inspect_ai.model import get_model

STAND_IN = Path(__file__).parent / "strict_vendors.py"
PLAIN = "openai/gpt-4o-mini"
ROWS = (
    PLAIN,
    "openai/gpt-5-mini",
    "openai/o3",
    "openrouter/deepseek/deepseek-r1",
    "openrouter/openai/gpt-5-mini",
    "anthropic/claude-sonnet-4-5",
    "openai-api/deepseek/deepseek-reasoner",
    "openai-api/strict/m",
    "google/gemini-2.5-pro",
    "google/gemini-2.5-flash",
    "groq/llama-3.3-70b-versatile",
    "mistral/mistral-large-latest",
    "together/m",
    "openai-api/vllm/m",
    "openrouter/meta/behind",
    "openrouter/meta/plain",
)
PINNED = {"provider": {"require_parameters": True}}
"""OpenRouter then refuses what no endpoint of a model takes, with an error that names nothing."""
TASKS = (
    *("kth_word", "heads_up", "ethical_dilemma", "paraphrase_recognition", "prompt_reconstruction"),
    *("binary", "probability", "user_motivation", "reasoning_trace", "first_token"),
    *("pairwise_preference", "direct_scoring", "g_eval"),
)
NAMELESS = 3
"""Refusals of OpenRouter's that may be alike in a run: settings left out one after the other."""

PAGE = """\
# Every task on every vendor of the stand-in

Made by `python tests/vendor_drill.py --table FILE`: four items a task, two pairs in those of preferences.
"Scored" counts values, several a sample in most tasks.
Refused requests and replies that were too short (no text but reasoning) are what negotiating cost.

A method whose need is not met is unscored with the reason. `no_logprobs`: the vendor gives none, which one request at
most shows. `no_reasoning`: the vendor shows none, or the model does not reason. In `direct_scoring` and `g_eval` one
value of three is a score, the choice of a text; what each text was given is none by itself.
"""
SUMMARY = """\
`python tests/vendor_drill.py` runs {tasks} tasks of four items (two pairs in those of preferences) on each row of the
stand-in: one refused request a refused setting, and one reply that was too short, is what negotiating costs. Everything
is scored but what the last column names. In brackets: the most of one task.

|model|requests|refused|too short|unscored|
|---|---|---|---|---|
"""
RULE = "|---|---|---|---|---|"

SMOKE = (("kth_word", "first_token"), (PLAIN, ROWS[1], ROWS[6], ROWS[7]))
PAIRS = """\
{"id": "p1", "question": "Q?", "text_1": "One.", "text_2": "Two.", "label": 1}
{"id": "p2", "question": "R?", "text_1": "Three.", "text_2": "Four.", "label": 2}
"""


@dataclass(frozen=True)
class Cell:
    """One task on one row."""

    task: str
    model: str
    outcome: str
    requests: int
    refused: int
    again: int
    """Refusals with the words of an earlier one."""
    cut: int
    """Replies that were too short."""

    @property
    def minimum(self) -> int:
        """Requests that no negotiation could save."""
        return self.requests - self.refused - self.cut

    @property
    def wasted(self) -> int:
        """Requests beyond one refused a setting and one reply that was too short."""
        return max(self.again - NAMELESS, 0) + max(self.cut - 1, 0)

    def __str__(self) -> str:
        ratio = f"{self.requests / self.minimum:.2f}" if self.minimum else "–"
        numbers = f"{self.requests:8} {self.minimum:7} {ratio:>6} {self.refused:7} {self.again:5} {self.cut:9}"
        return f"{self.task:22} {self.model:38} {self.outcome:28} {numbers}"


HEAD = "{:22} {:38} {:28} {:>8} {:>7} {:>6} {:>7} {:>5} {:>9}".format(
    *("task", "model", "outcome", "requests", "minimum", "ratio", "refused", "again", "too short")
)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--smoke", action="store_true", help="two tasks × four rows")
    parser.add_argument("--tasks", help="some of the tasks, with commas")
    parser.add_argument(
        "--cells", type=Path, help="a file of cells (JSON lines); those in it are not run again"
    )
    parser.add_argument("--table", type=Path, help="write all cells as a page in Markdown")
    parser.add_argument(
        "--summary", type=Path, help="write a row a model as a part of docs/running.md"
    )
    given = parser.parse_args()
    tasks, rows = (
        SMOKE if given.smoke else (tuple(given.tasks.split(",")) if given.tasks else TASKS, ROWS)
    )
    cells = _kept(given.cells)
    print(HEAD)
    vendors = _stand_in()
    with vendors.running() as address, tempfile.TemporaryDirectory() as folder:
        os.environ |= vendors.environment(address)
        (Path(folder) / "pairs.jsonl").write_text(PAIRS)
        for task, row in product(tasks, rows):
            if (task, row) not in cells:
                cell = cells[task, row] = _cell(vendors, task, row, folder, address)
                if given.cells:
                    with given.cells.open("a", encoding="utf-8") as kept:
                        kept.write(json.dumps(asdict(cell)) + "\n")
            print(cells[task, row], flush=True)
    if given.table:
        given.table.write_text(_page(cells), encoding="utf-8")
    if given.summary:
        given.summary.write_text(_summary(cells), encoding="utf-8")
    if any(cell.wasted for cell in cells.values()):
        sys.exit(
            "expected one refused request a setting, and one reply that was too short, in a run"
        )


def _kept(path: Path | None) -> dict[tuple[str, str], Cell]:
    lines = path.read_text(encoding="utf-8").splitlines() if path and path.exists() else []
    cells = [Cell(**json.loads(line)) for line in lines]
    return {(cell.task, cell.model): cell for cell in cells}


def _cell(vendors: Any, task: str, row: str, folder: str, address: str) -> Cell:
    outcome, sent = _measured(vendors, task, row, folder, address)
    said = [
        re.sub(r"\d+", "", str(request["refusal"]))
        for request in sent
        if request["refusal"] is not None
    ]
    cut = sum(request["cut"] for request in sent)
    return Cell(task, row, outcome, len(sent), len(said), len(said) - len(set(said)), cut)


def _page(cells: Mapping[tuple[str, str], Cell]) -> str:
    """A table a task: what came out, the requests and how many of them negotiating cost."""
    parts = [PAGE]
    for task in sorted({task for task, _ in cells}, key=TASKS.index):
        own = [cell for cell in cells.values() if cell.task == task]
        rows = [f"| {c.model} | {c.outcome} | {c.requests} | {c.refused} | {c.cut} |" for c in own]
        parts.append(
            "\n".join(
                [
                    f"## {task}\n",
                    "| model | outcome | requests | refused | too short |",
                    RULE,
                    *rows,
                ]
            )
        )
    return "\n\n".join(parts) + "\n"


def _summary(cells: Mapping[tuple[str, str], Cell]) -> str:
    """A row a model: what negotiating cost over all tasks, and what is unscored."""
    lines = []
    for model in dict.fromkeys(model for _, model in cells):
        own = [cell for cell in cells.values() if cell.model == model]
        odd = ", ".join(
            f"{c.task} ({c.outcome.partition(': ')[2]})"
            for c in own
            if c.outcome.startswith("unscored")
        )
        refused, cut = [cell.refused for cell in own], [cell.cut for cell in own]
        shown = [
            f"{sum(counts)} ({max(counts)})" if sum(counts) else "0" for counts in (refused, cut)
        ]
        lines.append(
            f"|{model}|{sum(cell.requests for cell in own)}|{'|'.join(shown)}|{odd or ' '}|"
        )
    return SUMMARY.format(tasks=len({task for task, _ in cells})) + "\n".join(lines) + "\n"


def _stand_in() -> Any:
    spec = importlib.util.spec_from_file_location("strict_vendors", STAND_IN)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def _measured(
    vendors: Any, task: str, row: str, folder: str, address: str
) -> tuple[str, list[Any]]:
    """What came out, in a word, and the requests."""
    vendors.LOG.clear()
    own: dict[str, Any] = {"base_url": address} if row.startswith("google/") else {}
    own |= PINNED if row == "openrouter/meta/plain" else {}
    try:
        model = get_model(row, memoize=False, **own)
    except (
        Exception
    ) as error:  # a provider's package that is not installed here, whatever it raises
        return f"not here: {type(error).__name__}", []
    args: dict[str, Any] = {"epochs": 2} if task == "ethical_dilemma" else {}
    if task.endswith(("preference", "scoring", "eval")):
        args["dataset"] = f"{folder}/pairs.jsonl"
    if task in ("paraphrase_recognition", "prompt_reconstruction"):
        args["embedder"] = "openai/words"
    [log] = eval(
        f"selfprobe/{task}",
        model=model,
        model_roles={"grader": model},
        task_args=args,
        limit=4,
        display="none",
        log_dir=folder,
        log_realtime=False,
    )
    return _outcome(log), [
        r for r in vendors.LOG if r["sent"] != {"reasoning": {"effort": "low", "summary": "auto"}}
    ]


def _outcome(log: EvalLog) -> str:
    scores = [score for sample in log.samples or [] for score in (sample.scores or {}).values()]
    values = [
        v for s in scores for v in (s.value.values() if isinstance(s.value, dict) else [s.value])
    ]
    good = sum(isinstance(v, int | float) and not math.isnan(v) for v in values)
    if good:
        return f"scored {good} of {len(values)}"
    return f"unscored: {next((s.reason for s in scores if s.reason), log.status)}"


if __name__ == "__main__":
    main()
