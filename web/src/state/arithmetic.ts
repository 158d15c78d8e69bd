/**
 * Parts of the arithmetic computed a second time, in double precision.
 *
 * `!` after an index: two vectors that meet are equally long.
 */

import { sum } from "../model/tensor";

export function products(a: ArrayLike<number>, b: ArrayLike<number>): number[] {
  return Array.from(a, (value, i) => value * b[i]!);
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
  const whole = sum(exponentials);
  return exponentials.map((exponential) => ({ exponential, weight: exponential / whole }));
}

export const plus = (a: ArrayLike<number>, b: ArrayLike<number>): number[] => Array.from(a, (value, i) => value + b[i]!);
