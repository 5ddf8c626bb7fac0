import { useEffect, useState } from "preact/hooks";
import { jobs, leases, node, sites } from "./state.js";
import { clock, credits, over, span, whole } from "./text.js";

const spans = [["30 min", 1800], ["4 h", 14400], ["1 day", 86400]];
const left = 150, width = 900, row = 22, rowsMax = 60;

// bars are what has, had or will have processors of this site within a span around now.
function bars(self, now, back) {
  const list = [];
  for (const j of jobs.value) {
    if (j.site !== self.id || !j.start) continue;
    const begin = new Date(j.start) / 1000, end = j.end ? new Date(j.end) / 1000 : Math.max(now, begin + j.time);
    list.push({ key: j.id, kind: j.foreign ? "guest" : "own", label: j.name || j.id.slice(0, 8), begin, end, open: !over(j), processors: j.processors, link: `#/jobs/${j.id}` });
  }
  for (const l of leases.value) {
    const lent = l.direction === "out";
    const kind = l.state === "held" || l.state === "requested" ? "held" : lent ? "lent" : "borrowed";
    const begin = l.since ? new Date(l.since) / 1000 : now;
    list.push({ key: l.direction + l.number + l.peer, kind, label: `${kind} ${lent ? "to" : "of"} ${l.peer}`, begin, end: l.end ? new Date(l.end) / 1000 : now, open: true, processors: l.processors });
  }
  return list.filter((b) => b.end >= now - back && b.begin <= now + back).sort((a, b) => b.open - a.open || b.begin - a.begin);
}

function Gantt({ back }) {
  const [now, setNow] = useState(Date.now() / 1000);
  useEffect(() => {
    const timer = setInterval(() => setNow(Date.now() / 1000), 1000);
    return () => clearInterval(timer);
  }, []);
  const all = bars(node.value, now, back);
  const list = all.slice(0, rowsMax);
  const x = (t) => left + ((t - (now - back)) / (2 * back)) * (width - left);
  const height = row * Math.max(1, list.length) + 24;
  return (
    <>
      <svg class="gantt" viewBox={`0 0 ${width} ${height}`} role="img" aria-label={`${all.length} jobs and leases on the processors of this site, over time`}>
        {[-1, -0.5, 0, 0.5].map((f) => (
          <g key={f} class="tick"><path d={`M${x(now + f * back)} 0V${height - 18}`} /><text x={x(now + f * back)} y={height - 4}>{f === 0 ? "now" : clock(new Date((now + f * back) * 1000))}</text></g>
        ))}
        {list.map((b, i) => {
          const from = Math.max(left, x(b.begin)), to = Math.min(width, x(b.end)), here = Math.min(to, Math.max(from, x(now)));
          const text = `${b.label}: ${b.processors} processors, ${clock(new Date(b.begin * 1000))} to ${b.open ? "at most " : ""}${clock(new Date(b.end * 1000))}`;
          return (
            <g key={b.key} class={`gant ${b.kind}`}>
              <title>{text}</title>
              <text x={left - 8} y={i * row + 15}>{b.label.slice(0, 20)} · {b.processors}</text>
              <rect x={from} y={i * row + 3} width={Math.max(2, here - from)} height={row - 6} rx="3" />
              {to > here && b.open && <rect class="promised" x={here} y={i * row + 3} width={to - here} height={row - 6} rx="3" />}
            </g>
          );
        })}
      </svg>
      {all.length > rowsMax && <p class="hint">The first {rowsMax} of {all.length}.</p>}
      {all.length === 0 && <p class="hint">Nothing has run here in this span.</p>}
    </>
  );
}

export function Site() {
  const [back, setBack] = useState(spans[0][1]);
  const n = node.value, self = sites.value.find((s) => s.self);
  if (!n || !self) return <p class="wait">Asking the daemon…</p>;
  return (
    <>
      <h1>{n.name}</h1>
      <dl class="facts">
        <div><dt>Processors</dt><dd>{whole(self.free)} of {whole(self.processors)} free</dd></div>
        <div><dt>Price</dt><dd>{credits(n.price)}, {n.pricing}</dd></div>
        <div><dt>Jobs of others</dt><dd>{self.foreign ? "run here" : "no"}</dd></div>
        <div><dt>Up for</dt><dd>{span((Date.now() - new Date(n.started)) / 1000)}</dd></div>
        <div><dt>Version</dt><dd>{n.version}</dd></div>
        <div><dt>You are</dt><dd>{n.caller}, {n.role}</dd></div>
      </dl>
      {n.scheduler?.trouble && <p class="failure" role="alert">The scheduler of the processors does not answer: {n.scheduler.trouble}</p>}
      <h2>Processors over time</h2>
      <p role="group" aria-label="Span">
        {spans.map(([text, s]) => <button type="button" key={s} aria-pressed={back === s} onClick={() => setBack(s)}>± {text}</button>)}
      </p>
      <p class="legend"><i class="own" />own jobs <i class="guest" />jobs of others <i class="lent" />lent <i class="borrowed" />borrowed <i class="held" />held; pale: until its limit</p>
      <Gantt back={back} />
    </>
  );
}
