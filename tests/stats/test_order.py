"""The order in which samples finished moves no number: every statistic of a page, from its rows in
other orders.
"""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import fields, is_dataclass, replace
from itertools import product
from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd
import pytest

from selfprobe.logs import Runs
from selfprobe.mechanism.prompts import ARMS
from selfprobe.page import Page
from selfprobe.papers.quote_rules import rates_by_quote_rule
from selfprobe.probes.evaluate import estimate as of_probes
from selfprobe.scorers import awareness as awareness_scorer
from selfprobe.scorers import preference as preference_scorer
from selfprobe.scorers.decision import Decision
from selfprobe.scorers.dilemma import dilemma_numbers
from selfprobe.scorers.realism_choice import Pick
from selfprobe.scorers.realism_choice import realism_numbers as pairs_summarised
from selfprobe.scorers.summary import summarise
from selfprobe.solvers.observe import OTHER_PREFIX
from selfprobe.stats import agreement, bradley_terry, clustered, edits, estimate, paired, text_only
from selfprobe.stats import estimate as estimates
from selfprobe.stats.timing import first_time
from selfprobe.studies import card, card_page, cues, scan, turns
from selfprobe.studies.awareness import page as awareness_page
from selfprobe.studies.awareness.numbers import against_placebo, comparison_of
from selfprobe.studies.awareness.runs import AwarenessTables, told_by_set
from selfprobe.studies.awareness.verdict import statements
from selfprobe.studies.card_numbers import card_numbers
from selfprobe.studies.check_draws import item_draws
from selfprobe.studies.check_numbers import changes_of
from selfprobe.studies.check_pairs import BaselineRun
from selfprobe.studies.features import QuoteCluster, Taxonomy, group_rates, named_question
from selfprobe.studies.matrix.numbers import analyse
from selfprobe.studies.matrix.page import results_page as matrix_page
from selfprobe.studies.matrix.table import Results
from selfprobe.studies.read_lens import partings
from selfprobe.study import Logs
from selfprobe.study.awareness_arms import ARM, PLAIN
from selfprobe.study.evidence import Evidence

Make = Callable[..., Results]
ORDERS = 3
"""Number of other orders of rows; of a page, which takes seconds, there is one."""
LABELS = ("deployment", "evaluation")


def flat(found: Any, at: str = "") -> Iterator[tuple[str, Any]]:
    """Every number and text of a result, with its place."""
    if is_dataclass(found) and not isinstance(found, type):
        found = {field.name: getattr(found, field.name) for field in fields(found)}
    if isinstance(found, pd.Series):
        found = found.sort_index().to_dict()
    if isinstance(found, pd.DataFrame):
        found = found.to_dict("list")
    if isinstance(found, np.ndarray):
        found = found.tolist()
    if isinstance(found, Mapping):
        for key in sorted(found, key=str):
            yield from flat(found[key], f"{at}.{key}")
    elif isinstance(found, Sequence) and not isinstance(found, str):
        for place, one in enumerate(found):
            yield from flat(one, f"{at}[{place}]")
    else:
        yield at, found


def differences(first: Any, second: Any) -> list[str]:
    """Places at which two results differ by more than rounding."""
    ours, theirs = dict(flat(first)), dict(flat(second))
    assert ours, "a statistic gives something"
    return [
        f"{place}: {ours.get(place)} and {theirs.get(place)}"
        for place in {**ours, **theirs}
        if not _alike(ours.get(place), theirs.get(place))
    ]


def _alike(a: Any, b: Any) -> bool:
    numbers = all(isinstance(one, int | float | np.number) for one in (a, b))
    return bool(np.isclose(a, b, rtol=1e-6, atol=1e-8, equal_nan=True)) if numbers else a == b


# ---- from rows


