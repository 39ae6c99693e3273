"""Studies on models whose weights are read here: how a model is loaded and asked, and the folder of
jobs.

What needs torch is imported when it runs, so that a wrong call is refused at once.
"""

import errno
import json
import re
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import cached_property
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal, Self

import click
from pydantic import AfterValidator, Field, model_validator

from selfprobe.probes import EXTRA
from selfprobe.study import Plan, Study, options
from selfprobe.text import busy
from selfprobe.text.extras import install_command
from selfprobe.text.user_input import names

if TYPE_CHECKING:
    from selfprobe.page import Page
    from selfprobe.probes.forward import JobRunner
    from selfprobe.probes.model import LocalModel

ALLOW_PICKLE = click.option(
    "--allow-pickle", is_flag=True, help="Load weights that exist only as pickle."
)


@contextmanager
def user_errors_as_input_errors(going_on: str) -> Iterator[None]:
    """A block in which faults that the user can mend are `InputError`s (probes know nothing of
    Inspect); an interrupt says how to go on.
    """
    from selfprobe.errors import InputError, Interrupted

    try:
        yield
    except InputError:
        raise
    except ImportError as error:
        if (error.name or "").partition(".")[0] not in EXTRA:
            raise
        message = f"probes need {error.name}: {install_command('probes')}"
        if error.name == "peft":
            message = f"fine-tuning needs peft: {install_command('mechanisms')}"
        raise InputError(message) from None
    except (ValueError, OSError) as error:  # OSError: files, folders and the network
        message = str(error)
        if isinstance(error, OSError) and error.errno == errno.ENOSPC:
            message = f"the disk is full: {error}. Make room. {going_on}"
        raise InputError(message) from None
    except RuntimeError as error:
        if type(error).__name__ != "OutOfMemoryError":
            raise
        raise InputError(
            f"the device has too little memory; take fewer --batch-tokens: {error}"
        ) from None
    except KeyboardInterrupt:
        raise Interrupted(f"Interrupted. {going_on}") from None


def blocks(text: str) -> tuple[int, ...]:
    """Numbers of blocks: 3, 8-12, 0-31:4 (every fourth), and lists of these; rising, each once.

    Raises:
        ValueError: It is none of these.
    """
    blocks: set[int] = set()
    for part in names(text):
        range_match = re.fullmatch(r"(\d+)(?:-(\d+)(?::([1-9]\d*))?)?", part)
        if not range_match:
            raise ValueError("expected blocks such as 3, 8-12 or 0-31:4")
        first_block = int(range_match[1])
        last_block = int(range_match[2] or first_block)
        if last_block < first_block:
            raise ValueError("expected blocks such as 3, 8-12 or 0-31:4")
        step = int(range_match[3] or 1)
        blocks |= set(range(first_block, last_block + 1, step))
    return tuple(sorted(blocks))


def quiet_model(name: str, loading: dict[str, Any]) -> Any:
    """The model, without transformers' bars; ValueError, before it is loaded, where memory does not
    suffice.
    """
    from selfprobe.probes.model import check_memory, load_model, without_bars

    without_bars()
    check_memory(name, loading)
    return load_model(name, **loading)


FULL_LEARNING_RATE = 2e-5
"""Learning rate of a training of all weights, which move together: adapters take some ten times as
much.
"""


Progress = Callable[[str], None]
OpenModel = Annotated[str, "weights", AfterValidator(options.open_model)]


def _valid_blocks(text: str) -> str:
    blocks(text)
    return text


Blocks = Annotated[str, AfterValidator(_valid_blocks)]
"""Numbers of blocks, as `blocks` reads them."""
RESUME_ADVICE = "What was read is kept; the same command goes on where this one stopped."


@contextmanager
def progressing() -> Iterator[Progress]:
    """A block with a function that takes a progress line: one that moves on a terminal, printed
    lines elsewhere.
    """
    from selfprobe.embed.weights import to_stderr

    if sys.stderr.isatty():
        with busy.status_line():
            yield busy.set_stage
    else:
        with busy.status_line(lambda *_: ""):
            yield to_stderr


