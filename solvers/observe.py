"""Observer's predictions of a target: the common part of tasks of this kind, so that each fits on a
page.

A task file makes a `Prediction` of its arguments, and of that the calls (`act`, `answer`,
`predict`) and the task. `predict` asks about the model that `-T about=` names: the observer itself,
"another AI assistant", or another target, which is shown by name or by replies to other items. What
a stranger learns from those is no privileged access.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import blake2b
from typing import Annotated, Any, Literal, TypedDict, Unpack

from inspect_ai import Epochs, Task
from inspect_ai.dataset import Sample
from inspect_ai.log import HeadlineMetric
from inspect_ai.model import ChatMessage, GenerateConfig, get_model
from inspect_ai.scorer import Scorer
from inspect_ai.solver import Solver, TaskState
from inspect_ai.viewer import TaskSamplesColumn, TaskSamplesSort, TaskSamplesView, ViewerConfig

from selfprobe.data import Row, Table, groups_of, load
from selfprobe.data.samples import dataset_of
from selfprobe.errors import InputError
from selfprobe.errors.arguments import only_known, whole
from selfprobe.errors.inspect_private import registry_info
from selfprobe.solvers import act, ask
from selfprobe.solvers.ask import (
    PromptFunction,
    Prompts,
    Settings,
    in_a_run,
    rehearsing,
    single_model_of_role,
)
from selfprobe.solvers.negotiate import Effort, user_settings
from selfprobe.solvers.record import Record, Reply
from selfprobe.solvers.replay import Replay, leave_out_failed, replay_log, require_same_settings

SKILL = HeadlineMetric(metric="skill")
"""Headline of a task's log: the share of the way from the best baseline to a perfect score."""


class Common(TypedDict, total=False):
    """Arguments of every task of two models."""

    effort: Effort | None
    """Reasoning effort of both, instead of none (or the least that the model takes)."""
    answer_tokens: int | None
    """Longest answer of the observer in tokens, reasoning included. Default: the task's limit, and
    8192 more where the model thinks although it is asked not to.
    """
    target_log: str | None
    """A log, or a folder of logs, to take the target's replies from."""


class WithData(Common, total=False):
    """Arguments of a task with a data set."""

    dataset: str | None
    """A bundled name, a .jsonl or .csv file, or hf:owner/name@revision (see `selfprobe.data`).
    Default: the task's own. `?kind=COLUMN` says which items are alike, `?cluster=COLUMN` what items
    come from.
    """


class Shared(WithData, total=False):
    """Arguments of a task whose observer does not read the target's text, and can be asked about
    any model.
    """

    about: Annotated[str | list[str], "self"]
    """self, other ("another AI assistant", compared with its own reply), or both; another target:
    named, shown:N.
    """
    observer_log: str | None
    """A log, or a folder of logs, to take the observer's predictions from."""
    shown_items: int | None
    """Number of target_log's items, the first ones, whose replies about=shown:N may show. Default:
    all.
    """


Kind = Literal["self", "other", "named", "shown"]

WHO = {
    "self": {"who": "you", "they": "you"},
    "other": {"who": "another AI assistant", "they": "it"},
    "named": {"who": "the AI assistant {name}", "they": "it"},
    "shown": {"who": "this AI assistant", "they": "it"},
}
"""Words in a prompt's slots, by the model it asks about."""


@dataclass(frozen=True)
class AskedAbout:
    """Model that a prompt asks about."""

    kind: Kind = "self"
    name: str = ""
    """Name of the target without its provider, where the prompt says it."""
    examples: str = ""
    """Numbered replies of the target to other items, where the prompt shows them."""

    @staticmethod
    def prompt_variants(
        prompt: str, *, examples_intro: str, words: Mapping[str, Mapping[str, str]] = WHO
    ) -> dict[str, str]:
        """Prompts about each kind of model, from one with slots; other fields are left unchanged.

        Args:
            prompt: Prompt with slots such as {who}.
            examples_intro: Text before it where replies are shown, with {examples}.
            words: Words in the slots.
        """
        variants: dict[str, str] = {}
        for kind, word_by_slot in words.items():
            variant = examples_intro + prompt if kind == "shown" else prompt
            for slot, word in word_by_slot.items():
                variant = variant.replace(f"{{{slot}}}", word)
            variants[kind] = variant
        return variants

    def render_prompt(self, variants: Mapping[str, str], **fields: object) -> str:
        """Prompt about this model, with its fields."""
        return variants[self.kind].format(name=self.name, examples=self.examples, **fields)


