"""The native walker: runs a table of CPU launches, shared by workers, with barriers in between.

A captured program then costs one call a worker instead of one a kernel. The text is LLVM IR with
the calling convention of kernels; what it means for a runtime is described at `WALKER_NAME`.
"""

from __future__ import annotations

from tg_ir.graph.render_api import WALKER_NAME

# 64 bytes: a row is one cache line, and so are the two words of the barrier.
_ROW_WORDS = 8
_SPINS_BEFORE_YIELD = 4096

# What tells the core that this is a spin loop: declaration and call.
_RELAX = {
    "x86_64": ("declare void @llvm.x86.sse2.pause()", "call void @llvm.x86.sse2.pause()"),
    "arm64": ("declare void @llvm.aarch64.hint(i32)", "call void @llvm.aarch64.hint(i32 1)"),
}


def walker_text(family: str) -> str:
    """The LLVM IR of the walker for a CPU family.

    A worker leaves a barrier when the generation changes. While it waits it spins, and after a few
    microseconds gives its core away at each turn: another program may need it.
    """
    declaration, relax = _RELAX.get(family, ("", ""))
    return f"""{declaration}
declare i32 @sched_yield()
define void @{WALKER_NAME}(ptr %rows, ptr %control, i64 %worker, i64 %unused) nounwind {{
entry:
  %first = load i64, ptr %control, align 8
  %last.at = getelementptr i64, ptr %control, i64 1
  %last = load i64, ptr %last.at, align 8
  %workers.at = getelementptr i64, ptr %control, i64 2
  %workers = load i64, ptr %workers.at, align 8
  %arrived.at = getelementptr i64, ptr %control, i64 {_ROW_WORDS}
  %generation.at = getelementptr i64, ptr %control, i64 {2 * _ROW_WORDS}
  %all.but.one = sub i64 %workers, 1
  br label %next
next:
  %row = phi i64 [ %first, %entry ], [ %row.after, %done ]
  %more = icmp slt i64 %row, %last
  br i1 %more, label %look, label %leave
look:
  %start = mul i64 %row, {_ROW_WORDS}
  %fields = getelementptr i64, ptr %rows, i64 %start
  %barrier.at = getelementptr i64, ptr %fields, i64 5
  %barrier = load i64, ptr %barrier.at, align 8
  %waits = icmp ne i64 %barrier, 0
  br i1 %waits, label %arrive, label %share
arrive:
  %generation = load atomic i64, ptr %generation.at acquire, align 8
  %before = atomicrmw add ptr %arrived.at, i64 1 acq_rel, align 8
  %is.last = icmp eq i64 %before, %all.but.one
  br i1 %is.last, label %open, label %spin
open:
  store atomic i64 0, ptr %arrived.at monotonic, align 8
  %following = add i64 %generation, 1
  store atomic i64 %following, ptr %generation.at release, align 8
  br label %share
spin:
  %turn = phi i64 [ 0, %arrive ], [ %turn.after, %again ]
  {relax}
  %seen = load atomic i64, ptr %generation.at acquire, align 8
  %closed = icmp eq i64 %seen, %generation
  br i1 %closed, label %wait, label %share
wait:
  %turn.after = add i64 %turn, 1
  %long = icmp ugt i64 %turn.after, {_SPINS_BEFORE_YIELD}
  br i1 %long, label %yield, label %again
yield:
  %ignored = call i32 @sched_yield()
  br label %again
again:
  br label %spin
share:
  %parts.at = getelementptr i64, ptr %fields, i64 4
  %parts = load i64, ptr %parts.at, align 8
  %takes.part = icmp slt i64 %worker, %parts
  br i1 %takes.part, label %split, label %done
split:
  %extent.at = getelementptr i64, ptr %fields, i64 3
  %extent = load i64, ptr %extent.at, align 8
  %worker.after = add i64 %worker, 1
  %scaled.begin = mul i64 %extent, %worker
  %scaled.end = mul i64 %extent, %worker.after
  %begin = udiv i64 %scaled.begin, %parts
  %end = udiv i64 %scaled.end, %parts
  %some = icmp slt i64 %begin, %end
  br i1 %some, label %run, label %done
run:
  %kernel = load ptr, ptr %fields, align 8
  %buffers.at = getelementptr i64, ptr %fields, i64 1
  %buffers = load ptr, ptr %buffers.at, align 8
  %vals.at = getelementptr i64, ptr %fields, i64 2
  %vals = load ptr, ptr %vals.at, align 8
  call void %kernel(ptr %buffers, ptr %vals, i64 %begin, i64 %end)
  br label %done
done:
  %row.after = add i64 %row, 1
  br label %next
leave:
  %marks = getelementptr i64, ptr %control, i64 {3 * _ROW_WORDS}
  %mark.at = getelementptr i64, ptr %marks, i64 %worker
  store i64 1, ptr %mark.at, align 8
  ret void
}}
"""
