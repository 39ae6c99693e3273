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
from collections.abc import Iterable, Mapping, Sequence
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

PAIRS, WORDS = "pairs.jsonl", "words.yaml"
FILES = {
    PAIRS: "".join(
        f'{{"id": "p{i}", "question": "Why {i}?", "text_1": "One {i}.", "text_2": "Two {i}.", "label": {1 + i % 2}}}\n'
        for i in range(20)
    ),
    WORDS: "first_token:\n  - {text: test, of: evaluation}\n  - {text: real, of: deployment}\n",
}
MINILM = {"embedder": "sentence-transformers/all-MiniLM-L6-v2"}
TASKS: dict[str, dict[str, Any]] = {
    **{
        name: {}
        for name in (
            "kth_word",
            "heads_up",
            "probability_targeting",
            "self_recognition",
            "subset_choice",
        )
    },
    **{
        name: {}
        for name in (
            "binary",
            "probability",
            "user_motivation",
            "reasoning_trace",
            "dilemma_generation",
        )
    },
    **{name: {"dataset": PAIRS} for name in ("pairwise_preference", "direct_scoring", "g_eval")},
    **dict.fromkeys(("paraphrase_recognition", "prompt_reconstruction"), MINILM),
    "ethical_dilemma": {"epochs": 2},
    "open_answers": {"epochs": 1},
    "first_token": {"questions": WORDS},
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
SAID = ("length", "nojson", "doublebrace", "nan", "badsum", "huge", "injection")
"""Faults that put other words, or fewer, into a reply: nobody can tell these from what the target
would have said.
"""
SMOKE = (("kth_word", "heads_up", "binary"), ("500", "hang", "empty"))
NONE, KILL = "none", "kill"
NAMES = ("rows", "scored", "unscored", "failed", "lost", "fewer", "changed", "as_truth", "marked")
ITEMS = 2
LATENCY = 20
"""Milliseconds of a reply; "slow" takes 20 times as long."""
HANGS = 30
"""Seconds after which an attempt is given up, where some hang: more than a busy machine takes."""
Key = tuple[str, int, str, str]
"""Item, epoch, scorer and key."""

AGAIN = "import sys; sys.path.insert(0, sys.argv[1]); import faults; faults.wave(sys.argv[3].split(','), sys.argv[2])"


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


def wave(names: Sequence[str], folder: str, *, patience: int = 600) -> None:
    """Run the tasks on one model each, side by side; one that has begun goes on."""
    for file, content in FILES.items():
        (Path(folder) / file).write_text(content)
    given: dict[str, Any] = {"max_retries": 2, "attempt_timeout": patience}
    settings = RunSettings(max_connections=10, display="log", skip_errors=True, **given)
    runs = [_task(name, folder) for name in names]
    run_wave(runs, f"{folder}/logs", title="drill", settings=settings, limit=ITEMS)


def _task(name: str, folder: str) -> Task:
    given, model = dict(TASKS[name]), f"openai-api/fake/{name}"
    given |= {key: f"{folder}/{value}" for key, value in given.items() if value in FILES}
    roles: dict[str, Any] = {
        "grader": get_model(model),
        "judge": [get_model(f"{model}-{n}") for n in (1, 2, 3)],
    }
    return task_with(tasks_by_name()[name](**given), model=get_model(model), model_roles=roles)


def rows(folder: str) -> dict[str, tuple[dict[Key, Row], set[tuple[str, int]]]]:
    """By task: its rows, unscored ones with None, and the samples that ended in an error."""
    there: dict[str, tuple[dict[Key, Row], set[tuple[str, int]]]] = {}
    for log in readable_logs([f"{folder}/logs"]).headers:
        if task_of(log) in there:
            continue  # an earlier log of the same
        good, failed = dict[Key, Row](), set[tuple[str, int]]()
        scores = list[SampleScore]()
        for sample in samples(log.location):
            if sample.error is not None:
                failed.add((str(sample.id), sample.epoch))
            acts = {
                n: None if one.problem else one.text for n, one in record_of(sample).acts.items()
            }
            for name, score in (sample.scores or {}).items():
                scores.append(
                    SampleScore(
                        score=score, sample_id=sample.id, sample_metadata={"epoch": sample.epoch}
                    )
                )
                for key, (value, truth, said) in _rows_of(score):
                    good[str(sample.id), sample.epoch, name, key] = Row(
                        value, said, truth, acts, noted=False
                    )
        seen = zip(scores, notes_of(scores), strict=True)
        foreign = {
            (str(s.sample_id), (s.sample_metadata or {})["epoch"])
            for s, notes in seen
            if FOREIGN in notes
        }
        there[task_of(log)] = (
            {key: replace(row, noted=key[:2] in foreign) for key, row in good.items()},
            failed,
        )
    return there


def _rows_of(score: Any) -> Iterable[tuple[str, tuple[float | None, str | None, str | None]]]:
    if decided := decisions_of(score):
        return [(one.key, (one.value, one.truth, one.said)) for one in decided]
    values = values_of(score)
    keys = score.value if isinstance(score.value, Mapping) else [""]
    return [(str(key), (values.get(str(key)), None, None)) for key in keys]


def _other_truth(was: Row, now: Row) -> bool:
    if was.truth is not None or now.truth is not None:
        return now.truth != was.truth
    return any(text is not None and text != was.acts.get(name) for name, text in now.acts.items())


def _unscored(row: Row | None) -> bool:
    return row is not None and row.value is None


def cells_of(
    fault: str, mode: str, clean: Mapping[str, Any], folder: str, **more: int
) -> list[Cell]:
    """Each task's rows under a fault, beside those of the undisturbed run."""
    cells, seen = [], rows(folder)
    for task, (before, _) in clean.items():
        after, failed = seen.get(task, ({}, set()))
        count: Counter[str] = Counter()
        short = {
            key[:3]
            for key, row in before.items()
            if row.value is not None and _unscored(after.get(key))
        }
        for key, was in before.items():
            now = after.get(key)
            if key[:2] in failed:
                count["failed"] += 1
            elif now is None:
                count["lost"] += 1
            elif _unscored(now):
                count["unscored"] += 1
            else:
                told = (
                    now == was and was.truth is None and key[:3] in short
                )  # it is the act of the row that is unscored
                other = _other_truth(was, now) and not told
                count["scored"] += 1
                count["as_truth"] += other
                if now != was and not other:
                    count["fewer" if key[:3] in short else "changed"] += 1
                count["marked"] += (other or now != was) and now.noted
        counts = {name: count[name] for name in NAMES[1:]}
        cells.append(Cell(fault, mode, task, len(before), **counts, **more))
    return cells


def _none(task: str, there: Sequence[Row]) -> Cell:
    scored = sum(row.value is not None for row in there)
    return Cell(NONE, "", task, len(there), scored, len(there) - scored)


def killed(
    names: Sequence[str], clean: Mapping[str, Any], handle: Any, requests: int
) -> list[Cell]:
    """The wave in a process of its own, killed when half of its requests were sent, and run again."""
    handle.reset()
    handle.configure({"*": {"latency_ms": 300, "sigma": 0.5}})
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "-c", AGAIN, str(Path(__file__).parent), folder, ",".join(names)]
        process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        while handle.stats()["ok"] < requests / 2 and process.poll() is None:
            time.sleep(0.02)
        process.kill()
        process.wait()
        with replies_kept(f"{folder}/logs", []):
            logs = [log.location for log in readable_logs([f"{folder}/logs"]).headers]
        calls = [
            e
            for log in logs
            for s in transcripts(log)
            for e in s.events
            if isinstance(e, ModelEvent)
        ]
        wave(names, folder)
        handle.configure({"*": {"latency_ms": LATENCY, "sigma": 0}})
        told = {
            "again": handle.stats()["requests"] - requests,
            "under_way": sum(bool(e.pending) for e in calls),
        }
        return cells_of(KILL, "", clean, folder, **told)


