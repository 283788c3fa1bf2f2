// From entries of the people's view to what the inbox shows. All functions are pure: tests run them without a network.

import { ago, clock, duration, instant, line, name as nameOf, visible } from "./text.js";

export const drawnMax = 200; // rows that are drawn at most

// rowOf returns the row of one entry, {key, value}, of the people's view. A prompt that is asked again, adopted or
// reopened keeps its key and has another seq: what a person has read, written or chosen belongs to the version.
export function rowOf(key, b) {
  return {
    key,
    version: `${key}@${b.seq ?? 0}`,
    harness: b.harness,
    session: b.session,
    root: b.root || b.session,
    group: `${b.harness}/${b.root || b.session}`,
    prompt: b.prompt,
    kind: b.kind || "prompt",
    title: titleOf(b),
    waits: b.status === "awaiting",
    armed: instant(b.armed_at) ?? 0,
    blocker: b,
  };
}

function titleOf(b) {
  return line(b.title) || line(b.questions?.[0]?.question) || line(b.tool?.name) || nameOf(b.prompt);
}

// oldestFirst orders rows by age; the key decides between rows of one instant.
export function oldestFirst(a, b) {
  return a.armed - b.armed || (a.key < b.key ? -1 : 1);
}

// arrange returns keys in the order in which they are shown: groups by their oldest waiting row, rows by age.
export function arrange(rows) {
  const groups = new Map();
  for (const row of [...rows].sort(oldestFirst)) {
    if (!groups.has(row.group)) groups.set(row.group, []);
    groups.get(row.group).push(row.key);
  }
  return [...groups.values()].flat();
}

// arranged says whether rows are in the order that arrange gives them. It is much faster than to sort them: most
// changes leave the order as it was.
function arranged(list) {
  const begun = new Set();
  let first; // of the group
  let last;
  for (const row of list) {
    if (last?.group === row.group) {
      if (oldestFirst(last, row) > 0) return false;
    } else {
      if (begun.has(row.group) || (first && oldestFirst(first, row) > 0)) return false;
      begun.add(row.group);
      first = row;
    }
    last = row;
  }
  return true;
}

// merge returns the order to show next. shown is the present order, rows are all rows by key. A row that comes is only
// added where it moves no other row, which is at the end; the others are counted as held. While hands are off (calm),
// everything takes its place, and rows that no longer wait go, unless keep says to keep them for a while.
export function merge(shown, rows, calm, keep) {
  const kept = shown.filter((key) => rows.has(key) && (!calm || rows.get(key).waits || keep(rows.get(key))));
  const known = new Set(shown);
  const come = [...rows.values()].filter((row) => row.waits && !known.has(row.key));
  if (calm) {
    const all = kept.map((key) => rows.get(key));
    if (come.length === 0 && arranged(all)) return { order: kept, held: 0 };
    return { order: arrange([...all, ...come]), held: 0 };
  }
  const order = [...kept];
  const present = new Set(order.map((key) => rows.get(key).group));
  let last = order.length > 0 ? rows.get(order[order.length - 1]).group : undefined;
  let held = 0;
  for (const key of arrange(come)) {
    const { group } = rows.get(key);
    if (present.has(group) && group !== last) {
      held++;
      continue;
    }
    present.add(group);
    last = group;
    order.push(key);
  }
  return { order, held };
}

// late returns the rows that wait and are not in the list, by group.
export function late(order, rows) {
  const shown = new Set(order);
  const groups = new Map();
  for (const row of rows.values()) {
    if (row.waits && !shown.has(row.key)) groups.set(row.group, [...(groups.get(row.group) ?? []), row]);
  }
  return groups;
}

const searched = new WeakMap(); // row → the text that the filter searches

// searchedOf returns what the filter searches of a row: names, and the whole texts of its title, questions and options.
function searchedOf(row) {
  if (!searched.has(row)) {
    const b = row.blocker;
    const asked = (b.questions ?? []).flatMap((q) => [q.header, q.question, ...(q.options ?? []).map((o) => o.label)]);
    searched.set(row, [row.harness, row.session, row.root, row.prompt, row.kind, row.title, b.title, b.tool?.name,
      ...asked].map((text) => visible(text)).join(" ").toLowerCase());
  }
  return searched.get(row);
}

