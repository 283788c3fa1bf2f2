// The list of all sessions.

import { html, nothing, repeat } from "./vendor/lit-html.js";
import { Bucket } from "./bucket.js";
import { drawnMax, sessionLink } from "./doc.js";
import { ago, line, name, visible } from "./text.js";

// phases in the order of the list: what needs a person first, what is over last.
const order = ["waiting", "interrupted", "retrying", "compacting", "running", "queued", "idle", "closed"];

// entryOf keeps of a document what the list shows, so that many sessions take little memory.
export function entryOf(key, doc) {
  const { harness, session, root, title, phase, owned, incarnation, updated_at, queue, usage } = doc;
  return { key, harness, session, root: root || session, title: title ?? "", phase, owned, incarnation,
    updated: updated_at, queued: queue?.length ?? 0, percent: usage?.percent ?? 0 };
}

// listed returns the entries to draw: by phase, the newest change first; those with all words of a filter.
export function listed(entries, filter) {
  const words = filter.toLowerCase().split(/\s+/).filter(Boolean);
  return [...entries]
    .filter((e) => {
      const text = `${e.harness}/${e.session} ${e.title} ${e.phase}`.toLowerCase();
      return words.every((word) => text.includes(word));
    })
    .sort((a, b) => order.indexOf(a.phase) - order.indexOf(b.phase) || (a.updated < b.updated ? 1 : -1));
}

// Sessions watches all documents for as long as its page is open.
export class Sessions {
  constructor(app) {
    this.app = app;
    this.filter = "";
    this.bucket = new Bucket(app.net, `${app.cell.prefix}_state`, "session.>", entryOf, () => app.draw());
  }

  start() {
    this.bucket.run();
  }

  close() {
    this.bucket.close();
  }
}

// sessionsPage draws the list.
export function sessionsPage(page) {
  const all = listed(page.bucket.rows.values(), page.filter);
  const now = page.app.now();
  return html`<div class="bar"><label>Filter <input id="filter" type="search" autocomplete="off"
      placeholder="name, title, phase" .value=${page.filter} @input=${(e) => {
        page.filter = e.target.value;
        page.app.draw();
      }}></label></div>
    <ol id="sessions" aria-label="Sessions">${repeat(all.slice(0, drawnMax), (e) => e.key, (e) => html`
      <li class="row ${e.phase === "waiting" ? "waits" : ""}"><a class="head" href=${sessionLink(e.harness, e.session)}>
        <span class="kind">${visible(e.phase)}</span> <b>${name(`${e.harness}/${e.session}`)}</b>
        <span class="what">${line(e.title)}</span>
        ${e.queued > 0 ? html`<span class="soft">${e.queued} queued</span>` : nothing}
        ${e.percent > 0 ? html`<span class="soft">${Math.round(e.percent)} %</span>` : nothing}
        <span class="soft">${e.owned ? `#${visible(e.incarnation)}` : "no process"}</span>
        <span class="age">${ago(e.updated, now)}</span></a></li>`)}</ol>
    ${all.length > drawnMax
      ? html`<p class="note">… and ${(all.length - drawnMax).toLocaleString("en")} more: narrow the filter</p>`
      : nothing}
    ${all.length === 0
      ? html`<p class="note">${page.bucket.loaded ? "No session." : "Reading the sessions …"}</p>`
      : nothing}`;
}
