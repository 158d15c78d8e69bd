/**
 * Arrays of float32 and the few operations that a Transformer needs.
 *
 * `!` after an index: a loop runs over a shape, or over the length of the first of two vectors that are
 * equally long, so that no place is beyond an end.
 */

import { itemAt } from "./items";

export interface Tensor {
  shape: number[];
  data: Float32Array;
}

/** The sizes of a tensor of two or three axes. Another number of axes is a fault of the page, said before it spreads. */
export function sizesOf(tensor: { shape: number[] }, axes: 2): [number, number];
export function sizesOf(tensor: { shape: number[] }, axes: 3): [number, number, number];
export function sizesOf({ shape }: { shape: number[] }, axes: number): number[] {
  if (shape.length !== axes) throw new Error(`A tensor must have ${axes} axes, but has ${shape.length}.`);
  return shape;
}

export function zeros(...shape: number[]): Tensor {
  return { shape, data: new Float32Array(shape.reduce((a, b) => a * b, 1)) };
}

/** Multiply rows (L, D) by a stored weight (out, D): (L, out). Sums are in double precision. */
export function linear(x: Tensor, weight: Tensor, bias?: Tensor): Tensor {
  const [rows, width] = sizesOf(x, 2);
  const [out] = sizesOf(weight, 2);
  const result = zeros(rows, out);
  const { data: w } = weight;
  const from = x.data;
  const { data } = result;
  for (let row = 0; row < rows; row++) {
    const vector = from.subarray(row * width, (row + 1) * width);
    for (let column = 0; column < out; column += 4) {
      // Four sums at a time: none waits for the one before it. The last four may repeat some. With fewer than
      // four outputs the sums beyond the last are no numbers: the next row overwrites them, or nothing holds them.
      const first = Math.max(0, Math.min(column, out - 4));
      const into = row * out + first;
      const at = first * width;
      let [a, b, c, d] = [0, 0, 0, 0];
      if (bias) [a, b, c, d] = [bias.data[first]!, bias.data[first + 1]!, bias.data[first + 2]!, bias.data[first + 3]!];
      for (let i = 0; i < width; i++) {
        const x = vector[i]!;
        a += x * w[at + i]!;
        b += x * w[at + width + i]!;
        c += x * w[at + 2 * width + i]!;
        d += x * w[at + 3 * width + i]!;
      }
      [data[into], data[into + 1], data[into + 2], data[into + 3]] = [a, b, c, d];
    }
  }
  return result;
}

export function add(a: Tensor, b: Tensor): Tensor {
  const result = zeros(...a.shape);
  for (let i = 0; i < a.data.length; i++) result.data[i] = a.data[i]! + b.data[i]!;
  return result;
}

export function sum(values: ArrayLike<number>): number {
  let total = 0;
  for (let i = 0; i < values.length; i++) total += values[i]!;
  return total;
}

/** The sum of the products of two vectors of one length, in double precision. */
export function dot(a: ArrayLike<number>, b: ArrayLike<number>): number {
  let total = 0;
  for (let i = 0; i < a.length; i++) total += a[i]! * b[i]!;
  return total;
}

/** One vector times some rows of a stored weight (out, in), plus a bias, in double precision. */
export function project(vector: ArrayLike<number>, weight: Tensor, bias?: Tensor, from = 0, to = sizesOf(weight, 2)[0]): Float64Array {
  const [, width] = sizesOf(weight, 2);
  const result = new Float64Array(to - from);
  for (let o = from; o < to; o++) {
    let total = bias ? bias.data[o]! : 0;
    for (let i = 0; i < width; i++) total += vector[i]! * weight.data[o * width + i]!;
    result[o - from] = total;
  }
  return result;
}

export interface Moments {
  mean: number;
  variance: number;
}

