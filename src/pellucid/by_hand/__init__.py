"""Attention worked out number by number: everything behind `pellucid attend`."""

__all__: list[str] = []
