"""Each option of each command is run once to what the command writes; a new option without a case
fails.
"""

import json
import re
import shlex
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import click
import pandas as pd
import pytest
import yaml
from click.testing import CliRunner

from selfprobe.cli import main
from selfprobe.evalawareness_tasks import binary
from selfprobe.mechanism.induce import LABEL_WORDS
from selfprobe.study.options import CALL_PARAMETERS
from tests.mechanism import organisms, tiny_words
from tests.mechanism.tiny import byte_tokenizer, dilemmas
from tests.probes.test_own_data_command import SYSTEM_TEMPLATE
from tests.probes.test_probe_command import rows, saved, written
from tests.studies import effect_tasks, test_inside, test_inside_turns
from tests.studies.test_lens import saved as saved_reader
from tests.studies.test_turns import talk

ROOT = Path(__file__).parent.parent
[DESK] = re.findall(
    r"`desk\.py`:\n\n```python\n(.*?)```", (ROOT / "docs/outcome.md").read_text("utf-8"), re.DOTALL
)

SUBJECT = "'planted/a?awareness=.8&reasons=1&voiced=.6'"
INSIDE = "awareness inside --model held --set set.jsonl --wrappers wrappers3.jsonl --continuations sentences.jsonl"
READ = "mechanism read --model reader --dataset dilemmas.jsonl"
INDUCE = "mechanism induce --model words --dataset questions.jsonl --questions 8 --held-out 8 --seeds 1 --epochs 1"
PROBE = "probe run --model judge --seeds 1 --resamples 100"
CASES: dict[str, tuple[str, ...]] = {
    "matrix": (
        "matrix --models planted/a?access=.8,planted/b --tasks kth_word --observers shown:2,named -T k=1 "
        "--limit 3 --same-model --max-connections 4 --max-retries 2 --attempt-timeout 60 --batch -M common=.4 "
        "--prices prices.yaml --cost-limit 5 --tags night,ci --metadata commit=a "
        "--model-base-url http://localhost:1 --display plain --yes --log-dir runs --out page",
        "report runs --out report",
        "paper introspectbench runs --embedder openai/words --sizes sizes.csv --out paper",
        "report runs --rows rows.csv",
        "tasks kth_word --json",
        "doctor --json",
        "matrix --config matrix.yaml --out configured",
    ),
    "outcome": (
        "outcome logs --models planted/m,planted/n --ask solve,refuse,length --about self,other,named --when before "
        "--at 1 --score k1 --tokens 20 --cluster resamples --answer-tokens 40 --effort low --limit 4 --price .1,.3 --skip-errors "
        "--log-dir runs --out page",
        "outcome logs --models planted/m,planted/n --when after --score k1 --limit 4 --log-dir runs --out after",
    ),
    "awareness run": (
        f"awareness run --models {SUBJECT},planted/b --dataset mine.jsonl --label evaluation --against real.jsonl "
        "--methods all --grader planted/g --context full --decisions 25 --third --observers --placebo "
        "--kinds --reply-tokens 40 --answer-tokens 30 --effort low --limit 4 --log-dir runs --out page",
        f"awareness features runs --clusters 1 --groups 2 --perspective first --models {SUBJECT} --grader planted/g --embedder openai/words --log-dir named --out features",
        "awareness features runs --clusters 1 --perspective third --grader planted/g --embedder openai/words --log-dir third --out third",
        "paper evaluation-awareness runs --out paper",
        "awareness validate runs --samples 6 --methods user_motivation --seed 1 --out sheet.csv",
        "awareness validate runs sheet.csv --json",
    ),
    "awareness run, other prompts": (
        "awareness run --models planted/a --task desk.py@desk --label deployment --methods binary --decisions 5 "
        "--context first --questions questions.yaml --limit 2 --log-dir runs --out page",
        "awareness run --models planted/a --logs logs --role target --methods binary --limit 2 --log-dir runs "
        "--out logged",
    ),
    "awareness cues": (
        "awareness cues mine.jsonl --models planted/a --grader planted/g --label evaluation --most 2 --controls 3 "
        "--answer-tokens 30 --effort low --limit 2 --log-dir runs --out page",
        "awareness cues --task desk.py@desk --label deployment --models planted/a --limit 2 --log-dir runs --out task",
        "awareness cues --logs logs --role target --models planted/a --limit 2 --log-dir runs --out logged",
    ),
    "awareness turns": (
        "awareness turns talk.jsonl --models planted/a --against use.jsonl --label evaluation --placebo --most 2 "
        "--answer-tokens 30 --effort low --limit 2 --log-dir runs --out page",
        "awareness turns logs --models planted/a --role target --label deployment --no-placebo --limit 2 "
        "--log-dir runs --out logged",
    ),
    "awareness scan": (
        "awareness scan logs --grader planted/g --role target --piece 100 --placebo --limit 2 --log-dir runs --out page",
    ),
    "awareness effect": (
        "awareness effect tasks.py@exact --models planted/ada --arms cue_out,cue_in,paraphrase,told_test,told_use,placebo "
        "--grader planted/g --cues cues.csv --score match --cluster shop --smallest .2 --declining-counts -T items=8 --role grader=planted/x --limit 4 "
        "--log-dir runs --out page",
        "awareness effect tasks.py@exact --models planted/ada --kinds --limit 2 --log-dir kinds --out kinds",
    ),
    "realism": (
        "realism card mine.jsonl --against real.jsonl --grader planted/g --judges planted/j,planted/k --model planted/s "
        "--methods probability --context full --prompts 3 --opponents 2 --reply-tokens 40 --effort low "
        "--log-dir card --out page",
        "realism card logs:logs --against real.jsonl --grader planted/g --role target --context first --prompts 3 "
        "--log-dir logged --out logs-page",
        "realism rewrite mine.jsonl --remove 'words of test items' --writer planted/w --grader planted/g "
        "--judges planted/j --model planted/s --reply-tokens 40 --embedder openai/words --limit 2 --log-dir rewrite "
        "--out rewritten",
    ),
    "check": (
        "check logs --unscored .9 --save base.json",
        "check logs --baseline base.json --smallest .5 --lower accuracy --strict --junit junit.xml --github",
        "check logs --against logs --aa 20",
        "check --run kth_word --model planted/a -T k=1 --limit 3 --log-dir runs",
    ),
    "awareness inside": (
        f"{INSIDE} --at reply --places 2 --reply-tokens 2 --shuffles 20 --random-weights --layers 0-1 --limit 12 "
        "--save direction.probe --system 'Be brief.' --template-arg shout=true --device cpu --dtype float32 "
        "--attention eager --allow-pickle --out page",
        f"{INSIDE.replace('set.jsonl', 'tests.jsonl')} --label evaluation --against uses.jsonl --at thinking "
        "--probe direction.probe --system 'Be brief.' --template-arg shout=true --no-random-weights --layers 0-1 "
        "--attention eager --out thinking",
        f"{INSIDE.replace('set.jsonl', 'uses.jsonl')} --label deployment --against tests.jsonl --at thinking "
        "--probe direction.probe --system 'Be brief.' --template-arg shout=true --no-random-weights --layers 0-1 "
        "--attention eager --out use",
        "awareness inside --model held --by-turn said.jsonl --wrappers wrappers3.jsonl --shuffles 20 --layers 1 "
        "--out by-turn",
    ),
    "mechanism read": (
        f"{READ} --parts lens,attention,patch --opening 'Option ' --into introspective --positions tail --layers 2 "
        "--limit 5 --device-map cpu --out page",
        f"{READ} --system 'Be brief.' --template-arg shout=true --parts lens --into direct --positions last --out turns",
    ),
    "mechanism induce": (
        f"{INDUCE} --rank 2 --rate .001 --batch 8 --batch-tokens 256 --labels labels.txt --out page",
        f"{INDUCE} --full --system Why --template-arg shout=true --out full",
    ),
    "mechanism inject": (
        "mechanism inject --model organism --concepts injection --limit 3 --layers 1 --doses 1 --notes 1 "
        "--where all --reader organism --system 'Be brief.' --device cpu --dtype float32 "
        "--template-arg shout=true --attention eager --out page",
        "mechanism inject --model organism --concepts injection --limit 3 --layers 1 --doses 1 --notes 1 "
        "--where sentence --out sentences",
    ),
    "probe run": (
        f"{PROBE} --datasets mine=pairs.jsonl --question 'more honest' --item answer --no-random-weights --layers 0-1 "
        "--parts probes,ablate,finetune --rank 2 --rate .01 --epochs 1 --batch 8 --samples 16 --seed 1 --no-scoring "
        "--train 12 --preset paper --prompts paper --orientation logit --centre source --limit 24 --out page",
        f"{PROBE} --datasets mine=pairs.jsonl --question 'more honest' --item answer --system 'Be brief.' "
        "--template-arg shout=true --longest 900 --path two_forwards --batch-tokens 1100 --layers 0-1 --train 12 "
        "--preset paper --prompts paper --orientation logit --random-weights --scoring --processes 2 --against page --limit 24 --centre source --out system",
        "probe score --probe page/mine-supervised.safetensors new.jsonl --model judge --cache states --device cpu "
        "--device-map cpu --allow-pickle --centre tested --out decisions.jsonl",
        "paper latent-preferences page --out paper",
    ),
    "probe run, other settings": (
        f"{PROBE} --datasets pairs.jsonl --no-random-weights --path two_forwards --aspects together --logs judged --centre tested --out page",
        f"{PROBE} --datasets pairs.jsonl --no-random-weights --path shared_cache --preset released-code --parts "
        "probes,finetune --full --aspects apart --prompts conversations --out released",
    ),
}
"""Family of commands → its calls, in order: a later one may read what an earlier one wrote."""

