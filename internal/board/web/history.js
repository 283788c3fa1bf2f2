// From a document and the commits of a log to what the page of a session shows. All functions are pure.

import { clock, duration, instant, line, visible } from "./text.js";

const prefix = "holdfast.";

// kindOf returns the kind of an event, such as turn.started.
export function kindOf(event) {
  const type = String(event.type ?? "");
  return type.startsWith(prefix) ? type.slice(prefix.length) : type;
}

// authorOf says who wrote an event: a person, a service, or a process of the harness. The broker enforces the writer,
// the last token of the subject. The source is what that writer says: a service can say that a person has asked it, a
// harness can name its own process alone.
export function authorOf(event, writer) {
  const [, kind, name, process] = String(event.source ?? "").split("/");
  if (writer === "harness") return kind === "harness" ? `agent #${visible(decode(process ?? ""))}` : writer;
  if (kind === "person") return visible(decode(name ?? ""));
  return `${visible(writer)}${event.data?.by ? ` for ${visible(event.data.by)}` : ""}`;
}

const services = { H: "harness", L: "ledger", T: "retry", C: "compaction", R: "reconciler" };

// writers are the kinds of events with those who may write them, as in the reference.
export const writers = Object.fromEntries(Object.entries({
  "session.opened": "H", "session.claimed": "H", "session.configured": "L", "session.released": "H",
  "session.orphaned": "R", "session.closed": "HL", "message.accepted": "CHL", "message.withdrawn": "C",
  "turn.requested": "TCLR", "turn.started": "H", "turn.completed": "H", "turn.failed": "HT",
  "turn.stop_requested": "LCT", "turn.stopped": "HR", "turn.interrupted": "R", "tool.started": "H",
  "tool.completed": "HLRC", "tool.failed": "HLRC", "tool.interrupted": "R", "prompt.requested": "H",
  "prompt.answered": "HL", "prompt.rejected": "HL", "prompt.dismissed": "L", "prompt.withdrawn": "HR",
  "prompt.superseded": "CH", "prompt.expired": "R", "prompt.unattended": "H", "prompt.attended": "H",
  "prompt.delivered": "H", "usage.reported": "H", "retry.scheduled": "T", "retry.abandoned": "T",
  "compaction.requested": "C",
  "compaction.started": "H", "compaction.completed": "H", "compaction.failed": "HRC",
}).map(([kind, letters]) => [kind, [...letters].map((l) => services[l])]));

// uncounted returns what a document has counted of events that did not count.
export function uncounted(doc) {
  return { parked: doc.parked ?? 0, ignored: doc.ignored?.count ?? 0, last: doc.ignored?.last };
}

// judge says of each line of a commit whether its event counted: {} if it did, {note}, which says why not, or {doubt}
// when that is not known. before and after are what the documents of the place before and of this one have counted,
// undefined when they were not read.
export function judge(commit, before, after) {
  const { events, writer } = commit;
  const foreign = (e) => !String(e?.type ?? "").startsWith(prefix) || !Object.hasOwn(writers, kindOf(e));
  const out = (e) => !foreign(e) && !writers[kindOf(e)].includes(writer);
  const notes = events.map((e) => (out(e) ? { note: `parked: not for the ${visible(writer)} to say` } : undefined));
  if (events.length === 0) return [{ note: "parked: no batch of events" }];
  const rest = () => events.map((_, i) => i).filter((i) => !notes[i]);
  if (!before || !after) {
    return notes.map((n, i) => n ?? (foreign(events[i]) ? { note: "unknown kind" } : { doubt: true }));
  }
  const parked = after.parked - before.parked - notes.filter(Boolean).length;
  let ignored = after.ignored - before.ignored;
  const last = after.last?.seq === commit.seq ? after.last : undefined;
  const [one, ...more] = rest().filter((i) => events[i]?.type === last?.type);
  if (ignored === 1 && last && one !== undefined && more.length === 0 && parked <= 0) {
    notes[one] = { note: `ignored: ${visible(last.why)}` };
    ignored = 0;
  }
  const left = rest();
  const all = parked + ignored >= left.length;
  const why = ignored <= 0 ? "parked" : parked <= 0 ? "ignored" : "parked or ignored";
  for (const i of left) {
    if (parked + ignored <= 0) notes[i] = foreign(events[i]) ? { note: "unknown kind" } : {};
    else notes[i] = all ? { note: why } : { doubt: true };
  }
  return notes;
}

