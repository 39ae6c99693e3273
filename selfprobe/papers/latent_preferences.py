"""Latent-preference probes ("Improving Preference Extraction In LLMs"): its tables and figures from
the folders of probe runs, one a model.

    selfprobe paper latent-preferences probes/paper004/* --out out/latent-preferences

No model is asked and nothing is fitted: every number is one of a run's tables, a mean of such, or a
count of them. The paper's figures are pictures without numbers in the text; its tables stand in
`latent_preferences_printed`.

What a run itself makes stands with the run: fine-tuned judges (Figure 3's bars, §5.2, Appendix D) in
`selfprobe/probes/finetune.py`, a direction taken out (Appendix B) in `probes/ablate.py`, halves and
fits (§3, §4.4) in `probes/fit.py`, prompts and Table 3 (§4.1.1, Appendix E) in
`selfprobe/data/pairs.py`, data sets (§4.1) in `data/public_pairs.py`, models (§4.2) in
`configs/paper004.yaml`.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, Protocol

import pandas as pd

from selfprobe.errors import NoLogs
from selfprobe.page import PROBES, Block, Page, Picture, interval_text, number
from selfprobe.papers.exhibit import Exhibit, PaperResults, paper_page
from selfprobe.papers.latent_preferences_printed import printed_changes, printed_transfers
from selfprobe.papers.probe_run_pictures import change_pictures, depth_pictures, size_pictures
from selfprobe.papers.probe_run_tables import (
    EACH_WAY_OF_ASKING,
    SETS_OF_GROUPS,
    SIX_DATA_SETS,
    case_counts,
    case_table,
    depth_table,
    drops,
    group_table,
    high_transfer_table,
    mean_gaps,
    paired_transfer_table,
    rise,
    small_above_large,
)
from selfprobe.stats.estimate import Estimate
from selfprobe.studies.probe_compare import (
    ASPECTS_NOTES,
    ModelRun,
    f1_by_method,
    joined,
    read_runs,
    score_table,
)
from selfprobe.studies.probe_figures import (
    PROBE_KINDS,
    adversarial_pictures,
    component_pictures,
    cosine_pictures,
    stem_of,
    transfer_pictures,
)
from selfprobe.studies.probe_page import LEAK_SENTENCE, text_table
from selfprobe.study.local import user_errors_as_input_errors

ProbeRuns = Sequence[ModelRun]
FIRST_SET = "mt_bench"
"""Data set of Figures 1, 6 and 7, and of Table 2."""
DRAWN_KINDS = (*PROBE_KINDS, "prompting")
"""Methods whose F1 is quoted beside the paper's number."""
CENTRE_WORDS: Mapping[str, str] = {
    "source": "differences less the means of the set trained on (columns tested_ hold the others)",
    "tested": "differences less the means of the set tested (columns source_ hold the others)",
}
"""Centre → how states of another data set were centred."""
FIGURES_OF_SET: Mapping[str, str] = {
    name: f"figures {12 + place} and {18 + place}" for place, name in enumerate(SETS_OF_GROUPS)
}
"""Data set → the paper's figures that show it by size."""


def latent_preferences_page(folders: Sequence[str]) -> Page:
    """The page of what the runs in these folders hold of the paper.

    Args:
        folders: Folders of `probe run`, one a model, or FAMILY=FOLDER.

    Raises:
        InputError: A folder holds no finished run, or its run cannot be compared with the others.
    """
    with user_errors_as_input_errors("Nothing was written."):
        runs = read_runs(folders)
        return paper_page(PROBES, latent_preferences_results(runs))


