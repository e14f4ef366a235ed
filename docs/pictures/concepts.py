"""Draws the pictures of the pages that explain ideas, from real runs, for light and dark pages.

``make docs`` calls `draw_all`; the pictures go to ``docs/pictures/made``.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Ellipse, FancyBboxPatch, Rectangle
from numpy.typing import NDArray
from sklearn.cluster import KMeans

from bagbasis import (
    DoubleBasisRegressor,
    MomentsEmbedding,
    ProjectionEmbedding,
    RandomFourierFeatures,
    cross_val_score,
)
from bagbasis.densities import estimate_densities

Floats = NDArray[np.float64]
MADE = Path(__file__).with_name("made")
BLUE, RED, GREEN = "#3b82f6", "#e0596b", "#2ca25f"


@dataclass(frozen=True)
class Theme:
    """Colours of text and of what stands in the background; names of files end in `suffix`."""

    suffix: str
    ink: str
    pale: str
    ground: str = "none"

    def settings(self) -> dict[str, object]:
        """Return Matplotlib's settings."""
        inks = ("text.color", "axes.edgecolor", "axes.labelcolor", "xtick.color", "ytick.color")
        return {
            **dict.fromkeys(inks, self.ink),
            "axes.facecolor": "none",
            "figure.facecolor": "none",
            "savefig.facecolor": self.ground,
            "legend.facecolor": "none",
            "legend.frameon": False,
            "axes.spines.top": False,
            "axes.spines.right": False,
            "svg.hashsalt": "bagbasis",
            "font.size": 10,
        }


THEMES = (Theme("", "#24292f", "#d0d7de"), Theme("-dark", "#dce3ea", "#4b5560"))


def _bare(axes: Axes, reach: float) -> None:
    axes.set(xlim=(-reach, reach), ylim=(-reach, reach), xticks=[], yticks=[], aspect="equal")
    axes.spines[:].set_visible(True)


def bag_to_number() -> Callable[[Figure, Theme], None]:
    """Draw two bags, their coefficients, and predictions by a model that has not seen them."""
    n, n_fitted, per_dim, reach = 1000, 800, 8, 8.0
    rng = np.random.default_rng(0)
    spread = rng.uniform(0.5, 3, n)
    bags = [rng.normal(0, s, (rng.integers(50, 200), 2)) for s in spread]
    embedding = ProjectionEmbedding(n_per_dim=per_dim, box=[(-reach, reach)] * 2)
    model = DoubleBasisRegressor(embedding).fit(bags[:n_fitted], spread[:n_fitted])
    unseen = np.arange(n_fitted, n)
    predicted = np.asarray(model.predict([bags[i] for i in unseen]))
    shown = [int(unseen[np.abs(spread[unseen] - s).argmin()]) for s in (0.8, 2.6)]
    coefficients = np.asarray(embedding.fit_transform([bags[i] for i in shown]))
    most = np.abs(coefficients).max()

    def draw(figure: Figure, theme: Theme) -> None:
        grid = figure.add_gridspec(2, 3, width_ratios=[1, 1, 2.1])
        for row, (i, colour) in enumerate(zip(shown, (BLUE, RED), strict=True)):
            points = figure.add_subplot(grid[row, 0])
            points.scatter(*bags[i].T, s=3, color=colour)
            _bare(points, reach)
            points.set_ylabel(f"{len(bags[i])} points", color=colour)
            image = figure.add_subplot(grid[row, 1])
            values = coefficients[row].reshape(per_dim, per_dim)
            image.imshow(values, cmap="RdBu", vmin=-most, vmax=most)
            image.set(xticks=[], yticks=[])
            if row == 0:
                points.set_title("1. two bags", fontsize=11)
                image.set_title("2. their embeddings", fontsize=11)
        number = figure.add_subplot(grid[:, 2])
        number.plot([0.4, 3.1], [0.4, 3.1], color=theme.pale, linewidth=0.8)
        number.scatter(spread[unseen], predicted, s=6, color=theme.pale)
        for i, colour in zip(shown, (BLUE, RED), strict=True):
            number.scatter(spread[i], predicted[i - n_fitted], s=60, color=colour, zorder=3)
        number.set(xlabel="true spread", ylabel="predicted spread", xlim=(0.4, 3.1))
        number.set(ylim=(0.4, 3.1), xticks=[1, 2, 3], yticks=[1, 2, 3])
        number.set_title("3. predictions for 200 new bags", fontsize=11)

    return draw


