/**
 * Value zeroing: how far a layer's result turns when the values of one source position are 0 and the
 * weights stay. Source: Mohebbi et al. 2023, section 3.
 *
 * `!` after an index: a loop runs over the shape of the array that it reads, and every vector is as
 * wide as the model.
 */

import { ACTIVATIONS, dot, moments, project, row, sizesOf, type Tensor } from "../model/tensor";
import { moduleOf, type Transformer } from "../model/transformer";
import { matrix, type Matrix, type Vector } from "./apart";

/** A smaller change of direction is only rounding. */
const ROUNDING = 1e-12;

const cosine = (a: Vector, b: Vector) => dot(a, b) / Math.sqrt(dot(a, a) * dot(b, b));

/** The rest of a decoder layer, from the context of its cross-attention on. */
class Rest {
  constructor(
    private readonly model: Transformer,
    private readonly site: string,
  ) {}

  private get(name: string): Tensor | undefined {
    return this.model.weights.get(name);
  }

  result(context: Vector, entering: ArrayLike<number>): Vector {
    const { config } = this.model;
    const attention = moduleOf(this.site);
    const feed = moduleOf(this.site.replace(".cross", ".feed_forward"));
    const crossed = this.addNorm(
      entering,
      project(context, this.get(`${attention}.output.weight`)!, this.get(`${attention}.output.bias`)),
      attention,
    );
    const enter = config.norm === "pre" ? this.norm(crossed, feed) : crossed;
    const inner = project(enter, this.get(`${feed}.inner.weight`)!, this.get(`${feed}.inner.bias`));
    const outer = project(inner.map(ACTIVATIONS[config.activation]), this.get(`${feed}.outer.weight`)!, this.get(`${feed}.outer.bias`));
    return this.addNorm(crossed, outer, feed);
  }

  private addNorm(x: ArrayLike<number>, output: Vector, module: string): Vector {
    const { residual, norm } = this.model.config;
    const sum = residual ? output.map((value, i) => value + x[i]!) : output;
    return norm === "post" ? this.norm(sum, module) : sum;
  }

  private norm(x: Vector, module: string): Vector {
    const [gain, bias] = [this.get(`${module}_norm.weight`)!.data, this.get(`${module}_norm.bias`)!.data];
    const { mean, variance } = moments(x);
    const scale = 1 / Math.sqrt(variance + this.model.config.layer_norm_epsilon);
    return x.map((value, i) => (value - mean) * scale * gain[i]! + bias[i]!);
  }
}

export function zeroing(model: Transformer, arrays: Map<string, Tensor>, layer: number): Matrix {
  const site = `decoder.${layer}.cross`;
  const weights = arrays.get(`${site}.weights`)!;
  const value = arrays.get(`${site}.value`)!;
  const context = arrays.get(`${site}.context`)!;
  const input = arrays.get(`${site}.input`)!;
  const [H, L, M] = sizesOf(weights, 3);
  const [, , E] = sizesOf(value, 3);
  const rest = new Rest(model, site);
  const found = matrix(L, M);
  for (let l = 0; l < L; l++) {
    const whole = new Float64Array(H * E);
    for (let h = 0; h < H; h++) whole.set(row(context, h, l), h * E);
    const before = rest.result(whole, row(input, l));
    let total = 0;
    for (let m = 0; m < M; m++) {
      const without = whole.slice();
      for (let h = 0; h < H; h++) {
        const weight = weights.data[(h * L + l) * M + m]!;
        const from = row(value, h, m);
        for (let e = 0; e < E; e++) without[h * E + e]! -= weight * from[e]!;
      }
      const change = 1 - cosine(rest.result(without, row(input, l)), before);
      found.data[l * M + m] = change < ROUNDING ? 0 : change;
      total += found.data[l * M + m]!;
    }
    if (total > 0) for (let m = 0; m < M; m++) found.data[l * M + m]! /= total;
  }
  return found;
}
