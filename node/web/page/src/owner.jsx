import { useEffect, useState } from "preact/hooks";
import { get, post } from "./client.js";
import { leases, rates } from "./state.js";
import { Table } from "./table.jsx";
import { Action, State } from "./parts.jsx";
import { clock, credits, short, size, span, whole } from "./text.js";

// useAsked asks for several things every five seconds; those that are refused are left out.
function useAsked(paths) {
  const [answers, setAnswers] = useState({});
  const [beat, setBeat] = useState(0);
  useEffect(() => {
    const abort = new AbortController();
    Promise.all(paths.map((p) => get(p, abort.signal).catch((e) => ({ failure: e.message }))))
      .then((list) => !abort.signal.aborted && setAnswers(Object.fromEntries(paths.map((p, i) => [p, list[i]]))));
    const timer = setTimeout(() => setBeat(beat + 1), 5000);
    return () => {
      abort.abort();
      clearTimeout(timer);
    };
  }, [beat]);
  return [answers, () => setBeat(beat + 1)];
}

export function Owner() {
  const [answers, again] = useAsked(["/v1/guests", "/v1/links", "/v1/peers", "/v1/members"]);
  const guests = answers["/v1/guests"], links = answers["/v1/links"], peers = answers["/v1/peers"], members = answers["/v1/members"];
  const act = (path, body) => async () => {
    await post(path, body);
    again();
  };
  const change = (what, guest) => act(`/v1/guests/${what}`, { jobs: [guest.id] });
  return (
    <>
      <h1>Owner</h1>
      <h2>Guests</h2>
      {guests?.failure && <p class="hint">{guests.failure}</p>}
      {guests?.guests && (
        <Table label="Guests" rows={guests.guests} keyOf={(g) => g.kind + g.id + g.site} height="30vh" empty="Nobody's job but one's own is here." columns={[
          { head: "Site", text: (g) => g.name || short(g.site) },
          { head: "What", text: (g) => (g.kind === "lease" ? `lease ${g.id}` : `${g.job} of ${g.user}`), width: "minmax(10rem, 2fr)" },
          { head: "State", show: (g) => <State of={g.state} />, value: (g) => g.state },
          { head: "Processors", text: (g) => whole(g.processors), value: (g) => g.processors, number: true },
          { head: "Since", text: (g) => clock(g.since), value: (g) => g.since },
          { head: "What to do", show: (g) => g.kind === "job" && (
            <span class="actions">
              <Action kind="danger" sure={`End the job of ${g.name}?`} run={change("cancel", g)}>Cancel</Action>
              <Action kind="danger" sure={`Take nothing more of ${g.name}, and end what it has here?`} run={act("/v1/guests/ban", { site: g.site })}>Ban</Action>
            </span>), width: "minmax(10rem, 1fr)" },
        ]} />
      )}
      {guests?.bans?.length > 0 && (
        <ul>{guests.bans.map((b) => (
          <li key={b.site ?? b.organisation}>{b.site ?? b.organisation} is banned {b.until ? `until ${clock(b.until)}` : "until it is lifted"}. {b.reason}{" "}
            <Action run={act("/v1/guests/unban", b.site ? { site: b.site } : { organisation: b.organisation })}>Lift</Action></li>
        ))}</ul>
      )}
      {guests?.refused && Object.keys(guests.refused).length > 0 && (
        <p>Refused since the start: {Object.entries(guests.refused).map(([cause, n]) => `${cause} ${n}`).join(", ")}.</p>
      )}
      <h2>Leases</h2>
      <Table label="Leases" rows={leases.value} keyOf={(l) => l.direction + l.number + l.borrower} height="26vh" empty="Nothing is lent or borrowed." columns={[
        { head: "Direction", text: (l) => (l.direction === "in" ? "borrowed of" : "lent to") },
        { head: "Site", text: (l) => l.peer },
        { head: "Processors", text: (l) => whole(l.processors), value: (l) => l.processors, number: true },
        { head: "State", show: (l) => <State of={l.state} />, value: (l) => l.state },
        { head: "Until", text: (l) => clock(l.end), value: (l) => l.end },
        { head: "Price", text: (l) => credits(l.price), value: (l) => l.price, number: true },
      ]} />
      <h2>Members and partners</h2>
      {members?.members && <p>{members.open ? "The federation is open: it has no members, and this site runs no jobs of others." : `${members.members.length} members have been met.`}</p>}
      {links?.links && <p>{links.links.length === 0 ? "No links." : links.links.map((l) => `${l.peer || short(l.site)} (${l.relation}, ${l.standing})`).join(", ")}</p>}
      <h2>Peers</h2>
      {peers?.peers && (
        <Table label="Peers" rows={peers.peers} keyOf={(p) => p.id} height="30vh" columns={[
          { head: "Site", text: (p) => p.name || short(p.id) },
          { head: "Address", text: (p) => p.address, width: "minmax(12rem, 2fr)" },
          { head: "Round trip", text: (p) => span(p.latency), value: (p) => p.latency, number: true },
          { head: "Connected", text: (p) => clock(p.since), value: (p) => p.since },
          { head: "Messages", text: (p) => whole(p.messages), value: (p) => p.messages, number: true },
          { head: "Bytes", text: (p) => size(p.bytes), value: (p) => p.bytes, number: true },
          { head: "Held back", text: (p) => whole(p.held), value: (p) => p.held, number: true },
        ]} />
      )}
      <h2>Messages</h2>
      <Table label="Messages" rows={rates.value} keyOf={(m) => m.kind} height="40vh" columns={[
        { head: "Kind", text: (m) => m.kind, width: "minmax(12rem, 2fr)" },
        { head: "Sent a minute", text: (m) => (m.sentRate === null ? "–" : m.sentRate.toFixed(1)), value: (m) => m.sentRate, number: true },
        { head: "Received a minute", text: (m) => (m.receivedRate === null ? "–" : m.receivedRate.toFixed(1)), value: (m) => m.receivedRate, number: true },
        { head: "Sent", text: (m) => whole(m.sent), value: (m) => m.sent, number: true },
        { head: "Received", text: (m) => whole(m.received), value: (m) => m.received, number: true },
        { head: "Bytes received", text: (m) => size(m.receivedBytes), value: (m) => m.receivedBytes, number: true },
      ]} />
    </>
  );
}

