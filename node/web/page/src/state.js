// What all views show: asked for again and again, or told by the daemon as it changes.
import { signal, batch } from "@preact/signals";
import { get, values, known, reached } from "./client.js";

export const node = signal(null);
export const sites = signal([]);
export const certain = signal(true);
export const jobs = signal([]); // newest first
export const leases = signal([]);
export const counters = signal(null);
export const prices = signal(new Map()); // name of a site → [[seconds, price], …] since the page was opened
export const rates = signal([]); // of messages by kind, over the last two answers

const pricesMax = 2000;
const pauseLeast = 200, pauseMost = 5000; // ms between two tries to have the stream of jobs again
const sleep = (ms) => new Promise((done) => setTimeout(done, ms));

// poll asks again and again, less often while nobody answers or looks.
async function poll(every, ask) {
  let pause = every;
  for (;;) {
    if (known.value && !document.hidden) {
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

// watchJobs keeps the list of jobs as the daemon tells of changes. When the stream breaks off
// it begins anew with all of them, so nothing is missed, and what is kept no longer is gone.
async function watchJobs() {
  let pause = pauseLeast;
  for (;;) {
    const all = new Map();
    let fresh = true;
    let planned = false;
    const show = () => {
      planned = false;
      jobs.value = [...all.values()].sort((a, b) => (a.submitted < b.submitted ? 1 : a.submitted > b.submitted ? -1 : a.id < b.id ? 1 : -1));
    };
    try {
      if (known.value) {
        for await (const list of values("/v1/watch?all=true")) {
          pause = pauseLeast;
          for (const job of list) all.set(job.id, job);
          if (fresh || !planned) {
            fresh = false;
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
  poll(5000, async () => { leases.value = (await get("/v1/leases")).leases; });
  poll(5000, async () => {
    counters.value = await get("/v1/counters");
    noteRates(counters.value);
  });
  watchJobs();
}
