/** The effect of changes on a translation that stays the same: how likely it still is. */

import type { Change } from "../model/changes";
import { GREEDY, sum } from "../model/decode";
import type { Answer, Source } from "../trace/source";

/** The log-probability of a target under changes, less that without them. */
export async function effectOf(source: Source, text: string, answer: Answer, changes: Change[]): Promise<number> {
  const { predictedIds: target, logProbabilities } = answer.trace.records;
  const changed = await source.ask({ text, decoding: GREEDY, prefix: [], changes, target });
  return sum(changed.trace.records.logProbabilities) - sum(logProbabilities);
}
