"""`fairfl report`: the page of a run, its charts and its tables, or of several side by side."""

import sys
from pathlib import Path
from typing import Annotated

import typer

from fairfl.cli.app import app
from fairfl.cli.options import OUTPUT, Json, option
from fairfl.cli.output import say
from fairfl.report import writing
from fairfl.runs import folder
from fairfl.runs.json import SCHEMA, text

RUNS = Path("runs")
"""Where a report on several runs is kept that does not say where."""

Folders = Annotated[
    list[Path],
    typer.Argument(metavar="DIR...", help="Folders of runs; a folder of folders is all its runs."),
]
Out = Annotated[
    Path | None,
    option(
        "--out",
        OUTPUT,
        "Where to write; the run's own folder, or a new one in runs/ for several.",
        "FOLDER",
    ),
]


@app.command("report")
def write_report(folders: Folders, out: Out = None, as_json: Json = False) -> None:
    """Write report.html, every chart as PNG and SVG, and every table as CSV, Markdown and LaTeX.

    fairfl report runs/0001-synthetic-sweep

    fairfl report runs/0001-synthetic-sweep runs/0002-synthetic-run --out side-by-side
    """
    place = out or (folders[0] if len(folders) == 1 else folder.reserved(RUNS, "report"))
    page, *pieces = writing.write_all(folders, place)
    if as_json:
        files = [str(file) for file in pieces]
        sys.stdout.write(text({"schema": SCHEMA, "report": str(page), "files": files}))
        return
    say([f"Written to {page}, with {len(pieces)} files in {place / 'charts'} and tables"])
