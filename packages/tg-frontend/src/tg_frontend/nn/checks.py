"""What layers check of the numbers they are made with and of their input."""

from __future__ import annotations

from tg_frontend.nn.errors import LayerError
from tg_frontend.nodes.sizes import whole_number


def check_sizes(layer: str, *sizes: int) -> None:
    """Check the sizes of a layer.

    Raises:
        ArgumentError: one is no int.
        LayerError: one is below 1.
    """
    if any(whole_number(size, layer) < 1 for size in sizes):
        shown = ", ".join(str(size) for size in sizes)
        raise LayerError(f"{layer}({shown}): sizes have to be 1 or more")
