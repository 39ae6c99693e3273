"""Options that commands share, each with one help text; how values are read, also from a YAML file;
examples of calls.

Imports nothing of Inspect, so that every `-h` is quick.
"""

import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import fields, is_dataclass
from numbers import Integral, Real
from pathlib import Path
from typing import Any, TypeVar

import click

from selfprobe.text.safe import echo, json_escaped, without_secrets
from selfprobe.text.user_input import names

UNREAD_ANSWERS_REMEDY = "take another model, or a higher --answer-tokens"
FIVE_SIMULATED = "planted/ada,planted/bo,planted/cy,planted/di,planted/ed"
FIVE_MAKERS = (
    "openai/gpt-5.6-luna,anthropic/claude-haiku-5-5,google/gemini-3.5-flash-lite,"
    "mistral/mistral-medium-latest,grok/grok-4.3"
)
"""One model of each of five vendors: with fewer than five a matrix names nobody."""

EXAMPLES: Mapping[str, tuple[str, str]] = {
    "": (
        f"matrix --models {FIVE_SIMULATED} --tasks kth_word --limit 20",
        "report logs",
    ),
    "matrix": (
        f"--models {FIVE_SIMULATED} --tasks kth_word --limit 20",
        f"--models {FIVE_MAKERS} --dry-run",
    ),
    "awareness": (
        "run --models planted/ada --methods binary --limit 20",
        "turns logs/agents --models planted/ada",
    ),
    "awareness run": (
        "--models planted/ada --methods binary,probability --limit 20",
        "--models openai/gpt-5.6-luna --dataset mine.jsonl --grader google/gemini-3.5-flash-lite --dry-run",
    ),
    "awareness turns": (
        "logs/agents --models planted/ada --limit 10",
        "mine.jsonl --models openai/gpt-5.6-luna --against real.jsonl --dry-run",
    ),
    "awareness cues": (
        "mine.jsonl --models planted/ada",
        "mine.jsonl --models openai/gpt-5.6-luna --grader google/gemini-3.5-flash-lite --dry-run",
    ),
    "awareness effect": (
        "mine.py --models planted/ada --grader planted/g",
        "inspect_evals/agentharm --models openai/gpt-5.6-luna --grader google/gemini-3.5-flash-lite --dry-run",
    ),
    "awareness inside": (
        "--model smollm2 --set eval_awareness_2 --limit 40",
        "--model smollm2 --set mine.jsonl --against real.jsonl --save direction.probe",
    ),
    "awareness scan": (
        "logs/agents --grader planted/g",
        "logs/agents --grader openai/gpt-5.6-luna --dry-run",
    ),
    "awareness features": (
        "logs/awareness",
        "logs/awareness --clusters 20 --grader openai/gpt-5.6-luna",
    ),
    "awareness validate": (
        "logs/awareness --samples 50 --out sheet.csv",
        "labels.csv logs/awareness",
    ),
    "check": ("logs/nightly", "logs/nightly --baseline baseline.json --junit gate.xml"),
    "fetch-model": ("", "all-MiniLM-L6-v2"),
    "mechanism": ("read --model smollm2 --parts lens", "induce --model smollm2"),
    "mechanism read": (
        "--model smollm2 --parts lens,attention",
        "--model smollm2 --limit 10 --parts patch",
    ),
    "mechanism induce": ("--model smollm2", "--model smollm2 --out induced"),
    "mechanism inject": (
        "--model smollm2 --limit 8 --layers 16,22 --doses .5,1 --notes 1",
        "--model Qwen/Qwen3-8B --device cuda --dtype bfloat16 --out injection",
    ),
    "outcome": (
        f"logs/sums --models {FIVE_SIMULATED} --limit 20",
        f"logs/gsm8k --models {FIVE_MAKERS} --ask solve,length --dry-run",
    ),
    "paper": ("introspectbench logs/matrix", "introspectbench logs/matrix logs/open --out pi"),
    "paper evaluation-awareness": ("logs/awareness", "logs/aw logs/again logs/full --out aw"),
    "paper introspectbench": (
        "logs/matrix",
        "logs/matrix logs/open logs/effort --embedder openai/text-embedding-3-small",
    ),
    "paper latent-preferences": (
        "probes/all/*",
        "Llama=probes/llama Gemma=probes/gemma --out probes-page",
    ),
    "probe": ("run --model smollm2 --datasets ours", "score mine.jsonl --probe probes/a.probe"),
    "probe run": (
        "--model smollm2 --datasets ours",
        "--model smollm2 --datasets ours --parts ablate,finetune",
    ),
    "probe score": (
        "mine.jsonl --probe probes/a.probe",
        "mine.jsonl --probe probes/a.probe --out scored.csv",
    ),
    "realism": (
        "card mine.jsonl --judges planted/j",
        "card mine.jsonl --judges openai/gpt-5.6-luna --dry-run",
    ),
    "realism card": (
        "mine.jsonl --judges planted/j,planted/k",
        "mine.jsonl --judges openai/gpt-5.6-luna --model mistral/mistral-medium-latest --dry-run",
    ),
    "realism rewrite": (
        "mine.jsonl --remove 'answer options' --writer planted/w --grader planted/g --judges planted/j",
        "mine.jsonl --remove 'placeholder names' --writer openai/gpt-5.6-luna --grader google/gemini-3.5-flash-lite "
        "--judges anthropic/claude-haiku-5-5 --dry-run",
    ),
    "report": ("logs", "logs/matrix logs/awareness --out report"),
    "doctor": ("", "--json"),
    "tasks": ("", "kth_word"),
}
"""Path of a command → the arguments of two calls."""