// matches says whether a row has all words of a filter in its names, title, kind, tool, questions or options.
export function matches(row, filter) {
  const words = filter.toLowerCase().split(/\s+/).filter(Boolean);
  if (words.length === 0) return true; // of ten thousand rows no text is made
  const text = searchedOf(row);
  return words.every((word) => text.includes(word));
}

// grouped returns the rows to draw, at most so many, by group: {groups: [{name, rows}], more}.
export function grouped(order, rows, filter, only, max = drawnMax) {
  const groups = [];
  let more = 0;
  let drawn = 0;
  for (const key of order) {
    const row = rows.get(key);
    if (!row || (only ? !same(row, only) : !matches(row, filter))) continue;
    if (drawn === max) {
      more++;
      continue;
    }
    drawn++;
    const last = groups[groups.length - 1];
    if (last?.name === row.group) last.rows.push(row);
    else groups.push({ name: row.group, harness: row.harness, root: row.root, rows: [row] });
  }
  return { groups, more };
}

// same says whether a row is the prompt that a link names.
export function same(row, { harness, session, prompt }) {
  return row.harness === harness && row.session === session && row.prompt === prompt;
}

// linkOf returns the address of one prompt on this page.
export function linkOf({ harness, session, prompt }) {
  return `#/p/${[harness, session, prompt].map(encodeURIComponent).join("/")}`;
}

// sessionLink returns the address of a session's page.
export function sessionLink(harness, session) {
  return `#/s/${[harness, session].map(encodeURIComponent).join("/")}`;
}

