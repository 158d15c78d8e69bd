/** What is unusual about a line and its translation, in the words of the command. */

export type Flag = "repeats" | "long" | "unfinished" | "stuck" | "empty" | "invented" | "unsure" | "reordered" | "partial";

export interface Notes {
  /** The words outside a vocabulary of whole words and what is close to each, in one phrase. */
  words: string;
  /** Those words, if the page can say what is close. */
  missing: string[];
  /** Names of characters that training never had and that were replaced or left out. */
  changed: string[];
  /** Names of those that remain. */
  unknown: string[];
  /** Whether the line was in the text of training, as far as is known. */
  isSeen?: boolean;
  /** Whether the line is far longer than the lines of training. */
  isLong: boolean;
  flags: Flag[];
}

export const NO_NOTES: Notes = { words: "", missing: [], changed: [], unknown: [], isLong: false, flags: [] };

const FLAGS: Record<Flag, string> = {
  repeats: "it repeats itself",
  long: "it is far longer than any translation that the model learned from",
  unfinished: "it is without an end",
  stuck: "it attends to one word all the time",
  empty: "it is empty",
  invented: "it has words for a line without letters",
  unsure: "the model is not confident",
  reordered: "it has placeholders such as %s in another order, in which programs fill them in",
  partial: "it may leave something out, as some words of the sentence have no counterpart in it",
};
const MOST_CHARACTERS = 5;

function list(names: string[]): string {
  const more = names.length - MOST_CHARACTERS;
  return names.slice(0, MOST_CHARACTERS).join(", ") + (more > 0 ? ` and ${more} more` : "");
}

/** Say each in a sentence; without the words, if the page offers others for them. */
export function sayNotes({ words, changed, unknown, isLong, flags }: Notes, hasOffers: boolean): string[] {
  const said: string[] = [];
  if (words && !hasOffers) said.push(`The model reads <unk>, its sign for an unknown word, in place of: ${words}.`);
  if (changed.length)
    said.push(
      `The model has not learned these spaces, marks or invisible characters: ${list(changed)}. They were replaced by known ones or left out.`,
    );
  if (unknown.length) said.push(`The model has never seen these characters: ${list(unknown)}. Check how they are translated.`);
  if (isLong) said.push("This line is far longer than the lines that the model learned from. Read the end of its translation.");
  if (flags.length) said.push(`This translation looks wrong: ${flags.map((flag) => FLAGS[flag]).join("; ")}.`);
  return said;
}
