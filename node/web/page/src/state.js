// What all views show: asked for again and again, or told by the daemon as it changes.
import { signal, batch, computed } from "@preact/signals";
import { get, events, known, reached, sleep } from "./client.js";

export const node = signal(null);
export const visiting = computed(() => node.value?.role === "visitor"); // who looks is of another site: it shows him the federation only
export const sites = signal([]);
export const certain = signal(true);
export const jobs = signal([]); // newest first
export const leases = signal([]);
export const counters = signal(null);
export const prices = signal(new Map()); // name of a site → [[seconds, price], …] since the page was opened
export const rates = signal([]); // of messages by kind, over the last two answers

const pricesMax = 2000;
const pauseLeast = 200, pauseMost = 5000; // ms between two tries to have the stream of jobs again

// poll asks again and again, less often while nobody answers or looks; for what is ours not on
// behalf of a visitor.
async function poll(every, ask, ours = false) {
  let pause = every;
  for (;;) {
    if (known.value && !document.hidden && !(ours && visiting.value)) {
      try {
        await ask();
        pause = every;
      } catch {
        pause = Math.min(2 * pause, 30_000);
      }
    }
    await sleep(reached.value ? pause : Math.min(pause, 2_000));
  }
}

function notePrices(list) {
  const now = Date.now() / 1000;
  const next = new Map(prices.value);
  for (const site of list) {
    const line = [...(next.get(site.name) ?? []), [now, site.price]];
    next.set(site.name, line.slice(-pricesMax));
  }
  prices.value = next;
}

let before = null;

function noteRates(answer) {
  const now = performance.now() / 1000;
  const old = new Map(before?.answer.messages.map((m) => [m.kind, m]));
  const span = before ? now - before.now : 0;
  rates.value = answer.messages.map((m) => {
    const o = old.get(m.kind) ?? { sent: 0, received: 0, sentBytes: 0, receivedBytes: 0 };
    const rate = (key) => (span > 0 && m[key] >= o[key] ? ((m[key] - o[key]) / span) * 60 : null);
    return { ...m, sentRate: rate("sent"), receivedRate: rate("received") };
  });
  before = { now, answer };
}

// watchJobs keeps the list of jobs as the daemon tells of changes. A stream that breaks off goes
// on where it was. If the daemon cannot tell what has changed meanwhile it tells of all jobs, and
// these replace what was known: what is kept no longer is gone.
async function watchJobs() {
  let all = new Map();
  let next = null; // all jobs anew, until they are complete
  let last = "";
  let planned = false;
  let pause = pauseLeast;
  const show = () => {
    planned = false;
    jobs.value = [...all.values()].sort((a, b) => (a.submitted < b.submitted ? 1 : a.submitted > b.submitted ? -1 : a.id < b.id ? 1 : -1));
  };
  const take = ({ kind, id, data }) => {
    if (kind === "job") (next ?? all).set(data.id, data);
    if (kind === "gap") next = new Map();
    if (kind === "now" && next) [all, next] = [next, null];
    if (id) last = id;
  };
  for (;;) {
    try {
      if (known.value && !visiting.value) {
        next = last || all.size === 0 ? null : new Map();
        for await (const list of events("/v1/watch?all=true", last)) {
          pause = pauseLeast;
          list.forEach(take);
          if (list.length > 0 && !planned) {
            planned = true;
            setTimeout(show, 60); // many changes are drawn at once
          }
        }
      }
    } catch {
      // said by known or reached
    }
    await sleep(pause);
    pause = Math.min(2 * pause, pauseMost);
  }
}

export function start() {
  poll(5000, async () => { node.value = await get("/v1/node"); });
  poll(5000, async () => {
    const reply = await get("/v1/sites");
    batch(() => {
      sites.value = reply.sites;
      certain.value = reply.certain;
      notePrices(reply.sites);
    });
  });
  poll(5000, async () => { leases.value = (await get("/v1/leases")).leases; }, true);
  poll(5000, async () => {
    counters.value = await get("/v1/counters");
    noteRates(counters.value);
  }, true);
  watchJobs();
}
