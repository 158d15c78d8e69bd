/** Compare the page's measures with Python: `node measures.js FIXTURE…` writes a line of JSON for each. */

import { readFileSync } from "node:fs";
import { agreement } from "../src/measures/agreement";
import type { CarriedModel } from "../src/model/config";
import { itemAt } from "../src/model/items";
import { plainQuestion, PageModel } from "../src/trace/page_model";

interface Fixture {
  model: CarriedModel;
  sentences: { text: string; layer: number; maps: Record<string, number[][]>; kendall: (number | null)[][] }[];
}

async function compareMeasures(path: string) {
  const { model, sentences }: Fixture = JSON.parse(readFileSync(path, "utf-8"));
  const page = new PageModel(model);
  const differences: Record<string, number> = {};
  const note = (name: string, difference: number) =>
    (differences[name] = Math.max(differences[name] ?? 0, Number.isNaN(difference) ? Infinity : difference));
  for (const { text, layer, maps, kendall } of sentences) {
    const { trace } = await page.ask(plainQuestion(text));
    const given = [];
    for (const [name, rows] of Object.entries(maps)) {
      const { map } = await page.measure(name, trace, layer);
      const theirs = rows.flat();
      given.push({ ...map, data: Float64Array.from(theirs) });
      if (theirs.length !== map.data.length) note(name, Infinity);
      const size = Math.max(1, ...theirs.map(Math.abs));
      theirs.forEach((value, i) => note(name, Math.abs(value - (map.data[i] ?? NaN)) / size));
    }
    // Of the same numbers, so that two nearly equal ones cannot change places.
    const correlations = agreement(given);
    kendall.flat().forEach((value, i) => {
      const ours = itemAt(correlations.data, i);
      note("kendall", value === null && Number.isNaN(ours) ? 0 : Math.abs((value ?? NaN) - ours));
    });
  }
  return { differences, wrong: [] };
}

for (const path of process.argv.slice(2)) console.log(JSON.stringify(await compareMeasures(path)));
