"""Many files on many machines: a folder's manifest is the truth, and any worker may join."""

from __future__ import annotations

from pellucid.wording.other_names import explain_call as _explain_call

_explain_call(__name__)
