"""`selfprobe outcome` on planted models: who knows the items, who knows itself, who knows neither."""

import json
import math
import re
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any
from zipfile import ZipFile

import numpy as np
import pandas as pd
import pytest
from click.testing import CliRunner, Result
from inspect_ai import Task
from inspect_ai.dataset import MemoryDataset, Sample
from inspect_ai.log import list_eval_logs, read_eval_log
from inspect_ai.scorer import match
from inspect_ai.solver import generate
from scipy import special

from selfprobe.cli import main
from selfprobe.data.outcomes import OutcomeQuestions, logged_outcomes
from selfprobe.errors import InputError
from selfprobe.page import Bullets
from selfprobe.providers.behaviours.introspection import SUM_PROMPT
from selfprobe.stats.estimate import FloatArray
from selfprobe.stats.foresight import ordered
from selfprobe.studies.outcome import Outcome, OutcomeMatrix, Stated, facts_of, outcome_finding, outcome_matrix

WORLDS = {
    "planted/ada?knows_items=.8&knows_own_skill=.8": (True, True),
    "planted/bo?knows_items=.8": (True, False),
    "planted/cy?knows_own_skill=.8": (False, True),
    "planted/di": (False, False),
}
"""Model → whether it knows the items, and itself."""
ADA, BO, *_ = WORLDS
ITEMS = 80


def sums() -> Task:
    samples = [
        Sample(id=n, input=SUM_PROMPT.format(first=n, second=n % 9), target=str(n + n % 9)) for n in range(ITEMS)
    ]
    return Task(dataset=MemoryDataset(samples, name="sums"), solver=generate(), scorer=match(), name="sums")


def call(*arguments: object) -> Result:
    return CliRunner().invoke(main, ["outcome", *map(str, arguments)])


@pytest.fixture(scope="module")
def logs(tmp_path_factory: pytest.TempPathFactory, run_task: Any) -> Path:
    folder = tmp_path_factory.mktemp("logged")
    for model in WORLDS:
        run_task(sums(), model, folder)
    return folder


