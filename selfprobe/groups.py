"""Which items belong together: of one kind, or from one template; from columns that the user names."""

from dataclasses import replace
from typing import Any

from selfprobe.arguments import meant
from selfprobe.data import Row, Table
from selfprobe.errors import InputError


def grouped(table: Table, match: str | None, cluster: str | None) -> Table:
    """The same rows, with `kind` and `cluster` from the columns that the user names.

    Args:
        table: From `load`; its hash stays, since the rows ask the same.
        match: The column with the kind of an item: habits are looked for among items of one kind.
        cluster: The column with what items come from, a template say: such items count as one in every interval.

    Raises:
        InputError: Some row has no such column, nothing in it, or a list or object.
    """
    named = {ours: column for ours, column in (("kind", match), ("cluster", cluster)) if column is not None}
    for argument, column in (("match", match), ("cluster", cluster)):
        if not isinstance(column, str | None):
            raise InputError(f"{argument} must be one column, such as {argument}=topic, got {column!r}")
        nested = next((row for row in table.rows if isinstance(row.get(str(column)), list | dict)), None)
        if nested:
            raise InputError(f"{argument}={column}: {nested['id']} holds {nested[str(column)]!r}; expected a word")
        lacking = [row["id"] for row in table.rows if column is not None and row.get(column) in (None, "")]
        if lacking:
            there = [name for name in table.rows[0] if name != "id"]
            raise InputError(
                f"{argument}={column}: {len(lacking)} of {len(table.rows)} rows of {table.name} lack this column, as "
                f"{lacking[0]}; its columns are {', '.join(there)}{meant(str(column), there)}"
            )
    return replace(table, rows=[row | {ours: str(row[of]) for ours, of in named.items()} for row in table.rows])


def groups_of(row: Row) -> dict[str, Any]:
    """The groups of an item as its sample's metadata holds them; without a `cluster` it is one of its own."""
    return {name: row[name] for name in ("kind", "cluster") if row.get(name) is not None}
