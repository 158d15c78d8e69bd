/** A Transformer of one encoder and one decoder layer, its numbers named as in a bundle. */

import { add, attend, embed, loss, norm, project, relu, rowOf, type Matrix, type Tape } from "./operations";

/** The options of `[model]` in a recipe, each with the values that this Transformer computes. It is built from no
 * configuration; an option that is missing here has not been decided on (tests/parity/test_unknown_options.py). */
export const COMPUTES: Record<string, readonly unknown[]> = {
  architecture: ["transformer"],
  norm: ["post", "none"],
  activation: ["relu"],
  positions: ["sinusoidal", "none"],
  embedding_scale: ["sqrt"],
  projection_bias: [false],
  tied_embeddings: ["decoder"],
  residual: [true, false],
  scale_scores: [true, false],
  look_ahead_mask: [true, false],
  projections: ["qkv"],
  norm_kind: ["layer"],
  stack_norm: [false],
  input_norm: [false],
  gated_feed_forward: [false],
  num_key_value_heads: [0],
  decoder: ["attention"],
};

/** What a run takes away. */
export interface Form {
  hasScale: boolean;
  hasMask: boolean;
  hasResidual: boolean;
  hasNorm: boolean;
  hasPositions: boolean;
  /** The matrix of every attention that is the identity and never learns. */
  without: "" | "query" | "key" | "value";
  /** The head of every attention whose context is 0. */
  cut: number | null;
}

export const WHOLE: Form = { hasScale: true, hasMask: true, hasResidual: true, hasNorm: true, hasPositions: true, without: "", cut: null };

export interface Sizes {
  width: number;
  inner: number;
  heads: number;
  sourceWords: number;
  targetWords: number;
}

function shapesOf({ width, inner, sourceWords, targetWords }: Sizes): [string, number, number][] {
  const found: [string, number, number][] = [
    ["source_embedding.weight", sourceWords, width],
    ["target_embedding.weight", targetWords, width],
  ];
  for (const part of ["encoder", "decoder"])
    for (const name of ["self_attention", "cross_attention", "feed_forward"].map((one) => `${part}.layers.0.${one}`)) {
      if (name === "encoder.layers.0.cross_attention") continue;
      if (name.endsWith("attention"))
        for (const one of ["query", "key", "value", "output"]) found.push([`${name}.${one}.weight`, width, width]);
      else
        found.push(
          [`${name}.inner.weight`, inner, width],
          [`${name}.inner.bias`, 1, inner],
          [`${name}.outer.weight`, width, inner],
          [`${name}.outer.bias`, 1, width],
        );
      found.push([`${name}_norm.weight`, 1, width], [`${name}_norm.bias`, 1, width]);
    }
  return found;
}

/** All numbers of a model in one array, and its parts by name. */
export class Numbers {
  readonly byName = new Map<string, Matrix>();
  readonly all: Float64Array;
  readonly gradient: Float64Array;

  constructor(
    readonly sizes: Sizes,
    all?: ArrayLike<number>,
  ) {
    const shapes = shapesOf(sizes);
    const total = shapes.reduce((sum, [, rows, columns]) => sum + rows * columns, 0);
    this.all = new Float64Array(total);
    this.gradient = new Float64Array(total);
    if (all) this.all.set(all);
    let start = 0;
    for (const [name, rows, columns] of shapes) {
      const end = start + rows * columns;
      this.byName.set(name, { rows, columns, data: this.all.subarray(start, end), gradient: this.gradient.subarray(start, end) });
      start = end;
    }
  }

  get(name: string): Matrix {
    return this.byName.get(name)!;
  }
}

