"""Constraints: what a translation may and must hold."""

__all__: list[str] = []