def table() -> pd.DataFrame:
    """60 rows of eight sources; probabilities have one digit, so that most are ties."""
    rng, n = np.random.default_rng(0), 60
    positive = np.arange(n) % 2 == 0
    p = np.clip((0.3 + 0.3 * positive + rng.normal(0, 0.25, n)).round(1), 0, 1)
    rows = pd.DataFrame({"id": [f"r{k:02}" for k in range(n)], "positive": positive, "p": p})
    return rows.assign(
        source=[f"s{k // 2 % 8}" for k in range(n)],
        few=[f"s{k // 2 % 3}" for k in range(n)],
        theirs=[f"t{k // 3 % 5}" for k in range(n)],
        said=p >= 0.5,
        again=rng.random(n) < 0.3 + 0.4 * positive,
        q=np.clip((p + rng.normal(0, 0.2, n)).round(1), 0, 1),
        lost=np.where(np.arange(n) % 9 == 0, math.nan, p),
        apart=rng.choice([-1.0, -0.5, 0, 0.5, 1], n),
        turns=1 + rng.integers(0, 6, n),
        word=rng.choice(["a", "b", "c"], n, p=[0.5, 0.3, 0.2]),
        text=[" ".join(rng.choice(["sun", "rain", "exam", "fog", "snow"], 4)) for _ in range(n)],
    )


def by_id(rows: pd.DataFrame, values: Any) -> pd.Series:
    return pd.Series(np.asarray(values), index=rows.id)


def resample(
    statistic: Callable[..., Any], *columns: str, of_means: bool = False, by: str = "source"
) -> Any:
    return lambda rows: estimates.bootstrap(
        statistic, *(rows[name].to_numpy() for name in columns), clusters=rows[by],
        rng=np.random.default_rng(0), resamples=200, of_means=of_means,
    )  # fmt: skip


def parts(rows: pd.DataFrame, by: str) -> list[clustered.Part]:
    said, positive = rows.said.astype(float), rows.positive.to_numpy()
    return [
        *(
            clustered.clustered_share(said, rows[by], is_counted=side, unit="source")
            for side in (positive, ~positive)
        ),
        *(clustered.clustered_auroc(positive, rows[name], rows[by]) for name in ("p", "q")),
    ]


def ranked(rows: pd.DataFrame) -> Any:
    positive, p = rows.positive.to_numpy(), rows.p.to_numpy()
    called = rows.said.to_numpy()
    return [
        estimate.auroc(positive, p), estimate.accuracy(positive, p - 0.5), estimate.balanced_accuracy(positive, called),
        estimate.weighted_f1(positive, called), estimate.spearman(p, rows.q), estimate.auroc_table(positive[None], p[None]),
    ]  # fmt: skip


def changed(rows: pd.DataFrame) -> Any:
    found = [paired.change(rows.said, rows.again, rows[by]) for by in ("source", "few", "id")]
    return [found, [one.power(0.1) for one in found], [one.needed(0.1) for one in found]]


def scored_by_bradley_and_terry(rows: pd.DataFrame) -> Any:
    ours, theirs = (pd.factorize(rows[name], sort=True)[0] for name in ("source", "theirs"))
    return bradley_terry.order(ours, theirs, rows.said.to_numpy(), prompt_count=8, real_count=5)


def edited(rows: pd.DataFrame) -> Any:
    prompts = [
        edits.PromptEdits(source, {word: p, f"own of {name}": lost}, ((name, apart / 20),))
        for source, word, name, p, lost, apart in sorted(
            zip(rows.source, rows.word, rows.id, rows.p, rows.lost, rows.apart, strict=True),
            key=lambda row: row[2],
        )
    ]
    cells = edits.edit_cells(prompts)
    return [cells, edits.compare_edits(list(cells.values()), rng=np.random.default_rng(0))]


def on_columns(rows: pd.DataFrame) -> Any:
    """A probe's metrics, [column, pair]."""
    columns = np.stack([rows.p - 0.5, rows.q - 0.5, rows.lost - 0.5])
    learnt = np.stack([(rows.turns % 3 == k).to_numpy() for k in range(3)])
    positive, groups = rows.positive.to_numpy(), rows.source.to_numpy()
    return [
        of_probes(columns, positive, groups, metric, resamples=100, learnt=learnt) for metric in ("auroc", "f1", "accuracy")
    ]  # fmt: skip


