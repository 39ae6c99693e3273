"""Which log counts for each arm of evaluation awareness, why the others do not, and what is missing.

Runs of one arm that were asked with other settings are arms of their own. Logs that read the same
replies belong together: those of one study do, since every method reads what the first one
recorded, and what is compared with a run has to have read the same replies as it.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from typing import Any

from inspect_ai.log import EvalLog
from inspect_ai.model import ModelConfig

from selfprobe.errors import InputError, NoLogs, one_line
from selfprobe.logs import (
    HOW_CALLED,
    UNREADABLE,
    Run,
    Runs,
    first_of,
    roles_of,
    runs,
    target_of,
    task_of,
)
from selfprobe.logs.judged import JudgedSample
from selfprobe.solvers.converse import METHODS
from selfprobe.solvers.record import record_of
from selfprobe.text.safe import concealed, masked

SAMPLED_REPLIES = 16
"""Number of conversations that are looked at: reading all takes ten times as long as the rest of a
comparison.
"""
REPLY_TOKENS = "reply_tokens"
SamplePlace = tuple[str | int, int]
"""Sample id and epoch."""


@dataclass(frozen=True)
class ArmRun:
    """A run in use."""

    run: Run
    samples: list[JudgedSample]
    read: str = ""
    """Replies that it read: equal in logs of one study; "" where nobody looked."""

    @property
    def header(self) -> EvalLog:
        """The run's log."""
        return self.run.header


def in_order(
    runs_of_arms: Sequence[Sequence[ArmRun]], *, reads_replies: bool
) -> list[list[tuple[ArmRun, str]]]:
    """The runs of each arm, the one that stands for it first, each with how it was asked otherwise
    than that one.

    The first, and each run that was asked as it was, has what was set in it otherwise than in any
    of the others.

    First is the run with the most conversations, then the fewest invalidated ones; of equals the
    one that read the replies that most arms read (a study's own, not a method that was asked
    again); of equals one with the settings of the newest; of those the earliest.

    Args:
        runs_of_arms: All that read one model's replies to one data set.
        reads_replies: Whether the replies are looked at where each arm has one run.
    """
    has_several_runs = any(len(arm_runs) > 1 for arm_runs in runs_of_arms)
    if reads_replies or has_several_runs:
        runs_of_arms = _with_reply_groups(runs_of_arms)

    recording_logs: dict[str, EvalLog] = {}
    reader_counts: Counter[str] = Counter()
    for arm_runs in runs_of_arms:
        reader_counts.update({arm_run.read for arm_run in arm_runs})
        for arm_run in arm_runs:
            if _records(arm_run):
                recording_logs[arm_run.read] = arm_run.header

    ordered_arms = []
    for arm_runs in runs_of_arms:
        settings_of_runs = []
        for arm_run in arm_runs:
            recording_log = recording_logs.get(arm_run.read)
            if _records(arm_run):
                recording_log = arm_run.header
            settings_of_runs.append(settings_of(arm_run.header, recording_log))
        ordered_arms.append(_ordered_runs(arm_runs, reader_counts, settings_of_runs))
    return ordered_arms


def _with_reply_groups(runs_of_arms: Sequence[Sequence[ArmRun]]) -> list[list[ArmRun]]:
    run_of_log = {arm_run.run.log: arm_run for arm_runs in runs_of_arms for arm_run in arm_runs}
    group_of_log = reply_groups(run_of_log)
    grouped_arms = []
    for arm_runs in runs_of_arms:
        grouped_runs = []
        for arm_run in arm_runs:
            reply_group = f"replies {group_of_log[arm_run.run.log]}"
            grouped_runs.append(replace(arm_run, read=reply_group))
        grouped_arms.append(grouped_runs)
    return grouped_arms


def _records(arm_run: ArmRun) -> bool:
    """Whether the run asked for the replies that it read."""
    return not arm_run.header.eval.task_args.get("target_log")


