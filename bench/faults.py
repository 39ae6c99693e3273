"""Every fault of the local server × every black-box task: is a row right, unscored with a reason,
or failed?

    python bench/faults.py                                # all, 10 % of the attempts, then 10 % of the prompts for good
    python bench/faults.py --smoke                        # three tasks, three faults, one kill
    python bench/faults.py --cells faults.jsonl --table docs/faults.md   # in pieces: goes on where it stopped
    python docs/parts.py faults docs/faults.md                           # puts that into docs/statistics.md

Each run is held against an undisturbed one, row by row (a row is one decision of one sample):

  scored     with a value              failed   its sample ended in an error, which the log and the command tell
  unscored   with a reason             lost     none of these
  fewer      a verdict or mean of several answers, scored otherwise where some of these are unscored with a reason
  changed    scored otherwise than in the undisturbed run, about the same truth, and none of these
  as truth   scored, and what counts as the target's behaviour is another text

"kill" is a SIGKILL when half of the requests were sent, and the same run again. Calls under way are
those that the killed process had sent and whose reply it had not taken; only they may be asked
again.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from inspect_ai import Task, task_with
from inspect_ai.event import ModelEvent
from inspect_ai.model import get_model
from inspect_ai.scorer import SampleScore

from selfprobe.logs import readable_logs, samples, task_of, transcripts, values_of
from selfprobe.logs.resuming import replies_kept
from selfprobe.scorers.decision import decisions_of
from selfprobe.scorers.summary import FOREIGN, notes_of
from selfprobe.solvers.record import record_of
from selfprobe.study._registry import tasks as tasks_by_name
from selfprobe.study.waves import RunSettings, run_wave

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))
import fakeserver

PAIRS_FILE = "pairs.jsonl"
WORDS_FILE = "words.yaml"
PAIR_LINE = (
    '{{"id": "p{number}", "question": "Why {number}?", "text_1": "One {number}.", '
    '"text_2": "Two {number}.", "label": {label}}}\n'
)
FILES = {
    PAIRS_FILE: "".join(PAIR_LINE.format(number=i, label=1 + i % 2) for i in range(20)),
    WORDS_FILE: (
        "first_token:\n  - {text: test, of: evaluation}\n  - {text: real, of: deployment}\n"
    ),
}
MINILM = {"embedder": "sentence-transformers/all-MiniLM-L6-v2"}
TASKS: dict[str, dict[str, Any]] = {
    "kth_word": {},
    "heads_up": {},
    "probability_targeting": {},
    "self_recognition": {},
    "subset_choice": {},
    "binary": {},
    "probability": {},
    "user_motivation": {},
    "reasoning_trace": {},
    "dilemma_generation": {},
    "pairwise_preference": {"dataset": PAIRS_FILE},
    "direct_scoring": {"dataset": PAIRS_FILE},
    "g_eval": {"dataset": PAIRS_FILE},
    "paraphrase_recognition": MINILM,
    "prompt_reconstruction": MINILM,
    "ethical_dilemma": {"epochs": 2},
    "open_answers": {"epochs": 1},
    "first_token": {"questions": WORDS_FILE},
    "turn_curve": {"most": 2},
    "cue_removal": {"most": 2, "controls": 1},
    "pairwise_realism": {"prompts": 4},
    "rewriting": {"remove": "answer options", **MINILM},
    "dilemma_judging": {"dataset": "ethical_dilemmas", "samples": 2},
}
"""Tasks that need no open weights, and their arguments; `turn_scan` asks a judge alone, of logs
that are there.
"""
MODES = ("attempts", "prompts")
OTHER_WORDS = ("length", "nojson", "doublebrace", "nan", "badsum", "huge", "injection")
"""Faults that put other words, or fewer, into a reply: nobody can tell these from what the target
would have said.
"""
SMOKE = (("kth_word", "heads_up", "binary"), ("500", "hang", "empty"))
NONE = "none"
KILL = "kill"
NAMES = ("rows", "scored", "unscored", "failed", "lost", "fewer", "changed", "as_truth", "marked")
ITEMS = 2
LATENCY_MS = 20
"""Milliseconds of a reply; "slow" takes 20 times as long."""
HANG_SECONDS = 30
"""Seconds after which an attempt is given up, where some hang: more than a busy machine takes."""
Key = tuple[str, int, str, str]
"""Item, epoch, scorer and key."""

WAVE_PROGRAM = (
    "import sys; sys.path.insert(0, sys.argv[1]); import faults; "
    "faults.wave(sys.argv[3].split(','), sys.argv[2])"
)
"""Runs a wave: the arguments are this folder, the folder of the run, and the tasks."""


@dataclass(frozen=True)
class Cell:
    """One task under one fault."""

    fault: str
    mode: str
    task: str
    rows: int
    scored: int
    unscored: int
    failed: int = 0
    lost: int = 0
    fewer: int = 0
    """Verdicts and means that were scored otherwise because answers of theirs are unscored."""
    changed: int = 0
    as_truth: int = 0
    marked: int = 0
    """Of the rows that were changed or have another truth, those whose log has a note of it."""
    again: int = 0
    """Calls of all tasks that were asked again after a kill."""
    under_way: int = 0
    """Calls of all tasks that the killed process had under way."""


@dataclass(frozen=True)
class Row:
    """A decision; two that say the same with the same value are equal."""

    value: float | None
    said: str | None
    truth: str | None = field(compare=False)
    """What the target did, in the form that is compared."""
    acts: Mapping[str, str | None] = field(compare=False)
    """What the target wrote in the sample; None where that has a problem, so that it counts
    nowhere.
    """
    noted: bool = field(compare=False)
    """Whether the log says that a reply of the sample may be a proxy's."""


