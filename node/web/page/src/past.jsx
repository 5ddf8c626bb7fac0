// A job that the daemon keeps no longer, as the job log has it.
import { lines } from "./client.js";
import { State } from "./parts.jsx";
import { clock, credits, short, span, whole } from "./text.js";

// past returns the line of a job in the job log, null if there is none.
export async function past(id, signal) {
  let found = null; // a job that ran again has several: the last one counts
  for await (const line of lines(`/v1/history?kind=job&job=${encodeURIComponent(id)}`, signal)) {
    if (line.id === id) found = line;
  }
  return found;
}

export function Past({ line }) {
  return (
    <>
      <p><a href="#/jobs">← Jobs</a></p>
      <h1>{line.name || short(line.id)} <State of={line.state} /></h1>
      {line.reason && <p>{line.reason}</p>}
      <p class="hint">It ended long ago: this is what the job log has of it. Its output is gone.</p>
      <dl class="facts">
        <div><dt>ID</dt><dd><code>{line.id}</code></dd></div>
        <div><dt>Site</dt><dd>{line.siteName ?? (line.sites ? `${line.sites.length} sites` : "–")}</dd></div>
        {line.origin === "foreign" && <div><dt>Home</dt><dd>{line.homeName ?? "–"}</dd></div>}
        <div><dt>User</dt><dd>{line.user ?? "–"}</dd></div>
        <div><dt>Processors</dt><dd>{whole(line.processors)}</dd></div>
        {line.gpus > 0 && <div><dt>GPUs</dt><dd>{whole(line.gpus)}</dd></div>}
        <div><dt>Submitted</dt><dd>{clock(line.submitted)}</dd></div>
        <div><dt>Started</dt><dd>{clock(line.start)}</dd></div>
        <div><dt>Ended</dt><dd>{clock(line.end)}</dd></div>
        <div><dt>Processor time</dt><dd>{span(line.used)}</dd></div>
        {!line.brief && <div><dt>Price per hour</dt><dd>{credits(line.price)}</dd></div>}
        {!line.brief && <div><dt>Cost</dt><dd>{credits(line.cost)}</dd></div>}
        {!line.brief && line.start && <div><dt>Exit code</dt><dd>{line.exitCode}</dd></div>}
      </dl>
    </>
  );
}