def _ordered_runs(
    arm_runs: Sequence[ArmRun],
    reader_counts: Mapping[str, int],
    settings_of_runs: Sequence[Mapping[str, str]],
) -> list[tuple[ArmRun, str]]:
    """Runs of one arm, the first one first, each with its mark.

    Args:
        arm_runs: Runs of the arm.
        reader_counts: Replies → number of arms that read them.
        settings_of_runs: Settings of each run.
    """
    creation_times = [str(arm_run.header.eval.created) for arm_run in arm_runs]
    newest_settings = settings_of_runs[creation_times.index(max(creation_times))]
    ranks = []
    for index, arm_run in enumerate(arm_runs):
        settings_differ = bool(differing_settings(settings_of_runs[index], newest_settings))
        rank = (
            -arm_run.run.item_count,
            len(arm_run.run.invalidated.provenance),
            -reader_counts[arm_run.read],
            settings_differ,
            creation_times[index],
        )
        ranks.append(rank)
    order = sorted(range(len(arm_runs)), key=ranks.__getitem__)

    first_settings = settings_of_runs[order[0]]
    set_in_first: dict[str, str | None] = {}
    for index in order[1:]:
        differences = differing_settings(first_settings, settings_of_runs[index])
        for name, value in differences.items():
            if value is not None:
                set_in_first[name] = value

    marked_runs = []
    for index in order:
        differences = differing_settings(settings_of_runs[index], first_settings)
        marked_runs.append((arm_runs[index], _mark(differences or set_in_first)))
    return marked_runs


def _mark(settings: Mapping[str, str | None]) -> str:
    setting_texts = []
    for name, value in settings.items():
        setting_texts.append(f"no {name}" if value is None else f"{name} {value}")
    return ", ".join(setting_texts)


def reply_groups(arm_runs: Mapping[str, ArmRun]) -> dict[str, int]:
    """The number of the group that each log is of; logs whose common conversations have equal
    replies are of one.

    Two runs that gave the same replies throughout, as a model at temperature 0 may, are of one
    group too.

    Args:
        arm_runs: The run of each log, by location; all of one data set and one writer of replies.
    """
    places_of_log: dict[str, list[SamplePlace]] = {}
    log_counts: Counter[SamplePlace] = Counter()
    for log, arm_run in arm_runs.items():
        completed = [sample for sample in arm_run.samples if sample.summary.error is None]
        places_of_log[log] = [(sample.summary.id, sample.epoch) for sample in completed]
        log_counts.update(places_of_log[log])

    # What most logs hold is looked at first.
    by_log_count = sorted(log_counts, key=lambda place: (-log_counts[place], str(place)))
    rank_of_place = {place: rank for rank, place in enumerate(by_log_count)}
    logs_by_size = sorted(places_of_log, key=lambda log: len(places_of_log[log]), reverse=True)

    group_of_log: dict[str, int] = {}
    groups: list[dict[SamplePlace, str]] = []
    for log in logs_by_size:
        ranked_places = sorted(places_of_log[log], key=rank_of_place.__getitem__)
        replies = _replies(arm_runs[log].run, ranked_places[:SAMPLED_REPLIES])
        matching_groups = [
            number for number, group in enumerate(groups) if _has_same_replies(replies, group)
        ]
        if matching_groups:
            group_of_log[log] = matching_groups[0]
            groups[matching_groups[0]] |= replies
        else:
            group_of_log[log] = len(groups)
            groups.append(replies)
    return group_of_log


def _has_same_replies(replies: Mapping[SamplePlace, str], group: Mapping[SamplePlace, str]) -> bool:
    common_places = replies.keys() & group.keys()
    return bool(common_places) and all(replies[place] == group[place] for place in common_places)


