"""Initial conditions and the particle-mesh simulation against theory and slow twins."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from scipy import fft

from bagbasis.jobs.experiments.data.nbody import (
    Cosmology,
    Displacements,
    ParticleMesh,
    displacements,
    lattice,
    leapfrog,
    linear_density,
    perturbed,
)
from bagbasis.jobs.experiments.data.nbody.initial_conditions import wrap
from tests.oracles import nbody as oracle
from tests.passes import use_cores

UNIVERSE = Cosmology()
GROWTH = UNIVERSE.growth
N, SIZE = 32, 64.0  # particles and Mpc/h a side


def random_field(seed: int, n: int = N, size: float = SIZE) -> np.ndarray:
    return linear_density(np.random.default_rng(seed), n, size, UNIVERSE.power)


def modes_of(contrast: np.ndarray) -> np.ndarray:
    return fft.rfftn(contrast)


def evolved(
    fields: Displacements, redshifts: tuple[float, float], n_steps: int
) -> tuple[np.ndarray, np.ndarray]:
    """Positions and momenta by the leapfrog, from 2LPT at the first redshift."""
    a = np.linspace(1 / (1 + redshifts[0]), 1 / (1 + redshifts[1]), n_steps + 1)
    positions, momenta = perturbed(lattice(N, SIZE), fields, GROWTH, a[0], SIZE)
    leapfrog(ParticleMesh(2 * N, N, SIZE), positions, momenta, GROWTH, a)
    return positions, momenta


@pytest.fixture(scope="module")
def fields() -> Displacements:
    return displacements(random_field(3), SIZE)


@pytest.fixture(scope="module")
def today(fields: Displacements) -> tuple[np.ndarray, np.ndarray]:
    """A universe at redshift zero."""
    return evolved(fields, (19, 0), 20)


def test_field_has_the_power_it_was_given() -> None:
    """In every shell the measured power is P(k), within five times its sampling error."""
    size = 200.0
    contrast = fft.irfftn(random_field(0, 64, size), (64, 64, 64))
    k, power, count = oracle.power_spectrum(contrast, size)
    error = np.sqrt(2 / count)  # a mode and its conjugate are one
    below_nyquist = slice(None, 28)
    ratio = (power / UNIVERSE.power(k))[below_nyquist]
    assert (np.abs(ratio - 1) < 5 * error[below_nyquist] + 0.02).all()
    assert abs(np.average(ratio, weights=count[below_nyquist]) - 1) < 0.02
    standardised = contrast.ravel() / contrast.std()
    assert abs(contrast.mean()) < 1e-12
    assert abs((standardised**3).mean()) < 0.1
    assert abs((standardised**4).mean() - 3) < 0.2


@pytest.mark.parametrize("numbers", [(3, 0, 0), (0, 1, 0), (0, 0, 5), (1, 1, 0), (2, -1, 3)])
def test_plane_wave_has_zeldovichs_displacement_alone(numbers: tuple[int, int, int]) -> None:
    """δ = A cos k·q is displaced by -A k / k² sin k·q, and second order vanishes."""
    q = lattice(N, SIZE)
    k = 2 * np.pi / SIZE * np.array(numbers)
    fields = displacements(modes_of(0.7 * np.cos(q @ k).reshape(N, N, N)), SIZE)
    expected = -0.7 * k / (k @ k) * np.sin(q @ k)[:, None]
    np.testing.assert_allclose(fields.first, expected, atol=1e-12)
    np.testing.assert_allclose(fields.second, 0, atol=1e-12)


def test_crossed_waves_have_the_second_order_of_their_product() -> None:
    """For δ = A cos k1 x + B cos k2 y, ψ2 = AB / (k1² + k2²) (k1 sin cos, k2 cos sin, 0)."""
    x, y, _ = lattice(N, SIZE).T
    k1, k2 = 2 * np.pi * 2 / SIZE, 2 * np.pi * 5 / SIZE
    contrast = 0.5 * np.cos(k1 * x) + 0.8 * np.cos(k2 * y)
    fields = displacements(modes_of(contrast.reshape(N, N, N)), SIZE)
    expected = np.zeros((N**3, 3))
    expected[:, 0] = k1 * np.sin(k1 * x) * np.cos(k2 * y)
    expected[:, 1] = k2 * np.cos(k1 * x) * np.sin(k2 * y)
    expected *= 0.4 / (k1**2 + k2**2)
    np.testing.assert_allclose(fields.second, expected, atol=1e-12)


@pytest.mark.parametrize("n", [4, 7, 16])
@pytest.mark.parametrize("n_points", [1, 100])
def test_deposit_is_cloud_in_cell(n: int, n_points: int) -> None:
    """Every cell has the mass of the slow twin, at edges and corners too, and none is lost."""
    rng = np.random.default_rng(n)
    positions = rng.uniform(0, SIZE, (n_points, 3))
    below = np.nextafter(SIZE, 0)
    edges = [[0, 0, 0], [below] * 3, [0, below, SIZE / n], [1e-300, SIZE / (2 * n), SIZE / 2]]
    positions = np.concatenate([positions, edges])
    mesh = ParticleMesh(n, n, SIZE).density(positions)
    np.testing.assert_allclose(mesh, oracle.cloud_in_cell(positions, n, SIZE), atol=2e-5)
    assert mesh.sum(dtype=float) == pytest.approx(len(positions), rel=1e-6)


def test_deposit_does_not_depend_on_threads(today: tuple[np.ndarray, np.ndarray]) -> None:
    """One slab or three, filled by as many threads, give the same bytes."""
    mesh = ParticleMesh(2 * N, N, SIZE)
    with use_cores(1):
        alone = mesh.density(today[0])
    with use_cores(3):
        assert mesh.density(today[0]).tobytes() == alone.tobytes()


@pytest.mark.parametrize("factor", [2, 3])
def test_kick_is_the_force_of_the_slow_twin(factor: int) -> None:
    """Random particles feel -∇∇⁻²δ of the modes that their lattice has."""
    rng = np.random.default_rng(factor)
    positions = rng.uniform(0, SIZE, (6**3, 3))
    momenta = rng.normal(size=positions.shape)
    expected = momenta + 0.5 * oracle.force(positions, 6 * factor, 6, SIZE)
    ParticleMesh(6 * factor, 6, SIZE).kick(positions, momenta, 0.5)
    np.testing.assert_allclose(momenta, expected, atol=1e-4)


@pytest.mark.long
@given(st.floats(-1e6, 1e6), st.sampled_from([1.0, 64.0, 100.1]))
@settings(max_examples=200)
def test_wrapped_positions_lie_in_the_box(x: float, size: float) -> None:
    """Any coordinate comes to [0, size), by whole boxes."""
    positions = np.array([[x, -1e-20, size], [size * round(x / size), -5e-324, -size]])
    wrap(positions, size)
    assert ((positions >= 0) & (positions < size)).all()
    boxes = (positions[0, 0] - x) / size
    assert boxes == pytest.approx(round(boxes), abs=1e-6)


@pytest.mark.parametrize("n_steps", [1, 4, 30])
def test_plane_wave_follows_zeldovich_until_it_breaks(n_steps: int) -> None:
    """A plane wave's Zel'dovich solution is exact until D A = 1: here from D A = .03 to .6."""
    q = lattice(N, SIZE)
    k = 2 * np.pi / SIZE
    amplitude = 0.6 / GROWTH.factors(0.5)[0]
    contrast = amplitude * np.cos(k * q[:, 1]).reshape(N, N, N)
    fields = displacements(modes_of(contrast), SIZE)
    positions, momenta = evolved(fields, (39, 1), n_steps)
    expected, speeds = perturbed(q, fields, GROWTH, 0.5, SIZE)
    moved = (positions - expected + SIZE / 2) % SIZE - SIZE / 2
    scale = 0.6 / k
    tolerance = 0.06 if n_steps == 1 else 0.03
    assert np.abs(moved).max() < tolerance * scale
    assert np.abs(momenta - speeds).max() < 4 * tolerance * np.abs(speeds).max()


@pytest.mark.long
def test_leapfrog_finds_the_second_order() -> None:
    """From early times on, what Zel'dovich lacks at redshift 9 is D2 ψ2, in size and in sign."""
    k = 2 * np.pi / SIZE
    x, y, _ = lattice(N, SIZE).T
    contrast = 3 * (np.cos(k * x) + np.cos(k * y)).reshape(N, N, N)
    waves = displacements(modes_of(contrast), SIZE)
    positions, _ = evolved(waves, (400, 9), 60)
    first, second = GROWTH.factors(0.1)
    rest = (positions - lattice(N, SIZE) - first * waves.first + SIZE / 2) % SIZE - SIZE / 2
    slope = (rest * waves.second).sum() / (waves.second**2).sum()
    assert slope == pytest.approx(second, rel=0.05)


