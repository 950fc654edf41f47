"""Small made-up tables, and what calls on them are refused with."""

import re

import pytest

from fairfl.clients.tables import load_table

VISITS = """hospital,age,smoker,city,readmitted
Nord,30,true,Ulm,0
Alt,50,false,Bonn,1
Nord,,true,,1
Alt,70,true,Bonn,0
Nord,50,false,Aachen,1
"""
# DuckDB guesses from the first 20,480 rows of a text file; what follows must count all the same.
LATE = 30_000
BY_HOSPITAL = {"client": "hospital", "label": "readmitted"}
AB = {"client": "h", "label": "y"}


def csv_of(feature, **columns):
    """A table of two clients with two labels and one feature called v."""
    n = len(feature)
    columns = {
        "h": list("AB" * n)[:n],
        "v": feature,
        "y": [0, 1] * (n // 2) + [0] * (n % 2),
        **columns,
    }
    rows = zip(*columns.values(), strict=True)
    return "\n".join([",".join(columns), *(",".join(map(str, row)) for row in rows)]) + "\n"


def parquet(arrow, path, columns):
    pytest.importorskip("pyarrow.parquet", reason="writing Parquet needs pyarrow")
    arrow.parquet.write_table(arrow.table(columns), path)
    return path


def refusal(function, *args, **kwargs):
    """What a call is refused with: one line, one sentence."""
    with pytest.raises(ValueError, match=r"\A[^\n]+[^.\n]\Z") as caught:
        function(*args, **kwargs)
    assert not re.search(r"[.;?] [A-Z]", str(caught.value)), caught.value
    return str(caught.value)


def mistake(*args, **kwargs):
    return refusal(load_table, *args, **kwargs)
