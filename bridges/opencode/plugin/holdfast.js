// The plugin of `holdfast bridge opencode` for OpenCode. Before a call runs, it asks the bridge: the call runs once it
// is stored in the log. It fails, and does not run, if the bridge follows another process of OpenCode, or does not
// reply in time. The plugin does nothing without these variables in the environment of OpenCode:
//
//   HOLDFAST_PLUGIN_URL    the address of the bridge, as its option --plugin has it: http://127.0.0.1:4097
//   HOLDFAST_PLUGIN_TOKEN  the secret that the bridge has, too
//   HOLDFAST_PLUGIN_QUEUE  1: messages wait in Holdfast's queue (--drive queue), and OpenCode has one at a time
//   HOLDFAST_PLUGIN_WAIT   for how many seconds the bridge is waited for; default: 60

const pause = 250 // milliseconds between two requests

const sleep = (ms) => new Promise((done) => setTimeout(done, ms))

// bridge returns a function that asks the bridge until it says yes or no.
function bridge(client, address) {
  const headers = {
    authorization: `Bearer ${process.env.HOLDFAST_PLUGIN_TOKEN ?? ""}`,
    "content-type": "application/json",
  }
  const wait = 1000 * Number(process.env.HOLDFAST_PLUGIN_WAIT || 60)

  // The bridge has left a mark in the memory of the process that it follows: an MCP entry of the directory in which
  // the process was started. Without one the bridge has not seen this process yet.
  async function marks() {
    const { data } = await client.mcp.status({ query: { directory: process.cwd() } })
    return Object.keys(data ?? {}).filter((name) => name.startsWith("holdfast-"))
  }

  async function once(path, question, left) {
    const reply = await fetch(new URL(path, address), {
      method: "POST",
      headers,
      body: JSON.stringify({ ...question, marks: await marks() }),
      signal: AbortSignal.timeout(left),
    })
    return { status: reply.status, text: (await reply.text()).trim() }
  }

  return async (path, question, what) => {
    let began = performance.now()
    let why = "the bridge did not reply"
    for (let left = wait; left > 0; left = wait - (performance.now() - began)) {
      const reply = await once(path, question, left).catch((err) => ({ status: 503, text: String(err) }))
      if (reply.status === 200 || reply.status === 204) return reply.text
      if (reply.status === 202) began = performance.now() // it waits in the queue, and the bridge is there
      why = reply.text
      if (reply.status !== 503 && reply.status !== 202) break
      if (reply.status === 503) await sleep(pause)
    }
    throw new Error(`Holdfast: ${what}: ${why}`)
  }
}

export const Holdfast = async ({ client }) => {
  const address = process.env.HOLDFAST_PLUGIN_URL
  if (!address) return {}
  const ask = bridge(client, address)
  const queue = process.env.HOLDFAST_PLUGIN_QUEUE === "1"
  return {
    // A message gets the ids under which the bridge would send it: they sort behind all that OpenCode has by then.
    "chat.message": async (_, { message, parts }) => {
      if (!queue || parts.some((part) => part.metadata?.holdfast)) return // the bridge has sent it
      const texts = parts.filter((part) => part.type === "text" && !part.synthetic)
      const text = texts.map((part) => part.text).join("\n")
      const question = { session: message.sessionID, message: message.id, text }
      const reply = await ask("message", question, "this message was not sent")
      if (!reply) return
      const place = JSON.parse(reply)
      message.id = place.message
      for (const part of parts) part.messageID = place.message
      const marked = texts[0] ?? parts[0]
      marked.id = place.part
      marked.metadata = { ...marked.metadata, holdfast: place.mark }
    },
    "tool.execute.before": async ({ sessionID, callID }) => {
      await ask("call", { session: sessionID, call: callID }, "this call did not run")
    },
  }
}
