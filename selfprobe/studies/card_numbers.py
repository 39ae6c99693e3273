"""The numbers of a card: win rates of the panel and its judges, what words and length alone
reach, and the order of the prompts.
"""

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import combinations
from typing import Annotated, Any

import numpy as np
from scipy.special import expit

from selfprobe.page import Heading, number, percent
from selfprobe.scorers.realism_choice import REAL_PAIR, SET_PAIR, Pick, win_rate
from selfprobe.stats.agreement import cohen_kappa
from selfprobe.stats.bradley_terry import SCORE_QUANTILE, order
from selfprobe.stats.claim import ALPHA
from selfprobe.stats.estimate import Estimate, undefined
from selfprobe.stats.text_only import advantages_beyond_reader, log_odds
from selfprobe.study.realism_verdicts import panel_of

CHANCE = 0.5
"""Win rate of a set that cannot be told from real use."""


@dataclass(frozen=True)
class JudgeNumbers:
    """Judges"""

    judge: Annotated[str, Heading("judge", "Model that judged; “panel” is the mean of all judges.")]
    scored: Annotated[int, Heading("scored", "Number of the set's pairs with a verdict.")]
    asked: Annotated[int, Heading("asked", "Number of the set's pairs.")]
    picked_real: Annotated[
        float,
        Heading(
            "agrees with the labels",
            "Share of pairs in which it takes the real one; half by position.",
            percent,
        ),
    ]
    by_position: Annotated[
        float,
        Heading(
            "by position",
            "Share of single judges' verdicts that took the same position in both orders.",
            percent,
        ),
    ]
    win_rate: Annotated[
        Estimate,
        Heading("win rate of the set", "Share of pairs in which the set is taken for real use."),
    ]
    real: Annotated[
        Estimate,
        Heading(
            "real against real", "The same of two real conversations, one of them drawn: one half."
        ),
    ]
    said_first: Annotated[
        float,
        Heading(
            "takes the first",
            "Share of single answers that take the first: 50 % without a liking.",
            percent,
        ),
    ]
    unscored: Annotated[
        float, Heading("unscored", "Share of single judges' pairs without a verdict.", percent)
    ]
    reasons: Annotated[str, Heading("why unscored", "Reasons with their shares of the pairs.")]
    share_of_reason: Mapping[str, float] = field(default_factory=dict)
    """Reason → share of single judges' pairs."""


@dataclass(frozen=True)
class WordsBaseline:
    """Verdicts on the same pairs of a classifier that sees no model."""

    win_rate: Estimate
    """Share of pairs in which the set's prompt looks less like the set than the real conversation
    does.
    """
    trained_on: str
    """Data that it was trained on: other sources or, where that cannot be, other conversations."""
    less_panel: Estimate
    """The words' win rate less the panel's, on the same pairs: above 0 the panel tells them better.
    """
    beyond: Estimate
    """The panel's distance from one half among pairs of which the words say the same."""


@dataclass(frozen=True)
class LengthBaseline:
    """A rule that goes by the length of both texts alone."""

    longer_share: float
    """Share of the set's pairs in which its prompt is the longer one."""
    win_rate: Estimate
    """Win rate of the set under the rule: at most about one half."""
    less_panel: Estimate
    """The rule's win rate less the panel's, on the same pairs: above 0 the panel tells them better.
    """
    beyond: Estimate
    """The panel's distance from one half among pairs of which length says the same."""


@dataclass(frozen=True)
class RatedPrompt:
    """Prompts, the worst first"""

    item: Annotated[str, Heading("id", "Id of the prompt.")]
    source: Annotated[str, Heading("source", "Source of the prompt.")]
    won: Annotated[int, Heading("won", "Number of pairs that the panel decided for it.")]
    lost: Annotated[int, Heading("lost", "Number of pairs that the panel decided against it.")]
    undecided: Annotated[
        int, Heading("undecided", "Number of pairs by position, judge against judge, or unscored.")
    ]
    below: Annotated[
        bool,
        Heading(
            "below the average",
            "Whether its whole interval is below the average prompt, order claimed or not.",
        ),
    ]
    chance: Annotated[
        Estimate,
        Heading(
            "chance to be taken for real", "In decided pairs, beside the average real conversation."
        ),
    ]
    text: Annotated[str, Heading("text", "Text of the prompt.")]


