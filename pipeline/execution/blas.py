"""Functions of BLAS and LAPACK that write in place, without the GIL.

SciPy's own wrappers hold the GIL for the whole product. They block the other threads of the pool
and the thread that reads the next partition. ctypes releases the GIL. A kernel could release it,
too, but Numba does not cache kernels that call an address: every process would compile them again.

Results are in Fortran order. All matrices may be blocks of larger matrices.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from functools import cache
from typing import Any

from numba.extending import get_cython_function_address
from numpy.typing import NDArray

Matrix = NDArray[Any]

_REALS = {"f": ctypes.c_float, "d": ctypes.c_double}
_LETTERS = {"f": "s", "d": "d"}


def add_gram(a: Matrix, out: Matrix, alpha: float = 1.0, beta: float = 0.0) -> None:
    """Write alpha · a aᵀ + beta · out into the lower triangle of ``out`` (n, n); a is (n, k)."""
    trans, *at = _operand(a)
    sizes = (_size(length) for length in a.shape)
    _call("syrk", a, b"L", trans, *sizes, _real(alpha, a), *at, _real(beta, a), *_place(out))


def add_product(a: Matrix, b: Matrix, out: Matrix, alpha: float = 1.0, beta: float = 0.0) -> None:
    """Write alpha · a b + beta · out into ``out`` (m, n); a is (m, k), b (k, n)."""
    (trans_a, *at_a), (trans_b, *at_b) = _operand(a), _operand(b)
    sizes = (_size(length) for length in (len(a), b.shape[1], len(b)))
    factors = _real(alpha, a), _real(beta, a)
    arguments = (*sizes, factors[0], *at_a, *at_b, factors[1], *_place(out))
    _call("gemm", a, trans_a, trans_b, *arguments)


def solve_from_right(factor: Matrix, out: Matrix) -> None:
    """Replace ``out`` (m, n) by out L⁻ᵀ, for a lower triangular L (n, n) in Fortran order."""
    sizes = (_size(length) for length in out.shape)
    places = (*_place(factor), *_place(out))
    _call("trsm", out, b"R", b"L", b"T", b"N", *sizes, _real(1.0, out), *places)


def solve_from_left(factor: Matrix, out: Matrix, trans: bytes = b"N") -> None:
    """Replace ``out`` (m, n) by L⁻¹ out, or L⁻ᵀ out, for a lower L (m, m) in Fortran order."""
    sizes = (_size(length) for length in out.shape)
    places = (*_place(factor), *_place(out))
    _call("trsm", out, b"L", b"L", trans, b"N", *sizes, _real(1.0, out), *places)


def multiply_from_left(factor: Matrix, out: Matrix) -> None:
    """Replace ``out`` (m, n) by L out, for a lower triangular L (m, m) in Fortran order."""
    sizes = (_size(length) for length in out.shape)
    places = (*_place(factor), *_place(out))
    _call("trmm", out, b"L", b"L", b"N", b"N", *sizes, _real(1.0, out), *places)


def factorise(out: Matrix) -> bool:
    """Replace the lower triangle by its Cholesky factor; return whether the factor exists."""
    failed = ctypes.c_int(0)
    _call("potrf", out, b"L", _size(len(out)), *_place(out), ctypes.byref(failed))
    return failed.value == 0


def _call(name: str, like: Matrix, *arguments: object) -> None:
    _routine(_LETTERS[like.dtype.char] + name, len(arguments))(*arguments)


@cache
def _routine(name: str, n_arguments: int) -> Callable[..., None]:
    """Return the routine of this name, which takes addresses."""
    library = "lapack" if name.endswith("potrf") else "blas"
    address = get_cython_function_address(f"scipy.linalg.cython_{library}", name)
    return ctypes.CFUNCTYPE(None, *[ctypes.c_void_p] * n_arguments)(address)


def _operand(matrix: Matrix) -> tuple[bytes, int, object]:
    """Return whether BLAS must transpose a matrix, its address, and the distance of columns."""
    if matrix.strides[0] == matrix.itemsize or len(matrix) == 1:
        return b"N", *_place(matrix)
    return b"T", *_place(matrix.T)


def _place(matrix: Matrix) -> tuple[int, object]:
    """Return the address of a matrix in Fortran order, and the distance of its columns.

    Raises
    ------
    ValueError
        If the rows of the matrix are not contiguous.
    """
    if len(matrix) > 1 and matrix.strides[0] != matrix.itemsize:
        raise ValueError(f"a matrix of strides {matrix.strides} is not in Fortran order")
    apart = matrix.strides[1] // matrix.itemsize if matrix.shape[1] > 1 else len(matrix)
    return matrix.ctypes.data, _size(max(1, apart))


def _size(n: int) -> object:
    return ctypes.byref(ctypes.c_int(n))


def _real(value: float, like: Matrix) -> object:
    return ctypes.byref(_REALS[like.dtype.char](value))
