"""One page of text, tables and charts in one file that needs no other: HTML, offline.

A page is data: sections of blocks. The libraries that draw charts are inlined once. A content
security policy forbids every request, so that no data leave the page.
"""

import json
import re
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from html import escape
from importlib.resources import files
from typing import Any, NamedTuple

import vl_convert

from fairfl.report.charts import Chart
from fairfl.report.colours import DARK, LIGHT, Colours, swaps
from fairfl.report.sheets import Cell, Column, Sheet, texts, written

POLICY = (
    "default-src 'none'; script-src 'unsafe-inline' 'unsafe-eval'; "
    "style-src 'unsafe-inline'; img-src data:"
)
"""Vega compiles its expressions; nothing may be fetched from anywhere."""


DENSE = 6
"""A table of more columns has its intervals below its means."""


class Tile(NamedTuple):
    """A figure to see first: what it is, its value, and what it was or where it comes from."""

    label: str
    value: str
    note: str = ""


class Tiles(NamedTuple):
    """Figures in a row."""

    tiles: Sequence[Tile]


class Figure(NamedTuple):
    """A chart with the sentence below it; the name is that of its file."""

    name: str
    chart: Chart
    caption: str


class Listing(NamedTuple):
    """A table as long as there are clients, to be searched and sorted; `search` is what by.

    `by` is the column that it is sorted by at first, rising or falling. In a column of signed
    numbers, `rises` tells whether plus is better.
    """

    sheet: Sheet
    search: str
    by: int = 0
    falling: bool = False
    rises: bool = True


class Facts(NamedTuple):
    """Names and what they stand for."""

    pairs: Sequence[tuple[str, str]]


class Code(NamedTuple):
    """Text that is typed, line by line."""

    text: str


class Notes(NamedTuple):
    """Sentences that a reader must know beside the numbers."""

    title: str
    sentences: Sequence[str]


Block = str | Tiles | Figure | Sheet | Listing | Facts | Code | Notes
"""A text is a paragraph."""


class Section(NamedTuple):
    """A heading and what is below it."""

    title: str
    blocks: Sequence[Block]


class Page(NamedTuple):
    """A page: the small line on top, the sentence to read first, and the sections."""

    title: str
    headline: str
    blocks: Sequence[Block]
    sections: Sequence[Section]


def html(page: Page) -> str:
    """The whole file.

    >>> from fairfl.report.page import Page, Section, html
    >>> text = html(Page("<b>", "All is even.", [], [Section("Why", ["Because."])]))
    >>> "&lt;b&gt;" in text, "<p>Because.</p>" in text
    (True, True)
    """
    body = [f'<p class="title">{escape(page.title)}</p>', f"<h1>{_words(page.headline)}</h1>"]
    body += map(_block, page.blocks)
    body += map(_section, page.sections)
    return "\n".join(
        [
            "<!doctype html>",
            '<html lang="en">',
            "<head>",
            '<meta charset="utf-8">',
            f'<meta http-equiv="Content-Security-Policy" content="{POLICY}">',
            '<meta name="viewport" content="width=device-width, initial-scale=1">',
            '<meta name="color-scheme" content="light dark">',
            f"<title>{escape(page.title)}</title>",
            '<link rel="icon" href="data:,">',
            f"<style>\n{_style()}</style>",
            "</head>",
            "<body>",
            "<main>",
            *body,
            "</main>",
            *_scripts(page),
            "</body>",
            "</html>",
            "",
        ]
    )


def figures(page: Page) -> list[Figure]:
    """Every chart of a page, in its order."""
    return [block for block in _blocks(page) if isinstance(block, Figure)]


def sheets(page: Page) -> list[Sheet]:
    """Every table of a page, in its order."""
    found = [block.sheet if isinstance(block, Listing) else block for block in _blocks(page)]
    return [block for block in found if isinstance(block, Sheet)]


def _blocks(page: Page) -> list[Block]:
    return [*page.blocks, *(block for section in page.sections for block in section.blocks)]


def _section(section: Section) -> str:
    inside = "\n".join(map(_block, section.blocks))
    return f"<section>\n<h2>{_words(section.title)}</h2>\n{inside}\n</section>"


def _block(block: Block) -> str:
    return BLOCKS[type(block)](block)


def _paragraph(text: str) -> str:
    return f"<p>{_words(text)}</p>"


TIED = re.compile(r" (?=%|°|= |± )|(?<==) (?=\S)|(?<=±) (?=\d)")
"""Spaces at which a line does not end: q = 1, 80 %, ± 2."""


def _words(text: str) -> str:
    """Text in HTML, where a number and its unit stay on one line."""
    return TIED.sub("\u00a0", escape(text))


def _tiles(tiles: Tiles) -> str:
    return f'<dl class="tiles">{"".join(map(_tile, tiles.tiles))}</dl>'


def _tile(tile: Tile) -> str:
    note = f'<dd class="note">{_words(tile.note)}</dd>' if tile.note else ""
    return f"<div><dt>{_words(tile.label)}</dt><dd>{_words(tile.value)}</dd>{note}</div>"


