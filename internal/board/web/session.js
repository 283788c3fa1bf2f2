// The page of one session: what it does and why, its queue and retry, its log, and what a person can ask for.

import { createInbox } from "./vendor/nats-core.js";
import { html, nothing, repeat } from "./vendor/lit-html.js";
import { Bucket } from "./bucket.js";
import { Commits } from "./commits.js";
import { Family } from "./family.js";
import { linkOf, sessionLink, verdict } from "./doc.js";
import * as history from "./history.js";
import { Lookups, readCommit } from "./log.js";
import { readObject, referred } from "./objects.js";
import { changedPolicy, edited, kept, pending, policyForm, settings, stored } from "./policy.js";
import { ago, clock, fields, line, token, visible } from "./text.js";

const linesDrawn = 200; // lines of the timeline that are drawn
const askAgain = 300; // ms until the ledger is asked again for a document of the past

// Session watches one session for as long as its page is open.
export class Session {
  constructor(app, { harness, session }) {
    Object.assign(this, { app, harness, session });
    const key = `session.${token(harness)}.${token(session)}`;
    this.bucket = new Bucket(app.net, `${app.cell.prefix}_state`, key, (_, doc) => doc, () => this.#changed());
    this.key = key;
    this.commits = new Commits(app.net, { harness, session }, (seq) => this.documentAt(seq));
    this.text = "";
    this.end = undefined; // the line behind the newest one that is drawn; undefined follows the log
    this.open = new Set(); // lines of the timeline that show their event
    this.ends = new Lookups((seq) => readCommit(app.net, seq), () => app.draw(), 100); // of the calls of two documents
    this.messages = new Lookups((seq) => readCommit(app.net, seq), () => app.draw());
    this.objects = new Lookups(async (name) => history.stored(await readObject(app.net, name)), () => app.draw(), 20);
    this.draft = {}; // of the policy: what a person has written
    this.past = {}; // of the time travel: {at, to, documents, error}
    this.pointed = {}; // commits that its sliders are moved over: {at, to}, among all of them
  }

  start() {
    this.bucket.run();
  }

  close() {
    this.closed = true;
    this.bucket.close();
    this.family?.close();
  }

  // doc returns the document, undefined before it is read and if it does not exist.
  doc() {
    return this.bucket.rows.get(this.key);
  }

  live() {
    return !this.app.failed && Boolean(this.bucket.live());
  }

  #changed() {
    const doc = this.doc();
    if (this.begun !== this.bucket.generation) this.family?.bucket.restart(); // both watch the same connection
    this.begun = this.bucket.generation;
    if (doc && !this.closed) {
      this.family ??= new Family(this.app,
        { harness: this.harness, root: doc.root || this.session, session: this.session },
        () => this.app.draw());
    }
    if (doc) this.draft = pending(this.draft, doc.seq);
    if (doc) this.commits.remember(doc);
    if (doc && this.commits.seq() < doc.seq) this.#read();
    else if (doc) this.#judge();
    this.app.draw();
  }

