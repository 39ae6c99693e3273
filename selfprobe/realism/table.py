"""From the judges' logs to their verdicts: which logs count, and what they say."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from inspect_ai.log import EvalLog

from selfprobe.errors import NoLogs
from selfprobe.logs import Identity, differing, first_of, runs, samples, titles
from selfprobe.scorers.decision import last_score
from selfprobe.scorers.realism_choice import Pick, pick
from selfprobe.solvers.sent import substitutes_in

TASK = "pairwise_realism"


@dataclass(frozen=True)
class Logged:
    """All that the judges said about one set of pairs."""

    picks: Mapping[str, Sequence[Pick]]
    """By judge."""
    texts: Mapping[str, str]
    """Of each conversation: "set: ID" and "real: ID"."""
    logs: Mapping[str, EvalLog]
    """By judge, the header of its log."""
    errors: Mapping[str, int]
    """By judge, the samples that ended in an error."""
    ignored: Mapping[str, str]
    """Log → why it is not used."""
    substitutes: Sequence[str] = ()
    """Judges in whose place another model answered; see `sent.substitutes_in`."""


def load(paths: Sequence[str], identities: Collection[Identity] | None = None) -> Logged:
    """The runs of the judges on the pairs, and with the settings, of the newest one.

    A judge that ran with several generation settings is there once for each, named by them.

    Args:
        paths: Logs, or folders of logs.
        identities: The runs that are wanted; None is all.

    Raises:
        NoLogs: There is no finished log of pairwise_realism.
    """
    there = runs(paths, (TASK,))
    there = there if identities is None else there.of(identities)
    aside = there.aside | {run.log: f"status {run.header.status}" for run in there.counted if not run.finished}
    if not there.finished:
        raise NoLogs(f"no finished log of {TASK} in {', '.join(paths)}{first_of(aside)}", aside)
    asked = there.finished[0].identity.asked
    alike = [run for run in there.finished if run.identity.asked == asked]
    aside |= {run.log: differing(run.identity, [alike[0].identity]) for run in there.finished if run not in alike}
    names = titles(run.identity for run in alike)
    logs = {names[run.identity]: run.header for run in alike}
    picks, texts, errors = dict[str, list[Pick]](), dict[str, str](), dict[str, int]()
    substitutes = list[str]()
    for judge, header in sorted(logs.items()):
        picks[judge], errors[judge] = [], 0
        read = samples(header.location)
        substitutes += substitutes_in(read)
        for sample in read:
            score = last_score(sample.scores)
            if sample.error or score is None:
                errors[judge] += 1
                continue
            mine = pick(score, sample.metadata)
            picks[judge].append(mine)
            if mine.kind == "set":
                texts |= {f"set: {mine.one}": sample.metadata["one"]["text"]}
                texts |= {f"real: {mine.two}": sample.metadata["two"]["text"]}
    return Logged(picks, texts, logs, errors, aside, substitutes)
