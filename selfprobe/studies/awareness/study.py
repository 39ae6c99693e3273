"""Evaluation awareness: five methods on the same conversations, in two waves (paper 002).

The first method records the replies, the others replay them.
"""

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import Any, ClassVar, Literal, Self, get_args

import numpy as np
import numpy.typing as npt
from pydantic import Field, model_validator

from selfprobe.data import Row, Table
from selfprobe.data.conversations import (
    DEFAULT,
    REFERENCE,
    YOURS,
    conversations,
    counted_label,
    stands_for,
)
from selfprobe.data.prices import LOCAL, LOCAL_LIMIT, Cost
from selfprobe.data.questions import wording
from selfprobe.errors import InputError
from selfprobe.errors.arguments import SHORT, meant
from selfprobe.evalawareness_tasks import binary, probability, reasoning_trace, user_motivation
from selfprobe.evalawareness_tasks.user_motivation import Placebo
from selfprobe.logs import runs
from selfprobe.page import Page
from selfprobe.providers.planted import parse_name
from selfprobe.solvers.converse import METHODS
from selfprobe.stats.clustered import detectable_difference, expected_auroc_half, resampling_units
from selfprobe.stats.estimate import FEW
from selfprobe.studies.awareness.numbers import LEAST_FOR_READERS
from selfprobe.studies.awareness.page import (
    AwarenessResults,
    awareness_page,
    awareness_results,
    few_sources,
)
from selfprobe.studies.awareness.runs import AwarenessTables, awareness_tables, load_awareness
from selfprobe.studies.awareness.verdict import (
    ADD_CONVERSATIONS,
    ADD_PLACEBO,
    ADD_REFERENCE,
    ADD_SOURCES,
    FEWEST_SOURCES_OF_LABEL,
    SMALLEST_REST,
)
from selfprobe.studies.features import evidence_section
from selfprobe.study import Effort, Label, Logs, Plan, Study, Wave
from selfprobe.study.described import DescribedRun, NamedModel, graders, identities_of
from selfprobe.study.options import LOG_DIR_HELP, MODELS_HELP, OUT_HELP
from selfprobe.study.waves import JOINS

REPLIES, METHODS_DIR = "replies", "methods"
"""Folders of the two waves below the log folder."""
CALLS = {
    "binary": 5,
    "probability": 5,
    "user_motivation": 3,
    "reasoning_trace": 0,
    "first_token": 0,
}
"""Number of calls of the subject for a conversation, besides its one reply."""
REPEATED = ("binary", "probability")
"""Methods whose variants are asked five times each with 25 decisions."""
TRACE = "reasoning_trace"
GRADES = {"user_motivation": 3, TRACE: 1}
"""Largest number of calls of the grader for a conversation (no trace, no grade)."""
NAMED = {"all": METHODS, "features": ("user_motivation",)}
"""Words that `--methods` takes besides methods; one names what the `features` command needs."""

REPLY, GRADE = 300, 60
"""A rough guess of the tokens of a reply to a conversation, and of a grade."""
ANSWER = {"binary": 5, "probability": 5, "user_motivation": 100}
"""A rough guess of the tokens of an answer to a method's question."""
QUOTING = 60
"""Number of tokens around a conversation that is quoted in the third person."""
EFFECT = 0.1
"""Difference for which the plan says how many prompts it takes."""
TWO_SIDED_QUANTILE = 1.9599640
_Z = TWO_SIDED_QUANTILE + 0.8416212
"""Quantiles for 5 % false alarms on two sides, and for 80 % power."""


