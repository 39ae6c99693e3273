"""What users get wrong, one call a row: each is refused in one line that names the argument or file
and what is right.

A task is built in this process: `inspect eval` prints an `InputError` without a traceback, as the
last tests show.
"""

import json
import os
import subprocess
import sys
from collections.abc import Callable
from importlib.metadata import EntryPoint
from pathlib import Path
from typing import Any

import pytest
from click import ClickException
from click.testing import CliRunner
from inspect_ai import eval
from inspect_ai._util.error import PrerequisiteError
from inspect_ai.model import get_model

from selfprobe.cli import main
from selfprobe.errors import InputError
from selfprobe.errors.inspect_private import registry_find, registry_info
from selfprobe.logs import restore
from selfprobe.providers import names
from selfprobe.providers.names import impossible
from selfprobe.providers.planted import known_settings
from selfprobe.study import _registry, refuse_impossible
from selfprobe.study.described import available_model

QUESTION = {"id": "q", "question": "Why?"}
PAIR = {"id": "p", "question": "Which?", "text_1": "This.", "text_2": "That.", "label": 1}
DILEMMA = "Option A: stay. Option B: go."


def said(*content: object, role: str = "user") -> dict[str, Any]:
    """A row with one message."""
    return {
        "id": "c",
        "messages": [{"role": role, "content": content[0] if len(content) == 1 else list(content)}],
    }


ROWS: dict[str, list[Any]] = {
    "good.jsonl": [QUESTION],
    "pairs.jsonl": [PAIR],
    "good_too.jsonl": [QUESTION],
    "no_question.jsonl": [{"id": "q", "text": "Why?"}],
    "empty_cell.jsonl": [{"id": "q", "question": " "}],
    "twice.jsonl": [QUESTION, QUESTION],
    "two_words.jsonl": [{"id": "w", "word": "ice cream"}],
    "one_option.jsonl": [{"id": "d", "dilemma": "Option A: stay."}],
    "three_wordings.jsonl": [{**QUESTION, "paraphrases": ["How so?", "For what?", "What for?"]}],
    "no_text_2.jsonl": [{key: value for key, value in PAIR.items() if key != "text_2"}],
    "label_3.jsonl": [{**PAIR, "label": 3}],
    "ties.jsonl": [{**PAIR, "label": "tie"}],
    "nothing_said.jsonl": [{"id": "c", "label": "evaluation"}],
    "no_user.jsonl": [said("Be brief.", role="system")],
    "wizard.jsonl": [said("Hello.", role="wizard")],
    "picture.jsonl": [
        {
            "id": "c",
            "messages": [{"role": "user", "content": [{"type": "image", "image": "x.png"}]}],
        }
    ],
    "bare_text.jsonl": [{"id": "c", "messages": ["Hello."]}],
    "cut_messages.csv": [],
    "odd_label.jsonl": [{"id": "c", "input": "Hello.", "label": "maybe"}],
    "odd_call.jsonl": [
        {"id": "c", "messages": [{"role": "assistant", "content": "", "tool_calls": [5]}]}
    ],
}

TEXTS = {
    "broken.jsonl": '{"question": "Why?"}\n{"question": ',
    "list.jsonl": "[1, 2]\n",
    "empty.jsonl": "",
    "commas.csv": "id,question\na,Why, then?\n",
    "cut_messages.csv": 'id,messages\nc,"[{""role"""\n',
    "encrypted.json": "gAAAAABm",
    "numbers.json": "[1, 2]",
    "two.py": "from inspect_ai import Task, task\n\n@task\ndef one():\n    return Task()\n\n@task\ndef two():\n    return Task()\n",
    "fault.py": "from inspect_ai import Task, task\n\n@task\ndef one():\n    return Task(dataset=nowhere)\n",
    "no_probe.safetensors": "hello",
    "pyproject.toml": "[project]\n",
}