def with_examples(
    command: click.Command | None, group_context: click.Context, name: str
) -> click.Command | None:
    """The command with its examples at the end of its help.

    Args:
        command: Command of a group, or None.
        group_context: The group's context.
        name: Name by which it was called.
    """
    words = [name]
    context = group_context
    while context.parent is not None:
        words.insert(0, str(context.info_name))
        context = context.parent

    command_path = " ".join(words)
    if command is not None and command_path in EXAMPLES:
        command.epilog = epilog(command_path)
    return command


def epilog(command_path: str) -> str:
    """The examples of a command, each a line that help does not break."""
    call = f"  selfprobe {command_path}".rstrip()
    lines = [f"{call} {arguments}".rstrip() for arguments in EXAMPLES[command_path]]
    return "\n".join(["\b", "Examples:", *lines])


CommandFunction = TypeVar("CommandFunction", bound=Callable[..., Any])


class Group(click.Group):
    """Commands and studies. Help shows the whole first sentence of each, where click cuts it to a
    line.
    """

    def __init__(
        self,
        *group_args: Any,
        studies: Callable[[], Mapping[str, click.Command]] = dict,
        **group_settings: Any,
    ) -> None:
        super().__init__(*group_args, **group_settings)
        self.studies = studies
        """The studies of the group, by name."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Names of the commands, in order."""
        return sorted([*super().list_commands(ctx), *self.studies()])

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """The command of this name, or None."""
        command = self.studies().get(cmd_name)
        if command is None:
            command = super().get_command(ctx, cmd_name)
        return with_examples(command, ctx, cmd_name)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """The table of commands."""
        rows = []
        for name in self.list_commands(ctx):
            command = self.get_command(ctx, name)
            if command is not None and not command.hidden:
                rows.append((name, command.get_short_help_str(limit=1000)))
        with formatter.section("Commands"):
            formatter.write_dl(rows)


class Names(click.ParamType[list[str]]):
    """Comma-separated names, each once."""

    name = "names"

    def __init__(
        self, kind: str, *, mappings: bool = False, check: Callable[[Any], object] = str
    ) -> None:
        self.kind = kind
        self.check = check
        """Refuses a wrong name by a ValueError."""
        self.mappings = mappings
        """True if a file may give mappings in the place of names."""

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> list[str]:
        """The list of names."""
        listed_names = names(value) if isinstance(value, str) else list(value)
        for position, name in enumerate(listed_names):
            if name in listed_names[:position]:
                remedy = f"list each {self.kind} once"
                self.fail(f"{self.kind} {name} is listed twice; {remedy}", param, ctx)
        for name in listed_names:
            try:
                self.check(name)
            except ValueError as error:
                self.fail(f"{error}; got {name}", param, ctx)
        return listed_names

    def get_metavar(self, param: click.Parameter, ctx: click.Context) -> str:
        """Placeholder in the help."""
        return "A,B"


def single_model(text: str) -> str:
    """The name of a single model.

    Raises:
        ValueError: It is a list of several.
    """
    if len(names(text)) > 1:
        raise ValueError("one model is expected here; only judges that decide can be several")
    return text


