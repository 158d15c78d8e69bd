/** The state that all views share. A view changes it; the answer and the link follow. */

import { writeChange, type Change } from "../model/changes";
import { languagesOf, type Answer, type Languages, type Source } from "../trace/source";
import { clearestHead } from "../trace/figures";
import { itemAt } from "../model/items";
import { argmax, row as rowOf, sizesOf } from "../model/tensor";
import { siteOf, writeHead, type HeadPlace } from "../trace/trace";
import { align } from "./align";
import { Duel, DUELS } from "./duel.svelte";
import { readData, type Data } from "./data";
import { readLink, START, writeLink, type State, type View } from "./link";
import { placesOf, pronounPlace, rivalForms, SOURCE_PRONOUN } from "./rivals";
import { cutHead, cutLine, LEAST_LOSS, Verdicts } from "./verdicts.svelte";

export const EXAMPLES = [...DUELS, "the European Economic Area", "Not on your life!"];

const LANGUAGES: Record<string, string> = { en: "English", fr: "French", de: "German" };

/** Words to exchange with one click, in sentences that have either. */
const SWITCHES = [
  ["tasted good", "closed badly"],
  ["pizza", "cake"],
  ["was tired", "was wide"],
];

/** The switches of a text, each with the text that its other side makes. */
export const switchesFor = (source: Source | undefined, text: string) =>
  SWITCHES.flatMap((pair) => {
    const now = pair.findIndex((one) => new RegExp(`\\b${one}\\b`).test(text));
    if (!source?.isLive || now < 0) return [];
    const texts = pair.map((one) => text.replace(itemAt(pair, now), one));
    return source.isRemote || source.reads(itemAt(texts, 1 - now)) ? [{ pair, texts, now }] : [];
  });

/** Of so many needed heads, the lines of at least this weight are tried for one that decides by itself. */
const MOST_TRIED = 3;
const LEAST_DECIDING = 0.25;

const nameOf = (source: Source | undefined, code: string) => source?.choices?.names[code] ?? LANGUAGES[code] ?? code;

/** Sentences to begin with: those whose words a model has, as far as is known. */
export function examplesFor(source: Source | undefined, state: State): string[] {
  if (!source?.isLive) return [];
  const name = nameOf(source, languagesOf(source, state).source);
  return ["", "English"].includes(name) ? EXAMPLES.filter((text) => source.isRemote || source.reads(text)) : [];
}

/** Whether a token is one that a reader may ask about: no sign of the model's own, such as `<unk>`. */
export const isWord = (token = "") => Boolean(token.trim()) && !/^<.+>$/.test(token);

/** What is asked of a translation, which another one does not have. */
const UNASKED: Partial<State> = { prefix: [], changes: [], word: null, row: null, column: null, duel: "" };

const tokensOf = (answer: Answer | null) => answer?.trace.records.predictedTokens ?? [];

export class App {
  readonly data: Data;
  state = $state.raw<State>(START);
  answer = $state.raw<Answer | null>(null);
  /** The answer without changes; the same one if there are none. */
  unchanged = $state.raw<Answer | null>(null);
  /** The model's own answer: without changes, and without words that the reader chose. */
  own = $state.raw<Answer | null>(null);
  /** The last sentence that a reader wrote, and left. */
  left = $state("");
  /** Whether the head that a word needs is still looked for. */
  isSearching = $state(false);
  /** Whether it was just found, and its lines are to be tried, to show the row that decides. */
  isFound = $state(false);
  problem = $state("");
  /** The line and the source that the answer is about. */
  private answered = $state.raw<State>(START);
  isBusy = $state(false);
  /** The text so far, while a source writes it piece by piece. */
  written = $state("");
  private asked = 0;
  readonly verdicts = new Verdicts(this);
  readonly duel = new Duel(this);
  /** The tokens of the French in view next to those without changes. */
  readonly aligned = $derived.by(() => align(tokensOf(this.unchanged), tokensOf(this.answer)));
  /** Which tokens in view the model's own translation has. */
  readonly isOwn = $derived.by(() => align(tokensOf(this.own), tokensOf(this.answer)).isSame);
  /** The places at which the reader chose another word than the model. */
  readonly chosen = $derived.by(() => {
    const { predictedIds: ids, logProbabilities: logs } = this.unchanged?.trace.records ?? { predictedIds: [], logProbabilities: [] };
    return ids.slice(0, this.state.prefix.length).flatMap((id, place) => {
      const logits = this.unchanged!.trace.vector("decoder.logits", place);
      return (logits ? argmax(logits) !== id : (logs[place] ?? NaN) < Math.log(0.5)) ? [place] : [];
    });
  });

  constructor() {
    this.data = readData();
    const first = this.data.sources[0];
    const start = readLink(new URLSearchParams(this.data.start).toString());
    if (!start.text) start.text = examplesFor(first, start)[0] ?? "";
    this.state = readLink(location.hash, start);
    addEventListener("hashchange", () => {
      if (location.hash !== writeLink(this.state)) this.set(readLink(location.hash, this.state), false);
    });
    void this.ask();
  }

