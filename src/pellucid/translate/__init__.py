"""A translator: lines made ready for a search before it, and judged after it."""

from __future__ import annotations

from pellucid.wording.other_names import explain_call as _explain_call

_explain_call(__name__)
