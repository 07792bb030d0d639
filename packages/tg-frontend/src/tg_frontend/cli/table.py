"""Tables of plain text: columns as wide as their widest cell."""

from __future__ import annotations

from collections.abc import Sequence

GAP = "  "


def table_text(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A header line and a line for each row, without trailing spaces.

    Args:
        header: the names of the columns.
        rows: as many cells in each as there are columns.
    """
    lines = [tuple(header), *(tuple(row) for row in rows)]
    widths = [max(len(cell) for cell in column) for column in zip(*lines, strict=True)]
    return "\n".join(_line(cells, widths) for cells in lines)


def _line(cells: Sequence[str], widths: Sequence[int]) -> str:
    padded = [cell.ljust(width) for cell, width in zip(cells, widths, strict=True)]
    return GAP.join(padded).rstrip()
