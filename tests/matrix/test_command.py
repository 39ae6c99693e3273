"""`selfprobe matrix` and `selfprobe report` as a user calls them."""

import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner, Result

from selfprobe.cli import main
from selfprobe.embed import _load
from selfprobe.studies.matrix.rows import ENDLESS_ITEMS, planned_detectable_advantage
from selfprobe.study.described import unopened_models

COMMAND = str(Path(sys.executable).with_name("selfprobe"))
FAKES = "openai-api/fake/alpha,openai-api/fake/beta"
PLANTED = "planted/a?access=.9,planted/b?access=.5,planted/c?access=.1"


@pytest.fixture(autouse=True)
def away(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Run where no logs/matrix of an earlier command is."""
    monkeypatch.chdir(tmp_path)


def test_names_without_commas_are_told_to_have_some() -> None:
    for names in ("planted/b", "planted/b planted/c"):
        done = called("--models", "planted/a", *names.split(), "--tasks", "kth_word")
        assert done.exit_code == 2, done.output
        assert done.stderr.startswith(
            f"Error: unexpected {names}; commas separate names, as in --models a,b,c "
        )


def called(*args: str) -> Result:
    return CliRunner().invoke(main, ["matrix", *args])


def test_a_dry_run_refuses_a_planted_model_with_an_unknown_setting(tmp_path: Path) -> None:
    models = "planted/a?acces=.8,planted/b"
    done = called(
        "--models", models, "--tasks", "kth_word", "--log-dir", str(tmp_path / "m"), "--dry-run"
    )
    assert done.exit_code != 0 and "unknown setting acces; did you mean access?" in done.stderr


def test_a_dry_run_says_calls_tokens_and_the_smallest_effect_and_asks_no_model(
    server: Any, tmp_path: Path
) -> None:
    done = called(
        "--models",
        FAKES,
        "--tasks",
        "kth_word",
        "--limit",
        "50",
        "--log-dir",
        str(tmp_path / "m"),
        "--dry-run",
    )
    assert done.exit_code == 0, done.output
    (beta,) = [
        line.split() for line in done.output.splitlines() if line.startswith("openai-api/fake/beta")
    ]
    assert beta == ["openai-api/fake/beta", "250", "14,250", "4,750", "price", "unknown"]
    assert (
        "With 2 models nobody can be named" in done.output
        and "Take 8; 4 are the least." in done.output
    )
    assert server.stats()["requests"] == 0 and not (tmp_path / "m").exists()


def test_config_may_be_an_option_or_the_argument_and_tasks_that_are_run_by_name_are_not_in_it(
    tmp_path: Path,
) -> None:
    one, other = tmp_path / "a.yaml", tmp_path / "b.yaml"
    for path in (one, other):
        path.write_text("models: [planted/a, planted/b]\nlimit: 5\n")
    told = [called(*given, "--dry-run").output for given in ((str(one),), ("--config", str(one)))]
    assert told[0] == told[1] and "heads_up (5 items)" in told[0]
    assert not [
        task
        for task in ("self_recognition", "subset_choice", "probability_targeting")
        if task in told[0]
    ]
    named = called("--config", str(one), "--tasks", "subset_choice", "--dry-run")
    assert named.exit_code == 0 and "subset_choice (5 items)" in named.output
    both = called(str(one), "--config", str(other), "--dry-run")
    assert both.exit_code == 2 and "two configurations" in both.output and "give one" in both.output


SIZES_AND_POWER = {
    (5, 3): r"even a full score, 50 points above the others, is too little to be named\.",
    (5, 60): r"even a full score, .* is too little to be named; with 8 models, (39|4\d)\.",
    (5, 100): r"it takes about 3\d; with 8 models, 3\d\.",
    (8, 100): r"it takes about 3\d\.",
}


@pytest.mark.parametrize(("size", "items"), SIZES_AND_POWER)
def test_a_plan_says_what_advantage_is_named_with_these_items_and_with_any_number(
    size: int, items: int
) -> None:
    models = ",".join(f"planted/{name}" for name in "abcdefgh"[:size])
    done = called("--models", models, "--tasks", "kth_word", "--limit", str(items), "--dry-run")
    plan = " ".join(done.output.split())
    with_any_number = r"about (\d+) points or more, however many items you ask"
    if size < 8:
        with_any_number += r"; with 8, by (\d+)"
    with_these = SIZES_AND_POWER[size, items]
    found = re.search(
        rf"With {size} models a model is named only if it beats the others by {with_any_number}\. "
        rf"With these {items} items {with_these} \(Named in 80 % of such matrices; ",
        plan,
    )
    assert found, plan

    limits = [
        planned_detectable_advantage(
            count, ENDLESS_ITEMS, tests=count, rng=np.random.default_rng(0)
        )
        for count in (size, 8)
    ]
    stated = found.groups()[: 2 if size < 8 else 1]
    assert stated == tuple(str(round(100 * limit)) for limit in limits[: len(stated)])


def test_a_plan_of_four_models_and_many_tasks_says_that_no_advantage_is_enough() -> None:
    models = ",".join(f"planted/{name}" for name in "abcd")
    tasks = "kth_word,ethical_dilemma,heads_up"
    done = called("--models", models, "--tasks", tasks, "--limit", "10", "--dry-run")
    plan = " ".join(done.output.split())
    assert re.search(
        r"With 4 models .*, however many items you ask; with 8, by \d+\. With these 10 items of "
        r"\w+, which needs the most, even a full score, \d+ points above the others, is too little ",
        plan,
    ), plan


def test_without_yes_it_asks_first_and_no_is_respected(server: Any, tmp_path: Path) -> None:
    options = [
        "--models",
        FAKES,
        "--tasks",
        "kth_word",
        "--limit",
        "2",
        "--log-dir",
        str(tmp_path / "m"),
    ]
    done = CliRunner().invoke(main, ["matrix", *options], input="n\n")
    assert done.exit_code == 1 and "Run it?" in done.output
    assert server.stats()["requests"] == 0


def test_prices_give_an_estimate(tmp_path: Path) -> None:
    prices = tmp_path / "prices.yaml"
    prices.write_text(
        "openai-api/fake/alpha: {input: 1.0, output: 10.0, input_cache_write: 0, input_cache_read: 0}\n"
    )
    done = called(
        "--models",
        FAKES,
        "--tasks",
        "kth_word",
        "--limit",
        "50",
        "--dry-run",
        "--prices",
        str(prices),
    )
    (alpha,) = [
        line.split()
        for line in done.output.splitlines()
        if line.startswith("openai-api/fake/alpha")
    ]
    assert alpha[-1] == "$0.06"  # 14,250 in and 4,750 out


@pytest.mark.parametrize(
    ("models", "said"),
    [
        ("planted/a", "a matrix compares two models or more, got planted/a"),
        ("planted/a,planted/a", "model planted/a is listed twice; list each model once"),
        ("", "a matrix compares two models or more, got none"),
    ],
)
def test_wrong_models_are_a_usage_error(models: str, said: str) -> None:
    done = called("--models", models, "--tasks", "heads_up", "--dry-run")
    assert done.exit_code == 2 and said in " ".join(done.output.split())


def test_a_yaml_file_gives_models_with_their_arguments_and_options_win(
    server: Any, tmp_path: Path
) -> None:
    config = tmp_path / "matrix.yaml"
    config.write_text(
        "models:\n- planted/a\n- {model: planted/b, args: {access: 0.1}}\n"
        f"- {{model: openai-api/fake/alpha, base_url: {server.base_url}, config: {{max_connections: 3}}}}\n"
        "tasks: [kth_word, heads_up]\nlimit: 9\nargs: {k: '1,2'}\n"
    )
    done = called(str(config), "--tasks", "kth_word", "--dry-run")
    assert done.exit_code == 0, done.output
    assert "3 models × 3 × kth_word (9 items)" in done.output
    assert "108" in done.output  # 3 × 9 × (1 + 1 + 2)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[a, b]", "expected a mapping with args, attempt-timeout, batch"),
        ("model: [a]", "unknown field model; did you mean models?"),
        ("observers: {shown: 5}", "observers must be a list of texts, got {'shown': 5}"),
        ("models:", "a matrix compares two models or more, got none"),
        ("models: {a: b}", "models must be a list of texts, got {'a': 'b'}"),
        ("models: [3, a/b]", "models must be a list of texts, got [3, 'a/b']"),
        ("tasks: [3]", "tasks must be a list of texts, got [3]"),
        ("limit: -3", "limit: expected a whole number from 1, got -3"),
        ("limit: 0", "limit: expected a whole number from 1, got 0"),
        ("limit: true", "limit must be one value, got True"),
        ("args: [k]", "args must be a mapping, got ['k']"),
        ("models: [", "is not YAML"),
        (
            "models: [{name: a}]",
            "a model is a name or a mapping of args, base_url, config, model; got {'name': 'a'}",
        ),
    ],
)
def test_a_wrong_yaml_file_says_what_was_expected(tmp_path: Path, text: str, said: str) -> None:
    config = tmp_path / "m.yaml"
    config.write_text(text)
    done = called(str(config), "--dry-run")
    assert done.exit_code == 2 and said in " ".join(done.output.split())


def test_a_yaml_file_takes_names_with_commas_and_empty_keys_as_absent(tmp_path: Path) -> None:
    config = tmp_path / "m.yaml"
    config.write_text("models: planted/a, planted/b\ntasks: kth_word\nlimit:\nargs:\n")
    done = called(str(config), "--limit", "2", "--dry-run")
    assert done.exit_code == 0, done.output
    assert "2 models × 2 × kth_word (2 items)" in done.output


def test_the_plan_says_how_many_cells_informed_observers_add(tmp_path: Path) -> None:
    config = tmp_path / "m.yaml"
    config.write_text(
        "models: planted/a, planted/b\ntasks: kth_word\nlimit: 4\nobservers: shown:3\nargs: {k: 1}\n"
    )
    done = called(str(config), "--dry-run")
    assert done.exit_code == 0, done.output
    assert (
        "Informed observers (shown:3) are included: 2 further cells a task and arm." in done.output
    )
    assert "32" in done.output  # 2 × 4 × (1 + 1 + 1), and 2 × 4 further ones
    done = called(str(config), "--observers", "self", "--dry-run")
    assert "Informed" not in done.output and "24" in done.output


@pytest.mark.parametrize(
    ("model", "said"),
    [
        ("foo/a", "foo/a: Model API foo of model 'foo/a' not recognized"),
        ("bad", "bad: Model name 'bad' should be in the format of <api_name>/<model_name>"),
        ("planted/a?access=2", "access must be a number from -1 to 1, got 2"),
        ("embedded/nope", "embedded/nope: Expected embedded/smollm2"),
    ],
)
def test_a_model_that_cannot_be_opened_is_told_before_the_prices(
    tmp_path: Path, model: str, said: str
) -> None:
    options = ["--tasks", "kth_word", "--limit", "2", "--log-dir", str(tmp_path / "m")]
    done = called("--models", f"planted/b,{model}", *options)
    assert done.exit_code == 2 and said in " ".join(done.output.split())
    assert (
        "Run it?" not in done.output
        and "cost" not in done.output
        and "Traceback" not in done.output
    )


def test_a_wrong_model_argument_is_told(tmp_path: Path) -> None:
    config = tmp_path / "m.yaml"
    config.write_text(
        "models: [planted/a, {model: embedded/smollm2, args: {slot: 1}}]\ntasks: kth_word\nlimit: 2\n"
    )
    done = called(str(config))
    assert done.exit_code == 2 and "embedded/smollm2 takes the model arguments slots" in " ".join(
        done.output.split()
    )


def test_a_model_opened_for_the_check_is_the_one_that_runs() -> None:
    [model] = unopened_models([{"model": "planted/a", "args": {"access": 0.5}}])
    assert model.open() is model.open()


def test_a_missing_extra_is_a_message(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "sentence_transformers", None)
    _load.cache_clear()
    done = called(
        "--models", PLANTED, "--limit", "2", "--dry-run", "-T", "embedder=BAAI/bge-small-en-v1.5"
    )
    assert done.exit_code == 2 and "needs sentence-transformers" in " ".join(done.output.split())


def test_a_task_argument_without_a_value_is_a_usage_error() -> None:
    done = called("--models", PLANTED, "--tasks", "kth_word", "--dry-run", "-T", "k")
    assert done.exit_code == 2 and "-T takes NAME=VALUE, got 'k'" in done.output


def test_two_matrices_in_one_folder_are_refused_by_name(questions: Path, tmp_path: Path) -> None:
    options = [
        "--models",
        PLANTED,
        "--tasks",
        "kth_word",
        "--limit",
        "2",
        "--log-dir",
        str(tmp_path / "m"),
        "--yes",
    ]
    options += ["--display", "none", "-T", f"dataset={questions}", "--out", str(tmp_path / "page")]
    assert called(*options, "-T", "k=1").exit_code == 0
    done = called(*options, "-T", "k=2")
    assert done.exit_code == 2 and "m/diagonal holds a log of other runs (" in done.output
    assert "or give a new --log-dir" in done.output
    assert len(done.output.splitlines()) == 1, "it is refused before the plan is shown"
    questions.write_text(questions.read_text().replace("number", "thing"))
    changed = called(*options, "-T", "k=1")
    assert changed.exit_code == 2 and "a data set that changed since" in changed.output


def test_a_report_of_nothing_is_a_message(tmp_path: Path) -> None:
    done = CliRunner().invoke(main, ["report", str(tmp_path), "--out", str(tmp_path / "r")])
    assert done.exit_code == 2 and "no selfprobe log in" in done.output
    done = CliRunner().invoke(main, ["report", str(tmp_path / "nowhere")])
    assert done.exit_code == 2 and "no file or folder" in done.output


@pytest.mark.slow(15)
def test_matrix_and_report_run_from_the_shell_and_a_hole_shows_in_the_exit_status(
    tmp_path: Path,
) -> None:
    options = [
        "--tasks",
        "kth_word,heads_up",
        "--limit",
        "20",
        "--log-dir",
        "m",
        "--yes",
        "--display",
        "none",
    ]
    five = f"{PLANTED},planted/d?access=.1,planted/e?access=.1"
    for command in ([COMMAND, "matrix", "--models", five, *options], [COMMAND, "report", "m"]):
        done = subprocess.run(
            command, cwd=tmp_path, capture_output=True, text=True, timeout=300, check=False
        )
        assert done.returncode == 0, done.stdout + done.stderr
    assert "heads_up" in done.stdout and "in kth_word planted/" in done.stdout
    assert done.stdout.startswith("Cannot tell for 5 of 5 models in 2 of 2 tasks: "), (
        "twenty items are too few"
    )
    assert (tmp_path / "report" / "index.html").exists()
    next((tmp_path / "m" / "cells").glob("*heads*.eval")).unlink()
    done = subprocess.run(
        [COMMAND, "report", "m"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 1
    assert "there is no log of this cell" in done.stderr and "some cells are holes" in done.stderr


@pytest.mark.parametrize(
    ("config", "told"),
    [
        (
            "models: [{model: planted/a, config: {tempeature: 3}}, planted/b]",
            "config has no setting tempeature; did you",
        ),
        (
            "models: [{model: planted/a, config: {temperature: hot}}, planted/b]",
            "model planted/a: wrong config: ",
        ),
        (
            "models: [{model: planted/a, confg: {}}, planted/b]",
            "model planted/a: unknown field confg; did you mean config",
        ),
        ("models: [planted/a, planted/b]\nlimt: 3", "unknown field limt; did you mean limit?"),
        ("models: [planted/a, plantd/b]", "did you mean planted?"),
        ("models: [planted/a, planted/b]\nargs: {target_log: x}", "leave target_log out"),
    ],
)
def test_a_wrong_line_of_a_config_is_one_line_that_names_it(
    tmp_path: Path, config: str, told: str
) -> None:
    (tmp_path / "c.yaml").write_text(config)
    done = CliRunner().invoke(
        main, ["matrix", str(tmp_path / "c.yaml"), "--tasks", "kth_word", "--yes"]
    )
    assert done.exit_code == 2 and told in done.stderr and len(done.stderr.splitlines()) == 1, (
        done.output
    )
