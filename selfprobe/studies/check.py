"""Can a script rely on these logs, and did a model get worse? The exit status answers, for any Inspect task."""

import hashlib
import json
import math
import os
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from datetime import UTC, datetime
from functools import cached_property
from pathlib import Path
from string import ascii_uppercase
from typing import Any, ClassVar, Self
from xml.etree import ElementTree

from inspect_ai import Task
from inspect_ai.event import ModelEvent
from inspect_ai.log import EvalSampleReductions, EvalSampleSummary
from pydantic import Field, TypeAdapter, ValidationError, field_validator, model_validator

from selfprobe.data.files import decoded, read_bytes
from selfprobe.data.prices import Cost
from selfprobe.errors import InputError, NoLogs, one_line
from selfprobe.errors.arguments import FULL, meant, renamed, unknown
from selfprobe.errors.output import place_file
from selfprobe.logs import (
    UNREADABLE,
    Identity,
    Run,
    about_of,
    args_of,
    cause,
    counted,
    cut_in,
    no_logs_text,
    roles_of,
    target_of,
    values_of,
    whole_sample,
)
from selfprobe.logs import runs as runs_in
from selfprobe.logs.reducers import MEAN, known_reducer, logged_reductions, reduced, reducers_of
from selfprobe.scorers.decision import Judged
from selfprobe.scorers.dilemma import Dilemma, dilemmas_of
from selfprobe.scorers.summary import best_of, without_a_model
from selfprobe.solvers.converse import METHODS
from selfprobe.solvers.observe import OTHER, arms_of, examples_of
from selfprobe.studies.check_numbers import (
    FAILED,
    NO_SCORE,
    UNBOUND,
    UNNAMED_SCORE,
    UNSCORED_METRIC,
    BaselineRun,
    ChangeVerdict,
    MetricChange,
    RunPairs,
    changes_of,
    epoch_deals,
    item_draws,
    pair_runs,
    target_suffix,
    turned_cells,
    verdict_counts,
)
from selfprobe.studies.check_table import (
    ScoreColumn,
    TableRow,
    Theirs,
    header_disagreement,
    is_failed,
    judged_table,
    number_of,
)
from selfprobe.study import Plan, Study, Wave
from selfprobe.study._registry import defaults_of, measures, short_name
from selfprobe.study._registry import tasks as tasks_by_name
from selfprobe.study.described import DescribedRun, NamedModel, rehearsed
from selfprobe.study.options import MODELS_HELP, echo_json, echo_lines
from selfprobe.text.safe import clean, concealed, echo
from selfprobe.text.thoughts import split_thought

GOOD, WORSE, INCOMPLETE, UNTOLD = 0, 1, 3, 4
"""Exit statuses; 2 is the command line's."""
MOST = 0.1
"""Share of unscored values in a run that is good."""
UNSCORED_HELP = f"Largest share of unscored values in a good run. Default: {MOST}; with a baseline 1."
SETS = ("target_log", "observer_log")
"""Task arguments that concern another model, or an earlier run."""
LUCK = (
    "A model that did not change has an alarm within 30 nights with one baseline in four. Run it again before you act: "
    "with 6 % of baselines both runs of a night are worse. A baseline of several epochs has more alarms (40 %), not "
    "fewer; only the worst luck is smaller."
)


