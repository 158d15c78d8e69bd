import { createHash } from "node:crypto";
import { readdirSync, readFileSync } from "node:fs";
import { svelte } from "@sveltejs/vite-plugin-svelte";
import { defineConfig, type Plugin } from "vite";

const hash = (text: string) => `'sha256-${createHash("sha256").update(text).digest("base64")}'`;

/** The terms of the glossary that have a place on the page, each by its names in small letters. */
function readTerms(): Record<string, { means: string; link: string }> {
  const glossary = readFileSync(new URL("../docs/reference/glossary.md", import.meta.url), "utf-8");
  const rows = glossary.matchAll(/^\| ([^|]+) \| ([^|]+) \| `(view=[^`]+)` \|$/gm);
  const plain = (text: string) => text.replace(/[`*]/g, "");
  return Object.fromEntries(
    [...rows].flatMap(([, names, means, link]) =>
      plain(names)
        .toLowerCase()
        .split(", ")
        .map((name) => [name, { means: plain(means), link }]),
    ),
  );
}

/** The components, whose numbers are shorter class names than hashes, and compress better. */
const COMPONENTS = readdirSync(new URL("src", import.meta.url), { recursive: true, encoding: "utf-8" })
  .filter((name) => name.endsWith(".svelte"))
  .sort();
const cssHash = ({ filename }: { filename: string }) => `s${COMPONENTS.findIndex((one) => filename.endsWith(`src/${one}`)).toString(36)}`;

/** Put script and style into the page, and a policy that allows these two and nothing else. */
function oneFile(): Plugin {
  return {
    name: "one-file",
    enforce: "post",
    generateBundle(_, bundle) {
      const files = Object.values(bundle);
      const script = files.find((file) => file.type === "chunk");
      const style = files.find((file) => file.fileName.endsWith(".css"));
      const page = bundle["index.html"];
      if (script?.type !== "chunk" || style?.type !== "asset" || page?.type !== "asset")
        throw new Error("The page must have one script, one style and one page.");
      // Links to the framework's help are of no use without a network.
      const code = script.code.replaceAll("https://svelte.dev/e/", "svelte: ").replaceAll("</script", "<\\/script").trim();
      const css = String(style.source).trim();
      const policy = [
        "default-src 'none'",
        `script-src ${hash(code)}`,
        `style-src ${hash(css)}`,
        "img-src data: blob:",
        "base-uri 'none'",
        "form-action 'none'",
      ].join("; ");
      const html = String(page.source)
        .replace(/<script[^>]*><\/script>\s*/g, "")
        .replace(/<link rel="stylesheet"[^>]*>\s*/g, "")
        .replace("<!--policy-->", () => `<meta http-equiv="Content-Security-Policy" content="${policy}">`)
        .replace("<!--style-->", () => `<style>${css}</style>`)
        .replace("<!--script-->", () => `<script>${code}</script>`);
      for (const name of Object.keys(bundle)) delete bundle[name];
      this.emitFile({ type: "asset", fileName: "page.html", source: html });
    },
  };
}

export default defineConfig({
  define: { TERMS: JSON.stringify(readTerms()) },
  plugins: [svelte({ compilerOptions: { modernAst: true, css: "external", cssHash } }), oneFile()],
  build: {
    outDir: process.env.PELLUCID_PAGE_OUT ?? "../src/pellucid/page",
    emptyOutDir: false,
    modulePreload: false,
    cssCodeSplit: false,
    minify: "terser",
    terserOptions: { ecma: 2020, module: true, compress: { passes: 3, unsafe_arrows: true, hoist_funs: true } },
    assetsInlineLimit: 0,
    target: "es2022",
    reportCompressedSize: false,
    rollupOptions: { output: { format: "iife", inlineDynamicImports: true } },
  },
  test: { include: ["tests/**/*.test.ts"] },
} as import("vite").UserConfig);
