# mypy: disallow-untyped-defs=False
"""Particles to mesh and back with the cloud-in-cell window, and the gradient between.

Every cell adds its particles' shares in the order of the particles, whatever the threads, so the
same positions give the same bytes on any number of cores.
"""

from __future__ import annotations

from bagbasis.core.compiling import kernel, subkernel


@subkernel(inline="always")
def _cell(x, inverse, n):
    """Return the two cells a coordinate's cloud overlaps, and the fraction of the second."""
    u = x * inverse - 0.5
    if u < 0:
        u += n
    i = int(u)
    share = u - i
    if i >= n:  # u was a tiny negative number, and rounded up to n
        i -= n
    j = i + 1
    return i, j if j < n else 0, share


@kernel()
def deposit(begin, end, positions, inverse, mesh):
    """Write the mass of unit particles in [0, L)³ in the planes ``begin`` to ``end`` of a mesh.

    Cell (i, j, k) has its centre at (i + ½, j + ½, k + ½) / inverse.
    """
    n = mesh.shape[0]
    mesh[begin:end] = 0
    for p in range(len(positions)):
        i0, i1, s = _cell(positions[p, 0], inverse, n)
        left, right = begin <= i0 < end, begin <= i1 < end
        if not (left or right):
            continue
        j0, j1, t = _cell(positions[p, 1], inverse, n)
        k0, k1, u = _cell(positions[p, 2], inverse, n)
        a, b = (1 - t) * (1 - u), (1 - t) * u
        c, d = t * (1 - u), t * u
        if left:
            mesh[i0, j0, k0] += (1 - s) * a
            mesh[i0, j0, k1] += (1 - s) * b
            mesh[i0, j1, k0] += (1 - s) * c
            mesh[i0, j1, k1] += (1 - s) * d
        if right:
            mesh[i1, j0, k0] += s * a
            mesh[i1, j0, k1] += s * b
            mesh[i1, j1, k0] += s * c
            mesh[i1, j1, k1] += s * d


@kernel()
def add_interpolated(begin, end, positions, inverse, mesh, factor, out):
    """out[p] += factor · (the mesh at particle p), with the window of `deposit`."""
    n = mesh.shape[0]
    for p in range(begin, end):
        i0, i1, s = _cell(positions[p, 0], inverse, n)
        j0, j1, t = _cell(positions[p, 1], inverse, n)
        k0, k1, u = _cell(positions[p, 2], inverse, n)
        a, b = (1 - t) * (1 - u), (1 - t) * u
        c, d = t * (1 - u), t * u
        near = mesh[i0, j0, k0] * a + mesh[i0, j0, k1] * b
        near += mesh[i0, j1, k0] * c + mesh[i0, j1, k1] * d
        far = mesh[i1, j0, k0] * a + mesh[i1, j0, k1] * b
        far += mesh[i1, j1, k0] * c + mesh[i1, j1, k1] * d
        out[p] += factor * ((1 - s) * near + s * far)


@kernel()
def attraction(begin, end, modes, full, half, factors, half_factors, axis, out):
    """Modes of one component of -∇∇⁻²δ: i k_axis / k² times the modes of δ.

    Every mode is also multiplied by the factors of its three wavenumbers.
    """
    n, m = modes.shape[0], modes.shape[2]
    for i in range(begin, end):
        for j in range(n):
            plane = full[i] ** 2 + full[j] ** 2
            common = factors[i] * factors[j]
            for l in range(m):  # noqa: E741
                squared = plane + half[l] ** 2
                k = full[i] if axis == 0 else (full[j] if axis == 1 else half[l])
                g = common * half_factors[l] * k / squared if squared > 0 else 0.0
                mode = modes[i, j, l]
                out[i, j, l] = complex(-g * mode.imag, g * mode.real)
