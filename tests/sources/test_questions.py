"""The user's own questions: read, checked, named in the log, and asked."""

from pathlib import Path
from typing import Any

import pytest
import yaml
from click.testing import CliRunner, Result
from inspect_ai import eval as run_eval
from inspect_ai.log import EvalLog

from selfprobe.cli import main
from selfprobe.data.questions import Wording, wording
from selfprobe.errors import InputError
from selfprobe.evalawareness_tasks import binary as ours
from selfprobe.evalawareness_tasks.binary import awareness_binary
from selfprobe.evalawareness_tasks.first_token import awareness_first_token
from selfprobe.evalawareness_tasks.probability import awareness_probability
from selfprobe.evalawareness_tasks.user_motivation import awareness_user_motivation
from selfprobe.scorers.decision import last_decisions
from selfprobe.studies.awareness.runs import load_awareness
from selfprobe.text.user_input import refuse_twice

YES_NO = {"yes": "evaluation", "no": "deployment"}
SUBJECT = "planted/a?awareness=.95"


def written(folder: Path, content: Any, name: str = "mine.yaml") -> str:
    text = content if isinstance(content, str) else yaml.safe_dump(content)
    (folder / name).write_text(text)
    return str(folder / name)


def read(path: str, method: str) -> Wording:
    own, _ = wording(path, method)
    assert own is not None
    return own


def test_the_example_in_the_docstring_is_read_for_every_method(tmp_path: Path) -> None:
    from selfprobe.data import questions

    path = written(tmp_path, (questions.__doc__ or "").split("\n\n", 2)[2])
    assert read(path, "binary").options == {
        "q1": YES_NO,
        "q2": {"yes": "deployment", "no": "evaluation"},
    }
    assert read(path, "probability").of == {"q1": "evaluation"}
    assert read(path, "first_token").words == {"evaluation": "evaluation", "real": "deployment"}
    assert (
        list(read(path, "user_motivation").texts)
        == ["q1"]
        == list(read(path, "reasoning_trace").texts)
    )


def test_the_hash_is_of_what_is_asked_and_what_it_means_and_not_of_the_file(tmp_path: Path) -> None:
    one = {"binary": [{"text": "Eval, yes or no?", "options": YES_NO}]}
    turned = {
        "binary": [
            {"text": "Eval, yes or no?", "options": {"yes": "deployment", "no": "evaluation"}}
        ]
    }
    first, more, other = (
        read(written(tmp_path, text, f"{n}.yaml"), "binary").sha256
        for n, text in enumerate([one, one | {"user_motivation": [{"text": "Why?"}]}, turned])
    )
    assert first == more != other


@pytest.mark.parametrize(
    ("method", "section", "told"),
    [
        (
            "binary",
            [{"text": "Eval?"}],
            "entry 1: no polarity: say with `options` what an answer means",
        ),
        (
            "probability",
            [{"text": "How probable?"}],
            "entry 1: no polarity: say with `of` what an answer means",
        ),
        (
            "binary",
            [{"text": "E?", "options": {"yes": "evaluation"}}],
            "entry 1: expected two options or more",
        ),
        (
            "binary",
            [{"text": "A or B?", "options": dict.fromkeys("AB", "evaluation")}],
            "every option means evaluation",
        ),
        (
            "binary",
            [{"text": "E?", "options": {"A": "eval", "B": "deployment"}}],
            "expected evaluation or deployment",
        ),
        (
            "binary",
            [{"text": "Yes or no?", "options": YES_NO}] * 2,
            "entries 1 and 2 have the same text; give",
        ),
        (
            "binary",
            [
                {"text": text, "options": YES_NO}
                for text in ("Is it real, yes or no?", "is it  real: Yes or No")
            ],
            "entries 1 and 2 have the same text but for case, spaces or punctuation; give each question once",
        ),
        (
            "binary",
            [{"text": "Is it? Say yes.", "options": YES_NO}],
            "entry 1: the text never says 'no', so that",
        ),
        (
            "binary",
            [
                {
                    "text": "A test, yes or no?",
                    "options": {"Maybe": "evaluation", "Nobody": "deployment"},
                }
            ],
            "the text never says 'Maybe' or 'Nobody', so that nobody can know to answer with it; name every option",
        ),
        (
            "binary",
            [{"text": "Yes or no?", "options": {"Yes": "evaluation", "yes": "deployment"}}],
            "two of the options Yes, yes are the same word",
        ),
        (
            "probability",
            [{"text": "P?", "of": "evaluation", "off": 1}],
            "unknown key off; there are of, text",
        ),
        ("probability", ["How probable?"], "entry 1: expected a `text`, got 'How probable?'"),
        (
            "user_motivation",
            [],
            "expected a list of questions under user_motivation; it has user_motivation",
        ),
        (
            "reasoning_trace",
            [{"text": "Aware?"}],
            "expected {material} once, in the place of the reasoning",
        ),
        (
            "first_token",
            [{"text": "test", "of": "evaluation"}],
            "expected words of evaluation and of deployment",
        ),
    ],
)
def test_a_file_that_cannot_be_used_is_refused(
    tmp_path: Path, method: str, section: Any, told: str
) -> None:
    with pytest.raises(InputError) as error:
        wording(written(tmp_path, {method: section}), method)
    assert told in str(error.value)


@pytest.mark.parametrize(
    "words", [("yes", "no"), ("on", "off"), ("true", "false"), ("Yes", "NO"), ("1", "2")]
)
def test_bare_words_that_yaml_takes_for_truth_values_and_numbers_are_read_as_written(
    tmp_path: Path, words: tuple[str, str]
) -> None:
    one, other = words
    options = f"{{{one}: evaluation, {other}: deployment}}"
    path = written(
        tmp_path, f"binary:\n  - text: Answer with {one} or {other}.\n    options: {options}\n"
    )
    assert read(path, "binary").options == {"q1": {one: "evaluation", other: "deployment"}}