def _replies(run: Run, places: Sequence[SamplePlace]) -> dict[SamplePlace, str]:
    """Each reply with all that was recorded of it; none of a log that cannot be read."""
    replies: dict[SamplePlace, str] = {}
    try:
        for sample in run.samples_at(places):
            reply = record_of(sample).acts.get("reply")
            if reply:
                replies[sample.id, sample.epoch] = reply.model_dump_json()
    except InputError:
        return {}
    return replies


def settings_of(log: EvalLog, recording_log: EvalLog | None) -> dict[str, str]:
    """Settings that two runs of an arm share; the data set's hash in the version is that of the
    arm.

    Args:
        log: Log of a run.
        recording_log: Log of the run whose replies it read, which says how long they could be; None
            where it is not there.
    """
    spec = log.eval
    own_model = ModelConfig(
        model=spec.model,
        config=spec.model_generate_config,
        base_url=spec.model_base_url,
        args=spec.model_args,
    )
    values: dict[str, object] = {}
    models = {"": own_model}
    for role, role_models in roles_of(log).items():
        if role != "target":
            values[role] = ",".join(model.model for model in role_models)
        for model in role_models:
            role_name = role if len(role_models) == 1 else model.model
            models[f" of {role_name}"] = model
    for suffix, model in models.items():
        for name, value in concealed(model.args).items():
            values[f"model argument {name}{suffix}"] = value
        values[f"base_url{suffix}"] = model.base_url and masked(model.base_url)
        for name, value in model.config.model_dump().items():
            if name not in HOW_CALLED:
                values[f"{name}{suffix}"] = value
    for name in ("effort", "answer_tokens"):
        values[name] = spec.task_args.get(name)
    values["decisions"] = (spec.metadata or {}).get("decisions")
    values["version"] = str(spec.task_version).partition("+")[0]
    settings = {name: str(value) for name, value in values.items() if value is not None}
    if recording_log is not None:
        settings[REPLY_TOKENS] = str(recording_log.eval.task_args.get(REPLY_TOKENS))
    return settings


def differing_settings(
    settings: Mapping[str, str], other_settings: Mapping[str, str]
) -> dict[str, str | None]:
    """Values of `settings` where two runs were asked differently, None where it was not set.

    A limit of replies that one of them does not report is left out.
    """
    unreported_names = {REPLY_TOKENS} - (settings.keys() & other_settings.keys())
    differences: dict[str, str | None] = {}
    for name in sorted(settings.keys() | other_settings.keys()):
        value = settings.get(name)
        if name in unreported_names or value == other_settings.get(name):
            continue
        differences[name] = None if value == "None" else value
    return differences


Arm = tuple[Any, ...]
PLAIN: dict[str, str | int] = {
    "perspective": "first",
    "context": "first",
    "placebo": "",
    "target": "",
    "wording": "",
    "run": 1,
}
"""Values of an arm where nothing else is asked for.

`placebo` is its kind, "" where it is none. `target` is the model whose replies the conversations
hold, "" where it is the model itself. `wording` is the short hash of the user's own questions, ""
where they are ours. `run` is 1, or 2, 3 … where the same was asked again.
"""
ARM = ["method", "model", *PLAIN]
"""Keys whose values make two runs different measurements."""
MODEL_PLACE = ARM.index("model")
RUN_PLACE = ARM.index("run")
PERSPECTIVE_PLACE = ARM.index("perspective")
HASH_LENGTH = 8
"""Number of a hash's characters that stand for it."""
RESUME = "the same command goes on with it"


def arm_runs(paths: Iterable[str]) -> tuple[dict[Arm, ArmRun], dict[str, str]]:
    """The log of each arm and data set, by the values of ARM (run 1) and the data set, in the
    paper's order.

    Where several can be used, run 1 is the one with the most conversations; of equals, that of the
    study with the most arms, then the earliest. Then why the other logs are not used, by log;
    second runs are not among them.

    Raises:
        NoLogs: There is no finished awareness log.
    """
    all_runs = runs(paths, METHODS, repeats=True)
    run_of_arm, unused_logs = arm_runs_of(all_runs, list(paths))
    first_runs = {arm: arm_run for arm, arm_run in run_of_arm.items() if arm[RUN_PLACE] == 1}
    return first_runs, unused_logs


