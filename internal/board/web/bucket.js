// A watch of some keys of a KV bucket. It begins with what is stored, so a change that was missed is repaired by the
// next beginning: after a reconnect, after a gap, and after silence.
//
// It is a pull consumer. The broker sends a heartbeat each second while nothing changes, so that silence means that the
// connection is dead, and not that nothing happens.

import { createInbox, nanos } from "./vendor/nats-core.js";
import { since, stamp } from "./net.js";

export const silenceMax = 3_000; // ms without a sign of the broker, after which what is shown is stale
const heartbeat = 1_000;
const batch = 500;
const expires = 30_000; // ms, of one pull
const pause = 300; // ms between two attempts to begin
const check = 250; // ms between two checks for silence

// position reads the place in the stream, the place in the consumer and the instant (ms) from the reply subject of a
// message of a consumer.
export function position(reply) {
  const words = reply.split(".");
  const at = words.length > 9 ? 4 : 2; // newer brokers name domain and account
  const [stream, sequence, nanoseconds] = words.slice(at + 3).map(Number);
  return { stream, sequence, at: nanoseconds / 1e6 };
}

// removes says whether a message of a bucket removes its key.
export function removes(headers) {
  const op = headers?.get("KV-Operation");
  return op === "DEL" || op === "PURGE" || Boolean(headers?.get("Nats-Marker-Reason"));
}

// valueOf returns the value of an entry, undefined for none.
function valueOf(m) {
  try {
    return m.data.length > 0 ? m.json() : undefined;
  } catch {
    return undefined; // no program of the cell writes that
  }
}

export class Bucket {
  // filter is the keys to watch, such as "blocker.>". make turns an entry, (key, value), into what rows has for it.
  // onChange is called at each change of rows or of liveness. headersOnly leaves the values out: they are {}.
  constructor(net, bucket, filter, make, onChange, { headersOnly = false } = {}) {
    this.make = make;
    this.headersOnly = headersOnly;
    this.net = net;
    this.stream = `KV_${bucket}`;
    this.keys = `$KV.${bucket}.`;
    this.filter = filter;
    this.onChange = onChange;
    this.onRemove = undefined; // called with the key and the row of each row that goes
    this.rows = new Map(); // key → what make returned
    this.seen = new Map(); // key → the generation that read it last
    this.loaded = false; // all that is stored has been read once
    this.heard = undefined; // when the broker gave the last sign, a stamp
    this.asOf = 0; // the same instant by the broker's clock, in ms; 0 before the first one
    this.generation = 0;
    this.closed = false;
    this.error = "";
  }

  // live says whether rows are what the bucket has now.
  live() {
    return this.loaded && this.current && this.net.connected && since(this.heard) <= silenceMax;
  }

  // run watches until close.
  async run() {
    while (!this.closed) {
      this.current = false; // whether this generation has read all that is stored
      try {
        await this.#begin();
        this.error = "";
      } catch (err) {
        this.error = String(err?.message ?? err);
      }
      this.onChange();
      if (!this.closed) await new Promise((done) => setTimeout(done, pause));
    }
  }

  // restart ends the present generation, and begins the next one.
  restart() {
    this.end?.();
  }

  close() {
    this.closed = true;
    this.end?.();
  }

  // #begin is one generation: it reads what is stored, removes the rows that are not, and follows.
  async #begin() {
    this.generation++;
    const inbox = createInbox(this.net.inbox);
    const name = `board-${inbox.slice(inbox.lastIndexOf(".") + 1)}`;
    const filter = this.keys + this.filter;
    const ended = new Promise((end) => {
      this.end = end;
    });
    const info = await this.net.api(`CONSUMER.CREATE.${this.stream}.${name}.${filter}`, {
      stream_name: this.stream,
      config: {
        name,
        filter_subject: filter,
        deliver_policy: "last_per_subject",
        ack_policy: "none",
        replay_policy: "instant",
        mem_storage: true,
        num_replicas: 1,
        headers_only: this.headersOnly,
        inactive_threshold: nanos(30_000),
      },
      action: "create",
    });
    const read = new Reader(this, name, inbox, info.num_pending);
    const sub = this.net.nc.subscribe(inbox, { callback: (err, m) => (err ? this.end() : read.take(m)) });
    this.hear();
    if (info.num_pending === 0) this.whole();
    read.pull();
    const timer = setInterval(() => {
      if (since(this.heard) > silenceMax) this.end();
    }, check);
    await ended;
    clearInterval(timer);
    sub.unsubscribe();
    if (this.net.connected) this.net.nc.publish(`$JS.API.CONSUMER.DELETE.${this.stream}.${name}`);
  }

  // hear takes a sign of the broker.
  hear() {
    this.heard = this.net.heard = stamp();
    this.asOf = this.net.now();
  }

  // put stores or removes one row. A malformed entry is no row, and the entries behind it are read.
  put(key, value) {
    try {
      const row = value === undefined ? undefined : this.make(key, value);
      if (value === undefined) this.remove(key);
      else {
        this.rows.set(key, row);
        this.seen.set(key, this.generation);
      }
    } catch (err) {
      this.remove(key);
      console.error(`${key} cannot be read: ${err?.message ?? err}`);
    }
    if (this.current) this.onChange();
  }

  remove(key) {
    const row = this.rows.get(key);
    this.rows.delete(key);
    this.seen.delete(key);
    if (row !== undefined) this.onRemove?.(key, row);
  }

  // whole is called when this generation has read all that is stored: a row that it did not read is gone.
  whole() {
    for (const [key, generation] of this.seen) {
      if (generation !== this.generation) this.remove(key);
    }
    this.loaded = true;
    this.current = true;
    this.onChange();
  }
}

// Reader takes the messages of one generation.
class Reader {
  constructor(bucket, name, inbox, stored) {
    this.bucket = bucket;
    this.name = name;
    this.inbox = inbox;
    this.stored = stored; // messages that the generation begins with
    this.sequence = 0; // of the consumer
    this.asked = 0; // messages that were asked for and have not come
  }

  pull() {
    this.asked = batch;
    const body = { batch, expires: nanos(expires), idle_heartbeat: nanos(heartbeat) };
    this.bucket.net.nc.publish(`$JS.API.CONSUMER.MSG.NEXT.${this.bucket.stream}.${this.name}`, JSON.stringify(body),
      { reply: this.inbox });
  }

  take(m) {
    const b = this.bucket;
    const code = m.headers?.code ?? 0;
    if (code >= 400) {
      // 404 and 408 end a pull; the rest, such as a deleted consumer or a new leader, ends the generation.
      if (code === 404 || code === 408) this.pull();
      else b.end();
      return;
    }
    b.hear();
    if (code > 0) return; // a heartbeat
    const at = position(m.reply);
    if (at.sequence !== this.sequence + 1) {
      b.end(); // a message is missing
      return;
    }
    this.sequence = at.sequence;
    const key = m.subject.slice(b.keys.length);
    b.put(key, removes(m.headers) ? undefined : b.headersOnly ? {} : valueOf(m));
    if (!b.current && this.sequence >= this.stored) b.whole();
    if (--this.asked === 0) this.pull();
  }
}
