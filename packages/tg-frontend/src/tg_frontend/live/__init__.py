"""The tensors that are alive.

Who they are, what they still read, and how their values came about.
"""
