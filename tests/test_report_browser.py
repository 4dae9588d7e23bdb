"""The report in a browser: what people see, click, hear, download and print."""

from __future__ import annotations

import csv
import io
import os
import shutil
import time
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

import farfield as ff
from farfield import reports
from farfield.questions.coverage import Coverage
from farfield.questions.evaluate import Evaluation
from test_report import FUSION, HOSTILE, SHIFTS

playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")

WIDTHS = (400, 1000, 1600)


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    names = ("chromium", "chromium-browser", "google-chrome", "chrome")
    found = os.environ.get("FARFIELD_CHROMIUM") or next(
        filter(None, map(shutil.which, names)), None
    )
    if found is None:
        pytest.skip("there is no Chromium here: install it, or say where by FARFIELD_CHROMIUM")
    with playwright.sync_playwright() as driver:
        opened = driver.chromium.launch(executable_path=found, args=["--no-sandbox"])
        yield opened
        opened.close()


@pytest.fixture(scope="module")
def file(page, tmp_path_factory) -> Path:
    path = tmp_path_factory.mktemp("page") / "report.html"
    reports.save(page, path)
    return path


class Seen:
    """A page that is open, with all that it said and asked for."""

    def __init__(self, browser: Any, path: Path, **options: Any) -> None:
        options.setdefault("viewport", {"width": 1000, "height": 900})
        self.context = browser.new_context(**options)
        self.tab = self.context.new_page()
        self.faults: list[str] = []
        self.requests: list[str] = []
        self.tab.on("console", self._said)
        self.tab.on("pageerror", lambda error: self.faults.append(str(error)))
        self.tab.on("request", lambda request: self.requests.append(request.url))
        self.tab.goto(path.as_uri())

    def _said(self, message: Any) -> None:
        if message.type in ("error", "warning"):
            self.faults.append(message.text)

    def scroll_through(self) -> None:
        """Bring everything into view, so that everything is made."""
        y = 0
        while y < self.tab.evaluate("document.documentElement.scrollHeight"):
            self.tab.evaluate("y => scrollTo({top: y, behavior: 'instant'})", y)
            self.tab.wait_for_timeout(30)
            y += 800
        self.tab.wait_for_function(
            "[...document.querySelectorAll('[data-block]')]"
            ".every(host => !host.clientWidth || host.dataset.begun)"
        )
        self.tab.wait_for_timeout(100)

    def table(self, name: str, section: str) -> Any:
        """The block of a table, by the heading before it."""
        place = self.tab.locator(f"#{section} .view:visible, #{section}").first
        block = place.locator(f"h3:text-is({name!r}) + .block, h3:text-is({name!r}) + p + .block")
        block = block.first
        block.scroll_into_view_if_needed()
        block.locator("tbody tr").first.wait_for()
        return block

    def close(self) -> None:
        self.context.close()


@pytest.fixture(scope="module")
def seen_at(browser, file) -> Iterator[Any]:
    """Open the page at a width and in a scheme, scrolled through once."""
    opened: dict[tuple[int, str], Seen] = {}

    def at(width: int, scheme: str = "light") -> Seen:
        if (width, scheme) not in opened:
            size = {"width": width, "height": 900}
            opened[width, scheme] = Seen(browser, file, viewport=size, color_scheme=scheme)
            opened[width, scheme].scroll_through()
        return opened[width, scheme]

    yield at
    for one in opened.values():
        one.close()


@pytest.fixture
def seen(seen_at) -> Seen:
    return seen_at(1000)


def column(block: Any, number: int) -> list[str]:
    return [
        text.split(" [")[0]
        for text in block.locator(f"tbody tr > :nth-child({number})").all_inner_texts()
    ]


# -- it opens, whole and alone ------------------------------------------------------------------


def test_every_section_is_there_and_nothing_is_fetched_or_complained_about(seen, file):
    titles = seen.tab.locator("section h2").all_inner_texts()
    assert titles[0] == "The answer"
    assert titles[-1] == "Method and provenance"
    assert len(titles) == 10
    links = seen.tab.locator("nav a").evaluate_all("all => all.map(a => a.getAttribute('href'))")
    assert all(seen.tab.locator(link).count() == 1 for link in links)
    assert seen.tab.locator("svg.main-svg").count() > 20
    assert not seen.faults
    outside = [url for url in seen.requests if not url.startswith(("data:", "blob:"))]
    assert outside == [file.as_uri()]


