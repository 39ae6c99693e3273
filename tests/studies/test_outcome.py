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
from inspect_ai.log import list_eval_logs, read_eval_log, write_eval_log
from inspect_ai.scorer import match
from inspect_ai.solver import generate
from scipy import special

from selfprobe.cli import main
from selfprobe.data.outcomes import OutcomeQuestions, logged_outcomes
from selfprobe.errors import InputError
from selfprobe.page import Bullets, Page, render
from selfprobe.page.claims import MOST_TERMINAL_LINES, answer_over, claim_clause
from selfprobe.providers.behaviours.introspection import SUM_PROMPT
from selfprobe.stats.claim import Claim, Verdict
from selfprobe.stats.claim import Outcome as CheckOutcome
from selfprobe.stats.dimensions import Dimensions, count_dimensions
from selfprobe.stats.estimate import Estimate, FloatArray, undefined
from selfprobe.stats.foresight import ordered, stratified_auroc
from selfprobe.studies import outcome_numbers
from selfprobe.studies.outcome import (
    Outcome,
    OutcomeNumbers,
    RoutingRow,
    dimension_lines,
    metacognition_picture,
    outcome_notes,
    routing_lines,
    threshold_text,
    write_inner_percent,
)
from selfprobe.studies.outcome_numbers import (
    BEYOND_ALPHA,
    OUTCOME_WORDS,
    OtherTarget,
    OutcomeFacts,
    StatedChances,
    _advantage_check,
    _beyond_p,
    _Statement,
    all_facts,
    cross_means,
    outcome_claim,
    outcome_facts,
)
from selfprobe.studies.outcome_reasoning import (
    ReasonedAnswer,
    Reasoning,
    holds_answer,
    reasoning_of,
)

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
        Sample(id=n, input=SUM_PROMPT.format(first=n, second=n % 9), target=str(n + n % 9))
        for n in range(ITEMS)
    ]
    return Task(
        dataset=MemoryDataset(samples, name="sums"), solver=generate(), scorer=match(), name="sums"
    )


def call(*arguments: object) -> Result:
    return CliRunner().invoke(main, ["outcome", *map(str, arguments)])


@pytest.fixture(scope="module")
def logs(tmp_path_factory: pytest.TempPathFactory, run_task: Any) -> Path:
    folder = tmp_path_factory.mktemp("logged")
    for model in WORLDS:
        run_task(sums(), model, folder)
    return folder


