"""Work of ``pellucid train`` before training: the report of the data check."""

__all__: list[str] = []
