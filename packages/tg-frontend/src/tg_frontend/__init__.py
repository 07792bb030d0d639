"""Tensor, autograd, nn, optim, state and JIT: the package that programs import."""
