"""Opening a table in DuckDB, be it a file, a folder of files or a frame in memory."""

import difflib
import gzip
import os
import re
import tempfile
import zlib
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import takewhile
from pathlib import Path
from typing import Any

import duckdb

from fairfl.clients.cells import Source, quoted

FORMATS = {
    ".csv": "csv",
    ".tsv": "csv",
    ".parquet": "parquet",
    ".json": "json",
    ".jsonl": "json",
    ".ndjson": "json",
}
TEXTS = {".data": "csv", ".test": "csv", ".txt": "csv"}
"""CSV under other names: read where such a file is named, but not where a folder is."""

# A sample of whole numbers or dates cannot tell that a later row has a fraction or a time of day,
# and DuckDB rounds those silently.
WIDER = {"BIGINT": "DOUBLE", "DATE": "TIMESTAMP"}


@contextmanager
def opened(
    source: Any,
    as_text: Collection[str] = (),
    as_written: Collection[str] = (),
    columns: Sequence[str] | None = None,
) -> Iterator[Source]:
    """The table in DuckDB; whatever DuckDB says about it becomes one sentence.

    A CSV file has no types. `as_text` columns stay text, and `as_written` ones become whole numbers
    only where that changes no character, so that a client called 007 or 1.10 keeps its name.
    `columns` are the names for a CSV file without a header line.
    """
    place = str(source) if _is_path(source) else "the table"
    files = _files(Path(source).expanduser()) if _is_path(source) else None
    with tempfile.TemporaryDirectory(prefix="fairfl-") as spill, duckdb.connect() as connection:
        try:
            connection.execute("SET enable_progress_bar = false")
            connection.execute(f"SET temp_directory = {_literal(spill)}")
            if files is None:
                _register(connection, source)
            else:
                _read(connection, files, as_text, as_written, columns)
            yield _described(place, connection)
        except duckdb.Error as error:
            raise ValueError(
                f"{place} could not be read ({_first_words(error)}); check that it is complete "
                "and of the format that its name says"
            ) from error


def title(source: Any) -> str:
    """What to call the data: the name of the file or folder.

    >>> from fairfl.clients.sources import title
    >>> title("data/visits.csv.gz")
    'visits'
    """
    return (Path(source).name.split(".")[0] if _is_path(source) else "") or "table"


def _is_path(source: Any) -> bool:
    return isinstance(source, str | os.PathLike)


def is_text(source: Any) -> bool:
    """Whether the table is a CSV file, or a folder of them, which may lack a header line.

    >>> from fairfl.clients.sources import is_text
    >>> is_text("visits.csv.gz"), is_text("visits.parquet")
    (True, False)
    """
    if not _is_path(source):
        return False
    path = Path(source)
    first = _files_in(path)[0] if path.is_dir() else path
    return _format(first, FORMATS | TEXTS) == "csv"


def _described(place: str, connection: duckdb.DuckDBPyConnection) -> Source:
    described = connection.execute("DESCRIBE SELECT * FROM source").fetchall()
    types = {name: type for name, type, *_ in described}
    rows = connection.execute("SELECT count(*) FROM source").fetchall()[0][0]
    if rows == 0:
        raise ValueError(
            f"{place} has the columns {listed(types)} but no rows; give a table with at least "
            f"one row per client{doubt(place, types)}"
        )
    return Source(place, connection, types, rows)


# ---- frames ----


def _register(connection: duckdb.DuckDBPyConnection, source: Any) -> None:
    sentence = (
        f"source is a {type(source).__name__}, which cannot be read as a table; give a path, "
        "an Arrow table, or a pandas or polars DataFrame"
    )
    # Every column is a pass of its own, and a stream can be read only once.
    if not hasattr(source, "__len__"):
        raise ValueError(sentence)
    try:
        connection.register("source", source)
    except duckdb.Error as error:
        raise ValueError(f"{sentence} ({_first_words(error)})") from error


# ---- files and folders ----