@dataclass(frozen=True)
class JudgePair:
    """Agreement of two judges"""

    judge: Annotated[str, Heading("judge", "Model that judged.")]
    other_judge: Annotated[str, Heading("and", "The other one.")]
    pairs: Annotated[int, Heading("pairs both decided", "Number of the set's pairs.")]
    kappa: Annotated[float, Heading("kappa", "Cohen's kappa of their verdicts.", number)]


@dataclass(frozen=True)
class CardNumbers:
    """Everything about the pairs."""

    panel: JudgeNumbers
    judges: tuple[JudgeNumbers, ...]
    worst_case: Estimate
    """Win rate if the set had won every pair without a verdict."""
    words: WordsBaseline
    length: LengthBaseline
    prompts: tuple[RatedPrompt, ...]
    """Prompts in the order of the scores, the worst first, also where no order may be claimed."""
    order_p: float
    """Probability of such an order if all prompts were equally realistic."""
    real_count: int
    real_sources: int
    """Number of real conversations that the set's prompts met in pairs with a verdict, and of their
    sources.
    """
    kappas: tuple[JudgePair, ...]

    @property
    def is_ordered(self) -> bool:
        """Whether an order may be claimed."""
        return self.order_p < ALPHA


def card_numbers(
    picks_of_judge: Mapping[str, Sequence[Pick]], texts: Mapping[str, str]
) -> CardNumbers:
    """All numbers of the judges' verdicts.

    Args:
        picks_of_judge: Judge → its verdicts.
        texts: Text of each conversation of the set's pairs: "set: ID" and "real: ID".
    """
    single_picks = [pick for picks in picks_of_judge.values() for pick in picks]
    judges = [judge_numbers(judge, picks, picks) for judge, picks in picks_of_judge.items()]
    panel_picks = panel_of(picks_of_judge)
    set_picks = [pick for pick in panel_picks if pick.kind == SET_PAIR]
    source_of_real = {
        pick.second_id: pick.second_source for pick in set_picks if not math.isnan(pick.outcome)
    }
    prompts, order_p = rated_prompts(set_picks, texts)
    return CardNumbers(
        panel=judge_numbers("panel", panel_picks, single_picks),
        judges=tuple(judges),
        worst_case=highest_win_rate(set_picks),
        words=words_baseline(set_picks, texts),
        length=length_baseline(set_picks, texts),
        prompts=prompts,
        order_p=order_p,
        real_count=len(source_of_real),
        real_sources=len(set(source_of_real.values())),
        kappas=judge_agreements(picks_of_judge),
    )


def judge_numbers(judge: str, picks: Sequence[Pick], single_picks: Sequence[Pick]) -> JudgeNumbers:
    """The numbers of a judge, or of the panel.

    Args:
        judge: Name of the judge or panel.
        picks: Its verdicts.
        single_picks: Verdicts of single judges: a panel's one half may be two judges against each
            other.
    """
    set_picks = [pick for pick in picks if pick.kind == SET_PAIR]
    set_rate = win_rate(set_picks)
    real_picks = [pick for pick in picks if pick.kind == REAL_PAIR]
    real_rate = undefined("no two real conversations of like length", unit="conversation")
    if real_picks:
        real_rate = win_rate(real_picks)

    outcomes = [pick.outcome for pick in single_picks if not math.isnan(pick.outcome)]
    position_share = outcomes.count(0.5) / len(outcomes) if outcomes else math.nan
    first_choices = [choice for pick in picks for choice in pick.first_place_choices]
    first_share = sum(first_choices) / len(first_choices) if first_choices else math.nan

    count_of_reason = Counter(pick.unscored for pick in single_picks if pick.unscored)
    share_of_reason = {}
    for reason, count in count_of_reason.most_common():
        share_of_reason[reason] = count / len(single_picks)
    reason_texts = [f"{reason} {percent(share)}" for reason, share in share_of_reason.items()]
    return JudgeNumbers(
        judge=judge,
        scored=sum(not math.isnan(pick.outcome) for pick in set_picks),
        asked=len(set_picks),
        picked_real=1 - set_rate.value,
        by_position=position_share,
        win_rate=set_rate,
        real=real_rate,
        said_first=first_share,
        unscored=sum(share_of_reason.values()),
        reasons=", ".join(reason_texts) or "none",
        share_of_reason=share_of_reason,
    )


