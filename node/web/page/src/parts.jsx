import { useEffect, useRef, useState } from "preact/hooks";
import uPlot from "uplot";

export const State = ({ of }) => <span class={`state ${of}`}>{of}</span>;

export function Bar({ of, all, label }) {
  const part = all > 0 ? Math.min(1, of / all) : 0;
  return (
    <span class="bar" role="img" aria-label={`${of} of ${all} ${label}`}>
      <span style={{ width: `${100 * part}%` }} />
      <i>{of} / {all}</i>
    </span>
  );
}

// Action is a button that asks the daemon for something and says what came of it.
export function Action({ children, run, sure, kind = "" }) {
  const [busy, setBusy] = useState(false);
  const [failure, setFailure] = useState("");
  const go = async () => {
    if (sure && !confirm(sure)) return;
    setBusy(true);
    setFailure("");
    try {
      await run();
    } catch (e) {
      setFailure(e.message);
    }
    setBusy(false);
  };
  return (
    <>
      <button type="button" class={kind} disabled={busy} onClick={go}>{children}</button>
      {failure && <span role="alert" class="failure">{failure}</span>}
    </>
  );
}

const colours = ["#2b6cb0", "#c05621", "#2f855a", "#805ad5", "#b83280", "#b7791f", "#2c7a7b", "#9b2c2c", "#4a5568", "#5a67d8"];
export const colourOf = (i) => colours[i % colours.length];

// Plot draws lines: series is [{label, points: [[x, y], …]}], x seconds if time is true.
export function Plot({ series, time, y, label, height = 260 }) {
  const box = useRef(null);
  const plot = useRef(null);
  const names = series.map((s) => s.label).join("\n");
  const data = () => uPlot.join(series.map((s) => [s.points.map((p) => p[0]), s.points.map((p) => p[1])]));
  useEffect(() => {
    const ink = getComputedStyle(document.documentElement).getPropertyValue("--ink");
    const axis = { stroke: ink, grid: { stroke: "#8884", width: 1 }, ticks: { stroke: "#8884" } };
    plot.current = new uPlot({
      width: box.current.clientWidth, height, scales: { x: { time: Boolean(time) } },
      axes: [axis, { ...axis, label: y, size: 64 }],
      series: [{}, ...series.map((s, i) => ({ label: s.label, stroke: colourOf(i), width: 2, spanGaps: true, points: { show: s.points.length < 40 } }))],
    }, data(), box.current);
    const at = box.current;
    const observer = new ResizeObserver(() => plot.current?.setSize({ width: at.clientWidth, height }));
    observer.observe(at);
    return () => {
      observer.disconnect();
      plot.current.destroy();
      plot.current = null;
    };
  }, [names]);
  useEffect(() => { plot.current?.setData(data()); }, [series]);
  return <div class="plot" ref={box} role="img" aria-label={label} />;
}