def _files(path: Path) -> list[Path]:
    if path.is_dir():
        return _files_in(path)
    if not path.exists():
        raise ValueError(f"there is no file or folder {str(path)!r}; check the path{_near(path)}")
    if _format(path, FORMATS | TEXTS) is None:
        raise ValueError(
            f"{str(path)!r} is of an unknown format; give a file that ends in {', '.join(FORMATS)} "
            "(all but .parquet may be followed by .gz)"
        )
    return [path]


def _files_in(folder: Path) -> list[Path]:
    files = sorted(path for path in folder.iterdir() if path.is_file() and _format(path))
    if not files:
        raise ValueError(
            f"the folder {str(folder)!r} holds no table; put files into it that end in "
            f"{', '.join(FORMATS)}"
        )
    if len({_format(path) for path in files}) > 1:
        raise ValueError(
            f"the folder {str(folder)!r} mixes formats ({listed([file.name for file in files])}); "
            "keep the files of one format"
        )
    return files


def _format(path: Path, formats: Mapping[str, str] = FORMATS) -> str | None:
    name = path.name.lower()
    found = formats.get(Path(name.removesuffix(".gz")).suffix)
    hidden = name.startswith((".", "_"))
    return None if hidden or (found == "parquet" and name.endswith(".gz")) else found


def _read(
    connection: duckdb.DuckDBPyConnection,
    files: list[Path],
    as_text: Collection[str],
    as_written: Collection[str],
    columns: Sequence[str] | None,
) -> None:
    for path in files:
        _check_gzip(path)
    paths = "[" + ", ".join(_literal(_no_glob(path)) for path in files) + "]"
    together = f"{paths}, union_by_name = true, hive_partitioning = false"
    if columns is not None and _format(files[0], FORMATS | TEXTS) != "csv":
        raise ValueError(
            f"columns names the columns of a CSV file without a header line, but {str(files[0])!r} "
            "has names for its own; leave columns out"
        )
    match _format(files[0]):
        case "parquet":
            connection.execute(f"CREATE VIEW source AS SELECT * FROM read_parquet({together})")
        case "json":
            # A key that is rare, or that first appears late, is a column like any other.
            rare = "map_inference_threshold = -1, field_appearance_threshold = 0"
            table = f"read_json({together}, sample_size = -1, {rare})"
            connection.execute(f"CREATE TEMP TABLE source AS SELECT * FROM {table}")
        case _:
            # The first quote may come after the rows that DuckDB looks at.
            arguments = f"""{together}, quote = '"', escape = '"'"""
            header = _header(connection, arguments, columns, str(files[0]))
            _read_csv(connection, f"{arguments}, {header}", {*as_text, *as_written})
            _number(connection, as_written)


def _check_gzip(path: Path) -> None:
    """DuckDB ignores the checksum, and some of its versions a missing half of the file."""
    if path.suffix.lower() != ".gz":
        return
    try:
        with gzip.open(path) as stream:
            while stream.read(1 << 20):
                pass
    except (OSError, EOFError, zlib.error) as error:
        raise ValueError(f"{str(path)!r} is damaged ({error}); copy or export it again") from error


def _no_glob(path: Path) -> str:
    return re.sub(r"([*?\[])", r"[\1]", os.path.abspath(path))


