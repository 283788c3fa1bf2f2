// Watches a bucket until the client says that this is all, and prints how many keys it saw.
import { connect } from "@nats-io/transport-node";
import { Kvm } from "@nats-io/kv";

const [url, inboxPrefix, bucket] = process.argv.slice(2);
const at = new URL(url);
const nc = await connect({ servers: at.host, user: at.username, pass: at.password, inboxPrefix });
const kv = await new Kvm(nc).open(bucket);
const seen = new Set();
for await (const e of await kv.watch()) {
  seen.add(e.key);
  if (e.delta === 0) break;
}
console.log(seen.size);
await nc.close();
