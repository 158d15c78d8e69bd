/** A source whose model is on a server: every answer comes over HTTP, the arrays layer by layer. */

import type { Tensor } from "../model/tensor";
import { edgesTo, writeChange, type Change } from "../model/changes";
import { plain, trim } from "../model/tokenizer";
import { NO_NOTES, type Notes } from "../notes/notes";
import { languagesOf, Problem, type Answer, type Choices, type Languages, type Measured, type Question, type Source } from "./source";
import { parseHead, readRecords, siteOf, Trace, type CarriedRecords, type HeadPlace } from "./trace";

/** What the page knows of a server's model. */
export interface CarriedService {
  name: string;
  command: string;
  languages: Languages;
  choices?: Choices;
  model_hash: string;
  taught_head: string;
  about: string;
  unit: "words" | "pieces";
  vocabulary_size: number;
  rivals?: Record<string, number[]>;
}

interface Records extends CarriedRecords {
  problems: string[];
  notes: Partial<Notes>;
  hypotheses: { text: string; ids: number[]; log_probabilities: number[]; is_finished: boolean; score: number }[];
  vocabulary: Record<string, string>;
}

/** Rows of logits are sent if a sentence of usual length has at most so many numbers. */
const MOST_LOGITS = 4_000_000;
const USUAL_TOKENS = 60;

export class ServiceModel implements Source {
  readonly isLive = true;
  readonly isRemote = true;
  readonly model = null;
  readonly measures: readonly string[] = [];
  private readonly vocabulary = new Map<number, string>();
  private readonly texts = new Map<string, string>();
  private key = "";
  private running: AbortController | null = null;

  constructor(
    readonly carried: CarriedService,
    private readonly send: typeof fetch = (...request) => fetch(...request),
    private readonly askForKey: () => string | null = () => prompt("This server needs a key."),
  ) {}

