/** Commands and Python that show what a view shows, for the model and the line of the page. */

import { edgesTo, writeChange, type Change } from "../model/changes";
import { languagesOf, type Answer, type Source } from "../trace/source";
import { itemAt } from "../model/items";
import { quoted } from "./format";
import type { State } from "./link";

/** The model as a command names it: `MODEL` if the page does not know that. */
export const modelOf = (source: Source) => source.command || "MODEL";

/** The languages to say of a model that has several: by the names of options or of arguments. */
function spoken(source: Source, state: State, names: string[]): [string, string][] {
  const codes = Object.values(languagesOf(source, state));
  return names.flatMap((name, i) => (source.choices && (i || source.choices.has_source) ? [[name, itemAt(codes, i)]] : []));
}
const languageOptions = (source: Source, state: State) =>
  spoken(source, state, ["--from", "--to"]).map(([name, code]) => `${name} ${quoted(code)}`);

/** What to say to get the same translation: an option, or null for the one that comes by itself. */
function option(source: Source, { decoding, prefix }: State, answer: Answer): ["target", string] | ["beam", number] | null {
  if (!source.isLive || prefix.length || decoding.method === "sample") return ["target", answer.trace.records.text];
  const beam = decoding.method === "beam" ? decoding.beam : 1;
  return source.model?.carried.decoding.beam === beam ? null : ["beam", beam];
}

/** Options that make changes, for a command; empty if one of them is of the page alone. */
export function changeOptions(changes: Change[]): string {
  if (!changes.every((one) => "place" in one || one.verb === "word")) return "";
  return changes
    .flatMap((one) => (one.verb === "word" ? edgesTo(one.position) : [writeChange(one)]))
    .map((one) => `--change ${quoted(one)}`)
    .join(" ");
}

export function lookCommand(source: Source, state: State, answer: Answer, options = ""): string {
  const same = option(source, state, answer);
  const [model, text] = [quoted(modelOf(source)), quoted(answer.text)];
  const name = same?.[0] === "target" ? "translation" : same?.[0];
  const all = [...languageOptions(source, state), options, same && `--${name}=${quoted(String(same[1]))}`].filter(Boolean).join(" ");
  const parts = answer.text.startsWith("-") ? [model, all, "--", text] : [model, text, all];
  return ["pellucid look", ...parts].filter(Boolean).join(" ");
}

/** Python up to the trace, with all its arrays. */
export function lookPython(source: Source, state: State, answer: Answer): string {
  const same = option(source, state, answer);
  const [model, text] = [modelOf(source), answer.text].map((one) => JSON.stringify(one));
  const named = [...spoken(source, state, ["source_language", "to"]), ...(same ? [same] : [])];
  const all = named.map(([name, value]) => `, ${name}=${JSON.stringify(value)}`).join("");
  return `import pellucid\ntrace = pellucid.load(${model}).look(${text}${all}, everything=True)`;
}

export function translateCommand(source: Source, state: State, answer: Answer): string {
  const { method, beam, temperature, topK, topP, seed } = state.decoding;
  const search = {
    greedy: "--beam 1",
    beam: `--beam ${beam}`,
    sample: ["--sample", ...Object.entries({ temperature, top_k: topK, top_p: topP, seed })]
      .map((one) => (Array.isArray(one) ? `--set decoding.${one.join("=")}` : one))
      .join(" "),
  };
  return `printf '%s\\n' ${quoted(answer.text)} | pellucid translate ${[quoted(modelOf(source)), ...languageOptions(source, state), search[method]].join(" ")}`;
}