def test_hostile_texts_are_shown_and_do_nothing(seen):
    assert seen.tab.evaluate("window.hurt") is None
    assert not seen.faults
    explorer = seen.tab.locator("#queries .view:visible")
    for number, (name, text) in enumerate(HOSTILE.items()):
        explorer.locator("input[type=search]").first.fill("")
        button = explorer.locator(".pick").nth(number)
        button.click()
        shown = explorer.locator(".detail h4").text_content()
        assert shown == f"{button.text_content()}: {text[:1000]}", name
    # A name from the manifest in sentences, in figures and in tables.
    assert FUSION in seen.tab.locator("#answer .findings").inner_text()
    assert FUSION in column(seen.table("Near, far and delta", "near-far"), 1)
    assert seen.tab.locator("script").count() == seen.tab.evaluate(
        "document.querySelectorAll('body > script, head > script').length"
    )
    assert seen.tab.locator("img").count() == 0
    assert seen.tab.locator("svg a").count() == 0


@pytest.mark.parametrize("width", WIDTHS)
def test_nothing_sticks_out(seen_at, width):
    opened = seen_at(width)
    assert opened.tab.evaluate("document.documentElement.scrollWidth") <= width
    out = opened.tab.evaluate(
        """() => [...document.querySelectorAll('body *')].filter((e) => {
             const box = e.getBoundingClientRect();
             return box.width && box.right > document.documentElement.clientWidth + 1
               && !e.closest('.scroll, .plot, pre, .skip, .unseen');
           }).map((e) => e.outerHTML.slice(0, 80))"""
    )
    assert not out
    # Figures keep their texts inside.
    cut = opened.tab.evaluate(
        """() => [...document.querySelectorAll('.plot svg.main-svg text')].filter((e) => {
             const box = e.getBoundingClientRect();
             const host = e.closest('.plot').querySelector('svg').getBoundingClientRect();
             return box.width && (box.left < host.left - 3 || box.right > host.right + 3
               || box.top < host.top - 3 || box.bottom > host.bottom + 3);
           }).map((e) => e.textContent)"""
    )
    assert not cut
    assert not opened.faults


# -- tables -------------------------------------------------------------------------------------


def test_tables_sort_by_any_column_and_say_so(seen):
    block = seen.table("Near, far and delta", "near-far")
    as_given = column(block, 1)
    header = block.locator("thead th").nth(0)
    header.locator("button").click()
    assert column(block, 1) == sorted(as_given, key=str.lower)
    assert header.get_attribute("aria-sort") == "ascending"
    near = block.locator("thead th").nth(3)
    near.locator("button").click()
    values = [float(value) for value in column(block, 4)]
    assert values == sorted(values, reverse=True)
    assert near.get_attribute("aria-sort") == "descending"
    assert header.get_attribute("aria-sort") is None
    near.locator("button").click()
    near.locator("button").click()  # up, and then as given again
    assert column(block, 1) == as_given


def test_tables_filter_by_words_and_by_choice(seen):
    block = seen.table("Avg In, Out and Rel Loss of each group", "left-out")
    assert set(column(block, 2)) == {"nDCG@10"}  # the first measure to begin with
    block.locator("select").nth(1).select_option(label="all")
    assert set(column(block, 2)) == {"nDCG@10", "R@10"}
    block.locator("input[type=search]").fill("DENSE r@10")
    assert set(column(block, 1)) == {"dense"}
    assert set(column(block, 2)) == {"R@10"}
    block.locator("input[type=search]").fill("nothing of the kind")
    assert block.locator("tbody").inner_text() == "Nothing fits."


def test_what_is_shown_is_what_was_found_and_downloads_as_csv(seen, run_directory):
    block = seen.table("Near, far and delta", "near-far")
    block.locator("select").nth(1).select_option(label="all")
    block.locator("select").nth(2).select_option(label="all")
    with seen.tab.expect_download() as downloading:
        block.locator("button.download").click()
    assert downloading.value.suggested_filename == "near-far.csv"
    text = Path(downloading.value.path()).read_bytes().decode()
    rows = list(csv.DictReader(io.StringIO(text, newline="")))
    table = pl.read_parquet(run_directory / "tables" / "table.parquet").filter(shift=SHIFTS[0])
    assert [row["system"] for row in rows] == table["system"].to_list()
    for name in ("near", "far_low", "delta_high", "p_adjusted"):
        assert [float(row[name]) for row in rows] == pytest.approx(
            table[name].to_list(), rel=1e-5
        ), name
    first = table.row(0, named=True)
    shown = block.locator("tbody tr").first.locator("td").nth(2).inner_text()
    ends = f"[{first['near_low']:.4f}, {first['near_high']:.4f}]"
    assert shown == f"{first['near']:.4f} {ends}"


