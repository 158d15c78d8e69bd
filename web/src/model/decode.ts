/** Decoding: greedy, beam and sampling, on one way of computing the next token's logits. */

import type { Change } from "./changes";
import type { DecodingConfig, TokenizerConfig } from "./config";
import { itemAt } from "./items";
import type { Network } from "./network";
import { randomNumbers } from "./random";
import { argmax, largest, logSumExp, row, sizesOf, sum, type Tensor } from "./tensor";

type State = ReturnType<Network["begin"]>;

export interface Decoding {
  method: "greedy" | "beam" | "sample";
  beam: number;
  temperature: number;
  topK: number;
  topP: number;
  seed: number;
}

export const GREEDY: Decoding = { method: "greedy", beam: 5, temperature: 1, topK: 0, topP: 1, seed: 1 };

export interface Hypothesis {
  ids: number[];
  logs: number[];
  isFinished: boolean;
  score: number;
}

/** One candidate of a step of beam search: its parent's number in the step before, and its fate. */
export interface Candidate {
  parent: number;
  id: number;
  log: number;
  total: number;
  fate: "live" | "finished" | "dropped";
}

export interface Found {
  hypotheses: Hypothesis[];
  tree: Candidate[][];
}

export interface Limits {
  tokenizer: TokenizerConfig;
  decoding: DecodingConfig;
}

/** Values of the next token to choose by, and what to subtract from them for log-probabilities. */
interface Logits {
  values: Float32Array;
  normalizer: number;
}

/** The logits of the next token after some tokens, however the changes make it be computed. */
class Next {
  private readonly start: number;
  private readonly never: number[];

  constructor(
    private readonly model: Network,
    private readonly memory: Tensor,
    private readonly changes: Change[],
    { pad_id, bos_id, eos_id, target_start_id }: TokenizerConfig,
  ) {
    this.start = target_start_id;
    // No translation holds padding or a start token.
    this.never = [pad_id, bos_id ?? pad_id, target_start_id].filter((id) => id !== eos_id);
  }

  /** Without the mask, earlier rows see later ones, so that all are computed again. */
  private get mustRepeat(): boolean {
    return this.changes.some(({ verb }) => verb === "no-mask");
  }

  begin(): State {
    return this.model.begin(this.memory);
  }

  fork(state: State): State {
    return this.model.fork(state);
  }

  logits(state: State, ids: number[]): Logits {
    const run = { changes: this.changes };
    const all = [this.start, ...ids];
    let states: Tensor;
    if (this.mustRepeat) states = this.model.step(this.begin(), all, run);
    else states = this.model.step(state, all.slice(state.length), run);
    const [rows, width] = sizesOf(states, 2);
    const last = { shape: [1, width], data: row(states, rows - 1) };
    const values = this.model.logits(last, run).data;
    const normalizer = logSumExp(values);
    for (const id of this.never) values[id] = -Infinity;
    return { values, normalizer };
  }
}

export function maxLength(sourceLength: number, longest: number, decoding: DecodingConfig): number {
  const byRatio = Math.trunc(sourceLength * decoding.max_length_ratio) + decoding.max_length_offset;
  return Math.min(byRatio, longest);
}

const MOST_MS = 30;
let lastBreath = 0;
/** Let the page draw and hear its reader, if it could not for a while. */
export async function breathe(): Promise<void> {
  if (performance.now() - lastBreath < MOST_MS) return;
  await new Promise((ready) => setTimeout(ready));
  lastBreath = performance.now();
}

/** Translate source ids, after a forced prefix. */
export async function decode(
  model: Network,
  memory: Tensor,
  limits: Limits,
  how: Decoding,
  prefix: number[],
  changes: Change[],
): Promise<Found> {
  const { tokenizer, decoding } = limits;
  const next = new Next(model, memory, changes, tokenizer);
  const limit = maxLength(sizesOf(memory, 2)[0], model.config.max_target_length, decoding);
  if (how.method === "beam") return search(next, how.beam, limit, limits, prefix);
  return walk(next, how, limit, tokenizer.eos_id, prefix);
}

