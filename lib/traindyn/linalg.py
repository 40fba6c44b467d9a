"""Top eigenpairs of symmetric operators, and comparison of subspaces.

An eigensolver here uses an operator only through its products with blocks of vectors,
so a dense matrix, a weighted Gram matrix that is never formed and a test lambda are the
same to it. The method is a thick-restarted block Krylov iteration with full
reorthogonalisation:

* *block*, because the spectra of interest have degenerate outliers: a block finds every
  copy of an eigenvalue whose multiplicity is at most its width;
* *Krylov*, because the last wanted eigenvalue often sits within half a percent of the
  next one, where plain subspace iteration needs thousands of products;
* *warm-started*, because along a training trajectory the eigenvectors at one time are
  an excellent start for the next.

Wide blocks (the default) are for safety, narrow ones for speed where the spectrum is
simple: at a thousand rows a block of four needs half the products of a block of
fourteen. A small or moderate matrix given as an array goes to LAPACK instead, which
cannot miss an eigenvalue.

Operators of other libraries are taken as they are (:func:`as_operator`): those of SciPy, of
curvlinops and of hessian-eigenthings, and whatever else has a shape and products. Results do not
depend on the units of an operator: one whose products are extreme is multiplied by a power of two,
so that no square of a number under- or overflows.

Nothing is accepted on the strength of the iteration's own estimates: the residuals of a
:class:`Spectrum` come from one last product with the returned vectors. Two safeguards
protect a warm start that misses a top eigenvector altogether: every start has a random
part, and before the wanted pairs are believed either the first *unwanted* pair must have settled
too, or the gap between them must be so wide that whatever is above it in absolute value has grown
out of the random part (by a Chebyshev polynomial of the number of products).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Literal, Protocol, TypeAlias, runtime_checkable

import numpy as np
import scipy.linalg
from numpy.typing import ArrayLike, NDArray
from scipy import sparse

from traindyn import _validate
from traindyn._types import RNG, Array

Order: TypeAlias = Literal["magnitude", "algebraic"]

_FORM_SIZE = 64
"""Operators up to this size are formed and diagonalised directly."""
_DIRECT_SIZE = 2000
"""Matrices up to this size are diagonalised directly."""
_GUARD = 4
"""Columns of a block, and Ritz vectors kept at a restart, beyond the wanted pairs."""
_RANDOM_PART = 0.01
"""Random part of a mixed warm start: less than what two frames of a film differ by."""
_CYCLE_COLUMNS, _CYCLE_BLOCKS = 60, 12
"""Basis vectors added between two restarts: at least so many, and at least so many blocks."""
_LOOK_COLUMNS = 20
"""Basis vectors added between two looks at the Ritz values."""
_GUARD_TOLERANCE = 1e-3
"""Relative residual the first unwanted pair must reach, unless the gap before it is wide."""
_AMPLIFICATION = 1e3
"""How far a missed direction must have outgrown the rest of a random start for a gap to count."""
_EXTREME = 300
"""Powers of two beyond which numbers are rescaled: up to it, squares of residuals are safe."""


@runtime_checkable
class SymmetricOperator(Protocol):
    """A real symmetric linear map, known through its products."""

    @property
    def size(self) -> int:
        """Number of rows and columns."""

    @property
    def dtype(self) -> np.dtype[np.float64]:
        """Floating-point type of the products."""

    def matmat(self, vectors: Array) -> Array:
        """Product with the columns of `vectors`, shape (size, b)."""


class DenseOperator:
    """A symmetric matrix as an operator.

    Parameters
    ----------
    matrix : array_like, shape (n, n)
        Symmetric. Kept by reference when it already is a float64 array.

    Raises
    ------
    ValueError
        If `matrix` is not square, not symmetric or not finite.
    """

    def __init__(self, matrix: ArrayLike) -> None:
        self._matrix = _validate.symmetric("matrix", matrix)

    @property
    def size(self) -> int:
        """Number of rows and columns."""
        return int(self._matrix.shape[0])

    @property
    def dtype(self) -> np.dtype[np.float64]:
        """Floating-point type of the products."""
        return self._matrix.dtype

    def matmat(self, vectors: Array) -> Array:
        """Product with the columns of `vectors`, shape (n, b)."""
        product: Array = self._matrix @ vectors
        return product

    def dense(self) -> Array:
        """Return the matrix itself, shape (n, n)."""
        return self._matrix


class LambdaOperator:
    """A function of a block of vectors as an operator; symmetry is the caller's word.

    Parameters
    ----------
    size : int
    product : callable
        Maps an (n, b) array to an (n, b) array. It may work in place and return an array that it
        keeps: it is given a copy, and what it returns is copied.
    """

    def __init__(self, size: int, product: Callable[[Array], Array]) -> None:
        self._size = _validate.integer("size", size, least=1)
        self._product = product

    @property
    def size(self) -> int:
        """Number of rows and columns."""
        return self._size

    @property
    def dtype(self) -> np.dtype[np.float64]:
        """Floating-point type of the products."""
        return np.dtype(np.float64)

    def matmat(self, vectors: Array) -> Array:
        """Product with the columns of `vectors`, shape (n, b)."""
        return _apart(self._product, vectors)


def _apart(product: Callable[[Array], Any], vectors: Array) -> Array:
    """Multiply so that neither what is given nor what comes is shared with foreign code."""
    return np.array(product(np.array(vectors)))


Operator: TypeAlias = Any
"""What :func:`as_operator` takes."""


def as_operator(operator: Operator) -> SymmetricOperator:
    """Return an operator of this or another library as one whose size and products are known.

    Parameters
    ----------
    operator : object
        One of

        * a :class:`SymmetricOperator`, which is returned as it is;
        * a symmetric array, or a sparse matrix or array of SciPy;
        * an object with ``shape`` (n, n) and ``matmat`` or ``matvec``, such as SciPy's
          ``LinearOperator``, whose products take and return NumPy arrays;
        * an operator of curvlinops, which has a method ``to_scipy``;
        * an operator of hessian-eigenthings, with ``size``, ``device``, ``dtype`` and a
          ``matvec`` of PyTorch's tensors.

        It must be real. Symmetry is the caller's word, but for arrays.

    Returns
    -------
    SymmetricOperator

    Raises
    ------
    ValueError
        If `operator` is none of these, not square or complex.

    Examples
    --------
    >>> import numpy as np
    >>> from scipy.sparse.linalg import LinearOperator
    >>> from traindyn.linalg import as_operator, top_eigenpairs
    >>> values = np.arange(1.0, 101.0)
    >>> foreign = LinearOperator((100, 100), matvec=lambda vector: values * vector.ravel())
    >>> as_operator(foreign).size
    100
    >>> top_eigenpairs(foreign, 2).eigenvalues.round(9)
    array([100.,  99.])
    """
    return _as_operator("operator", operator)


def _as_operator(name: str, value: Any) -> SymmetricOperator:
    """Do what :func:`as_operator` says, for an argument of a name."""
    if not _multiplies(value):
        return DenseOperator(_validate.symmetric(name, value))
    if hasattr(value, "to_scipy"):
        value = value.to_scipy()
    if sparse.issparse(value):
        value = sparse.linalg.aslinearoperator(value)
    if np.issubdtype(_numpy_type(value), np.complexfloating):
        raise ValueError(f"{name} must be real, got products of type {value.dtype}")
    if not hasattr(value, "shape") and hasattr(value, "size"):
        if hasattr(value, "matmat"):
            own: SymmetricOperator = value
            return own
        if hasattr(value, "device"):
            return LambdaOperator(value.size, _by_tensors(value))
    _validate.providing(name, value, "shape")
    shape = value.shape
    if not isinstance(shape, (tuple, list)) or len(shape) != 2 or shape[0] != shape[1]:
        raise ValueError(f"{name} must be square, got shape {shape}")
    size = _validate.integer(f"{name}.shape[0]", shape[0], least=1)
    return LambdaOperator(size, _by_arrays(value))


def _multiplies(value: Any) -> bool:
    """Whether something is known by its products, and not as an array."""
    products = ("matmat", "matvec", "to_scipy")
    return sparse.issparse(value) or any(hasattr(value, each) for each in products)


def _numpy_type(operator: Any) -> np.dtype[Any]:
    """Type of an operator's products, as far as the operator names one that NumPy has."""
    try:
        return np.dtype(getattr(operator, "dtype", None))
    except TypeError:
        return np.dtype(np.float64)


