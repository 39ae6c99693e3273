"""Pairs of conversations of which one is real use: the prompts of a set, each beside real ones of
like length.

-T dataset=my_eval.jsonl -T against=real.jsonl   both in any form of `conversations`, task: and logs: too
-T dataset=labelled.jsonl                        its evaluation rows against its own deployment rows

Every prompt meets `opponents` real conversations, drawn from all of like length so that each is met
about as often, and as many are shorter as longer. Real conversations also meet one another, which
must come out at one half.
"""

import hashlib
import random
from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from heapq import nsmallest
from itertools import cycle, islice

from inspect_ai.dataset import Sample
from inspect_ai.tool import ToolInfo

from selfprobe.data import Row, Table, load, table_of
from selfprobe.data.conversations import REFERENCE_NAMES, conversations
from selfprobe.data.messages import numbered
from selfprobe.errors import InputError
from selfprobe.errors.arguments import whole

PROMPTS = 200
"""Prompts of the set that are compared, unless more are asked for."""
OPPONENTS = 4
"""Number of real conversations that each prompt meets."""
REAL_PAIRS = 100
"""Largest number of pairs of two real conversations."""
FEWEST = 24
"""Number of real conversations that are kept where there are fewer prompts, so that each prompt
meets several.
"""
LONGEST = 2.0
"""Largest ratio of the lengths of the two of a pair, in characters."""

BRING = (
    'bring real conversations, against=real.jsonl (--against): one a line as {{"input": "…"}} or '
    '{{"messages": […]}}, of people who needed the reply: your own traffic that you may use, or a public set such as '
    "WildChat. Some dozens are needed, of several sources, and about as long as your prompts (most of them have "
    "{size} characters)"
)


@dataclass(frozen=True)
class Sides:
    """The set and the real conversations, ready to be paired; every row with `text`."""

    name: str
    """Names of both sides, in the user's words."""
    prompts: list[Row]
    """Prompts of the set: of different texts, drawn where there are more than wanted."""
    real: list[Row]
    """Real conversations: at most as many (or `FEWEST`), those nearest in length."""
    omissions: list[str]
    """Sentences about what was left out."""


def sides(
    dataset: str | Sequence[str],
    *,
    against: str | Sequence[str] | None,
    task: str | None = None,
    logs: str | None = None,
    role: str | None = None,
    context: str = "first",
    prompts: int | None = PROMPTS,
) -> Sides:
    """Read both sides, leave repeated texts out, draw the prompts, and take real conversations of
    like length.

    Args:
        dataset, task, logs, role, context: The set; see `conversations`.
        against: Real conversations, as `dataset`; rows labelled evaluation are none. None: the
            set's own deployment rows, against its evaluation rows.
        prompts: Most prompts of the set, drawn by chance (always the same ones); None is all.

    Raises:
        InputError: There are no real conversations, or none of like length (with what to bring), or
            no prompts of the set.
    """
    whole(prompts=prompts, optional=True)
    ours = conversations(dataset, task=task, logs=logs, role=role, context=context)
    if against is None:
        mine = _Side(ours, lambda row: row["label"] == "evaluation")
        theirs = _Side(ours, lambda row: row["label"] == "deployment")
        if not mine.count or not theirs.count:
            have = f"all {len(ours.rows)} rows of {ours.name} are {ours.rows[0]['label'] or 'without a label'}"
            raise InputError(f"nothing real to hold the set against, {have}: {_bring(ours.rows)}")
        return _ready(ours.name, mine, theirs, [f"{ours.unread}."] if ours.unread else [], prompts)
    known = REFERENCE_NAMES.get(against, against) if isinstance(against, str) else against
    real = conversations(known, context=context)
    mine = _Side(ours, lambda row: row["label"] != "deployment")
    theirs = _Side(real, lambda row: row["label"] != "evaluation")
    notes = [f"{table.name}: {table.aside_line()}" for table in (ours, real) if table.aside]
    notes += [f"{table.unread}." for table in (ours, real) if table.unread]
    notes += mine.labelled_note("deployment", "no prompts of an evaluation")
    notes += theirs.labelled_note("evaluation", "not real use")
    if not mine.count:
        raise InputError(
            f"{ours.name}: all {len(ours.rows)} rows are labelled deployment: there is no evaluation"
        )
    if not theirs.count:
        raise InputError(
            f"against={against}: all {len(real.rows)} rows are labelled evaluation: {_bring(mine.rows())}"
        )
    return _ready(f"{ours.name} against {real.name}", mine, theirs, notes, prompts)


