/** Compare the models of the duel with Python: `node others.js FIXTURE…` writes a line of JSON for each. */

import { readFileSync } from "node:fs";
import { bytesOf, unpackWeights, type CarriedModel } from "../src/model/config";
import { Recurrent } from "../src/model/recurrent";
import { Transformer } from "../src/model/transformer";
import { OtherModel } from "../src/trace/other_model";

interface Fixture {
  model: CarriedModel;
  sentences: { text: string; source_ids: number[]; inputs: number[]; logits: string; target: string }[];
}

for (const path of process.argv.slice(2)) {
  const { model, sentences }: Fixture = JSON.parse(readFileSync(path, "utf-8"));
  const network = new (model.model.architecture === "recurrent" ? Recurrent : Transformer)(model.model, unpackWeights(model));
  const run = { changes: [] };
  let difference = 0;
  const wrong: string[] = [];
  for (const { text, source_ids, inputs, logits, target } of sentences) {
    const state = network.begin(network.encode(source_ids, run)) as never;
    const ours = network.logits(network.step(state, inputs, run), run).data;
    const theirs = new Float32Array(bytesOf(logits).buffer);
    const size = theirs.reduce((most, one) => Math.max(most, Math.abs(one)), 1);
    // NaN must not pass as small.
    theirs.forEach((one, i) => {
      const gap = Math.abs(one - (ours[i] ?? NaN)) / size;
      difference = Math.max(difference, Number.isNaN(gap) ? Infinity : gap);
    });
    const written = await new OtherModel(model).write(text);
    if (written !== target) wrong.push(`${written} instead of ${target}`);
  }
  console.log(JSON.stringify({ difference, wrong }));
}
