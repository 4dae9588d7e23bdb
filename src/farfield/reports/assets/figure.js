// Figures: drawn when they come into view, in the colours of the page, as wide as it is.

// Colours of figures on a light ground, and what they become on a dark one. Series also differ in
// symbol and dash.
const ON_DARK = {
  "#0072b2": "#4c9be8", "#d55e00": "#f0803c", "#009e73": "#2bc59a", "#cc79a7": "#e39bc4",
  "#56b4e9": "#9ad6f7", "#e69f00": "#f5bc42", "#4d4d4d": "#c4c4c4", "#8c6d00": "#c9a93b",
  "#333333": "#dddddd", "#e4e4e4": "#3a3f47", "#c8c8c8": "#6a7078", "#888": "#9aa1aa",
  "#bbbbbb": "#5a626d",
  "rgba(0,114,178,0.12)": "rgba(76,155,232,0.2)", "#f2f7fb": "#1d2127", "#7db8e0": "#2b6ca3",
};
const LEGEND_ROW = 21;
const BELOW = 44;
const LETTER = 7.6; // pixels, on average

let plotlyThere = false;

function needPlotly() {
  if (plotlyThere) return;
  plotlyThere = true;
  const script = document.createElement("script");
  script.textContent = carried("plotly");
  document.head.append(script);
}

function isDark() {
  const root = document.documentElement;
  const chosen = root.dataset.theme;
  if (root.classList.contains("printing")) return false;
  return chosen ? chosen === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
}

// A copy of a figure (plotly changes what it is given) in the colours of the ground.
function coloured(content, dark) {
  if (typeof content === "string") return (dark && ON_DARK[content.toLowerCase()]) || content;
  if (Array.isArray(content)) return content.map((value) => coloured(value, dark));
  if (content === null || typeof content !== "object") return content;
  return Object.fromEntries(Object.entries(content).map(([key, value]) => (
    [key, key === "bdata" ? value : coloured(value, dark)])));
}

// How many rows a legend takes that is laid out as plotly does it: in columns as wide as the
// widest name, if the names do not fit in one row.
function legendRows(data, width) {
  const names = data.filter((trace) => trace.showlegend !== false && trace.name)
    .map((trace) => trace.name.replace(/<[^>]*>/g, ""));
  if (names.length < 2) return 0;
  const widths = names.map((name) => 46 + 7.4 * name.length);
  if (widths.reduce((sum, one) => sum + one, 0) < width) return 1;
  return Math.ceil(names.length / Math.max(1, Math.floor(width / Math.max(...widths))));
}

// A title over as many lines as it needs in so many pixels.
function wrapped(text, pixels) {
  const lines = [""];
  for (const word of (text ?? "").split(" ")) {
    const line = `${lines[lines.length - 1]} ${word}`.trim();
    if (line.length * LETTER <= pixels) lines[lines.length - 1] = line;
    else lines.push(word);
  }
  return lines.filter(Boolean).join("<br>");
}

function laidOut(source, data, width, dark) {
  const ink = dark ? "#e6e8eb" : "#1c2127";
  const grid = dark ? "#363c45" : "#dfe3e8";
  const rows = legendRows(data, width - 60);
  const top = source.top + rows * LEGEND_ROW + (rows ? 6 : 0);
  const height = source.height + rows * LEGEND_ROW;
  const layout = coloured(source.layout, dark);
  for (const [name, axis] of Object.entries(layout)) {
    if (!/^[xy]axis/.test(name)) continue;
    axis.gridcolor = grid;
    axis.zerolinecolor = dark ? "#5a626d" : "#aab1ba";
    axis.linecolor = grid;
    axis.automargin = true;
    if (!axis.title) continue;
    axis.title.standoff = 8;
    axis.title.text = wrapped(axis.title.text, (name[0] === "x" ? width : height) - 70);
  }
  const inner = height - top - BELOW;
  return {
    ...layout,
    width,
    height,
    autosize: false,
    paper_bgcolor: "rgba(0,0,0,0)",
    plot_bgcolor: "rgba(0,0,0,0)",
    font: { family: "system-ui, sans-serif", size: 13, color: ink },
    margin: { l: 50, r: 20, t: top, b: BELOW, pad: 2 },
    showlegend: rows > 0,
    legend: {
      orientation: "h", x: 0, xanchor: "left", yanchor: "bottom", y: 1 + (source.top - 4) / inner,
      bgcolor: "rgba(0,0,0,0)", itemclick: "toggle",
    },
    hoverlabel: { bgcolor: dark ? "#22262c" : "#ffffff", font: { color: ink }, align: "left" },
    modebar: { bgcolor: "rgba(0,0,0,0)", color: dark ? "#9aa1aa" : "#5c6570" },
  };
}

function draw(host) {
  if (!host.clientWidth) return;
  needPlotly();
  const source = dataOf(host.dataset.source);
  const width = Math.max(Math.floor(host.clientWidth), source.least);
  const dark = isDark();
  const state = `${width} ${dark}`;
  if (host.dataset.drawn === state) return;
  host.dataset.drawn = state;
  const data = coloured(source.data, dark);
  const layout = laidOut(source, data, width, dark);
  host.style.height = `${layout.height}px`;
  Plotly.react(host, data, layout, {
    displaylogo: false,
    displayModeBar: "hover",
    modeBarButtonsToRemove: ["select2d", "lasso2d", "autoScale2d"],
    showTips: false,
  });
}

function redraw() {
  for (const host of document.querySelectorAll("[data-drawn]")) draw(host);
}