def _by_arrays(operator: Any) -> Callable[[Array], Array]:
    """Products with a block by `matmat`, or else with one column after the other."""
    if hasattr(operator, "matmat"):
        return lambda block: np.asarray(operator.matmat(block))

    def product(block: Array) -> Array:
        images = [_apart(operator.matvec, column) for column in block.T]
        return np.stack([np.reshape(image, -1) for image in images], axis=1)

    return product


def _by_tensors(operator: Any) -> Callable[[Array], Array]:
    """Products with a block, column by column, by an operator of PyTorch's tensors."""
    import torch

    def product(block: Array) -> Array:
        images = []
        for column in block.T:
            vector = torch.tensor(column, dtype=operator.dtype, device=operator.device)
            # A tensor that the operator keeps shares its memory with the array.
            images.append(operator.matvec(vector).detach().double().cpu().numpy().copy())
        return np.stack(images, axis=1)

    return product


@dataclass(frozen=True)
class Spectrum:
    """Some eigenpairs of a symmetric operator, with their quality.

    Attributes
    ----------
    eigenvalues : ndarray, shape (r,)
        Sorted by decreasing absolute value (or decreasing value, if so asked).
    eigenvectors : ndarray, shape (n, r)
        Orthonormal columns. For a degenerate eigenvalue they are some basis of its
        space: compare spaces, never single vectors.
    residuals : ndarray, shape (r,)
        ``|A v - theta v| / max |theta|`` from a final product with `eigenvectors`.
    converged : ndarray of bool, shape (r,)
        Whether each residual met the tolerance and the iteration had settled.
    products : int
        Operator-vector products spent.
    """

    eigenvalues: Array
    eigenvectors: Array
    residuals: Array
    converged: NDArray[np.bool_]
    products: int