def same_mean() -> Callable[[Figure, Theme], None]:
    """Draw a cloud, a ring and two clusters of one mean, and what tells them apart."""
    n, per_dim, reach = 300, 8, 4.0
    rng = np.random.default_rng(0)
    angle = rng.uniform(0, 2 * np.pi, n)
    ring = np.column_stack([np.cos(angle), np.sin(angle)]) * rng.normal(2, 0.2, (n, 1))
    clusters = rng.normal(0, 0.5, (n, 2)) + np.where(np.arange(n) % 2, 1.5, -1.5)[:, None]
    bags = {"a cloud": rng.normal(0, 1.2, (n, 2)), "a ring": ring, "two clusters": clusters}
    bags = {name: points - points.mean(axis=0) for name, points in bags.items()}
    embedding = ProjectionEmbedding(n_per_dim=per_dim, box=[(-reach, reach)] * 2)
    coefficients = np.array(embedding.fit_transform([*bags.values()]))
    coefficients[:, 0] = 0  # of the constant function, the same for all densities
    most = np.abs(coefficients).max()

    def draw(figure: Figure, theme: Theme) -> None:
        axes = figure.subplots(2, len(bags))
        for column, (name, points) in enumerate(bags.items()):
            above, below = axes[:, column]
            above.scatter(*points.T, s=4, color=BLUE)
            above.plot(0, 0, "+", markersize=16, markeredgewidth=3, color=theme.ink)
            _bare(above, reach)
            above.set_title(f"{name}, mean (0, 0)")
            values = coefficients[column].reshape(per_dim, per_dim)
            below.imshow(values, cmap="RdBu", vmin=-most, vmax=most)
            below.set(xticks=[], yticks=[])
            below.set_title(f"its {per_dim * per_dim} coefficients")

    return draw


def unit() -> Callable[[Figure, Theme], None]:
    """Draw the error over the number of bags, for bags of few and of many points."""
    n_bags, sizes = (25, 50, 100, 200, 400, 800), (100, 1000)
    rng = np.random.default_rng(0)

    def bags(n: int, size: int) -> tuple[list[Floats], Floats]:
        spread = rng.uniform(0.5, 3, n)
        return [rng.normal(0, s, (size, 2)) for s in spread], spread

    errors: dict[int, list[float]] = {}
    for size in sizes:
        new, truth = bags(400, size)
        errors[size] = []
        for n in n_bags:
            model = DoubleBasisRegressor(
                MomentsEmbedding(), RandomFourierFeatures(n_features=256), alpha=0.3
            )
            squares = []
            for _ in range(5):
                data, labels = bags(n, size)
                model.fit(data, labels + rng.normal(0, 0.6, n))  # labels are noisy
                squares.append(np.mean((np.asarray(model.predict(new)) - truth) ** 2))
            errors[size].append(float(np.sqrt(np.mean(squares))))

    def draw(figure: Figure, theme: Theme) -> None:
        axes = figure.subplots()
        for size, colour in zip(sizes, (RED, BLUE), strict=True):
            axes.loglog(
                n_bags, errors[size], "o-", color=colour, label=f"{size} points in each bag"
            )
        axes.legend()
        axes.set(xlabel="number of bags", ylabel="error of prediction (RMSE)")
        axes.set_yticks([0.1, 0.2, 0.4], ["0.1", "0.2", "0.4"])
        axes.set_xticks(n_bags, [str(n) for n in n_bags])
        axes.minorticks_off()

    return draw


