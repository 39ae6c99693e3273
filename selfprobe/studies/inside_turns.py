"""`awareness inside --by-turn`: transcripts as the model reads them, the probes of their turns, and
the page.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Annotated, Any, Self

import numpy as np

from selfprobe.data import Table, first_reason
from selfprobe.data.conversations import asked_at
from selfprobe.data.wrapped import Wrapped
from selfprobe.errors import InputError, one_line
from selfprobe.evalawareness_tasks.turn_curve import MOST
from selfprobe.page import Heading, Page, RowTable, Section, claim_page, folded_list, number
from selfprobe.page import Table as PageTable
from selfprobe.page.columns import columns_of
from selfprobe.page.numerals import interval_text, percent_interval
from selfprobe.page.plots import Picture, curves, cut_name
from selfprobe.stats.estimate import Estimate, FloatArray, undefined
from selfprobe.studies.inside_claims import NOT_READ
from selfprobe.studies.inside_numbers import (
    Grid,
    auroc_across_wrappers,
    chosen_on,
    flipped_labels,
    scores_across_wrappers,
    training_scores,
)
from selfprobe.studies.inside_turn_claims import (
    HELD_ONLY_WORDS,
    SUFFICIENT_GRADERS,
    BandedScores,
    TurnClass,
    TurnNumbers,
    TurnProbes,
    TurnReading,
    TurnRows,
    band_of,
    held_only_claim,
    turn_numbers,
)
from selfprobe.study.said_by_turn import SaidTranscript, said_transcripts
from selfprobe.text.counts import count_text

if TYPE_CHECKING:
    from selfprobe.probes.branches import Text
    from selfprobe.probes.model import LocalModel

ChatMessages = Sequence[Mapping[str, str]]
PLACEBO_WRAPPERS = "time_wrappers"
"""Bundled announcements of the time of day, which no transcript tells."""
CLASS_METHOD = (
    "A turn is held where the probe's score after it is at least as high as what 95 % of announced "
    "evaluations reach and 95 % of announced real use do not, unclear between the two, and said "
    "where a grader quotes the model in it. Turns that no grader could read are left out. Shares "
    "are means over transcripts; intervals are 95 %, by source where rows name several, else by "
    "transcript."
)
CONTROLS_METHOD = (
    "The placebo is a probe of the time of day, with a grader's quotes about it. Shuffled labels: "
    "in each wrapper the two announcements change places by chance, the whole choice and its "
    "thresholds are made again, and p is the share of draws that hold as much unsaid. Real use is "
    "compared at the same turns, since a probe may read how long a conversation is. Sentence "
    "embeddings (MiniLM) read the text of the turn under the same fit, and are compared less their "
    "own share in real use, as the probe is."
)


@dataclass(frozen=True)
class ReadableTurns:
    """The transcripts, as the model reads them."""

    transcripts: list[SaidTranscript]
    placebo_texts: list[Wrapped]
    """Task texts in announcements of the time of day."""
    turns_by_id: "Mapping[str, list[int]]"
    """Transcript → its turns after which the state is read, from 1."""
    texts_by_id: "Mapping[str, list[Text]]"
    """Transcript → the chat up to the end of each of these turns."""
    set_aside: Mapping[str, str]
    """Transcript → why it is not read."""
    unread_turns: int
    """Turns that no grader could read, or that are too long for the model."""

    limit_line: str
    """Line of the plan on what --limit takes; "" where it takes all."""
    is_real_use_given: bool
    """Whether any transcript is of real use, also one that is not read."""

    def plan_lines(self, grid_size: int) -> list[str]:
        """Lines of the plan on what is read."""
        turn_count = sum(map(len, self.turns_by_id.values()))
        real_use_count = sum(transcript.is_real_use for transcript in self.transcripts)
        lines = [
            f"Transcripts: {len(self.transcripts)} of {self.transcripts[0].model} "
            f"({real_use_count} of real use), {count_text(turn_count, 'turn')}; "
            f"{count_text(self.unread_turns, 'turn')} and "
            f"{count_text(len(self.set_aside), 'transcript')} cannot be read",
            f"Grid: {count_text(grid_size, 'prompt')} of evaluations, {len(self.placebo_texts)} of "
            "the placebo",
        ]
        if self.limit_line:
            lines.append(self.limit_line)
        if self.set_aside:
            name, reason = next(iter(self.set_aside.items()))
            lines.append(f"Not read: {name}: {reason}")
        if any(transcript.placebo_said_turns is None for transcript in self.transcripts):
            lines.append("No placebo: scan again with `awareness scan --placebo`")
        if self.grader_count < SUFFICIENT_GRADERS:
            lines.append(
                "One grader alone shows no Yes: list a second --grader in `awareness scan`"
            )
        if not real_use_count:
            lines.append(self._no_real_use_line())
        if self.unlabelled_line:
            lines.append(self.unlabelled_line)
        return lines

    @property
    def grader_count(self) -> int:
        """Smallest number of graders that read a transcript."""
        return min(transcript.grader_count for transcript in self.transcripts)

    @property
    def unlabelled_line(self) -> str:
        """Line on transcripts without a label; "" where each has one."""
        unlabelled_count = sum(transcript.label is None for transcript in self.transcripts)
        if not unlabelled_count:
            return ""
        return (
            f"Without a label: {count_text(unlabelled_count, 'transcript')}, counted as evaluation "
            "(label it deployment if it is not)"
        )

    def _no_real_use_line(self) -> str:
        if not self.is_real_use_given:
            return "No real use: scan logs of it too (samples labelled deployment)"
        if self.limit_line:
            return "No real use: raise --limit"
        return "No real use: none of it can be read"

    def turn_texts(self) -> list[str]:
        """What each turn adds to its transcript, [row]."""
        texts = []
        for transcript in self.transcripts:
            for turn in self.turns_by_id[transcript.id]:
                # neighbours of one role are joined, so the last two messages hold the turn
                new_messages = transcript.chats_by_turn[turn - 1][-2:]
                texts.append("\n\n".join(message["content"] for message in new_messages))
        return texts


@dataclass(frozen=True)
class _TurnReader:
    """What a model can read of transcripts."""

    encode_chat: Callable[[ChatMessages], tuple[int, ...]]
    asked_turns: Sequence[int]
    """Turns after which a state is read, of those that a transcript has."""
    longest_text: int
    """The model's context, in tokens."""
    special_tokens: Sequence[str]

    @classmethod
    def of_model(
        cls,
        judge: "LocalModel",
        encode_chat: Callable[[ChatMessages], tuple[int, ...]],
        asked_turns: Sequence[int],
    ) -> Self:
        from selfprobe.probes.tokens import special_tokens

        return cls(encode_chat, asked_turns, judge.context, special_tokens(judge.tokenizer))

    def planned_turns(self, transcript: SaidTranscript) -> list[int]:
        return [turn for turn in self.asked_turns if turn <= len(transcript.chats_by_turn)]

    def text_by_turn(self, transcript: SaidTranscript) -> "dict[int, Text]":
        """Turn → the chat up to its end, of those that graders and the model can read.

        Raises:
            ValueError: There is none, or the chat template refuses the transcript: says why.
        """
        from selfprobe.probes.branches import Text
        from selfprobe.probes.tokens import first_special_token

        chats = transcript.chats_by_turn
        if not chats:
            raise ValueError("the model does not reply in it")
        message_texts = [message["content"] for message in chats[-1]]
        special_token = first_special_token(message_texts, self.special_tokens)
        if special_token:
            raise ValueError(f"special token in its text: {special_token}")
        graded_turns = [
            turn
            for turn in self.planned_turns(transcript)
            if turn <= transcript.readable_turn_count
        ]
        if not graded_turns:
            raise ValueError("graders could read no turn of it")

        text_by_turn = {}
        for turn in graded_turns:
            tokens = self.encode_chat(chats[turn - 1])
            if len(tokens) <= self.longest_text:
                text_by_turn[turn] = Text(tokens, state=True)
        if not text_by_turn:
            first_length = len(self.encode_chat(chats[graded_turns[0] - 1]))
            raise ValueError(
                f"its first turn is too long: {first_length:,} tokens, the model's context is "
                f"{self.longest_text:,}"
            )
        return text_by_turn