class Check(Study):
    """Say by the exit status whether LOGS are complete and scored; for scripts, and for logs of any Inspect task.

    The status also says, with --baseline or --against, whether a model got worse. 0 is good: complete, and not worse; 1
    worse; 2 a wrong command; 3 incomplete: a run failed, lacks samples or has invalidated ones, nothing in it was
    scored, more is unscored than --unscored, a log cannot be read, or it is not of the baseline's task, data or items;
    4 cannot tell (--strict).
    Where runs have the same task, models, arguments, settings and data, the finished one with most samples counts, then
    the newest; one that failed since counts too.
    """

    reads: ClassVar[frozenset[str]] = frozenset()
    starts: ClassVar[str] = "--run or --config, which say what to ask"

    logs: tuple[str, ...] = Field((), examples=["[LOGS]..."])
    unscored: float | None = Field(None, ge=0, le=1, description=UNSCORED_HELP)
    save: str | None = Field(None, description="Write a baseline of LOGS to this .json file: small, for git.")
    baseline: str | None = Field(None, description="Compare LOGS with this baseline, item by item.")
    against: str | None = Field(None, description="Earlier logs to compare with, instead of --baseline.")
    smallest: float = Field(0.05, gt=0, description="The smallest change that matters.")
    lower: tuple[str, ...] = Field((), description="Metrics whose lower values are better.")
    strict: bool = Field(
        False, description="Exit with status 4 where a change of --smallest can be neither shown nor excluded."
    )
    aa: int | None = Field(
        None, ge=1, description="Draw the items again N times and say how often the verdict changes."
    )
    junit: str | None = Field(None, description="Write JUnit's XML to this file.")
    github: bool = Field(False, description="Print annotations, and add to the step summary of a workflow.")
    tasks: tuple[str, ...] = Field((), description="Tasks to run now (--run), instead of reading LOGS.")
    models: tuple[str, ...] = Field((), description=f"Used by --run. {MODELS_HELP}")
    args: dict[str, Any] = Field({}, description="Task argument for --run; it goes to the tasks that have it.")
    log_dir: str = Field("", description="Folder for the logs of --run. Default: a new one in logs/check.")
    out: str = Field("", exclude=True)

    @field_validator("tasks")
    @classmethod
    def _by_short_name(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        """Tasks as `inspect eval` takes them are taken here too."""
        return tuple(map(short_name, value))

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        """Refuse what does not go together, or would have no effect."""
        if bool(self.logs) == bool(self.tasks):
            raise InputError("give LOGS, or --run TASKS --model MODEL" + (", not both" if self.logs else ""))
        if self.tasks and not self.models:
            raise InputError("--run needs a model: --model MODEL")
        if self.save is not None:
            _refuse_other_than_json(self.save, "--save ")
        if self.baseline and self.against:
            raise InputError("--baseline and --against are both what was before; give one of them")
        for_run = {"--limit": self.limit, "-T": self.args, "--model": self.models, "--log-dir": self.log_dir}
        if alone := [flag for flag, given in for_run.items() if given and self.logs]:
            raise InputError(f"{alone[0]} is for --run TASKS; with LOGS it has no effect")
        idle = {"--strict": self.strict}
        idle |= {} if self.aa else {"--lower": bool(self.lower), "--smallest": self.smallest != 0.05}
        if without := [flag for flag, given in idle.items() if given and not self.gates]:
            raise InputError(f"{without[0]} is about a change; say from what: --baseline FILE.json or --against LOGS2")
        files = {"--junit": self.junit, "--github": self.github}
        if mute := [flag for flag, given in files.items() if given and self.aa and not self.gates]:
            raise InputError(
                f"{mute[0]} has nothing to say of --aa alone; give --baseline or --against, or leave --aa out"
            )
        return self

    @property
    def gates(self) -> bool:
        """Whether there is something to compare with."""
        return bool(self.baseline or self.against)

    @cached_property
    def base(self) -> str:
        """The log folder, without a slash at its end."""
        return self.log_dir.rstrip("/") or f"logs/check/{datetime.now(UTC):%Y-%m-%dT%H-%M-%S}"

    @cached_property
    def before(self) -> tuple[list[BaselineRun], list[str]]:
        """The runs of before, and what to know of their logs.

        Raises:
            InputError: They cannot be read, or no score can change by --smallest.
        """
        earlier = read_logs([self.against]) if self.against else None
        runs = read_baseline(self.baseline) if self.baseline else earlier.kept() if earlier else []
        given = [v for run in runs for cell in run.items.values() for one in cell.values() for v in one]
        numbers = [value for value in given if not isinstance(value, str)]
        if self.smallest > 1 and numbers and all(0 <= number <= 1 for number in numbers):
            raise InputError(
                f"--smallest {self.smallest:g} is more than any change can be: what was before lies in 0 to 1; give a "
                "share such as .05"
            )
        return runs, [f"before: {line}" for line in earlier.left_out()] if earlier else []

    @cached_property
    def built(self) -> dict[str, tuple[Task, dict[str, Any], int]]:
        """The tasks of --run with their arguments and numbers of items.

        Raises:
            InputError: A task or an argument that there is not; or the baseline is of another version, data set or
                more items, so that the calls would be for nothing.
        """
        known = measures()
        for task in self.tasks:
            if task in known:
                continue
            if task in tasks_by_name():
                name = FULL.get(task, task)
                how = (
                    f"inspect eval selfprobe/{name} --model {self.models[0]} --log-dir LOGS, then selfprobe check LOGS"
                )
                raise InputError(f"--run takes {', '.join(known)}; run {name} by itself: {how}")
            raise InputError(f"--run takes {', '.join(known)}; there is no task {task}{meant(task, known)}")
        if set_here := [name for name in SETS if name in self.args]:
            raise InputError(f"a gate asks a model about itself: leave {set_here[0]} out")
        known_here = sorted({name for task in self.tasks for name in defaults_of(task)})
        if wrong := renamed(self.args, known_here) or unknown(self.args, known_here):
            raise InputError(f"no task here has an argument {wrong}")
        if told := [arm for arm in arms_of(self.args.get("about", "self")) if examples_of(arm) is not None]:
            raise InputError(f"a gate asks a model about itself: leave about={told[0]} out")
        found = {}
        for task in self.tasks:
            args = {name: value for name, value in self.args.items() if name in defaults_of(task)}
            made = tasks_by_name()[task](**args)
            found[task] = made, args, min(len(made.dataset), self.limit or len(made.dataset))
        for run in self.before[0]:
            if run.task in found:
                _refuse_another(run, found[run.task][0], found[run.task][2])
        return found

    def refuse_others(self) -> None:
        """Refuse nothing: `check` judges logs of any task."""

    def plan(self) -> Plan | None:
        """Items, calls and tokens of --run."""
        if not self.tasks:
            return None
        calls = sent = received = 0
        for task, (_, args, items) in self.built.items():
            of = rehearsed(task, args).all
            here = items * of.count
            calls, sent, received = calls + here, sent + here * of.tokens[0], received + here * of.tokens[1]
        counts = [f"{task}: {items} items" for task, (_, _, items) in self.built.items()]
        return Plan([", ".join(counts)], [Cost(model, calls, sent, received) for model in self.models])

    @property
    def rounds(self) -> int:
        """Calls that wait for one another."""
        return max(measures()[task].rounds for task in self.tasks)

    def waves(self) -> Iterator[Wave]:
        """Each task with each model."""
        models = [NamedModel(model, self.how.model_args) for model in self.models]
        asked = [(task, args | self.how.shared) for task, (_, args, _) in self.built.items()]
        yield Wave([DescribedRun(*one, model) for model in models for one in asked], "Runs", further={})

    def ask(self) -> bool:
        """Run the tasks; say where all were there already."""
        began = datetime.now(UTC).replace(microsecond=0)  # as logs have it
        complete = super().ask()
        ends = [run.header.stats.completed_at for run in runs_in([self.base]).counted]
        last = max(map(datetime.fromisoformat, ends)) if ends and all(ends) else began
        if last < began:
            when = f"{last:%Y-%m-%d %H:%M} UTC; a new folder asks anew"
            echo(f"Nothing was asked: the runs in {self.base} were finished at {when}", err=True)
        return complete

    def tell(self, *, as_json: bool, planned: bool) -> int:
        """Judge the logs, print and write what was asked for; the exit status."""
        logged = read_logs(self.logs or [self.base], self.limits if self.tasks else None)
        judge = self._against_itself if self.aa and not self.gates else self._judged
        status = judge(logged, as_json)
        if status and self.save:
            echo(f"No baseline is saved of runs with status {status}", err=True)
        elif self.save:
            runs = logged.kept()
            size = save_baseline(runs, self.save)
            told = [f"Baseline: {self.save} ({len(runs)} run{'s' * (len(runs) != 1)}, {size / 1000:.0f} kB)"]
            told += [f"{run.name}: not in the baseline: {why}" for run in runs for why in run.left_out.values()]
            echo_lines([] if as_json else told)
        return status

    def _judged(self, logged: "CheckedLogs", as_json: bool) -> int:
        """Say whether runs are complete, and what changed where there is a baseline."""
        (before, earlier), gate = self.before, None
        if self.gates:
            after, bad = logged.good(1.0 if self.unscored is None else self.unscored)
            notes = earlier + logged.left_out() + logged.passed_over()
            gate = Gate(before, after, self.smallest, self.lower, self.strict, bad, notes)
            known = sorted({row.metric for row in gate.rows})
            if wrong := [name for name in self.lower if known and name not in known]:
                there = f"there are {', '.join(known)}{meant(wrong[0], known)}"
                raise InputError(f"--lower {wrong[0]}: no such metric; {there}")
        found = gate.found() if gate else complete(logged, MOST if self.unscored is None else self.unscored)
        if as_json:
            echo_json(found.fields)
        else:
            for line in found.lines():
                echo(line)
        if self.junit:
            place_file(found.junit(), self.junit)
        if self.github:
            for line in found.annotations():
                echo(line, err=as_json)
            add_to_summary(found.markdown())
        if gate and self.aa and gate.rows:
            self._tell_flips(item_draws(gate.paired.pairs), "resamples of the items", as_json)
        return found.status

    def _against_itself(self, logged: "CheckedLogs", as_json: bool) -> int:
        """Say how often the epochs of runs differ from each other as a gate sees it."""
        runs, bad = logged.good(1.0 if self.unscored is None else self.unscored)
        self._tell_flips(epoch_deals(runs), "deals of the epochs into before and after, where nothing changed", as_json)
        for name, why in bad.items():
            echo(f"{name}  bad: {why}", err=as_json)
        return INCOMPLETE if bad else GOOD

    def _tell_flips(self, draw: Any, of: str, as_json: bool) -> None:
        found = verdict_counts(draw, self.aa or 1, smallest=self.smallest, lower=self.lower)
        shares = ", ".join(f"{verdict} {count}" for verdict, count in found.most_common())
        echo(f"{found.total()} {of}: {shares}", err=as_json)


def _refuse_another(run: BaselineRun, task: Task, items: int) -> None:
    """Refuse runs that no gate would compare with the baseline, before they are paid."""
    version, data = str(task.version).partition("+")[0], (task.metadata or {}).get("dataset_sha256", "")
    wrong = [
        (version != run.version, f"is of task version {run.version}, here is {version}; save a new one"),
        (data != run.data, f"is of another data set (hash {run.data[:12]}, here {data[:12]})"),
        (items < len(run.items), f"has {len(run.items)} items, {items} would be run; raise --limit"),
    ]
    if why := [why for is_wrong, why in wrong if is_wrong]:
        raise InputError(f"{run.task}: the baseline {why[0]}")


@dataclass(frozen=True)
class ReadRun:
    """One run: its log, and what its samples say."""

    run: Run
    wanted: int
    """Samples that it was to have, epochs counted."""
    whole: list[EvalSampleSummary]
    """Valid samples that did not fail."""
    table: list[TableRow]
    """Values of all valid samples; see `judged_table`."""
    error: str
    """The first error, or ""."""

    @property
    def values(self) -> list[Judged]:
        """Judged values of the samples that did not fail, unscored ones too."""
        return [(row.item, row.decision) for row in self.table if not row.failed]

    @property
    def scored_after_error(self) -> int:
        """Number of samples that ended in an error and were scored all the same."""
        return sum(bool(sample.error) for sample in self.whole)

    @property
    def task(self) -> str:
        """Name of the task without its package."""
        return self.run.identity.task

    @property
    def name(self) -> str:
        """Name for people: the task, its model, and a target that is not its model."""
        return f"{self.task} of {self.of}"

    @property
    def of(self) -> str:
        """Name of the model, and of a target that is not it."""
        model = self.run.header.eval.model
        return model + target_suffix(model, target_of(self.run.header))

    @property
    def asked(self) -> Counter[str]:
        """Settings that the evaluated model was really asked with (`reply_notes`) → samples; none for other suites."""
        told = [sample.metadata.get("applied") for sample in self.whole]
        ways = [way.get("observer", way.get("target")) for way in told if isinstance(way, dict)]
        return Counter("; ".join(sorted(str(way).split("; "))) for way in ways if way)

    @property
    def reasons(self) -> dict[str, float]:
        """Why values are unscored, with the share of all, the most frequent first."""
        missing = Counter(one.unscored for _, one in self.values if one.unscored)
        return {reason: count / len(self.values) for reason, count in missing.most_common()}

    @property
    def scored(self) -> int:
        """Number of values that are scored."""
        return sum(not one.unscored for _, one in self.values)

    @property
    def keys_without_score(self) -> list[str]:
        """Keys, or scorers, that are unscored in every sample."""
        scored_keys = {decision.key for _, decision in self.values if not decision.unscored}
        return list(dict.fromkeys(decision.key for _, decision in self.values if decision.key not in scored_keys))

    def wrong(self, most: float) -> list[str]:
        """Faults of the run if a share of up to `most` of its values may be unscored; empty for a good run."""
        status, done, wrong = self.run.header.status, len(self.whole), list[str]()
        invalidated = self.run.invalidated
        missing = self.wanted - done - len(invalidated.provenance)
        if invalidated.provenance:
            wrong.append(f"{invalidated}; run them again")
        if status != "success":
            wrong.append({"started": "still running, or killed", "cancelled": "interrupted"}.get(status, "failed"))
        if missing > 0:
            told_why = self.error and not self.error.startswith("CancelledError")  # which every interrupt leaves
            first = f", the first: {self.error}" if told_why else ""
            wrong.append(f"{missing} of {self.wanted} samples failed or missing{first}")
        elif self.error and not self.scored_after_error:
            wrong.append(self.error)
        lost = 1 - self.scored / len(self.values) if self.values else 1.0
        if invalidated.are_all:
            return wrong
        if not self.scored or counted(self.run.results) == 0:
            wrong.append("nothing scored" + f" ({', '.join(list(self.reasons)[:3])})" * bool(self.reasons))
        elif lost > most:
            wrong.append(f"unscored {share_text(lost, most)} ({self.why}), more than {share_text(most)}")
        elif most < 1 and (keys := self.keys_without_score):
            wrong.append(f"no sample has a score of {', '.join(keys[:3])}")
        if disagreement := header_disagreement(self.run):
            wrong.append(disagreement)
        cut = cut_in(self.run.results).items()
        return wrong + [f"{part:.0%} of replies ended at the token limit; -T {arg}=… raises it" for arg, part in cut]

    @property
    def why(self) -> str:
        """The three most frequent reasons with their shares."""
        return ", ".join(f"{reason} {share_text(part)}" for reason, part in list(self.reasons.items())[:3])

    def case(self, most: float) -> "Case":
        """The run in the form that every output takes."""
        header, wrong = self.run.header, self.wrong(most)
        text = f"bad: {'; '.join(wrong)}" if wrong else self._good_text
        model = {"model": header.eval.model, "target": target_of(header)}
        data = {"log": self.run.log, "task": self.task, **model, "status": header.status, "wanted": self.wanted}
        data |= {"done": len(self.whole), "error": self.error, "invalidated": len(self.run.invalidated.provenance)}
        data |= {"asked": len(self.values), "scored": self.scored, "reasons": self.reasons, "wrong": wrong}
        line, kind = (self.task, f"{self.of}  {text}"), "error" if wrong else ""
        return Case(COMPLETE, COMPLETE, self.name, kind, text, line, (self.name, text), data)

    @property
    def _good_text(self) -> str:
        text = f"good: {len(self.whole)} samples, unscored {share_text(sum(self.reasons.values()))}"
        if self.reasons:
            text += f" ({self.why})"
        if failed := self.scored_after_error:
            verb = "1 sample" if failed == 1 else f"{failed} samples"
            text += f"; {verb} ended in an error, and counted as scored (score_on_error)"
        return text


@dataclass(frozen=True)
class CheckedLogs:
    """Contents of a set of logs."""

    runs: list[ReadRun]
    """Runs that count (`logs.runs`), and failed ones that none of these replaces; the oldest first."""
    earlier: dict[str, str]
    """Log that does not count → log of the same run that counts in its place."""
    broken: dict[str, str]
    """Logs that cannot be read, and why: nobody knows which run they were."""
    no_logs: Sequence[str] = ()
    """JSON files in the folders that are no logs."""

    def passed_over(self) -> list[str]:
        """A line on the files that are no logs, or none."""
        return [f"Passed over: {no_logs_text(self.no_logs)}."] if self.no_logs else []

    def left_out(self) -> list[str]:
        """A line for each run with several logs: which one counts, and how many do not."""
        count, run = Counter(self.earlier.values()), {one.run.log: one for one in self.runs}
        return [
            f"{run[log].task} of {run[log].run.header.eval.model}: {log.rpartition('/')[2]} counts; {number} other "
            f"run{'s' * (number > 1)} of the same {'are' if number > 1 else 'is'} left out"
            for log, number in count.items()
        ]

    def asked_differently(self) -> list[str]:
        """A line for each task and model whose samples were not all asked with the same settings.

        Their numbers are of one measurement only where that was meant, as with several `-T effort`.
        """
        found = defaultdict[tuple[str, str], Counter[str]](Counter)
        for read in self.runs:
            found[read.task, read.run.header.eval.model].update(read.asked)
        lines = []
        for (task, model), ways in found.items():
            told = [f"{n} sample{'s' * (n != 1)} with {way.replace('; ', ' or ')}" for way, n in ways.most_common(4)]
            more = [f"and {len(ways) - 4} further ways"] if len(ways) > 4 else []
            lines += [f"{task}  {model} was not always asked alike: {'; '.join(told + more)}"] if len(ways) > 1 else []
        return lines

    def good(self, most: float) -> tuple[list[BaselineRun], dict[str, str]]:
        """The runs that can be compared, and those that are bad in themselves with the reason."""
        after, bad = [], dict(self.broken)
        for read in self.runs:
            if wrong := read.wrong(most):
                bad[read.name] = "; ".join(wrong)
            try:
                after.append(baseline_run(read))
            except InputError as error:
                bad.setdefault(read.name, one_line(error))
        return after, bad

    def kept(self) -> list[BaselineRun]:
        """The runs as a baseline keeps them.

        Raises:
            InputError: See `baseline_run`; or a log cannot be read.
        """
        for log, why in self.broken.items():
            raise InputError(f"{log}: {why}")
        return [baseline_run(read) for read in self.runs]


def read_logs(paths: Iterable[str], limits: Mapping[Identity, int | None] | None = None) -> CheckedLogs:
    """All logs of these files and folders.

    Args:
        paths: Files and folders.
        limits: Identity of a run → number of its items that count; None, and no entry, is all.

    Raises:
        NoLogs: There is no log.
        InputError: A path does not exist.
    """
    there = runs_in(named := list(paths)).limited(limits or {})
    earlier, broken, found = dict[str, str](), dict(there.aside), list[ReadRun]()
    for run in there.counted:
        failed = [log for log in run.others if log.status != "success" and _is_open(run, replace(run, header=log))]
        earlier |= {log.location: run.log for log in run.others if log not in failed}
        for header in (run.header, *failed):
            try:
                found.append(_read(replace(run, header=header)))
            except UNREADABLE as error:  # InputError is one
                broken[header.location] = one_line(error)
            else:
                broken.pop(header.location, None)
    broken = {log: why for log, why in broken.items() if log not in earlier}
    if not found and not broken:
        passed_over = f"; {no_logs_text(there.no_logs)}" if there.no_logs else ""
        raise NoLogs(f"no log in {', '.join(named)}{passed_over}")
    by_time = sorted(found, key=lambda read: str(read.run.header.eval.created))
    return CheckedLogs(by_time, earlier, broken, there.no_logs)


def _is_open(run: Run, failed: Run) -> bool:
    """Whether a failed run is not replaced by the one that counts: it is later, or was to have more samples."""
    was_larger = failed.planned_samples > run.planned_samples
    return failed.log in run.later or was_larger or not failed.items() <= run.items()


def _read(run: Run) -> ReadRun:
    samples, header = run.summaries, run.header
    whole = [sample for sample in samples if not is_failed(sample, header)]
    error = header.error.message if header.error else ""
    if with_error := [sample for sample in samples if sample.error]:
        error = cause(run.log, with_error[0])
    in_log = len(samples) + len(run.invalidated.provenance)
    wanted = max(run.planned_samples, in_log, run.results.total_samples if run.results else 0)
    return ReadRun(run, wanted, whole, judged_table(run), one_line(error) if error else "")


def share_text(x: float, *others: float) -> str:
    """Two decimals, or as many as tell `x` from none, all, and `others`."""
    for digits in range(2, 6):
        if all(x == other or f"{x:.{digits}f}" != f"{other:.{digits}f}" for other in (0.0, 1.0, *others)):
            break
    return f"{x:.{digits}f}"


ELSEWHERE = ("target_log", "observer_log", "limit")
"""Task arguments that say where replies lie, not what is asked."""
DIGITS, PROMPTS, ANSWER = 6, 8, 60
"""Number of digits that are kept, of prompts of a sample, and of characters of an answer."""
LARGEST = 1e100
"""A score beyond it has no variance in floating point, and is not compared."""


def baseline_run(read: ReadRun) -> BaselineRun:
    """A run as a baseline keeps it.

    Raises:
        InputError: No score is a number that can be compared, or nothing in the run is a value.
    """
    header, metadata = read.run.header, read.run.header.eval.metadata or {}
    ours, samples = "selfprobe" in metadata, read.run.summaries
    left_out = _left_out(read)
    rows = [row for row in _own(read) if row.decision.key not in left_out]
    values = [(row.item, row.decision) for row in rows if not row.failed]
    if not values and left_out:
        mend = "only numbers can be compared: give its scorer numbers, or score the log again"
        raise InputError(f"{read.run.log}: {'; '.join(left_out.values())}; {mend}")
    if not values:
        raise InputError(f"{read.run.log}: no sample of {read.task} has a score")
    items: dict[str, dict[str, list[float | str]]] = {str(one.id): {} for one in samples}
    said, reasoned = defaultdict[str, dict[str, list[str]]](dict), defaultdict[str, list[str]](list)
    for row in rows:
        item, decision = row.item, row.decision
        if (given := decision.unscored or _rounded(decision.value)) is None:
            continue
        items[item].setdefault(decision.key, []).append(given)
        if not row.failed:
            said[item].setdefault(decision.key, []).append(" ".join((decision.said or "").split())[:ANSWER])
        if decision.reasoned:
            reasoned[item].append(decision.key)
    scores = read.run.results.scores if read.run.results else []
    metrics = {f"{score.name}.{name}": float(one.value) for score in scores for name, one in score.metrics.items()}
    score_name = next((name for score in scores for name in score.metrics), UNNAMED_SCORE)  # the mean of its decisions
    if not any(decision.value is not None for _, decision in values):
        score_name = UNNAMED_SCORE  # the log has other numbers alone, such as the ceiling
    known = defaults_of(read.task) if read.task in tasks_by_name() else {}
    set_ = {k: v for k, v in args_of(header).items() if v is not None and k not in ELSEWHERE}
    roles = {role: ", ".join(one.model for one in models) for role, models in roles_of(header).items()}
    clusters = {str(one.id): str(one.metadata["cluster"]) for one in samples if one.metadata.get("cluster")}
    return BaselineRun(
        task=read.task,
        model=header.eval.model,
        target=target_of(header),
        version=str(header.eval.task_version).partition("+")[0],
        selfprobe=str(metadata.get("selfprobe", "")),
        args=_plain({k: v for k, v in set_.items() if v != known.get(k)} if ours else header.eval.task_args),
        model_args=_plain(concealed(header.eval.model_args)),
        data=str(metadata.get("dataset_sha256", "")) if ours else "",
        plan="" if ours else _digest([(step.solver, step.params) for step in header.plan.steps]),
        prompts=_prompts(read.run, samples),
        applied=dict(read.asked) if ours else _settings(read),
        metric="accuracy" if read.task in METHODS else score_name if read.task in measures() else "",
        metrics={name: round(value, DIGITS) for name, value in metrics.items() if math.isfinite(value)},
        items=dict(sorted(items.items())),
        blind=_blind(read, values, clusters),
        reasoned=dict(reasoned),
        inputs={} if ours else {str(one.id): _digest(_asked(one), 8) for one in samples},
        clusters=clusters,
        answers={} if ours else {str(one.id): _digest(key, 8) for one in samples if (key := _right(one))},
        left_out=left_out,
        roles={"grader": UNBOUND} | {role: of for role, of in roles.items() if role != "target"},
        scorers={} if ours else {score.scorer: _digest(_without_replies(score.params)) for score in scores},
        said=dict(said),
        reducers=[] if ours else _reducers(read),
    )


def _own(read: ReadRun) -> list[TableRow]:
    """Rows that make the score: those of the suite about the model itself, and a method's verdict."""
    if all(isinstance(row.decision, Theirs) for row in read.table):
        return read.table
    own = [row for row in read.table if not row.decision.key.startswith(OTHER)]
    if read.task == "ethical_dilemma":
        dilemmas = dilemmas_of([(row.item, row.decision) for row in own if not row.failed])
        return [TableRow(item, 1, _dilemma_score(dilemma)) for item, dilemma in dilemmas.items()]
    if read.task in METHODS and any(row.decision.key == read.task for row in own):
        return [row for row in own if row.decision.key == read.task]
    return own


def _dilemma_score(dilemma: Dilemma) -> Theirs:
    value = None if dilemma.unscored else dilemma.cot_pred
    return Theirs(key="cot_pred", value=value, unscored=dilemma.unscored)


def _reducers(read: ReadRun) -> list[str]:
    """Names of the reducers of another suite's epochs; none where it is the mean.

    One that gives other values than the log has of it, such as `at_least(2, value=.5)`, gets a name that nobody knows.
    """
    reducers = reducers_of(read.run.header)
    if reducers == [MEAN]:
        return []
    reductions = [] if read.run.invalidated.provenance else logged_reductions(read.run.log)
    names = list[str]()
    for reducer in reducers:
        logged = [reduction for reduction in reductions if reduction.reducer == reducer]
        is_other = known_reducer(reducer) is not None and not _agrees(read, reducer, logged)
        names.append(f"{reducer} with arguments of its own" if is_other else reducer)
    return names


def _agrees(read: ReadRun, reducer: str, logged: Sequence[EvalSampleReductions]) -> bool:
    """True if a reducer gives the values that a log has of it, as far as these are numbers."""
    texts = _left_out(read)
    values = defaultdict[tuple[str, str], list[float]](list)
    for row in read.table:
        if row.decision.unscored not in (FAILED, NO_SCORE):
            value = math.nan if row.decision.value is None else row.decision.value
            values[row.decision.key, row.item].append(value)
    for reduction in logged:
        for sample in reduction.samples:
            for key, logged_value in values_of(sample).items():
                name, number = ScoreColumn(reduction.scorer, key).name, number_of(logged_value)
                epoch_values = values.get((name, str(sample.sample_id)))
                if name in texts or number is None or epoch_values is None:
                    continue
                if not math.isclose(reduced(epoch_values, reducer), number, abs_tol=1e-9):
                    return False
    return True


def _left_out(read: ReadRun) -> dict[str, str]:
    """Keys of which a value cannot be compared, and why: the first such value."""
    found: dict[str, str] = {}
    for item, one in read.values:
        what, where = f"{one.key} of {read.task} is", f"at sample {item!r}"
        if one.value is None and one.unscored is None:
            found.setdefault(one.key, f"{what} no number {where}, and no C, I, P or N")
        elif one.value is not None and abs(one.value) > LARGEST:
            found.setdefault(one.key, f"{what} {one.value:g} {where}, too large to compute with")
    return found


def _rounded(value: float | None) -> float | None:
    """Six decimals, of what is near 0 six digits."""
    if value is None:
        return None
    return float(f"{value:.{DIGITS}g}") if abs(value) < 1 else round(value, DIGITS)


def _blind(read: ReadRun, values: Sequence[Judged], clusters: dict[str, str]) -> dict[str, dict[str, float]]:
    """Best guesses without a model, for a matrix task whose score is a mean; without them there is no skill."""
    measure = measures().get(read.task)
    scored = [(item, one) for item, one in values if one.value is not None and not isinstance(one, Theirs)]
    if measure is None or measure.item_scores is not None or len(scored) < 2:
        return {}
    candidates = without_a_model([(clusters.get(item, item), one) for item, one in scored], measure.right)
    found = defaultdict[str, dict[str, list[float]]](lambda: defaultdict(list))
    for (item, one), hit in zip(scored, best_of(candidates).tolist() if candidates else [], strict=False):
        found[item][one.key].append(0.0 if math.isnan(hit) else hit)
    means = {
        item: {key: round(sum(h) / len(h), DIGITS) for key, h in own.items() if any(h)} for item, own in found.items()
    }
    return {item: own for item, own in means.items() if own}


def _prompts(run: Run, samples: Sequence[EvalSampleSummary]) -> list[str]:
    """Digests of the prompts of the first sample, in no order of calls, without the models' names where they are told.

    Options are left out, since tasks shuffle them; `BaselineRun.answers` has them. A prompt counts where no reply
    stands before or in it, nobody was asked it as a grader, and it is more than the sample's own input: so the same
    for every model. None may be left.

    Raises:
        InputError: The log cannot be read.
    """
    first = min(samples, key=lambda one: (bool(one.error), str(one.id), one.epoch))
    whole, header = whole_sample(run.log, first.id, first.epoch), run.header
    calls = [e for e in whole.events if isinstance(e, ModelEvent) and e.role != "grader"]
    outputs = [call.output for call in calls if call.output.choices]
    replies = {split_thought(output.completion).answer.strip() for output in outputs} - {""}
    told = about_of(header) == "named"
    names = {name for one in (header.eval.model, target_of(header)) for name in (one, one.partition("/")[2])}
    own = whole.input if isinstance(whole.input, str) else "\n".join(message.text for message in whole.input)
    options = sorted({*(whole.choices or [])} - {""}, key=len, reverse=True)
    found = set[str]()
    for call in calls:
        text = "\n".join(message.text for message in call.input)
        if text == own or any(m.role in ("assistant", "tool") for m in call.input) or any(r in text for r in replies):
            continue
        for name in sorted(names - {""}, key=len, reverse=True) if told else ():
            text = re.sub(rf"(?<!\w){re.escape(name)}(?!\w)", "MODEL", text)
        text = re.sub("|".join(map(re.escape, options)), "OPTION", text) if options else text
        found.add(hashlib.sha256(text.encode()).hexdigest()[:12])
    return sorted(found)[:PROMPTS]


def _asked(sample: EvalSampleSummary) -> str:
    """Texts that a sample asks, without the messages' other fields: messages have ids of their own in every run."""
    given = sample.input
    return given if isinstance(given, str) else "\n".join(f"{message.role}: {message.text}" for message in given)


def _right(sample: EvalSampleSummary) -> str:
    """A sample's options and its target: letters as their options' texts, and in no order, since tasks shuffle them."""
    options = sample.choices or []
    target = [sample.target] if isinstance(sample.target, str) else sample.target
    texts = dict(zip(ascii_uppercase, options, strict=False))
    return "\n".join([*sorted(options), "→", *sorted(texts.get(one, one) for one in target)]) if any(target) else ""


def _settings(read: ReadRun) -> dict[str, int]:
    """Settings that another suite's model was to be asked with."""
    told = read.run.header.plan.config.model_dump(exclude_none=True)
    told |= read.run.header.eval.model_generate_config.model_dump(exclude_none=True)
    names = ("temperature", "top_p", "top_k", "max_tokens", "reasoning_effort", "reasoning_tokens", "effort")
    way = ", ".join(f"{name} {told[name]}" for name in names if name in told)
    return {way or "the model's own settings": len(read.whole)}


def _without_replies(given: dict[str, Any]) -> dict[str, Any]:
    """A scorer's arguments without `model_args`: a mock's replies have new ids in every run."""
    return {
        name: {k: v for k, v in value.items() if k != "model_args"} if isinstance(value, dict) else value
        for name, value in given.items()
    }


def _digest(told: object, length: int = 12) -> str:
    text = told if isinstance(told, str) else json.dumps(told, sort_keys=True, default=str)
    return hashlib.sha256(text.encode()).hexdigest()[:length]


def _plain(given: Any) -> dict[str, Any]:
    """A value in the form that JSON has."""
    return dict(json.loads(json.dumps(given, sort_keys=True, default=str)))


LONG = ("metrics", "items", "blind", "reasoned", "inputs", "clusters", "answers", "said")
"""Fields with one line per entry in the file of a baseline."""
YOUNGER = ("answers", "left_out", "roles", "scorers", "said", "reducers")
"""Fields that older files lack; left out where they are empty, so that the same runs have the same bytes."""


def save_baseline(runs: Sequence[BaselineRun], path: str) -> int:
    """Write a baseline: JSON for git, an item a line, the same bytes for the same runs; its size in bytes.

    Raises:
        InputError: It cannot be written there, or the path is no .json file.
    """
    _refuse_other_than_json(path)
    body = ",\n".join(_text(run) for run in sorted(runs, key=lambda run: (run.name, _json([run.args, run.model_args]))))
    content = f'{{\n"baseline": 1,\n"sha256": "{_sum(body)}",\n"runs": [\n{body}\n]}}\n'.encode()
    place_file(content, path)
    return len(content)


def _refuse_other_than_json(path: str, option: str = "") -> None:
    if not path.endswith(".json"):
        raise InputError(f"a baseline is a .json file, got {option}{path}")


def read_baseline(path: str) -> list[BaselineRun]:
    """The runs of a baseline.

    Raises:
        InputError: It cannot be read, is no baseline, is of another form, or was changed by hand.
    """
    again = f"; save a new one: selfprobe check LOGS --save {path}"
    try:
        text = decoded(read_bytes(path), path)
        found = json.loads(text, parse_constant=_refused)
    except InputError as error:
        if isinstance(error.__cause__, FileNotFoundError):
            raise InputError(f"there is no baseline {path}{again.replace('a new one', 'one')}") from None
        raise
    except (ValueError, RecursionError) as error:
        raise InputError(f"{path} is no baseline, it is not JSON ({one_line(error)}){again}") from None
    if not isinstance(found, dict) or "baseline" not in found or not isinstance(found.get("runs"), list):
        raise InputError(f"{path} is no baseline of selfprobe check{again}")
    if found["baseline"] != 1:
        raise InputError(f"{path} is a baseline of form {found['baseline']}, this selfprobe reads form 1{again}")
    try:
        runs = TypeAdapter(list[BaselineRun]).validate_json(json.dumps(found["runs"]), strict=True)
        same = _sum(",\n".join(map(_text, runs))) == found.get("sha256")
    except ValidationError as error:
        first = error.errors()[0]
        at = " ".join(map(str, first["loc"]))
        raise InputError(f"{path} was changed by hand: run {at}: {first['msg']}{again}") from None
    except ValueError:  # 1e999 is JSON, and infinite
        raise InputError(f"{path} was changed by hand, it has a number that is infinite{again}") from None
    if not runs:
        raise InputError(f"{path} holds no run{again}")
    if not same:
        raise InputError(f"{path} was changed by hand, its sha256 is another{again}")
    return runs


def _refused(constant: str) -> None:
    raise ValueError(f"{constant} is no number")


def _sum(body: str) -> str:
    return hashlib.sha256(f"{body}\n".encode()).hexdigest()


def _text(run: BaselineRun) -> str:
    parts = []
    for name, value in asdict(run).items():
        told = _json(value)
        if name in LONG and value:
            told = "{\n" + ",\n".join(f"  {_json(key)}: {_json(value[key])}" for key in sorted(value)) + "\n }"
        parts += [f' "{name}": {told}'] if value or name not in YOUNGER else []
    return "{\n" + ",\n".join(parts) + "\n}"


def _json(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, sort_keys=True, allow_nan=False)


COMPLETE = "complete"
"""Suite of the cases that need no comparison."""
COUNTED = {"tests": "testcase", "failures": "failure", "errors": "error", "skipped": "skipped"}
"""Number that JUnit has for a suite → the element that it counts."""
LISTED = 10
"""Largest number of turned items that are shown."""


@dataclass(frozen=True)
class Case:
    """One thing that was judged, a run or a metric, as every output has it."""

    suite: str
    group: str
    """The run's task, or COMPLETE."""
    name: str
    """The metric, or the run."""
    kind: str
    """JUnit's word: failure, error or skipped; "" is good."""
    text: str
    line: tuple[str, ...]
    """Columns of the case in a terminal."""
    row: tuple[str, ...]
    """Row of the case in the step summary."""
    data: dict[str, Any]
    """Data for programs."""


@dataclass(frozen=True)
class CheckResult:
    """Result of a check."""

    status: int
    cases: list[Case]
    heads: tuple[str, ...]
    """Column heads of the cases' rows."""
    notes: list[str]
    """Notes for the reader."""
    last: str
    fields: dict[str, Any]
    """Fields for programs."""

    def lines(self) -> list[str]:
        """A line a case, then what to know."""
        whole = [case.line for case in self.cases if len(case.line) > 1]
        widths = [max(map(len, column)) for column in zip(*whole, strict=True)]
        out = [
            "  ".join(f"{cell:{width}}" for cell, width in zip(case.line, widths or [0], strict=False)).rstrip()
            for case in self.cases
        ]
        return [clean(line) for line in [*out, *self.notes, self.last]]

    def markdown(self) -> str:
        """The step summary of a GitHub workflow."""
        rows = [[markdown_cell(cell) for cell in case.row] for case in self.cases]
        table = ["| " + " | ".join(row) + " |" for row in [self.heads, ["---"] * len(self.heads), *rows]]
        notes = [f"- {markdown_cell(line)}" for line in self.notes]
        return "\n".join([f"### selfprobe check: {markdown_cell(self.last)}", "", *table, "", *notes, ""])

    def annotations(self) -> list[str]:
        """GitHub's workflow commands: an error for what is worse, refused or bad, a warning for what cannot be told."""
        out = []
        for case in (one for one in self.cases if one.kind):
            title = case.name if case.group == COMPLETE else f"{case.group} {case.name}"
            title, text = (
                clean(one).replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A") for one in (title, case.text)
            )
            level = "warning" if case.kind == "skipped" else "error"
            out.append(f"::{level} title={title.replace(':', '%3A').replace(',', '%2C')}::{text}")
        return out

    def junit(self) -> bytes:
        """JUnit's XML."""
        root = ElementTree.Element("testsuites", name="selfprobe check")
        for name in dict.fromkeys(case.suite for case in self.cases):
            suite = ElementTree.SubElement(root, "testsuite", name=clean(name))
            for case in (one for one in self.cases if one.suite == name):
                inside = ElementTree.SubElement(suite, "testcase", classname=clean(case.group), name=clean(case.name))
                if case.kind:
                    ElementTree.SubElement(inside, case.kind, message=clean(case.text))
                else:
                    ElementTree.SubElement(inside, "system-out").text = clean(case.text)
            for count, tag in COUNTED.items():
                suite.set(count, str(sum(1 for _ in suite.iter(tag))))
        return bytes(ElementTree.tostring(root, encoding="utf-8", xml_declaration=True))


def markdown_cell(cell: str) -> str:
    """A text for a cell of a Markdown table, in which nothing is a sign of Markdown or HTML."""
    text = re.sub(r"([\\`*_|\[\]])", r"\\\1", " ".join(clean(cell).split()))
    return text.replace("<", "&lt;").replace(">", "&gt;")


def add_to_summary(text: str) -> None:
    """Add Markdown to the step summary, where there is one.

    Raises:
        InputError: Its file cannot be written.
    """
    if path := os.environ.get("GITHUB_STEP_SUMMARY"):
        try:
            with Path(path).open("a", encoding="utf-8") as file:
                file.write(text)
        except OSError as error:
            raise InputError(f"cannot write the step summary {path}: {error.strerror}") from None


def _bad(name: str, text: str, columns: int) -> Case:
    """Case of something that is bad without any comparison."""
    return Case(COMPLETE, COMPLETE, name, "error", text, (f"{name}  {text}",), (name, *[""] * (columns - 2), text), {})


def complete(logged: CheckedLogs, most: float) -> CheckResult:
    """Cases that say whether each run is complete and scored, if a share of up to `most` of its values may be
    unscored."""
    cases = [run.case(most) for run in logged.runs]
    runs = [case.data for case in cases]
    last = f"{sum(not case.kind for case in cases)} of {len(cases)} runs good"
    if count := len(logged.broken):
        last += f", {count} log{'s' * (count != 1)} cannot be read"
    if count := len(logged.earlier):
        last += f"; {count} other run{'s' * (count > 1)} of the same {'are' if count > 1 else 'is'} not counted"
    cases += [_bad(log, f"bad: {why}", 2) for log, why in logged.broken.items()]
    status = INCOMPLETE if any(case.kind for case in cases) else GOOD
    fields = {"runs": runs, "broken": logged.broken, "earlier": logged.earlier, "whole": status == GOOD}
    notes = [*logged.asked_differently(), *logged.left_out(), *logged.passed_over()]
    return CheckResult(status, cases, ("run", "found"), notes, last, fields)


@dataclass(frozen=True)
class Gate:
    """A baseline's runs, the runs of now, and every change between them."""

    before: Sequence[BaselineRun]
    after: Sequence[BaselineRun]
    smallest: float = 0.05
    """The smallest change that matters."""
    lower: Sequence[str] = ()
    """Metrics whose lower values are better."""
    strict: bool = False
    """Whether "cannot tell" counts as a failure."""
    incomplete: Mapping[str, str] = field(default_factory=dict)
    """Current runs that are bad without any comparison → why."""
    known: Sequence[str] = ()
    """Notes about the logs, printed before those about pairing."""

    @cached_property
    def paired(self) -> RunPairs:
        """Runs before and now."""
        found = pair_runs(self.before, self.after)
        there = {*self.incomplete} - {run.name for run in self.after}  # and cannot be compared: one reason is enough
        refused = {name: why for name, why in found.refused.items() if name not in there}
        return replace(found, refused=refused, notes=[*self.known, *found.notes])

    @cached_property
    def rows(self) -> list[MetricChange]:
        """Every change."""
        return changes_of(self.paired.pairs, smallest=self.smallest, lower=self.lower)

    @property
    def status(self) -> int:
        """The exit status."""
        verdicts = {row.verdict for row in self.rows}
        if self.paired.refused or self.incomplete or not self.rows:
            return INCOMPLETE
        if ChangeVerdict.WORSE in verdicts:
            return WORSE
        return UNTOLD if self.strict and ChangeVerdict.CANNOT_TELL in verdicts else GOOD

    def found(self) -> CheckResult:
        """The result in the form that every output takes."""
        bad = {"refused": self.paired.refused, "incomplete": self.incomplete}
        several = len({row.model for row in self.rows}) > 1
        cases = [self.case(row, several=several) for row in self.rows]
        rows = [case.data for case in cases]
        count = Counter[str](row.verdict for row in self.rows)
        count |= {kind: len(runs) for kind, runs in bad.items() if runs}
        last = ", ".join(f"{number} {name}" for name, number in count.items()) or "nothing to compare"
        cases += [_bad(run, f"{kind}: {why}", 6) for kind, runs in bad.items() for run, why in runs.items()]
        cells = turned_cells(self.paired.pairs, self.lower)
        notes = [str(one) for one in cells[:LISTED]]
        if len(cells) > LISTED:
            right = sum(one.right for one in cells)
            told = f"{len(cells) - right} right → wrong, {right} wrong → right in all"
            notes.append(f"and {len(cells) - LISTED} more: {told}")
        notes += [*self.paired.notes, *([LUCK] if ChangeVerdict.WORSE in count else [])]
        fields = {"status": self.status, "rows": rows, **bad, "notes": self.paired.notes, "turned": cells}
        heads = ("task", "metric", "change", "95 % interval", "n", "verdict")
        return CheckResult(self.status, cases, heads, notes, last, fields)

    def case(self, row: MetricChange, *, several: bool) -> Case:
        """A metric: worse is a failure, cannot tell skipped unless strict."""
        kinds = {
            ChangeVerdict.WORSE: "failure",
            ChangeVerdict.CANNOT_TELL: "failure" if self.strict else "skipped",
        }
        change, size, verdict = (
            change_text(row),
            f"n {row.change.estimate.n}" if row.change else "",
            verdict_text(row, self.smallest),
        )
        names = ("task", "model", "metric", "verdict", "why", "change", "p_holm", "needed", "power")
        text = f"{change} {size} {verdict}".strip()
        line = (row.task, *([row.model] if several else []), row.metric, change, size, verdict)
        short_, bracket, interval = change.partition(" [")
        cells = (row.task, row.metric, short_, f"{bracket.strip()}{interval}", size.removeprefix("n "), verdict)
        data = {name: getattr(row, name) for name in names}
        kind = kinds.get(row.verdict, "")
        return Case(f"{row.task} of {row.model}", row.task, row.metric, kind, text, line, cells, data)


def change_text(row: MetricChange) -> str:
    """Text of the value before, after and the change: `.61 → .48  −.13 [−.19, −.07]`, with two to four decimals, so
    that it adds up."""
    if row.change is None:
        return ""
    one = row.change.estimate
    digits = _adding_up(row.change.before, row.change.after, one.value)
    before, after = _short(row.change.before, digits), _short(row.change.after, digits)
    interval = "" if math.isnan(one.low) else f" [{_signed(one.low, digits)}, {_signed(one.high, digits)}]"
    return f"{before} → {after}  {_signed(one.value, digits)}{interval}"


def _adding_up(before: float, after: float, change: float) -> int:
    """Decimals: the fewest with which the rounded change is that of the rounded numbers; .474 → .336 is −.138.

    Two where four do not suffice either: more would claim a precision that no run has.
    """
    numbers = (before, after, change)
    for digits in range(2, 5) if all(map(math.isfinite, numbers)) else ():
        was, now, moved = (float(_short(number, digits)) for number in numbers)
        if abs(now - was - moved) < 10**-digits / 2:
            return digits
    return 2


def verdict_text(row: MetricChange, smallest: float) -> str:
    """The verdict, why, and what it would take to tell."""
    if row.change is None:
        return f"{'worse' if row.verdict is ChangeVerdict.WORSE else 'not the same'} ({row.why})"
    word, told, one = str(row.verdict), row.why, row.change.estimate
    if row.verdict is ChangeVerdict.CANNOT_TELL:
        word = f"cannot tell a change of {_short(smallest)}"
        needed = row.needed or 0
        many = f"{needed:,}" if needed < 10**9 else "more than a billion"
        needs = f"needs {many} {one.unit}s" if needed > one.n else ""
        told = row.why if row.why and row.metric != UNSCORED_METRIC else needs or one.reason
    elif row.metric == UNSCORED_METRIC and row.verdict is not ChangeVerdict.WORSE:
        told = ""
    return f"{word} ({told})" if told else word


def _short(value: float, digits: int = 2) -> str:
    """`.61`, `1.00`, `12.3`: two decimals below 10, without a zero before the point."""
    if math.isnan(value):
        return "?"
    text = f"{value:.{digits}f}" if abs(value) < 10 else f"{value:.{digits + 2}g}"
    return text.replace("0.", ".", 1) if text.startswith(("0.", "-0.")) else text


def _signed(value: float, digits: int = 2) -> str:
    """`+.03`, `−.13`, `.00`."""
    text = _short(abs(value), digits)
    return text if text == "?" or not text.strip(".0") else f"{'−' if value < 0 else '+'}{text}"