ROWS: dict[str, Callable[[pd.DataFrame], Any]] = {
    **{
        f"{name}, {by}": lambda rows, of=of, by=by: of(rows, by)
        for by in ("source", "few")
        for name, of in {
            "shares and AUROCs": lambda rows, by: [
                (part.estimate, part.errors) for part in parts(rows, by)
            ],
            "differences": lambda rows, by: [
                clustered.difference((1, a), (-1, b)) for a, b in product(parts(rows, by), repeat=2)
            ],
            "crossed": lambda rows, by: [
                clustered.two_way_clustered_mean(rows.lost, rows[by], rows.theirs, unit="source"),
                clustered.two_way_clustered_mean(
                    rows.apart, rows[by], rows.theirs, unit="source", signed=True
                ),
            ],
            "means": lambda rows, by: [
                estimates.clustered_mean(rows.lost, rows[by]),
                estimates.clustered_mean(rows.apart, rows[by], interval="t"),
                estimates.clustered_mean(rows.apart, rows[by], interval="difference"),
            ],
            "effective": lambda rows, by: estimate.effective_size(
                rows.p.to_numpy(), pd.factorize(rows[by])[0]
            ),
            "skill": lambda rows, by: estimates.skill(rows.p, rows.again, rows[by]),
            "agreement": lambda rows, by: agreement.agreement(
                rows.said, rows.again, clusters=rows[by], rng=np.random.default_rng(0)
            ),
            "equivalence": lambda rows, by: agreement.equivalence(
                rows.said, rows.again, clusters=rows[by]
            ),
            "turns' trend": lambda rows, by: agreement.turns_trend(
                list(rows.turns), np.abs(rows.p - rows.positive), rows[by]
            ),
            "calibration error": lambda rows, by: agreement.ece(rows.p, rows.positive, rows[by]),
            "resampled kappa": lambda rows, by: resample(
                agreement.cohen_kappa, "said", "again", by=by
            )(rows),
            "resampled AUROC": lambda rows, by: resample(estimate.auroc, "positive", "lost", by=by)(
                rows
            ),
            "resampled mean": lambda rows, by: resample(lambda x: x, "p", of_means=True, by=by)(
                rows
            ),
            "modes": lambda rows, by: by_id(rows, estimates.mode_baseline(rows.word, rows[by])),
        }.items()
    },
    "bins": lambda rows: by_id(rows, agreement.equal_mass(rows.p, 10)),
    "ranks": ranked,
    "pearson": lambda rows: agreement.pearson(rows.p.to_numpy(), rows.q.to_numpy()),
    "changes between runs": changed,
    "first times": lambda rows: first_time(rows.turns, rows.said, unit="transcript"),
    "order of prompts": scored_by_bradley_and_terry,
    "pieces taken out": edited,
    "words": lambda rows: by_id(
        rows,
        text_only.log_odds(
            list(rows.text), rows.positive.to_numpy(), rows.source.to_numpy(), each_apart=True
        ),
    ),
    "words, some sources of one label": lambda rows: by_id(
        rows,
        text_only.log_odds(
            list(rows.text), rows.positive.to_numpy(), rows.id.to_numpy(), each_apart=True
        ),
    ),
    **{
        f"best reader, by {by}": lambda rows, by=by: by_id(
            rows,
            text_only.best_reader(
                text_only.read_by(list(rows.text)),
                rows.positive.to_numpy(),
                rows[by].to_numpy(),
                each_apart=by == "source",
            ).scores,
        )
        for by in ("source", "id")
    },
    "words alone": lambda rows: by_id(
        rows, text_only.text_only_observer(list(rows.text), list(rows.word)).hits
    ),
    "probes": on_columns,
}


@pytest.mark.parametrize("name", ROWS)
def test_a_statistic_of_rows_is_the_same_in_every_order(name: str) -> None:
    rows = table()
    expected = ROWS[name](rows)
    for seed in range(ORDERS):
        assert not differences(expected, ROWS[name](rows.sample(frac=1, random_state=seed)))