def top_eigenpairs(
    operator: Operator,
    r: int,
    *,
    start: ArrayLike | None = None,
    width: int | None = None,
    tolerance: float = 1e-8,
    which: Order = "magnitude",
    rng: RNG = 0,
    max_products: int | None = None,
) -> Spectrum:
    """Compute the top `r` eigenpairs of a symmetric operator.

    Parameters
    ----------
    operator : object
        What :func:`as_operator` takes, such as an array or SciPy's ``LinearOperator``. A small
        matrix given as an array is diagonalised directly.
    r : int
        Number of pairs, at most the operator's size.
    start : array_like, shape (n, b), optional
        Columns close to the wanted eigenvectors, for instance those of a nearby
        operator. They need not be orthonormal or independent.
    width : int, optional
        Columns per product, at least the largest multiplicity expected among the wanted
        eigenvalues; ``r + 4`` unless given. A start with more columns is mixed down.
    tolerance : float
        Bound on ``|A v - theta v| / max |theta|``. Products in single precision allow about
        1e-5.
    which : {"magnitude", "algebraic"}
        Largest absolute values (the source's E_k, BGHJ Section 2) or largest values.
    rng : int, SeedSequence or Generator
        Fills the start block; the same value gives the same result.
    max_products : int, optional
        Operator-vector products after which the best pairs so far are returned with
        `converged` False (default: 300 per column of a block).

    Raises
    ------
    ValueError
        If `operator` is none, not square or complex, `r` is larger than it, or an argument is
        out of range.
    FloatingPointError
        If a product is not finite.

    Examples
    --------
    >>> import numpy as np
    >>> from traindyn.linalg import top_eigenpairs
    >>> matrix = np.diag([3.0, -5.0, 1.0, 0.5])
    >>> top_eigenpairs(matrix, 2).eigenvalues
    array([-5.,  3.])
    >>> top_eigenpairs(matrix, 2, which="algebraic").eigenvalues
    array([3., 1.])
    """
    operator = _as_operator("operator", operator)
    tolerance = _validate.positive("tolerance", tolerance)
    if isinstance(operator, DenseOperator) and operator.size <= _DIRECT_SIZE:
        return _direct(operator.dense(), r, tolerance, which)
    counted = CountedOperator(operator)
    r = _validate.integer("r", r, least=1, most=counted.size)
    which = _validate.choice("which", which, ("magnitude", "algebraic"))
    generator = _validate.generator("rng", rng)
    width = _validate.integer("width", r + _GUARD if width is None else width, least=1)
    if start is not None:
        start = _validate.finite("start", start, shape=(counted.size, None))
    if max_products is None:
        max_products = 300 * width
    max_products = _validate.integer("max_products", max_products, least=1)

    if counted.size <= max(_FORM_SIZE, 4 * (r + width)):
        eigenvalues, vectors = _diagonalise(counted.matmat(np.eye(counted.size)), which)
        settled = True
    else:
        iteration = _BlockKrylov(counted, r, width, tolerance, which, generator)
        eigenvalues, vectors, settled = iteration.run(start, max_products)
    eigenvalues, vectors = eigenvalues[:r], vectors[:, :r]
    images = counted.matmat(vectors)
    found = _spectrum(eigenvalues, vectors, images, tolerance, settled, counted.products)
    return replace(found, eigenvalues=np.ldexp(found.eigenvalues, -counted.exponent))


