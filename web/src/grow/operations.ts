/**
 * The operations of a Transformer in double precision, each with its way back.
 *
 * `!` after an index: a loop runs over the rows and columns of the matrices that it reads, whose
 * numbers are as many (`zeros`), so that no place is beyond an end.
 */

/** Numbers, and next to each the gradient of the loss in it. */
export interface Matrix {
  rows: number;
  columns: number;
  data: Float64Array;
  gradient: Float64Array;
}

/** The ways back of the operations so far; run from the last to the first, they fill the gradients. */
export type Tape = (() => void)[];

export const zeros = (rows: number, columns: number): Matrix => ({
  rows,
  columns,
  data: new Float64Array(rows * columns),
  gradient: new Float64Array(rows * columns),
});

export const rowOf = ({ columns }: Matrix, row: number, data: Float64Array) => data.subarray(row * columns, (row + 1) * columns);

export function goBack(tape: Tape): void {
  while (tape.length) tape.pop()!();
}

/** Rows of a table times √d, plus the sines and cosines of their positions. */
export function embed(tape: Tape, table: Matrix, ids: number[], hasPositions: boolean): Matrix {
  const x = zeros(ids.length, table.columns);
  const factor = Math.sqrt(table.columns);
  ids.forEach((id, t) => {
    const [to, from] = [rowOf(x, t, x.data), rowOf(table, id, table.data)];
    for (let i = 0; i < to.length; i++) {
      const angle = t / 10000 ** ((i - (i % 2)) / to.length);
      to[i] = factor * from[i]! + (hasPositions ? (i % 2 ? Math.cos(angle) : Math.sin(angle)) : 0);
    }
  });
  tape.push(() => {
    ids.forEach((id, t) => {
      const [to, from] = [rowOf(table, id, table.gradient), rowOf(x, t, x.gradient)];
      for (let i = 0; i < to.length; i++) to[i]! += factor * from[i]!;
    });
  });
  return x;
}

/** x · Wᵀ, plus a bias if there is one. The gradient of W is a sum of outer products, one a position. */
export function project(tape: Tape, x: Matrix, weight: Matrix, bias?: Matrix): Matrix {
  const y = zeros(x.rows, weight.rows);
  const [from, w, to, width, count] = [x.data, weight.data, y.data, x.columns, weight.rows];
  for (let t = 0, at = 0; t < x.rows; t++)
    for (let i = 0, k = 0; i < count; i++, at++) {
      let sum = bias ? bias.data[i]! : 0;
      for (let j = t * width, end = j + width; j < end; j++, k++) sum += from[j]! * w[k]!;
      to[at] = sum;
    }
  tape.push(() => {
    const [dy, dx, dw, db] = [y.gradient, x.gradient, weight.gradient, bias?.gradient];
    for (let t = 0, at = 0; t < x.rows; t++)
      for (let i = 0, k = 0; i < count; i++, at++) {
        const given = dy[at]!;
        if (db) db[i]! += given;
        for (let j = t * width, end = j + width; j < end; j++, k++) {
          dx[j]! += given * w[k]!;
          dw[k]! += given * from[j]!;
        }
      }
  });
  return y;
}

/** Replace what is below 0 by 0, in place. */
export function relu(tape: Tape, x: Matrix): Matrix {
  for (let i = 0; i < x.data.length; i++) if (x.data[i]! < 0) x.data[i] = 0;
  tape.push(() => {
    for (let i = 0; i < x.data.length; i++) if (x.data[i] === 0) x.gradient[i] = 0;
  });
  return x;
}

export function add(tape: Tape, a: Matrix, b: Matrix): Matrix {
  const total = zeros(a.rows, a.columns);
  for (let i = 0; i < total.data.length; i++) total.data[i] = a.data[i]! + b.data[i]!;
  tape.push(() => {
    for (let i = 0; i < total.data.length; i++) {
      a.gradient[i]! += total.gradient[i]!;
      b.gradient[i]! += total.gradient[i]!;
    }
  });
  return total;
}