OTHER_PREFIX = "other_"
"""Prefix of the name of an answer about another assistant, and of the key of its decision."""


class Acts(list[Mapping[str, Reply]]):
    """Replies of a target to an item, by name; one entry per epoch."""

    def replies_named(self, name: str) -> list[Reply]:
        """Replies of one name, by epoch."""
        return [replies[name] for replies in self]

    def text(self, name: str) -> str | None:
        """Reply of the first epoch; None where it has a problem."""
        reply = self[0][name]
        return None if reply.problem else reply.text


Example = Callable[[Row, Acts], str | None]
"""Function from an item's row and the target's replies to the text that is shown, or None without a
readable one.
"""

AboutPrompts = Callable[[TaskState, AskedAbout], Prompts]
"""Function from a sample's state and a model to the prompts about that model, by name."""


def parse_arms(about: object) -> tuple[str, ...]:
    """Arms of an observer's questions: self, other, both of them, named, or shown:N.

    >>> parse_arms("other,self"), parse_arms(["shown:5"])
    (('self', 'other'), ('shown:5',))

    Raises:
        InputError: It is something else, or several of which one is another target.
    """
    entries: list[object] = [about]
    if isinstance(about, str):
        entries = list(about.split(","))
    elif isinstance(about, list):
        entries = about

    arms: list[str] = []
    for entry in entries:
        arm = entry.strip() if isinstance(entry, str) else ""
        is_arm = arm in ("self", "other", "named") or re.fullmatch(r"shown:[1-9][0-9]{0,2}", arm)
        if not is_arm:
            value = arm if isinstance(entry, str) else entry
            raise InputError(
                "about must be self, other, self,other, named, or shown:N with N from 1 to 999, "
                f"got {value!r}"
            )
        if arm not in arms:
            arms.append(arm)
    if not arms or (len(arms) > 1 and set(arms) != {"self", "other"}):
        raise InputError(
            f"about={','.join(arms)}: only self and other go together; give the others a run each"
        )
    return tuple(sorted(arms, reverse=True))


def parse_example_count(arm: str) -> int | None:
    """Number of the target's replies that an arm shows: 0 for a name alone, None where it shows
    nothing of a target.
    """
    if arm == "named":
        return 0
    if arm.startswith("shown:"):
        return int(arm.removeprefix("shown:"))
    return None


@dataclass(frozen=True)
class Examples:
    """Replies of the target to items other than the one that is asked about."""

    acts: Replay
    table: Table
    text_of_example: Example
    items: int | None = None
    """Number of the log's items, the first ones, whose replies may be shown; None is all."""
    text_by_place: dict[tuple[str, str], str | None] = field(
        default_factory=dict, compare=False, repr=False
    )
    """Log and item → its text, once it is made."""

    def __call__(self, state: TaskState, count: int) -> dict[str, str]:
        """Item → its text, `count` of them, or as many as the target's log has; always the same for
        an item.

        Those of the item's own kind come first, where the data set has a column `kind` or
        `category`.

        Raises:
            LookupError: The log has no readable act at another item.
        """
        target_item = str(state.sample_id)
        kind_by_item = {
            str(row["id"]): row.get("kind") or row.get("category") for row in self.table.rows
        }

        def order(row: Row) -> tuple[bool, bytes]:
            item = str(row["id"])
            is_other_kind = kind_by_item[item] != kind_by_item.get(target_item)
            return is_other_kind, _drawn_position(target_item, item)

        other_rows = [
            row
            for row in self._candidate_rows()
            if str(row["id"]) != target_item and state.input_text not in row.values()
        ]
        text_by_item: dict[str, str] = {}
        for row in sorted(other_rows, key=order):
            if len(text_by_item) == count:
                break
            text = self._text(row)
            if text is not None:
                text_by_item[str(row["id"])] = text
        if not text_by_item:
            raise LookupError(
                f"{self.acts.file}: no reply to another item than {target_item!r} that could be "
                "shown; run the target on more items"
            )
        return text_by_item

    def _candidate_rows(self) -> Sequence[Row]:
        if self.items is None:
            return self.table.rows
        first_items = set(self.acts.items[: self.items])
        return [row for row in self.table.rows if str(row["id"]) in first_items]

    def _text(self, row: Row) -> str | None:
        item = str(row["id"])
        place = (self.acts.file, item)
        if place not in self.text_by_place:
            epochs = self.acts.of_item(item)
            self.text_by_place[place] = self.text_of_example(row, Acts(epochs)) if epochs else None
        return self.text_by_place[place]


