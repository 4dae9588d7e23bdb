// Tables: sorted, filtered, paged, downloaded. Values come in columns; only the rows of the page
// that is seen are ever made into elements, and only as text.

const collator = new Intl.Collator("en", { numeric: true, sensitivity: "base" });
const CLIPPED = 280; // letters of a cell before it has to be opened
const SHORT = 24; // letters that stay on one line

// Make an element; `text` and children are put in as text and as elements, never as markup.
function make(tag, attributes = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else if (value === true) element.setAttribute(name, "");
    else if (value !== false && value !== null && value !== undefined) element.setAttribute(name, value);
  }
  element.append(...children.filter((child) => child !== null));
  return element;
}

const NONE = "—";
const minus = (text) => text.replace("-", "−");
const FORMATS = {
  text: (value) => value,
  flag: (value) => (value ? "yes" : "no"),
  count: (value) => value.toLocaleString("en"),
  rank: (value) => value.toLocaleString("en"),
  tenth: (value) => value.toFixed(1),
  number: (value) => minus(value.toFixed(4)),
  signed: (value) => (value < 0 ? "" : "+") + minus(value.toFixed(4)),
  share: (value) => `${minus((100 * value).toFixed(1))}%`,
  change: (value) => `${value < 0 ? "" : "+"}${minus((100 * value).toFixed(1))}%`,
  p: (value) => (value < 0.0001 ? "<0.0001" : value.toFixed(4)),
};

class Frame {
  // Columns of one length; a column of texts may be a list of different ones and their places.
  constructor(source) {
    this.columns = source.columns;
    this.rows = source.rows;
    this.data = source.data;
    this.ranks = new Map();
  }

  value(column, row) {
    const values = this.data[column];
    if (!values.texts) return values[row];
    const place = values.places[row];
    return place === null ? null : values.texts[place];
  }

  // A number for each row by which rows are put in order; null where there is no value.
  key(column) {
    const values = this.data[column];
    if (this.columns[column].kind !== "text") {
      return (row) => (values[row] === null ? null : Number(values[row]));
    }
    if (!this.ranks.has(column)) {
      const texts = values.texts ?? [...new Set(values.filter((text) => text !== null))];
      const order = texts.map((_, at) => at).sort((a, b) => collator.compare(texts[a], texts[b]));
      const rank = new Map();
      order.forEach((at, place) => rank.set(texts[at], place));
      this.ranks.set(column, rank);
    }
    const rank = this.ranks.get(column);
    return (row) => rank.get(this.value(column, row)) ?? null;
  }

  // Rows by the text they have in a column.
  index(column) {
    const found = new Map();
    for (let row = 0; row < this.rows; row += 1) {
      const text = this.value(column, row);
      if (!found.has(text)) found.set(text, []);
      found.get(text).push(row);
    }
    return found;
  }

  csv(rows) {
    const quote = (value) => {
      const text = value === null ? "" : String(value);
      return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
    };
    const lines = [this.columns.map((column) => quote(column.name)).join(",")];
    for (const row of rows) {
      lines.push(this.columns.map((_, at) => quote(this.value(at, row))).join(","));
    }
    return `${lines.join("\r\n")}\r\n`;
  }
}

function shownText(column, value) {
  return value === null || value === undefined ? NONE : FORMATS[column.kind](value);
}

// What a cell shows: a value with its interval, or a text, the rest of which opens where it is long.
function content(frame, at, row) {
  const column = frame.columns[at];
  const value = frame.value(at, row);
  const text = shownText(column, value);
  if (column.kind === "text" && text.length > CLIPPED) return clipped(text);
  const shown = make("span", { class: "value", dir: column.kind === "text" ? "auto" : null }, text);
  if (column.low !== undefined && value !== null) {
    const [low, high] = [column.low, column.high].map((end) => frame.value(end, row));
    const span = low === null || high === null ? `[${NONE}]`
      : `[${FORMATS[column.kind](low)}, ${FORMATS[column.kind](high)}]`;
    shown.append(" ", make("span", { class: "interval" }, span));
  }
  return shown;
}

function clipped(text) {
  const start = `${text.slice(0, CLIPPED)}…`;
  const part = make("span", {}, start);
  const more = make("button", {
    type: "button",
    class: "more",
    "aria-expanded": "false",
    onclick: () => {
      const open = more.getAttribute("aria-expanded") === "false";
      more.setAttribute("aria-expanded", String(open));
      part.textContent = open ? text : start;
      more.textContent = open ? "less" : "more";
    },
  }, "more");
  return make("span", { class: "value", dir: "auto" }, part, " ", more);
}

