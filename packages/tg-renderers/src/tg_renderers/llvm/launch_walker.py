"""The native walker: runs a table of CPU launches, each shared by the workers that are there.

A captured program then costs one call a worker instead of one a kernel. Workers claim parts of a
launch, so that nobody waits for a worker that another program keeps from running. How the walker
is called and what it does is described in docs/reference/cpu-walker.md.
"""

from __future__ import annotations

from tg_ir.graph.render_api import WALKER_NAME

_ROW_WORDS = 4
_COUNTER_WORDS = 8  # a cache line for each row
# More parts than workers, so that one that comes late leaves little behind.
_PARTS_A_WORKER = 4
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
  %counters.at = getelementptr ptr, ptr %buffers, i64 1
  %counters = load ptr, ptr %counters.at, align 8
  %first = load i64, ptr %vals, align 8
  %end.at = getelementptr i64, ptr %vals, i64 1
  %end = load i64, ptr %end.at, align 8
  %alone = icmp eq i64 %workers, 1
  %several = mul i64 %workers, {_PARTS_A_WORKER}
  %most = select i1 %alone, i64 1, i64 %several
  br label %next
next:
  %row = phi i64 [ %first, %entry ], [ %row.after, %passed ]
  %more = icmp slt i64 %row, %end
  br i1 %more, label %launch, label %leave
launch:
  %word = mul i64 %row, {_ROW_WORDS}
  %kernel.at = getelementptr i64, ptr %rows, i64 %word
  %kernel = load ptr, ptr %kernel.at, align 8
  %kernel.buffers.at = getelementptr i64, ptr %kernel.at, i64 1
  %kernel.buffers = load ptr, ptr %kernel.buffers.at, align 8
  %kernel.vals.at = getelementptr i64, ptr %kernel.at, i64 2
  %kernel.vals = load ptr, ptr %kernel.vals.at, align 8
  %extent.at = getelementptr i64, ptr %kernel.at, i64 3
  %extent = load i64, ptr %extent.at, align 8
  %is.short = icmp slt i64 %extent, %most
  %parts = select i1 %is.short, i64 %extent, i64 %most
  %counter.word = mul i64 %row, {_COUNTER_WORDS}
  %claimed = getelementptr i64, ptr %counters, i64 %counter.word
  %finished = getelementptr i64, ptr %claimed, i64 1
  br label %claim
claim:
  %part = atomicrmw add ptr %claimed, i64 1 acq_rel, align 8
  %is.mine = icmp slt i64 %part, %parts
  br i1 %is.mine, label %run, label %spin
run:
  %part.after = add i64 %part, 1
  %scaled.from = mul i64 %extent, %part
  %scaled.to = mul i64 %extent, %part.after
  %from = udiv i64 %scaled.from, %parts
  %to = udiv i64 %scaled.to, %parts
  call void %kernel(ptr %kernel.buffers, ptr %kernel.vals, i64 %from, i64 %to)
  %before = atomicrmw add ptr %finished, i64 1 acq_rel, align 8
  br label %claim
spin:
  %turn = phi i64 [ 0, %claim ], [ %turn.after, %pause ], [ %turn.after, %yield ]
  %now = load atomic i64, ptr %finished acquire, align 8
  %all = icmp sge i64 %now, %parts
  br i1 %all, label %passed, label %still
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
