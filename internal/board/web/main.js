// The page: it connects, watches what waits, and draws at most once a frame.

import { html, nothing, render } from "./vendor/lit-html.js";
import { Bucket, silenceMax } from "./bucket.js";
import { grouped, routeOf, rowOf, summary } from "./doc.js";
import { covered, Inbox, inboxPage } from "./inbox.js";
import { handleKey, helpPart } from "./keys.js";
import { Lookups } from "./log.js";
import { logIn, logOut } from "./login.js";
import { local, Net, since } from "./net.js";
import { Notices } from "./notify.js";
import { Operator, operatorPage } from "./operator.js";
import { Session, sessionPage } from "./session.js";
import { Sessions, sessionsPage } from "./sessions.js";
import { clock, visible } from "./text.js";

const calmAfter = 3_000; // ms without a key or a pointer over the list, after which rows may move
const tick = 1_000; // ms between two drawings while nothing changes
const sweeps = 60_000; // ms between two sweeps of what no drawn row is about

const stored = {
  get: (name) => {
    try {
      return localStorage.getItem(`holdfast.${name}`) ?? undefined;
    } catch {
      return undefined; // the browser keeps nothing
    }
  },
  set: (name, value) => {
    try {
      localStorage.setItem(`holdfast.${name}`, value);
    } catch {
      // The browser keeps nothing: the setting lasts as long as the page.
    }
  },
};

// App is what the pages share.
class App {
  constructor(cell) {
    this.cell = cell;
    this.net = new Net(cell, (status) => this.#status(status));
    this.bucket = new Bucket(this.net, `${cell.prefix}_state`, "blocker.>", rowOf, () => this.changed());
    this.documents = new Lookups((key) => this.#document(key), () => this.draw());
    this.inbox = new Inbox(this);
    this.notices = new Notices(this);
    this.by = (cell.login ? undefined : stored.get("person")) ?? cell.person;
    this.shortcuts = stored.get("shortcuts") !== "off";
    this.help = false;
    this.touched = 0; // when a key was pressed, or the list was touched, last
    this.fingers = 0; // on the list
    this.points = true; // what pointed last is over what it points at: a finger that is lifted is nowhere
  }

  async start() {
    window.addEventListener("hashchange", () => this.#route());
    document.addEventListener("keydown", (e) => {
      this.touched = local();
      if (handleKey(this, e)) e.preventDefault();
    });
    for (const name of ["touchstart", "touchend", "touchcancel"]) {
      document.addEventListener(name, (e) => this.#touch(e), { passive: true });
    }
    for (const name of ["pointerdown", "pointermove"]) {
      document.addEventListener(name, (e) => {
        this.points = e.pointerType !== "touch";
      }, { passive: true });
    }
    document.addEventListener("visibilitychange", () => this.draw());
    for (const name of ["scroll", "resize"]) window.addEventListener(name, () => this.#drewInput());
    setInterval(() => this.changed(), tick);
    setInterval(() => this.sweep(), sweeps);
    this.#route();
    await this.net.open(`${location.protocol === "https:" ? "wss" : "ws"}://${location.host}/nats`);
    this.bucket.run();
    this.page?.start();
  }

  // sweep drops what was read about rows that are drawn no more: a page may be open for weeks.
  sweep() {
    this.documents.sweep();
    this.inbox.sweep();
  }

  #status(status) {
    if (status === "closed") location.reload(); // the brokers refuse the login now
    if (status === "reconnect") {
      this.bucket.restart();
      this.page?.bucket.restart();
      this.documents.forget();
      this.inbox.inputs.forget();
      this.inbox.asked.forget();
    }
    this.draw();
  }

  #route() {
    this.route = routeOf(location.hash);
    this.inbox.show(this.route.only);
    this.page?.close();
    this.page = {
      session: () => new Session(this, this.route),
      sessions: () => new Sessions(this),
      operator: () => new Operator(this),
    }[this.route.page]?.();
    if (this.net.nc) this.page?.start();
    this.changed();
  }

  async #document(key) {
    const [harness, session] = JSON.parse(key);
    const reply = await this.net.ask("ledger", "get", { harness, session });
    if (reply.code !== 200) throw new Error(reply.text || `code ${reply.code}`);
    const { title, parent } = reply.body.document; // what the inbox shows: many documents are kept
    return { title, parent };
  }

  person() {
    return this.by;
  }

  setPerson(name) {
    this.by = name.trim() || this.cell.person;
    stored.set("person", this.by);
    this.draw();
  }

  setShortcuts(on) {
    this.shortcuts = on;
    stored.set("shortcuts", on ? "on" : "off");
    this.draw();
  }

  async logOut() {
    this.stays = await logOut(); // why the browser still has the login
    this.draw();
  }

  now() {
    return this.net.now();
  }

  live() {
    return !this.failed && Boolean(this.bucket.live());
  }

  // #touch counts the fingers on the list. A row that is removed under a finger still reports it.
  #touch(e) {
    const list = document.getElementById("list");
    const before = this.fingers;
    this.fingers = [...e.touches].filter((t) => !t.target.isConnected || list?.contains(t.target)).length;
    if (before > 0 || this.fingers > 0) this.touched = local();
  }

  // calm says that no hand is on the list: no pointer over it, no finger on it, no form in use, no key and no touch for
  // a while. After a touch browsers say for ever that something is over the element.
  calm() {
    const list = document.getElementById("list");
    return !(this.points && list?.matches(":hover")) && this.fingers === 0 &&
      !list?.contains(document.activeElement) && local() - this.touched > calmAfter;
  }

  // changed takes over what the bucket has now. A hidden page is not drawn, so its title is set here.
  changed() {
    this.dirty = true;
    if (document.hidden) this.#update();
    this.draw();
  }

  #update() {
    if (!this.dirty) return;
    this.dirty = false;
    this.inbox.update(this.calm());
    if (this.bucket.loaded) this.notices.update(this.bucket.rows.values(), document.hidden);
    document.title = summary(this.inbox.waiting);
    navigator.setAppBadge?.(this.inbox.waiting).catch(() => {});
  }