def latent_preferences_results(runs: ProbeRuns) -> PaperResults:
    """Every table and figure that these runs can make, and why the others are missing."""
    makers: Mapping[str, Callable[[ProbeRuns], Exhibit]] = {
        "§4.4 (halves)": halves_of_4_4,
        "Figure 1 (left)": figure1_left,
        "Figure 1 (right)": figure1_right,
        "§5 (human agreement)": human_agreement,
        "Figures 2 and 3": figures2_and_3,
        "§5.1 and §5.2 (cases)": cases_of_5_1_and_5_2,
        "Figure 2 (small models)": small_models_of_figure2,
        "Table 1": table1,
        "§5.3 (generality)": generality_of_5_3,
        "Figure 5": figure5,
        "Figures 4 and 8 to 11": figures4_and_8_to_11,
        "§5.4 (drops)": drops_of_5_4,
        "Figures 6 and 7": figures6_and_7,
        "Appendix A": appendix_a,
        "Table 2": table2,
        "Figures 12 to 23": figures12_to_23,
    }
    exhibits = list[Exhibit]()
    missing = dict[str, str]()
    for name, make in makers.items():
        try:
            exhibits.append(make(runs))
        except NoLogs as error:
            missing[name] = str(error)
    return PaperResults(exhibits, missing, models=[run.model for run in runs])


# ---- the halves (§4.4)


def halves_of_4_4(runs: ProbeRuns) -> Exhibit:
    """§4.4: what the paper's halves leak.

    Paper: random halves of pairs, so that one question is in both. Here: F1 on the same states by
    halves of questions (preset strict), of the last block alone.
    """
    strict = _filled(joined(runs, "strict"), "--preset paper")
    return Exhibit(
        "§4.4 (halves)",
        "F1 by halves of questions",
        "random halves of pairs",
        "; ".join(
            f"{dataset}: {_f1_texts(scores)}"
            for dataset, scores in strict.groupby("dataset", sort=False)
        ),
        tables={"strict": strict},
        remarks=[LEAK_SENTENCE],
    )


# ---- MT-Bench (Figure 1, §5)


def figure1_left(runs: ProbeRuns) -> Exhibit:
    """Figure 1, left (§1): the first two components of contrast differences, coloured by preference.

    Paper: a drawing, of its 70B model on MT-Bench. Here: fitted on the training half of the first
    split, all pairs shown, a panel a model and data set.
    """
    components = _filled(joined(runs, "components"), "components")
    pictures = _pictures_of_each(
        components, "dataset", "components", partial(component_pictures, by="model")
    )
    first_rows = components.drop_duplicates(["model", "dataset"])
    share_texts = [
        f"{row.model} on {row.dataset} {number(row.share_first)}" for row in first_rows.itertuples()
    ]
    return Exhibit(
        "Figure 1 (left)",
        "first two components of contrast differences",
        "pairs of MT-Bench along two components, apart by preference (a drawing, 70B)",
        f"share of the variance along the first: {', '.join(share_texts)}",
        tables={"components": components},
        pictures=pictures,
    )


def figure1_right(runs: ProbeRuns) -> Exhibit:
    """Figure 1, right (§5): F1 on MT-Bench by the size of the model.

    Paper: curves of two families; both probes about .8 (§5). Here: weighted F1 with intervals.
    """
    scores = score_table(runs)
    scores = _filled(scores[scores.dataset == FIRST_SET], f"--datasets {FIRST_SET}")
    return Exhibit(
        "Figure 1 (right)",
        "F1 on MT-Bench by size",
        "both probes about .8 (§5), above asking (curves)",
        _f1_texts(scores),
        tables={"figure1-right": scores.reset_index(drop=True)},
        pictures=_size_pictures(scores, f"{FIRST_SET} (figure 1, right)", "size", FIRST_SET),
        remarks=_size_gaps(runs),
    )


def human_agreement(runs: ProbeRuns) -> Exhibit:
    """§5: how often two people agree on MT-Bench.

    Paper: 80 %, quoted from MT-Bench's own paper. Here: of each two judges who both named a winner,
    the share that named the same one, with an interval by question.
    """
    columns = ["dataset", "humans_agree", "humans_low", "humans_high"]
    agreement = joined(runs, "data").reindex(columns=columns)
    agreement = agreement.dropna(subset=["humans_agree"]).drop_duplicates("dataset")
    agreement = _filled(
        agreement, f"--datasets {FIRST_SET}, from its own source, with single votes"
    )
    texts = [f"{row.dataset} {number(row.humans_agree)}" for row in agreement.itertuples()]
    return Exhibit(
        "§5 (human agreement)",
        "how often two people agree",
        "80 % on MT-Bench",
        f"share of pairs of judges who agree: {', '.join(texts)}",
        tables={"human-agreement": agreement.reset_index(drop=True)},
    )


