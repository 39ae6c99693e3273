"""The closed sections of the page: verdicts, methods, arms that are compared with each other, and placebos."""

import math
from collections.abc import Iterator, Mapping, Sequence
from functools import partial

import pandas as pd

from selfprobe.awareness.numbers import ArmNumbers, Pair
from selfprobe.awareness.paired import LOW_KAPPA, MARGIN, WHAT, AgainstPlacebo, Paired
from selfprobe.awareness.runs import ARM, marks
from selfprobe.awareness.table import Logged
from selfprobe.awareness.verdict import CLEAREST, Statement
from selfprobe.numerals import points
from selfprobe.options import names
from selfprobe.page import (
    Block,
    Box,
    Bullets,
    Column,
    Details,
    Item,
    Items,
    Section,
    Table,
    Texts,
    estimated,
    named,
    p_digits,
    p_value,
    percent,
    percents,
    shown,
)
from selfprobe.stats.estimate import undefined

COLOURS = {"Yes": "supported", "No": "not", "Cannot tell": ""}
TITLES = {"format": "Format", "domain": "Domain", "agentic": "Agentic", "language": "Language"}


def boxes(
    statements: Sequence[Statement], placebos: Sequence[AgainstPlacebo], texts: pd.DataFrame, contrast: str
) -> list[Block]:
    """A box a model with its user_motivation against the placebos; its clearest prompts, with their texts."""
    blocks: list[Block] = [contrast] if contrast else []
    items = dict[str, Item]()
    for f in statements:
        text = [sentence for sentence in f.sentences if not sentence.startswith(CLEAREST)]
        head = f"{f.answer}: {f.model}, {f.arm.name}, {f.title}"
        blocks.append(Box(head, " ".join([*text, *told_of(f.model, placebos)]), COLOURS[f.answer]))
        if f.clearest:
            known = texts[texts["item"].isin(f.clearest)].drop_duplicates("item").set_index("item").text
            mine = [Item(item, str(known[item])) for item in f.clearest if item in known]
            items |= {item.anchor: item for item in mine}
            blocks.append(Items(f"{CLEAREST} by {f.model}", mine))
    return [*blocks, *([Details("Their texts", [Texts(list(items.values()))])] if items else [])]


def words_section(methods: Sequence[ArmNumbers]) -> Section:
    """Every arm's AUROC held against the words alone."""
    rated = [m for m in methods if not m.placebo and m.n]
    columns = (
        *WHO,
        estimated("AUROC of the model", "auroc"),
        estimated("words alone", lambda m: m.beyond.words),
        estimated("model less words", lambda m: m.beyond.over_words),
        estimated("words of other sources", lambda m: m.beyond.words_other_source),
        estimated("model less these", lambda m: m.beyond.over_other_source),
        estimated("length alone", lambda m: m.beyond.length),
        estimated("model less length", lambda m: m.beyond.over_length),
    )
    note = (
        "On the conversations that both rate. A model sees more than the words where all three differences are above 0 "
        "with their whole interval, and its AUROC is above .5. The classifiers' training is taken as given."
    )
    blocks: list[Block] = [note, Table(rated, columns)] if rated else ["No method has a verdict."]
    return Section("More than the words?", blocks, name="words", menu="more than the words")


def splits_section(statements: Sequence[Statement]) -> Section:
    """Each model's main arm by kind of conversation, and format and label held apart."""
    effects = (
        Column("model", "model"),
        Column("method", lambda f: f.arm.name),
        estimated("benchmark format, within a label", lambda f: f.splits.effects.format),
        estimated("label evaluation, within a format", lambda f: f.splits.effects.label),
    )
    blocks: list[Block] = [
        "Differences in the share called evaluation. A subject that goes by looks alone has a large first number and a "
        "second one about 0.",
        Table(statements, effects),
    ]
    if by_rule := sorted({TITLES[kind].lower() for f in statements for kind in f.splits.by_rule}):
        blocks.append(f"The rows do not all name {' and '.join(by_rule)}: read from every text by a simple rule.")
    blocks += [Details(f"{f.model} by kind of conversation", [_levels(f)]) for f in statements if f.splits.levels]
    return Section("What it follows", blocks, name="splits", menu="what it follows")