  /** Whether the answer is about another line than the one in view, until the new one is there. */
  get isOld(): boolean {
    return (["text", "source", "from", "to"] as const).some((name) => this.answered[name] !== this.state[name]);
  }

  get source(): Source | undefined {
    return this.data.sources[this.state.source] ?? this.data.sources[0];
  }

  /** The head in view: the chosen one if the trace has it, else the clearest of cross-attention. */
  get head(): HeadPlace | null {
    const trace = this.answer?.trace;
    if (!trace) return null;
    const { head } = this.state;
    const all = trace.heads();
    const isChosen = (one: HeadPlace) =>
      head && one.part === head.part && one.layer === head.layer && one.kind === head.kind && one.head === head.head;
    return all.find(isChosen) ?? this.usualHead("decoder", "cross");
  }

  /** The head of a kind to look at first: the one that was taught word links, else the clearest. */
  usualHead(part: string, kind: string): HeadPlace | null {
    const trace = this.answer?.trace;
    if (!trace) return null;
    const { taught } = this.source ?? {};
    const isTaught = (one: HeadPlace) => taught && writeHead(one) === writeHead(taught);
    const found = taught?.part === part && taught.kind === kind ? trace.heads().find(isTaught) : null;
    return found ?? clearestHead(trace, part, kind);
  }

  /** The codes of both languages. */
  get pair(): Languages {
    return this.source ? languagesOf(this.source, this.state) : { source: "", target: "" };
  }

  /** The names of both languages. */
  get languages(): string[] {
    const { source, target } = this.pair;
    return [nameOf(this.source, source) || "Source", nameOf(this.source, target) || "Target"];
  }

  /** Choose a language; who chooses that of the other side exchanges them. */
  chooseLanguage(side: "from" | "to", code: string): void {
    const { source, target } = this.pair;
    const exchanged = side === "from" ? code === target && { to: source } : code === source && { from: target };
    this.set({ [side]: code, ...exchanged, ...UNASKED });
  }

  /** Go inside the model, cut each head in turn, and show one that the word needs, or that takes most from it. */
  async lookInside(): Promise<void> {
    this.show("look", { show: "" });
    if (!this.source?.isLive) return;
    this.isSearching = true;
    await this.verdicts.tryHeads();
    const best = await this.headWithNeededLine();
    // Whoever chose a head in the meantime keeps it.
    this.isFound = Boolean(best && this.isSearching && this.state.view === "look");
    if (best && this.isFound) this.chooseHead(best);
    this.isSearching = false;
  }

  /** Of the heads that the word needs, the first of which a single line is needed too; else the first of all. */
  private async headWithNeededLine(): Promise<HeadPlace | undefined> {
    const needed = this.headsByLoss.filter(({ fate }) => fate === "needed");
    for (const { place } of needed.slice(0, MOST_TRIED)) {
      const lines = this.answer?.trace.lines(place, LEAST_DECIDING) ?? [];
      const cuts = lines.map(({ row, column }) => [cutLine(place, row, column)]);
      if (!(await this.verdicts.try("lines", cuts))) break;
      if (cuts.some((cut) => this.verdicts.of(cut)?.fate === "needed")) return place;
    }
    return this.headsByLoss[0]?.place;
  }

  /** The heads that take something from the word when they are cut: those that it needs first, then by what it loses. */
  readonly headsByLoss = $derived.by(() =>
    (this.answer?.trace.heads() ?? [])
      .flatMap((place) => {
        const verdict = this.verdicts.of([cutHead(place)]);
        return verdict && (verdict.fate === "needed" || verdict.loss >= LEAST_LOSS) ? [{ place, ...verdict }] : [];
      })
      .sort((a, b) => Number(b.fate === "needed") - Number(a.fate === "needed") || (b.loss || 0) - (a.loss || 0)),
  );

  /** The rivals of the French words without changes. */
  get rivals(): string[] {
    return this.unchanged && this.source ? rivalForms(this.source, this.unchanged) : [];
  }

  /** The French word that is asked about, in the translation without changes: a pronoun or another word that agrees, until one is chosen. */
  get word(): number {
    const tokens = tokensOf(this.unchanged);
    const pronoun = pronounPlace(tokens);
    const agreeing = this.rivals.findLastIndex(Boolean);
    const second = tokens.findIndex((token, place) => place > 0 && isWord(token));
    const usual = [pronoun, agreeing, second].find((one) => one >= 0) ?? tokens.findIndex(isWord);
    return Math.max(0, Math.min(this.state.word ?? usual, tokens.length - 1));
  }

  /** The row of that word in the translation in view. */
  get now(): number {
    return Math.max(0, placesOf(this.aligned, tokensOf(this.unchanged), tokensOf(this.answer), this.rivals)[this.word] ?? 0);
  }