def leakage() -> Callable[[Figure, Theme], None]:
    """Draw R² by random folds, by folds of whole patients, and on new patients."""
    rng = np.random.default_rng(1)

    def visits(n_patients: int) -> tuple[list[Floats], Floats, NDArray[np.int64]]:
        age = rng.uniform(20, 80, n_patients)
        habits = rng.normal(0, 1, (n_patients, 2))  # what a patient is like, whatever the age
        patient = np.repeat(np.arange(n_patients), 8)
        bags = [
            rng.normal(habits[i] + rng.normal(0, 0.05, 2), 0.5 + age[i] / 80, (60, 2))
            for i in patient
        ]
        return bags, age[patient], patient

    bags, age, patient = visits(150)
    model = DoubleBasisRegressor(
        MomentsEmbedding(), RandomFourierFeatures(n_features=512), alpha=1e-4
    )
    scores = {
        "folds of visits\n(leakage)": np.mean(cross_val_score(model, bags, age)),
        "folds of whole\npatients": np.mean(cross_val_score(model, bags, age, groups=patient)),
        "truth: visits of\nnew patients": model.fit(bags, age).score(*visits(400)[:2]),
    }

    def draw(figure: Figure, theme: Theme) -> None:
        axes = figure.subplots()
        bars = axes.bar([*scores], [*scores.values()], color=(RED, BLUE, theme.pale), width=0.6)
        axes.bar_label(bars, fmt="{:.2f}")
        axes.set(ylabel="R² (1 is perfect)", ylim=(0, 1.1))

    return draw


def box() -> Callable[[Figure, Theme], None]:
    """Draw points of a bag, a box, and where points outside it go."""
    rng = np.random.default_rng(3)
    points = np.vstack([rng.normal(0, 1, (150, 2)), [[3.6, 1], [-0.5, -3.4], [3.2, -3.1]]])
    reach = 2.6
    inside = (np.abs(points) <= reach).all(axis=1)
    clipped = points[~inside].clip(-reach, reach)

    def draw(figure: Figure, theme: Theme) -> None:
        clip, drop = figure.subplots(1, 2)
        for axes, title in ((clip, 'out_of_box="clip"'), (drop, 'out_of_box="drop"')):
            axes.scatter(*points[inside].T, s=8, color=BLUE)
            corner = (-reach, -reach)
            axes.add_patch(
                Rectangle(corner, 2 * reach, 2 * reach, fill=False, ec=theme.ink, lw=1.5)
            )
            axes.scatter(*points[~inside].T, s=16, facecolors="none", edgecolors=RED)
            axes.set_title(title, family="monospace", fontsize=10)
            _bare(axes, 4)
        clip.scatter(*clipped.T, s=22, color=RED)
        for old, new in zip(points[~inside], clipped, strict=True):
            clip.annotate("", new, old, arrowprops={"arrowstyle": "->", "color": RED})
        drop.scatter(*points[~inside].T, s=50, marker="x", color=RED)

    return draw


def penalty() -> Callable[[Figure, Theme], None]:
    """Draw errors of fit, GCV, folds and new bags over the penalty."""
    rng = np.random.default_rng(0)

    def bags(n: int) -> tuple[list[Floats], Floats]:
        spread = rng.uniform(0.5, 3, n)
        sizes = np.where(rng.random(n) < 0.15, 3, 100)  # some bags are small, and noisy
        made = [rng.normal(0, s, (k, 2)) for s, k in zip(spread, sizes, strict=True)]
        return made, np.sin(2 * spread)

    data, new = bags(200), bags(1000)
    alphas = np.logspace(-5, 2, 15)
    embedding, features = MomentsEmbedding(), RandomFourierFeatures(n_features=256)
    variance = float(np.var(new[1]))
    errors: dict[str, list[float]] = {"the bags of the fit": [], "new bags": []}
    for alpha in alphas:
        model = DoubleBasisRegressor(embedding, features, alpha=float(alpha), precision="float64")
        model.fit(*data)
        for name, (made, truth) in zip(errors, (data, new), strict=True):
            error = np.mean((np.asarray(model.predict(made)) - truth) ** 2)
            errors[name].append(float(error) / variance)
    for name in ("gcv", "folds"):
        model = DoubleBasisRegressor(
            embedding, features, alpha=name, alphas=[*map(float, alphas)], precision="float64"
        ).fit(*data)
        order = np.argsort(model.alphas_)
        errors[name] = [float(x) for x in np.asarray(model.alpha_scores_)[order]]
    labels = {"gcv": "GCV's estimate", "folds": "estimate by folds"}

    def draw(figure: Figure, theme: Theme) -> None:
        axes = figure.subplots()
        styles = (("--", theme.pale), ("-", theme.ink), ("-", RED), ("-", BLUE))
        for (name, values), (line, colour) in zip(errors.items(), styles, strict=True):
            axes.loglog(alphas, values, line, color=colour, label=labels.get(name, name))
            least = int(np.argmin(values))
            if name != "the bags of the fit":
                axes.plot(alphas[least], values[least], "o", color=colour)
        axes.set(xlabel="penalty alpha", ylabel="squared error / variance", ylim=(None, 2))
        axes.legend(loc="lower right", fontsize=9)

    return draw


