"""Documents as copied strings and units of text: strings in, strings out, no model."""

from __future__ import annotations
