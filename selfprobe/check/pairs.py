"""Which run of a baseline a run is held against, and why one cannot be."""

from collections import defaultdict
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, field

from selfprobe.check.kept import UNBOUND, Kept
from selfprobe.safe import concealed

Pair = tuple[Kept, Kept]


@dataclass(frozen=True)
class Paired:
    """Runs before and after."""

    pairs: list[Pair] = field(default_factory=list)
    refused: dict[str, str] = field(default_factory=dict)
    """A run's name → why it is not compared."""
    notes: list[str] = field(default_factory=list)
    """What a reader should know, and no reason to refuse."""


def paired(before: Sequence[Kept], after: Sequence[Kept]) -> Paired:
    """Hold each run of a baseline against the one of the same task, arguments and model; a single other model counts.

    Args:
        before: Of the baseline.
        after: Of the logs.
    """
    out, left, there = Paired(), list(before), list(after)
    for same in _SAME:
        groups = defaultdict[Hashable, tuple[list[Kept], list[Kept]]](lambda: ([], []))
        for side, runs in enumerate((left, there)):
            for run in runs:
                groups[same(run)][side].append(run)
        for old, new in groups.values():
            if len(old) == len(new) == 1:
                _hold(old[0], new[0], out)
                left.remove(old[0])
                there.remove(new[0])
    for run in left:
        others = sorted(other.name for other in there if other.task == run.task)
        if (twice := others.count(run.name)) > 1:
            out.refused[run.name] = (
                f"the logs have {twice} runs of it with other arguments or samples, and one is compared; give its log"
            )
            continue
        of = ", ".join([*others[:3], *([f"{len(others) - 3} more"] if len(others) > 3 else [])]) or "none"
        out.refused[run.name] = f"the baseline has it and the logs lack it; of {run.task} they have {of}"
    named = {run.task for run in before}
    for run in there:
        if run.task not in named or not any(other.task == run.task for other in left):
            out.notes.append(f"{run.name} is not in the baseline")
    return out


_SAME: tuple[Callable[[Kept], Hashable], ...] = (
    lambda run: (run.task, repr(run.args), run.model, run.target, repr(concealed(run.model_args))),
    lambda run: (run.task, repr(run.args), run.model, run.target),
    lambda run: (run.task, repr(run.args), run.model),
    lambda run: (run.task, repr(run.args), run.model == run.target),
    lambda run: (run.task, run.model),
    lambda run: run.task,
)
"""From the closest: what two runs share. The last ones find the pair whose difference is worth a word."""


def told_apart(runs: Sequence[Kept]) -> list[str]:
    """The task of each run, with its arguments where others of the same task and model have other ones."""
    same = defaultdict[Hashable, set[str]](set)
    for run in runs:
        same[run.task, run.model, run.target].add(repr(run.args))
    given = [", ".join(f"{name}={value}" for name, value in sorted(run.args.items())) or "defaults" for run in runs]
    several = [len(same[run.task, run.model, run.target]) > 1 for run in runs]
    return [f"{run.task} ({told})" if more else run.task for run, told, more in zip(runs, given, several, strict=True)]


def _hold(old: Kept, new: Kept, out: Paired) -> None:
    if why := refusal(old, new):
        out.refused[new.name] = why
        return
    out.pairs.append((old, new))
    if old.selfprobe != new.selfprobe:
        out.notes.append(
            f"{new.name}: the baseline is of selfprobe {old.selfprobe}, the logs are of {new.selfprobe}; the task's "
            "version is the same"
        )
    if old.model != new.model:
        out.notes.append(f"{new.name}: the baseline's model is {old.model}")
    if old.epochs != new.epochs:
        out.notes.append(
            f"{new.name}: the baseline has {old.epochs} epoch{'s' * (old.epochs != 1)} of an item, the logs "
            f"{new.epochs}; what is compared is each item's mean"
        )
    if not new.metric and (more := sorted(keys_of(new) - keys_of(old))):
        out.notes.append(f"{new.name}: {', '.join(more)} is not in the baseline")
    out.notes.extend(f"{new.name}: not compared: {why}" for why in new.left_out.values())


def refusal(old: Kept, new: Kept) -> str:
    """Why two runs say nothing about a change of the model, or ""."""
    if old.version != new.version:
        return f"the baseline is of task version {old.version}, the logs are of {new.version}; save a new baseline"
    if old.args != new.args:
        names = [name for name in sorted({*old.args, *new.args}) if old.args.get(name) != new.args.get(name)]
        told = ", ".join(f"{n} was {_told(old, n)} and is {_told(new, n)}" for n in names)
        return f"asked with other task arguments: {told}"
    if old.data != new.data:
        return f"another data set: its hash was {old.data[:12] or 'none'} and is {new.data[:12] or 'none'}"
    if changed := [item for item in old.inputs.keys() & new.inputs.keys() if old.inputs[item] != new.inputs[item]]:
        return f"{len(changed)} of {len(old.inputs)} samples ask something else under the same id, as {min(changed)}"
    if changed := [item for item in old.answers.keys() & new.answers.keys() if old.answers[item] != new.answers[item]]:
        return (
            f"{len(changed)} of {len(old.answers)} samples have another target or other options, as {min(changed)}: "
            "the same reply is scored otherwise; save a new baseline"
        )
    if old.plan != new.plan:
        return "its solvers or their arguments changed (a prompt template among them)"
    if why := _scored_otherwise(old, new):
        return f"{why}: the same reply is scored otherwise; save a new baseline"
    if old.prompts and new.prompts and not {*old.prompts} & {*new.prompts}:
        return "the prompts changed, and the task's version did not; save a new baseline"
    for less, more, told in ((new, old, "the baseline has numbers there"), (old, new, "that is the baseline's")):
        if odd := [why for key, why in less.left_out.items() if key in keys_of(more)]:
            return f"{odd[0]}; {told}"
    if not new.metric and (gone := sorted(keys_of(old) - keys_of(new))) and keys_of(new):
        return f"the logs lack the score {gone[0]}, which the baseline has; they have {', '.join(sorted(keys_of(new)))}"
    if lacking := old.items.keys() - new.items.keys():
        return (
            f"the logs have {len(old.items) - len(lacking)} of the baseline's {len(old.items)} items (without "
            f"{min(lacking)}); run all of them, or save a baseline of fewer"
        )
    return ""


def _scored_otherwise(old: Kept, new: Kept) -> str:
    """Another grader, or another argument of a scorer that both have; "" where there is none."""
    if old.roles and new.roles:
        for role in sorted({*old.roles, *new.roles}):
            was, now = (run.roles.get(role, UNBOUND) for run in (old, new))
            if was != now:
                return f"another model has the role {role}, it was {was} and is {now}"
    changed = [name for name in sorted({*old.scorers} & {*new.scorers}) if old.scorers[name] != new.scorers[name]]
    return f"the arguments of its scorer {changed[0]} changed (its grader or a template among them)" if changed else ""


def keys_of(run: Kept) -> set[str]:
    """Of all values of a run, those that are unscored too."""
    return {key for cell in run.items.values() for key in cell}


def _told(run: Kept, name: str) -> str:
    return repr(run.args[name]) if name in run.args else "left out"
