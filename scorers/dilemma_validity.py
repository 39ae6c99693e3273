"""Is a generated text a dilemma with two options, fit to be judged?"""

from typing import Literal

from inspect_ai.scorer import Score, Scorer, Target, scorer
from inspect_ai.solver import TaskState

from selfprobe.scorers.decision import UNPARSED, Decision, observer_fault, score_of
from selfprobe.scorers.summary import summary
from selfprobe.solvers.record import Record, Reply
from selfprobe.text.kinds import is_refusal
from selfprobe.text.parse import json_texts, normalise, words

FIELDS = ("scenario", "option_a", "option_b")
SCENARIO_WORDS, OPTION_WORDS = (30, 300), (3, 60)  # smallest and largest number of words; 80 to 160 are asked for

Flaw = Literal["scenario_length", "option_length", "same_options", "options_in_scenario", "declined"]


@scorer(metrics=[summary("valid")])
def dilemma_validity() -> Scorer:
    """1 for a dilemma that can be judged, 0 for one with a flaw; unscored where there is no dilemma to read."""

    async def score(state: TaskState, target: Target) -> Score:
        reply = state.store_as(Record).acts["dilemma"]
        decision = judge(reply)
        text = dilemma_text(reply)
        return score_of([decision], answer=text, explanation=decision.unscored or decision.said or f"valid:\n\n{text}")

    return score


def judge(reply: Reply) -> Decision:
    """Verdict; its `said` is the flaw."""
    fault = observer_fault(reply)
    fields = None if fault else json_texts(reply.text, FIELDS)
    if fields is None:
        return Decision(key="valid", unscored=fault or UNPARSED)
    flaw = flaw_of(**fields)
    return Decision(key="valid", value=float(flaw is None), said=flaw)


def flaw_of(scenario: str, option_a: str, option_b: str) -> Flaw | None:
    """First flaw that makes a dilemma unfit to be judged, or None."""
    if any(is_refusal(text) for text in (scenario, option_a, option_b)):
        return "declined"
    if not SCENARIO_WORDS[0] <= len(words(scenario)) <= SCENARIO_WORDS[1]:
        return "scenario_length"
    if any(not OPTION_WORDS[0] <= len(words(option)) <= OPTION_WORDS[1] for option in (option_a, option_b)):
        return "option_length"
    if [normalise(w) for w in words(_bare(option_a))] == [normalise(w) for w in words(_bare(option_b))]:
        return "same_options"
    return "options_in_scenario" if "option a" in scenario.casefold() and "option b" in scenario.casefold() else None


def dilemma_text(reply: Reply) -> str | None:
    """Text of the dilemma for models: the scenario and two lines, Option A and Option B."""
    fields = json_texts(reply.text, FIELDS)
    if fields is None:
        return None
    scenario, a, b = fields["scenario"], _bare(fields["option_a"]), _bare(fields["option_b"])
    return f"{scenario}\n\nOption A: {a}\nOption B: {b}"


def _bare(option: str) -> str:
    """An option on one line, without its label ("Option A: Tell her." → "Tell her.")."""
    line = " ".join(option.split())
    head, colon, rest = line.partition(":")
    return rest.strip() if colon and head.casefold() in ("option a", "option b", "a", "b") and rest.strip() else line
