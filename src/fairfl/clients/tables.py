"""Your own table, with a column that says whose row it is, as FederatedData."""

import difflib
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from fairfl.clients.cells import (
    MOST_CATEGORIES,
    PLAIN,
    WHOLE,
    Source,
    categories,
    check_no_blanks,
    clients_of,
    codes,
    holds_numbers,
    numbers,
    quoted,
)
from fairfl.clients.federated import FederatedData, Fractions, Task, check_fractions, encoded
from fairfl.clients.preprocessing import Preprocessing, features_of, learnt
from fairfl.clients.sources import doubt, listed, opened, title

Labels = tuple[np.ndarray, np.ndarray | None, Task]


class Table(NamedTuple):
    """A table as data to train on, and how its columns were read."""

    data: FederatedData
    preprocessing: Preprocessing


def from_table(
    source: Any,
    *,
    client: str,
    label: str,
    features: Sequence[str] | None = None,
    split: Fractions | None = (0.8, 0.1, 0.1),
    task: Task | None = None,
    columns: Sequence[str] | None = None,
) -> FederatedData:
    """Data from a table with one row per example and a column that names the row's client.

    `source` is a CSV, Parquet or JSON lines file, a folder of them, or an Arrow, pandas or polars
    table; `columns` names the columns of a CSV file that has no header line. Clients are in the
    order of their names, a client's rows in the order of the table. Numbers and times are
    standardised, text becomes one feature per category, missing numbers become the median and are
    marked; `preprocessing` of the data says how each column was read.

    >>> import pathlib, tempfile, fairfl
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = pathlib.Path(folder, "visits.csv")
    ...     _ = file.write_text("hospital,age,readmitted\\nB,30,0\\nA,50,1\\nB,50,1\\nA,30,0\\n")
    ...     data = fairfl.from_table(file, client="hospital", label="readmitted")
    >>> data.ids, data.sizes.tolist(), data.y.tolist(), data.x.tolist()
    (('A', 'B'), [2, 2], [1, 0, 0, 1], [[1.0], [-1.0], [-1.0], [1.0]])
    """
    return load_table(
        source, client=client, label=label, features=features, split=split, task=task,
        columns=columns,
    ).data  # fmt: skip


def load_table(
    source: Any,
    *,
    client: str,
    label: str,
    features: Sequence[str] | None = None,
    split: Fractions | None = (0.8, 0.1, 0.1),
    task: Task | None = None,
    columns: Sequence[str] | None = None,
) -> Table:
    """`from_table`, together with the preprocessing that reads new rows in the same way.

    >>> import pathlib, tempfile, fairfl
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = pathlib.Path(folder, "visits.csv")
    ...     _ = file.write_text("hospital,age,readmitted\\nB,30,0\\nA,50,1\\nB,50,1\\nA,30,0\\n")
    ...     table = fairfl.load_table(file, client="hospital", label="readmitted")
    >>> print("\\n".join(table.preprocessing.describe()))
    client column 'hospital'
    label column 'readmitted': binary, classes 0, 1
    'age': number, mean 40, deviation 10
    features: 1
    """
    check_fractions(split)
    with opened(source, as_written={client, label}, columns=columns) as rows:
        names = _feature_columns(rows, client, label, features)
        as_text = rows.types[client] not in PLAIN
        owner, ids = clients_of(rows, client, as_text)
        y, classes, task = _labels(rows, label, task)
        used, left_out = learnt(rows, names)
        order = np.argsort(owner, kind="stable")
        x = features_of(rows, used, order)
    known = None if classes is None else tuple(classes.tolist())
    given = None if columns is None else tuple(columns)
    preprocessing = Preprocessing(client, as_text, label, task, known, used, left_out, names=given)
    offsets = np.concatenate([[0], np.cumsum(np.bincount(owner, minlength=len(ids)))])
    return Table(
        FederatedData(
            x=x,
            y=y[order],
            offsets=offsets,
            ids=ids,
            task=task,
            classes=classes,
            fractions=split,
            name=title(source),
            preprocessing=preprocessing,
        ),
        preprocessing,
    )


