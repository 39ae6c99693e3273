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
from inspect_ai.model import GenerateConfig, get_model
from inspect_ai.scorer import Scorer
from inspect_ai.solver import Solver, TaskState
from inspect_ai.viewer import TaskSamplesColumn, TaskSamplesSort, TaskSamplesView, ViewerConfig

from selfprobe.data import Row, Table, groups_of, load
from selfprobe.data.samples import dataset_of
from selfprobe.errors import InputError
from selfprobe.errors.arguments import only_known, whole
from selfprobe.errors.inspect_private import registry_info
from selfprobe.solvers import act as _act
from selfprobe.solvers import act as _answer
from selfprobe.solvers import ask
from selfprobe.solvers.ask import PromptFunction, Prompts, Settings, in_a_run, rehearsing, sole
from selfprobe.solvers.negotiate import Effort, user_settings
from selfprobe.solvers.record import Record, Reply
from selfprobe.solvers.replay import Replay, leave_out_failed, of_same, replay_log

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
class Whom:
    """Model that a prompt asks about."""

    kind: Kind = "self"
    name: str = ""
    """Name of the target without its provider, where the prompt says it."""
    examples: str = ""
    """Numbered replies of the target to other items, where the prompt shows them."""

    @staticmethod
    def worded(
        prompt: str, *, shown: str, words: Mapping[str, Mapping[str, str]] = WHO
    ) -> dict[str, str]:
        """Prompts about each of them, from one with slots; other fields are left unchanged.

        Args:
            prompt: Prompt with slots such as {who}.
            shown: Text before it where replies are shown, with {examples}.
            words: Words in the slots.
        """
        made = dict[str, str]()
        for kind, slots in words.items():
            made[kind] = shown * (kind == "shown") + prompt
            for slot, word in slots.items():
                made[kind] = made[kind].replace(f"{{{slot}}}", word)
        return made

    def asked(self, prompts: Mapping[str, str], **fields: object) -> str:
        """Prompt about this model, with its fields."""
        return prompts[self.kind].format(name=self.name, examples=self.examples, **fields)


OTHER = "other_"
"""Prefix of the name of an answer about another assistant, and of the key of its decision."""


class Acts(list[Mapping[str, Reply]]):
    """Replies of a target to an item, by name; one entry per epoch."""

    def named(self, name: str) -> list[Reply]:
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

AboutPrompts = Callable[[TaskState, Whom], Prompts]
"""Function from a sample's state and a model to the prompts about that model, by name."""

_ALSO = {"asked": "named", "replayed": "self", "both": "self,other"}
"""Words of earlier versions, for a hint."""


def arms_of(about: object) -> tuple[str, ...]:
    """Arms of an observer's questions: self, other, both of them, named, or shown:N.

    >>> arms_of("other,self"), arms_of(["shown:5"])
    (('self', 'other'), ('shown:5',))

    Raises:
        InputError: It is something else, or several of which one is another target.
    """
    parts = (
        about.split(",")
        if isinstance(about, str)
        else about
        if isinstance(about, list)
        else [about]
    )
    names = list(dict.fromkeys(one.strip() if isinstance(one, str) else one for one in parts))
    for name in names:
        if name not in ("self", "other", "named") and (
            not isinstance(name, str) or not re.fullmatch(r"shown:[1-9][0-9]{0,2}", name)
        ):
            hint = (
                f"; did you mean {_ALSO[name]}?" if isinstance(name, str) and name in _ALSO else ""
            )
            raise InputError(
                f"about must be self, other, self,other, named, or shown:N with N from 1 to 999, got {name!r}{hint}"
            )
    if not names or (len(names) > 1 and set(names) != {"self", "other"}):
        raise InputError(
            f"about={','.join(map(str, names))}: only self and other go together; give the others a run each"
        )
    return tuple(sorted(map(str, names), reverse=True))


def examples_of(arm: str) -> int | None:
    """Number of the target's replies that an arm shows: 0 for a name alone, None where it shows
    nothing of a target.
    """
    return (
        int(arm.removeprefix("shown:"))
        if arm.startswith("shown:")
        else 0
        if arm == "named"
        else None
    )


