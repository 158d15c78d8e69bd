"""The output of `pellucid attend`."""

__all__: list[str] = []
