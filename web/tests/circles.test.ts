import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { describe, expect, it, onTestFinished } from "vitest";
import { findCircles, readImports } from "./circles";

function written(files: Record<string, string>): string {
  const folder = mkdtempSync(join(tmpdir(), "circles-"));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  mkdirSync(join(folder, "parts"));
  for (const [name, text] of Object.entries(files)) writeFileSync(join(folder, name), text);
  return folder;
}

describe("circles of imports", () => {
  it("are not in the page", () => {
    const imports = readImports(fileURLToPath(new URL("../src", import.meta.url)));
    expect(imports.get("Page.svelte")).toContain("state/app.svelte.ts");
    expect(findCircles(imports)).toEqual([]);
  });

  it("are found through types, components and other files", () => {
    const folder = written({
      "state.svelte.ts": 'import { one } from "./parts/one";\nexport class State {}',
      "parts/one.ts": 'export { default as one } from "./Part.svelte";',
      "parts/Part.svelte": '<script lang="ts">\n  import type { State } from "../state.svelte";\n</script>\n<p>import x from "./none"</p>',
      "parts/leaf.ts": 'import "../look.css";\nimport { State } from "../state.svelte";',
    });
    const [circle, ...others] = findCircles(readImports(folder));
    expect([...(circle ?? [])].sort()).toEqual(["parts/Part.svelte", "parts/one.ts", "state.svelte.ts"]);
    expect(others).toEqual([]);
  });

  it("are not overlooked where a name is not found", () => {
    const folder = written({ "one.ts": 'import type { Two } from "./two";' });
    expect(() => readImports(folder)).toThrow("one.ts imports ./two");
  });
});