@pytest.fixture(scope="module")
def done(logs: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    folder = tmp_path_factory.mktemp("outcome")
    made = asked(logs, folder)
    assert made.exit_code == 0, made.output
    return folder, made.output


def asked(logs: Path, folder: Path, *more: object, models: str = ",".join(WORLDS)) -> Result:
    places = ("--out", folder / "page", "--log-dir", folder / "runs")
    return call(logs, "--models", models, "--yes", *places, *more)


@pytest.mark.slow(20)
def test_who_knows_the_items_and_who_knows_itself_comes_out_as_planted(done: tuple[Path, str]) -> None:
    found = pd.read_csv(done[0] / "page/tables/findings.csv").set_index("model")
    for model, (items, itself) in WORLDS.items():
        assert (found.knows_items_low[model] > 0.5) == items, model
        assert (found.beyond_items_low[model] > 0.5) == itself, model
        assert (found.answer[model] == "Yes") <= itself
    assert "planted/ada ranks its successes beyond the items with AUROC 0.9" in done[1]


@pytest.mark.slow(9)
def test_the_same_command_again_asks_nothing_and_report_shows_the_page(done: tuple[Path, str], logs: Path) -> None:
    before = {info.name for info in list_eval_logs(str(done[0] / "runs"))}
    again = asked(logs, done[0], "--json")
    assert again.exit_code == 0, again.output
    assert {info.name for info in list_eval_logs(str(done[0] / "runs"))} == before
    tables = json.loads(again.stdout)
    assert len(tables["stated"]) == ITEMS * len(WORLDS) and len(tables["findings"]) == len(WORLDS)
    assert {row["predicted_by"] for row in tables["predictors"]} >= {
        "other models' results",
        "text alone",
        "planted/bo",
    }
    page = CliRunner().invoke(main, ["report", str(done[0] / "runs"), "--out", str(done[0] / "report")])
    assert page.exit_code == 0 and "beyond the items with AUROC" in page.output
    shown = (done[0] / "report/index.html").read_text()
    assert "Do models know in advance what they can solve?" in shown and "Every observer on every target" in shown


def test_the_plan_says_the_calls_first_and_whose_logs_are_compared_only(logs: Path) -> None:
    made = call(logs, "--models", f"{ADA},{BO}", "--ask", "solve,length", "--dry-run")
    assert made.exit_code == 0, made.output
    first, second, third, *_ = made.output.splitlines()
    assert first.startswith(f"{ITEMS} items × {ADA}, {BO}, asked before the reply: solve, length")
    assert second == "One call an item, observer and question; logs are of 4 models."
    assert third == "Not asked, their results are compared: planted/cy?knows_own_skill=.8, planted/di"
    assert f" {2 * ITEMS * 2}  " in made.output.replace("all ", "all  ")


def test_who_has_no_log_and_which_log_is_damaged_stand_in_the_plan(logs: Path, tmp_path: Path) -> None:
    (tmp_path / "cut.eval").write_bytes(next(logs.glob("*.eval")).read_bytes()[:900])
    made = call(logs, tmp_path, "--models", f"{BO},planted/zoe", "--dry-run")
    assert "Without a log of its own, so compared as an observer of others and not judged: planted/zoe" in made.output
    assert "cut.eval does not count: cannot be read: it is truncated" in made.output


@pytest.mark.parametrize("model", [ADA, BO])
@pytest.mark.parametrize("damaged", ["1.eval", "2.eval"])
def test_a_copy_stands_in_for_a_log_with_a_readable_header_and_damaged_summaries(
    logs: Path, tmp_path: Path, model: str, damaged: str
) -> None:
    """Of the target, and of a model that it is compared with."""
    there = {
        read_eval_log(info, header_only=True).eval.model: Path(info.name[7:]) for info in list_eval_logs(str(logs))
    }
    for name in ("1.eval", "2.eval"):
        with ZipFile(there[model]) as whole, ZipFile(tmp_path / name, "w") as copy:
            for inside in whole.namelist():
                copy.writestr(inside, b"[{" if (name, inside) == (damaged, "summaries.json") else whole.read(inside))
    other = there[BO if model == ADA else ADA]
    found = logged_outcomes([str(tmp_path), str(other)], ADA, OutcomeQuestions())
    assert len(found.table.rows) == ITEMS and all(BO in others for others in found.others.values())
    said = [note for note in found.notes if "cannot be read" in note]
    assert len(said) <= 1 and all(f"{damaged} does not count, and " in note for note in said), "the other one counted"
    only = logged_outcomes(
        [str(tmp_path / ("2.eval" if damaged == "1.eval" else "1.eval")), str(other)], ADA, OutcomeQuestions()
    )
    assert found.table.rows == only.table.rows

    if model == ADA:
        for name in {"1.eval", "2.eval"} - {damaged}:
            shutil.copy(tmp_path / damaged, tmp_path / name)
        with pytest.raises(InputError, match=r"\.eval cannot be read: .*; run it again, or leave it out$"):
            logged_outcomes([str(tmp_path), str(other)], ADA, OutcomeQuestions())


def test_models_are_in_the_order_of_the_call_and_the_page_says_what_is_left_out(
    logs: Path, tmp_path: Path, run_task: Any
) -> None:
    (tmp_path / "cut.eval").write_bytes(next(logs.glob("*.eval")).read_bytes()[:900])
    given = ("planted/di", "planted/zoe", ADA)
    study = Outcome(logs=(str(logs), str(tmp_path / "cut.eval")), models=given, log_dir=str(tmp_path / "runs"), limit=2)
    for model in (ADA, "planted/zoe", "planted/di"):
        target = model if model in WORLDS else ADA
        args = {"logs": list(study.logs), "ask": ["solve"], "target": target, "about": "self"}
        run_task("selfprobe/outcome", model, tmp_path / "runs", task_args=args, limit=2)
    found = study.numbers(study.collected())
    assert list(found.stated.observers) == ["planted/di", "planted/zoe", "planted/ada"]
    without, notes = found.lost
    assert str(without).endswith("not judged: planted/zoe.")
    assert isinstance(notes, Bullets) and "cut.eval does not count: cannot be read" in notes.items[0]


def test_what_shows_a_reply_is_asked_about_each_model(logs: Path) -> None:
    """After the replies: each about its own as "you", and about all four as another's."""
    made = call(logs, "--models", f"{ADA},{BO}", "--when", "after", "--limit", 10, "--dry-run")
    assert made.exit_code == 0 and " 100 " in made.output, made.output


def test_without_another_models_log_nobody_is_said_to_know_itself(tmp_path: Path, run_task: Any) -> None:
    run_task(sums(), ADA, tmp_path / "logged")
    made = asked(tmp_path / "logged", tmp_path, models=ADA)
    assert made.exit_code == 0, made.output
    assert "Without a second model's logs knowledge of the items cannot be told from self-knowledge." in made.output
    assert "Cannot tell for planted/ada" in made.output and "no other model's log shows" in made.output


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["--models", "planted/eve"], "no log of planted/eve in "),
        (
            ["--models", "planted/di", "--ask", "sovle"],
            "ask must be solve, refuse or length, got 'sovle'; did you mean",
        ),
        (
            ["--models", "planted/di", "--ask", ""],
            "--ask: expected at least one name, with commas between several; got none",
        ),
        (["--models", "planted/di", "--about", "me"], "about must be self, other or named, got 'me'"),
        (["--models", "planted/di", "--about", "named,other"], "about must hold self, with which the rest is compared"),
        (["--models", "planted/di", "--score", "mach"], "no score 'mach'; the nearest are match"),
        (["--models", "planted/di", "--cluster", "kind"], "cluster=kind: no metadata of that name in "),
        (["--models", "planted/di", "--when", "after", "--at", "2"], "at=2 is a state before the end"),
    ],
)
def test_a_wrong_call_is_refused_in_a_line(arguments: list[str], says: str, logs: Path) -> None:
    made = call(logs, *arguments, "--dry-run")
    assert made.exit_code == 2 and says in made.output, made.output


