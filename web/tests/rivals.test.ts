import { expect, test } from "vitest";
import { align } from "../src/state/align";
import { isTurned, placesOf, sideOf } from "../src/state/rivals";

/** Where the words of the first text stand in the second. */
const told = (before: string, after: string) => {
  const [old, fresh] = [before.split(" "), after.split(" ")];
  return placesOf(align(old, fresh), old, fresh).map((place, row) => `${old[row]} ${fresh[place]}`);
};

test("a pronoun is found when it is joined to another word, or no longer", () => {
  expect(told("parce qu'elle avait", "parce que il avait")).toContain("qu'elle il");
  expect(told("four et elle avait", "four qu'elle avait")).toContain("elle qu'elle");
  expect(told("pizza parce qu'elle avait", "pizza qu'il avait")).toContain("qu'elle qu'il");
});
test("a word that is gone has the place where it would stand", () =>
  expect(told("et elle avait bon", "et avait bon")).toEqual(["et et", "elle avait", "avait avait", "bon bon"]));
test("a pronoun turns into the other one of its pair only", () => {
  expect([isTurned("qu'elle", "il"), isTurned("Il", "Elle"), isTurned("sie", "er")]).toEqual([true, true, true]);
  expect([isTurned("qu'elle", "elle"), isTurned("elle", "que"), isTurned("four", "il")]).toEqual([false, false, false]);
  expect([sideOf("elles"), sideOf("ils"), sideOf("es"), sideOf("pizza")]).toEqual([1, 0, -1, -1]);
});
