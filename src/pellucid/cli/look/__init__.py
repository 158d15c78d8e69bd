"""The output of `pellucid look`."""

__all__: list[str] = []
