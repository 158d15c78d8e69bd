/** What a reader can take away, what may happen, and what was measured on larger models. */

import { itemAt } from "../model/items";
import { WHOLE, type Form } from "./model";
import type { Run } from "./training";

export interface Removal {
  name: string;
  form: Form;
  /** What docs/claims.md measured, to which a test holds the figures, and what differs here. */
  measured: string;
}

const without = (name: string, change: Partial<Form>, measured: string): Removal => ({ name, form: { ...WHOLE, ...change }, measured });
export const REMOVALS = [
  without(
    "the division by √d_k",
    { hasScale: false },
    "With larger heads, d_k = 64, four of six trainings failed without the division. Here d_k is 4, so that scores only double, which costs little.",
  ),
  without(
    "the look-ahead mask",
    { hasMask: false },
    "The same happens in larger models: a row reads the answer in the next place, so the loss falls, but a translation has no next word to read.",
  ),
  without(
    "the residual connections",
    { hasResidual: false },
    "With norms and one layer, one of three larger models still learned without them; with more layers none did.",
  ),
  without(
    "the layer norms",
    { hasNorm: false },
    "The same happens in larger models of one layer. With four, norms before each sub-layer help: 8 of 9 trainings learned, without norms 4 of 9.",
  ),
  without(
    "the positions",
    { hasPositions: false },
    "The same happens in larger models: 33 % of the sentences are right. The pronoun does not suffer here, because the words tell which noun is meant, and not their order.",
  ),
  without(
    "the matrix W_Q",
    { without: "query" },
    "Larger models without W_Q and W_K learned as well: the embeddings learn to be their own queries. Here only W_Q is missing.",
  ),
  without(
    "the matrix W_K",
    { without: "key" },
    "Larger models without W_Q and W_K learned as well. One of the two is enough: q · k depends only on their product.",
  ),
  without(
    "the matrix W_V",
    { without: "value" },
    "Larger models that used keys as values learned as well, in 1.0 to 1.4 times as many updates. Here the values are the vectors themselves, and W_O still mixes them.",
  ),
  without(
    "one head of four",
    { cut: 0 },
    "Of the 24 heads of a trained model, 0 to 3 could be cut without loss, by the sentences tried. Here the head is missing from the start, and the others learn its work.",
  ),
];

export const OUTCOMES = {
  learns: "It learns about as well",
  order: "Right pronouns, wrong sentences",
  cheats: "The loss falls, the translations fail",
  fails: "It hardly learns",
};
export type Outcome = keyof typeof OUTCOMES;

const middle = (values: number[]) =>
  itemAt(
    [...values].sort((a, b) => a - b),
    values.length >> 1,
  );

/** Judge runs by their middle one, next to the whole model's: half as many right sentences count as well. */
export function judge(runs: Run[], whole: Run[]): Outcome {
  if (middle(runs.map((run) => run.right)) >= middle(whole.map((run) => run.right)) / 2) return "learns";
  if (!(middle(runs.map((run) => run.lastLoss)) < 0.1)) return "fails";
  return middle(runs.map((run) => run.rightPronouns)) >= 0.9 ? "order" : "cheats";
}