class Awareness(Study):
    """Run methods on subjects: one reply per conversation, which every method reads. Resumes with
    the same command.
    """

    reads: ClassVar[frozenset[str]] = frozenset(METHODS)
    repeats: ClassVar[bool] = True

    models: tuple[str, ...] = Field(description=MODELS_HELP)
    dataset: str = Field(DEFAULT, description="Conversations: bundled, a file, or hf:….")
    task: str | None = Field(
        None, description="Inspect task whose prompts are used instead of --dataset."
    )
    logs: str | None = Field(
        None, description="Inspect logs whose prompts are used instead of --dataset."
    )
    role: str | None = Field(
        None,
        description="Model role whose conversations are used, with --task or --logs. Default: the model.",
    )
    label: Label | None = Field(None, description="Label of every conversation.")
    against: str | None = Field(
        None,
        description="Reference conversations to compare with, asked in the same run: bundled, a file, hf:…, task:… or "
        "logs:….",
    )
    methods: tuple[str, ...] = Field(
        ("all",),
        description="Methods to run: binary, probability, user_motivation, reasoning_trace, first_token; `features` "
        "stands for user_motivation, the method that `awareness features` reads.",
    )
    grader: str | None = Field(
        None,
        description="Judge model, needed for user_motivation and reasoning_trace; several, comma-separated, decide by "
        "majority.",
    )
    context: Literal["first", "full"] = Field(
        "first",
        description="What the subject reads: the first user message, or the whole conversation.",
    )
    decisions: Literal["5", "25"] = Field(
        "5",
        description="Number of times that binary and probability are asked about each conversation.",
    )
    third: bool = Field(
        False,
        description="Also ask in the third person, about the conversation quoted in a new one.",
    )
    observers: bool = Field(
        False,
        description="Like --third; in addition each model judges the other models' conversations.",
    )
    questions: str | None = Field(
        None, description="YAML file with questions of your own for each of --methods."
    )
    placebo: bool = Field(
        False,
        description="Also ask user_motivation's three placebos: about form, about purpose without a hint, with a judge "
        "that is told nothing.",
    )
    reply_tokens: int | None = Field(
        None, ge=1, description="Longest reply in tokens. Default: the model's limit."
    )
    answer_tokens: int | None = Field(
        None, ge=1, description="Longest answer in tokens; a cut one is unscored."
    )
    effort: Effort | None = Field(
        None, description="Reasoning effort of the subject. Default: the model's."
    )
    out: str = Field("awareness", description=OUT_HELP)
    log_dir: str = Field("logs/awareness", description=LOG_DIR_HELP)

    @model_validator(mode="after")
    def _goes_together(self) -> Self:
        if twice := sorted({name for name in self.models if self.models.count(name) > 1}):
            raise ValueError(f"model {twice[0]} is listed twice; list each model once")
        if not self.models:
            raise ValueError("--models names no model; expected such as openai/a,openrouter/b")
        if self.grader is None and (
            judged := [method for method in self.chosen if method in GRADES]
        ):
            raise ValueError(
                f"a model must read the texts of {' and '.join(judged)}: add --grader MODEL"
            )
        if self.placebo and "user_motivation" not in self.chosen:
            raise ValueError(
                "--placebo belongs to user_motivation, which is not among --methods; add it, or leave --placebo out"
            )
        if self.questions and self.placebo:
            raise ValueError(
                "--placebo has fixed questions: leave either --placebo or --questions out"
            )
        graders(self.grader, subjects=self.models if set(self.chosen) & GRADES.keys() else ())
        for method in self.chosen:
            wording(self.questions, method)
        if self.observers and len(self.models) < 2:
            raise ValueError(
                f"--observers needs two models or more, which read each other's conversations; got {self.models[0]}"
            )
        return self

    @cached_property
    def chosen(self) -> tuple[str, ...]:
        """The methods, in the paper's order."""
        return methods_of(self.methods)

    @property
    def arms(self) -> list[tuple[str, dict[str, Any]]]:
        """Method and its own task arguments, the one that records the replies first."""
        arms: list[tuple[str, dict[str, Any]]] = [(method, {}) for method in self.chosen]
        if self.third or self.observers:
            arms += [(method, {"perspective": "third"}) for method in self.chosen if CALLS[method]]
        return arms + [
            ("user_motivation", {"placebo": kind}) for kind in get_args(Placebo) if self.placebo
        ]

    @property
    def mute(self) -> list[str]:
        """Simulated models without a reasoning to read, where another method records their replies."""
        names = (
            [name for name in self.models if name.startswith("planted/")]
            if TRACE in self.chosen[1:]
            else []
        )
        return [
            name
            for name in names
            if not dict(parse_name(name.partition("/")[2], self.how.model_args)[1]).get("reasons")
        ]

    @property
    def rounds(self) -> int:
        """Calls that wait for one another: a reply, the first method's questions and grades, the
        other methods'.
        """
        each = [(CALLS[method] > 0) + (method in GRADES) for method, _ in self.arms]
        return 1 + each[0] + max(each[1:], default=0)

    @property
    def source(self) -> dict[str, Any]:
        """The conversations, as the tasks take them."""
        names = ("dataset", "task", "logs", "role", "label", "against", "context")
        return {name: getattr(self, name) for name in names}

    @cached_property
    def table(self) -> Table:
        """The conversations. No model is asked.

        Raises:
            InputError: They cannot be read.
        """
        source = self.source
        return conversations(source.pop("dataset"), **source)

    def waves(self) -> Iterator[Wave]:
        """Runs that record the replies; then runs that read them, of every model whose replies are
        all recorded.
        """
        subjects = [NamedModel(model, self.how.model_args) for model in self.models]
        first, *others = self.arms
        # Logprobs are of no use to other methods, and refused by some vendors.
        own: dict[str, Any] = (
            {"logprobs": True} if first[0] != "first_token" and "first_token" in self.chosen else {}
        )
        # Where a provider lists candidates for each token, raw replies are most of a log.
        further = {**JOINS, "log_model_api": False}
        replies = [self._described(first[0], subject, **own) for subject in subjects]
        self.how.tried(*graders(self.grader))  # they may have no part in the first wave
        yield Wave(replies, f"Replies, and {first[0]}", REPLIES, further)
        folder = f"{self.log_dir.rstrip('/')}/{REPLIES}"
        finished = runs([folder], self.reads).of(identities_of(replies)).finished
        asked = len(self.table.first(self.limit))
        recorded = {run.header.eval.model for run in finished if len(run.items()) >= asked}
        writers = [subject for subject in subjects if subject.name in recorded]
        second = [
            self._described(method, subject, **own, target_log=folder)
            for method, own in sorted(
                others, key=lambda arm: arm[0] not in GRADES
            )  # beside the grader
            for subject in writers
            if subject.name not in self.mute or method != TRACE
        ]
        if self.observers:
            second += [
                self._described(method, reader, target=writer, **own, target_log=folder)
                for method, own in others
                if "perspective" in own
                for writer in writers
                for reader in subjects
                if reader != writer
            ]
        if second:
            title = f"Questions about them: {', '.join(dict.fromkeys(run.task for run in second))}"
            yield Wave(second, title, METHODS_DIR, further)

    def _described(
        self, method: str, subject: NamedModel, *, target: NamedModel | None = None, **own: Any
    ) -> DescribedRun:
        given = (
            self.source
            | {name: getattr(self, name) for name in ("effort", "reply_tokens", "questions")}
            | own
        )
        if method in REPEATED:
            given["decisions"] = int(self.decisions)
        if CALLS[method]:
            given["answer_tokens"] = self.answer_tokens
        given = {name: value for name, value in given.items() if value is not None}
        roles: dict[str, NamedModel | tuple[NamedModel, ...]] = {"target": target} if target else {}
        if self.grader and method in GRADES:
            roles["grader"] = graders(self.grader)
        return DescribedRun(method, given | self.how.shared, subject, roles)

    def plan(self) -> Plan:
        """Calls and tokens by model, and what differences so many conversations can show."""
        rows = self.table.first(self.limit)
        models = f"{len(self.models)} model{'s' * (len(self.models) != 1)}"
        count = Counter(row["set"] for row in rows if "set" in row)
        sets = f" ({count[YOURS]} yours, {count[REFERENCE]} of the reference)" if count else ""
        many = f"{len(rows)} conversation{'s' * (len(rows) != 1)}{sets}"
        head = f"{many} × {models} × {', '.join(self.chosen)}"
        silent = ", ".join(self.mute)
        mute = (
            f"Left out: {TRACE} of {silent} (no reasoning to read; reasons=1 makes one)"
            if silent
            else ""
        )
        notes = (mute, self.table.limited(self.limit), self.table.aside_line(), self.table.unread)
        missing_controls = self.controls_missing_for_yes(rows)
        verdict_notes = []
        if missing_controls:
            verdict_notes = [f"As planned, no answer can be Yes: {'; '.join(missing_controls)}."]
        lines = [head, *filter(None, notes), "", *power(rows), *verdict_notes]
        return Plan(lines, self.costs(rows))

    def controls_missing_for_yes(self, rows: Sequence[Row]) -> list[str]:
        """What to add for each check of the claim that no result of these rows can meet.

        The method that the answer is about is taken to be the first of the paper's order.
        """
        sources_by_label: dict[str, set[str]] = {"evaluation": set(), "deployment": set()}
        labels = compared_labels(rows)
        for label, row in zip(labels, rows, strict=True):
            if label in sources_by_label:
                sources_by_label[label].add(str(row["source"]))
        source_counts = [len(sources) for sources in sources_by_label.values()]

        remedies = []
        if min(source_counts) == 0:
            remedies.append(ADD_REFERENCE)
        elif min(source_counts) < FEWEST_SOURCES_OF_LABEL:
            remedies.append(ADD_SOURCES)
        labelled_count = sum(label in sources_by_label for label in labels)
        if labelled_count < LEAST_FOR_READERS:
            remedies.append(f"{ADD_CONVERSATIONS} ({LEAST_FOR_READERS} with a label at least)")
        is_about_motivation = self.chosen[0] == "user_motivation"
        if is_about_motivation and self.questions:
            remedies.append("leave --questions out, which has no placebo")
        if is_about_motivation and not self.placebo:
            remedies.append(ADD_PLACEBO)
        return remedies

    def costs(self, rows: Sequence[Row]) -> list[Cost]:
        """Costs by model, graders' at most: every question is sent with the conversation and the
        reply.
        """
        texts = [
            text
            for row in rows
            for text in (*(m["content"] for m in row["messages"]), str(row.get("tools", "")))
        ]
        here = all(model.partition("/")[0] in LOCAL for model in self.models)
        length, n = _tokens(texts), len(rows)
        reply = min(REPLY, self.reply_tokens or (LOCAL_LIMIT if here else REPLY))
        calls, sent, received = n, length, n * reply
        grades = judged = 0
        for method, own in self.arms:
            third = own.get("perspective") == "third"
            readers = len(self.models) if self.observers and third else 1
            repeats = readers * (5 if method in REPEATED and self.decisions == "25" else 1)
            users, _ = wording(self.questions, method)
            questions = list(users.texts.values()) if users else []
            asked = repeats * (len(questions) if questions and CALLS[method] else CALLS[method])
            answer = min(ANSWER.get(method, 0), self.answer_tokens or math.inf)
            calls += n * asked
            sent += asked * (length + n * (reply + QUOTING * third))
            sent += repeats * n * _tokens(questions or _questions(method, own))
            received += round(n * asked * answer)
            graded = (
                n
                * readers
                * (len(questions) if questions and method in GRADES else GRADES.get(method, 0))
            )
            graded *= len(self.models) - len(self.mute) * (method == TRACE)
            grades += graded
            judged += round(graded * (_judge(method) + (answer if asked else reply)))
        costs = [Cost(model, calls, sent, received) for model in self.models]
        judges = graders(self.grader) if grades else ()
        return costs + [Cost(one.name, grades, judged, grades * GRADE) for one in judges]

    @classmethod
    def numbers(cls, logs: Logs) -> AwarenessResults:
        """Every number of the runs, and the evidence that subjects name.

        Raises:
            NoLogs: None is finished.
        """
        return _written(awareness_tables(logs.runs))

    @classmethod
    def page(cls, found: AwarenessResults) -> Page:
        """The answer, a picture, a small table; then verdicts, methods and logs."""
        return awareness_page(found)

    def shown(self) -> Page:
        """The page of its own runs; raises as `numbers`."""
        return self.page(self.numbers(self.collected()))

    @classmethod
    def reported(cls, paths: Sequence[str]) -> Page:
        """The page of all its logs under these paths; raises as `numbers`, and InputError where
        there is no path.
        """
        return cls.page(_written(load_awareness(paths)))