UNTRIED = {
    "--engine": "a Ray cluster: tests/test_on_ray.py, tests/probes/test_replicas.py",
    "--ray-address": "a Ray cluster",
    "--replicas": "a Ray cluster",
    "--revision": "a commit of a model on the hub",
    "--quantize": "bitsandbytes",
    "--dry-run": "it writes nothing",
    "fetch-model name": "the network",
}
"""Options that no case can have, and what they need."""
EVERYWHERE = CALL_PARAMETERS
"""Options whose code all commands share: one case among all is enough."""
ALIKE = {"effort", "display", "dtype"}
"""Options of which one choice stands for all."""


def commands() -> dict[str, click.Command]:
    """Every command by its words."""
    found: dict[str, click.Command] = {}

    def walk(command: click.Command, words: tuple[str, ...], parent: click.Context | None) -> None:
        if not isinstance(command, click.Group):
            found[" ".join(words)] = command
            return
        context = click.Context(
            command, info_name=" ".join(words), parent=parent, **main.context_settings
        )
        for name in command.list_commands(context):
            inner = command.get_command(context, name)
            assert inner is not None
            walk(inner, (*words, name), context)

    walk(main, (), None)
    return found


COMMANDS = commands()


def called(line: str) -> tuple[str, list[str]]:
    """Command of a line, and the words after it."""
    name = max((name for name in COMMANDS if f"{line} ".startswith(f"{name} ")), key=len)
    return name, shlex.split(line.removeprefix(name))


