"""`fairfl datasets`: what there is, what is present, where it comes from."""

import dataclasses
import sys

from fairfl import datasets
from fairfl.cli.app import app
from fairfl.cli.options import DataDir, Json
from fairfl.cli.output import say
from fairfl.report import tables
from fairfl.runs.json import SCHEMA, text


@app.command("datasets")
def list_datasets(
    data_dir: DataDir = None,
    as_json: Json = False,
) -> None:
    """List the data sets that have a name: where they come from, and whether they are here."""
    found = datasets.describe(data_dir)
    if as_json:
        listed = [dataclasses.asdict(description) for description in found]
        sys.stdout.write(text({"schema": SCHEMA, "datasets": listed}))
    else:
        absent = tables.absent(found, datasets.data_folder(data_dir))
        say([tables.catalogue(found), *tables.sources(found), *absent])
