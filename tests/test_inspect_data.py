from collections.abc import Callable
from pathlib import Path

import pytest
from inspect_ai.log import EvalLog

from selfprobe import inspect_private
from selfprobe.data import load
from selfprobe.errors import InputError
from selfprobe.inspect_data import rows_of_task
from selfprobe.sources.conversations import conversations

TASKS = '''
from inspect_ai import Task, task
from inspect_ai.dataset import MemoryDataset, Sample
from inspect_ai.model import ChatMessageSystem, ChatMessageUser, ContentImage, ContentText

@task
def quiz():
    """A task with a data set of its own."""
    return Task(dataset=MemoryDataset([
        Sample(id="q1", input="Which is a fruit?", choices=["stone", "pear"], target="B"),
        Sample(input="What is 2 + 2?", target="4"),
    ]))

def pictured(*before):
    asked = ChatMessageUser(content=[ContentText(text="Which one?"), ContentImage(image="data:image/png;base64,AA")])
    return Task(dataset=MemoryDataset([Sample(id="p", input=[*before, asked], choices=["stone", "pear"])]))

@task
def picture():
    return pictured()

@task
def picture_after_a_system_message():
    return pictured(ChatMessageSystem(content="Be brief."))

@task
def made_later():
    return Task(dataset=MemoryDataset([Sample(input="", target="x")]))

@task
def offline():
    raise ConnectionError("Couldn't reach the hub")

@task
def nothing():
    return Task(dataset=MemoryDataset([]))
'''


@pytest.fixture
def tasks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    (tmp_path / "some_tasks.py").write_text(TASKS)
    monkeypatch.setenv("PWD", str(tmp_path))
    return "some_tasks.py"


def test_inspects_loader_is_where_it_was() -> None:
    """Private to Inspect: builds tasks by name or file, as the command line does."""
    assert callable(inspect_private.load_tasks)


def test_a_tasks_samples_are_conversations_with_label_evaluation_and_their_choices(tasks: str) -> None:
    rows = conversations(task=f"{tasks}@quiz").rows
    assert [row["label"] for row in rows] == ["evaluation", "evaluation"]
    assert rows[0]["messages"] == [{"role": "user", "content": "Which is a fruit?\n\nA) stone\nB) pear"}]
    assert [row["id"] for row in rows] == ["q1", "2"] and rows[0]["source"] == "quiz"


@pytest.mark.parametrize("name", ["picture", "picture_after_a_system_message"])
def test_a_samples_picture_is_refused_and_never_becomes_text_or_an_empty_input(tasks: str, name: str) -> None:
    with pytest.raises(ValueError, match="row 'p': a message has content of type 'image'; only text can be asked"):
        conversations(task=f"{tasks}@{name}")


def test_a_registered_task_is_found_by_name() -> None:
    rows = rows_of_task("selfprobe/kth_word")
    assert len(rows) > 100 and rows[0]["source"] == "kth_word"


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("@made_later", "its input is empty; the task makes its prompts while it runs. Run it, and give its logs"),
        (
            "@offline",
            "cannot be built here .ConnectionError: Couldn't reach the hub.*may need a network.*give its logs",
        ),
        ("@nothing", "cannot be built here .ValueError: The specified dataset is empty"),
        ("@quizz", r"quizz"),
    ],
)
def test_a_task_whose_data_cannot_be_had_says_why(tasks: str, name: str, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        rows_of_task(tasks + name)


def test_no_such_task_or_file_says_what_was_expected(tasks: str) -> None:
    with pytest.raises(ValueError, match="no task 'nowhere/gsm8k'; expected a registered name as package/task"):
        rows_of_task("nowhere/gsm8k")
    with pytest.raises(InputError, match=r"no file or folder 'missing\.py'"):
        rows_of_task("missing.py@quiz")


def test_logged_conversations_can_be_asked_about(
    run_task: Callable[..., EvalLog], questions: Path, tmp_path: Path
) -> None:
    from selfprobe.introspect_tasks.kth_word import kth_word

    for folder in ("a", "b"):
        run_task(kth_word(k=1, dataset=str(questions)), "planted/alpha", tmp_path / "logs" / folder, limit=3, epochs=2)
    table = conversations(logs=str(tmp_path / "logs" / "a"))
    assert [row["id"] for row in table.rows] == ["kth_word:q0", "kth_word:q1", "kth_word:q2"]
    assert table.rows[0]["label"] is None
    assert table.rows[0]["messages"] == [{"role": "user", "content": "What of number 0?"}]
    both = conversations(logs=str(tmp_path / "logs"), label="deployment").rows
    assert len({row["id"] for row in both}) == 6 and both[0]["label"] == "deployment"
    assert len(conversations(logs=str(tmp_path / "logs" / "a"), context="full").rows) == 6  # every epoch


def test_a_folder_without_logs_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="0 logs and no samples in them; expected Inspect logs"):
        conversations(logs=str(tmp_path))


def test_any_tasks_samples_are_a_data_set_of_every_task(
    tasks: str, run_task: Callable[..., EvalLog], tmp_path: Path
) -> None:
    source = f"task:{tasks}@quiz"
    (_, second) = load(source, ("question",)).rows
    assert second["question"] == "What is 2 + 2?"
    log = run_task("selfprobe/kth_word", "planted/a", tmp_path / "logs", task_args={"dataset": source})
    assert log.status == "success" and log.samples
    assert {sample.input for sample in log.samples} >= {"What is 2 + 2?"} and len(log.samples) == 2
    again = load(f"logs:{tmp_path / 'logs'}", ("question",)).rows
    assert sorted(row["question"] for row in again) == sorted(str(sample.input) for sample in log.samples)
    as_argument = conversations(task=f"{tasks}@quiz").rows
    assert conversations(source).rows == as_argument and {row["label"] for row in as_argument} == {"evaluation"}
