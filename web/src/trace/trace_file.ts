/** A source that holds one trace: it shows what was recorded, and answers nothing else. */

import { bytesOf } from "../model/config";
import { sum, type Tensor } from "../model/tensor";
import { plain } from "../model/tokenizer";
import { judge } from "../notes/judging";
import { NO_NOTES } from "../notes/notes";
import { Problem, type Answer, type Measured, type Question, type Source } from "./source";
import { parseHead, readRecords, Trace, type CarriedRecords } from "./trace";

export const FORMAT = 1;

/** A trace as a page carries it: the records of trace.md, and packed arrays. */
export interface CarriedTrace extends CarriedRecords {
  format: number;
  /** The source line, and the model as a command names it; empty if not known. */
  source: string;
  command: string;
  /** Whether a search found the target, so that it is judged. */
  is_found: boolean;
  model: { name?: string; model_hash?: string; taught_head?: string; languages?: { source: string; target: string } };
  about: string;
  arrays: Record<string, { shape: number[]; bytes: 4 | 8; data: string }>;
  /** Measures of the sentence, by source words. */
  measures?: { words: string[]; maps: Record<string, { layer: number | null; rows: number[][] }> } | null;
}

export class TraceFile implements Source {
  readonly isLive = false;
  readonly model = null;
  readonly measures: readonly string[];
  readonly trace: Trace;

  constructor(readonly carried: CarriedTrace) {
    if (carried.format !== FORMAT)
      throw new Problem(
        `This page reads traces of format ${FORMAT}, but the one in it has format ` +
          `${String(carried.format)}. Make the page again with the Pellucid that wrote the trace.`,
      );
    const arrays = new Map<string, Tensor>();
    for (const [name, { shape, bytes, data }] of Object.entries(carried.arrays)) {
      const { buffer } = bytesOf(data);
      arrays.set(name, { shape, data: bytes === 8 ? new Float32Array(new Float64Array(buffer)) : new Float32Array(buffer) });
    }
    this.measures = Object.keys(carried.measures?.maps ?? {});
    this.trace = new Trace(readRecords(carried, plain), arrays);
  }

  get name() {
    return this.carried.model.name ?? "a recorded model";
  }
  get command() {
    return this.carried.command;
  }
  get about() {
    return `a recorded sentence. ${this.carried.about}`;
  }
  get hash() {
    return this.carried.model.model_hash ?? "";
  }
  get taught() {
    return parseHead(this.carried.model.taught_head ?? "");
  }
  get languages() {
    return this.carried.model.languages ?? { source: "", target: "" };
  }

  token(id: number): string {
    return this.trace.records.predictedTokens[this.carried.predicted_ids.indexOf(id)] ?? `#${id}`;
  }

  text(): string {
    return this.carried.text;
  }

  /** A SentencePiece token with a space in front shows that words were cut into pieces. */
  get unit() {
    const { source_tokens, target_tokens } = this.carried;
    return [...source_tokens, ...target_tokens].some((token) => token.startsWith("\u2581")) ? "pieces" : "words";
  }

  async measure(name: string): Promise<Measured> {
    const { words = [], maps = {} } = this.carried.measures ?? {};
    const found = maps[name];
    if (!found) throw new Problem(`This recording does not hold the measure ${name}.`);
    const { layer, rows } = found;
    const map = { rows: rows.length, columns: words.length, data: Float64Array.from(rows.flat()) };
    return { map, columns: words.map(plain), layer };
  }

  reads(): boolean {
    return false;
  }

  async ask(_: Question): Promise<Answer> {
    const { predictedIds: ids, predictedTokens, logProbabilities: logs, sourceIds } = this.trace.records;
    const { text, source, is_found } = this.carried;
    const isFinished = predictedTokens.at(-1) === "</s>";
    // Without the model only the tokens can be judged.
    const flags = is_found ? judge({ source, sourceIds, text, ids, logs, isFinished }) : [];
    const hypotheses = [{ ids, logs, isFinished, score: sum(logs) }];
    return { text: source, trace: this.trace, hypotheses, tree: [], notes: { ...NO_NOTES, flags }, milliseconds: 0 };
  }
}
