"""Toolchains: source text to the bytes that a device loads. Importing one imports no third-party
package.
"""