// decode turns =XX back into bytes.
export function decode(token) {
  try {
    return decodeURIComponent(token.replace(/%/g, "%25").replace(/=([0-9A-F]{2})/g, "%$1"));
  } catch {
    return token;
  }
}

// textOf returns the content of a message or result as text. It is never anything but text.
export function contentOf(content) {
  if (content === undefined || content === null) return "";
  if (typeof content === "string") return content;
  if (typeof content.text === "string" && Object.keys(content).length === 1) return content.text;
  return JSON.stringify(content, null, 2);
}

// stored returns the content of an object as people read it: it is JSON, usually a string.
export function stored(text) {
  try {
    return visible(contentOf(JSON.parse(text)));
  } catch {
    return visible(text);
  }
}

// about says in one line what an event is about.
export function about(event) {
  const d = event.data ?? {};
  const known = {
    "message.accepted": () => [contentOf(d.content) || (d.ref ? `object ${d.ref}` : "")],
    "turn.requested": () => [d.cause, d.message],
    "turn.started": () => [d.cause, d.message],
    "turn.completed": () => [d.finish],
    "turn.failed": () => [d.error?.kind, d.error?.text],
    "turn.stop_requested": () => [d.actor, d.reason],
    "turn.stopped": () => [d.actor, d.reason],
    "turn.interrupted": () => [d.reason],
    "tool.started": () => [d.name, d.title || contentOf(d.input)],
    "tool.completed": () => [contentOf(d.output)],
    "tool.failed": () => [d.error?.kind, d.error?.text],
    "tool.interrupted": () => [d.reason, d.outcome],
    "prompt.requested": () => [d.kind, d.title || d.questions?.[0]?.question],
    "prompt.answered": () => (d.answers ?? []).flatMap((a) => [...(a.selected ?? []), a.text]),
    "prompt.rejected": () => [d.text],
    "prompt.superseded": () => [d.message],
    "retry.scheduled": () => [`attempt ${d.attempt}`, `after ${d.delay_ms} ms`, d.error?.kind],
    "retry.abandoned": () => [`attempt ${d.attempt}`, d.reason],
    "usage.reported": () => [d.model, `${d.tokens?.input ?? 0} in`, `${d.tokens?.output ?? 0} out`],
    "session.opened": () => [d.title, `#${d.incarnation}`],
    "session.claimed": () => [`#${d.incarnation}`],
    "session.orphaned": () => [d.reason, `#${d.incarnation}`],
    "session.configured": () => [contentOf(d.policy)],
    "compaction.requested": () => [d.reason],
    "compaction.failed": () => [d.error?.kind, d.error?.text],
  };
  const kind = kindOf(event);
  return line((Object.hasOwn(known, kind) ? known[kind]() : [d.reason]).filter(Boolean).join(" · "), 200);
}

// linesOf returns the lines of a commit, one for each event. A commit that is no batch has one, too: it is parked as a
// whole.
export function linesOf(c) {
  const at = (i) => ({ key: `${c.seq}.${i}`, seq: c.seq, at: c.at, slim: c.slim });
  if (c.events.length === 0) return [{ ...at(0), ...malformed(c, undefined, "no batch of events") }];
  return c.events.map((e, i) => ({ ...at(i), ...lineOf(c, e) }));
}

// lineOf returns what a line says about an event. The log has what a harness has written: one malformed event has a
// line that says so, and the others have theirs.
function lineOf(commit, e) {
  try {
    return { kind: kindOf(e), subject: visible(e.subject ?? ""), author: authorOf(e, commit.writer), text: about(e),
      event: e };
  } catch (err) {
    return malformed(commit, e, `malformed: ${err.message}`);
  }
}

function malformed(commit, e, text) {
  return { kind: "malformed", subject: "", author: visible(commit.writer), text: line(text), event: { malformed: e } };
}