class _Side:
    """The rows of a table that are of one side; those of a large table are read when they are used."""

    def __init__(self, table: Table, belongs: Callable[[Row], bool]) -> None:
        self._table = table
        self.numbers = [number for number, row in enumerate(table.rows) if belongs(row)]

    @property
    def count(self) -> int:
        """Number of its rows."""
        return len(self.numbers)

    def rows(self) -> Iterator[Row]:
        """Its rows, without their texts."""
        return (self._table.rows[number] for number in self.numbers)

    def row(self, number: int) -> Row:
        """A row of the table with its text."""
        return with_prompt_text(self._table.rows[number])

    def labelled_note(self, label: str, why: str) -> list[str]:
        """Line on the rows that have the other side's label, and are left out; none where there are
        none.
        """
        count = len(self._table.rows) - self.count
        return (
            [f"{count} rows of {self._table.name} are labelled {label}: {why}, and left out."]
            if count
            else []
        )


@dataclass(frozen=True)
class _Candidate:
    """A conversation that may be compared."""

    number: int
    """Number of its row in its table."""
    length: int
    """Characters of its text."""
    key: str
    """Digest of its id, which orders those of one length."""


def _candidates(side: _Side, known_texts: set[str]) -> tuple[list[_Candidate], int]:
    """Conversations of different texts, which are added to the known ones; and how many are left
    out.
    """
    candidates = list[_Candidate]()
    for number in side.numbers:
        row = side.row(number)
        text = _digest(row["text"])
        if text not in known_texts:
            known_texts.add(text)
            candidates.append(_Candidate(number, len(row["text"]), _digest(row["id"])))
    return candidates, side.count - len(candidates)


def _ready(
    name: str, mine: _Side, theirs: _Side, notes: Sequence[str], prompt_limit: int | None
) -> Sides:
    texts, omissions = set[str](), list(notes)
    prompts, repeated_prompts = _candidates(mine, texts)
    real, repeated_real = _candidates(theirs, texts)
    if repeated_prompts:
        omissions.append(
            f"{repeated_prompts} prompts repeat the text of another one and are left out."
        )
    if repeated_real:
        omissions.append(
            f"{repeated_real} real conversations repeat another text, or one of the set, and are left out."
        )
    if not real:
        raise InputError(
            f"{name}: every real conversation is in the set as well: {_bring(mine.rows())}"
        )
    if prompt_limit is not None and len(prompts) > prompt_limit:
        omissions.append(f"{prompt_limit} of {len(prompts):,} prompts are drawn by chance.")
        drawn = random.Random(0).sample(range(len(prompts)), prompt_limit)
        prompts = [prompts[number] for number in sorted(drawn)]
    near = _within_reach(prompts, real)
    if not near:
        raise _unlike(name, [one.length for one in real], mine.rows())
    if len(near) < len(real):
        unlike = len(real) - len(near)
        omissions.append(
            f"{unlike:,} real conversations are unlike all prompts in length, and are left out."
        )
    pool = _nearest(prompts, near)
    if len(pool) < len(near):
        omissions.append(
            f"{len(pool)} of {len(near):,} real conversations are taken, those nearest in length."
        )
    return Sides(
        name,
        [mine.row(one.number) for one in prompts],
        [theirs.row(one.number) for one in pool],
        omissions,
    )


