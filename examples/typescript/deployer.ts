// The deployer in TypeScript: it survives SIGKILL at every step. `holdfast sidecar` runs beside it and keeps its state.
import { execFile, spawn } from "node:child_process";
import { createInterface } from "node:readline";
import { promisify } from "node:util";

type Json = Record<string, any>;
type Turn = { session: string; turn: string };
class Refused extends Error { constructor(readonly error: Json) { super(error.message); } } // the error of a reply

const end = (why?: string) => { console.error(why); process.exit(1); };
process.on("uncaughtException", (e) => end(e instanceof Refused ? e.message : e.stack));
const sidecar = spawn(process.env.HOLDFAST ?? "holdfast", ["sidecar", "--parent", String(process.pid)],
  { stdio: ["pipe", "pipe", "inherit"] });
sidecar.on("error", () => end("install holdfast, or set HOLDFAST to it"));
const waiting = new Map<number, { resolve: (result: any) => void; reject: (error: Error) => void }>();
let ids = 0;
const send = (m: Json) => sidecar.stdin.write(JSON.stringify({ jsonrpc: "2.0", ...m }) + "\n");

const call = (method: string, params: Json = {}): Promise<any> => new Promise((resolve, reject) => {
  waiting.set(++ids, { resolve, reject });
  send({ id: ids, method, params });
});

createInterface({ input: sidecar.stdout }).on("line", (line) => {
  const m = JSON.parse(line);
  if (m.method === "turn") deploy({ session: m.params.session, turn: m.params.turn }).then(
    () => send({ id: m.id, result: null }), // an error fails the turn; its kind decides whether it is tried again
    (e) => send({ id: m.id, error: e instanceof Refused ? e.error : { code: 1, message: String(e) } }));
  else if (m.id === null) throw new Refused(m.error); // a line could not be read
  else if (!m.method && m.error) waiting.get(m.id)?.reject(new Refused(m.error));
  else if (!m.method) waiting.get(m.id)?.resolve(m.result);
}).on("close", () => end("the sidecar has ended"));

async function step<T>(turn: Turn, name: string, run: () => Promise<T>): Promise<T> { // once for a message
  const begun = await call("turn.step_begin", { ...turn, name });
  if (!begun.run) return begun.result;
  const result = await run().catch(async (e) => { // the next attempt runs it again
    await call("turn.step_end", { step: begun.step, error: { message: String(e) } });
    throw e;
  });
  await call("turn.step_end", { step: begun.step, result });
  return result;
}

async function deploy(turn: Turn): Promise<void> {
  const ask = (name: string, more: Json) => call("turn.ask_once", { ...turn, name, ...more });
  const { choice: env } = await ask("which-env", { questions: [{ id: "env", question: "Deploy where?",
    options: [{ label: "staging" }, { label: "production" }] }] });
  const may = env && await ask("may-deploy", { kind: "permission", title: `Run ./deploy.sh ${env}` });
  if (may?.status !== "answered") return; // declined, or skipped
  await step(turn, "deploy", async () => (await promisify(execFile)("./deploy.sh", [env])).stdout).catch((e) => {
    if (e.error?.data?.error !== "outcome_unknown") throw e; // killed while it ran: ask, and do not run it again
    return ask("is-it-up", { questions: [{ id: "up", question: `./deploy.sh was cut off. Is ${env} up?` }] });
  });
}

await call("connect", { id: "deployer" });
await call("open", { session: "shop", title: "Deploy the shop" }); // continues what was cut off
await call("ready");
await call("work", { turns_max: 1 }); // returns when this process may do nothing more