  // #read reads the commits that are new. It reads again when the session has changed meanwhile, but not when the log
  // has no commit that the document is made of: then the next change of the document begins it again.
  async #read() {
    if (this.reading || this.closed) return;
    this.reading = true;
    let found = 0;
    try {
      found = await this.commits.read(() => !this.closed);
      this.error = "";
      this.check = undefined;
    } catch (err) {
      this.error = String(err?.message ?? err);
    }
    this.reading = false;
    this.commits.draw();
    if (this.closed) return;
    const last = this.commits.seq();
    const behind = last < (this.doc()?.seq ?? 0);
    if (behind && !this.error && found === 0) {
      this.error = `the log ends at place ${last}, behind the document, which is at place ${this.doc().seq}`;
    }
    if (behind && !this.error) this.#read();
    else {
      this.#judge();
      this.#ask();
    }
    this.app.draw();
  }

  #judge() {
    this.commits.judge(() => this.#load());
  }

  // shown returns the lines of the timeline that are drawn, {begin, end} among all of them.
  shown() {
    const end = Math.min(this.end ?? Infinity, this.commits.lines.length);
    return { begin: Math.max(0, end - linesDrawn), end };
  }

  // turn draws the lines that end before a place among all of them.
  turn(end) {
    this.end = end >= this.commits.lines.length ? undefined : Math.max(end, linesDrawn);
    return this.#load();
  }

  // #load reads the commits whose lines are drawn and that are not kept whole.
  async #load() {
    const { begin, end } = this.shown();
    try {
      await this.commits.load(this.commits.lines.slice(begin, end));
    } catch (err) {
      this.error = String(err?.message ?? err);
    }
    this.app.draw();
  }

  // show opens a line, and brings it onto the screen.
  async show(key) {
    this.open.add(key);
    const at = this.commits.lines.findIndex((l) => l.key === key);
    const { begin, end } = this.shown();
    await (at < begin || at >= end ? this.turn(at + linesDrawn / 2) : this.#load());
    requestAnimationFrame(() => document.getElementById(`line-${key}`)?.scrollIntoView({ block: "center" }));
  }

  // documentAt returns the document as it was at a place of the log. It asks for one after the other, as the ledger
  // folds one past document at a time for each person, and again while the ledger is busy.
  documentAt(seq) {
    const read = async () => {
      for (let attempt = 0; ; attempt++) {
        if (this.closed) throw new Error("the page is closed");
        const { harness, session, app } = this;
        const reply = await app.net.ask("ledger", "get", { harness, session, at: seq, by: app.person() });
        if (reply.code === 200) return reply.body.document;
        if (reply.code !== 503 || attempt === 10) throw new Error(verdict(reply, app.now()).text);
        await new Promise((done) => setTimeout(done, askAgain));
      }
    };
    const next = (this.documents ?? Promise.resolve()).then(read, read);
    this.documents = next;
    return next;
  }

  // #ask reads what only a service knows: whether a compaction is due.
  async #ask() {
    const doc = this.doc();
    if (!doc || this.asking) return;
    this.asking = true;
    const { net } = this.app;
    const check = await net.ask("compaction", "check", { harness: this.harness, session: this.session });
    if (check.code === 200) this.check = check.body;
    this.asking = false;
    this.app.draw();
  }

  // request asks a service for something about this session, and shows what it replied. It returns the reply, undefined
  // when nothing was sent.
  async request(service, verb, body, what) {
    if (!this.live() || this.busy) return undefined;
    this.busy = true;
    this.verdict = undefined;
    this.app.draw();
    const { harness, session } = this;
    const had = this.doc()?.seq ?? 0;
    const reply = await this.app.net.ask(service, verb, { harness, session, by: this.app.person(), ...body });
    this.busy = false;
    const said = verdict(reply, this.app.now());
    // A reply that names a place from before the request has stored nothing. A message sent again is stored there.
    const nothingDone = verb !== "send" && said.kind === "done" && reply.body?.seq <= had;
    if (nothingDone) said.text = "nothing to do, it was so already";
    this.verdict = { ...said, text: `${what}: ${said.text}` };
    this.app.draw();
    return reply;
  }

  // send sends the message of the form. Its id is kept until the service has replied, so that a message whose reply was
  // lost is not stored twice.
  async send() {
    if (this.text.trim() === "") return;
    this.message ??= createInbox("m").slice(2);
    const sent = this.text;
    const reply = await this.request("compaction", "send", { message: this.message, content: sent }, "send");
    if (!reply?.code || this.text !== sent) return; // what was written meanwhile is another message
    this.message = undefined;
    if (reply.code === 200) this.text = "";
    this.app.draw();
  }

  // configure sends what the form of the policy changes. A text stays in the form until the document has it.
  async configure() {
    const doc = this.doc();
    const sent = this.draft;
    const patch = doc && changedPolicy(doc.policy, sent);
    if (!patch) return;
    const reply = await this.request("ledger", "configure", { policy: patch }, "change the policy");
    if (!reply) return;
    this.misfit = reply.code === 200 ? undefined : reply.body;
    if (reply.code === 200) this.draft = stored(this.draft, sent, patch, reply.body.seq ?? 0);
    this.#changed(); // the document may have it already
  }

  // travel reads the document as it was at a place of the log, and at a second one; 0 is now. It reads
  // again what could not be read before.
  async travel(at, to) {
    this.past = { at, to, loading: true };
    this.ends.forget();
    this.app.draw();
    const past = { at, to };
    try {
      past.before = await this.documentAt(at);
      past.after = to ? await this.documentAt(to) : undefined;
    } catch (err) {
      past.error = String(err?.message ?? err);
    }
    if (this.past.at === at && this.past.to === to) this.past = past;
    this.app.draw();
  }
}

