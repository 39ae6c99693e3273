"""`selfprobe probe run` on a user's own question, turns and folder: what is asked, what is kept,
what is refused.
"""

import json
import re
import shutil
from pathlib import Path

import pytest

from selfprobe.probes import forward
from selfprobe.probes.probe_file import load_probe

from .conftest import TEMPLATE
from .test_probe_command import TOY, call, rows, saved, written

SYSTEM_TEMPLATE = "{% for m in messages %}<{{ m.role }}>{{ m.content }}<end>{% endfor %}{% if shout %}LOUD{% endif %}<assistant>"


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return saved(tmp_path_factory.mktemp("model"), template=SYSTEM_TEMPLATE)


@pytest.fixture(scope="module")
def done(model: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("done")
    ran = call(
        *("run", "--model", model, "--out", folder / "out", "--datasets", f"mine={written(folder / 'x.jsonl', rows('x'))}"),
        *("--question", "more honest", "--item", "answer", "--system", "Be brief.", "--template-arg", "shout=true", *TOY),
        *("--longest", 900, "--path", "two_forwards"),
    )  # fmt: skip
    assert ran.exit_code == 0, ran.output
    return folder


def test_probes_that_cannot_read_the_states_of_a_run_are_refused_before_it(
    model: Path, done: Path, tmp_path: Path
) -> None:
    words = ("--question", "more honest", "--item", "answer")
    new = (
        "run",
        "--model",
        model,
        "--out",
        tmp_path / "new",
        "--against",
        done / "out",
        "--no-random-weights",
    )
    mine, few = ("--datasets", f"mine={done / 'x.jsonl'}"), ("--seeds", 1, "--resamples", 100)
    for told, given in (
        (
            "out and .*new have another settings: run one again as the other, but for --system",
            (*mine, *words),
        ),
        ("out and .*new hold other pairs of mine: run one again as the other", (*mine, *few)),
        ("out and .*new share no data set", ("--datasets", done / "x.jsonl", *words, *few)),
    ):
        ran = call(*map(str, (*new, *given)))
        assert ran.exit_code == 2 and re.search(told, " ".join(ran.output.split())), ran.output
        assert not (tmp_path / "new").exists(), "nothing was read"


def refused(message: str, *given: str | Path) -> None:
    ran = call(*given)
    assert ran.exit_code == 2 and message in " ".join(ran.output.split()), ran.output
    assert isinstance(ran.exception, SystemExit), "no traceback"


def test_the_question_and_the_turns_go_into_the_prompt_the_card_and_the_run(
    done: Path, model: Path
) -> None:
    state = json.loads((done / "out" / "run.json").read_text())
    assert state["datasets"]["mine"] | {"hash": "", "activations": ""} == {
        "origin": str(done / "x.jsonl"), "hash": "", "pairs": 24, "activations": "", "question": "more honest", "item": "answer",
    }  # fmt: skip
    assert state["chat"] == {"system": "Be brief.", "arguments": {"shout": True}}
    card = load_probe(done / "out" / "mine-supervised.safetensors").card
    assert (card.question, card.item, card.system) == ("more honest", "answer", "Be brief.")
    assert (card.chat.system, card.chat.arguments) == ("Be brief.", {"shout": True})


def test_a_run_holds_every_setting_and_version_and_no_permission(done: Path) -> None:
    state = json.loads((done / "out" / "run.json").read_text())
    assert state["reading"] == {
        "limit": 2000,
        "path": "two_forwards",
        "batch_tokens": None,
        "longest": 900,
    }
    assert {"torch", "transformers", "numpy", "scikit-learn", "python"} == set(state["versions"])
    assert "allow_pickle" not in state["loading"] and state["loading"]["dtype"] == "float32"


def test_score_asks_what_the_probe_was_fitted_under(
    done: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    read: list[str] = []
    from selfprobe.probes import tokens

    real = tokens.pair_prompt
    monkeypatch.setattr(tokens, "pair_prompt", lambda *given: read.append(real(*given)) or read[-1])
    new = written(tmp_path / "new.jsonl", rows("new", 1))
    judged = call(
        "score", "--probe", done / "out" / "mine-supervised.safetensors", new, "--cache", tmp_path
    )
    assert judged.exit_code == 0, judged.output
    assert next(text for text in read if "new 0" in text) == (
        "<system>Be brief.<end><user>Consider the following instruction:\nnew 0\nConsider the following two answers:\n"
        "Choice 1: a0\nChoice 2: c\nWhich is more honest?\nAnswers must be a single choice.<end>LOUD<assistant>"
        "Between Choice 1 and Choice 2, the more honest answer is Choice"
    )


def test_a_folder_of_another_run_is_refused_before_any_forward_pass(
    done: Path, model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(forward, "read_states", None)
    words = ("--question", "more honest", "--item", "answer")
    turns = ("--system", "Be brief.", "--template-arg", "shout=true")
    to = ("run", "--model", model, "--out", done / "out")
    mine, other = f"mine={done / 'x.jsonl'}", written(tmp_path / "other.jsonl", rows("other"))
    flipped = written(
        tmp_path / "x.jsonl", [row | {"label": 3 - row["label"]} for row in rows("x")]
    )
    refused(
        "holds a run on mine, not on other: give another --out",
        *to,
        *words,
        *turns,
        "--datasets",
        other,
    )
    refused(
        "holds a run on other pairs of mine", *to, *words, *turns, "--datasets", f"mine={flipped}"
    )
    refused("With a copy of ", *to, *words, *turns, "--datasets", f"mine={flipped}")
    elsewhere = (
        "run",
        "--model",
        model,
        "--out",
        tmp_path / "out",
        *words,
        *turns,
        "--datasets",
        f"mine={flipped}",
    )
    shutil.copytree(done / "out" / "activations", tmp_path / "out" / "activations")
    assert "To do: 0 forward passes" in call(*elsewhere, "--no-random-weights", "--dry-run").output
    refused("24 pairs; now from", *to, *words, *turns, "--datasets", mine, "--limit", "20")
    refused("or the question differ", *to, *turns, "--datasets", mine)
    refused("another system turn or other template arguments", *to, *words, "--datasets", mine)
    monkeypatch.undo()
    more = call(*to, *words, *turns, "--datasets", f"{mine},{other}", "--dry-run")
    assert more.exit_code == 0 and "To do: 48 forward passes" in more.output, more.output
    assert re.search(
        r"Time: about \d+ s to read by two plain forwards \(measured on one batch\), half",
        more.output,
    )


def test_a_damaged_folder_is_named(done: Path, model: Path) -> None:
    file = done / "out" / "run.json"
    held = file.read_text()
    file.write_text("{}")
    given = ("run", "--model", model, "--datasets", done / "x.jsonl", "--out", done / "out")
    refused("run.json is not what a run writes (KeyError: 'loading'): run again", *given)
    file.write_text(held)


def test_a_template_that_fails_is_named(model: Path, tmp_path: Path) -> None:
    file = written(tmp_path / "one.jsonl", rows("one"))
    to = ("run", "--datasets", file, "--out", tmp_path / "out")
    plain = saved(tmp_path / "plain", template=TEMPLATE)
    refused("fails on a system and a user turn: no system role. Try it without --system", *to, "--model", plain, "--system", "S")  # fmt: skip
    silent = saved(tmp_path / "silent", template="{{ messages[-1].content }}<assistant>")
    refused("chat template leaves the system turn out", *to, "--model", silent, "--system", "S")
    raising = saved(tmp_path / "raising", template="{{ raise_exception('three turns only') }}")
    refused(
        "fails on a user turn: three turns only. Use a model whose template",
        *to,
        "--model",
        raising,
    )
    refused(
        "has no argument shuot: it would change nothing",
        *to,
        "--model",
        model,
        "--template-arg",
        "shuot=true",
    )
    refused(
        "must be a comparative, such as 'more honest'",
        *to,
        "--model",
        model,
        "--question",
        "honest",
    )


def test_prompts_over_the_context_leave_too_little_and_that_is_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(forward, "read_states", None)
    short = saved(tmp_path / "short", template=SYSTEM_TEMPLATE, context=100)
    file = written(tmp_path / "one.jsonl", rows("one"))
    told = "one: 0 of 24 pairs can be read (the first other: too long: 250 tokens, the context is 100); the training half"
    refused(told, "run", "--model", short, "--datasets", file, "--out", tmp_path / "o")
