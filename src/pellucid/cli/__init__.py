"""The command line.

`commands` declares each command: its arguments, its help, and a call. A large command has its work
in a folder of the same name. `lines` is shared by the commands that read and write lines.
"""
