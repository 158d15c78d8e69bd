/** The filter of seen sentences, with hashes of Python's hashlib.blake2b(text, digest_size=16). */

import { expect, test } from "vitest";
import { hash, isSeen } from "../src/notes/seen";

const hex = (text: string) =>
  hash(text)
    .map((half) => half.toString(16).padStart(16, "0"))
    .join(" ");

test("hashes are those of Python", () => {
  expect(hex("")).toBe("40bdefd94169e6ca 7076a68e75884d4e");
  expect(hex("the pizza is good")).toBe("5c0b7fa0f68044dc d2e500c2611efa2a");
  expect(hex("élève ".repeat(40))).toBe("06d837a748703082 42d793b6c3d438a4");
});

test("a sentence is found with other capitals and marks, and another is not", () => {
  const bits = Uint8Array.from([
    81, 53, 28, 192, 175, 148, 21, 247, 206, 43, 255, 0, 161, 82, 57, 242, 188, 129, 114, 5, 60, 75, 246, 38, 141, 237, 1, 164, 226, 23,
    235,
  ]);
  expect(isSeen("The pizza, is good!", bits)).toBe(true);
  expect(isSeen("The pizza is bad.", bits)).toBe(false);
});