def _drawn_position(target_item: str, item: str) -> bytes:
    """Position in an order that is fixed for the item that is asked about, and different for each
    item.
    """
    return blake2b(f"{target_item}\x1f{item}".encode(), digest_size=8).digest()


def _informed_about(target: str, example_texts: Sequence[str]) -> AskedAbout:
    numbered = [f"{number}. {text}" for number, text in enumerate(example_texts, start=1)]
    kind: Kind = "shown" if example_texts else "named"
    return AskedAbout(kind, target.partition("/")[2], "\n\n".join(numbered))


def frame(arms: Sequence[str], prompts: AboutPrompts) -> PromptFunction:
    """Prompts about the observer itself, about another assistant (`OTHER` before their names), or
    both.

    Raises:
        InputError: While the task is built in a run with another target: both answers are compared
            with what the observer does itself.
    """
    if "other" in arms and in_a_run():
        target = str(single_model_of_role("target"))
        if target != str(get_model()):
            raise InputError(
                f"about={','.join(arms)} compares the answers with what the observer does itself; "
                f"the target here is {target}: leave out the role target"
            )

    def framed_prompts(state: TaskState) -> Prompts:
        framed: dict[str, str | list[ChatMessage]] = {}
        if "self" in arms:
            framed |= prompts(state, AskedAbout())
        if "other" in arms:
            for name, prompt in prompts(state, AskedAbout("other")).items():
                framed[OTHER_PREFIX + name] = prompt
        return framed

    return framed_prompts