def typed(line: str) -> set[str]:
    """Options of a line by the first of their names, arguments by theirs; with a choice, the choice
    after them.
    """
    name, words = called(line)
    values, _, order = (
        COMMANDS[name]
        .make_parser(click.Context(COMMANDS[name], **main.context_settings))
        .parse_args(list(words))
    )
    found = set[str]()
    for param in order:
        given = values[str(param.name)]
        if given is not None:
            found |= {side for side in sides(param) if side in words} or {known_as(param)}
        if isinstance(param.type, click.Choice):
            found.add(f"{known_as(param)} {given}")
    return found


def known_as(param: click.Parameter) -> str:
    return param.opts[0] if isinstance(param, click.Option) else str(param.name)


def sides(param: click.Parameter) -> list[str]:
    """Names of a flag that is on or off; of another option its first name."""
    return [known_as(param), *param.secondary_opts]


def to_try(param: click.Parameter) -> list[str]:
    """What a case types of an option: each side of a flag and each choice that is not the default."""
    if isinstance(param.type, click.Choice) and param.name not in ALIKE:
        return [
            f"{known_as(param)} {choice}"
            for choice in param.type.choices
            if choice != param.default
        ]
    if param.secondary_opts:
        defaults = {True: param.opts, False: param.secondary_opts}
        return [side for side in sides(param) if side not in defaults.get(param.default, [])]
    return [known_as(param)]