async function walk(next: Next, how: Decoding, limit: number, eos: number, prefix: number[]): Promise<Found> {
  const state = next.begin();
  const random = how.method === "sample" ? randomNumbers(how.seed) : null;
  const ids: number[] = [];
  const logs: number[] = [];
  const tree: Candidate[][] = [];
  while (ids.length < limit) {
    await breathe();
    const { values: logits, normalizer } = next.logits(state, ids);
    const uniform = random?.() ?? 0;
    let id = prefix[ids.length];
    if (id === undefined) id = random ? draw(logits, how, uniform) : argmax(logits);
    ids.push(id);
    logs.push(itemAt(logits, id) - normalizer);
    if (id === eos) break;
  }
  const isFinished = ids[ids.length - 1] === eos;
  return { hypotheses: [{ ids, logs, isFinished, score: sum(logs) }], tree };
}

interface Live {
  ids: number[];
  logs: number[];
  total: number;
  state: State;
  /** Its number among the candidates of the step before. */
  candidate: number;
}

async function search(next: Next, width: number, limit: number, limits: Limits, prefix: number[]): Promise<Found> {
  const eos = limits.tokenizer.eos_id;
  const penalty = (length: number) => lengthPenalty(length, limits.decoding);
  let live: Live[] = [{ ids: [], logs: [], total: 0, state: next.begin(), candidate: -1 }];
  const done: Hypothesis[] = [];
  const tree: Candidate[][] = [];
  let numFinished = 0;
  for (let length = 1; live.length > 0 && length <= limit; length++) {
    const forced = prefix[length - 1];
    const candidates: { from: Live; id: number; log: number; total: number }[] = [];
    for (const one of live) {
      await breathe();
      const { values: logits, normalizer } = next.logits(one.state, one.ids);
      // A few more than the beam holds are shown as dropped.
      for (const id of forced === undefined ? largest(logits, width + 1) : [forced]) {
        const log = Math.fround(itemAt(logits, id) - normalizer);
        candidates.push({ from: one, id, log, total: one.total + log });
      }
    }
    candidates.sort((a, b) => b.total - a.total);
    const places = width - numFinished;
    const step: Candidate[] = [];
    const grown: Live[] = [];
    candidates.slice(0, Math.max(places, 0) + 3).forEach((one, rank) => {
      const isTaken = rank < places;
      const fate = !isTaken ? "dropped" : one.id === eos ? "finished" : "live";
      step.push({ parent: one.from.candidate, id: one.id, log: one.log, total: one.total, fate });
      if (!isTaken) return;
      const ids = [...one.from.ids, one.id];
      const logs = [...one.from.logs, one.log];
      const score = one.total / penalty(length);
      if (one.id === eos) {
        numFinished++;
        done.push({ ids, logs, isFinished: true, score });
      } else if (length >= limit) {
        done.push({ ids, logs, isFinished: false, score });
      } else {
        grown.push({ ids, logs, total: one.total, state: next.fork(one.from.state), candidate: step.length - 1 });
      }
    });
    tree.push(step);
    live = grown;
    const best = Math.max(-Infinity, ...done.filter((one) => one.isFinished).map((one) => one.score));
    // No continuation can score better than its sum so far at the greatest length.
    const [leader] = live;
    if (leader && best >= leader.total / penalty(limit)) break;
  }
  done.sort((a, b) => Number(b.isFinished) - Number(a.isFinished) || b.score - a.score);
  return { hypotheses: done, tree };
}

export function lengthPenalty(length: number, config: DecodingConfig): number {
  if (config.length_penalty === "none") return 1;
  return (config.length_penalty === "gnmt" ? (5 + length) / 6 : length) ** config.alpha;
}

/** Draw a token: temperature, then the likeliest few, then a number from 0 to 1. */
export function draw(logits: ArrayLike<number>, how: Decoding, uniform: number): number {
  const count = how.topK > 0 ? Math.min(how.topK, logits.length) : logits.length;
  const order = Array.from(logits, (_, id) => id)
    .sort((a, b) => itemAt(logits, b) - itemAt(logits, a) || a - b)
    .slice(0, count);
  const best = itemAt(logits, itemAt(order, 0));
  const likely = order.map((id) => ({ id, exponential: Math.exp((itemAt(logits, id) - best) / how.temperature) }));
  const whole = sum(likely.map(({ exponential }) => exponential));
  const kept: { id: number; share: number }[] = [];
  let mass = 0;
  for (const { id, exponential } of likely) {
    if (kept.length > 0 && mass >= how.topP) break;
    kept.push({ id, share: exponential / whole });
    mass += exponential / whole;
  }
  let rest = uniform * mass;
  for (const { id, share } of kept) {
    rest -= share;
    if (rest < 0) return id;
  }
  return itemAt(kept, kept.length - 1).id;
}