// sessionPage draws the page.
export function sessionPage(page) {
  const doc = page.doc();
  const name = visible(`${page.harness}/${page.session}`);
  if (!doc) {
    return html`<h2>${name}</h2><p class="note" id="nosession">
      ${page.bucket.loaded ? "There is no such session." : "Reading the session …"}</p>`;
  }
  return html`<article class="session">
    ${headPart(page, doc, name)}
    ${page.verdict ? html`<p class="verdict ${page.verdict.kind}" role="status">${page.verdict.text}</p>` : nothing}
    ${promptPart(doc)} ${retryPart(page, doc)} ${queuePart(page, doc)} ${actPart(page, doc)}
    ${familyPart(page)} ${policyPart(page, doc)} ${pastPart(page)} ${timelinePart(page)}
  </article>`;
}

function headPart(page, doc, name) {
  const now = page.app.now();
  const cause = history.causeOf(doc, page.commits.lines);
  const parent = doc.parent ? html` · sub-agent of <a href=${sessionLink(page.harness, doc.parent)}>${
    visible(doc.parent)}</a>` : nothing;
  return html`<h2>${name} ${doc.title ? html`<span class="title">${line(doc.title)}</span>` : nothing}</h2>
    <dl class="facts-of">
      <dt>phase</dt><dd><b id="phase">${visible(doc.phase)}</b>${cause
        ? html` <a href="#" class="cause" @click=${(e) => {
          e.preventDefault();
          page.show(cause.key);
        }}>because of ${cause.kind} ${cause.seq} by ${cause.author}</a>`
        : nothing}</dd>
      <dt>owner</dt><dd>${history.ownerOf(doc)}${parent}</dd>
      ${doc.agent || doc.model
        ? html`<dt>agent</dt><dd>${visible([doc.agent, doc.model].filter(Boolean).join(" · "))}</dd>`
        : nothing}
      ${doc.turn
        ? html`<dt>turn</dt><dd>${visible(doc.turn.id)}, ${visible(doc.turn.cause)},
          attempt ${doc.turn.attempt}, since ${ago(doc.turn.since, now)}</dd>`
        : nothing}
      ${Object.entries(doc.tools ?? {}).map(([id, t]) => html`<dt>call</dt><dd>${line(t.name, 60)} ${line(t.title, 100)}
        <span class="soft">${visible(id)}, ${ago(t.since, now)}</span></dd>`)}
      <dt>usage</dt><dd>${usagePart(doc)} ${checkPart(page)}</dd>
      <dt>changed</dt><dd>${ago(doc.updated_at, now)} ago, at place ${doc.seq}</dd>
    </dl>`;
}

function usagePart(doc) {
  const u = doc.usage ?? {};
  if (!u.limit) return html`${u.used ? `${u.used.toLocaleString("en")} tokens` : "not reported"}`;
  const from = Math.round((doc.policy?.compaction_threshold ?? 0.7) * 100);
  return html`<meter min="0" max="100" high=${from} value=${u.percent} aria-label="context used"></meter>
    ${u.used.toLocaleString("en")} of ${u.limit.toLocaleString("en")} tokens, ${Math.round(u.percent)} %${u.warn
      ? html`, <b>near the threshold of ${from} %</b>`
      : nothing}`;
}

function checkPart(page) {
  const c = page.check;
  if (!c) return nothing;
  return html`<span class="soft">· would be compacted: ${c.would ? "yes" : "no"}, ${visible(c.reason)}</span>`;
}

function promptPart(doc) {
  const waiting = Object.entries(doc.prompts ?? {}).filter(([, p]) => p.status === "awaiting");
  if (waiting.length === 0) return nothing;
  return html`<p class="waits">waits for a person: ${waiting.map(([id, p], i) => html`${i > 0 ? ", " : ""}<a
    href=${linkOf({ harness: doc.harness, session: doc.session, prompt: id })}>${visible(p.kind)} ${
      visible(id)}</a>`)}</p>`;
}

