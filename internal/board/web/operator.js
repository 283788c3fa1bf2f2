// The operator's page: services, leases, streams against their limits, parked input, and what a sweep would do. It
// changes nothing.

import { html, nothing } from "./vendor/lit-html.js";
import { Bucket } from "./bucket.js";
import { decode } from "./history.js";
import { verdict } from "./doc.js";
import { ago, clock, duration, instant, line, plural, visible } from "./text.js";

const every = 3_000; // ms between two looks at what has no watch
const statsWait = 1_000; // ms in which services answer
const listedMax = 1_000; // consumers of a stream among which those of a service are looked for
const parkedMax = 20; // messages of parked input that are shown, the newest

// leaseOf returns a row of the table of leases, undefined for a key that is no lease.
export function leaseOf(key, value) {
  const [kind, id, number] = key.split(".");
  if (kind !== "harness" && kind !== "service") return undefined;
  const renewed = instant(value.renewed_at);
  return { kind, id: decode(id), number: decode(number ?? ""), state: value.state ?? "", host: value.host ?? "",
    pid: value.pid ?? "", ends: renewed === undefined ? undefined : renewed + (value.ttl_ms ?? 0) };
}

// consumersOf returns the durable consumers of the services: {stream, name, service}.
export function consumersOf(prefix) {
  const upper = prefix.toUpperCase();
  const list = [{ stream: `${upper}_LOG`, name: "ledger", service: "ledger" }];
  for (const service of ["retry", "compaction", "reconciler"]) {
    list.push({ stream: `KV_${prefix}_state`, name: service, service });
    list.push({ stream: `${upper}_TIMERS`, name: `${service}-due`, service });
  }
  return list;
}

// keyed returns the consumer of a secured cell whose name begins with that of a durable. Of several it is the one that
// a process uses.
export function keyed(consumers, durable) {
  const own = consumers.filter((c) => c.name.startsWith(`${durable}-`) &&
    /^[0-9a-f]{24}$/.test(c.name.slice(durable.length + 1)));
  return own.find((c) => c.priority_groups?.[0]?.pinned_client_id || c.num_waiting > 0) ?? own[0];
}

// Operator reads everything again and again for as long as its page is open.
export class Operator {
  constructor(app) {
    this.app = app;
    this.bucket = new Bucket(app.net, `${app.cell.prefix}_leases`, ">", leaseOf, () => app.draw());
    this.services = [];
    this.consumers = [];
    this.streams = [];
    this.parked = undefined; // not read yet
    this.findings = undefined; // of the doctor
  }

  start() {
    this.bucket.run();
    this.#look();
    this.examine();
    this.timer = setInterval(() => this.#look(), every);
  }

  close() {
    clearInterval(this.timer);
    this.bucket.close();
  }

  // #look reads what has no watch. It says which of it cannot be read, and shows the rest.
  async #look() {
    if (this.looking || !this.app.net.connected) return;
    this.looking = true;
    this.failed = [];
    const { net, cell } = this.app;
    const upper = cell.prefix.toUpperCase();
    await this.#part("services", async () => {
      const found = [];
      const replies = await net.nc.requestMany("$SRV.STATS", "", { maxWait: statsWait, strategy: "timer" });
      for await (const m of replies) found.push(m.json());
      this.services = found.filter((s) => s.name?.startsWith("holdfast-")).sort((a, b) => (a.name < b.name ? -1 : 1));
    });
    await this.#part("consumers", async () => {
      const found = [];
      const lists = new Map(); // stream → consumers of a secured cell, whose names cannot be guessed
      for (const c of consumersOf(cell.prefix)) {
        let info = await net.api(`CONSUMER.INFO.${c.stream}.${c.name}`).catch((err) => ({ error: err.message }));
        if (info.error === "consumer not found") {
          if (!lists.has(c.stream)) lists.set(c.stream, await this.#list(c.stream));
          info = keyed(lists.get(c.stream), c.name);
        }
        if (info) found.push({ ...c, info });
      }
      this.consumers = found;
    });
    await this.#part("streams", async () => {
      const names = [`${upper}_LOG`, `KV_${cell.prefix}_state`, `${upper}_FEED`, `${upper}_TIMERS`, `${upper}_PARKED`,
        `OBJ_${cell.prefix}_objects`];
      const found = [];
      for (const name of names) {
        const info = await net.api(`STREAM.INFO.${name}`).catch((err) => ({ missing: err.message }));
        found.push({ name, ...info });
      }
      this.streams = found;
    });
    await this.#part("parked input", () => this.#readParked(`${upper}_PARKED`));
    const report = await net.ask("reconciler", "report", {});
    if (report.code === 200) this.report = report.body;
    this.looking = false;
    this.errors = this.failed;
    this.app.draw();
  }

  // #list returns the consumers of a stream, none where the reader may not list them.
  async #list(stream) {
    const found = [];
    for (;;) {
      const page = await this.app.net.api(`CONSUMER.LIST.${stream}`, { offset: found.length }).catch(() => undefined);
      found.push(...(page?.consumers ?? []));
      if (!page?.consumers?.length || found.length >= Math.min(page.total, listedMax)) return found;
    }
  }

  async #part(name, read) {
    try {
      await read();
    } catch (err) {
      this.failed.push(`${name}: ${err?.message ?? err}`);
    }
  }

  async #readParked(stream) {
    const { state, missing } = this.streams.find((s) => s.name === stream) ?? {};
    if (!state) {
      this.parked = undefined;
      throw new Error(missing ?? "the stream was not read");
    }
    const found = [];
    for (let seq = state.last_seq; seq >= Math.max(1, state.first_seq) && found.length < parkedMax; seq--) {
      const got = await this.app.net.api(`STREAM.MSG.GET.${stream}`, { seq }).catch((err) => {
        if (err.code === 404) return undefined; // it was taken out of the stream
        this.parked = undefined;
        throw err;
      });
      if (!got) continue;
      const headers = atob(got.message.hdrs ?? "");
      const [, , why, harness, session] = got.message.subject.split(".");
      found.push({ seq, why, name: `${decode(harness ?? "")}/${decode(session ?? "")}`, at: got.message.time,
        reason: /Hf-Parked-Reason: ?(.*)/i.exec(headers)?.[1] ?? "" });
    }
    this.parked = found;
  }

  // examine asks for the findings of the doctor, who reads every document: not again and again.
  async examine() {
    if (this.examining) return;
    this.examining = true;
    this.app.draw();
    try {
      const reply = await fetch("/doctor.json");
      if (!reply.ok) throw new Error(`${reply.status} ${await reply.text()}`);
      this.findings = { list: await reply.json(), at: this.app.now() };
    } catch (err) {
      this.findings = { error: String(err?.message ?? err), at: this.app.now() };
    }
    this.examining = false;
    this.app.draw();
  }

  // sweep asks what a pass of the reconciler would append. It changes nothing.
  async sweep() {
    this.sweeping = true;
    this.app.draw();
    const reply = await this.app.net.ask("reconciler", "sweep", { dry_run: true });
    this.sweeping = false;
    this.swept = reply.code === 200 ? reply.body : { error: verdict(reply, this.app.now()).text };
    this.app.draw();
  }
}

