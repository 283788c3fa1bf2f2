// The inbox: everything that waits for a person, and the forms to answer it.

import { html, nothing, repeat } from "./vendor/lit-html.js";
import * as doc from "./doc.js";
import { clock, fields, line, name as nameOf, visible } from "./text.js";
import { Lookups, readEnd, readInput } from "./log.js";

const keptFor = 20_000; // ms that a decided row stays in the list, so that people see what became of it
const decidedMax = 50; // rows of the list of recent decisions

// Inbox is the state of the page that no one else sees: drafts, the current row, what the services replied.
export class Inbox {
  // app is {net, bucket, documents, person(), now(), live(), draw()}.
  constructor(app) {
    this.app = app;
    this.order = [];
    this.held = 0;
    this.waiting = 0;
    this.filter = "";
    this.only = undefined;
    this.current = undefined;
    this.drafts = new Map(); // version of a row → {answers: {question: {selected, text}}, reason, refusing}
    this.sending = new Set();
    this.selected = new Set(); // versions of rows that get one answer
    this.verdicts = new Map(); // key → what the service replied
    this.below = new Map(); // key → names of the lines that a row has below its head: no line comes under a hand
    this.late = new Map(); // group → rows that wait and are held
    this.shown = new Set(); // versions of permissions whose whole input was on the screen
    this.inputs = new Lookups((version) => this.#readInput(version), () => app.draw());
    this.asked = new Lookups((name) => readEnd(app.net, JSON.parse(name)), () => app.draw()); // of a link without a row
    this.gone = new Map(); // key → row that the bucket no longer has: it stays in its place under a hand
    this.ends = new Lookups((version) => readEnd(app.net, this.#goneAs(version)), () => app.draw());
    const { rows } = app.bucket;
    this.rows = { // the rows of the bucket, and those that stay
      get: (key) => rows.get(key) ?? this.gone.get(key),
      has: (key) => rows.has(key) || this.gone.has(key),
      values: () => rows.values(),
    };
    app.bucket.onRemove = (key, row) => this.gone.set(key, { ...row, waits: false, lost: row.waits });
  }

  // #goneAs returns the row that stays, of a version.
  #goneAs(version) {
    const row = [...this.gone.values()].find((r) => r.version === version);
    if (!row) throw new Error("the row is not shown any more");
    return row;
  }

  // #leave drops rows that the bucket no longer has: all without a hand on the list, else those that are not drawn.
  #leave(calm) {
    if (this.gone.size === 0) return;
    const drawn = new Set(calm ? [] : this.drawn().map((row) => row.key));
    for (const key of this.gone.keys()) {
      if (!drawn.has(key) || this.app.bucket.rows.has(key)) this.gone.delete(key);
    }
  }

  // sweep drops what is about rows that are neither in the bucket nor in the list.
  sweep() {
    const versionIs = (version) => this.rows.get(version.slice(0, version.lastIndexOf("@")))?.version === version;
    for (const known of [this.drafts, this.selected, this.shown]) {
      for (const version of known.keys()) if (!versionIs(version)) known.delete(version);
    }
    for (const key of this.verdicts.keys()) if (!this.rows.has(key)) this.verdicts.delete(key);
    for (const lookups of [this.inputs, this.ends, this.asked]) lookups.sweep();
  }

  // update takes the rows of the bucket into the list. calm says that no hand is on the list.
  update(calm) {
    const { rows } = this;
    this.#leave(calm);
    const { order, held } = doc.merge(this.order, rows, calm, (row) => this.#keeps(row));
    this.order = order;
    this.held = held;
    this.waiting = 0;
    if (calm) this.below.clear();
    for (const row of rows.values()) {
      if (row.waits) this.waiting++;
      if (calm) this.#settle(row);
      if (this.only && doc.same(row, this.only)) this.#link(row);
    }
    this.late = held > 0 ? doc.late(this.order, rows) : new Map();
  }

  // lines returns the names of the lines that say what became of a row.
  lines(row) {
    return [row.waits ? "" : "became", this.verdicts.has(row.key) ? "verdict" : ""].filter(Boolean);
  }

  // #settle gives a row the height that it needs now: it says below its head what became of it, and has a form only
  // while it waits.
  #settle(row) {
    if (!row || (row.waits && !this.verdicts.size)) return; // ten thousand rows, most of the time
    this.below.set(row.key, this.lines(row));
    if (!row.waits) this.drafts.delete(row.version);
  }

  // asks says whether a row has its form: while it waits, and while a hand is on it.
  asks(row) {
    return row.waits || !this.below.get(row.key)?.includes("became");
  }

  // #link shows the row that the address names, also when it is decided, and opens it once.
  #link(row) {
    this.asked.forget(JSON.stringify(this.only)); // what was read before the prompt waited is old
    if (!this.order.includes(row.key)) this.order.push(row.key);
    if (!this.linked) this.current = row.key;
    this.linked = true;
  }