INSPECT_PROVIDERS = frozenset(
    "anthropic azureai bedrock cf embedded fireworks goodfire grok groq hf-inference-providers "
    "llama-cpp-python mistral mockllm nnterp ollama openai-api openrouter perplexity planted "
    "sagemaker sglang together transformer_lens vllm".split()
)
"""Inspect's providers that are no owner on the hub."""


def open_model(text: str) -> str:
    """The name of a model whose weights can be read, as `load_model` takes it: without Inspect's
    hf/ or embedded/.

    Raises:
        ValueError: It is a provider's.
    """
    name = "smollm2" if text == "embedded/smollm2" else text.removeprefix("hf/")
    path = Path(name).expanduser()
    is_local = path.exists() or path.suffix == ".gguf" or name.startswith((".", "/", "~"))
    if name == "smollm2" or is_local or _may_be_on_hub(name):
        return name
    raise ValueError(
        "no model whose weights can be read: give smollm2, a folder, a .gguf file, or a model of "
        "the hub as OWNER/NAME, such as Qwen/Qwen3-8B"
    )


def _may_be_on_hub(name: str) -> bool:
    owner, _, repository = name.partition("/")
    if not repository or "/" in repository or owner in INSPECT_PROVIDERS:
        return False
    if owner == "openai":
        return repository.startswith("gpt-oss")
    return not name.startswith("google/gemini")


class OneModel(click.ParamType[str]):
    """The name of a single model, which a function checks."""

    name = "MODEL"

    def __init__(self, check: Callable[[str], str] = single_model) -> None:
        self.check = check

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """The name."""
        try:
            return self.check(str(value))
        except ValueError as error:
            self.fail(f"{error}; got {value}", param, ctx)


class Number(click.FloatRange):
    """A finite number in a range; click compares NaN with the bounds and finds nothing wrong."""

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> float:
        """The number."""
        number = float(super().convert(value, param, ctx))
        if not math.isfinite(number):
            is_bounded = self.min is not None or self.max is not None
            expected = self._describe_range() if is_bounded else "a finite number"
            self.fail(f"{value} is not finite; expected {expected}", param, ctx)
        return number