/** Mean and population variance of a vector. */
export function moments(vector: ArrayLike<number>): Moments {
  let sum = 0;
  for (let i = 0; i < vector.length; i++) sum += vector[i]!;
  const mean = sum / vector.length;
  let squares = 0;
  for (let i = 0; i < vector.length; i++) squares += (vector[i]! - mean) ** 2;
  return { mean, variance: squares / vector.length };
}

export function layerNorm(x: Tensor, gain: Tensor, bias: Tensor, epsilon: number): Tensor {
  const [rows, width] = sizesOf(x, 2);
  const result = zeros(rows, width);
  for (let row = 0; row < rows; row++) {
    const from = row * width;
    const { mean, variance } = moments(x.data.subarray(from, from + width));
    const scale = 1 / Math.sqrt(variance + epsilon);
    for (let i = 0; i < width; i++) result.data[from + i] = (x.data[from + i]! - mean) * scale * gain.data[i]! + bias.data[i]!;
  }
  return result;
}

export const ACTIVATIONS = {
  relu: (x: number) => (x > 0 ? x : 0),
  gelu: (x: number) => 0.5 * x * (1 + erf(x / Math.SQRT2)),
  swish: (x: number) => x / (1 + Math.exp(-x)),
};
export type Activation = keyof typeof ACTIVATIONS;

export function activate(x: Tensor, name: Activation): Tensor {
  const apply = ACTIVATIONS[name];
  return { shape: x.shape, data: x.data.map((value) => apply(value)) };
}

/** The error function by its series, or its continued fraction where that converges faster. */
export function erf(x: number): number {
  const size = Math.abs(x);
  if (size > 5.9) return Math.sign(x);
  if (size < 2.5) {
    let term = size;
    let sum = size;
    for (let n = 1; Math.abs(term) > 1e-17 * sum; n++) {
      term *= -(size * size) / n;
      sum += term / (2 * n + 1);
      if (n > 200) break;
    }
    return (Math.sign(x) * 2 * sum) / Math.sqrt(Math.PI);
  }
  let fraction = 0;
  for (let k = 60; k > 0; k--) fraction = k / 2 / (size + fraction);
  return Math.sign(x) * (1 - Math.exp(-size * size) / Math.sqrt(Math.PI) / (size + fraction));
}

/** Log of the sum of exponentials, without overflow. */
export function logSumExp(values: ArrayLike<number>): number {
  let largest = -Infinity;
  for (let i = 0; i < values.length; i++) largest = Math.max(largest, values[i]!);
  if (largest === -Infinity) return largest;
  let sum = 0;
  for (let i = 0; i < values.length; i++) sum += Math.exp(values[i]! - largest);
  return largest + Math.log(sum);
}

/** The log-probability of one of several numbers, given their logits. */
export const logProbability = (logits: ArrayLike<number>, id: number) => itemAt(logits, id) - logSumExp(logits);

/** One row of a matrix, or one vector of a stack of matrices, without a copy. */
export function row(tensor: Tensor, ...index: number[]): Float32Array {
  const width = itemAt(tensor.shape, tensor.shape.length - 1);
  let place = 0;
  index.forEach((one, axis) => (place = place * itemAt(tensor.shape, axis) + one));
  return tensor.data.subarray(place * width, (place + 1) * width);
}

/** The number of the largest value, the first of several. */
export function argmax(values: ArrayLike<number>): number {
  let best = 0;
  for (let i = 1; i < values.length; i++) if (values[i]! > values[best]!) best = i;
  return best;
}

/** The numbers of the largest values, largest first. */
export function largest(values: ArrayLike<number>, count: number): number[] {
  const best: number[] = [];
  for (let i = 0; i < values.length; i++) {
    if (best.length === count && !(values[i]! > values[best[count - 1]!]!)) continue;
    let place = best.length;
    while (place > 0 && values[i]! > values[best[place - 1]!]!) place--;
    best.splice(place, 0, i);
    if (best.length > count) best.pop();
  }
  return best;
}
