/** Parts of the arithmetic computed a second time, in double precision. */

import type { Tensor } from "../model/tensor";

export function products(a: ArrayLike<number>, b: ArrayLike<number>): number[] {
  return Array.from(a, (value, i) => value * b[i]);
}

export function total(values: ArrayLike<number>): number {
  let sum = 0;
  for (let i = 0; i < values.length; i++) sum += values[i];
  return sum;
}

/** A vector times a stored weight (out, in), plus a bias. */
export function project(vector: ArrayLike<number>, weight: Tensor, bias?: Tensor, from = 0, to = weight.shape[0]): number[] {
  const width = weight.shape[1];
  return Array.from({ length: to - from }, (_, row) => {
    let sum = bias ? bias.data[from + row] : 0;
    for (let i = 0; i < width; i++) sum += vector[i] * weight.data[(from + row) * width + i];
    return sum;
  });
}

export interface Share {
  exponential: number;
  weight: number;
}

/** Exponentials of a row less its largest number, and their shares. */
export function softmax(values: ArrayLike<number>): Share[] {
  const all = Array.from(values);
  const largest = Math.max(...all);
  if (largest === -Infinity) return all.map(() => ({ exponential: 0, weight: 0 }));
  const exponentials = all.map((value) => Math.exp(value - largest));
  const sum = total(exponentials);
  return exponentials.map((exponential) => ({ exponential, weight: exponential / sum }));
}

export const plus = (a: ArrayLike<number>, b: ArrayLike<number>): number[] => Array.from(a, (value, i) => value + b[i]);
