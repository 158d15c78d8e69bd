/**
 * The Transformer, in the order of the text: embed, attend in five stages, add and norm, feed
 * forward. Every result can be kept under the name that a trace gives it.
 *
 * `!` after an index: a loop runs over the shape of what it reads.
 */

import { ChangesHere, orderOf } from "./changes";
import { requireComputed, type ModelConfig, type Weights } from "./config";
import { itemAt } from "./items";
import type { Network, Run } from "./network";
import { activate, add, layerNorm, linear, sizesOf, zeros, type Tensor } from "./tensor";

/** Keys and values of earlier rows, (positions, heads · width). */
interface Past {
  key: Tensor;
  value: Tensor;
}

export interface DecoderState {
  memory: Tensor;
  length: number;
  selves: (Past | null)[];
  crosses: (Past | null)[];
}

export class Transformer implements Network {
  constructor(
    readonly config: ModelConfig,
    readonly weights: Weights,
  ) {
    requireComputed(config);
  }

  get(name: string): Tensor {
    const found = this.weights.get(name);
    if (!found) throw new Error(`The model lacks ${name}. Make the page again.`);
    return found;
  }

  /** Run the encoder: (S, D). */
  encode(ids: number[], run: Run): Tensor {
    const { config } = this;
    let x = this.enter("encoder", ids, 0, run);
    for (let layer = 0; layer < config.num_encoder_layers; layer++) {
      const site = `encoder.${layer}`;
      x = this.addNorm(x, `${site}.self`, run, (entering) => {
        const past = this.keysAndValues(entering, `${site}.self`);
        return this.attend(entering, past, `${site}.self`, 0, run);
      });
      x = this.addNorm(x, `${site}.feed_forward`, run, (e) => this.feedForward(e, site, run));
    }
    return this.leave("encoder", x, run);
  }

  begin(memory: Tensor): DecoderState {
    const layers = this.config.num_decoder_layers;
    return { memory, length: 0, selves: Array(layers).fill(null), crosses: Array(layers).fill(null) };
  }

  fork(state: DecoderState): DecoderState {
    return { ...state, selves: [...state.selves], crosses: [...state.crosses] };
  }

  /** Run the decoder on the next rows: their states, (rows, D). */
  step(state: DecoderState, ids: number[], run: Run): Tensor {
    const first = state.length;
    let x = this.enter("decoder", ids, first, run);
    for (let layer = 0; layer < this.config.num_decoder_layers; layer++) {
      const site = `decoder.${layer}`;
      x = this.addNorm(x, `${site}.self`, run, (entering) => {
        const now = append(state.selves[layer] ?? null, this.keysAndValues(entering, `${site}.self`));
        state.selves[layer] = now;
        return this.attend(entering, now, `${site}.self`, first, run);
      });
      x = this.addNorm(x, `${site}.cross`, run, (entering) => {
        const now = state.crosses[layer] ?? this.keysAndValues(state.memory, `${site}.cross`);
        state.crosses[layer] = now;
        return this.attend(entering, now, `${site}.cross`, first, run);
      });
      x = this.addNorm(x, `${site}.feed_forward`, run, (e) => this.feedForward(e, site, run));
    }
    state.length += ids.length;
    return this.leave("decoder", x, run);
  }

  /** One number for each target token: (rows, V). */
  logits(states: Tensor, run: Run): Tensor {
    return keep(run, "decoder.logits", linear(states, this.outputWeight, this.weights.get("output.bias")));
  }

  get outputWeight(): Tensor {
    return this.config.tied_embeddings === "none" ? this.get("output.weight") : this.embedding("decoder");
  }

  embedding(part: string): Tensor {
    if (this.config.tied_embeddings === "all") return this.get("embedding.weight");
    return this.get(part === "encoder" ? "source_embedding.weight" : "target_embedding.weight");
  }

