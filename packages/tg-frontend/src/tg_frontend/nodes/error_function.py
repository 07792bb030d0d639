"""The error function, by polynomials: of the square near 0, of a Moebius map of |x| elsewhere.

The coefficients are Chebyshev fits computed with 250 bits and rounded to the type, highest first.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tg_ir.graph import UOp

from tg_frontend.nodes.special_functions import absolute, exp, is_negative, minimum


@dataclass(frozen=True)
class _Fit:
    """The two polynomials for one float.

    Attributes:
        near: erf(x) / x as a polynomial in x^2, |x| < 1.
        far: exp(x^2) erfc(x) as a polynomial in u = (x - centre) / (x + centre), 1 <= x <= end.
        centre: where u is 0.
        end: from here on the result is 1 in the type.
    """

    near: tuple[float, ...]
    far: tuple[float, ...]
    centre: float
    end: float


_FITS = {
    "float32": _Fit(
        near=(
            7.875874871388078e-05,
            -0.000801686430349946,
            0.005189087241888046,
            -0.02685421146452427,
            0.11283594369888306,
            -0.3761262595653534,
            1.1283791065216064,
        ),
        far=(
            0.0033330086153000593,
            -0.00048196138232015073,
            -0.018654365092515945,
            -0.009280530735850334,
            0.1944909393787384,
            -0.49086880683898926,
            0.32158541679382324,
        ),
        centre=1.5,
        end=4.0,
    ),
    "float64": _Fit(
        near=(
            -7.795898827002142e-10,
            1.3720064546777686e-08,
            -1.6208483801871705e-07,
            1.6447424703317362e-06,
            -1.492473690741966e-05,
            0.00012055294904839707,
            -0.0008548325975389692,
            0.0052239776071164225,
            -0.02686617064323777,
            0.11283791670945006,
            -0.37612638903183543,
            1.1283791670955126,
        ),
        far=(
            -1.5885446316700733e-07,
            -1.949999883482146e-06,
            -1.7121197069097852e-06,
            1.3412352275651315e-05,
            -4.640178919530465e-06,
            -0.00010808575517121791,
            0.000288552006757455,
            0.00026738478589562463,
            -0.004242238468024573,
            0.016976760950897597,
            -0.04543676118647769,
            0.09442780690876125,
            -0.16133852476447896,
            0.23313048160025399,
            -0.2892650448327675,
            0.1552936556088943,
        ),
        centre=3.5,
        end=6.0,
    ),
}


def erf(x: UOp) -> UOp:
    """The error function of a float of 32 or 64 bits, within two ulp."""
    fit = _FITS[x.dtype.name]
    magnitude = absolute(x)
    is_near = magnitude < 1.0
    # each branch gets an argument of its own range, so that its derivative is finite everywhere
    inner = is_near.where(x, x.const_like(0))
    near = inner * _polynomial(inner * inner, fit.near)
    outer = minimum(is_near.where(magnitude.const_like(1), magnitude), x.const_like(fit.end))
    mapped = (outer - fit.centre) / (outer + fit.centre)
    far = 1.0 - exp(-(outer * outer)) * _polynomial(mapped, fit.far)
    return is_near.where(near, is_negative(x).where(-far, far))


def _polynomial(x: UOp, coefficients: Sequence[float]) -> UOp:
    result = x.const_like(coefficients[0])
    for coefficient in coefficients[1:]:
        result = result * x + coefficient
    return result
