"""The questions a user asks, one file each: a function, and the object it answers with.

The command line has a command of the same name for each of them.
"""
