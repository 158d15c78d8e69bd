/** Read what Python wrote for a comparison: a model as a page carries it, sentences and traces. */

import { readFileSync } from "node:fs";
import type { CarriedModel } from "../src/model/config";

export interface Compared {
  text: string;
  source_ids: number[];
  /** Ids and text by greedy search and with a beam of 5. */
  greedy: { ids: number[]; logs: number[]; text: string };
  beam: { ids: number[]; score: number };
  arrays: Record<string, { shape: number[]; data: string }>;
}

export interface Fixture {
  model: CarriedModel;
  sentences: Compared[];
}

export const readFixture = (path: string): Fixture => JSON.parse(readFileSync(path, "utf-8"));