/** First numbers: matrices uniform (Glorot), embeddings normal, gains 1, biases 0. */
export function firstNumbers(sizes: Sizes, form: Form, draw: () => number): Numbers {
  const numbers = new Numbers(sizes);
  const normal = () => Math.sqrt(-2 * Math.log(1 - draw())) * Math.cos(2 * Math.PI * draw());
  for (const [name, { rows, columns, data }] of numbers.byName) {
    const bound = Math.sqrt(6 / (rows + columns));
    data.forEach((_, i) => {
      if (name.endsWith("norm.weight")) data[i] = 1;
      else if (name.includes("embedding")) data[i] = normal() / Math.sqrt(columns);
      else if (rows > 1) data[i] = bound * (2 * draw() - 1);
    });
    if (isFixed(name, form)) data.forEach((_, i) => (data[i] = i % (columns + 1) === 0 ? 1 : 0));
  }
  return numbers;
}

/** Whether an array stays as it is, because the run does without it. */
export const isFixed = (name: string, form: Form) => form.without !== "" && name.endsWith(`attention.${form.without}.weight`);

export interface Attention {
  input: Matrix;
  query: Matrix;
  key: Matrix;
  weights: Matrix[];
}

export interface Pass {
  /** Row by row the probability of each word. */
  probabilities: Matrix;
  loss: number;
  encoderSelf: Attention;
  cross: Attention;
}

/**
 * Run the model on a source and on what the decoder reads, from its start token on.
 *
 * @param wanted the words of the loss, row by row; −1 for none.
 * @param tape takes what a gradient needs.
 */
export function forward(
  numbers: Numbers,
  form: Form,
  source: number[],
  reads: number[],
  wanted: number[] = [],
  tape: Tape = [],
  factor = 1,
): Pass {
  const { width, heads } = numbers.sizes;
  const scale = form.hasScale ? 1 / Math.sqrt(width / heads) : 1;
  const around = (name: string, before: Matrix, change: Matrix) => {
    const total = form.hasResidual ? add(tape, before, change) : change;
    return form.hasNorm ? norm(tape, total, numbers.get(`${name}_norm.weight`), numbers.get(`${name}_norm.bias`)) : total;
  };
  const attention = (name: string, input: Matrix, over: Matrix, isMasked = false) => {
    const query = project(tape, input, numbers.get(`${name}.query.weight`));
    const key = project(tape, over, numbers.get(`${name}.key.weight`));
    const value = project(tape, over, numbers.get(`${name}.value.weight`));
    const { context, weights } = attend(tape, query, key, value, heads, scale, isMasked, form.cut);
    const output = around(name, input, project(tape, context, numbers.get(`${name}.output.weight`)));
    return { input, query, key, weights, output };
  };
  const feed = (name: string, input: Matrix) => {
    const part = (one: string) => numbers.get(`${name}.${one}`);
    const inner = relu(tape, project(tape, input, part("inner.weight"), part("inner.bias")));
    return around(name, input, project(tape, inner, part("outer.weight"), part("outer.bias")));
  };
  const read = embed(tape, numbers.get("source_embedding.weight"), source, form.hasPositions);
  const encoderSelf = attention("encoder.layers.0.self_attention", read, read);
  const memory = feed("encoder.layers.0.feed_forward", encoderSelf.output);

  const table = numbers.get("target_embedding.weight");
  const written = embed(tape, table, reads, form.hasPositions);
  const self = attention("decoder.layers.0.self_attention", written, written, form.hasMask);
  const cross = attention("decoder.layers.0.cross_attention", self.output, memory);
  const probabilities = project(tape, feed("decoder.layers.0.feed_forward", cross.output), table);
  return { probabilities, loss: loss(tape, probabilities, wanted, factor), encoderSelf, cross };
}

/** Translate, each time taking the likeliest word. */
export function translate(numbers: Numbers, form: Form, source: number[], start: number, end: number, most: number): number[] {
  const words = [start];
  while (words.length <= most) {
    const { probabilities } = forward(numbers, form, source, words);
    const p = rowOf(probabilities, words.length - 1, probabilities.data);
    const next = p.indexOf(Math.max(...p));
    if (next === end) break;
    words.push(next);
  }
  return words.slice(1);
}