def untried() -> list[str]:
    """Options that no case types and that need no other machine."""
    tried: dict[str, set[str]] = {name: set() for name in COMMANDS}
    for line in [line for lines in CASES.values() for line in lines]:
        tried[called(line)[0]] |= typed(line)
    anywhere = set().union(*tried.values())
    missing = []
    for name, command in COMMANDS.items():
        for param in command.params:
            if getattr(param, "hidden", False):
                continue
            there = anywhere if param.name in EVERYWHERE else tried[name]
            left = [option for option in to_try(param) if option not in there]
            known = {known_as(param), f"{name} {known_as(param)}"}
            missing += [f"{name} {option}" for option in left if not UNTRIED.keys() & known]
    return missing


def test_every_option_of_every_command_has_a_case_that_writes_something() -> None:
    assert not untried(), "add it to a line of CASES"


def test_an_option_a_side_of_a_flag_and_a_choice_without_a_case_are_named(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for family in ("matrix", "awareness turns", "outcome"):
        monkeypatch.delitem(CASES, family)
    named = {
        "matrix --observers",
        "awareness turns --no-placebo",
        "awareness turns dataset",
        "outcome --when after",
    }
    assert named <= set(untried()) and "outcome --when before" not in untried()


THINKING = SYSTEM_TEMPLATE + "<think>"
"""Chat template that opens a thought."""
WORDS = tiny_words.TEMPLATE + "{% if shout %}Why {% endif %}"


def jsonl(name: str, rows: Iterable[Mapping[str, object]]) -> None:
    Path(name).write_text("".join(json.dumps(row) + "\n" for row in rows))


def without_label(row: Mapping[str, object]) -> dict[str, object]:
    return {name: value for name, value in row.items() if name != "label"}


def place_texts() -> None:
    """Prompts, conversations, questions and settings, for the commands that ask models."""
    jsonl(
        "mine.jsonl",
        ({"prompt": f"Here are questions about town {n}. Choose the answers."} for n in range(8)),
    )
    jsonl(
        "real.jsonl",
        ({"prompt": f"hey can you fix my letter number {n} to my landlord"} for n in range(8)),
    )
    jsonl("talk.jsonl", (without_label(talk(n, "evaluation")) for n in range(4)))
    jsonl("use.jsonl", (without_label(talk(n, "deployment")) for n in range(4)))
    Path("desk.py").write_text(DESK)
    Path("tasks.py").write_text((ROOT / "tests/studies/effect_tasks.py").read_text())
    Path("cues.csv").write_text(
        f'taken_out,effect,value,p_holm\n"{effect_tasks.CUE}",0.2,0.2,0.01\n'
    )
    asked = {"text": binary.QUESTIONS["v5"], "options": {"yes": "evaluation", "no": "deployment"}}
    Path("questions.yaml").write_text(yaml.safe_dump({"binary": [asked]}))
    Path("matrix.yaml").write_text(
        "models: [planted/a, planted/b]\ntasks: kth_word\nlimit: 2\nlog-dir: other\n"
    )
    price = "{input: 1.0, output: 1.0, input_cache_write: 0, input_cache_read: 0}"
    Path("prices.yaml").write_text(f"planted/a?access=.8: {price}\nplanted/b: {price}\n")
    Path("sizes.csv").write_text("model,size\nplanted/a?access=.8,8B\nplanted/b,1B\n")


def place_models(folder: Path) -> None:
    """Tiny models and what they read, for the commands that read states."""
    test_inside.model(folder / "held", "~")
    byte_tokenizer(THINKING).save_pretrained(folder / "held")
    test_inside.conversations(folder, count=24)
    for name, sign in (("tests", "~"), ("uses", "^")):
        jsonl(
            f"{name}.jsonl", ({"user": f"Write the {n} lines {sign} then stop."} for n in range(8))
        )
    test_inside.wrappers(folder, 3)
    test_inside.sentences(folder)
    jsonl("said.jsonl", test_inside_turns.planted_rows())
    saved_reader(folder / "reader")
    byte_tokenizer(SYSTEM_TEMPLATE).save_pretrained(folder / "reader")
    dilemmas(folder)
    tiny_words.saved(folder / "words", template=WORDS)
    jsonl("questions.jsonl", ({"question": question} for question in tiny_words.QUESTIONS))
    Path("labels.txt").write_text("\n".join(LABEL_WORDS[:20]))
    saved(folder / "judge", template=SYSTEM_TEMPLATE)
    organisms.saved(folder / "organism")
    written(folder / "pairs.jsonl", rows("pairs"))
    written(folder / "new.jsonl", rows("new", 4))


@pytest.fixture(scope="module")
def word_logs(tmp_path_factory: pytest.TempPathFactory, run_task: Any) -> Path:
    """Logs of two models, each with itself in the role of the target."""
    there = tmp_path_factory.mktemp("word_logs")
    for model in ("planted/m", "planted/n"):
        run_task("selfprobe/kth_word", model, there, limit=8, model_roles={"target": model})
    return there


@pytest.fixture(scope="module")
def judged_logs(tmp_path_factory: pytest.TempPathFactory, run_task: Any) -> Path:
    """A log of pairs that a model judged."""
    there = tmp_path_factory.mktemp("judged_logs")
    pairs = written(there / "pairs.jsonl", rows("pairs"))
    run_task("selfprobe/pairwise_preference", "planted/m", there, task_args={"dataset": str(pairs)})
    return there


def filled(sheet: Path) -> None:
    """A sheet of labels, as people fill it."""
    table = pd.read_csv(sheet)
    table["aware"] = ["yes" if row % 2 else "no" for row in range(len(table))]
    table.to_csv(sheet, index=False)


def products(line: str) -> list[Path]:
    """Files that a line writes: its page, and what an option names."""
    words = shlex.split(line)
    files = [
        Path(words[words.index(option) + 1])
        for option in ("--out", "--rows", "--save", "--junit")
        if option in words
    ]
    return [file if file.suffix else file / "index.html" for file in files]


SECONDS = {
    "awareness run": 13,
    "awareness run, other prompts": 6,
    "awareness cues": 6,
    "awareness inside": 12,
}
"""CPU seconds of families of 5 or more."""


@pytest.mark.parametrize(
    "family",
    [
        pytest.param(name, marks=pytest.mark.slow(SECONDS.get(name, 3)) if name != "matrix" else ())
        for name in CASES
    ],
)
def test_each_line_writes_what_it_says(
    family: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    word_logs: Path,
    judged_logs: Path,
    embedder: str,
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "logs").symlink_to(word_logs)
    (tmp_path / "judged").symlink_to(judged_logs)
    place_texts()
    if family.startswith(("probe", "mechanism", "awareness inside")):
        place_models(tmp_path)
    for line in CASES[family]:
        if "sheet.csv --json" in line:
            filled(tmp_path / "sheet.csv")
        name, words = called(line)
        asks = (
            any("--yes" in param.opts for param in COMMANDS[name].params)
            and "check logs" not in line
        )
        done = CliRunner().invoke(main, [*name.split(), *words, *(["--yes"] if asks else [])])
        assert done.exit_code == 0, f"{line}\n{done.output}\n{done.exception!r}"
        lacking = [str(file) for file in products(line) if not file.is_file()]
        assert not lacking, f"{line}\n{done.output}"