def test_a_report_compares_runs_with_one_truth_and_sets_the_others_aside(
    logs: Path, tmp_path: Path, run_task: Any
) -> None:
    for tokens in (1, 3):
        args = {"logs": str(logs), "target": ADA, "ask": "length", "tokens": tokens}
        run_task("selfprobe/outcome", ADA, tmp_path / "runs", task_args=args, limit=2)
    page = CliRunner().invoke(main, ["report", str(tmp_path / "runs"), "--out", str(tmp_path / "page")])
    assert page.exit_code == 0, page.output
    assert re.search("tokens is (1, there 3|3, there 1)", (tmp_path / "page/index.html").read_text())


# ---- judged without a run

MODELS = ("m/a", "m/b", "m/c", "m/d", "m/e")


def stated(
    knows: dict[str, tuple[float, float]], *, items: int = 300, seed: int = 0, texts: bool = False, share: float = 0.0
) -> Stated:
    """Outcomes of five models, and chances of those that are asked, who know the items and themselves so far."""
    rng = np.random.default_rng(seed)
    shared, own = rng.normal(size=items), {model: rng.normal(size=items) for model in MODELS}
    outcomes = {(m, "solve"): (shared + own[m] + share > 0).astype(float) for m in MODELS}
    words = {True: "easy plain short", False: "hard strange long"}
    said: dict[tuple[str, str, str, str], FloatArray] = {}
    for model, (of_items, of_itself) in knows.items():
        latent = of_items * shared + of_itself * own[model] + 0.4 * rng.normal(size=items)
        said[model, "self", "", "solve"] = special.expit(2 * latent).round(2)
    return Stated(
        items=tuple(f"t:{n}" for n in range(items)),
        texts=dict.fromkeys(
            MODELS,
            tuple(f"{words[bool(o > 0)]} {n}" if texts else f"text {n}" for n, o in enumerate(own["m/a"])),
        ),
        clusters=np.arange(items),
        questions=("solve",),
        observers={model: model for model in knows},
        outcomes=outcomes,
        chances=said,
        table=pd.DataFrame(),
    )


