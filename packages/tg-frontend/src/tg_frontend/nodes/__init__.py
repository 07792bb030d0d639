"""Expressions over graph nodes that operators and gradient rules share.

Nothing here knows tensors.
"""