def wave(names: Sequence[str], folder: str, *, attempt_seconds: int = 600) -> None:
    """Run the tasks on one model each, side by side; one that has begun goes on."""
    for file, content in FILES.items():
        (Path(folder) / file).write_text(content)
    settings = RunSettings(
        max_connections=10,
        display="log",
        skip_errors=True,
        max_retries=2,
        attempt_timeout=attempt_seconds,
    )
    tasks = [_task(name, folder) for name in names]
    run_wave(tasks, f"{folder}/logs", title="drill", settings=settings, limit=ITEMS)


def _task(name: str, folder: str) -> Task:
    arguments = dict(TASKS[name])
    for argument, value in arguments.items():
        if value in (PAIRS_FILE, WORDS_FILE):
            arguments[argument] = f"{folder}/{value}"
    model = f"openai-api/fake/{name}"
    roles: dict[str, Any] = {
        "grader": get_model(model),
        "judge": [get_model(f"{model}-{number}") for number in (1, 2, 3)],
    }
    task = tasks_by_name()[name](**arguments)
    return task_with(task, model=get_model(model), model_roles=roles)


@dataclass(frozen=True)
class TaskRows:
    """Rows of one task's run, and the samples (item, epoch) that ended in an error."""

    by_key: Mapping[Key, Row]
    failed: frozenset[tuple[str, int]] = frozenset()


def rows(folder: str) -> dict[str, TaskRows]:
    """Rows of each task; unscored ones have no value."""
    rows_of_task: dict[str, TaskRows] = {}
    for log in readable_logs([f"{folder}/logs"]).headers:
        if task_of(log) not in rows_of_task:  # else an earlier log of the same task
            rows_of_task[task_of(log)] = _rows_of_log(log.location)
    return rows_of_task