@pytest.fixture(scope="module")
def finished_run(logs: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    folder = tmp_path_factory.mktemp("outcome")
    result = run_outcome(logs, folder)
    assert result.exit_code == 0, result.output
    return folder, result.output


def run_outcome(logs: Path, folder: Path, *more: object, models: str = ",".join(WORLDS)) -> Result:
    places = ("--out", folder / "page", "--log-dir", folder / "runs")
    return call(logs, "--models", models, "--yes", *places, *more)


@pytest.mark.slow(20)
def test_who_knows_the_items_and_who_knows_itself_comes_out_as_planted(
    finished_run: tuple[Path, str],
) -> None:
    findings = pd.read_csv(finished_run[0] / "page/tables/findings.csv").set_index("model")
    for model, (items, itself) in WORLDS.items():
        assert (findings.knows_items_low[model] > 0.5) == items, model
        assert (findings.beyond_items_low[model] > 0.5) == itself, model
        assert (findings.answer[model] == "Yes") <= itself
    assert "planted/cy ranks its successes beyond the items with AUROC 0.9" in finished_run[1]


@pytest.mark.slow(9)
def test_the_same_command_again_asks_nothing_and_report_shows_the_page(
    finished_run: tuple[Path, str], logs: Path
) -> None:
    log_names = {info.name for info in list_eval_logs(str(finished_run[0] / "runs"))}
    second_result = run_outcome(logs, finished_run[0], "--json")
    assert second_result.exit_code == 0, second_result.output
    assert {info.name for info in list_eval_logs(str(finished_run[0] / "runs"))} == log_names
    tables = json.loads(second_result.stdout)
    assert len(tables["stated"]) == ITEMS * len(WORLDS) and len(tables["findings"]) == len(WORLDS)
    assert {row["predicted_by"] for row in tables["predictors"]} >= {
        "other models' results",
        "text alone",
        "planted/bo",
    }
    page = CliRunner().invoke(
        main, ["report", str(finished_run[0] / "runs"), "--out", str(finished_run[0] / "report")]
    )
    assert page.exit_code == 0 and "beyond the items with AUROC" in page.output
    page_html = (finished_run[0] / "report/index.html").read_text()
    assert (
        "Do models know in advance what they can solve?" in page_html
        and "Every observer on every target" in page_html
    )
    (claims,) = json.loads((finished_run[0] / "page/claims.json").read_text()).values()
    assert len(claims) == len(WORLDS)
    assert (
        "knows_items"
        in json.loads((finished_run[0] / "page/tables/columns.json").read_text())["findings"]
    )


def test_the_plan_says_the_calls_first_and_whose_logs_are_compared_only(logs: Path) -> None:
    result = call(logs, "--models", f"{ADA},{BO}", "--ask", "solve,length", "--dry-run")
    assert result.exit_code == 0, result.output
    first, second, third, *_ = result.output.splitlines()
    assert first.startswith(f"{ITEMS} items × {ADA}, {BO}, asked before the reply: solve, length")
    assert second == "One call an item, observer and question; logs are of 4 models."
    assert (
        third == "Not asked, their results are compared: planted/cy?knows_own_skill=.8, planted/di"
    )
    assert f" {2 * ITEMS * 2}  " in result.output.replace("all ", "all  ")


def test_who_has_no_log_and_which_log_is_damaged_stand_in_the_plan(
    logs: Path, tmp_path: Path
) -> None:
    (tmp_path / "cut.eval").write_bytes(next(logs.glob("*.eval")).read_bytes()[:900])
    result = call(logs, tmp_path, "--models", f"{BO},planted/zoe", "--dry-run")
    assert (
        "Without a log of its own, so compared as an observer of others and not judged: planted/zoe"
        in result.output
    )
    assert "cut.eval does not count: cannot be read: it is truncated" in result.output


@pytest.mark.parametrize("model", [ADA, BO])
@pytest.mark.parametrize("damaged", ["1.eval", "2.eval"])
def test_a_copy_stands_in_for_a_log_with_a_readable_header_and_damaged_summaries(
    logs: Path, tmp_path: Path, model: str, damaged: str
) -> None:
    """Of the target, and of a model that it is compared with."""
    log_by_model = {
        read_eval_log(info, header_only=True).eval.model: Path(info.name[7:])
        for info in list_eval_logs(str(logs))
    }
    for name in ("1.eval", "2.eval"):
        with ZipFile(log_by_model[model]) as log_zip, ZipFile(tmp_path / name, "w") as copy_zip:
            for member in log_zip.namelist():
                copy_zip.writestr(
                    member,
                    b"[{"
                    if (name, member) == (damaged, "summaries.json")
                    else log_zip.read(member),
                )
    other_log = log_by_model[BO if model == ADA else ADA]
    logged = logged_outcomes([str(tmp_path), str(other_log)], ADA, OutcomeQuestions())
    assert len(logged.table.rows) == ITEMS and all(
        BO in others for others in logged.others.values()
    )
    unread_notes = [note for note in logged.notes if "cannot be read" in note]
    assert len(unread_notes) <= 1 and all(
        f"{damaged} does not count, and " in note for note in unread_notes
    ), "the other one counted"
    intact = logged_outcomes(
        [str(tmp_path / ("2.eval" if damaged == "1.eval" else "1.eval")), str(other_log)],
        ADA,
        OutcomeQuestions(),
    )
    assert logged.table.rows == intact.table.rows

    if model == ADA:
        for name in {"1.eval", "2.eval"} - {damaged}:
            shutil.copy(tmp_path / damaged, tmp_path / name)
        with pytest.raises(
            InputError, match=r"\.eval cannot be read: .*; run it again, or leave it out$"
        ):
            logged_outcomes([str(tmp_path), str(other_log)], ADA, OutcomeQuestions())


def test_models_are_in_the_order_of_the_call_and_the_page_says_what_is_left_out(
    logs: Path, tmp_path: Path, run_task: Any
) -> None:
    (tmp_path / "cut.eval").write_bytes(next(logs.glob("*.eval")).read_bytes()[:900])
    models = ("planted/di", "planted/zoe", ADA)
    study = Outcome(
        logs=(str(logs), str(tmp_path / "cut.eval")),
        models=models,
        log_dir=str(tmp_path / "runs"),
        limit=2,
    )
    for model in (ADA, "planted/zoe", "planted/di"):
        target = model if model in WORLDS else ADA
        args = {"logs": list(study.logs), "ask": ["solve"], "target": target, "about": "self"}
        run_task("selfprobe/outcome", model, tmp_path / "runs", task_args=args, limit=2)
    numbers = study.numbers(study.collected())
    assert list(numbers.stated.observers) == ["planted/di", "planted/zoe", "planted/ada"]
    unlogged_line, notes = numbers.omissions
    assert str(unlogged_line).endswith("not judged: planted/zoe.")
    assert (
        isinstance(notes, Bullets) and "cut.eval does not count: cannot be read" in notes.items[0]
    )


def test_what_shows_a_reply_is_asked_about_each_model(logs: Path) -> None:
    """After the replies: each about its own as "you", and about all four as another's."""
    result = call(logs, "--models", f"{ADA},{BO}", "--when", "after", "--limit", 10, "--dry-run")
    assert result.exit_code == 0 and " 100 " in result.output, result.output


def test_without_another_models_log_nobody_is_said_to_know_itself(
    tmp_path: Path, run_task: Any
) -> None:
    run_task(sums(), ADA, tmp_path / "logged")
    result = run_outcome(tmp_path / "logged", tmp_path, models=ADA)
    assert result.exit_code == 0, result.output
    assert (
        "Without a second model's logs knowledge of the items cannot be told from self-knowledge."
        in result.output
    )
    assert (
        "Cannot tell for planted/ada" in result.output
        and "beside logs of 0 other models; add logs of two" in result.output
    )


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
        (
            ["--models", "planted/di", "--about", "me"],
            "about must be self, other or named, got 'me'",
        ),
        (
            ["--models", "planted/di", "--about", "named,other"],
            "about must hold self, with which the rest is compared",
        ),
        (
            ["--models", "planted/di", "--price", ""],
            "price names no price; expected prices of help such as .1,.3",
        ),
        (
            ["--models", "planted/di", "--price", ",,"],
            "price names no price; expected prices of help such as .1,.3",
        ),
        (
            ["--models", "planted/di", "--price", "1.2"],
            "price must be above 0 and below 1, got 1.2: it is what help costs, as a share of",
        ),
        (["--models", "planted/di", "--score", "mach"], "no score 'mach'; the nearest are match"),
        (
            ["--models", "planted/di", "--cluster", "kind"],
            "cluster=kind: no metadata of that name in ",
        ),
        (
            ["--models", "planted/di", "--when", "after", "--at", "2"],
            "at=2 is a state before the end",
        ),
    ],
)
def test_a_wrong_call_is_refused_in_a_line(arguments: list[str], says: str, logs: Path) -> None:
    result = call(logs, *arguments, "--dry-run")
    assert result.exit_code == 2 and says in result.output, result.output


def test_a_report_compares_runs_with_one_truth_and_sets_the_others_aside(
    logs: Path, tmp_path: Path, run_task: Any
) -> None:
    for tokens in (1, 3):
        args = {"logs": str(logs), "target": ADA, "ask": "length", "tokens": tokens}
        run_task("selfprobe/outcome", ADA, tmp_path / "runs", task_args=args, limit=2)
    page = CliRunner().invoke(
        main, ["report", str(tmp_path / "runs"), "--out", str(tmp_path / "page")]
    )
    assert page.exit_code == 0, page.output
    assert re.search(
        "tokens is (1, there 3|3, there 1)", (tmp_path / "page/index.html").read_text()
    )


