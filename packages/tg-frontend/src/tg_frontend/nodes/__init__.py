"""Expressions over graph nodes that operators and gradient rules share; nothing here knows tensors."""