def _facts(facts: Facts) -> str:
    return f'<dl class="facts">{"".join(_fact(*pair) for pair in facts.pairs)}</dl>'


def _fact(name: str, value: str) -> str:
    return f"<div><dt>{escape(name)}</dt><dd>{escape(value)}</dd></div>"


def _code(code: Code) -> str:
    return f"<pre><code>{escape(code.text)}</code></pre>"


def _notes(notes: Notes) -> str:
    said = "".join(f"<li>{_words(sentence)}</li>" for sentence in notes.sentences)
    return f"<aside><h3>{escape(notes.title)}</h3><ul>{said}</ul></aside>"


def _figure(figure: Figure) -> str:
    spec = figure.chart.to_dict()
    spec["width"] = "container"
    height = spec["height"]
    return (
        f'<figure><div class="chart" style="min-height:{height}px">'
        f'<script type="application/json">{_json(spec)}</script></div>'
        f"<figcaption>{_words(figure.caption)}</figcaption></figure>"
    )


def _sheet(sheet: Sheet) -> str:
    head = "".join(_head(column) for column in sheet.columns)
    rows = "".join(
        f"<tr{' class=marked' if place == sheet.marked else ''}>{_cells(row, sheet.columns)}</tr>"
        for place, row in enumerate(texts(sheet))
    )
    kind = "sheet dense" if len(sheet.columns) > DENSE else "sheet"
    return (
        f'<div class="{kind}" tabindex="0" role="region" aria-label="{escape(sheet.title)}">'
        f"<table><caption>{escape(sheet.title)}</caption>"
        f"<thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table></div>"
    )


def _head(column: Column) -> str:
    kind = "" if column.is_text else ' class="number"'
    return f'<th scope="col"{kind}>{_words(column.title)}</th>'


def _cells(row: Sequence[str], columns: Sequence[Column]) -> str:
    first, *rest = zip(row, columns, strict=True)
    kind = "" if first[1].is_text else ' class="number"'
    cells = [f'<th scope="row"{kind}>{_halved(first[0])}</th>']
    for text, column in rest:
        kind = "" if column.is_text else ' class="number"'
        cells.append(f"<td{kind}>{_halved(text)}</td>")
    return "".join(cells)


def _halved(text: str) -> str:
    """A mean, and its interval in a quieter hand."""
    mean, sign, half = _words(text).partition("\u00a0±\u00a0")
    return f"{mean} <small>± {half}</small>" if sign else mean


def _listing(listing: Listing) -> str:
    columns = [
        {"title": c.title, "number": not c.is_text, "signed": c.figures.startswith("+")}
        for c in listing.sheet.columns
    ]
    told = {
        "title": listing.sheet.title,
        "search": listing.search,
        "by": listing.by,
        "falling": listing.falling,
        "better": 1 if listing.rises else -1,
        "columns": columns,
        "rows": [_row(row, listing.sheet.columns) for row in listing.sheet.rows],
    }
    return f'<div class="listing"><script type="application/json">{_json(told)}</script></div>'


def _row(row: Sequence[Cell], columns: Sequence[Column]) -> list[Any]:
    """Numbers as they are shown, because that is what they are sorted by."""
    return [
        cell if isinstance(cell, str) else written(cell, column.figures)
        for cell, column in zip(row, columns, strict=True)
    ]


BLOCKS: Mapping[type, Callable[[Any], str]] = {
    str: _paragraph,
    Tiles: _tiles,
    Figure: _figure,
    Sheet: _sheet,
    Listing: _listing,
    Facts: _facts,
    Code: _code,
    Notes: _notes,
}
"""How each kind of block is written."""


def _json(value: Mapping[str, Any]) -> str:
    """JSON that cannot end the script it stands in, whatever a client is called."""
    text = json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


def _style() -> str:
    dark = f"@media (prefers-color-scheme: dark) {{\n:root {{{_variables(DARK)}}}\n}}\n"
    return f":root {{{_variables(LIGHT)}}}\n{dark}{_text('page.css')}"


def _variables(colours: Colours) -> str:
    return " ".join(f"--{name}: {value};" for name, value in list(colours._asdict().items())[:8])


def _scripts(page: Page) -> list[str]:
    """The libraries once, where there is a chart, and then what makes the page move."""
    library = [f"<script>{_library()}</script>"] if figures(page) else []
    swapped = f'<script type="application/json" id="swaps">{_json(swaps())}</script>'
    return [*library, swapped, f"<script>\n{_text('page.js')}</script>"]


@lru_cache(maxsize=1)
def _library() -> str:
    """Vega, Vega-Lite and Vega-Embed as one script."""
    return vl_convert.javascript_bundle("window.vegaEmbed = vegaEmbed;").replace(
        "</script", "<\\/script"
    )


def _text(name: str) -> str:
    return files("fairfl.report").joinpath(name).read_text(encoding="utf-8")
