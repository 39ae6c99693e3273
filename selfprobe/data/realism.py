"""Pairs of conversations of which one is real use: the prompts of a set, each beside real ones of like length.

-T dataset=my_eval.jsonl -T against=real.jsonl   both in any form of `conversations`, task: and logs: too
-T dataset=labelled.jsonl                        its evaluation rows against its own deployment rows

Every prompt meets `opponents` real conversations, and its neighbours in length meet most of the same ones, so that all
prompts can be put in one order. Real conversations also meet one another, which must come out at one half.
"""

import hashlib
import random
from bisect import bisect_left
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
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
"""Number of real conversations that are kept where there are fewer prompts, so that each prompt meets several."""
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
    """Read both sides, leave repeated texts out, draw the prompts, and take real conversations of like length.

    Args:
        dataset, task, logs, role, context: The set; see `conversations`.
        against: Real conversations, as `dataset`; rows labelled evaluation are none. None: the set's own deployment
            rows, against its evaluation rows.
        prompts: Most prompts of the set, drawn by chance (always the same ones); None is all.

    Raises:
        InputError: There are no real conversations, or none of like length (with what to bring), or no prompts of the
            set.
    """
    whole(prompts=prompts, optional=True)
    ours = conversations(dataset, task=task, logs=logs, role=role, context=context)
    if against is None:
        mine, theirs = ([row for row in ours.rows if row["label"] == x] for x in ("evaluation", "deployment"))
        name, told = ours.name, []
        if not mine or not theirs:
            have = f"all {len(ours.rows)} rows of {ours.name} are {ours.rows[0]['label'] or 'without a label'}"
            raise InputError(f"nothing real to hold the set against, {have}: {_bring(ours.rows)}")
    else:
        known = REFERENCE_NAMES.get(against, against) if isinstance(against, str) else against
        real = conversations(known, context=context)
        name = f"{ours.name} against {real.name}"
        mine, theirs = (
            [row for row in t.rows if row["label"] != x] for t, x in ((ours, "deployment"), (real, "evaluation"))
        )
        told = [f"{t.name}: {t.aside_line()}" for t in (ours, real) if t.aside]
        told += _labelled(ours, mine, "deployment", "no prompts of an evaluation")
        told += _labelled(real, theirs, "evaluation", "not real use")
        if not mine:
            raise InputError(f"{ours.name}: all {len(ours.rows)} rows are labelled deployment: there is no evaluation")
        if not theirs:
            raise InputError(f"against={against}: all {len(real.rows)} rows are labelled evaluation: {_bring(mine)}")
    return _ready(name, mine, theirs, told, prompts)


def _ready(name: str, mine: Sequence[Row], theirs: Sequence[Row], notes: list[str], prompts: int | None) -> Sides:
    ours, twice = _different([with_prompt_text(row) for row in mine], set())
    real, shared = _different([with_prompt_text(row) for row in theirs], {row["text"] for row in ours})
    notes = list(notes)
    if twice:
        notes.append(f"{twice} prompts repeat the text of another one and are left out.")
    if shared:
        notes.append(f"{shared} real conversations repeat another text, or one of the set, and are left out.")
    if not real:
        raise InputError(f"{name}: every real conversation is in the set as well: {_bring(ours)}")
    if not any(_alike(prompt, other) for prompt in ours for other in real):
        raise _unlike(name, ours, real)
    if prompts is not None and len(ours) > prompts:
        notes.append(f"{prompts} of {len(ours):,} prompts are drawn by chance.")
        ours = [ours[n] for n in sorted(random.Random(0).sample(range(len(ours)), prompts))]
    pool = _nearest(ours, real)
    if len(pool) < len(real):
        notes.append(f"{len(pool)} of {len(real):,} real conversations are taken, those nearest in length.")
    return Sides(name, ours, pool, notes)


@dataclass(frozen=True)
class Pairs:
    """The pairs that judges are asked about."""

    table: Table
    """Rows: id, kind ("set" or "real"), one, two (id, source, text of each; in a "set" pair `two` is the real one)."""
    omissions: list[str]
    """Sentences about what was left out."""


def pairs_of(both: Sides, opponents: int = OPPONENTS) -> Pairs:
    """Every prompt with its opponents, and real conversations with one another.

    Args:
        both: Result of `sides`.
        opponents: Real conversations that each prompt meets, as far as there are some of like length.

    Raises:
        InputError: No prompt has a real conversation of like length.
    """
    whole(opponents=opponents)
    ours, real = (sorted(rows, key=_by_length) for rows in (both.prompts, both.real))
    keys, width = [_by_length(row) for row in real], min(opponents, len(real))
    met = [
        (prompt, real[start + k])
        for prompt in ours
        for start in [_first_met(prompt, keys, width)]
        for k in range(width)
        if 0 <= start + k < len(real)
    ]
    alike = [(prompt, other) for prompt, other in met if _alike(prompt, other)]
    if not alike:
        raise _unlike(both.name, ours, real)
    told, lonely = list(both.omissions), len(ours) - len({prompt["id"] for prompt, _ in alike})
    if lonely:
        told.append(f"{lonely} prompts have no real conversation of like length, and are not compared.")
    halves = [(a, b) for a, b in zip(real[::2], real[1::2], strict=False) if _alike(a, b)]
    halves = sorted(halves, key=lambda pair: _digest(pair[0]["id"]))[:REAL_PAIRS]
    rows = [_pair("set", *pair) for pair in alike]
    rows += [_pair("real", *(pair if _coin(pair[0]) else pair[::-1])) for pair in halves]
    return Pairs(table_of(both.name, rows), told)


