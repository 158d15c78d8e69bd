/** Compare the page's model with Python: `node parity.js FIXTURE…` writes a line of JSON for each. */

import { bytesOf } from "../src/model/config";
import { GREEDY } from "../src/model/decode";
import { itemAt } from "../src/model/items";
import { PageModel, plainQuestion } from "../src/trace/page_model";
import { readFixture } from "./fixture";

async function comparePage(path: string) {
  const { model, sentences } = readFixture(path);
  const page = new PageModel(model);
  const differences: Record<string, number> = {};
  const wrong: string[] = [];
  const milliseconds: number[] = [];
  for (const sentence of sentences) {
    const { ids } = page.tokenizer.encodeSource(sentence.text);
    const say = (what: string) => wrong.push(`${what}: ${JSON.stringify(sentence.text)}`);
    if (String(ids) !== String(sentence.source_ids)) say("source ids");
    const started = performance.now();
    const { trace, hypotheses } = await page.ask(plainQuestion(sentence.text));
    milliseconds.push(performance.now() - started);
    const best = itemAt(hypotheses, 0);
    if (String(best.ids) !== String(sentence.greedy.ids)) say("greedy ids");
    if (trace.records.text !== sentence.greedy.text) say("text");
    const beam = await page.ask({ ...plainQuestion(sentence.text), decoding: { ...GREEDY, method: "beam", beam: 5 } });
    const bestOfBeam = itemAt(beam.hypotheses, 0);
    if (String(bestOfBeam.ids) !== String(sentence.beam.ids)) say("beam ids");
    note("beam.score", Math.abs(bestOfBeam.score - sentence.beam.score), Math.abs(sentence.beam.score));
    sentence.greedy.logs.forEach((log, i) => note("log_probabilities", Math.abs(log - (best.logs[i] ?? NaN)), Math.abs(log)));
    const here = page.replay(ids, [model.tokenizer.target_start_id, ...sentence.greedy.ids.slice(0, -1)]);
    for (const [name, { shape, data }] of Object.entries(sentence.arrays)) {
      const ours = here.get(name);
      const theirs = new Float32Array(bytesOf(data).buffer);
      if (!ours || String(ours.shape) !== String(shape)) {
        say(`${name} has the shape ${ours?.shape}, not ${shape}`);
        continue;
      }
      // Sums that cancel are as exact as their largest parts, so an array is judged by its own size.
      const size = theirs.reduce((most, one) => (Number.isFinite(one) ? Math.max(most, Math.abs(one)) : most), 0);
      theirs.forEach((one, i) => {
        const own = ours.data[i] ?? NaN;
        note(name, Object.is(one, own) ? 0 : Math.abs(one - own), size);
      });
    }
    for (const name of here.keys()) if (!(name in sentence.arrays)) say(`${name} is not in Python's trace`);
  }

  function note(name: string, difference: number, size = 0): void {
    // NaN must not pass as small.
    const relative = difference / Math.max(1, size);
    const value = Number.isNaN(relative) ? Infinity : relative;
    differences[name] = Math.max(differences[name] ?? 0, value);
  }

  milliseconds.sort((a, b) => a - b);
  const median = milliseconds[milliseconds.length >> 1];
  return { differences, wrong, milliseconds: { median, longest: milliseconds.at(-1) } };
}

for (const path of process.argv.slice(2)) console.log(JSON.stringify(await comparePage(path)));