export function Bank() {
  const [answers] = useAsked(["/v1/bank/balance", "/v1/bank/statement?limit=100"]);
  const balance = answers["/v1/bank/balance"], statement = answers["/v1/bank/statement?limit=100"];
  if (!balance) return <p class="wait">Asking the daemon…</p>;
  const account = balance.accounts?.[0];
  return (
    <>
      <h1>Bank</h1>
      {balance.failure && <p class="hint">{balance.failure}</p>}
      {!balance.failure && (
        <dl class="facts">
          {account && Object.entries(account).filter(([, v]) => typeof v === "number").map(([k, v]) => <div key={k}><dt>{k}</dt><dd>{credits(v)}</dd></div>)}
          <div><dt>paid</dt><dd>{credits(balance.paid)}</dd></div>
          <div><dt>earned</dt><dd>{credits(balance.earned)}</dd></div>
          <div><dt>unpaid</dt><dd>{credits(balance.unpaid)}</dd></div>
        </dl>
      )}
      {statement?.entries && (
        <Table label="Statement" rows={statement.entries} keyOf={(e) => e.sequence} height="60vh" columns={[
          { head: "When", text: (e) => clock(e.at), value: (e) => e.at },
          { head: "Kind", text: (e) => e.kind },
          { head: "With", text: (e) => e.otherName || (e.other ? short(e.other) : "–") },
          { head: "For", text: (e) => (e.job ? `job ${short(e.job)}` : e.lease ? `lease ${e.lease}` : "") },
          { head: "Settled", text: (e) => credits(e.settled), value: (e) => e.settled, number: true },
          { head: "Committed", text: (e) => credits(e.committed), value: (e) => e.committed, number: true },
        ]} />
      )}
    </>
  );
}
