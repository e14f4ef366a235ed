"""
The mass of generated galaxy clusters
=====================================

For people who have one summary per bag today, and want to know whether the whole distribution is
better. A galaxy cluster is a bag of galaxies. Heavy clusters are wide, and their galaxies are fast,
so positions and velocities determine the mass. But other galaxies lie in the same line of sight.
Clusters are generated here, so that the truth is known.
"""

# %%
# Each bag has 20 to 200 galaxies: distance from the centre, and velocity along the line of sight.
# A fifth of them do not belong to the cluster.

import matplotlib.pyplot as plt
import numpy as np

from bagbasis import Bags, DoubleBasisRegressor, HDDEmbedding, ProjectionEmbedding, cross_val_score

rng = np.random.default_rng(0)
log_mass = rng.uniform(14, 15, 600)


def cluster(log_mass):
    n = rng.integers(20, 200)
    scale = 10 ** ((log_mass - 14) / 3)
    distance, velocity = rng.gamma(2, 0.3 * scale, n), rng.normal(0, 500 * scale, n)
    others = rng.random(n) < 0.2
    distance[others] = 3 * np.sqrt(rng.random(others.sum()))
    velocity[others] = rng.uniform(-3000, 3000, others.sum())
    return np.stack([distance, velocity], axis=1)


bags = Bags.from_list([cluster(mass) for mass in log_mass])
bags

# %%
# Astronomers use the standard deviation of the velocities, one number per bag, as the baseline.
# Embeddings see the whole distribution:

baseline = np.log10([bag[:, 1].std() for bag in bags])
residuals = log_mass - np.polyval(np.polyfit(baseline, log_mass, 1), baseline)
print(f"velocity dispersion: R² {1 - residuals.var() / log_mass.var():.2f}")

embeddings = {
    "cosines": ProjectionEmbedding(n_per_dim="auto"),
    "Jensen-Shannon": HDDEmbedding("js"),
}
for name, embedding in embeddings.items():
    scores = cross_val_score(DoubleBasisRegressor(embedding), bags, log_mass)
    print(f"{name}: R² {scores.mean():.2f}")

# %%
# With a holdout, the model can give prediction intervals, here ones that contain 90 % of new
# clusters.

model = DoubleBasisRegressor(HDDEmbedding("js")).fit(bags, log_mass, holdout=0.3)
new_mass = rng.uniform(14, 15, 60)
new = Bags.from_list([cluster(mass) for mass in new_mass])
lower, upper = model.predict_interval(new, coverage=0.9)
print(f"{np.mean((lower <= new_mass) & (new_mass <= upper)):.0%} of 60 new clusters lie within")

middle = (lower + upper) / 2
plt.errorbar(new_mass, middle, yerr=(upper - lower) / 2, fmt="o", markersize=3, linewidth=0.5)
plt.axline((14.5, 14.5), slope=1, color="grey", linewidth=1)
plt.xlabel("log mass")
plt.ylabel("interval")
plt.show()
