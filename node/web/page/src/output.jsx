// What a job writes, as it comes. A connection that breaks is made again, and goes on where it was.
import { useEffect, useRef, useState } from "preact/hooks";
import { ask, get, sleep } from "./client.js";
import { over } from "./text.js";

const outputMax = 1 << 20; // characters shown
const pauseLeast = 200, pauseMost = 5000; // ms between two tries

// follow yields the output of an execution of a job in pieces of text until the job is over,
// however often the connection breaks.
async function* follow(id, stream, signal) {
  const decoder = new TextDecoder(); // of all connections: a character may come over two
  let execution = "", offset = 0; // behind what has come
  for (let pause = pauseLeast; ; pause = Math.min(2 * pause, pauseMost)) {
    try {
      const from = execution ? `&from=${execution}-${offset}` : "";
      const response = await ask("GET", `/v1/jobs/${id}/logs?stream=${stream}&follow=true${from}`, undefined, signal);
      const [epoch, begin] = (response.headers.get("Gridnode-Output") ?? "").split("-");
      if (epoch) [execution, offset] = [epoch, Number(begin)];
      for (const reader = response.body.getReader(); ; ) {
        const { value, done } = await reader.read();
        if (done) break;
        offset += value.length;
        pause = pauseLeast;
        yield decoder.decode(value, { stream: true });
      }
      if (over(await get(`/v1/jobs/${id}`, signal))) return; // else the daemon ended it, which stops
    } catch (e) {
      if (e.code ? !["unavailable", "busy"].includes(e.code) : e.name === "AbortError") throw e;
    }
    await sleep(pause);
    signal.throwIfAborted();
  }
}

export function Output({ id, stream }) {
  const [text, setText] = useState("");
  const [failure, setFailure] = useState("");
  const box = useRef(null);
  useEffect(() => {
    const abort = new AbortController();
    let all = "", planned = false;
    setText("");
    setFailure("");
    (async () => {
      try {
        for await (const part of follow(id, stream, abort.signal)) {
          all = (all + part).slice(-outputMax);
          if (!planned) {
            planned = true;
            setTimeout(() => { planned = false; setText(all); }, 100);
          }
        }
      } catch (e) {
        if (e.name !== "AbortError") setFailure(e.message);
      }
    })();
    return () => abort.abort();
  }, [id, stream]);
  useEffect(() => {
    const b = box.current;
    if (b && b.scrollHeight - b.scrollTop - b.clientHeight < 120) b.scrollTop = b.scrollHeight;
  }, [text]);
  return (
    <>
      <pre class="output" ref={box} tabIndex={0} aria-label={`${stream} of the job`}>{text}</pre>
      {failure && <p class="failure" role="alert">{failure}</p>}
    </>
  );
}