  private enter(part: string, ids: number[], first: number, run: Run): Tensor {
    const { d_model: width, embedding_scale, positions } = this.config;
    const table = this.embedding(part);
    const factor = Math.fround(embedding_scale === "sqrt" ? Math.sqrt(width) : 1);
    const embedded = zeros(ids.length, width);
    ids.forEach((id, row) => {
      for (let i = 0; i < width; i++) embedded.data[row * width + i] = table.data[id * width + i]! * factor;
    });
    keep(run, `${part}.embedding`, embedded);
    if (positions === "none") return keep(run, `${part}.input`, embedded);
    const places = this.positions(part, first, ids.length);
    // An encoder without a mask sees order only in the positions, so a moved word takes another one.
    if (part === "encoder" && run.changes.some(({ verb }) => verb === "move")) {
      const inOrder = places.data.slice();
      orderOf(run.changes, ids.length).forEach((row, place) =>
        places.data.set(inOrder.subarray(place * width, (place + 1) * width), row * width),
      );
    }
    keep(run, `${part}.positions`, places);
    return keep(run, `${part}.input`, add(embedded, places));
  }

  private positions(part: string, first: number, rows: number): Tensor {
    const { d_model: width, positions } = this.config;
    const result = zeros(rows, width);
    if (positions === "learned") {
      const { data } = this.get(`${part}.positions.weight`);
      result.data.set(data.subarray(first * width, (first + rows) * width));
      return result;
    }
    for (let row = 0; row < rows; row++)
      for (let j = 0; j < width / 2; j++) {
        const angle = (first + row) / 10000 ** ((2 * j) / width);
        const halves = positions === "sinusoidal_halves";
        result.data[row * width + (halves ? j : 2 * j)] = Math.sin(angle);
        result.data[row * width + (halves ? width / 2 + j : 2 * j + 1)] = Math.cos(angle);
      }
    return result;
  }

  private leave(part: string, x: Tensor, run: Run): Tensor {
    return this.config.norm === "pre" ? keep(run, `${part}.norm`, this.norm(x, `${part}.norm`)) : x;
  }

  private norm(x: Tensor, name: string): Tensor {
    return layerNorm(x, this.get(`${name}.weight`), this.get(`${name}.bias`), this.config.layer_norm_epsilon);
  }

  private addNorm(x: Tensor, site: string, run: Run, sublayer: (entering: Tensor) => Tensor): Tensor {
    const { norm, residual } = this.config;
    const normName = `${moduleOf(site)}_norm`;
    keep(run, `${site}.input`, x);
    const entering = norm === "pre" ? keep(run, `${site}.norm`, this.norm(x, normName)) : x;
    const output = sublayer(entering);
    const summed = keep(run, `${site}.residual`, residual ? add(x, output) : output);
    return norm === "post" ? keep(run, `${site}.norm`, this.norm(summed, normName)) : summed;
  }

  private feedForward(x: Tensor, site: string, run: Run): Tensor {
    const module = `${moduleOf(`${site}.feed_forward`)}`;
    const name = `${site}.feed_forward`;
    const inner = linear(x, this.get(`${module}.inner.weight`), this.get(`${module}.inner.bias`));
    keep(run, `${name}.inner`, inner);
    const activated = keep(run, `${name}.activated`, activate(inner, this.config.activation));
    const output = linear(activated, this.get(`${module}.outer.weight`), this.get(`${module}.outer.bias`));
    return keep(run, `${name}.output`, output);
  }

  private project(x: Tensor, site: string, which: string): Tensor {
    const name = `${moduleOf(site)}.${which}`;
    return linear(x, this.get(`${name}.weight`), this.weights.get(`${name}.bias`));
  }

  private keysAndValues(x: Tensor, site: string): Past {
    const { projections } = this.config;
    const key = projections === "none" ? x : this.project(x, site, "key");
    return { key, value: projections === "qkv" ? this.project(x, site, "value") : key };
  }