// causes are the kinds of events that make each phase, and what of the document they have to be about.
const causes = {
  closed: [["session.closed"]],
  waiting: [["prompt.requested"], (doc) => Object.entries(doc.prompts ?? {})
    .filter(([, p]) => p.status === "awaiting" && p.blocking).map(([id]) => id)],
  compacting: [["compaction.requested", "compaction.started"], (doc) => [doc.compaction?.id]],
  running: [["turn.started"], (doc) => [doc.turn?.id]],
  retrying: [["retry.scheduled", "turn.requested"], (doc) => [doc.retry?.turn, doc.pending?.turn?.turn]],
  queued: [["message.accepted", "turn.requested"], (doc) => [doc.queue?.[0]?.message, doc.pending?.turn?.turn]],
  interrupted: [["turn.interrupted", "session.orphaned", "session.released", "turn.stopped", "turn.failed"]],
  idle: [["turn.completed", "turn.failed", "turn.stopped", "turn.interrupted", "retry.abandoned", "message.withdrawn",
    "session.opened", "compaction.completed", "compaction.failed"]],
};

// causeOf returns the line of the event that made the phase of a document, undefined when it is not among the lines. An
// event that did not count made nothing. While it is not known whether the newest one counted, there is no cause.
export function causeOf(doc, lines) {
  const [kinds, subjects] = Object.hasOwn(causes, doc.phase) ? causes[doc.phase] : [[]];
  const ids = subjects?.(doc).filter(Boolean).map((id) => visible(id));
  const last = lines.findLast((l) => !l.note && kinds.includes(l.kind) && l.seq <= doc.seq &&
    (!ids || ids.includes(l.subject)));
  return last?.doubt ? undefined : last;
}

// ownerOf says in words which process has a session.
export function ownerOf(doc) {
  if (doc.owned) return `agent #${visible(doc.incarnation)}, epoch ${doc.epoch}`;
  if (doc.left === "orphaned") return `no process: #${visible(doc.incarnation)} is lost`;
  return `no process: #${visible(doc.incarnation)} left`;
}

// retryOf says in words what is planned; now is the broker's time. undefined without a retry.
export function retryOf(doc, now) {
  const r = doc.retry;
  if (!r?.state) return undefined;
  const why = [r.error?.kind, r.error?.text].filter(Boolean).map((t) => line(t)).join(": ");
  const due = instant(r.due_at);
  if (r.state === "scheduled" && due !== undefined) {
    const left = due > now ? `in ${duration(due - now + 999)}` : "due now";
    return { text: `retry ${r.attempt} ${left}`, at: clock(due, now), why, planned: true };
  }
  if (r.state === "starting") return { text: `retry ${r.attempt} starts`, at: "", why, planned: false, starts: true };
  return { text: `no retry: ${visible(r.reason || r.state)}`, at: "", why, planned: false };
}

// tree returns sessions of one root as a list with depths, parents before children.
export function tree(documents) {
  const children = new Map();
  const known = new Set(documents.map((d) => d.session));
  for (const d of documents) {
    const parent = known.has(d.parent) && d.parent !== d.session ? d.parent : "";
    if (!children.has(parent)) children.set(parent, []);
    children.get(parent).push(d);
  }
  const list = [];
  const walk = (parent, depth) => {
    for (const d of children.get(parent) ?? []) {
      list.push({ depth, document: d });
      if (depth < 20) walk(d.session, depth + 1);
    }
  };
  walk("", 0);
  return list;
}