@dataclass(frozen=True)
class Examples:
    """Replies of the target to items other than the one that is asked about."""

    acts: Replay
    table: Table
    shows: Example
    items: int | None = None
    """Number of the log's items, the first ones, whose replies may be shown; None is all."""
    seen: dict[tuple[str, str], str | None] = field(default_factory=dict, compare=False, repr=False)
    """Log and item → its text, once it is made."""

    def __call__(self, state: TaskState, count: int) -> dict[str, str]:
        """Item → its text, `count` of them, or as many as the target's log has; always the same for
        an item.

        Those of the item's own kind come first, where the data set has a column `kind` or
        `category`.

        Raises:
            LookupError: The log has no readable act at another item.
        """
        asked, text = str(state.sample_id), state.input_text
        kinds = {str(row["id"]): row.get("kind") or row.get("category") for row in self.table.rows}
        others = [
            row for row in self._rows() if str(row["id"]) != asked and text not in row.values()
        ]
        others.sort(
            key=lambda row: (
                kinds[str(row["id"])] != kinds.get(asked),
                _drawn(asked, str(row["id"])),
            )
        )
        found: dict[str, str] = {}
        for row in others:
            if len(found) < count and (shown := self._shown(row)) is not None:
                found[str(row["id"])] = shown
        if not found:
            raise LookupError(
                f"{self.acts.file}: no reply to another item than {asked!r} that could be shown; "
                "run the target on more items"
            )
        return found

    def _rows(self) -> Sequence[Row]:
        if self.items is None:
            return self.table.rows
        first_items = set(self.acts.items[: self.items])
        return [row for row in self.table.rows if str(row["id"]) in first_items]

    def _shown(self, row: Row) -> str | None:
        place = (self.acts.file, str(row["id"]))
        if place not in self.seen:
            epochs = self.acts.of_item(place[1])
            self.seen[place] = self.shows(row, Acts(epochs)) if epochs else None
        return self.seen[place]


def _drawn(asked: str, item: str) -> bytes:
    """Place in an order that is fixed for the item that is asked about, and different for each
    item.
    """
    return blake2b(f"{asked}\x1f{item}".encode(), digest_size=8).digest()


def _informed(target: str, shown: Sequence[str]) -> Whom:
    numbered = [f"{i}. {text}" for i, text in enumerate(shown, start=1)]
    return Whom("shown" if shown else "named", target.partition("/")[2], "\n\n".join(numbered))


