"""Looking inside a model: replay one translation, record it, measure it, change it, show it.

Reading order: `ask` (which arrays to keep), `pair` (a source and a target with a model), `replay`
(the run that keeps them), `record/` (the trace and its files), `traces` (a trace that saves and
shows itself), `line_traces` (from a line of text to traces).

The folders build on these: `heads/` (a table of all heads, and their differences), `changes/`
(what if), `align/` (word links), `measures/` (beyond weights), `corpus/` (many lines at once),
`show/` (terminal, page, figures). `drawings/` needs only a configuration. `verify` and `vocabulary`
each answer one question.
"""

from pellucid.inside.ask import Ask
from pellucid.inside.line_traces import Replaying
from pellucid.inside.measures.patching import patch
from pellucid.inside.pair import Pair, Replace, make_pair
from pellucid.inside.replay import replay
from pellucid.inside.study.head_study import Study, study
from pellucid.inside.study.patched import PatchedCorpus, patch_corpus
from pellucid.inside.traces import Trace, load_trace

__all__ = [
    "Ask",
    "Pair",
    "PatchedCorpus",
    "Replace",
    "Replaying",
    "Study",
    "Trace",
    "load_trace",
    "make_pair",
    "patch",
    "patch_corpus",
    "replay",
    "study",
]