# ---- six data sets by size (Figures 2, 3, 12 to 23; §5.1, §5.2)


def figures2_and_3(runs: ProbeRuns) -> Exhibit:
    """Figures 2 and 3 (§5.1, §5.2): F1 by size, the mean over the data sets of text quality and of common sense.

    Paper: curves of both probes and of three ways of asking; bars of fine-tuned judges (Gemma 2).
    Here: unweighted means with intervals, which take the data sets as independent.
    """
    groups = _filled(group_table(runs), f"--datasets {','.join(SETS_OF_GROUPS)}")
    pictures = list[Picture]()
    blocks = list[Block]()
    for group, scores in groups.groupby("group", sort=False):
        pictures += _size_pictures(scores, str(group), "means", group)
        blocks += [str(group), text_table(f1_by_method(scores))]
    aspects = runs[0].state["settings"].get("aspects", "together")
    return Exhibit(
        "Figures 2 and 3",
        "mean F1 by size, of text quality and of common sense",
        "probes above direct scoring, G-Eval and pairwise comparison (curves); judges (bars)",
        "; ".join(
            f"{group}: {_f1_texts(scores)}" for group, scores in groups.groupby("group", sort=False)
        ),
        tables={"groups": groups},
        pictures=pictures,
        blocks=blocks,
        remarks=[
            "The mean over the data sets of a group; its interval takes them as independent.",
            ASPECTS_NOTES[aspects],
            *mean_gaps(groups),
            *_size_gaps(runs),
        ],
    )


def figures12_to_23(runs: ProbeRuns) -> Exhibit:
    """Figures 12 to 23 (Appendix F): F1 by size on each data set, both probes.

    Paper: a curve a family and data set. Here: the same with intervals, and beside it the controls
    and the baselines of §4.3: pairwise comparison (prompting), direct scoring, G-Eval.
    """
    scores = score_table(runs)
    pictures = list[Picture]()
    for dataset, set_scores in scores[scores.dataset != FIRST_SET].groupby("dataset", sort=False):
        title = str(dataset)
        if title in FIGURES_OF_SET:
            title = f"{dataset} ({FIGURES_OF_SET[title]})"
        pictures += _size_pictures(set_scores, title, "size", dataset)
    set_names = ", ".join(dict.fromkeys(scores.dataset))
    return Exhibit(
        "Figures 12 to 23",
        "F1 by size on each data set",
        "supervised (12 to 17) and unsupervised probes (18 to 23) of six data sets (curves)",
        f"F1 with intervals of {set_names}",
        tables={"scores": scores},
        pictures=pictures,
        remarks=_size_gaps(runs),
    )