def arm_runs_of(all_runs: Runs, paths: Sequence[str]) -> tuple[dict[Arm, ArmRun], dict[str, str]]:
    """`arm_runs` of these runs with all second runs, for messages under the paths as they were
    typed.

    A run that was asked otherwise (another grader, effort, answer limit …) is no second run: it is
    an arm of its own. The model of each is named with its settings that differ.
    """
    unused_logs = dict(all_runs.set_aside_reasons)
    runs_of_arm: dict[Arm, list[ArmRun]] = {}
    for run in sorted(all_runs.counted, key=lambda run: run.item_count, reverse=True):
        location = run.header.location
        if not run.finished:
            unused_logs[location] = run.why_unfinished
            continue
        if "dataset_sha256" not in (run.header.eval.metadata or {}):
            unused_logs[location] = "not a selfprobe log: it names no data set"
            continue
        try:
            arm_run = _arm_run(run)
        except UNREADABLE as error:
            unused_logs[location] = one_line(error)
            continue
        runs_of_arm.setdefault(arm_of(run.header), []).append(arm_run)

    if not runs_of_arm:
        folders = f" in {', '.join(paths)}" if paths else ""
        first_sentences = islice(missing(all_runs.counted, {}), 3)
        unfinished = "".join(f"; {sentence}" for sentence in first_sentences)
        raise NoLogs(
            f"no finished log of `awareness run`{folders}; "
            f"found {len(unused_logs)} other or unfinished logs{first_of(unused_logs)}{unfinished}"
        )

    # Arms that read one model's replies to one data set.
    arms_of_writer: dict[tuple[str, str], list[Arm]] = {}
    for arm in runs_of_arm:
        values = dict(zip([*ARM, "data"], arm, strict=True))
        writer = str(values["target"] or values["model"])
        arms_of_writer.setdefault((writer, str(values["data"])), []).append(arm)

    run_of_arm: dict[Arm, ArmRun] = {}
    for arms in arms_of_writer.values():
        has_third_person = any(arm[PERSPECTIVE_PLACE] == "third" for arm in arms)
        runs_of_arms = [runs_of_arm[arm] for arm in arms]
        ordered_arms = in_order(runs_of_arms, reads_replies=has_third_person)
        for arm, marked_runs in zip(arms, ordered_arms, strict=True):
            run_of_arm |= _numbered_runs(arm, marked_runs)
    order = sorted(run_of_arm, key=lambda arm: (METHODS.index(arm[0]), *map(str, arm[1:])))
    return {arm: run_of_arm[arm] for arm in order}, unused_logs


def _numbered_runs(arm: Arm, marked_runs: Sequence[tuple[ArmRun, str]]) -> dict[Arm, ArmRun]:
    """Runs of an arm by its values, with settings that differ in the model's name and the number of
    the run.
    """
    run_of_arm: dict[Arm, ArmRun] = {}
    mark_counts: Counter[str] = Counter()
    method, model, *further_values = arm[:RUN_PLACE]
    for arm_run, mark in marked_runs:
        mark_counts[mark] += 1
        model_name = f"{model}, {mark}" if mark else model
        numbered_arm = (method, model_name, *further_values, mark_counts[mark], arm[-1])
        run_of_arm[numbered_arm] = arm_run
    return run_of_arm


def _arm_run(run: Run) -> ArmRun:
    """A run's samples, each with a verdict or in error.

    Raises:
        InputError: It cannot be read, or was scored by another scorer.
    """
    samples = run.judged_samples()
    for sample in samples:
        scores = sample.summary.scores
        if scores and not sample.decisions:
            raise InputError(
                f"sample {sample.item}: expected a score of {task_of(run.header)}'s own scorer, "
                f"got {', '.join(scores)}; `inspect score --action append` keeps the one beside "
                "others"
            )
    return ArmRun(run, samples)


