// Content that is too large for an event: the event has the name of an object, and the name has the sum of its content.

const shownMax = 4 << 20; // bytes of content that the page shows
const chunksMax = 64; // chunks of that content that are read: they have 128 KiB each

// referred returns the name of the object that has the content of an event, undefined when the event has it itself.
export function referred(event) {
  const { ref, output } = event?.data ?? {};
  if (isName(ref)) return ref;
  const only = output && typeof output === "object" && Object.keys(output).length === 1;
  return only && isName(output.ref) ? output.ref : undefined;
}

function isName(name) {
  return typeof name === "string" && /^[^.]+\.[^.]+\.[0-9a-f]{64}$/.test(name);
}

// readObject returns the content of an object as text. In a cell with users there may be several copies, and each user
// can store one under any name: the first one with the content of its name is returned.
export async function readObject(net, name) {
  const bucket = `${net.cell.prefix}_objects`;
  const encoded = btoa(String.fromCharCode(...new TextEncoder().encode(name))).replace(/\+/g, "-").replace(/\//g, "_");
  const plain = `$O.${bucket}.M.${encoded}`;
  const stream = await net.api(`STREAM.INFO.OBJ_${bucket}`, { subjects_filter: `$O.${bucket}.M.*.*.${encoded}` });
  let why = new Error(`there is no object ${name}`);
  for (const subject of [plain, ...Object.keys(stream.state.subjects ?? {})]) {
    try {
      return await readCopy(net, bucket, subject, name);
    } catch (err) {
      if (err.code !== 404) why = err;
    }
  }
  throw why;
}

async function readCopy(net, bucket, subject, name) {
  const get = async (query) => (await net.api(`STREAM.MSG.GET.OBJ_${bucket}`, query)).message;
  const info = JSON.parse(new TextDecoder().decode(bytesOf(await get({ last_by_subj: subject }))));
  if (info.deleted) throw Object.assign(new Error("deleted"), { code: 404 });
  if (info.size > shownMax) {
    throw new Error(`it has ${info.size.toLocaleString("en")} bytes, more than this page shows`);
  }
  const parts = [];
  let next = 1;
  for (let left = info.size; left > 0;) {
    const chunk = await get({ seq: next, next_by_subj: `$O.${bucket}.C.${info.nuid}` });
    const bytes = bytesOf(chunk);
    if (bytes.length === 0 || parts.push(bytes) > chunksMax) throw new Error("its chunks are damaged");
    left -= bytes.length;
    next = chunk.seq + 1;
  }
  const content = new Uint8Array(await new Blob(parts).arrayBuffer());
  const sum = new Uint8Array(await crypto.subtle.digest("SHA-256", content));
  if (!name.endsWith(`.${[...sum].map((b) => b.toString(16).padStart(2, "0")).join("")}`)) {
    throw new Error("its name is another content's");
  }
  return new TextDecoder().decode(content);
}

function bytesOf(message) {
  return Uint8Array.from(atob(message.data ?? ""), (c) => c.charCodeAt(0));
}
