"""The pass that turns a lowered kernel graph into the linear kernel.

A list of nodes with loops, accumulators in registers.

REDUCE and SCAN become a DEFINE_REG that is set before the loop, updated in it and read after it.
"""

from __future__ import annotations

import heapq
from dataclasses import dataclass, field

from tg_ir.dtype import DType, dtypes
from tg_ir.graph import DefineArg, Ops, UOp, toposort

from tg_codegen.errors import LoweringError
from tg_codegen.kernel.join_states import joined_states
from tg_codegen.kernel.loop_blocks import (
    Block,
    LoopTree,
    build_loop_tree,
    deeper,
    pinned_loads,
)
from tg_codegen.loops import closed_ranges, stored_by

Item = UOp | Block


@dataclass(slots=True)
class _Builder:
    """The linear nodes made so far, where each stands, and which items must come before which."""

    tree: LoopTree
    fuse_multiply_add: bool
    index_dtype: DType
    new: dict[UOp, UOp] = field(default_factory=dict)
    states: dict[tuple[UOp, int], UOp] = field(default_factory=dict)
    block_of: dict[UOp, Block] = field(default_factory=dict)
    before: dict[Item, list[Item]] = field(default_factory=dict)
    pins: dict[UOp, UOp] = field(default_factory=dict)
    bare: set[UOp] = field(default_factory=set)  # STOREs that an AFTER waits for, no END
    ends: dict[UOp, UOp] = field(default_factory=dict)
    registers: int = 0
    # what stands for an effect that no loop repeats
    effects: dict[UOp, tuple[UOp, ...]] = field(default_factory=dict)

    def add(self, node: UOp, at_least: Block | None = None) -> UOp:
        """Places `node` in the innermost block that its sources (and `at_least`) need."""
        if node in self.block_of:
            return node
        block = self.tree.root if at_least is None else at_least
        if node.op is Ops.RANGE:
            block = deeper(block, self.tree.of_range[node])
        for source in node.src:
            block = deeper(block, self.block_of[source])
        self.block_of[node] = block
        if node.op is Ops.RANGE:
            self._order_bound_before_loop(node)
            return node
        block.items.append(node)
        for source in node.src:
            self.order(source, node)
        return node

    def _order_bound_before_loop(self, loop: UOp) -> None:
        block = self.tree.of_range[loop]
        for source in loop.src:
            outer = self.block_of[source]
            self.before.setdefault(outer.child_towards(block), []).append(source)

    def order(self, first: UOp, then: UOp) -> None:
        """`first` comes before `then`, or before the loop that contains it."""
        if first.op is Ops.RANGE:
            return
        outer, inner = self.block_of[first], self.block_of[then]
        if first.op is Ops.END:
            inner_item: Item = then if outer is inner else outer.child_towards(inner)
            loop = outer.child_towards(self.tree.of_range[first.src[0]])
            self.before.setdefault(inner_item, []).append(loop)
            return
        item: Item = then if outer is inner else outer.child_towards(inner)
        self.before.setdefault(item, []).append(first)

    def end_of(self, closer: UOp) -> UOp:
        """The node that ends the outermost loop of `closer`; it stands for the loop being done."""
        loop = self.new[closed_ranges(closer)[0]]
        if loop not in self.ends:
            end = UOp(Ops.END, dtypes.void, (loop,))
            self.ends[loop] = end
            self.block_of[end] = self.tree.outside(closer)
        return self.ends[loop]

    def new_register(self, dtype: DType) -> UOp:
        register = UOp(Ops.DEFINE_REG, dtype, (), DefineArg(self.registers, 1))
        self.registers += 1
        return self.add(register)

    def element(self, register: UOp) -> UOp:
        zero = self.add(UOp(Ops.CONST, self.index_dtype, (), 0))
        return self.add(UOp(Ops.INDEX, register.dtype, (self.add(register), zero)))

    def constant(self, dtype: DType, value: bool | int | float) -> UOp:
        node = UOp.const(dtype, value)
        for part in toposort((node,)):
            self.add(part)
        return node