# ---- judged without a run

MODELS = ("m/a", "m/b", "m/c", "m/d", "m/e")
Statements = dict[tuple[str, str, str, str], FloatArray]


def world(
    knows: dict[str, tuple[float, float]],
    *,
    items: int = 300,
    seed: int = 0,
    texts: bool = False,
    share: float = 0.0,
) -> StatedChances:
    """Outcomes of five models, and chances of those that are asked, who know the items and
    themselves so far.
    """
    rng = np.random.default_rng(seed)
    shared = rng.normal(size=items)
    skill_of_model = {model: rng.normal(size=items) for model in MODELS}
    outcomes = {
        (model, "solve"): (shared + skill + share > 0).astype(float)
        for model, skill in skill_of_model.items()
    }
    words = {True: "easy plain short", False: "hard strange long"}
    chances: Statements = {}
    for model, (of_items, of_itself) in knows.items():
        logits = (
            of_items * shared + of_itself * skill_of_model[model] + 0.4 * rng.normal(size=items)
        )
        chances[model, "self", "", "solve"] = special.expit(2 * logits).round(2)
    item_texts = [
        f"{words[bool(skill > 0)]} {n}" if texts else f"text {n}"
        for n, skill in enumerate(skill_of_model["m/a"])
    ]
    return StatedChances(
        items=tuple(f"t:{n}" for n in range(items)),
        texts=dict.fromkeys(MODELS, tuple(item_texts)),
        clusters=np.arange(items),
        questions=("solve",),
        observers={model: model for model in knows},
        outcomes=outcomes,
        chances=chances,
    )


KNOWS_ITEMS, KNOWS_BOTH = (1.0, 0.0), (1.0, 1.0)
ALL = dict.fromkeys(MODELS, KNOWS_ITEMS) | {"m/a": KNOWS_BOTH, "m/b": KNOWS_BOTH}
"""All know the items, two themselves."""
THREE = {"m/a": KNOWS_BOTH, "m/b": KNOWS_ITEMS, "m/c": KNOWS_ITEMS}


def claim_of(stated: StatedChances, **changed: Any) -> Claim:
    facts = next(facts for facts in all_facts(stated) if facts.model == "m/a")
    return outcome_claim(replace(facts, **changed), "m/a")


def clause(claim: Claim) -> str:
    return claim_clause(claim, OUTCOME_WORDS).replace("\N{NO-BREAK SPACE}", " ")


def first_open(claim: Claim) -> str:
    check = claim.first_unmet_check
    return check.name if check else ""


def without_logs(stated: StatedChances, kept: int) -> StatedChances:
    """The logs of the first models alone."""
    outcomes = {key: results for key, results in stated.outcomes.items() if key[0] in MODELS[:kept]}
    return replace(stated, outcomes=outcomes)


@pytest.mark.parametrize("knows", [ALL, THREE], ids=["five models", "three models"])
def test_a_model_that_knows_itself_is_told_so_with_its_strongest_competitor(
    knows: dict[str, tuple[float, float]],
) -> None:
    claim = claim_of(world(knows))
    assert claim.verdict is Verdict.YES, clause(claim)
    assert re.fullmatch(
        r"ranks its successes beyond the items with AUROC 0\.9\d \[.*\]; next is .*: 0\.\d\d",
        clause(claim),
    )


@pytest.mark.parametrize(
    ("stated", "check", "says"),
    [
        (
            world(THREE, items=12),
            "items",
            "has 12 items with an answer and an outcome; 20 are the least",
        ),
        (
            world(THREE, share=99),
            "outcomes",
            "at 100 % of its items: outcomes do not differ; take harder items",
        ),
        (
            without_logs(world(THREE), 1),
            "other_logs",
            "beside logs of 0 other models; add logs of two others",
        ),
        (
            without_logs(world(THREE), 2),
            "other_logs",
            "beside logs of 1 other model; add logs of two others",
        ),
        (world({"m/a": KNOWS_BOTH}), "observers", "beside 0 other observers; ask two other models"),
        (
            world({"m/a": KNOWS_BOTH, "m/b": KNOWS_ITEMS}),
            "observers",
            "beside 1 other observer; ask two other",
        ),
        (
            world({"m/a": KNOWS_BOTH, "m/b": (0.2, 0.0), "m/c": (0.2, 0.0)}),
            "informed_observers",
            "; other observers know the items less (+0.",
        ),
    ],
    ids=[
        "few items",
        "one class",
        "no other log",
        "one other log",
        "nobody asked",
        "one asked",
        "others know less",
    ],
)
def test_what_is_missing_is_said_with_what_to_add(
    stated: StatedChances, check: str, says: str
) -> None:
    claim = claim_of(stated)
    assert claim.verdict is Verdict.CANNOT_TELL
    assert first_open(claim) == check and says in clause(claim), clause(claim)


@pytest.mark.parametrize("share", [-99, -1, 0, 99])
def test_no_remedy_stands_beside_a_check_that_holds_and_none_that_would_change_nothing(
    share: float,
) -> None:
    stated = world(THREE, items=60, share=share)
    own_key = ("m/a", "self", "", "solve")
    constant = replace(stated, chances=stated.chances | {own_key: np.full(60, 0.9)})
    for variant in (stated, constant):
        claim = claim_of(reasoned(variant))
        for check in claim.checks:
            assert not (check.remedy and check.outcome is CheckOutcome.HOLDS), check
        remedies = {check.remedy for check in claim.checks}
        adds_items_in_vain = variant is constant or abs(share) == 99
        assert not ("add items" in remedies and adds_items_in_vain), remedies
        assert "–" not in clause(claim)
    if share == 0:
        assert clause(claim_of(constant)).endswith(
            "; it states one chance of all items, which more items would not change"
        )
    if abs(share) == 99:
        ease = "harder" if share > 0 else "easier"
        assert clause(claim_of(stated)).endswith(f"; take {ease} items")