  draw() {
    if (this.drawing) return;
    this.drawing = true;
    requestAnimationFrame(() => {
      this.drawing = false;
      try {
        this.#update();
        render(pagePart(this), document.getElementById("page"));
        this.#drew();
        this.#fail("");
      } catch (err) {
        this.#fail(String(err?.message ?? err));
      }
    });
  }

  // #fail says that the page cannot be drawn, "" that it can. The last drawing goes: it would be old and look
  // live. The next drawing begins with an empty page.
  #fail(why) {
    this.failed = why;
    const said = document.getElementById("failed");
    said.hidden = why === "";
    said.textContent = why === "" ? "" : visible(`This page cannot be drawn: ${why}`);
    if (why === "") return;
    const page = document.getElementById("page");
    page.replaceWith(page.cloneNode(false)); // lit-html keeps what it has drawn at the element
  }

  // #drew does what needs the drawn elements.
  #drew() {
    const { inbox } = this;
    if (inbox.scroll) {
      inbox.scroll = inbox.reads(); // once more when the input has come
      const hides = covered();
      document.documentElement.style.scrollPadding = `${hides.top}px 0 ${hides.bottom}px`;
      for (const part of [".row.open", ".row.open .input"]) {
        document.querySelector(part)?.scrollIntoView({ block: "nearest" });
      }
    }
    if (inbox.focusReason) {
      inbox.focusReason = false;
      document.querySelector(".row.open .reason")?.focus();
    }
    if (inbox.showQuestion) {
      inbox.showQuestion = false;
      const question = document.querySelector(".row.open fieldset[aria-current]");
      question?.scrollIntoView({ block: "nearest" });
      if (!question?.querySelector(".option")) question?.querySelector("input")?.focus();
    }
    this.#drewInput();
  }

  #drewInput() {
    this.inbox.drewInput(document.querySelector(".row.open .input"));
  }
}