function retryPart(page, doc) {
  const retry = history.retryOf(doc, page.app.now());
  if (!retry) return nothing;
  const dead = !page.live() || page.busy;
  return html`<section aria-label="Retry"><p id="retry"><b>${retry.text}</b> ${retry.at ? `at ${retry.at}` : ""}
    <span class="soft">${retry.why}</span></p>
    ${retry.starts ? nothing : html`<p class="buttons">
    <button ?disabled=${dead} @click=${() => page.request("retry", "now", {}, "retry now")}>Retry now</button>
    ${retry.planned
      ? html`<button ?disabled=${dead}
        @click=${() => page.request("retry", "cancel", {}, "cancel the retry")}>Cancel the retry</button>`
      : nothing}</p>`}</section>`;
}

// queuePart has the button of each message at the right edge, where nothing that is read later moves it. It is off
// until the message was read: a person withdraws what is on the screen.
function queuePart(page, doc) {
  const queue = doc.queue ?? [];
  if (queue.length === 0) return nothing;
  const held = doc.held_seq ? ", held until a person acts" : "";
  return html`<section aria-label="Queue"><h3>queue ${queue.length}${held}</h3>
    <ol id="queue">${repeat(queue, (m) => m.message, (m) => {
      const { value, error } = page.messages.get(m.seq);
      const said = value?.events.find((e) => e?.data?.message === m.message);
      const ref = referred(said);
      const text = said ? history.contentOf(said.data.content) || said.data.ref : m.message;
      const dead = !page.live() || page.busy || (!value && !error);
      return html`<li><button class="side" ?disabled=${dead} @click=${() =>
          page.request("compaction", "withdraw", { message: m.message }, "withdraw")}>Withdraw</button>
        ${ref ? objectPart(page, ref) : html`<span class="full">${visible(text)}</span>`}
        <span class="soft">${visible(m.message)}, ${ago(m.at, page.app.now())}${
          !value && !error ? ", reading it …" : ""}</span>
        ${error ? html`<span class="verdict refused">The message cannot be read: ${visible(error)}</span>` : nothing}
      </li>`;
    })}</ol></section>`;
}

// objectPart is content that an event refers to. It is read when a person asks for it, with the rights of that person.
function objectPart(page, name) {
  const show = (on) => () => {
    if (on) page.open.add(name);
    else page.open.delete(name);
    if (page.objects.get(name).error) page.objects.forget(name);
    page.app.draw();
  };
  if (!page.open.has(name)) {
    return html`<span class="soft">a long text, stored as an object</span>
      <button @click=${show(true)}>Show it</button>`;
  }
  const { value, error } = page.objects.get(name);
  if (error) {
    return html`<span class="verdict refused">The object cannot be read: ${visible(error)}</span>
      <button @click=${show(true)}>Try again</button>`;
  }
  return value === undefined
    ? html`<span class="soft">reading the object …</span>`
    : html`<span class="full object">${value}</span> <button @click=${show(false)}>Hide it</button>`;
}

function actPart(page, doc) {
  if (doc.phase === "closed") return nothing;
  const dead = !page.live() || page.busy;
  const act = (label, service, verb, body) => html`<button ?disabled=${dead}
    @click=${() => page.request(service, verb, body, label.toLowerCase())}>${label}</button>`;
  return html`<section aria-label="Ask for">
    <label class="own">message
      <textarea id="message" rows="2" .value=${page.text} @input=${(e) => {
        page.text = e.target.value;
        page.message = undefined;
      }}></textarea></label>
    <p class="buttons">
      <button class="main" ?disabled=${dead} @click=${() => page.send()}>Send</button>
      ${act("Stop", "ledger", "stop", {})}
      ${doc.phase === "waiting" ? act("Stop although it waits", "ledger", "stop", { force: true }) : nothing}
      ${doc.phase === "interrupted" ? act("Resume", "retry", "resume", {}) : nothing}
      ${act("Compact", "compaction", "compact", {})}
    </p></section>`;
}

function familyPart(page) {
  const list = page.family?.list() ?? [];
  if (list.length < 2) return nothing;
  return html`<section aria-label="Sessions of this root"><h3>sessions of this root</h3>
    <ul class="tree">${list.map(({ depth, document: d }) => html`<li>${"– ".repeat(depth)}
      ${d.session === page.session
      ? html`<b>${visible(d.session)}</b>`
      : html`<a href=${sessionLink(d.harness, d.session)}>${visible(d.session)}</a>`}
      ${line(d.title, 80)} <span class="soft">${visible(d.phase)}</span></li>`)}</ul>
    ${page.family.next
      ? html`<p class="buttons"><button ?disabled=${!page.family.live()}
          @click=${() => page.family.more()}>Show more</button>
        <span class="soft">${list.length.toLocaleString("en")} are shown, and this root has more</span></p>`
      : nothing}
    ${page.family.live() ? nothing : html`<p class="note">reading them again … ${visible(page.family.error)}</p>`}
    </section>`;
}

