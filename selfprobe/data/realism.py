"""Pairs of conversations of which one is real use: the prompts of a set, each beside real ones of
like length.

-T dataset=my_eval.jsonl -T against=real.jsonl   both in any form of `conversations`, task: and
                                                 logs: too
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
from selfprobe.text.counts import count_text

DEFAULT_PROMPTS = 200
"""Prompts of the set that are compared, unless more are asked for."""

DEFAULT_OPPONENTS = 4
"""Number of real conversations that each prompt meets."""

MOST_REAL_PAIRS = 100
"""Largest number of pairs of two real conversations."""

FEWEST_REAL = 24
"""Number of real conversations that are kept where there are fewer prompts, so that each prompt
meets several.
"""

LENGTH_RATIO = 2.0
"""Largest ratio of the lengths of the two of a pair, in characters."""


BRING = (
    'bring real conversations, against=real.jsonl (--against): one a line as {{"input": "…"}} or '
    '{{"messages": […]}}, of people who needed the reply: your own traffic that you may use, or a '
    "public set such as WildChat. Some dozens are needed, of several sources, and about as long as "
    "your prompts (most of them have {size} characters)"
)


@dataclass(frozen=True)
class Sides:
    """The set and the real conversations, ready to be paired; every row with `text`."""

    name: str
    """Names of both sides, in the user's words."""
    prompts: list[Row]
    """Prompts of the set: of different texts, drawn where there are more than wanted."""
    real: list[Row]
    """Real conversations: at most as many (or `FEWEST_REAL`), those nearest in length."""
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
    prompts: int | None = DEFAULT_PROMPTS,
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
    table = conversations(dataset, task=task, logs=logs, role=role, context=context)
    if against is None:
        prompt_side = _Side(table, lambda row: row["label"] == "evaluation")
        real_side = _Side(table, lambda row: row["label"] == "deployment")
        if not prompt_side.count or not real_side.count:
            label = table.rows[0]["label"] or "without a label"
            raise InputError(
                f"nothing real to hold the set against, all {len(table.rows)} rows of {table.name} "
                f"are {label}: {_bring(table.rows)}"
            )
        notes = [f"{table.unread_columns_note}."] if table.unread_columns_note else []
        return _ready(table.name, prompt_side, real_side, notes, prompts)

    if isinstance(against, str):
        against = REFERENCE_NAMES.get(against, against)
    real_table = conversations(against, context=context)
    prompt_side = _Side(table, lambda row: row["label"] != "deployment")
    real_side = _Side(real_table, lambda row: row["label"] != "evaluation")
    notes = [
        f"{side_table.name}: {side_table.aside_line()}"
        for side_table in (table, real_table)
        if side_table.set_aside_reasons
    ]
    notes += [
        f"{side_table.unread_columns_note}."
        for side_table in (table, real_table)
        if side_table.unread_columns_note
    ]
    notes += prompt_side.labelled_note("deployment", "no prompts of an evaluation")
    notes += real_side.labelled_note("evaluation", "not real use")
    if not prompt_side.count:
        raise InputError(
            f"{table.name}: all {len(table.rows)} rows are labelled deployment: "
            "there is no evaluation"
        )
    if not real_side.count:
        raise InputError(
            f"against={against}: all {len(real_table.rows)} rows are labelled evaluation: "
            f"{_bring(prompt_side.rows())}"
        )
    name = f"{table.name} against {real_table.name}"
    return _ready(name, prompt_side, real_side, notes, prompts)


class _Side:
    """The rows of one side of a table; those of a large one are read when they are used."""

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

    def labelled_note(self, label: str, reason: str) -> list[str]:
        """Line on the rows that have the other side's label, and are left out; none where there are
        none.
        """
        count = len(self._table.rows) - self.count
        if not count:
            return []
        verb = "is" if count == 1 else "are"
        return [
            f"{count_text(count, 'row')} of {self._table.name} {verb} labelled {label}: {reason}, "
            "and left out."
        ]


@dataclass(frozen=True)
class _Candidate:
    """A conversation that may be compared."""

    number: int
    """Number of its row in its table."""
    length: int
    """Characters of its text."""
    key: str
    """Digest of its id, which orders those of one length."""


def _candidates(side: _Side, known_digests: set[str]) -> list[_Candidate]:
    """Conversations of different texts, which are added to the known ones."""
    candidates = list[_Candidate]()
    for number in side.numbers:
        row = side.row(number)
        text_digest = _digest(row["text"])
        if text_digest not in known_digests:
            known_digests.add(text_digest)
            candidates.append(_Candidate(number, len(row["text"]), _digest(row["id"])))
    return candidates