def alignment(vectors: ArrayLike, basis: ArrayLike) -> Any:
    r"""Alignment of vectors with a subspace, :math:`|P_B v| / |v|` (BGHJ Definition 2.1).

    Parameters
    ----------
    vectors : array_like, shape (..., n)
        Non-zero.
    basis : array_like, shape (n, m)
        Columns spanning the subspace, orthonormal or not.

    Returns
    -------
    float or ndarray, shape (...)

    Raises
    ------
    ValueError
        If a vector is zero or the shapes disagree.

    Examples
    --------
    >>> import numpy as np
    >>> from traindyn.linalg import alignment
    >>> round(float(alignment([3.0, 4.0, 0.0], np.eye(3)[:, :1])), 12)
    0.6
    """
    columns = _orthonormal("basis", basis)
    array = _validate.finite("vectors", vectors)
    if array.ndim == 0 or array.shape[-1] != columns.shape[0]:
        raise ValueError(f"vectors must have last axis {columns.shape[0]}, got shape {array.shape}")
    if not np.all(np.any(array, axis=-1)):
        raise ValueError("vectors must be non-zero, got a zero vector")
    array = _unit_size(array, axis=-1)
    norms = np.linalg.norm(array, axis=-1)
    return np.minimum(np.linalg.norm(array @ columns, axis=-1) / norms, 1.0)


def subspace_error(matrix: Operator, basis: ArrayLike) -> float:
    r"""How far a matrix is from acting into a subspace (BGHJ Definition 2.2).

    The smallest `eps` such that ``matrix - N`` has its image in the subspace for some
    `N` with operator norm at most ``eps |matrix|`` is attained at ``N = (I - P) matrix``,

    .. math:: |(I - P_B) A| / |A|.

    Parameters
    ----------
    matrix : array_like, shape (n, q), or operator
        An operator, any that :func:`as_operator` takes, is only multiplied (relative accuracy
        1e-6).
    basis : array_like, shape (n, m)
        Columns that span the subspace; they need not be orthonormal or independent.

    Raises
    ------
    ValueError
        If the shapes disagree or the matrix is zero.
    """
    columns = _orthonormal("basis", basis)
    operator = None
    if _multiplies(matrix):
        operator = _as_operator("matrix", matrix)
        rows = operator.size
    else:
        dense = _validate.finite("matrix", matrix, shape=(None, None))
        rows = dense.shape[0]
    if rows != columns.shape[0]:
        raise ValueError(f"basis must have {rows} rows, got {columns.shape[0]}")

    def reject(block: Array) -> Array:
        return block - columns @ (columns.T @ block)

    if operator is not None:
        total = abs(top_eigenpairs(operator, 1, tolerance=1e-6).eigenvalues[0])
        # The square of an extreme operator would under- or overflow.
        exponent = _exponent(total)
        total = np.ldexp(total, exponent)

        def image(block: Array) -> Array:
            return np.ldexp(np.asarray(operator.matmat(block), dtype=np.float64), exponent)

        squared = LambdaOperator(rows, lambda block: reject(image(image(reject(block)))))
        outside = np.sqrt(abs(top_eigenpairs(squared, 1, tolerance=1e-6).eigenvalues[0]))
    else:
        total = np.linalg.norm(dense, 2)
        outside = np.linalg.norm(reject(dense), 2)
    if total == 0:
        raise ValueError("matrix must be non-zero, got the zero matrix")
    return float(min(outside / total, 1.0))


