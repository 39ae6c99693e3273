"""Samples of a task's rows: a list, or made one at a time where there are many rows."""

import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any, overload

from inspect_ai.dataset import Dataset, MemoryDataset, Sample

from selfprobe.data.stored import Row

if TYPE_CHECKING:
    from _typeshed import SupportsRichComparison

MOST_LISTED_SAMPLES = 20_000
"""Samples of a task that are made before it runs."""

_item_limit: ContextVar[int | None] = ContextVar("item_limit", default=None)


@contextmanager
def at_most(items: int | None) -> Iterator[None]:
    """A block in which tasks are built of which no more than so many items are asked; None is all.

    Of more than `MOST_LISTED_SAMPLES` rows such a task has the first ones alone. They are as many whatever
    the limit, up to that number: Inspect takes up no run whose data set has become smaller.
    """
    token = _item_limit.set(items)
    try:
        yield
    finally:
        _item_limit.reset(token)


def dataset_of(rows: Sequence[Row], to_sample: Callable[[Row], Sample], name: str) -> Dataset:
    """The data set of a task.

    Args:
        rows: Its rows, in the order in which they are asked.
        to_sample: Makes the sample of a row.
        name: Its name in logs.
    """
    item_limit = _item_limit.get()
    row_count = len(rows)
    if item_limit is not None:
        row_count = min(row_count, max(item_limit, MOST_LISTED_SAMPLES))
    if row_count <= MOST_LISTED_SAMPLES:
        return MemoryDataset([to_sample(row) for row in rows[:row_count]], name=name)
    return RowDataset(rows, to_sample, name, order=range(row_count))


class RowDataset(Dataset):
    """Samples that are made of their rows each time that they are read; a slice is a list."""

    def __init__(
        self,
        rows: Sequence[Row],
        to_sample: Callable[[Row], Sample],
        name: str,
        *,
        order: Sequence[int],
    ) -> None:
        self._rows = rows
        self._to_sample = to_sample
        self._name = name
        self._order = order
        self._shuffled = False
        self._metadata: Mapping[str, Any] = {}

    @property
    def name(self) -> str:
        """Name in logs."""
        return self._name

    @property
    def location(self) -> None:
        """Its file, which is in the name."""
        return None

    @property
    def shuffled(self) -> bool:
        """Whether `shuffle` was called."""
        return self._shuffled

    def __len__(self) -> int:
        return len(self._order)

    @overload
    def __getitem__(self, index: int) -> Sample: ...

    @overload
    def __getitem__(self, index: slice) -> Dataset: ...

    def __getitem__(self, index: int | slice) -> Sample | Dataset:
        if isinstance(index, slice):
            samples = [self._sample(row_index) for row_index in self._order[index]]
            return MemoryDataset(samples, name=self._name, shuffled=self._shuffled)
        return self._sample(self._order[index])

    def add_metadata(self, metadata: Mapping[str, Any]) -> None:
        """Entries that the metadata of every sample gets."""
        self._metadata = {**self._metadata, **metadata}

    def filter(self, predicate: Callable[[Sample], bool], name: str | None = None) -> Dataset:
        """The samples for which the predicate is true."""
        filtered_samples = [sample for sample in self if predicate(sample)]
        return MemoryDataset(filtered_samples, name=name or self._name, shuffled=self._shuffled)

    def shuffle(self, seed: int | None = None) -> None:
        """Put them in another order."""
        shuffled_order = list(self._order)
        random.Random(seed).shuffle(shuffled_order)
        self._order = shuffled_order
        self._shuffled = True

    def shuffle_choices(self, seed: int | None = None) -> None:
        """Nothing: none has choices."""

    def sort(
        self, reverse: bool = False, key: "Callable[[Sample], SupportsRichComparison] | None" = None
    ) -> None:
        """Put them in the order of a key; by default of the length of their input."""
        sort_key = key or (lambda sample: len(str(sample.input)))
        key_by_row = {row_index: sort_key(self._sample(row_index)) for row_index in self._order}
        self._order = sorted(self._order, key=key_by_row.__getitem__, reverse=reverse)
        self._shuffled = False

    def _sample(self, row_index: int) -> Sample:
        sample = self._to_sample(self._rows[row_index])
        if self._metadata:
            sample.metadata = {**(sample.metadata or {}), **self._metadata}
        return sample