def intervals() -> Callable[[Figure, Theme], None]:
    """Draw intervals of 40 new bags, and those that miss the label."""
    rng = np.random.default_rng(2)

    def bags(n: int) -> tuple[list[Floats], Floats]:
        spread = rng.uniform(0.5, 3, n)
        return [rng.normal(0, s, (rng.integers(5, 60), 2)) for s in spread], spread

    model = DoubleBasisRegressor(
        MomentsEmbedding(), RandomFourierFeatures(n_features=256), alpha=1e-2
    )
    model.fit(*(data := bags(500))).conformalize(*data, cv=10)
    new, truth = bags(2000)
    low, high = (np.asarray(side) for side in model.predict_interval(new, coverage=0.9))
    covered = (low <= truth) & (truth <= high)
    shown = np.argsort(truth[:40])

    def draw(figure: Figure, theme: Theme) -> None:
        axes = figure.subplots()
        for place, i in enumerate(shown):
            axes.plot([place, place], [low[i], high[i]], lw=4, color=BLUE if covered[i] else RED)
        axes.plot(truth[shown], "o", ms=4, color=theme.ink, label="label")
        axes.set(xlabel="40 new bags, by label", ylabel="spread", xticks=[])
        axes.set_title(f"{covered.mean():.1%} of 2,000 new labels lie within", fontsize=10)
        axes.legend(loc="upper left")

    return draw


def determinism() -> Callable[[Figure, Theme], None]:
    """Draw blocks summed in one order, by one worker and by three."""

    def draw(figure: Figure, theme: Theme) -> None:
        colours = {"one worker": [BLUE] * 8, "three workers": [BLUE, RED, GREEN, GREEN] * 2}
        for axes, (title, shades) in zip(figure.subplots(1, 2), colours.items(), strict=True):
            places = [(float(i), 0.0) for i in range(8)]
            for (x, y), shade in zip(places, shades, strict=True):
                axes.add_patch(Rectangle((x - 0.35, y - 0.25), 0.7, 0.5, color=shade))
            height = 0.0
            while len(places) > 1:
                height += 1
                above = []
                for (a, b), (c, _) in zip(places[::2], places[1::2], strict=True):
                    middle = (a + c) / 2
                    for x in (a, c):
                        line = ([x, middle], [b + 0.25, height - 0.22])
                        axes.plot(*line, color=theme.pale, zorder=0)
                    axes.text(middle, height, "+", ha="center", va="center", fontsize=13)
                    above.append((middle, height))
                places = above
            axes.set(xlim=(-0.7, 7.7), ylim=(-0.9, 3.5), title=title)
            axes.text(3.5, -0.75, "blocks of bags", ha="center")
            axes.axis("off")

    return draw


def two_bases() -> Callable[[Figure, Theme], None]:
    """Draw the kernel between bags, and its approximations by random features."""
    rng = np.random.default_rng(0)
    spread = np.sort(rng.uniform(0.5, 3, 60))
    bags = [rng.normal(0, s, (200, 2)) for s in spread]
    vectors = np.asarray(MomentsEmbedding().fit_transform(bags))
    distances = ((vectors[:, None] - vectors[None]) ** 2).sum(axis=2)
    scale = float(np.sqrt(np.median(distances[distances > 0])))
    exact = np.exp(-distances / (2 * scale**2))
    grams = {"exact kernel of 60 bags": exact}
    for n_features in (64, 1024):
        fitted = RandomFourierFeatures(n_features=n_features, scale=scale).fit(vectors)
        z = np.asarray(fitted.transform(vectors))
        error = np.abs(z @ z.T - exact).mean()
        grams[f"{n_features:,} random features:\nmean difference {error:.3f}"] = z @ z.T

    def draw(figure: Figure, theme: Theme) -> None:
        for axes, (title, gram) in zip(figure.subplots(1, 3), grams.items(), strict=True):
            axes.imshow(gram, cmap="Blues", vmin=0, vmax=1)
            axes.set(xticks=[], yticks=[])
            axes.set_title(title, fontsize=10)

    return draw


