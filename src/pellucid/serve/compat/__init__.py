"""Routes for the clients of LibreTranslate, which find this server in its place."""

from __future__ import annotations
