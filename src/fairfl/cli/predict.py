"""`fairfl predict`: new rows, scored by the model that a run recommends."""

import sys
from pathlib import Path
from typing import Annotated

import typer

from fairfl.cli.app import app
from fairfl.cli.options import DATA, OUTPUT, Columns, Json, option
from fairfl.cli.output import say
from fairfl.report import predictions
from fairfl.runs import prediction
from fairfl.runs.json import text
from fairfl.runs.request import labels, names
from fairfl.runs.scored import check_file, default_file, write_scored

Run = Annotated[Path, typer.Argument(help="The folder of a run or sweep.", metavar="FOLDER")]
Rows = Annotated[Path, typer.Argument(help="The table whose rows are scored.", metavar="TABLE")]
Which = Annotated[
    str | None,
    option(
        "--experiment",
        DATA,
        "Another model than the chosen one, for example q=1:seed=2.",
        "NAME=NUMBER:..",
    ),
]
Out = Annotated[
    Path | None,
    option("--out", OUTPUT, "A .csv or .parquet file; TABLE-predicted if not given.", "FILE"),
]
Replace = Annotated[bool, option("--overwrite", OUTPUT, "Replace the file that is there.")]


@app.command("predict")
def predict(
    folder: Run,
    table: Rows,
    experiment: Which = None,
    columns: Columns = None,
    out: Out = None,
    overwrite: Replace = False,
    as_json: Json = False,
) -> None:
    """Score the rows of a table with the model that a run or sweep on a table recommends.

    What is written are the table's own columns, the prediction, and the probability of each class.

    fairfl predict runs/0001-visits-sweep new-visits.csv
    """
    file = default_file(table) if out is None and not as_json else out
    if file is not None:
        check_file(file, overwrite)
    found = prediction.predict(
        folder,
        table,
        experiment=None if experiment is None else labels(experiment),
        columns=names(columns),
    )
    if file is not None:
        write_scored(table, found, file)
    if as_json:
        sys.stdout.write(text(predictions.as_object(found)))
    else:
        say(predictions.lines(found))
    if file is not None:
        say([f"Written to {file}"], aside=as_json)