@pytest.mark.parametrize("items", [1, 2, 3])
def test_a_handful_of_items_is_too_few(items: int) -> None:
    claim = claim_of(world(THREE, items=items))
    assert claim.verdict is Verdict.CANNOT_TELL and first_open(claim) == "items"


def test_an_observer_that_knows_as_much_of_the_model_explains_it() -> None:
    stated = world(ALL)
    twin = stated.chances["m/a", "self", "", "solve"]
    claim = claim_of(
        replace(stated, chances={**stated.chances} | {("m/c", "self", "", "solve"): twin})
    )
    assert claim.verdict is not Verdict.YES
    assert first_open(claim) == "above_observers" and "m/c: 0.9" in clause(claim), clause(claim)


def test_what_the_text_tells_as_well_is_no_self_knowledge() -> None:
    claim = claim_of(world(THREE | {"m/a": (0.0, 0.3)}, texts=True))
    assert claim.verdict is Verdict.NO
    assert clause(claim).startswith(
        "ranks its successes beyond the items no better than text alone: 0.8"
    )


def test_what_a_model_states_about_another_assistant_as_well_is_no_self_knowledge() -> None:
    stated = world(ALL)
    own_chances = stated.chances["m/a", "self", "", "solve"]
    claim = claim_of(
        replace(stated, chances={**stated.chances} | {("m/a", "other", "", "solve"): own_chances})
    )
    assert first_open(claim) == "above_other_assistant", clause(claim)


def test_an_expert_of_a_relative_whose_outcomes_its_statements_rank_as_well_is_not_named() -> None:
    """The relative is not asked; the model states how it comes out."""
    stated = world(ALL)
    rng = np.random.default_rng(1)
    results = stated.outcomes["m/a", "solve"]
    relative = np.where(rng.random(len(results)) < 0.8, results, 1 - results)
    chances = {
        ("m/a", "self", "", "solve"): special.expit(
            2 * relative - 1 + rng.normal(size=len(results))
        )
    }
    outcomes = {**stated.outcomes} | {("m/z", "solve"): relative}
    claim = claim_of(replace(stated, outcomes=outcomes, chances={**stated.chances} | chances))
    assert claim.verdict is Verdict.NO and "m/z's outcomes: 0." in clause(claim), clause(claim)


def test_knowledge_of_the_items_alone_is_no_and_its_numbers_are_said() -> None:
    claim = claim_of(world(dict.fromkeys(MODELS, KNOWS_ITEMS), items=1200))
    assert claim.verdict is Verdict.NO
    assert re.match(
        r"ranks its successes with AUROC 0\.[78]\d .*, and beyond the items with 0\.[45]",
        clause(claim),
    )


def test_a_ranking_that_is_inverted_is_no() -> None:
    claim = claim_of(world(THREE | {"m/a": (1.0, -1.0)}, items=1200))
    assert claim.verdict is Verdict.NO and ", and beyond the items with 0." in clause(claim)
    assert claim.effect.high < 0


def test_a_constant_statement_is_never_yes() -> None:
    stated = world(THREE)
    constant = np.full(300, 0.7)
    claim = claim_of(
        replace(stated, chances={**stated.chances} | {("m/a", "self", "", "solve"): constant})
    )
    assert claim.verdict is not Verdict.YES and claim.effect.value == pytest.approx(0)


def test_a_p_that_many_tests_spoil_leaves_the_claim_open() -> None:
    claim = claim_of(world(THREE), p_value=0.05)
    assert claim.verdict is Verdict.CANNOT_TELL and first_open(claim) == "beyond"
    assert "; beyond the items this is not shown: 0.9" in clause(claim) and "(p = 0.050)" in clause(
        claim
    )


def test_p_is_fine_enough_for_all_models_and_questions() -> None:
    """With 30 models, the smallest p of 999 exchanges times 30 would be above the level."""
    stated = world(THREE)
    runs = {f"m/a {number}": "m/a" for number in range(30)}
    chances = {
        (run, "self", "", "solve"): stated.chances["m/a", "self", "", "solve"] for run in runs
    }
    facts = all_facts(
        replace(stated, observers={**stated.observers} | runs, chances={**stated.chances} | chances)
    )
    assert facts[0].p_value < BEYOND_ALPHA


def test_what_other_observers_know_of_themselves_is_no_knowledge_of_the_model() -> None:
    """Among items that as many models solved, their success is the model's failure."""
    excesses = []
    for seed in range(4):
        knows = dict.fromkeys(MODELS, (1.0, 1.5)) | {"m/a": KNOWS_ITEMS}
        excesses.append(claim_of(world(knows, seed=seed, items=600)).effect.value)
    assert abs(np.mean(excesses)) < 0.03, excesses


def test_cells_are_beyond_the_items_as_the_findings_are() -> None:
    """A model whose log is there and that is not asked says which items are hard in both."""
    stated = world({model: ALL[model] for model in MODELS[:4]})
    is_there = np.ones(300, dtype=bool)
    matrix = cross_means(stated, "solve")
    counts = np.array([stated.outcomes[model, "solve"] for model in MODELS]).sum(axis=0)
    for index, model in enumerate(MODELS[:4]):
        strata = stated.strata(model, "solve", is_there)
        assert len(np.unique(strata)) == 6 and len({*zip(strata, counts, strict=True)}) == 6
        own_chances = stated.about_itself(model, "solve")
        assert own_chances is not None
        scores = ordered(own_chances, stated.outcomes[model, "solve"], strata).scores
        assert matrix.means[index, index] == pytest.approx(np.nanmean(scores))
    assert (
        np.diag(matrix.means)[:2].min() > 0.8 and abs(np.diag(matrix.means)[2:] - 0.5).max() < 0.15
    )


