// The connection to the broker: requests to the services and to JetStream, and the broker's clock.

import { wsconnect } from "./vendor/nats-core.js";
import { token } from "./text.js";

const requestTimeout = 10_000; // ms, for a reply of a service
const apiTimeout = 5_000; // ms, for a reply of JetStream
const apiAgain = 250; // ms until a request that has no reply is sent to JetStream again; each time twice as many

// local returns this machine's time in ms, by a clock that cannot be set. It may stand still while the machine sleeps.
export function local() {
  return performance.timeOrigin + performance.now();
}

// stamp returns the present instant by both clocks of this machine, for since.
export function stamp() {
  return { day: Date.now(), run: local() };
}

// since returns the ms since a stamp, by the clock that has gone further: the time of day may be set back, and the
// other clock stands still in sleep. Without a stamp it is Infinity.
export function since(at) {
  return at ? Math.max(Date.now() - at.day, local() - at.run) : Infinity;
}

// Net is one connection that is opened again whenever it is lost.
export class Net {
  // cell is {prefix, person} as the server names them. onStatus is called at each change of the connection.
  constructor(cell, onStatus) {
    this.cell = cell;
    this.onStatus = onStatus;
    this.connected = false;
    this.inbox = `_INBOX.${cell.prefix}.person.${token(cell.person)}`; // replies arrive below it
    this.heard = undefined; // when the broker gave the last sign, a stamp
    this.offset = 0; // the broker's clock less local, in ms
  }

  // open returns when the connection has been made for the first time, however long that takes.
  async open(url) {
    this.nc = await wsconnect({
      servers: url,
      name: "holdfast-board",
      inboxPrefix: this.inbox,
      waitOnFirstConnect: true,
      maxReconnectAttempts: -1,
      reconnectTimeWait: 300,
      reconnectJitter: 100,
      timeout: 3_000,
      pingInterval: 5_000,
      maxPingOut: 2,
      ignoreClusterUpdates: true, // the broker's own address is not reachable from here
    });
    this.connected = true;
    this.onStatus("connect");
    this.#watchStatus();
    this.nc.closed().then(() => {
      this.connected = false;
      this.onStatus("closed");
    });
  }

  async #watchStatus() {
    for await (const s of this.nc.status()) {
      if (s.type === "disconnect") this.connected = false;
      if (s.type === "reconnect") this.connected = true;
      this.onStatus(s.type);
    }
  }

  // now returns the broker's time in ms.
  now() {
    return local() + this.offset;
  }

  // api sends a request to JetStream. It throws what JetStream refuses.
  async api(subject, body) {
    const { reply, sent } = await this.#again(`$JS.API.${subject}`, body ? JSON.stringify(body) : "");
    this.heard = stamp();
    if (reply.error) {
      throw Object.assign(new Error(reply.error.description), { code: reply.error.code });
    }
    if (reply.ts) this.offset = Date.parse(reply.ts) - (sent + local()) / 2;
    return reply;
  }

  // #again sends a request to JetStream until there is a reply. JetStream that starts drops requests. Each request of
  // the page can be sent twice: consumers have names, so that the second one creates none beside the first.
  #again(subject, data) {
    return new Promise((resolve, reject) => {
      const ends = local() + apiTimeout;
      let timer;
      const end = (settle, value) => {
        clearTimeout(timer);
        timer = undefined;
        settle(value);
      };
      const send = (wait) => {
        const sent = local();
        if (sent >= ends) return; // the requests before end at that instant
        timer = setTimeout(() => send(2 * wait), wait);
        this.nc.request(subject, data, { timeout: ends - sent })
          .then((m) => end(resolve, { reply: m.json(), sent }))
          .catch((err) => end(reject, err));
      };
      send(apiAgain);
    });
  }

  // ask sends a request to a service, and returns {code, text, body}: code 200 for a success, else the refusal. Code 0
  // means that no reply came: the request may or may not have been carried out, and can be sent again.
  async ask(service, verb, body) {
    const who = this.cell.login ? `.${token(this.cell.person)}` : ""; // the brokers enforce it
    const subject = `${this.cell.prefix}.svc.${service}.${verb}${who}`;
    const data = new TextEncoder().encode(JSON.stringify(body));
    const most = this.nc.info?.max_payload ?? Infinity;
    if (data.length > most) {
      const [has, takes] = [data.length, most].map((n) => n.toLocaleString("en"));
      return { code: 413, text: `not sent: it has ${has} bytes, and the broker takes ${takes}`, body: {} };
    }
    let m;
    try {
      m = await this.nc.request(subject, data, { timeout: requestTimeout });
    } catch (err) {
      return failed(err);
    }
    const code = Number(m.headers?.get("Nats-Service-Error-Code") || 200);
    let reply = {};
    try {
      if (m.data.length > 0) reply = m.json();
    } catch {
      return { code: 0, text: "the reply cannot be read", body: {} };
    }
    return { code, text: m.headers?.get("Nats-Service-Error") ?? "", body: reply };
  }
}

// failed returns the result of a request that has no reply.
function failed(err) {
  const text = String(err?.message ?? err);
  if (/no responders/i.test(`${text} ${err?.cause?.message ?? ""}`)) {
    return { code: 503, text: "no service answers", body: {} };
  }
  if (/permission/i.test(text)) return { code: 403, text, body: {} };
  return { code: 0, text: `no reply: ${text}`, body: {} };
}