# ---- which columns ----


def _feature_columns(
    source: Source, client: str, label: str, features: Sequence[str] | None
) -> list[str]:
    for role, name in (("client", client), ("label", label)):
        _check_column(source, name, role)
        if source.kind(name) is None:
            raise ValueError(
                f"the {role} column {name!r} holds {source.types[name]} values; "
                "name a column of plain values"
            )
    if client == label:
        raise ValueError(
            f"client={client!r} and label={label!r} are the same column; name two different ones"
        )
    if features is None:
        return [name for name in source.types if name not in (client, label)]
    chosen = [features] if isinstance(features, str) else list(features)
    for name in chosen:
        _check_feature(source, name, client, label)
    return chosen


def _check_feature(source: Source, name: str, client: str, label: str) -> None:
    _check_column(source, name, "features")
    if name in (client, label):
        role = "client" if name == client else "label"
        raise ValueError(
            f"{name!r} is the {role} column, which cannot be a feature; take it out of features"
        )
    if source.kind(name) is None:
        raise ValueError(
            f"column {name!r} holds {source.types[name]} values, which cannot be a feature; "
            "take it out of features"
        )


def _check_column(source: Source, name: str, argument: str) -> None:
    if name in source.types:
        return
    folded = {column.casefold(): column for column in source.types}
    near = [folded[match] for match in difflib.get_close_matches(name.casefold(), folded)]
    raise ValueError(
        f"{argument}={name!r} is no column of {source.place}, which has {listed(source.types)}; "
        + (f"did you mean {' or '.join(map(repr, near))}?" if near else "name one of these")
        + ("" if near else doubt(source.place, source.types))
    )


# ---- what is to be predicted ----


def _labels(source: Source, name: str, task: Task | None) -> Labels:
    check_no_blanks(source, name, "label")
    if source.kind(name) in ("number", "boolean"):
        return _numeric_labels(source, name, task)
    if source.kind(name) == "category" and holds_numbers(source, name):
        return _labels_in_digits(source, name, task)
    if task == "regression":
        raise ValueError(
            f"task='regression' needs numbers but the label column {name!r} holds "
            f"{source.cell(name, 0)!r}; leave task out to predict classes"
        )
    return _text_labels(source, name, task)


def _numeric_labels(source: Source, name: str, task: Task | None) -> Labels:
    plain = source.types[name] in WHOLE | {"BOOLEAN"}
    labels = source.array(quoted(name)) if plain else numbers(source, name, "number")
    if task != "regression":
        _check_two_classes(name, labels)
    y, classes, found = encoded(labels, task)
    if task is None and classes is not None and len(classes) > MOST_CATEGORIES:
        raise ValueError(
            f"the label column {name!r} holds {len(classes):,} different whole numbers; say "
            "task='regression' to predict a number or task='multiclass' if these are classes"
        )
    return y, classes, found


def _labels_in_digits(source: Source, name: str, task: Task | None) -> Labels:
    """Text that is all numbers: classes as they are written, unless there are fractions."""
    values = numbers(source, name, "number")
    if task == "regression" or (task is None and (values != np.round(values)).any()):
        return encoded(values, task)
    return _text_labels(source, name, task)


def _text_labels(source: Source, name: str, task: Task | None) -> Labels:
    remedy = "name another label column, or say task='regression' if these are numbers"
    names = categories(source, name, remedy)
    classes = np.array(names)
    _check_two_classes(name, classes)
    y, _, task = encoded(codes(source, source.text(name), names), task)
    return y, classes, task


def _check_two_classes(name: str, labels: np.ndarray) -> None:
    if (labels == labels[0]).all():
        raise ValueError(
            f"every row of the label column {name!r} is {labels[0].item()!r}; a classifier needs "
            "at least two different labels, so check that this is the column to predict"
        )
