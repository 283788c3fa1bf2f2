// The sessions of one root, as they are now.

import { Bucket } from "./bucket.js";
import { decode, tree } from "./history.js";
import { token } from "./text.js";

const pause = 300; // ms between two rounds of reading documents

const pageSize = 100; // sessions of one page of the list

// Family is {harness, root}'s list of sessions, page by page. It watches the names of the harness's documents and not
// their content: a document is read when it is one of the family, or new. The session that is looked at and the root
// are in the list, whatever page they are on.
export class Family {
  constructor(app, { harness, root, session }, onChange) {
    Object.assign(this, { app, harness, root, onChange });
    const keys = `session.${token(harness)}.*`;
    this.pages = 1; // of the list that are read
    this.next = ""; // where the next page begins; empty after the last one
    this.always = [root, session].map((s) => this.#key(s));
    this.members = new Map(); // key → document
    this.others = new Set(); // keys of documents that have another root
    this.changed = new Set(); // keys of documents to read
    this.bucket = new Bucket(app.net, `${app.cell.prefix}_state`, keys, (key) => this.#touch(key), () => this.#read(),
      { headersOnly: true });
    this.bucket.run();
  }

  close() {
    this.bucket.close();
  }

  // live says whether the list is what the ledger has now.
  live() {
    return this.bucket.live() && this.listed === this.bucket.generation && !this.error;
  }

  // more reads one more page.
  more() {
    this.pages++;
    this.listed = undefined;
    this.#read();
  }

  // list returns the sessions with their depths, parents before children.
  list() {
    return tree([...this.members].filter(([key]) => this.bucket.rows.has(key)).map(([, d]) => d));
  }

  #touch(key) {
    if (this.bucket.current && !this.others.has(key)) {
      this.changed.add(key);
      this.#read();
    }
    return true;
  }

  // #read reads the whole list once for each beginning of the watch, and then the documents that changed.
  async #read() {
    if (this.reading || this.bucket.closed || !this.bucket.current) return;
    this.reading = true;
    try {
      if (this.listed !== this.bucket.generation) await this.#list(this.bucket.generation);
      for (const key of this.changed) {
        this.changed.delete(key);
        await this.#document(key);
      }
      this.error = "";
    } catch (err) {
      this.error = String(err?.message ?? err);
    }
    this.onChange();
    await new Promise((done) => setTimeout(done, pause));
    this.reading = false;
    if (this.changed.size > 0 || this.listed !== this.bucket.generation) this.#read();
  }

  async #list(generation) {
    const { harness, root, pages } = this;
    const members = new Map();
    let next = "";
    do { // a page of the ledger may be short, or empty
      const reply = await this.app.net.ask("ledger", "list", { harness, root, after: next, limit: pageSize });
      if (reply.code !== 200) throw new Error(reply.text || `the ledger replied ${reply.code}`);
      for (const d of reply.body.documents ?? []) members.set(this.#key(d.session), short(d));
      next = reply.body.next ?? "";
    } while (next !== "" && members.size < pages * pageSize);
    this.members = members;
    this.next = next;
    const known = next === "" ? [...this.bucket.rows.keys()] : []; // what was not listed may be of this root
    this.others = new Set(known.filter((key) => !members.has(key)));
    for (const key of this.always) if (this.bucket.rows.has(key) && !members.has(key)) this.changed.add(key);
    if (pages === this.pages) this.listed = generation;
  }

  async #document(key) {
    const { harness } = this;
    const reply = await this.app.net.ask("ledger", "get", { harness, session: decode(key.split(".")[2]) });
    if (reply.code === 404) this.members.delete(key);
    else if (reply.code !== 200) {
      this.changed.add(key);
      throw new Error(reply.text || `the ledger replied ${reply.code}`);
    } else {
      const d = reply.body.document;
      if ((d.root || d.session) === this.root) this.members.set(key, short(d));
      else this.others.add(key);
    }
  }

  #key(session) {
    return `session.${token(this.harness)}.${token(session)}`;
  }
}

// short returns what the list shows of a document.
function short({ harness, session, parent, title, phase }) {
  return { harness, session, parent, title, phase };
}