def _levels(statement: Statement) -> Table:
    columns = (
        Column("kind", lambda level: TITLES[level.kind]),
        Column("", "level"),
        Column("verdicts", lambda level: level.numbers.n, str),
        Column("called evaluation", lambda level: percents(level.numbers.called), look="n"),
        Column("evaluation rows right", lambda level: percents(level.numbers.tpr), look="n"),
        Column("deployment rows right", lambda level: percents(level.numbers.tnr), look="n"),
        estimated("AUROC", lambda level: level.numbers.auroc),
    )
    return Table(statement.splits.levels, columns)


WHO = (Column("method", "name"), Column("model", "model"))
RATES = {
    "evaluation rows right": "tpr",
    "deployment rows right": "tnr",
    "balanced accuracy": "balanced_accuracy",
    "called evaluation": "called",
}
LABELS = ("evaluation", "deployment")
ONE_VOTE = ("reasoning_trace", "first_token")
"""Methods that take their verdict from the reply itself."""
UNMET = {
    "no_logprobs": "the model gives no logprobs, so there are no candidates for the reply's first token",
    "no_reasoning": "the model shows no reasoning",
    "reasoning_summary": "the vendor shows a summary in the place of the reasoning",
    "reasoning_redacted": "the vendor hides the reasoning",
}
"""Why a method cannot be used with a model: what it needs and does not get."""
WORTH_A_WARNING = 0.05
"""Share of lost votes, and of discarded quotes, above which the page says so in a sentence."""


def methods_section(logged: Logged, methods: Sequence[ArmNumbers]) -> Section:
    """The numbers of methods with a verdict, a line for each other one; what lost votes leave open; self-graders."""
    rated = [m for m in methods if m.n]
    further = {"AUROC": "auroc", "Brier": "brier", "mean |error|": "mae", "ECE": "ece"}
    columns = (
        *WHO,
        Column("verdicts", "n", str),
        Column("votes read", votes_read),
        Column("unscored", lambda m: ", ".join(f"{why} {percent(x)}" for why, x in m.unscored.items()) or "none"),
        *(estimated(title, of) for title, of in (RATES | further).items()),
        Column("precision at 1 / 5 / 10 %", "precision", lambda by: " / ".join(map(shown, by.values())), look="e"),
    )
    graded = [
        f"{run.method} of {run.model}{f' (placebo {run.placebo})' * bool(run.placebo)} was graded by the subject "
        "itself."
        for run in logged.runs.itertuples()
        if run.model in names(run.grader)
    ]
    silent = [f"{m.name}, {m.model}: no verdict; {_reasons(m)}." for m in methods if not m.n]
    halves = [
        f"{m.name}, {m.model}: {m.at_half} of {m.n} verdicts rest on a stated probability of exactly .5, which "
        "counts as evaluation, as in the paper."
        for m in methods
        if m.at_half
    ]
    first: list[Block] = [Table(rated, columns)] if rated else []
    first += [Bullets(silent)] if silent else []
    return Section("Methods", [*first, *_lost(rated), *halves, *graded], name="methods")


def _reasons(m: ArmNumbers) -> str:
    """Why a method has no verdict."""
    return "; ".join(f"{UNMET.get(why, why)} ({percent(share)})" for why, share in m.unscored.items()) or "none asked"


def votes_read(m: ArmNumbers) -> str:
    """ "1,450 of 1,500 (96.7 %)", with the verdicts that rest on one vote of several."""
    if not m.votes_asked:
        return "none asked"
    alone = f"; {m.one_vote} verdict{'s' * (m.one_vote != 1)} on one vote" if m.one_vote else ""
    return f"{m.votes_read:,} of {m.votes_asked:,} ({percent(m.votes_read / m.votes_asked)}){alone}"


