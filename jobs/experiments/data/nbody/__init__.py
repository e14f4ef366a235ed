"""Simulated universes: 2LPT against a particle-mesh simulation, cut into cubes (004, 3.5.4)."""

from .cosmology import Cosmology, Growth
from .dataset import NBody, cut
from .initial_conditions import Displacements, displacements, lattice, linear_density, perturbed
from .particle_mesh import ParticleMesh, leapfrog

__all__ = [
    "Cosmology",
    "Displacements",
    "Growth",
    "NBody",
    "ParticleMesh",
    "cut",
    "displacements",
    "lattice",
    "leapfrog",
    "linear_density",
    "perturbed",
]