/** Layer norm: each row less its mean, over its deviation, times the gain, plus the bias. */
export function norm(tape: Tape, x: Matrix, gain: Matrix, bias: Matrix): Matrix {
  const [y, unit] = [zeros(x.rows, x.columns), new Float64Array(x.data.length)];
  const [scale, width] = [new Float64Array(x.rows), x.columns];
  for (let t = 0; t < x.rows; t++) {
    let [mean, variance] = [0, 0];
    for (let i = t * width; i < (t + 1) * width; i++) mean += x.data[i]! / width;
    for (let i = t * width; i < (t + 1) * width; i++) variance += (x.data[i]! - mean) ** 2 / width;
    scale[t] = 1 / Math.sqrt(variance + 1e-5);
    for (let i = 0, at = t * width; i < width; i++, at++) {
      unit[at] = (x.data[at]! - mean) * scale[t]!;
      y.data[at] = unit[at]! * gain.data[i]! + bias.data[i]!;
    }
  }
  tape.push(() => {
    for (let t = 0; t < x.rows; t++) {
      let [mean, along] = [0, 0];
      for (let i = 0, at = t * width; i < width; i++, at++) {
        gain.gradient[i]! += y.gradient[at]! * unit[at]!;
        bias.gradient[i]! += y.gradient[at]!;
        mean += (y.gradient[at]! * gain.data[i]!) / width;
        along += (y.gradient[at]! * gain.data[i]! * unit[at]!) / width;
      }
      // What moves a whole row, or stretches it, changes nothing behind the norm.
      for (let i = 0, at = t * width; i < width; i++, at++)
        x.gradient[at]! += scale[t]! * (y.gradient[at]! * gain.data[i]! - mean - unit[at]! * along);
    }
  });
  return y;
}

/** The softmax of a row, in place. */
export function softmax(row: Float64Array): void {
  let [largest, total] = [-Infinity, 0];
  for (let i = 0; i < row.length; i++) largest = Math.max(largest, row[i]!);
  for (let i = 0; i < row.length; i++) total += row[i] = Math.exp(row[i]! - largest);
  for (let i = 0; i < row.length; i++) row[i]! /= total;
}

/** Score, scale, mask, softmax, and the sum of the values: the context and one map of weights a head. */
export function attend(
  tape: Tape,
  query: Matrix,
  key: Matrix,
  value: Matrix,
  heads: number,
  scale: number,
  isMasked: boolean,
  cut: number | null,
): { context: Matrix; weights: Matrix[] } {
  const context = zeros(query.rows, query.columns);
  const [width, each] = [query.columns, query.columns / heads];
  const [q, k, v, dq, dk, dv] = [query.data, key.data, value.data, query.gradient, key.gradient, value.gradient];
  const [out, given] = [context.data, context.gradient];
  const weights = Array.from({ length: heads }, (_, head) => {
    const map = zeros(query.rows, key.rows);
    const first = head * each;
    for (let t = 0; t < query.rows; t++) {
      const row = rowOf(map, t, map.data);
      for (let s = 0; s < row.length; s++) {
        let score = 0;
        for (let i = t * width + first, j = s * width + first, end = i + each; i < end; i++, j++) score += q[i]! * k[j]!;
        row[s] = isMasked && s > t ? -Infinity : score * scale;
      }
      softmax(row);
      for (let s = 0; s < row.length && head !== cut; s++)
        for (let i = t * width + first, j = s * width + first, end = i + each; i < end; i++, j++) out[i]! += row[s]! * v[j]!;
    }
    return map;
  });
  tape.push(() => {
    const worth = new Float64Array(key.rows);
    weights.forEach((map, head) => {
      const first = head * each;
      for (let t = 0; t < query.rows && head !== cut; t++) {
        const row = rowOf(map, t, map.data);
        let mean = 0;
        for (let s = 0; s < row.length; s++) {
          worth[s] = 0;
          for (let i = t * width + first, j = s * width + first, end = i + each; i < end; i++, j++) {
            worth[s]! += given[i]! * v[j]!;
            dv[j]! += row[s]! * given[i]!;
          }
          mean += row[s]! * worth[s]!;
        }
        for (let s = 0; s < row.length; s++) {
          // The softmax: a score should rise if its word is worth more than the row's average.
          const toScore = row[s]! * (worth[s]! - mean) * scale;
          for (let i = t * width + first, j = s * width + first, end = i + each; i < end; i++, j++) {
            dq[i]! += toScore * k[j]!;
            dk[j]! += toScore * q[i]!;
          }
        }
      }
    });
  });
  return { context, weights };
}

/** Turn logits into probabilities, and return the sum of −log p of the wanted words (−1: none), times a factor. */
export function loss(tape: Tape, logits: Matrix, wanted: number[], factor: number): number {
  let total = 0;
  for (let t = 0; t < logits.rows; t++) {
    const row = rowOf(logits, t, logits.data);
    softmax(row);
    // Rows without a wanted word are further than `wanted` goes, or say −1.
    const word = wanted[t] ?? -1;
    if (word >= 0) total -= factor * Math.log(row[word]!);
  }
  tape.push(() => {
    wanted.forEach((word, t) => {
      const [p, to] = [rowOf(logits, t, logits.data), rowOf(logits, t, logits.gradient)];
      for (let i = 0; i < p.length && word >= 0; i++) to[i] = factor * (i === word ? p[i]! - 1 : p[i]!);
    });
  });
  return total;
}
