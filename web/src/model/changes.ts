/**
 * Changes to attention while a model runs, written as the command line writes them:
 * `cut decoder.1.cross.0`, `cut encoder.0.self.2:4>7`, `zero …`, `average …`, `force …=0.8`.
 * Five more act everywhere: `word 3`, `move 3>1`, `temperature 2`, `no-scale`, `no-mask`.
 *
 * `!` after an index: a loop runs over a row of the weights.
 */

import { sizesOf } from "./tensor";

export interface Place {
  part: string;
  layer: number | null;
  kind: string;
  head: number | null;
  query?: number | null;
  key?: number | null;
  isEdge: boolean;
}

export type Change =
  | { verb: "cut" | "zero" | "average"; place: Place }
  | { verb: "force"; place: Place; weight: number }
  | { verb: "word"; position: number }
  | { verb: "move"; position: number; to: number }
  | { verb: "temperature"; value: number }
  | { verb: "no-scale" }
  | { verb: "no-mask" };

const PLACE = /^(encoder|decoder)\.(\d+|\*)\.(self|cross)\.(\d+|\*)(?::(\d+|\*)>(\d+|\*))?$/;

const number = (text: string) => (text === "*" ? null : Number(text));

export function parsePlace(text: string): Place | null {
  const found = PLACE.exec(text);
  if (!found) return null;
  const [, part = "", layer = "", kind = "", head = "", query, key = ""] = found;
  if (part === "encoder" && kind === "cross") return null;
  const isEdge = query !== undefined;
  return {
    part,
    layer: number(layer),
    kind,
    head: number(head),
    isEdge,
    ...(isEdge ? { query: number(query), key: number(key) } : {}),
  };
}

const show = (value: number | null | undefined) => (value === null || value === undefined ? "*" : String(value));

export function writePlace(place: Place): string {
  const head = `${place.part}.${show(place.layer)}.${place.kind}.${show(place.head)}`;
  return place.isEdge ? `${head}:${show(place.query)}>${show(place.key)}` : head;
}

/** Read a change, or return null if the text is not one. */
export function parseChange(text: string): Change | null {
  const [verb, rest = ""] = text.trim().split(/\s+(.*)/s);
  if (verb === "no-scale" || verb === "no-mask") return rest ? null : { verb };
  if (verb === "word") return /^\d+$/.test(rest) ? { verb, position: Number(rest) } : null;
  if (verb === "move") {
    const [, position, to] = /^(\d+)>(\d+)$/.exec(rest) ?? [];
    return position ? { verb, position: Number(position), to: Number(to) } : null;
  }
  if (verb === "temperature") {
    const value = Number(rest);
    return rest && value > 0 && Number.isFinite(value) ? { verb, value } : null;
  }
  const [where = "", weight] = rest.split("=");
  const place = parsePlace(where);
  if (!place) return null;
  if (verb === "force") {
    const value = Number(weight);
    const isShare = weight !== undefined && weight !== "" && value >= 0 && value <= 1;
    return place.isEdge && isShare ? { verb, place, weight: value } : null;
  }
  if (weight !== undefined) return null;
  if (verb === "cut") return { verb, place };
  if (verb === "zero") return place.isEdge ? { verb, place } : null;
  if (verb === "average") return place.isEdge ? null : { verb, place };
  return null;
}

export function writeChange(change: Change): string {
  switch (change.verb) {
    case "word":
      return `word ${change.position}`;
    case "move":
      return `move ${change.position}>${change.to}`;
    case "temperature":
      return `temperature ${change.value}`;
    case "no-scale":
    case "no-mask":
      return change.verb;
    case "force":
      return `force ${writePlace(change.place)}=${change.weight}`;
    default:
      return `${change.verb} ${writePlace(change.place)}`;
  }
}

/** The cuts that hide a source word: every edge to it, in the encoder and in cross-attention. */
export const edgesTo = (position: number): string[] => [`cut encoder.*.self.*:*>${position}`, `cut decoder.*.cross.*:*>${position}`];

