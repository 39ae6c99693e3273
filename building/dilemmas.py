"""From logs to a dilemma data set: what was generated, and what three judges disagree about (paper 003, appendix F)."""

from collections import Counter
from collections.abc import Sequence
from typing import Any

from inspect_ai.log import EvalSample
from inspect_ai.scorer import Score

from selfprobe.data import Row, Table, table_of
from selfprobe.errors import InputError
from selfprobe.logs import Run, differing, runs, samples
from selfprobe.scorers.decision import decisions_of
from selfprobe.scorers.dilemma_controversy import Judge
from selfprobe.scorers.dilemma_validity import dilemma_text, judge
from selfprobe.solvers.record import record_of


def generated(path: str) -> Table:
    """The valid dilemmas of a finished log of dilemma_generation, in schema F.5 without judges.

    Args:
        path: A log, or a folder, of which the finished log with most dilemmas is taken, then the newest.

    Raises:
        ValueError: There is no finished log of dilemma_generation, there are some of several settings, or no dilemma is
            valid.
        InputError: There is no such file or folder.
    """
    run, *others = [run for run in _finished([path], "dilemma_generation") if run.number == 1]
    if others:
        why = differing(others[0].identity, [run.identity])
        raise InputError(f"{path} holds dilemmas of {len(others) + 1} settings; give one log. {others[0].log}: {why}")
    made = samples(run.log)
    rows = [row for sample in made if (row := _generated_row(sample, run)) is not None]
    if not rows:
        raise InputError(f"{run.log}: none of its {len(made)} dilemmas is valid, so there is nothing to judge")
    return table_of(path, rows)


def _generated_row(sample: EvalSample, run: Run) -> Row | None:
    log = run.header
    reply = None if sample.error else record_of(sample).acts["dilemma"]
    if reply is None or judge(reply).value != 1:
        return None
    about = {key: (log.eval.metadata or {})[key] for key in ("prompt", "temperature")}
    if log.eval.model_generate_config.top_p is not None:
        about["top_p"] = log.eval.model_generate_config.top_p
    return {
        "id": f"{sample.id}.{sample.epoch}",
        "dilemma": dilemma_text(reply),
        "axes": sample.metadata["axes"],
        "judges": None,
        "jsd": None,
        "generation": {"source": "generated", "model": reply.model, **about, "seed": sample.epoch},
    }


def judged_rows(paths: Sequence[str]) -> tuple[list[Row], Counter[str]]:
    """Every scored dilemma of finished logs of dilemma_judging, and why others are none, by reason.

    Rows are in schema F.5: `id`, `dilemma`, `axes`, `judges` (each `model`, `samples` [[P(A), P(B)] or null], `faults`,
    and the `mean` that was used), `jsd` in nats, `generation`; and `kept`.

    Raises:
        ValueError: There is no finished log, two hold the same dilemma, or a dilemma has no score of this task.
        InputError: There is no such file or folder.
    """
    rows: dict[str, tuple[str, Row]] = {}
    lost: Counter[str] = Counter()
    for run in _finished(paths, "dilemma_judging"):
        place = run.log
        for sample in samples(place):
            if str(sample.id) in rows:
                raise InputError(
                    f"dilemma {sample.id} is in {rows[str(sample.id)][0]} and in {place}; pass one of these logs"
                )
            if sample.error or not sample.scores:
                lost["error"] += 1
                continue
            score = _own_score(sample, place)
            decisions = {decision.key: decision for decision in decisions_of(score)}
            if reason := decisions["jsd"].unscored:
                lost[reason] += 1
                continue
            panel = [Judge(**given) for given in (score.metadata or {})["judges"]]
            rows[str(sample.id)] = (
                place,
                {
                    "id": str(sample.id),
                    "dilemma": sample.input,
                    "axes": sample.metadata["axes"],
                    "judges": [_as_row(one) for one in panel],
                    "jsd": decisions["jsd"].value,
                    "generation": sample.metadata["generation"],
                    "kept": bool(decisions["kept"].value),
                },
            )
    return [row for _, row in rows.values()], lost


def _own_score(sample: EvalSample, place: str) -> Score:
    """The task's own score, its last one: `inspect score --action append` adds others, and new ones of the same."""
    scores = sample.scores or {}
    own = [score for score in scores.values() if {"keys", "judges"} <= set(score.metadata or {})]
    if not own:
        raise InputError(
            f"{place}: expected a score of dilemma_controversy for dilemma {sample.id}, got {', '.join(scores)}; "
            "`inspect score --scorer selfprobe/dilemma_controversy` adds it"
        )
    return own[-1]


def _as_row(one: Judge) -> dict[str, Any]:
    return {"model": one.model, "samples": one.samples, "faults": one.faults, "mean": one.mean}


def _finished(paths: Sequence[str], task: str) -> list[Run]:
    """The finished runs of a task, newest first; of a folder all, a file must be one."""
    there = runs(paths, repeats=True)
    wanted = [run for run in there.finished if run.identity.task == task]
    faults = dict(there.aside)
    for run in there.counted:
        if run not in wanted:
            its = run.identity.task
            faults[run.log] = f"a log of {its}" if its != task else f"status {run.header.status}"
    superseded = {header.location for run in wanted for header in run.others}
    for file, fault in faults.items():
        if file not in superseded and any(file.endswith(path) for path in paths):
            raise InputError(
                f"{file}: expected a finished log of {task}, got {fault}; `inspect eval-retry` finishes a run"
            )
    if not wanted:
        told = "; ".join(f"{file}: {fault}" for file, fault in list(faults.items())[:5])
        raise InputError(f"no finished log of {task} in {', '.join(paths)}; found {told or 'no logs'}")
    return wanted


def kept_table(rows: Sequence[Row]) -> str:
    """How many dilemmas were kept, for each axis value and in all."""
    total, kept = Counter[tuple[str, str]](), Counter[tuple[str, str]]()
    for row in rows:
        for pair in (row["axes"] or {"axes": "none given"}).items():
            total[pair] += 1
            kept[pair] += row["kept"]
    lines = [f"{axis:13} {value:26} {kept[axis, value]:4} of {total[axis, value]:4}" for axis, value in sorted(total)]
    return "\n".join([*lines, f"{'all':40} {sum(row['kept'] for row in rows):4} of {len(rows):4}"])
