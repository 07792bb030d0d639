"""Renderers and toolchain compilers."""