# ---- from a log's decisions, as the metric of a run takes them


def decided(n: int = 40, epochs: int = 2) -> list[list[tuple[str, Decision]]]:
    """The decisions of each sample, of both frames."""
    rng, made = np.random.default_rng(1), []
    for item, _ in product(range(n), range(epochs)):
        truth, said = rng.choice(["a", "b", "c"], 2, p=[0.6, 0.3, 0.1])
        more = {
            "truth": str(truth),
            "said": str(said),
            "ceiling": float(rng.random() < 0.9),
            "floor": 0.2,
        }
        value = None if rng.random() < 0.1 else float(truth == said)
        why = str(rng.choice(["refusal", "truncated"])) if value is None else None
        own = Decision(key="k1", value=value, unscored=why, **more)
        made.append(
            [
                (f"i{item}", own),
                (f"i{item}", own.model_copy(update={"key": f"{OTHER_PREFIX}k1", "value": 0.5})),
            ]
        )
    return made


def dilemmas() -> list[list[tuple[str, Decision]]]:
    rng, made = np.random.default_rng(2), []
    for item, _ in product(range(30), range(6)):
        p = np.clip(rng.normal(0.3 + 0.4 * (item % 2), 0.1, 3), 0.05, 0.95).round(2)
        keys = ("p", "p_direct", "p_predicted")
        made.append(
            [(f"i{item:02}", Decision(key=key, value=x)) for key, x in zip(keys, p, strict=True)]
        )
    return made


def preferred() -> list[preference_scorer.Item]:
    rng, made = np.random.default_rng(3), []
    for item in range(40):
        margin, label = round(float(rng.normal(0.3)), 1), 1 + item % 2
        found = preference_scorer.preference_decision(
            preference_scorer.VERDICT, margin, label=label
        )
        shown, swapped = rng.random(2).round(1)
        details = {
            "p_first": {"shown": shown, "swapped": swapped},
            "read": {"1": "logprobs"},
            "mass": {"1": 0.9},
        }
        made.append(preference_scorer.Item({found.key: found}, f"q{item // 3}", details))
    return made


def judged_conversations() -> list[awareness_scorer.Item]:
    made = []
    for row in table().itertuples():
        score, truth = float(row.p), LABELS[row.positive]
        found = Decision(
            key="probability", said=LABELS[row.said], score=score, probability=score, truth=truth
        )
        made.append(awareness_scorer.Item(found, row.source, bool(row.again), conversation=row.id))
    return made


def picks(kind: str = "set") -> list[Pick]:
    rng, made = np.random.default_rng(4), []
    for k in range(45):
        won = float(rng.choice([0, 0.5, 1, math.nan], p=[0.5, 0.2, 0.2, 0.1]))
        first = tuple(bool(one) for one in rng.random(2) < 0.6)
        why = str(rng.choice(["refusal", "tie"])) if math.isnan(won) else None
        made.append(
            Pick(
                kind,
                f"a{k % 15}",
                f"b{k % 9}",
                f"s{k % 15 // 4}",
                f"t{k % 9 // 2}",
                won,
                first,
                why,
            )
        )
    return made


def joined(samples: Sequence[Sequence[Any]]) -> list[Any]:
    return [one for sample in samples for one in sample]


RUNS: dict[str, tuple[Sequence[Any], Callable[[list[Any]], Any]]] = {
    "summary": (decided(), lambda samples: summarise(joined(samples), "accuracy")),
    "dilemmas": (dilemmas(), lambda samples: dilemma_numbers(joined(samples))),
    "preference": (preferred(), preference_scorer.preference_numbers),
    "awareness": (judged_conversations(), awareness_scorer.awareness_numbers),
    "realism": ([*picks(), *picks("real")], pairs_summarised),
}