/** The rows of a source in the order of their positions, after words have moved. */
export function orderOf(changes: Change[], length: number): number[] {
  const order = Array.from({ length }, (_, row) => row);
  for (const one of changes) {
    if (one.verb !== "move" || one.position >= length || one.to >= length) continue;
    order.splice(order.indexOf(one.position), 1);
    order.splice(one.to, 0, one.position);
  }
  return order;
}

/** Weights or scores of one attention, (heads, queries, keys), and the row of the first query. */
interface Scores {
  shape: number[];
  data: Float32Array;
}

const isHere = (place: Place, part: string, layer: number, kind: string) =>
  place.part === part && place.kind === kind && (place.layer === null || place.layer === layer);

/** Apply changes to one attention. `first` is the position of the first query. */
export class ChangesHere {
  readonly temperature: number;
  readonly noScale: boolean;
  readonly noMask: boolean;
  private readonly due: Extract<Change, { place: Place }>[];

  constructor(
    changes: Change[],
    readonly part: string,
    layer: number,
    readonly kind: string,
    readonly first: number,
  ) {
    this.temperature = 1;
    for (const one of changes) if (one.verb === "temperature") this.temperature *= one.value;
    this.noScale = changes.some((one) => one.verb === "no-scale");
    this.noMask = changes.some((one) => one.verb === "no-mask");
    this.due = changes
      .flatMap((one): Change[] => (one.verb === "word" ? [this.cutWord(one.position)] : [one]))
      .filter((one): one is Extract<Change, { place: Place }> => "place" in one)
      .filter((one) => isHere(one.place, part, layer, kind));
  }

  /** Every edge to a source word, in the encoder and in cross-attention. */
  private cutWord(position: number): Change {
    const reads = this.part === "encoder" || this.kind === "cross";
    const kind = reads ? this.kind : "nowhere";
    const place = { part: this.part, layer: null, kind, head: null, query: null, key: position, isEdge: true };
    return { verb: "cut", place };
  }

  masked(tensor: Scores): void {
    for (const one of this.due) {
      if (one.verb === "cut" && one.place.isEdge) this.each(tensor, one.place, (data, i) => (data[i] = -Infinity));
      if (one.verb === "average")
        this.each(tensor, one.place, (data, i) => {
          if (data[i] !== -Infinity) data[i] = 0;
        });
    }
  }

  weights(tensor: Scores, masked: Scores): void {
    for (const one of this.due) {
      if (one.verb === "zero") this.each(tensor, one.place, (data, i) => (data[i] = 0));
      if (one.verb === "force") {
        const { weight } = one;
        const [, , keys] = sizesOf(tensor, 3);
        this.each(tensor, one.place, (data, i) => {
          if (masked.data[i] === -Infinity) return;
          const start = i - (i % keys);
          let others = 0;
          for (let k = start; k < start + keys; k++) if (k !== i) others += data[k]!;
          if (others > 0) for (let k = start; k < start + keys; k++) if (k !== i) data[k]! *= (1 - weight) / others;
          data[i] = weight;
        });
      }
    }
  }

  /** Whether a head's context becomes 0. */
  cuts(head: number): boolean {
    return this.due.some(({ verb, place }) => verb === "cut" && !place.isEdge && (place.head === null || place.head === head));
  }

  private each(tensor: Scores, place: Place, act: (data: Float32Array, index: number) => void): void {
    const [heads, queries, keys] = sizesOf(tensor, 3);
    const is = (wanted: number | null | undefined, found: number) => wanted === null || wanted === undefined || wanted === found;
    for (let h = 0; h < heads; h++)
      for (let q = 0; q < queries; q++)
        for (let k = 0; k < keys; k++)
          if (is(place.head, h) && is(place.query, q + this.first) && is(place.key, k)) act(tensor.data, (h * queries + q) * keys + k);
  }
}
