// Keys. A single key does something only while no text is being written, and can be switched off.

import { html } from "./vendor/lit-html.js";

const places = { i: "#/", s: "#/sessions", o: "#/operator" };

const keys = [
  ["j k ↓ ↑", "next row, row before"],
  ["1 … 9", "choose an option of the current question"],
  ["q", "next question"],
  ["o a", "choose once, always (permissions)"],
  ["n", "no, with a reason"],
  ["enter", "send what is chosen; open the first row"],
  ["g i, g s, g o", "go to the inbox, the sessions, the operator's page"],
  ["x", "select the row, for one answer to several"],
  ["b", "send the answer of the open row to all selected rows"],
  ["r", "show new rows, drop decided ones"],
  ["/", "filter"],
  ["esc", "leave a field, close a row"],
  ["?", "this list"],
];

// handleKey does what a key means, and says whether it meant anything.
export function handleKey(app, event) {
  const { inbox } = app;
  const { key, target } = event;
  if (event.ctrlKey || event.metaKey || event.altKey || event.isComposing) return false;
  const choice = target.matches?.("input[type=radio], input[type=checkbox]");
  const writes = !choice && target.matches?.("input, textarea, select");
  if (key === "Escape") return leave(app, writes ? target : undefined);
  if (key === "Enter") return enter(app, event, writes);
  if (writes || !app.shortcuts) return false;
  if (key.startsWith("Arrow") && (choice || scrolls(target))) return false; // the browser moves or scrolls
  return single(app, key);
}

// scrolls says whether an element that has the keyboard is scrolled by arrow keys.
function scrolls(element) {
  return element.scrollHeight > element.clientHeight &&
    /auto|scroll/.test(getComputedStyle(element).overflowY);
}

function leave(app, field) {
  if (field) field.blur();
  else if (app.help) app.help = false;
  else app.inbox.current = undefined;
  app.draw();
  return true;
}

// enter sends the form of the open row. On a button or a link it is left to the browser.
function enter(app, event, writes) {
  const { inbox } = app;
  const { target } = event;
  if (app.page || target.matches?.("button, a, summary") || target.id === "person") return false;
  if (target.matches?.("textarea") && event.shiftKey) return false; // a new line
  if (target.id === "filter") {
    target.blur();
    inbox.move(1);
    return true;
  }
  if (!writes && !app.shortcuts) return false;
  if (inbox.row()) inbox.submit(inbox.row());
  else inbox.move(1);
  return true;
}

// single does what a single key means.
function single(app, key) {
  const went = app.went;
  app.went = key === "g";
  if (went && key in places) {
    location.hash = places[key];
    return true;
  }
  const { inbox } = app;
  const everywhere = {
    g: () => {},
    "/": () => document.getElementById("filter")?.focus(),
    "?": () => {
      app.help = !app.help;
      app.draw();
    },
  };
  const inInbox = {
    j: () => inbox.move(1),
    ArrowDown: () => inbox.move(1),
    k: () => inbox.move(-1),
    ArrowUp: () => inbox.move(-1),
    q: () => inbox.next(),
    o: () => inbox.pickLabel("once"),
    a: () => inbox.pickLabel("always"),
    n: () => inbox.refuse(inbox.row()),
    r: () => inbox.refresh(),
    x: () => inbox.select(inbox.row()),
    b: () => inbox.submitAll(),
  };
  for (let n = 1; n <= 9; n++) inInbox[n] = () => inbox.pick(n - 1);
  const does = everywhere[key] ?? (app.page ? undefined : inInbox[key]);
  does?.();
  return Boolean(does);
}

// helpPart lists the keys.
export function helpPart(app) {
  return html`<section id="help" aria-label="Keys">
    <dl>${keys.map(([key, what]) => html`<dt><kbd>${key}</kbd></dt><dd>${what}</dd>`)}</dl>
    <label><input type="checkbox" .checked=${app.shortcuts} @change=${(e) => app.setShortcuts(e.target.checked)}>
      single keys do something</label>
  </section>`;
}
