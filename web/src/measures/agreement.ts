/**
 * The agreement of measures: how alike two maps order the source words of each row.
 * Source: Kendall 1945, with ties.
 *
 * `!` after an index: two rows that are compared are of equally wide maps.
 */

import { sum } from "../model/tensor";
import { matrix, rowOf, type Matrix, type Vector } from "./apart";

/** Kendall's τ_b of two rows; NaN if all numbers of one are equal. */
export function kendall(one: Vector, other: Vector): number {
  let [both, signs, otherSigns] = [0, 0, 0];
  for (let i = 0; i < one.length; i++)
    for (let j = i + 1; j < one.length; j++) {
      const [a, b] = [Math.sign(one[i]! - one[j]!), Math.sign(other[i]! - other[j]!)];
      both += a * b;
      signs += Math.abs(a);
      otherSigns += Math.abs(b);
    }
  return both / Math.sqrt(signs * otherSigns);
}

/** For each pair of maps the mean over the rows that have an order in both; NaN if none has. */
export function agreement(maps: Matrix[]): Matrix {
  const found = matrix(maps.length, maps.length);
  maps.forEach((one, a) =>
    maps.forEach((other, b) => {
      if (b < a) return;
      const rows = Array.from({ length: one.rows }, (_, r) => kendall(rowOf(one, r), rowOf(other, r)));
      const known = rows.filter((value) => !Number.isNaN(value));
      const mean = sum(known) / known.length;
      found.data[a * maps.length + b] = found.data[b * maps.length + a] = mean;
    }),
  );
  return found;
}
