"""Charts of what was found: pure functions from the entries of a report to Altair charts.

A chart carries its own numbers (points.py), is 640 pixels wide in a file and as wide as there is
room for on a page (page.py), and speaks the colours of light paper, which a page swaps at night.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import altair as alt

from fairfl.clients.federated import SplitName
from fairfl.report import points
from fairfl.report.colours import LIGHT, stepped
from fairfl.report.entries import Entry
from fairfl.report.measure import Measure

Chart = alt.Chart | alt.LayerChart
Rows = Sequence[Mapping[str, Any]]

WIDTH, HEIGHT, TALL = 640, 280, 360
"""Pixels of a chart in a file."""

ROOM = 8
"""Pixels between an axis and a mark at its end."""

ROW = 26
"""Pixels that a named client takes."""

FONT = "system-ui, -apple-system, 'Segoe UI', Roboto, 'Helvetica Neue', Arial, sans-serif"

MANY = 1000
"""More clients than this are counted in cells instead of drawn one by one."""

CHANGES = {"gains": LIGHT.chosen, "same": LIGHT.plain, "loses": LIGHT.lost}


def curve(entry: Entry, split: SplitName) -> Chart:
    """Every client of one model, from the worst served to the best; the worst tenth stands out.

    >>> import fairfl
    >>> from fairfl.report import charts
    >>> from fairfl.report.entries import entries
    >>> data = fairfl.datasets.load("synthetic", clients=20)
    >>> model = fairfl.models.softmax_regression(data)
    >>> result = fairfl.train(data, model, fairfl.fedavg(), rounds=2, cohort=5)
    >>> charts.curve(entries(result)[0], "test").to_dict()["width"]
    640
    """
    measure, rows = entry.measure, points.quantiles(entry, split)
    marks = _chart(rows).mark_bar()
    drawn = marks.encode(
        x=alt.X("from:Q", title="clients, worst served first (%)", scale=_scale(0.0, 100.0)),
        x2="to:Q",
        y=alt.Y("value:Q", title=measure.title, scale=_measured(measure)),
        y2=alt.datum(0),
        color=_colours({"worst tenth": LIGHT.lost, "others": LIGHT.plain}, "group"),
        tooltip=[_told("place", "client at (%)", ".0f"), _told("value", measure.noun, ".1f")],
    )
    return _styled(drawn, f"{measure.noun} of every client, worst served first")


def before_after(before: Entry, after: Entry, split: SplitName) -> Chart:
    """How one model serves each client and how another does: a point per client, or where there
    are many, how many clients are in each cell."""
    measure, rows = before.measure, points.pairs(before, after, split)
    many, scale = len(rows) > MANY, _roomy(_spanning(_both_values(rows), measure))
    marks = _cells(rows) if many else _dots(rows, before, after)
    first, second = ("x", "y") if many else ("before", "after")
    drawn = marks.encode(
        x=alt.X(f"{first}:Q", title=f"{measure.title}, {before.label}", scale=scale),
        y=alt.Y(f"{second}:Q", title=f"{measure.title}, {after.label}", scale=scale),
    )
    described = f"{measure.noun} of every client under {before.label} and {after.label}"
    return _styled(_layered(_diagonal(scale), drawn), described, TALL)


def _dots(rows: Rows, before: Entry, after: Entry) -> alt.Chart:
    return (
        _chart(rows)
        .mark_point(filled=True, size=50, opacity=0.8)
        .encode(color=_colours(CHANGES, "change"), tooltip=_both(before, after))
    )


def _cells(rows: Rows) -> alt.Chart:
    shade = alt.Scale(type="log", range=list(LIGHT.ramp[1:6]))
    return (
        _chart(points.counted_pairs(rows))
        .mark_rect()
        .encode(
            x2="x2:Q",
            y2="y2:Q",
            color=alt.Color("clients:Q", title="clients", scale=shade),
            tooltip=[_told("clients", "clients", ",.0f")],
        )
    )


def _both_values(rows: Rows) -> list[float]:
    return [row[name] for row in rows for name in ("before", "after")]


def _diagonal(scale: alt.Scale) -> alt.Chart:
    """Where a client is served as before."""
    line = alt.Chart(alt.Data(values=[{"at": end} for end in scale["domain"]]))
    return line.mark_line(color=LIGHT.line, strokeWidth=2).encode(x="at:Q", y="at:Q")


def moves(before: Entry, after: Entry, split: SplitName, most: int = 10) -> Chart:
    """The clients that one model serves worst, by name, and where another takes each of them."""
    measure = before.measure
    rows = points.worst(points.pairs(before, after, split), measure.rises, most)
    names = alt.Axis(labelLimit=130, ticks=False, grid=False, domain=False)
    base = _chart(rows).encode(
        y=alt.Y("client:N", sort=[row["client"] for row in rows], title=None, axis=names),
        tooltip=_both(before, after),
    )
    change = _colours(CHANGES, "change")
    scale = _roomy(_spanning(_both_values(rows), measure))
    x = alt.X("before:Q", title=measure.title, scale=scale)
    layers = [
        base.mark_rule(strokeWidth=3).encode(x=x, x2="after:Q", color=change),
        base.mark_point(filled=True, size=60, color=LIGHT.plain, opacity=1).encode(x=x),
        base.mark_point(filled=True, size=110, opacity=1).encode(x="after:Q", color=change),
    ]
    described = f"{measure.noun} of the worst served clients: {before.label}, then {after.label}"
    return _styled(_layered(*layers), described, ROW * max(2, len(rows)))


def distribution(several: Sequence[Entry], split: SplitName) -> Chart:
    """How many clients are served how well (the paper's Figure 2), as means over the seeds."""
    measure = several[0].measure
    rows = points.histogram(several, split)
    return histogram(rows, shades(several), measure.title)


def histogram(rows: Rows, colours: Mapping[str, str], title: str) -> Chart:
    """Clients in bins, a shape per model: rows of model, value, to and clients.

    >>> from fairfl.report import charts
    >>> rows = [{"model": "q = 0", "value": 0.0, "to": 10.0, "clients": 3.0}]
    >>> charts.histogram(rows, charts.palette(["q = 0"]), "accuracy (%)").to_dict()["height"]
    280
    """
    closed = [*rows, *_ends(rows)]
    drawn = (
        _chart(closed)
        .mark_area(interpolate="step-after", fillOpacity=0.22, line={"strokeWidth": 2})
        .encode(
            x=alt.X("value:Q", title=title, scale=alt.Scale(zero=False, nice=False)),
            y=alt.Y("clients:Q", title="clients", stack=None),
            color=_colours(colours),
            tooltip=[_told("model", "model"), _told("clients", "clients", ".1f")],
        )
    )
    return _styled(drawn, f"Number of clients by {title}")


def _ends(rows: Rows) -> list[dict[str, Any]]:
    """The right edge of each model's last bin, where its shape comes down."""
    last = {row["model"]: row for row in rows}
    return [{**row, "value": row["to"]} for row in last.values()]


def frontier(several: Sequence[Entry], split: SplitName, chosen: str | None = None) -> Chart:
    """What evenness costs: average against variance of every entry, with 95 % intervals."""
    measure = several[0].measure
    rows = points.frontier(several, split, chosen)
    base = _chart(rows)
    title = f"variance of {measure.noun} over clients"
    x = alt.X("variance:Q", title=title, scale=alt.Scale(zero=False))
    y = alt.Y("average:Q", title=f"average {measure.title}", scale=alt.Scale(zero=False))
    role = _colours({"chosen": LIGHT.chosen, "others": LIGHT.plain}, "role", legend=False)
    told = [_told("model", "model"), _told("average", "average", ".4~g")]
    told.append(_told("variance", "variance", ".4~g"))
    span = base.mark_rule(strokeWidth=1.5, opacity=0.55).encode(color=role)
    point = base.mark_point(filled=True, size=120, opacity=1)
    layers = [
        base.mark_line(color=LIGHT.line, strokeWidth=2).encode(x=x, y=y, order="place:Q"),
        span.encode(x=alt.X("variance_low:Q", title=title), x2="variance_high:Q", y=y),
        span.encode(x=x, y=alt.Y("average_low:Q"), y2="average_high:Q"),
        point.encode(x=x, y=y, color=role, tooltip=told),
        *(name.encode(x=x, y=y) for name in _names(rows)),
    ]
    return _styled(_layered(*layers), f"Average {measure.noun} against its variance", TALL)


def _names(rows: Rows) -> list[alt.Chart]:
    """The names of the points, those on one side of theirs together."""
    sides = [side for side in points.SIDES if any(row["side"] == side.name for row in rows)]
    return [
        _chart([row for row in rows if row["side"] == side.name])
        .mark_text(
            align="left" if side.right > 0 else "right",
            dx=9 * side.right,
            dy=11 * side.down,
            fontSize=13,
        )
        .encode(text="model:N")
        for side in sides
    ]


def convergence(
    several: Sequence[Entry], split: SplitName, metric: str, title: str, chosen: str | None = None
) -> Chart:
    """A fairness metric over the rounds, as the mean over the seeds."""
    rows = points.over_rounds(several, split, metric)
    return lines(rows, shades(several), title, bold=chosen)


def effective_step(several: Sequence[Entry], chosen: str | None = None) -> Chart:
    """How far the server moves: sum of a_k, means over stretches of rounds and over the seeds."""
    rows = points.steps(several)
    values = [row["value"] for row in rows]
    wide = bool(values) and min(values) > 0 and max(values) > 20 * min(values)
    scale = alt.Scale(type="log", nice=False) if wide else alt.Scale(zero=True)
    return lines(rows, shades(several), "effective step", scale, chosen)


def lines(
    rows: Rows,
    colours: Mapping[str, str],
    title: str,
    scale: alt.Scale | None = None,
    bold: str | None = None,
) -> Chart:
    """A line per model over the rounds, one of them bold: rows of model, round and value.

    >>> from fairfl.report import charts
    >>> rows = [{"model": "q = 0", "round": n, "value": 70.0 + n} for n in (1, 2)]
    >>> charts.lines(rows, charts.palette(["q = 0"]), "average").to_dict()["mark"]["type"]
    'line'
    """
    drawn = (
        _chart(rows)
        .mark_line(point=len({row["round"] for row in rows}) == 1)
        .encode(
            x=alt.X("round:Q", title="round", axis=alt.Axis(format=",d", tickCount=5)),
            y=alt.Y("value:Q", title=title, scale=scale or alt.Scale(zero=False)),
            color=_colours(colours),
            strokeWidth=alt.condition(alt.datum.model == bold, alt.value(3.5), alt.value(1.75)),
            tooltip=[
                _told("model", "model"),
                _told("round", "round", ",.0f"),
                _told("value", title, ".4~g"),
            ],
        )
    )
    return _styled(drawn, f"{title} over the rounds")


def shades(several: Sequence[Entry]) -> dict[str, str]:
    """A colour for each entry: plain and chosen for two, a ramp for a scale, else one by one."""
    labels = [entry.label for entry in several]
    return palette(labels, in_order=len({entry.result.algorithm for entry in several}) == 1)


def palette(labels: Sequence[str], in_order: bool = False) -> dict[str, str]:
    """Colours by name, for labels on a scale or without an order.

    >>> from fairfl.report.charts import palette
    >>> palette(["q = 0", "q = 1"])
    {'q = 0': '#858f9c', 'q = 1': '#0b65b8'}
    """
    if len(labels) == 1:
        return {labels[0]: LIGHT.chosen}
    if len(labels) == 2:
        return dict(zip(labels, (LIGHT.plain, LIGHT.chosen), strict=True))
    if in_order:
        return dict(zip(labels, stepped(len(labels)), strict=True))
    return {label: LIGHT.methods[i % len(LIGHT.methods)] for i, label in enumerate(labels)}


def _layered(*layers: alt.Chart) -> alt.LayerChart:
    return alt.LayerChart(layer=list(layers))


def _chart(rows: Rows) -> alt.Chart:
    return alt.Chart(alt.Data(values=[dict(row) for row in rows]))


def _scale(low: float, high: float) -> alt.Scale:
    return alt.Scale(domain=[low, high], nice=False)


def _roomy(scale: alt.Scale) -> alt.Scale:
    """With room for the marks at either end."""
    return alt.Scale(domain=scale["domain"], nice=False, padding=ROOM)


def _spanning(values: Sequence[float], measure: Measure) -> alt.Scale:
    """Whole tens of percent, or losses, that hold all values."""
    if not values:
        return _scale(0.0, 100.0)
    low, high = min(values), max(values)
    if measure.rises:
        return _scale(min(10 * (low // 10), 90.0), 100.0)
    return _scale(low, high if high > low else low + 1)


def _measured(measure: Measure) -> alt.Scale:
    """All of 0 to 100 percent, or the losses that there are."""
    return _scale(0.0, 100.0) if measure.rises else alt.Scale(zero=True)


def _colours(colours: Mapping[str, str], field: str = "model", legend: bool = True) -> alt.Color:
    scale = alt.Scale(domain=list(colours), range=list(colours.values()))
    shown = alt.Legend(title=None) if legend and len(colours) > 1 else None
    return alt.Color(f"{field}:N", scale=scale, legend=shown)


def _told(field: str, title: str, figures: str | None = None) -> alt.Tooltip:
    if figures is None:
        return alt.Tooltip(f"{field}:N", title=title)
    return alt.Tooltip(f"{field}:Q", title=title, format=figures)


def _both(before: Entry, after: Entry) -> list[alt.Tooltip]:
    figures = ".1f" if before.measure.rises else ".3~g"
    return [
        _told("client", "client"),
        _told("before", before.label, figures),
        _told("after", after.label, figures),
    ]


def _styled(chart: Chart, described: str, height: int = HEIGHT) -> Chart:
    """The look that all charts share; `described` is what a screen reader says."""
    text = {"labelColor": LIGHT.muted, "titleColor": LIGHT.muted, "labelFontSize": 12}
    axis = {
        **text,
        "titleFontSize": 12,
        "titleFontWeight": "normal",
        "titlePadding": 10,
        "gridColor": LIGHT.line,
        "domainColor": LIGHT.line,
        "tickColor": LIGHT.line,
        "labelPadding": 6,
        "tickCount": 6,
    }
    return (
        chart.properties(width=WIDTH, height=height, description=described)
        .configure(font=FONT, background=LIGHT.paper, padding=4)
        .configure_view(stroke=None)
        .configure_axis(**axis)
        .configure_axisX(grid=False)
        .configure_legend(
            **text,
            orient="top",
            symbolStrokeWidth=3,
            labelLimit=220,
            columnPadding=16,
        )
        .configure_text(color=LIGHT.ink)
    )