// routeOf reads an address of this page.
export function routeOf(hash) {
  const [name, ...rest] = hash.replace(/^#\/?/, "").split("/");
  let ids;
  try {
    ids = rest.map(decodeURIComponent);
  } catch {
    return { page: "inbox" };
  }
  if (name === "p" && ids.length === 3) {
    return { page: "inbox", only: { harness: ids[0], session: ids[1], prompt: ids[2] } };
  }
  if (name === "s" && ids.length === 2) return { page: "session", harness: ids[0], session: ids[1] };
  if (name === "sessions" || name === "operator") return { page: name };
  return { page: "inbox" };
}

// state says in words what is known about a prompt beside its question.
export function notes(row, now) {
  const b = row.blocker;
  const list = [];
  if (row.waits) {
    if (!b.owned) list.push("the agent's process is gone: the answer is kept for the next one");
    if (!b.blocking) list.push("the agent works on meanwhile");
    const until = instant(b.deadline);
    if (until !== undefined) {
      list.push(until > now ? `until ${clock(until, now)} (${duration(until - now)})` : "its deadline has passed");
    }
    if (b.on_owner_loss === "expire") list.push("it expires when the agent's process ends");
  }
  return list;
}

// said returns the answers to the questions of a prompt in words.
export function said(answers) {
  return (answers ?? [])
    .map((a) => [...(a.selected ?? []), a.text].filter(Boolean).map((t) => visible(t)).join(", ") || "(skipped)")
    .join(" · ");
}

// became says what was decided about a prompt, by whom, and when. It takes an entry of the view, or a refusal's body.
export function became(b, now) {
  const parts = [visible(b.status)];
  if (b.by) parts.push(`by ${nameOf(b.by)}`);
  const at = instant(b.closed_at ?? b.at);
  if (at !== undefined) parts.push(`at ${clock(at, now)} (${duration(now - at)} ago)`);
  const words = [said(b.answers), b.reason && visible(b.reason)].filter(Boolean).join(" · ");
  return parts.join(" ") + (words ? `: ${words}` : "");
}

// verdict returns what a service replied to a request about a prompt, in words: {kind, text, questions}. kind is done,
// refused or unknown.
export function verdict({ code, text, body }, now) {
  const why = [...new Set([text, body?.reason].map((t) => visible(t ?? "")).filter(Boolean))].join(" · ");
  switch (code) {
    case 200:
      return { kind: "done", text: body?.seq ? `stored at ${body.seq}` : "it was so already" };
    case 409:
      if (body?.status === "awaiting") {
        return { kind: "refused", text: `not decided, and it still waits (409): ${why}` };
      }
      return { kind: "refused", text: `another decision stands (409): ${body?.status ? became(body, now) : why}` };
    case 410:
      return { kind: "refused", text: `it no longer waits (410): ${body?.status ? became(body, now) : why}` };
    case 422:
      return { kind: "refused", text: `it does not fit, and the prompt still waits (422): ${why}`,
        questions: body?.questions ?? {} };
    case 0:
      return { kind: "unknown", text: `${why}. It may be stored or not; it is safe to send it again` };
    default:
      return { kind: "refused", text: `${why || "refused"} (${code})` };
  }
}

// freeText says whether a question takes a text of one's own.
export function freeText(question) {
  return Boolean(question.custom) || (question.options ?? []).length === 0;
}

// choose returns the draft of one question, {selected, text}, after one option is chosen or taken back.
export function choose(question, draft, label) {
  const { selected = [], text = "" } = draft ?? {};
  if (question.multi) {
    return { text, selected: selected.includes(label) ? selected.filter((l) => l !== label) : [...selected, label] };
  }
  return { text: "", selected: [label] };
}

// write returns the draft of one question after a text was written. In a single choice the text replaces the option.
export function write(question, draft, text) {
  const { selected = [] } = draft ?? {};
  return { text, selected: question.multi || text === "" ? selected : [] };
}

// answersOf returns the answers of a request: one for each question, in their order.
export function answersOf(questions, drafts) {
  return (questions ?? []).map((q) => {
    const { selected = [], text = "" } = drafts?.[q.id] ?? {};
    return text.trim() === "" ? { question: q.id, selected } : { question: q.id, selected, text };
  });
}

// missing returns the ids of questions that have no answer yet.
export function missing(questions, drafts) {
  return answersOf(questions, drafts)
    .filter((a) => a.selected.length === 0 && !a.text)
    .map((a) => a.question);
}

// questionAt returns the question with an id, and the first one for any other id.
export function questionAt(questions, id) {
  return (questions ?? []).find((q) => q.id === id) ?? questions?.[0];
}

// questionAfter returns the question after the one with an id. The first one comes after the last one.
export function questionAfter(questions, id) {
  const at = (questions ?? []).indexOf(questionAt(questions, id));
  return questions?.[(at + 1) % questions.length];
}

// age returns how long a row has waited.
export function age(row, now) {
  return ago(row.blocker.armed_at, now);
}

// pathOf returns the sessions from the root of a group to the one that asks, by the documents that are known. A
// session whose document is not known yet ends the path early.
export function pathOf(row, documentOf) {
  const path = [];
  let session = row.session;
  while (session && path.length < 20) {
    path.unshift(session);
    if (session === row.root) return path;
    session = documentOf(row.harness, session)?.parent;
  }
  return path[0] === row.root ? path : [row.root, ...path];
}

// summary returns the title of the window and the number for the badge.
export function summary(waiting) {
  return waiting > 0 ? `(${waiting}) Holdfast` : "Holdfast";
}

// shapeOf says what a prompt asks for, so that rows of one shape can have one answer: kind, tool, options.
export function shapeOf(row) {
  const b = row.blocker;
  const questions = (b.questions ?? []).map((q) => [
    (q.options ?? []).map((o) => o.label), Boolean(q.multi), freeText(q),
  ]);
  return JSON.stringify([row.kind, b.tool?.name ?? "", questions]);
}

// draftsLike returns the drafts of one prompt for the questions of another one of the same shape, by their places.
export function draftsLike(from, drafts, to) {
  const out = {};
  (to ?? []).forEach((q, i) => {
    const draft = drafts?.[from?.[i]?.id];
    if (draft) out[q.id] = draft;
  });
  return out;
}

// standing says whether an answer would permit more than this one call: such an answer is given for one prompt alone.
export function standing(row, drafts) {
  return row.kind === "permission" &&
    answersOf(row.blocker.questions, drafts).some((a) => a.selected.some((l) => l !== "once") || a.text);
}