// operatorPage draws the page.
export function operatorPage(page) {
  return html`<article class="session operator"><h2>Operator</h2>
    ${(page.errors ?? []).map((text) => html`<p class="verdict refused">cannot be read: ${visible(text)}</p>`)}
    ${findingsPart(page)} ${servicePart(page)} ${leasePart(page)} ${streamPart(page)} ${sweepPart(page)}
    ${parkedPart(page)}
    </article>`;
}

// worst are the levels of findings, the most urgent first.
const worst = ["wrong", "note", "ok"];

// byUrgency returns findings with the most urgent first; the doctor's order within a level.
export function byUrgency(findings) {
  return [...findings].sort((a, b) => worst.indexOf(a.level) - worst.indexOf(b.level));
}

// findingsPart shows what the doctor found, and what to do about it.
function findingsPart(page) {
  const { findings, examining } = page;
  const list = findings?.list ? byUrgency(findings.list) : [];
  return html`<section aria-label="findings" tabindex="0"><h3>findings of the doctor</h3>
    ${findings?.error ? html`<p class="verdict refused">cannot be had: ${visible(findings.error)}</p>` : nothing}
    ${list.length > 0 ? html`<table id="findings" class="cards"><thead><tr><th>level</th><th>check</th><th>found</th>
      <th>what to do</th></tr></thead><tbody>${list.map((f) => html`<tr class=${`level-${visible(f.level)}`}>
      <td data-head="level"><span>${visible(f.level)}</span></td><td
        data-head="check"><span>${visible(f.check)}</span></td>
      <td data-head="found"><span>${visible(f.found)}</span></td>
      <td data-head="what to do"><span>${visible(f.do ?? "")}</span></td></tr>`)}</tbody></table>` : nothing}
    <p class="buttons"><button ?disabled=${examining || !page.bucket.live()}
      @click=${() => page.examine()}>Examine again</button>
      <span class="soft">${examining ? "examining …" : findings ? `as of ${clock(findings.at, page.app.now())}` : ""}
      </span></p></section>`;
}

// table draws rows of cells. A narrow page shows each row as a list, with the head before each cell.
function table(label, heads, rows) {
  return html`<section aria-label=${label} tabindex="0"><h3>${label}</h3><table class="cards">
    <thead><tr>${heads.map((h) => html`<th>${h}</th>`)}</tr></thead>
    <tbody>${rows.map((r) => html`<tr>${r.map((c, i) =>
      html`<td data-head=${heads[i]}><span>${c}</span></td>`)}</tr>`)}</tbody></table></section>`;
}

function servicePart(page) {
  const now = page.app.now();
  return html`${table("services", ["service", "process", "leads", "version", "since", "requests", "errors"],
    page.services.map((s) => [visible(s.name.replace("holdfast-", "")), visible(s.id),
      s.metadata?.active ? "yes" : "stands by", visible(s.version), ago(s.started, now), sum(s, "num_requests"),
      sum(s, "num_errors")]))}
  ${table("work of services", ["service", "messages of", "led by", "lag", "in work"], page.consumers.map((c) => [
    c.service, c.stream, leaderOf(c, page.services), lagOf(c.info), c.info.num_ack_pending ?? ""]))}`;
}

