"""A task of somebody else is one file: the one of docs/own.md is put into a folder, and found
everywhere.
"""

import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from inspect_ai.log import read_eval_log

import selfprobe.introspect_tasks
import selfprobe.preference_tasks
from selfprobe.errors import InputError
from selfprobe.providers import behaviours
from selfprobe.providers.mind import BEHAVIOURS
from selfprobe.solvers.converse import Conversations
from selfprobe.solvers.observe import Prediction
from selfprobe.studies.matrix.numbers import analyse
from selfprobe.studies.matrix.study import Matrix
from selfprobe.study import _registry
from selfprobe.study.waves import RunSettings
from tests.matrix.read_logs import read_matrices, replies_in

ROOT = Path(__file__).parent.parent
PAGE = (ROOT / "docs/own.md").read_text()
FILES = re.findall(r"`[\w/]*?(\w+)/(\w+\.py)`:\n\n```python\n(.*?)```", PAGE, re.DOTALL)
ADA, BO = "planted/ada?access=.9", "planted/bo?access=0"


@pytest.fixture(scope="module")
def stranger(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """The page's task and its behaviour in folders of their own, where the suite looks; the task's
    file.
    """
    folder, before = tmp_path_factory.mktemp("stranger"), len(BEHAVIOURS)
    with pytest.MonkeyPatch.context() as patch:
        for place, package in (
            ("introspect_tasks", selfprobe.introspect_tasks),
            ("behaviours", behaviours),
        ):
            (folder / place).mkdir()
            patch.setattr(package, "__path__", [*package.__path__, str(folder / place)])
        for place, name, text in FILES:
            (folder / place / name).write_text(text)
        _registry._modules.cache_clear()
        behaviours.register_all()
        yield folder / "introspect_tasks" / "word_count.py"
    del BEHAVIOURS[before:]
    _registry._modules.cache_clear()


def test_the_page_shows_a_task_with_its_scorer_in_55_lines() -> None:
    assert [name for _, name, _ in FILES] == ["word_count.py", "word_count.py"]
    assert len(FILES[0][2].splitlines()) <= 55


def test_it_refuses_the_name_of_an_argument_that_it_does_not_have(stranger: Path) -> None:
    word_count = _registry.tasks()["word_count"]
    with pytest.raises(
        InputError, match=r"^word_count has no argument efort; did you mean effort\?$"
    ):
        word_count(efort="low")
    with pytest.raises(
        InputError,
        match=r"^word_count has no argument about; there are effort, answer_tokens, target_l",
    ):
        word_count(about="other")
    assert _registry.defaults_of("word_count") == dict.fromkeys(
        ("effort", "answer_tokens", "target_log", "dataset")
    ) | {"same_model": False}


def test_without_measure_it_runs_and_is_in_no_matrix(
    stranger: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delattr(_registry._modules()["word_count"], "MEASURE")
    assert "word_count" in _registry.tasks() and "word_count" not in _registry.measures()
    with pytest.raises(
        ValueError, match="word_count has no MEASURE in its file, so no matrix can hold it"
    ):
        Matrix(models=[ADA, BO], tasks=["word_count"])


def test_it_runs_by_path_and_by_name_and_its_planted_truth_comes_out(
    stranger: Path, run_task: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(stranger.parent)
    assert _registry.summary_of("word_count").startswith("Word count: does a model know")
    for place, what in (("path", stranger.name), ("name", "selfprobe/word_count")):
        log = run_task(what, ADA, tmp_path / place, limit=60)
        assert log.status == "success" and log.results, log.error
        numbers = {name: metric.value for name, metric in log.results.scores[0].metrics.items()}
        assert abs(numbers["accuracy"] - 0.9) < 0.12 and numbers["unscored"] == 0


@pytest.mark.slow(6)
def test_all_items_give_the_numbers_that_the_page_says(
    stranger: Path, run_task: Any, tmp_path: Path
) -> None:
    log = run_task("selfprobe/word_count", ADA, tmp_path, limit=None)
    metrics = log.results.scores[0].metrics
    shown = [f"{metrics[name].value:.3f}".lstrip("0") for name in ("accuracy", "baseline_mode")]
    assert "an accuracy of {}, and {} for the best constant answer".format(*shown) in PAGE


def test_what_always_saying_the_best_number_reaches_is_graded_within_the_tolerance(
    stranger: Path, run_task: Any, tmp_path: Path
) -> None:
    log = run_task("selfprobe/word_count", BO, tmp_path, limit=60)
    truths = np.array(
        [int(s.scores["word_count_match"].metadata["truth"]["words"]) for s in log.samples]
    )
    best = max(float(np.mean(np.abs(said - truths) <= 0.2 * truths)) for said in truths)
    baseline = log.results.scores[0].metrics["baseline_mode"].value
    assert best - 0.1 < baseline <= best, "equality would find less than half of it"
    assert best > 0.35 and np.unique(truths, return_counts=True)[1].max() / len(truths) < 0.2


@pytest.mark.slow(3)
def test_it_is_in_the_matrix_its_report_and_the_table_of_similar_replies(
    stranger: Path, tmp_path: Path
) -> None:
    quiet = RunSettings(display="none")
    asked = Matrix(
        models=[ADA, BO], tasks=["word_count"], limit=40, log_dir=str(tmp_path), settings=quiet
    )
    assert [cost.calls for cost in asked.plan().costs] == [40 * 2] * 2
    assert asked.ask()
    results = read_matrices([str(tmp_path)])
    (task,) = analyse(results, rng=np.random.default_rng(0)).tasks
    assert task.task == "word_count" and task.models == (ADA, BO) and task.matrix.holes == {}
    own = task.cells.set_index(["target", "observer"]).value
    assert own[ADA, ADA] > 0.75 and own[BO, BO] == 0
    assert "mode" not in task.reason_by_missing_baseline
    replies = replies_in([str(tmp_path)]).replies
    assert set(replies["word_count"]) == {ADA, BO}


@pytest.mark.parametrize(
    ("measure", "told"),
    [
        ("MEASURE = 3", "MEASURE must be a Measure, got int"),
        (
            "MEASURE = Measure(acts=())",
            "expected MEASURE to have acts and no negative calls; got acts ()",
        ),
        ("MEASURE = Measure(acts=('answer',), observer=-1)", "-1 of the observer"),
    ],
)
def test_a_measure_that_contradicts_its_task_is_refused_with_the_file(
    stranger: Path, monkeypatch: pytest.MonkeyPatch, measure: str, told: str
) -> None:
    from selfprobe.scorers.decision import Measure

    module = _registry._modules()["word_count"]
    monkeypatch.setattr(module, "MEASURE", eval(measure.partition("= ")[2], {"Measure": Measure}))
    with pytest.raises(InputError) as error:
        _registry.measures()
    assert "word_count.py" in str(error.value) and told in str(error.value)


def test_an_act_that_the_task_does_not_record_is_refused_with_the_nearest(
    stranger: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    module = _registry._modules()["word_count"]
    monkeypatch.setattr(module, "MEASURE", replace(module.MEASURE, acts=("anser",)))
    with pytest.raises(
        InputError, match=r"^word_count: MEASURE names the act anser; did you mean answer\?$"
    ):
        Matrix(models=[ADA, BO], tasks=["word_count"]).plan()


def in_another_folder(monkeypatch: pytest.MonkeyPatch, file: Path, text: str) -> None:
    """Put a task file where the suite looks."""
    file.write_text(text)
    package = selfprobe.preference_tasks
    monkeypatch.setattr(package, "__path__", [*package.__path__, str(file.parent)])
    _registry._modules.cache_clear()


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("import no_such_package", "line 1: No module named 'no_such_package'"),
        ("def f(:", "line 1: invalid syntax"),
        (
            "from selfprobe.task import Measure\nMEASURE = Measure(act=('answer',))",
            "line 2: .*missing 1 required positional argument: 'acts'",
        ),
        ("x = 1\nx.y", "line 2: 'int' object has no attribute 'y'"),
    ],
)
def test_a_task_file_that_cannot_be_imported_is_named_and_the_others_go_on(
    stranger: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    text: str,
    why: str,
) -> None:
    in_another_folder(monkeypatch, tmp_path / "broken.py", text)
    assert "kth_word" in _registry.tasks() and "broken" not in _registry.tasks()
    assert re.search(
        rf"{re.escape(str(tmp_path / 'broken.py'))}, {why}.*; its task is left out", caplog.text
    )
    monkeypatch.undo()
    _registry._modules.cache_clear()


def test_a_copied_file_whose_task_keeps_its_name_is_refused_with_both_places(
    stranger: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    in_another_folder(monkeypatch, tmp_path / "word_count2.py", stranger.read_text())
    with pytest.raises(
        InputError,
        match=r"two task files have a task word_count: .*word_count\.py and .*word_count2\.py; rename one",
    ):
        _registry.tasks()
    monkeypatch.undo()
    _registry._modules.cache_clear()


def test_acts_that_are_one_text_are_refused(
    stranger: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    module = _registry._modules()["word_count"]
    monkeypatch.setattr(module, "MEASURE", replace(module.MEASURE, acts="answer"))
    with pytest.raises(
        InputError, match=r"acts of MEASURE must be a tuple, such as \('answer',\), got 'answer'"
    ):
        _registry.measures()


def test_a_prediction_refuses_an_argument_that_it_does_not_have() -> None:
    with pytest.raises(
        InputError, match=r"^Prediction has no argument datset; did you mean dataset\?$"
    ):
        Prediction("word_count", "open_questions", ("question",), datset="mine.jsonl")  # type: ignore[arg-type]
    with pytest.raises(
        InputError, match=r"^Conversations has no argument contxt; did you mean context\?$"
    ):
        Conversations("binary", contxt="full")  # type: ignore[arg-type]


def test_two_task_files_of_one_name_are_refused_with_both_places(
    stranger: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = tmp_path / "kth_word.py"
    other.write_text((ROOT / "introspect_tasks/kth_word.py").read_text())
    package = selfprobe.evalawareness_tasks
    monkeypatch.setattr(package, "__path__", [*package.__path__, str(tmp_path)])
    _registry._modules.cache_clear()
    with pytest.raises(
        InputError, match=r"two task files have a task kth_word: .*kth_word\.py and .*; rename one"
    ):
        _registry.tasks()
    monkeypatch.undo()
    _registry._modules.cache_clear()


def test_a_task_file_of_the_name_of_another_in_inspect_is_refused_too(
    stranger: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "awareness_binary.py").write_text(
        (ROOT / "evalawareness_tasks/binary.py").read_text()
    )
    package = selfprobe.preference_tasks
    monkeypatch.setattr(package, "__path__", [*package.__path__, str(tmp_path)])
    _registry._modules.cache_clear()
    with pytest.raises(
        InputError, match=r"two task files have a task binary: .*binary\.py and .*; rename one"
    ):
        _registry.tasks()
    monkeypatch.undo()
    _registry._modules.cache_clear()


def test_its_log_says_what_was_graded(stranger: Path, run_task: Any, tmp_path: Path) -> None:
    log = read_eval_log(run_task("selfprobe/word_count", ADA, tmp_path, limit=2).location)
    said = [
        "user",
        "assistant",
        "system",
        "user",
        "assistant",
    ]  # the note says that the second call is one apart
    assert log.samples and [m.role for m in log.samples[0].messages] == said
    assert log.samples[0].output.completion.startswith('{"words"')