class Whole(click.IntRange):
    """A whole number in a range, also written as 3.0; the error says what is expected."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        """The number."""
        digits: Any = re.sub(r"\.0+$", "", str(value))
        try:
            return int(super().convert(digits, param, ctx))
        except click.BadParameter:
            self.fail(f"expected a whole number{self._bounds_text()}, got {value!r}", param, ctx)

    def _bounds_text(self) -> str:
        lower_bound = "" if self.min is None else f" from {self.min}"
        if self.max is None:
            return lower_bound
        upper_bound = f"to {self.max}" if lower_bound else f"up to {self.max}"
        return f"{lower_bound} {upper_bound}"


class SuggestingChoice(click.Choice[str]):
    """A choice that says which one was meant."""

    def get_invalid_choice_message(self, value: Any, ctx: click.Context | None) -> str:
        """Message with the value that came and the known ones."""
        from selfprobe.text.user_input import nearest_name_hint

        return f"{value!r} is not one of {', '.join(self.choices)}{nearest_name_hint(value, self.choices)}"


class Assignment(click.ParamType[tuple[str, Any]]):
    """NAME=VALUE, the value as YAML has it; `(name, value)`."""

    name = "NAME=VALUE"

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> tuple[str, Any]:
        """Split at the first sign of equality."""
        import yaml

        from selfprobe.text.user_input import loaded

        if isinstance(value, tuple):
            return value
        name, equals_sign, yaml_text = str(value).partition("=")
        if not equals_sign or not name:
            option_name = param.opts[0] if param else "it"
            self.fail(f"{option_name} takes NAME=VALUE, got {value!r}", param, ctx)
        try:
            return name, loaded(yaml_text)
        except yaml.YAMLError:
            excerpt = yaml_text if len(yaml_text) <= 100 else f"{yaml_text[:99]}…"
            self.fail(f"the value of {name} is not YAML: {excerpt!r}", param, ctx)


def _as_dict(
    ctx: click.Context, param: click.Parameter, value: Sequence[tuple[str, Any]]
) -> dict[str, Any]:
    return dict(value)


COUNT = Whole(min=1)
COUNT_OR_NONE = Whole(min=0)

MODELS_HELP = "Models as Inspect names them, comma-separated: openrouter/a,embedded/smollm2."


def models(*, required: bool) -> Callable[[CommandFunction], CommandFunction]:
    """--models"""
    return click.option("--models", type=Names("model"), required=required, help=MODELS_HELP)


OUT_HELP = "Folder to write: a local path or any fsspec URL."
LOG_DIR_HELP = "Folder for the logs of this study only: a local path or any fsspec URL."


def out(default: str) -> Callable[[CommandFunction], CommandFunction]:
    """--out, a folder here or elsewhere (click's Path would take `s3://a` for a folder of that
    name)
    """
    return click.option("--out", default=default, show_default=True, help=OUT_HELP)


EMBEDDER_HELP = (
    "Model of the sentence embeddings: openai/<name> or one of sentence-transformers; the default "
    "needs no key."
)
embedder = click.option(
    "--embedder",
    default="sentence-transformers/all-MiniLM-L6-v2",
    show_default=True,
    help=EMBEDDER_HELP,
)


def log_dir(default: str) -> Callable[[CommandFunction], CommandFunction]:
    """--log-dir"""
    return click.option(
        "--log-dir",
        default=default,
        show_default=True,
        help=LOG_DIR_HELP,
    )


as_json = click.option(
    "--json", "as_json", is_flag=True, help="Print the numbers as JSON, and nothing else."
)
LIMIT_HELP = (
    "Take at most N items of each data set, always the same ones. Conversations come in whole pairs, with "
    "labels, sources and sets in turn; other items come in their order. Default: all."
)
limit = click.option("--limit", type=COUNT, metavar="N", help=LIMIT_HELP)
display = click.option(
    "--display",
    type=SuggestingChoice(["full", "rich", "plain", "none"]),
    help="Show Inspect's own display, with all metrics of each run. Default: lines of progress.",
)
skip_errors = click.option(
    "--skip-errors",
    is_flag=True,
    help="Leave an item unscored if its calls fail for good. Default: its run fails.",
)

task_args = click.option(
    "-T",
    "task_args",
    type=Assignment(),
    multiple=True,
    callback=_as_dict,
    help="Task argument, passed to each task that has one of this name.",
)

OPTIONS_OF_OTHER_PROGRAMS = {
    "-v": "Inspect's lines come with --display plain",
    "--verbose": "Inspect's lines come with --display plain",
    "-q": "progress goes to standard error: add 2>/dev/null",
    "--quiet": "progress goes to standard error: add 2>/dev/null",
    "--log-level": "set INSPECT_LOG_LEVEL, as Inspect reads it",
    "--epochs": "tasks that repeat items take -T epochs=N (selfprobe tasks NAME shows it)",
    "--temperature": "tasks fix it; a --config file gives models a config: {temperature: …}",
    "--model-role": "commands name their roles: --grader, --judges, --writer",
    "--no-cache": "replies are taken from --log-dir: give a new one",
}
"""Options that Inspect or other programs have → what to type here."""

_CONFIRMED = (
    click.option(
        "--dry-run", is_flag=True, help="Show the plan and stop before any model is asked."
    ),
    click.option("--yes", is_flag=True, help="Start without asking for confirmation."),
)
_PAYING = (
    click.option(
        "--prices",
        type=click.Path(exists=True, dir_okay=False),
        help="Inspect's model cost file (YAML or JSON); the logs then have dollars too. Default: configs/prices.yaml, "
        "for the plan.",
    ),
    *_CONFIRMED,
)
_LIMITED = click.option(
    "--cost-limit",
    type=Number(0, min_open=True),
    metavar="DOLLARS",
    help="Stop, as Ctrl-C does, once the calls of this command have cost this much at the plan's prices. "
    "Default: no limit.",
)

_ASKING = (
    click.option(
        "-M",
        "model_args",
        type=Assignment(),
        multiple=True,
        callback=_as_dict,
        help="Model argument, passed to each of --models.",
    ),
    click.option(
        "--model-base-url",
        metavar="URL",
        help="Address of the server of each of --models, as Inspect has it.",
    ),
    click.option(
        "--tags",
        type=Names("tag"),
        help="Tags of the logs, as Inspect has them.",
    ),
    click.option(
        "--metadata",
        type=Assignment(),
        multiple=True,
        callback=_as_dict,
        help="Entry of the logs' metadata, as Inspect has it.",
    ),
    click.option(
        "--batch",
        is_flag=True,
        default=None,
        help="Send calls in batches where the provider offers them, at half the price. Each round of calls then takes "
        "minutes to a day.",
    ),
    click.option(
        "--max-connections",
        type=COUNT,
        metavar="N",
        help="Largest number of simultaneous calls to a model.",
    ),
    click.option(
        "--max-retries",
        type=COUNT_OR_NONE,
        metavar="N",
        help="Number of retries of a failed call. Default: 5.",
    ),
    click.option(
        "--attempt-timeout",
        type=COUNT,
        metavar="SECONDS",
        help="Largest number of seconds of one attempt at a call. Default: 300.",
    ),
    click.option(
        "--same-model",
        is_flag=True,
        help="Leave a reply unscored if the vendor says that it is from another model than the one that was asked. "
        "Default: it is scored, and the page says so.",
    ),
    display,
    _LIMITED,
    *_PAYING,
)


CALL_PARAMETERS = frozenset(
    "model_args model_base_url tags metadata batch max_connections max_retries attempt_timeout "
    "prices display skip_errors "
    "cost_limit same_model dry_run yes config as_json engine ray_address replicas log_dir out "
    "revision device dtype device_map attention quantize allow_pickle".split()
)
"""Parameters of how calls are made and where results go, which every study has."""


def paying(command: CommandFunction) -> CommandFunction:
    """The options of a command that asks a model without a run: prices, and the confirmation."""
    return _with(_PAYING, command)


def asking(command: CommandFunction) -> CommandFunction:
    """The options of every command that runs tasks: how they are called, shown and confirmed."""
    return _with(_ASKING, command)


def confirming(command: CommandFunction) -> CommandFunction:
    """The options of a command that works here: it is tried without work, and confirmed."""
    return _with(_CONFIRMED, command)


def _with(decorators: Sequence[Callable[[Any], Any]], command: CommandFunction) -> CommandFunction:
    for decorate in reversed(decorators):
        command = decorate(command)
    return command


_ENGINE = (
    click.option(
        "--engine",
        type=SuggestingChoice(["process", "ray"]),
        default="process",
        show_default=True,
        help="Where runs are made: in this process, or on a Ray cluster, as one task per model. All nodes of the "
        "cluster must share the log folder.",
    ),
    click.option(
        "--ray-address",
        metavar="HOST:PORT",
        help="Address of the Ray cluster. Default: RAY_ADDRESS, or a cluster on this machine.",
    ),
)


def engine(command: CommandFunction) -> CommandFunction:
    """The options of where runs are made."""
    return _with(_ENGINE, command)


def echo_json(value: Any) -> None:
    """Print results as JSON: dataclasses as objects, and what is undefined (NaN) as null."""
    import json

    plain_value = without_secrets(_plain(value))
    text = json.dumps(plain_value, indent=2, ensure_ascii=False, allow_nan=False)
    click.echo(json_escaped(text))


def echo_lines(lines: Iterable[str]) -> None:
    """Print lines, without control characters and keys; on a terminal wrapped at words."""
    import shutil
    import sys
    import textwrap

    from selfprobe.text.safe import clean

    if not sys.stdout.isatty():
        for line in lines:
            echo(clean(line))
        return

    width = shutil.get_terminal_size((100, 30)).columns
    wrapper = textwrap.TextWrapper(
        max(width, 1), break_long_words=False, break_on_hyphens=False, subsequent_indent="  "
    )
    for line in lines:
        cleaned = clean(line)
        echo(wrapper.fill(cleaned) if 0 < width < len(cleaned) else cleaned)


def _plain(value: Any) -> Any:
    if is_dataclass(value):
        return {field.name: _plain(getattr(value, field.name)) for field in fields(value)}
    if isinstance(value, Mapping):
        return {str(key): _plain(inner) for key, inner in value.items()}
    if isinstance(value, Iterable) and not isinstance(value, str):
        return [_plain(inner) for inner in value]
    if isinstance(value, bool):
        return value
    if isinstance(value, Integral):
        return int(value)
    if isinstance(value, Real):
        return float(value) if math.isfinite(value) else None
    return value


def confirmed(yes: bool) -> None:
    """Ask whether to run, unless --yes.

    Raises:
        Abort: The user said no.
        UsageError: There is nobody to ask.
    """
    if yes:
        return
    try:
        click.confirm("Run it?", abort=True)
    except click.Abort as abort:
        if isinstance(abort.__context__, EOFError):
            click.echo()  # ends the line of the question
            raise click.UsageError("nobody is there to ask; give --yes to run it") from None
        raise


OPTIONS_NOT_IN_FILES = ("config", "yes", "dry-run")
"""Options that a file may not give: nothing is paid for because a file says so."""


def _file_fields(path: str, known_fields: Iterable[str]) -> dict[str, Any]:
    """The fields of a YAML file, without those that are empty.

    Raises:
        UsageError: It is no mapping, gives a key twice, or has an unknown field (with the one that
            was meant where it is close).
    """
    import yaml

    from selfprobe.text.user_input import loaded_file

    sorted_fields = sorted(known_fields)
    try:
        content = loaded_file(path)
    except (yaml.YAMLError, OSError) as error:
        raise click.UsageError(f"{path} is not YAML: {error}") from None
    if not isinstance(content, dict):
        raise click.UsageError(f"{path}: expected a mapping with {', '.join(sorted_fields)}")
    refuse_unknown(content, sorted_fields, path)
    return {str(key): value for key, value in content.items() if value is not None}


def refuse_unknown(entries: Mapping[Any, Any], known_fields: Iterable[str], source: str) -> None:
    """UsageError where a field of an entry is not known, with the one that was meant."""
    from selfprobe.text.user_input import nearest_name_hint

    sorted_fields = sorted(known_fields)
    for name in entries:
        if name not in sorted_fields:
            remedy = (
                nearest_name_hint(name, sorted_fields) or f"; there are {', '.join(sorted_fields)}"
            )
            raise click.UsageError(f"{source}: unknown field {name}{remedy}")


def config(command: CommandFunction) -> CommandFunction:
    """--config: a YAML file with the command's options by their long names, as log-dir: logs/mine."""
    return click.option(
        "--config",
        type=click.Path(exists=True, dir_okay=False),
        callback=_take_file,
        is_eager=True,
        expose_value=False,
        help="YAML file with options by their long names. An option that is typed wins over the "
        "file.",
    )(command)