def cases_of_5_1_and_5_2(runs: ProbeRuns) -> Exhibit:
    """§5.1 and §5.2: in how many cases (a model on a data set) a probe is above asking, and the
    supervised probe above the other one.

    Paper: above asking in all cases but one (§5.1); supervised above unsupervised "often" (§5.2),
    in all cases by the caption of Figure 3. Here: counts of numbers, and of paired intervals, on
    the paper's six data sets and on all.
    """
    cases = _filled(case_table(runs), f"--datasets {','.join(SETS_OF_GROUPS)}")
    f1_cases = cases[cases.metric == "f1"].drop(columns="metric")
    comparisons = {
        ("unsupervised", EACH_WAY_OF_ASKING): "unsupervised above each way of asking",
        ("supervised", "unsupervised"): "supervised above unsupervised",
    }
    texts = list[str]()
    for row in f1_cases[f1_cases.data_sets == SIX_DATA_SETS].itertuples():
        if (row.probe, row.against) in comparisons:
            words = comparisons[row.probe, row.against]
            texts.append(f"{words} in {row.above} of {row.cases} cases")
    return Exhibit(
        "§5.1 and §5.2 (cases)",
        "in how many cases a probe is above asking, and above the other probe",
        "above asking in all cases but one; supervised above unsupervised “often” (§5.2), “in all "
        "cases” (caption of Figure 3)",
        "; ".join(texts) or "no case of the paper's six data sets",
        tables={"cases": cases},
        blocks=[text_table(f1_cases)],
        remarks=[
            "A case is a model on a data set: in how many the probe's number is the larger one "
            "(above), and in how many the 95 % interval of the paired difference says so (shown "
            "above, shown below).",
            "The paper counts its six data sets of text quality and common sense, against direct "
            "scoring, G-Eval and pairwise comparison; “each way of asking” has to be above all that "
            "were asked.",
        ],
    )


def small_models_of_figure2(runs: ProbeRuns) -> Exhibit:
    """Figure 2, caption: a smaller model's probe against a larger model's own answers, within a
    family.

    Paper: "almost always" above, in words. Here: each two models of a family on a data set; the
    interval takes both scores as independent.
    """
    comparisons = _filled(small_above_large(score_table(runs)), "two models of a family")
    counts = case_counts(comparisons)
    return Exhibit(
        "Figure 2 (small models)",
        "a smaller model's probe against a larger model's own answers",
        "“almost always” above (caption)",
        _count_texts(counts),
        tables={"small_above_large": comparisons},
        blocks=[text_table(counts)],
        remarks=[
            "Each two models of a family on a data set; the intervals take both as independent."
        ],
    )


# ---- generality (Table 1, §5.3, Figure 5)


def table1(runs: ProbeRuns) -> Exhibit:
    """Table 1 (§5.3): F1 of the probes of one data set on another.

    Paper: six data sets × six, Llama 3.1 70B, unsupervised .70 to .99 (table1-printed). Here: each
    model, with intervals; pairs whose question the probe has learnt from are left out.
    """
    transfers = _filled(paired_transfer_table(runs), "two data sets")
    blocks = list[Block]()
    texts = list[str]()
    for model, rows in transfers.groupby("model", sort=False):
        centre_words = CENTRE_WORDS[rows.centre.iloc[0]]
        blocks.append(
            f"{model}: F1, supervised / unsupervised; rows tested on, columns trained on; "
            f"{centre_words}."
        )
        f1_rows = rows[rows.metric == "f1"]
        blocks.append(text_table(_transfer_square(f1_rows)))
        other_sets = f1_rows[f1_rows.tested_on != f1_rows.trained_on]
        ranges = [f"{kind} {_range_text(other_sets[f'{kind}_value'])}" for kind in PROBE_KINDS]
        texts.append(f"{model}, {', '.join(ranges)}")
    pictures = _pictures_of_each(transfers, "model", "table1", _transfer_pictures)
    return Exhibit(
        "Table 1",
        "probes of one data set on another",
        "six data sets × six, Llama 3.1 70B; unsupervised at or above .95 in several cells",
        f"F1 on other data sets: {'; '.join(texts)}",
        tables={"table1": transfers, "table1-printed": printed_transfers()},
        pictures=pictures,
        blocks=blocks,
        remarks=_models_without(runs, "transfer", "two data sets"),
    )


def generality_of_5_3(runs: ProbeRuns) -> Exhibit:
    """§5.3: how many cells of Table 1 off the diagonal reach an F1 of .95.

    Paper: unsupervised probes in several cases, in words; 10 of the 30 cells of its Table 1. Here: a
    count of the numbers (high), and of the lower ends of their intervals (shown_high).
    """
    general = high_transfer_table(_filled(paired_transfer_table(runs), "two data sets"))
    texts = [f"{row.model}, {row.probe} {row.high} of {row.cells}" for row in general.itertuples()]
    return Exhibit(
        "§5.3 (generality)",
        "cells of Table 1 off the diagonal at or above .95",
        "unsupervised at or above .95 in several cases (10 of 30 cells of Table 1)",
        f"cells at or above .95: {'; '.join(texts)}",
        tables={"general": general},
        blocks=[text_table(general)],
        remarks=["high counts numbers, shown_high the lower ends of their intervals."],
    )