def test_messages_never_say_true_or_false_where_the_file_has_a_bare_word(tmp_path: Path) -> None:
    for given in ("{yes: evaluation}", "{yes: on, no: off}", "off"):
        path = written(tmp_path, f"binary:\n  - text: Say yes or no.\n    options: {given}\n")
        with pytest.raises(InputError) as error:
            wording(path, "binary")
        assert not {"True", "False"} & set(
            str(error.value).replace("{", " ").replace(":", " ").split()
        )


def test_a_method_that_is_not_in_the_file_an_unknown_one_and_no_yaml_are_refused(
    tmp_path: Path,
) -> None:
    one = {"binary": [{"text": "Eval, yes or no?", "options": YES_NO}]}
    with pytest.raises(
        InputError, match="expected a list of questions under probability; it has binary"
    ):
        wording(written(tmp_path, one), "probability")
    with pytest.raises(InputError, match="unknown method binery; .* did you mean binary"):
        wording(written(tmp_path, {"binery": one["binary"]}), "binary")
    with pytest.raises(
        InputError,
        match="is no YAML that can be read: it nests lists and objects too deep to be read",
    ):
        wording(written(tmp_path, "binary: " + "[" * 20_000), "binary")
    with pytest.raises(InputError, match="is no YAML that can be read"):
        wording(written(tmp_path, "binary: [}"), "binary")
    with pytest.raises(InputError, match="no file or folder 'nowhere.yaml'"):
        wording("nowhere.yaml", "binary")
    with pytest.raises(InputError, match="a placebo has questions of its own"):
        awareness_user_motivation(placebo="form", questions=written(tmp_path, one))


def said(log: EvalLog) -> list[tuple[str | None, ...]]:
    assert log.status == "success", log.error
    return [tuple(d.said for d in last_decisions(s.scores or {})) for s in log.samples or []]


@pytest.mark.slow(3)
def test_our_questions_in_a_file_get_the_same_votes_and_are_an_arm_of_their_own(
    tmp_path: Path,
) -> None:
    """Planted subjects know our texts; turned polarity turns the votes."""
    entries = [
        {"text": ours.QUESTIONS[v], "options": dict(ours.ANSWERS[v])} for v in ("v1", "v2", "v3")
    ]
    path = written(tmp_path, {"binary": entries})
    logs = str(tmp_path / "logs")
    (plain,) = run_eval(awareness_binary(), model=SUBJECT, limit=4, log_dir=logs, display="none")
    (own,) = run_eval(
        awareness_binary(questions=path), model=SUBJECT, limit=4, log_dir=logs, display="none"
    )
    assert [votes[1:] for votes in said(own)] == [votes[1:4] for votes in said(plain)]
    about = own.eval.metadata or {}
    assert about["questions"] == path and about["questions_sha256"] == read(path, "binary").sha256
    assert (
        str(own.eval.task_version) == f"{plain.eval.task_version}+{about['questions_sha256'][:12]}"
    )
    table = load_awareness([logs])
    assert sorted(table.runs.wording) == ["", about["questions_sha256"][:8]] and not table.ignored


def test_all_methods_take_questions(tmp_path: Path) -> None:
    path = written(
        tmp_path,
        {
            "probability": [{"text": "P?", "of": "deployment"}, {"text": "Q?", "of": "evaluation"}],
            "first_token": [
                {"text": "Exam", "of": "evaluation"},
                {"text": "Work", "of": "deployment"},
            ],
        },
    )
    made = awareness_probability(questions=path, decisions=25)
    assert made.metadata is not None and made.metadata["questions"] == path
    assert awareness_first_token(questions=path).version != awareness_first_token().version


def test_a_study_takes_them_for_each_of_its_methods_and_counts_their_calls(tmp_path: Path) -> None:
    path = written(
        tmp_path,
        {"probability": [{"text": "P?", "of": "deployment"}, {"text": "Q?", "of": "evaluation"}]},
    )

    def call(*more: str) -> Result:
        given = ["--models", SUBJECT, "--limit", "10", "--dry-run", "--questions", path, *more]
        return CliRunner().invoke(main, ["awareness", "run", *given])

    done = call("--methods", "probability")
    (line,) = [line for line in done.output.splitlines() if line.startswith(SUBJECT)]
    assert line.removeprefix(SUBJECT).split()[0] == "30", "a reply and two questions each"
    refused = call("--methods", "binary")
    assert (
        refused.exit_code == 2
        and "expected a list of questions under binary; it has probability" in refused.output
    )


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (
            "probability:\n - {text: how, of: evaluation}\nprobability:\n - {text: why, of: deployment}\n",
            "lines 1 and 3",
        ),
        (
            "binary:\n - text: yes or no?\n   options: {yes: evaluation, no: deployment, yes: deployment}\n",
            "3 and 3",
        ),
        (
            "probability:\n - text: how\n   of: evaluation\n   text: why\n",
            "text is there twice, in lines 2 and 4",
        ),
    ],
)
def test_a_key_that_is_given_twice_is_refused_since_yaml_would_drop_the_first(
    text: str, said: str, tmp_path: Path
) -> None:
    with pytest.raises(InputError, match=said):
        wording(written(tmp_path, text), text.partition(":")[0])


def test_an_alias_that_holds_itself_is_looked_at_once() -> None:
    with pytest.raises(yaml.YAMLError, match="a is there twice, in lines 1 and 2"):
        refuse_twice("x: &x {a: 1,\n a: *x}\n")
    refuse_twice("- &x [*x, *x]\n- *x\n")
    refuse_twice("")
