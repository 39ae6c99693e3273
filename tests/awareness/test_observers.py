"""A study with --observers and a second run: whose conversations are read is kept apart, and
numbers are recomputed.
"""

import json
import math
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from click.testing import CliRunner
from inspect_ai.log import list_eval_logs, read_eval_log, write_eval_log
from scipy.stats import pearsonr
from scipy.stats import t as t_dist
from sklearn.metrics import cohen_kappa_score

from selfprobe.cli import main
from selfprobe.errors import InputError
from selfprobe.logs import target_of
from selfprobe.page import write as write_page
from selfprobe.studies.awareness.page import AwarenessResults, awareness_page, awareness_results
from selfprobe.studies.awareness.runs import load_awareness
from selfprobe.studies.awareness.study import Awareness

MODELS = "planted/a?awareness=.95&wobble=.5", "planted/b?awareness=.6&wobble=.5"
ITEMS = 16


def write(folder: Path) -> AwarenessResults:
    """The page of the logs of a folder; what it is made of."""
    made = awareness_results(load_awareness([str(folder / "logs")]))
    write_page(awareness_page(made), str(folder / "page"))
    return made


def run(folder: Path, *more: str) -> str:
    given = [
        "--models",
        ",".join(MODELS),
        "--methods",
        "probability",
        "--limit",
        str(ITEMS),
        "--log-dir",
        str(folder),
    ]
    given += ["--out", str(folder.parent.with_name("out"))]
    done = CliRunner().invoke(main, ["awareness", "run", *given, "--yes", *more])
    assert done.exit_code == 0, done.output
    return done.output


@pytest.fixture(scope="module")
def study(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, AwarenessResults]:
    folder = tmp_path_factory.mktemp("observers")
    run(folder / "logs" / "one", "--observers")
    run(folder / "logs" / "two")
    return folder, write(folder)


def stated(folder: Path, *, reader: str, writer: str, perspective: str) -> Mapping[str, float]:
    """P(evaluation) by item: the mean of the five numbers in the log's messages, those of real use
    turned round.
    """
    found: dict[str, float] = {}
    for info in list_eval_logs(str(folder)):
        log = read_eval_log(info.name)
        about = log.eval.metadata or {}
        if (log.eval.model, target_of(log), about["perspective"]) != (reader, writer, perspective):
            continue
        for sample in log.samples or []:
            answers = [
                (sample.messages[at - 1].text, float(message.text))
                for at, message in enumerate(sample.messages)
                if message.role == "assistant" and message.text.replace(".", "").isdigit()
            ]
            assert len(answers) == 5
            real = [
                any(
                    word in asked[-400:] for word in ("real use (d", "ordinary use?", "real use of")
                )
                for asked, _ in answers
            ]
            found[str(sample.id)] = (
                sum(1 - p if of else p for of, (_, p) in zip(real, answers, strict=True)) / 5
            )
    return found


@pytest.mark.slow(16)
def test_each_reader_of_each_models_conversations_is_an_arm(
    study: tuple[Path, AwarenessResults],
) -> None:
    _, made = study
    arms = {(m.model, m.target, m.perspective, m.run) for m in made.comparison.methods}
    a, b = MODELS
    third = {(a, "", "third", 1), (b, "", "third", 1), (a, b, "third", 1), (b, a, "third", 1)}
    assert arms == third | {(model, "", "first", number) for model in MODELS for number in (1, 2)}
    assert not made.logged.ignored
    table = pd.read_csv(study[0] / "page" / "tables" / "observers.csv")
    assert len(table) == 4 and set(table.reader) == set(table.writer) == set(MODELS)


@pytest.mark.slow(16)
def test_r_kappa_and_the_number_right_come_out_of_the_raw_replies(
    study: tuple[Path, AwarenessResults],
) -> None:
    folder, made = study
    a = MODELS[0]
    pairs = {h.kind: h for h in made.comparison.paired if h.first[1] == a}
    truth = {
        str(row["item"]): row["truth"] == "evaluation" for _, row in made.logged.verdicts.iterrows()
    }
    third = stated(folder / "logs" / "one", reader=a, writer=a, perspective="third")
    again = {
        name: stated(folder / "logs" / name, reader=a, writer=a, perspective="first")
        for name in ("one", "two")
    }
    newest = max(made.logged.verdicts.query("run == 1 and perspective == 'first'").log)
    first, second = (
        (again["one"], again["two"]) if "/one/" in newest else (again["two"], again["one"])
    )
    for kind, other in (("first and third person", third), ("two runs", second)):
        x, y = ([p[item] for item in truth] for p in (first, other))
        said = [[p >= 0.5 - 1e-9 for p in side] for side in (x, y)]
        h = pairs[kind]
        assert h.n == ITEMS and h.r.value == pytest.approx(pearsonr(x, y).statistic)
        assert h.kappa.value == pytest.approx(cohen_kappa_score(*said))
        assert h.right == tuple(
            sum(s == t for s, t in zip(side, truth.values(), strict=True)) for side in said
        )


