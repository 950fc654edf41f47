"""Sheets: a report's tables as data, and as CSV, Markdown and LaTeX."""

import csv
import io
import math
from collections.abc import Sequence
from typing import NamedTuple

from fairfl.metrics import Interval


class Rounded(NamedTuple):
    """A number with digits of its own, in a column where each row measures something else."""

    value: float | Interval
    figures: str


Cell = str | int | float | Interval | Rounded


class Column(NamedTuple):
    """A heading, and how the numbers below it are written; a column of text has no figures.

    >>> from fairfl.report.sheets import Column
    >>> Column("average", ".1f").is_text
    False
    """

    title: str
    figures: str = ""

    @property
    def is_text(self) -> bool:
        return not self.figures


class Sheet(NamedTuple):
    """A table by a name that a file can have; `marked` is the row to see first."""

    name: str
    title: str
    columns: Sequence[Column]
    rows: Sequence[Sequence[Cell]]
    marked: int | None = None


def written(cell: Cell, figures: str) -> str:
    """A cell as people read it: a mean with half of its interval, where it has one.

    >>> from fairfl.metrics import interval
    >>> from fairfl.report.sheets import written
    >>> written(interval([79.0, 80.0, 81.0]), ".1f"), written(80.04, ".1f"), written("q = 1", "")
    ('80.0 ± 2.5', '80.0', 'q = 1')
    >>> written(interval([79.0]), ".1f"), written(float("nan"), ".1f"), written(-0.04, "+.1f")
    ('79.0', '–', '0.0')
    """
    if isinstance(cell, str):
        return cell
    if isinstance(cell, Rounded):
        return written(cell.value, cell.figures)
    if isinstance(cell, Interval):
        mean, half = cell.mean, cell.high - cell.mean
        number = written(mean, figures)
        return f"{number} ± {half:{figures.lstrip('+')}}" if math.isfinite(half) else number
    if not math.isfinite(cell):
        return "–"
    number = f"{cell:{figures}}"
    # What rounds to nothing has no sign.
    return (number if number.strip("+-0.") else number.lstrip("+-")).replace("-", "−")


def as_csv(sheet: Sheet) -> str:
    """Every digit; an interval takes three columns, and NaN is an empty cell.

    >>> from fairfl.metrics import interval
    >>> from fairfl.report.sheets import Column, Sheet, as_csv
    >>> columns = [Column("model"), Column("average", ".1f")]
    >>> sheet = Sheet("metrics", "Metrics", columns, [["q = 0", interval([79.0, 81.0])]])
    >>> as_csv(sheet).splitlines()[0]
    'model,average,average low,average high'
    """
    rows = [[_bare(cell) for cell in row] for row in sheet.rows]
    spans = [any(isinstance(row[i], Interval) for row in rows) for i in _places(sheet)]
    titles = [
        name
        for column, span in zip(sheet.columns, spans, strict=True)
        for name in _titles(column.title, span)
    ]
    stream = io.StringIO()
    writer = csv.writer(stream, lineterminator="\n")
    writer.writerow(titles)
    for row in rows:
        writer.writerow([value for i in _places(sheet) for value in _values(row[i], spans[i])])
    return stream.getvalue()


def _places(sheet: Sheet) -> range:
    return range(len(sheet.columns))


def _bare(cell: Cell) -> str | int | float | Interval:
    return cell.value if isinstance(cell, Rounded) else cell


def _titles(title: str, span: bool) -> list[str]:
    return [title, f"{title} low", f"{title} high"] if span else [title]


def _values(cell: str | int | float | Interval, span: bool) -> list[str | int | float]:
    if isinstance(cell, Interval):
        return [_finite(value) for value in (cell.mean, cell.low, cell.high)]
    return [_finite(cell), "", ""] if span else [_finite(cell)]


def _finite(value: str | int | float) -> str | int | float:
    return "" if isinstance(value, float) and not math.isfinite(value) else value


def as_markdown(sheet: Sheet) -> str:
    """A pipe table, numbers to the right.

    >>> from fairfl.report.sheets import Column, Sheet, as_markdown
    >>> print(as_markdown(Sheet("t", "T", [Column("a|b"), Column("n", ".1f")], [["x", 1.0]])))
    | a\\|b | n |
    |---|--:|
    | x | 1.0 |
    <BLANKLINE>
    """
    heads = [column.title for column in sheet.columns]
    rule = ["---" if column.is_text else "--:" for column in sheet.columns]
    rows = [f"|{'|'.join(rule)}|"] + [_piped(cells) for cells in texts(sheet)]
    return "\n".join([_piped(heads), *rows]) + "\n"


def _piped(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in cells)} |"


def as_latex(sheet: Sheet) -> str:
    """A tabular with the rules of booktabs.

    >>> from fairfl.report.sheets import Column, Sheet, as_latex
    >>> print(as_latex(Sheet("t", "T", [Column("a_b"), Column("n", ".1f")], [["5 %", 1.0]])))
    \\begin{tabular}{lr}
    \\toprule
    a\\_b & n \\\\
    \\midrule
    5 \\% & 1.0 \\\\
    \\bottomrule
    \\end{tabular}
    <BLANKLINE>
    """
    form = "".join("l" if column.is_text else "r" for column in sheet.columns)
    heads = _latex_row([column.title for column in sheet.columns])
    rows = [_latex_row(cells) for cells in texts(sheet)]
    begin, end = rf"\begin{{tabular}}{{{form}}}", r"\end{tabular}"
    lines = [begin, r"\toprule", heads, r"\midrule", *rows, r"\bottomrule", end]
    return "\n".join(lines) + "\n"


def texts(sheet: Sheet) -> list[list[str]]:
    """Every cell as it is written."""
    return [
        [written(cell, column.figures) for cell, column in zip(row, sheet.columns, strict=True)]
        for row in sheet.rows
    ]


def _latex_row(cells: Sequence[str]) -> str:
    return " & ".join(map(_latex, cells)) + r" \\"


LATEX = {
    "\\": r"\textbackslash{}",
    **{sign: rf"\{sign}" for sign in "&%$#_{}"},
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "±": r"$\pm$",
    "−": "$-$",
    "–": "--",
    "°": r"$^\circ$",
}
"""What LaTeX would take for a command, and the signs that an old LaTeX does not know."""


def _latex(text: str) -> str:
    return "".join(LATEX.get(sign, sign) for sign in " ".join(text.split()))
