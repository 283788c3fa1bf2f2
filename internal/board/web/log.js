// Reads commits of a session from the log, and documents from the ledger.

import { createInbox, nanos } from "./vendor/nats-core.js";
import { position } from "./bucket.js";
import { token } from "./text.js";

const batch = 200; // commits of one pull
const patience = 5_000; // ms without a reply to a pull

// commitOf decodes a commit: its place, its instant, its writer and its events.
function commitOf(subject, seq, at, data) {
  let events = [];
  try {
    events = JSON.parse(data);
  } catch {
    // A message that is no batch is parked as a whole, and changes nothing.
  }
  return { seq, at, writer: subject.slice(subject.lastIndexOf(".") + 1), events: Array.isArray(events) ? events : [] };
}

// readCommit returns the commit at a place of the log. It throws when it is not there.
export async function readCommit(net, seq) {
  const reply = await net.api(`STREAM.MSG.GET.${net.cell.prefix.toUpperCase()}_LOG`, { seq });
  const { subject, time, data } = reply.message;
  const bytes = Uint8Array.from(atob(data ?? ""), (c) => c.charCodeAt(0));
  return commitOf(subject, seq, Date.parse(time), new TextDecoder().decode(bytes));
}

// readLog returns the commits of a session, oldest first. since (ms, of the broker) leaves out older ones, from leaves
// out lower places. each is called with every commit; false ends the reading.
export async function readLog(net, { harness, session, since, from }, each) {
  const stream = `${net.cell.prefix.toUpperCase()}_LOG`;
  const filter = `${net.cell.prefix}.log.${token(harness)}.${token(session)}.*`;
  const inbox = createInbox(net.inbox);
  const name = `board-${inbox.slice(inbox.lastIndexOf(".") + 1)}`;
  const start = { deliver_policy: "all" };
  if (from) Object.assign(start, { deliver_policy: "by_start_sequence", opt_start_seq: from });
  else if (since) {
    Object.assign(start, { deliver_policy: "by_start_time", opt_start_time: new Date(since).toISOString() });
  }
  const info = await net.api(`CONSUMER.CREATE.${stream}.${name}.${filter}`, {
    stream_name: stream,
    config: { name, filter_subject: filter, ack_policy: "none", replay_policy: "instant", mem_storage: true,
      num_replicas: 1, inactive_threshold: nanos(10_000), ...start },
    action: "create",
  });
  let left = info.num_pending;
  try {
    while (left > 0) {
      const got = await pull(net, stream, name, Math.min(batch, left));
      if (got.length === 0) throw new Error("the log sends nothing more");
      for (const m of got) {
        const at = position(m.reply);
        if (each(commitOf(m.subject, at.stream, at.at, new TextDecoder().decode(m.data))) === false) return;
      }
      left -= got.length;
    }
  } finally {
    if (net.connected) net.nc.publish(`$JS.API.CONSUMER.DELETE.${stream}.${name}`);
  }
}

// pull returns up to count messages of a consumer.
function pull(net, stream, name, count) {
  return new Promise((resolve, reject) => {
    const got = [];
    const inbox = createInbox(net.inbox);
    const sub = net.nc.subscribe(inbox, {
      callback: (err, m) => {
        clearTimeout(timer);
        timer = setTimeout(late, patience);
        if (err) finish(() => reject(err));
        else if ((m.headers?.code ?? 0) >= 400) finish(() => resolve(got));
        else if (got.push(m) === count) finish(() => resolve(got));
      },
    });
    const late = () => finish(() => reject(new Error("the broker does not answer")));
    const finish = (end) => {
      clearTimeout(timer);
      sub.unsubscribe();
      end();
    };
    let timer = setTimeout(late, patience);
    const body = JSON.stringify({ batch: count, no_wait: true });
    net.nc.publish(`$JS.API.CONSUMER.MSG.NEXT.${stream}.${name}`, body, { reply: inbox });
  });
}

