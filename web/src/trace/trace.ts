/** The record of one pair of source and target: arrays by name, and the tokens of their rows. */

import { row, sizesOf, type Tensor } from "../model/tensor";

export const STAGES = ["scores", "scaled", "masked", "weights"] as const;
export type Stage = (typeof STAGES)[number];

/** One attention head of a model. */
export interface HeadPlace {
  part: "encoder" | "decoder";
  layer: number;
  kind: "self" | "cross";
  head: number;
}

export const siteOf = ({ part, layer, kind }: HeadPlace) => `${part}.${layer}.${kind}`;
export const writeHead = (place: HeadPlace) => `${siteOf(place)}.${place.head}`;

export function parseHead(text: string): HeadPlace | null {
  const found = /^(encoder|decoder)\.(\d+)\.(self|cross)\.(\d+)$/.exec(text);
  if (!found || (found[1] === "encoder" && found[3] === "cross")) return null;
  const [, part, layer, kind, head] = found;
  return { part, layer: Number(layer), kind, head: Number(head) } as HeadPlace;
}

export const KIND_NAMES: Record<string, string> = {
  "encoder.self": "encoder self-attention",
  "decoder.self": "decoder self-attention",
  "decoder.cross": "cross-attention",
};

export const kindName = (place: { part: string; kind: string }) => KIND_NAMES[`${place.part}.${place.kind}`];

/** The one name of a head everywhere. */
export const headName = (place: HeadPlace) => `${kindName(place)}, layer ${place.layer}, head ${place.head}`;

/** The same, with its terms marked. */
export const markedHead = (place: HeadPlace) => headName(place).replace(/[\w-]+-attention|encoder|decoder|layer|head/g, "[$&]");

export interface Records {
  sourceTokens: string[];
  /** Empty if a recording does not hold them. */
  sourceIds: number[];
  targetTokens: string[];
  predictedTokens: string[];
  predictedIds: number[];
  logProbabilities: number[];
  text: string;
  /** The heads that arrays hold, in their order. */
  heads: number[];
}

/** The records as Python writes them, which docs/formats/trace.md explains. */
export interface CarriedRecords {
  source_tokens: string[];
  source_ids: number[];
  target_tokens: string[];
  predicted_tokens: string[];
  predicted_ids: number[];
  log_probabilities: number[];
  heads: number[];
  text: string;
}

/** Read records, with tokens as a reader should see them. */
export function readRecords(carried: CarriedRecords, shown: (token: string) => string): Records {
  return {
    sourceTokens: carried.source_tokens.map(shown),
    sourceIds: carried.source_ids,
    targetTokens: carried.target_tokens.map(shown),
    predictedTokens: carried.predicted_tokens.map(shown),
    predictedIds: carried.predicted_ids,
    logProbabilities: carried.log_probabilities,
    text: carried.text,
    heads: carried.heads,
  };
}

export class Trace {
  constructor(
    readonly records: Records,
    readonly arrays: Map<string, Tensor>,
  ) {}

  has(name: string): boolean {
    return this.arrays.has(name);
  }

  /** A matrix: of one head if the array has heads. */
  matrix(name: string, head?: number): Tensor | null {
    const whole = this.arrays.get(name);
    if (!whole) return null;
    if (whole.shape.length < 3) return whole;
    const place = this.records.heads.indexOf(head ?? this.records.heads[0] ?? -1);
    if (place < 0) return null;
    const [, rows, columns] = sizesOf(whole, 3);
    const size = rows * columns;
    return { shape: [rows, columns], data: whole.data.subarray(place * size, (place + 1) * size) };
  }

  vector(name: string, position: number, head?: number): Float32Array | null {
    const matrix = this.matrix(name, head);
    return matrix && position < sizesOf(matrix, 2)[0] ? row(matrix, position) : null;
  }

  /** Every head of which a map is here, in the order of the arrays. */
  heads(): HeadPlace[] {
    return (this.found ??= this.findHeads());
  }

  private found?: HeadPlace[];

  private findHeads(): HeadPlace[] {
    const found = new Map<string, HeadPlace>();
    for (const name of this.arrays.keys()) {
      const [part, layer, kind, stage = ""] = name.split(".");
      if (!(STAGES as readonly string[]).includes(stage)) continue;
      for (const head of this.records.heads) {
        const place = { part, layer: Number(layer), kind, head } as HeadPlace;
        found.set(writeHead(place), place);
      }
    }
    return [...found.values()];
  }

  /** The last stage of a head that is here: the weights, if possible. */
  lastStage(place: HeadPlace): Stage {
    return STAGES.findLast((stage) => this.has(`${siteOf(place)}.${stage}`)) ?? "weights";
  }

  hasWeights(place: HeadPlace): boolean {
    return this.has(`${siteOf(place)}.weights`);
  }

  /** The cells of a head that have at least this weight; none if the trace has no weights. */
  lines(place: HeadPlace, least: number): { row: number; column: number }[] {
    if (!this.hasWeights(place)) return [];
    const weights = this.matrix(`${siteOf(place)}.weights`, place.head)!;
    const [, columns] = sizesOf(weights, 2);
    return Array.from(weights.data).flatMap((weight, i) =>
      weight >= least ? [{ row: Math.floor(i / columns), column: i % columns }] : [],
    );
  }

  /** The tokens that attend. */
  rows(place: { part: string; kind: string }): string[] {
    return place.part === "encoder" ? this.records.sourceTokens : this.records.targetTokens;
  }

  /** The tokens attended to. */
  columns(place: { part: string; kind: string }): string[] {
    return place.part === "encoder" || place.kind === "cross" ? this.records.sourceTokens : this.records.targetTokens;
  }

  /** What each row predicts; only decoder rows do. */
  predicts(place: { part: string }): string[] | null {
    return place.part === "decoder" ? this.records.predictedTokens : null;
  }
}