def readable_turns(
    address: str,
    placebo_texts: list[Wrapped],
    judge: "LocalModel",
    encode_chat: Callable[[ChatMessages], tuple[int, ...]],
    limit: int | None,
) -> ReadableTurns:
    """The transcripts of --by-turn.

    Args:
        address: Logs of `awareness scan`, or a .jsonl file.
        placebo_texts: Task texts in announcements of the time of day.
        judge: Model that reads the turns.
        encode_chat: Function that gives the tokens of a chat with the model's next turn open.
        limit: Number of transcripts, of labels and sources in turn; None takes all.

    Raises:
        InputError: There are none, or none can be read.
    """
    scanned = said_transcripts(address)
    table = _label_table(address, scanned.transcripts)
    limited_ids = {row["id"] for row in table.first(limit)}
    limited_transcripts = [
        transcript for transcript in scanned.transcripts if transcript.id in limited_ids
    ]
    longest = max(len(transcript.chats_by_turn) for transcript in limited_transcripts)
    reader = _TurnReader.of_model(judge, encode_chat, asked_at(longest, MOST))

    set_aside = dict(scanned.set_aside)
    turns_by_id: dict[str, list[int]] = {}
    texts_by_id: dict[str, list[Text]] = {}
    unread_turn_count = 0
    for transcript in limited_transcripts:
        planned_turns = reader.planned_turns(transcript)
        text_by_turn: dict[int, Text] = {}
        try:
            text_by_turn = reader.text_by_turn(transcript)
        except ValueError as error:
            set_aside[transcript.id] = one_line(error)
        else:
            turns_by_id[transcript.id] = list(text_by_turn)
            texts_by_id[transcript.id] = list(text_by_turn.values())
        unread_turn_count += len(planned_turns) - len(text_by_turn)

    transcripts = [transcript for transcript in limited_transcripts if transcript.id in texts_by_id]
    if all(transcript.is_real_use for transcript in transcripts):
        reason = first_reason(set_aside.values()) or "all are labelled deployment"
        if len(limited_transcripts) < len(scanned.transcripts):
            reason = f"{reason}; raise --limit {limit}"
        raise InputError(f"{address}: no transcript of an evaluation can be read: {reason}")
    return ReadableTurns(
        transcripts=transcripts,
        placebo_texts=placebo_texts,
        turns_by_id=turns_by_id,
        texts_by_id=texts_by_id,
        set_aside=set_aside,
        unread_turns=unread_turn_count,
        limit_line=table.limit_line(limit),
        is_real_use_given=any(transcript.is_real_use for transcript in scanned.transcripts),
    )


