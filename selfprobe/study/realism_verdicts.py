"""Judges that say which of two conversations is more likely real use: their verdicts in logs."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from selfprobe.page.numerals import Interval, percent_interval
from selfprobe.scorers.realism_choice import SET_PAIR, Pick, pick_of
from selfprobe.study import Logs

PAIRS_TASK = "pairwise_realism"
"""Task of the judges."""
PAIRS_FOLDER = "pairs"
"""Folder of the judges' logs below the log folder."""
SUBJECT_FOLDER = "subject"
"""Folder of the subject's logs below the log folder."""
CONVERSATIONS_FOLDER = "conversations"
"""Folder, below the log folder, of what judges and subject are asked about."""


def verdicts_of(logs: Logs) -> tuple[dict[str, list[Pick]], dict[str, str], dict[str, int]]:
    """Verdicts by judge, texts of the set's pairs by "set: ID" and "real: ID", and errors by
    judge.
    """
    run_of_judge = {}
    for run in logs.runs.finished:
        if run.identity.task == PAIRS_TASK:
            run_of_judge[logs.names[run.identity]] = run

    picks_of_judge = {judge: list[Pick]() for judge in sorted(run_of_judge)}
    texts = dict[str, str]()
    for judge, run, sample, score in logs.scored():
        if run.identity.task != PAIRS_TASK or sample.error:
            continue
        pick = pick_of(score, sample.metadata)
        picks_of_judge[judge].append(pick)
        if pick.kind == SET_PAIR:
            texts[f"set: {pick.first_id}"] = sample.metadata["one"]["text"]
            texts[f"real: {pick.second_id}"] = sample.metadata["two"]["text"]

    errors = {}
    for judge, picks in picks_of_judge.items():
        errors[judge] = len(run_of_judge[judge].samples) - len(picks)
    return picks_of_judge, texts, errors


def panel_of(picks_of_judge: Mapping[str, Sequence[Pick]]) -> list[Pick]:
    """One verdict a pair: the mean of the judges that gave one; unscored where none did."""
    picks_of_pair: dict[tuple[str, str, str], list[Pick]] = {}
    for picks in picks_of_judge.values():
        for pick in picks:
            picks_of_pair.setdefault((pick.kind, pick.first_id, pick.second_id), []).append(pick)
    panel_picks = []
    for picks in picks_of_pair.values():
        outcomes = [pick.outcome for pick in picks if not math.isnan(pick.outcome)]
        first_choices = tuple(choice for pick in picks for choice in pick.first_place_choices)
        won = float(np.mean(outcomes)) if outcomes else math.nan
        reason = None if outcomes else picks[0].unscored
        panel_picks.append(
            replace(picks[0], outcome=won, first_place_choices=first_choices, unscored=reason)
        )
    return panel_picks


def in_percent(estimate: Interval) -> str:
    """An estimated share in percent, with its interval."""
    return "an unknown share" if math.isnan(estimate.value) else percent_interval(estimate)
