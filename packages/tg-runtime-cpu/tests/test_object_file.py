"""The loader against objects made by LLVM and by the machine's C compiler."""

from __future__ import annotations

import ctypes
import math
import struct
from collections.abc import Callable

import pytest
from tg_runtime_cpu.errors import ObjectFileError, UnresolvedSymbolError
from tg_runtime_cpu.object_file import load_object
from tg_runtime_cpu.object_file.elf import parse_object
from tg_runtime_cpu.object_file.external_symbols import external_address
from tg_runtime_cpu.object_file.relocation_x86_64 import X8664Relocations

CompileIr = Callable[[str], bytes]
CompileC = Callable[..., bytes]

DOUBLE_TO_DOUBLE = ctypes.CFUNCTYPE(ctypes.c_double, ctypes.c_double)
INT_TO_INT = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_int64)


def call_c(code: bytes, name: str, value: int) -> int:
    loaded = load_object(code)
    return int(INT_TO_INT(loaded.address(name))(value))


def test_function_without_relocations_runs(compile_ir: CompileIr) -> None:
    code = compile_ir("define i64 @next(i64 %x) {\n %y = add i64 %x, 1\n ret i64 %y\n}")
    assert call_c(code, "next", 41) == 42


@pytest.mark.parametrize("name", ["exp", "sin", "log2", "cbrt"])
def test_maths_functions_are_found(compile_ir: CompileIr, name: str) -> None:
    text = f"declare double @{name}(double)\ndefine double @f(double %x) {{\n"
    text += f" %y = call double @{name}(double %x)\n ret double %y\n}}"
    loaded = load_object(compile_ir(text))
    expected = {"exp": math.exp, "sin": math.sin, "log2": math.log2, "cbrt": math.cbrt}[name](1.25)
    assert DOUBLE_TO_DOUBLE(loaded.address("f"))(1.25) == pytest.approx(expected, rel=1e-15)


def test_constants_are_reached_relative_to_the_code(compile_ir: CompileIr) -> None:
    text = "define double @f(double %x) {\n %y = fmul double %x, 3.25\n ret double %y\n}"
    loaded = load_object(compile_ir(text))
    assert DOUBLE_TO_DOUBLE(loaded.address("f"))(2.0) == 6.5


def test_symbol_of_another_section_is_resolved(compile_ir: CompileIr) -> None:
    text = """
@table = internal constant [4 x i64] [i64 10, i64 20, i64 30, i64 40]
define i64 @f(i64 %i) {
  %p = getelementptr [4 x i64], ptr @table, i64 0, i64 %i
  %x = load i64, ptr %p
  ret i64 %x
}
"""
    code = compile_ir(text)
    assert [call_c(code, "f", i) for i in range(4)] == [10, 20, 30, 40]


def test_data_keeps_its_value_between_calls(compile_c: CompileC) -> None:
    code = compile_c("static long calls = 5; long f(long x) { calls += x; return calls; }", "-fPIC")
    loaded = load_object(code)
    function = INT_TO_INT(loaded.address("f"))
    assert [function(1), function(10)] == [6, 16]


def test_uninitialised_data_starts_with_zeros(compile_c: CompileC) -> None:
    text = "static long seen[1000]; long f(long x) { seen[x] += x; return seen[x] + seen[x + 1]; }"
    assert call_c(compile_c(text, "-fPIC"), "f", 7) == 7


def test_common_symbol_gets_memory(compile_c: CompileC) -> None:
    text = "long shared; long f(long x) { shared += x; return shared; }"
    assert call_c(compile_c(text, "-fPIC", "-fcommon"), "f", 9) == 9


def test_table_of_pointers_is_absolute(compile_c: CompileC) -> None:
    text = """
static long one(long x) { return x + 1; }
static long two(long x) { return x * 2; }
static long (*const table[])(long) = { one, two };
long f(long x) { return table[x & 1](x); }
"""
    code = compile_c(text, "-fPIC")
    assert (call_c(code, "f", 10), call_c(code, "f", 11)) == (11, 22)


def test_switch_table_is_relocated(compile_c: CompileC) -> None:
    cases = "".join(f"case {i}: return {i * i + 7};" for i in range(12))
    code = compile_c(f"long f(long x) {{ switch (x) {{ {cases} }} return -1; }}", "-fPIC")
    assert [call_c(code, "f", i) for i in (0, 5, 11, 12)] == [7, 32, 128, -1]