class LocalStudy(Study):
    """A study of one model that runs here."""

    local: ClassVar[bool] = True
    model: OpenModel = Field(
        description="Model whose weights are read: smollm2, a folder, a .gguf file or a hub name."
    )
    system: str | None = Field(
        None, description="Text of a system turn before each prompt. Default: none."
    )
    template_arg: dict[str, Any] = Field(
        {}, description="Argument of the chat template, such as enable_thinking=false."
    )
    revision: str | None = Field(None, description="Commit of a hub model. Default: the newest.")
    device: str = Field("cpu", description="Device: cpu, cuda, cuda:1, mps ….")
    dtype: Literal["float32", "bfloat16", "float16"] = Field(
        "float32", description="Precision of the weights."
    )
    device_map: str | None = Field(
        None,
        description="Accelerate's device map; auto spreads the model over the devices. Default: --device alone.",
    )
    attention: str | None = Field(
        None,
        description="Implementation of attention in transformers, such as eager. Default: transformers' choice.",
    )
    quantize: Literal["4bit", "8bit"] | None = Field(
        None, description="Load with bitsandbytes, computing in --dtype. Default: no quantisation."
    )
    allow_pickle: bool = Field(False, description="Load weights that exist only as pickle.")
    log_dir: str = Field("", exclude=True)

    @model_validator(mode="after")
    def _writes_here(self) -> Self:
        if "://" in self.out:
            raise ValueError(
                f"--out keeps what is read, so it must be a local folder, got {self.out}"
            )
        return self

    @property
    def folder(self) -> Path:
        """The folder of the states that were read, of the tables and of the page."""
        return Path(self.out)

    @property
    def loading(self) -> dict[str, Any]:
        """Arguments with which `load_model` loads the model."""
        field_names = {
            "revision",
            "device",
            "dtype",
            "device_map",
            "attention",
            "quantize",
            "allow_pickle",
        }
        layers = blocks(getattr(self, "layers", ""))
        return {**self.model_dump(include=field_names), "layers": layers}

    @property
    def learns(self) -> Literal["full", "lora"] | None:
        """Name of the weights that are trained."""
        return None

    @cached_property
    def judge(self) -> "LocalModel":
        """The model, loaded if memory has room for it.

        Raises:
            ValueError: It has none, or there is no such model.
        """
        from selfprobe.embed.weights import to_stderr
        from selfprobe.probes.model import check_memory, load_model, without_bars
        from selfprobe.probes.tokens import Chat

        without_bars()
        check_memory(self.model, self.loading, learns=self.learns)
        to_stderr(f"loading {self.model} and measuring its speed, for the plan")
        return load_model(
            self.model, chat=Chat(self.system or "", self.template_arg), **self.loading
        )

    @property
    def needs_lines(self) -> list[str]:
        """Lines of the plan with the time, memory and disk that the study needs."""
        raise NotImplementedError

    def work(self, progress: Progress) -> None:
        """Read what is not in the folder yet."""
        raise NotImplementedError

    def folder_content(self) -> Any:
        """Content of the folder, in the form that `page` takes."""
        raise NotImplementedError

    @property
    def thinking_lines(self) -> list[str]:
        """Line of the plan on how answers of a model that thinks are read; none of another one."""
        from selfprobe.probes.tokens import thinking_note

        note = thinking_note(self.judge.tokenizer, self.judge.chat)
        return [note] if note else []

    @property
    def plan_lines(self) -> list[str]:
        """Lines of the plan."""
        return [*self.needs_lines, *self.thinking_lines]

    def plan(self) -> Plan:
        """Plan of what is read, and how long it takes; the model is loaded for it."""
        with user_errors_as_input_errors(RESUME_ADVICE):
            return Plan(self.plan_lines, ())

    def ask(self) -> bool:
        """Read what is not in the folder yet."""
        with user_errors_as_input_errors(RESUME_ADVICE), progressing() as progress:
            self.work(progress)
        return True

    def build_page(self) -> "Page":
        """The page of what is in the folder."""
        busy.set_stage("statistics of what was read")
        with user_errors_as_input_errors(RESUME_ADVICE):
            return self.page(self.folder_content())

    @property
    def run_record(self) -> dict[str, Any]:
        """Entries of run.json that say what the folder belongs to; none without that file.

        Raises:
            InputError: The file is damaged.
        """
        from selfprobe.errors import InputError

        file = self.folder / "run.json"
        try:
            return dict(json.loads(file.read_text("utf-8"))) if file.is_file() else {}
        except (ValueError, TypeError, OSError) as error:
            raise InputError(
                f"{file} is not what a run writes ({error}): give another --out"
            ) from None

    def claim_folder(
        self, state: Mapping[str, Any], *, dry: bool = False, **further_entries: Any
    ) -> None:
        """Write into run.json what the folder belongs to (`state`), and what else it says; nothing
        with `dry`.

        Raises:
            InputError: The folder holds a run of something else.
        """
        from selfprobe.errors import InputError
        from selfprobe.errors.output import place

        folder_state = self.run_record
        differences = [
            _difference_text(name, folder_state.get(name), value)
            for name, value in state.items()
            if folder_state.get(name) != value
        ]
        if folder_state and differences:
            texts = "; ".join(differences)
            raise InputError(f"{self.out} holds a run of {texts}: give another --out")
        if not dry:
            entries = {"selfprobe": version("selfprobe"), **state, **further_entries}
            text = json.dumps(entries, indent=1, ensure_ascii=False)
            place({"run.json": text.encode()}, self.out)