def test_long_tables_have_pages(seen):
    block = seen.table("Share of test queries with a training query at least so similar", "audit")
    assert block.locator("tbody tr").count() == 15
    assert block.locator(".pager").inner_text().split("\n")[1] == "1\N{EN DASH}15 of 30"
    block.get_by_role("button", name="Next").click()
    assert block.locator(".pager").inner_text().split("\n")[1] == "16\N{EN DASH}30 of 30"
    assert block.get_by_role("button", name="Next").is_disabled()


def test_long_texts_open_and_close(seen):
    seen.tab.locator("#queries").scroll_into_view_if_needed()
    explorer = seen.tab.locator("#queries .view:visible")
    explorer.locator(".pick").nth(len(HOSTILE) - 1).click()
    cell = explorer.locator(".detail td.long", has_text="endless").first
    assert len(cell.inner_text()) < 400
    cell.locator("button").click()
    assert len(cell.inner_text()) > 1900
    assert cell.locator("button").get_attribute("aria-expanded") == "true"


# -- explorers ----------------------------------------------------------------------------------


def test_the_query_explorer_shows_ranks_near_and_far(seen):
    seen.tab.locator("#queries").scroll_into_view_if_needed()
    explorer = seen.tab.locator("#queries .view:visible")
    explorer.locator(".pick").nth(7).click()
    assert explorer.locator("tr[aria-current] .pick").count() == 1
    chosen = explorer.locator("tr[aria-current] .pick").inner_text()
    assert explorer.locator(".detail h4").inner_text().startswith(f"{chosen}: ")
    ranks = explorer.locator("h5:text-is('Ranks of its relevant documents') + .block")
    rows = [row.split("\t") for row in ranks.locator("tbody tr").all_inner_texts()]
    found = {(row[2], row[3], row[4]) for row in rows}
    assert ("dense", "1", "8") in found
    assert ("bm25", "3", "3") in found


def test_the_leak_explorer_shows_the_evidence(seen):
    explorer = seen.tab.locator("#audit [data-block=explorer]")
    explorer.scroll_into_view_if_needed()
    explorer.locator(".detail tbody tr").first.wait_for()
    explorer.locator("input[type=search]").fill("test-00020")
    explorer.locator(".pick").first.click()
    assert explorer.locator(".detail h4").inner_text().startswith("test-00020")
    assert explorer.locator(".detail tbody tr").count() >= 4


def test_views_are_chosen_by_keys(seen):
    views = seen.tab.locator("#coverage .views")
    views.scroll_into_view_if_needed()
    first = views.locator("input").first
    first.focus()
    assert views.locator(".view:visible").get_attribute("data-label") == SHIFTS[0]
    seen.tab.keyboard.press("ArrowRight")
    assert views.locator(".view:visible").get_attribute("data-label") == SHIFTS[1]
    views.locator(".view:visible svg.main-svg").first.wait_for()
    views.locator(".view:visible tbody tr").first.wait_for()
    seen.tab.keyboard.press("ArrowLeft")
    assert views.locator(".view:visible").get_attribute("data-label") == SHIFTS[0]


# -- light and dark, eyes and ears ----------------------------------------------------------------

