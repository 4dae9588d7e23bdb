// What Python's zlib made small becomes bytes again (RFC 1951), in any browser and at once:
// DecompressionStream is younger than some of them, and cannot be waited for before printing.

const LENGTH_BASE = [3, 4, 5, 6, 7, 8, 9, 10, 11, 13, 15, 17, 19, 23, 27, 31, 35, 43, 51, 59, 67,
  83, 99, 115, 131, 163, 195, 227, 258];
const LENGTH_EXTRA = [0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 2, 2, 2, 2, 3, 3, 3, 3, 4, 4, 4, 4, 5, 5,
  5, 5, 0];
const DISTANCE_BASE = [1, 2, 3, 4, 5, 7, 9, 13, 17, 25, 33, 49, 65, 97, 129, 193, 257, 385, 513, 769,
  1025, 1537, 2049, 3073, 4097, 6145, 8193, 12289, 16385, 24577];
const DISTANCE_EXTRA = [0, 0, 0, 0, 1, 1, 2, 2, 3, 3, 4, 4, 5, 5, 6, 6, 7, 7, 8, 8, 9, 9, 10, 10, 11,
  11, 12, 12, 13, 13];
const CODE_ORDER = [16, 17, 18, 0, 8, 7, 9, 6, 10, 5, 11, 4, 12, 3, 13, 2, 14, 1, 15];

// A table that tells of the next bits which symbol they begin with and how long its code is.
function codeTable(lengths) {
  const longest = Math.max(1, ...lengths);
  const count = new Uint16Array(17);
  for (const length of lengths) count[length] += 1;
  count[0] = 0;
  const next = new Uint16Array(17);
  for (let bits = 1; bits <= 15; bits += 1) next[bits + 1] = (next[bits] + count[bits]) << 1;
  const table = new Uint16Array(1 << longest);
  lengths.forEach((length, symbol) => {
    if (!length) return;
    const code = next[length];
    next[length] += 1;
    let reversed = 0;
    for (let bit = 0; bit < length; bit += 1) reversed |= ((code >> bit) & 1) << (length - 1 - bit);
    for (let at = reversed; at < table.length; at += 1 << length) {
      table[at] = (symbol << 4) | length;
    }
  });
  return { table, longest };
}

const FIXED_SYMBOLS = codeTable([...Array(288).keys()].map((symbol) => (
  symbol < 144 ? 8 : symbol < 256 ? 9 : symbol < 280 ? 7 : 8)));
const FIXED_DISTANCES = codeTable(Array(30).fill(5));

function inflate(input, size) {
  const output = new Uint8Array(size);
  let from = 0;
  let to = 0;
  let hold = 0;
  let held = 0;

  function bits(count) {
    while (held < count) {
      hold |= input[from] << held;
      from += 1;
      held += 8;
    }
    const value = hold & ((1 << count) - 1);
    hold >>>= count;
    held -= count;
    return value;
  }

  function symbol(codes) {
    while (held < codes.longest) {
      hold |= (from < input.length ? input[from] : 0) << held;
      from += 1;
      held += 8;
    }
    const entry = codes.table[hold & ((1 << codes.longest) - 1)];
    hold >>>= entry & 15;
    held -= entry & 15;
    return entry >> 4;
  }

  function readCodes() {
    const symbols = bits(5) + 257;
    const distances = bits(5) + 1;
    const order = Array(19).fill(0);
    const given = bits(4) + 4;
    for (let at = 0; at < given; at += 1) order[CODE_ORDER[at]] = bits(3);
    const lengthCodes = codeTable(order);
    const lengths = [];
    while (lengths.length < symbols + distances) {
      const code = symbol(lengthCodes);
      if (code < 16) lengths.push(code);
      else {
        const value = code === 16 ? lengths[lengths.length - 1] : 0;
        const times = code === 16 ? 3 + bits(2) : code === 17 ? 3 + bits(3) : 11 + bits(7);
        for (let n = 0; n < times; n += 1) lengths.push(value);
      }
    }
    return [codeTable(lengths.slice(0, symbols)), codeTable(lengths.slice(symbols))];
  }

  for (let last = 0; !last;) {
    last = bits(1);
    const kind = bits(2);
    if (kind === 0) { // stored as it is, from the next whole byte on
      from -= held >> 3;
      hold = 0;
      held = 0;
      const length = input[from] | (input[from + 1] << 8);
      output.set(input.subarray(from + 4, from + 4 + length), to);
      from += 4 + length;
      to += length;
      continue;
    }
    const [symbols, distances] = kind === 1 ? [FIXED_SYMBOLS, FIXED_DISTANCES] : readCodes();
    for (;;) {
      const found = symbol(symbols);
      if (found < 256) {
        output[to] = found;
        to += 1;
      } else if (found === 256) break;
      else {
        const length = LENGTH_BASE[found - 257] + bits(LENGTH_EXTRA[found - 257]);
        const place = symbol(distances);
        const start = to - (DISTANCE_BASE[place] + bits(DISTANCE_EXTRA[place]));
        for (let n = 0; n < length; n += 1) output[to + n] = output[start + n];
        to += length;
      }
    }
  }
  return output;
}

// The text that a block of the page carries.
function carried(id) {
  const block = document.getElementById(id);
  const letters = atob(block.textContent);
  const bytes = new Uint8Array(letters.length);
  for (let at = 0; at < letters.length; at += 1) bytes[at] = letters.charCodeAt(at);
  return new TextDecoder().decode(inflate(bytes, Number(block.dataset.size)));
}

const opened = new Map();

// The data that a block of the page carries, read when it is first asked for.
function dataOf(id) {
  if (!opened.has(id)) opened.set(id, JSON.parse(carried(id)));
  return opened.get(id);
}
