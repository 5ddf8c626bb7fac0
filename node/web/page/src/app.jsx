import { render } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import { signal } from "@preact/signals";
import { known, reached, setKey, takeKey } from "./client.js";
import { node, start, visiting } from "./state.js";
import { Federation, Prices } from "./federation.jsx";
import { Job, Jobs } from "./jobs.jsx";
import { Submit } from "./submit.jsx";
import { Site } from "./site.jsx";
import { Bank, Owner } from "./owner.jsx";
import { Reports } from "./reports.jsx";

const views = [
  ["", "Federation", Federation], ["jobs", "Jobs", Jobs], ["submit", "Submit", Submit], ["site", "This site", Site],
  ["prices", "Prices", Prices], ["bank", "Bank", Bank], ["owner", "Owner", Owner], ["reports", "Reports", Reports],
];

const open = new Set(["", "prices", "reports"]); // to visitors, too

const path = signal("");
const follow = () => { path.value = location.hash.replace(/^#\/?/, ""); };

function Login() {
  const [key, set] = useState("");
  return (
    <main>
      <h1>Who are you?</h1>
      <p>The daemon does not know this page, or not any more. On its machine, <code>gridnode web</code> prints an address that it
        knows for twelve hours, and <code>gridnode web --at SITE</code> that of another site. From elsewhere, give a token that an admin has made with <code>gridnode token create</code>.</p>
      <form class="login" onSubmit={(e) => { e.preventDefault(); setKey(key.trim()); }}>
        <label>Token<input type="password" value={key} onInput={(e) => set(e.currentTarget.value)} autocomplete="off" /></label>
        <button class="main" disabled={!key.trim()}>Go</button>
      </form>
    </main>
  );
}

function App() {
  const [name, id] = path.value.split("/");
  const shown = visiting.value ? views.filter((v) => open.has(v[0])) : views;
  const view = shown.find((v) => v[0] === name) ?? views[0];
  const main = useRef(null);
  useEffect(() => { document.title = `${view[1]} · ${node.value?.name ?? "gridnode"}`; });
  useEffect(() => { main.current?.focus({ preventScroll: true }); }, [path.value]);
  if (!known.value) return <Login />;
  const View = view[2];
  return (
    <>
      <header>
        <a class="brand" href="#/"><img src="icon.svg" alt="" width="22" height="22" /> {node.value?.name ?? "gridnode"}</a>
        {visiting.value && <span class="hint">you are a visitor from {node.value.caller.replace(/^@/, "")}</span>}
        <nav aria-label="Views">
          {shown.map(([path, label]) => <a key={path} href={`#/${path}`} aria-current={view[0] === path ? "page" : undefined}>{label}</a>)}
        </nav>
      </header>
      <div role="status" class="lost">{reached.value ? "" : "The daemon does not answer. The page shows what it said last, and goes on asking."}</div>
      <main ref={main} tabIndex={-1}>{view[0] === "jobs" && id ? <Job id={id} key={id} /> : <View />}</main>
    </>
  );
}

takeKey();
follow();
addEventListener("hashchange", () => {
  takeKey();
  follow();
});
start();
render(<App />, document.getElementById("app"));
