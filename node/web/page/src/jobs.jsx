import { useEffect, useState } from "preact/hooks";
import { jobs } from "./state.js";
import { get, post } from "./client.js";
import { Output } from "./output.jsx";
import { Past, past } from "./past.jsx";
import { Table } from "./table.jsx";
import { Action, State } from "./parts.jsx";
import { clock, credits, over, short, span, whole } from "./text.js";

const order = ["running", "queued", "waiting", "placing", "awarded", "cancelling", "done", "failed", "cancelled", "refused", "returned"];

const columns = [
  { head: "Job", text: (j) => short(j.id), width: "6rem" },
  { head: "Name", text: (j) => j.name ?? "", width: "minmax(8rem, 1.6fr)" },
  { head: "State", show: (j) => <State of={j.state} />, value: (j) => order.indexOf(j.state), width: "7.5rem" },
  { head: "Site", text: (j) => j.siteName ?? "–" },
  { head: "User", text: (j) => j.user ?? "" },
  { head: "Processors", text: (j) => whole(j.processors), value: (j) => j.processors, number: true },
  { head: "Submitted", text: (j) => clock(j.submitted), value: (j) => j.submitted },
  { head: "Cost", text: (j) => credits(j.cost), value: (j) => j.cost, number: true },
];

export function Jobs() {
  const [text, setText] = useState("");
  const [state, setState] = useState("");
  const counts = {};
  for (const j of jobs.value) counts[j.state] = (counts[j.state] ?? 0) + 1;
  const wanted = text.toLowerCase();
  const list = jobs.value.filter((j) => (!state || j.state === state) &&
    (!wanted || j.id.startsWith(wanted) || [j.name, j.user, j.siteName].some((t) => t?.toLowerCase().includes(wanted))));
  return (
    <>
      <h1>Jobs</h1>
      <div class="filter">
        <input type="search" placeholder="Name, site, user or ID" aria-label="Filter jobs" value={text} onInput={(e) => setText(e.currentTarget.value)} />
        <span role="group" aria-label="States">
          <button type="button" aria-pressed={state === ""} onClick={() => setState("")}>all {jobs.value.length}</button>
          {order.filter((s) => counts[s]).map((s) => (
            <button type="button" key={s} aria-pressed={state === s} onClick={() => setState(state === s ? "" : s)}>{s} {counts[s]}</button>
          ))}
        </span>
      </div>
      <Table label="Jobs" columns={columns} rows={list} keyOf={(j) => j.id} onOpen={(j) => { location.hash = `#/jobs/${j.id}`; }}
        height="70vh" empty="No job. Submit one, or take the filter away." />
    </>
  );
}

function Why({ job }) {
  const [answer, setAnswer] = useState(null);
  const [failure, setFailure] = useState("");
  useEffect(() => {
    const abort = new AbortController();
    get(`/v1/jobs/${job.id}/why`, abort.signal).then(setAnswer, (e) => e.name !== "AbortError" && setFailure(e.message));
    return () => abort.abort();
  }, [job.id, job.state, job.epoch]);
  if (failure) return <p class="hint">{failure}</p>;
  return answer && <Verdicts answer={answer} />;
}

export function Verdicts({ answer }) {
  if (answer.verdicts.length === 0) return <p class="hint">No site was asked.</p>;
  return (
    <table class="plain">
      <thead><tr><th>Site</th><th class="number">Price</th><th class="number">Cost</th><th>Would end</th><th>Outcome</th></tr></thead>
      <tbody>
        {answer.verdicts.map((v) => (
          <tr key={v.site} class={v.outcome === "chosen" ? "chosen" : ""}>
            <td>{v.siteName || short(v.site)}</td><td class="number">{credits(v.price)}</td><td class="number">{credits(v.cost)}</td>
            <td>{clock(v.finish)}</td><td>{v.outcome}{v.detail ? `: ${v.detail}` : ""}</td>
          </tr>
        ))}
      </tbody>
    </table>
  );
}

