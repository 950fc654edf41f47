"""How the columns of a table were read, as two columns of text."""

from collections.abc import Sequence

from rich.table import Table


def columns(described: Sequence[str]) -> Table:
    """What `Preprocessing.describe` says, with the names beside what became of them.

    >>> from fairfl.report.reading import columns
    >>> columns(["client column 'hospital'", "'age': number, mean 40, deviation 10"]).row_count
    2
    """
    table = Table.grid(padding=(0, 2, 0, 0))
    table.add_column(no_wrap=True)
    table.add_column(overflow="fold")
    for line in described:
        name, _, found = line.partition(": ")
        table.add_row(f"  {name}", found)
    return table
