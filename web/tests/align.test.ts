import { expect, test } from "vitest";
import { align, piecesOf } from "../src/state/align";

const words = (text: string) => text.split(" ");
/** The new words, each with the old one that it stands for; `=` for the same. */
const told = (before: string, after: string) => {
  const { partner, isSame } = align(words(before), words(after));
  return words(after).map((word, j) => `${word}${isSame[j] ? "=" : "<"}${words(before)[partner[j] ?? -1] ?? ""}`);
};

test("a word that was exchanged stands for the one before", () =>
  expect(told("La pizza est sortie du four et elle avait", "Le four est sorti du four et il avait")).toEqual([
    "Le<La",
    "four<pizza",
    "est=est",
    "sorti<sortie",
    "du=du",
    "four=four",
    "et=et",
    "il<elle",
    "avait=avait",
  ]));
test("a word that is gone has none, and a new one stands for none", () => {
  expect(told("et elle avait", "et avait")).toEqual(["et=et", "avait=avait"]);
  expect(told("et avait", "et il avait")).toEqual(["et=et", "il<", "avait=avait"]);
});
test("the same is the same all over", () => expect(told("a b a", "a b a")).toEqual(["a=a", "b=b", "a=a"]));
test("pieces make the text again, without what is not in it", () => {
  const pieces = piecesOf("L'été est là.", ["L'", "été", "est", "là", ".", "</s>"]);
  expect(pieces.map(({ before, word }) => before + word).join("")).toBe("L'été est là.");
  expect(pieces.map(({ place }) => place)).toEqual([0, 1, 2, 3, 4]);
});
