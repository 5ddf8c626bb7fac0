import { useEffect, useState } from "preact/hooks";
import { sites } from "./state.js";
import { post } from "./client.js";
import { Verdicts } from "./jobs.jsx";
import { bytes, seconds } from "./text.js";

const blank = { command: "", name: "", tasks: "1", cpus: "1", memory: "", time: "15m", deadline: "", budget: "", policy: "", site: "" };

// spec is the job as the API takes it. What is typed wrong throws.
function spec(form) {
  const number = (key) => {
    if (form[key].trim() === "") return undefined;
    const n = Number(form[key]);
    if (!Number.isFinite(n) || n < 0) throw new Error(`${form[key]}: want a number`);
    return n;
  };
  return {
    args: ["sh", "-c", form.command],
    name: form.name.trim() || undefined,
    tasks: number("tasks"),
    cpusPerTask: number("cpus"),
    memoryPerProcessor: bytes(form.memory),
    time: seconds(form.time),
    deadlineIn: seconds(form.deadline),
    budget: number("budget"),
    policy: form.policy || undefined,
    site: form.site || undefined,
  };
}

export function Submit() {
  const [form, setForm] = useState(blank);
  const [offers, setOffers] = useState(null);
  const [failure, setFailure] = useState("");
  const [busy, setBusy] = useState(false);
  const set = (key) => (e) => setForm({ ...form, [key]: e.currentTarget.value });

  useEffect(() => {
    if (form.command.trim() === "") {
      setOffers(null);
      setFailure("");
      return;
    }
    const abort = new AbortController();
    const timer = setTimeout(async () => {
      try {
        setOffers(await post("/v1/preview", { jobs: [spec(form)] }, abort.signal));
        setFailure("");
      } catch (e) {
        if (e.name === "AbortError") return;
        setOffers(null);
        setFailure(e.message);
      }
    }, 300);
    return () => {
      clearTimeout(timer);
      abort.abort();
    };
  }, [JSON.stringify(form)]);

  const submit = async (e) => {
    e.preventDefault();
    setBusy(true);
    try {
      const reply = await post("/v1/jobs?wait=stored", { jobs: [spec(form)] });
      location.hash = `#/jobs/${reply.jobs[0].id}`;
    } catch (e) {
      setFailure(e.message);
      setBusy(false);
    }
  };
  const field = (key, label, more = {}) => (
    <label>{label}<input name={key} value={form[key]} onInput={set(key)} autocomplete="off" {...more} /></label>
  );
  return (
    <>
      <h1>Submit a job</h1>
      <form onSubmit={submit} class="submit">
        <label class="wide">Commands, for the shell
          <textarea name="command" rows={4} required value={form.command} onInput={set("command")} placeholder="python3 analyse.py" spellcheck={false} />
        </label>
        {field("name", "Name")}
        {field("tasks", "Tasks", { inputMode: "numeric" })}
        {field("cpus", "Processors a task", { inputMode: "numeric" })}
        {field("memory", "Memory a processor", { placeholder: "2G" })}
        {field("time", "Time at most", { placeholder: "15m" })}
        {field("deadline", "Has to end within", { placeholder: "2h" })}
        {field("budget", "May cost", { inputMode: "decimal" })}
        <label>Policy
          <select name="policy" value={form.policy} onChange={set("policy")}>
            <option value="">default</option>
            {["cheapest", "fastest", "local", "spill"].map((p) => <option key={p}>{p}</option>)}
          </select>
        </label>
        <label>Site
          <select name="site" value={form.site} onChange={set("site")}>
            <option value="">any</option>
            {sites.value.map((s) => <option key={s.id} value={s.id}>{s.name}</option>)}
          </select>
        </label>
        <div class="wide"><button class="main" disabled={busy || form.command.trim() === ""}>Submit</button></div>
      </form>
      {failure && <p class="failure" role="alert">{failure}</p>}
      {offers && (
        <section aria-live="polite">
          <h2>{offers.feasible ? "What it would get now" : "No site would take it as it is"}</h2>
          <Verdicts answer={offers} />
        </section>
      )}
    </>
  );
}
