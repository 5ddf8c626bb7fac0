// Search, and the choice of light or dark. `parts` is what search.js has: address, page,
// heading and words of each part of each page.
"use strict";

const query = document.getElementById("query");
const results = document.getElementById("results");
const up = document.documentElement.dataset.up;
const shown = 12; // parts that one look shows

const lower = parts.map(([to, page, heading, words]) => ({
  to, page, heading, words,
  title: (page + " " + heading).toLowerCase(),
  all: (page + " " + heading + " " + words).toLowerCase(),
}));

// worth says how well a part fits all words, 0 if one of them is not in it: a word in a
// heading counts more than one in the text, its beginning more than its middle, and words in
// the order in which they were given more than the same words apart.
function worth(part, words) {
  let sum = words.length > 1 && part.all.includes(words.join(" ")) ? 20 : 0;
  for (const word of words) {
    const at = part.all.indexOf(word);
    if (at < 0) return 0;
    const begins = (text, at) => at === 0 || (at > 0 && !/[\p{L}\p{N}]/u.test(text[at - 1]));
    const inTitle = part.title.indexOf(word);
    sum += 1 + (begins(part.all, at) ? 1 : 0) + (inTitle >= 0 ? 6 : 0) + (begins(part.title, inTitle) ? 6 : 0);
    const heading = part.heading.toLowerCase();
    if (heading === word || heading === words.join(" ")) sum += 10;
    sum += Math.min(part.all.split(word).length - 1, 8) / 4;
  }
  return sum;
}

// excerpt puts into element what stands around the first word that is found.
function excerpt(element, text, words) {
  const at = Math.max(0, Math.min(...words.map((word) => text.toLowerCase().indexOf(word)).filter((at) => at >= 0), text.length) - 60);
  let rest = (at > 0 ? "…" : "") + text.slice(at, at + 180) + (at + 180 < text.length ? "…" : "");
  while (rest) {
    const found = words.map((word) => [rest.toLowerCase().indexOf(word), word.length]).filter(([at]) => at >= 0).sort((a, b) => a[0] - b[0] || b[1] - a[1])[0];
    if (!found) break;
    const mark = document.createElement("mark");
    mark.textContent = rest.slice(found[0], found[0] + found[1]);
    element.append(rest.slice(0, found[0]), mark);
    rest = rest.slice(found[0] + found[1]);
  }
  element.append(rest);
}

function search() {
  const words = query.value.toLowerCase().split(/\s+/).filter(Boolean);
  results.hidden = words.length === 0;
  results.replaceChildren();
  if (words.length === 0) return;
  const found = lower.map((part, place) => ({ part, place, worth: worth(part, words) })).filter((f) => f.worth > 0)
    .sort((a, b) => b.worth - a.worth || a.place - b.place);
  const head = document.createElement("p");
  head.textContent = found.length === 0 ? "Nothing has all of these words." : found.length === 1 ? "one place" : `${found.length} places`;
  results.append(head);
  for (const { part } of found.slice(0, shown)) {
    const link = document.createElement("a");
    link.href = up + part.to;
    const title = document.createElement("strong");
    title.textContent = part.page === part.heading ? part.page : `${part.page}: ${part.heading}`;
    const text = document.createElement("span");
    excerpt(text, part.words, words);
    link.append(title, text);
    link.addEventListener("click", close);
    results.append(link);
  }
}

function close() {
  results.hidden = true;
}

query.addEventListener("input", search);
query.addEventListener("focus", search);

document.addEventListener("keydown", (event) => {
  const links = [...results.querySelectorAll("a")];
  const at = links.indexOf(document.activeElement);
  const inside = document.activeElement === query || at >= 0;
  if (event.key === "/" && !inside && !event.ctrlKey && !event.metaKey) {
    query.focus();
    query.select();
  } else if (event.key === "Escape" && inside) {
    query.focus();
    close();
  } else if (event.key === "ArrowDown" && inside && !results.hidden) {
    links[Math.min(at + 1, links.length - 1)]?.focus();
  } else if (event.key === "ArrowUp" && inside && !results.hidden) {
    (at <= 0 ? query : links[at - 1]).focus();
  } else if (event.key === "Enter" && document.activeElement === query && links.length > 0) {
    links[0].click();
  } else {
    return;
  }
  event.preventDefault();
});

document.addEventListener("click", (event) => {
  if (!event.target.closest("search")) close();
});

// The theme is the system's until somebody chooses; the choice lasts if the browser keeps it.
const theme = document.getElementById("theme");
const dark = () => (document.documentElement.dataset.theme ?? (matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light")) === "dark";
const name = () => { theme.textContent = dark() ? "Light" : "Dark"; };

try {
  const kept = localStorage.getItem("gridnode.manual.theme");
  if (kept === "light" || kept === "dark") document.documentElement.dataset.theme = kept;
} catch { /* a browser that keeps nothing */ }
theme.hidden = false;
name();
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", name);
theme.addEventListener("click", () => {
  document.documentElement.dataset.theme = dark() ? "light" : "dark";
  try { localStorage.setItem("gridnode.manual.theme", document.documentElement.dataset.theme); } catch { /* the same */ }
  name();
});