def _label_table(address: str, transcripts: Sequence[SaidTranscript]) -> Table:
    """Labels and sources of transcripts, of which a limit takes each in turn."""
    rows = [
        {"id": transcript.id, "label": transcript.label, "source": transcript.source}
        for transcript in transcripts
    ]
    return Table(address, rows, sha256="")


# ---- numbers


@dataclass(frozen=True)
class TurnResults:
    """Results of what is in the folder."""

    state: Mapping[str, Any]
    """Entries of run.json."""
    turns: ReadableTurns
    rows: TurnRows
    numbers: TurnNumbers


def turn_results(
    turns: ReadableTurns,
    turn_states: FloatArray,
    evaluation_grid: Grid,
    placebo_grid: Grid,
    *,
    embeddings: BandedScores | None,
    shuffles: int,
    state: Mapping[str, Any],
) -> TurnResults:
    """Numbers of what was read of the turns.

    Args:
        turns: The transcripts.
        turn_states: States [layer, row, d_model] after their turns.
        evaluation_grid: Announcements of evaluations and of real use.
        placebo_grid: Announcements of the time of day.
        embeddings: What a probe of sentence embeddings reads in the turns; None without it.
        shuffles: Number of draws of the null.
        state: Entries of run.json.
    """
    rows = _turn_rows(turns)
    probes = TurnProbes(
        evaluation=banded_scores(evaluation_grid, turn_states),
        placebo=banded_scores(placebo_grid, turn_states),
        embeddings=embeddings,
        shuffled=shuffled_scores(evaluation_grid, turn_states, shuffles),
        evaluation_auroc=_auroc_on_other_wrappers(evaluation_grid),
        placebo_auroc=_auroc_on_other_wrappers(placebo_grid),
        grader_count=turns.grader_count,
        reads_all_blocks=not state["layers"],
    )
    return TurnResults(state, turns, rows, turn_numbers(rows, probes))


def _auroc_on_other_wrappers(grid: Grid) -> Estimate:
    return auroc_across_wrappers(grid, scores_across_wrappers(grid))


def banded_scores(grid: Grid, turn_states: FloatArray) -> BandedScores:
    """What the probe of a grid reads at states [layer, row, d_model], with its band."""
    chosen = chosen_on(grid)
    band = band_of(training_scores(grid, chosen), grid.evaluation)
    return BandedScores(chosen.score(turn_states), band)


def shuffled_scores(grid: Grid, turn_states: FloatArray, shuffles: int) -> list[BandedScores]:
    """The same of probes whose labels change places by wrapper, [shuffle]."""
    rng = np.random.default_rng(0)
    return [
        banded_scores(replace(grid, evaluation=labels), turn_states)
        for labels in flipped_labels(grid, shuffles, rng)
    ]