def _direct(matrix: Array, r: int, tolerance: float, which: Order) -> Spectrum:
    """Top eigenpairs of a symmetric matrix with LAPACK."""
    size = matrix.shape[0]
    r = _validate.integer("r", r, least=1, most=size)
    which = _validate.choice("which", which, ("magnitude", "algebraic"))
    exponent = _exponent(np.abs(matrix).max())
    if exponent:
        matrix = np.ldexp(matrix, exponent)

    def subset(first: int, last: int) -> tuple[Array, Array]:
        pairs: tuple[Array, Array] = scipy.linalg.eigh(
            matrix, subset_by_index=[first, last], driver="evr", check_finite=False
        )
        return pairs

    values, vectors = subset(size - r, size - 1)
    if which == "magnitude" and not _bounded_below(matrix, float(values[0])):
        low_values, low_vectors = subset(0, r - 1)
        # The two ends overlap when 2 r > n: keep each pair once.
        fresh = np.arange(r) < size - r
        values = np.concatenate([values, low_values[fresh]])
        vectors = np.concatenate([vectors, low_vectors[:, fresh]], axis=1)
    order = _order(values, which)[:r]
    values, vectors = values[order], vectors[:, order]
    found = _spectrum(values, vectors, matrix @ vectors, tolerance, True, 0)
    return replace(found, eigenvalues=np.ldexp(found.eigenvalues, -exponent))


def _bounded_below(matrix: Array, least: float) -> bool:
    """Whether no eigenvalue is below ``-least``; decided by a Cholesky factorisation."""
    if least <= 0:
        return False
    shifted = np.array(matrix, order="F")
    shifted[np.diag_indices_from(shifted)] += least
    _, info = scipy.linalg.lapack.dpotrf(shifted, overwrite_a=1, clean=0)
    return bool(info == 0)


def _spectrum(
    values: Array, vectors: Array, images: Array, tolerance: float, settled: bool, products: int
) -> Spectrum:
    """Attach the residuals of ``images = A vectors`` to eigenpairs."""
    norms = np.linalg.norm(images - vectors * values, axis=0)
    scale = np.abs(values).max(initial=0.0)
    residuals = norms / scale if scale > 0 else norms
    return Spectrum(
        eigenvalues=values,
        eigenvectors=np.ascontiguousarray(vectors),
        residuals=residuals,
        converged=(residuals <= tolerance) & settled,
        products=products,
    )


def _exponent(size: float) -> int:
    """Power of two that brings an extreme size near one; zero for all others."""
    exponent = -int(np.frexp(size)[1])
    return exponent if size > 0 and abs(exponent) > _EXTREME else 0


def _unit_size(array: Array, axis: int) -> Array:
    """Multiply along an axis by powers of two, so that the largest entry is near one."""
    largest = np.abs(array).max(axis=axis, keepdims=True, initial=0.0)
    return np.asarray(np.ldexp(array, -np.frexp(largest)[1]))


class CountedOperator:
    """An operator that counts its products, refuses non-finite ones and rescales extreme ones.

    For iterations: what they see is the operator times two to the power of `exponent`, which is
    zero but for operators so large or small that squares of their products are not safe.

    Parameters
    ----------
    operator : SymmetricOperator
        Which to multiply with.

    Attributes
    ----------
    size : int
        Number of rows and columns.
    products : int
        Operator-vector products spent.
    exponent : int
        Known after the first product that is not zero.

    Examples
    --------
    >>> import numpy as np
    >>> from traindyn.linalg import CountedOperator, DenseOperator
    >>> counted = CountedOperator(DenseOperator(np.eye(3)))
    >>> counted.matmat(np.ones((3, 2))).sum(), counted.products, counted.exponent
    (np.float64(6.0), 2, 0)
    """

    def __init__(self, operator: SymmetricOperator) -> None:
        own = type(operator).__module__.startswith("traindyn.")
        self._multiply = operator.matmat if own else partial(_apart, operator.matmat)
        self.size = _validate.integer("operator.size", operator.size, least=1)
        self.products = 0
        self.exponent, self._measured = 0, False

    def matmat(self, vectors: Array) -> Array:
        """Product with the columns of `vectors`, shape (size, b), in the unit of `exponent`.

        Raises
        ------
        ValueError
            If the product has another shape or is complex.
        FloatingPointError
            If it is not finite.
        """
        result = self._product(vectors)
        if not self._measured:
            self._measure(result)
        if self.exponent:
            result = np.ldexp(result, self.exponent)
        # A sum shows every NaN and infinity, without the temporary of np.isfinite.
        if not np.isfinite(result.sum()):
            raise FloatingPointError("operator.matmat must be finite, got NaN or infinite products")
        return result

    def _product(self, vectors: Array) -> Array:
        self.products += vectors.shape[1]
        result = np.asarray(self._multiply(vectors))
        if result.shape != vectors.shape:
            raise ValueError(
                f"operator.matmat must return shape {vectors.shape}, got {result.shape}"
            )
        if np.iscomplexobj(result):
            raise ValueError(f"operator.matmat must be real, got products of type {result.dtype}")
        # It is written to, and that of another library may be read-only.
        return result.astype(np.float64, copy=not result.flags.writeable)

    def _measure(self, result: Array) -> None:
        """Choose the exponent by the first product that is not zero."""
        size = np.abs(result).max(initial=0.0)
        self._measured = bool(size > 0)
        if _exponent(size):
            # A warm start may lie in a space where the operator is small.
            probe = np.random.default_rng(0).standard_normal((self.size, 1))
            self.exponent = _exponent(max(size, np.abs(self._product(probe)).max()))