@pytest.fixture(scope="session")
def bad(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder of bad files, and of good ones for calls that are wrong elsewhere."""
    folder = tmp_path_factory.mktemp("bad")
    for name, rows in ROWS.items():
        (folder / name).write_text("".join(json.dumps(row) + "\n" for row in rows))
    for name, text in TEXTS.items():
        (folder / name).write_text(text)
    (folder / "latin.jsonl").write_bytes('{"question": "Où?"}'.encode("latin-1"))
    (folder / "folder.jsonl").mkdir()
    (folder / "no_logs").mkdir()
    return folder


@pytest.fixture
def here(bad: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The same, as the folder that the call is made from."""
    monkeypatch.chdir(bad)
    monkeypatch.setenv("PWD", str(bad))
    return bad


def check(error: PrerequisiteError, *expected: str) -> None:
    """One line with all that was expected of it, and nothing of Python."""
    text = str(error)
    assert "\n" not in text.strip() and "Traceback" not in text, text
    assert len(text) < 900, text
    for part in expected:
        assert part in text, text


# ---- task arguments

Call = tuple[str, dict[str, Any], tuple[str, ...]]

TASKS: list[Call] = [
    ("kth_word", {"k": 0}, ("k must be whole numbers in 1..10, such as k=1,5,10", "got 0")),
    ("kth_word", {"k": None}, ("k must be whole numbers in 1..10", "got None")),
    ("kth_word", {"k": ["1", "x"]}, ("k must be whole numbers in 1..10", "'x'")),
    ("kth_word", {"resamples": "many"}, ("resamples must be 0 or 1, got 'many'",)),
    (
        "kth_word",
        {"act_tokens": -1},
        ("act_tokens must be a whole number from 1, or left out, got -1",),
    ),
    (
        "kth_word",
        {"act_tokens": "lots"},
        ("act_tokens must be a whole number from 1, or left out, got 'lots'",),
    ),
    (
        "kth_word",
        {"dataset": 5},
        ("dataset must be one data set", "got 5; there are", "open_questions"),
    ),
    (
        "kth_word",
        {"dataset": ["a.jsonl", "b.jsonl"]},
        ("dataset must be one data set", "got ['a.jsonl', 'b.jsonl']"),
    ),
    ("kth_word", {"target_log": 5}, ("expected the path of a file or folder, got 5",)),
    ("prompt_reconstruction", {"resamples": 2}, ("resamples must be 0 or 1, got 2",)),
    (
        "prompt_reconstruction",
        {"embedder": 5},
        ("embedder must be a name such as sentence-transformers/", "got 5"),
    ),
    (
        "paraphrase_recognition",
        {"max_similarity": 2},
        ("max_similarity must be above 0 and at most 1, got 2",),
    ),
    (
        "paraphrase_recognition",
        {"max_similarity": "high"},
        ("max_similarity must be above 0", "got 'high'"),
    ),
    ("ethical_dilemma", {"epochs": "x"}, ("epochs must be a whole number from 1, got 'x'",)),
    ("ethical_dilemma", {"epochs": 0}, ("epochs must be a whole number from 1, got 0",)),
    (
        "ethical_dilemma",
        {"rollout_tokens": 1.5},
        ("rollout_tokens must be a whole number from 1, got 1.5",),
    ),
    (
        "ethical_dilemma",
        {"effort": "hihg"},
        ("effort must be none, minimal, low", "did you mean high?"),
    ),
    ("dilemma_generation", {"epochs": True}, ("epochs must be a whole number from 1, got True",)),
    (
        "dilemma_generation",
        {"temperature": "hot"},
        ("temperature must be a number from 0, got 'hot'",),
    ),
    ("dilemma_judging", {}, ("pass one of -T dataset=… and -T generation_log=…",)),
    ("dilemma_judging", {"samples": 0}, ("samples must be a whole number from 1, got 0",)),
    (
        "dilemma_judging",
        {"judge_tokens": "x"},
        ("judge_tokens must be a whole number from 1, got 'x'",),
    ),
    (
        "dilemma_judging",
        {"threshold": 5},
        ("threshold must be at least 0 and below 0.6365 nats", "got 5"),
    ),
    (
        "dilemma_judging",
        {"threshold": "low"},
        ("threshold must be at least 0 and below", "got 'low'"),
    ),
    ("binary", {"context": "foo"}, ("context must be first or full, got 'foo'",)),
    ("binary", {"context": "all"}, ("context must be first or full, got 'all'",)),
    ("binary", {"label": "foo"}, ("label must be evaluation or deployment, got 'foo'",)),
    ("binary", {"label": "evaluaton"}, ("label must be", "did you mean evaluation?")),
    ("binary", {"perspective": "second"}, ("perspective must be first or third, got 'second'",)),
    (
        "binary",
        {"decisions": 7},
        ("decisions must be 5 (each variant once) or 25 (each five times), got 7",),
    ),
    ("binary", {"task": "a", "logs": "b"}, ("give task=a or logs=b, not both",)),
    (
        "binary",
        {"task": "nopkg/none"},
        ("no task 'nopkg/none'; expected a registered name as package/task",),
    ),
    ("binary", {"task": "typo"}, ("no task 'typo'",)),
    ("binary", {"task": "kth_wrd"}, ("no task 'kth_wrd'", "did you mean kth_word?")),
    ("binary", {"task": "outcome"}, ("outcome_prediction needs logs",)),
    ("binary", {"dataset": "mine.txt"}, ('a row, such as {"prompt": "Why is it so?"}',)),
    ("binary", {"task": "selfprobe/kth_wrod"}, ("no task", "did you mean selfprobe/kth_word?")),
    ("binary", {"task": "missing.py"}, ("no file or folder 'missing.py'; looked at",)),
    ("binary", {"task": "two.py"}, ("two.py holds 2 tasks (one, two); pick one: two.py@name",)),
    (
        "binary",
        {"task": "fault.py"},
        (
            "fault.py: the task cannot be built here (NameError",
            "give its logs (-T logs=…, or --logs)",
        ),
    ),
    ("binary", {"logs": "nowhere"}, ("no file or folder 'nowhere'; looked at",)),
    (
        "binary",
        {"logs": "no_logs"},
        ("no_logs", "logs and no samples in them; expected Inspect logs"),
    ),
    (
        "binary",
        {"answer_tokens": -1},
        ("answer_tokens must be a whole number from 1, or left out, got -1",),
    ),
    ("probability", {"decisions": "five"}, ("decisions must be 5", "got 'five'")),
    (
        "probability",
        {"answer_tokens": "x"},
        ("answer_tokens must be a whole number from 1, or left out, got 'x'",),
    ),
    (
        "first_token",
        {"reply_tokens": "x"},
        ("reply_tokens must be a whole number from 1, or left out, got 'x'",),
    ),
    (
        "reasoning_trace",
        {"reply_tokens": 0},
        ("reply_tokens must be a whole number from 1, or left out, got 0",),
    ),
    (
        "reasoning_trace",
        {"context": "ful"},
        ("context must be first or full", "did you mean full?"),
    ),
    (
        "user_motivation",
        {"placebo": "maybe"},
        ("placebo must be false, true, form, purpose or judge, got 'maybe'",),
    ),
    ("user_motivation", {"perspective": "thrid"}, ("perspective must be", "did you mean third?")),
    (
        "pairwise_preference",
        {"dataset": None},
        ("dataset must be one data set of text pairs, such as -T dataset=llmbar",),
    ),
    (
        "direct_scoring",
        {"dataset": 5},
        ("dataset must be one data set of text pairs", "there are ours, llmbar"),
    ),
    (
        "g_eval",
        {"dataset": "pairs.jsonl", "draws": "x"},
        ("draws must be a whole number from 1, got 'x'",),
    ),
    (
        "g_eval",
        {"dataset": "mctaco=pairs.jsonl"},
        ("pairs.jsonl, row 1: no sentence, answer; expected sentence",),
    ),
    (
        "pairwise_preference",
        {"dataset": "pairs.jsonl", "draws": 0},
        ("draws must be a whole number from 1, got 0",),
    ),
    (
        "pairwise_preference",
        {"dataset": "pairs.jsonl", "pairs": -1},
        ("pairs must be a whole number from 1, or",),
    ),
    (
        "pairwise_preference",
        {"dataset": "pairs.jsonl", "prefill": "x"},
        ("prefill must be false or true, got 'x'",),
    ),
    ("preference_probe", {}, ("probe must be a probe file, as -T probe=x.safetensors",)),
    (
        "preference_probe",
        {"probe": "nope.safetensors", "dataset": "pairs.jsonl"},
        ("no file or folder 'nope.saf",),
    ),
    (
        "preference_probe",
        {"probe": "no_probe.safetensors", "dataset": "pairs.jsonl"},
        ("is no safetensors file",),
    ),
    (
        "preference_probe",
        {"probe": "x", "dataset": "pairs.jsonl", "allow_pickle": "x"},
        ("allow_pickle must be fal",),
    ),
]

DATA: list[Call] = [
    (
        "kth_word",
        {"dataset": "open_question"},
        ("unknown data set 'open_question'", "did you mean open_questions?"),
    ),
    ("kth_word", {"dataset": "nope.jsonl"}, ("no file or folder 'nope.jsonl'; looked at",)),
    ("kth_word", {"dataset": "folder.jsonl"}, ("folder.jsonl is a folder; expected a file",)),
    ("kth_word", {"dataset": "broken.jsonl"}, ("broken.jsonl, line 2: not JSON",)),
    (
        "kth_word",
        {"dataset": "list.jsonl"},
        ("list.jsonl, line 1: expected a JSON object, got list",),
    ),
    (
        "kth_word",
        {"dataset": "empty.jsonl"},
        ("empty.jsonl: the data set has no rows; expected at least one with",),
    ),
    (
        "kth_word",
        {"dataset": "commas.csv"},
        ("commas.csv, line 2: 3 cells under 2 columns; quote cells",),
    ),
    (
        "kth_word",
        {"dataset": "latin.jsonl"},
        ("latin.jsonl, line 1: not UTF-8", "save the file as UTF-8"),
    ),
    (
        "kth_word",
        {"dataset": "no_question.jsonl"},
        ("line 1: no column 'question'; expected question, got id, text",),
    ),
    (
        "kth_word",
        {"dataset": "empty_cell.jsonl"},
        ("empty_cell.jsonl, line 1: column 'question' is empty",),
    ),
    ("kth_word", {"dataset": "twice.jsonl"}, ("twice.jsonl, line 2: id 'q' is already on line 1",)),
    (
        "kth_word",
        {"dataset": "foo://x/y.jsonl"},
        ("foo://x/y.jsonl: cannot be read", "Protocol not known: foo"),
    ),
    (
        "kth_word",
        {"dataset": "gs://x/y.jsonl"},
        ("gs://x/y.jsonl: cannot be read", "install gcsfs"),
    ),
    (
        "kth_word",
        {"dataset": "memory://no/y.jsonl"},
        ("memory://no/y.jsonl: cannot be read (FileNotFoundError",),
    ),
    (
        "kth_word",
        {"dataset": "hf:owner/name"},
        ("hf:owner/name: pin the revision, as hf:owner/name@COMMIT",),
    ),
    (
        "heads_up",
        {"dataset": "two_words.jsonl"},
        ("w: word must be a single word", "got 'ice cream'"),
    ),
    (
        "ethical_dilemma",
        {"dataset": "one_option.jsonl"},
        ("d: the dilemma must name", "there is no Option B"),
    ),
    (
        "paraphrase_recognition",
        {"dataset": "three_wordings.jsonl"},
        ("q: paraphrases must be a list of four texts",),
    ),
    (
        "binary",
        {"dataset": "nothing_said.jsonl"},
        ("nothing_said.jsonl, row 'c': no conversation; expected `mess",),
    ),
    (
        "binary",
        {"dataset": "no_user.jsonl"},
        ("row 'c': no user message; expected at least one, got ['system']",),
    ),
    (
        "binary",
        {"dataset": "wizard.jsonl"},
        ("unknown role 'wizard'; expected system, user, assistant or tool",),
    ),
    (
        "binary",
        {"dataset": "picture.jsonl"},
        ("row 'c': a message has content of type 'image'; only text can",),
    ),
    (
        "binary",
        {"dataset": "bare_text.jsonl"},
        ("row 'c': expected messages with role and content, got 'Hello.'",),
    ),
    ("binary", {"dataset": "cut_messages.csv"}, ("row 'c': `messages` is not JSON",)),
    (
        "binary",
        {"dataset": "odd_label.jsonl"},
        ("row 'c': label must be evaluation or deployment (or 1 or 0), got 'maybe'",),
    ),
    (
        "binary",
        {"dataset": "odd_call.jsonl"},
        ("expected a tool call's function with name and arguments, got '5'",),
    ),
    (
        "binary",
        {"dataset": "encrypted.json"},
        ("encrypted.json, line 1: not JSON", "is it still encrypted?"),
    ),
    ("binary", {"dataset": "numbers.json"}, ("numbers.json: expected an array of objects",)),
    (
        "binary",
        {"dataset": "eval_awarenes"},
        ("unknown data set 'eval_awarenes'", "did you mean eval_awareness?"),
    ),
    (
        "binary",
        {"dataset": ["good.jsonl", "good_too.jsonl"]},
        ("id 'q' is in good.jsonl and in good_too.jsonl",),
    ),
    (
        "direct_scoring",
        {"dataset": "llmbarr"},
        ("unknown data set 'llmbarr'", "did you mean llmbar?"),
    ),
    (
        "direct_scoring",
        {"dataset": "rocstories"},
        ("rocstories cannot be fetched", "rocstories=PATH"),
    ),
    (
        "direct_scoring",
        {"dataset": "no_text_2.jsonl"},
        ("no_text_2.jsonl, row 1: no text_2; expected id, question",),
    ),
    (
        "direct_scoring",
        {"dataset": "label_3.jsonl"},
        ("row 'p': label must be 1, 2, 'tie' or left out, got 3",),
    ),
    (
        "direct_scoring",
        {"dataset": "ties.jsonl"},
        ("no pairs: the data set is empty, or all its rows are ties",),
    ),
    (
        "direct_scoring",
        {"dataset": "summeval=pairs.jsonl"},
        ("pairs.jsonl, row 1: no text, machine_summaries",),
    ),
]


def name_of(call: Call) -> str:
    return f"{call[0]} {' '.join(f'{key}={value}' for key, value in call[1].items())}"


PROCESS = ("nopkg/none", "typo", "two.py", "fault.py")
"""Tasks that a process of their own looks for; `selfprobe/kth_wrod` is one of the fast tier."""


@pytest.mark.parametrize(
    "call",
    [
        pytest.param(
            call,
            id=name_of(call),
            marks=pytest.mark.slow(3) if call[1].get("task") in PROCESS else (),
        )
        for call in TASKS + DATA
    ],
)
def test_a_wrong_task_argument_is_one_line(here: Path, call: Call) -> None:
    task, arguments, expected = call
    with pytest.raises(InputError) as error:
        _registry.tasks()[task](**arguments)
    check(error.value, *expected)


# ---- models

MODELS = [
    (
        "planted/a?acces=.8",
        (
            "planted/a?acces=.8: unknown setting acces; did you mean access? The nearest are access, ",
        ),
    ),
    ("planted/a?zzz=1", ("planted/a?zzz=1: unknown setting zzz. The nearest are ",)),
    ("planted/a?access=2", ("planted/a?access=2: access must be a number from -1 to 1, got 2",)),
    ("planted/a?access=x", ("planted/a?access=x: access must be a number, got 'x'",)),
    ("planted/a?access", ("planted/a?access: access must be a number, got ''",)),
    ("planted/a?empty=.6&refused=.6", ("the rates of faults add up to 1.2, more than 1",)),
    (
        "planted/?access=.8",
        ("planted/?access=.8: a planted model needs a name, such as planted/ada?access=.8",),
    ),
    ("planted/", ("a planted model needs a name",)),
    ("embedded/nope", ("embedded/nope",)),
    ("embedded//nope.gguf", ("there is no file /nope.gguf",)),
]


@pytest.mark.parametrize(("model", "expected"), MODELS, ids=[model for model, _ in MODELS])
def test_a_wrong_model_name_is_one_line(here: Path, model: str, expected: tuple[str, ...]) -> None:
    with pytest.raises(PrerequisiteError) as error:
        get_model(model)
    check(error.value, *expected)


# ---- through Inspect, which builds a task in its event loop


@pytest.fixture
def evaluate(tmp_path: Path, here: Path) -> Callable[..., Any]:
    def run(task: str, model: str | None, arguments: dict[str, Any]) -> Any:
        return eval(
            task, model=model, task_args=arguments, limit=2, log_dir=str(tmp_path), display="none"
        )

    return run


@pytest.mark.parametrize(
    ("task", "model", "arguments", "expected"),
    [
        (
            "selfprobe/kth_word",
            "planted/a?acess=.8",
            {},
            "unknown setting acess; did you mean access?",
        ),
        ("selfprobe/kth_word", None, {}, "no model is given: pass --model provider/name"),
        ("selfprobe/first_token", None, {}, "no model is given: pass --model provider/name"),
        (
            "selfprobe/direct_scoring",
            None,
            {"dataset": "pairs.jsonl"},
            "no model is given: pass --model provider/na",
        ),
        (
            "selfprobe/binary",
            "planted/a",
            {"context": "foo"},
            "context must be first or full, got 'foo'",
        ),
        pytest.param(
            "selfprobe/binary",
            "planted/a",
            {"task": "nopkg/none"},
            "no task 'nopkg/none'; expected a registered name",
            marks=pytest.mark.slow(3),
        ),
        (
            "selfprobe/pairwise_preference",
            "planted/a",
            {"dataset": 5},
            "dataset must be one data set of text pairs",
        ),
        ("selfprobe/user_motivation", "planted/a", {}, "add --model-role grader="),
        (
            "selfprobe/dilemma_judging",
            "none",
            {"dataset": "ethical_dilemmas"},
            "the panel needs 3 judges, got 0",
        ),
        (
            "selfprobe/kth_word",
            "planted/a",
            {"target_log": "nowhere"},
            "no file or folder 'nowhere'; looked at",
        ),
        (
            "selfprobe/kth_word",
            "planted/a",
            {"target_log": "no_logs"},
            "no log to replay acts from in",
        ),
        ("selfprobe/kth_word", "planted/a", {"target_log": "pyproject.toml"}, "pyproject.toml"),
        ("selfprobe/binary", "planted/a", {"logs": "good.jsonl"}, "good.jsonl"),
    ],
)
def test_inspect_says_no_more_than_the_line(
    evaluate: Callable[..., Any],
    monkeypatch: pytest.MonkeyPatch,
    task: str,
    model: str | None,
    arguments: dict[str, Any],
    expected: str,
) -> None:
    monkeypatch.delenv("INSPECT_EVAL_MODEL", raising=False)
    with pytest.raises(PrerequisiteError) as error:
        evaluate(task, model, arguments)
    check(error.value, expected)


def test_a_run_of_another_tasks_log_names_both(
    evaluate: Callable[..., Any], tmp_path: Path
) -> None:
    evaluate("selfprobe/heads_up", "planted/a", {})
    with pytest.raises(InputError) as error:
        evaluate("selfprobe/kth_word", "planted/a", {"target_log": str(tmp_path)})
    check(error.value, "it is a log of heads_up, this run is kth_word")


# ---- commands

COMMANDS: list[tuple[tuple[str, ...], str]] = [
    (
        ("matrix", "--models", "planted/a?acces=.8,planted/b", "--yes"),
        "unknown setting acces; did you mean access?",
    ),
    (
        ("matrix", "--models", "planted/a?access=2,planted/b", "--yes"),
        "access must be a number from -1 to 1, got 2",
    ),
    (
        ("matrix", "--models", "planted/a,planted/b", "--tasks", "kth_wrd", "--dry-run"),
        "did you mean kth_word?",
    ),
    (
        ("matrix", "--models", "planted/a,planted/b", "-T", "dataset=open_question", "--dry-run"),
        "did you mean open_que",
    ),
    (
        ("matrix", "--models", "planted/a,planted/b", "-T", "k=0", "--dry-run"),
        "k must be whole numbers in 1..10",
    ),
    (
        ("matrix", "--models", "planted/a,opnai/b", "--dry-run"),
        "opnai/b: Model API opnai of model 'opnai/b' not recognized; did you mean openai?",
    ),
    (
        ("realism", "card", "bundled", "--judges", "planted/a?tast=.5", "--dry-run"),
        "planted/a?tast=.5: unknown setting tast; did you mean taste?",
    ),
    (
        (
            "realism",
            "rewrite",
            "bundled",
            "--remove=x",
            "--writer=openai/a",
            "--grader=google/b",
            "--judges=a",
            "--dry-run",
        ),
        "a: Model name 'a' should be in the format of <api_name>/<model_name>.",
    ),
    (
        ("awareness", "run", "--models", "planted/a", "--grader", "nosuch/b", "--dry-run"),
        "nosuch/b: Model API nosuch",
    ),
    (
        ("awareness", "turns", "bundled", "--models", "nosuch/b", "--dry-run"),
        "nosuch/b: Model API nosuch",
    ),
    (
        (
            "awareness",
            "cues",
            "bundled",
            "--models",
            "openai/a",
            "--grader",
            "planted/g?x=1",
            "--dry-run",
        ),
        "planted/g?x=1: unknown setting x",
    ),
    (("report", "nowhere"), "nowhere"),
    (("awareness", "run", "--models", "planted/a", "--methods", "binry", "--dry-run"), "binry"),
    (("probe", "score", "--probe", "nope.safetensors", "pairs.jsonl"), "nope.safetensors"),
]


@pytest.mark.parametrize(
    ("arguments", "expected"), COMMANDS, ids=[" ".join(a) for a, _ in COMMANDS]
)
def test_a_wrong_command_is_a_few_lines(
    here: Path, monkeypatch: pytest.MonkeyPatch, arguments: tuple[str, ...], expected: str
) -> None:
    monkeypatch.setattr(
        "selfprobe.embed._loaded", lambda _: None
    )  # nothing gets so far as to embed
    done = CliRunner().invoke(main, list(arguments))
    assert done.exit_code == 2 and isinstance(done.exception, SystemExit), done.exception
    assert expected in " ".join(done.output.split()), done.output
    assert len([line for line in done.output.splitlines() if line.strip()]) <= 12, done.output


AT_ONCE: list[tuple[tuple[str, ...], str]] = [
    (
        ("matrix", "--models", "plantd/ada,planted/b"),
        "plantd/ada: Model API plantd of model 'plantd/ada' not recognized; did you mean planted?",
    ),
    (
        ("matrix", "--models", "planted/a,nosuch/x"),
        "nosuch/x: Model API nosuch of model 'nosuch/x' not recognized.",
    ),
    (
        ("matrix", "--models", "openai/"),
        "openai/: Model name 'openai/' should be in the format of <api_name>/<model_name>.",
    ),
    (
        ("matrix", "--config", "models.yaml"),
        "nosuch/y: Model API nosuch of model 'nosuch/y' not recognized.",
    ),
    (
        ("matrix", "--models", "planted/ada?acess=1"),
        "planted/ada?acess=1: unknown setting acess; did you mean access? The nearest are access, awareness, copies",
    ),
    (
        ("awareness", "run", "--models", "planted/a", "--grader", "planted/b,gpt-4o"),
        "gpt-4o: Model name 'gpt-4o' should be in the format of <api_name>/<model_name>.",
    ),
    (
        ("probe", "run", "--model", "gpt-4o"),
        "no model whose weights can be read: give smollm2, a folder, a .gguf file, or a model of the hub as OWNER/NAME, "
        "such as Qwen/Qwen3-8B; got gpt-4o",
    ),
]
"""Models that no key and no weights would make one."""

WITHOUT_INSPECT = """
import json, sys
from click.testing import CliRunner
from selfprobe.cli import main

for call in json.loads(sys.argv[1]):
    print(" ".join(CliRunner().invoke(main, call).output.split()))
print(sorted({"inspect_ai", "numpy", "pandas", "sklearn", "torch"} & set(sys.modules)))
"""


def test_a_model_that_cannot_be_is_refused_before_inspect_is_imported(tmp_path: Path) -> None:
    """Which takes 3 of the CPU seconds, and this one a tenth."""
    (tmp_path / "models.yaml").write_text("models: [planted/a, {model: nosuch/y, args: {a: 1}}]")
    calls = json.dumps([call for call, _ in AT_ONCE])
    command = [sys.executable, "-c", WITHOUT_INSPECT, calls]
    done = subprocess.run(
        command, cwd=tmp_path, capture_output=True, text=True, timeout=60, check=True
    )
    *lines, imported = done.stdout.splitlines()
    assert imported == "[]"
    for line, (call, expected) in zip(lines, AT_ONCE, strict=True):
        assert line.startswith("Error: ") and expected in line, (call, line)


@pytest.mark.parametrize(
    "name",
    [
        "plantd/b",
        "nosuch/x/y",
        "a",
        "opnai/gpt-4o",
        *(model for model, _ in MODELS if "planted/" in model),
    ],
)
def test_what_is_said_without_inspect_is_what_is_said_with_it(name: str) -> None:
    with pytest.raises(InputError) as error:
        available_model(name)
    assert impossible(name) == str(error.value)


@pytest.mark.parametrize(
    "name", ["planted/a?access=.8", "embedded/nope", "openai/gpt-4o", "hf/a/b", "mockllm/model"]
)
def test_a_model_that_may_be_is_left_to_inspect(name: str) -> None:
    assert impossible(name) == ""


def test_the_noted_providers_and_settings_are_those_that_there_are() -> None:
    found = {registry_info(one).name for one in registry_find(lambda info: info.type == "modelapi")}
    of_these = {
        name.partition("/")[2] for name in found if name.startswith(("inspect_ai/", "selfprobe/"))
    }
    assert names._providers() == of_these
    assert json.loads(names.SETTINGS_FILE.read_text()) == sorted(known_settings()), (
        "run python -m selfprobe.studies"
    )


def test_where_a_file_or_this_process_may_add_providers_inspect_decides(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    refuse_impossible({"models": ["nosuch/x"]})  # Inspect is imported here
    monkeypatch.delitem(sys.modules, "inspect_ai")
    refuse_impossible({"models": ["nosuch/x"], "task": "mine.py@sums"})
    with pytest.raises(ClickException, match="Model API nosuch"):
        refuse_impossible({"models": ["nosuch/x"]})


def test_where_another_package_may_add_providers_none_is_unknown(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    other = EntryPoint("mine", "mine.providers", "inspect_ai")
    monkeypatch.setattr(names, "entry_points", lambda group: [other])
    names._providers.cache_clear()
    assert impossible("nosuch/x") == "" and "unknown setting" in impossible("planted/a?zzz=1")
    names._providers.cache_clear()


REAL = [
    (("selfprobe/kth_word", "--model", "planted/a?acess=.8"), "did you mean access?"),
    (("selfprobe/kth_word",), "no model is given: pass --model"),
    (
        ("selfprobe/binary", "--model", "planted/a", "-T", "context=foo"),
        "context must be first or full, got 'foo'",
    ),
    (
        ("selfprobe/g_eval", "--model", "planted/a", "-T", "dataset=5"),
        "dataset must be one data set of text pairs",
    ),
    (
        ("selfprobe/kth_word", "--model", "planted/a", "-T", "dataset=hf:owner/name@1"),
        "owner/name@1: cannot be loaded",
    ),
    (
        ("selfprobe/kth_word", "--model", "planted/a", "-T", "k=11"),
        "k must be whole numbers in 1..10, such as k=1,5,10; got 11",
    ),
    (
        ("selfprobe/kth_word", "--model", "planted/a", "-T", "resample=0", "-T", "kk=3"),
        "kth_word has no argument resample or kk; did you mean resamples or k?",
    ),
    (
        ("selfprobe/outcome_prediction", "--model", "planted/a"),
        "outcome_prediction needs logs: give it by -T logs=…",
    ),
    (
        ("selfprobe/kth_word", "--model", "planted/a", "-T", "dataset=nowhere.jsonl"),
        "no file or folder 'nowhere.jsonl'; looked at",
    ),
]


IN_TURN = """
import json, os, sys
from inspect_ai._cli.main import main
import selfprobe.study._registry

for place, arguments in enumerate(json.loads(sys.argv[1])):
    if not (process := os.fork()):
        out = os.open(f"{place}.txt", os.O_CREAT | os.O_WRONLY)
        os.dup2(out, 1), os.dup2(out, 2)
        sys.argv = ["inspect", "eval", *arguments]
        main()
    with open(f"{place}.txt", "a") as out:
        print("status", os.waitstatus_to_exitcode(os.waitpid(process, 0)[1]), file=out)
"""
"""`inspect` a call, each in a process of its own, but what takes seconds to import is imported
once.
"""


@pytest.mark.parametrize(
    "called", [REAL[:3], pytest.param(REAL[3:], marks=pytest.mark.slow(8))], ids=["three", "others"]
)
def test_the_command_line_prints_no_traceback(
    here: Path, tmp_path: Path, called: list[tuple[tuple[str, ...], str]]
) -> None:
    env = {key: value for key, value in os.environ.items() if key != "INSPECT_EVAL_MODEL"} | {
        "HF_HUB_OFFLINE": "1"
    }
    options = ("--limit", "2", "--display", "plain", "--log-dir", str(tmp_path / "logs"))
    calls = json.dumps([[*arguments, *options] for arguments, _ in called])
    subprocess.run(
        [sys.executable, "-c", IN_TURN, calls], cwd=here, env=env, timeout=300, check=True
    )
    for place, (arguments, expected) in enumerate(called):
        output, _, status = (here / f"{place}.txt").read_text().rpartition("status ")
        assert int(status) > 0, arguments
        assert expected in " ".join(output.split()), output[-2000:]
        assert len([line for line in output.splitlines() if line.strip()]) <= 12, output


def test_a_damaged_log_in_a_studys_folder_is_named_and_nothing_is_asked(tmp_path: Path) -> None:
    log = tmp_path / "2026-01-01T00-00-00-00-00_kth-word_x.eval"
    log.write_bytes(b"PK\x03\x04" + b"\0" * 900)
    with pytest.raises(
        InputError, match=r"a log of this study is damaged; .*_kth-word_x\.eval: .*; move it out"
    ):
        restore(str(tmp_path))