def _within_reach(prompts: Sequence[_Candidate], real: Sequence[_Candidate]) -> list[_Candidate]:
    """The real conversations that are like some prompt in length."""
    lengths = sorted(prompt.length for prompt in prompts)

    def is_near(length: int) -> bool:
        first = bisect_left(lengths, length / LONGEST)
        return first < len(lengths) and lengths[first] <= LONGEST * length

    return [one for one in real if is_near(one.length)]


def _nearest(prompts: Sequence[_Candidate], real: Sequence[_Candidate]) -> list[_Candidate]:
    """For each prompt the real conversation nearest in length that no other took, and again until
    there are enough.

    All of them where there are not more than prompts, or than `FEWEST`.
    """
    wanted = max(len(prompts), FEWEST)
    if len(real) <= wanted:
        return list(real)
    left = sorted(real, key=lambda one: (one.length, one.key))
    lengths, chosen = [one.length for one in left], list[_Candidate]()
    for prompt in islice(cycle(sorted(prompts, key=lambda one: one.key)), wanted):
        place = bisect_left(lengths, prompt.length)
        beside = [number for number in (place - 1, place) if 0 <= number < len(lengths)]
        best = min(beside, key=lambda number: abs(lengths[number] - prompt.length))
        lengths.pop(best)
        chosen.append(left.pop(best))
    return chosen


@dataclass(frozen=True)
class Pairs:
    """The pairs that judges are asked about."""

    table: Table
    """Rows: id, kind ("set" or "real"), one, two (id, source, text of each; in a "set" pair `two`
    is the real one).
    """
    omissions: list[str]
    """Sentences about what was left out."""


def pairs_of(both: Sides, opponents: int = OPPONENTS) -> Pairs:
    """Every prompt with its opponents, and real conversations with one another.

    Args:
        both: Result of `sides`.
        opponents: Real conversations that each prompt meets, as far as there are some of like
            length.

    Raises:
        InputError: No prompt has a real conversation of like length.
    """
    whole(opponents=opponents)
    prompts, real = (sorted(rows, key=_by_length) for rows in (both.prompts, both.real))
    met = drawn_opponents(prompts, real, opponents)
    if not any(met):
        raise _unlike(both.name, [len(row["text"]) for row in real], both.prompts)
    omissions = list(both.omissions)
    lonely = sum(not others for others in met)
    if lonely:
        omissions.append(
            f"{lonely} prompts have no real conversation of like length, and are not compared."
        )
    fewer = sum(0 < len(others) < opponents for others in met)
    if fewer:
        omissions.append(
            f"{fewer} prompts meet fewer than {opponents} real conversations: no more are of like length."
        )
    halves = [(a, b) for a, b in zip(real[::2], real[1::2], strict=False) if _alike(a, b)]
    halves = sorted(halves, key=lambda pair: _digest(pair[0]["id"]))[:REAL_PAIRS]
    rows = [
        _pair("set", prompt, other)
        for prompt, others in zip(prompts, met, strict=True)
        for other in others
    ]
    rows += [_pair("real", *(pair if _coin(pair[0]) else pair[::-1])) for pair in halves]
    return Pairs(table_of(both.name, rows), omissions)


