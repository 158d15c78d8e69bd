import { readdirSync, readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { describe, expect, it } from "vitest";

/** What looks for elements in the whole page, or presses one: a component asks another by a function instead. */
const findReaches = (code: string) => code.match(/document\.querySelector(All)?\b|\.click\(\)|\.requestSubmit\(/g) ?? [];

/** The one that is pressed here is its own: a link that saves a file. */
const ALLOWED = new Map([["state/format.ts", 1]]);

describe("a component", () => {
  it("never looks for the buttons of another", () => {
    const folder = fileURLToPath(new URL("../src/", import.meta.url));
    const files = readdirSync(folder, { recursive: true, encoding: "utf-8" }).filter((file) => /\.(ts|svelte)$/.test(file));
    expect(files).toContain("Page.svelte");
    const reaching = files.filter((file) => findReaches(readFileSync(folder + file, "utf-8")).length !== (ALLOWED.get(file) ?? 0));
    expect(reaching).toEqual([]);
  });

  it("is found if it does", () => {
    expect(findReaches("document.querySelector<HTMLElement>(\"[aria-label='Next step']\")?.click()")).toHaveLength(2);
    expect(findReaches("grid.querySelector('[tabindex]')?.focus(); button.onclick = () => step(1)")).toEqual([]);
  });
});