// policyPart is the policy, and the form that changes it.
function policyPart(page, doc) {
  if (doc.phase === "closed") {
    return html`<details id="policy"><summary>policy</summary><dl class="facts-of">${fields(doc.policy).map((f) =>
      html`<dt>${f.name}</dt><dd>${f.text}</dd>`)}</dl></details>`;
  }
  const rows = policyForm(doc.policy, page.draft);
  const others = fields(doc.policy).filter((f) => !settings.some((s) => s.name === f.name));
  const overtaken = rows.filter((r) => r.overtaken);
  const dead = !page.live() || page.busy;
  return html`<details id="policy"><summary>policy</summary>
    ${rows.map((r) => settingPart(page, doc, r))}
    <dl class="facts-of">${others.map((f) => html`<dt>${f.name}</dt><dd>${f.text}</dd>`)}</dl>
    ${overtaken.length > 0
      ? html`<p class="verdict refused" role="alert">Changed by another person meanwhile: ${overtaken.map((r) => r.name)
        .join(", ")}. <button @click=${() => {
        page.draft = kept(page.draft, doc.policy);
        page.app.draw();
      }}>Keep what I wrote</button></p>`
      : nothing}
    <p class="buttons">
      <button class="main" ?disabled=${dead || !changedPolicy(doc.policy, page.draft)}
        @click=${() => page.configure()}>Change the policy</button>
      <button ?disabled=${Object.keys(page.draft).length === 0} @click=${() => {
        page.draft = {};
        page.misfit = undefined;
        page.app.draw();
      }}>Take back</button>
      ${doc.retry?.state === "abandoned"
        ? html`<button ?disabled=${dead} @click=${() => page.request("ledger", "configure", { provider_changed: true },
          "the provider was changed")}>The key or account was changed: retry</button>`
        : nothing}</p></details>`;
}

// settingPart is one field of the form. The value in the document is beside it while the text is another one.
function settingPart(page, doc, row) {
  const change = (e) => {
    page.draft = edited(page.draft, doc.policy, row.name, e.target.value);
    if (page.misfit?.field === `policy.${row.name}`) page.misfit = undefined; // it was about another text
    page.app.draw();
  };
  const wrong = row.wrong || (page.misfit?.field === `policy.${row.name}` && row.changed ? page.misfit.reason : "");
  const says = row.stored ? "stored, not in the document yet" : row.changed ? `now ${row.now}` : "";
  return html`<label class="setting ${row.changed ? "changed" : ""}"><b>${row.name}</b>
    ${row.choices
      ? html`<select name=${row.name} @change=${change}>${row.choices.map((c) => html`<option value=${c}
        .selected=${c === row.text}>${c}</option>`)}</select>`
      : html`<input type="text" inputmode="decimal" autocomplete="off" name=${row.name} placeholder=${row.normal}
        .value=${row.text} @input=${change}>`}
    <span class="soft">${row.what}</span> <span class="why">${visible(says)}</span>
    ${wrong ? html`<span class="verdict refused" role="alert">${visible(wrong)}</span>` : nothing}</label>`;
}

// pastPart is the time travel: the fields in which the document was different at another place of the log.
function pastPart(page) {
  const { past } = page;
  const commits = page.commits.list;
  if (commits.length < 2) return nothing;
  return html`<details id="past" ?open=${Boolean(past.at)}><summary>as it was</summary>
    ${sliderPart(page, "at", commits.length - 1, (i) => page.travel(commits[i].seq, past.to))}
    ${sliderPart(page, "to", commits.length, (i) => page.travel(past.at ?? commits[0].seq, commits[i]?.seq ?? 0))}
    ${past.loading ? html`<p class="note">reading …</p>` : nothing}
    ${past.error ? html`<p class="verdict refused">${visible(past.error)}</p>` : nothing}
    ${past.before ? differencePart(page, past.before, past.after ?? page.doc()) : nothing}</details>`;
}

