import { describe, expect, test } from "vitest";
import { orderOf, parseChange, writeChange } from "../src/model/changes";
import { draw, GREEDY, lengthPenalty } from "../src/model/decode";
import { itemAt } from "../src/model/items";
import { randomNumbers } from "../src/model/random";
import { argmax, erf, largest, layerNorm, logSumExp, sizesOf } from "../src/model/tensor";
import { bareWords, joinWords, plain, splitWords } from "../src/model/tokenizer";

describe("words", () => {
  test.each(["Not on your life!", "Let's  go", " a", "a ", "\tx\u00a0 y", "中文 well-known", "¿Qué? «oui»", "😀 ok"])(
    "%j comes back from its tokens",
    (text) => expect(joinWords(splitWords(text))).toBe(text),
  );
  test("a word has apostrophes and hyphens inside, and a sign without a space has the joiner", () => {
    expect(splitWords("Let's see the well-known, isn't it?")).toEqual([
      "Let's",
      "see",
      "the",
      "well-known",
      "\uffed,",
      "isn't",
      "it",
      "\uffed?",
    ]);
    expect(bareWords("Not on your life!")).toEqual(["Not", "on", "your", "life"]);
    expect(splitWords("")).toEqual([]);
    expect(plain("\uffed,")).toBe(",");
    expect(plain("\uffed ")).toBe("␣");
  });
});

describe("changes", () => {
  test.each([
    "cut decoder.1.cross.0",
    "cut encoder.0.self.2:4>7",
    "zero encoder.0.self.2:*>7",
    "average decoder.1.self.0",
    "force decoder.1.cross.0:3>2=0.8",
    "word 3",
    "move 3>1",
    "temperature 2.5",
    "no-scale",
    "no-mask",
  ])("%s is read as it is written", (text) => expect(writeChange(parseChange(text)!)).toBe(text));
  test.each([
    "",
    "cut",
    "cut encoder.0.cross.1",
    "cut decoder.1.cross",
    "force decoder.1.cross.0:3>2=1.5",
    "force decoder.1.cross.0=1",
    "zero decoder.1.cross.0",
    "word x",
    "move 3",
    "move a>1",
    "move 1>2>3",
    "temperature 0",
    "no-mask x",
    "<script>",
    "cut decoder.1.cross.0=1",
  ])("%j is not a change", (text) => expect(parseChange(text)).toBeNull());
});

describe("order", () => {
  const order = (...texts: string[]) =>
    orderOf(
      texts.map((text) => parseChange(text)!),
      5,
    );
  test("a moved word takes its place, and those between move up", () => {
    expect(order()).toEqual([0, 1, 2, 3, 4]);
    expect(order("move 3>1")).toEqual([0, 3, 1, 2, 4]);
    expect(order("move 0>4")).toEqual([1, 2, 3, 4, 0]);
    expect(order("move 3>1", "move 0>1")).toEqual([3, 0, 1, 2, 4]);
  });
  test("a place outside of the sentence moves nothing", () => expect(order("move 7>1", "move 1>9")).toEqual([0, 1, 2, 3, 4]));
});

describe("numbers", () => {
  test("layer norm has mean 0 and variance 1", () => {
    const x = { shape: [1, 4], data: new Float32Array([1, 2, 4, 9]) };
    const one = { shape: [4], data: new Float32Array(4).fill(1) };
    const zero = { shape: [4], data: new Float32Array(4) };
    const { data } = layerNorm(x, one, zero, 0);
    expect(data.reduce((a, b) => a + b)).toBeCloseTo(0, 6);
    expect(data.reduce((a, b) => a + b * b, 0) / 4).toBeCloseTo(1, 6);
  });
  test("the error function is right where its two forms meet and far out", () => {
    const values: [number, number][] = [
      [0.5, 0.5204998778],
      [2.4999, 0.9995929],
      [2.5001, 0.9995932],
      [7, 1],
      [-1, -0.8427007929],
    ];
    for (const [x, value] of values) expect(erf(x)).toBeCloseTo(value, 6);
  });
  test("a place or an axis that is not there is named", () => {
    expect(itemAt([5, 7], 1)).toBe(7);
    expect(() => itemAt([5, 7], 2)).toThrow("A list of 2 has no item 2.");
    expect(sizesOf({ shape: [2, 3] }, 2)).toEqual([2, 3]);
    expect(() => sizesOf({ shape: [2, 3] }, 3)).toThrow("must have 3 axes, but has 2");
  });
  test("the largest is the first of equals", () => expect(argmax([1, 3, 3, -Infinity])).toBe(1));
  test("largest keeps the order of equals, and log-sum-exp does not overflow", () => {
    expect(largest([1, 3, 3, 2, -Infinity], 3)).toEqual([1, 2, 3]);
    expect(logSumExp([1000, 1000])).toBeCloseTo(1000 + Math.LN2, 9);
  });
  test("penalties are those of the package", () => {
    const config = { beam: 1, alpha: 0.6, max_length_ratio: 2, max_length_offset: 20 };
    expect(lengthPenalty(7, { ...config, length_penalty: "gnmt" })).toBeCloseTo(2 ** 0.6, 9);
    expect(lengthPenalty(8, { ...config, length_penalty: "average" })).toBeCloseTo(8 ** 0.6, 9);
    expect(lengthPenalty(8, { ...config, length_penalty: "none" })).toBe(1);
  });
});

describe("sampling", () => {
  const logits = [0, 2, 1, -5];
  test("top-k and top-p leave the likeliest, and the seed decides", () => {
    expect(draw(logits, { ...GREEDY, topK: 1 }, 0.999)).toBe(1);
    expect(draw(logits, { ...GREEDY, topP: 0.5 }, 0.999)).toBe(1);
    expect(draw(logits, { ...GREEDY, topK: 2 }, 0.999)).toBe(2);
    const numbers = (seed: number) => Array.from({ length: 5 }, randomNumbers(seed));
    expect(numbers(3)).toEqual(numbers(3));
    expect(numbers(3)).not.toEqual(numbers(4));
  });
  test("tokens come as often as the softmax says", () => {
    const random = randomNumbers(5);
    const drawn = Array.from({ length: 4000 }, () => draw(logits, GREEDY, random()));
    expect(drawn.filter((id) => id === 1).length / 4000).toBeCloseTo(Math.exp(2) / (1 + Math.exp(2) + Math.E + Math.exp(-5)), 1);
  });
});