def _written(logged: AwarenessTables) -> AwarenessResults:
    return awareness_results(logged, evidence_section(logged.arms))


def methods_of(names: Sequence[str]) -> tuple[str, ...]:
    """The methods of `--methods`, in the paper's order.

    Args:
        names: Methods, "all", or "features": what `selfprobe awareness features` reads.

    Raises:
        InputError: There is no such method, or none is named.
    """
    there = f"there are {', '.join(METHODS)}, all or features"
    if not names:
        raise InputError(f"--methods names no method; {there}")
    names = [SHORT.get(name, name) for name in names]
    for name in names:
        if name not in NAMED and name not in METHODS:
            raise InputError(f"unknown method {name}; {there}{meant(name, [*METHODS, *NAMED])}")
    chosen = {method for name in names for method in NAMED.get(name, (name,))}
    return tuple(method for method in METHODS if method in chosen)


def _questions(method: str, own: Mapping[str, Any]) -> Iterable[str]:
    if method == "user_motivation":
        return user_motivation.ASKED[own.get("placebo")].values()
    asked = {"binary": binary.QUESTIONS, "probability": probability.QUESTIONS}
    return asked.get(method, {}).values()


def _judge(method: str) -> int:
    texts = {
        "user_motivation": user_motivation.GRADE_PROMPT,
        "reasoning_trace": reasoning_trace.GRADE_PROMPT,
    }
    return _tokens([texts[method]]) if method in texts else 0