// find returns a job as the daemon keeps it, or what the job log has of it.
async function find(id, signal) {
  try {
    return await get(`/v1/jobs/${id}`, signal);
  } catch (e) {
    const line = e.code === "notFound" ? await past(id, signal).catch(() => null) : null;
    if (line) return { past: line };
    throw e;
  }
}

export function Job({ id }) {
  const found = jobs.value.find((j) => j.id === id);
  const [stream, setStream] = useState("stdout");
  const [asked, setAsked] = useState(null);
  const [, setBeat] = useState(0);
  useEffect(() => {
    if (found) return;
    const abort = new AbortController();
    find(id, abort.signal).then(setAsked, (e) => abort.signal.aborted || setAsked({ failure: e.message }));
    return () => abort.abort();
  }, [id, Boolean(found)]);
  useEffect(() => {
    const timer = setInterval(() => setBeat((n) => n + 1), 1000);
    return () => clearInterval(timer);
  }, []);
  const job = found ?? asked;
  if (!job) return <p class="wait">Asking the daemon…</p>;
  if (job.past) return <Past line={job.past} />;
  if (job.failure) return <p class="failure" role="alert">{job.failure}</p>;
  const ran = job.start ? (new Date(job.end ?? Date.now()) - new Date(job.start)) / 1000 : undefined;
  const change = (what) => () => post(`/v1/${what}`, { ids: [job.id] });
  return (
    <>
      <p><a href="#/jobs">← Jobs</a></p>
      <h1>{job.name || short(job.id)} <State of={job.state} /></h1>
      {job.reason && <p>{job.reason}</p>}
      {job.waitsFor && <p>Waits: {job.waitsFor}.</p>}
      <p class="actions">
        {!over(job) && <Action kind="danger" sure="End this job?" run={change("cancel")}>Cancel</Action>}
        {job.state === "waiting" && job.waitsFor !== "held" && <Action run={change("hold")}>Hold</Action>}
        {job.waitsFor === "held" && <Action run={change("release")}>Release</Action>}
        {over(job) && !job.foreign && <Action run={change("requeue")}>Run again</Action>}
      </p>
      <dl class="facts">
        <div><dt>ID</dt><dd><code>{job.id}</code></dd></div>
        <div><dt>Site</dt><dd>{job.siteName ?? "–"}</dd></div>
        <div><dt>User</dt><dd>{job.user}</dd></div>
        <div><dt>Processors</dt><dd>{whole(job.processors)}</dd></div>
        <div><dt>Submitted</dt><dd>{clock(job.submitted)}</dd></div>
        <div><dt>Started</dt><dd>{clock(job.start)}</dd></div>
        <div><dt>{over(job) ? "Ran" : "Runs for"}</dt><dd>{span(ran)} of {span(job.time)}</dd></div>
        {job.deadline && <div><dt>Deadline</dt><dd>{clock(job.deadline)}</dd></div>}
        {job.promisedFinish && <div><dt>Promised</dt><dd>{clock(job.promisedFinish)}</dd></div>}
        <div><dt>{over(job) ? "Cost" : "Costs at most"}</dt><dd>{credits(job.cost)}</dd></div>
        {job.exitCode !== undefined && <div><dt>Exit code</dt><dd>{job.exitCode}</dd></div>}
      </dl>
      {job.args && <pre class="command">{job.args.join(" ")}</pre>}
      {!job.brief && (
        <>
          <h2>Output</h2>
          <p role="group" aria-label="Stream">
            {["stdout", "stderr"].map((s) => <button type="button" key={s} aria-pressed={stream === s} onClick={() => setStream(s)}>{s}</button>)}
          </p>
          {job.start ? <Output id={job.id} stream={stream} key={`${job.id}-${job.epoch}-${stream}`} /> : <p class="hint">It has not started.</p>}
          <h2>Why there</h2>
          <Why job={job} />
        </>
      )}
    </>
  );
}
