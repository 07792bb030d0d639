"""Types of values: `DType`, the namespace `dtypes`, promotion, and casts of Python numbers."""

from tg_ir.dtype.data_type import (
    DType,
    FloatFormat,
    ImageDType,
    Kind,
    Scalar,
    dtypes,
    to_dtype,
)
from tg_ir.dtype.promotion import least_upper_dtype, result_type, sum_accumulator
from tg_ir.dtype.scalars import (
    bitcast_scalar,
    cast_scalar,
    check_literal,
    fits,
    wrap_int,
)
from tg_ir.dtype.storage import from_bytes, struct_code, to_bytes

__all__ = [
    "DType",
    "FloatFormat",
    "ImageDType",
    "Kind",
    "Scalar",
    "bitcast_scalar",
    "cast_scalar",
    "check_literal",
    "dtypes",
    "fits",
    "from_bytes",
    "least_upper_dtype",
    "result_type",
    "struct_code",
    "sum_accumulator",
    "to_bytes",
    "to_dtype",
    "wrap_int",
]