const pages = {
  inbox: (app) => inboxPage(app.inbox),
  session: (app) => sessionPage(app.page),
  sessions: (app) => sessionsPage(app.page),
  operator: (app) => operatorPage(app.page),
};

function pagePart(app) {
  return html`
    <header class=${(app.page?.bucket ?? app.bucket).live() ? "live" : "stale"}>
      <h1><a href="#/">Holdfast</a> <span class="cell">cell ${app.cell.prefix}</span></h1>
      <nav><a href="#/" aria-current=${app.route.page === "inbox" ? "page" : nothing}>Inbox
        <b id="waiting">${app.inbox.waiting.toLocaleString("en")}</b></a>
        <a href="#/sessions" aria-current=${app.route.page.startsWith("session") ? "page" : nothing}>Sessions</a>
        <a href="#/operator" aria-current=${app.route.page === "operator" ? "page" : nothing}>Operator</a></nav>
      ${app.cell.login
        ? html`<span class="who">as <b id="person">${visible(app.by)}</b> <button
          @click=${() => app.logOut()}>log out</button>
          ${app.stays ? html`<b role="alert">you are still logged in: ${visible(app.stays)}</b>` : nothing}</span>`
        : html`<label class="who">as <input id="person" size="10" autocomplete="off" .value=${app.by}
          @change=${(e) => app.setPerson(e.target.value)}></label>`}
      <button class="help" aria-expanded=${app.help} @click=${() => {
        app.help = !app.help;
        app.draw();
      }}>keys <kbd>?</kbd></button>
      ${app.notices.state() === "default"
        ? html`<button class="help" @click=${() => app.notices.ask()}>notify me</button>`
        : app.notices.state() === "refused" ? html`<span class="soft">this browser shows no notices</span>` : nothing}
      ${livePart(app)}
    </header>
    <main>
      ${app.help ? helpPart(app) : nothing}
      ${pages[app.route.page](app)}
    </main>
    <footer>${visible(`holdfast ${app.cell.version}`)}</footer>`;
}

// livePart says how old the page is.
function livePart(app) {
  const bucket = app.page?.bucket ?? app.bucket;
  const as = bucket.asOf ? `as of ${clock(bucket.asOf, bucket.asOf + since(bucket.heard))}` : "";
  if (bucket.live()) return html`<p id="state" class="live">live, ${as}</p>`;
  const hears = app.net.connected && since(app.net.heard) <= silenceMax;
  const doing = hears ? "reading what is stored" : "reconnecting";
  return html`<p id="state" class="stale" role="status">${as ? `${as}, ${doing} …` : "connecting …"}
    ${bucket.error && hears ? html`<span class="why">${visible(bucket.error)}</span>` : nothing}</p>`;
}

// readCell returns what the server says about the cell. Beside a cluster it says so to those who have logged in.
async function readCell() {
  let why = "";
  for (;;) {
    try {
      const reply = await fetch("/cell.json");
      if (reply.ok) return await reply.json();
      if (reply.status === 401) {
        await logIn(document.getElementById("page"), why);
        why = "the browser keeps no login: it refuses the cookies";
        continue;
      }
      say(`${reply.status} ${await reply.text()}`);
    } catch (err) {
      say(`The board's server does not reply (${err?.message ?? err}). The page asks it again each second.`);
    }
    await new Promise((done) => setTimeout(done, tick));
  }
}

// say shows one line in place of the page.
function say(text) {
  const note = document.createElement("p");
  note.className = "note";
  note.textContent = visible(text);
  document.getElementById("page").replaceChildren(note);
}

const cell = await readCell();
document.getElementById("page").replaceChildren(); // lit-html keeps what it did not draw
const app = new App(cell);
globalThis.holdfast = { app, grouped }; // for people with a console, and for the tests
await app.start();
