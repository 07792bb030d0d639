"""Toolchains: source text to the bytes that a device loads. Importing one loads no third party."""
