// Put pages that tell how to do something before those that tell how it came about.
const FIRST = ["docs/start", "docs/install", "docs/guides/", "docs/reference/", "README"];
const LAST = ["CHANGELOG", "docs/decisions/", "docs/experiments", "docs/progress", "benchmarks/"];
const isOf = (page, places) => places.some((place) => page.startsWith(place));

var Scorer = {
  score: ([page, , , , score]) => score + (isOf(page, FIRST) ? 4 : isOf(page, LAST) ? -8 : 0),
  objNameMatch: 11,
  objPartialMatch: 6,
  objPrio: { 0: 15, 1: 5, 2: -5 },
  objPrioDefault: 0,
  title: 15,
  partialTitle: 7,
  term: 5,
  partialTerm: 2,
};