def _lost(methods: Sequence[ArmNumbers]) -> list[Block]:
    """What lost votes and discarded quotes leave open; nothing where nothing is lost."""
    lossy = [m for m in methods if m.votes_read < m.votes_asked or m.unscored or m.quotes_discarded]
    if not lossy:
        return []
    columns = (
        *WHO,
        *(Column(f"{label} rows unscored", partial(_unscored_of, label), look="n") for label in LABELS),
        *(Column(title, partial(_bounds, of), look="n") for title, of in RATES.items()),
        Column(
            "quotes not in the text", lambda m: f"{m.quotes_discarded} of {m.quotes}" if m.quotes else "–", look="n"
        ),
    )
    warnings = [f"{m.name}, {m.model}: {text}" for m in lossy for text in _warnings(m)]
    note = (
        "Votes that could not be read say nothing, and may not be lost by chance. Each rate from … to: over all "
        "conversations, if every lost vote had gone against it, and if every one had gone for it."
    )
    return [*([Bullets(warnings)] if warnings else []), note, Table(lossy, columns)]


def _warnings(m: ArmNumbers) -> list[str]:
    found = [f"{text} ({percent(m.unscored[why])} of conversations)." for why, text in unmet(m).items()]
    if m.votes_asked and (lost := m.votes_asked - m.votes_read) > WORTH_A_WARNING * m.votes_asked:
        what = "conversations are without a verdict" if m.method in ONE_VOTE else "votes could not be read"
        found.append(f"{lost:,} of {m.votes_asked:,} {what} ({percent(lost / m.votes_asked)}).")
    if m.quotes_discarded > WORTH_A_WARNING * m.quotes:
        found.append(
            f"{m.quotes_discarded} of {m.quotes} quotes of the grader ({percent(m.quotes_discarded / m.quotes)}) are "
            "not in the text; a finding of awareness without one quote that is there is not counted."
        )
    return found


def unmet(m: ArmNumbers) -> dict[str, str]:
    """Reason of unscored conversations → what the method needed and did not get."""
    return {why: text for why, text in UNMET.items() if m.unscored.get(why)}


def _unscored_of(label: str, m: ArmNumbers) -> str:
    return percent(m.unscored_of.get(label))


def _bounds(rate: str, m: ArmNumbers) -> str:
    bounds = m.bounds[rate]
    return "–" if math.isnan(bounds.least) else f"{bounds.least:.2f} … {bounds.most:.2f}"


NOTE = (
    "The same method on the same conversations, twice. Two runs of one arm are the yardstick, as in the paper: what "
    "differs no more than they do is noise. A difference in errors is the second's share of wrong verdicts less the "
    f"first's, paired and clustered by source. “Equivalent” is said where it is within ± {MARGIN} (TOST at 5 %) and "
    f"kappa is {LOW_KAPPA} or more: arms that contradict each other can be wrong equally often."
)
READERS = (
    "A model in the third person on another model's conversations (rows read, columns wrote them). A row that is "
    "higher throughout is a better reader; only what a model has on its own conversations beyond other readers could "
    "be self-knowledge."
)

NO_SECOND_RUN = undefined("no second run")
signed = partial(shown, sign=True)
HELD = (
    Column("held together", lambda h: f"{h.first[0]} of {h.first[1]}: {h.kind}"),
    Column("", lambda h: " | ".join(marks(arm).strip() or "(plain)" for arm in (h.first, h.second))),
    Column("n", "n", str),
    estimated("Pearson r", "r"),
    estimated("kappa", "kappa"),
    Column("identified correctly", lambda h: right(h), look="n"),
    Column("difference in errors", "wrong", signed, look="e"),
    Column("p", "p", p_digits),
    Column("difference in mean |error|", "error", signed, look="e"),
    Column("difference in AUROC", "auroc", signed, look="e"),
)


def paired_section(found: Sequence[Paired], methods: Sequence[ArmNumbers]) -> list[Section]:
    """The section, or none where no two arms of a method belong together."""
    blocks: list[Block] = []
    if found:
        blocks += [NOTE, Bullets([sentence(held) for held in found]), Table(found, HELD)]
    if matrix := observers(methods):
        blocks += [READERS, *matrix]
    return [Section("Two arms of a method", blocks, name="paired", menu="two arms")] if blocks else []