@pytest.mark.parametrize("name", RUNS)
def test_the_metric_of_a_run_is_the_same_in_whatever_order_its_samples_finished(name: str) -> None:
    samples, metric = RUNS[name]
    expected = metric(list(samples))
    for seed in range(ORDERS):
        order = np.random.default_rng(seed).permutation(len(samples))
        assert not differences(expected, metric([samples[at] for at in order]))


# ---- from the tables of a study, to its page


def shuffled(rows: pd.DataFrame, seed: int, by: Sequence[str] = ()) -> pd.DataFrame:
    """Rows in another order, within groups of `by`, which stay in their order: a log stays a log."""
    if rows.empty:
        return rows
    groups = (
        [part for _, part in rows.groupby(list(by), sort=False, dropna=False)] if by else [rows]
    )
    return pd.concat([part.sample(frac=1, random_state=seed) for part in groups], ignore_index=True)


def printed(page: Page, *row_by_row: str) -> list[Any]:
    """What a page and the terminal say, and its tables but for those that hold the rows themselves."""
    return [
        page.notes,
        page.holes,
        {name: t for name, t in page.tables.items() if name not in row_by_row},
    ]


def awareness_logs(*, few: bool = False, reference: bool = False) -> AwarenessTables:
    """Two methods of one model with 25 votes, in both persons, a second run and a placebo."""
    rows, verdicts, votes = table(), list[dict[str, Any]](), list[dict[str, Any]]()
    arms = [
        ("binary", {}), ("probability", {}), ("probability", {"perspective": "third"}), ("probability", {"run": 2}),
        ("user_motivation", {}), ("user_motivation", {"placebo": "form"}),
    ]  # fmt: skip
    for place, (method, other) in enumerate(arms):
        rng, keys = (
            np.random.default_rng(place),
            {"method": method, "model": "m", **PLAIN, **other, "data": "d"},
        )
        for row in rows.itertuples():
            p = float(np.clip(row.p + rng.normal(0, 0.1), 0, 1).round(1))
            said = None if rng.random() < 0.08 else LABELS[int(p >= 0.5)]
            about = {
                "source": row.few if few else row.source, "flip": row.again, "turns": row.turns, "pair": None,
                "format": "benchmark" if row.turns % 2 else "chat", "domain": row.word, "agentic": None,
                "language": None, "set": ("reference" if row.positive else "yours") if reference else None,
                "read": f"replies {other.get('run', 1)}", "decisions": 25, "log": f"{place}.eval",
            }  # fmt: skip
            one = keys | {"item": row.id, "epoch": 1}
            verdicts.append(
                one | about | {"truth": None if reference else LABELS[row.positive], "said": said}
                | {"unscored": str(rng.choice(["tie", "refusal"])) if said is None else None, "score": p}
                | {"probability": p if method == "probability" and said else None, "reasoned": False, "key": method}
            )  # fmt: skip
            if place < 2:
                drawn = np.clip(rng.normal(p, 0.3, 25), 0, 1).round(1)
                votes += [
                    one
                    | {
                        "key": f"v{k:02}",
                        "said": LABELS[int(x >= 0.5)],
                        "probability": x,
                        "unscored": None,
                    }
                    for k, x in enumerate(drawn)
                ]
    texts = pd.DataFrame({"data": "d", "item": rows.id, "text": rows.text, "pair": None})
    source = rows.few if few else rows.source
    texts = texts.assign(
        source=source, label=None if reference else [LABELS[x] for x in rows.positive]
    )
    texts = texts.assign(
        set=["reference" if x else "yours" for x in rows.positive] if reference else None
    )
    runs = (
        pd.DataFrame(verdicts).drop_duplicates(ARM)[[*ARM, "data"]].assign(dataset="d", samples=60)
    )
    return AwarenessTables(pd.DataFrame(verdicts), pd.DataFrame(votes), texts, runs)