def drill(tasks: Sequence[str], faults: Sequence[str], kept: Path | None) -> list[Cell]:
    """All cells; those that are in the file are not run again."""
    lines = kept.read_text(encoding="utf-8").splitlines() if kept and kept.exists() else []
    cells = [Cell(**json.loads(line)) for line in lines]
    done = {(cell.fault, cell.mode) for cell in cells if cell.task in tasks}
    with fakeserver.running(fakeserver.Config.of(retry_after=0.05, latency_ms=LATENCY)) as handle:
        planted = {"reasoning_trace": {"reasons": 1.0}, "first_token": {"leaning": 0.5}}
        handle.configure({task: {"planted": settings} for task, settings in planted.items()})
        os.environ |= {"FAKE_API_KEY": "none", "FAKE_BASE_URL": handle.base_url}
        wanted = [
            (fault, mode)
            for fault in faults
            for mode in (MODES if fault not in (NONE, KILL) else ("",))
        ]
        if not (left := [one for one in wanted if one not in done]):
            return cells
        clean, requests = _undisturbed(tasks, handle)
        for fault, mode in left:
            if fault == NONE:
                made = [_none(task, list(there.values())) for task, (there, _) in clean.items()]
            elif fault == KILL:
                made = killed(tasks, clean, handle, requests)
            else:
                handle.reset()
                sticky = (fault,) if mode == "prompts" else ()
                handle.configure({"*": {"faults": {fault: 0.1}, "sticky": sticky}})
                with tempfile.TemporaryDirectory() as folder:
                    wave(tasks, folder, patience=HANGS if fault == "hang" else 600)
                    made = cells_of(fault, mode, clean, folder)
                handle.configure({"*": {"faults": {}, "sticky": ()}})
            cells += made
            print(line_of(made), flush=True)
            if kept:
                with kept.open("a", encoding="utf-8") as file:
                    file.writelines(json.dumps(asdict(cell)) + "\n" for cell in made)
    return cells


