"""Which logs of an arm are runs of it again: those that were asked with the same settings.

And which logs read the same replies: those of one study do, since every method reads what the first one recorded. Two
runs of an arm read different ones, and what is held against one of them has to have read the same replies as it.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from inspect_ai.log import EvalLog, EvalSample, EvalSampleSummary, read_eval_log_samples_by_id
from inspect_ai.model import ModelConfig

from selfprobe.header import roles_of
from selfprobe.logs import HOW_CALLED, UNREADABLE, item_count, samples
from selfprobe.references import whole
from selfprobe.safe import concealed, masked
from selfprobe.solvers.record import record_of

LOOKED = 16
"""Conversations that are looked at: reading all takes ten times as long as all else that a comparison does."""
REPLY_TOKENS = "reply_tokens"

Place = tuple[str | int, int]
"""Sample id and epoch."""


@dataclass(frozen=True)
class Run:
    """A log in use."""

    header: EvalLog
    samples: list[EvalSampleSummary]
    read: str = ""
    """Whose replies it read: equal in logs of one study; "" where nobody looked."""


def in_order(arms: Sequence[Sequence[Run]], *, look: bool) -> list[list[tuple[Run, list[str]]]]:
    """The runs of each arm, the one that stands for it first, each with how it was asked otherwise than that one.

    First is the run with the most conversations; of equals the one that read the replies that most arms read (a study's
    own, not a method that was asked again); of equals one with the settings of the newest; of those the earliest.

    Args:
        arms: All that read one model's replies to one data set.
        look: Whether the replies are looked at where each arm has one run.
    """
    every = [run for runs in arms for run in runs]
    if look or any(len(runs) > 1 for runs in arms):
        read = grouped({run.header.location: run.samples for run in every})
        arms = [[replace(run, read=f"replies {read[run.header.location]}") for run in runs] for runs in arms]
    made = {run.read: run.header for runs in arms for run in runs if _records(run)}
    readers = Counter(read for runs in arms for read in {run.read for run in runs})
    return [
        _in_order(runs, readers, [settings_of(r.header, r.header if _records(r) else made.get(r.read)) for r in runs])
        for runs in arms
    ]


def _records(run: Run) -> bool:
    """Whether it asked for the replies that it read."""
    return not run.header.eval.task_args.get("target_log")


def _in_order(
    runs: Sequence[Run], readers: Mapping[str, int], asked: Sequence[Mapping[str, str]]
) -> list[tuple[Run, list[str]]]:
    created = [str(run.header.eval.created) for run in runs]
    newest = asked[created.index(max(created))]
    ranks = [
        (-item_count(run.header), -readers[run.read], bool(apart(of, newest)), at)
        for run, of, at in zip(runs, asked, created, strict=True)
    ]
    order = sorted(range(len(runs)), key=ranks.__getitem__)
    return [(runs[at], apart(asked[at], asked[order[0]])) for at in order]


def grouped(logs: Mapping[str, Sequence[EvalSampleSummary]]) -> dict[str, int]:
    """The number of the group that each log is of; logs whose common conversations have equal replies are of one.

    Two runs that gave the same replies throughout, as a model at temperature 0 may, are of one group too.

    Args:
        logs: The samples of each log, by location; all of one data set and one writer of replies.
    """
    places = {log: [(one.id, one.epoch) for one in rows if one.error is None] for log, rows in logs.items()}
    held = Counter(place for of in places.values() for place in of)
    order = {place: at for at, place in enumerate(sorted(held, key=lambda place: (-held[place], str(place))))}
    found: dict[str, int] = {}
    groups: list[dict[Place, str]] = []
    for log in sorted(places, key=lambda log: len(places[log]), reverse=True):
        replies = _replies(log, sorted(places[log], key=order.__getitem__)[:LOOKED])
        found[log] = next((at for at, group in enumerate(groups) if _same(replies, group)), len(groups))
        if found[log] == len(groups):
            groups.append({})
        groups[found[log]] |= replies
    return found


def _same(replies: Mapping[Place, str], group: Mapping[Place, str]) -> bool:
    common = replies.keys() & group.keys()
    return bool(common) and all(replies[place] == group[place] for place in common)


def _replies(log: str, places: Sequence[Place]) -> dict[Place, str]:
    """Each reply with all that was recorded of it; none of a log that cannot be read."""
    try:
        return {(one.id, one.epoch): act for one in _read(log, places) if (act := _act(one))}
    except UNREADABLE:
        return {}


def _read(log: str, places: Sequence[Place]) -> list[EvalSample]:
    if log.endswith(".json"):
        return [one for one in samples(log) if (one.id, one.epoch) in places]
    return [whole(one) for one in read_eval_log_samples_by_id(log, places)]


def _act(sample: EvalSample) -> str | None:
    reply = record_of(sample).acts.get("reply")
    return reply.model_dump_json() if reply else None


def settings_of(log: EvalLog, recorded: EvalLog | None) -> dict[str, str]:
    """What two runs of an arm have in common; the data set's hash in the version is that of the arm.

    Args:
        log: A run's.
        recorded: That of the run whose replies it read, which says how long they could be; None where it is not there.
    """
    spec, about = log.eval, log.eval.metadata or {}
    own = ModelConfig(
        model=spec.model, config=spec.model_generate_config, base_url=spec.model_base_url, args=spec.model_args
    )
    roles = roles_of(log)
    models = {"": own} | {
        f" of {role if len(bound) == 1 else one.model}": one for role, bound in roles.items() for one in bound
    }
    given: dict[str, object] = {
        role: ",".join(one.model for one in bound) for role, bound in roles.items() if role != "target"
    }
    for of, model in models.items():
        given |= {f"model argument {name}{of}": value for name, value in concealed(model.args).items()}
        given |= {f"base_url{of}": model.base_url and masked(model.base_url)}
        given |= {f"{name}{of}": value for name, value in model.config.model_dump().items() if name not in HOW_CALLED}
    given |= {name: spec.task_args.get(name) for name in ("effort", "answer_tokens")}
    given |= {"decisions": about.get("decisions"), "version": str(spec.task_version).partition("+")[0]}
    told = {name: str(value) for name, value in given.items() if value is not None}
    if recorded is not None:
        told[REPLY_TOKENS] = str(recorded.eval.task_args.get(REPLY_TOKENS))
    return told


def apart(ours: Mapping[str, str], theirs: Mapping[str, str]) -> list[str]:
    """How two runs were asked differently; of a limit of replies that one of them does not tell, nothing."""
    unknown = {REPLY_TOKENS} - (ours.keys() & theirs.keys())
    names = [name for name in sorted(ours.keys() | theirs.keys() - unknown) if ours.get(name) != theirs.get(name)]
    return [f"{name} {ours.get(name)}, there {theirs.get(name)}" for name in names if name not in unknown]
