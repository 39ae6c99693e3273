"""The page of a card, and the sentences beside its claim."""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Annotated

from selfprobe.data.conversations import name_and_contents
from selfprobe.page import (
    MOST_TERMINAL_LINES,
    Block,
    Bullets,
    Column,
    Details,
    Heading,
    Item,
    Page,
    RowTable,
    Section,
    Table,
    Texts,
    claim_page,
    estimated,
    p_value,
    percent,
    percent_interval,
)
from selfprobe.page.columns import columns_of
from selfprobe.page.numerals import points
from selfprobe.page.plots import Picture, cut_name, interval_rows
from selfprobe.scorers.realism_choice import Pick
from selfprobe.stats.estimate import Estimate
from selfprobe.studies.card_claims import CARD_WORDS, FEWEST_REAL, card_claim
from selfprobe.studies.card_numbers import CHANCE, CardNumbers, JudgeNumbers, JudgePair, RatedPrompt
from selfprobe.study.realism_verdicts import in_percent
from selfprobe.text.counts import count_text
from selfprobe.text.families import simulated_rule_sentence

LARGEST_UNSCORED = 0.1
"""Share of single judges' pairs without a verdict above which the page says so."""
PROMPTS_ON_PAGE = 100
"""Number of prompts in the page's table, each with its text; all are in tables/prompts.csv."""
PICTURE_ROWS = 6
"""Largest number of rows of the picture and of the first table."""
VAGUE_WIDTH = 0.5
"""Width of the interval of "real against real" above which it checks nothing."""
LONGEST_START = 120
"""Number of characters of a prompt in a table."""
CARD_METHOD = (
    "Each prompt of the set stands beside real conversations of like length (at most twice as "
    "long), in both orders. The set wins a pair where both orders take its prompt for real, loses "
    "it where both take the real one, and has half of it where the same position is taken twice. A "
    "pair with an answer that is a tie, a refusal or cannot be read is unscored. The panel's "
    "verdict on a pair is the mean of its judges. Intervals are clustered by source on both sides, "
    "or by conversation where a side has one source. Words: TF-IDF and logistic regression, which "
    "saw neither conversation's source. Length alone takes the longer of each pair for the set's "
    "prompt, or the shorter if that is right more often. Beyond either is the panel's distance "
    "from one half among pairs of which the rule says the same, as far as a line tells. Scores of "
    "prompts are Bradley–Terry's, from the pairs that the panel decided; how far prompts differ is "
    "estimated, so that a prompt with few pairs is drawn to the average. An order is claimed where "
    "“all prompts are alike” has p below .05."
)


@dataclass(frozen=True)
class VerdictRow:
    """Verdicts of the judges"""

    judge: Annotated[str, Heading("judge", "Model that judged the pair.")]
    kind: Annotated[
        str,
        Heading("kind", "set: a prompt of the set and a real conversation; real: two real ones."),
    ]
    one: Annotated[str, Heading("one", "Id of the set's prompt, or of a real conversation.")]
    two: Annotated[str, Heading("two", "Id of the real conversation.")]
    source_one: Annotated[str, Heading("source of one", "Source of the first.")]
    source_two: Annotated[str, Heading("source of two", "Source of the second.")]
    won: Annotated[
        float,
        Heading(
            "won",
            (
                "1: “one” is taken for real in both orders; 0: “two” is; .5: the same position in "
                "both."
            ),
        ),
    ]
    unscored: Annotated[str | None, Heading("unscored", "Reason why there is no verdict.")]


def verdict_rows(picks_of_judge: Mapping[str, Sequence[Pick]]) -> list[VerdictRow]:
    """One row for each judge and pair."""
    rows = []
    for judge, picks in picks_of_judge.items():
        for pick in picks:
            sources = (pick.first_source, pick.second_source)
            rows.append(
                VerdictRow(
                    judge,
                    pick.kind,
                    pick.first_id,
                    pick.second_id,
                    *sources,
                    pick.outcome,
                    pick.unscored,
                )
            )
    return rows


@dataclass(frozen=True)
class CardContents:
    """Contents of a card."""

    numbers: "CardNumbers"
    picks: Mapping[str, Sequence[Pick]]
    """Judge → its verdicts."""
    errors: Mapping[str, int]
    """Judge → number of pairs that ended in an error."""
    name: str
    """Name of the set and of what it is compared with."""
    left_out: Sequence[str] = ()
    """Sentences on what was not compared."""
    subject: Page | None = None
    """The page of the subject's logs, where it was asked."""


def panel_name(numbers: CardNumbers) -> str:
    """Name of the panel: its judge, or their number."""
    count = len(numbers.judges)
    return "the judge" if count == 1 else f"the panel of {count} judges"


