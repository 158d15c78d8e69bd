/** A source whose model is in the page: it translates whatever is typed. */

import type { Change } from "../model/changes";
import { unpackWeights, type CarriedModel } from "../model/config";
import { breathe, decode, GREEDY } from "../model/decode";
import { itemAt } from "../model/items";
import { logProbability, row, type Tensor } from "../model/tensor";
import { plain, WordTokenizer } from "../model/tokenizer";
import { Transformer } from "../model/transformer";
import { measure, MEASURES } from "../measures/measures";
import { characterName, Cleaner } from "../notes/cleaning";
import { closeTo, sayUnknownWords, unknownWords } from "../notes/close";
import { isPartial, isStuck, judge, losesNegation } from "../notes/judging";
import type { Notes } from "../notes/notes";
import { isSeen } from "../notes/seen";
import { Problem, type Answer, type Measured, type Question, type Source } from "./source";
import { parseHead, Trace } from "./trace";

/** The most source tokens: the maps of longer lines are too large to be looked at. */
export const LONGEST = 120;

export class PageModel implements Source {
  readonly isLive = true;
  readonly unit = "words";
  readonly measures = MEASURES.filter(({ isElsewhere }) => !isElsewhere).map(({ name }) => name);
  readonly transformer: Transformer;
  readonly tokenizer: WordTokenizer;
  private readonly cleaner: Cleaner;
  /** The filter of the sentences that it learned from; empty if they are not known. */
  private readonly seen: Uint8Array;

  constructor(readonly carried: CarriedModel) {
    this.transformer = new Transformer(carried.model, unpackWeights(carried));
    this.tokenizer = new WordTokenizer(carried.tokenizer, carried.source_vocabulary, carried.target_vocabulary);
    this.cleaner = new Cleaner(carried.learned.known, this.tokenizer);
    this.seen = Uint8Array.from(atob(carried.learned.seen ?? ""), (byte) => byte.charCodeAt(0));
  }

  get name() {
    return this.carried.name;
  }
  get command() {
    return this.carried.command;
  }
  get languages() {
    return this.carried.languages;
  }
  get rivals() {
    return this.carried.rivals;
  }
  get hash() {
    return this.carried.model_hash;
  }
  get taught() {
    return parseHead(this.carried.taught_head);
  }
  get model() {
    return { carried: this.carried, transformer: this.transformer, tokenizer: this.tokenizer };
  }
  get about() {
    const { num_encoder_layers: above, num_decoder_layers: below, num_heads } = this.carried.model;
    return `${above} + ${below} layers, ${num_heads} heads, computed in this page`;
  }

  token(id: number): string {
    return plain(this.carried.target_vocabulary[id] ?? "?");
  }

  text(ids: number[]): string {
    return this.tokenizer.decodeTarget(ids);
  }

  reads(text: string): boolean {
    return !this.tokenizer.encodeSource(this.cleaner.clean(text).text).ids.includes(this.carried.tokenizer.unk_id);
  }

  closeTo(word: string) {
    return closeTo(word, this.tokenizer);
  }

  /** The words that it knows, in the order of the alphabet. */
  get words(): string[] {
    return Array.from(this.tokenizer.words)
      .filter((word) => /^\p{L}/u.test(word))
      .sort((a, b) => a.localeCompare(b, "en"));
  }

  async ask({ text: line, decoding, prefix, changes, target }: Question): Promise<Answer> {
    const started = performance.now();
    const { model, tokenizer: settings, learned } = this.carried;
    const cleaned = this.cleaner.clean(line);
    const { text } = cleaned;
    const encoded = this.tokenizer.encodeSource(text);
    const most = Math.min(LONGEST, model.max_source_length);
    if (!encoded.words.length) throw new Problem("There is nothing to translate yet. Type a sentence.");
    if (encoded.ids.length > most)
      throw new Problem(
        `A line may have at most ${most - 1} words and signs here, but this one has ` + `${encoded.words.length}. Split it into sentences.`,
      );
    const memory = this.transformer.encode(encoded.ids, { changes });
    const found = target ? { hypotheses: [], tree: [] } : await decode(this.transformer, memory, this.carried, decoding, prefix, changes);
    const ids = target ?? itemAt(found.hypotheses, 0).ids;
    const inputs = [settings.target_start_id, ...ids.slice(0, -1)];
    await breathe();
    const arrays = this.replay(encoded.ids, inputs, changes);
    const logits = arrays.get("decoder.logits")!;
    const logs = ids.map((id, t) => logProbability(row(logits, t), id));
    const words = encoded.words.map(plain);
    const records = {
      sourceTokens: encoded.tokens.map((token, i) => words[i] ?? token),
      sourceIds: encoded.ids,
      targetTokens: inputs.map((id) => this.token(id)),
      predictedTokens: ids.map((id) => this.token(id)),
      predictedIds: ids,
      logProbabilities: logs,
      text: this.text(ids),
      heads: Array.from({ length: model.num_heads }, (_, head) => head),
    };
    const trace = new Trace(records, arrays);
    const missing = target ? [] : unknownWords(encoded.words, this.tokenizer);
    const notes: Notes = {
      words: sayUnknownWords(missing, this.tokenizer),
      missing,
      changed: Array.from(cleaned.changed, characterName),
      unknown: Array.from(cleaned.unknown, characterName),
      isSeen: this.seen.length > 0 && isSeen(text, this.seen),
      isLong: learned.most_characters > 0 && [...text].length > 1.5 * learned.most_characters,
      flags: [],
    };
    if (!target) {
      const { isFinished } = itemAt(found.hypotheses, 0);
      const [isSample, longestTargets] = [decoding.method === "sample", learned.longest_targets];
      notes.flags = judge({ source: text, sourceIds: encoded.ids, text: records.text, ids, logs, isFinished, isSample, longestTargets });
      const isDenied = losesNegation(text, records.text, this.languages);
      if (isDenied) notes.flags.push("partial");
      if (!isSample && isStuck(trace, encoded.words)) notes.flags.push("stuck");
      if (!isDenied && isPartial(trace, this.taught, text, encoded.words, encoded.tokens)) notes.flags.push("partial");
    }
    return { text, trace, ...found, notes, milliseconds: performance.now() - started };
  }

  async measure(name: string, trace: Trace, layer: number): Promise<Measured> {
    const { sourceTokens, predictedIds } = trace.records;
    const inputs = [this.carried.tokenizer.target_start_id, ...predictedIds.slice(0, -1)];
    const replay = (source: number[]) => this.replay(source, inputs);
    const map = await measure(name, { model: this.transformer, trace, layer, replay });
    const isOfLayer = MEASURES.some((one) => one.name === name && one.isOfLayer);
    return { map, columns: sourceTokens, layer: isOfLayer ? layer : null };
  }

  /** Run source and target once, and keep every result under its name in a trace. */
  replay(source: number[], inputs: number[], changes: Change[] = []): Map<string, Tensor> {
    const run = { changes, keep: new Map<string, Tensor>() };
    const memory = this.transformer.encode(source, run);
    const states = this.transformer.step(this.transformer.begin(memory), inputs, run);
    this.transformer.logits(states, run);
    return run.keep;
  }
}

export const plainQuestion = (text: string): Question => ({ text, decoding: GREEDY, prefix: [], changes: [] });