def _literal(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


# ---- CSV, which has no types ----


def _header(
    connection: duckdb.DuckDBPyConnection,
    arguments: str,
    columns: Sequence[str] | None,
    place: str,
) -> str:
    """How `read_csv` is to find the names: in the first line unless they are given.

    A first line that consists of given names is a header all the same.
    """
    if columns is None:
        return "header = true"
    query = f"SELECT * FROM read_csv({arguments}, header = false, all_varchar = true) LIMIT 1"
    first = [str(cell).strip() for row in connection.execute(query).fetchall() for cell in row]
    if first and set(first) <= set(columns):
        return "header = true"
    if first and len(first) != len(columns):
        raise ValueError(
            f"{place} has {len(first)} columns but {len(columns)} names are given for them, "
            f"{listed(columns)}; its first line is {listed(first)}, so give one name for each"
        )
    return f"header = false, names = [{', '.join(map(_literal, columns))}]"


def _read_csv(
    connection: duckdb.DuckDBPyConnection, arguments: str, as_text: Collection[str]
) -> None:
    """A pass per column would parse the text once per column, so it is parsed into `cells`.

    DuckDB guesses types from the first 20,480 rows. Where a later row does not fit, all rows are
    looked at, which takes several times as long.
    """
    try:
        _parse(connection, _csv_types(connection, arguments, as_text, WIDER))
    except duckdb.ConversionException:
        _parse(connection, _csv_types(connection, f"{arguments}, sample_size = -1", as_text, {}))


def _parse(connection: duckdb.DuckDBPyConnection, arguments: str) -> None:
    """Text without the blanks around it, which many files have after each comma."""
    described = connection.execute(f"DESCRIBE SELECT * FROM read_csv({arguments})").fetchall()
    texts = [quoted(name) for name, type, *_ in described if type == "VARCHAR"]
    trimmed = f"REPLACE ({', '.join(f'trim({text}) AS {text}' for text in texts)})" if texts else ""
    connection.execute(f"CREATE TEMP TABLE cells AS SELECT * {trimmed} FROM read_csv({arguments})")


def _csv_types(
    connection: duckdb.DuckDBPyConnection,
    arguments: str,
    as_text: Collection[str],
    wider: dict[str, str],
) -> str:
    """The arguments of `read_csv`, with the types that are not to be guessed."""
    guessed = connection.execute(f"DESCRIBE SELECT * FROM read_csv({arguments})").fetchall()
    types = {name: "VARCHAR" if name in as_text else wider.get(type) for name, type, *_ in guessed}
    given = ", ".join(f"{_literal(name)}: '{type}'" for name, type in types.items() if type)
    return f"{arguments}, types = {{{given}}}" if given else arguments


def _number(connection: duckdb.DuckDBPyConnection, names: Collection[str]) -> None:
    """`source` shows the cells, and as numbers those that are written as numbers are."""
    header = [name for name, *_ in connection.execute("DESCRIBE SELECT * FROM cells").fetchall()]
    texts = {name: f"nullif(trim({quoted(name)}), '')" for name in header if name in names}
    numbered = ", ".join(
        f"CAST({text} AS BIGINT) AS {quoted(name)}"
        for name, text in texts.items()
        if _all_whole(connection, text)
    )
    replaced = f"REPLACE ({numbered})" if numbered else ""
    connection.execute(f"CREATE VIEW source AS SELECT * {replaced} FROM cells")


def _all_whole(connection: duckdb.DuckDBPyConnection, text: str) -> bool:
    whole = f"bool_and(regexp_full_match({text}, '-?(0|[1-9][0-9]{{0,17}})'))"
    return bool(connection.execute(f"SELECT {whole} FROM cells").fetchall()[0][0])


# ---- words for errors ----


def listed(names: Collection[Any], most: int = 30) -> str:
    """Names in quotes, cut where there are many.

    >>> from fairfl.clients.sources import listed
    >>> listed(["age", "city", "smoker"], most=2)
    "'age', 'city' and 1 more"
    """
    shown = ", ".join(repr(name) for name in list(names)[:most])
    return f"{shown} and {len(names) - most:,} more" if len(names) > most else shown


def doubt(place: str, names: Collection[str]) -> str:
    """What may have happened to the header of a CSV file that is not the expected one."""
    if _format(Path(place), FORMATS | TEXTS) != "csv":
        return ""
    hidden = " (a row with more or fewer cells than the others can hide the header)"
    numbers = any(re.fullmatch(r"-?[0-9.]+(_[0-9]+)?", name) for name in names)
    return (
        f"{hidden}; if the file has no header line, give all its names with columns"
        if numbers
        else hidden
    )


def _near(path: Path) -> str:
    beside = [file.name for file in path.parent.iterdir()] if path.parent.is_dir() else []
    near = difflib.get_close_matches(path.name, beside, n=1)
    return f", or did you mean {near[0]!r}?" if near else ""


def _first_words(error: duckdb.Error) -> str:
    """DuckDB's own words without advice, SQL and other people's data."""
    lines = str(error).split("\n\n")[0].splitlines()
    told = takewhile(lambda line: not line.startswith("Possible"), lines)
    words = " ".join(line for line in told if not line.startswith("Original Line"))
    return " ".join(words.split(". ")[0].split())[:300].rstrip(".")
