"""`NBody`: cubes of a 2LPT simulation, and of an accurate one from the same field."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from bagbasis import Bags, Responses
from bagbasis.core import Integer, None_, Real
from bagbasis.core.arrays import Floats
from bagbasis.core.errors import DataError, ParameterError
from bagbasis.data.bags.bags import concatenate, offsets_of
from bagbasis.datasets import register_dataset
from bagbasis.datasets.base import ResponseBlock, ResponseDataset, block_rng
from bagbasis.execution.worker_threads import kernel_threads

from .cosmology import A_EARLY, Cosmology
from .initial_conditions import displacements, lattice, linear_density, perturbed, wrap
from .particle_mesh import ParticleMesh, leapfrog

LATTICE_CELLS = 4  # at least, a side of a cube: with fewer, voids leave cubes empty


@register_dataset
@dataclass(frozen=True, kw_only=True)
class NBody(ResponseDataset):
    """Cubes of simulated universes; bag = particles by 2LPT, response = by particle-mesh gravity.

    Oliva 2018, 3.5.4, on simulations of our own. A box is one Gaussian random field, evolved
    twice with the same particles: by second order Lagrangian perturbation theory in one step, and
    by a particle-mesh leapfrog from ``initial_redshift`` on. It is cut into n_cubes³ cubes, by
    default of 16 Mpc/h a side, with 512 particles on average; each is a unit cube, with those that
    2LPT puts there as a bag and those of the leapfrog as its response. Box b depends on the seed
    and b alone. Targets are ``box``, the number b, and ``log_count_ratio``, of the response's
    particles over the bag's. A cube with fewer than ``min_points`` in either has no response.
    """

    name: ClassVar[str] = "nbody"

    n_boxes: int = 4
    n_particles: int = 64  # along a side of the box, even
    n_cubes: int = 8  # along a side of the box
    box_size: float = 128.0  # Mpc/h
    mesh_factor: int = 2  # mesh cells along a side for each particle
    # equal in the scale factor: with 20, 40 and 80 the final power spectrum is within 1.3, 0.3 and
    # 0.1 % of that with 160
    n_steps: int = 20
    redshift: float = 0.0  # at which both simulations end
    initial_redshift: float = 19.0
    # From here on waves down to half the lattice's least wavelength exert forces, on a mesh of one
    # more cell per particle. At 1.33 the lattice is gone; 2LPT explains less of denser halos.
    sharp_redshift: float | None = None
    min_points: int = 10
    # Each after the first shifts the periodic box by up to a cube and turns or mirrors it, at
    # random: more pairs of the same statistics from one simulation, though not independent ones.
    n_views: int = 1
    omega_m: float = Cosmology.omega_m
    omega_b: float = Cosmology.omega_b
    h: float = Cosmology.h
    n_s: float = Cosmology.n_s
    sigma8: float = Cosmology.sigma8

    def __post_init__(self) -> None:
        super().__post_init__()
        least = {"n_boxes": 1, "n_particles": LATTICE_CELLS, "mesh_factor": 2}
        for name, at_least in {**least, "n_steps": 1, "min_points": 1, "n_views": 1}.items():
            Integer(at_least).check(name, getattr(self, name))
        if self.n_particles % 2:
            raise ParameterError(f"n_particles is {self.n_particles}; expected an even number")
        Integer(1, self.n_particles // LATTICE_CELLS).check("n_cubes", self.n_cubes)
        Real(gt=0).check("box_size", self.box_size)
        Real(gt=0).check("initial_redshift", self.initial_redshift)
        if self.redshift != 0:
            Real(gt=0).check("redshift", self.redshift)
        if not 0 <= self.redshift < self.initial_redshift <= 1 / A_EARLY - 1:
            raise ParameterError(
                f"redshift is {self.redshift} and initial_redshift is {self.initial_redshift}; "
                f"expected 0 <= redshift < initial_redshift <= {1 / A_EARLY - 1:.0f}"
            )
        (Real(gt=0) | None_).check("sharp_redshift", self.sharp_redshift)
        _ = self.cosmology

    @property
    def cosmology(self) -> Cosmology:
        return Cosmology(self.omega_m, self.omega_b, self.h, self.n_s, self.sigma8)

    @property
    def n_dims(self) -> int:
        return 3

    @property
    def response_dims(self) -> int:
        return 3

    @property
    def target_names(self) -> tuple[str, ...]:
        return ("box", "log_count_ratio")

    @property
    def n_bags(self) -> int:
        return self.n_boxes * self.block_bags

    @property
    def block_bags(self) -> int:
        """Cubes in the views of a box: a block is a box."""
        return self.n_views * self.n_cubes**3

    def simulate(self, index: int) -> tuple[Floats, Floats]:
        """Return final positions in Mpc/h by 2LPT and by the leapfrog, shapes (n_particles³, 3)."""
        n, size, growth = self.n_particles, self.box_size, self.cosmology.growth
        begin, end = 1 / (1 + self.initial_redshift), 1 / (1 + self.redshift)
        with kernel_threads():
            density = linear_density(block_rng(self.seed, index), n, size, self.cosmology.power)
            fields = displacements(density, size)
            start = lattice(n, size)
            by_theory, _ = perturbed(start, fields, growth, end, size)
            positions, momenta = perturbed(start, fields, growth, begin, size)
            del density, fields, start
            mesh = ParticleMesh(self.mesh_factor * n, n, size)
            scale_factors = np.linspace(begin, end, self.n_steps + 1)
            late = None
            if self.sharp_redshift is not None:
                sharp = ParticleMesh((self.mesh_factor + 1) * n, 2 * n, size)
                late = 1 / (1 + self.sharp_redshift), sharp
            leapfrog(mesh, positions, momenta, growth, scale_factors, late)
        return by_theory, positions

    def response_block(self, index: int) -> ResponseBlock:
        """Return the cubes of a box; DataError where 2LPT leaves a cube without any particle."""
        simulations = self.simulate(index)
        views = [self._view(simulations, index, view) for view in range(self.n_views)]
        bags, targets, responses = zip(*views, strict=True)
        return ResponseBlock(concatenate(bags), np.concatenate(targets), concatenate(responses))

    def _view(self, simulations: tuple[Floats, ...], index: int, view: int) -> ResponseBlock:
        by_theory, by_gravity = (
            cut(self.seen(positions, index, view), self.box_size, self.n_cubes)
            for positions in simulations
        )
        sizes, answers = np.diff(by_theory[1]), np.diff(by_gravity[1])
        if not sizes.all():
            raise DataError(
                f"box {index}: cube {int(np.argmin(sizes))} holds no particle by 2LPT; take "
                f"fewer cubes than n_cubes = {self.n_cubes} or more particles"
            )
        labelled = np.minimum(sizes, answers) >= self.min_points
        lengths = np.where(labelled, answers, 0)
        ratios = np.full(len(sizes), np.nan)
        ratios[labelled] = np.log(answers[labelled] / sizes[labelled])
        return ResponseBlock(
            Bags.trusted(*by_theory),
            np.column_stack([np.full(len(sizes), float(index)), ratios]),
            Responses(by_gravity[0][np.repeat(labelled, answers)], offsets_of(lengths)),
        )

    def seen(self, positions: Floats, index: int, view: int) -> Floats:
        """Return the box turned or mirrored, and shifted, as a view has it; the first: as it is."""
        if view == 0:
            return positions
        rng = np.random.default_rng(np.random.SeedSequence(self.seed, spawn_key=(index, view)))
        axes, mirrored = rng.permutation(3), rng.integers(0, 2, 3).astype(bool)
        shift = rng.uniform(0, self.box_size / self.n_cubes, 3)
        turned = np.where(mirrored, self.box_size - positions[:, axes], positions[:, axes])
        turned += shift
        wrap(turned, self.box_size)
        return turned


def cut(
    positions: NDArray[np.float64], box_size: float, n_cubes: int
) -> tuple[NDArray[np.float32], NDArray[np.int64]]:
    """Return the particles of each of n_cubes³ cubes, with the cube as unit cube, and offsets.

    The last axis is the fastest; particles within a cube are in the order of the positions.
    """
    scaled = positions * (n_cubes / box_size)
    corners = np.minimum(scaled.astype(np.int64), n_cubes - 1)
    cube = np.ravel_multi_index(tuple(corners.T), (n_cubes,) * 3)
    order = np.argsort(cube, kind="stable")
    points = (scaled - corners)[order].astype(np.float32)
    return points, offsets_of(np.bincount(cube, minlength=n_cubes**3))