def awareness_found(logged: AwarenessTables) -> Any:
    logged = told_by_set(logged)
    comparison = comparison_of(logged)
    placebos = against_placebo(logged.verdicts)
    made = awareness_page.AwarenessResults(
        logged, comparison, statements(logged, comparison), placebos
    )
    tables = awareness_page._tables(made)
    scores = comparison.baselines.scores.sort_values(["data", "item"])
    return [
        replace(comparison, baselines=replace(comparison.baselines, scores=scores)), made.statements, placebos,
        rates_by_quote_rule(logged), {name: t for name, t in tables.items() if name not in ("verdicts", "texts")},
    ]  # fmt: skip


@pytest.mark.parametrize(
    "kind",
    [
        pytest.param({}, id="plain"),
        pytest.param({"few": True}, id="three sources", marks=pytest.mark.slow(5)),
        pytest.param({"reference": True}, id="reference", marks=pytest.mark.slow(4)),
    ],
)
def test_an_awareness_page_is_the_same_in_whatever_order_samples_finished(
    kind: dict[str, bool],
) -> None:
    logged = awareness_logs(**kind)
    expected = awareness_found(logged)
    verdicts, votes = (shuffled(rows, 1, ARM) for rows in (logged.verdicts, logged.votes))
    again = replace(logged, verdicts=verdicts, votes=votes, texts=shuffled(logged.texts, 1))
    assert not differences(expected, awareness_found(again))


def matrix_tables(matrix_results: Make, task: str) -> Results:
    """Two epochs with other truths; some decisions are unscored, for two reasons that are equally
    frequent.
    """
    made, rng = (
        matrix_results({"a": 0.9, "b": 0.5, "c": 0.3}, items=60, task=task),
        np.random.default_rng(5),
    )
    again = made.decisions.assign(epoch=2, truth=rng.permutation(made.decisions.truth))
    rows = pd.concat([made.decisions, again], ignore_index=True)
    rows["said"] = rng.choice(["the", "a", "we"], len(rows))
    lost = np.arange(len(rows)) % 20 < 2
    rows["value"] = (rows.said == rows.truth).astype(float).where(~lost)
    rows["unscored"] = np.where(
        lost, np.where(np.arange(len(rows)) % 2 == 0, "refusal", "truncated"), None
    )
    if task == "ethical_dilemma":
        arms = [
            rows.assign(key=key, value=rng.random(len(rows)).round(1), truth=None)
            for key in ("p", "p_direct")
        ]
        rows = pd.concat(
            [
                *arms,
                rows.assign(key="p_predicted", value=rng.random(len(rows)).round(1), truth=None),
            ]
        )
    clusters = [f"c{int(item[1:]) // 2}" for item in made.items["item"]]
    return replace(made, decisions=rows, items=made.items.assign(cluster=clusters))


@pytest.mark.parametrize("task", ["kth_word", "ethical_dilemma"])
def test_a_matrix_page_is_the_same_in_whatever_order_samples_finished(
    matrix_results: Make, task: str
) -> None:
    results = matrix_tables(matrix_results, task)

    def found(results: Results) -> Any:
        analysis = analyse(results, rng=np.random.default_rng(0))
        return [analysis, printed(matrix_page(results, analysis))]

    expected = found(results)
    decisions = shuffled(results.decisions, 1, ["target", "observer"])
    again = replace(results, decisions=decisions, items=shuffled(results.items, 1))
    assert not differences(expected, found(again))


def test_a_realism_card_is_the_same_in_whatever_order_pairs_finished() -> None:
    made = {name: [*picks(), *picks("real")] for name in ("j", "k")}
    made["k"] = [
        replace(one, outcome=1 - one.outcome) if at % 3 else one for at, one in enumerate(made["k"])
    ]
    words = np.random.default_rng(6)
    texts = {
        f"{side}: {letter}{k}": " ".join(words.choice(["sun", "rain", "exam", "fog"], 6))
        for side, letter in (("set", "a"), ("real", "b"))
        for k in range(15)
    }

    def found(picked: Mapping[str, Sequence[Pick]]) -> Any:
        numbers = card_numbers(picked, texts)
        page = card.Realism.page(card_page.CardContents(numbers, picked, {"j": 0, "k": 0}, "n"))
        return [numbers, printed(page, "verdicts")]

    expected = found(made)
    orders = {name: np.random.default_rng(1).permutation(len(one)) for name, one in made.items()}
    assert not differences(
        expected, found({name: [made[name][at] for at in orders[name]] for name in made})
    )


