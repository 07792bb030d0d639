"""Which BUFFER holds which value.

Fresh buffers of realised values, and the versions that writes make.

Every BUFFER node stands for one version of one buffer. A write makes the next version in place;
where two writes start from the same version, the second works on a copy.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from tg_ir.dtype import dtypes
from tg_ir.graph import GroupOp, Ops, UOp, unique_number

from tg_codegen.schedule.errors import ScheduleError
from tg_codegen.schedule.movement_index import Index, both, flatten, push_index
from tg_codegen.schedule.tensor_order import (
    TRANSPARENT,
    addressing_base,
    rebase,
    strip_transparent,
)

Device = str | tuple[str, ...]
VersionKey = tuple[int, int]


@dataclass
class Storage:
    """The buffers of one schedule.

    Attributes:
        default_device: where values go whose graph names no device.
        buffers: realised node, or version -> the BUFFER version that holds it.
        layouts: AFTER -> the node under the chain of writes, whose shape says how elements are laid
            out.
        copies: AFTER -> the BUFFER version that its storage must be copied from first.
        reads_copied: AFTERs whose values read the overwritten version as a whole, so that it is
            copied first.
    """

    default_device: Device | None
    buffers: dict[UOp, UOp] = field(default_factory=dict)
    layouts: dict[UOp, UOp] = field(default_factory=dict)
    copies: dict[UOp, UOp] = field(default_factory=dict)
    reads_copied: dict[UOp, None] = field(default_factory=dict)
    _taken: set[VersionKey] = field(default_factory=set)

    def device_of(self, node: UOp) -> str:
        """The device that computes `node`.

        Raises:
            ScheduleError: the graph names none, or several.
        """
        device = node.device or self.default_device
        if device is None:
            raise ScheduleError(
                f"{node.op.name} of shape {node.shape} is made of constants only, "
                "so that no device is named; wrap it in COPY(value, device)"
            )
        if not isinstance(device, str):
            raise ScheduleError(
                f"{node.op.name} of shape {node.shape} is on several devices {device}; kernels run "
                "on one: copy it to each of them by itself"
            )
        return device

    def allocate(self, node: UOp) -> UOp:
        """The buffer of the realised value `node`, made on the first call."""
        known = self.buffers.get(node)
        if known is not None:
            return known
        if node.dtype.scalar() is dtypes.index:
            raise ScheduleError(
                f"{node.op.name} has dtype index, which has no size in memory; "
                "cast it to an int dtype"
            )
        buffer = UOp.new_buffer(self.device_of(node), upper_size(node.shape), node.dtype)
        self.buffers[node] = buffer
        return buffer

    def add_write(self, after: UOp) -> UOp:
        """The buffer version that the AFTER node makes."""
        version = after.src[0]
        layout = self.layouts.get(strip_transparent(version), version)
        old = self.version_buffer(version)
        key = (old.arg.id, old.arg.version + 1)
        if key in self._taken:
            self.copies[after] = old
            fresh = unique_number()
            new_arg = replace(old.arg, id=fresh, version=1)
        else:
            self._taken.add(key)
            new_arg = replace(old.arg, version=old.arg.version + 1)
        buffer = UOp(Ops.BUFFER, old.dtype, (), new_arg)
        self.layouts[after] = layout
        self.buffers[after] = buffer
        return buffer

    def version_buffer(self, version: UOp) -> UOp:
        """The BUFFER version that `version` (or a view of it) lies in."""
        base = addressing_base(version)
        return base if base.op is Ops.BUFFER else self.buffers[base]

    def address(self, node: UOp, index: Index) -> tuple[UOp, UOp | None]:
        """The position in its buffer of element `index` of `node`, and its mask.

        `node` is stored itself, or is movement ops over a version.
        """
        mask: UOp | None = None
        if node in self.buffers and node.op is not Ops.AFTER:
            return flatten(index, node.shape), None
        # below the first node the movement ops say how a version lies in its buffer, stored
        # elsewhere or not
        while True:
            if node.op is Ops.AFTER:
                node = self.layouts[node]
            elif node.op in TRANSPARENT:
                node = node.src[0]
            elif node.op in GroupOp.Movement:
                index, valid = push_index(node, index)
                mask = both(mask, valid)
                node = node.src[0]
            else:
                return flatten(index, node.shape), mask

    def target_address(self, target: UOp, index: Index) -> tuple[UOp, UOp | None]:
        """Like `address`, for a write.

        Movement ops are followed even where their value was also stored.
        """
        mask: UOp | None = None
        while target.op in GroupOp.Movement:
            index, valid = push_index(target, index)
            mask = both(mask, valid)
            target = target.src[0]
        flat, inner = self.address(target, index)
        return flat, both(mask, inner)

    def is_overwritten(self, buffer: UOp) -> bool:
        """Whether the schedule writes the next version of this BUFFER version in place."""
        return (buffer.arg.id, buffer.arg.version + 1) in self._taken

    def in_layout_of(self, version: UOp, buffer: UOp) -> UOp:
        """`version` read from `buffer`, which holds what the version's own buffer does."""
        layout = self.layouts.get(version, version)
        if layout.op is Ops.BUFFER:
            return buffer
        if layout in self.buffers:
            return shaped(buffer, layout.shape)
        base = addressing_base(layout)
        held = buffer if base.op is Ops.BUFFER else shaped(buffer, base.shape)
        return rebase(layout, base, held)


def upper_size(shape: Sequence[Any]) -> int:
    """The number of elements of `shape`, symbolic extents at their largest."""
    size = 1
    for extent in shape:
        size *= int(extent.vmax) if isinstance(extent, UOp) else extent
    return size


def shaped(buffer: UOp, shape: tuple[Any, ...]) -> UOp:
    """The front of a flat buffer as a value of `shape`."""
    size: Any = 1
    for extent in shape:
        size = size * extent
    if not isinstance(size, UOp) and size == buffer.arg.size:
        return buffer.reshape(shape)
    return buffer.shrink(((0, size),)).reshape(shape)