def _first_met(prompt: Row, keys: Sequence[tuple[int, str]], width: int) -> int:
    """Number of the first opponent: as many are shorter as longer, and a single one is never out of reach."""
    start = bisect_left(keys, _by_length(prompt)) - (width + _coin(prompt)) // 2
    return min(max(start, 0), len(keys) - 1) if width == 1 else start


def pairs_in_file(path: str) -> Pairs:
    """Pairs of a file, unchanged: id, kind, one, two.

    Raises:
        InputError: A row of another form, or no such file.
    """
    table = load(path, ("kind", "one", "two"))
    for row in table.rows:
        for side in ("one", "two"):
            given = row[side] if isinstance(row[side], dict) else {}
            if lacks := [key for key in ("id", "source", "text") if not isinstance(given.get(key), str)]:
                raise InputError(f"{path}, {row['id']}: {side} must have id, source and text, and lacks {lacks[0]}")
    return Pairs(table, [])


def record_to_sample(row: Row) -> Sample:
    """A pair as a sample; its target says which of the two is real, where one of them is not."""
    texts = [f"[{number}]\n{row[side]['text']}" for number, side in ((1, "one"), (2, "two"))]
    return Sample(
        id=row["id"], input="\n\n".join(texts), target=row["two"]["id"] if row["kind"] == "set" else "", metadata=row
    )


def _pair(kind: str, one: Row, two: Row) -> Row:
    parts = {name: {key: row[key] for key in ("id", "source", "text")} for name, row in (("one", one), ("two", two))}
    return {"id": f"{kind}: {one['id']} | {two['id']}", "kind": kind} | parts


def with_prompt_text(row: Row) -> Row:
    """A conversation with its `text`, as judges read it."""
    tools = [ToolInfo.model_validate(tool) for tool in row.get("tools", ())]
    return row | {"text": numbered([(m["role"], m["content"]) for m in row["messages"]], tools)}


def _different(rows: Sequence[Row], known: set[str]) -> tuple[list[Row], int]:
    """Rows of different texts that are not among the known ones, and how many are left out."""
    first: dict[str, Row] = {}
    for row in rows:
        if row["text"] not in known:
            first.setdefault(row["text"], row)
    return list(first.values()), len(rows) - len(first)


def _nearest(prompts: Sequence[Row], real: Sequence[Row]) -> list[Row]:
    """For each prompt the real row nearest in length that no other took, and again until there are enough.

    All of them where there are not more than prompts, or than `FEWEST`.
    """
    wanted = max(len(prompts), FEWEST)
    if len(real) <= wanted:
        return list(real)
    left = sorted(real, key=_by_length)
    keys, chosen = [_by_length(row) for row in left], list[Row]()
    for prompt in islice(cycle(sorted(prompts, key=lambda row: _digest(row["id"]))), wanted):
        size = len(prompt["text"])
        at = bisect_left(keys, (size, ""))
        near = [i for i in (at - 1, at) if 0 <= i < len(keys)]
        best = min(near, key=lambda i: abs(keys[i][0] - size))
        keys.pop(best)
        chosen.append(left.pop(best))
    return chosen


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


def _labelled(table: Table, kept: Sequence[Row], label: str, why: str) -> list[str]:
    count = len(table.rows) - len(kept)
    return [f"{count} rows of {table.name} are labelled {label}: {why}, and left out."] if count else []


def _unlike(name: str, prompts: Sequence[Row], real: Sequence[Row]) -> InputError:
    lengths = _span(len(row["text"]) for row in real)
    return InputError(
        f"{name}: no real conversation is within {LONGEST:g} times the length of a prompt (real ones have {lengths} "
        f"characters), and length alone would tell them apart: {_bring(prompts)}"
    )


def _bring(rows: Sequence[Row]) -> str:
    sizes = sorted(sum(len(m["content"]) for m in row["messages"]) for row in rows)
    return BRING.format(size=_span(sizes[len(sizes) // 10 : len(sizes) - len(sizes) // 10]))


def _span(sizes: Iterable[int]) -> str:
    """Sentence for a range of lengths, from the least to the most; `sizes` are one at least."""
    known = sorted(sizes)
    return f"{known[0]:,} to {known[-1]:,}" if known[0] < known[-1] else f"{known[0]:,}"