# The contrast of every text with the ground it stands on, by the formula of WCAG 2.
CONTRASTS = """() => {
  const parse = (text) => {
    const [r, g, b, a = 1] = text.match(/[\\d.]+/g).map(Number);
    return { r, g, b, a };
  };
  const linear = (value) => (
    value <= 0.04045 * 255 ? value / 255 / 12.92 : ((value / 255 + 0.055) / 1.055) ** 2.4);
  const light = ({ r, g, b }) => 0.2126 * linear(r) + 0.7152 * linear(g) + 0.0722 * linear(b);
  const over = (top, under) => ({
    r: top.r * top.a + under.r * (1 - top.a), g: top.g * top.a + under.g * (1 - top.a),
    b: top.b * top.a + under.b * (1 - top.a), a: 1,
  });
  const ground = (element) => {
    const found = [];
    for (let at = element; at; at = at.parentElement) {
      const colour = parse(getComputedStyle(at).backgroundColor);
      if (colour.a) found.push(colour);
      if (colour.a === 1) break;
    }
    const white = { r: 255, g: 255, b: 255, a: 1 };
    return found.reverse().reduce((under, top) => over(top, under), white);
  };
  const skipped = 'script, style, noscript, .unseen, .skip, [disabled], .heatmaplayer, .modebar';
  const faults = new Set();
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  let seen = 0;
  while (walker.nextNode()) {
    const element = walker.currentNode.parentElement;
    const text = walker.currentNode.textContent.trim();
    const box = element.getBoundingClientRect();
    if (!text || element.closest(skipped) || !box.width || !box.height) continue;
    const style = getComputedStyle(element);
    const svg = element.namespaceURI.endsWith('svg');
    const under = ground(svg ? element.closest('.plot') : element);
    const colour = over(parse(svg ? style.fill : style.color), under);
    const [one, two] = [light(colour), light(under)].sort((a, b) => b - a);
    const ratio = (one + 0.05) / (two + 0.05);
    const size = parseFloat(style.fontSize);
    const large = size >= 24 || (size >= 18.66 && Number(style.fontWeight) >= 700);
    seen += 1;
    if (ratio < (large ? 3 : 4.5)) {
      faults.add(`${ratio.toFixed(2)} ${element.tagName}: ${text.slice(0, 40)}`);
    }
  }
  return [seen, [...faults]];
}"""


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_texts_stand_out_from_their_ground(seen_at, scheme):
    texts, faults = seen_at(1000, scheme).tab.evaluate(CONTRASTS)
    assert texts > 1000
    assert not faults
    assert not seen_at(1000, scheme).faults


def test_colours_follow_the_system_and_the_switch(browser, file):
    opened = Seen(browser, file, color_scheme="dark")
    body = "getComputedStyle(document.body).backgroundColor"
    text = "getComputedStyle(document.querySelector('#answer svg text')).fill"
    opened.tab.locator("#answer svg.main-svg").first.wait_for()
    assert opened.tab.evaluate(body) == "rgb(20, 23, 28)"
    assert opened.tab.evaluate(text) == "rgb(230, 232, 235)"
    opened.tab.locator("#theme").select_option("light")
    assert opened.tab.evaluate(body) == "rgb(255, 255, 255)"
    opened.tab.wait_for_function(f"{text} === 'rgb(28, 33, 39)'")
    opened.tab.locator("#theme").select_option("auto")
    assert opened.tab.evaluate(body) == "rgb(20, 23, 28)"
    opened.close()


def test_series_differ_in_more_than_colour(seen):
    shapes = seen.tab.evaluate(
        """() => [...document.querySelectorAll('.plot')].filter((p) => p.data).flatMap((plot) => {
             const named = plot.data.filter((t) => t.showlegend && t.type === 'scatter');
             const looks = named.map((t) => `${t.marker?.symbol} ${t.line?.dash}`);
             return named.length > 1 && new Set(looks).size < named.length ? [looks] : [];
           })"""
    )
    assert not shapes


def test_everything_has_a_name_for_those_who_do_not_see_it(seen):
    lacking = seen.tab.evaluate(
        """() => [...document.querySelectorAll('[role=img], [role=region], input, select, button')]
             .filter((e) => e.getClientRects().length && !e.closest('.modebar'))
             .filter((e) => !e.getAttribute('aria-label') && !e.labels?.length)
             .filter((e) => !e.textContent.trim())
             .map((e) => e.outerHTML.slice(0, 100))"""
    )
    assert not lacking
    assert seen.tab.evaluate("document.documentElement.lang") == "en"
    levels = seen.tab.evaluate(
        "[...document.querySelectorAll('h1, h2, h3, h4, h5')]"
        ".filter(h => h.getClientRects().length).map(h => Number(h.tagName[1]))"
    )
    assert levels[0] == 1
    assert levels.count(1) == 1
    assert all(after - before <= 1 for before, after in pairwise(levels))
    # Cells know their columns and rows, also where a row is laid out as a card.
    assert seen.tab.locator("table th:not([scope])").count() == 0


