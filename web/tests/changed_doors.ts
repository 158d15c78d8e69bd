/** Translate under changes as a page does, by a server and by itself: `node changed_doors.js FIXTURE`. */

import { readFileSync } from "node:fs";
import { parseChange, type Change } from "../src/model/changes";
import type { CarriedModel } from "../src/model/config";
import { GREEDY } from "../src/model/decode";
import { PageModel } from "../src/trace/page_model";
import { ServiceModel } from "../src/trace/service_model";

interface Fixture {
  model: CarriedModel;
  address: string;
  /** A line, its changes as the page writes them, and the width of a beam. */
  asked: [string, string[], number][];
}

for (const path of process.argv.slice(2)) {
  const { model, address, asked }: Fixture = JSON.parse(readFileSync(path, "utf-8"));
  const own = new PageModel(model);
  const about = { command: "", languages: own.languages, model_hash: "", taught_head: "", about: "", unit: "words" as const };
  const send = (route: RequestInfo | URL, how?: RequestInit) => fetch(new URL(String(route), address), how);
  const served = new ServiceModel({ ...about, name: "m", vocabulary_size: 1 }, send, () => null);
  const byServer: string[] = [];
  const byPage: string[] = [];
  for (const [text, written, beam] of asked) {
    const changes = written.map((one) => parseChange(one) as Change);
    const method = beam > 1 ? ("beam" as const) : ("greedy" as const);
    const question = { text, decoding: { ...GREEDY, method, beam }, prefix: [], changes };
    byServer.push((await served.ask(question)).trace.records.text);
    byPage.push((await own.ask(question)).trace.records.text);
  }
  console.log(JSON.stringify({ server: byServer, page: byPage }));
}
