"""A page: sections one after the other, in one HTML file that needs nothing else."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field, replace
from functools import cache, cached_property
from html import escape
from importlib.resources import files
from itertools import count
from string import Template

from farfield.reports.blocks import Block, Findings, Writer
from farfield.reports.packing import Packed, pack_text

__all__ = ["Page", "Section"]

_SCRIPTS = ("inflate.js", "table.js", "figure.js", "page.js")


@dataclass(frozen=True, eq=False)
class Section:
    """A question and its answer: what was found, how to read it, figures and tables.

    ``name`` is its address in the page (``#coverage``); ``reading`` says in two sentences how to
    read what is shown.
    """

    name: str
    title: str
    reading: str = ""
    findings: Sequence[str] = ()
    blocks: Sequence[Block] = ()

    def renamed(self, taken: Collection[str]) -> Section:
        """Return it under a name that is not taken: coverage, coverage-2 …"""
        if self.name not in taken:
            return self
        number = next(n for n in count(2) if f"{self.name}-{n}" not in taken)
        return replace(self, name=f"{self.name}-{number}")

    def html(self, writer: Writer, *, lead: bool = False) -> str:
        """Return it as HTML."""
        reading = f'<p class="reading">{escape(self.reading)}</p>' if self.reading else ""
        kind = ' class="lead"' if lead else ""
        return (
            f'<section id="{self.name}" aria-labelledby="{self.name}-title"{kind}>'
            f'<h2 id="{self.name}-title">{escape(self.title)}</h2>'
            f"{Findings(self.findings).html(writer)}{reading}"
            f"{''.join(block.html(writer) for block in self.blocks)}</section>"
        )


@dataclass(frozen=True, eq=False)
class Page:
    """Sections under one title; the first one leads with the answer."""

    title: str
    subtitle: str = ""
    sections: Sequence[Section] = field(default_factory=tuple)

    @cached_property
    def html(self) -> str:
        """The whole file."""
        writer = Writer()
        sections = [
            section.html(writer, lead=number == 0) for number, section in enumerate(self.sections)
        ]
        contents = "".join(
            f'<li><a href="#{section.name}">{escape(section.title)}</a></li>'
            for section in self.sections
        )
        data = [*writer.data, *([("plotly", _plotly())] if writer.figures else [])]
        return Template(_asset("page.html")).substitute(
            title=escape(self.title),
            subtitle=escape(self.subtitle),
            style=_asset("page.css"),
            contents=contents,
            sections="\n".join(sections),
            data="\n".join(
                f'<script type="text/plain" id="{name}" data-size="{size}">{letters}</script>'
                for name, (size, letters) in data
            ),
            script="\n".join(map(_asset, _SCRIPTS)),
        )


@cache
def _asset(name: str) -> str:
    return files("farfield.reports").joinpath("assets", name).read_text("utf-8")


@cache
def _plotly() -> Packed:
    """The script that draws figures, as plotly ships it."""
    return pack_text(files("plotly").joinpath("package_data", "plotly.min.js").read_text("utf-8"))