def linearize(
    sink: UOp, fuse_multiply_add: bool = True, index_dtype: DType = dtypes.int64
) -> list[UOp]:
    """The linear kernel of `sink`.

    Requires: no VECTOR, UNROLL or STAGE; machine dtypes only; `separate_loops` ran. Ensures:
    `spec.linear_kernel`. `fuse_multiply_add`: a sum of products rounds once a step (MULACC).
    """
    order = toposort((sink,))
    bare = {s for n in order if n.op is Ops.AFTER for s in n.src[1:] if s.op is Ops.STORE}
    closers = [n for n in order if n.op in {Ops.REDUCE, Ops.END} and closed_ranges(n)]
    builder = _Builder(build_loop_tree(closers), fuse_multiply_add, index_dtype)
    builder.bare = bare
    builder.registers = 1 + max((n.arg.slot for n in order if n.op is Ops.DEFINE_REG), default=-1)
    builder.pins = pinned_loads([c for c in closers if c.op is Ops.END], order)
    for node in order:
        _convert(node, builder)
    return _emit(builder)


def _convert(node: UOp, builder: _Builder) -> None:
    match node.op:
        case Ops.SINK:
            _convert_sink(node, builder)
        case Ops.REDUCE:
            _convert_reduce(node, builder)
        case Ops.GETTUPLE:
            builder.new[node] = builder.states[(node.src[0], node.arg)]
        case Ops.SCAN:
            _convert_scan(node, builder)
        case Ops.END:
            _convert_end(node, builder)
        case Ops.STORE | Ops.TUPLE if node not in builder.bare:
            # placed by its END, in the innermost loop, or by the SINK
            return
        case _:
            at_least = None
            if node in builder.pins:
                at_least = builder.tree.inside(builder.pins[node])
            builder.new[node] = builder.add(_rebuilt(node, builder), at_least)


def _convert_sink(node: UOp, builder: _Builder) -> None:
    # a kernel that stores single elements has no loop to END
    for source in node.src:
        for effect in source.src if source.op is Ops.TUPLE else (source,):
            if effect.op is Ops.STORE:
                builder.new[effect] = builder.add(_rebuilt(effect, builder))


def _rebuilt(node: UOp, builder: _Builder) -> UOp:
    if node.op is Ops.AFTER:
        waits = [e for s in node.src[1:] for e in builder.effects.get(s) or (builder.new[s],)]
        src = (builder.new[node.src[0]], *waits)
    else:
        src = tuple([builder.new[s] for s in node.src])
    return node if src == node.src else UOp(node.op, node.dtype, src, node.arg)


def _convert_end(node: UOp, builder: _Builder) -> None:
    stores = stored_by(node)
    ranges = closed_ranges(node)
    inside = builder.tree.inside(node) if ranges else builder.tree.root
    for store in stores:
        builder.new[store] = builder.add(_rebuilt(store, builder), inside)
    if ranges:
        builder.new[node] = builder.end_of(node)
    else:
        builder.effects[node] = tuple([builder.new[store] for store in stores])


def _convert_reduce(node: UOp, builder: _Builder) -> None:
    combine = node.arg.combine
    values = [builder.new[v] for v in node.src[: len(combine.init)]]
    ranges = closed_ranges(node)
    if not ranges:
        results = values
    else:
        results = _accumulate(node, values, builder)
    builder.new[node] = results[0]
    for position, result in enumerate(results):
        builder.states[(node, position)] = result


def _accumulate(node: UOp, values: list[UOp], builder: _Builder) -> list[UOp]:
    combine = node.arg.combine
    outside, inside = builder.tree.outside(node), builder.tree.inside(node)
    innermost = builder.new[closed_ranges(node)[-1]]
    loop_item = outside.child_towards(inside)
    registers = [builder.new_register(v.dtype) for v in values]
    for register, start in zip(registers, combine.init, strict=True):
        constant = builder.constant(register.dtype, start)
        setting = builder.add(builder.element(register).store(constant), outside)
        builder.before.setdefault(loop_item, []).append(setting)
    views = [builder.add(r.after(innermost), inside) for r in registers]
    accumulated = [builder.add(builder.element(v).load(), inside) for v in views]
    joined = _joined(node, accumulated, values, builder)
    for view, value in zip(views, joined, strict=True):
        builder.add(builder.element(view).store(value), inside)
    done = builder.end_of(node)
    return [
        builder.add(builder.element(builder.add(r.after(done), outside)).load(), outside)
        for r in registers
    ]


def _joined(
    node: UOp, accumulated: list[UOp], values: list[UOp], builder: _Builder
) -> list[UOp]:
    combine = node.arg.combine
    if combine.op is not None:
        return [_join_by_op(combine.op, accumulated[0], values[0], builder)]
    joined = list(joined_states(combine, accumulated, values))
    for part in toposort(joined):
        builder.add(part)
    return joined