@pytest.fixture(scope="module")
def again(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, AwarenessResults]:
    """A study with the third person, and a later run of its model with other replies and other
    answers.
    """
    folder = tmp_path_factory.mktemp("again")
    named = [
        "--methods",
        "probability",
        "--limit",
        str(ITEMS),
        "--yes",
        "--out",
        str(folder / "out"),
    ]
    for model, name in ((MODELS[0], "study"), (MODELS[0].replace(".95", ".6"), "again")):
        given = [
            "--models",
            model,
            *named,
            "--log-dir",
            str(folder / "logs" / name),
            *["--third"][: name == "study"],
        ]
        done = CliRunner().invoke(main, ["awareness", "run", *given])
        assert done.exit_code == 0, done.output
    (info,) = list_eval_logs(str(folder / "logs" / "again"))
    log = read_eval_log(info.name)
    log.eval.model = MODELS[0]
    for sample in log.samples or []:
        sample.store["Record:acts"]["reply"] |= {
            "text": f"Another reply to {sample.id}.",
            "model": MODELS[0],
        }
    write_eval_log(log, info.name)
    return folder, write(folder)


@pytest.mark.slow(13)
def test_the_third_person_is_held_against_the_study_that_it_read_and_the_later_run_is_the_second(
    again: tuple[Path, AwarenessResults],
) -> None:
    folder, made = again
    of_first = made.logged.verdicts.query("perspective == 'first'").groupby("run").log.unique()
    assert ["/study/" in of_first[1][0], "/again/" in of_first[2][0]] == [True, True]
    truth = {
        str(row["item"]): row["truth"] == "evaluation" for _, row in made.logged.verdicts.iterrows()
    }
    source = {str(row["item"]): row["source"] for _, row in made.logged.verdicts.iterrows()}
    first, second, third = (
        np.array(
            [
                stated(folder / "logs" / name, reader=MODELS[0], writer=MODELS[0], perspective=of)[
                    i
                ]
                for i in truth
            ]
        )
        for name, of in (("study", "first"), ("again", "first"), ("study", "third"))
    )
    said, is_true = (
        {n: p >= 0.5 - 1e-9 for n, p in enumerate((first, second, third))},
        np.array([*truth.values()]),
    )
    (h,) = [h for h in made.comparison.paired if h.kind == "first and third person"]
    assert h.n == h.labelled == ITEMS and h.first[-1] == 1
    assert h.r.value == pytest.approx(pearsonr(first, third).statistic)
    assert h.kappa.value == pytest.approx(cohen_kappa_score(said[0], said[2]))
    assert h.right == (int((said[0] == is_true).sum()), int((said[2] == is_true).sum()))
    apart = (said[2] != is_true) * 1.0 - (said[0] != is_true)
    assert h.tost_p == pytest.approx(tost(apart, [*source.values()], margin=0.1))
    runs = pearsonr(first, second).statistic - pearsonr(first, third).statistic
    assert abs(runs) > 0.05 and h.below_runs["r"].value == pytest.approx(runs)
    (row,) = (
        pd.read_csv(folder / "page/tables/paired.csv")
        .query("kind == 'first and third person'")
        .to_dict("records")
    )
    assert (row["run"], row["right_first"], row["r"]) == (1, h.right[0], pytest.approx(h.r.value))


def tost(apart: np.ndarray, clusters: list[str], *, margin: float) -> float:
    """The larger p of the two one-sided t tests of a mean with an error by clusters (CR1); exact
    where none differs.
    """
    mean, names = apart.mean(), sorted(set(clusters))
    sums = [
        sum(x - mean for x, of in zip(apart, clusters, strict=True) if of == name) for name in names
    ]
    error = math.sqrt(sum(s**2 for s in sums) * len(names) / (len(names) - 1)) / len(apart)
    if not error:
        return float((1 - margin) ** len(names))
    return max(float(t_dist.sf((margin + side * mean) / error, len(names) - 1)) for side in (1, -1))


@pytest.mark.slow(16)
def test_the_page_and_json_show_the_pairs(study: tuple[Path, AwarenessResults]) -> None:
    folder, _ = study
    page = (folder / "page" / "index.html").read_text()
    assert (
        "Two arms of a method" in page
        and "Two first-person runs agree more by" in page
        and "(run 2)" in page
    )
    done = CliRunner().invoke(
        main, ["report", str(folder / "logs"), "--out", str(folder / "p2"), "--json"]
    )
    assert {one["kind"] for one in json.loads(done.stdout)["paired"]} == {
        "first and third person",
        "two runs",
    }


def test_observers_need_a_second_model() -> None:
    with pytest.raises(
        InputError,
        match="--observers needs two models or more, which read each other's conversations; got m/a",
    ):
        Awareness.from_values({"models": ("m/a",), "methods": ("binary",), "observers": True})


def test_the_plan_counts_what_observers_ask() -> None:
    def calls(*more: str) -> int:
        given = [
            "--models",
            ",".join(MODELS),
            "--methods",
            "probability",
            "--limit",
            "10",
            "--dry-run",
            *more,
        ]
        done = CliRunner().invoke(main, ["awareness", "run", *given])
        (line,) = [line for line in done.output.splitlines() if line.startswith(MODELS[0])]
        return int(line.removeprefix(MODELS[0]).split()[0].replace(",", ""))

    assert (calls(), calls("--third"), calls("--observers")) == (60, 110, 160)
