/** What is said about a head from its weights, on maps that are worked out by hand. */

import { expect, test } from "vitest";
import { habitOf, restsOn } from "../src/trace/figures";
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

function habit(kind: "self" | "cross", ...rows: number[][]) {
  const weights = { shape: [1, 3, 3], data: Float32Array.from(rows.flat()) };
  return habitOf(new Trace(records, new Map([[`decoder.0.${kind}.weights`, weights]])), place(kind));
}

// The same maps are those of tests/unit/inside/test_head_habits.py.
test("a head is even if most of its rows are, and a look-up if most of them take one word", () => {
  const even = [0.3, 0.3, 0.4];
  expect(habit("cross", even, even, [1, 0, 0]).sentence).toBe("Even in 2 of 3 rows: there it looks at all words alike, and is idle.");
  expect(habit("cross", even, [0.6, 0.4, 0], [1, 0, 0])).toEqual({ name: "", sentence: "" });
  expect(habit("cross", even, [0, 0, 1], [1, 0, 0]).sentence).toBe("A look-up in 2 of 3 rows: there it takes one word only.");
});

test("a row that sees one word has no habit, and a look-up says which word it takes", () => {
  expect(habit("self", [1, 0, 0], [0, 1, 0], [0, 0, 1]).sentence).toBe(
    "A look-up in 2 of 2 rows: there it takes one word only, mostly the word just read.",
  );
  expect(habit("self", [1, 0, 0], [1, 0, 0], [0, 1, 0]).sentence).toContain("mostly the word before that");
  expect(habit("self", [1, 0, 0], [0.5, 0.5, 0], [0.3, 0.3, 0.4]).name).toBe("even");
});