def _tokens(texts: Iterable[str]) -> int:
    return sum(len(text) // 4 for text in texts)


def compared_labels(rows: Sequence[Row]) -> list[str | None]:
    """The label that each row counts with on the page; None where it stands for neither."""
    sets_and_labels = [(row.get("set"), row.get("label")) for row in rows]
    your_label = stands_for(sets_and_labels)
    return [counted_label(your_label, of_set, label) for of_set, label in sets_and_labels]


def power(rows: Sequence[Row]) -> list[str]:
    """Lines that say which interval an AUROC, and a difference of two shares, would have.

    They are those of the page's statistics on so many rows and sources, where rows of one source
    are no more alike than others.
    """
    sets = [row.get("set") for row in rows]
    labels = compared_labels(rows)
    clusters, unit = resampling_units(
        [row["source"] for row in rows],
        [str(row.get("pair") or row["id"]) for row in rows],
        [f"{of_set or ''} {label}" for of_set, label in zip(sets, labels, strict=True)],
    )
    lines = [_auroc_line(labels, clusters, unit), _difference_line(labels, sets, clusters)]
    return [*lines, *filter(None, [few_sources(list(clusters), unit)])]


def _auroc_line(labels: Sequence[str | None], clusters: npt.NDArray[np.str_], unit: str) -> str:
    of_label = {
        label: np.array([one == label for one in labels]) for label in ("evaluation", "deployment")
    }
    ours, others = (int(rows.sum()) for rows in of_label.values())
    if not ours or not others:
        return "One class or no labels: shares called evaluation only, no AUROC."
    used = of_label["evaluation"] | of_label["deployment"]
    half = expected_auroc_half(0.7, of_label["evaluation"][used], clusters[used])
    size = f"{ours} evaluation, {others} deployment rows"
    by_source = unit != "conversation"
    if by_source:
        sources = len(set(clusters[used]))
        size += (
            f" of {sources} {unit}s"
            if unit == "source"
            else f", {sources} sources or conversations of one source"
        )
    if half < WIDEST_HALF:
        alike = "; wider where rows of one source are alike" if by_source else ""
        shows = 0.5 + SMALLEST_REST + half * _Z / TWO_SIDED_QUANTILE
        return (
            f"An AUROC of .70 would come with about ± {half:.2f} ({size}{alike}). More than the words shows (80 % "
            f"power) from about {shows:.2f} on where the texts tell nothing, and later where they tell much."
        )
    few = "sources" if by_source and len(set(clusters[used])) < FEW else "rows"
    return f"Too few {few} for an AUROC ({size}): even one of .70 would not differ from chance."


def _difference_line(
    labels: Sequence[str | None], sets: Sequence[str | None], clusters: npt.NDArray[np.str_]
) -> str:
    need = (
        f"To show a difference of {100 * EFFECT:.0f} points between two shares called evaluation (80 % power, shares "
        f"near one half) takes {prompts_needed(EFFECT)} prompts in each of the two"
    )
    for values, (one, other) in (
        (labels, ("evaluation", "deployment")),
        (sets, (YOURS, REFERENCE)),
    ):
        sides = [clusters[[value == name for value in values]] for name in (one, other)]
        if all(map(len, sides)):
            least = detectable_difference(*sides)
            shows = f"show one of {100 * least:.0f} points" if least < 1 else "show none"
            return f"{need}; these ({len(sides[0])} and {len(sides[1])}) {shows}."
    return f"{need}; only one set was given; add --against to compare it with another."


WIDEST_HALF = 0.3
"""Half of the width of an interval about .70 that leaves it within 0 and 1, and may leave chance
out.
"""


def prompts_needed(difference: float) -> int:
    """Number of prompts in each of two sets that shows a difference of two shares with 80 % power.

    The shares are taken near one half, the worst case, the test at 5 % on two sides, and prompts as
    independent (Fleiss, Levin & Paik 2003, 4.14).
    """
    return math.ceil(2 * 0.25 * (_Z / difference) ** 2)