def _rows_of_log(log: str) -> TaskRows:
    row_by_key: dict[Key, Row] = {}
    failed: set[tuple[str, int]] = set()
    sample_scores: list[SampleScore] = []
    for sample in samples(log):
        item = str(sample.id)
        if sample.error is not None:
            failed.add((item, sample.epoch))
        act_texts = {
            name: None if act.problem else act.text for name, act in record_of(sample).acts.items()
        }
        for scorer_name, score in (sample.scores or {}).items():
            sample_score = SampleScore(
                score=score, sample_id=sample.id, sample_metadata={"epoch": sample.epoch}
            )
            sample_scores.append(sample_score)
            for key, value, truth, prediction in _decisions_of(score):
                row_by_key[item, sample.epoch, scorer_name, key] = Row(
                    value, prediction, truth, act_texts, noted=False
                )

    noted_samples: set[tuple[str, int]] = set()
    for sample_score, notes in zip(sample_scores, notes_of(sample_scores), strict=True):
        if FOREIGN in notes:
            epoch = (sample_score.sample_metadata or {})["epoch"]
            noted_samples.add((str(sample_score.sample_id), epoch))
    noted_rows = {
        key: replace(row, noted=key[:2] in noted_samples) for key, row in row_by_key.items()
    }
    return TaskRows(noted_rows, frozenset(failed))


def _decisions_of(score: Any) -> Iterator[tuple[str, float | None, str | None, str | None]]:
    """Key, value, truth and prediction of each decision."""
    decisions = decisions_of(score)
    if decisions:
        for decision in decisions:
            yield decision.key, decision.value, decision.truth, decision.said
        return
    values = values_of(score)
    keys = score.value if isinstance(score.value, Mapping) else [""]
    for key in map(str, keys):
        yield key, values.get(key), None, None


def _has_other_truth(before: Row, after: Row) -> bool:
    if before.truth is not None or after.truth is not None:
        return after.truth != before.truth
    readable_acts = [(name, text) for name, text in after.acts.items() if text is not None]
    return any(text != before.acts.get(name) for name, text in readable_acts)


def cells_of(
    fault: str,
    mode: str,
    clean: Mapping[str, TaskRows],
    folder: str,
    *,
    again: int = 0,
    under_way: int = 0,
) -> list[Cell]:
    """Each task's rows under a fault, beside those of the undisturbed run."""
    cells: list[Cell] = []
    rows_of_task = rows(folder)
    for task, clean_rows in clean.items():
        disturbed_rows = rows_of_task.get(task, TaskRows({}))
        counts = _outcome_counts(clean_rows.by_key, disturbed_rows)
        count_by_name = {name: counts[name] for name in NAMES[1:]}
        cell = Cell(
            fault,
            mode,
            task,
            len(clean_rows.by_key),
            **count_by_name,
            again=again,
            under_way=under_way,
        )
        cells.append(cell)
    return cells


def _outcome_counts(clean: Mapping[Key, Row], disturbed: TaskRows) -> Counter[str]:
    """Number of rows by what became of them: the names of `Cell`."""
    partly_unscored: set[tuple[str, int, str]] = set()
    for key, clean_row in clean.items():
        row = disturbed.by_key.get(key)
        if clean_row.value is not None and row is not None and row.value is None:
            partly_unscored.add(key[:3])

    counts: Counter[str] = Counter()
    for key, clean_row in clean.items():
        row = disturbed.by_key.get(key)
        if key[:2] in disturbed.failed:
            counts["failed"] += 1
        elif row is None:
            counts["lost"] += 1
        elif row.value is None:
            counts["unscored"] += 1
        else:
            is_partly_unscored = key[:3] in partly_unscored
            # It may be the act of the row that is unscored.
            is_act_unscored = row == clean_row and clean_row.truth is None and is_partly_unscored
            has_other_truth = _has_other_truth(clean_row, row) and not is_act_unscored
            counts["scored"] += 1
            counts["as_truth"] += has_other_truth
            if row != clean_row and not has_other_truth:
                counts["fewer" if is_partly_unscored else "changed"] += 1
            counts["marked"] += (has_other_truth or row != clean_row) and row.noted
    return counts


def _undisturbed_cell(task: str, rows_of_task: Sequence[Row]) -> Cell:
    row_count = len(rows_of_task)
    scored_count = sum(row.value is not None for row in rows_of_task)
    return Cell(NONE, "", task, row_count, scored_count, row_count - scored_count)