def _ready(
    name: str,
    prompt_side: _Side,
    real_side: _Side,
    notes: Sequence[str],
    prompt_limit: int | None,
) -> Sides:
    omissions = list(notes)
    known_digests = set[str]()
    prompts = _candidates(prompt_side, known_digests)
    real = _candidates(real_side, known_digests)
    if repeated_count := prompt_side.count - len(prompts):
        is_one = repeated_count == 1
        verbs = ("repeats", "is") if is_one else ("repeat", "are")
        prompts_text = count_text(repeated_count, "prompt")
        omissions.append(
            f"{prompts_text} {verbs[0]} the text of another one and {verbs[1]} left out."
        )
    if repeated_count := real_side.count - len(real):
        is_one = repeated_count == 1
        verbs = ("repeats", "is") if is_one else ("repeat", "are")
        real_text = count_text(repeated_count, "real conversation")
        omissions.append(
            f"{real_text} {verbs[0]} another text, or one of the set, and {verbs[1]} left out."
        )
    if not real:
        raise InputError(
            f"{name}: every real conversation is in the set as well: {_bring(prompt_side.rows())}"
        )
    if prompt_limit is not None and len(prompts) > prompt_limit:
        verb = "is" if prompt_limit == 1 else "are"
        omissions.append(f"{prompt_limit} of {len(prompts):,} prompts {verb} drawn by chance.")
        drawn_numbers = random.Random(0).sample(range(len(prompts)), prompt_limit)
        prompts = [prompts[number] for number in sorted(drawn_numbers)]

    near = _within_reach(prompts, real)
    if not near:
        raise _unlike(name, [candidate.length for candidate in real], prompt_side.rows())
    if unlike_count := len(real) - len(near):
        is_one = unlike_count == 1
        verbs = ("conversation is", "is") if is_one else ("conversations are", "are")
        omissions.append(
            f"{unlike_count:,} real {verbs[0]} unlike all prompts in length, and {verbs[1]} left out."
        )
    nearest = _nearest(prompts, near)
    if len(nearest) < len(near):
        omissions.append(
            f"{len(nearest)} of {len(near):,} real conversations are taken, "
            "those nearest in length."
        )
    prompt_rows = [prompt_side.row(prompt.number) for prompt in prompts]
    real_rows = [real_side.row(candidate.number) for candidate in nearest]
    return Sides(name, prompt_rows, real_rows, omissions)


def _within_reach(prompts: Sequence[_Candidate], real: Sequence[_Candidate]) -> list[_Candidate]:
    """The real conversations that are like some prompt in length."""
    prompt_lengths = sorted(prompt.length for prompt in prompts)

    def is_near(length: int) -> bool:
        first = bisect_left(prompt_lengths, length / LENGTH_RATIO)
        return first < len(prompt_lengths) and prompt_lengths[first] <= LENGTH_RATIO * length

    return [candidate for candidate in real if is_near(candidate.length)]


def _nearest(prompts: Sequence[_Candidate], real: Sequence[_Candidate]) -> list[_Candidate]:
    """For each prompt the real conversation nearest in length that no other took, and again until
    there are enough.

    All of them where there are not more than prompts, or than `FEWEST_REAL`.
    """
    wanted_count = max(len(prompts), FEWEST_REAL)
    if len(real) <= wanted_count:
        return list(real)
    free = sorted(real, key=lambda candidate: (candidate.length, candidate.key))
    free_lengths = [candidate.length for candidate in free]
    chosen = list[_Candidate]()
    prompts_in_order = sorted(prompts, key=lambda prompt: prompt.key)
    for prompt in islice(cycle(prompts_in_order), wanted_count):
        length = prompt.length
        place = bisect_left(free_lengths, length)
        places = [number for number in (place - 1, place) if 0 <= number < len(free_lengths)]
        distances = [abs(free_lengths[number] - length) for number in places]
        nearest_place = places[distances.index(min(distances))]
        free_lengths.pop(nearest_place)
        chosen.append(free.pop(nearest_place))
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