def figure5(runs: ProbeRuns) -> Exhibit:
    """Figure 5 (§5.3): cosines of the directions of all data sets.

    Paper: Llama 3.1 70B; most magnitudes above .7 between unsupervised probes, about 0 between
    supervised ones. Here: the mean magnitude over halves; on the diagonal two halves of one data
    set.
    """
    cosines = _filled(joined(runs, "cosine"), "two data sets")
    pictures = _pictures_of_each(cosines, "model", "cosine", cosine_pictures)
    of_two_sets = cosines[cosines.a != cosines.b]
    texts = [
        f"{model}, {kind} {_range_text(rows.absolute)}"
        for (model, kind), rows in of_two_sets.groupby(["model", "probe"], sort=False)
    ]
    return Exhibit(
        "Figure 5",
        "magnitude of the cosines of directions",
        "most unsupervised probes above .7, supervised ones about 0 (Llama 3.1 70B)",
        f"of two data sets: {'; '.join(texts)}",
        tables={"cosine": cosines},
        pictures=pictures,
        remarks=["A magnitude, since a component has no sign of its own."],
    )


# ---- LLMBar (Figures 4 and 8 to 11, §5.4)


def figures4_and_8_to_11(runs: ProbeRuns) -> Exhibit:
    """Figures 4 (§5.4) and 8 to 11 (Appendix C): LLMBar by subset, probes and asking.

    Paper: bars, of Llama 3.1 70B (4), of Gemma 2 2B, 9B, 27B and Llama 3.1 8B (8 to 11); learnt from
    Normal and Natural, tested on all other subsets (§5.4). Here: learnt from half of their pairs,
    tested on all subsets.
    """
    adversarial = _filled(joined(runs, "adversarial"), "--datasets llmbar")
    pictures = _pictures_of_each(adversarial, "model", "adversarial", adversarial_pictures)
    subsets = ", ".join(dict.fromkeys(adversarial.subset))
    return Exhibit(
        "Figures 4 and 8 to 11",
        "LLMBar by subset",
        "probes and asking on each subset (bars)",
        f"F1 with intervals on {subsets}",
        tables={"adversarial": adversarial},
        pictures=pictures,
        remarks=["Learnt from the natural subsets, half of whose pairs are held out."],
    )


def drops_of_5_4(runs: ProbeRuns) -> Exhibit:
    """§5.4: what adversarial subsets take from a probe, and from asking.

    Paper: probes drop less for all but one subset, in words. Here: drops of F1 from the natural
    subset; the interval takes the four scores as independent.
    """
    drop_rows = _filled(
        drops(joined(runs, "adversarial")), "--datasets llmbar, with a natural and another subset"
    )
    counts = case_counts(drop_rows)
    return Exhibit(
        "§5.4 (drops)",
        "what adversarial subsets take from probes and from asking",
        "probes drop less than asking for all but one subset",
        _count_texts(counts),
        tables={"drops": drop_rows},
        blocks=[text_table(counts)],
        remarks=[
            "A drop is F1 on a natural subset less that on an adversarial one: in how many cases "
            "(a model and subset) the probe's is smaller than asking's (above), and in how many "
            "the interval says so."
        ],
    )


# ---- layers (Figures 6 and 7, Appendix A)