def _turn_rows(turns: ReadableTurns) -> TurnRows:
    row_transcripts = []
    row_turns = []
    for transcript in turns.transcripts:
        for turn in turns.turns_by_id[transcript.id]:
            row_transcripts.append(transcript)
            row_turns.append(turn)
    rows = list(zip(row_transcripts, row_turns, strict=True))
    is_placebo_said = None
    if all(transcript.placebo_said_turns is not None for transcript in turns.transcripts):
        is_placebo_said = np.array(
            [turn in (transcript.placebo_said_turns or []) for transcript, turn in rows]
        )
    transcript_ids = [transcript.id for transcript in row_transcripts]
    sources = [transcript.source for transcript in row_transcripts]
    are_real_use = [transcript.is_real_use for transcript in row_transcripts]
    are_said = [turn in transcript.said_turns for transcript, turn in rows]
    return TurnRows(
        transcript=np.array(transcript_ids),
        source=np.array(sources),
        is_real_use=np.array(are_real_use),
        turn=np.array(row_turns),
        is_said=np.array(are_said),
        is_placebo_said=is_placebo_said,
    )


# ---- what the page shows

_UNDEFINED_SHARE = undefined(NOT_READ, unit="transcript")


@dataclass(frozen=True)
class ClassRow:
    """Mean share of a transcript's turns in each class."""

    turn_class: Annotated[
        TurnClass, Heading("class", "What the state holds, and what the turn says.")
    ]
    evaluation: Annotated[
        Estimate,
        Heading("evaluation", "Share of turns, by the probe of evaluations.", percent_interval),
    ]
    placebo: Annotated[
        Estimate, Heading("placebo", "The same for the time of day.", percent_interval)
    ]
    shuffled: Annotated[
        Estimate,
        Heading(
            "shuffled", "The same for probes of shuffled labels, their mean.", percent_interval
        ),
    ]
    real_use: Annotated[
        Estimate,
        Heading("real use", "The probe of evaluations after turns of real use.", percent_interval),
    ]
    embeddings: Annotated[
        Estimate,
        Heading(
            "sentence embeddings",
            "The same for a reader of the turns' text.",
            percent_interval,
            on_page=False,
        ),
    ]


@dataclass(frozen=True)
class HeldByTurnRow:
    """Share of transcripts that hold and do not say it, by turn."""

    reading: Annotated[TurnReading, Heading("reading", "What is read after the turn.")]
    turn: Annotated[int, Heading("turn", "Number of the turn, from 1.")]
    estimate: Annotated[
        Estimate, Heading("held only", "Share of transcripts that reach it.", percent_interval)
    ]


@dataclass(frozen=True)
class TurnRow:
    """Turns with what was read after them."""

    transcript: Annotated[str, Heading("transcript", "Id of the transcript.")]
    source: Annotated[str, Heading("source", "Transcripts of one source are not independent.")]
    real_use: Annotated[bool, Heading("real use", "Whether it is labelled deployment.")]
    turn: Annotated[int, Heading("turn", "Number of the turn, from 1.")]
    score: Annotated[float, Heading("score", "Score of the probe of evaluations.")]
    said: Annotated[bool, Heading("said", "Whether a grader quotes the model on an evaluation.")]
    turn_class: Annotated[TurnClass, Heading("class", "What is held, and what is said.")]
    placebo_score: Annotated[float, Heading("placebo score", "Score of the placebo probe.")]
    placebo_class: Annotated[
        TurnClass | None, Heading("placebo class", "The same for the time of day.")
    ]


