// The local API, as the page asks it. The key comes behind the # of the page's address and
// stays in this tab.
import { signal } from "@preact/signals";

const slot = "gridnode-key";

// known: the daemon knows who asks. reached: it answered the last request.
export const known = signal(true);
export const reached = signal(true);

export function takeKey() {
  const match = location.hash.match(/^#key=([A-Za-z0-9_-]+)$/);
  if (match) {
    setKey(match[1]);
    history.replaceState(null, "", location.pathname + "#/");
  }
}

export function setKey(key) {
  sessionStorage.setItem(slot, key);
  known.value = true;
}

export class Refusal extends Error {
  constructor(code, message) {
    super(message);
    this.code = code;
  }
}

// ask returns the answer to a request; a refusal is thrown.
export async function ask(method, path, body, signal, headers = {}) {
  let response;
  try {
    response = await fetch(path, {
      method,
      signal,
      headers: {
        ...headers,
        Authorization: "Bearer " + (sessionStorage.getItem(slot) ?? ""),
        ...(body === undefined ? {} : { "Content-Type": "application/json" }),
      },
      body: body === undefined ? undefined : JSON.stringify(body),
    });
  } catch (failure) {
    if (failure.name !== "AbortError") reached.value = false;
    throw failure;
  }
  reached.value = true;
  if (response.ok) {
    known.value = true;
    return response;
  }
  const failure = await response.json().catch(() => ({ code: "internal", message: response.statusText }));
  if (failure.code === "unknown") known.value = false;
  throw new Refusal(failure.code, failure.message);
}

export const sleep = (ms) => new Promise((done) => setTimeout(done, ms));

export const get = async (path, signal) => (await ask("GET", path, undefined, signal)).json();
export const post = async (path, body = {}, signal) => (await ask("POST", path, body, signal)).json();

// chunks yields the text of an answer as it comes; nothing first, when it begins.
export async function* chunks(path, signal, headers) {
  const reader = (await ask("GET", path, undefined, signal, headers)).body.pipeThrough(new TextDecoderStream()).getReader();
  try {
    yield "";
    for (;;) {
      const { value, done } = await reader.read();
      if (done) return;
      yield value;
    }
  } finally {
    reader.cancel().catch(() => {});
  }
}

// events yields lists of the events of a stream, as many as have come, as { kind, id, data }; an
// empty one first, when the stream begins. It goes on behind the event with the ID last, if that
// is not empty. (EventSource would do, if it could send a key.)
export async function* events(path, last, signal) {
  const headers = { Accept: "text/event-stream", ...(last ? { "Last-Event-ID": last } : {}) };
  let rest = "";
  for await (const text of chunks(path, signal, headers)) {
    const blocks = (rest + text).split("\n\n");
    rest = blocks.pop();
    yield blocks.map(event).filter((e) => e.kind);
  }
}

// lines yields the values of a stream of lines.
export async function* lines(path, signal) {
  let rest = "";
  for await (const text of chunks(path, signal)) {
    const list = (rest + text).split("\n");
    rest = list.pop();
    for (const line of list) yield JSON.parse(line);
  }
}

function event(block) {
  const field = {};
  for (const line of block.split("\n")) {
    const at = line.indexOf(":");
    if (at > 0) field[line.slice(0, at)] = line.slice(at + 1).replace(/^ /, "");
  }
  return { kind: field.event, id: field.id, data: field.data === undefined ? null : JSON.parse(field.data) };
}