def _take_file(ctx: click.Context, param: click.Parameter, path: str | None) -> None:
    if path is None:
        return

    option_by_field = {}
    for command_param in ctx.command.params:
        if isinstance(command_param, click.Option):
            option_by_field[_field_name(command_param)] = command_param
    for field in OPTIONS_NOT_IN_FILES:
        option_by_field.pop(field, None)

    values = {}
    for field, value in _file_fields(path, option_by_field).items():
        option = option_by_field[field]
        values[str(option.name)] = _file_value(option, value, f"{path}: {field}")
    ctx.default_map = values | dict(ctx.default_map or {})


def _field_name(option: click.Option) -> str:
    """The longest of an option's long names, without the dashes."""
    long_names = [name.removeprefix("--") for name in option.opts if name.startswith("--")]
    if not long_names:
        return str(option.name).replace("_", "-")
    return max(long_names, key=len)


def _file_value(option: click.Option, value: Any, source: str) -> Any:
    """A value of a file in the option's type.

    Raises:
        UsageError: The type would take something else for it.
    """
    if option.is_flag:
        if not isinstance(value, bool):
            raise click.UsageError(f"{source} must be true or false, got {value!r}")
        return value
    if isinstance(option.type, Assignment):
        if not isinstance(value, dict):
            raise click.UsageError(f"{source} must be a mapping, got {value!r}")
        return list(value.items())

    takes_names = isinstance(option.type, Names)
    takes_list = takes_names or option.multiple
    if isinstance(value, list) and takes_list:
        takes_mappings = isinstance(option.type, Names) and option.type.mappings
        entry_type = str | dict if takes_mappings else str
        if all(isinstance(entry, entry_type) for entry in value):
            return value
    is_single = isinstance(value, str | int | float) and not isinstance(value, bool)
    if not is_single or option.multiple:
        expected = "a list of texts" if takes_list else "one value"
        raise click.UsageError(f"{source} must be {expected}, got {value!r}")

    try:
        option.type.convert(value, None, None)
    except click.BadParameter as error:
        raise click.UsageError(f"{source}: {error.message}") from None
    return value