def _bag() -> Floats:
    rng = np.random.default_rng(5)
    left, right = rng.normal((-1.5, -0.6), 0.7, (90, 2)), rng.normal((1.6, 0.9), 0.45, (60, 2))
    return np.vstack([left, right, [[0.2, 3.3]]])


def _on_a_bag(paint: Callable[[Axes, Floats, Theme], None]) -> Callable[[Figure, Theme], None]:
    def draw(figure: Figure, theme: Theme) -> None:
        axes = figure.subplots()
        points = _bag()
        _bare(axes, 4)
        axes.scatter(*points.T, s=5, color=BLUE, alpha=0.7)
        paint(axes, points, theme)

    return draw


def moments() -> Callable[[Figure, Theme], None]:
    """Draw the mean and covariance of a bag."""

    def paint(axes: Axes, points: Floats, theme: Theme) -> None:
        values, directions = np.linalg.eigh(np.cov(points.T))
        angle = float(np.degrees(np.arctan2(directions[1, 1], directions[0, 1])))
        width, height = 4 * np.sqrt(values[::-1])
        middle = points.mean(axis=0)
        axes.add_patch(Ellipse(middle, width, height, angle=angle, fill=False, ec=RED, lw=2))
        axes.plot(*middle, "+", color=RED, ms=14, mew=3)

    return _on_a_bag(paint)


def mean_map() -> Callable[[Figure, Theme], None]:
    """Draw the mean of the kernels at a bag's points."""

    def paint(axes: Axes, points: Floats, theme: Theme) -> None:
        line = np.linspace(-4, 4, 90)
        grid = np.stack(np.meshgrid(line, line), axis=-1)
        distances = ((grid[:, :, None] - points) ** 2).sum(axis=-1)
        axes.contour(line, line, np.exp(-distances / 0.7).mean(axis=2), 7, cmap="Reds_r")

    return _on_a_bag(paint)


def densities() -> Callable[[Figure, Theme], None]:
    """Draw the density of a bag on a cosine basis."""

    def paint(axes: Axes, points: Floats, theme: Theme) -> None:
        density = estimate_densities([points], smoothness=8.0, box=[(-4, 4)] * 2)
        values = np.asarray(density.on_grid(60)).reshape(60, 60)
        extent = (-4, 4, -4, 4)
        axes.imshow(values.T.clip(0), origin="lower", extent=extent, cmap="Reds", alpha=0.75)

    return _on_a_bag(paint)


def sliced() -> Callable[[Figure, Theme], None]:
    """Draw quantiles of a bag along a direction."""

    def paint(axes: Axes, points: Floats, theme: Theme) -> None:
        direction = np.array([np.cos(0.5), np.sin(0.5)])
        axes.axline((0, -2.4), slope=np.tan(0.5), color=theme.ink, lw=1)
        across = np.array([-direction[1], direction[0]]) * -2.1
        for quantile in np.quantile(points @ direction, np.linspace(0.05, 0.95, 10)):
            axes.plot(*(quantile * direction + across), "o", color=RED, ms=6)

    return _on_a_bag(paint)


def extremes() -> Callable[[Figure, Theme], None]:
    """Draw the outermost points of a bag along some directions."""

    def paint(axes: Axes, points: Floats, theme: Theme) -> None:
        for angle in np.linspace(0, 2 * np.pi, 8, endpoint=False):
            direction = np.array([np.cos(angle), np.sin(angle)])
            outermost = points[np.argmax(points @ direction)]
            axes.annotate(
                "",
                outermost,
                outermost + direction * 0.9,
                arrowprops={"arrowstyle": "->", "color": RED},
            )
            axes.plot(*outermost, "o", color=RED, ms=6)

    return _on_a_bag(paint)


def words() -> Callable[[Figure, Theme], None]:
    """Draw a bag's points, counted at their nearest of some places."""

    def paint(axes: Axes, points: Floats, theme: Theme) -> None:
        fitted = KMeans(7, n_init=1, random_state=0).fit(points)
        counts = np.bincount(fitted.labels_)
        for place, count in zip(fitted.cluster_centers_, counts, strict=True):
            axes.plot(*place, "o", color=RED, ms=15)
            axes.text(*place, str(count), color="white", ha="center", va="center", fontsize=8)

    return _on_a_bag(paint)


