"""A particle-mesh simulation: gravity by fast Fourier transforms, leapfrog in the scale factor."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import fft

from bagbasis.core.arrays import Floats
from bagbasis.execution.pool import even_edges, run_kernel
from bagbasis.execution.worker_threads import worker_cores

from .cosmology import Growth
from .initial_conditions import wavenumbers, wrap
from .mesh_kernels import add_interpolated, attraction, deposit

SECONDS_PER_MODE = 2e-9
SECONDS_PER_PARTICLE = 2e-8


@dataclass(frozen=True)
class ParticleMesh:
    """Gravity in a periodic cube of n_mesh³ cells on fewer particles, n_particles³.

    Cloud-in-cell on the way in and on the way out, both windows divided out again; the exact
    Green's function and gradient in Fourier space. Modes beyond the Nyquist wavenumber of the
    undisturbed particles exert no force: there lie the images of their lattice, which pull on
    longer waves. Without this, the power of these grows by tens of percent too much between
    redshifts 49 and 19; a mesh as coarse as the particles has the images inside. Once particles
    have left the lattice they may be given as more of them than there are: forces are sharper.
    """

    n_mesh: int
    n_particles: int
    box_size: float

    def density(self, positions: Floats) -> NDArray[np.float32]:
        """Return the particles in each cell, shape (n_mesh, n_mesh, n_mesh)."""
        mesh = np.empty((self.n_mesh,) * 3, dtype=np.float32)
        # each slab reads all positions: as many as threads, and the cells sum the same
        slabs = np.linspace(0, self.n_mesh, min(worker_cores(), self.n_mesh) + 1).astype(int)
        run_kernel(deposit, slabs.tolist(), positions, self._inverse, mesh)
        return mesh

    def kick(self, positions: Floats, momenta: Floats, factor: float) -> None:
        """Add factor · F to the momenta, in place, with the force F = -∇∇⁻²δ in Mpc/h.

        As long as growth is linear, F is the displacement D1 ψ1.
        """
        workers = worker_cores()
        modes = fft.rfftn(self.density(positions), workers=workers)
        modes *= np.float32(self.n_mesh**3 / len(positions))
        full, half = wavenumbers(self.n_mesh, self.box_size)
        factors, half_factors = self._factors(full), self._factors(half)
        component = np.empty_like(modes)
        for axis in range(3):
            planes = even_edges(self.n_mesh, SECONDS_PER_MODE * component[0].size)
            arguments = modes, full, half, factors, half_factors, axis, component
            run_kernel(attraction, planes, *arguments)
            force = fft.irfftn(component, (self.n_mesh,) * 3, overwrite_x=True, workers=workers)
            edges = even_edges(len(positions), SECONDS_PER_PARTICLE)
            momentum = momenta[:, axis]
            run_kernel(add_interpolated, edges, positions, self._inverse, force, factor, momentum)

    def _factors(self, k: Floats) -> Floats:
        cycles = k * self.box_size / (2 * np.pi)
        window = np.sinc(cycles / self.n_mesh) ** 2
        return np.where(np.abs(cycles.round()) < self.n_particles / 2, window**-2, 0)

    @property
    def _inverse(self) -> float:
        return self.n_mesh / self.box_size


def leapfrog(
    mesh: ParticleMesh,
    positions: Floats,
    momenta: Floats,
    growth: Growth,
    scale_factors: Floats,
    late: tuple[float, ParticleMesh] | None = None,
) -> None:
    """Move the particles, in place, through the given scale factors: kick, drift, kick.

    Kicks and drifts are such that the linear growing mode comes out exactly whatever the steps
    (FastPM, Feng et al. 2016): with x = D1 ψ and p = G ψ, G = a³E dD1/da, a drift over
    [a0, a1] is p · ΔD1 / G(mid), and a kick over [a0, a1] is F · ΔG / D1(where F is taken).
    ``late`` has a scale factor, and the mesh of the forces from there on.
    """
    middles = (scale_factors[1:] + scale_factors[:-1]) / 2
    displacement = growth.factors(scale_factors)[0]
    drifts = np.diff(displacement) / growth.momenta(middles)[0]
    borders = np.concatenate([scale_factors[:1], middles, scale_factors[-1:]])
    kicks = np.diff(growth.momenta(borders)[0]) / displacement
    mesh.kick(positions, momenta, kicks[0])
    for drift, kick, a in zip(drifts, kicks[1:], scale_factors[1:], strict=True):
        positions += drift * momenta
        wrap(positions, mesh.box_size)
        (late[1] if late and a >= late[0] else mesh).kick(positions, momenta, kick)