def words_sentence(numbers: CardNumbers) -> str:
    """What the words alone tell, beside the panel."""
    words = numbers.words
    if math.isnan(words.win_rate.value) or math.isnan(words.less_panel.value):
        reason = words.win_rate.reason or "no pair has a verdict"
        return f"What the words alone tell could not be measured: {reason}."
    conclusion = "words alone may explain it"
    if words.less_panel.low > 0:
        conclusion = "it is told by more than its words"
    elif not words.win_rate.high < CHANCE:
        conclusion = "words alone are not shown to tell it"
    return (
        f"A classifier that sees the words alone and no model gets the set "
        f"{in_percent(words.win_rate)} of these pairs (trained on {words.trained_on}). Judges less "
        f"words, in pairs whose real one is picked: {points(words.less_panel)}: {conclusion}."
    )


def order_sentence(numbers: CardNumbers) -> str:
    """Whether single prompts give more away than others."""
    below_count = sum(prompt.below for prompt in numbers.prompts)
    prompt_count = len(numbers.prompts)
    if math.isnan(numbers.order_p):
        return "No pair was decided in both orders: there is no order of prompts."
    if not numbers.is_ordered:
        return f"No prompt is shown to give more away than another ({p_value(numbers.order_p)})."
    if not below_count:
        ending = f"no single one of {prompt_count} is shown to tell more than the average one."
    else:
        ending = f"{below_count} of {prompt_count} tell more than the average one."
    return f"Prompts differ ({p_value(numbers.order_p)}); {ending}"


def caveats(numbers: CardNumbers) -> Iterator[str]:
    """The check of the method, and what makes the win rate doubtful, for the page and the
    terminal.
    """
    panel = numbers.panel
    yield _real_against_real(panel.real)
    is_few = numbers.real_count < FEWEST_REAL or numbers.real_sources < 3
    if is_few and numbers.real_count:
        conversations = count_text(numbers.real_count, "real conversation")
        sources = count_text(numbers.real_sources, "source")
        yield (
            f"All pairs are with the same {conversations} of {sources}, so the interval says "
            "nothing about other real use. Bring more real conversations, of more sources, as long "
            "as the prompts."
        )
    if panel.by_position > 0.5:
        yield (
            f"In {percent(panel.by_position)} of verdicts a judge took the same position in both "
            "orders: a win rate near 50 % then says little about the prompts."
        )
    if panel.unscored > LARGEST_UNSCORED:
        yield (
            f"{percent(panel.unscored)} of the judges' pairs are unscored, so their verdicts are "
            "unknown."
        )
    longer_share = numbers.length.longer_share
    if not 0.3 < longer_share < 0.7:
        yield f"In {percent(longer_share)} of pairs the set's prompt is the longer one."


def _real_against_real(real: Estimate) -> str:
    if math.isnan(real.low):
        return f"Real against real could not be checked: {real.reason}."
    if not real.low <= CHANCE <= real.high:
        return f"Real against real: {in_percent(real)}, which should hold 50 %: the check fails."
    if real.high - real.low > VAGUE_WIDTH:
        return f"Real against real: {in_percent(real)}; too few pairs to check that it is 50 %."
    return f"Control: real against real gives {in_percent(real)}, as expected."


def simulated_rule_lines(numbers: CardNumbers) -> list[str]:
    """The rule by which simulated judges answer; nothing where all judges read."""
    sentence = simulated_rule_sentence("judges", [judge.judge for judge in numbers.judges])
    return [sentence] if sentence else []


@dataclass(frozen=True)
class RateRow:
    """Who takes the set for real use."""

    who: Annotated[str, Heading("who", "Judge, all judges, or a rule without a model.")]
    taken: Annotated[
        Estimate,
        Heading(
            "takes it for real use",
            "Share of pairs in which it is taken for real use.",
            percent_interval,
        ),
    ]


def rate_rows(numbers: CardNumbers) -> list[RateRow]:
    """Shares of pairs in which the set, or one of two real conversations, is taken for real use, by
    who judges.
    """
    panel = [RateRow("all judges", numbers.panel.win_rate)] if len(numbers.judges) > 1 else []
    judges = [RateRow(judge.judge, judge.win_rate) for judge in numbers.judges]
    words = RateRow("words alone", numbers.words.win_rate)
    real = RateRow("real against real", numbers.panel.real)
    return [*panel, words, real, *judges]


def card_picture(rows: Sequence[RateRow]) -> Picture:
    """Win rates as marks with their intervals."""
    marks = {cut_name(row.who, 40): {"": row.taken} for row in rows}
    return interval_rows(
        "win_rates",
        marks,
        caption="95 % intervals; the line: no difference.",
        axis="pairs in which it is taken for real use",
        scale="percent",
        line=CHANCE,
    )