def test_a_cluster_is_one_unit() -> None:
    stated = replace(world(THREE, items=100), clusters=np.arange(100) // 4)
    facts: OutcomeFacts = outcome_facts(stated, "m/a", "solve")
    assert facts.n == facts.auroc.n == 25 and facts.others == 4 and facts.observers == 2
    assert facts.items == 100 and 0 < facts.p_value < 0.02


def test_with_two_models_the_others_self_knowledge_turned_round_is_no_knowledge_of_the_first() -> (
    None
):
    """Among items that one of two solved, the first's success is the second's failure."""
    rng = np.random.default_rng(0)
    skill_of_model = {model: rng.normal(size=300) for model in MODELS[:2]}
    outcomes = {
        (model, "solve"): (skill > 0).astype(float) for model, skill in skill_of_model.items()
    }
    chances: Statements = {
        ("m/a", "self", "", "solve"): special.expit(skill_of_model["m/a"] + rng.normal(size=300)),
        ("m/b", "self", "", "solve"): special.expit(-skill_of_model["m/b"]),
    }
    observers = {model: model for model in skill_of_model}
    two = replace(world({}), observers=observers, outcomes=outcomes, chances=chances)
    facts = outcome_facts(two, "m/a", "solve")
    rival = next(predictor for predictor in facts.predictors if predictor.is_observer)
    assert math.isnan(rival.beyond_observers.value) and abs(rival.auroc.value - 0.5) < 0.1
    claim = outcome_claim(facts, "m/a")
    assert claim.verdict is Verdict.CANNOT_TELL and first_open(claim) == "other_logs"
    assert np.isnan(cross_means(two, "solve").means[[0, 1], [1, 0]]).all()


def test_domains_are_seen_in_the_outcomes_where_there_are_some() -> None:
    rng = np.random.default_rng(0)
    skills = rng.normal(size=(5, 2))[:, rng.integers(2, size=800)]
    results = (rng.random(skills.shape) < special.expit(1.5 * skills)).astype(float)
    stated = replace(
        world({}), outcomes={(model, "solve"): results[n] for n, model in enumerate(MODELS)}
    )
    assert stated.domains_p("solve") < 0.05
    graded = replace(
        stated, outcomes={key: values * 0.5 for key, values in stated.outcomes.items()}
    )
    assert math.isnan(graded.domains_p("solve"))


def test_where_no_answer_can_be_read_the_page_cannot_tell(
    logs: Path, tmp_path: Path, run_task: Any
) -> None:
    unreadable = "planted/ed?malformed=1"
    run_task(sums(), unreadable, tmp_path / "logged")
    folders = ("--log-dir", tmp_path / "runs", "--out", tmp_path / "page", "--yes")
    result = call(logs, tmp_path / "logged", f"--models={unreadable}", *folders)
    assert result.exit_code == 1, result.output
    answer = " ".join(result.output.split())
    assert "it has 0 items with an answer and an outcome; 20 are the least" in answer
    assert "nothing could be scored" in answer and "nan" not in answer
    findings = pd.read_csv(tmp_path / "page/tables/findings.csv")
    assert list(findings["items"]) == [0] and findings.auroc.isna().all()


@pytest.mark.parametrize("seed", range(6))
def test_a_check_against_a_competitor_holds_exactly_where_its_interval_is_above_zero(
    seed: int,
) -> None:
    """One side at 5 % would hold with an interval that begins below 0."""
    rng = np.random.default_rng(seed)
    for _ in range(40):
        error = float(rng.uniform(0.01, 0.1))
        value = float(rng.normal(0.1, 0.1))
        half = -float(special.stdtrit(60, 0.025)) * error
        below = Estimate(value, value - half, value + half, 61, "item", se=error, df=60)
        target = OtherTarget("b", undefined("", value=0.5), below)
        check = _advantage_check("own_outcomes", "b's outcomes", target, True)
        assert (check.outcome is CheckOutcome.HOLDS) == (below.low > 0)


def test_p_and_interval_beyond_the_items_have_the_same_two_sides() -> None:
    """Two statements of clusters: the interval excludes one half where p is below 5 %."""
    for strength in (0.0, 0.15, 0.2, 0.25, 0.3, 0.6):
        rng = np.random.default_rng(5)
        outcomes = (rng.random(200) < 0.5).astype(float)
        residuals = strength * outcomes + rng.normal(size=200)
        labels = np.repeat(np.arange(100), 2)
        strata = np.zeros(200, dtype=np.intp)
        beyond = stratified_auroc(residuals, outcomes, labels, strata)
        p = _beyond_p(_Statement(residuals, residuals, strata), outcomes, labels, beyond, 99)
        assert (p < 0.05) == (beyond.low > 0.5)


# ---- what was reasoned


@pytest.mark.parametrize(
    ("reasoning", "answers", "item", "holds"),
    [
        ("480 plus 7 gives 487, so yes.", ["487"], "What is 480 + 7?", True),
        ("That is 1,234 in all.", ["1234"], "Sum?", True),
        ("It is 487.5, or so.", ["487"], "Sum?", False),
        ("I am good at sums.", ["487"], "What is 480 + 7?", False),
        ("The capital is Paris.", ["paris"], "Capital of France?", True),
        ("Paris or Lyon? Hard.", ["Paris"], "Paris or Lyon?", False),
        ("The answer is Paris.", ["Paris"], "Paris or Lyon?", True),
        ("The answer is (B).", ["B"], "A) x B) y", True),
        ("A question of kind B.", ["B"], "A) x B) y", False),
        ("In step 7 I add.", ["7"], "3 + 4?", False),
        ("3 + 4 = 7, easy.", ["7"], "3 + 4?", True),
        ("It gives 488.", ["487", "488"], "What is 480 + 7?", True),
        ("Anything.", [], "What?", None),
        ("Anything.", ["-"], "What?", None),
        ("Anything.", ["a long text " * 20], "What?", None),
    ],
)
def test_reasoning_holds_an_answer_where_it_says_what_the_item_does_not(
    reasoning: str, answers: list[str], item: str, holds: bool | None
) -> None:
    assert holds_answer(reasoning, answers, item) is holds


WRITTEN_NUMBERS = {
    "1398": (
        "1398",
        "1,398",
        "1.398",
        "1 398",
        "1\u202f398",
        "1'398",
        "1398.0",
        "1,398.00",
        "１３９８",
        "١٣٩٨",
        "2796/2",
    ),
    "-42": ("-42", "\u221242", "\u221242.0"),
    "0.5": ("0.5", ".5", "0,5", "1/2", "2 / 4", r"\\frac{1}{2}", "50 %", "0.50"),
    "1234567": ("1,234,567", "1.234.567", "12,34,567", "1 234 567", "$1,234,567.00"),
}
SENTENCES_WITH_NUMBER = (
    "計算すると答えは{}です。",
    "So it is {}.",
    "Das macht {}, also ja.",
    "Это {}!",
    "ดังนั้น{}ครับ",
    "({})",
)


@pytest.mark.parametrize("sentence", SENTENCES_WITH_NUMBER)
@pytest.mark.parametrize("number", WRITTEN_NUMBERS)
def test_a_number_is_found_however_it_is_written_in_any_script(number: str, sentence: str) -> None:
    for written in WRITTEN_NUMBERS[number]:
        reasoning = sentence.format(written)
        for answer in WRITTEN_NUMBERS[number]:
            assert holds_answer(reasoning, [answer], "How many?"), (reasoning, answer)
        for longer in (f"9{written.lstrip('-$')}", f"{written}9"):
            other_value = longer.startswith(".") or "frac" in longer or "%" in longer
            if not other_value and longer not in ("0.509", "0.59"):
                reasoning = sentence.format(longer)
                assert not holds_answer(reasoning, [number], "How many?"), reasoning


@pytest.mark.parametrize("answer", ["B", "3", "D"])
@pytest.mark.parametrize(
    "sentence",
    [
        "Antwort: {}",
        "Die Antwort ist {}.",
        "La réponse est ({}).",
        "La respuesta es la {}.",
        "Ответ: {}",
        "答えは{}です。",
        "正解は{}",
        "答案是{}。",
        "정답은 {}입니다.",
        "الجواب هو {}",
        r"So \\boxed{{{}}}",
        "I weigh both.\n**{}**",
        "The correct option is {}",
    ],
)
def test_a_letter_or_digit_counts_where_it_is_called_the_answer_in_any_language(
    sentence: str, answer: str
) -> None:
    item = "A) 1 B) 2 C) 3 D) 4"
    assert holds_answer(sentence.format(answer), [answer], item)
    assert not holds_answer(sentence.format("C"), [answer], item)
    assert not holds_answer(f"Step {answer} is hard. Kind {answer}?", [answer], item)


@pytest.mark.parametrize(
    ("reasoning", "answer", "holds"),
    [
        ("I am not sure whether the answer is yes or no?", "yes", False),
        ("I am not sure whether the answer is yes or no?", "no", False),
        ("The answer: no idea.", "no", False),
        ("I have no idea, yes.", "no", False),
        ("Yes, I can do this.", "yes", False),
        ("The answer is yes.", "yes", True),
        ("Die Antwort ist: nein", "nein", True),
        ("Answer: **No**", "no", True),
        ("It is true that I know it.", "True", False),
        ("So the result is False.", "False", True),
        ("答えははいです。", "はい", True),
        ("それはパリです。", "パリ", True),
        ("首都是巴黎吗。", "巴黎", True),
        ("수도는 파리입니다.", "파리", True),
    ],
)
def test_short_words_count_only_as_a_stated_answer(
    reasoning: str, answer: str, holds: bool
) -> None:
    assert holds_answer(reasoning, [answer], "Is it so?") is holds


@pytest.mark.parametrize(
    ("text", "answer", "is_readable"),
    [
        ("That is harder than {}, 999 at least.", "1398", True),
        ("Hard to say.", "1398", False),
        ("One thousand three hundred ninety-eight.", "1398", False),
        ("My chance is 0.7, or 85 %, with 3 digits.", "1398", False),
        ("The answer is C.", "B", True),
        ("It must be the mitochondrion.", "B", False),
        ("x squared plus one.", "x^2+1", False),
        ("Seine Hauptstadt kenne ich.", "Bern", False),
    ],
)
def test_nothing_is_known_of_reasoning_in_which_no_answer_of_the_kind_is_ever_recognised(
    text: str, answer: str, is_readable: bool
) -> None:
    reasoning = reasoning_of([ReasonedAnswer(text, True, "What is it?", (answer,))] * 30)
    flags = reasoning.answer_flags
    assert (flags == 0).all() if is_readable else np.isnan(flags).all()


def test_an_answer_of_another_item_shows_that_words_are_recognised() -> None:
    texts = ["Bern, I think.", "Hm.", "No.", "Oslo?"]
    answers = ["Rome", "Oslo", "Bern", "Lima"]
    reasoned = [
        ReasonedAnswer(text, True, "Capital?", (answer,))
        for text, answer in zip(texts, answers, strict=True)
    ]
    assert list(reasoning_of(reasoned).answer_flags) == [0, 0, 0, 0]


def test_items_that_are_solved_while_asked_are_counted_and_logs_of_before_are_read(
    tmp_path: Path, run_task: Any
) -> None:
    model = "planted/flo?solves=.7"
    run_task(sums(), model, tmp_path / "logged", limit=8)
    study = Outcome(
        logs=(str(tmp_path / "logged"),), models=(model,), log_dir=str(tmp_path / "runs"), limit=8
    )
    args = {"logs": list(study.logs), "ask": ["solve"], "target": model, "about": "self"}
    run_task("selfprobe/outcome", model, tmp_path / "runs", task_args=args, limit=8)
    numbers = study.numbers(study.collected())
    (reasoning,) = numbers.stated.reasoning.values()
    is_solved = [" = " in text for text in reasoning.texts]
    assert 2 < sum(is_solved) < 8 and list(reasoning.has_reasoning) == is_solved
    assert [flag == 1 for flag in reasoning.answer_flags] == is_solved
    (facts,) = numbers.facts
    assert facts.solved.solved.value == pytest.approx(np.mean(is_solved))

    (info,) = list_eval_logs(str(tmp_path / "runs"))
    log = read_eval_log(info)
    for sample in log.samples or []:
        del sample.metadata["answers"]
    write_eval_log(log, info)
    numbers_of_before = study.numbers(study.collected())
    (facts_of_before,) = numbers_of_before.facts
    assert facts_of_before.auroc == facts.auroc and math.isnan(facts_of_before.solved.auroc.value)
    assert facts_of_before.solved.unknown_share == pytest.approx(np.mean(is_solved))


def reasoned(
    stated: StatedChances,
    *,
    solved: FloatArray | None = None,
    texts: tuple[str, ...] = (),
) -> StatedChances:
    """The same, where the first model reasoned about every item."""
    item_count = len(stated.items)
    reasoning = Reasoning(
        texts=texts or tuple(f"thinking {number}" for number in range(item_count)),
        has_reasoning=np.ones(item_count, dtype=bool),
        answer_flags=np.zeros(item_count) if solved is None else solved,
    )
    return replace(stated, reasoning={("m/a", "solve"): reasoning})


def test_reasoning_that_solves_nothing_and_says_nothing_leaves_a_claim() -> None:
    claim = claim_of(reasoned(world(ALL)))
    assert claim.verdict is Verdict.YES
    names = [check.name for check in claim.checks]
    assert names.index("informed_observers") < names.index("unsolved") < names.index("above_text")
    assert "unsolved" not in {check.name for check in claim_of(world(ALL)).checks}


@pytest.mark.parametrize(
    ("solved", "says"),
    [
        (
            np.ones(300),
            "its reasoning solves 100 % of the items while it is asked, and too few others are left",
        ),
        (
            np.full(300, math.nan),
            "whether its reasoning solves the items is not known, since it is hidden or no",
        ),
    ],
    ids=["all", "hidden"],
)
def test_a_model_that_solves_the_items_while_asked_is_not_said_to_know_in_advance(
    solved: FloatArray, says: str
) -> None:
    claim = claim_of(reasoned(world(ALL), solved=solved))
    assert claim.verdict is Verdict.CANNOT_TELL and first_open(claim) == "unsolved"
    assert says in clause(claim) and clause(claim).endswith("(--effort none)"), clause(claim)


def test_what_a_reader_of_the_reasoning_foretells_as_well_leaves_the_claim_open() -> None:
    stated = world(ALL)
    successes = stated.outcomes["m/a", "solve"] > 0.5
    texts = tuple("quite sure of it" if success else "hardly any idea" for success in successes)
    claim = claim_of(reasoned(stated, texts=tuple(f"{text} {n}" for n, text in enumerate(texts))))
    assert claim.verdict is Verdict.CANNOT_TELL and first_open(claim) == "above_reasoning"
    assert "text of its reasoning: 1.0" in clause(claim)


# ---- metacognition


def easy_numbers(**changed: Any) -> OutcomeNumbers:
    """Five models that succeed at different shares of items; the best knows least of itself."""
    rng = np.random.default_rng(3)
    outcomes = {}
    chances: Statements = {}
    for number, model in enumerate(MODELS):
        successes = (rng.random(400) < 0.9 - 0.06 * number).astype(float)
        knows = (0.75, 0.7, 0.6, 0.5, 0.3)[number]
        logits = 1 + knows * (2 * successes - 1) + rng.normal(size=400)
        outcomes[model, "solve"] = successes
        chances[model, "self", "", "solve"] = special.expit(logits).round(2)
    stated = replace(
        world({}, items=400),
        observers=dict(zip(MODELS, MODELS, strict=True)),
        outcomes=outcomes,
        chances=chances,
    )
    return OutcomeNumbers(all_facts(stated), {}, stated, **changed)


def test_the_page_has_m_ratio_beside_auroc_dimensions_and_what_help_would_gain() -> None:
    page = Outcome.page(easy_numbers(prices=(0.2, 0.5)))
    rows = page.frames["metacognition"].set_index("run")
    assert list(rows.m_ratio_n) == [400] * 5 and set(rows.reason) == {""}
    assert (rows.m_ratio_low < rows.m_ratio).all() and (rows.m_ratio < rows.m_ratio_high).all()
    orders = {name: list(rows.sort_values(name).index) for name in ("auroc", "m_ratio")}
    assert orders["auroc"] != orders["m_ratio"]
    dimensions = page.frames["dimensions"]
    assert len(dimensions) == 5 and dimensions.counts.dtype == bool
    routed = page.frames["routing"]
    assert len(routed) == 10 and set(routed.price) == {0.2, 0.5}
    plain_page = Outcome.page(easy_numbers())
    assert "routing" not in plain_page.frames
    assert not any("asking for help" in line for line in plain_page.notes)


def test_what_help_would_gain_is_the_last_line_of_the_terminal() -> None:
    page = Outcome.page(easy_numbers(prices=(0.2, 0.5)))
    routed = page.frames["routing"]
    gain_texts = []
    for price, rows in routed.groupby("price"):
        smaller_gains = rows[["over_acting", "over_asking"]].min(axis=1)
        assert list(rows.over_better) == list(smaller_gains)
        best_row = rows.loc[smaller_gains.idxmax()]
        model_text = f"help costs {price:g} (over {best_row.better}, {best_row.run}, most"
        gain_texts.append((f"{smaller_gains.max():+.2f}", model_text))
    assert len(page.notes) == MOST_TERMINAL_LINES
    *_, line = page.notes
    assert line.startswith("Acting on high chances alone gains an item, over the better of"), line
    for number_text, model_text in gain_texts:
        assert number_text.replace("-", "−") in line and f"{model_text} of 5)" in line, line


def test_the_line_on_help_leaves_the_count_of_models_that_are_on_the_page_alone() -> None:
    numbers = easy_numbers()
    claims = [
        outcome_claim(facts, f"{facts.run}{copy}") for facts in numbers.facts for copy in (1, 2)
    ]
    _, lines = answer_over(claims, OUTCOME_WORDS, most_lines=MOST_TERMINAL_LINES - 1)
    assert len(lines) == 4 and lines[-1].startswith("6 more models are on the page. Of these: ")


def test_of_seven_models_the_terminal_counts_hidden_answers_and_the_page_has_all() -> None:
    numbers = easy_numbers()
    copies = [
        replace(facts, run=f"{facts.run}{copy}") for facts in numbers.facts for copy in range(2)
    ][:7]
    no_facts = replace(
        copies[0],
        run="m/no",
        beyond_observers=Estimate(0.5, 0.45, 0.55, 400, "item"),
        p_value=1.0,
    )
    page = Outcome.page(replace(numbers, facts=[*copies, no_facts], matrices={}))
    assert page.table is not None and len(page.table.rows) == 8
    first_verdict, last_verdict = (page.claims[index].verdict for index in (0, -1))
    if first_verdict is not last_verdict:
        assert "more models are on the page. Of these: " in page.notes[-1], page.notes
        assert f"{last_verdict.value} for" in page.notes[-1]
    assert page.picture is not None and "Tables show 3 more." in page.picture.caption
    html = render(page, "out")
    assert "Not drawn: 5 models more." in html and "Not drawn: 3 models more." in html


def test_of_one_model_the_line_on_help_names_none_and_of_few_items_says_how_many_are_needed() -> (
    None
):
    gain = Estimate(0.05, 0.01, 0.09, 400, "item")
    larger = Estimate(0.2, 0.1, 0.3, 400, "item")
    texts = "always acting", "0.50"
    row = RoutingRow("m/a", "solve", 0.3, gain, *texts, 0.5, gain, larger)
    (line,) = routing_lines([row])
    gain_text = "asking for help: +0.05 [+0.01, +0.09] where help costs 0.3 (over always acting)."
    assert line.endswith(gain_text), line
    unclear_gain = replace(gain, low=-0.01)
    (line,) = routing_lines([replace(row, over_better=unclear_gain)])
    assert "for help: no gain is shown: +0.05 [−0.01, +0.09] where help" in line, line
    absent = undefined("items: 12; 20 are the least")
    (line,) = routing_lines([replace(row, over_better=absent)])
    assert line.endswith("not known at 0.3 (items: 12; 20 are the least)."), line
    assert routing_lines([]) == []


def test_thresholds_and_ends_of_shares_are_in_words() -> None:
    assert threshold_text((0.0,) * 5) == "any" and threshold_text((math.inf,) * 5) == "never"
    assert threshold_text((0.6, 0.62, math.inf)) == "0.60 to never"
    assert threshold_text((0.0, 0.62)) == "any to 0.62" and threshold_text(()) == "–"
    shares = [write_inner_percent(share) for share in (1, 0.9963, 0.995, 0.98, 0.004, 0)]
    assert shares == ["100 %", ">99 %", ">99 %", "98 %", "0.4 %", "0 %"]


def of_question(stated: StatedChances, question: str) -> StatedChances:
    """The same statements and outcomes, of another question."""
    return replace(
        stated,
        questions=(question,),
        outcomes={(model, question): results for (model, _), results in stated.outcomes.items()},
        chances={(*key[:3], question): values for key, values in stated.chances.items()},
    )


def page_of(stated: StatedChances) -> Page:
    return Outcome.page(OutcomeNumbers(all_facts(stated), {}, stated))


def test_refusals_have_no_d_prime_and_three_models_no_dimensions() -> None:
    refusals = of_question(world(THREE), "refuse")
    facts = all_facts(refusals)
    assert {entry.metacognition.m_ratio.reason for entry in facts} == {"only being right has a d′"}
    assert dimension_lines(refusals.dimensions_by_question) == [
        "refuse: no number of dimensions (models: 3; 4 are the least)."
    ]


@pytest.mark.parametrize(
    ("question", "models", "explained"),
    [
        ("solve", 3, {"M-ratio is"}),
        ("solve", 5, {"M-ratio is", "Dimensions of"}),
        ("refuse", 3, set()),
        ("length", 5, {"Dimensions of"}),
    ],
)
def test_the_page_explains_m_ratio_and_dimensions_where_it_has_them(
    question: str, models: int, explained: set[str], tmp_path: Path
) -> None:
    stated = world(THREE if models == 3 else ALL)
    page = page_of(of_question(stated, question))
    html = render(page, str(tmp_path))
    assert {words for words in ("M-ratio is", "Dimensions of") if words in html} == explained
    assert ("metacognition" in page.frames) == ("M-ratio is" in explained)
    assert bool(len(page.frames["dimensions"])) == ("Dimensions of" in explained)


def test_the_dimensions_of_a_question_are_computed_once(monkeypatch: pytest.MonkeyPatch) -> None:
    counted: list[int] = []

    def counting(chances: FloatArray, clusters: Any) -> Dimensions:
        counted.append(len(chances))
        return count_dimensions(chances, clusters)

    monkeypatch.setattr(outcome_numbers, "count_dimensions", counting)
    page = page_of(world(ALL))
    assert len(counted) == 1 and list(page.frames["dimensions"].counts) == [True, *[False] * 4]


def test_auroc_and_m_ratio_are_drawn_where_they_order_models_differently() -> None:
    numbers = easy_numbers()
    by_run = {facts.run: facts for facts in numbers.facts}
    assert metacognition_picture(by_run) is not None
    ordered_alike = {run: by_run[run] for run in list(by_run)[:1]}
    assert metacognition_picture(ordered_alike) is None and metacognition_picture({}) is None


def test_one_item_one_log_and_one_cluster_are_in_the_singular(logs: Path) -> None:
    result = call(logs, "--models", BO, "--limit", 1, "--dry-run")
    assert result.output.startswith(f"1 item × {BO}, asked before"), result.output
    facts = replace(outcome_facts(world(ALL), "m/a", "solve"), items=30, n=1, others=1, observers=1)
    assert "has 1 item with an answer" in clause(claim_of(world(ALL), n=1))
    first, second, *_ = outcome_notes(facts)
    assert "30 items in 1 cluster;" in first
    assert second.startswith("The results of 1 other model on the same items reach")