def _join_by_op(op: Ops, accumulated: UOp, value: UOp, builder: _Builder) -> UOp:
    if op is Ops.ADD and dtypes.is_float(value.dtype.scalar()) and builder.fuse_multiply_add:
        if value.op is Ops.MUL:
            return builder.add(UOp(Ops.MULACC, value.dtype, (*value.src, accumulated)))
        if value.op is Ops.WHERE and value.src[1].op is Ops.MUL and _is_zero(value.src[2]):
            # a guarded product: the guard chooses between the old sum and the new
            factors = value.src[1].src
            total = builder.add(UOp(Ops.MULACC, value.dtype, (*factors, accumulated)))
            return builder.add(UOp(Ops.WHERE, value.dtype, (value.src[0], total, accumulated)))
    return builder.add(UOp(op, value.dtype, (accumulated, value)))


def _is_zero(node: UOp) -> bool:
    constant = node.src[0] if node.op is Ops.BROADCAST else node
    return constant.op is Ops.CONST and constant.arg == 0


def _convert_scan(node: UOp, builder: _Builder) -> None:
    """The states live in registers that are set before the scanned loop and stay open behind it."""
    combine = node.arg.combine
    values = [builder.new[v] for v in node.src[:-1]]
    loop = builder.new[node.src[-1]]
    inside = builder.tree.of_range[loop]
    outside = inside.around
    if any(deeper(inside, builder.block_of[v]) is not inside for v in values):
        raise LoweringError(
            f"a SCAN along axis {loop.arg.axis} is of values that depend on loops inside of it; "
            "make the scanned loop the innermost"
        )
    registers = [builder.new_register(v.dtype) for v in values]
    for register, start in zip(registers, combine.init, strict=True):
        constant = builder.constant(register.dtype, start)
        setting = builder.add(builder.element(register).store(constant), outside)
        builder.before.setdefault(inside, []).append(setting)
    views = [builder.add(r.after(loop), inside) for r in registers]
    accumulated = [builder.add(builder.element(v).load(), inside) for v in views]
    joined = _joined(node, accumulated, values, builder)
    for position, (view, value) in enumerate(zip(views, joined, strict=True)):
        builder.add(builder.element(view).store(value), inside)
        builder.states[(node, position)] = value
    builder.new[node] = joined[0]


def _emit(builder: _Builder) -> list[UOp]:
    for block in builder.tree.of_range.values():
        block.around.items.append(block)
    used = _used_items(builder)
    linear: list[UOp] = []
    stack: list[Item | UOp] = [builder.tree.root]
    while stack:
        item = stack.pop()
        if isinstance(item, UOp):
            linear.append(item)
            continue
        body = _ordered(item, builder, used)
        if item.range is not None:
            loop = builder.new[item.range]
            linear.append(loop)
            stack.append(UOp(Ops.END, dtypes.void, (loop,)))
        stack.extend(reversed(body))
    return linear


def _used_items(builder: _Builder) -> set[UOp]:
    """The nodes that some effect needs; fusing a multiply into MULACC leaves products behind."""
    effects = [n for n in builder.block_of if n.op is Ops.STORE]
    loops = [builder.new[loop] for loop in builder.tree.of_range]
    return set(toposort([*effects, *builder.ends.values(), *loops]))


def _ordered(block: Block, builder: _Builder, used: set[UOp]) -> list[Item]:
    """The items of `block`, each after what it needs.

    Among free ones effects come last, else first made first.
    """
    items = [i for i in block.items if isinstance(i, Block) or i in used]
    rank = {
        item: (isinstance(item, UOp) and item.op is Ops.STORE, position)
        for position, item in enumerate(items)
    }
    missing: dict[Item, int] = {}
    users: dict[Item, list[Item]] = {}
    for item in items:
        needed = {n for n in builder.before.get(item, ()) if n in rank}
        missing[item] = len(needed)
        for need in needed:
            users.setdefault(need, []).append(item)
    ready = [(rank[i], i) for i in items if missing[i] == 0]
    heap = [r for r, _ in ready]
    by_rank = {r: i for i, r in rank.items()}
    heapq.heapify(heap)
    result: list[Item] = []
    while heap:
        item = by_rank[heapq.heappop(heap)]
        result.append(item)
        for user in users.get(item, ()):
            missing[user] -= 1
            if missing[user] == 0:
                heapq.heappush(heap, rank[user])
    if len(result) != len(items):
        raise LoweringError("the nodes of a loop need each other in a circle")
    return result
