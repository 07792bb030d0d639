"""Devices that drive an accelerator."""
