"""Verdicts in logs of the preference tasks, which a probe's run is compared with."""

from collections import Counter
from collections.abc import Iterable, Mapping

from inspect_ai.log import EvalLog

from selfprobe.data.public_pairs import PairSet, name_and_place
from selfprobe.logs import Run, decision_columns, runs
from selfprobe.page.plots import cut_name
from selfprobe.scorers.preference import VERDICT

SINGLE_TEXT_TASKS = ("direct_scoring", "g_eval")
"""Tasks that score each text alone, so that no text has a place."""
PREFERENCE_TASKS = ("pairwise_preference", *SINGLE_TEXT_TASKS, "preference_probe")

Margins = dict[str, dict[str, dict[str, float]]]
"""Data set → method → pair id → margin, > 0 where text 1 is preferred; pairs without a verdict are
not there.
"""


def logged_margins(paths: Iterable[str], sets: Mapping[str, PairSet]) -> Margins:
    """Verdicts in all finished logs under `paths`; of one task, model and arguments on a data set
    the newest counts.

    A method is named by its task and model, in full and with its arguments where that is needed to
    tell two apart.

    Raises:
        ValueError: No finished log is of these tasks and data sets, or a log is of other pairs than
            the run.
    """
    typed_paths = list(paths)
    finished_runs = runs(typed_paths, PREFERENCE_TASKS).finished
    runs_of_set: dict[str, list[Run]] = {}
    for run in reversed(finished_runs):  # the newest last
        set_name = data_set_name(run.header)
        if set_name in sets:
            runs_of_set.setdefault(set_name, []).append(run)
    if not runs_of_set:
        logged_sets = sorted({data_set_name(run.header) for run in finished_runs})
        raise ValueError(
            f"no finished log of {', '.join(PREFERENCE_TASKS)} on {', '.join(sets)} "
            f"in {', '.join(typed_paths)}; "
            f"found {len(finished_runs)} logs, of these tasks on: "
            f"{', '.join(logged_sets) or 'none'}"
        )
    margins: Margins = {}
    for set_name, set_runs in runs_of_set.items():
        uses_of_name = Counter(name for run in set_runs for name in set(_method_names(run)))
        for run in set_runs:
            names = _method_names(run)
            unique_names = [name for name in names if uses_of_name[name] == 1]
            method = unique_names[0] if unique_names else names[-1]
            margins.setdefault(set_name, {})[method] = _margins_of_run(
                run, set_name, sets[set_name]
            )
    return margins


def setting_texts(run: Run) -> list[str]:
    """Texts on how it was asked, where that is not the usual way."""
    identity = run.identity
    settings = (*identity.args, *identity.config, *identity.roles)
    return [f"{name}={value}" for name, value in settings]


def _method_names(run: Run) -> tuple[str, str, str]:
    """Names of what was run, the shortest first; the last one distinguishes all methods."""
    task, model = run.identity.task, run.identity.model
    full_name = ", ".join([task, model, *setting_texts(run)])
    return f"{task}, {cut_name(model)}", f"{task}, {model}", full_name


def data_set_name(log: EvalLog) -> str:
    """The name that `public_pairs.load_pairs` gives to what a log's task was given."""
    return name_and_place(str((log.eval.metadata or {}).get("dataset", "")))[0]


def _margins_of_run(run: Run, set_name: str, pair_set: PairSet) -> dict[str, float]:
    """Pair id → mean margin over epochs, of the pairs of the set that have one.

    Raises:
        ValueError: The log is of other pairs.
    """
    pair_of_id = {pair.id: pair for pair in pair_set.pairs}
    run_samples = run.read_summaries()
    texts_of_item = {str(sample.id): (sample.metadata or {}).get("shown") for sample in run_samples}
    columns = decision_columns(run, run_samples)
    rows = zip(columns["key"], columns["item"], columns["truth"], columns["score"], strict=True)
    margins_of_pair: dict[str, list[float]] = {}
    for key, item, truth, margin in rows:
        if key != VERDICT or item not in pair_of_id:
            continue
        pair = pair_of_id[item]
        if texts_of_item[item] != pair.prompt_digest:
            raise ValueError(
                f"{run.log} is of other pairs: pair {item} of {set_name} has other texts there. "
                "Give logs of the same data, asked in the same words (question, item)"
            )
        if truth != (pair.label and str(pair.label)):
            raise ValueError(
                f"{run.log} is of other pairs: in {set_name}, pair {item} has label {pair.label}, "
                f"in the log {truth}. Give logs of the same data"
            )
        if margin is not None:
            margins_of_pair.setdefault(item, []).append(margin)
    return {item: sum(margins) / len(margins) for item, margins in margins_of_pair.items()}
