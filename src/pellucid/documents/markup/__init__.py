"""HTML as segments, and the tags of any segment put into its translation by word links."""

from __future__ import annotations