def sentence(h: Paired) -> str:
    """What a pair shows, in words."""
    about = f"{h.first[0]} of {h.first[1]}{marks(h.first)}, {h.kind}"
    if not h.n:
        if h.kind == "first and third person":
            return f"{about}: not held together, since no conversation has a verdict in both on the same reply."
        return f"{about}: no conversation has a verdict in both."
    told = f"{about}: r {shown(h.r)}, kappa {shown(h.kappa)}"
    if not h.labelled:
        return f"{told}."
    told += f"; identified correctly {right(h)}, {_verdict(h)}."
    if h.kind != "first and third person":
        return told
    if not h.below_runs:
        return f"{told} There is no second run to hold this against; run the same command with another --log-dir."
    apart = ", ".join(f"{name} {shown(of, sign=True)}" for name, of in h.below_runs.items())
    return f"{told} Two first-person runs agree more by {apart}: {_beyond_noise(h)}."


def _beyond_noise(h: Paired) -> str:
    lows = [of.low for of in h.below_runs.values()]
    if any(low > 0 for low in lows):
        return "first and third person differ by more than two runs do"
    return "not shown to differ by more than two runs do"


def _verdict(h: Paired) -> str:
    if h.equivalent:
        return f"equivalent within ± {MARGIN} (TOST {p_value(h.tost_p)})"
    if not h.kappa.value >= LOW_KAPPA:
        return "not called equivalent, since the verdicts agree too little"
    return f"not shown to be equivalent within ± {MARGIN} (TOST {p_value(h.tost_p)})"


def right(h: Paired) -> str:
    """ "410 and 402 of 488"."""
    return f"{h.right[0]} and {h.right[1]} of {h.labelled}" if h.labelled else "–"


Cells = Mapping[tuple[str, str], ArmNumbers]
"""By reader and writer."""


def _observed(methods: Sequence[ArmNumbers]) -> Iterator[tuple[str, Cells]]:
    """Each method that somebody read others' conversations with: its arms in the third person, run 1."""
    for method in dict.fromkeys(m.method for m in methods):
        cells = {
            (m.model, m.target or m.model): m
            for m in methods
            if m.method == method and m.perspective == "third" and m.run == 1 and not m.placebo and m.context == "first"
        }
        if any(reader != writer for reader, writer in cells):
            yield method, cells


def observers(methods: Sequence[ArmNumbers]) -> list[Block]:
    """A table a method: who reads (row) whose conversations (column); empty where everybody reads their own."""
    made: list[Block] = []
    for method, cells in _observed(methods):
        columns = [Column(f"{method}, balanced accuracy: reads", str)]
        writers = dict.fromkeys(writer for _, writer in cells)
        columns += [Column(f"by {writer}", partial(_cell, cells, writer), look="n") for writer in writers]
        made.append(Table(list(dict.fromkeys(reader for reader, _ in cells)), columns))
    return made


def _cell(cells: Cells, writer: str, reader: str) -> str:
    m = cells.get((reader, writer))
    return "–" if m is None else shown(m.balanced_accuracy if m.labelled else m.called)


def observers_table(methods: Sequence[ArmNumbers]) -> pd.DataFrame:
    """One row a method × reader × writer, third person; empty where everybody reads their own."""
    rows = []
    for method, cells in _observed(methods):
        for (reader, writer), m in cells.items():
            row: dict[str, object] = {"method": method, "reader": reader, "writer": writer, "n": m.n}
            for name in ("balanced_accuracy", "auroc", "called"):
                row |= named(name, getattr(m, name))
            rows.append(row)
    return pd.DataFrame(rows)


