"""The data check: what is odd about parallel text, before a model learns it."""

from __future__ import annotations

from pellucid.wording.other_names import explain_call as _explain_call

_explain_call(__name__)