class Prediction:
    """Checked arguments of a task, its data, and its replayed logs."""

    def __init__(
        self,
        task: str,
        data: str | Table,
        columns: Sequence[str] = (),
        *,
        further: Sequence[str] = (),
        act_tokens: int | None = None,
        **shared: Unpack[Shared],
    ) -> None:
        """Load the data and find the logs.

        Args:
            task: Name of the task.
            data: Its data set where the user names none, or its rows.
            columns: Columns that a row must have; a sample's input is the first.
            further: Columns that the task uses where they are there; any other is named as not
                used.
            act_tokens: Longest reply of the target in tokens, where the user sets one.
            shared: Shared arguments of the task.

        Raises:
            InputError: An argument is wrong; see `load` and `replay_log`.
        """
        only_known("Prediction", shared, ("act_tokens", "further", *Shared.__optional_keys__))
        self.shown_items = shared.get("shown_items")
        whole(act_tokens=act_tokens, shown_items=self.shown_items, optional=True)
        dataset = shared.get("dataset")
        if isinstance(data, Table):
            self.table = data
        else:
            self.table = load(data if dataset is None else dataset, tuple(columns), further)
        self.columns = columns
        self.arms = parse_arms(shared.get("about", "self"))
        self.effort = shared.get("effort")
        self.answer_tokens = shared.get("answer_tokens")
        self.observer_log = shared.get("observer_log")
        self.target_log = shared.get("target_log")
        self.act_needs = user_settings(act_tokens, self.effort)
        self.answer_needs = user_settings(self.answer_tokens)
        self.acts = replay_log(
            self.target_log, task, self.table, "acts", act_tokens=act_tokens, effort=self.effort
        )
        self.answers = replay_log(
            self.observer_log,
            task,
            self.table,
            "answers",
            answer_tokens=self.answer_tokens,
            effort=self.effort,
        )

    def act(
        self,
        prompts: PromptFunction,
        config: Settings,
        *,
        needs: GenerateConfig | None = None,
        may_be_cut: bool = False,
        replayed: bool = True,
        **argument_values: object,
    ) -> Solver:
        """Solver of the target's replies; see `solvers.act`.

        Args:
            prompts: Function from the state to the prompts by name.
            config: Settings of the method.
            needs: Settings that it cannot do without. Default: those that the user chose.
            may_be_cut: Whether a reply that ends at the token limit is good.
            replayed: Whether they are in the target's log; False for replies to an observer's
                prompt.
            argument_values: Arguments that determined how they were asked for: a log with other values is
                refused.

        Raises:
            InputError: The log's replies were asked for in another way.
        """
        replay = require_same_settings(self.acts, "acts", **argument_values) if replayed else None
        return act.act(
            prompts,
            config=config,
            needs=self.act_needs if needs is None else needs,
            may_be_cut=may_be_cut,
            replay=replay,
        )

    def answer(
        self,
        prompts: PromptFunction,
        config: Settings,
        *,
        applies_effort: bool = True,
        **argument_values: object,
    ) -> Solver:
        """Solver of the observer's replies; see `solvers.answer`.

        Args:
            prompts: Function from the state to the prompts by name; they may hold the target's
                replies.
            config: Settings of the method.
            applies_effort: Whether the user's `effort` applies to them too.
            argument_values: Arguments that determined how they were asked for: a log with other values is
                refused.

        Raises:
            InputError: The log's replies were asked for in another way.
        """
        needs = self.answer_needs
        if applies_effort:
            needs = user_settings(self.answer_tokens, self.effort)
        replay = require_same_settings(self.answers, "answers", **argument_values)
        return act.answer(prompts, config=config, needs=needs, replay=replay)

    def predict(
        self,
        prompts: AboutPrompts,
        config: Settings,
        example: Example,
        *,
        applies_effort: bool = True,
        **argument_values: object,
    ) -> Solver:
        """Solver of the observer's replies to prompts about the model that the user names.

        Args:
            prompts: Function from the state and the model it is about to the prompts by name.
            config: Settings of the method.
            example: Function that shows a reply of the target.
            applies_effort: Whether the user's `effort` applies to them too.
            argument_values: See `answer`.

        Raises:
            InputError: Answers are replayed, and asked about another target; replies are shown, and
                there is no log.
        """
        return self.answer(
            self._about(prompts, example), config, applies_effort=applies_effort, **argument_values
        )

    def _about(self, prompts: AboutPrompts, example: Example) -> PromptFunction:
        """Prompts; a model that is its own target is always asked about itself."""
        arm = self.arms[0]
        example_count = parse_example_count(arm)
        if self.shown_items is not None and not example_count:
            raise InputError(
                f"shown_items={self.shown_items} goes with about=shown:N, "
                f"got about={','.join(self.arms)}"
            )
        if example_count is None:
            return frame(self.arms, prompts)
        if self.observer_log is not None:
            raise InputError(
                f"about={arm} asks the observer, observer_log replays its answers: leave one out"
            )
        if example_count and self.acts is None and not rehearsing():
            raise InputError(
                f"about={arm} shows the target's recorded replies: pass target_log, a log of the "
                "target on itself"
            )

        prompts_about_self = frame(("self",), prompts)
        examples = None
        if self.acts is not None and example_count:
            examples = Examples(self.acts, self.table, example, self.shown_items)

        def informed_prompts(state: TaskState) -> Prompts:
            if rehearsing():
                return prompts(state, self._rehearsed_target(state, example_count, example))
            target = str(single_model_of_role("target"))
            if target == str(get_model()):
                return prompts_about_self(state)
            text_by_item = examples(state, example_count) if examples else {}
            state.metadata["shown"] = list(text_by_item)  # for a reader of the log
            return prompts(state, _informed_about(target, list(text_by_item.values())))

        return informed_prompts

    def _rehearsed_target(
        self, state: TaskState, example_count: int, example: Example
    ) -> AskedAbout:
        """Model shown in a rehearsal: the item's own reply, once for each reply to another item
        that will be shown.
        """
        item = str(state.sample_id)
        [row, *_] = [row for row in self.table.rows if str(row["id"]) == item]
        text = None
        if example_count:
            text = example(row, Acts([state.store_as(Record).acts]))
        return _informed_about("provider/another-model", [text or ""] * example_count)

    together = staticmethod(ask.together)
    """Solver that runs calls that need not wait for one another."""

    def task(
        self,
        version: int,
        scorer: Scorer,
        *solvers: Solver,
        sample: Callable[[Row], Sample] | None = None,
        metadata: Mapping[str, Any] | None = None,
        keys: Sequence[str] = (),
        epochs: int | None = None,
        about: Mapping[str, object] | None = None,
        headline: HeadlineMetric | None = SKILL,
    ) -> Task:
        """Task with these calls and this scorer.

        Args:
            version: Version of the task; the data set's hash is added.
            scorer: Scorer of a sample.
            solvers: Calls of the task, one after another.
            sample: Function from a row to its sample. Default: its first column as input, with
                `metadata`.
            metadata: Metadata of all samples.
            keys: Keys of decisions; the log browser shows those first that are wrong.
            epochs: Number of epochs, where the method has one; they are averaged by the scorer's
                metric.
            about: Further metadata of the task.
            headline: Headline metric of its log.
        """

        def to_sample(row: Row) -> Sample:
            return self._sample(row, sample, metadata or {})

        prefix = OTHER_PREFIX if self.arms == ("other",) else ""
        decision_keys = [f"{prefix}{key}" for key in keys]
        scorer_name = registry_info(scorer).name.rpartition("/")[2]
        repetitions = None if epochs is None else Epochs(epochs, [])
        viewer = worst_first(scorer_name, *decision_keys) if keys else None
        return Task(
            dataset=dataset_of(self.table.rows, to_sample, self.table.name),
            solver=solvers[0] if len(solvers) == 1 else list(solvers),
            scorer=scorer,
            epochs=repetitions,
            continue_on_fail=True,
            early_stopping=leave_out_failed(self.acts, self.answers),
            headline_metric=headline,
            viewer=viewer,
            version=self.table.version(version),
            metadata={**ask.task_metadata(self.table), **(about or {})},
        )

    def _sample(
        self, row: Row, make_sample: Callable[[Row], Sample] | None, metadata: Mapping[str, Any]
    ) -> Sample:
        if make_sample is None:
            sample = Sample(id=row["id"], input=row[self.columns[0]])
        else:
            sample = make_sample(row)
        sample.metadata = {**metadata, **(sample.metadata or {}), **groups_of(row)}
        return sample


def worst_first(scorer: str, *keys: str) -> ViewerConfig:
    """Inspect's list of samples with the wrong predictions on top, each with its truth in the
    answer column.

    Args:
        scorer: Name of the scorer.
        keys: Keys of the decisions to sort by.
    """
    leading_columns = ("sampleStatus", "sampleId", "epoch", "input", "target", "answer")
    columns = [
        *map(_column, leading_columns),
        *(TaskSamplesColumn.score(scorer, key) for key in keys),
        _column("error"),
    ]
    sort = [TaskSamplesSort.score(scorer, key) for key in keys]
    view = TaskSamplesView(name="worst first", columns=columns, sort=sort)
    return ViewerConfig(task_samples_view=view)


def _column(name: str) -> TaskSamplesColumn:
    return TaskSamplesColumn(id=name)