def turn_rows() -> pd.DataFrame:
    rng = np.random.default_rng(7)
    rows = [
        {
            "model": "m",
            "item": f"{kind[0]}{k}",
            "kind": kind,
            "source": "s",
            "pair": f"p{k}",
            "turn": turn,
        }
        | {
            "p": round(float(0.3 + 0.3 * (turn > 3) * (kind == LABELS[1]) + rng.normal(0, 0.1)), 1),
            "placebo": 0.5,
        }
        for kind, k, turn in product(LABELS, range(9), range(1, 7))
    ]
    return pd.DataFrame(rows)


def turns_answered(rows: pd.DataFrame) -> Any:
    answers = [turns.TurnAnswer(**row) for row in rows.to_dict("records")]
    curve = turns.turn_curve(answers, "m", rng=np.random.default_rng(0))
    return [
        curve,
        turns.turn_claim(curve, "m"),
        turns.turn_notes(curve, []),
        turns.turn_means([curve]),
    ]


def cue_rows() -> pd.DataFrame:
    """Two typographies of one sentence, and pieces whose changes are equal."""
    rng, rows = np.random.default_rng(8), list[dict[str, Any]]()
    pieces = {"u1": "It’s a test.", "u2": "Alpha.", "u3": "Beta."}
    for k in range(8):
        keys: dict[str, Any] = {
            "model": "m",
            "item": f"i{k}",
            "label": LABELS[1],
            "source": f"s{k // 2}",
        }
        keys |= {
            "missing": None,
            "whole": 0.8,
            "no_paraphrase": ["refusal", "truncated", "", ""][k % 4],
        }
        original = {
            "arm": "original",
            "kind": "original",
            "text": "",
            "classes": (),
            "like": "",
            "p": 0.8,
            "change": 0.0,
        }
        rows.append(keys | original)
        for arm, text in pieces.items():
            text = text.replace("’", "'") if k % 2 else text
            p = 0.3 if arm == "u1" else 0.7
            rows.append(
                keys | {"arm": arm, "kind": "sentence", "text": text, "p": p, "classes": ("x", arm)}
            )
            rows[-1] |= {"change": 0.8 - p, "like": ""}
        for c in range(5):
            change = round(float(rng.normal(0, 0.05)), 2)
            rows.append(
                keys
                | {
                    "arm": f"c{c + 1}",
                    "kind": "control",
                    "text": f"{k} {c}",
                    "like": f"u{c % 3 + 1}",
                }
            )
            rows[-1] |= {"p": 0.8 - change, "change": change, "classes": ()}
    return pd.DataFrame(rows)


def cues_found(rows: pd.DataFrame) -> Any:
    records = rows.astype(object).where(rows.notna(), None).to_dict("records")
    found = cues.cue_numbers([cues.FormRow(**record) for record in records], "m")
    return [
        replace(found, forms=[]),
        cues.cue_claim(found, "m"),
        cues.cue_notes(found),
        cues.prompt_rows(found),
    ]


def scan_rows() -> pd.DataFrame:
    rows = table()
    return pd.DataFrame(
        {
            "task": "t",
            "model": "m",
            "log": "l",
            "sample": rows.id,
            "source": rows.source,
            "label": None,
            "turns": 6,
        }
        | {"read": 6, "first": rows.turns.where(rows.said), "noticed": rows.said}
        | {"seen": rows.turns.where(rows.said, 6)}
        | {
            "unscored": np.where(
                rows.again, None, np.where(np.arange(60) % 2 == 0, "refusal", "truncated")
            )
        }
        | {"quotes": 1, "discarded": 0, "full": 3, "summary": 2, "hidden": 1}
    )