function classOf(column, text) {
  if (column.kind !== "text") return "number";
  return text.length > SHORT ? "long" : "short";
}

function download(name, text) {
  const link = make("a", {
    href: URL.createObjectURL(new Blob([text], { type: "text/csv;charset=utf-8" })),
    download: name,
  });
  document.body.append(link);
  link.click();
  link.remove();
  setTimeout(() => URL.revokeObjectURL(link.href), 10000);
}

class DataTable {
  // `pick` makes the first cell of each row a button; `only` are the rows it is about.
  constructor(host, source, { pick = null, only = null } = {}) {
    this.frame = new Frame(source);
    this.name = source.name;
    this.pick = pick;
    this.only = only;
    this.size = matchMedia("(max-width: 600px)").matches ? Math.min(source.page, 6) : source.page;
    this.page = 0;
    this.sorted = null; // { column, down }
    this.words = "";
    this.chosen = new Map(Object.entries(source.start ?? {}).map(([name, value]) => (
      [this.frame.columns.findIndex((column) => column.name === name), value])));
    this.shown = this.frame.columns.map((_, at) => at).filter((at) => this.frame.columns[at].shown);
    this.build(host, source);
    this.refresh();
  }

  build(host, source) {
    const tools = make("div", { class: "tools" });
    if (source.filter) {
      tools.append(make("label", {}, "Filter ", make("input", {
        type: "search",
        placeholder: "words in any column",
        oninput: (event) => {
          this.words = event.target.value;
          this.page = 0;
          this.refresh();
        },
      })));
    }
    for (const { column, values } of source.facets) tools.append(this.facet(column, values));
    tools.append(make("button", {
      type: "button",
      class: "download",
      onclick: () => download(`${this.name}.csv`, this.frame.csv(this.order)),
    }, "Download csv"));
    this.head = make("tr", { role: "row" });
    for (const at of this.shown) this.head.append(this.header(at));
    this.body = make("tbody", { role: "rowgroup" });
    // Roles are said, for on a narrow screen the parts of a table are no longer laid out as one.
    const table = make("table", { role: "table" },
      make("caption", { class: "unseen" }, source.title),
      make("thead", { role: "rowgroup" }, this.head), this.body);
    const scroll = make("div", {
      class: "scroll", tabindex: "0", role: "region", "aria-label": `${source.title}, table`,
    }, table);
    this.back = make("button", { type: "button", onclick: () => this.turn(-1) }, "‹ Previous");
    this.on = make("button", { type: "button", onclick: () => this.turn(1) }, "Next ›");
    this.place = make("span", { role: "status" });
    this.pager = make("div", { class: "pager" }, this.back, this.place, this.on);
    host.replaceChildren(tools, scroll, this.pager);
  }

  facet(name, values) {
    const column = this.frame.columns.findIndex((one) => one.name === name);
    const start = this.chosen.get(column);
    const select = make("select", {
      onchange: () => {
        if (select.value === "") this.chosen.delete(column);
        else this.chosen.set(column, values[Number(select.value)]);
        this.page = 0;
        this.refresh();
      },
    }, make("option", { value: "" }, "all"));
    values.forEach((value, at) => select.append(make("option", {
      value: at, selected: value === start,
    }, shownText(this.frame.columns[column], value))));
    return make("label", {}, `${this.frame.columns[column].label} `, select);
  }

  header(at) {
    const column = this.frame.columns[at];
    const button = make("button", {
      type: "button", title: column.note || null, onclick: () => this.sort(at),
    }, column.label);
    return make("th", {
      scope: "col", role: "columnheader", class: column.kind === "text" ? null : "number",
    }, button);
  }

  sort(column) {
    const numbers = this.frame.columns[column].kind !== "text";
    if (this.sorted?.column !== column) this.sorted = { column, down: numbers };
    else if (this.sorted.down === numbers) this.sorted = { column, down: !numbers };
    else this.sorted = null; // as given
    this.page = 0;
    this.refresh();
  }

  turn(by) {
    this.page += by;
    this.render();
  }

  // Ask for other rows of the same table.
  about(rows) {
    this.only = rows;
    this.page = 0;
    this.refresh();
  }

  matches() {
    const words = this.words.toLocaleLowerCase().split(/\s+/).filter(Boolean);
    if (!words.length) return null;
    const { frame } = this;
    const known = new Map(); // of texts that repeat, each is looked at once
    const holds = (at, text, word) => {
      const key = `${at} ${word}`;
      if (!known.has(key)) known.set(key, new Map());
      const found = known.get(key);
      if (!found.has(text)) found.set(text, text.toLocaleLowerCase().includes(word));
      return found.get(text);
    };
    return (row) => words.every((word) => frame.columns.some((column, at) => {
      if (column.kind !== "text") return shownText(column, frame.value(at, row)).includes(word);
      const text = frame.value(at, row);
      return text !== null && holds(at, text, word);
    }));
  }