def test_keys_reach_everything(browser, file):
    opened = Seen(browser, file)
    opened.tab.keyboard.press("Tab")
    assert opened.tab.evaluate("document.activeElement.textContent") == "Skip to the answer"
    opened.tab.keyboard.press("Enter")
    assert opened.tab.evaluate("location.hash") == "#main"
    block = opened.table("Near, far and delta", "near-far")
    button = block.locator("thead button").nth(3)
    button.focus()
    outline = "getComputedStyle(document.activeElement).outlineStyle"
    opened.tab.keyboard.press("Tab")
    opened.tab.keyboard.press("Shift+Tab")
    assert opened.tab.evaluate(outline) == "solid"  # one sees where one is
    opened.tab.keyboard.press("Enter")
    assert block.locator("thead th").nth(3).get_attribute("aria-sort") == "descending"
    assert block.locator(".scroll").get_attribute("tabindex") == "0"  # scrolls by keys
    opened.close()


def test_a_phone_gets_cards_that_still_sort(browser, file):
    opened = Seen(browser, file, viewport={"width": 400, "height": 800}, has_touch=True)
    block = opened.table("Near, far and delta", "near-far")
    row = block.locator("tbody tr").first
    assert (
        row.locator("td").first.evaluate("cell => getComputedStyle(cell, '::before').content")
        == '"measure"'
    )
    block.locator("thead button").nth(3).click()
    values = [float(value) for value in column(block, 4)]
    assert values == sorted(values, reverse=True)
    opened.close()


# -- on paper, and large --------------------------------------------------------------------------


def test_on_paper_everything_is_shown_and_light(browser, file):
    opened = Seen(browser, file, color_scheme="dark")
    opened.tab.evaluate("dispatchEvent(new Event('beforeprint'))")
    hidden = "[...document.querySelectorAll('.view')].filter(v => !v.clientWidth).length"
    assert opened.tab.evaluate(hidden) == 0
    waiting = "[...document.querySelectorAll('[data-block]')].filter(h => !h.dataset.begun).length"
    assert opened.tab.evaluate(waiting) == 0
    body = "getComputedStyle(document.body).backgroundColor"
    assert opened.tab.evaluate(body) == "rgb(255, 255, 255)"
    assert len(opened.tab.pdf()) > 50_000
    opened.tab.evaluate("dispatchEvent(new Event('afterprint'))")
    assert opened.tab.evaluate(body) == "rgb(20, 23, 28)"
    assert not opened.faults
    opened.close()


def test_seven_thousand_queries_and_seventeen_systems(browser, tmp_path):
    rng = np.random.default_rng(0)
    systems = tuple(f"system {n:02d}" for n in range(17))
    ids = [f"query-{n:05d}" for n in range(7000)]
    values = np.clip(rng.normal(0.5, 0.3, (17, 7000)), 0.0, 1.0)
    frame = pl.DataFrame(
        {
            "query_id": ids * 17,
            "system": np.repeat(systems, 7000),
            "measure": "nDCG@10",
            "value": values.ravel(),
        }
    )
    none = dict.fromkeys(systems, 0)
    evaluation = Evaluation(
        ff.PerQuery.trusted(frame),
        (ff.measures.parse("nDCG@10"),),
        systems,
        7000,
        none,
        none,
        none,
        resamples=200,
    )
    others = ~np.eye(17, dtype=bool)
    answer = Coverage(evaluation, others, np.zeros(17, dtype=np.int64))
    path = tmp_path / "large.html"
    begin = time.perf_counter()
    assert reports.save(reports.page_of(answer), path) < 8e6
    assert time.perf_counter() - begin < 60
    opened = Seen(browser, path)
    timing = opened.tab.evaluate("performance.getEntriesByType('navigation')[0].loadEventEnd")
    assert timing < 3000
    block = opened.table("nDCG@10 of every query", "coverage")
    assert "of 7,000" in block.locator(".pager").inner_text()
    took = opened.tab.evaluate(
        """() => {
          const heads = document.querySelectorAll('#coverage .block:last-of-type thead button');
          const begin = performance.now();
          heads[heads.length - 1].click();
          return performance.now() - begin;
        }"""
    )
    assert took < 1000
    assert block.locator("tbody tr").count() == 15  # however many rows there are
    assert not opened.faults
    opened.close()
