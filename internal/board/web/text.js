// Text of agents, and instants, in the form that people read. All functions are pure.

// Characters that change how other characters are shown, or that are not shown at all: controls (but not tab and line
// feed), what Unicode lets a font ignore (direction of text, zero width, fillers, variation selectors, tags), line and
// paragraph separators, annotations, and the empty Braille pattern.
const hidden = new RegExp(
  "[\\u0000-\\u0008\\u000b-\\u001f\\u007f-\\u009f\\p{Default_Ignorable_Code_Point}\\u2028\\u2029\\ufff9-\\ufffb" +
    "\\u2800]",
  "gu",
);

// U+FE0F asks for the coloured form of the emoji before it. It is shown as nothing there alone, and in a keycap.
const emoji = /(?<=(?![0-9#*])\p{Emoji})\ufe0f|(?<=[0-9#*])\ufe0f(?=\u20e3)/gu;

// visible returns a text in which each hidden character is written as its number, such as ⟦U+202E⟧.
export function visible(text) {
  const whole = plain(text);
  const kept = new Set(whole.includes("\ufe0f") ? [...whole.matchAll(emoji)].map((m) => m.index) : []);
  return whole.replace(hidden, (c, at) => kept.has(at) ? c : number(c));
}

function number(c) {
  return `⟦U+${c.codePointAt(0).toString(16).toUpperCase().padStart(4, "0")}⟧`;
}

// name returns an id as visible does, with tabs and line feeds as numbers, too.
export function name(text) {
  return visible(text).replace(/[\t\n]/g, number);
}

// plain returns a JSON value as text. An object may have a field toString, and may be too deep to be written.
function plain(value, indent) {
  if (typeof value === "string") return value;
  if (value === undefined || value === null) return "";
  try {
    return JSON.stringify(value, null, indent) ?? "";
  } catch (err) {
    return `⟦cannot be shown: ${err.message}⟧`;
  }
}

// line returns a text as one line of at most so many characters.
export function line(text, max = 160) {
  const flat = visible(text).replace(/\s+/g, " ").trim();
  const characters = [...flat];
  return characters.length <= max ? flat : `${characters.slice(0, max - 1).join("")}…`;
}

// instant parses a time of the wire; undefined for none.
export function instant(text) {
  const ms = Date.parse(text ?? "");
  return Number.isNaN(ms) || ms <= 0 ? undefined : ms;
}

// clock returns the local time of day of an instant, with the local date when it is another day than now.
export function clock(ms, now) {
  if (ms === undefined) return "";
  const at = new Date(ms);
  const time = at.toTimeString().slice(0, 8);
  if (new Date(now).toDateString() === at.toDateString()) return time;
  const [month, day] = [at.getMonth() + 1, at.getDate()].map((n) => String(n).padStart(2, "0"));
  return `${at.getFullYear()}-${month}-${day} ${time}`;
}

const units = [[86400, "d"], [3600, "h"], [60, "m"], [1, "s"]];

// duration returns a length of time in its greatest unit, such as 14m.
export function duration(ms) {
  const seconds = Math.max(0, Math.floor(ms / 1000));
  for (const [size, name] of units) {
    if (seconds >= size) return `${Math.floor(seconds / size)}${name}`;
  }
  return "0s";
}

// ago returns how long before now an instant was.
export function ago(text, now) {
  const ms = instant(text);
  return ms === undefined ? "" : duration(now - ms);
}

// plural returns a count with its noun.
export function plural(n, noun) {
  return `${n.toLocaleString("en")} ${noun}${n === 1 ? "" : "s"}`;
}

// fields returns a JSON value as a list of {name, text}: one for each field of an object, else one without a name.
// Texts are whole, and line feeds in them stay.
export function fields(value) {
  if (value === undefined || value === null) return [];
  if (typeof value === "object" && !Array.isArray(value)) {
    return Object.entries(value).map(([name, v]) => ({ name: visible(name), text: textOf(v) }));
  }
  return [{ name: "", text: textOf(value) }];
}

function textOf(value) {
  return visible(value === null ? "null" : plain(value, 2));
}

// token encodes an id as one token of a subject or key: bytes outside A–Z a–z 0–9 _ - become =XX.
export function token(id) {
  let out = "";
  for (const byte of new TextEncoder().encode(id)) {
    const c = String.fromCharCode(byte);
    out += /[A-Za-z0-9_-]/.test(c) ? c : `=${byte.toString(16).toUpperCase().padStart(2, "0")}`;
  }
  return out;
}