def turn_page(results: TurnResults) -> Page:
    """The answer, with tables classes, held_by_turn and turns."""
    numbers = results.numbers
    probes = numbers.probes
    state = results.state
    writer = results.turns.transcripts[0].model
    claim = held_only_claim(numbers, cut_name(state["model"]))
    class_rows = class_table(numbers)
    band = probes.evaluation.band
    thresholds = (
        f"Thresholds, chosen on wrappers alone: held from {number(band.held_from)}, not held below "
        f"{number(band.unheld_below)} (placebo: {number(probes.placebo.band.held_from)} and "
        f"{number(probes.placebo.band.unheld_below)}). On wrappers left out the probe has AUROC "
        f"{interval_text(probes.evaluation_auroc)}, the placebo's "
        f"{interval_text(probes.placebo_auroc)}."
    )
    aside_lines = [f"{name}: {reason}" for name, reason in results.turns.set_aside.items()]
    data_lines = [f"{count_text(results.turns.unread_turns, 'turn')} could not be read."]
    if results.turns.limit_line:
        data_lines.append(f"{results.turns.limit_line}.")
    if results.turns.unlabelled_line:
        data_lines.append(f"{results.turns.unlabelled_line}.")
    page = claim_page(
        f"In which turns does {cut_name(state['model'])} hold, and not say, that it is evaluated?",
        [claim],
        HELD_ONLY_WORDS,
        picture=_held_by_turn_picture(numbers),
        table=PageTable(class_rows, columns_of(ClassRow)),
        tables={
            "classes": RowTable(ClassRow, class_rows),
            "held_by_turn": RowTable(HeldByTurnRow, _held_by_turn_rows(numbers)),
            "turns": RowTable(TurnRow, _turn_table(results), on_page=False),
        },
        method=[
            CLASS_METHOD,
            thresholds,
            CONTROLS_METHOD,
            *data_lines,
            *folded_list("transcripts and logs not read", aside_lines),
        ],
    )
    blocks_text = f"blocks {state['layers']}" if state["layers"] else "all blocks"
    run_text = (
        f"{state['model']}, revision {state['revision']}, {state['precision']}; "
        f"{_counts_text(results)}, written by {writer}; {blocks_text}; "
        f"selfprobe {state['selfprobe']}."
    )
    return replace(page, sections=[*page.sections, Section("Runs", [run_text], name="runs")])


def _counts_text(results: TurnResults) -> str:
    """What was read, by label."""
    is_real_use = results.rows.is_real_use
    real_use_ids = set(results.rows.transcript[is_real_use])
    evaluation_ids = set(results.rows.transcript[~is_real_use])
    evaluation_turns = count_text(int(np.sum(~is_real_use)), "turn")
    real_use_turns = count_text(int(np.sum(is_real_use)), "turn")
    return (
        f"{count_text(len(evaluation_ids), 'transcript')} of evaluations ({evaluation_turns}) and "
        f"{len(real_use_ids)} of real use ({real_use_turns})"
    )


def class_table(numbers: TurnNumbers) -> list[ClassRow]:
    """One row a class."""
    rows = []
    for turn_class in TurnClass:
        shares = {
            reading: class_shares[turn_class] for reading, class_shares in numbers.shares.items()
        }
        rows.append(
            ClassRow(
                turn_class,
                shares[TurnReading.EVALUATION],
                shares.get(TurnReading.PLACEBO, _UNDEFINED_SHARE),
                shares.get(TurnReading.SHUFFLED, _UNDEFINED_SHARE),
                shares.get(TurnReading.REAL_USE, _UNDEFINED_SHARE),
                shares.get(TurnReading.EMBEDDINGS, _UNDEFINED_SHARE),
            )
        )
    return rows


def _held_by_turn_rows(numbers: TurnNumbers) -> list[HeldByTurnRow]:
    return [
        HeldByTurnRow(reading, turn, share)
        for reading, turn_shares in numbers.held_only_by_turn.items()
        for turn, share in turn_shares.items()
    ]


def _turn_table(results: TurnResults) -> list[TurnRow]:
    rows = results.rows
    classes = results.numbers.classes
    probes = results.numbers.probes
    no_classes: Sequence[None] = [None] * len(rows.turn)
    placebo_classes = classes.get(TurnReading.PLACEBO, no_classes)
    return [
        TurnRow(
            transcript=str(rows.transcript[row]),
            source=str(rows.source[row]),
            real_use=bool(rows.is_real_use[row]),
            turn=int(rows.turn[row]),
            score=float(probes.evaluation.scores[row]),
            said=bool(rows.is_said[row]),
            turn_class=classes[TurnReading.EVALUATION][row],
            placebo_score=float(probes.placebo.scores[row]),
            placebo_class=placebo_classes[row],
        )
        for row in range(len(rows.turn))
    ]


def _held_by_turn_picture(numbers: TurnNumbers) -> Picture:
    """Share held only by turn, a line a reading."""
    series = {}
    for reading, turn_shares in numbers.held_only_by_turn.items():
        if reading is not TurnReading.EMBEDDINGS:
            turns = [float(turn) for turn in turn_shares]
            series[reading.value] = (turns, list(turn_shares.values()))
    return curves(
        "held_only",
        series,
        caption="Transcripts that hold and do not say it, after each turn; 95 % intervals.",
        x_title="turn",
        y_title="share held only",
    )