def pairs_of(both_sides: Sides, opponents: int = DEFAULT_OPPONENTS) -> Pairs:
    """Every prompt with its opponents, and real conversations with one another.

    Args:
        both_sides: Result of `sides`.
        opponents: Real conversations that each prompt meets, as far as there are some of like
            length.

    Raises:
        InputError: No prompt has a real conversation of like length.
    """
    whole(opponents=opponents)
    prompts = sorted(both_sides.prompts, key=_by_length)
    real = sorted(both_sides.real, key=_by_length)
    opponents_of_prompt = drawn_opponents(prompts, real, opponents)
    if not any(opponents_of_prompt):
        raise _unlike(both_sides.name, [len(row["text"]) for row in real], both_sides.prompts)

    omissions = list(both_sides.omissions)
    opponent_counts = [len(prompt_opponents) for prompt_opponents in opponents_of_prompt]
    if lonely_count := opponent_counts.count(0):
        omissions.append(
            f"{lonely_count} prompts have no real conversation of like length, "
            "and are not compared."
        )
    if fewer_count := sum(0 < count < opponents for count in opponent_counts):
        omissions.append(
            f"{fewer_count} prompts meet fewer than {opponents} real conversations: "
            "no more are of like length."
        )

    rows = []
    for prompt, prompt_opponents in zip(prompts, opponents_of_prompt, strict=True):
        rows += [_pair("set", prompt, opponent) for opponent in prompt_opponents]
    real_pairs = [
        (first, second)
        for first, second in zip(real[::2], real[1::2], strict=False)
        if _alike(first, second)
    ]
    real_pairs.sort(key=lambda pair: _digest(pair[0]["id"]))
    for first, second in real_pairs[:MOST_REAL_PAIRS]:
        if not _coin(first):
            first, second = second, first
        rows.append(_pair("real", first, second))
    return Pairs(table_of(both_sides.name, rows), omissions)


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
    real_lengths = [len(row["text"]) for row in real]
    times_met = Counter[int]()
    opponents_of_prompt: dict[int, list[Row]] = {}
    for number in sorted(range(len(prompts)), key=lambda number: _digest(prompts[number]["id"])):
        prompt = prompts[number]
        length = len(prompt["text"])
        chance = random.Random(_digest(prompt["id"]))
        first = bisect_left(real_lengths, length / LENGTH_RATIO)
        bisect = bisect_left if _coin(prompt) else bisect_right
        middle = bisect(real_lengths, length)
        end = bisect_right(real_lengths, LENGTH_RATIO * length)
        half_count = (opponents + _coin(prompt)) // 2
        shorter_count = min(middle - first, max(half_count, opponents - (end - middle)))
        longer_count = opponents - shorter_count

        rank = {place: (times_met[place], chance.random()) for place in range(first, end)}
        chosen = nsmallest(shorter_count, range(first, middle), key=rank.__getitem__)
        chosen += nsmallest(longer_count, range(middle, end), key=rank.__getitem__)
        times_met.update(chosen)
        opponents_of_prompt[number] = [real[place] for place in sorted(chosen)]
    return [opponents_of_prompt[number] for number in range(len(prompts))]


def pairs_in_file(path: str) -> Pairs:
    """Pairs of a file, unchanged: id, kind, one, two.

    Raises:
        InputError: A row of another form, or no such file.
    """
    table = load(path, ("kind", "one", "two"))
    for row in table.rows:
        for side in ("one", "two"):
            conversation = row[side] if isinstance(row[side], dict) else {}
            for column in PAIR_COLUMNS:
                if not isinstance(conversation.get(column), str):
                    raise InputError(
                        f"{path}, {row['id']}: {side} must have id, source and text, "
                        f"and lacks {column}"
                    )
    return Pairs(table, [])


def record_to_sample(row: Row) -> Sample:
    """A pair as a sample; its target says which of the two is real, where one of them is not."""
    first_text, second_text = row["one"]["text"], row["two"]["text"]
    return Sample(
        id=row["id"],
        input=f"[1]\n{first_text}\n\n[2]\n{second_text}",
        target=row["two"]["id"] if row["kind"] == "set" else "",
        metadata=row,
    )


PAIR_COLUMNS = ("id", "source", "text")
"""What a pair holds of each of its two conversations."""


def _pair(kind: str, first: Row, second: Row) -> Row:
    pair_id = f"{kind}: {first['id']} | {second['id']}"
    first_side = {column: first[column] for column in PAIR_COLUMNS}
    second_side = {column: second[column] for column in PAIR_COLUMNS}
    return {"id": pair_id, "kind": kind, "one": first_side, "two": second_side}


def with_prompt_text(row: Row) -> Row:
    """A conversation with its `text`, as judges read it."""
    tools = [ToolInfo.model_validate(tool) for tool in row.get("tools", ())]
    parts = [(message["role"], message["content"]) for message in row["messages"]]
    return row | {"text": numbered(parts, tools)}


def _by_length(row: Row) -> tuple[int, str]:
    return len(row["text"]), _digest(row["id"])


def _alike(first: Row, second: Row) -> bool:
    shorter, longer = sorted((len(first["text"]), len(second["text"])))
    return longer <= LENGTH_RATIO * shorter


def _coin(row: Row) -> int:
    """0 or 1 by chance: the side on which the odd one of an odd number stands."""
    return int(_digest(row["id"]), 16) % 2


def _digest(text: object) -> str:
    return hashlib.sha256(str(text).encode()).hexdigest()[:16]


def _unlike(name: str, lengths: Sequence[int], prompts: Iterable[Row]) -> InputError:
    return InputError(
        f"{name}: no real conversation is within {LENGTH_RATIO:g} times the length of a prompt "
        f"(real ones have {_span(lengths)} characters), and length alone would tell them apart: "
        f"{_bring(prompts)}"
    )


def _bring(rows: Iterable[Row]) -> str:
    """Sentence that says what to bring, with the lengths of most of the rows."""
    lengths = []
    for row in rows:
        lengths.append(sum(len(message["content"]) for message in row["messages"]))
    lengths.sort()
    tenth = len(lengths) // 10
    return BRING.format(size=_span(lengths[tenth : len(lengths) - tenth]))


def _span(lengths: Iterable[int]) -> str:
    """Sentence for a range of lengths, from the least to the most; there is one at least."""
    in_order = sorted(lengths)
    shortest, longest = in_order[0], in_order[-1]
    return f"{shortest:,} to {longest:,}" if shortest < longest else f"{shortest:,}"