  get cell(): { row: number; column: number } {
    const place = this.head;
    if (!place || !this.answer) return { row: 0, column: 0 };
    const { trace } = this.answer;
    const weights = trace.matrix(`${siteOf(place)}.${trace.lastStage(place)}`, place.head)!;
    const [rows, columns] = sizesOf(weights, 2);
    const pronoun = trace.records.sourceTokens.findIndex((token) => SOURCE_PRONOUN.test(token));
    const row = Math.min(place.part === "decoder" ? this.now : (this.state.row ?? (pronoun < 0 ? 1 : pronoun)), rows - 1);
    // Until a cell is chosen, the largest weight of the row is the one to look at.
    const column = this.state.column ?? argmax(rowOf(weights, row));
    return { row, column: Math.min(column, columns - 1) };
  }

  /** Choose a row of the head in view, and a column. */
  choose(row: number, column: number | null = null): void {
    if (this.head?.part === "encoder") this.set({ row, column });
    else this.set({ word: Math.max(0, this.aligned.partner[row] ?? row), column });
  }

  chooseHead(head: HeadPlace): void {
    // The columns of every kind of attention are other words.
    this.isSearching = false;
    const isAlike = this.head?.part === head.part && this.head.kind === head.kind;
    this.set({ head, ...(isAlike ? {} : { column: null }) });
  }

  /** The address of what is in view. */
  get link(): string {
    return location.href.split("#")[0] + writeLink(this.state);
  }

  set(change: Partial<State>, isNew = false): void {
    const before = this.state;
    this.state = { ...before, ...change };
    const link = writeLink(this.state);
    if (isNew) history.pushState(null, "", link);
    else history.replaceState(null, "", link);
    const asks: (keyof State)[] = ["text", "source", "from", "to", "decoding", "prefix", "changes"];
    if (asks.some((name) => before[name] !== this.state[name])) void this.ask();
  }

  show(view: View, change: Partial<State> = {}): void {
    this.set({ ...change, view }, view !== this.state.view);
  }

  setText(text: string): void {
    if (text === this.state.text) return;
    if (!EXAMPLES.includes(this.state.text) && this.answer) this.left = this.state.text;
    this.set({ text, ...UNASKED });
  }

  toggle(change: Change): void {
    const text = writeChange(change);
    const others = this.state.changes.filter((one) => writeChange(one) !== text);
    const isOff = others.length === this.state.changes.length;
    this.set({ changes: isOff ? [...others, change] : others });
  }

  private async ask(): Promise<void> {
    const { source } = this;
    const number = ++this.asked;
    if (!source) {
      this.problem = "This page holds no model and no trace. Make one: pellucid look demo TEXT -o page.html";
      return;
    }
    this.isBusy = true;
    this.verdicts.cancel();
    // Let the page show that it is busy before the computation begins.
    await new Promise((done) => setTimeout(done));
    if (number !== this.asked) return;
    const { text, from, to, decoding, prefix, changes } = this.state;
    try {
      const isKnown = (id: number) => id < (source.model?.carried.target_vocabulary.length ?? Infinity);
      const question = { text, from, to, decoding, prefix: prefix.filter(isKnown), changes: [] };
      const written = (text: string) => {
        if (number === this.asked) this.written = text;
      };
      const isSame = this.unchanged && !this.isOld && this.answered.decoding === decoding && this.answered.prefix === prefix;
      const unchanged = isSame ? this.unchanged! : await source.ask({ ...question, written });
      const own = !prefix.length ? unchanged : (isSame && this.own) || (await source.ask({ ...question, prefix: [] }));
      const answer = changes.length ? await source.ask({ ...question, changes }) : unchanged;
      if (number !== this.asked) return;
      if (unchanged !== this.unchanged) this.verdicts.reset();
      this.unchanged = unchanged;
      this.own = own;
      this.answer = answer;
      this.answered = this.state;
      this.problem = "";
    } catch (error) {
      if (number !== this.asked) return;
      this.answer = this.unchanged = this.own = null;
      this.problem = error instanceof Error ? error.message : String(error);
    } finally {
      if (number === this.asked) {
        this.isBusy = false;
        this.written = "";
      }
    }
  }

  /** Fetch what a view needs of a head's layer, if the source sends layers one by one. */
  async complete(place: HeadPlace): Promise<void> {
    const { source, answer } = this;
    if (!source?.load || !answer || this.isBusy || source.hasAll?.(answer, place)) return;
    const number = this.asked;
    this.isBusy = true;
    try {
      const more = await source.load(this.state, answer, place);
      if (number !== this.asked) return;
      if (this.unchanged === this.answer) this.unchanged = more;
      this.answer = more;
    } catch (error) {
      if (number === this.asked) this.problem = error instanceof Error ? error.message : String(error);
    } finally {
      if (number === this.asked) this.isBusy = false;
    }
  }
}