def scanned(rows: pd.DataFrame) -> Any:
    records = rows.astype(object).where(rows.notna(), None).to_dict("records")
    transcripts = [scan.ScannedTranscript(**record) for record in records]
    return printed(
        scan.Scan.page(scan.ScanNumbers(transcripts, [], ["g"], Logs(Runs([])))), "transcripts"
    )


def featured(rows: pd.DataFrame) -> Any:
    """Rates of the top level's features, and of what is about our own question."""
    quotes = pd.DataFrame({"data": "d", "item": table().id, "model": "m"})
    cluster = dict.fromkeys(("reply", "name"), "")
    numbered = [
        tuple(int(k) for k in np.flatnonzero(np.arange(60) % 3 == rest)) for rest in range(3)
    ]
    clusters = tuple(
        QuoteCluster(
            number=k, artefact=k == 0, group=None if k == 0 else f"g{k}", quotes=mine, **cluster
        )
        for k, mine in enumerate(numbered)
    )
    found = Taxonomy(clusters, ("g1", "g2"), "")
    labels = [LABELS[one] for one in rows.positive]
    prompts = pd.DataFrame({"data": "d", "item": rows.id, "source": rows.source, "label": labels})
    prompts = prompts.assign(
        **{"group: g1": rows.said.astype(int), "group: g2": rows.again.astype(int)}
    )
    asked = prompts.assign(model="m")[["data", "item", "model", "source"]]
    return [
        group_rates(prompts, found),
        named_question(Evidence(quotes, prompts, asked, {}), found),
    ]


TABLES: dict[str, tuple[pd.DataFrame, Callable[[pd.DataFrame], Any]]] = {
    "turns": (turn_rows(), turns_answered),
    "cues": (cue_rows(), cues_found),
    "scan": (scan_rows(), scanned),
    "features": (table(), featured),
}


@pytest.mark.parametrize("name", TABLES)
def test_the_numbers_of_a_table_are_the_same_in_every_order_of_its_rows(name: str) -> None:
    rows, found = TABLES[name]
    expected = found(rows)
    for seed in range(ORDERS):
        assert not differences(expected, found(shuffled(rows, seed)))


def test_a_gate_is_the_same_in_whatever_order_items_are_kept() -> None:
    """An item has a key or two, and items of one cluster are drawn together."""
    rows = table()

    def run(order: Sequence[int], column: str) -> BaselineRun:
        here = rows.iloc[list(order)]
        kept = BaselineRun("quiz", "m", "m", "1", "0", {}, {}, "d", "", [], {}, "accuracy", {}, {})
        why = ["refusal", "truncated"]
        given = zip(here.id, here[column], here.turns, strict=True)
        items: Any = {
            item: {"k": [float(x) if turns > 2 else why[turns - 1]]} for item, x, turns in given
        }
        blind = {item: {"k": 0.5} for item in here.id}
        return replace(
            kept, items=items, blind=blind, clusters=dict(zip(here.id, here.source, strict=True))
        )

    def found(order: Sequence[int]) -> Any:
        pairs = [(run(order, "said"), replace(run(order, "again"), blind={}))]
        drawn = [item_draws(pairs)(np.random.default_rng(seed)) for seed in range(3)]
        return [changes_of(each, smallest=0.05) for each in (pairs, *drawn)]

    expected = found(range(60))
    for seed in range(ORDERS):
        assert not differences(expected, found(list(np.random.default_rng(seed).permutation(60))))


def test_the_parting_of_arms_is_the_same_where_dilemmas_are_in_another_order() -> None:
    rng = np.random.default_rng(9)
    lens = {f"d{k}": np.cumsum(rng.normal(0.2, 1, (len(ARMS), 12)), axis=1) for k in range(12)}

    def found(names: Sequence[str]) -> Any:
        readings = {name: SimpleNamespace(lens=lens[name]) for name in names}
        return partings(readings, list(range(12)), list(names))  # type: ignore[arg-type]

    expected = found(sorted(lens))
    for seed in range(ORDERS):
        assert not differences(
            expected, found(list(np.random.default_rng(seed).permutation(sorted(lens))))
        )