  // show sets the one prompt that the address names; undefined for all.
  show(only) {
    this.only = only;
    this.linked = false;
    if (!only) this.refresh();
  }

  #keeps(row) {
    const closed = Date.parse(row.blocker.closed_at ?? "");
    return this.sending.has(row.key) || this.app.now() - closed < keptFor;
  }

  // refresh puts every row in its place, and drops the decided ones.
  refresh() {
    this.order = doc.arrange([...this.app.bucket.rows.values()].filter((row) => row.waits));
    this.held = 0;
    this.late.clear();
    this.gone.clear();
    this.below.clear();
    for (const row of this.app.bucket.rows.values()) this.#settle(row);
    this.inputs.forget();
    this.app.draw();
  }

  // drawn returns the rows on the screen, in their order.
  drawn() {
    const { groups } = doc.grouped(this.order, this.rows, this.filter, this.only);
    return groups.flatMap((g) => g.rows);
  }

  // row returns the open row, undefined when it is not on the screen: no key acts on a row that the filter hides.
  row() {
    if (this.current === undefined) return undefined;
    return this.drawn().find((row) => row.key === this.current);
  }

  open(key) {
    for (const k of [this.current, key]) this.#settle(this.rows.get(k));
    this.current = key;
    this.app.draw();
  }

  // move opens the next row (1) or the one before (-1).
  move(step) {
    const rows = this.drawn();
    if (rows.length === 0) return;
    const at = rows.findIndex((row) => row.key === this.current);
    const next = at < 0 ? 0 : Math.min(rows.length - 1, Math.max(0, at + step));
    this.open(rows[next].key);
    this.scroll = true;
  }

  draft(version) {
    if (!this.drafts.has(version)) this.drafts.set(version, { answers: {}, reason: "", refusing: false });
    return this.drafts.get(version);
  }

  // pick chooses option n (from 0) of the current question, or takes it back where several can be chosen.
  pick(n) {
    const row = this.row();
    if (!row?.waits) return;
    const question = this.question(row);
    const option = question?.options?.[n];
    if (option) this.choose(row, question, option.label);
  }

  // question returns the current question of a row: digits choose its options.
  question(row) {
    return doc.questionAt(row.blocker.questions, this.draft(row.version).at);
  }

  // at makes a question the current one.
  at(row, question) {
    this.draft(row.version).at = question?.id;
    this.app.draw();
  }

  // next makes the question after the current one the current one; the first one comes after the last one.
  next() {
    const row = this.row();
    if (!row?.waits) return;
    this.at(row, doc.questionAfter(row.blocker.questions, this.draft(row.version).at));
    this.showQuestion = true;
  }

  // pickLabel chooses an option of a permission by its name.
  pickLabel(label) {
    const row = this.row();
    const question = row?.blocker.questions?.[0];
    if (row?.waits && row.kind === "permission" && question?.options?.some((o) => o.label === label)) {
      this.choose(row, question, label);
    }
  }

  choose(row, question, label) {
    const draft = this.draft(row.version);
    draft.refusing = false;
    draft.answers[question.id] = doc.choose(question, draft.answers[question.id], label);
    this.app.draw();
  }

  refuse(row) {
    if (!row?.waits) return;
    const draft = this.draft(row.version);
    draft.refusing = !draft.refusing;
    this.focusReason = draft.refusing;
    this.app.draw();
  }

  // blocked says why the answer of a row cannot be sent now, "" when it can.
  blocked(row) {
    if (!this.app.live()) return "not connected: what is shown is old";
    const why = this.#over(row);
    if (why) return why;
    if (row.kind === "permission" && !this.shown.has(row.version)) return "read the whole input first";
    const questions = row.blocker.questions ?? [];
    if (questions.length > 0 && doc.missing(questions, this.draft(row.version).answers).length === questions.length) {
      return "choose or write an answer";
    }
    return "";
  }

  // #over says why nothing can be sent about a row, "" when it can.
  #over(row) {
    if (!row.waits) return "it no longer waits";
    if (this.sending.has(row.key)) return "sending …";
    return this.draft(row.version).sent ? "stored" : "";
  }

  // dead says whether the buttons of a row are off.
  dead(row) {
    return !this.app.live() || this.#over(row) !== "";
  }

  // submit sends what is in the form of a row: an answer, or a refusal with its reason.
  submit(row) {
    if (!row || this.dead(row)) return;
    const draft = this.draft(row.version);
    if (draft.refusing) this.send(row, "reject", { text: draft.reason.trim() || undefined });
    else if (this.blocked(row) === "") {
      this.send(row, "answer", { answers: doc.answersOf(row.blocker.questions, draft.answers) });
    }
  }

  // select adds a row to those that get one answer, or takes it out. They all have one shape.
  select(row) {
    if (!row?.waits) return;
    const [first] = this.chosen();
    const fits = !first || doc.shapeOf(first) === doc.shapeOf(row);
    if (!this.selected.delete(row.version) && fits) this.selected.add(row.version);
    this.app.draw();
  }

  // #now returns the row of a version, undefined when the bucket has another version of it, or none.
  #now(version) {
    const row = this.app.bucket.rows.get(version.slice(0, version.lastIndexOf("@")));
    return row?.version === version ? row : undefined;
  }

  // #readInput reads the input of the version that is shown.
  async #readInput(version) {
    const row = this.#now(version);
    if (!row) throw new Error("the prompt has changed");
    return readInput(this.app.net, row.blocker);
  }

  // chosen returns the selected rows that still wait.
  chosen() {
    return [...this.selected].map((version) => this.#now(version)).filter((row) => row?.waits);
  }

  // bulkBlocked says why the selected rows cannot have the answer of the open row now, "" when they can.
  bulkBlocked(rows) {
    const row = this.row();
    if (!row || !this.selected.has(row.version)) return "open one of them and choose its answer";
    const refuses = rows.filter((r) => this.drafts.get(r.version)?.refusing).length;
    if (refuses > 0) return `the form of ${refuses} of them says no: send that, or choose an answer there`;
    const why = this.blocked(row);
    if (why) return why;
    if (doc.standing(row, this.draft(row.version).answers)) {
      return "permit one at a time what permits more than one call";
    }
    const unread = rows.filter((r) => r.kind === "permission" && !this.shown.has(r.version)).length;
    return unread > 0 ? `read the whole input of ${unread} more first` : "";
  }

  // submitAll gives every selected row the answer of the open one, by an ordinary request each, one after the other.
  async submitAll() {
    const rows = this.chosen();
    if (this.bulkBlocked(rows) !== "") return;
    const from = this.row();
    const drafts = structuredClone(this.draft(from.version).answers);
    this.selected.clear();
    for (const row of rows) {
      const { questions } = row.blocker;
      const answers = doc.answersOf(questions, doc.draftsLike(from.blocker.questions, drafts, questions));
      if (this.#now(row.version)) await this.send(row, "answer", { answers });
      else this.verdicts.set(row.key, { kind: "refused", text: "not sent: the prompt has changed meanwhile" });
    }
    this.app.draw();
  }

  // send asks the ledger, and shows what it replied. Nothing is shown as done before.
  async send(row, verb, body) {
    if (!this.app.live() || this.sending.has(row.key)) return;
    const { harness, session, prompt } = row;
    const asked = row.blocker.seq; // another question under this id is another one than the person read
    this.sending.add(row.key);
    this.verdicts.delete(row.key);
    this.app.draw();
    const request = { harness, session, prompt, asked, by: this.app.person(), ...body };
    const reply = await this.app.net.ask("ledger", verb, request);
    this.sending.delete(row.key);
    this.verdicts.set(row.key, doc.verdict(reply, this.app.now()));
    if (reply.code === 200) this.draft(row.version).sent = true; // the form stays until no hand is on it
    this.app.draw();
  }

  // drewInput is called after each drawing, and when something moves, with the element that has the input of the open
  // permission: it counts as seen when its end is on the screen.
  drewInput(element) {
    const row = this.row();
    if (!row || !element || this.shown.has(row.version) || element.dataset.version !== row.version) return;
    if (this.inputs.get(row.version).value && endOnScreen(element)) {
      this.shown.add(row.version);
      this.app.draw();
    }
  }

  // reads says whether the input of the open row is still read.
  reads() {
    const row = this.row();
    if (row?.kind !== "permission" && row?.kind !== "plan") return false;
    const { value, error } = this.inputs.get(row.version);
    return !value && !error;
  }
}

// covered returns the heights, in pixels, that the header and the bar of selected rows take of the window.
export function covered() {
  return {
    top: document.querySelector("header")?.getBoundingClientRect().bottom ?? 0,
    bottom: window.innerHeight - (document.getElementById("bulk")?.getBoundingClientRect().top ?? window.innerHeight),
  };
}

// endOnScreen says whether the last line of a scrolled element is in the window, and not under what covers it.
function endOnScreen(element) {
  if (element.scrollTop + element.clientHeight < element.scrollHeight - 2) return false;
  const { bottom, height } = (element.lastElementChild ?? element).getBoundingClientRect();
  const hides = covered();
  return height > 0 && bottom > hides.top && bottom <= window.innerHeight - hides.bottom + 1;
}

// inboxPage draws the inbox.
export function inboxPage(inbox) {
  const { app } = inbox;
  const { groups, more } = doc.grouped(inbox.order, inbox.rows, inbox.filter, inbox.only);
  return html`
    ${inbox.only ? onlyBar(inbox, groups) : filterBar(inbox)}
    <ol id="list" aria-label="What waits for a person">
      ${repeat(groups, (g) => g.name, (g) => groupPart(inbox, g))}
    </ol>
    ${bulkPart(inbox)}
    ${more > 0
      ? html`<p class="note" id="more">… and ${more.toLocaleString("en")} more: narrow the filter</p>`
      : nothing}
    ${groups.length === 0 ? emptyPart(inbox) : nothing}
    ${inbox.only ? nothing : decidedPart(inbox)}`;
}

function bulkPart(inbox) {
  const rows = inbox.chosen();
  if (rows.length === 0) return nothing;
  const why = inbox.bulkBlocked(rows);
  const row = inbox.row();
  const answer = why || !row ? "…" : doc.said(doc.answersOf(row.blocker.questions, inbox.draft(row.version).answers));
  return html`<div id="bulk" role="region" aria-label="Selected rows">
    <b>${rows.length} selected</b>
    <button class="main" ?disabled=${why !== ""} @click=${() => inbox.submitAll()}>
      Answer ${rows.length} with “${answer}” <kbd>b</kbd></button>
    <button @click=${() => {
      inbox.selected.clear();
      inbox.app.draw();
    }}>clear</button>
    <span class="why">${why}</span></div>`;
}

function filterBar(inbox) {
  return html`<div class="bar find">
    <label>Filter <input id="filter" type="search" autocomplete="off" placeholder="agent, tool, words of a question"
      .value=${inbox.filter} @input=${(e) => {
        inbox.filter = e.target.value;
        inbox.app.draw();
      }}></label>
    <button class="come" ?disabled=${inbox.held === 0} @click=${() => inbox.refresh()}>
      ${inbox.held.toLocaleString("en")} new: show <kbd>r</kbd></button>
  </div>`;
}

function onlyBar(inbox, groups) {
  return html`<div class="bar"><a href="#/">all that waits</a>
    ${groups.length === 0 && inbox.app.bucket.loaded ? gonePart(inbox) : nothing}</div>`;
}

// gonePart says what is known about a prompt of a link that is not in the people's view.
function gonePart(inbox) {
  const { harness, session, prompt } = inbox.only;
  const { value, error } = inbox.asked.get(JSON.stringify(inbox.only));
  const what = nameOf(`${harness}/${session} ${prompt}`);
  if (value) {
    return html`<p class="note" id="gone">${what} no longer waits: ${doc.became(value, inbox.app.now())}.</p>`;
  }
  return html`<p class="note" id="gone">${what} does not wait${error ? html` (${visible(error)})` : nothing}.</p>`;
}

function emptyPart(inbox) {
  if (inbox.only) return nothing;
  if (!inbox.app.bucket.loaded) return html`<p class="note">Reading what waits …</p>`;
  if (inbox.filter && inbox.waiting > 0) return html`<p class="note">No row has these words.</p>`;
  return html`<p class="note" id="empty">Nothing waits for you.</p>`;
}

function groupPart(inbox, group) {
  const { app } = inbox;
  const { value } = app.documents.get(JSON.stringify([group.harness, group.root]));
  const late = (inbox.late.get(group.name) ?? []).filter((row) => !inbox.only && doc.matches(row, inbox.filter));
  const waiting = group.rows.filter((row) => row.waits).length + late.length;
  return html`<li class="group">
    <h2><a href=${doc.sessionLink(group.harness, group.root)}>${nameOf(group.name)}</a>
      ${value?.title ? html`<span class="title">${line(value.title)}</span>` : nothing}
      <span class="count">${waiting > 0 ? `${waiting} waiting` : "decided"}</span></h2>
    <ol>${repeat(group.rows, (row) => row.key, (row) => rowPart(inbox, row))}</ol>
  </li>`;
}

function rowPart(inbox, row) {
  const open = inbox.current === row.key;
  const below = inbox.below.get(row.key) ?? [];
  const asks = open && inbox.asks(row);
  return html`<li class="row ${row.waits ? "waits" : "decided"} ${open ? "open" : ""} ${
    inbox.selected.has(row.version) ? "selected" : ""}" data-key=${row.key}>
    <button class="head" aria-expanded=${open} @click=${() => inbox.open(open ? undefined : row.key)}>
      <span class="kind">${visible(row.kind)}</span>
      ${row.blocker.tool?.name ? html`<span class="tool">${line(row.blocker.tool.name, 40)}</span>` : nothing}
      ${row.session === row.root ? nothing : html`<span class="asker">in ${line(row.session, 40)}</span>`}
      ${whatPart(inbox, row, below, asks)}
      <span class="age">${row.waits ? doc.age(row, inbox.app.now())
        : row.lost ? "gone" : visible(row.blocker.status)}</span>
    </button>
    ${asks ? nothing : below.map((name) => html`<p class="below">${linePart(inbox, row, name)}</p>`)}
    ${open ? formPart(inbox, row, asks) : nothing}
  </li>`;
}

// whatPart is the title of a row. A name without a line of its own is written over it, so that no row below moves.
function whatPart(inbox, row, below, asks) {
  const names = asks ? (row.waits ? [] : ["became"]) : ["sending", ...inbox.lines(row)];
  const parts = names.filter((name) => !below.includes(name)).map((name) => linePart(inbox, row, name))
    .filter((part) => part !== nothing);
  if (parts.length === 0) return html`<span class="what">${row.title}</span>`;
  return html`<span class="what"><span class="under">${row.title}</span>
    <span class="over">${parts.map((part) => html`${part} · `)}${row.title}</span></span>`;
}

// linePart is one line about a row: what became of it, what the service replied, or that a request is on its way.
function linePart(inbox, row, name) {
  if (name === "became") {
    return row.waits ? nothing : html`<span class="became">${becameOf(inbox, row)}</span>`;
  }
  if (name === "sending") return inbox.sending.has(row.key) ? html`<span class="note">sending …</span>` : nothing;
  const said = inbox.verdicts.get(row.key);
  return said ? html`<span class="verdict ${said.kind}">${said.text}</span>` : nothing;
}

// becameOf says what became of a row that no longer waits. One that went while it waited has its end in the log.
function becameOf(inbox, row) {
  if (!row.lost) return doc.became(row.blocker, inbox.app.now());
  const { value, error } = inbox.ends.get(row.version);
  if (error) return `it no longer waits: ${visible(error)}`;
  return value ? doc.became(value, inbox.app.now()) : "it no longer waits";
}

function formPart(inbox, row, asks) {
  const { app } = inbox;
  const b = row.blocker;
  const draft = inbox.draft(row.version);
  const path = doc.pathOf(row, (h, s) => app.documents.get(JSON.stringify([h, s])).value);
  const asker = path.map((id) => nameOf(id)).join(" ▸ ");
  const facts = doc.notes(row, app.now());
  return html`<div class="form">
    <p class="about">asked by <a href=${doc.sessionLink(row.harness, row.session)}>${asker}</a>
      at ${clock(row.armed, app.now())} · <a href=${doc.linkOf(row)}>link</a></p>
    ${facts.length > 0 ? html`<ul class="facts">${facts.map((f) => html`<li>${f}</li>`)}</ul>` : nothing}
    ${b.title && b.title !== b.questions?.[0]?.question ? html`<p class="full">${visible(b.title)}</p>` : nothing}
    ${row.kind === "permission" || row.kind === "plan" ? inputPart(inbox, row) : nothing}
    ${asks
      ? html`${(b.questions ?? []).map((q) => questionPart(inbox, row, q, draft))}
        ${buttonPart(inbox, row, draft)}
        <p class="below" role="status">${linePart(inbox, row, "sending")}${linePart(inbox, row, "verdict")}</p>`
      : nothing}
  </div>`;
}

// inputPart shows the whole input of a permission, or the text of a plan.
function inputPart(inbox, row) {
  const { value, error } = inbox.inputs.get(row.version);
  if (error) {
    return html`<p class="verdict refused">The input cannot be read: ${visible(error)}
      <button @click=${() => {
        inbox.inputs.forget(row.version);
        inbox.app.draw();
      }}>try again</button></p>`;
  }
  if (!value) return html`<p class="note">reading the whole input …</p>`;
  return html`<div class="input" tabindex="0" role="region" aria-label="whole input" data-version=${row.version}
    @scroll=${(e) => inbox.drewInput(e.currentTarget)}>
    ${value.length === 0 ? html`<p class="note">The agent stated no input.</p>` : nothing}
    ${value.map((part) => html`<h3>${visible(part.from)}</h3>
      <dl>${fields(part.value).map((f) =>
        html`${f.name ? html`<dt>${f.name}</dt>` : nothing}<dd>${f.text}</dd>`)}</dl>`)}
  </div>`;
}

function questionPart(inbox, row, question, draft) {
  const chosen = draft.answers[question.id] ?? {};
  const wrong = inbox.verdicts.get(row.key)?.questions?.[question.id];
  const change = (next) => {
    draft.answers[question.id] = next;
    draft.refusing = false;
    inbox.app.draw();
  };
  const several = row.blocker.questions.length > 1;
  const current = inbox.question(row) === question;
  return html`<fieldset class="${wrong ? "wrong" : ""} ${several && !current ? "later" : ""}"
    aria-current=${several && current ? "true" : nothing} @focusin=${() => inbox.at(row, question)}>
    <legend>${question.header ? html`<span class="header">${visible(question.header)}</span> ` : nothing}
      <span class="full">${visible(question.question)}</span></legend>
    ${(question.options ?? []).map((o, i) => html`<label class="option">
      <input type=${question.multi ? "checkbox" : "radio"} name=${`${row.key} ${question.id}`}
        .checked=${(chosen.selected ?? []).includes(o.label)}
        @change=${() => change(doc.choose(question, chosen, o.label))}>
      <kbd>${i < 9 ? i + 1 : ""}</kbd> <span>${visible(o.label)}</span>
      ${o.description ? html`<span class="description">${visible(o.description)}</span>` : nothing}</label>`)}
    ${doc.freeText(question)
      ? html`<label class="own">${(question.options ?? []).length > 0 ? "or in your words" : "your answer"}
          <input type="text" autocomplete="off" .value=${chosen.text ?? ""}
            @input=${(e) => change(doc.write(question, chosen, e.target.value))}></label>`
      : nothing}
    ${wrong ? html`<p class="verdict refused" role="alert">${visible(wrong)}</p>` : nothing}
  </fieldset>`;
}

function buttonPart(inbox, row, draft) {
  const dead = inbox.dead(row);
  if (draft.refusing) {
    return html`<label class="own">why not (the agent reads it)
        <textarea rows="2" class="reason" .value=${draft.reason} @input=${(e) => {
          draft.reason = e.target.value;
        }}></textarea></label>
      <p class="buttons"><button class="main" ?disabled=${dead} @click=${() => inbox.submit(row)}>Send no
        <kbd>enter</kbd></button>
        <button @click=${() => inbox.refuse(row)}>back</button></p>`;
  }
  const why = inbox.blocked(row);
  return html`<p class="buttons">
    <button class="main" ?disabled=${why !== ""} @click=${() => inbox.submit(row)}>Answer <kbd>enter</kbd></button>
    <button ?disabled=${dead} @click=${() => inbox.refuse(row)}>No … <kbd>n</kbd></button>
    <button ?disabled=${dead} title="close it without an answer"
      @click=${() => inbox.send(row, "dismiss", {})}>Dismiss</button>
    <button ?disabled=${!row.waits} aria-pressed=${inbox.selected.has(row.version)}
      @click=${() => inbox.select(row)}>Select <kbd>x</kbd></button>
    <span class="why">${why}</span></p>`;
}

function decidedPart(inbox) {
  const { app } = inbox;
  const listed = new Set(inbox.order);
  const rows = [...app.bucket.rows.values()].filter((row) => !row.waits && !listed.has(row.key))
    .sort((a, b) => (a.blocker.closed_at < b.blocker.closed_at ? 1 : -1)).slice(0, decidedMax);
  if (rows.length === 0) return nothing;
  return html`<details id="decided"><summary>decided in the last minutes: ${rows.length}</summary>
    <ul>${rows.map((row) => html`<li><a href=${doc.linkOf(row)}>${row.title}</a>
      <span class="became">${nameOf(row.group)} · ${doc.became(row.blocker, app.now())}</span></li>`)}</ul>
  </details>`;
}
