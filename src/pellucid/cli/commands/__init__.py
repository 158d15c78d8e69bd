"""One file for each command.

A file here imports PyTorch and NumPy only inside its function, so that ``--help`` stays fast.
"""
