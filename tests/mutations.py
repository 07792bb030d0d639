"""For each promise of docs/reference/semantics.md one-line changes of our code that break it.

`nox -s mutations` applies each to a copy of the sources and runs the test named here, which has to
fail. A line that moved or a test that was renamed fails `tests/test_mutations.py`.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Mutation:
    """One change that a test has to notice.

    Attributes:
        promise: number of the promise that it breaks.
        path: the file, below packages/.
        line: the line to change, stripped; it stands there once.
        mutated: what stands there instead; the indentation is kept.
        test: the test that has to fail, below tests/backend/; one parameter of it, or all.
    """

    promise: int
    path: str
    line: str
    mutated: str
    test: str


FRONTEND = "tg-frontend/src/tg_frontend"
CODEGEN = "tg-codegen/src/tg_codegen"
RENDERERS = "tg-renderers/src/tg_renderers"
IR = "tg-ir/src/tg_ir"

MUTATIONS = (
    Mutation(
        1,
        f"{FRONTEND}/live/pinned_reads.py",
        "pinned.update(dict.fromkeys(reading[holder.uop]))",
        "pass",
        "test_promise_01_order.py::test_result_keeps_what_it_read_when_its_source_is_written",
    ),
    Mutation(
        1,
        f"{CODEGEN}/schedule/writes.py",
        "if storage.address(node, index) != place:",
        "if False:",
        "test_promise_01_order.py::test_overlapping_copy_reads_before_it_writes",
    ),
    Mutation(
        1,
        f"{CODEGEN}/schedule/writes.py",
        "found[base] = None",
        "return [value]",
        "test_promise_01_order.py::test_write_after_a_reduction_of_itself_copies_nothing",
    ),
    Mutation(
        1,
        f"{FRONTEND}/tensor/setitem.py",
        "is_current = base._writes == link.writes",
        "is_current = True",
        "test_promise_01_order.py::test_view_that_lags_behind_its_base_keeps_its_own_contents",
    ),
    Mutation(
        2,
        f"{FRONTEND}/tensor/setitem.py",
        "if any(op is Ops.EXPAND for op, _, _ in steps):",
        "if False:",
        "test_promise_02_writes.py::test_write_through_an_expanded_view_is_refused",
    ),
    Mutation(
        2,
        f"{FRONTEND}/tensor/index_keys.py",
        "return (start + (count - 1) * step, start + 1), True, -step",
        "return (start + (count - 1) * step, start + 1), False, -step",
        "test_promise_02_writes.py::test_slices_and_ints",
    ),
    Mutation(
        2,
        f"{FRONTEND}/tensor/setitem.py",
        "self._write(parsed.view, lambda current: where.where(written, current))",
        "self._write(parsed.view, lambda current: written)",
        "test_promise_02_writes.py::test_bool_array",
    ),
    Mutation(
        3,
        f"{FRONTEND}/live/history.py",
        "return self._as_history(value) if self._is_kept(value) else None",
        "return None",
        "test_promise_03_realising.py::test_backward_reaches_through_realised_values",
    ),
    Mutation(
        5,
        f"{FRONTEND}/jit/captured_call.py",
        "self.readers.save(written.values(), self._showing(tensors))",
        "pass",
        "test_promise_05_jit.py::test_old_value_of_state_that_is_held_stays",
    ),
    Mutation(
        5,
        f"{FRONTEND}/jit/captured_call.py",
        "values |= generator_values(*skip_draws(self.draws))",
        "values |= generator_values(*skip_draws(0))",
        "test_promise_05_jit.py::test_random_draws_continue_the_sequence",
    ),
    Mutation(
        5,
        f"{FRONTEND}/jit/capturing.py",
        "if now.times_seeded != before.times_seeded:",
        "if False:",
        "test_promise_05_jit.py::test_seeding_inside_is_refused_at_capture",
    ),
    Mutation(
        6,
        f"{FRONTEND}/tensor/random.py",
        "self.next_counter += int(count.vmax) if isinstance(count, UOp) else int(count)",
        "self.next_counter += 0",
        "test_promise_06_random.py::test_draws_do_not_repeat",
    ),
    Mutation(
        6,
        f"{FRONTEND}/tensor/random.py",
        "return standard_normal(uniform_floats(shape, wide), angle).cast(dtype)",
        "return (uniform_floats(shape, wide) * 7.0 + angle).alu(Ops.SIN).cast(dtype)",
        "test_promise_06_random.py::test_every_device_draws_the_same",
    ),
    Mutation(
        7,
        f"{IR}/graph/symbolic/elementwise.py",
        "*_rules(_NO_NAN_RULES, Assumption.NO_NAN),",
        "*_rules(_NO_NAN_RULES, Assumption.EXACT),",
        "test_promise_07_ieee.py::test_arithmetic_on_special_values",
    ),
    Mutation(
        7,
        f"{FRONTEND}/nodes/special_functions.py",
        "return (left < right) | left.eq(right)",
        "return (right < left).logical_not()",
        "test_promise_07_ieee.py::test_comparison_of_special_values",
    ),
    Mutation(
        7,
        f"{RENDERERS}/llvm/arithmetic.py",
        'return text.overloaded("maximum", kind, values)',
        'return text.overloaded("maxnum", kind, values)',
        "test_promise_07_ieee.py::test_maximum_and_minimum_propagate_nan",
    ),
    Mutation(
        8,
        f"{IR}/dtype/scalars.py",
        "low = value & ((1 << bits) - 1)",
        "low = value & ((1 << 64) - 1)",
        "test_promise_08_wrapping.py::test_scalar_tensors_made_of_numbers_wrap_too",
    ),
    Mutation(
        8,
        f"{RENDERERS}/llvm/arithmetic.py",
        "if amount is not None and not signed_right:",
        "if amount is not None:",
        "test_promise_08_wrapping.py::test_shift_by_a_python_number_of_the_width_or_more",
    ),
    Mutation(
        9,
        f"{RENDERERS}/llvm/arithmetic.py",
        'return text.emit(f"select {mask} {is_zero}, {kind} {zero(dtype)}, {kind} {result}")',
        "return result",
        "test_promise_09_division.py::test_all_pairs_of_integers",
    ),
    Mutation(
        9,
        f"{CODEGEN}/kernel/decompose_integer.py",
        "return remainder.ne(zero) & ((remainder ^ divisor) < zero)",
        "return remainder.ne(zero)",
        "test_promise_09_division.py::test_any_integers",
    ),
    Mutation(
        10,
        f"{IR}/graph/symbolic/elementwise.py",
        "return wide[0] >= narrow[0] and wide[1] >= narrow[1]",
        "return True",
        "test_promise_10_casts.py::test_there_and_back_is_not_nothing",
    ),
    Mutation(
        12,
        f"{FRONTEND}/tensor/index_keys.py",
        "if isinstance(extent, int) and not -extent <= position < extent:",
        "if False:",
        "test_promise_12_indexing.py::test_number_outside_raises_at_once",
    ),
    Mutation(
        14,
        f"{FRONTEND}/tensor/core.py",
        "check_literal(other, dtype)",
        "pass",
        "test_promise_14_literals.py::test_uint8_and_300",
    ),
    Mutation(
        15,
        f"{CODEGEN}/schedule/group_outputs.py",
        "_WINDOW = 16",
        "_WINDOW = 16000",
        "test_promise_15_compile_time.py::test_work_for_each_op_does_not_grow[layers]",
    ),
    Mutation(
        16,
        f"{CODEGEN}/schedule/create.py",
        "draft.release()",
        "pass",
        "test_promise_16_memory.py::test_operand_is_freed_when_its_last_tensor_dies",
    ),
    Mutation(
        16,
        f"{FRONTEND}/storage.py",
        "del _storages[storage_id]",
        "pass",
        "test_promise_16_memory.py::test_only_the_result_stays",
    ),
    Mutation(
        17,
        f"{CODEGEN}/schedule/canonical_kernel.py",
        "for buffer in (*kernel.writes, *used):",
        "for buffer in (*kernel.writes, *set(used)):",
        "test_promise_17_determinism.py::test_another_process_gives_the_same_results_and_kernels",
    ),
    Mutation(
        17,
        f"{CODEGEN}/schedule/schedule_cache.py",
        "arg = repr(arg)",
        "pass",
        "test_promise_07_ieee.py::test_arithmetic_on_special_values",
    ),
)
