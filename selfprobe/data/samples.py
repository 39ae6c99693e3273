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

SAMPLES_HELD = 20_000
"""Samples of a task that are made before it runs."""

_asked_items: ContextVar[int | None] = ContextVar("asked_items", default=None)


@contextmanager
def at_most(items: int | None) -> Iterator[None]:
    """A block in which tasks are built of which no more than so many items are asked; None is all.

    Of more than `SAMPLES_HELD` rows such a task has the first ones alone. They are as many whatever
    the limit, up to that number: Inspect takes up no run whose data set has become smaller.
    """
    token = _asked_items.set(items)
    try:
        yield
    finally:
        _asked_items.reset(token)


def dataset_of(rows: Sequence[Row], to_sample: Callable[[Row], Sample], name: str) -> Dataset:
    """The data set of a task.

    Args:
        rows: Its rows, in the order in which they are asked.
        to_sample: Makes the sample of a row.
        name: Its name in logs.
    """
    items = _asked_items.get()
    count = len(rows) if items is None else min(len(rows), max(items, SAMPLES_HELD))
    if count <= SAMPLES_HELD:
        return MemoryDataset([to_sample(row) for row in rows[:count]], name=name)
    return RowDataset(rows, to_sample, name, order=range(count))


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
            return self._list_of([self._sample(number) for number in self._order[index]])
        return self._sample(self._order[index])

    def add_metadata(self, metadata: Mapping[str, Any]) -> None:
        """Entries that the metadata of every sample gets."""
        self._metadata = {**self._metadata, **metadata}

    def filter(self, predicate: Callable[[Sample], bool], name: str | None = None) -> Dataset:
        """The samples for which the predicate is true."""
        kept = self._list_of([sample for sample in self if predicate(sample)])
        return MemoryDataset(list(kept), name=name, shuffled=self._shuffled) if name else kept

    def shuffle(self, seed: int | None = None) -> None:
        """Put them in another order."""
        order = list(self._order)
        random.Random(seed).shuffle(order)
        self._order, self._shuffled = order, True

    def shuffle_choices(self, seed: int | None = None) -> None:
        """Nothing: none has choices."""

    def sort(
        self, reverse: bool = False, key: "Callable[[Sample], SupportsRichComparison] | None" = None
    ) -> None:
        """Put them in the order of a key; by default of the length of their input."""
        of_sample = key or (lambda sample: len(str(sample.input)))
        keys = {number: of_sample(self._sample(number)) for number in self._order}
        self._order = sorted(self._order, key=keys.__getitem__, reverse=reverse)
        self._shuffled = False

    def _sample(self, number: int) -> Sample:
        sample = self._to_sample(self._rows[number])
        if self._metadata:
            sample.metadata = {**(sample.metadata or {}), **self._metadata}
        return sample

    def _list_of(self, samples: list[Sample]) -> Dataset:
        return MemoryDataset(samples, name=self._name, shuffled=self._shuffled)
