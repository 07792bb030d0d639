"""Devices that need no accelerator: CPU, PYTHON, NULL, DISK, NPY."""
