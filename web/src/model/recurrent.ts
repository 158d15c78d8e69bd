/**
 * The recurrent model of 2015 with additive attention: gated recurrent units that read in both
 * directions, and one that writes. Only what decoding needs; `pellucid.model.recurrent` has the formulas.
 *
 * `!` after an index: the three gates of a cell are as wide as its state, and so are their parts.
 */

import type { Network, Run } from "./network";
import { softmaxRows } from "./transformer";
import { linear, row, sizesOf, zeros, type Tensor } from "./tensor";
import type { ModelConfig, Weights } from "./config";

interface RecurrentState {
  length: number;
  memory: Tensor;
  key: Tensor;
  state: Tensor;
}

const sigmoid = (x: number) => 1 / (1 + Math.exp(-x));
const tanh = (x: Tensor): Tensor => ({ shape: x.shape, data: x.data.map(Math.tanh) });

/** Put vectors, (1, D) each, side by side. */
function join(...parts: ArrayLike<number>[]): Tensor {
  const data = Float32Array.from(parts.flatMap((one) => Array.from(one)));
  return { shape: [1, data.length], data };
}

export class Recurrent implements Network {
  constructor(
    readonly config: ModelConfig,
    readonly weights: Weights,
  ) {
    const { architecture, recurrent_attention, num_encoder_layers, num_decoder_layers, tied_embeddings } = config;
    if (
      architecture !== "recurrent" ||
      recurrent_attention !== "additive" ||
      num_encoder_layers + num_decoder_layers !== 2 ||
      tied_embeddings !== "decoder"
    )
      throw new Error("The page runs recurrent models of one layer with additive attention only. Use the command line.");
  }

  private apply(name: string, x: Tensor): Tensor {
    return linear(x, this.weights.get(`${name}.weight`)!, this.weights.get(`${name}.bias`));
  }

  private embed(table: string, id: number): Tensor {
    const scale = this.config.embedding_scale === "sqrt" ? Math.fround(Math.sqrt(this.config.d_model)) : 1;
    return join(row(this.weights.get(table)!, id).map((value) => value * scale));
  }

  /** One step of a cell: reset and update gate, candidate, new state. `more` is added to the input's part. */
  private cell(name: string, input: Tensor, state: Tensor, more?: Tensor): Tensor {
    const [x, h] = [this.apply(`${name}.input`, input).data, this.apply(`${name}.state`, state).data];
    const [, width] = sizesOf(state, 2);
    const from = (i: number) => x[i]! + (more?.data[i] ?? 0);
    return join(
      state.data.map((before, i) => {
        const reset = sigmoid(from(i) + h[i]!);
        const update = sigmoid(from(width + i) + h[width + i]!);
        const candidate = Math.tanh(from(2 * width + i) + reset * h[2 * width + i]!);
        return candidate + update * (before - candidate);
      }),
    );
  }

  /** The states of both directions at each word: (S, D). */
  encode(ids: number[], _?: Run): Tensor {
    const half = this.config.d_model / 2;
    const memory = zeros(ids.length, 2 * half);
    for (const [at, name] of ["left_to_right", "right_to_left"].entries()) {
      let state = zeros(1, half);
      const places = at ? [...ids.entries()].reverse() : ids.entries();
      for (const [place, id] of places) {
        state = this.cell(`encoder.layers.0.${name}`, this.embed("source_embedding.weight", id), state);
        row(memory, place).set(state.data, at * half);
      }
    }
    return memory;
  }

  begin(memory: Tensor): RecurrentState {
    const half = this.config.d_model / 2;
    const last = join(row(memory, sizesOf(memory, 2)[0] - 1).subarray(0, half), row(memory, 0).subarray(half));
    const state = tanh(this.apply("decoder.layers.0.initial", last));
    return { length: 0, memory, key: this.apply("decoder.layers.0.cross_attention.key", memory), state };
  }

  fork(state: RecurrentState): RecurrentState {
    return { ...state };
  }

  step(now: RecurrentState, ids: number[]): Tensor {
    const rows = zeros(ids.length, this.config.d_model);
    const { memory, key } = now;
    for (const [place, id] of ids.entries()) {
      const input = this.embed("target_embedding.weight", id);
      const { data: query } = this.apply("decoder.layers.0.cross_attention.query", now.state);
      const hidden = tanh({ shape: key.shape, data: key.data.map((value, i) => value + query[i % query.length]!) });
      const { data: scores } = this.apply("decoder.layers.0.cross_attention.energy", hidden);
      const { data: shares } = softmaxRows({ shape: [1, scores.length], data: scores });
      const context = zeros(1, sizesOf(memory, 2)[1]);
      shares.forEach((share, m) => row(memory, m).forEach((value, i) => (context.data[i]! += share * value)));
      now.state = this.cell("decoder.layers.0.cell", input, now.state, this.apply("decoder.layers.0.context", context));
      rows.data.set(tanh(this.apply("decoder.readout", join(input.data, now.state.data, context.data))).data, place * this.config.d_model);
    }
    now.length += ids.length;
    return rows;
  }

  logits(states: Tensor): Tensor {
    return linear(states, this.weights.get("target_embedding.weight")!, this.weights.get("output.bias"));
  }
}
