// Reports of experiments: the JSON that `gridnode testnet run|scale|reproduce -o json` prints.
import { useState } from "preact/hooks";
import { Table } from "./table.jsx";
import { Plot } from "./parts.jsx";

const rowsMax = 100_000;

// flat turns the fields of a row into names with dots, numbers and texts only.
function flat(value, prefix = "", into = {}) {
  for (const [key, v] of Object.entries(value)) {
    if (v !== null && typeof v === "object" && !Array.isArray(v)) flat(v, `${prefix}${key}.`, into);
    else if (!Array.isArray(v)) into[prefix + key] = v;
  }
  return into;
}

// parts finds what there is to show: single values, and lists of rows.
function parts(value, path = "", out = { facts: [], lists: [] }) {
  for (const [key, v] of Object.entries(value)) {
    const name = path ? `${path}.${key}` : key;
    if (Array.isArray(v)) {
      const rows = v.filter((r) => r && typeof r === "object").slice(0, rowsMax).map((r, i) => ({ ...flat(r), "#": i }));
      if (rows.length) out.lists.push({ name, rows });
      else if (v.length) out.facts.push([name, v.join(", ")]);
    } else if (v !== null && typeof v === "object") parts(v, name, out);
    else if (v !== null && v !== "") out.facts.push([name, v]);
  }
  return out;
}

const show = (v) => (typeof v === "number" ? v.toLocaleString("en", { maximumFractionDigits: 4 }) : String(v ?? ""));

function List({ name, rows }) {
  const keys = [...new Set(rows.flatMap((r) => Object.keys(r)))].filter((k) => k !== "#");
  const numbers = keys.filter((k) => rows.some((r) => typeof r[k] === "number"));
  const [x, setX] = useState("#");
  const [y, setY] = useState(numbers[0] ?? "");
  const points = rows.filter((r) => typeof r[x] === "number" && typeof r[y] === "number").map((r) => [r[x], r[y]]).sort((a, b) => a[0] - b[0]);
  return (
    <section>
      <h2>{name} <small>{rows.length} rows</small></h2>
      {rows.length > 1 && numbers.length > 0 && (
        <>
          <p class="filter">
            <label>Draw <select value={y} onChange={(e) => setY(e.currentTarget.value)}>{numbers.map((k) => <option key={k}>{k}</option>)}</select></label>
            <label>over <select value={x} onChange={(e) => setX(e.currentTarget.value)}><option value="#">row</option>{numbers.map((k) => <option key={k}>{k}</option>)}</select></label>
          </p>
          <Plot key={x + y} series={[{ label: y, points }]} y={y} label={`${y} over ${x}`} />
        </>
      )}
      <Table label={name} rows={rows} keyOf={(r) => r["#"]} height="40vh"
        columns={keys.map((k) => ({ head: k, text: (r) => show(r[k]), value: (r) => r[k], number: numbers.includes(k), width: "minmax(8rem, 1fr)" }))} />
    </section>
  );
}

export function Reports() {
  const [report, setReport] = useState(null);
  const [failure, setFailure] = useState("");
  const open = async (file) => {
    if (!file) return;
    try {
      const value = JSON.parse(await file.text());
      setReport({ name: file.name, ...parts(Array.isArray(value) ? { rows: value } : value) });
      setFailure("");
    } catch (e) {
      setReport(null);
      setFailure(`${file.name}: ${e.message}: want what 'gridnode testnet … -o json' prints`);
    }
  };
  return (
    <>
      <h1>Reports</h1>
      <label class="drop" onDragOver={(e) => e.preventDefault()} onDrop={(e) => { e.preventDefault(); open(e.dataTransfer.files[0]); }}>
        Open what <code>gridnode testnet run … -o json &gt; report.json</code> has written. It stays in this browser.
        <input type="file" accept=".json,application/json" onChange={(e) => open(e.currentTarget.files[0])} />
      </label>
      {failure && <p class="failure" role="alert">{failure}</p>}
      {report && (
        <>
          <h2>{report.name}</h2>
          <dl class="facts">{report.facts.slice(0, 200).map(([k, v]) => <div key={k}><dt>{k}</dt><dd>{show(v)}</dd></div>)}</dl>
          {report.lists.map((l) => <List key={report.name + l.name} {...l} />)}
        </>
      )}
    </>
  );
}
