"""What a section is made of: words, figures, tables, explorers, views to choose between.

Each block says how it stands in a page. Data goes to the :class:`Writer`, which packs it; what is
written into the page itself is escaped.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from html import escape
from typing import TYPE_CHECKING, Any, Protocol

import polars as pl

from farfield.reports import drawing
from farfield.reports.packing import Packed, column, pack

if TYPE_CHECKING:
    import plotly.graph_objects as go

__all__ = ["Block", "Code", "Explorer", "Figures", "Findings", "Table", "Views", "Words", "Writer"]

_PAGE, _SHORT_PAGE = 15, 8
_FACET = 24  # different values that a list to choose from may have


class Writer:
    """Collects the data of a page while its blocks are written."""

    def __init__(self) -> None:
        self.data: list[tuple[str, Packed]] = []
        self.figures = False  # is there any, so that their script is needed?
        self._names = 0

    def store(self, content: Any) -> str:
        """Keep data for the page; return the id under which its script finds it."""
        name = self.name("data")
        self.data.append((name, pack(content)))
        return name

    def name(self, kind: str) -> str:
        """Return an id that nothing else in the page has."""
        self._names += 1
        return f"{kind}-{self._names}"


class Block(Protocol):
    """Anything that can stand in a section."""

    def html(self, writer: Writer) -> str:
        """Return it as HTML."""
        ...


@dataclass(frozen=True)
class Words:
    """A paragraph beside the findings: what to know of a table or a figure."""

    text: str

    def html(self, writer: Writer) -> str:
        """Return it as HTML."""
        return f'<p class="note">{escape(self.text)}</p>'


@dataclass(frozen=True)
class Findings:
    """What was found, a sentence to a line."""

    sentences: Sequence[str]

    def html(self, writer: Writer) -> str:
        """Return it as HTML."""
        lines = "".join(f'<li dir="auto">{escape(text)}</li>' for text in self.sentences)
        return f'<ul class="findings">{lines}</ul>' if lines else ""


@dataclass(frozen=True)
class Code:
    """A text to copy: a manifest, a citation."""

    title: str
    text: str

    def html(self, writer: Writer) -> str:
        """Return it as HTML."""
        return (
            f"<h3>{escape(self.title)}</h3>"
            '<div class="code"><button type="button" class="copy">Copy</button>'
            f'<pre tabindex="0">{escape(self.text)}</pre></div>'
        )


@dataclass(frozen=True, eq=False)
class Figures:
    """A figure of plotly; one of several panels becomes as many, beside or below one another.

    ``alt`` says in words what it shows, for those who do not see it. With ``whole`` the panels stay
    together.
    """

    figure: go.Figure
    alt: str
    whole: bool = False

    def html(self, writer: Writer) -> str:
        """Return it as HTML."""
        writer.figures = True
        panels = drawing.panels(self.figure, whole=self.whole)
        several = " several" if len(panels) > 1 else ""
        shown = "".join(self._panel(writer, panel) for panel in panels)
        return f'<div class="figures{several}">{shown}</div>'

    def _panel(self, writer: Writer, panel: drawing.Panel) -> str:
        source = writer.store(panel.to_dict())
        kind = ' class="wide"' if panel.wide else ""
        caption = f"<figcaption>{escape(panel.title)}</figcaption>" if panel.title else ""
        label = escape(f"{panel.title}. {self.alt}" if panel.title else self.alt)
        return (
            f'<figure{kind}>{caption}<div class="plot" role="img" aria-label="{label}" '
            f'data-block="figure" data-source="{source}" style="height:{panel.height}px"></div>'
            "</figure>"
        )


@dataclass(frozen=True, eq=False)
class Table:
    """A table that sorts, filters and downloads.

    ``name`` is that of the csv file, which has every column. The page shows those in ``shown`` (by
    default all), and the ends of an interval beside its value: columns ``x_low`` and ``x_high``
    belong to ``x``, and ``low`` and ``high`` to the column before them. ``kinds`` says how numbers
    are written where the rule (:func:`kind_of`) does not fit, ``notes`` what a column means,
    ``start`` which rows are shown first.
    """

    name: str
    title: str
    frame: pl.DataFrame
    shown: Sequence[str] = ()
    labels: Mapping[str, str] = field(default_factory=dict)
    kinds: Mapping[str, str] = field(default_factory=dict)
    notes: Mapping[str, str] = field(default_factory=dict)
    start: Mapping[str, str] = field(default_factory=dict)
    note: str = ""

    def html(self, writer: Writer) -> str:
        """Return it as HTML."""
        source = writer.store(self.to_dict())
        note = f'<p class="note">{escape(self.note)}</p>' if self.note else ""
        return (
            f"<h3>{escape(self.title)}</h3>{note}"
            f'<div class="block" data-block="table" data-source="{source}"></div>'
        )

    def to_dict(self, *, page: int = _PAGE) -> dict[str, Any]:
        """Return what the page's script makes a table of."""
        ends = intervals(self.frame.columns)
        shown = list(self.shown or self.frame.columns)
        names = [*shown, *(name for name in self.frame.columns if name not in shown)]
        hidden = {end for pair in ends.values() for end in pair}
        columns = []
        for name in names:
            about: dict[str, Any] = {"name": name, "kind": self._kind(name)}
            about["label"] = self.labels.get(name, name.replace("_", " "))
            about["shown"] = name in shown and name not in hidden
            if name in self.notes:
                about["note"] = self.notes[name]
            if name in ends:
                about["low"], about["high"] = (names.index(end) for end in ends[name])
            columns.append(about)
        return {
            "name": self.name,
            "title": self.title,
            "rows": len(self.frame),
            "page": page,
            "filter": len(self.frame) > _SHORT_PAGE,
            "columns": columns,
            "data": [column(self.frame[name]) for name in names],
            "facets": self._facets(),
            "start": {name: value for name, value in self.start.items() if name in names},
        }

    def _kind(self, name: str) -> str:
        return self.kinds.get(name) or kind_of(name, self.frame[name].dtype)

    def _facets(self) -> list[dict[str, Any]]:
        """Columns by which one can choose rows: few values, each of several rows."""
        found = []
        for name in self.shown or self.frame.columns:
            values = self.frame[name]
            if values.dtype not in (pl.String, pl.Boolean) or len(values) <= _SHORT_PAGE:
                continue
            different = values.drop_nulls().unique(maintain_order=True)
            if 2 <= len(different) <= min(_FACET, len(values) // 2):
                found.append({"column": name, "values": different.to_list()})
        return found


@dataclass(frozen=True, eq=False)
class Explorer:
    """A list to pick from, and what belongs to the one picked.

    Rows of ``details`` belong to the row of ``list`` that has the same text in ``key``; ``text``
    names the column that is shown as their heading.
    """

    title: str
    list: Table
    details: Sequence[Table]
    key: str = "query_id"
    text: str = "text"

    def html(self, writer: Writer) -> str:
        """Return it as HTML."""
        content = {
            "key": self.key,
            "text": self.text,
            "list": self.list.to_dict(page=_SHORT_PAGE),
            "details": [
                table.to_dict() | {"key": self.key, "facets": [], "filter": False}
                for table in self.details
            ],
        }
        source = writer.store(content)
        return (
            f"<h3>{escape(self.title)}</h3>"
            f'<div class="block" data-block="explorer" data-source="{source}"></div>'
        )


@dataclass(frozen=True)
class Views:
    """Blocks of which one choice is shown at a time: one for each shift, say."""

    what: str
    choices: Mapping[str, Sequence[Block]]

    def html(self, writer: Writer) -> str:
        """Return it as HTML."""
        if len(self.choices) == 1:
            ((_, blocks),) = self.choices.items()
            return "".join(block.html(writer) for block in blocks)
        group = writer.name("views")
        buttons, views = [], []
        for number, (label, blocks) in enumerate(self.choices.items()):
            first = number == 0
            buttons.append(
                f'<label><input type="radio" name="{group}" value="{number}"'
                f"{' checked' if first else ''}> {escape(label)}</label>"
            )
            content = "".join(block.html(writer) for block in blocks)
            views.append(
                f'<div class="view" data-view="{number}" data-label="{escape(label)}"'
                f"{'' if first else ' hidden'}>{content}</div>"
            )
        legend, joined = f"<legend>{escape(self.what)}</legend>", "".join
        return (
            f'<div class="views"><fieldset>{legend}{joined(buttons)}</fieldset>'
            f"{joined(views)}</div>"
        )


def intervals(names: Sequence[str]) -> dict[str, tuple[str, str]]:
    """Which columns are the ends of which value's interval."""
    found: dict[str, tuple[str, str]] = {}
    for number, name in enumerate(names):
        if name == "low" and number and "high" in names:
            found[names[number - 1]] = ("low", "high")
        stem = name.removesuffix("_low")
        if stem != name and {stem, f"{stem}_high"} <= set(names):
            found[stem] = (name, f"{stem}_high")
    return found


def kind_of(name: str, dtype: pl.DataType) -> str:
    """How values of a column are written: text, flag, count, number, share or p."""
    if dtype == pl.Boolean:
        return "flag"
    if dtype.is_integer():
        return "count"
    if not dtype.is_float():
        return "text"
    if name == "p" or name.startswith("p_"):
        return "p"
    return "share" if name == "share" or name.endswith("_share") else "number"
