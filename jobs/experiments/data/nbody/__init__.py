"""Simulated universes: 2LPT against a particle-mesh simulation, cut into cubes (004, 3.5.4)."""