class _BlockKrylov:
    """Thick-restarted block Krylov iteration.

    Invariant: with `basis` Q (n, m), `next_block` P (n, b) orthogonal to it and
    `projected` H = Q^T A Q, the relation ``A Q = Q H + P K`` holds, `coupling` K (b, m)
    being non-zero only in its last columns. The residual of the Ritz pair (theta, Q y)
    is therefore ``|K y|``, free of charge.
    """

    def __init__(
        self,
        operator: CountedOperator,
        r: int,
        width: int,
        tolerance: float,
        which: Order,
        generator: np.random.Generator,
    ) -> None:
        self.operator, self.r, self.width = operator, r, width
        self.tolerance, self.which, self.generator = tolerance, which, generator
        self.kept = max(width, 2 * r + _GUARD)
        cycle = max(_CYCLE_COLUMNS, _CYCLE_BLOCKS * width)
        most = min(operator.size, self.kept + cycle + width)
        # Fortran order keeps basis blocks contiguous.
        self.basis: Array = np.empty((operator.size, most), order="F")
        self.projected: Array = np.zeros((most, most))
        self.used = 0
        # Products since the start or a restart, and how much of the block was random then.
        self.degree, self.random_share = -1, 1.0

    def run(self, start: Array | None, max_products: int) -> tuple[Array, Array, bool]:
        """Iterate to convergence, or until the products are spent."""
        block = self._first_block(start)
        steps = 0
        while True:
            block, coupling = self._expand(block)
            exhausted = block.shape[1] == 0
            spent = self.operator.products + block.shape[1] + self.r > max_products
            full = self.used + block.shape[1] > self.basis.shape[1]
            # Diagonalising the projection costs as much as a few products.
            steps += 1
            if steps % -(-_LOOK_COLUMNS // self.width) and not (exhausted or spent or full):
                continue
            values, weights = _diagonalise(self.projected[: self.used, : self.used], self.which)
            tails = coupling @ weights[-coupling.shape[1] :, :]
            settled = exhausted or self._settled(values, np.linalg.norm(tails, axis=0))
            if settled or spent:
                weights = weights[:, : self.r]
                return values[: self.r], self.basis[:, : self.used] @ weights, settled
            if full:
                self._restart(values, weights)

    def _first_block(self, start: Array | None) -> Array:
        block = self.generator.standard_normal((self.operator.size, self.width))
        if start is not None:
            start = _unit_size(start, axis=0)
            norms = np.linalg.norm(start, axis=0)
            warm = start[:, norms > 0] / norms[norms > 0]
            if warm.shape[1] > self.width:
                # Every column of the start enters the Krylov space through a random mix.
                mixed = warm @ self.generator.standard_normal((warm.shape[1], self.width))
                mixed /= np.linalg.norm(mixed, axis=0)
                block = mixed + block * (_RANDOM_PART / np.linalg.norm(block, axis=0))
                self.random_share = _RANDOM_PART
            else:
                block[:, : warm.shape[1]] = warm
                self.random_share = float(warm.shape[1] < self.width)
        return self._orthonormal_to_basis(block)[0]

    def _expand(self, block: Array) -> tuple[Array, Array]:
        """Add `block` to the basis; return the next block and its coupling."""
        old, self.used = self.used, self.used + block.shape[1]
        self.degree += 1
        self.basis[:, old : self.used] = block
        image = self.operator.matmat(block)
        rows = self.basis[:, : self.used].T @ image
        self.projected[: self.used, old : self.used] = rows
        self.projected[old : self.used, : self.used] = rows.T
        corner = rows[old:]
        self.projected[old : self.used, old : self.used] = (corner + corner.T) / 2
        image -= self.basis[:, : self.used] @ rows
        return self._orthonormal_to_basis(image)

    def _restart(self, values: Array, weights: Array) -> None:
        """Shrink the basis to the best Ritz vectors."""
        self.basis[:, : self.kept] = self.basis[:, : self.used] @ weights[:, : self.kept]
        self.used = self.kept
        self.projected[:] = 0.0
        self.projected[: self.kept, : self.kept] = np.diag(values[: self.kept])
        self.degree = -1

    def _settled(self, values: Array, residuals: Array) -> bool:
        scale = np.abs(values[: self.r]).max()
        if scale == 0:
            # The zero operator: any vector will do.
            return bool(np.all(residuals <= np.finfo(float).tiny))
        # Half the tolerance leaves room for rounding in the final product.
        wanted = bool(np.all(residuals[: self.r] <= 0.5 * self.tolerance * scale))
        guard = max(_GUARD_TOLERANCE, self.tolerance) * scale
        return wanted and (
            bool(np.all(residuals[self.r : self.r + 1] <= guard)) or self._outgrown(values)
        )

    def _outgrown(self, values: Array) -> bool:
        """Whether a direction as large as the wanted ones could not have stayed hidden.

        Of a random vector, n products leave a part above the gap that is larger than the rest
        by the Chebyshev polynomial of degree n at the ratio of the values around the gap.
        """
        if self.which != "magnitude" or self.random_share == 0 or values.size <= self.r:
            return False
        level, edge = np.abs(values[self.r - 1 : self.r + 1])
        if level == 0:
            return False
        ratio = level / max(edge, np.finfo(float).eps * level)
        growth = self.degree * np.arccosh(max(ratio, 1.0)) - np.log(2)
        needed = _AMPLIFICATION * np.sqrt(self.operator.size) / self.random_share
        return bool(growth >= np.log(needed))

    def _orthonormal_to_basis(self, block: Array) -> tuple[Array, Array]:
        """Orthonormalise `block` against the basis and itself: ``block = P K``.

        Columns that are numerically dependent are replaced by random ones with zero
        coupling, so that an invariant subspace never ends the search early. Fewer
        columns come back only when the whole space is nearly used up.
        """
        basis = self.basis[:, : self.used]
        room = min(self.operator.size - self.used, block.shape[1])
        result, coupling = np.linalg.qr(block - basis @ (basis.T @ block))
        sizes = np.abs(np.diag(coupling))
        if sizes.min() <= 1e-10 * sizes.max():
            # Dropping a column of `result` would drop its part of every later column:
            # rotate to singular vectors first.
            left, values, right = np.linalg.svd(coupling)
            rank = int(np.count_nonzero(values > 1e-14 * values[0]))
            fresh = self.generator.standard_normal((self.operator.size, values.size - rank))
            result = np.concatenate([result @ left[:, :rank], fresh], axis=1)
            coupling = values[:, None] * right
            coupling[rank:] = 0.0
            # The fresh columns have seen no product.
            self.degree, self.random_share = -1, 1.0
        result, coupling = result[:, :room], coupling[:room]
        for _ in range(2):
            result, triangle = np.linalg.qr(result - basis @ (basis.T @ result))
            coupling = triangle @ coupling
        return result, coupling


def _diagonalise(matrix: Array, which: Order) -> tuple[Array, Array]:
    # NumPy's, not SciPy's: it releases the interpreter lock, so threads run side by side.
    values, vectors = np.linalg.eigh((matrix + matrix.T) / 2)
    order = _order(values, which)
    return values[order], vectors[:, order]


def _order(values: Array, which: Order) -> NDArray[np.intp]:
    return np.argsort(-(np.abs(values) if which == "magnitude" else values), kind="stable")


def _orthonormal(name: str, basis: ArrayLike) -> Array:
    """Orthonormal basis of a column space, dependent columns dropped."""
    array = _validate.finite(name, basis, shape=(None, None))
    if array.size == 0:
        raise ValueError(f"{name} must have at least one row and column, got shape {array.shape}")
    left, values, _ = np.linalg.svd(array, full_matrices=False)
    if values[0] == 0:
        raise ValueError(f"{name} must not be zero, got only zeros")
    columns: Array = left[:, values > values[0] * max(array.shape) * np.finfo(float).eps]
    return columns