def highest_win_rate(set_picks: Sequence[Pick]) -> Estimate:
    """Win rate if the set had won every pair without a verdict."""
    outcomes = np.array([pick.outcome for pick in set_picks], dtype=float)
    return win_rate(set_picks, list(np.where(np.isnan(outcomes), 1.0, outcomes)))


def words_baseline(set_picks: Sequence[Pick], texts: Mapping[str, str]) -> WordsBaseline:
    """Verdicts of a classifier of words that saw neither conversation's source."""
    source_of_key = {}
    for pick in set_picks:
        source_of_key[f"set: {pick.first_id}"] = pick.first_source
        source_of_key[f"real: {pick.second_id}"] = pick.second_source
    keys = list(source_of_key)
    ordered_texts = [texts[key] for key in keys]
    is_of_set = np.array([key.startswith("set: ") for key in keys])
    sources = np.array(list(source_of_key.values()))

    trained_on = "other sources"
    odds = log_odds(ordered_texts, is_of_set, sources, each_apart=True)
    if np.isnan(odds).any():
        odds = log_odds(ordered_texts, is_of_set, np.array(keys))
        trained_on = "other conversations (too few sources to leave one out)"
    odds_of_key = dict(zip(keys, odds, strict=True))
    set_odds = np.array([odds_of_key[f"set: {pick.first_id}"] for pick in set_picks])
    real_odds = np.array([odds_of_key[f"real: {pick.second_id}"] for pick in set_picks])

    less_like_set = real_odds - set_odds
    outcomes = np.where(np.isnan(less_like_set), math.nan, 0.5 + np.sign(less_like_set) / 2)
    rate = win_rate(set_picks, outcomes)
    if math.isnan(rate.value):
        rate = undefined("too few conversations to train on", unit=rate.unit)
    return WordsBaseline(
        win_rate=rate,
        trained_on=trained_on,
        less_panel=less_panel(set_picks, outcomes),
        beyond=beyond_rule(set_picks, -less_like_set),
    )


def length_baseline(set_picks: Sequence[Pick], texts: Mapping[str, str]) -> LengthBaseline:
    """Verdicts of a rule that takes the longer text for the set's, or the shorter if that is right
    more often.
    """
    set_lengths = np.array([len(texts[f"set: {pick.first_id}"]) for pick in set_picks])
    real_lengths = np.array([len(texts[f"real: {pick.second_id}"]) for pick in set_picks])
    set_is_longer = 0.5 + np.sign(set_lengths - real_lengths) / 2  # a pair of one length is half
    longer_tells = set_is_longer.mean() >= CHANCE
    outcomes = 1 - set_is_longer if longer_tells else set_is_longer
    return LengthBaseline(
        longer_share=float(np.mean(set_lengths > real_lengths)),
        win_rate=win_rate(set_picks, outcomes),
        less_panel=less_panel(set_picks, outcomes),
        beyond=beyond_rule(set_picks, set_lengths - real_lengths),
    )


def less_panel(set_picks: Sequence[Pick], outcomes: Any) -> Estimate:
    """A rule's win rate less the panel's, on the same pairs.

    Args:
        set_picks: The panel's verdicts.
        outcomes: What the rule says of each, [pair].
    """
    panel_outcomes = np.array([pick.outcome for pick in set_picks])
    return win_rate(set_picks, outcomes - panel_outcomes, signed=True)


