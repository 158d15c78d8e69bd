/** What decoding needs of a model, whichever it is, and what accompanies its work. */

import type { Change } from "./changes";
import type { Tensor } from "./tensor";

/** What accompanies a run: the changes to make, and where to keep results. */
export interface Run {
  changes: Change[];
  keep?: Map<string, Tensor>;
}

/** A model to decode with. Its state remembers how many rows it has read. */
export interface Network {
  readonly config: { max_target_length: number };
  begin(memory: Tensor): { length: number };
  /** Continue a state, for another hypothesis. */
  fork(state: { length: number }): { length: number };
  /** Read the next rows: their states, (rows, D). */
  step(state: { length: number }, ids: number[], run: Run): Tensor;
  logits(states: Tensor, run: Run): Tensor;
}
