// How numbers are written for people.
export const credits = (v) => (v === undefined || v === null ? "–" : Number(v).toLocaleString("en", { maximumFractionDigits: 4 }));
export const whole = (v) => (v === undefined || v === null ? "–" : Math.round(v).toLocaleString("en"));

export function span(seconds) {
  if (seconds === undefined || seconds === null || !isFinite(seconds)) return "–";
  const s = Math.abs(seconds);
  if (s < 0.0000005) return "0 s";
  if (s < 0.001) return `${(seconds * 1e6).toFixed(0)} µs`;
  if (s < 1) return `${(seconds * 1e3).toFixed(s < 0.01 ? 1 : 0)} ms`;
  if (s < 60) return `${seconds.toFixed(s < 10 ? 1 : 0)} s`;
  if (s < 3600) return `${Math.floor(seconds / 60)} min ${Math.floor(seconds % 60)} s`;
  if (s < 86400) return `${Math.floor(seconds / 3600)} h ${Math.floor((seconds % 3600) / 60)} min`;
  return `${Math.floor(seconds / 86400)} d ${Math.floor((seconds % 86400) / 3600)} h`;
}

export function clock(instant) {
  if (!instant) return "–";
  const at = new Date(instant);
  const today = at.toDateString() === new Date().toDateString();
  return at.toLocaleString([], today ? { timeStyle: "medium" } : { dateStyle: "short", timeStyle: "short" });
}

const binary = ["B", "KiB", "MiB", "GiB", "TiB"];
export function size(bytes) {
  if (!bytes) return "–";
  let i = 0;
  for (; bytes >= 1024 && i < binary.length - 1; i++) bytes /= 1024;
  return `${bytes.toFixed(bytes < 10 && i ? 1 : 0)} ${binary[i]}`;
}

export const over = (job) => ["done", "failed", "cancelled", "refused", "returned"].includes(job.state);
export const short = (id) => id.slice(0, 8);

// seconds reads 90, 90s, 15m, 2h, 1d or 1:30:00.
export function seconds(text) {
  const t = text.trim();
  if (t === "") return undefined;
  const unit = { s: 1, m: 60, h: 3600, d: 86400 };
  const match = t.match(/^(\d+(?:\.\d+)?)\s*([smhd]?)$/);
  if (match) return Number(match[1]) * (unit[match[2]] ?? 1);
  if (/^\d+(:\d\d){1,2}$/.test(t)) return t.split(":").reduce((sum, part) => sum * 60 + Number(part), 0);
  throw new Error(`${text}: want a time such as 90s, 15m, 2h or 1:30:00`);
}

// bytes reads 512, 512M, 2G.
export function bytes(text) {
  const t = text.trim();
  if (t === "") return undefined;
  const match = t.match(/^(\d+(?:\.\d+)?)\s*([KMGT]?)i?B?$/i);
  if (!match) throw new Error(`${text}: want a size such as 512M or 2G`);
  return Math.round(Number(match[1]) * 1024 ** " KMGT".indexOf(match[2].toUpperCase() || " "));
}