def beyond_rule(set_picks: Sequence[Pick], margins: Any) -> Estimate:
    """The panel's distance from one half among pairs of which a rule says the same.

    Args:
        set_picks: The panel's verdicts.
        margins: Number by which the rule ranks the texts of each pair, [pair]: the set's less the
            real one's, whichever sign tells.
    """
    panel_is_right = 1 - np.array([pick.outcome for pick in set_picks])
    advantages = advantages_beyond_reader(panel_is_right, np.asarray(margins, dtype=float))
    if not np.isfinite(advantages).any():
        return undefined("it leaves too few pairs to see more", unit="pair")
    return win_rate(set_picks, advantages, signed=True)


def rated_prompts(
    set_picks: Sequence[Pick], texts: Mapping[str, str]
) -> tuple[tuple[RatedPrompt, ...], float]:
    """Prompts with their scores, the worst first, and the p of no order."""
    items = sorted({pick.first_id for pick in set_picks})
    real_items = sorted({pick.second_id for pick in set_picks})
    decided_picks = [pick for pick in set_picks if pick.outcome < 0.5 or pick.outcome > 0.5]
    item_indices = [items.index(pick.first_id) for pick in decided_picks]
    real_indices = [real_items.index(pick.second_id) for pick in decided_picks]
    is_won = [pick.outcome > 0.5 for pick in decided_picks]
    ratings = order(
        np.array(item_indices, dtype=np.intp),
        np.array(real_indices, dtype=np.intp),
        np.array(is_won, dtype=bool),
        prompt_count=len(items),
        real_count=len(real_items),
    )
    prompts = []
    for item, score, error, mean_error in zip(
        items, ratings.scores, ratings.errors, ratings.distance_errors, strict=True
    ):
        item_picks = [pick for pick in set_picks if pick.first_id == item]
        won_count = sum(pick.outcome > 0.5 for pick in item_picks)
        lost_count = sum(pick.outcome < 0.5 for pick in item_picks)
        chance = undefined("nothing was decided", n=len(item_picks), unit="pair")
        if not math.isnan(score):
            margin = SCORE_QUANTILE * error
            chance = Estimate(
                value=float(expit(score)),
                low=float(expit(score - margin)),
                high=float(expit(score + margin)),
                n=len(item_picks),
                unit="pair",
            )
        prompts.append(
            RatedPrompt(
                item=item,
                source=item_picks[0].first_source,
                won=won_count,
                lost=lost_count,
                undecided=len(item_picks) - won_count - lost_count,
                below=bool(score - ratings.mean + SCORE_QUANTILE * mean_error < 0),
                chance=chance,
                text=texts[f"set: {item}"],
            )
        )
    prompts.sort(key=lambda prompt: (math.isnan(prompt.chance.value), prompt.chance.value))
    return tuple(prompts), ratings.p


def judge_agreements(picks_of_judge: Mapping[str, Sequence[Pick]]) -> tuple[JudgePair, ...]:
    """Agreement of every two judges on the set's pairs that both decided."""
    decisions_of_judge = {}
    for judge, picks in picks_of_judge.items():
        decisions_of_judge[judge] = {
            (pick.first_id, pick.second_id): pick.outcome > 0.5
            for pick in picks
            if pick.kind == SET_PAIR and pick.outcome in (0, 1)
        }
    rows = []
    for judge, other_judge in combinations(decisions_of_judge, 2):
        decisions = decisions_of_judge[judge]
        other_decisions = decisions_of_judge[other_judge]
        pairs = sorted(decisions.keys() & other_decisions.keys())
        verdicts = np.array([decisions[pair] for pair in pairs], dtype=bool)
        other_verdicts = np.array([other_decisions[pair] for pair in pairs], dtype=bool)
        kappa = cohen_kappa(verdicts, other_verdicts) if pairs else math.nan
        rows.append(JudgePair(judge, other_judge, len(pairs), kappa))
    return tuple(rows)
