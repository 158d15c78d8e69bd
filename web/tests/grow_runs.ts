/** Train as the page does: `node grow_runs.js REMOVAL,SEED…` (-1 removes nothing) writes a line of JSON for each. */

import { WHOLE } from "../src/grow/model";
import { REMOVALS } from "../src/grow/removals";
import { Run } from "../src/grow/training";
import { itemAt } from "../src/model/items";

for (const asked of process.argv.slice(2)) {
  const [removal = -1, seed = 1] = asked.split(",").map(Number);
  const run = new Run(removal < 0 ? WHOLE : itemAt(REMOVALS, removal).form, seed);
  const started = performance.now();
  for (const _ of run.train());
  const seconds = (performance.now() - started) / 1000;
  const { right, rightPronouns, lastLoss } = run;
  console.log(
    JSON.stringify({
      without: REMOVALS[removal]?.name ?? "nothing",
      seed,
      moments: [0, 1, 2, 3].map((pair) => run.momentOf(pair)),
      lastLoss,
      right,
      rightPronouns,
      seconds,
    }),
  );
}