  /** Attend in five stages. `first` is the position of the first query. */
  private attend(x: Tensor, past: Past, site: string, first: number, run: Run): Tensor {
    const { num_heads: H, d_key: K, projections, look_ahead_mask, scale_scores } = this.config;
    const E = sizesOf(past.value, 2)[1] / H;
    const [part = "", layer, kind = ""] = site.split(".");
    const changes = new ChangesHere(run.changes, part, Number(layer), kind, first);
    const query = projections === "none" ? x : this.project(x, site, "query");
    const [L] = sizesOf(x, 2);
    const [M] = sizesOf(past.key, 2);
    const isCausal = part === "decoder" && kind === "self" && look_ahead_mask && !changes.noMask;
    if (run.keep) {
      keep(run, `${site}.query`, byHead(query, H));
      keep(run, `${site}.key`, byHead(past.key, H));
      keep(run, `${site}.value`, byHead(past.value, H));
    }

    const scores = keep(run, `${site}.scores`, zeros(H, L, M));
    eachCell(H, L, M, (h, l, m, cell) => {
      let sum = 0;
      const q = l * H * K + h * K;
      const k = m * H * K + h * K;
      for (let i = 0; i < K; i++) sum += query.data[q + i]! * past.key.data[k + i]!;
      scores.data[cell] = sum;
    });

    const divisor = (scale_scores && !changes.noScale ? Math.sqrt(K) : 1) * changes.temperature;
    const scaled = { shape: [H, L, M], data: scores.data.map((value) => value / divisor) };
    keep(run, `${site}.scaled`, scaled);

    const masked = keep(run, `${site}.masked`, { shape: [H, L, M], data: scaled.data.slice() });
    if (isCausal)
      eachCell(H, L, M, (_, l, m, cell) => {
        if (m > first + l) masked.data[cell] = -Infinity;
      });
    changes.masked(masked);

    const weights = keep(run, `${site}.weights`, softmaxRows(masked));
    changes.weights(weights, masked);

    const joined = zeros(L, H * E);
    eachCell(H, L, M, (h, l, m, cell) => {
      const weight = changes.cuts(h) ? 0 : weights.data[cell]!;
      if (weight === 0) return;
      const into = l * H * E + h * E;
      const from = m * H * E + h * E;
      for (let i = 0; i < E; i++) joined.data[into + i]! += weight * past.value.data[from + i]!;
    });
    if (run.keep) keep(run, `${site}.context`, byHead(joined, H));
    const name = `${moduleOf(site)}.output`;
    const output = linear(joined, this.get(`${name}.weight`), this.weights.get(`${name}.bias`));
    return keep(run, `${site}.output`, output);
  }
}

/** Name a site's module: `encoder.0.self` is `encoder.layers.0.self_attention`. */
export function moduleOf(site: string): string {
  const [part, layer, kind] = site.split(".");
  return `${part}.layers.${layer}.${kind === "feed_forward" ? kind : `${kind}_attention`}`;
}

function keep(run: Run, name: string, tensor: Tensor): Tensor {
  run.keep?.set(name, tensor);
  return tensor;
}

function append(past: Past | null, now: Past): Past {
  if (!past) return now;
  return { key: stack(past.key, now.key), value: stack(past.value, now.value) };
}

function stack(above: Tensor, below: Tensor): Tensor {
  const [rowsAbove, width] = sizesOf(above, 2);
  const [rowsBelow] = sizesOf(below, 2);
  const result = zeros(rowsAbove + rowsBelow, width);
  result.data.set(above.data);
  result.data.set(below.data, above.data.length);
  return result;
}

/** Turn (L, H · K) into (H, L, K). */
function byHead(wide: Tensor, heads: number): Tensor {
  const [length, whole] = sizesOf(wide, 2);
  const width = whole / heads;
  const result = zeros(heads, length, width);
  for (let h = 0; h < heads; h++)
    for (let l = 0; l < length; l++)
      result.data.set(wide.data.subarray(l * whole + h * width, l * whole + (h + 1) * width), (h * length + l) * width);
  return result;
}

function eachCell(H: number, L: number, M: number, act: (h: number, l: number, m: number, cell: number) => void): void {
  for (let h = 0; h < H; h++) for (let l = 0; l < L; l++) for (let m = 0; m < M; m++) act(h, l, m, (h * L + l) * M + m);
}

/** Softmax over the last axis; a row of −∞ gets weights 0. */
export function softmaxRows(masked: Tensor): Tensor {
  const width = itemAt(masked.shape, masked.shape.length - 1);
  const result = zeros(...masked.shape);
  for (let start = 0; start < masked.data.length; start += width) {
    let top = -Infinity;
    for (let i = start; i < start + width; i++) top = Math.max(top, masked.data[i]!);
    if (top === -Infinity) continue;
    let sum = 0;
    for (let i = start; i < start + width; i++) sum += Math.exp(masked.data[i]! - top);
    for (let i = start; i < start + width; i++) result.data[i] = Math.exp(masked.data[i]! - top) / sum;
  }
  return result;
}