def killed(
    names: Sequence[str], clean: Mapping[str, TaskRows], handle: Any, requests: int
) -> list[Cell]:
    """The wave in its own process, killed when half of its requests were sent, and run again."""
    handle.reset()
    handle.configure({"*": {"latency_ms": 300, "sigma": 0.5}})
    with tempfile.TemporaryDirectory() as folder:
        bench_folder = str(Path(__file__).parent)
        command = [sys.executable, "-c", WAVE_PROGRAM, bench_folder, folder, ",".join(names)]
        process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        while handle.stats()["ok"] < requests / 2 and process.poll() is None:
            time.sleep(0.02)
        process.kill()
        process.wait()

        with replies_kept(f"{folder}/logs", []):
            logs = [log.location for log in readable_logs([f"{folder}/logs"]).headers]
        pending_count = 0
        for log in logs:
            for transcript in transcripts(log):
                for event in transcript.events:
                    pending_count += isinstance(event, ModelEvent) and bool(event.pending)

        wave(names, folder)
        handle.configure({"*": {"latency_ms": LATENCY_MS, "sigma": 0}})
        asked_again_count = handle.stats()["requests"] - requests
        return cells_of(KILL, "", clean, folder, again=asked_again_count, under_way=pending_count)


def drill(tasks: Sequence[str], faults: Sequence[str], cells_file: Path | None) -> list[Cell]:
    """All cells; those that are in the file are not run again."""
    cells: list[Cell] = []
    if cells_file and cells_file.exists():
        for line in cells_file.read_text(encoding="utf-8").splitlines():
            cells.append(Cell(**json.loads(line)))
    finished = {(cell.fault, cell.mode) for cell in cells if cell.task in tasks}

    config = fakeserver.Config.of(retry_after=0.05, latency_ms=LATENCY_MS)
    with fakeserver.running(config) as handle:
        handle.configure(
            {
                "reasoning_trace": {"planted": {"reasons": 1.0}},
                "first_token": {"planted": {"leaning": 0.5}},
            }
        )
        os.environ |= {"FAKE_API_KEY": "none", "FAKE_BASE_URL": handle.base_url}
        pending: list[tuple[str, str]] = []
        for fault in faults:
            for mode in ("",) if fault in (NONE, KILL) else MODES:
                if (fault, mode) not in finished:
                    pending.append((fault, mode))
        if not pending:
            return cells

        clean, requests = _undisturbed(tasks, handle)
        for fault, mode in pending:
            if fault == NONE:
                new_cells = [
                    _undisturbed_cell(task, list(task_rows.by_key.values()))
                    for task, task_rows in clean.items()
                ]
            elif fault == KILL:
                new_cells = killed(tasks, clean, handle, requests)
            else:
                new_cells = disturbed_cells(fault, mode, tasks, clean, handle)
            cells += new_cells
            print(line_of(new_cells), flush=True)
            if cells_file:
                with cells_file.open("a", encoding="utf-8") as file:
                    file.writelines(json.dumps(asdict(cell)) + "\n" for cell in new_cells)
    return cells


def disturbed_cells(
    fault: str, mode: str, tasks: Sequence[str], clean: Mapping[str, TaskRows], handle: Any
) -> list[Cell]:
    """Cells of one fault, in a run of its own."""
    handle.reset()
    sticky_faults = (fault,) if mode == "prompts" else ()
    handle.configure({"*": {"faults": {fault: 0.1}, "sticky": sticky_faults}})
    with tempfile.TemporaryDirectory() as folder:
        wave(tasks, folder, attempt_seconds=HANG_SECONDS if fault == "hang" else 600)
        cells = cells_of(fault, mode, clean, folder)
    handle.configure({"*": {"faults": {}, "sticky": ()}})
    return cells


