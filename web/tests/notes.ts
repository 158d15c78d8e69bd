/** Compare how the page prepares and judges lines with Python: `node notes.js FIXTURE…`. */

import { readFileSync } from "node:fs";
import { closeWords } from "../src/notes/close";
import { lengthBound, repeats } from "../src/notes/judging";
import type { CarriedModel } from "../src/model/config";
import { plainQuestion, PageModel } from "../src/trace/page_model";

interface Fixture {
  model: CarriedModel;
  /** What Python finds: the translation, flags, words outside the vocabulary, and points of characters. */
  lines: { line: string; text: string; flags: string[]; words: string; changed: string[]; unknown: string[] }[];
  sequences: { source: number[]; target: number[]; repeats: boolean; bound: number }[];
  vocabulary: string[];
  close: Record<string, string[]>;
}

async function compareNotes(path: string) {
  const { model, lines, sequences, vocabulary, close }: Fixture = JSON.parse(readFileSync(path, "utf-8"));
  const page = new PageModel(model);
  const wrong: string[] = [];
  const say = (what: string, line: unknown, ours: unknown, theirs: unknown) => {
    if (JSON.stringify(ours) !== JSON.stringify(theirs))
      wrong.push(`${what} of ${JSON.stringify(line)}: ${JSON.stringify(ours)}, not ${JSON.stringify(theirs)}`);
  };
  const points = (names: string[]) => names.map((name) => /U\+[0-9A-F]+/.exec(name)![0]).sort();
  for (const { line, text, flags, words, changed, unknown } of lines) {
    const { trace, notes } = await page.ask(plainQuestion(line));
    say("text", line, trace.records.text, text);
    say("flags", line, notes.flags, flags);
    say("words", line, notes.words, words);
    say("changed", line, points(notes.changed), points(changed));
    say("unknown", line, points(notes.unknown), points(unknown));
  }
  for (const { source, target, repeats: theirs, bound } of sequences) {
    say("repeats", [source, target], repeats(source, target), theirs);
    say("bound", target.length, lengthBound(target.length), bound);
  }
  for (const [word, theirs] of Object.entries(close)) say("close", word, closeWords(word, vocabulary), theirs);
  return { differences: {}, wrong };
}

for (const path of process.argv.slice(2)) console.log(JSON.stringify(await compareNotes(path)));
