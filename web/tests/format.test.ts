import { describe, expect, it } from "vitest";
import { csv, quoted, times } from "../src/state/format";

describe("times", () => {
  it("has two digits, and is in words or a power of ten if it is large", () => {
    expect([2.13, 347, 9874, 28_312].map(times)).toEqual(["2.1", "350", "9,900", "28,000"]);
    expect(times(268_000_000)).toBe("270 million");
    expect(times(2_680_000_000)).toBe("2.7 × 10⁹");
    expect(times(1.04e13)).toBe("1.0 × 10¹³");
    expect(times(Infinity)).toBe("more than 10³⁰⁸");
  });
});

describe("quoted", () => {
  it("leaves a plain name alone, and keeps a shell from reading anything else", () => {
    expect(quoted("models/en-fr_2.1")).toBe("models/en-fr_2.1");
    expect(quoted("")).toBe("''");
    expect(quoted("it's $HOME")).toBe("'it'\\''s $HOME'");
  });
});

describe("csv", () => {
  it("quotes texts, whatever is in them, and no numbers", () => {
    const rows = [
      ["row", "token"],
      [0, 'a "word", two'],
      [1, -0.5],
    ];
    expect(csv(rows)).toBe('"row","token"\n0,"a ""word"", two"\n1,-0.5');
  });
});