NOBODY = OutcomeMatrix((), np.empty((0, 0)), None)
ALL = dict.fromkeys(MODELS, (1.0, 0.0)) | {"m/a": (1.0, 1.0), "m/b": (1.0, 1.0)}
"""All know the items, two themselves."""


def answer(of: Stated, p: float = 0.001, matrix: OutcomeMatrix = NOBODY) -> tuple[str, str]:
    found = outcome_finding(replace(facts_of(of, "m/a", "solve"), p=p), "m/a", matrix)
    return found.answer, found.clause


def test_a_model_that_knows_itself_better_than_four_others_know_it_is_told_so() -> None:
    of = stated(ALL)
    kind, clause = answer(of, matrix=outcome_matrix(of, "solve", np.random.default_rng(0)))
    assert kind == "Yes" and clause.startswith("ranks its successes beyond the items with AUROC 0.9"), clause


def test_a_model_that_knows_itself_better_than_one_other_does_needs_more_models() -> None:
    kind, clause = answer(stated({"m/a": (1, 1), "m/b": (1, 0)}))
    assert kind == "Cannot tell" and clause.endswith("; 4 models with logs would tell"), clause


def test_a_single_observer_cannot_show_it() -> None:
    kind, clause = answer(stated({"m/a": (1, 1)}))
    assert kind == "Cannot tell" and "ask a second model, which may do as well" in clause


def test_an_observer_that_does_as_well_takes_it_back() -> None:
    of = stated({"m/a": (1, 1), "m/b": (1, 0)})
    twin = of.chances["m/a", "self", "", "solve"] + 0.001 * np.random.default_rng(1).normal(size=300)
    kind, clause = answer(replace(of, chances=of.chances | {("m/b", "self", "", "solve"): twin}))
    assert kind in ("No", "Cannot tell") and "; m/b reaches 0.9" in clause


def test_what_the_text_tells_as_well_is_no_self_knowledge() -> None:
    kind, clause = answer(stated({"m/a": (0, 0.3), "m/b": (1, 0)}, texts=True))
    assert kind == "No" and "; text\N{NO-BREAK SPACE}alone reaches 0.8" in clause


def test_knowledge_of_the_items_is_called_that() -> None:
    kind, clause = answer(stated({"m/a": (1, 0), "m/b": (1, 0)}, items=1200), p=0.4)
    assert kind == "No" and clause.startswith("ranks items, not itself: AUROC 0.")


def test_a_ranking_that_is_inverted_is_called_that() -> None:
    of = stated({"m/a": (-1, 0), "m/b": (1, 0)}, items=1200)
    one = outcome_finding(replace(facts_of(of, "m/a", "solve"), p=0.9), "m/a", NOBODY)
    assert one.answer == "No" and re.match(r"ranks its successes backwards, with AUROC 0\.[0-3]", one.clause), (
        one.clause
    )
    assert "rank its successes backwards, with AUROC" in one.notes[0]
    kind, clause = answer(stated({"m/a": (1, -1), "m/b": (1, 0)}, items=1200), p=0.99)
    assert kind == "No" and "beyond the items backwards, 0." in clause
    alone = replace(of, outcomes={key: y for key, y in of.outcomes.items() if key[0] == "m/a"})
    kind, clause = answer(alone)
    assert kind == "Cannot tell" and clause.startswith("ranks its successes backwards, with AUROC 0.")


def test_few_items_one_class_and_no_other_model_cannot_tell() -> None:
    assert (
        "has 12 items with an answer and an outcome; 20 are the least" in answer(stated({"m/a": (1, 1)}, items=12))[1]
    )
    assert "at 100 % of its items: outcomes do not differ" in answer(stated({"m/a": (1, 1)}, share=99))[1]
    of = stated({"m/a": (1, 1), "m/b": (1, 0)})
    alone = replace(of, outcomes={key: y for key, y in of.outcomes.items() if key[0] == "m/a"})
    assert "no other model's log shows" in answer(alone)[1]


