"""The page's section of arms that were held against each other, and who reads whose conversations."""

from collections.abc import Mapping, Sequence
from functools import partial

import pandas as pd

from selfprobe.awareness.numbers import ArmNumbers, Pair
from selfprobe.awareness.paired import LOW_KAPPA, MARGIN, Paired
from selfprobe.awareness.runs import ARM, marks
from selfprobe.page import Block, Bullets, Column, Section, Table, estimated, named, p_digits, p_value, shown
from selfprobe.stats.estimate import Estimate, undefined

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


def paired_section(found: Sequence[Paired], methods: Sequence[ArmNumbers]) -> list[Section]:
    """The section, or none where no two arms of a method belong together."""
    blocks: list[Block] = []
    if found:
        table = Table(
            found,
            (
                Column("held together", lambda h: f"{h.first[0]} of {h.first[1]}: {h.kind}"),
                Column("", lambda h: f"{_mark(h.first)} | {_mark(h.second)}"),
                Column("n", "n", str),
                estimated("Pearson r", "r"),
                estimated("kappa", "kappa"),
                Column("identified correctly", right, look="n"),
                Column("difference in errors", "wrong", _signed, look="e"),
                Column("p", "p", p_digits),
                Column("difference in mean |error|", "error", _signed, look="e"),
                Column("difference in AUROC", "auroc", _signed, look="e"),
            ),
        )
        blocks += [NOTE, Bullets([sentence(held) for held in found]), table]
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


def _signed(e: Estimate) -> str:
    return shown(e, sign=True)


def _mark(arm: Sequence[object]) -> str:
    return marks(arm).strip() or "(plain)"


def observers(methods: Sequence[ArmNumbers]) -> list[Block]:
    """A table a method: who reads (row) whose conversations (column); empty where everybody reads their own."""
    made: list[Block] = []
    for method in dict.fromkeys(m.method for m in methods):
        cells = _cells(methods, method)
        if all(reader == writer for reader, writer in cells):
            continue
        writers = list(dict.fromkeys(writer for _, writer in cells))
        columns = [Column(f"{method}, balanced accuracy: reads", lambda reader: str(reader))]
        columns += [Column(f"by {writer}", partial(_cell, cells, writer), look="n") for writer in writers]
        made.append(Table(list(dict.fromkeys(reader for reader, _ in cells)), tuple(columns)))
    return made


def _cells(methods: Sequence[ArmNumbers], method: str) -> dict[tuple[str, str], ArmNumbers]:
    """Third person, run 1, by reader and writer."""
    return {
        (m.model, m.target or m.model): m
        for m in methods
        if m.method == method and m.perspective == "third" and m.run == 1 and not m.placebo and m.context == "first"
    }


def _cell(cells: Mapping[tuple[str, str], ArmNumbers], writer: str, reader: str) -> str:
    m = cells.get((reader, writer))
    return "–" if m is None else shown(m.balanced_accuracy if m.labelled else m.called)


def observers_table(methods: Sequence[ArmNumbers]) -> pd.DataFrame:
    """One row a method × reader × writer, third person; empty where everybody reads their own."""
    rows = []
    for method in dict.fromkeys(m.method for m in methods):
        cells = _cells(methods, method)
        if any(reader != writer for reader, writer in cells):
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
