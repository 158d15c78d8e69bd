/** The live picture of a statement: a view of the page, with what to look at. */

import { parseChange, type Change } from "../model/changes";
import type { Statement } from "../state/data";
import type { View } from "../state/link";
import type { Stage } from "../trace/trace";

export interface Live {
  view: View;
  text: string;
  part: "encoder" | "decoder";
  kind: "self" | "cross";
  stage: Stage;
  changes: Change[];
}

const SENTENCE = "The pizza came out of the oven and it tasted good.";

/** Cut a command into words, as a shell does with double quotes. */
export function shellWords(command: string): string[] {
  return [...command.matchAll(/"([^"]*)"|'([^']*)'|(\S+)/g)].map((found) => found[1] ?? found[2] ?? found[3]);
}

interface Rule {
  about: RegExp;
  view: View;
  part?: "encoder" | "decoder";
  kind?: "self" | "cross";
  stage?: Stage;
}

// The first rule that fits says what to show of the page's own model.
const RULES: Rule[] = [
  { about: /√d|scal|divid/i, view: "head", part: "encoder", kind: "self", stage: "scaled" },
  { about: /mask|cheat|precede|later token|future|before it/i, view: "head", part: "decoder", kind: "self", stage: "masked" },
  { about: /cross|encoder['’]s output|source word|alignment/i, view: "links", part: "decoder", kind: "cross" },
  { about: /multi-head|heads\b|several attentions/i, view: "heads" },
  { about: /residual|norm|feed|ReLU|logit|W_?O|context vector|weighted sum/i, view: "arithmetic", part: "encoder", kind: "self" },
  { about: /softmax|sum to 1|weights/i, view: "head", part: "encoder", kind: "self", stage: "weights" },
  { about: /quer|key|dot product|similar|score|product/i, view: "arithmetic", part: "encoder", kind: "self" },
  { about: /beam|greedy|highest|next token|word by word|teacher|output/i, view: "translate" },
];

const ELSE: Rule = { about: /./, view: "links", part: "encoder", kind: "self" };

export function liveOf(statement: Statement): Live {
  const words = shellWords(statement.command);
  const option = (name: string) => (words.includes(name) ? words[words.indexOf(name) + 1] : undefined);
  const isLook = words[1] === "look" && words[2] === "demo" && words[3] && !words[3].startsWith("-");
  const told = `${statement.says} ${statement.place} ${statement.expect}`;
  const rule = RULES.find((one) => one.about.test(told)) ?? ELSE;
  const live: Live = {
    view: rule.view,
    text: isLook ? words[3] : SENTENCE,
    part: rule.part ?? "decoder",
    kind: rule.kind ?? "cross",
    stage: rule.stage ?? "weights",
    changes: [],
  };
  if (!isLook) return live;
  if (option("--part")) live.part = option("--part") === "encoder" ? "encoder" : "decoder";
  if (option("--kind")) live.kind = option("--kind") === "self" ? "self" : "cross";
  if (live.part === "encoder") live.kind = "self";
  if (words.includes("--links")) [live.view, live.part, live.kind] = ["links", "decoder", "cross"];
  else if (words.includes("--heads")) live.view = "heads";
  else if (words.includes("--row")) live.view = "arithmetic";
  else if (words.includes("--change")) {
    live.view = "what-if";
    const change = parseChange(option("--change") ?? "");
    live.changes = change ? [change] : [];
  } else if (live.view === "translate") live.view = "head";
  return live;
}
