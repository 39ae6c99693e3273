"""A dilemma data set from logs: generated ones, and those that three judges disagree about (paper 003, appendix F)."""

from collections.abc import Sequence

from inspect_ai.log import EvalSample

from selfprobe.data import Row, Table, table_of
from selfprobe.errors import InputError
from selfprobe.logs import Run, differing, runs, samples
from selfprobe.scorers.dilemma_making import dilemma_text, judge_text
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
    run, *others = [run for run in finished([path], "dilemma_generation") if run.number == 1]
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
    if reply is None or judge_text(reply).value != 1:
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


def finished(paths: Sequence[str], task: str) -> list[Run]:
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
