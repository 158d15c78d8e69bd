import { expect, test } from "vitest";
import { align } from "../src/state/align";
import { isTurned, placesOf } from "../src/state/rivals";

/** Where the words of the first text stand in the second. */
const told = (before: string, after: string) => {
  const [old, fresh] = [before.split(" "), after.split(" ")];
  const rivals = old.map((word) => ({ elle: "il", "qu'elle": "il", sortie: "sorti" })[word] ?? "");
  return placesOf(align(old, fresh), old, fresh, rivals).map((place, row) => `${old[row]} ${fresh[place]}`);
};

test("a pronoun is found when it is joined to another word, or no longer", () => {
  expect(told("parce qu'elle avait", "parce que il avait")).toContain("qu'elle il");
  expect(told("four et elle avait", "four qu'elle avait")).toContain("elle qu'elle");
  expect(told("pizza parce qu'elle avait", "pizza qu'il avait")).toContain("qu'elle qu'il");
});
test("a word that is gone has the place where it would stand", () =>
  expect(told("et elle avait bon", "et avait bon")).toEqual(["et et", "elle avait", "avait avait", "bon bon"]));
test("a form is found where it or its rival now stands", () =>
  expect(told("la pizza est sortie", "il le four sorti est")).toContain("sortie sorti"));
test("a word turns into its rival only", () => {
  expect([isTurned("il", "qu'il"), isTurned("elle", "Elle"), isTurned("froid", "froid")]).toEqual([true, true, true]);
  expect([isTurned("il", "elle"), isTurned("il", "que"), isTurned("", "")]).toEqual([false, false, false]);
});