// Lookups loads things once, in the background, when they are first asked for. It keeps those that are still asked for:
// sweep, at long intervals, drops the others.
export class Lookups {
  // load returns a promise of the thing for a key. onChange is called when one has arrived.
  constructor(load, onChange, max = 500) {
    this.load = load;
    this.onChange = onChange;
    this.max = max;
    this.found = new Map(); // key → {value} or {error}; {} while it is loaded
    this.used = new Set(); // keys that were asked for since the last sweep
  }

  // get returns {value}, {error}, or {} while the thing is loaded.
  get(key) {
    this.used.add(key);
    const known = this.found.get(key);
    if (known) return known;
    if (this.found.size >= this.max) this.found.delete(this.found.keys().next().value);
    const entry = {};
    this.found.set(key, entry);
    this.load(key).then(
      (value) => Object.assign(entry, { value }),
      (err) => Object.assign(entry, { error: String(err?.message ?? err) }),
    ).finally(() => this.onChange());
    return entry;
  }

  // forget drops one thing, or all that failed.
  forget(key) {
    if (key !== undefined) this.found.delete(key);
    else for (const [k, entry] of this.found) if (entry.error) this.found.delete(k);
  }

  // sweep drops what was not asked for since the last sweep.
  sweep() {
    for (const key of this.found.keys()) if (!this.used.has(key)) this.found.delete(key);
    this.used.clear();
  }
}

// readInput returns all that a permission is about: the input of its call, and what its harness added to the prompt.
// It returns a list of {from, value}.
export async function readInput(net, blocker) {
  const { harness, session, prompt, seq, tool } = blocker;
  const parts = [];
  if (tool?.call) {
    const reply = await net.ask("ledger", "get", { harness, session });
    if (reply.code !== 200) throw new Error(reply.text || `the ledger replied ${reply.code}`);
    const open = reply.body.document?.tools?.[tool.call];
    const started = (await lastStart(net, blocker, Date.parse(open?.since ?? "") - 1000)) ??
      (await lastStart(net, blocker, undefined));
    if (!started) throw new Error(`the log has no start of the call ${tool.call}`);
    parts.push({ from: started.data.name || tool.name || "call", value: started.data.input });
  }
  const asked = (await readCommit(net, seq)).events
    .filter((e) => e.subject === prompt && e.type === "holdfast.prompt.requested").pop();
  // The seq of a prompt that waits again, after its answer was taken back, is not that of its request.
  if (!asked && blocker.status === "awaiting") throw new Error(`the commit ${seq} has no request of the prompt`);
  if (asked?.data?.native !== undefined) parts.push({ from: "from the harness", value: asked.data.native });
  const stated = parts.filter((p) => p.value !== undefined && p.value !== null);
  JSON.stringify(stated); // it throws when a value is too deep to be shown
  return stated;
}

// readEnd returns what became of a prompt that the people's view no longer has: {status, reason, at, by, answers}.
export async function readEnd(net, { harness, session, prompt }) {
  const reply = await net.ask("ledger", "get", { harness, session });
  if (reply.code !== 200) throw new Error(reply.text || `the ledger replied ${reply.code}`);
  const end = reply.body.document.recent?.findLast((e) => e.entity === "prompt" && e.id === prompt);
  if (!end) throw new Error("the ledger no longer knows why");
  const commit = await readCommit(net, end.seq);
  const { by, answers } = commit.events.findLast((e) => e?.subject === prompt && e.data?.prompt === prompt)?.data ?? {};
  return { status: end.outcome, reason: end.reason, at: end.at, by, answers };
}

// lastStart returns the newest event by which the call of a prompt was started.
async function lastStart(net, { harness, session, tool }, since) {
  let found;
  await readLog(net, { harness, session, since: Number.isNaN(since) ? undefined : since }, (commit) => {
    if (commit.writer !== "harness") return;
    for (const e of commit.events) {
      if (e?.type !== "holdfast.tool.started" || e.data?.call !== tool.call) continue;
      if (typeof (e.data.name ?? "") === "string") found = e; // with another name the ledger takes it for no start
    }
  });
  return found;
}