def _undisturbed(tasks: Sequence[str], handle: Any) -> tuple[dict[str, TaskRows], int]:
    """The rows of runs without a fault, and the requests; a row that two such runs do not share is
    left out.
    """
    rows_of_runs: list[dict[str, TaskRows]] = []
    for _ in range(2):
        handle.reset()
        with tempfile.TemporaryDirectory() as folder:
            wave(tasks, folder)
            rows_of_runs.append(rows(folder))
    first_run, second_run = rows_of_runs

    failed_tasks = [task for task, task_rows in first_run.items() if task_rows.failed]
    if failed_tasks:
        sys.exit(f"without a fault samples of {', '.join(failed_tasks)} failed")

    shared_rows: dict[str, TaskRows] = {}
    for task, task_rows in first_run.items():
        same_rows: dict[Key, Row] = {}
        for key, row in task_rows.by_key.items():
            second_row = second_run[task].by_key.get(key)
            if second_row == row and not _has_other_truth(row, second_row):
                same_rows[key] = row
        shared_rows[task] = TaskRows(same_rows)
        print(
            f"{task:24} {len(task_rows.by_key):4} rows, {len(same_rows)} the same in a second run",
            flush=True,
        )
    return shared_rows, int(handle.stats()["requests"])


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--smoke", action="store_true", help="three tasks, three faults, one kill")
    parser.add_argument("--tasks", help="some of the tasks, with commas")
    parser.add_argument("--faults", help="some of the faults, with commas; kill among them")
    parser.add_argument(
        "--cells", type=Path, help="a file of cells (JSON lines); those in it are not run again"
    )
    parser.add_argument("--table", type=Path, help="write the tables into this file")
    arguments = parser.parse_args()

    tasks: Sequence[str] = tuple(TASKS)
    faults: Sequence[str] = (*fakeserver.TRANSPORT_FAULTS, *fakeserver.ANSWER_FAULTS)
    if arguments.smoke:
        tasks, faults = SMOKE
    if arguments.tasks:
        tasks = arguments.tasks.split(",")
    faults = arguments.faults.split(",") if arguments.faults else (NONE, *faults, KILL)

    cells = drill(tasks, faults, arguments.cells)
    text = page(cells, ITEMS)
    if arguments.table:
        arguments.table.write_text(text, encoding="utf-8")
    print("\n" + text)

    has_lost_rows = any(cell.lost for cell in cells)
    has_silent_changes = any(cell.changed and cell.fault not in OTHER_WORDS for cell in cells)
    has_repeated_calls = any(cell.again > cell.under_way for cell in cells)
    if has_lost_rows or has_silent_changes or has_repeated_calls:
        sys.exit(
            "rows are lost or silently changed, or more calls were asked again than were under way"
        )


# ---- the page


HEAD = """\
## Faults

Made by `python bench/faults.py --table docs/faults.md` and `python docs/parts.py faults docs/faults.md`. A local server
fails in each of 21 ways, at one attempt in ten ("attempts") or for one prompt in ten at every attempt ("prompts"),
under {tasks} tasks of {items} items each, with two retries. Each row, a decision of one sample, is compared with an
undisturbed run; rows that two undisturbed runs do not share are left out.

Contents that stand in place of the reply, or in it: empty or null; an error under status 200 (error200); half a JSON
document (truncated, badjson); an end at the token limit (length); a vendor's filter; a refusal; another sentence
(nojson) or an order to the scorer (injection); two braces round it (doublebrace); no number (nan); P(A) + P(B) not 1
(badsum); marks and control characters (unicode); 5 MB behind it (huge).

A cell is rows scored / unscored with a reason / failed: the sample ended in an error, which log and command report.
What else happened stands behind: **lost**: none of these. **fewer**: a verdict of several answers that changed because
some are unscored. **changed**: scored otherwise about the same truth. **as truth**: scored, and the target's behaviour
is another text. **marked**: of the last two, rows that the log counts under `foreign_reply`.
"""
"""What the columns say."""
TAIL = """
A text that a proxy puts in the place of a reply is what the target did, as far as anybody can see. Two signs are
counted under `foreign_reply`: a reply of more characters than its token limit allows, and a reply that is word for
word the one to another item (so from its second item on; with {items} items a run it mostly stands there once).
Replies of judges and graders are not checked for these signs. Of an act of `probability_targeting` only the first
token counts.
"""
GREEN = "green"
FAILS = "three attempts, then the sample fails"
UNREAD = "unscored with the reason"
WHY = {
    **dict.fromkeys(("429", "500", "503", "reset", "hang", "truncated", "error200", "slow"), FAILS),
    "badjson": "the client does not try half a JSON document again: the sample fails",
    **dict.fromkeys(("empty", "null", "content_filter", "unicode", "refusal"), UNREAD),
    "length": f"{UNREAD}; of an act whose first words count the rest may be cut",
    "nojson": "an answer is unscored; an act is another text",
    "injection": "an answer is unscored; an act is another text",
    "huge": "an act with 5 MB behind it is another text",
    "doublebrace": "an answer is read or unscored; an act is another text",
    "nan": "no number: unscored",
    "badsum": "P(A) + P(B) is not 1: unscored",
    KILL: "as undisturbed",
}


