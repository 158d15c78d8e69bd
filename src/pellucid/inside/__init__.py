"""Look inside a model: record one translation, measure it, change it, show it.

All that is promised is here, flat; the modules below are ours to change. Names are loaded when
they are first used. `Translator.look` gives a `Trace`, `Translator.pair` a `Pair`.

Reading order of the modules: `ask` (which arrays to keep), `pair` (a source and a target with a
model), `replayed_pair` (the run that keeps them), `record/` (the trace and its files), `traces` (a
trace that saves and shows itself), `line_traces` (from a line of text to traces). The folders build
on these: `heads/` (a table of all heads, and their differences), `changes/` (what if), `align/`
(word links), `measures/` (beyond weights), `parts/` (what heads and layers do), `patches/` (vectors
of one run in another), `studies/` (many lines at once), `show/` (terminal, page, figures).
`drawings/` needs only a configuration. `verify` and `vocabulary` answer one question each.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pellucid.attention.probe import Probe
    from pellucid.inside.ask import Ask
    from pellucid.inside.changes.change import (
        AverageHead,
        Change,
        CutEdge,
        CutHead,
        ForceWeight,
        ReplaceWeights,
        parse_change,
    )
    from pellucid.inside.changes.what_if import WhatIf, what_if
    from pellucid.inside.drawings.architecture import draw_architecture
    from pellucid.inside.heads.compare import MapDifference, compare_heads
    from pellucid.inside.heads.head_rows import HeadRow, head_rows, sort_rows
    from pellucid.inside.line_traces import Replaying
    from pellucid.inside.measures.agreement import agreement
    from pellucid.inside.measures.contrast import Contrast, find_contrast
    from pellucid.inside.measures.contributions import Contributions, contributions
    from pellucid.inside.measures.faithfulness import faithfulness, find_raises
    from pellucid.inside.measures.lens import decoder_lens, logit_lens
    from pellucid.inside.measures.maps import Map
    from pellucid.inside.measures.registry import (
        MEASURES,
        PART_MEASURES,
        Measure,
        measure,
    )
    from pellucid.inside.pair import Replace
    from pellucid.inside.patches.causal_tracing import PATCHINGS, causal_trace
    from pellucid.inside.patches.patching import patch
    from pellucid.inside.record.vector_files import Vectors, load_vectors
    from pellucid.inside.replayed_pair import replay
    from pellucid.inside.sentence_pair import Pair
    from pellucid.inside.studies.corpus_vectors import vectors
    from pellucid.inside.studies.head_study import Study, study
    from pellucid.inside.studies.patched import PatchedCorpus, patch_corpus
    from pellucid.inside.studies.training_history import HeadHistory, follow_heads
    from pellucid.inside.traces import Trace, load_trace

__all__ = [
    "MEASURES",
    "PART_MEASURES",
    "PATCHINGS",
    "Ask",
    "AverageHead",
    "Change",
    "Contrast",
    "Contributions",
    "CutEdge",
    "CutHead",
    "ForceWeight",
    "HeadHistory",
    "HeadRow",
    "Map",
    "MapDifference",
    "Measure",
    "Pair",
    "PatchedCorpus",
    "Probe",
    "Replace",
    "ReplaceWeights",
    "Replaying",
    "Study",
    "Trace",
    "Vectors",
    "WhatIf",
    "agreement",
    "causal_trace",
    "compare_heads",
    "contributions",
    "decoder_lens",
    "draw_architecture",
    "faithfulness",
    "find_contrast",
    "find_raises",
    "follow_heads",
    "head_rows",
    "load_trace",
    "load_vectors",
    "logit_lens",
    "measure",
    "parse_change",
    "patch",
    "patch_corpus",
    "replay",
    "sort_rows",
    "study",
    "vectors",
    "what_if",
]

_HOMES = {
    "Ask": "pellucid.inside.ask",
    "AverageHead": "pellucid.inside.changes.change",
    "Change": "pellucid.inside.changes.change",
    "Contrast": "pellucid.inside.measures.contrast",
    "Contributions": "pellucid.inside.measures.contributions",
    "CutEdge": "pellucid.inside.changes.change",
    "CutHead": "pellucid.inside.changes.change",
    "ForceWeight": "pellucid.inside.changes.change",
    "HeadHistory": "pellucid.inside.studies.training_history",
    "HeadRow": "pellucid.inside.heads.head_rows",
    "MEASURES": "pellucid.inside.measures.registry",
    "Map": "pellucid.inside.measures.maps",
    "MapDifference": "pellucid.inside.heads.compare",
    "Measure": "pellucid.inside.measures.registry",
    "PATCHINGS": "pellucid.inside.patches.causal_tracing",
    "PART_MEASURES": "pellucid.inside.measures.registry",
    "Pair": "pellucid.inside.sentence_pair",
    "PatchedCorpus": "pellucid.inside.studies.patched",
    "Probe": "pellucid.attention.probe",
    "Replace": "pellucid.inside.pair",
    "ReplaceWeights": "pellucid.inside.changes.change",
    "Replaying": "pellucid.inside.line_traces",
    "Study": "pellucid.inside.studies.head_study",
    "Trace": "pellucid.inside.traces",
    "Vectors": "pellucid.inside.record.vector_files",
    "WhatIf": "pellucid.inside.changes.what_if",
    "agreement": "pellucid.inside.measures.agreement",
    "causal_trace": "pellucid.inside.patches.causal_tracing",
    "compare_heads": "pellucid.inside.heads.compare",
    "contributions": "pellucid.inside.measures.contributions",
    "decoder_lens": "pellucid.inside.measures.lens",
    "draw_architecture": "pellucid.inside.drawings.architecture",
    "faithfulness": "pellucid.inside.measures.faithfulness",
    "find_contrast": "pellucid.inside.measures.contrast",
    "find_raises": "pellucid.inside.measures.faithfulness",
    "follow_heads": "pellucid.inside.studies.training_history",
    "head_rows": "pellucid.inside.heads.head_rows",
    "load_trace": "pellucid.inside.traces",
    "load_vectors": "pellucid.inside.record.vector_files",
    "logit_lens": "pellucid.inside.measures.lens",
    "measure": "pellucid.inside.measures.registry",
    "parse_change": "pellucid.inside.changes.change",
    "patch": "pellucid.inside.patches.patching",
    "patch_corpus": "pellucid.inside.studies.patched",
    "replay": "pellucid.inside.replayed_pair",
    "sort_rows": "pellucid.inside.heads.head_rows",
    "study": "pellucid.inside.studies.head_study",
    "vectors": "pellucid.inside.studies.corpus_vectors",
    "what_if": "pellucid.inside.changes.what_if",
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}", name=name)
    found = getattr(import_module(_HOMES[name]), name)
    # From now on the name is found without asking.
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    return sorted(__all__)
