// The page itself: what is drawn when, light and dark, views, copying, printing.

const BLOCKS = {
  figure: draw,
  table: (host) => new DataTable(host, dataOf(host.dataset.source)),
  explorer: (host) => new Explorer(host, dataOf(host.dataset.source)),
};

function begin(host) {
  if (host.dataset.begun || !host.clientWidth) return; // done, or in a view that is not shown
  host.dataset.begun = "true";
  BLOCKS[host.dataset.block](host);
}

// What comes near the window is begun, one block at a time, so that scrolling goes on meanwhile.
const coming = [];

function beginNext() {
  begin(coming.shift());
  if (coming.length) setTimeout(beginNext);
}

const hosts = [...document.querySelectorAll("[data-block]")];
const watcher = new IntersectionObserver((entries) => {
  for (const entry of entries) {
    if (!entry.isIntersecting || entry.target.dataset.begun) continue;
    coming.push(entry.target);
    if (coming.length === 1) setTimeout(beginNext);
  }
}, { rootMargin: "900px 0px" });
hosts.forEach((host) => watcher.observe(host));

// -- light and dark ------------------------------------------------------------------------------

function remembered(value) {
  try {
    if (value === undefined) return localStorage.getItem("farfield-theme");
    localStorage.setItem("farfield-theme", value);
  } catch { /* a page from a file may not be allowed to remember */ }
  return null;
}

const theme = document.getElementById("theme");

function choose(value) {
  if (value === "light" || value === "dark") document.documentElement.dataset.theme = value;
  else delete document.documentElement.dataset.theme;
  theme.value = value;
  redraw();
}

theme.addEventListener("change", () => {
  remembered(theme.value);
  choose(theme.value);
});
choose(remembered() ?? "auto");
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", redraw);

// -- views of one section -------------------------------------------------------------------------

for (const views of document.querySelectorAll(".views")) {
  views.addEventListener("change", (event) => {
    if (event.target.type !== "radio") return; // a table in a view has choices of its own
    for (const view of views.querySelectorAll(":scope > .view")) {
      view.hidden = view.dataset.view !== event.target.value;
    }
    redraw();
  });
}

// -- copying ---------------------------------------------------------------------------------------

for (const button of document.querySelectorAll("button.copy")) {
  button.addEventListener("click", async () => {
    const code = button.parentElement.querySelector("pre");
    try {
      await navigator.clipboard.writeText(code.textContent);
      button.textContent = "Copied";
    } catch { // not allowed for a page from a file: select it, so that one key copies it
      const range = document.createRange();
      range.selectNodeContents(code);
      getSelection().removeAllRanges();
      getSelection().addRange(range);
      button.textContent = "Selected: press Ctrl+C";
    }
    setTimeout(() => { button.textContent = "Copy"; }, 2500);
  });
}

// Beside the text the contents are always there; above it they would keep it from the reader.
const beside = matchMedia("(min-width: 1180px)");
const contents = document.querySelector("nav details");
contents.open = beside.matches;
beside.addEventListener("change", () => { contents.open = beside.matches; });

// -- widths and printing -----------------------------------------------------------------------------

let waiting = 0;
addEventListener("resize", () => {
  clearTimeout(waiting);
  waiting = setTimeout(redraw, 150);
});

// A page that is printed is light, narrow and shows every view: the class says so before the browser
// lays it out for paper, so that figures are drawn to fit.
addEventListener("beforeprint", () => {
  document.documentElement.classList.add("printing");
  hosts.forEach(begin);
  redraw();
});
addEventListener("afterprint", () => {
  document.documentElement.classList.remove("printing");
  redraw();
});
document.getElementById("print").addEventListener("click", () => print());
