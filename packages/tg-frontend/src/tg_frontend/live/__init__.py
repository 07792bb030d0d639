"""The tensors that are alive: who they are, what they still read, and how their values came about."""
