"""Self-knowledge from any logs: do models know in advance what they can do, beyond what the items
tell everybody?
"""

import math
from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Annotated, ClassVar, get_args

import numpy as np
from pydantic import Field, field_validator

from selfprobe.data.clusters import few_clusters
from selfprobe.data.outcomes import (
    LoggedOutcomes,
    OutcomeQuestions,
    When,
    logged_outcomes,
    models_in,
)
from selfprobe.data.prices import Cost
from selfprobe.errors import NO_RUN_ENDED_WELL, InputError, NoLogs
from selfprobe.errors.arguments import one_of
from selfprobe.introspect_tasks.outcome import PROMPT, About, asked_of
from selfprobe.logs import Identity, Runs
from selfprobe.page import (
    MOST_FINDINGS,
    MOST_TERMINAL_LINES,
    Block,
    Bullets,
    Figures,
    Page,
    Table,
    claim_page,
    models_or_runs,
    more_in_tables,
)
from selfprobe.page.columns import Heading, RowTable, columns_of
from selfprobe.page.numerals import interval_text, number, p_digits, p_value, percent
from selfprobe.page.plots import Picture, bar_rows, calibration_curves, curves, heat_map, scatter
from selfprobe.stats.claim import Claim, Verdict, ordered_claims
from selfprobe.stats.dimensions import Dimensions
from selfprobe.stats.estimate import FEW_CLUSTERS, Estimate, undefined
from selfprobe.stats.metacognition import RATING_COUNT
from selfprobe.stats.routing import routing
from selfprobe.studies.outcome_numbers import (
    BEYOND_ALPHA,
    FEWEST_OTHERS,
    INPUT_LENGTH,
    OBSERVERS_MARGIN,
    OTHER_RESULTS,
    OUTCOME_WORDS,
    SUCCESS_QUESTION,
    TEXT_ALONE,
    WHAT_HAPPENED,
    CrossMeans,
    OutcomeFacts,
    StatedChances,
    StatementRow,
    all_facts,
    cross_means,
    outcome_claim,
    solved_text,
    stated_chances,
)
from selfprobe.study import Effort, Logs, Plan, Study, Wave, with_runs
from selfprobe.study.described import DescribedRun, NamedModel
from selfprobe.study.options import LOG_DIR_HELP, MODELS_HELP, OUT_HELP
from selfprobe.text.counts import count_text

WITHOUT_LOG_NOTE = "Without a log of its own, so compared as an observer of others and not judged"
OUTCOME_TITLES = {
    "solve": "Do models know in advance what they can solve?",
    "refuse": "Do models know in advance what they will refuse?",
    "length": "Do models know in advance how long their replies will be?",
}
OUTCOME_METHOD = (
    "Each model was shown what the logs say was asked, and stated a probability; the truth is in "
    "the logs. AUROC is the share of pairs of items that it puts in the right order; .5 is "
    "nothing. Who knows which items are hard does so for every model. So what counts is what is "
    "left of a statement beyond the line through the mean of the other observers' statements (in "
    "logits, less what these tell of the observer's own outcomes), and how it ranks outcomes "
    "among items on which as many of the models succeeded (for refuse and length: refused, or "
    "wrote long). This holds where items come of domains in which models have other strengths, "
    "and where difficulty counts more for some models. Statements are exchanged among items of a "
    f"stratum; with clusters p is that of t. It counts as shown with a p below {BEYOND_ALPHA:g}, "
    "corrected for all models and questions (Holm). Every p is twice that of its one side, as "
    "intervals have two."
)
OUTCOME_CONTROLS_METHOD = (
    f"Yes needs {FEWEST_OTHERS} other models that were asked and that together rank the other "
    f"models' outcomes as well as the model does (by an AUROC of {OBSERVERS_MARGIN:g}). It must "
    "rank its own outcomes better than each of them, what is left of whose statements is computed "
    "alike, than a classifier of the text (words, cross-validated by text or cluster), than the "
    "length of the input and than it ranks the outcomes of any other model (each paired, p below "
    ".05). An observer's scores on another model are among items on which as many of the models "
    "but the observer succeeded, so that what it knows of itself does not count against it."
)
DOMAIN_SENTENCES = {
    True: (
        "Which models succeeded on an item is more than one skill each ({p}): items hold domains, "
        "or difficulty counts more for some models. Strata alone would then show self-knowledge "
        "where none is."
    ),
    False: "Nothing shows that models differ in more than one skill each ({p}).",
}
"""Whether hidden domains are seen → sentence."""
OUTCOME_SCORES_METHOD = (
    "Brier is the mean squared error: miscalibration less discrimination plus uncertainty "
    "(isotonic recalibration, no bins). Overconfidence is the mean stated chance less the share "
    "that happened. The calibration error is debiased. d' and criterion take a chance of one half "
    "and more for a yes. Risk is the share of failures when only the items with the highest "
    "chances are acted on. Intervals are 95 %, by item or cluster."
)
METACOGNITION_METHOD = (
    "M-ratio is meta-d′ / d′ (Maniscalco & Lau 2012): how well chances tell right from wrong, for how "
    f"often the model is right. Chances are {RATING_COUNT} ratings, by quantiles of each model's own. "
    "A logged item has no two classes of stimulus and answer, so d′ is that of a two-choice observer "
    "without a preferred side that is right as often (2 z of the share). M-ratio is absent unless "
    "more than half are shown to be right, and where chances separate right and wrong items wholly. "
    "With two answers 1 is ideal; with others 1 is no ceiling, and items of unlike difficulty raise "
    "it."
)
DIMENSIONS_METHOD = (
    "Dimensions of what the models state of themselves: eigenvalues of the correlations of their "
    "logits over items, above 95 % of those with the items of each model shuffled (parallel analysis; "
    "Horn 1965)."
)
SOLVED_METHOD = (
    "Solved while asked: the observer's reasoning holds the right answer of the item, or the one that "
    "the model gave in its log. Yes then needs a ranking of the items that were not solved, and one "
    "above a reader of the reasoning (words, cross-validated)."
)
ROUTING_METHOD = (
    "Price: to act gains the outcome, to ask for help gains 1 less the price, whatever the outcome. "
    "Thresholds are chosen on four fifths of the items or clusters and tried on the fifth; all of a "
    "row is of this one rule. The gain is that over the better of always acting and always asking; "
    "its interval is at least the exact one of the items on which the rule differs from it "
    "(Clopper & Pearson)."
)
CLUSTER_REMEDY = "--cluster takes another name in the samples' metadata"
"""What to do about few clusters."""