  refresh() {
    let rows = this.only ?? [...Array(this.frame.rows).keys()];
    for (const [column, value] of this.chosen) {
      rows = rows.filter((row) => this.frame.value(column, row) === value);
    }
    const matches = this.matches();
    if (matches) rows = rows.filter(matches);
    if (this.sorted) {
      const key = this.frame.key(this.sorted.column);
      const sign = this.sorted.down ? -1 : 1;
      rows = [...rows].sort((a, b) => {
        const [one, other] = [key(a), key(b)];
        if (one === null || other === null) return (one === null) - (other === null);
        return sign * (one - other) || a - b;
      });
    }
    this.order = rows;
    this.shown.forEach((at, place) => {
      const header = this.head.children[place];
      if (this.sorted?.column === at) {
        header.setAttribute("aria-sort", this.sorted.down ? "descending" : "ascending");
      } else header.removeAttribute("aria-sort");
    });
    this.render();
  }

  render() {
    const pages = Math.max(1, Math.ceil(this.order.length / this.size));
    this.page = Math.min(Math.max(this.page, 0), pages - 1);
    const first = this.page * this.size;
    const rows = this.order.slice(first, first + this.size);
    this.body.replaceChildren(...rows.map((row) => this.line(row)));
    if (!rows.length) {
      this.body.append(make("tr", {}, make("td", { colspan: this.shown.length }, "Nothing fits.")));
    }
    this.pager.hidden = pages === 1 && this.order.length === (this.only?.length ?? this.frame.rows);
    this.back.disabled = this.page === 0;
    this.on.disabled = this.page === pages - 1;
    this.place.textContent = rows.length
      ? `${(first + 1).toLocaleString("en")}–${(first + rows.length).toLocaleString("en")} of ${
        this.order.length.toLocaleString("en")}` : "0 rows";
  }

  line(row) {
    const line = make("tr", { role: "row" });
    this.shown.forEach((at, place) => {
      const column = this.frame.columns[at];
      const text = shownText(column, this.frame.value(at, row));
      const about = { "data-label": column.label, class: classOf(column, text) };
      const shown = place === 0 && this.pick ? make("button", {
        type: "button", class: "pick", dir: "auto", onclick: () => this.choose(row),
      }, text) : content(this.frame, at, row);
      line.append(place === 0 ? make("th", { scope: "row", role: "rowheader", ...about }, shown)
        : make("td", { role: "cell", ...about }, shown));
    });
    if (row === this.current) line.setAttribute("aria-current", "true");
    return line;
  }

  choose(row) {
    this.current = row;
    this.pick(row);
    this.body.querySelector("[aria-current]")?.removeAttribute("aria-current");
    const place = this.order.slice(this.page * this.size).indexOf(row);
    this.body.children[place]?.setAttribute("aria-current", "true");
  }
}

// An explorer: a list to pick from, and what belongs to the one that was picked.
class Explorer {
  constructor(host, source) {
    this.list = new Frame(source.list);
    this.key = source.list.columns.findIndex((column) => column.name === source.key);
    this.said = source.list.columns.findIndex((column) => column.name === source.text);
    const list = make("div", { class: "block" });
    this.title = make("h4", { dir: "auto", tabindex: "-1" });
    const detail = make("div", { class: "detail", "aria-live": "polite" }, this.title);
    this.tables = source.details.map((one) => {
      const place = make("div", { class: "block" });
      detail.append(make("h5", {}, one.title), place);
      return { place, source: one, index: null, table: null };
    });
    host.replaceChildren(list, detail);
    const table = new DataTable(list, source.list, { pick: (row) => this.open(row) });
    if (this.list.rows) table.choose(table.order[0]);
  }

  open(row) {
    const key = this.list.value(this.key, row);
    const text = this.said < 0 ? null : this.list.value(this.said, row);
    this.title.textContent = text ? `${key}: ${text}` : key;
    for (const one of this.tables) {
      if (one.index === null) {
        const frame = new Frame(one.source);
        const column = one.source.columns.findIndex((c) => c.name === one.source.key);
        one.index = frame.index(column);
      }
      const rows = one.index.get(key) ?? [];
      if (one.table === null) one.table = new DataTable(one.place, one.source, { only: rows });
      else one.table.about(rows);
    }
  }
}
