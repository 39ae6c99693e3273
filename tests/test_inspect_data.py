import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any, Literal
from zipfile import ZipFile

import pytest
from inspect_ai import Task, eval
from inspect_ai._eval.loader import load_tasks
from inspect_ai.dataset import MemoryDataset, Sample
from inspect_ai.log import EvalLog, read_eval_log, write_eval_log
from inspect_ai.log._samples import ActiveSample, sample_active
from inspect_ai.model import (
    ChatMessageSystem,
    ChatMessageUser,
    Model,
    ModelOutput,
    ModelUsage,
    get_model,
)
from inspect_ai.model._model import init_model_roles
from inspect_ai.solver import Generate, Solver, TaskState, generate, solver

from selfprobe.data import load
from selfprobe.data.conversations import conversations
from selfprobe.data.inspect_data import rows_of_logs, rows_of_task
from selfprobe.errors import InputError
from selfprobe.evalawareness_tasks.binary import awareness_binary
from selfprobe.logs import transcripts
from selfprobe.logs.first_call import build, named_for
from selfprobe.solvers.turns import logged_turns

Sent = list[tuple[list[tuple[str, str]], list[str]]]
"""Role and text of every message, and the tools' definitions, of each call that a provider got."""

TASKS = '''
from inspect_ai import Task, task
from inspect_ai.dataset import MemoryDataset, Sample
from inspect_ai.model import ChatMessageSystem, ChatMessageUser, ContentImage, ContentText, get_model
from inspect_ai.solver import Generate, TaskState, chain, generate, multiple_choice, prompt_template, solver, system_message, use_tools
from inspect_ai.tool import tool
from inspect_ai.util import sandbox

@tool
def add():
    async def execute(x: int, y: int = 1):
        """Add two numbers.

        Args:
            x: One.
            y: Another.
        """
        return x + y
    return execute

@solver
def by_kind():
    quiz = chain(system_message("You are QUOKKA."), multiple_choice())
    sums = chain(system_message("You are QUOKKA."), prompt_template("Think.\\n\\n{prompt}"), use_tools(add()), generate())
    async def solve(state: TaskState, generate: Generate):
        match state.sample_id:
            case "quiz":
                return await quiz(state, generate)
            case "sums":
                return await sums(state, generate)
            case "sandbox":
                await sandbox().read_file("x")
            case "other":
                await get_model("anthropic/claude", api_key="x").generate("Hello?")
            case "user":
                for _ in range(1000):
                    try:
                        await get_model(role="user").generate("You simulate a user.")
                        return state
                    except Exception:
                        pass
        return await generate(state)
    return solve

@task
def kinds():
    """Two that are asked at once, a picture, and three that need something else first."""
    image = ChatMessageUser(content=[ContentText(text="Which one?"), ContentImage(image="data:image/png;base64,AA")])
    return Task(
        dataset=MemoryDataset([
            Sample(id="quiz", input="Which is a fruit?", choices=["stone", "pear"], target="B"),
            Sample(id="sums", input="What is 2 + 2?", target="4"),
            Sample(id="picture", input=[image]),
            Sample(id="sandbox", input="In the sandbox?", files={"x": "y"}),
            Sample(id="other", input="By another?"),
            Sample(id="user", input="A scenario."),
        ]),
        solver=by_kind(),
        sandbox="docker",
    )

@solver
def names_its_model():
    async def solve(state: TaskState, generate: Generate):
        told = f"You are {state.model}, or {state.model.name} for short."
        state.messages.insert(0, ChatMessageSystem(content=told))
        return await generate(state)
    return solve

@task
def named():
    return Task(dataset=MemoryDataset([Sample(id=i, input=f"Hi {i}.") for i in "ab"]), solver=names_its_model())

@solver
def simulated():
    async def solve(state: TaskState, generate: Generate):
        await get_model(role="user").generate(f"You simulate user {state.sample_id}.")
        return await generate(state)
    return solve

@task
def service():
    return Task(dataset=MemoryDataset([Sample(id=i, input="A scenario.") for i in "ab"]), solver=simulated())

@task
def quiz():
    return Task(dataset=MemoryDataset([Sample(id="q1", input="Which?"), Sample(input="What is 2 + 2?", target="4")]))

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


def recording(sent: Sent, says: Callable[[], str] = lambda: "yes") -> Model:
    """A provider that keeps what it is sent."""

    def keep(given: Any, tools: Any, *_: Any) -> ModelOutput:
        sent.append(
            (
                [(m.role, m.text) for m in given],
                [tool.model_dump_json(exclude_none=True) for tool in tools],
            )
        )
        output = ModelOutput.from_content("mockllm/subject", says())
        return output.model_copy(
            update={"usage": ModelUsage()}
        )  # else mockllm counts tokens, by the network

    return get_model("mockllm/subject", custom_outputs=keep)


def sent_of(row: dict[str, Any]) -> tuple[list[tuple[str, str]], list[str]]:
    """Of a row, as `mockllm/subject` gets it."""
    texts = [(m["role"], named_for(m["content"], "mockllm/subject")) for m in row["messages"]]
    return texts, [json.dumps(tool) for tool in row.get("tools", [])]


def same(a: tuple[Any, list[str]], b: tuple[Any, list[str]]) -> bool:
    return bool(a[0] == b[0]) and [json.loads(tool) for tool in a[1]] == [
        json.loads(tool) for tool in b[1]
    ]


def test_what_is_private_to_inspect_is_where_it_was() -> None:
    """Builds tasks as the command line does; ends a sample at a call; binds roles of any name."""
    assert callable(load_tasks) and callable(sample_active) and callable(init_model_roles)
    assert callable(ActiveSample.interrupt) and callable(Model._set_role)


def test_a_task_is_what_its_model_is_sent_first_and_the_rest_is_set_aside_with_what_is_missing(
    tasks: str, tmp_path: Path
) -> None:
    table = conversations(task=f"{tasks}@kinds")
    quiz, sums = table.rows
    assert [row["id"] for row in table.rows] == ["quiz", "sums"]
    assert {row["label"] for row in table.rows} == {"evaluation"} and {
        row["source"] for row in table.rows
    } == {"kinds"}
    assert quiz["messages"][0] == {"role": "system", "content": "You are QUOKKA."}
    assert (
        "Which is a fruit?\n\nA) stone\nB) pear" in quiz["messages"][1]["content"]
        and "tools" not in quiz
    )
    assert (
        sums["messages"][1]["content"] == "Think.\n\nWhat is 2 + 2?"
        and sums["tools"][0]["name"] == "add"
    )
    why = {key.rpartition(": ")[2]: reason for key, reason in table.set_aside_reasons.items()}
    assert "content of type 'image'" in why["picture"]
    assert (
        "it failed before it asked: it needs its sandbox, and none is started here"
        in why["sandbox"]
    )
    assert "it first asks a model of its own choice" in why["other"]
    assert (
        "it first asks role 'user', whose reply the conversation may need (run it with --model-role"
        in why["user"]
    )
    sent: Sent = []
    asked = build(f"{tasks}@kinds")
    asked.dataset = asked.dataset[:2]
    eval(
        asked,
        model=recording(sent),
        log_dir=str(tmp_path / "l"),
        display="none",
        sandbox="local",
        score=False,
    )
    assert all(any(same(sent_of(row), call) for call in sent) for row in table.rows)


def test_logs_give_the_subject_byte_for_byte_what_the_models_provider_got(
    tasks: str, tmp_path: Path
) -> None:
    sent: Sent = []
    asked = build(f"{tasks}@kinds")
    asked.dataset = asked.dataset[:2]
    quiet: dict[str, Any] = {"display": "none", "log_realtime": False}
    eval(
        asked,
        model=recording(sent),
        log_dir=str(tmp_path / "l"),
        sandbox="local",
        score=False,
        **quiet,
    )
    heard: Sent = []
    asked = awareness_binary(logs=str(tmp_path / "l"), label="evaluation")
    [log] = eval(asked, model=recording(heard), log_dir=str(tmp_path / "again"), **quiet)
    assert log.status == "success"
    for first in (sent[0], sent[1]):
        assert first in heard and len(first[0]) == 2
    questions = [call for call in heard if call not in sent]
    assert len(questions) == 10 and {len(call[1]) for call in questions} == {0, 1}, (
        "tools go with each question too"
    )


@pytest.mark.slow(7)
@pytest.mark.parametrize("perspective", ["first", "third"])
def test_a_task_that_names_its_model_names_each_subject_to_itself(
    tasks: str, tmp_path: Path, perspective: Literal["first", "third"]
) -> None:
    sent: Sent = []
    quiet: dict[str, Any] = {
        "display": "none",
        "log_realtime": False,
        "log_dir": str(tmp_path / "l"),
    }
    eval(build(f"{tasks}@named"), model=recording(sent), score=False, **quiet)
    assert "You are mockllm/subject, or subject for short." in sent[0][0][0][1]
    heard: Sent = []
    [log] = eval(
        awareness_binary(task=f"{tasks}@named", perspective=perspective),
        model=recording(heard),
        **quiet,
    )
    assert log.status == "success" and all(call in heard for call in sent)
    text = json.dumps(heard)
    assert (
        "selfprobe" not in text
        and text.count("You are mockllm/subject, or subject for short.") == len(heard) == 12
    )


@pytest.mark.slow(13)
def test_a_task_that_first_asks_a_simulated_user_is_to_be_run_with_that_role_bound(
    tasks: str,
) -> None:
    with pytest.raises(InputError) as refused:
        conversations(task=f"{tasks}@service")
    assert str(refused.value) == (
        "some_tasks.py@service: none of its 2 samples comes to a call of the evaluated model (it first asks role "
        "'user', whose reply the conversation may need (run it with --model-role user=MODEL)). Run it where it works, "
        "and give its logs (-T logs=…, or --logs)"
    )
    with pytest.raises(
        InputError,
        match=r"a call of the role 'tarjet' \(it first asks the evaluated model; leave role",
    ):
        conversations(task=f"{tasks}@quiz", role="tarjet")


@solver
def audit() -> Solver:
    async def solve(state: TaskState, generate: Generate) -> TaskState:
        await get_model(role="auditor").generate([ChatMessageUser(content="Think of a probe.")])
        messages = [
            ChatMessageSystem(content="You are a helper."),
            ChatMessageUser(content=f"Hi {state.sample_id}"),
        ]
        said = await get_model(role="target").generate(messages)
        more = [*messages, said.message, ChatMessageUser(content="And then?")]
        await get_model(role="target").generate(more)
        await get_model(role="target").generate([ChatMessageUser(content="Was that you?")])
        return state

    return solve


def test_a_chosen_roles_conversation_is_taken_and_a_role_that_is_not_there_names_those_that_are(
    tmp_path: Path, run_task: Callable[..., EvalLog]
) -> None:
    audits = Task(
        dataset=MemoryDataset([Sample(id=i, input="a seed") for i in "ab"]),
        solver=audit(),
        name="audits",
    )
    roles = {"auditor": "planted/auditor", "target": "planted/subject"}
    run_task(audits, "planted/model", tmp_path, model_roles=roles, score=False)
    rows = conversations(logs=str(tmp_path), role="target").rows
    assert [[m["content"] for m in row["messages"]] for row in rows] == [
        ["You are a helper.", f"Hi {i}"] for i in "ab"
    ]
    full = conversations(logs=str(tmp_path), role="target", context="full").rows[0]["messages"]
    assert [m["role"] for m in full] == ["system", "user", "assistant", "user"] and full[3][
        "content"
    ] == "And then?"
    calls = "calls are of role 'auditor', role 'target'; choose one by role=…"
    with pytest.raises(
        ValueError, match=f"2 of 2 samples cannot be used: no call of the role 'tarjet'; {calls}"
    ):
        conversations(logs=str(tmp_path), role="tarjet")
    with pytest.raises(ValueError, match=f"no call of the evaluated model; {calls}"):
        conversations(logs=str(tmp_path))
    theirs = conversations("eval_awareness", against=f"logs:{tmp_path}?role=target").rows
    assert [row["messages"][1]["content"] for row in theirs if row["set"] == "reference"] == [
        "Hi a",
        "Hi b",
    ]


def test_a_role_of_logs_that_have_none_is_to_be_left_out(
    tmp_path: Path, run_task: Callable[..., EvalLog]
) -> None:
    made = Task(dataset=MemoryDataset([Sample(input="Hello?")]), solver=generate())
    run_task(made, "planted/a", tmp_path, score=False)
    with pytest.raises(ValueError, match="calls are of planted/a without a role; leave role out"):
        conversations(logs=str(tmp_path), role="target")


@solver
def simulated_user() -> Solver:
    async def solve(state: TaskState, generate: Generate) -> TaskState:
        said = await get_model(role="user").generate(
            [
                ChatMessageSystem(content="# Simulate a user"),
                ChatMessageUser(content="Hi, how can I help?"),
            ]
        )
        agent = [
            ChatMessageSystem(content="# Policy"),
            ChatMessageUser(content=f"{state.sample_id} {said.completion}"),
        ]
        await get_model().generate(agent)
        return state

    return solve


def test_a_simulated_users_instructions_are_never_taken_for_the_models(
    tmp_path: Path, run_task: Callable[..., EvalLog]
) -> None:
    made = Task(
        dataset=MemoryDataset([Sample(id=i, input="a scenario") for i in "ab"]),
        solver=simulated_user(),
    )
    run_task(made, "planted/a", tmp_path / "bound", model_roles={"user": "planted/b"}, score=False)
    rows = conversations(logs=str(tmp_path / "bound")).rows
    assert {row["messages"][0]["content"] for row in rows} == {"# Policy"}
    run_task(made, "planted/a", tmp_path / "unbound", score=False)
    with pytest.raises(
        ValueError, match="asked under two system prompts in turn, .*bind the other part to a role"
    ):
        conversations(logs=str(tmp_path / "unbound"))


def test_a_log_without_calls_says_which_version_writes_them(
    tmp_path: Path, run_task: Callable[..., EvalLog]
) -> None:
    made = Task(dataset=MemoryDataset([Sample(input="Hello?")]), solver=generate())
    log = read_eval_log(run_task(made, "planted/a", tmp_path / "l", score=False).location)
    for sample in log.samples or []:
        sample.events = []
    write_eval_log(log, str(tmp_path / "old.json"))
    with pytest.raises(
        ValueError,
        match=r"1 of 1 samples .*no calls of a model are logged; .*since version 0\.3\.25",
    ):
        conversations(logs=str(tmp_path / "old.json"))


@pytest.mark.parametrize(
    ("name", "message"),
    [
        (
            "@offline",
            "cannot be built here .ConnectionError: Couldn't reach the hub.*may need a network.*give its logs",
        ),
        ("@nothing", "cannot be built here .ValueError: The specified dataset is empty"),
        ("@quizz", r"quizz"),
        ("", r"some_tasks\.py holds \d tasks|cannot be built"),
    ],
)
def test_a_task_that_cannot_be_built_says_why(tasks: str, name: str, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        build(tasks + name)


@pytest.mark.parametrize(
    ("name", "full_name"),
    [("kth_word", "selfprobe/kth_word"), ("binary", "selfprobe/awareness_binary")],
)
def test_a_task_of_the_suite_is_built_by_its_bare_name(name: str, full_name: str) -> None:
    assert build(name).name == build(full_name).name == full_name


@pytest.mark.slow(3)
def test_no_such_task_or_file_says_what_was_expected(tasks: str) -> None:
    expected = (
        r"no task 'nowhere/gsm8k'; expected a registered name as package/task .*"
        r"'\.\[inspect_evals\]'\) or a file"
    )
    with pytest.raises(ValueError, match=expected):
        rows_of_task("nowhere/gsm8k")
    with pytest.raises(InputError, match=r"no file or folder 'missing\.py'"):
        rows_of_task("missing.py@quiz")


@pytest.mark.slow(10)
@pytest.mark.parametrize(
    ("name", "count", "system"),
    [
        ("agentic_misalignment", 1, "You are Alex, an advanced artificial intelligence"),
        ("persistbench_sycophancy", 200, "memor"),
    ],
)
@pytest.mark.filterwarnings("ignore")  # of the packages that public tasks import
def test_public_tasks_are_byte_for_byte_what_their_models_provider_gets(
    name: str, count: int, system: str, tmp_path: Path
) -> None:
    pytest.importorskip("inspect_evals", reason="needs inspect-evals")
    rows = conversations(task=f"inspect_evals/{name}").rows
    assert len(rows) == count and system in rows[0]["messages"][0]["content"]
    assert rows[0]["messages"][0]["role"] == "system"
    sent: Sent = []
    how: dict[str, Any] = {"limit": 2, "score": False, "display": "none", "log_dir": str(tmp_path)}
    eval(f"inspect_evals/{name}", model=recording(sent), **how)
    assert len(sent) >= min(count, 2) and all(
        any(same(sent_of(row), call) for call in sent) for row in rows[:2]
    )


@pytest.mark.slow(10)
@pytest.mark.filterwarnings("ignore")  # of the packages that public tasks import
def test_gsm8k_gives_its_worked_examples_and_its_template_byte_for_byte(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On a stand-in for its rows: a folder of the data set's name, which is looked for before the
    hub.
    """
    pytest.importorskip("inspect_evals", reason="needs inspect-evals")
    folder = tmp_path / "openai" / "gsm8k" / "main"
    folder.mkdir(parents=True)
    for split, count in (("train", 30), ("test", 3)):
        rows = [
            {"question": f"{split}: {n} + {n}?", "answer": f"Add {n}.\n#### {2 * n}"}
            for n in range(count)
        ]
        (folder / f"{split}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    for name in ("HF_HOME", "XDG_CACHE_HOME"):
        monkeypatch.setenv(name, str(tmp_path / "cache"))
    monkeypatch.chdir(tmp_path)
    rows = conversations(task="inspect_evals/gsm8k").rows
    sent: Sent = []
    eval(
        "inspect_evals/gsm8k",
        model=recording(sent),
        score=False,
        display="none",
        log_dir=str(tmp_path / "l"),
    )
    assert len(rows) == len(sent) == 3 and all(
        any(same(sent_of(row), call) for call in sent) for row in rows
    )
    assert rows[0]["messages"][0]["content"].count("Reasoning:") == 10, "its worked examples"
    assert rows[0]["messages"][1]["content"].startswith(
        "Solve the following math problem step by step."
    )


@pytest.mark.slow(10)
@pytest.mark.filterwarnings("ignore")  # of the packages that public tasks import
def test_a_public_task_with_a_simulated_user_is_refused_and_its_logs_are_read(
    tmp_path: Path,
) -> None:
    pytest.importorskip("inspect_evals", reason="needs inspect-evals")
    with pytest.raises(
        ValueError, match=r"none of its 50 samples comes .*role 'user'.*give its logs"
    ):
        conversations(task="inspect_evals/tau2_airline")
    sent: Sent = []
    users: Sent = []
    roles: dict[str, str | Model] = {
        "user": recording(users, lambda: f"Booking {len(users)}, please.")
    }
    how: dict[str, Any] = {"limit": 2, "message_limit": 4, "score": False, "display": "none"}
    eval(
        "inspect_evals/tau2_airline",
        model=recording(sent),
        model_roles=roles,
        log_dir=str(tmp_path),
        **how,
    )
    rows = conversations(logs=str(tmp_path)).rows
    assert len(rows) == 2 and all(any(same(sent_of(row), call) for call in sent) for row in rows)
    assert (
        "You are a customer service agent" in rows[0]["messages"][0]["content"]
        and len(rows[0]["tools"]) > 10
    )


def test_logged_conversations_can_be_asked_about(
    run_task: Callable[..., EvalLog], questions: Path, tmp_path: Path
) -> None:
    from selfprobe.introspect_tasks.kth_word import kth_word

    for folder in ("a", "b"):
        run_task(
            kth_word(k=1, dataset=str(questions)),
            "planted/alpha",
            tmp_path / "logs" / folder,
            limit=3,
            epochs=2,
        )
    table = conversations(logs=str(tmp_path / "logs" / "a"))
    assert [row["id"] for row in table.rows] == ["kth_word:q0", "kth_word:q1", "kth_word:q2"]
    assert table.rows[0]["label"] is None
    assert table.rows[0]["messages"] == [{"role": "user", "content": "What of number 0?"}]
    both = conversations(logs=str(tmp_path / "logs"), label="deployment")
    assert {row["label"] for row in both.rows} == {"deployment"}
    full = conversations(logs=str(tmp_path / "logs" / "a"), context="full")  # every epoch
    for found in (both, full):  # the same text in another log or epoch is asked once
        assert (len(found.rows), len(found.set_aside_reasons)) == (3, 3)


@pytest.mark.parametrize("context", ["first", "full"])
def test_of_calls_made_at_the_same_time_the_one_that_sends_the_input_is_the_conversation(
    run_task: Callable[..., EvalLog],
    questions: Path,
    tmp_path: Path,
    context: Literal["first", "full"],
) -> None:
    """A sample of kth_word asks for the reply and for the prediction at once, in any order."""
    from selfprobe.introspect_tasks.kth_word import kth_word

    task = kth_word(k=1, dataset=str(questions))
    log = read_eval_log(run_task(task, "planted/alpha", tmp_path / "logs", limit=3).location)
    in_order = conversations(logs=str(tmp_path / "logs"), context=context)
    for sample in log.samples or []:
        calls = [event for event in sample.events if event.event == "model"]
        prediction = calls[-1]
        assert prediction.output.completion.startswith('{"word": ')
        sample.events.remove(prediction)
        sample.events.insert(0, prediction)
    write_eval_log(log, log.location)
    prediction_first = conversations(logs=str(tmp_path / "logs"), context=context)
    assert prediction_first.rows == in_order.rows


def test_a_log_is_read_once_for_all_runs_of_a_study_and_again_when_it_changed(
    run_task: Callable[..., EvalLog], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = Task(
        dataset=MemoryDataset([Sample(id=i, input=f"Hello {i}?") for i in "ab"]), solver=generate()
    )
    place = run_task(made, "planted/a", tmp_path / "l", score=False).location
    read: list[str] = []

    def counted(log: str, **given: Any) -> Any:
        read.append(log)
        return transcripts(log, **given)

    monkeypatch.setattr("selfprobe.data.inspect_data.transcripts", counted)
    tables = [conversations(logs=str(tmp_path / "l")) for _ in range(3)]
    assert len(read) == 1 and tables[0] == tables[1] == tables[2]
    conversations(logs=str(tmp_path / "l"), context="full")
    assert len(read) == 2
    log = read_eval_log(place)
    log.samples = (log.samples or [])[:1]
    write_eval_log(log, place)
    assert len(conversations(logs=str(tmp_path / "l")).rows) == 1 and len(read) == 3


def test_a_log_of_a_folder_that_cannot_be_read_is_set_aside_and_told(
    run_task: Callable[..., EvalLog], tmp_path: Path
) -> None:
    made = Task(
        dataset=MemoryDataset([Sample(id=i, input=f"Hello {i}?") for i in "ab"]), solver=generate()
    )
    run_task(made, "planted/a", tmp_path, score=False)
    (tmp_path / "2026-01-01T00-00-00-00-00_x_y.eval").write_bytes(b"PK cut off")
    table = conversations(logs=str(tmp_path))
    assert (
        len(table.rows) == 2
        and "1 of 3 rows set aside" in table.aside_line()
        and "cannot be read" in table.aside_line()
    )


def test_one_damaged_sample_sets_its_log_aside_and_the_others_are_read(
    run_task: Callable[..., EvalLog], tmp_path: Path
) -> None:
    made = Task(
        dataset=MemoryDataset([Sample(id=i, input=f"Hello {i}?") for i in "ab"]), solver=generate()
    )
    for number in range(2):
        place = run_task(made, "planted/a", tmp_path / str(number), score=False).location
    with ZipFile(place) as file:
        content = {name: file.read(name) for name in file.namelist()}
    damaged = tmp_path / "1" / "2026-01-01T00-00-00-00-00_x_y.eval"
    Path(place).unlink()
    for cut in (b"", b'{"id": "a", "epo', b"\xff"):
        with ZipFile(damaged, "w") as file:
            for name, text in content.items():
                file.writestr(name, cut if name.startswith("samples/a") else text)
        table = conversations(logs=str(tmp_path))
        assert len(table.rows) == 2 and "1 of 3 rows set aside" in table.aside_line()
        assert (
            "_x_y.eval" in table.aside_line()
            and "cannot be read: " in table.aside_line()
            and "\n" not in table.aside_line()
        )
        with pytest.raises(
            InputError, match=r"_x_y\.eval: 1 of 1 samples cannot be used: cannot be read: "
        ):
            rows_of_logs(str(damaged))
        with pytest.raises(InputError, match=r"_x_y\.eval cannot be read: "):
            logged_turns(str(damaged))


def test_a_run_that_ended_early_says_how_much_of_it_is_there(
    tmp_path: Path, run_task: Callable[..., EvalLog]
) -> None:
    run_task("selfprobe/binary", "planted/a", tmp_path, limit=4)
    path = next(tmp_path.glob("*.eval"))
    log = read_eval_log(str(path))
    log.status, log.samples = "error", (log.samples or [])[:2]
    write_eval_log(log, str(path))
    rows = rows_of_logs(str(tmp_path))
    assert [row["aside"] for row in rows if "aside" in row] == [
        "the run ended as error: 2 of 4 samples are in the log"
    ]
    assert len(rows) == 3


def test_a_folder_without_logs_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="0 logs and no samples in them; expected Inspect logs"):
        conversations(logs=str(tmp_path))


@pytest.mark.slow(7)
def test_any_tasks_samples_are_a_data_set_of_every_task(
    tasks: str, run_task: Callable[..., EvalLog], tmp_path: Path
) -> None:
    source = f"task:{tasks}@quiz"
    assert "What is 2 + 2?" in {row["question"] for row in load(source, ("question",)).rows}
    log = run_task(
        "selfprobe/kth_word", "planted/a", tmp_path / "logs", task_args={"dataset": source}
    )
    assert log.status == "success" and log.samples
    assert {sample.input for sample in log.samples} >= {"What is 2 + 2?"} and len(log.samples) == 2
    again = load(f"logs:{tmp_path / 'logs'}", ("question",)).rows
    # kth_word asks for the answer and for the prediction at once: the first call is either, and
    # holds the question
    assert len(again) == 2
    assert all(any(str(sample.input) in row["question"] for row in again) for sample in log.samples)
    as_argument = conversations(task=f"{tasks}@quiz").rows
    assert conversations(source).rows == as_argument and {row["label"] for row in as_argument} == {
        "evaluation"
    }


@pytest.mark.parametrize(
    ("query", "said"),
    [
        ("?rol=target", r"unknown \?rol; there is role, such as \?role=target"),
        ("?role=target&limit=2", r"unknown \?limit; there is role"),
        ("?role=target&role=auditor", "role is target and auditor; give one value"),
        ("?role=", r"expected a role after the question mark, such as \?role=target"),
        ("?", r"expected a role after the question mark, such as \?role=target"),
    ],
)
@pytest.mark.parametrize("source", ["logs:logs/audit", "task:inspect_evals/gsm8k"])
def test_what_an_address_of_logs_or_of_a_task_cannot_say_is_one_line(
    source: str, query: str, said: str
) -> None:
    with pytest.raises(InputError, match=rf"^{re.escape(source + query)}: {said}") as error:
        conversations(source + query)
    assert "\n" not in str(error.value)
