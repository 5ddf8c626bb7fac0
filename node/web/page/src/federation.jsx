import { sites, leases, certain, node, prices } from "./state.js";
import { Table } from "./table.jsx";
import { Bar, Plot } from "./parts.jsx";
import { credits, span, whole } from "./text.js";

const width = 900, height = 420, margin = 60;

// spread places sites on the map: by their network coordinates, so that what is near on it is
// near in the network. Those who have told none stand in a row below.
function spread(list) {
  const placed = list.filter((s) => s.place);
  const xs = placed.map((s) => s.place[0]), ys = placed.map((s) => s.place[1]);
  const least = [Math.min(...xs), Math.min(...ys)];
  const extent = Math.max(Math.max(...xs) - least[0], Math.max(...ys) - least[1], 1e-4);
  const scale = Math.min((width - 2 * margin) / extent, (height - 2 * margin) / extent);
  const wide = (Math.max(...xs) - least[0]) * scale, high = (Math.max(...ys) - least[1]) * scale;
  const at = new Map();
  let lost = 0;
  for (const s of list) {
    if (s.place) {
      at.set(s.id, [(width - wide) / 2 + (s.place[0] - least[0]) * scale, (height - high) / 2 + (s.place[1] - least[1]) * scale]);
    } else {
      at.set(s.id, [margin + (lost++ % 20) * 40, height - 12]);
    }
  }
  return { at, scale };
}

// tidy is a round length of at most 120 dots for the scale, in seconds.
function tidy(scale) {
  let length = 1e-6;
  while (length * 10 * scale <= 120) length *= 10;
  for (const n of [5, 2]) if (length * n * scale <= 120) return length * n;
  return length;
}

function Map_({ list }) {
  const { at, scale } = spread(list);
  const most = Math.max(...list.map((s) => s.price), 1e-9);
  const self = list.find((s) => s.self);
  const lines = leases.value.map((l) => ({ ...l, from: at.get(l.lender), to: at.get(l.borrower) })).filter((l) => l.from && l.to);
  const rule = tidy(scale);
  return (
    <svg class="map" viewBox={`0 0 ${width} ${height}`} role="img"
      aria-label={`Map of ${list.length} sites by latency; a larger circle has more processors, a fuller one has more of them free`}>
      <defs>
        <marker id="tip" viewBox="0 0 8 8" refX="8" refY="4" markerWidth="7" markerHeight="7" orient="auto"><path d="M0 0 8 4 0 8z" class="tip" /></marker>
      </defs>
      {lines.map((l) => (
        <line key={l.direction + l.number} class="lease" x1={l.from[0]} y1={l.from[1]} x2={l.to[0]} y2={l.to[1]} marker-end="url(#tip)">
          <title>{`${l.processors} processors lent`}</title>
        </line>
      ))}
      {list.map((s) => {
        const [x, y] = at.get(s.id);
        const radius = (5 + 2.2 * Math.log2(1 + s.processors)) * Math.min(1, 8 / Math.sqrt(list.length));
        const cheap = Math.round(100 * (1 - s.price / most));
        return (
          <g key={s.id} class={s.self ? "site self" : s.silent ? "site silent" : "site"}>
            <title>{`${s.name}: ${s.free} of ${s.processors} processors free, ${credits(s.price)} credits, ${span(s.latency)} away`}</title>
            <circle class="rim" cx={x} cy={y} r={radius} style={{ stroke: `color-mix(in oklab, var(--cheap) ${cheap}%, var(--dear))` }} />
            <circle class="free" cx={x} cy={y} r={Math.max(0, (radius - 2) * Math.sqrt(s.processors ? s.free / s.processors : 0))}
              style={{ fill: `color-mix(in oklab, var(--cheap) ${cheap}%, var(--dear))` }} />
            {list.length <= 60 && <text x={x} y={y + radius + 13}>{s.name}</text>}
          </g>
        );
      })}
      {self && list.some((s) => s.place && !s.self) && (
        <g class="scale"><path d={`M20 ${height - 20}h${rule * scale}`} /><text x={20 + (rule * scale) / 2} y={height - 26}>{span(rule)}</text></g>
      )}
    </svg>
  );
}

const columns = [
  { head: "Site", text: (s) => s.name + (s.self ? " (here)" : ""), width: "minmax(9rem, 1.6fr)" },
  { head: "Price", text: (s) => credits(s.price), value: (s) => s.price, number: true },
  { head: "Free", value: (s) => s.free, show: (s) => <Bar of={s.free} all={s.processors} label="processors free" />, width: "minmax(8rem, 1.2fr)" },
  { head: "Queued", text: (s) => whole(s.queued), value: (s) => s.queued, number: true },
  { head: "Wait", text: (s) => span(s.wait), value: (s) => s.wait, number: true },
  { head: "Speed", text: (s) => whole(s.speed), value: (s) => s.speed, number: true },
  { head: "Latency", text: (s) => span(s.latency), value: (s) => s.latency, number: true },
  { head: "Others' jobs", text: (s) => (s.foreign ? "runs them" : "no") },
];

export function Federation() {
  const list = sites.value;
  if (!node.value || list.length === 0) return <p class="wait">Asking the daemon…</p>;
  const sum = (key) => list.reduce((n, s) => n + s[key], 0);
  return (
    <>
      <h1>{node.value.federation}</h1>
      <p class="facts">
        <b>{whole(list.length)}</b> sites, <b>{whole(sum("free"))}</b> of <b>{whole(sum("processors"))}</b> processors free,{" "}
        <b>{whole(sum("queued"))}</b> jobs queued{certain.value ? "" : "; some sites may be missing"}
      </p>
      <Map_ list={list} />
      <p class="hint">Near on the map is near in the network. Size: processors. Filled: free. Green is cheap, red is dear. Arrows: processors lent.</p>
      <Table label="Sites" rows={list} keyOf={(s) => s.id} columns={columns} height="50vh" />
    </>
  );
}

export function Prices() {
  const series = [...prices.value].slice(0, 40).map(([label, points]) => ({ label, points }));
  return (
    <>
      <h1>Prices</h1>
      <p class="hint">Credits for a processor-hour, since this page was opened.</p>
      {series.length > 0 ? <Plot series={series} time y="credits" label="Prices of sites over time" height={420} /> : <p class="wait">Asking the daemon…</p>}
    </>
  );
}