def figures6_and_7(runs: ProbeRuns) -> Exhibit:
    """Figures 6 and 7 (Appendix A): F1 by layer on MT-Bench, supervised and unsupervised.

    Paper: a curve a model. Here: each data set, by block as a share of the model's blocks, with
    intervals.
    """
    depth = depth_table(runs)
    pictures = list[Picture]()
    for dataset, curves in depth.groupby("dataset", sort=False):
        pictures += depth_pictures(
            curves, title=f"{dataset}, by layer", stem=stem_of("depth", dataset)
        )
    f1_scores = depth[(depth.metric == "f1") & depth.value.notna()]
    texts = list[str]()
    for (dataset, kind), curves in f1_scores.groupby(["dataset", "probe"], sort=False):
        highest = curves.loc[curves.value.idxmax()]
        texts.append(f"{dataset}, {kind} {number(highest.value)} ({highest.model})")
    return Exhibit(
        "Figures 6 and 7",
        "F1 by layer",
        "curves of MT-Bench, supervised (6) and unsupervised (7)",
        f"highest F1 of a block: {'; '.join(texts)}",
        tables={"depth": depth},
        pictures=pictures,
    )


def appendix_a(runs: ProbeRuns) -> Exhibit:
    """Appendix A: where the curves by layer jump, and where they are near their best.

    Paper: a discontinuity of unsupervised probes, from about .5 to .8 at most; a smooth rise of
    supervised ones until 40 to 50 % of the blocks, in words. Here: of both, the largest rise from
    one block to the next, and the first block at nine tenths of the way from .5 to the best.
    """
    rises = rise(depth_table(runs))
    shown_rises = rises[rises.near_depth.notna()]
    texts = [
        f"{kind} {_range_text(rows.near_depth)}"
        for kind, rows in shown_rises.groupby("probe", sort=False)
    ]
    return Exhibit(
        "Appendix A",
        "where curves by layer jump, and where they are near their best",
        "unsupervised probes jump at some layer; supervised ones rise smoothly until 40 to 50 % of "
        "the blocks",
        f"near the best at this share of the blocks: {'; '.join(texts) or 'none above .5'}",
        tables={"rise": rises},
        blocks=[text_table(rises.drop(columns=["family", "parameters"]).round(2))],
        remarks=[
            "The largest rise from one block to the next (jump), and the first block at nine "
            "tenths of the way from .5 to the best (near), as shares of the model's blocks, without "
            "intervals. Empty where even the best block is not shown to be above .5."
        ],
    )


# ---- a direction taken out (Table 2, Appendix B)


def table2(runs: ProbeRuns) -> Exhibit:
    """Table 2 (Appendix B): change of the F1 of asking with a probe's direction taken out.

    Paper: −.01 to .03, of five models (table2-printed). Here: with an interval, beside random
    directions; x′ = x − (x·p / p·p) p in `selfprobe/probes/ablate.py`.
    """
    ablation = _filled(joined(runs, "ablation"), "--parts ablate")
    ablated = ablation[ablation.direction != "none"]
    of_probes = ablated[ablated.direction.isin(PROBE_KINDS)]
    texts = [
        f"{row.model}, {row.dataset}, {row.direction} {interval_text(row, sign=True)}"
        for row in of_probes.itertuples()
    ]
    change_texts = [interval_text(row, sign=True) for row in ablated.itertuples()]
    cells = ablated.assign(change=change_texts).pivot_table(
        index=["dataset", "direction"],
        columns="model",
        values="change",
        aggfunc="first",
        sort=False,
    )
    return Exhibit(
        "Table 2",
        "change of the F1 of asking with a direction taken out",
        "−.01 to .03, of five models",
        "; ".join(texts),
        tables={"table2": ablation, "table2-printed": printed_changes()},
        pictures=change_pictures(ablation, stem="table2"),
        blocks=[text_table(cells.rename_axis(None, axis=1).reset_index().fillna(""))],
        remarks=_models_without(runs, "ablation", "`selfprobe probe run --parts ablate`"),
    )


# ---- what several of them share


def _filled(table: pd.DataFrame, requirement: str) -> pd.DataFrame:
    """The table; NoLogs that says what a run takes to have it where it has no row."""
    if table.empty:
        raise NoLogs(f"no run has it; it takes selfprobe probe run with {requirement}")
    return table