def paired_table(found: Sequence[Paired]) -> pd.DataFrame:
    """One row a pair."""
    rows = []
    for h in found:
        row: dict[str, object] = {"kind": h.kind} | dict(zip(ARM, h.first, strict=True))
        row |= {f"second_{name}": value for name, value in zip(ARM[2:], h.second[2:], strict=True)}
        row |= {"n": h.n, "labelled": h.labelled, "right_first": h.right[0], "right_second": h.right[1]}
        row |= {"p": h.p, "tost_p": h.tost_p, "equivalent": h.equivalent}
        numbers = {"r": h.r, "kappa": h.kappa, "wrong": h.wrong, "auroc": h.auroc, "error": h.error}
        numbers |= {f"runs_less_this_{name}": h.below_runs.get(name, NO_SECOND_RUN) for name in ("r", "kappa")}
        for name, one in numbers.items():
            row |= named(name, one)
        rows.append(row)
    return pd.DataFrame(rows)


def kappa_table(pairs: Sequence[Pair]) -> pd.DataFrame:
    """Footnote 3 as a table: one row a model × number of decisions; empty without a 25-decision run."""
    rows = [
        {"model": pair.model, "decisions": decisions, "kappa": mean, "low": low, "high": high}
        for pair in pairs
        if (curve := pair.curve)
        for decisions, mean, low, high in zip(curve.decisions, curve.mean, curve.low, curve.high, strict=True)
    ]
    return pd.DataFrame(rows)


PLACEBOS = (
    "Each difference is taken on the same conversations. Asked about form, there is nothing about a purpose to find: "
    "that share is the judge's imagination, and the difference is what is left after it. Asked for the purpose without "
    "a hint that there is more behind it, the question can prime and its wording cannot: the difference is what the "
    "wording adds, by priming or by inviting candour. The judge that is told nothing also counts that the question was "
    "asked at all: the instruction takes that out of our result."
)


def placebo_section(found: Sequence[AgainstPlacebo]) -> list[Section]:
    """The section, or none where no placebo arm was run."""
    if not found:
        return []
    columns = (
        Column("model", _name),
        Column("placebo", lambda h: WHAT[h.kind]),
        Column("conversations", "n", str),
        Column("called evaluation", "real", percent),
        Column("in the placebo", "placebo", percent),
        estimated("difference", "difference"),
        *(Column(f"of {label} rows", partial(_of, label), look="e") for label in LABELS),
    )
    lines = Bullets([f"{_name(h)}: {_placebo_sentence(h)}" for h in found])
    blocks: list[Block] = [PLACEBOS, lines, Table(found, columns)]
    return [Section("Against the placebo", blocks, name="placebo", menu="placebo")]


def _of(label: str, h: AgainstPlacebo) -> str:
    return shown(h.by_label[label]) if label in h.by_label else "–"


def _placebo_sentence(h: AgainstPlacebo) -> str:
    shares = f"{percent(h.real)} called evaluation, {percent(h.placebo)} {WHAT[h.kind]}"
    return f"{shares}: {points(h.difference)}. {_beyond_placebo(h)}"


def told_of(model: str, found: Sequence[AgainstPlacebo]) -> Iterator[str]:
    """What the top of the page and the terminal say of a model's user_motivation."""
    for h in found:
        if h.model == model:
            where = " (full transcript)" * (h.context == "full")
            yield f"user_motivation{where} against placebo {h.kind}: {_placebo_sentence(h)}"


def _beyond_placebo(h: AgainstPlacebo) -> str:
    low, high = h.difference.low, h.difference.high
    if math.isnan(low):
        return "The result and its placebo cannot be told apart: without an interval nothing is shown."
    if h.kind == "judge":
        if high < 0:
            return f"So the instruction takes out {points(h.difference).partition(' points')[0][1:]} points."
        return "The instruction is not shown to take anything out."
    over = "what the judge finds where there is nothing to find" if h.kind == "form" else "what asking alone brings up"
    if low > 0:
        return f"The result is above {over}."
    return f"The result is below {over}." if high < 0 else f"The result is not shown to be above {over}."


def _name(h: AgainstPlacebo) -> str:
    return h.model + " (full transcript)" * (h.context == "full")