def _undisturbed(tasks: Sequence[str], handle: Any) -> tuple[dict[str, Any], int]:
    """The rows of runs without a fault, and the requests; a row that two such runs do not share is
    left out.
    """
    both = []
    for _ in range(2):
        handle.reset()
        with tempfile.TemporaryDirectory() as folder:
            wave(tasks, folder)
            both.append(rows(folder))
    first, second = both
    same = {
        task: {
            k: row
            for k, row in of.items()
            if (r := second[task][0].get(k)) == row and not _other_truth(row, r)
        }
        for task, (of, _) in first.items()
    }
    if failed := [task for task, (_, samples_failed) in first.items() if samples_failed]:
        sys.exit(f"without a fault samples of {', '.join(failed)} failed")
    for task, (all_rows, _) in first.items():
        print(
            f"{task:24} {len(all_rows):4} rows, {len(same[task])} the same in a second run",
            flush=True,
        )
    return {task: (found, set()) for task, found in same.items()}, int(handle.stats()["requests"])


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
    given = parser.parse_args()
    tasks, faults = (
        SMOKE
        if given.smoke
        else (tuple(TASKS), (*fakeserver.TRANSPORT_FAULTS, *fakeserver.ANSWER_FAULTS))
    )
    tasks = given.tasks.split(",") if given.tasks else tasks
    faults = given.faults.split(",") if given.faults else (NONE, *faults, KILL)
    cells = drill(tasks, faults, given.cells)
    if given.table:
        given.table.write_text(page(cells, ITEMS), encoding="utf-8")
    print("\n" + page(cells, ITEMS))
    silent = [cell for cell in cells if cell.lost or (cell.changed and cell.fault not in SAID)]
    if silent or any(cell.again > cell.under_way for cell in cells):
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


def line_of(cells: Sequence[Cell], usual: int = 0) -> str:
    """A cell of the table, as "113/8/0, 1 as truth". `usual`: rows that are unscored without a
    fault.
    """
    of = _sums(cells)
    rest = [f"{of[name]} {name.replace('_', ' ')}" for name in NAMES[4:] if of[name]]
    told = ", ".join([f"{of['scored']}/{of['unscored']}/{of['failed']}", *rest])
    return (
        f"{told} ({GREEN})" if not rest and not of["failed"] and of["unscored"] <= usual else told
    )


def page(cells: Sequence[Cell], items: int) -> str:
    """The part of the page in Markdown: rows by fault, and what was changed by task. `items`: of
    each run.
    """
    groups = dict.fromkeys((cell.fault, cell.mode) for cell in cells)
    of = {group: [cell for cell in cells if (cell.fault, cell.mode) == group] for group in groups}
    usual = _sums(of.get((NONE, ""), []))["unscored"]
    lines = ["|fault|attempts|prompts| |", "|---|---|---|---|"]
    for fault in [fault for fault in (NONE, *WHY) if any(fault == other for other, _ in groups)]:
        modes = [
            of.get((fault, mode), [])
            for mode in (("",) if (fault, "") in of else ("attempts", "prompts"))
        ]
        shown = [line_of(one, usual) if one else "–" for one in modes]
        why = "" if all(GREEN in one for one in shown) else WHY.get(fault, "")
        lines.append(f"|{fault}|{'|'.join([*shown, ' '][:2])}|{why or ' '}|")
    odd = [cell for cell in cells if cell.changed or cell.as_truth]
    by_task = [f"{c.task} ({c.fault}, {c.mode}): {line_of([c]).partition(', ')[2]}" for c in odd]
    changed = f"\nRows by task: {'; '.join(by_task)}.\n" if by_task else ""
    kill = next((cell for cell in cells if cell.fault == KILL), None)
    again = (
        "\nAfter a SIGKILL when half of the calls were made, the same run asked "
        f"{kill.again} calls again; {kill.under_way} had been under way.\n"
        if kill
        else ""
    )
    sizes = {"tasks": len({cell.task for cell in cells}), "items": items}
    return "\n".join([HEAD.format(**sizes), *lines, again, changed, TAIL.format(**sizes)])


if __name__ == "__main__":
    main()
