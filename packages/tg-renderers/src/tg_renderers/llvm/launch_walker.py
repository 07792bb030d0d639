"""The native walker: runs a table of CPU launches, shared by workers, with barriers in between.

A captured program then costs one call a worker instead of one a kernel. How the walker is called
and what it does is described in docs/reference/cpu-walker.md.
"""

from __future__ import annotations

from tg_ir.graph.render_api import WALKER_NAME

_ROW_WORDS = 4
# About 100 microseconds, a short kernel: after that another program may need the core more.
_SPINS_BEFORE_YIELD = 4096

# What tells the core that this is a spin loop: declaration and call.
_RELAX = {
    "x86_64": ("declare void @llvm.x86.sse2.pause()", "call void @llvm.x86.sse2.pause()"),
    "arm64": ("declare void @llvm.aarch64.hint(i32)", "call void @llvm.aarch64.hint(i32 1)"),
}


def walker_text(family: str) -> str:
    """The LLVM IR of the walker for a CPU family."""
    declaration, relax = _RELAX.get(family, ("", ""))
    return f"""{declaration}
declare i32 @sched_yield()
define void @{WALKER_NAME}(ptr %buffers, ptr %vals, i64 %worker, i64 %workers) nounwind {{
entry:
  %rows = load ptr, ptr %buffers, align 8
  %barrier.at = getelementptr ptr, ptr %buffers, i64 1
  %barrier = load ptr, ptr %barrier.at, align 8
  %first = load i64, ptr %vals, align 8
  %end.at = getelementptr i64, ptr %vals, i64 1
  %end = load i64, ptr %end.at, align 8
  %worker.after = add i64 %worker, 1
  br label %next
next:
  %row = phi i64 [ %first, %entry ], [ %row.after, %passed ]
  %more = icmp slt i64 %row, %end
  br i1 %more, label %split, label %leave
split:
  %word = mul i64 %row, {_ROW_WORDS}
  %kernel.at = getelementptr i64, ptr %rows, i64 %word
  %extent.at = getelementptr i64, ptr %kernel.at, i64 3
  %extent = load i64, ptr %extent.at, align 8
  %scaled.from = mul i64 %extent, %worker
  %scaled.to = mul i64 %extent, %worker.after
  %from = udiv i64 %scaled.from, %workers
  %to = udiv i64 %scaled.to, %workers
  %some = icmp slt i64 %from, %to
  br i1 %some, label %run, label %arrive
run:
  %kernel = load ptr, ptr %kernel.at, align 8
  %kernel.buffers.at = getelementptr i64, ptr %kernel.at, i64 1
  %kernel.buffers = load ptr, ptr %kernel.buffers.at, align 8
  %kernel.vals.at = getelementptr i64, ptr %kernel.at, i64 2
  %kernel.vals = load ptr, ptr %kernel.vals.at, align 8
  call void %kernel(ptr %kernel.buffers, ptr %kernel.vals, i64 %from, i64 %to)
  br label %arrive
arrive:
  %alone = icmp eq i64 %workers, 1
  br i1 %alone, label %passed, label %wait
wait:
  %arrived = atomicrmw add ptr %barrier, i64 1 acq_rel, align 8
  %generation = udiv i64 %arrived, %workers
  %generation.after = add i64 %generation, 1
  %opens.at = mul i64 %generation.after, %workers
  br label %spin
spin:
  %turn = phi i64 [ 0, %wait ], [ %turn.after, %pause ], [ %turn.after, %yield ]
  %now = load atomic i64, ptr %barrier acquire, align 8
  %open = icmp uge i64 %now, %opens.at
  br i1 %open, label %passed, label %still
still:
  %turn.after = add i64 %turn, 1
  %long = icmp ugt i64 %turn.after, {_SPINS_BEFORE_YIELD}
  br i1 %long, label %yield, label %pause
pause:
  {relax}
  br label %spin
yield:
  %ignored = call i32 @sched_yield()
  br label %spin
passed:
  %row.after = add i64 %row, 1
  br label %next
leave:
  ret void
}}
"""