def missing(counted_runs: Sequence[Run], run_of_arm: Mapping[Arm, ArmRun]) -> Iterator[str]:
    """One sentence for each arm and data set that is not whole.

    Args:
        counted_runs: All runs of the five methods, newest first.
        run_of_arm: Runs from `arm_runs`.
    """
    unfinished_arms: set[Arm] = set()
    for run in counted_runs:
        log = run.header
        if log.status == "success" or "dataset_sha256" not in (log.eval.metadata or {}):
            continue
        arm = arm_of(log)
        if arm in run_of_arm or arm in unfinished_arms:
            continue
        unfinished_arms.add(arm)
        status = (
            "is running or was killed" if log.status == "started" else f"ended with {log.status}"
        )
        progress = f"after {_finished(run)} of {run.planned_samples} conversations"
        yield f"{arm_name(arm)} {status} {progress}; {RESUME}"

    # Methods of one model are asked about as many conversations as the largest of them.
    largest_counts: Counter[Arm] = Counter()
    for arm, arm_run in run_of_arm.items():
        largest_counts[arm[1:]] = max(largest_counts[arm[1:]], len(arm_run.samples))
    for arm, arm_run in run_of_arm.items():
        sample_count = len(arm_run.samples)
        planned_count = max(arm_run.run.planned_samples, largest_counts[arm[1:]])
        failed_count = sum(sample.summary.error is not None for sample in arm_run.samples)
        if sample_count < planned_count:
            invalidated = str(arm_run.run.invalidated)
            reason = f", since {invalidated}" if invalidated else ""
            yield (
                f"{arm_name(arm)} has {sample_count} of {planned_count} conversations{reason}; "
                f"{RESUME}"
            )
        elif failed_count:
            yield (
                f"{arm_name(arm)}: {failed_count} of {sample_count} conversations failed and have "
                f"no verdict (error); {RESUME}"
            )


def _finished(run: Run) -> int:
    """Number of samples that ended without an error; 0 where the log cannot be read."""
    try:
        return sum(sample.error is None for sample in run.read_summaries())
    except UNREADABLE:
        return 0


def arm_of(log: EvalLog) -> Arm:
    """Values, as the keys of `arm_runs`, that tell what a log of this suite measures; as a first
    run.
    """
    metadata = log.eval.metadata or {}
    target = target_of(log)
    return (
        task_of(log),
        log.eval.model,
        str(metadata.get("perspective") or "first"),
        str(metadata.get("context") or "first"),
        str(metadata.get("placebo") or ""),
        "" if target == log.eval.model else target,
        str(metadata.get("questions_sha256") or "")[:HASH_LENGTH],
        1,
        str(metadata["dataset_sha256"]),
    )


def arm_name(arm: Arm) -> str:
    """Name of an arm, as "binary of openai/a (third person)"."""
    return f"{arm[0]} of {arm[1]}{marks(arm)}"


def marks(arm: Sequence[object]) -> str:
    """Text that sets an arm apart from the plain one of its method and model: " (third person)", or
    "".

    Args:
        arm: The values of ARM, and what comes after them.
    """
    values = dict(zip(ARM, arm, strict=False))
    arm_marks = []
    if values["perspective"] == "third":
        arm_marks.append("third person")
    if values["target"]:
        arm_marks.append(f"reading {values['target']}")
    if values["placebo"]:
        arm_marks.append(f"placebo {values['placebo']}")
    if values["context"] == "full":
        arm_marks.append("full transcript")
    if values["wording"]:
        arm_marks.append(f"questions {values['wording']}")
    if values["run"] != 1:
        arm_marks.append(f"run {values['run']}")
    return "".join(f" ({mark})" for mark in arm_marks)
