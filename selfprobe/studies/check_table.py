"""What `selfprobe check` reads of a run: one table of item, epoch and key, with a row wherever a
score belongs.
"""

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass

from inspect_ai.scorer import Score

from selfprobe.logs import Run
from selfprobe.logs.decision import Decision
from selfprobe.logs.judged import is_failed
from selfprobe.logs.reducers import known_reducer, parts_of, reducers_of


@dataclass(frozen=True)
class TableRow:
    """Value of one sample at one key, or the reason why there is none."""

    item: str
    epoch: int
    decision: Decision
    failed: bool = False
    """True if the sample ended in an error, and was not scored."""


def judged_table(run: Run) -> list[TableRow]:
    """The rows of a run: every valid sample has one for each key that it should have, also without
    a score.
    """
    return [
        TableRow(sample.item, sample.epoch, decision, sample.failed)
        for sample in run.judged_samples(every_key=True)
        for decision in sample.decisions
    ]


def header_disagreement(run: Run) -> str:
    """Sentence on a scorer of which the log's header counts fewer scored samples than the log has,
    or "".

    Then somebody edited the log, or left samples out of its metrics in a way that is not known
    here.
    """
    header = run.header
    reducers = reducers_of(header)
    needs_several_epochs = any(
        parts_of(reducer)[0] in ("pass_at", "pass_k", "majority") for reducer in reducers
    )
    is_known = all(known_reducer(reducer) is not None for reducer in reducers)
    if header.results is None or header.invalidated or needs_several_epochs or not is_known:
        return ""
    places_by_name = defaultdict[str, set[tuple[str, int]]](set)
    for sample in run.summaries:
        if is_failed(sample, header):
            continue
        epoch = (
            sample.epoch if header.eval.config.epochs_reducer == [] else 1
        )  # else one value an item
        for scorer, score in (sample.scores or {}).items():
            for name in _scored_names(scorer, score):
                places_by_name[name].add((str(sample.id), epoch))
    for logged in header.results.scores:
        name = logged.scorer if logged.name == logged.scorer else f"{logged.scorer}.{logged.name}"
        scored_count = len(places_by_name[name])
        if logged.scored_samples is not None and logged.scored_samples < scored_count:
            return (
                f"the log's header counts {logged.scored_samples} scored samples of {name}, and {scored_count} have a "
                "score; score it again (inspect score)"
            )
    return ""


def _scored_names(scorer: str, score: Score) -> list[str]:
    """Names under which Inspect counts a score as scored: the scorer's, and of a dict those of its
    keys.
    """
    value = score.value
    if value != value:
        return []
    names = [scorer]
    if isinstance(value, Mapping):
        names += [f"{scorer}.{key}" for key, part in value.items() if part == part]
    return names