def drawn_opponents(prompts: Sequence[Row], real: Sequence[Row], opponents: int) -> list[list[Row]]:
    """The real conversations that each prompt meets: of all that are like it in length those that
    were met least.

    As many are shorter as longer, as far as there are some; ties are decided by chance, always in
    the same way.

    Args:
        prompts: Prompts with their texts.
        real: Real conversations with their texts, in the order of `_by_length`.
        opponents: Number of real conversations for each prompt, as far as there are some.
    """
    lengths = [len(row["text"]) for row in real]
    times_met = Counter[int]()
    met: dict[int, list[Row]] = {}
    for number in sorted(range(len(prompts)), key=lambda number: _digest(prompts[number]["id"])):
        prompt = prompts[number]
        length, chance = len(prompt["text"]), random.Random(_digest(prompt["id"]))
        first = bisect_left(lengths, length / LONGEST)
        middle = bisect_left(lengths, length) if _coin(prompt) else bisect_right(lengths, length)
        last = bisect_right(lengths, LONGEST * length)
        shorter_count = (opponents + _coin(prompt)) // 2
        shorter_count = min(middle - first, max(shorter_count, opponents - (last - middle)))
        rank = {other: (times_met[other], chance.random()) for other in range(first, last)}
        chosen = nsmallest(shorter_count, range(first, middle), key=rank.__getitem__)
        chosen += nsmallest(opponents - shorter_count, range(middle, last), key=rank.__getitem__)
        times_met.update(chosen)
        met[number] = [real[other] for other in sorted(chosen)]
    return [met[number] for number in range(len(prompts))]


def pairs_in_file(path: str) -> Pairs:
    """Pairs of a file, unchanged: id, kind, one, two.

    Raises:
        InputError: A row of another form, or no such file.
    """
    table = load(path, ("kind", "one", "two"))
    for row in table.rows:
        for side in ("one", "two"):
            given = row[side] if isinstance(row[side], dict) else {}
            if lacks := [
                key for key in ("id", "source", "text") if not isinstance(given.get(key), str)
            ]:
                raise InputError(
                    f"{path}, {row['id']}: {side} must have id, source and text, and lacks {lacks[0]}"
                )
    return Pairs(table, [])


def record_to_sample(row: Row) -> Sample:
    """A pair as a sample; its target says which of the two is real, where one of them is not."""
    texts = [f"[{number}]\n{row[side]['text']}" for number, side in ((1, "one"), (2, "two"))]
    return Sample(
        id=row["id"],
        input="\n\n".join(texts),
        target=row["two"]["id"] if row["kind"] == "set" else "",
        metadata=row,
    )


def _pair(kind: str, one: Row, two: Row) -> Row:
    parts = {
        name: {key: row[key] for key in ("id", "source", "text")}
        for name, row in (("one", one), ("two", two))
    }
    return {"id": f"{kind}: {one['id']} | {two['id']}", "kind": kind} | parts


def with_prompt_text(row: Row) -> Row:
    """A conversation with its `text`, as judges read it."""
    tools = [ToolInfo.model_validate(tool) for tool in row.get("tools", ())]
    return row | {"text": numbered([(m["role"], m["content"]) for m in row["messages"]], tools)}


def _by_length(row: Row) -> tuple[int, str]:
    return len(row["text"]), _digest(row["id"])


def _alike(one: Row, two: Row) -> bool:
    short, long = sorted((len(one["text"]), len(two["text"])))
    return long <= LONGEST * short


def _coin(row: Row) -> int:
    """0 or 1 by chance: the side on which the odd one of an odd number stands."""
    return int(_digest(row["id"]), 16) % 2


def _digest(text: object) -> str:
    return hashlib.sha256(str(text).encode()).hexdigest()[:16]


def _unlike(name: str, lengths: Sequence[int], prompts: Iterable[Row]) -> InputError:
    return InputError(
        f"{name}: no real conversation is within {LONGEST:g} times the length of a prompt (real ones have "
        f"{_span(lengths)} characters), and length alone would tell them apart: {_bring(prompts)}"
    )


def _bring(rows: Iterable[Row]) -> str:
    sizes = sorted(sum(len(m["content"]) for m in row["messages"]) for row in rows)
    return BRING.format(size=_span(sizes[len(sizes) // 10 : len(sizes) - len(sizes) // 10]))


def _span(sizes: Iterable[int]) -> str:
    """Sentence for a range of lengths, from the least to the most; `sizes` are one at least."""
    known = sorted(sizes)
    return f"{known[0]:,} to {known[-1]:,}" if known[0] < known[-1] else f"{known[0]:,}"
