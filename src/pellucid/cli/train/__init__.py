"""Work of ``pellucid train`` before training: the report of the data check."""
