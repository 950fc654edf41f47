"""Writing a report: the page, its charts as pictures, its tables as text."""

from collections.abc import Sequence
from pathlib import Path

import vl_convert

from fairfl.comparison.folder import is_comparison
from fairfl.report.beside import page_of
from fairfl.report.contents import page, together
from fairfl.report.folders import kept, runs_in
from fairfl.report.page import Figure, Page, figures, html, sheets
from fairfl.report.sheets import Sheet, as_csv, as_latex, as_markdown
from fairfl.runs.atomic import replaced

REPORT = "report.html"
"""The page in a run's folder."""

FORMS = {"csv": as_csv, "md": as_markdown, "tex": as_latex}
"""What a table is written as."""

SCALE = 2.0
"""Pixels of a PNG for each of a screen."""


def write(folder: Path) -> Path:
    """Write the page of a run or a comparison into its folder, and say where it is.

    >>> import tempfile, fairfl
    >>> from fairfl.report.writing import write
    >>> from fairfl.runs import folder
    >>> data = fairfl.datasets.load("synthetic", clients=20)
    >>> model = fairfl.models.softmax_regression(data)
    >>> result = fairfl.train(data, model, fairfl.fedavg(), rounds=2, cohort=5)
    >>> with tempfile.TemporaryDirectory() as parent:
    ...     write(folder.write(result, Path(parent, "first"))).name
    'report.html'
    """
    return write_page(_page(folder), folder)


def write_all(folders: Sequence[Path], out: Path) -> list[Path]:
    """Write page, charts and tables of one run, or of several side by side, and list the files.

    The page comes first.
    """
    found = _page(folders[0]) if len(folders) == 1 else _of_runs(folders)
    out.mkdir(parents=True, exist_ok=True)
    return [write_page(found, out), *write_pieces(found, out)]


def _page(folder: Path) -> Page:
    return page_of(folder) if is_comparison(folder) else _of_runs([folder])


def _of_runs(folders: Sequence[Path]) -> Page:
    runs = [kept(run) for folder in folders for run in runs_in(folder)]
    return page(runs[0]) if len(runs) == 1 else together(runs)


def write_page(page: Page, folder: Path) -> Path:
    """Write a page as the report of a folder."""
    place = folder / REPORT
    _save(place, html(page).encode())
    return place


def write_pieces(page: Page, folder: Path) -> list[Path]:
    """Write every chart as PNG and SVG and every table as CSV, Markdown and LaTeX; list them."""
    for place in ("charts", "tables"):
        (folder / place).mkdir(parents=True, exist_ok=True)
    drawn = [file for figure in figures(page) for file in _draw(figure, folder / "charts")]
    return drawn + [file for sheet in sheets(page) for file in _list(sheet, folder / "tables")]


def _draw(figure: Figure, folder: Path) -> list[Path]:
    spec = figure.chart.to_dict()
    svg, png = vl_convert.vegalite_to_svg(spec), vl_convert.vegalite_to_png(spec, scale=SCALE)
    contents = {"svg": svg.encode(), "png": png}
    return [_save(folder / f"{figure.name}.{form}", bytes) for form, bytes in contents.items()]


def _list(sheet: Sheet, folder: Path) -> list[Path]:
    return [
        _save(folder / f"{sheet.name}.{form}", text(sheet).encode()) for form, text in FORMS.items()
    ]


def _save(file: Path, content: bytes) -> Path:
    with replaced(file) as stream:
        stream.write(content)
    return file
