"""Translation of HTML: whole sentences across inline tags, which return by word links."""

from __future__ import annotations