class Outcome(Study):
    """Do models know in advance what they can do? Asks each about the items of LOGS, of any Inspect
    task.

    Every other model's results and statements on the same items are compared with its own. Resumes
    with the same command.
    """

    reads: ClassVar[frozenset[str]] = frozenset({"outcome"})

    logs: tuple[str, ...] = Field(min_length=1, examples=["LOGS"])
    models: tuple[str, ...] = Field(min_length=1, description=MODELS_HELP)
    questions: tuple[str, ...] = Field(
        ("solve",), alias="ask", min_length=1, description="Questions: solve, refuse, length."
    )
    about: tuple[str, ...] = Field(
        ("self",),
        min_length=1,
        description=(
            "Model that a prompt asks about: self (you), other (another AI assistant), named."
        ),
    )
    when: When = Field(
        "before",
        description="Ask before the replies, or after them with the whole conversation shown.",
    )
    at: int | None = Field(
        None,
        ge=1,
        description="Number of messages that are shown. Default: those of the first call.",
    )
    score: str | None = Field(
        None, description="Scorer, or scorer.key, that solve is about. Default: the first one."
    )
    tokens: int | None = Field(
        None, ge=1, description="Tokens above which a reply is long. Default: each log's median."
    )
    cluster: str | None = Field(
        None, description="Metadata of the samples whose equal values are one unit of intervals."
    )
    answer_tokens: int | None = Field(
        None, ge=1, description="Longest answer in tokens; a cut one is unscored."
    )
    effort: Effort | None = Field(
        None, description="Reasoning effort of the observers. Default: none, or the least."
    )
    price: tuple[float, ...] | None = Field(
        None,
        description=(
            "Prices of help, in failures (.1,.3): what acting on high chances alone would gain."
        ),
    )
    out: str = Field("outcome", description=OUT_HELP)
    log_dir: str = Field("logs/outcome", description=LOG_DIR_HELP)

    @field_validator("about")
    @classmethod
    def _known(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        for name in value:
            one_of("about", name, get_args(About))
        if "self" not in value:
            raise InputError(
                f"about must hold self, with which the rest is compared, got {', '.join(value)}"
            )
        return value

    @field_validator("price")
    @classmethod
    def _are_prices(cls, prices: tuple[float, ...] | None) -> tuple[float, ...] | None:
        if prices is None:
            return None
        if not prices:
            raise InputError("price names no price; expected prices of help such as .1,.3")
        for price in prices:
            if not 0 < price < 1:
                raise InputError(
                    f"price must be above 0 and below 1, got {price:g}: it is what help "
                    "costs, as a share of the loss by one failure"
                )
        return tuple(sorted(set(prices)))

    @cached_property
    def asking(self) -> OutcomeQuestions:
        """Questions that are asked.

        Raises:
            InputError: An unknown question, or --at with --when after.
        """
        question_options = self.model_dump(include={"when", "at", "score", "tokens", "cluster"})
        return asked_of(self.questions, **question_options)

    @cached_property
    def cases(self) -> list[tuple[str, str, str]]:
        """Observer, target and whom the prompt names, one a run.

        What is asked before the reply about "you" or "another AI assistant" is the same for every
        target, so one run an observer does; what names the target or shows its reply is asked about
        each.
        """
        logged_models = models_in(self.logs)
        if not set(logged_models) & set(self.models):
            raise InputError(
                f"no log of {', '.join(self.models[:3])} in {', '.join(self.logs)}; there are "
                f"{', '.join(logged_models[:3])}"
            )

        shows_reply = self.when == "after"
        subjects = self.about
        if shows_reply and subjects == ("self",) and len(self.models) > 1:
            subjects = ("self", "other")

        cases = []
        for subject in subjects:
            asks_about_each = subject == "named" or (shows_reply and subject == "other")
            shows_own_reply = shows_reply and subject == "self"
            for observer in self.models:
                if asks_about_each:
                    targets = logged_models
                elif observer in logged_models:
                    targets = [observer]
                else:
                    targets = logged_models[:1]
                for target in targets:
                    if not shows_own_reply or target == observer:
                        cases.append((observer, target, subject))
        return cases

    def read(self, target: str) -> LoggedOutcomes:
        """The items of a target.

        Raises:
            InputError: See `data.outcomes.logged_outcomes`.
        """
        return logged_outcomes(self.logs, target, self.asking)

    def waves(self) -> Iterator[Wave]:
        """One run an observer; of prompts that name or show a target, one for each target too."""
        task_args = self.model_dump(
            include={"when", "at", "score", "tokens", "cluster", "answer_tokens", "effort"},
            exclude_none=True,
        )
        task_args |= self.run_settings.shared
        task_args |= {"logs": list(self.logs), "ask": list(self.asking.ask)}

        described_runs = []
        for observer, target, subject in self.cases:
            run_args = task_args | {"target": target, "about": subject}
            model = NamedModel(observer, self.run_settings.model_args)
            described_runs.append(DescribedRun("outcome", run_args, model))
        yield Wave(described_runs, "Stated chances")

    def plan(self) -> Plan:
        """One call an item and question of each run."""
        call_counts: dict[str, int] = defaultdict(int)
        sent_tokens: dict[str, int] = defaultdict(int)
        log_notes: dict[str, None] = {}
        cluster_by_item: dict[str, str] = {}
        for observer, target, _ in self.cases:
            logged = self.read(target)
            log_notes |= dict.fromkeys(logged.notes)
            for row in logged.table.first(self.limit):
                question_count = len(row["outcomes"])
                cluster_by_item[row["id"]] = row["cluster"]
                call_counts[observer] += question_count
                sent_tokens[observer] += question_count * (len(row["text"]) + len(PROMPT)) // 4

        logged_models = models_in(self.logs)
        lines = [
            f"{count_text(len(cluster_by_item), 'item')} × {', '.join(self.models)}, asked "
            f"{self.when} the reply: {', '.join(self.asking.ask)}",
            "One call an item, observer and question; logs are of "
            f"{count_text(len(logged_models), 'model')}.",
        ]
        silent_models = [model for model in logged_models if model not in self.models]
        if silent_models:
            lines.append(f"Not asked, their results are compared: {', '.join(silent_models[:5])}")
        unlogged_models = [model for model in self.models if model not in logged_models]
        if unlogged_models:
            lines.append(f"{WITHOUT_LOG_NOTE}: {', '.join(unlogged_models[:5])}")
        if len(logged_models) == 1:
            lines.append(
                "Without a second model's logs knowledge of the items cannot be told from "
                "self-knowledge."
            )
        if self.cluster:
            cluster_line = few_clusters(
                list(cluster_by_item.values()), rows="items", unit="cluster", remedy=CLUSTER_REMEDY
            )
            if cluster_line:
                lines.append(cluster_line)

        note_lines = list(log_notes)
        lines += note_lines[:MOST_TERMINAL_LINES]
        if len(note_lines) > MOST_TERMINAL_LINES:
            lines.append(count_text(len(note_lines) - MOST_TERMINAL_LINES, "more such line"))

        costs = []
        for model in self.models:
            answer_tokens = 5 * call_counts[model]
            costs.append(Cost(model, call_counts[model], sent_tokens[model], answer_tokens))
        return Plan(lines, costs)

    @classmethod
    def comparable(cls, runs: Runs) -> Runs:
        """The runs with the truth of the newest one: its score, tokens, moment and clusters."""
        if not runs.finished:
            return runs
        newest_truth = _truth_arguments(runs.finished[0].identity)
        identities = [run.identity for run in runs.counted]
        return runs.with_identities(
            [identity for identity in identities if _truth_arguments(identity) == newest_truth]
        )

    @classmethod
    def numbers(cls, logs: Logs) -> "OutcomeNumbers":
        """Statements of each model, with its outcomes and what the others stated and did.

        Raises:
            NoLogs: No run ended well.
        """
        stated = stated_chances(logs)
        if not stated.chances:
            raise NoLogs(NO_RUN_ENDED_WELL)
        matrices = {question: cross_means(stated, question) for question in stated.questions}
        return OutcomeNumbers(all_facts(stated), matrices, stated)

    def build_page(self) -> Page:
        """The page of the study's runs, with what help at --price would gain; raises as
        `Study.build_page`.
        """
        logs = self.collected()
        numbers = replace(self.numbers(logs), prices=self.price or ())
        return with_runs(self.page(numbers), logs.runs)

    @classmethod
    def page(cls, numbers: "OutcomeNumbers") -> Page:
        """The answer by model and question, with tables findings, dimensions, predictors,
        other_targets, stated and matrix; metacognition of solve; and routing where there are
        prices.
        """
        questions = numbers.stated.questions
        has_several = len(questions) > 1
        facts_by_subject = {subject_name(facts, has_several): facts for facts in numbers.facts}
        if not facts_by_subject:
            raise NoLogs(
                "no model was asked about itself, so nothing is known of any (--about self)"
            )

        claims = ordered_claims(
            [outcome_claim(facts, subject) for subject, facts in facts_by_subject.items()]
        )
        ordered_facts = {claim.subject: facts_by_subject[claim.subject] for claim in claims}
        facts_in_order = list(ordered_facts.values())
        answer_rows = [answer_row(claim, ordered_facts[claim.subject]) for claim in claims]
        finding_rows = [finding_row(claim, ordered_facts[claim.subject]) for claim in claims]

        pictures = [calibration_picture(ordered_facts), risk_picture(ordered_facts)]
        auroc_and_m_ratio = metacognition_picture(ordered_facts)
        if auroc_and_m_ratio is not None:
            pictures.insert(0, auroc_and_m_ratio)
        for question, matrix in numbers.matrices.items():
            matrix_heat_map = matrix_picture(question, matrix)
            if matrix_heat_map is not None:
                pictures.append(matrix_heat_map)

        dimensions_by_question = numbers.stated.dimensions_by_question
        method = [OUTCOME_METHOD, OUTCOME_CONTROLS_METHOD, OUTCOME_SCORES_METHOD]
        tables = {"findings": RowTable(FindingRow, finding_rows)}
        if SUCCESS_QUESTION in questions:
            method.append(METACOGNITION_METHOD)
            rated_rows = metacognition_rows(facts_in_order)
            tables["metacognition"] = RowTable(MetacognitionRow, rated_rows)
        if any(dimensions.count is not None for dimensions in dimensions_by_question.values()):
            method.append(DIMENSIONS_METHOD)
        tables |= {
            "dimensions": RowTable(DimensionRow, dimension_rows(dimensions_by_question)),
            "predictors": RowTable(PredictorRow, predictor_rows(facts_in_order)),
            "other_targets": RowTable(OtherTargetRow, other_target_rows(facts_in_order)),
            "stated": RowTable(StatementRow, numbers.stated.rows, on_page=False),
            "matrix": RowTable(CellRow, cell_rows(numbers.matrices)),
        }
        if numbers.stated.reasoning:
            method.append(SOLVED_METHOD)
        last_lines = []
        if numbers.prices:
            method.append(ROUTING_METHOD)
            routed_rows = routing_rows(numbers.stated, facts_in_order, numbers.prices)
            tables["routing"] = RowTable(RoutingRow, routed_rows)
            last_lines = routing_lines(routed_rows)

        title = OUTCOME_TITLES[questions[0]]
        if has_several:
            title = "Do models know in advance what they will do?"
        return claim_page(
            title,
            claims,
            replace(OUTCOME_WORDS, kind=models_or_runs(list(ordered_facts))),
            picture=sources_picture(ordered_facts),
            table=Table(answer_rows, columns_of(AnswerRow)),
            tables=tables,
            method=[
                *method,
                *dimension_lines(dimensions_by_question),
                *numbers.domain_lines,
                *numbers.omissions,
            ],
            notes={subject: outcome_notes(facts) for subject, facts in ordered_facts.items()},
            further_figures=[Figures(pictures)],
            last_lines=last_lines,
        )


def _truth_arguments(identity: Identity) -> dict[str, str]:
    """Arguments that say what counts as an outcome."""
    truth_names = ("score", "tokens", "when", "at", "cluster")
    return {name: value for name, value in identity.args if name in truth_names}


def subject_name(facts: OutcomeFacts, has_several_questions: bool) -> str:
    """Name of a model and question on the page."""
    name = f"{facts.run}, {facts.question}" if has_several_questions else facts.run
    return name.replace(" ", "\N{NO-BREAK SPACE}")


# ---- what is said of it


@dataclass(frozen=True)
class OutcomeNumbers:
    """Results of the logs."""

    facts: Sequence[OutcomeFacts]
    matrices: Mapping[str, CrossMeans]
    """Question → scores of every observer on every target."""
    stated: StatedChances
    prices: Sequence[float] = ()
    """Prices of help, in failures."""

    @property
    def omissions(self) -> list[Block]:
        """Blocks on what is left out, and why: statements, observers, logs and items."""
        stated = self.stated
        count_by_reason: dict[str, int] = defaultdict(int)
        for row in stated.rows:
            if row.unscored:
                count_by_reason[row.unscored.replace("_", " ")] += 1

        lines = []
        if count_by_reason:
            unscored_count = sum(count_by_reason.values())
            sorted_counts = sorted(count_by_reason.items(), key=lambda entry: -entry[1])
            reasons = ", ".join(f"{reason} {count}" for reason, count in sorted_counts)
            lines.append(
                f"Unscored: {unscored_count} of {count_text(len(stated.rows), 'statement')} "
                f"({reasons})."
            )

        judged_runs = {facts.run for facts in self.facts}
        unlogged_runs = [run for run in stated.observers if run not in judged_runs]
        if unlogged_runs:
            lines.append(f"{WITHOUT_LOG_NOTE}: {', '.join(unlogged_runs)}.")
        if not stated.notes:
            return list(lines)
        return [*lines, Bullets(stated.notes)]

    @property
    def domain_lines(self) -> list[str]:
        """Whether items hold domains in which models have other strengths, a line a question."""
        lines = []
        for question in self.stated.questions:
            domains_p = self.stated.domains_p(question)
            if not math.isnan(domains_p):
                p_text = f"{question}: {p_value(domains_p)}"
                lines.append(DOMAIN_SENTENCES[domains_p < 0.05].format(p=p_text))
        return lines


def outcome_notes(facts: OutcomeFacts) -> list[str]:
    """Sentences that say what the numbers license."""
    if math.isnan(facts.auroc.value):
        return []

    size_text = count_text(facts.items, "item")
    if facts.n < facts.items:
        size_text = f"{facts.items} items in {count_text(facts.n, 'cluster')}"
        if facts.n < FEW_CLUSTERS:
            size_text += "; so few clusters make intervals wide"

    backwards = "backwards, " if facts.auroc.high < 0.5 else ""
    outcomes = WHAT_HAPPENED[facts.question]
    notes = [
        f"Its stated chances rank its {outcomes} {backwards}with AUROC {interval_text(facts.auroc)} (n = "
        f"{size_text})."
    ]
    if facts.others:
        others_auroc = interval_text(source_auroc(facts, OTHER_RESULTS))
        notes.append(
            f"The results of {count_text(facts.others, 'other model')} on the same items reach "
            f"{others_auroc}."
        )
        notes.append(
            "Among items on which as many of the models succeeded it reaches "
            f"{interval_text(facts.in_strata)}."
        )
        if facts.knows_items.low > 0.5 and not facts.p_value < BEYOND_ALPHA:
            notes.append(
                f"This is knowledge of the items (others' results: {interval_text(facts.knows_items)}), "
                "not shown of itself."
            )

    if facts.solved.is_reasoned:
        solved_clause = solved_text(facts.solved, facts.solved.auroc, "AUROC")
        notes.append(f"{solved_clause[0].upper()}{solved_clause[1:]}.")
    m_ratio = facts.metacognition.m_ratio
    if not math.isnan(m_ratio.value):
        notes.append(f"M-ratio {interval_text(m_ratio)}.")

    overconfidence = interval_text(facts.overconfidence, sign=True)
    notes.append(f"Overconfidence {overconfidence}; Brier score {number(facts.brier.score)}.")
    return notes


def source_auroc(facts: OutcomeFacts, name: str) -> Estimate:
    """AUROC of a source of prediction on a model's outcomes."""
    for predictor in facts.predictors:
        if predictor.name == name:
            return predictor.auroc
    return undefined("not there")


# ---- tables


@dataclass(frozen=True)
class AnswerRow:
    """Answer for one model and question."""

    model: Annotated[str, Heading("model", "Model that was asked about itself.")]
    answer: Annotated[
        Verdict, Heading("answer", "Whether it knows in advance what it can do, beyond the items.")
    ]
    auroc: Annotated[
        float, Heading("AUROC", "Share of pairs of items in the right order; .5 is nothing.")
    ]
    others: Annotated[
        float, Heading("others", "AUROC of the other models' mean result on the same items.")
    ]
    beyond: Annotated[
        float,
        Heading(
            "beyond the items",
            "AUROC of what is left beyond the observers, among items as many models solved.",
        ),
    ]


def answer_row(claim: Claim, facts: OutcomeFacts) -> AnswerRow:
    """Row of the first table."""
    return AnswerRow(
        model=claim.subject,
        answer=claim.verdict,
        auroc=facts.auroc.value,
        others=source_auroc(facts, OTHER_RESULTS).value,
        beyond=facts.beyond_observers.value,
    )


write_three_digits = partial(number, digits=3)


@dataclass(frozen=True)
class FindingRow:
    """Numbers of each model and question."""

    run: Annotated[
        str, Heading("run", "Model that was asked, with settings that differ between runs.")
    ]
    model: Annotated[str, Heading("model", "Model, without settings.", on_page=False)]
    question: Annotated[str, Heading("question", "What was asked: solve, refuse or length.")]
    answer: Annotated[
        Verdict, Heading("answer", "Whether it knows in advance what it can do, beyond the items.")
    ]
    items: Annotated[int, Heading("items", "Number of clusters, or of items where none are named.")]
    share: Annotated[float, Heading("share", "Share of its items that happened.", percent)]
    other_models: Annotated[int, Heading("other models", "Number of other models with results.")]
    observers: Annotated[int, Heading("observers", "Number of other models that were asked.")]
    p: Annotated[
        float,
        Heading("p", "p of beyond observers, corrected for all cases (Holm).", p_digits),
    ]
    auroc: Annotated[Estimate, Heading("AUROC", "Share of pairs of items in the right order.")]
    knows_items: Annotated[
        Estimate, Heading("knows items", "AUROC of its chances for the other models' results.")
    ]
    beyond_items: Annotated[
        Estimate,
        Heading("beyond the items", "AUROC among items on which as many of the models succeeded."),
    ]
    beyond_observers: Annotated[
        Estimate,
        Heading(
            "beyond observers", "The same of what is left beyond what the other observers state."
        ),
    ]
    over_observers: Annotated[
        Estimate,
        Heading(
            "over observers",
            "AUROC for the other models' results, less that of the other observers together.",
        ),
    ]
    solved: Annotated[
        Estimate,
        Heading("solved", "Share of its statements whose reasoning holds the item's answer."),
    ]
    auroc_unsolved: Annotated[
        Estimate, Heading("AUROC, unsolved", "AUROC without the items that its reasoning solves.")
    ]
    brier: Annotated[float, Heading("Brier", "Mean squared error of the stated chances.")]
    brier_miscalibration: Annotated[
        float,
        Heading(
            "miscalibration",
            "Part of Brier that the best recalibration takes off.",
            write_three_digits,
        ),
    ]
    brier_discrimination: Annotated[
        float,
        Heading(
            "discrimination",
            "Part of the uncertainty that recalibrated chances take off.",
            write_three_digits,
        ),
    ]
    brier_uncertainty: Annotated[
        float,
        Heading(
            "uncertainty",
            "Brier score of always stating the share that happened.",
            write_three_digits,
        ),
    ]
    log_score: Annotated[
        float, Heading("log score", "Mean negative log-likelihood of the outcomes, in nats.")
    ]
    overconfidence: Annotated[
        Estimate, Heading("overconfidence", "Mean stated chance less the share that happened.")
    ]
    calibration_error: Annotated[
        Estimate, Heading("calibration error", "Debiased gap between stated chances and shares.")
    ]
    d_prime: Annotated[
        float, Heading("d′", "Discrimination of chances of one half and more, as yes.")
    ]
    criterion: Annotated[
        float, Heading("criterion", "Bias of the same; above 0 it says yes too rarely.")
    ]
    risk_at_100: Annotated[
        float, Heading("risk", "Share of failures when all items are acted on.", percent)
    ]
    risk_at_80: Annotated[
        float, Heading("risk at 80 %", "The same of the 80 % with the highest chances.", percent)
    ]
    risk_at_60: Annotated[
        float, Heading("risk at 60 %", "The same of the 60 % with the highest chances.", percent)
    ]
    risk_at_40: Annotated[
        float, Heading("risk at 40 %", "The same of the 40 % with the highest chances.", percent)
    ]
    risk_at_20: Annotated[
        float, Heading("risk at 20 %", "The same of the 20 % with the highest chances.", percent)
    ]


def finding_row(claim: Claim, facts: OutcomeFacts) -> FindingRow:
    """Row of the table of all numbers."""
    risks = {
        f"risk_at_{percentage}": facts.risks.get(percentage / 100, math.nan)
        for percentage in RISK_PERCENTAGES
    }
    return FindingRow(
        run=facts.run,
        model=facts.model,
        question=facts.question,
        answer=claim.verdict,
        items=facts.n,
        share=facts.share,
        other_models=facts.others,
        observers=facts.observers,
        p=facts.p_value,
        auroc=facts.auroc,
        knows_items=facts.knows_items,
        beyond_items=facts.in_strata,
        beyond_observers=facts.beyond_observers,
        over_observers=facts.over_observers,
        solved=facts.solved.solved,
        auroc_unsolved=facts.solved.auroc,
        brier=facts.brier.score,
        brier_miscalibration=facts.brier.miscalibration,
        brier_discrimination=facts.brier.discrimination,
        brier_uncertainty=facts.brier.uncertainty,
        log_score=facts.log_score,
        overconfidence=facts.overconfidence,
        calibration_error=facts.calibration_error,
        d_prime=facts.detection.d_prime,
        criterion=facts.detection.criterion,
        **risks,
    )


RISK_PERCENTAGES = (100, 80, 60, 40, 20)


@dataclass(frozen=True)
class MetacognitionRow:
    """How well chances tell right from wrong, for how often a model is right."""

    run: Annotated[str, Heading("run", "Model that stated something about itself.")]
    question: Annotated[str, Heading("question", "What was asked: solve, refuse or length.")]
    share: Annotated[float, Heading("share", "Share of its items that happened.", percent)]
    auroc: Annotated[Estimate, Heading("AUROC", "Share of pairs of items in the right order.")]
    task_d_prime: Annotated[
        Estimate,
        Heading("task d′", "d′ of a two-choice observer that is right as often."),
    ]
    meta_d_prime: Annotated[
        Estimate,
        Heading(
            "meta-d′",
            "d′ at which an ideal observer's ratings would tell right from wrong so well.",
        ),
    ]
    m_ratio: Annotated[
        Estimate,
        Heading("M-ratio", "meta-d′ / task d′; 1 is ideal with two answers, 0 knows nothing."),
    ]
    reason: Annotated[str, Heading("reason", "Why M-ratio is absent.")]


def metacognition_rows(facts_in_order: Sequence[OutcomeFacts]) -> list[MetacognitionRow]:
    """One row a model that was asked what it solves."""
    rows = []
    for facts in facts_in_order:
        if facts.question != SUCCESS_QUESTION:
            continue
        m_ratio = facts.metacognition.m_ratio
        row = MetacognitionRow(
            run=facts.run,
            question=facts.question,
            share=facts.share,
            auroc=facts.auroc,
            task_d_prime=facts.metacognition.d_prime,
            meta_d_prime=facts.metacognition.meta_d_prime,
            m_ratio=m_ratio,
            reason=m_ratio.reason if math.isnan(m_ratio.value) else "",
        )
        rows.append(row)
    return rows


@dataclass(frozen=True)
class DimensionRow:
    """Dimensions of what the models state of themselves."""

    question: Annotated[str, Heading("question", "What was asked: solve, refuse or length.")]
    dimension: Annotated[int, Heading("dimension", "Number of the eigenvalue, from 1.")]
    share: Annotated[
        float, Heading("share", "Share of the variance of all models' statements.", percent)
    ]
    null_share: Annotated[
        float, Heading("by chance", "95 % quantile of it with shuffled items.", percent)
    ]
    counts: Annotated[bool, Heading("counts", "Whether it and all before it are above chance.")]


def dimension_rows(dimensions_by_question: Mapping[str, Dimensions]) -> list[DimensionRow]:
    """One row an eigenvalue of each question."""
    rows = []
    for question, dimensions in dimensions_by_question.items():
        if dimensions.count is None:
            continue
        model_count = len(dimensions.eigenvalues)
        for index in range(model_count):
            row = DimensionRow(
                question=question,
                dimension=index + 1,
                share=float(dimensions.eigenvalues[index]) / model_count,
                null_share=float(dimensions.null_eigenvalues[index]) / model_count,
                counts=index < dimensions.count,
            )
            rows.append(row)
    return rows


def dimension_lines(dimensions_by_question: Mapping[str, Dimensions]) -> list[str]:
    """A sentence a question on the number of dimensions, or on why there is none."""
    lines = []
    for question, dimensions in dimensions_by_question.items():
        if dimensions.count is None:
            lines.append(f"{question}: no number of dimensions ({dimensions.reason}).")
            continue
        model_count = len(dimensions.eigenvalues)
        first_share = percent(float(dimensions.eigenvalues[0]) / model_count)
        chance_share = percent(float(dimensions.null_eigenvalues[0]) / model_count)
        lines.append(
            f"{question}: what {model_count} models state has "
            f"{count_text(dimensions.count, 'dimension')}; the first holds {first_share} of the "
            f"variance (by chance up to {chance_share})."
        )
    return lines


def write_inner_percent(share: float) -> str:
    """A share in percent, of which neither 0 nor 100 % is said unless it is so."""
    text = percent(share)
    if text == percent(1) and share < 1:
        return f">{percent(0.99)}"
    return text


def threshold_text(thresholds: Sequence[float]) -> str:
    """The least and the greatest of the thresholds of folds."""
    if not thresholds:
        return "–"
    threshold_names = []
    for threshold in dict.fromkeys((min(thresholds), max(thresholds))):
        if threshold == 0:
            threshold_names.append("any")
        elif math.isinf(threshold):
            threshold_names.append("never")
        else:
            threshold_names.append(number(threshold))
    return " to ".join(dict.fromkeys(threshold_names))


BETTER_RULE_NAMES = {True: "always acting", False: "always asking"}
"""Whether always acting is better than always asking → its name."""


@dataclass(frozen=True)
class RoutingRow:
    """What acting on high chances alone would gain, where help has a price."""

    run: Annotated[str, Heading("run", "Model that stated something about itself.")]
    question: Annotated[str, Heading("question", "What was asked: solve, refuse or length.")]
    price: Annotated[float, Heading("price", "Price of help, in failures.")]
    over_better: Annotated[
        Estimate,
        Heading("gain", "Gain an item over the better of always acting and always asking."),
    ]
    better: Annotated[
        str, Heading("compared with", "The better of the two: always acting or always asking.")
    ]
    act_from: Annotated[
        str,
        Heading(
            "act from",
            "Stated chance from which on to act: least and most of five, each of other items.",
        ),
    ]
    helped: Annotated[
        float, Heading("helped", "Share of items that are below it.", write_inner_percent)
    ]
    over_acting: Annotated[Estimate, Heading("over acting", "Gain an item over always acting.")]
    over_asking: Annotated[Estimate, Heading("over asking", "Gain an item over always asking.")]


def routing_rows(
    stated: StatedChances, facts_in_order: Sequence[OutcomeFacts], prices: Sequence[float]
) -> list[RoutingRow]:
    """One row a price of each model asked what it solves: help makes right what it would not."""
    rows = []
    for facts in facts_in_order:
        if facts.question != SUCCESS_QUESTION:
            continue
        scored = stated.scored(facts.run, facts.question)
        for price in prices:
            routed = routing(scored.chances, scored.outcomes, scored.clusters, price)
            row = RoutingRow(
                run=facts.run,
                question=facts.question,
                price=price,
                over_better=routed.over_better,
                better=BETTER_RULE_NAMES[routed.better_is_acting],
                act_from=threshold_text(routed.thresholds),
                helped=routed.helped,
                over_acting=routed.over_acting,
                over_asking=routed.over_asking,
            )
            rows.append(row)
    return rows


def routing_lines(rows: Sequence[RoutingRow]) -> list[str]:
    """The sentence on what routing gains at each price, for the model that gains most; none where
    no model was asked what it solves.
    """
    rows_by_price: dict[float, list[RoutingRow]] = {}
    for row in rows:
        rows_by_price.setdefault(row.price, []).append(row)

    gain_texts = []
    for price, rows_at_price in rows_by_price.items():
        known_rows = [row for row in rows_at_price if not math.isnan(row.over_better.value)]
        if not known_rows:
            gain_texts.append(f"not known at {price:g} ({rows_at_price[0].over_better.reason})")
            continue
        best_row = max(known_rows, key=lambda row: row.over_better.value)
        gain_text = interval_text(best_row.over_better, sign=True)
        most_text = f", {best_row.run}, most of {len(known_rows)}" if len(known_rows) > 1 else ""
        shown_text = "" if best_row.over_better.low > 0 else "no gain is shown: "
        gain_texts.append(
            f"{shown_text}{gain_text} where help costs {price:g} (over {best_row.better}{most_text})"
        )
    if not gain_texts:
        return []
    return [
        "Acting on high chances alone gains an item, over the better of always acting and always "
        f"asking for help: {'; '.join(gain_texts)}."
    ]


@dataclass(frozen=True)
class PredictorRow:
    """Sources of prediction."""

    run: Annotated[str, Heading("run", "Model whose outcomes are predicted.")]
    question: Annotated[str, Heading("question", "What was asked: solve, refuse or length.")]
    predicted_by: Annotated[str, Heading("predicted by", "Source of the prediction.")]
    auroc: Annotated[Estimate, Heading("AUROC", "Share of pairs of items in the right order.")]
    beyond_items: Annotated[
        Estimate,
        Heading("beyond the items", "AUROC among items on which as many of the models succeeded."),
    ]
    beyond_observers: Annotated[
        Estimate,
        Heading(
            "beyond observers",
            "The same of what is left of an observer's chances beyond the others'.",
        ),
    ]
    model_less_it: Annotated[
        Estimate,
        Heading(
            "the model less it", "AUROC of the model beyond observers, less that of the source."
        ),
    ]


def predictor_rows(facts_in_order: Sequence[OutcomeFacts]) -> list[PredictorRow]:
    """One row a source of each model and question."""
    rows = []
    for facts in facts_in_order:
        for predictor in facts.predictors:
            row = PredictorRow(
                run=facts.run,
                question=facts.question,
                predicted_by=predictor.name,
                auroc=predictor.auroc,
                beyond_items=predictor.in_strata,
                beyond_observers=predictor.beyond_observers,
                model_less_it=predictor.below,
            )
            rows.append(row)
    return rows


@dataclass(frozen=True)
class OtherTargetRow:
    """Statements scored on other models' outcomes."""

    run: Annotated[str, Heading("run", "Model that stated something about itself.")]
    question: Annotated[str, Heading("question", "What was asked: solve, refuse or length.")]
    target: Annotated[
        str, Heading("target", "Other model whose outcomes the statement is scored on.")
    ]
    auroc: Annotated[
        Estimate, Heading("AUROC", "AUROC beyond observers on the other model's outcomes.")
    ]
    own_less_it: Annotated[
        Estimate, Heading("own less it", "AUROC on its own outcomes less this one.")
    ]


def other_target_rows(facts_in_order: Sequence[OutcomeFacts]) -> list[OtherTargetRow]:
    """One row a target of each model and question."""
    rows = []
    for facts in facts_in_order:
        for target in facts.other_targets:
            rows.append(
                OtherTargetRow(facts.run, facts.question, target.model, target.auroc, target.below)
            )
    return rows


@dataclass(frozen=True)
class CellRow:
    """Every observer on every target."""

    question: Annotated[str, Heading("question", "What was asked: solve, refuse or length.")]
    target: Annotated[str, Heading("target", "Model whose outcomes are predicted.")]
    observer: Annotated[str, Heading("observer", "Model that stated the chances.")]
    beyond_items: Annotated[
        float, Heading("beyond the items", "Mean score among items as many models solved.")
    ]


def cell_rows(matrices: Mapping[str, CrossMeans]) -> list[CellRow]:
    """One row a cell of each question's matrix."""
    rows = []
    for question, matrix in matrices.items():
        for target_index, target in enumerate(matrix.models):
            for observer_index, observer in enumerate(matrix.models):
                mean_score = float(matrix.means[target_index, observer_index])
                rows.append(CellRow(question, target, observer, mean_score))
    return rows


# ---- pictures


def sources_picture(facts_by_subject: Mapping[str, OutcomeFacts]) -> Picture:
    """AUROC of each source of prediction; of several models the main ones."""
    ranked_facts = _ranked_facts(facts_by_subject)
    drawn_subjects = list(ranked_facts)[:MOST_FINDINGS]
    rows = {subject: _drawn_sources(ranked_facts[subject]) for subject in drawn_subjects}
    if len(facts_by_subject) > 1:
        for auroc_by_source in rows.values():
            auroc_by_source.pop(TEXT_ALONE)
            auroc_by_source.pop(INPUT_LENGTH)
    hidden_count = len(facts_by_subject) - len(drawn_subjects)
    caption = (
        "AUROC of each source of prediction; 95 % intervals; .5 is nothing."
        f"{more_in_tables(hidden_count)}"
    )
    return bar_rows("sources", rows, caption=caption, axis="AUROC", line=0.5)


def _ranked_facts(facts_by_subject: Mapping[str, OutcomeFacts]) -> Mapping[str, OutcomeFacts]:
    """The models with an AUROC; all where none has one."""
    ranked_facts = {}
    for subject, facts in facts_by_subject.items():
        if not math.isnan(facts.auroc.value):
            ranked_facts[subject] = facts
    return ranked_facts if ranked_facts else facts_by_subject


def _drawn_sources(facts: OutcomeFacts) -> dict[str, Estimate]:
    auroc_by_source = {"itself": facts.auroc}
    observer_aurocs = [
        predictor.auroc
        for predictor in facts.predictors
        if predictor.is_observer and not math.isnan(predictor.auroc.value)
    ]
    if observer_aurocs:
        best_auroc = max(observer_aurocs, key=lambda auroc: auroc.value)
        auroc_by_source["best other observer"] = best_auroc
    for source_name in (OTHER_RESULTS, TEXT_ALONE, INPUT_LENGTH):
        auroc_by_source[source_name] = source_auroc(facts, source_name)
    auroc_by_source["itself, beyond the items"] = facts.beyond_observers
    return auroc_by_source


def _models_left_out(
    facts_by_subject: Mapping[str, OutcomeFacts], drawn_subjects: Collection[str]
) -> str:
    """Words behind a caption on models that the picture leaves out; "" where it has all."""
    hidden_count = len(facts_by_subject) - len(drawn_subjects)
    if not hidden_count:
        return ""
    return f" Not drawn: {count_text(hidden_count, 'model')} more."


def calibration_picture(facts_by_subject: Mapping[str, OutcomeFacts]) -> Picture:
    """Stated chances against shares, of the first three models."""
    ranked_facts = _ranked_facts(facts_by_subject)
    drawn_lines = {}
    for subject in list(ranked_facts)[:3]:
        calibration_bins = ranked_facts[subject].bins
        if calibration_bins[0]:
            drawn_lines[subject] = calibration_bins
    return calibration_curves(
        "calibration",
        drawn_lines,
        caption=(
            "Stated probability against what happened, in bins of as many items; 95 % intervals."
            f"{_models_left_out(facts_by_subject, drawn_lines)}"
        ),
        x_title="stated probability",
        y_title="share that happened",
    )


def risk_picture(facts_by_subject: Mapping[str, OutcomeFacts]) -> Picture:
    """Share of failures by coverage."""
    drawn_lines = {}
    for subject in list(facts_by_subject)[:MOST_FINDINGS]:
        risks = facts_by_subject[subject].risks
        if risks:
            risk_points = [undefined("", value=risk) for risk in risks.values()]
            drawn_lines[subject] = (list(risks), risk_points)
    return curves(
        "risk",
        drawn_lines,
        caption=(
            "Share that does not happen among the items with the highest chances."
            f"{_models_left_out(facts_by_subject, drawn_lines)}"
        ),
        x_title="share of items acted on",
        y_title="risk",
    )


def metacognition_picture(facts_by_subject: Mapping[str, OutcomeFacts]) -> Picture | None:
    """AUROC against M-ratio, a mark a model; None where both order the models alike."""
    points = {}
    for subject, facts in facts_by_subject.items():
        m_ratio = facts.metacognition.m_ratio.value
        if not math.isnan(m_ratio):
            points[subject] = ([facts.auroc.value], [m_ratio])
    by_auroc = sorted(points, key=lambda subject: points[subject][0])
    by_m_ratio = sorted(points, key=lambda subject: points[subject][1])
    if by_auroc == by_m_ratio:
        return None
    return scatter(
        "metacognition",
        dict(list(points.items())[:MOST_FINDINGS]),
        caption="AUROC of stated chances, and M-ratio: the two order these models differently.",
        x_title="AUROC",
        y_title="M-ratio",
    )


def matrix_picture(question: str, matrix: CrossMeans) -> Picture | None:
    """Every observer on every target; None with one model, or where nothing is known."""
    if len(matrix.models) < 2 or np.isnan(matrix.means).all():
        return None
    return heat_map(
        f"matrix_{question}",
        matrix.means,
        list(matrix.models),
        caption=(
            f"Every observer on every target, {question}: mean score beyond the items; .5 is "
            "nothing."
        ),
    )