def frame(arms: Sequence[str], prompts: AboutPrompts) -> PromptFunction:
    """Prompts about the observer itself, about another assistant (`OTHER` before their names), or
    both.

    Raises:
        InputError: While the task is built in a run with another target: both answers are compared
            with what the observer does itself.
    """
    if "other" in arms and in_a_run() and (target := str(sole("target"))) != str(get_model()):
        raise InputError(
            f"about={','.join(arms)} compares the answers with what the observer does itself; the target here is "
            f"{target}: leave out the role target"
        )

    def framed(state: TaskState) -> Prompts:
        own = prompts(state, Whom()) if "self" in arms else {}
        other = prompts(state, Whom("other")) if "other" in arms else {}
        return {**own, **{OTHER + name: prompt for name, prompt in other.items()}}

    return framed


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
        self.columns, self.arms = columns, arms_of(shared.get("about", "self"))
        self.effort, self.answer_tokens = shared.get("effort"), shared.get("answer_tokens")
        self.acting, self.short = (
            user_settings(act_tokens, self.effort),
            user_settings(self.answer_tokens),
        )
        asked = {"effort": self.effort}
        self.observer_log, self.target_log = shared.get("observer_log"), shared.get("target_log")
        self.acts = replay_log(
            self.target_log, task, self.table, "acts", act_tokens=act_tokens, **asked
        )
        self.answers = replay_log(
            self.observer_log,
            task,
            self.table,
            "answers",
            answer_tokens=self.answer_tokens,
            **asked,
        )

    def act(
        self,
        prompts: PromptFunction,
        config: Settings,
        *,
        needs: GenerateConfig | None = None,
        may_be_cut: bool = False,
        replayed: bool = True,
        **same: object,
    ) -> Solver:
        """Solver of the target's replies; see `solvers.act`.

        Args:
            prompts: Function from the state to the prompts by name.
            config: Settings of the method.
            needs: Settings that it cannot do without. Default: those that the user chose.
            may_be_cut: Whether a reply that ends at the token limit is good.
            replayed: Whether they are in the target's log; False for replies to an observer's
                prompt.
            same: Arguments that determined how they were asked for: a log with other values is
                refused.

        Raises:
            InputError: The log's replies were asked for in another way.
        """
        replay = of_same(self.acts, "acts", **same) if replayed else None
        needs = self.acting if needs is None else needs
        return _act.act(prompts, config=config, needs=needs, may_be_cut=may_be_cut, replay=replay)

    def answer(
        self, prompts: PromptFunction, config: Settings, *, effort: bool = True, **same: object
    ) -> Solver:
        """Solver of the observer's replies; see `solvers.answer`.

        Args:
            prompts: Function from the state to the prompts by name; they may hold the target's
                replies.
            config: Settings of the method.
            effort: Whether the user's `effort` applies to them too.
            same: Arguments that determined how they were asked for: a log with other values is
                refused.

        Raises:
            InputError: The log's replies were asked for in another way.
        """
        needs = user_settings(self.answer_tokens, self.effort) if effort else self.short
        return _answer.answer(
            prompts, config=config, needs=needs, replay=of_same(self.answers, "answers", **same)
        )

    def predict(
        self,
        prompts: AboutPrompts,
        config: Settings,
        example: Example,
        *,
        effort: bool = True,
        **same: object,
    ) -> Solver:
        """Solver of the observer's replies to prompts about the model that the user names.

        Args:
            prompts: Function from the state and the model it is about to the prompts by name.
            config: Settings of the method.
            example: Function that shows a reply of the target.
            effort: Whether the user's `effort` applies to them too.
            same: See `answer`.

        Raises:
            InputError: Answers are replayed, and asked about another target; replies are shown, and
                there is no log.
        """
        return self.answer(self._about(prompts, example), config, effort=effort, **same)

    def _about(self, prompts: AboutPrompts, example: Example) -> PromptFunction:
        """Prompts; a model that is its own target is always asked about itself."""
        count = examples_of(self.arms[0])
        if self.shown_items is not None and not count:
            raise InputError(
                f"shown_items={self.shown_items} goes with about=shown:N, got about={','.join(self.arms)}"
            )
        own = frame(self.arms if count is None else ("self",), prompts)
        if count is None:
            return own
        if self.observer_log is not None:
            raise InputError(
                f"about={self.arms[0]} asks the observer, observer_log replays its answers: leave one out"
            )
        if count and self.acts is None and not rehearsing():
            raise InputError(
                f"about={self.arms[0]} shows the target's recorded replies: pass target_log, a log of the target on "
                "itself"
            )
        examples = (
            Examples(self.acts, self.table, example, self.shown_items)
            if self.acts is not None
            else None
        )

        def informed(state: TaskState) -> Prompts:
            if rehearsing():
                return prompts(state, self._guessed(state, count, example))
            target = str(sole("target"))
            if target == str(get_model()):
                return own(state)
            shown = examples(state, count) if count and examples else {}
            state.metadata["shown"] = list(
                shown
            )  # names of the shown items, for a reader of the log
            return prompts(state, _informed(target, list(shown.values())))

        return informed

    def _guessed(self, state: TaskState, count: int, example: Example) -> Whom:
        """Model shown in a rehearsal: the item's own reply, once for each reply to another item
        that will be shown.
        """
        row = next(row for row in self.table.rows if str(row["id"]) == str(state.sample_id))
        text = example(row, Acts([state.store_as(Record).acts])) if count else None
        return _informed("provider/another-model", [text or ""] * count)

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

        shown = [f"{OTHER * (self.arms == ('other',))}{key}" for key in keys]
        name = registry_info(scorer).name.rpartition("/")[2]
        return Task(
            dataset=dataset_of(self.table.rows, to_sample, self.table.name),
            solver=solvers[0] if len(solvers) == 1 else list(solvers),
            scorer=scorer,
            epochs=None if epochs is None else Epochs(epochs, []),
            continue_on_fail=True,
            early_stopping=leave_out_failed(self.acts, self.answers),
            headline_metric=headline,
            viewer=worst_first(name, *shown) if keys else None,
            version=self.table.version(version),
            metadata={**ask.task_metadata(self.table), **(about or {})},
        )

    def _sample(
        self, row: Row, sample: Callable[[Row], Sample] | None, metadata: Mapping[str, Any]
    ) -> Sample:
        made = sample(row) if sample else Sample(id=row["id"], input=row[self.columns[0]])
        made.metadata = {**metadata, **(made.metadata or {}), **groups_of(row)}
        return made


def worst_first(scorer: str, *keys: str) -> ViewerConfig:
    """Inspect's list of samples with the wrong predictions on top, each with its truth in the
    answer column.

    Args:
        scorer: Name of the scorer.
        keys: Keys of the decisions to sort by.
    """
    shown = [
        TaskSamplesColumn(id=name)
        for name in ("sampleStatus", "sampleId", "epoch", "input", "answer")
    ]
    columns = [
        *shown,
        *(TaskSamplesColumn.score(scorer, key) for key in keys),
        TaskSamplesColumn(id="error"),
    ]
    sort = [TaskSamplesSort.score(scorer, key) for key in keys]
    return ViewerConfig(
        task_samples_view=TaskSamplesView(name="worst first", columns=columns, sort=sort)
    )