  get name() {
    return this.carried.name;
  }
  get command() {
    return this.carried.command;
  }
  get languages() {
    return this.carried.languages;
  }
  get choices() {
    return this.carried.choices;
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
  get about() {
    return this.carried.about;
  }
  get unit() {
    return this.carried.unit;
  }

  token(id: number): string {
    return this.vocabulary.get(id) ?? `#${id}`;
  }

  text(ids: number[]): string {
    return this.texts.get(ids.join()) ?? ids.map((id) => this.token(id)).join(" ");
  }

  async measure(): Promise<Measured> {
    throw new Problem("A server makes no measures.");
  }

  /** The server does not say which words it has; a model of pieces reads every word. */
  reads(): boolean {
    return this.unit === "pieces";
  }

  async ask(question: Question): Promise<Answer> {
    const started = performance.now();
    this.running?.abort(); // whoever asked before no longer waits
    const { signal } = (this.running = new AbortController());
    const { decoding, prefix, changes, target } = question;
    const text = trim(question.text);
    if (!text) throw new Problem("There is nothing to translate yet. Type a sentence.");
    const search =
      decoding.method === "beam"
        ? { beam: decoding.beam, n_best: decoding.beam }
        : decoding.method === "sample"
          ? {
              sample: true,
              temperature: decoding.temperature,
              top_k: decoding.topK,
              top_p: decoding.topP,
              seed: decoding.seed,
            }
          : { beam: 1 };
    if (question.written && !prefix.length && !changes.length && !target) {
      const { n_best: _, ...first } = { n_best: 1, ...search };
      await this.stream({ texts: text, split: "none", ...this.pair(question), ...first }, question.written, signal);
    }
    const logits = this.carried.vocabulary_size * USUAL_TOKENS <= MOST_LOGITS ? ["logits"] : [];
    const { records, arrays } = await this.look(
      {
        text,
        ...this.pair(question),
        clean: true,
        stages: ["weights", ...logits],
        ...(target ? { target_ids: target } : search),
        ...(prefix.length && !target ? { prefix_ids: prefix } : {}),
        ...(changes.length ? { changes: changes.flatMap(toServer) } : {}),
      },
      signal,
    );
    const hypotheses = records.hypotheses.map((one) => {
      this.texts.set(one.ids.join(), one.text);
      return { ids: one.ids, logs: one.log_probabilities, isFinished: one.is_finished, score: one.score };
    });
    const trace = new Trace(readRecords(records, plain), arrays);
    const milliseconds = performance.now() - started;
    const remark = records.problems.join(" ");
    return { text, trace, hypotheses, tree: [], notes: { ...NO_NOTES, ...records.notes }, milliseconds, remark };
  }

  /** Fetch every array of one layer, and return the answer with them. */
  async load(question: Question, answer: Answer, place: HeadPlace): Promise<Answer> {
    const { records, arrays } = answer.trace;
    const found = await this.look({
      text: answer.text,
      ...this.pair(question),
      clean: true,
      target_ids: records.predictedIds,
      heads: `${place.part}.${place.layer}`,
      everything: true,
      ...(question.changes.length ? { changes: question.changes.flatMap(toServer) } : {}),
    });
    return { ...answer, trace: new Trace(records, new Map([...arrays, ...found.arrays])) };
  }

  hasAll(answer: Answer, place: HeadPlace): boolean {
    return answer.trace.has(`${siteOf(place)}.query`);
  }

  /** The languages as the server asks for them; none if its model has one pair. */
  private pair(question: Question): { source_language?: string; target_language?: string } {
    if (!this.choices) return {};
    const { source, target } = languagesOf(this, question);
    return { ...(this.choices.has_source ? { source_language: source } : {}), target_language: target };
  }

  private async stream(body: object, written: (text: string) => void, signal: AbortSignal): Promise<void> {
    const answer = await this.post("v1/translate", { ...body, stream: true }, signal);
    const reader = answer.body!.pipeThrough(new TextDecoderStream()).getReader();
    let rest = "";
    let text = "";
    for (;;) {
      const { done, value } = await reader.read();
      if (done) return;
      rest += value;
      const blocks = rest.split("\n\n");
      rest = blocks.pop()!;
      for (const block of blocks) {
        const lines = block.split("\n");
        const data = JSON.parse(lines.at(-1)!.slice("data: ".length));
        if (lines[0] === "event: error") throw new Problem(data.error);
        text = lines[0] === "event: end" ? data.translation : text + data.text;
        written(text);
      }
    }
  }

  private async look(body: object, signal?: AbortSignal): Promise<{ records: Records; arrays: Map<string, Tensor> }> {
    const answer = await this.post("v1/look", body, signal);
    const buffer = await answer.arrayBuffer();
    const size = Number(new DataView(buffer).getBigUint64(0, true));
    const header = JSON.parse(new TextDecoder().decode(new Uint8Array(buffer, 8, size)));
    const records: Records = JSON.parse(header.__metadata__.trace);
    for (const [id, token] of Object.entries(records.vocabulary)) this.vocabulary.set(Number(id), plain(token));
    const arrays = new Map<string, Tensor>();
    for (const [name, { shape, data_offsets }] of Object.entries<{ shape: number[]; data_offsets: [number, number] }>(header)) {
      if (name === "__metadata__") continue;
      const [start, end] = data_offsets;
      arrays.set(name, { shape, data: new Float32Array(buffer, 8 + size + start, (end - start) / 4) });
    }
    return { records, arrays };
  }

  private async post(path: string, body: object, signal?: AbortSignal): Promise<Response> {
    const headers: Record<string, string> = { "Content-Type": "application/json" };
    if (this.key) headers.Authorization = `Bearer ${this.key}`;
    let answer: Response;
    try {
      const content = JSON.stringify({ model: this.name, ...body });
      answer = await this.send(path, { method: "POST", headers, body: content, signal });
    } catch (error) {
      if (signal?.aborted) throw error;
      throw new Problem("The server does not answer. Start it again: pellucid serve");
    }
    if (answer.status === 401) {
      const key = this.askForKey();
      if (key) {
        this.key = key.trim();
        return this.post(path, body, signal);
      }
    }
    if (!answer.ok) {
      const { error } = await answer.json().catch(() => ({ error: `The server answered with ${answer.status}.` }));
      throw new Problem(error);
    }
    return answer;
  }
}

/** Write a change as the server reads it; some are several there. */
function toServer(change: Change): string[] {
  switch (change.verb) {
    case "word":
      return edgesTo(change.position);
    case "temperature":
    case "no-scale":
    case "no-mask":
    case "move":
      throw new Problem("A server changes heads and edges, and hides words, no more. Take this change back.");
    default:
      return [writeChange(change)];
  }
}
