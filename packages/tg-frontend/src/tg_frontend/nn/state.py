"""`nn.state`: state dicts and safetensors, under the name that users know."""

from tg_frontend.state import (
    SafetensorsError,
    StateError,
    get_parameters,
    get_state_dict,
    load_state_dict,
    safe_load,
    safe_load_metadata,
    safe_save,
)

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