def test_global_offset_table_is_made(compile_c: CompileC) -> None:
    text = "extern double fabs(double); double (*pick(void))(double) { return fabs; }"
    loaded = load_object(compile_c(text, "-fPIC"))
    pick = ctypes.CFUNCTYPE(ctypes.c_void_p)(loaded.address("pick"))
    assert pick() == external_address("fabs")


def test_code_for_fixed_addresses_is_placed_low(compile_c: CompileC) -> None:
    text = "static long table[4] = {3, 5, 7, 9}; long f(long x) { return table[x]; }"
    code = compile_c(text, "-fno-pic", "-mcmodel=small")
    assert call_c(code, "f", 2) == 7


def test_far_call_goes_through_a_stub(compile_ir: CompileIr) -> None:
    text = "declare double @exp(double)\ndefine double @f(double %x) {\n"
    text += " %y = call double @exp(double %x)\n ret double %y\n}"
    loaded = load_object(compile_ir(text))
    distance = external_address("exp") - loaded.memory.address
    assert DOUBLE_TO_DOUBLE(loaded.address("f"))(0.0) == 1.0
    rules = X8664Relocations()
    assert not rules.reaches(4, 0, 2**31)
    assert rules.reaches(4, loaded.memory.address, loaded.memory.address + distance) == (
        abs(distance) < 2**31
    )


def test_stub_jumps_to_any_address(compile_ir: CompileIr) -> None:
    # The stub itself, run as code: it must reach `llabs` wherever that lies.
    rules = X8664Relocations()
    code = rules.stub(external_address("llabs"))
    assert code[:2] == b"\xff\x25"
    assert struct.unpack("<Q", code[6:14])[0] == external_address("llabs")


def test_missing_function_is_named(compile_ir: CompileIr) -> None:
    text = "declare i64 @no_such_function_1(i64)\ndefine i64 @f(i64 %x) {\n"
    text += " %y = call i64 @no_such_function_1(i64 %x)\n ret i64 %y\n}"
    with pytest.raises(UnresolvedSymbolError, match="'no_such_function_1'.*searched: libc"):
        load_object(compile_ir(text))


def test_missing_entry_point_lists_what_is_there(compile_ir: CompileIr) -> None:
    loaded = load_object(compile_ir("define void @here() {\n ret void\n}"))
    with pytest.raises(ObjectFileError, match="no symbol 'there'; defined: here"):
        loaded.address("there")


def test_unknown_relocation_is_named(compile_c: CompileC) -> None:
    # Thread-local data needs relocations that a kernel has no use for.
    code = compile_c("static __thread long x = 1; long f(void) { return ++x; }", "-fno-pic")
    with pytest.raises(ObjectFileError, match="relocation type 23 of machine 62 is not known"):
        load_object(code)


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"", "no ELF object"),
        (b"MZ" + bytes(100), "no ELF object"),
        (b"\x7fELF\x01\x01" + bytes(100), "not 64-bit"),
        (b"\x7fELF\x02\x01", "truncated or damaged"),
    ],
)
def test_what_is_no_object_is_refused(data: bytes, message: str) -> None:
    with pytest.raises(ObjectFileError, match=message):
        load_object(data)


def test_truncated_object_is_refused_wherever_it_is_cut(compile_ir: CompileIr) -> None:
    code = compile_ir("define i64 @next(i64 %x) {\n %y = add i64 %x, 1\n ret i64 %y\n}")
    for length in range(0, len(code) - 1, 7):
        with pytest.raises(ObjectFileError):
            load_object(code[:length])


def test_linked_file_is_refused(compile_ir: CompileIr) -> None:
    code = bytearray(compile_ir("define void @f() {\n ret void\n}"))
    code[16:18] = (3).to_bytes(2, "little")  # ET_DYN
    with pytest.raises(ObjectFileError, match="type 3; expected a relocatable object"):
        load_object(bytes(code))


def test_object_for_another_machine_is_refused(compile_ir: CompileIr) -> None:
    code = bytearray(compile_ir("define void @f() {\n ret void\n}"))
    code[18:20] = (243).to_bytes(2, "little")
    with pytest.raises(ObjectFileError, match="the object is for riscv64, this machine is"):
        load_object(bytes(code))


def test_symbols_are_read_with_their_place(compile_ir: CompileIr) -> None:
    obj = parse_object(compile_ir("define void @f() {\n ret void\n}"))
    symbol = next(symbol for symbol in obj.symbols if symbol.name == "f")
    assert obj.sections[symbol.section].name == ".text"