def test_the_matrix_names_those_that_know_themselves_and_its_silence_takes_a_yes_back() -> None:
    of = stated(ALL)
    matrix = outcome_matrix(of, "solve", np.random.default_rng(0))
    assert matrix.verdict is not None and set(matrix.verdict.models) == {"m/a", "m/b"}
    assert np.diag(matrix.means)[:2].min() > 0.8 and abs(np.diag(matrix.means)[2:] - 0.5).max() < 0.15
    silent = replace(matrix, verdict=replace(matrix.verdict, models=("m/b",)))
    kind, clause = answer(of, matrix=silent)
    assert kind == "Cannot tell" and clause.endswith("; models here may differ as much without self-knowledge")


@pytest.mark.slow(25)
def test_a_matrix_of_models_that_know_the_items_alone_names_nobody_in_38_of_40_draws() -> None:
    named = 0
    for seed in range(40):
        of = stated(dict.fromkeys(MODELS, (1.0, 0.0)), items=200, seed=seed)
        verdict = outcome_matrix(of, "solve", np.random.default_rng(0)).verdict
        named += bool(verdict and verdict.models)
    assert named <= 2


def test_beyond_the_items_is_the_same_in_the_findings_and_in_the_matrix() -> None:
    """A model whose log is there and that is not asked says which items are hard in both."""
    of = stated({model: ALL[model] for model in MODELS[:4]})
    there = np.ones(300, dtype=bool)
    matrix = outcome_matrix(of, "solve", np.random.default_rng(0))
    counts = np.array([of.outcomes[model, "solve"] for model in MODELS]).sum(axis=0)
    for t, model in enumerate(MODELS[:4]):
        strata = of.alike(model, "solve", there)
        assert len(np.unique(strata)) == 6 and len({*zip(strata, counts, strict=True)}) == 6
        own = of.own(model, "solve")
        assert own is not None
        assert matrix.means[t, t] == pytest.approx(np.nanmean(ordered(own, of.outcomes[model, "solve"], strata).scores))


def test_a_cluster_is_one_unit_and_three_models_have_no_verdict() -> None:
    of = stated({"m/a": (1, 1), "m/b": (1, 0)}, items=100)
    facts = facts_of(replace(of, clusters=np.arange(100) // 4), "m/a", "solve")
    assert facts.n == facts.auroc.n == 25 and facts.others == 4 and facts.asked == 1
    assert outcome_matrix(of, "solve", np.random.default_rng(0)).verdict is None
    assert math.isnan(facts.p)


def test_with_two_models_the_others_self_knowledge_turned_round_is_no_knowledge_of_the_first() -> None:
    """Among items that one of two solved, the first's success is the second's failure."""
    rng = np.random.default_rng(0)
    own = {model: rng.normal(size=300) for model in MODELS[:2]}
    outcomes = {(model, "solve"): (own[model] > 0).astype(float) for model in own}
    said = {
        ("m/a", "self", "", "solve"): special.expit(own["m/a"] + rng.normal(size=300)),
        ("m/b", "self", "", "solve"): special.expit(-own["m/b"]),
    }
    two = replace(stated({}), observers={m: m for m in own}, outcomes=outcomes, chances=said)
    facts = facts_of(two, "m/a", "solve")
    rival = next(each for each in facts.predictors if each.observer)
    assert math.isnan(rival.beyond.value) and abs(rival.auroc.value - 0.5) < 0.1
    found = outcome_finding(replace(facts, p=0.001), "m/a", NOBODY)
    assert found.answer == "Cannot tell" and "4 models with logs would tell" in found.clause
    assert np.isnan(outcome_matrix(two, "solve", rng).means[[0, 1], [1, 0]]).all()
