"""Tensors by name and in files: state dicts, safetensors. Users import `tg_frontend.nn.state`."""

from tg_frontend.state.errors import SafetensorsError, StateError
from tg_frontend.state.safetensors import safe_load, safe_load_metadata, safe_save
from tg_frontend.state.state_dict import get_parameters, get_state_dict, load_state_dict

__all__ = [
    "SafetensorsError",
    "StateError",
    "get_parameters",
    "get_state_dict",
    "load_state_dict",
    "safe_load",
    "safe_load_metadata",
    "safe_save",
]