def _sums(cells: Sequence[Cell]) -> dict[str, int]:
    return {name: sum(getattr(cell, name) for cell in cells) for name in NAMES}


def line_of(cells: Sequence[Cell], usual_unscored: int = 0) -> str:
    """A cell of the table, as "113/8/0, 1 as truth".

    Args:
        cells: Cells that are added up.
        usual_unscored: Rows that are unscored without a fault.
    """
    counts = _sums(cells)
    counts_text = f"{counts['scored']}/{counts['unscored']}/{counts['failed']}"
    oddities = [f"{counts[name]} {name.replace('_', ' ')}" for name in NAMES[4:] if counts[name]]
    line = ", ".join([counts_text, *oddities])
    is_green = not oddities and not counts["failed"] and counts["unscored"] <= usual_unscored
    return f"{line} ({GREEN})" if is_green else line


def page(cells: Sequence[Cell], items: int) -> str:
    """The part of the page in Markdown: rows by fault, and what was changed by task.

    Args:
        cells: All cells.
        items: Number of items of each run.
    """
    cells_by_group: dict[tuple[str, str], list[Cell]] = {}
    for cell in cells:
        cells_by_group.setdefault((cell.fault, cell.mode), []).append(cell)
    usual_unscored = _sums(cells_by_group.get((NONE, ""), []))["unscored"]

    lines = ["|fault|attempts|prompts| |", "|---|---|---|---|"]
    faults_with_cells = {fault for fault, _ in cells_by_group}
    for fault in (NONE, *WHY):
        if fault not in faults_with_cells:
            continue
        modes = ("",) if (fault, "") in cells_by_group else MODES
        texts: list[str] = []
        for mode in modes:
            cells_of_mode = cells_by_group.get((fault, mode))
            texts.append(line_of(cells_of_mode, usual_unscored) if cells_of_mode else "–")
        is_green = all(GREEN in text for text in texts)
        explanation = " " if is_green else WHY.get(fault) or " "
        columns = [*texts, " "][:2]
        lines.append(f"|{fault}|{'|'.join(columns)}|{explanation}|")

    kill_text = ""
    for cell in cells:
        if cell.fault == KILL:
            kill_text = (
                "\nAfter a SIGKILL when half of the calls were made, the same run asked "
                f"{cell.again} calls again; {cell.under_way} had been under way.\n"
            )
            break

    changed_texts: list[str] = []
    for cell in cells:
        if cell.changed or cell.as_truth:
            oddities = line_of([cell]).partition(", ")[2]
            changed_texts.append(f"{cell.task} ({cell.fault}, {cell.mode}): {oddities}")
    changed_text = ""
    if changed_texts:
        changed_text = f"\nRows by task: {'; '.join(changed_texts)}.\n"

    sizes = {"tasks": len({cell.task for cell in cells}), "items": items}
    return "\n".join([HEAD.format(**sizes), *lines, kill_text, changed_text, TAIL.format(**sizes)])


if __name__ == "__main__":
    main()
