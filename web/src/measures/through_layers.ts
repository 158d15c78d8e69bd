/**
 * Measures that follow weights or shares through all layers, back to the tokens.
 *
 * `!` after an index: a loop runs over the rows and columns of the matrix that it reads.
 */

import { itemAt } from "../model/items";
import { sizesOf, sum, type Tensor } from "../model/tensor";
import type { Transformer } from "../model/transformer";
import { Apart, matrix, norm1, rowOf, type Matrix, type Vector } from "./apart";

export function multiply(a: Matrix, b: Matrix): Matrix {
  const result = matrix(a.rows, b.columns);
  for (let r = 0; r < a.rows; r++)
    for (let k = 0; k < a.columns; k++) {
      const factor = a.data[r * a.columns + k]!;
      if (factor !== 0) for (let c = 0; c < b.columns; c++) result.data[r * b.columns + c]! += factor * b.data[k * b.columns + c]!;
    }
  return result;
}

function identity(size: number): Matrix {
  const result = matrix(size, size);
  for (let i = 0; i < size; i++) result.data[i * size + i] = 1;
  return result;
}

/** Self-attention, cross-attention, and the share that each row keeps, of one decoder layer. */
interface DecoderLayer {
  own: Matrix;
  cross: Matrix;
  kept: number[];
}

/** Multiply a model's maps, the last layer first: from decoder rows to source tokens and prefix. */
function roll(encoder: Matrix[], decoder: DecoderLayer[]): Matrix {
  const { columns: numSource, rows: numRows } = itemAt(decoder, 0).cross;
  const toSource = encoder.reduce((below, layer) => multiply(layer, below), identity(numSource));
  const width = numSource + numRows;
  let rolled = matrix(numRows, width);
  for (let r = 0; r < numRows; r++) rolled.data[r * width + numSource + r] = 1;
  for (const { own, cross, kept } of decoder) {
    rolled = multiply(own, rolled);
    const crossed = multiply(cross, toSource);
    for (const [r, share] of kept.entries())
      for (let c = 0; c < width; c++) {
        const place = r * width + c;
        rolled.data[place] = share * rolled.data[place]! + (c < numSource ? crossed.data[r * numSource + c]! : 0);
      }
  }
  return firstColumns(rolled, numSource);
}

export function firstColumns(from: Matrix, count: number): Matrix {
  const result = matrix(from.rows, count);
  for (let r = 0; r < from.rows; r++) result.data.set(rowOf(from, r).subarray(0, count), r * count);
  return result;
}

/** The mean of an attention's weights over its heads. */
export function meanWeights(weights: Tensor): Matrix {
  const [H, L, M] = sizesOf(weights, 3);
  const result = matrix(L, M);
  for (let i = 0; i < weights.data.length; i++) result.data[i % (L * M)]! += weights.data[i]! / H;
  return result;
}

const layers = (count: number) => Array.from({ length: count }, (_, layer) => layer);

/** Abnar and Zuidema 2020: half of each layer is taken to be the residual connection. */
export function rollout({ config }: Transformer, arrays: Map<string, Tensor>): Matrix {
  const share = config.residual ? 0.5 : 1;
  const weighed = (site: string) => {
    const mean = meanWeights(arrays.get(`${site}.weights`)!);
    return { ...mean, data: mean.data.map((value) => share * value) };
  };
  const mixed = (site: string) => {
    const mean = weighed(site);
    for (let i = 0; i < mean.rows; i++) mean.data[i * mean.columns + i]! += 1 - share;
    return mean;
  };
  return roll(
    layers(config.num_encoder_layers).map((layer) => mixed(`encoder.${layer}.self`)),
    layers(config.num_decoder_layers).map((layer) => {
      const own = mixed(`decoder.${layer}.self`);
      return { own, cross: weighed(`decoder.${layer}.cross`), kept: Array<number>(own.rows).fill(1 - share) };
    }),
  );
}

/** The share of each part in each row's result, by its nearness to it in the 1-norm. */
function shares(attention: Apart): Matrix {
  const rows: Vector[] = [];
  for (let r = 0; r < attention.numRows; r++) {
    const result = attention.result(r);
    const size = norm1(result);
    const near = attention.parts(r).map((part) => Math.max(0, size - norm1(part.map((value, i) => result[i]! - value))));
    const total = sum(near);
    rows.push(Float64Array.from(near, (one) => (total > 0 ? one / total : one)));
  }
  const found = matrix(rows.length, itemAt(rows, 0).length);
  rows.forEach((one, r) => found.data.set(one, r * found.columns));
  return found;
}

/** Ferrando et al. 2022: ALTI in the encoder, ALTI+ into the decoder. */
export function alti(model: Transformer, arrays: Map<string, Tensor>): Matrix {
  const { config } = model;
  const of = (site: string) => shares(new Apart(model, arrays, site));
  return roll(
    layers(config.num_encoder_layers).map((layer) => of(`encoder.${layer}.self`)),
    layers(config.num_decoder_layers).map((layer) => {
      const whole = of(`decoder.${layer}.cross`);
      const [, , numSource] = sizesOf(arrays.get(`decoder.${layer}.cross.weights`)!, 3);
      const kept = Array.from({ length: whole.rows }, (_, r) => rowOf(whole, r)[numSource] ?? 0);
      return { own: of(`decoder.${layer}.self`), cross: firstColumns(whole, numSource), kept };
    }),
  );
}
