/** Circles among files that import each other, imports of types included. */

import { readdirSync, readFileSync } from "node:fs";
import { dirname, join, relative } from "node:path";
import ts from "typescript";

/** Endings of files that import nothing. */
const LEAVES = /\.(css|json)$/;

/** Read what each file in a folder imports from it, by their paths in the folder. */
export function readImports(folder: string): Map<string, string[]> {
  const files = readdirSync(folder, { recursive: true, encoding: "utf-8" }).filter((file) => /\.(ts|svelte)$/.test(file));
  const known = new Set(files);
  const target = (file: string, name: string) => {
    const path = join(dirname(file), name);
    const found = [path, `${path}.ts`].find((one) => known.has(one));
    // A name that is overlooked here could hide a circle.
    if (!found) throw new Error(`${file} imports ${name}, which is not a file in ${relative(".", folder)}.`);
    return found;
  };
  return new Map(
    files.map((file) => {
      const text = readFileSync(join(folder, file), "utf-8");
      const code = file.endsWith(".svelte") ? [...text.matchAll(/<script[^>]*>(.*?)<\/script>/gs)].map(([, one]) => one).join("\n") : text;
      const names = ts.preProcessFile(code).importedFiles.map(({ fileName }) => fileName);
      return [file, names.filter((name) => name.startsWith(".") && !LEAVES.test(name)).map((name) => target(file, name))];
    }),
  );
}

/** Find circles, each as its files in the order of the imports; none only if there is none. */
export function findCircles(imports: Map<string, string[]>): string[][] {
  const circles: string[][] = [];
  const done = new Set<string>();
  const path: string[] = [];
  const visit = (file: string) => {
    if (path.includes(file)) circles.push(path.slice(path.indexOf(file)));
    if (path.includes(file) || done.has(file)) return;
    path.push(file);
    for (const one of imports.get(file) ?? []) visit(one);
    path.pop();
    done.add(file);
  };
  for (const file of imports.keys()) visit(file);
  return circles;
}
