import { expect, test } from "vitest";
import { liveOf, settle } from "../src/lessons/live";
import { parseHead, type Trace } from "../src/trace/trace";
import { readLink, START, writeLink, type State } from "../src/state/link";

const STATE: State = {
  view: "change",
  show: "words",
  isOpen: true,
  isPresented: true,
  text: "The <b>pizza</b> & 50 % #1 «été»",
  from: "eng_Latn",
  to: "zho_Hant",
  source: 1,
  head: { part: "decoder", layer: 1, kind: "cross", head: 2 },
  stage: "scaled",
  step: 4,
  word: 3,
  row: null,
  column: 5,
  decoding: { method: "sample", beam: 4, temperature: 0.7, topK: 9, topP: 0.9, seed: 8 },
  prefix: [7, 11],
  changes: [{ verb: "no-mask" }, { verb: "cut", place: { part: "encoder", layer: 0, kind: "self", head: 1, isEdge: false } }],
  lesson: "notes",
  screen: 3,
  duel: "elle,1,told",
};

test("a state is read as it was written", () => expect(readLink(writeLink(STATE))).toEqual(STATE));
test("the start needs no names but the view", () => expect(writeLink(START)).toBe("#view=why"));
test("a row of a head of the encoder does not stand for a French word", () => {
  const state: State = { ...STATE, head: { part: "encoder", layer: 0, kind: "self", head: 1 }, word: 7, row: 2 };
  expect(readLink(writeLink(state))).toEqual(state);
  expect(readLink("#view=look&head=encoder.0.self.1&cell=2,5")).toMatchObject({ word: null, row: 2, column: 5 });
});
test.each([
  ["translate", "change", "decoding", false],
  ["links", "look", "lines", false],
  ["head", "look", "map", false],
  ["arithmetic", "look", "map", true],
  ["heads", "look", "", false],
  ["what-if", "change", "", false],
  ["beyond", "why", "measures", false],
  ["lessons", "learn", "", false],
])("the former view %s is now in %s", (name, view, show, isOpen) =>
  expect(readLink(`#view=${name}`)).toEqual({ ...START, view, show, isOpen }),
);
test("what makes no sense is left at its start", () =>
  expect(readLink("#view=x&head=y&cell=-1,q&beam=999&temperature=zero&prefix=1,a&change=boom&screen=1.5&top-p=7")).toEqual(START));

test("a statement opens the view, head and stage that it names", () => {
  const sentence = "The pizza is good";
  expect(liveOf({ live: "head decoder.self masked", sentence })).toMatchObject({
    view: "look",
    part: "decoder",
    kind: "self",
    head: null,
    row: "",
    column: "",
    scene: { show: "map", isOpen: false, stage: "masked", text: sentence, changes: [] },
  });
  expect(liveOf({ live: "head encoder.0.self.2 scores", sentence })?.head).toEqual({ part: "encoder", layer: 0, kind: "self", head: 2 });
  expect(liveOf({ live: "beyond", sentence })).toMatchObject({
    view: "why",
    part: "decoder",
    kind: "cross",
    scene: { show: "measures", stage: "weights" },
  });
});
test("a statement names row, column, step and part of a view", () => {
  const read = (live: string) => liveOf({ live, sentence: "a" });
  expect(read("arithmetic encoder.0.self.3:it>pizza 6")).toMatchObject({ row: "it", column: "pizza", scene: { isOpen: true, step: 6 } });
  expect(read("head decoder.0.self.2:</s>")).toMatchObject({ row: "</s>", column: "" });
  expect(read("what-if decoder.0.self.2:elle formula")).toMatchObject({ view: "change", row: "elle", scene: { show: "formula" } });
  const head = parseHead("encoder.0.self.3")!;
  const records = { sourceTokens: ["the", "pizza", "it"], predictedTokens: ["elle"] };
  const trace = { records, columns: () => records.sourceTokens } as unknown as Trace;
  expect(settle(read("head encoder.0.self.3:it>pizza")!, head, trace)).toEqual({ head, row: 2, column: 1 });
  expect(settle(read("head encoder.0.self.3:gone>pizza")!, head, trace)).toEqual({ head, row: null, column: 1 });
});
test.each(["", "lessons", "learn", "nowhere encoder.self"])("%j shows nothing", (live) =>
  expect(liveOf({ live, sentence: "a" })).toBeNull(),
);
