"""The data of a trace and its files, below everything that draws it."""
