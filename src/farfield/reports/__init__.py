"""Reports: what was found, in one HTML file that opens anywhere and fetches nothing.

:func:`report` makes one of a run directory or of any answer of a question. A report is a
:class:`Page` of :class:`Section`, each made of blocks (:class:`Figures`, :class:`Table`,
:class:`Explorer` …); :mod:`farfield.reports.parts` has a file for each kind of section.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from farfield.errors import FarfieldError, FileError, InputError
from farfield.io.files import PathLike, replacing
from farfield.progress import track
from farfield.reports.blocks import Code, Explorer, Figures, Findings, Table, Views, Words
from farfield.reports.page import Page, Section
from farfield.reports.parts import Part, known_parts
from farfield.reports.parts.method import citations
from farfield.reports.rundir import RunDirectory

__all__ = [
    "Code",
    "Explorer",
    "Figures",
    "Findings",
    "Page",
    "Part",
    "Section",
    "Table",
    "Views",
    "Words",
    "page_of",
    "report",
    "save",
]


def report(
    of: PathLike | Any,
    output: PathLike | None = None,
    *,
    also: Sequence[Any] = (),
    texts: bool = True,
    title: str | None = None,
) -> str:
    """Return a report as one HTML page, and write it to ``output`` if that is given.

    ``of`` is the directory of ``farfield run``, or the answer of any question (an audit, a coverage
    …). Answers in ``also`` get sections as well, before the method. Without ``texts`` documents of
    a run directory are named and not shown.
    """
    if output is not None:
        _check_name(output)  # before anything is computed
    page = page_of(of, also=also, texts=texts, title=title)
    if output is not None:
        save(page, output)
    return page.html


def _check_name(path: PathLike) -> None:
    """Refuse a file name that no browser would open as a page."""
    suffix = Path(path).suffix.lower()
    if suffix not in (".html", ".htm"):
        raise FileError(path, f"the suffix {suffix!r} stands for no page. Use .html.")


def save(page: Page, path: PathLike) -> int:
    """Write a page to a file; return how many bytes it has."""
    _check_name(path)
    data = page.html.encode()
    with replacing(path) as file:
        file.write(data)
    return len(data)


def page_of(
    of: PathLike | Any, *, also: Sequence[Any] = (), texts: bool = True, title: str | None = None
) -> Page:
    """Return the page that :func:`report` writes: its sections, with their findings in words."""
    if isinstance(of, str | os.PathLike):
        return _of_run(RunDirectory.open(Path(of), texts=texts), also, title)
    return _of_answers([of, *also], title)


def _of_run(run: RunDirectory, also: Sequence[Any], title: str | None) -> Page:
    found: list[tuple[int, Section]] = []
    for part in track([part for part in known_parts() if part.of_run is not None], "sections"):
        assert part.of_run is not None
        found += [(part.order, section) for section in _tried(part.of_run, run)]
    found += _sections(also)
    collection = run.collection
    about = (
        f"{len(run.shifts[0].systems)} systems on {collection.name}, "
        f"{run.shifts[0].roles['query_id'].n_unique():,} test queries, "
        f"{', '.join(shift.name for shift in run.shifts)}; made by farfield {_version()}"
    )
    name = title or run.resolved.get("name") or collection.name
    return Page(f"How far does it reach? {name}", about, _in_order(found))


def _tried(
    make: Callable[[RunDirectory], Sequence[Section]], run: RunDirectory
) -> Sequence[Section]:
    """Sections, or one that says why they could not be made: the others still stand."""
    try:
        return make(run)
    except FarfieldError as error:
        name = make.__module__.rpartition(".")[2]
        return [Section(name, f"Not shown: {name}", findings=[f"This part failed: {error}"])]


def _of_answers(answers: Sequence[Any], title: str | None) -> Page:
    sections = _in_order(_sections(answers))
    blocks = [citations()]
    method = Section("method", "To cite", blocks=blocks)
    about = f"Made by farfield {_version()}"
    return Page(title or sections[0].title, about, [*sections, method])


def _sections(answers: Sequence[Any]) -> list[tuple[int, Section]]:
    """The sections of answers, each with its place."""
    known = {part.answer: part for part in known_parts() if part.of_answer is not None}
    found: list[tuple[int, Section]] = []
    for answer in answers:
        part = known.get(type(answer).__name__)
        if part is None or part.of_answer is None:
            shown = ", ".join(sorted(name for name in known if name))
            raise InputError(
                f"there is no report of {type(answer).__name__}. Give a run directory, or one of "
                f"{shown}."
            )
        found += [(part.order, section) for section in part.of_answer(answer)]
    return found


def _in_order(found: list[tuple[int, Section]]) -> list[Section]:
    """Sections in order, each under a name of its own."""
    ordered: list[Section] = []
    for _, section in sorted(found, key=lambda pair: pair[0]):
        taken = {one.name for one in ordered}
        ordered.append(section.renamed(taken))
    return ordered


def _version() -> str:
    import farfield

    return str(farfield.__version__)
