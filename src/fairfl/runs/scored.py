"""A table with what a model says of its rows beside it, as a file."""

from pathlib import Path
from typing import Any

import duckdb

from fairfl.clients.sources import listed, opened, title
from fairfl.runs.atomic import beside
from fairfl.runs.folder import unwritable
from fairfl.runs.prediction import Prediction

FORMATS = {".csv": "FORMAT csv, HEADER true", ".parquet": "FORMAT parquet"}


def check_file(file: Path, overwrite: bool) -> None:
    """Refuse a file that could not be written, before anything is scored.

    >>> import pathlib
    >>> from fairfl.runs.scored import check_file
    >>> check_file(pathlib.Path("scored.xlsx"), overwrite=False)
    Traceback (most recent call last):
    ValueError: 'scored.xlsx' is of an unknown format; name a file that ends in .csv or .parquet
    """
    if file.suffix.lower() not in FORMATS:
        raise ValueError(
            f"{str(file)!r} is of an unknown format; name a file that ends in "
            f"{' or '.join(FORMATS)}"
        )
    if file.is_dir():
        raise ValueError(f"{str(file)!r} is a folder; name a file in it")
    if file.exists() and not overwrite:
        raise ValueError(
            f"the file {str(file)!r} exists; add --overwrite to replace it, or name another with "
            "--out"
        )


def default_file(table: Path) -> Path:
    """Where the scored rows go that were not told where: in the current folder.

    >>> import pathlib
    >>> from fairfl.runs.scored import default_file
    >>> str(default_file(pathlib.Path("data/visits.csv.gz")))
    'visits-predicted.csv'
    """
    suffix = ".parquet" if table.suffix.lower() == ".parquet" else ".csv"
    return Path(f"{title(table)}-predicted{suffix}")


def write_scored(table: Any, found: Prediction, file: Path) -> Path:
    """The table's own columns as they were written, then the prediction's; whole or not at all."""
    added = found.columns
    taken = [name for name in added if name in found.names]
    if taken:
        raise ValueError(
            f"the table has a column {listed(taken)} already; rename it, so that predictions have "
            "a column of their own"
        )
    unfinished = beside(file.absolute())
    try:
        # From CSV to CSV all is text, because 007 is to stay 007.
        as_text = found.names if file.suffix.lower() == ".csv" else ()
        with opened(table, as_text, columns=found.given) as source:
            source.connection.register("added", added)
            _copy(source.connection, unfinished, FORMATS[file.suffix.lower()])
        unfinished.replace(file)
    except OSError as error:
        raise unwritable(file.parent, error) from error
    finally:
        unfinished.unlink(missing_ok=True)
    return file


def _copy(connection: duckdb.DuckDBPyConnection, file: Path, how: str) -> None:
    rows = "SELECT source.*, added.* FROM source POSITIONAL JOIN added"
    place = str(file).replace("'", "''")
    try:
        connection.execute(f"COPY ({rows}) TO '{place}' ({how})")
    except duckdb.IOException as error:
        raise OSError(str(error).splitlines()[0]) from error
