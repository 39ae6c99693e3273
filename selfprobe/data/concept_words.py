"""Words whose directions are put into a model, and words that they are compared with."""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from selfprobe.data import Row, Table
from selfprobe.errors import InputError
from selfprobe.errors.arguments import nearest_name_hint
from selfprobe.text.counts import count_text

WORD_COLUMN = "word"
USE_COLUMN = "use"
CONCEPT_USE = "concept"
BASE_USE = "base"
WORD_USES = (CONCEPT_USE, BASE_USE)
WORDS_SHOWN = 5
LARGEST_DOSE = 100.0
"""Largest length of a direction over the mean length of the states to which it is added; from about
10 on the states are little but the direction.
"""
_LINE_BREAK = re.compile("[\x00-\x1f\x7f-\x9f\u2028\u2029]")
"""What a word of a prompt's line cannot hold."""


@dataclass(frozen=True)
class ConceptWords:
    """The words of a data set, each once."""

    concept_rows: tuple[Row, ...]
    """The first row of each concept, its word without outer blanks."""
    base: tuple[str, ...]
    """Words whose mean a concept is compared with; none of them is a concept."""
    repeated_rows: tuple[Row, ...]
    """Rows that repeat an earlier word of their use, in whatever capitals."""
    base_concepts: tuple[str, ...]
    """Words of rows with the use base that are concepts too."""

    @property
    def concepts(self) -> tuple[str, ...]:
        """The words that are put into a model."""
        return tuple(row[WORD_COLUMN] for row in self.concept_rows)

    @property
    def repeated_row_reasons(self) -> dict[str, str]:
        """Id of each row that repeats a word → why it is not used."""
        return {row["id"]: "its word is that of an earlier row" for row in self.repeated_rows}

    @property
    def left_out_lines(self) -> list[str]:
        """Lines of a plan on rows that are not used."""
        lines = []
        if self.repeated_rows:
            count = count_text(len(self.repeated_rows), "row")
            repeated_words = [row[WORD_COLUMN] for row in self.repeated_rows]
            lines.append(f"Left out, as repeated: {count} ({_first_words(repeated_words)})")
        if self.base_concepts:
            count = count_text(len(self.base_concepts), "row")
            first_words = _first_words(self.base_concepts)
            lines.append(f"Left out of the base, as concepts too: {count} ({first_words})")
        return lines


def _first_words(words: Sequence[str]) -> str:
    return ", ".join(words[:WORDS_SHOWN])


def concept_words(table: Table) -> ConceptWords:
    """The words of a table with the columns `word` and `use`; a row without a use is a concept.

    Raises:
        InputError: A use is neither concept nor base, or a word holds a line break.
    """
    concept_row_by_key: dict[str, Row] = {}
    base_word_by_key: dict[str, str] = {}
    repeated_rows: list[Row] = []
    for row in table.rows:
        word = _word_of(row, table.name)
        key = word_key(word)
        stripped_row = {**row, WORD_COLUMN: word}
        is_base = _use_of(row, table.name) == BASE_USE
        earlier_words = base_word_by_key if is_base else concept_row_by_key
        if key in earlier_words:
            repeated_rows.append(stripped_row)
        elif is_base:
            base_word_by_key[key] = word
        else:
            concept_row_by_key[key] = stripped_row
    shared_keys = [key for key in base_word_by_key if key in concept_row_by_key]
    base_concepts = tuple(base_word_by_key.pop(key) for key in shared_keys)
    return ConceptWords(
        tuple(concept_row_by_key.values()),
        tuple(base_word_by_key.values()),
        tuple(repeated_rows),
        base_concepts,
    )


def word_key(word: str) -> str:
    """What two spellings of one word share.

    >>> word_key(" Ocean") == word_key("ocean")
    True
    """
    return word.strip().casefold()


def has_line_break(word: str) -> bool:
    """Whether a word holds a line break or another control character."""
    return _LINE_BREAK.search(word) is not None


def _word_of(row: Row, table_name: str) -> str:
    word = str(row[WORD_COLUMN]).strip()
    if has_line_break(word):
        raise InputError(
            f"{table_name}, row {row['id']!r}: word {word[:40]!r} holds a line break or another "
            "control character; give one word or phrase a row"
        )
    return word


def _use_of(row: Row, table_name: str) -> str:
    use = row.get(USE_COLUMN)
    if use is None or use == "" or use != use:  # an empty cell; pandas' is NaN
        return CONCEPT_USE
    if use not in WORD_USES:
        raise InputError(
            f"{table_name}, row {row['id']!r}: use must be concept or base, got {use!r}"
            f"{nearest_name_hint(use, WORD_USES)}"
        )
    return str(use)