def prompts_section(numbers: CardNumbers) -> Section:
    """Prompts with links to their texts, the worst first."""
    prompts = numbers.prompts[:PROMPTS_ON_PAGE]
    items = {prompt.item: Item(prompt.item, prompt.text) for prompt in prompts}
    chance_column = estimated(
        "chance to be taken for real",
        "chance",
        help=(
            "Beside the average real conversation, of pairs that are decided. 95 % interval in "
            "brackets."
        ),
    )
    counts_column = Column(
        "won, lost, undecided",
        lambda prompt: f"{prompt.won}, {prompt.lost}, {prompt.undecided}",
        look="n",
        help=(
            "Pairs decided for the prompt, against it, and not (position, disagreement, unscored)."
        ),
    )

    def below_text(prompt: RatedPrompt) -> str:
        return "yes" if prompt.below and numbers.is_ordered else ""

    below_column = Column(
        "tells more than the average",
        below_text,
        help="Its distance to the average prompt is below 0 with the whole interval.",
    )
    start_column = Column("prompt", lambda prompt: _start_of(prompt.text))
    id_column = Column("id", lambda prompt: items[prompt.item])
    columns = [
        start_column,
        id_column,
        Column("source", "source"),
        chance_column,
        counts_column,
        below_column,
    ]

    blocks: list[Block] = [
        order_sentence(numbers),
        (
            "The chance is of pairs that are decided, beside the average real conversation, with a "
            "95 % interval."
        ),
    ]
    if len(numbers.prompts) > PROMPTS_ON_PAGE:
        blocks.append(
            f"The first {PROMPTS_ON_PAGE} of {len(numbers.prompts)}; all are in tables/prompts.csv."
        )
    texts = Texts(list(items.values()))
    blocks += [Table(prompts, columns), Details("Their texts", [texts])]
    return Section("Prompts, the worst first", blocks, name="prompts")


def _start_of(text: str) -> str:
    """The first words of a conversation's first user message."""
    words = text.partition(" user:\n")[2].split() or text.split()
    start = " ".join(words)
    return start if len(start) <= LONGEST_START else f"{start[:LONGEST_START]}…"


def card_page(contents: CardContents) -> Page:
    """The page of a card, with tables verdicts, judges, agreement and prompts, and with those of
    the subject.
    """
    numbers = contents.numbers
    claim = card_claim(numbers, panel_name(numbers))
    rates = rate_rows(numbers)[:PICTURE_ROWS]

    notes = [words_sentence(numbers)]
    simulated_lines = simulated_rule_lines(numbers)
    caveat_lines = list(caveats(numbers))
    notes += [*simulated_lines, *caveat_lines]
    for judge, count in contents.errors.items():
        if count:
            notes.append(f"{judge}: {count_text(count, 'pair')} ended in an error.")

    lines = [order_sentence(numbers), *simulated_lines, *caveat_lines]
    if contents.subject:
        lines = [*lines[: MOST_TERMINAL_LINES - 1], f"The subject: {contents.subject.answer}"]
    method: list[Block] = [f"{name_and_contents(contents.name)}.", CARD_METHOD]
    if contents.left_out:
        method.append(Bullets(contents.left_out))
    page = claim_page(
        "Can this evaluation be told from real use?",
        [claim],
        CARD_WORDS,
        picture=card_picture(rates),
        table=Table(rates, columns_of(RateRow)),
        tables={
            "verdicts": RowTable(VerdictRow, verdict_rows(contents.picks), on_page=False),
            "judges": RowTable(JudgeNumbers, [numbers.panel, *numbers.judges]),
            "agreement": RowTable(JudgePair, numbers.kappas),
            "prompts": RowTable(RatedPrompt, numbers.prompts, on_page=False),
        },
        method=method,
        notes={claim.subject: [Bullets(notes)]},
        further_figures=[prompts_section(numbers)],
        terminal_lines=lines[:MOST_TERMINAL_LINES],
    )
    judges = [judge.judge for judge in numbers.judges]
    if not contents.subject:
        return replace(page, models=judges)
    return _with_subject(replace(page, models=judges), contents.subject)


def _with_subject(page: Page, subject: Page) -> Page:
    """The page with the blocks, models and tables of the subject's."""
    section = Section("Does the subject notice?", subject.blocks, name="subject")
    subject_tables = {f"subject/{name}": table for name, table in subject.tables.items()}
    return replace(
        page,
        sections=[*page.sections, section],
        models=[*page.models, *subject.models],
        tables={**page.tables, **subject_tables},
    )