// said returns what a person asks about a document, as a map from what and id to {name, text, ended}. It is what
// `holdfast diff` compares.
function said(doc) {
  const why = (text, reason) => (reason ? `${text} (${reason})` : text);
  const all = new Map();
  const add = (what, text, name, ended) => {
    if (text && !all.has(what)) all.set(what, { text: String(text), name, ended });
  };
  const { turn, retry, compaction, usage, pending } = doc;
  add("phase", doc.phase);
  add("owner", doc.owned ? `#${doc.incarnation} e${doc.epoch}` : doc.left || "none");
  for (const field of ["title", "agent", "model"]) add(field, doc[field]);
  add("closed", doc.closed?.reason);
  if (turn) add(`turn ${turn.id}`, `open (${turn.cause}, attempt ${Math.max(turn.attempt, 1)})`);
  if (pending?.turn) add(`wanted ${pending.turn.turn}`, `a turn (${pending.turn.cause})`);
  if (pending?.stop) add(`stop ${pending.stop.turn}`, `wanted by ${pending.stop.by || pending.stop.actor}`);
  for (const w of doc.waits_for ?? []) add(`waits for ${w.child}`, `call ${w.call}`);
  for (const [id, t] of Object.entries(doc.tools ?? {})) add(`tool ${id}`, "runs", t.name);
  for (const [id, p] of Object.entries(doc.prompts ?? {})) {
    add(`prompt ${id}`, why(p.status, p.reason) + (p.status === "awaiting" ? "" : ", not delivered"), p.kind);
  }
  for (const m of doc.queue ?? []) add(`message ${m.message}`, "queued");
  if (doc.held_seq) add("queue", "waits for a person");
  if (retry?.state) {
    add("retry", retry.state === "abandoned" ? `given up: ${retry.reason}`
      : why(`attempt ${retry.attempt} ${retry.state}`, retry.error?.kind));
  }
  if (doc.continuations?.state === "held") add("answers", `not taken: ${doc.continuations.reason}`);
  if (compaction) add(`compaction ${compaction.id}`, why(compaction.state, compaction.reason));
  if (usage) add("usage", usage.limit ? `${usage.used} of ${usage.limit} tokens` : `${usage.used} tokens`);
  if (doc.ignored?.count) add("ignored", doc.ignored.count);
  if (doc.parked) add("parked", doc.parked);
  for (const [key, value] of Object.entries(doc.policy ?? {})) add(`policy ${key}`, JSON.stringify(value));
  for (const e of doc.recent ?? []) add(`${e.entity} ${e.id}`, why(e.outcome, e.reason), e.name, true);
  return all;
}

// withUnknown returns a document with the outcome "unknown" for the calls of which nothing says whether they had their
// effect, as State.WithUnknown of pkg/session does. A call that failed has a kind in the commit of its end only:
// commitAt(seq) returns {value}, {error}, or {} while it is read. The result is {document, reading, errors}.
export function withUnknown(document, commitAt) {
  let reading = false;
  const errors = [];
  const cutOff = (end) => {
    const { value, error } = commitAt(end.seq);
    if (error) errors.push(`the end of call ${visible(end.id)}: ${visible(error)}`);
    reading ||= !value && !error;
    return (value?.events ?? []).some((e) => e?.data?.call === end.id && kindOf(e) === "tool.failed" &&
      e.data.error?.kind === "outcome_unknown");
  };
  const unknown = (end) => end.entity === "tool" && end.outcome !== "completed" && !end.late &&
    (end.outcome !== "failed" || cutOff(end));
  const recent = document.recent?.map((end) => (unknown(end) ? { ...end, outcome: "unknown" } : end));
  return { document: { ...document, recent }, reading, errors };
}

// compared returns what a person sees differ between two documents: {what, name, from, to}, as text. An ending that is
// too long ago for a document is no difference.
export function compared(a, b) {
  const [was, is] = [said(a), said(b)];
  return [...new Set([...is.keys(), ...was.keys()])]
    .map((what) => [what, was.get(what), is.get(what)])
    .filter(([, from, to]) => from?.text !== to?.text && !(from?.ended && !to))
    .map(([what, from, to]) => ({ what: visible(what), name: visible(to?.name ?? from?.name ?? ""),
      from: visible(from?.text ?? "–"), to: visible(to?.text ?? "–") }));
}

// differences returns the fields in which two documents differ: {path, from, to}, as text. The head of a document only
// repeats its fields for services.
export function differences(a, b, path = "") {
  if (JSON.stringify(a) === JSON.stringify(b)) return [];
  if (isObject(a) && isObject(b)) {
    const names = [...new Set([...Object.keys(a), ...Object.keys(b)])];
    return names
      .filter((n) => path !== "" || n !== "head")
      .flatMap((n) => differences(a[n], b[n], path ? `${path}.${n}` : n));
  }
  const text = (v) => (v === undefined ? "–" : visible(typeof v === "string" ? v : JSON.stringify(v)));
  return [{ path: visible(path), from: text(a), to: text(b) }];
}

function isObject(v) {
  return typeof v === "object" && v !== null && !Array.isArray(v);
}