// sliderPart is the slider of one place of the comparison, at or to. It says which commit it is at, also while it is
// moved. Behind the newest commit is now.
function sliderPart(page, name, max, go) {
  const commits = page.commits.list;
  const known = commits.findIndex((c) => c.seq === page.past[name]);
  const i = page.pointed[name] ?? (known < 0 ? max : known);
  const c = commits[i];
  const where = c
    ? `place ${c.seq}, ${clock(c.at, page.app.now())}${c.events[0] ? `, ${visible(history.kindOf(c.events[0]))}` : ""}`
    : "now";
  return html`<label class="own">${name === "at" ? "at" : "compared with"} <output name=${name}>${where}</output>
    <input type="range" min="0" max=${max} .value=${String(i)}
      @input=${(e) => {
        page.pointed = { [name]: Number(e.target.value) };
        page.app.draw();
      }}
      @change=${(e) => {
        page.pointed = {};
        go(Number(e.target.value));
      }}></label>`;
}

// differencePart compares two documents as people see them, with the outcome "unknown".
function differencePart(page, ...documents) {
  const shown = documents.map((d) => history.withUnknown(d, (seq) => page.ends.get(seq)));
  if (shown.some((s) => s.reading)) return html`<p class="note">reading …</p>`;
  const [before, after] = shown.map((s) => s.document);
  const errors = [...new Set(shown.flatMap((s) => s.errors))];
  return html`${errors.map((e) => html`<p class="verdict unknown">its outcome may be unknown: ${e}</p>`)}
    ${comparisonPart(before, after, page.past.to)}`;
}

function comparisonPart(before, after, to) {
  const list = history.differences(before, after);
  if (list.length === 0) return html`<p class="note">no difference</p>`;
  const head = (what) => html`<thead><tr><th>${what}</th><th>at ${before.seq}: ${visible(before.phase)}</th>
    <th>${to ? `at ${after.seq}` : "now"}: ${visible(after.phase)}</th></tr></thead>`;
  return html`<table id="compared">${head("what")}<tbody>${history.compared(before, after).map((d) =>
    html`<tr><th>${d.what} <span class="soft">${d.name}</span></th><td>${d.from}</td><td>${d.to}</td></tr>`)}</tbody>
    </table>
    <details><summary>all fields (${list.length})</summary><table id="differences">${head("field")}
    <tbody>${list.map((d) => html`<tr><th>${d.path}</th><td>${d.from}</td><td>${d.to}</td></tr>`)}</tbody></table>
    </details>`;
}

function timelinePart(page) {
  const { begin, end } = page.shown();
  const shown = page.commits.lines.slice(begin, end).reverse();
  const now = page.app.now();
  return html`<section aria-label="Log"><h3>log, newest first</h3>
    ${page.error ? html`<p class="verdict refused">The log cannot be read: ${visible(page.error)}</p>` : nothing}
    ${page.end === undefined
      ? nothing
      : html`<p class="buttons"><button @click=${() => page.turn(Infinity)}>Newest events</button></p>`}
    <ol id="timeline">${repeat(shown, (l) => l.key, (l) => html`<li id=${`line-${l.key}`}>
      <button class="line" aria-expanded=${page.open.has(l.key)} @click=${() => {
        if (!page.open.delete(l.key)) page.open.add(l.key);
        page.app.draw();
      }}><span class="age">${clock(l.at, now)}</span> <span class="seq">${l.seq}</span>
        <span class="event">${visible(l.kind)}</span> <span class="author">${l.author}</span>
        <span class="what">${l.text}</span>
        ${l.note ? html`<span class="uncounted why">did not count: ${l.note}</span>` : nothing}</button>
      ${page.open.has(l.key) ? html`<dl class="facts-of">${fields(l.event.data).map((f) =>
        html`<dt>${f.name}</dt><dd class="full">${f.text}</dd>`)}
        ${referred(l.event) ? html`<dt>content</dt><dd>${objectPart(page, referred(l.event))}</dd>` : nothing}
        <dt>id</dt><dd>${visible(l.event.id)}</dd><dt>source</dt><dd>${visible(l.event.source)}</dd></dl>` : nothing}
    </li>`)}</ol>
    ${page.commits.error
      ? html`<p class="note">Which of the older events counted was not read: ${visible(page.commits.error)}.</p>`
      : nothing}
    ${begin > 0
      ? html`<p class="buttons"><button @click=${() => page.turn(begin)}>Older events</button>
        <span class="soft">${begin.toLocaleString("en")} more</span></p>`
      : nothing}</section>`;
}
