/** What is said about a head from its weights, on maps that are worked out by hand. */

import { expect, test } from "vitest";
import { restsOn } from "../src/trace/figures";
import { Trace, type HeadPlace, type Records } from "../src/trace/trace";

const records: Records = {
  sourceTokens: ["The", "dog", "</s>"],
  sourceIds: [4, 5, 3],
  targetTokens: ["<s>", "Le", "chien"],
  predictedTokens: ["Le", "chien", "</s>"],
  predictedIds: [4, 5, 3],
  logProbabilities: [0, 0, 0],
  text: "Le chien",
  heads: [0],
};
const place = (kind: "self" | "cross"): HeadPlace => ({ part: "decoder", layer: 0, kind, head: 0 });

function rest(kind: "self" | "cross", ...rows: number[][]): string {
  const weights = { shape: [1, 3, 3], data: Float32Array.from(rows.flat()) };
  return restsOn(new Trace(records, new Map([[`decoder.0.${kind}.weights`, weights]])), place(kind));
}

test("a head rests on the end if half of its weight is there, but for the row that predicts it", () => {
  expect(rest("cross", [0.5, 0, 0.5], [0, 0.5, 0.5], [1, 0, 0])).toBe("</s>");
  expect(rest("cross", [0.5, 0, 0.5], [0, 0.6, 0.4], [0, 0, 1])).toBe("");
});

test("a head of the decoder's self-attention rests on the start, but for the row that sees nothing else", () => {
  expect(rest("self", [1, 0, 0], [0.6, 0.4, 0], [0.4, 0, 0.6])).toBe("<s>");
  expect(rest("self", [1, 0, 0], [0.5, 0.5, 0], [0.4, 0, 0.6])).toBe("");
});
