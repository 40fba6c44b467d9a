/* How the search of Sphinx orders what it finds: as it does by itself, but what describes the tools
   that made the book comes last. The numbers are those of Sphinx, which takes all of them or none. */

var Scorer = {
  score: ([page, , , , score]) => /(^|\/)api\/claimbook(\.|$)/.test(page) ? score - 1000 : score,
  objNameMatch: 11,
  objPartialMatch: 6,
  objPrio: {0: 15, 1: 5, 2: -5},
  objPrioDefault: 0,
  title: 15,
  partialTitle: 7,
  term: 5,
  partialTerm: 2,
};
