/**
 * The exact terms that an attention's output is the sum of, in double precision.
 *
 * With fixed weights the output of row i is Σ_j Σ_h α_ij f(x_j) + b. With the residual connection and
 * a norm after it, the result is a sum too, once the row's standard deviation is known.
 * Source: Kobayashi et al. 2020, equations 3 to 6; 2021, section 3.
 *
 * `!` after an index: a loop runs over the shape of the array that it reads, and every vector is as
 * wide as the model.
 */

import { dot, moments, row, sizesOf, type Tensor } from "../model/tensor";
import { moduleOf, type Transformer } from "../model/transformer";

export type Vector = Float64Array;

export interface Matrix {
  rows: number;
  columns: number;
  data: Float64Array;
}

export const matrix = (rows: number, columns: number): Matrix => ({ rows, columns, data: new Float64Array(rows * columns) });

export const rowOf = (m: Matrix, r: number): Vector => m.data.subarray(r * m.columns, (r + 1) * m.columns);

export const norm = (vector: ArrayLike<number>) => Math.sqrt(dot(vector, vector));

export function norm1(vector: ArrayLike<number>): number {
  let sum = 0;
  for (let i = 0; i < vector.length; i++) sum += Math.abs(vector[i]!);
  return sum;
}

/** One attention of one run, ready to be taken apart. */
export class Apart {
  readonly numRows: number;
  readonly numKeys: number;
  readonly width: number;
  readonly isCross: boolean;
  readonly hasResidual: boolean;
  private readonly weights: Tensor;
  private readonly transformed: Vector[][];
  private readonly own: Tensor;
  private readonly summed: Tensor;
  private readonly gain: Tensor | null;
  private readonly bias: Tensor | null;
  private readonly epsilon: number;

  constructor(
    model: Transformer,
    arrays: Map<string, Tensor>,
    readonly site: string,
  ) {
    const { config } = model;
    const get = (stage: string) => arrays.get(`${site}.${stage}`)!;
    this.weights = get("weights");
    const [, L, M] = sizesOf(this.weights, 3);
    [this.numRows, this.numKeys, this.width] = [L, M, config.d_model];
    this.isCross = site.endsWith(".cross");
    this.hasResidual = config.residual;
    this.own = get("input");
    this.summed = get("residual");
    const isPost = config.norm === "post";
    this.gain = isPost ? model.get(`${moduleOf(site)}_norm.weight`) : null;
    this.bias = isPost ? model.get(`${moduleOf(site)}_norm.bias`) : null;
    this.epsilon = config.layer_norm_epsilon;
    this.transformed = transform(get("value"), model.get(`${moduleOf(site)}.output.weight`));
  }

  /** What each position brings to a row, summed over heads. */
  bring(r: number): Vector[] {
    const [H, L, M] = sizesOf(this.weights, 3);
    return Array.from({ length: M }, (_, m) => {
      const brought = new Float64Array(this.width);
      for (let h = 0; h < H; h++) {
        const weight = this.weights.data[(h * L + r) * M + m]!;
        if (weight === 0) continue;
        const vector = this.transformed[h]![m]!;
        for (let i = 0; i < this.width; i++) brought[i]! += weight * vector[i]!;
      }
      return brought;
    });
  }

  /** The parts of a row's result; in cross-attention the last one is the row's own. */
  parts(r: number): Vector[] {
    const parts = this.bring(r);
    const own = row(this.own, r);
    if (this.hasResidual) {
      if (this.isCross) parts.push(Float64Array.from(own));
      else for (let i = 0; i < this.width; i++) parts[r]![i]! += own[i]!;
    }
    return parts.map((part) => this.throughNorm(part, r));
  }

  /** The sub-layer's result for a row, after residual connection and norm. */
  result(r: number): Vector {
    const result = this.throughNorm(Float64Array.from(row(this.summed, r)), r);
    if (this.bias) for (let i = 0; i < this.width; i++) result[i]! += this.bias.data[i]!;
    return result;
  }

  /** The linear part of a row's norm. */
  private throughNorm(vector: Vector, r: number): Vector {
    if (!this.gain) return vector;
    const { mean } = moments(vector);
    const deviation = Math.sqrt(moments(row(this.summed, r)).variance + this.epsilon);
    return vector.map((value, i) => ((value - mean) / deviation) * this.gain!.data[i]!);
  }
}

/** Each value through the head's part of the output projection: by head and position, (D). */
function transform(value: Tensor, output: Tensor): Vector[][] {
  const [H, M, E] = sizesOf(value, 3);
  const [D, joined] = sizesOf(output, 2);
  return Array.from({ length: H }, (_, h) =>
    Array.from({ length: M }, (_, m) => {
      const from = row(value, h, m);
      const into = new Float64Array(D);
      for (let d = 0; d < D; d++) {
        const at = d * joined + h * E;
        let sum = 0;
        for (let e = 0; e < E; e++) sum += from[e]! * output.data[at + e]!;
        into[d] = sum;
      }
      return into;
    }),
  );
}