@pytest.mark.long
def test_growing_mode_follows_linear_theory(fields: Displacements) -> None:
    """In every shell a weak field's power grows as D² within a percent, a universe's as by 2LPT."""
    growth = (GROWTH.factors(1 / 20)[0] / GROWTH.factors(1 / 50)[0]) ** 2
    weak = Displacements(0.2 * fields.first, 0.04 * fields.second)
    for field, tolerance in ((weak, 0.01), (fields, 0.03)):
        first = perturbed(lattice(N, SIZE), field, GROWTH, 1 / 50, SIZE)[0]
        theory = perturbed(lattice(N, SIZE), field, GROWTH, 1 / 20, SIZE)[0]
        last, _ = evolved(field, (49, 19), 6)
        before, after, expected = (contrast_power(x) for x in (first, last, theory))
        np.testing.assert_allclose(after / before / growth, 1, atol=tolerance)
        np.testing.assert_allclose(after / expected, 1, atol=0.01)


def contrast_power(positions: np.ndarray) -> np.ndarray:
    """Power of the cloud-in-cell density in the six longest shells of the lattice's sixteen."""
    mesh = ParticleMesh(2 * N, N, SIZE).density(positions)
    return oracle.power_spectrum(mesh / mesh.mean() - 1, SIZE)[1][:6]


def test_momentum_is_conserved(today: tuple[np.ndarray, np.ndarray]) -> None:
    """What one particle gains the others lose: the sum is zero to the rounding of the mesh."""
    momenta = today[1]
    assert np.abs(momenta.sum(axis=0)).max() < 1e-7 * np.abs(momenta).sum()
