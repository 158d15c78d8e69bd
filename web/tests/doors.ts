/** Translate lines as a page does, greedily, and some with a beam of 5: `node doors.js FIXTURE…`. */

import { readFileSync } from "node:fs";
import type { CarriedModel } from "../src/model/config";
import { GREEDY } from "../src/model/decode";
import { plainQuestion, PageModel } from "../src/trace/page_model";

interface Fixture {
  model: CarriedModel;
  lines: string[];
  searched: string[];
}

for (const path of process.argv.slice(2)) {
  const { model, lines, searched }: Fixture = JSON.parse(readFileSync(path, "utf-8"));
  const page = new PageModel(model);
  const greedy: string[] = [];
  const beam: string[] = [];
  for (const line of lines) greedy.push((await page.ask(plainQuestion(line))).trace.records.text);
  for (const line of searched) {
    const question = { ...plainQuestion(line), decoding: { ...GREEDY, method: "beam" as const, beam: 5 } };
    beam.push((await page.ask(question)).trace.records.text);
  }
  console.log(JSON.stringify({ greedy, beam }));
}
