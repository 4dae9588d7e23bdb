"""Figures for a page: panels apart from one another, without a look of their own.

Figures of questions are made for one wide picture. A page is as wide as a telephone or a table,
light or dark, so a figure of several panels is taken apart, its titles become captions, and
colours of ground and text are left to the page.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from farfield.reports.packing import single_precision

if TYPE_CHECKING:
    import plotly.graph_objects as go

__all__ = ["Panel", "panels", "plain"]

_AROUND = 60.0  # pixels for axes above and below what is drawn
_RIGID = 480  # pixels across
_TITLE = 26  # pixels for a title inside a panel
_KEPT = ("barmode", "boxmode", "scattermode", "bargap", "boxgap", "shapes")
_DROPPED = ("legend", "legendgroup", "colorbar")
_MARKUP = re.compile(r"<(?!/?(?:b|i|br|sup|sub|em|extra)\s*/?>)")


@dataclass(frozen=True)
class Panel:
    """A figure of one panel, or of some that belong together."""

    title: str
    height: int
    top: int  # pixels above what is drawn
    wide: bool
    least: int  # pixels across, below which it scrolls
    data: list[Any]
    layout: dict[str, Any]

    def to_dict(self) -> dict[str, Any]:
        """Return what the page's script draws."""
        content = {"data": self.data, "layout": self.layout}
        made: dict[str, Any] = _safe(single_precision(content))
        return made | {"height": self.height, "top": self.top, "least": self.least}


def panels(figure: go.Figure, *, whole: bool = False) -> list[Panel]:
    """Take a figure apart. A panel without a title belongs to the one above it."""
    content = figure.to_plotly_json()
    layout = content["layout"]
    boxes = _boxes(layout)
    titles = {pair: _title_of(layout, box) for pair, box in boxes.items()}
    name = plain((layout.get("title") or {}).get("text") or "")
    height = layout.get("height") or 480
    margin = layout.get("margin") or {}
    inner = height - margin.get("t", 80) - margin.get("b", 80)
    groups: list[list[tuple[str, str]]] = []
    for pair in boxes:
        if groups and (whole or not titles[pair]):
            groups[-1].append(pair)
        else:
            groups.append([pair])
    found = []
    for group in groups:
        titled = whole and len(group) > 1
        title = name if len(groups) == 1 else ""
        title = title if titled else title or plain(titles[group[0]])
        found.append(_panel(content, group, boxes, title, inner, titled))
    return found


def _panel(
    content: dict[str, Any],
    group: list[tuple[str, str]],
    boxes: dict[tuple[str, str], tuple[float, ...]],
    title: str,
    inner: float,
    titled: bool,
) -> Panel:
    """A figure of the panels of a group, which take all the room there is."""
    layout = content["layout"]
    left, right, low, high = (
        choose(boxes[pair][at] for pair in group) for at, choose in enumerate((min, max, min, max))
    )
    axes = {axis for pair in group for axis in pair}
    made: dict[str, Any] = {key: layout[key] for key in _KEPT if key in layout}
    for axis in sorted(axes):
        name = f"{axis[0]}axis{axis[1:]}"
        given = {k: v for k, v in layout.get(name, {}).items() if k != "domain"}
        start, end = (left, right) if axis[0] == "x" else (low, high)
        domain = layout.get(name, {}).get("domain", [0.0, 1.0])
        room = max(end - start, 1e-9)
        made[name] = given | {"domain": [(edge - start) / room for edge in domain]}
    made["shapes"] = [shape for shape in layout.get("shapes", ()) if _refers(shape) <= axes]
    made["annotations"] = [
        note for note in layout.get("annotations", ()) if _refers(note) and _refers(note) <= axes
    ]
    if titled:
        made["annotations"] += [
            {**note, "y": (note["y"] - low) / (high - low), "x": 0, "xanchor": "left"}
            for note in layout.get("annotations", ())
            if not _refers(note) and note.get("text")
        ]
    height = round(inner * (high - low) + _AROUND)
    wide = len(boxes) > len(group) and right - left > 0.7
    # What must not be squeezed (circles, the cells of an UpSet) scrolls where it does not fit.
    rigid = any("scaleanchor" in made[name] for name in made if name[1:5] == "axis")
    least = _RIGID if rigid else 0
    data = _traces(content["data"], group)
    return Panel(title, height, _TITLE if titled else 12, wide, least, data, made)


def _traces(every: list[dict[str, Any]], group: list[tuple[str, str]]) -> list[dict[str, Any]]:
    """What is drawn in the panels of a group, with a legend of its own: each name once."""
    named = {trace.get("name") for trace in every if trace.get("showlegend") is not False} - {None}
    told: set[str] = set()
    found = []
    for trace in every:
        if (trace.get("xaxis", "x"), trace.get("yaxis", "y")) not in group:
            continue
        name = trace.get("name")
        made = {k: v for k, v in trace.items() if k not in _DROPPED}
        if made["type"] == "scattergl":  # a browser has few places for such figures
            made["type"] = "scatter"
        made["showlegend"] = name in named and name not in told
        told.add(str(name))
        if "colorbar" in trace:
            made["colorbar"] = {"thickness": 12, "title": {"side": "right"}}
        found.append(made)
    return found


def plain(text: str) -> str:
    """Return a text without markup of plotly."""
    spaced = re.sub(r"<br\s*/?>", " — ", text)
    return re.sub(r"</?(?:b|i|sup|sub|em)>", "", spaced).strip()


def _boxes(layout: dict[str, Any]) -> dict[tuple[str, str], tuple[float, ...]]:
    """Where each pair of axes is: left, right, low, high; in the order of reading."""
    found = {}
    for name, axis in layout.items():
        if not name.startswith("yaxis"):
            continue
        number = name.removeprefix("yaxis")
        across = layout.get(f"xaxis{number}", {})
        box = (*across.get("domain", (0.0, 1.0)), *axis.get("domain", (0.0, 1.0)))
        found[f"x{number}", f"y{number}"] = box
    found = found or {("x", "y"): (0.0, 1.0, 0.0, 1.0)}
    return dict(sorted(found.items(), key=lambda item: (-round(item[1][3], 6), item[1][0])))


def _title_of(layout: dict[str, Any], box: tuple[float, ...]) -> str:
    """The title that stands right above a panel."""
    left, right, _, high = box
    for note in layout.get("annotations", ()):
        above = not _refers(note) and abs(note.get("y", -1.0) - high) < 1e-6
        if above and left - 1e-6 <= note.get("x", -1.0) <= right + 1e-6:
            return str(note.get("text", ""))
    return ""


def _refers(item: dict[str, Any]) -> set[str]:
    """The axes that a shape or a note is placed by."""
    places = (str(item.get(name, "paper")).split()[0] for name in ("xref", "yref"))
    return {place for place in places if place != "paper"}


def _safe(content: Any) -> Any:
    """Return a figure in which markup is that of plotly alone: a query may hold a link."""
    if isinstance(content, dict):
        return {key: _safe(value) for key, value in content.items()}
    if isinstance(content, list):
        return [_safe(value) for value in content]
    return _MARKUP.sub("&lt;", content) if isinstance(content, str) else content
