/** What a page carries of a model: its config.json, its vocabularies and its weights. */

import type { Activation, Tensor } from "./tensor";

export interface ModelConfig {
  architecture: string;
  d_model: number;
  d_ff: number;
  num_heads: number;
  d_key: number;
  d_value: number;
  num_encoder_layers: number;
  num_decoder_layers: number;
  norm: "post" | "pre" | "none";
  layer_norm_epsilon: number;
  activation: Activation;
  positions: "sinusoidal" | "sinusoidal_halves" | "learned" | "none";
  embedding_scale: "sqrt" | "none";
  projection_bias: boolean;
  tied_embeddings: "all" | "decoder" | "none";
  source_vocabulary_size: number;
  target_vocabulary_size: number;
  max_source_length: number;
  max_target_length: number;
  residual: boolean;
  scale_scores: boolean;
  look_ahead_mask: boolean;
  projections: "qkv" | "qk" | "none";
  /** Of recurrent models only. */
  recurrent_attention?: string;
}

/** The values of a model's options that the page computes. Other fields must be numbers. */
const COMPUTES: Record<string, readonly unknown[]> = {
  architecture: ["transformer"],
  norm: ["post", "pre", "none"],
  activation: ["relu", "gelu", "swish"],
  positions: ["sinusoidal", "sinusoidal_halves", "learned", "none"],
  embedding_scale: ["sqrt", "none"],
  projection_bias: [false, true],
  tied_embeddings: ["all", "decoder", "none"],
  residual: [true, false],
  scale_scores: [true, false],
  look_ahead_mask: [true, false],
  projections: ["qkv", "qk", "none"],
};

/** Refuse a model with an option, or a value of one, that the page does not compute. */
export function requireComputed(config: ModelConfig): void {
  for (const [name, value] of Object.entries(config))
    if (!(COMPUTES[name]?.includes(value) ?? typeof value === "number"))
      throw new Error(`The page cannot run a model whose ${name} is ${String(value)}. Use the command line.`);
}

export interface TokenizerConfig {
  kind: string;
  normalization: "nfc" | "nfkc" | "none";
  lowercase: boolean;
  drop_punctuation: boolean;
  pad_id: number;
  unk_id: number;
  bos_id: number | null;
  eos_id: number;
  target_start_id: number;
}

export interface DecodingConfig {
  beam: number;
  length_penalty: "gnmt" | "average" | "none";
  alpha: number;
  max_length_ratio: number;
  max_length_offset: number;
}

export interface CarriedModel {
  name: string;
  /** The model as a command names it; empty if that is not known. */
  command: string;
  /** Characters that it knows; by the most tokens of a source the longest target; usual longest line, or 0; the filter of its sentences. */
  learned: { known: string; longest_targets: Record<string, number>; most_characters: number; seen?: string };
  model_hash: string;
  /** The head of cross-attention that learned word links from given ones, or "". */
  taught_head: string;
  languages: { source: string; target: string };
  model: ModelConfig;
  tokenizer: TokenizerConfig;
  decoding: DecodingConfig;
  source_vocabulary: string[];
  target_vocabulary: string[];
  /** The other genders or numbers of a target word, by ids. */
  rivals?: Record<string, number[]>;
  /** For each tensor its shape and the number of its first float in the weights. */
  tensors: Record<string, { shape: number[]; start: number }>;
  /** float32, little-endian, base64; only the upper halves if all lower ones are 0. */
  weights: string;
  has_halves: boolean;
}

export type Weights = Map<string, Tensor>;

/** Turn base64 into bytes. */
export function bytesOf(base64: string): Uint8Array {
  const text = atob(base64);
  const bytes = new Uint8Array(text.length);
  for (let i = 0; i < text.length; i++) bytes[i] = text.charCodeAt(i);
  return bytes;
}

export function unpackWeights(carried: CarriedModel): Weights {
  const { buffer } = bytesOf(carried.weights);
  const floats = new Float32Array(carried.has_halves ? Uint32Array.from(new Uint16Array(buffer), (half) => half << 16).buffer : buffer);
  const weights: Weights = new Map();
  for (const [name, { shape, start }] of Object.entries(carried.tensors)) {
    const size = shape.reduce((a, b) => a * b, 1);
    if (start + size > floats.length) throw new Error(`The weights of ${name} are incomplete: this file was cut off. Copy it again.`);
    weights.set(name, { shape, data: floats.subarray(start, start + size) });
  }
  return weights;
}
