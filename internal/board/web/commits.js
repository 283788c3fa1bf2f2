// The commits of a session as its page has them: the newest whole, older ones without the data of their events, and
// which events counted.

import { judge, linesOf, uncounted } from "./history.js";
import { readLog } from "./log.js";

const wholeMax = 500; // commits that are kept whole, the newest; others are read again when they are shown
const readsMax = 60; // documents of the past that are read to find which events counted, in one go

// none is what the document of a session without a commit has counted.
const none = { parked: 0, ignored: 0 };

// Commits grows at its end. ask reads a document of the past: it takes a place, and throws without a free one.
export class Commits {
  constructor(net, { harness, session }, ask) {
    Object.assign(this, { net, name: { harness, session }, ask });
    this.list = []; // all commits, oldest first
    this.counts = new Map(); // place → what the document had counted there
    this.judged = 0; // commits that are judged
    this.left = false; // some of those are left out: they were too many
    this.lines = [];
    this.error = ""; // why it is not known which events counted
  }

  // seq returns the place of the newest commit, 0 without one.
  seq() {
    return this.list.at(-1)?.seq ?? 0;
  }

  // remember takes what a document has counted at its place.
  remember(doc) {
    this.counts.set(doc.seq, uncounted(doc));
  }

  // read reads the commits that are new, and returns how many there were. while says whether to go on.
  async read(goOn) {
    let found = 0;
    await readLog(this.net, { ...this.name, from: this.seq() + 1 }, (commit) => {
      if (!goOn()) return false;
      found++;
      this.list.push(commit);
      const old = this.list.length - wholeMax - 1;
      if (old >= 0) this.list[old] = slim(this.list[old]);
      return true;
    });
    return found;
  }

  // load reads those commits whole that lines have without their data, and returns whether there were any.
  async load(lines) {
    const seqs = lines.filter((l) => l.slim).map((l) => l.seq);
    if (seqs.length === 0) return false;
    const [first, last] = [Math.min(...seqs), Math.max(...seqs)];
    const whole = new Map();
    await readLog(this.net, { ...this.name, from: first }, (commit) => {
      whole.set(commit.seq, commit);
      return commit.seq < last;
    });
    this.list = this.list.map((c) => (c.slim ? whole.get(c.seq) ?? c : c));
    this.draw();
    return true;
  }

  // judge finds out which events counted: where the counts of two documents are the same, all events between them did.
  // It begins with the newest. changed is called when there is something new to show.
  async judge(changed) {
    this.again = this.judging;
    if (this.judging) return;
    this.judging = true;
    let end = this.list.length - 1;
    while (end >= this.judged && !this.counts.has(this.list[end].seq)) end--;
    try {
      this.reads = 0;
      if (end >= this.judged) await this.#narrow(this.judged - 1, end);
      this.judged = Math.max(this.judged, end + 1);
      this.left ||= this.reads > readsMax;
      this.error = this.left ? "too many events did not count" : "";
    } catch (err) {
      this.error = String(err?.message ?? err); // the next document brings another attempt
    }
    this.judging = false;
    this.draw();
    changed();
    if (this.again) await this.judge(changed); // a document came meanwhile
  }

  #at(i) {
    return i < 0 ? none : this.counts.get(this.list[i]?.seq);
  }

  // #narrow finds the counts of all commits between two whose counts are known. Too many reads leave the older ones
  // out.
  async #narrow(low, high) {
    if (high - low < 2 || this.reads > readsMax) return;
    const [from, to] = [this.#at(low), this.#at(high)];
    if (from.parked === to.parked && from.ignored === to.ignored) {
      for (let i = low + 1; i < high; i++) this.counts.set(this.list[i].seq, to);
      return;
    }
    const middle = (low + high) >> 1;
    if (!this.#at(middle)) {
      if (++this.reads > readsMax) return;
      this.remember(await this.ask(this.list[middle].seq));
      if (!this.#at(middle)) throw new Error(`the ledger has no document of place ${this.list[middle].seq}`);
    }
    await this.#narrow(middle, high);
    await this.#narrow(low, middle);
  }

  // draw makes the lines.
  draw() {
    this.lines = this.list.flatMap((c, i) => {
      c.lines ??= linesOf(c);
      const verdicts = judge(c, this.#at(i - 1), this.#at(i));
      return c.lines.map((l, n) => ({ ...l, ...verdicts[n] }));
    });
  }
}

// slim returns a commit without the data of its events.
function slim(c) {
  const bare = c.events.map((e) => e && typeof e === "object"
    ? { type: e.type, subject: e.subject, source: e.source, id: e.id, data: e.data?.by ? { by: e.data.by } : undefined }
    : e);
  return { ...c, events: bare, slim: true, lines: undefined };
}