class _Draw(Protocol):
    """Draws the rows of one model, or of one data set."""

    def __call__(self, rows: pd.DataFrame, /, *, stem: str) -> list[Picture]: ...


def _pictures_of_each(table: pd.DataFrame, column: str, stem: str, draw: _Draw) -> list[Picture]:
    """Pictures of each value of a column (model or dataset), with which their captions begin."""
    pictures = list[Picture]()
    for name, rows in table.groupby(column, sort=False):
        for picture in draw(rows, stem=stem_of(stem, name)):
            pictures.append(replace(picture, caption=f"{name}. {picture.caption}"))
    return pictures


def _size_pictures(scores: pd.DataFrame, title: str, stem: str, name: object) -> list[Picture]:
    """F1 against size, a picture a family; none where no model's size is known."""
    has_numbers = scores.parameters.notna() & scores.value.notna()
    drawn_scores = scores[(scores.metric == "f1") & has_numbers]
    if drawn_scores.empty:
        return []
    return size_pictures(drawn_scores, title=title, stem=stem_of(stem, name))


def _size_gaps(runs: ProbeRuns) -> list[str]:
    """A sentence a model whose size is not known."""
    return [
        f"{run.model}: neither the run nor the name says how large it is, so it is in no figure by "
        "size."
        for run in runs
        if pd.isna(run.parameters)
    ]


def _models_without(runs: ProbeRuns, table: str, requirement: str) -> list[str]:
    """A sentence on the models whose runs lack a table that others have."""
    models = [run.model for run in runs if table not in run.tables]
    if not models:
        return []
    return [f"Not of {', '.join(models)}; it takes {requirement}."]


def _f1_texts(scores: pd.DataFrame) -> str:
    """F1 of the probes and of asking, model by model."""
    f1_scores = scores[(scores.metric == "f1") & scores.value.notna()]
    texts = list[str]()
    for model, model_scores in f1_scores.groupby("model", sort=False):
        value_by_method = model_scores.set_index("method").value
        method_texts = [
            f"{method} {number(value_by_method[method])}"
            for method in DRAWN_KINDS
            if method in value_by_method.index
        ]
        texts.append(f"{model}, {', '.join(method_texts)}")
    return "; ".join(texts) or "no score"


def _count_texts(counts: pd.DataFrame) -> str:
    """Texts such as `supervised: 4 of 6` of the cases in which each probe is above asking."""
    return "; ".join(f"{row.probe}: {row.above} of {row.cases}" for row in counts.itertuples())


def _range_text(values: "pd.Series[float]") -> str:
    """The smallest and the largest of some values."""
    return f"{number(values.min())} to {number(values.max())}"


def _transfer_square(rows: pd.DataFrame) -> pd.DataFrame:
    """F1 of both probes as text: rows tested on, columns trained on."""
    texts = list[str]()
    for row in rows.itertuples():
        estimates = [_estimate_of_probe(row, probe) for probe in PROBE_KINDS]
        texts.append(" / ".join(map(interval_text, estimates)))
    names = list(dict.fromkeys(rows.trained_on))
    cells = rows.assign(cell=texts).pivot(index="tested_on", columns="trained_on", values="cell")
    return cells.loc[names, names].rename_axis(None, axis=1).reset_index()


def _estimate_of_probe(row: Any, probe: str) -> Estimate:
    return Estimate(
        getattr(row, f"{probe}_value"),
        getattr(row, f"{probe}_low"),
        getattr(row, f"{probe}_high"),
        row.n,
        "question",
    )


def _transfer_pictures(transfers: pd.DataFrame, *, stem: str) -> list[Picture]:
    """Heat maps of a model's transfers, one a probe."""
    cells = transfers[["tested_on", "trained_on", "metric"]]
    frames = []
    for probe in PROBE_KINDS:
        columns = {end: transfers[f"{probe}_{end}"] for end in ("value", "low", "high")}
        frames.append(cells.assign(probe=probe, **columns))
    return transfer_pictures(pd.concat(frames, ignore_index=True), stem=stem)