def _difference_text(name: str, folder_value: Any, value: Any) -> str:
    are_short = all(isinstance(text, str) and len(text) < 100 for text in (folder_value, value))
    return f"{name} {folder_value!r}, not {value!r}" if are_short else f"another {name}"


class TrainingStudy(LocalStudy):
    """A study that trains the model whose weights it reads."""

    rank: int | None = Field(None, ge=1, description="Rank of the adapters.")
    full: bool = Field(False, description="Train all weights in float32 instead of adapters.")

    @model_validator(mode="after")
    def _one_way(self) -> Self:
        if self.full and self.rank:
            raise ValueError(
                "--rank is the rank of adapters, and --full trains without adapters: give one of the two"
            )
        return self

    @property
    def learns(self) -> Literal["full", "lora"] | None:
        """Name of the weights that are trained."""
        return "full" if self.full else "lora"


class SpreadStudy(LocalStudy):
    """A study that this process reads, or copies of the model on a cluster."""

    engine: Literal["transformers", "ray"] = Field(
        "transformers",
        description="What reads: the model in this process, or with ray its copies on the nodes of a cluster.",
    )
    ray_address: str | None = Field(
        None,
        description="Address of the Ray cluster. Default: RAY_ADDRESS, or a cluster on this machine.",
    )
    replicas: int | None = Field(
        None,
        ge=1,
        description="Number of model copies. Default: one per GPU (or per group of GPUs that a copy needs); without "
        "GPUs one per node.",
    )

    @model_validator(mode="after")
    def _goes_together(self) -> Self:
        cluster_options = {"--ray-address": self.ray_address, "--replicas": self.replicas}
        for name, value in cluster_options.items():
            if value is not None and self.engine != "ray":
                raise ValueError(f"{name} goes with --engine ray")
        return self

    @contextmanager
    def job_runner(self) -> "Iterator[JobRunner]":
        """A block with the reader: this process, or copies of the model."""
        from selfprobe.probes.forward import do_jobs_here
        from selfprobe.study.on_ray import copies_on_cluster

        with copies_on_cluster(self.engine, self.ray_address, self.replicas) as make_copies:
            if make_copies is None:
                yield do_jobs_here
            else:
                yield make_copies(self.judge, self.model, self.loading).spread