// leaderOf says which process of a service takes the messages of a stream: the processes say so themselves. The broker
// chooses one when a message comes.
export function leaderOf({ stream, service, info }, services) {
  const leads = services.filter((s) => s.name === `holdfast-${service}` &&
    (s.metadata?.active ?? "").split(" ").includes(stream));
  if (leads.length > 0) return leads.map((s) => visible(s.id)).join(", ");
  if (info.priority_groups?.[0]?.pinned_client_id) return "a process that does not reply";
  if (info.error) return "not known";
  return info.num_pending > 0 ? "no process" : "no process yet: no message has come";
}

// lagOf says how many messages of a stream no process has taken.
function lagOf(info) {
  return info.num_pending === undefined ? line(info.error, 80) : plural(info.num_pending, "message");
}

function sum(service, field) {
  return (service.endpoints ?? []).reduce((n, e) => n + (e[field] ?? 0), 0).toLocaleString("en");
}

function leasePart(page) {
  const now = page.app.now();
  const leases = [...page.bucket.rows].filter(([, l]) => l).sort(([a], [b]) => (a < b ? -1 : 1)).map(([, l]) => l);
  return table("leases", ["who", "process", "state", "host", "ends"], leases.map((l) => [
    visible(`${l.kind} ${l.id}`), `#${visible(l.number)}`, visible(l.state), visible(`${l.host} ${l.pid}`),
    l.ends === undefined ? "" : l.ends > now ? `in ${duration(l.ends - now)}` : "is over"]));
}

const units = ["B", "KiB", "MiB", "GiB", "TiB"];

// bytes returns a size in its unit.
export function bytes(n) {
  let unit = 0;
  while (n >= 1024 && unit < units.length - 1) {
    n /= 1024;
    unit++;
  }
  return `${unit === 0 ? n : n.toFixed(1)} ${units[unit]}`;
}

function streamPart(page) {
  return table("streams", ["stream", "messages", "bytes", "limit", "share"], page.streams.map((s) => {
    if (!s.state) return [s.name, visible(s.missing), "", "", ""];
    const limit = s.config.max_bytes > 0 ? s.config.max_bytes : 0;
    return [s.name, s.state.messages.toLocaleString("en"), bytes(s.state.bytes), limit ? bytes(limit) : "none",
      limit
        ? html`<meter min="0" max=${limit} high=${limit * 0.9} value=${s.state.bytes}
          aria-label="share of the limit"></meter> ${share(s.state.bytes, limit)}`
        : ""];
  }));
}

// share says what part of a limit is used, rounded down: 100 % is full.
export function share(used, limit) {
  const percent = (used / limit) * 100;
  return used > 0 && percent < 1 ? "less than 1 %" : `${Math.floor(percent)} %`;
}

function sweepPart(page) {
  const { report, swept } = page;
  const pass = report?.last_pass;
  return html`<section aria-label="recovery"><h3>recovery</h3>
    ${report ? html`<p>since ${clock(instant(report.since), page.app.now())}:
      ${(report.counts ?? []).map((c) => `${c.count} ${visible(c.outcome)} (${visible(c.reason)})`).join(", ") ||
        "nothing to recover"}
      ${pass ? html`<span class="soft">· last pass at ${clock(instant(pass.at), page.app.now())}:
        ${plural(pass.sessions, "session")}, ${plural(pass.facts, "event")}, ${pass.failed} failed</span>`
        : nothing}</p>
      ${(report.suspects ?? []).length > 0
        ? html`<p class="verdict unknown">suspects: ${line(JSON.stringify(report.suspects), 400)}</p>`
        : nothing}` : nothing}
    <p class="buttons"><button ?disabled=${!page.bucket.live() || page.sweeping} @click=${() => page.sweep()}>
      What would a sweep do?</button> <span class="soft">it changes nothing</span></p>
    ${swept ? html`<p id="swept">${swept.error ? visible(swept.error) : sweptText(swept)}</p>` : nothing}</section>`;
}

// sweptText says what a sweep would append.
export function sweptText(swept) {
  const kinds = Object.entries(swept.facts ?? {}).map(([kind, n]) => `${n} ${visible(kind)}`);
  const would = kinds.length > 0 ? `would append ${kinds.join(", ")}` : "nothing to do";
  return `${plural(swept.sessions ?? 0, "session")} looked at; ${would}`;
}

function parkedPart(page) {
  if (!page.parked) return nothing; // not read, or it cannot be read, which is said above
  if (page.parked.length === 0) return html`<p class="note" id="parked">No input is parked.</p>`;
  return table("parked input", ["place", "session", "why", "reason", "age"], page.parked.map((p) => [
    p.seq, visible(p.name), visible(p.why), line(p.reason, 200), ago(p.at, page.app.now())]));
}