def size() -> Callable[[Figure, Theme], None]:
    """Draw the number of points."""

    def paint(axes: Axes, points: Floats, theme: Theme) -> None:
        text = f"n = {len(points)}"
        axes.text(0, -3.2, text, color=RED, ha="center", fontsize=20, weight="bold")

    return _on_a_bag(paint)


QUESTIONS = (
    ("One point decides the label?", "extremes, in a union"),
    ("The number of points matters?", "size, in a union"),
    ("More than about ten coordinates?", "mean map, bag of words"),
    ("Few points in a bag, or sharp shapes?", "sliced Wasserstein"),
    ("Means and spreads say all?", "moments"),
)


def tree() -> Callable[[Figure, Theme], None]:
    """Draw questions, and the embedding that each answer leads to."""

    def draw(figure: Figure, theme: Theme) -> None:
        axes = figure.subplots()

        def box_of(x: float, y: float, text: str, edge: str, width: float) -> None:
            shape = FancyBboxPatch(
                (x, y), width, 0.52, boxstyle="round,pad=0.06", fc="none", ec=edge, lw=1.5
            )
            axes.add_patch(shape)
            axes.text(x + width / 2, y + 0.26, text, ha="center", va="center", fontsize=9.5)

        arrow = {"arrowstyle": "->", "color": theme.ink}
        for row, (question, answer) in enumerate(QUESTIONS):
            y = -row * 1.0
            box_of(0, y, question, theme.ink, 3.9)
            box_of(5.1, y, answer, BLUE, 2.8)
            axes.annotate("", (5.0, y + 0.26), (4.0, y + 0.26), arrowprops=arrow)
            axes.text(4.5, y + 0.34, "yes", ha="center", va="bottom", fontsize=9)
            axes.annotate("", (1.95, y - 0.41), (1.95, y - 0.06), arrowprops=arrow)
            axes.text(2.05, y - 0.25, "no", va="center", fontsize=9)
        box_of(0, -len(QUESTIONS), "densities: projection, or js", BLUE, 3.9)
        axes.set(xlim=(-0.2, 8.1), ylim=(-len(QUESTIONS) - 0.2, 0.8))
        axes.axis("off")

    return draw


WIDE, SINGLE, SMALL = (8.0, 3.0), (6.0, 3.4), (2.3, 2.3)
PICTURES = {
    bag_to_number: (9.0, 3.6),
    same_mean: (9.0, 5.4),
    unit: SINGLE,
    leakage: SINGLE,
    box: (7.0, 3.4),
    penalty: SINGLE,
    intervals: SINGLE,
    determinism: WIDE,
    two_bases: (8.0, 3.4),
    tree: (7.0, 4.6),
    **dict.fromkeys((moments, mean_map, densities, sliced, extremes, words, size), SMALL),
}


README = Path(__file__).with_name("bag_to_number.svg")


def _save(
    prepared: Callable[[Figure, Theme], None], size: tuple[float, float], theme: Theme, to: Path
) -> None:
    with mpl.rc_context(theme.settings()):
        figure = Figure(figsize=size, layout="constrained")
        prepared(figure, theme)
        figure.savefig(to, metadata={"Date": None})


def draw_all(folder: Path = MADE) -> None:
    """Draw each picture for light and for dark pages, unless it is newer than this file."""
    folder.mkdir(exist_ok=True)
    newest = Path(__file__).stat().st_mtime
    for prepare, figsize in PICTURES.items():
        files = {theme: folder / f"{prepare.__name__}{theme.suffix}.svg" for theme in THEMES}
        if all(file.exists() and file.stat().st_mtime > newest for file in files.values()):
            continue
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of penalties at the edge of a short grid
            prepared = prepare()
        for theme, file in files.items():
            _save(prepared, figsize, theme, file)


if __name__ == "__main__":  # also the picture of the README, which is kept in the repository
    draw_all()
    on_white = replace(THEMES[0], ground="white")
    _save(bag_to_number(), PICTURES[bag_to_number], on_white, README)
