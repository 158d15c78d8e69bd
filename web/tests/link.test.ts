import { expect, test } from "vitest";
import { liveOf, shellWords } from "../src/lessons/live";
import { readLink, START, writeLink, type State } from "../src/state/link";

const STATE: State = {
  view: "what-if",
  text: "The <b>pizza</b> & 50 % #1 «été»",
  source: 1,
  head: { part: "decoder", layer: 1, kind: "cross", head: 2 },
  stage: "scaled",
  row: 3,
  column: 5,
  decoding: { method: "sample", beam: 4, temperature: 0.7, topK: 9, topP: 0.9, seed: 8 },
  prefix: [7, 11],
  changes: [{ verb: "no-mask" }, { verb: "cut", place: { part: "encoder", layer: 0, kind: "self", head: 1, isEdge: false } }],
  lesson: "notes",
  screen: 3,
};

test("a state is read as it was written", () => expect(readLink(writeLink(STATE))).toEqual(STATE));
test("the start needs no names but the view", () => expect(writeLink(START)).toBe("#view=translate"));
test("what makes no sense is left at its start", () =>
  expect(readLink("#view=x&head=y&cell=-1,q&beam=999&temperature=zero&prefix=1,a&change=boom&screen=1.5&top-p=7")).toEqual(START));

const statement = { place: "", says: "", expect: "", shows: [], number: "", errs: "", vary: "", command: "" };
test("a command of a lesson opens its own sentence and head", () => {
  const command = 'pellucid look demo "The pizza is good" --part encoder --row 2';
  expect(shellWords(command)).toEqual(["pellucid", "look", "demo", "The pizza is good", "--part", "encoder", "--row", "2"]);
  expect(liveOf({ ...statement, command })).toMatchObject({ view: "arithmetic", text: "The pizza is good", part: "encoder", kind: "self" });
  expect(liveOf({ ...statement, command: "pellucid look demo X --change 'cut decoder.1.cross.0'" }).changes).toHaveLength(1);
});
test("other claims open what they are about", () => {
  expect(liveOf({ ...statement, says: "Scores are divided by √d_k." })).toMatchObject({ view: "head", stage: "scaled" });
  expect(liveOf({ ...statement, says: "A token can only attend to tokens before it." })).toMatchObject({ part: "decoder", stage: "masked" });
});
