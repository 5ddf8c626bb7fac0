// A table of any length: of the rows only those in sight are there.
import { useRef, useState, useLayoutEffect } from "preact/hooks";

const rowHeight = 34;
const spare = 8; // rows above and below those in sight

export function Table({ label, columns, rows, keyOf, onOpen, height, empty = "Nothing yet." }) {
  const box = useRef(null);
  const [view, setView] = useState({ top: 0, height: 600 });
  const [sort, setSort] = useState(null);
  useLayoutEffect(() => {
    const at = box.current;
    const look = () => setView({ top: at.scrollTop, height: at.clientHeight });
    look();
    const observer = new ResizeObserver(look);
    observer.observe(at);
    return () => observer.disconnect();
  }, []);
  let list = rows;
  if (sort) {
    const value = columns[sort.by].value ?? columns[sort.by].text;
    const order = (a, b) => {
      const x = value(a) ?? "", y = value(b) ?? "";
      return x < y ? -1 : x > y ? 1 : 0;
    };
    list = [...rows].sort((a, b) => (sort.down ? order(b, a) : order(a, b)));
  }
  const first = Math.max(0, Math.floor(view.top / rowHeight) - spare);
  const last = Math.min(list.length, Math.ceil((view.top + view.height) / rowHeight) + spare);
  const template = columns.map((c) => c.width ?? "minmax(6rem, 1fr)").join(" ");
  const onKey = (event, row) => {
    const move = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (move) {
      const other = move > 0 ? event.currentTarget.nextElementSibling : event.currentTarget.previousElementSibling;
      if (other?.dataset.row) other.focus();
      event.preventDefault();
    } else if (event.key === "Enter" && onOpen) {
      onOpen(row);
    }
  };
  return (
    <div class="table" role="table" aria-label={label} aria-rowcount={list.length + 1} style={{ "--columns": template }}>
      <div role="rowgroup">
        <div class="head" role="row">
          {columns.map((c, i) => (
            <div role="columnheader" class={c.number ? "number" : ""} aria-sort={sort?.by === i ? (sort.down ? "descending" : "ascending") : "none"}>
              <button type="button" onClick={() => setSort(sort?.by === i ? (sort.down ? null : { by: i, down: true }) : { by: i, down: false })}>
                {c.head}{sort?.by === i ? (sort.down ? " ▾" : " ▴") : ""}
              </button>
            </div>
          ))}
        </div>
      </div>
      <div class="body" role="rowgroup" ref={box} style={{ maxHeight: height ?? "60vh" }} tabIndex={0} aria-label={`rows of ${label}`}
        onScroll={(e) => setView({ top: e.currentTarget.scrollTop, height: e.currentTarget.clientHeight })}>
        {list.length === 0 && <div role="row" class="empty"><div role="cell">{empty}</div></div>}
        <div role="presentation" style={{ height: `${first * rowHeight}px` }} />
        {list.slice(first, last).map((row, i) => (
          <div role="row" class={onOpen ? "row open" : "row"} data-row="1" key={keyOf(row)} aria-rowindex={first + i + 2} tabIndex={onOpen ? 0 : undefined}
            onClick={onOpen && (() => onOpen(row))} onKeyDown={(e) => onKey(e, row)}>
            {columns.map((c) => <div role="cell" class={c.number ? "number" : ""}>{c.show ? c.show(row) : c.text(row)}</div>)}
          </div>
        ))}
        <div role="presentation" style={{ height: `${(list.length - last) * rowHeight}px` }} />
      </div>
    </div>
  );
}
