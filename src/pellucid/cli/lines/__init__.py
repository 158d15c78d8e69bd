"""Commands that read and write lines: input, output that can be resumed, translation."""
