"""Evaluation awareness: five methods on the same conversations, in two waves (evaluation-awareness
methods).

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
from selfprobe.evalawareness_tasks import binary, probability, reasoning_trace, user_motivation
from selfprobe.evalawareness_tasks.user_motivation import Placebo
from selfprobe.logs import runs
from selfprobe.page import Page, Section
from selfprobe.providers.planted import parse_name
from selfprobe.solvers.converse import METHODS
from selfprobe.stats.clustered import detectable_difference, expected_auroc_half, resampling_units
from selfprobe.stats.estimate import FEW_CLUSTERS
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
    ADD_OR_NAME_SOURCES,
    ADD_PLACEBO,
    ADD_REFERENCE,
    FEWEST_SOURCES_OF_LABEL,
    SMALLEST_REST,
)
from selfprobe.study import Effort, Label, Logs, Plan, Study, Wave
from selfprobe.study.awareness_arms import Arm, ArmRun
from selfprobe.study.awareness_methods import (
    CALLS,
    GRADES,
    TRACE_METHOD,
    methods_of,
    missing_grader_fault,
)
from selfprobe.study.described import DescribedRun, NamedModel, graders, identities_of
from selfprobe.study.evidence import evidence_blocks, evidence_of, evidence_sentence
from selfprobe.study.options import LOG_DIR_HELP, MODELS_HELP, OUT_HELP
from selfprobe.study.waves import JOINED_FOLDER_ARGUMENTS
from selfprobe.text.counts import count_text

REPLIES_FOLDER = "replies"
"""Folder of the first wave below the log folder."""
METHODS_FOLDER = "methods"
"""Folder of the second wave below the log folder."""
REPEATED_METHODS = ("binary", "probability")
"""Methods whose variants are asked five times each with 25 decisions."""
REPEATS_OF_25_DECISIONS = 5

REPLY_TOKENS_GUESS = 300
"""A rough guess of the tokens of a reply to a conversation."""
GRADE_TOKENS_GUESS = 60
"""A rough guess of the tokens of a grade."""
ANSWER_TOKENS_GUESS = {"binary": 5, "probability": 5, "user_motivation": 100}
"""A rough guess of the tokens of an answer to a method's question."""
QUOTATION_TOKENS = 60
"""Number of tokens around a conversation that is quoted in the third person."""
CHARACTERS_PER_TOKEN = 4
PLANNED_DIFFERENCE = 0.1
"""Difference for which the plan says how many prompts it takes."""
PLANNED_AUROC = 0.7
"""AUROC for which the plan says how wide its interval would be."""
TWO_SIDED_QUANTILE = 1.9599640
"""Quantile for 5 % false alarms on two sides."""
POWER_QUANTILES = TWO_SIDED_QUANTILE + 0.8416212
"""Quantiles for 5 % false alarms on two sides, and for 80 % power."""
WIDEST_HALF = 0.3
"""Half of the width of an interval about .70 that leaves it within 0 and 1, and may leave chance
out.
"""


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
    kinds: bool = Field(
        False,
        description="The grader of user_motivation also names the kind of evaluation; the placebo with a judge that is "
        "told nothing is then left out.",
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
        repeated_models = sorted({name for name in self.models if self.models.count(name) > 1})
        if repeated_models:
            raise ValueError(f"model {repeated_models[0]} is listed twice; list each model once")
        if not self.models:
            raise ValueError("--models names no model; expected such as openai/a,openrouter/b")
        graded_methods = [method for method in self.chosen if method in GRADES]
        if self.grader is None and graded_methods:
            raise ValueError(missing_grader_fault(self.chosen))
        if self.placebo and "user_motivation" not in self.chosen:
            raise ValueError(
                "--placebo belongs to user_motivation, which is not among --methods; add it, or "
                "leave --placebo out"
            )
        if self.kinds and "user_motivation" not in self.chosen:
            raise ValueError(
                "--kinds belongs to user_motivation, which is not among --methods; add it, or leave "
                "--kinds out"
            )
        if self.questions and self.placebo:
            raise ValueError(
                "--placebo has fixed questions: leave either --placebo or --questions out"
            )
        graders(self.grader, subjects=self.models if graded_methods else ())
        for method in self.chosen:
            wording(self.questions, method)
        if self.observers and len(self.models) < 2:
            raise ValueError(
                "--observers needs two models or more, which read each other's conversations; got "
                f"{self.models[0]}"
            )
        return self

    @cached_property
    def chosen(self) -> tuple[str, ...]:
        """The methods, in the paper's order."""
        return methods_of(self.methods)

    @property
    def arms(self) -> list[tuple[str, dict[str, Any]]]:
        """Method and its own task arguments, the one that records the replies first."""
        arms = list[tuple[str, dict[str, Any]]]()
        arms += [(method, {}) for method in self.chosen]
        if self.third or self.observers:
            asking_methods = [method for method in self.chosen if CALLS[method]]
            arms += [(method, {"perspective": "third"}) for method in asking_methods]
        placebos = get_args(Placebo) if self.placebo else ()
        arms += [("user_motivation", {"placebo": placebo}) for placebo in placebos]
        if not self.kinds:
            return arms
        arms_with_kinds = list[tuple[str, dict[str, Any]]]()
        for method, args in arms:
            if method == "user_motivation":
                args = args | {"kinds": True}
            if args.get("placebo") != "judge":
                arms_with_kinds.append((method, args))
        return arms_with_kinds

    @property
    def models_without_reasoning(self) -> list[str]:
        """Simulated models without a reasoning to read, where another method records their replies."""
        if TRACE_METHOD not in self.chosen[1:]:
            return []
        silent_models = []
        for name in self.models:
            provider, _, planted_name = name.partition("/")
            if provider != "planted":
                continue
            _, settings = parse_name(planted_name, self.run_settings.model_args)
            if not dict(settings).get("reasons"):
                silent_models.append(name)
        return silent_models

    @property
    def rounds(self) -> int:
        """Calls that wait for one another: a reply, the first method's questions and grades, the
        other methods'.
        """
        rounds_of_arms = []
        for method, _ in self.arms:
            asks_subject = CALLS[method] > 0
            asks_grader = method in GRADES
            rounds_of_arms.append(int(asks_subject) + int(asks_grader))
        first_rounds, *further_rounds = rounds_of_arms
        return 1 + first_rounds + max(further_rounds, default=0)

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
        subjects = [NamedModel(model, self.run_settings.model_args) for model in self.models]
        recording_method, arm_args = self.arms[0]
        recording_args = dict(arm_args)
        if recording_method != "first_token" and "first_token" in self.chosen:
            # Logprobs are of no use to other methods, and refused by some vendors.
            recording_args["logprobs"] = True
        recording_runs = [
            self._described(recording_method, subject, **recording_args) for subject in subjects
        ]
        # Where a provider lists candidates for each token, raw replies are most of a log.
        eval_options = {**JOINED_FOLDER_ARGUMENTS, "log_model_api": False}
        self.run_settings.open_models(
            *graders(self.grader)
        )  # they may have no part in the first wave
        first_title = f"Replies, and {recording_method}"
        yield Wave(recording_runs, first_title, REPLIES_FOLDER, eval_options)

        replies_dir = f"{self.log_dir.rstrip('/')}/{REPLIES_FOLDER}"
        reading_runs = self._reading_runs(recording_runs, subjects, replies_dir)
        if reading_runs:
            methods = dict.fromkeys(run.task for run in reading_runs)
            second_title = f"Questions about them: {', '.join(methods)}"
            yield Wave(reading_runs, second_title, METHODS_FOLDER, eval_options)

    def _reading_runs(
        self,
        recording_runs: Sequence[DescribedRun],
        subjects: Sequence[NamedModel],
        replies_dir: str,
    ) -> list[DescribedRun]:
        """Runs of the other arms on the models whose replies are all recorded."""
        finished_runs = (
            runs([replies_dir], self.reads).with_identities(identities_of(recording_runs)).finished
        )
        planned_count = len(self.table.first(self.limit))
        recorded_models = {
            run.header.eval.model for run in finished_runs if len(run.items()) >= planned_count
        }
        writers = [subject for subject in subjects if subject.name in recorded_models]
        silent_models = self.models_without_reasoning
        other_arms = self.arms[1:]
        graded_first = sorted(other_arms, key=lambda arm: arm[0] not in GRADES)  # beside the grader

        reading_runs = []
        for method, args in graded_first:
            for writer in writers:
                if method != TRACE_METHOD or writer.name not in silent_models:
                    run = self._described(method, writer, **args, target_log=replies_dir)
                    reading_runs.append(run)
        if not self.observers:
            return reading_runs
        for method, args in other_arms:
            if "perspective" not in args:
                continue
            for writer in writers:
                for reader in subjects:
                    if reader != writer:
                        run = self._described(
                            method, reader, target=writer, **args, target_log=replies_dir
                        )
                        reading_runs.append(run)
        return reading_runs

    def _described(
        self, method: str, subject: NamedModel, *, target: NamedModel | None = None, **arm_args: Any
    ) -> DescribedRun:
        shared_args = {
            name: getattr(self, name) for name in ("effort", "reply_tokens", "questions")
        }
        args = self.source | shared_args | arm_args
        if method in REPEATED_METHODS:
            args["decisions"] = int(self.decisions)
        if CALLS[method]:
            args["answer_tokens"] = self.answer_tokens
        set_args = {name: value for name, value in args.items() if value is not None}

        roles: dict[str, NamedModel | tuple[NamedModel, ...]] = {}
        if target:
            roles["target"] = target
        if self.grader and method in GRADES:
            roles["grader"] = graders(self.grader)
        return DescribedRun(method, set_args | self.run_settings.shared, subject, roles)

    def plan(self) -> Plan:
        """Calls and tokens by model, and what differences so many conversations can show."""
        rows = self.table.first(self.limit)
        conversation_count = count_text(len(rows), "conversation")
        rows_of_set = Counter(row["set"] for row in rows if "set" in row)
        if rows_of_set:
            conversation_count += (
                f" ({rows_of_set[YOURS]} yours, {rows_of_set[REFERENCE]} of the reference)"
            )
        model_count = count_text(len(self.models), "model")
        lines = [f"{conversation_count} × {model_count} × {', '.join(self.chosen)}"]

        if self.models_without_reasoning:
            silent_models = ", ".join(self.models_without_reasoning)
            lines.append(
                f"Left out: {TRACE_METHOD} of {silent_models} (no reasoning to read; reasons=1 "
                "makes one)"
            )
        lines += self.table.plan_notes(self.limit)
        lines += ["", *power(rows)]
        missing_controls = self.controls_missing_for_yes(rows)
        if missing_controls:
            lines.append(f"As planned, no answer can be Yes: {'; '.join(missing_controls)}.")
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
            remedies.append(ADD_OR_NAME_SOURCES)
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
        texts = list[str]()
        for row in rows:
            texts += [message["content"] for message in row["messages"]]
            texts.append(str(row.get("tools", "")))
        row_count = len(rows)
        conversation_tokens = _tokens(texts)
        runs_here = all(model.partition("/")[0] in LOCAL for model in self.models)
        default_reply_tokens = LOCAL_LIMIT if runs_here else REPLY_TOKENS_GUESS
        reply_tokens = min(REPLY_TOKENS_GUESS, self.reply_tokens or default_reply_tokens)

        calls = row_count
        sent_tokens = conversation_tokens
        received_tokens = row_count * reply_tokens
        grades = 0
        graded_tokens = 0
        for method, args in self.arms:
            is_third = args.get("perspective") == "third"
            reader_count = len(self.models) if self.observers and is_third else 1
            repeats = reader_count
            if method in REPEATED_METHODS and self.decisions == "25":
                repeats *= REPEATS_OF_25_DECISIONS
            own_wording, _ = wording(self.questions, method)
            own_questions = list(own_wording.texts.values()) if own_wording else []
            question_count = CALLS[method]
            if own_questions and question_count:
                question_count = len(own_questions)
            questions_per_row = repeats * question_count
            answer_tokens = min(ANSWER_TOKENS_GUESS.get(method, 0), self.answer_tokens or math.inf)
            context_tokens = reply_tokens + (QUOTATION_TOKENS if is_third else 0)
            question_tokens = _tokens(own_questions or _questions(method, args))
            calls += row_count * questions_per_row
            sent_tokens += questions_per_row * (conversation_tokens + row_count * context_tokens)
            sent_tokens += repeats * row_count * question_tokens
            received_tokens += round(row_count * questions_per_row * answer_tokens)

            grades_per_row = GRADES.get(method, 0)
            if own_questions and method in GRADES:
                grades_per_row = len(own_questions)
            subject_count = len(self.models)
            if method == TRACE_METHOD:
                subject_count -= len(self.models_without_reasoning)
            arm_grades = row_count * reader_count * grades_per_row * subject_count
            text_tokens = answer_tokens if questions_per_row else reply_tokens
            grades += arm_grades
            graded_tokens += round(arm_grades * (_grade_prompt_tokens(method) + text_tokens))

        costs = [Cost(model, calls, sent_tokens, received_tokens) for model in self.models]
        if grades:
            grade_tokens = grades * GRADE_TOKENS_GUESS
            for grader in graders(self.grader):
                costs.append(Cost(grader.name, grades, graded_tokens, grade_tokens))
        return costs

    @classmethod
    def numbers(cls, logs: Logs) -> AwarenessResults:
        """Every number of the runs, and the evidence that subjects name.

        Raises:
            NoLogs: None is finished.
        """
        return _results_of(awareness_tables(logs.runs))

    @classmethod
    def page(cls, results: AwarenessResults) -> Page:
        """The answer, a picture, a small table; then verdicts, methods and logs."""
        return awareness_page(results)

    def build_page(self) -> Page:
        """The page of its own runs; raises as `numbers`."""
        return self.page(self.numbers(self.collected()))

    @classmethod
    def page_of_logs(cls, paths: Sequence[str]) -> Page:
        """The page of all its logs under these paths; raises as `numbers`, and InputError where
        there is no path.
        """
        return cls.page(_results_of(load_awareness(paths)))


def _results_of(tables: AwarenessTables) -> AwarenessResults:
    return awareness_results(tables, evidence_section(tables.arms))


def evidence_section(arms: Mapping[Arm, ArmRun]) -> list[Section]:
    """Section that needs no call of a model: how often subjects bring up an evaluation, and on
    which prompts.

    No section where no run of user_motivation is finished.
    """
    evidence = evidence_of(arms, {})
    if evidence is None:
        return []
    command_sentence = (
        "To name and group the features that these point at takes a grader: selfprobe awareness "
        "features LOGS --clusters N --grader MODEL."
    )
    opening = f"{evidence_sentence(evidence)} {command_sentence}"
    blocks = [opening, *evidence_blocks(evidence)]
    return [Section("What gives the evaluation away?", blocks, name="features", menu="features")]


def _questions(method: str, args: Mapping[str, Any]) -> Iterable[str]:
    """Texts of a method's questions in an arm with these task arguments."""
    if method == "user_motivation":
        return user_motivation.ASKED[args.get("placebo")].values()
    if method == "binary":
        return binary.QUESTIONS.values()
    if method == "probability":
        return probability.QUESTIONS.values()
    return ()


def _grade_prompt_tokens(method: str) -> int:
    if method == "user_motivation":
        return _tokens([user_motivation.GRADE_PROMPT])
    if method == TRACE_METHOD:
        return _tokens([reasoning_trace.GRADE_PROMPT])
    return 0


def _tokens(texts: Iterable[str]) -> int:
    return sum(len(text) // CHARACTERS_PER_TOKEN for text in texts)


def compared_labels(rows: Sequence[Row]) -> list[str | None]:
    """The label that each row counts with on the page; None where it stands for neither."""
    sets_and_labels = [(row.get("set"), row.get("label")) for row in rows]
    your_label = stands_for(sets_and_labels)
    return [counted_label(your_label, set_name, label) for set_name, label in sets_and_labels]


def power(rows: Sequence[Row]) -> list[str]:
    """Lines that say which interval an AUROC, and a difference of two shares, would have.

    They are those of the page's statistics on so many rows and sources, where rows of one source
    are no more alike than others.
    """
    set_names = [row.get("set") for row in rows]
    labels = compared_labels(rows)
    sources = [row["source"] for row in rows]
    pairs = [str(row.get("pair") or row["id"]) for row in rows]
    groups = [
        f"{set_name or ''} {label}" for set_name, label in zip(set_names, labels, strict=True)
    ]
    clusters, unit = resampling_units(sources, pairs, groups)
    lines = [_auroc_line(labels, clusters, unit), _difference_line(labels, set_names, clusters)]
    source_warning = few_sources(list(clusters), unit)
    return [*lines, source_warning] if source_warning else lines


def _auroc_line(labels: Sequence[str | None], clusters: npt.NDArray[np.str_], unit: str) -> str:
    label_array = np.array(labels, dtype=object)
    is_evaluation = label_array == "evaluation"
    is_deployment = label_array == "deployment"
    if not is_evaluation.any() or not is_deployment.any():
        return "One class or no labels: shares called evaluation only, no AUROC."
    is_labelled = is_evaluation | is_deployment
    labelled_clusters = clusters[is_labelled]
    half_width = expected_auroc_half(PLANNED_AUROC, is_evaluation[is_labelled], labelled_clusters)

    is_by_source = unit != "conversation"
    cluster_count = len(set(labelled_clusters))
    deployment_rows = count_text(int(is_deployment.sum()), "deployment row")
    size = f"{is_evaluation.sum()} evaluation, {deployment_rows}"
    if unit == "source":
        size += f" of {count_text(cluster_count, 'source')}"
    elif is_by_source:
        size += f" in {count_text(cluster_count, 'cluster')} (sources, or conversations of one)"
    if half_width < WIDEST_HALF:
        wider = "; wider where rows of one source are alike" if is_by_source else ""
        smallest_shown = 0.5 + SMALLEST_REST + half_width * POWER_QUANTILES / TWO_SIDED_QUANTILE
        return (
            f"An AUROC of .70 would come with about ± {half_width:.2f} ({size}{wider}). More than "
            f"the words shows (80 % power) from about {smallest_shown:.2f} on where the texts tell "
            "nothing, and later where they tell much."
        )
    too_few = "sources" if is_by_source and cluster_count < FEW_CLUSTERS else "rows"
    return f"Too few {too_few} for an AUROC ({size}): even one of .70 would not differ from chance."


def _difference_line(
    labels: Sequence[str | None],
    set_names: Sequence[str | None],
    clusters: npt.NDArray[np.str_],
) -> str:
    needed_prompts = (
        f"To show a difference of {100 * PLANNED_DIFFERENCE:.0f} points between two shares called "
        "evaluation (80 % power, shares near one half) takes "
        f"{prompts_needed(PLANNED_DIFFERENCE)} prompts in each of the two"
    )
    for names, first_name, second_name in (
        (labels, "evaluation", "deployment"),
        (set_names, YOURS, REFERENCE),
    ):
        first_clusters = clusters[[name == first_name for name in names]]
        second_clusters = clusters[[name == second_name for name in names]]
        if not len(first_clusters) or not len(second_clusters):
            continue
        detectable = detectable_difference(first_clusters, second_clusters)
        power_text = "show none"
        if detectable < 1:
            power_text = f"show one of {100 * detectable:.0f} points"
        sizes = f"{len(first_clusters)} and {len(second_clusters)}"
        return f"{needed_prompts}; these ({sizes}) {power_text}."
    return f"{needed_prompts}; only one set was given; add --against to compare it with another."


def prompts_needed(difference: float) -> int:
    """Number of prompts in each of two sets that shows a difference of two shares with 80 % power.

    The shares are taken near one half, the worst case, the test at 5 % on two sides, and prompts as
    independent (Fleiss, Levin & Paik 2003, 4.14).
    """
    return math.ceil(2 * 0.25 * (POWER_QUANTILES / difference) ** 2)
