/** Translate lines as a page does, greedily and with a beam of 5: `node doors.js FIXTURE…`. */

import { readFileSync } from "node:fs";
import type { CarriedModel } from "../src/model/config";
import { GREEDY } from "../src/model/decode";
import { plainQuestion, PageModel } from "../src/trace/page_model";

interface Fixture {
  model: CarriedModel;
  lines: string[];
}

for (const path of process.argv.slice(2)) {
  const { model, lines }: Fixture = JSON.parse(readFileSync(path, "utf-8"));
  const page = new PageModel(model);
  const greedy: string[] = [];
  const beam: string[] = [];
  for (const line of lines) {
    const question = plainQuestion(line);
    greedy.push((await page.ask(question)).trace.records.text);
    beam.push((await page.ask({ ...question, decoding: { ...GREEDY, method: "beam", beam: 5 } })).trace.records.text);
  }
  console.log(JSON.stringify({ greedy, beam }));
}
