"""`Classes`: the outcome of a model that learns classes, one column for each."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray
from typing_extensions import override

from ...core.errors import DataError, ModelError, ParameterError, shown
from ...core.saved import read_saved
from ...data.bags.bags import Bags, as_bags
from ...data.labelled.alignment import aligned
from ...data.labelled.frame_columns import from_frame
from ...data.labelled.inputs import BagsLike, LabelsLike, as_targets, label_names, with_targets
from ...data.labelled.labelled import LabelledBags, take_range
from ...data.labelled.labels import Targets
from ...data.store.plan import Range
from ...data.store.schema import FILLS
from ...data.store.store import BagStore
from ...data.store.targets import warn_of_alike_names
from ...embeddings.base import Embedding
from .base import FLOAT, Layout, Outcome, Prediction, Target
from .class_probabilities import ProbabilityMap, positive_shares
from .details import (
    MIN_PROBABILITY,
    SAMPLED_CLASSES,
    ClassDetails,
    Found,
    Judged,
    Rows,
)
from .training_labels import (
    are_booleans,
    as_integers,
    class_codes,
    distinct_labels,
    n_targets_of,
    refuse_numbers,
    warn_of_many_classes,
)

if TYPE_CHECKING:
    from ..errors import Errors

PROBABILITIES = "probabilities"  # the key of the map of a saved model


@dataclass(frozen=True)
class Classes(Outcome):
    """One column per class.

    Attributes
    ----------
    classes : tuple of bool, int, float or str
        Sorted classes. Labels of text are encoded by their positions, other labels by themselves.
    class_names : tuple of str
        Names of the classes in the fitted store; empty if they have no names. Predictions use the
        names instead of the numbers, which may differ between stores.
    probability_map : ProbabilityMap, optional
        Map from scores to probabilities. None, in models of earlier versions: the positive parts of
        the scores are divided by their sum.
    """

    classes: tuple[Any, ...]
    names: tuple[str, ...] = ()
    class_names: tuple[str, ...] = ()
    probability_map: ProbabilityMap | None = field(default=None, compare=False)

    key: ClassVar[str] = "classes"
    has_heads: ClassVar[bool] = True
    has_sets: ClassVar[bool] = True
    kind: ClassVar[str] = "classes"
    single: ClassVar[bool] = False
    measure: ClassVar[str] = "error rate"
    score_measure: ClassVar[str] = "accuracy"

    @classmethod
    @override
    def from_labels(
        cls,
        X: BagsLike | LabelledBags,
        labels: LabelsLike,
        target: Target,
        bags: Range | None,
        response_embedding: Embedding | None,
    ) -> tuple[LabelledBags, Self]:
        X, labels, target, *_ = from_frame(X, labels, target)
        names, has_booleans, own = None, False, label_names(labels)
        if labels is not None:
            X = X if isinstance(X, (BagStore, LabelledBags)) else as_bags(X)
            if not isinstance(X, LabelledBags):
                labels = aligned(labels, X, "y")
                own = label_names(labels)
            values = as_targets(labels)
            has_booleans = are_booleans(values)
            names, labels = class_codes(values)
        source, _ = with_targets(X, labels, target)
        if n_targets_of(source) != 1:
            raise DataError("a classifier has one target; name it with target=")
        if own:
            assert isinstance(source.labels, Targets)
            source = replace(source, labels=replace(source.labels, names=own))
        source = take_range(source, bags)
        codes, n_labelled = distinct_labels(source)
        refuse_numbers(source, codes)
        classes = codes == 1 if has_booleans else as_integers(codes) if names is None else names
        stored = source.class_names.get(source.target_names[0]) if source.target_names else None
        named = () if stored is None else tuple(stored[int(code)] for code in codes)
        texts = tuple(map(str, names)) if names is not None else named
        what = repr(source.target_names[0]) if named else "y"
        warn_of_alike_names(texts, what)
        warn_of_many_classes(named or classes.tolist(), n_labelled, what)
        return source, cls(tuple(classes.tolist()), source.target_names, named)

    @override
    def named(self, names: Sequence[str]) -> Self:
        return replace(self, names=tuple(names))

    @property
    def n_targets(self) -> int:
        """The number of classes."""
        return len(self.classes)

    @property
    @override
    def n_independent(self) -> int:
        # the indicators add up to 1
        return max(1, self.n_targets - 1)

    @property
    @override
    def n_labels(self) -> int:
        return 1

    @override
    def call(self, j: int) -> str:
        return f"class {self.columns_in_words[j]!r}"

    @property
    def values(self) -> NDArray[Any]:
        """The classes in the form of predictions, shape (n_classes,)."""
        return np.array(self.columns_in_words)

    @property
    def codes(self) -> Rows:
        """The classes in the form of labels, shape (n_classes,)."""
        if isinstance(self.classes[0], str):
            return np.arange(len(self.classes), dtype=np.float64)
        return np.array(self.classes, dtype=np.float64)

    def codes_of(self, values: Sequence[Any]) -> Rows:
        """Return predicted classes in the form of labels; -1 for unknown classes."""
        known = dict(zip(self.values.tolist(), self.codes.tolist(), strict=True))
        return np.array([known.get(value, -1.0) for value in values])

    @override
    def take_labels(self, store: BagStore) -> LabelledBags:
        # a store with other numbers for classes is read with ours
        bags = super().take_labels(store)
        theirs = store.meta.class_names.get(self.names[0])
        names = self.class_names or self.names_by_code
        ours = f"the classes {shown(list(names))}" if names else "numbers"
        if theirs is None and (self.class_names or isinstance(self.classes[0], str)):
            raise self.other_labels(store, self.names[0], "numbers", ours)
        if theirs is None:
            return bags
        if set(theirs).isdisjoint(names):
            of_store = f"the classes {shown(list(theirs))}"
            raise self.other_labels(store, self.names[0], of_store, ours)
        by_number = dict(zip(self.codes.astype(int).tolist(), names, strict=True))
        if by_number.items() <= dict(enumerate(theirs)).items():
            return bags
        new = [name for name in theirs if name not in names]
        by_code = [by_number.get(code, "") for code in range(max(by_number) + 1)] + new
        return replace(bags, labels=Targets(self.names, class_names=tuple(by_code)))

    @override
    def label_again(self, bags: Bags | BagStore, labels: LabelsLike) -> LabelledBags:
        # text is encoded by its positions among our classes
        if labels is not None:
            names, codes = class_codes(as_targets(aligned(labels, bags, "y")))
            self._check_kind(names, codes)
            if names is not None:
                new_codes, is_known = self.codes_of(names.tolist()), ~np.isnan(codes)
                codes[is_known] = new_codes[codes[is_known].astype(int)]
            labels = codes
        return super().label_again(bags, labels)

    def _check_kind(self, names: NDArray[Any] | None, codes: NDArray[Any]) -> None:
        """Raise DataError for numbers as labels of text classes, or texts as labels of numbers.

        The numbers would be taken for positions of classes, and the texts for unknown classes.
        """
        classes = f"the model was fitted to the classes {shown(self.values.tolist())}"
        advice = "give y as the model's classes are written"
        are_texts = self.values.dtype.kind == "U"
        known = codes[~np.isnan(codes.astype(np.float64))]
        if names is None and isinstance(self.classes[0], str) and len(known):
            raise DataError(f"y has numbers, such as {shown(known[0].item())}; {classes}: {advice}")
        if names is not None and not are_texts and len(names):
            raise DataError(f"y has texts, such as {shown(str(names[0]))}; {classes}: {advice}")
        has_fractions = names is None and (known != np.round(known)).any()
        if has_fractions and (self.codes == np.round(self.codes)).all():
            fraction = known[known != np.round(known)][0].item()
            raise DataError(f"y has {shown(fraction)}, which is not whole; {classes}: {advice}")

    @property
    def names_by_code(self) -> tuple[str, ...]:
        """Names of the classes 0, 1, … of labels in memory; empty for numbers."""
        is_named = isinstance(self.classes[0], (str, bool))
        return tuple(map(str, self.classes)) if is_named else ()

    @override
    def encode(self, labels: NDArray[Any]) -> tuple[Rows, int]:
        # a label of no class has a row of zeros
        return (labels == self.codes).astype(np.float64), 0

    @override
    def find_new(self, blocks: Iterable[NDArray[Any]]) -> Rows:
        labels = np.empty(0)
        for block in blocks:
            labels = np.union1d(labels, block)
        return np.setdiff1d(labels, self.codes)

    @override
    def predict(self, scores: Rows) -> Prediction:
        return Prediction(self.values[scores.argmax(axis=1)], self.probabilities(scores))

    @override
    def stored(self) -> dict[str, Layout]:
        probabilities = Layout((self.n_targets,), FLOAT)
        return {"predictions": Layout((), self.values.dtype), "probabilities": probabilities}

    @property
    def _kinds_without_gap(self) -> str:
        """Kinds of predictions that have no value for a missing bag."""
        return "bi" if FILLS["i"] in self.classes else "b"

    @override
    def layout(self, array: str, X: BagsLike) -> Layout:
        layout = super().layout(array, X)
        if isinstance(X, BagStore) and X.n_removed and layout.dtype.kind in self._kinds_without_gap:
            raise ModelError(
                f"{X.url}: {X.n_removed} bags were removed, and the classes "
                f"{shown(self.values.tolist())} leave no value for them; take the probabilities of "
                "classes (predict_proba), which are NaN there, or write_predictions, without ids "
                "there"
            )
        return layout

    @override
    def columns(self, prediction: Prediction) -> dict[str, NDArray[Any]]:
        assert prediction.probabilities is not None
        columns = {self.names[0] if self.names else "prediction": prediction.values}
        for j, name in enumerate(self.columns_in_words):
            if f"p_{name}" in columns:
                raise ParameterError(
                    f"target {self.names[0]!r} has the name of the column with the probabilities "
                    f"of class {name!r}; rename one of them"
                )
            columns[f"p_{name}"] = prediction.probabilities[:, j]
        return columns

    @property
    @override
    def columns_in_words(self) -> Sequence[object]:
        return self.class_names or self.classes

    def probabilities(self, scores: Rows) -> Rows:
        """Return probabilities, shape (n, n_classes), from the regression's raw rows."""
        return (self.probability_map or positive_shares)(scores)

    @override
    def nonconformity(self, scores: Rows, targets: Rows) -> Rows:
        # 1 less the probability of the true class; 1 for a class of no probability
        of_true: Rows = (self.probabilities(scores) * targets).sum(axis=1, keepdims=True)
        return 1.0 - of_true

    def losses(self, scores: Rows, targets: Rows) -> Rows:
        """Return 1 for a wrong class and 0 for the right one, shape (n, 1)."""
        return 1.0 - np.take_along_axis(targets, scores.argmax(axis=1)[:, None], axis=1)

    @override
    def references(self, targets: Rows, weights: Rows, mean_targets: Rows | None) -> Rows:
        # 1, so that a score is the fraction that is right
        return np.ones((len(targets), 1))

    @override
    def sum_references(self, errors: Errors) -> Rows:
        return np.array([errors.weight], dtype=np.float64)

    @override
    def details(self, judged: Judged) -> Found:
        # of each bag the class, its share, the Brier score, the weight, and all probabilities
        scores, targets, codes, w = judged.scores, judged.targets, self.codes, judged.weights
        true = judged.batch.labels[:, 0].astype(np.float64)
        predicted = codes[scores.argmax(axis=1)]
        shares = self.probabilities(scores)
        unknown = 1 - targets.sum(axis=1)  # of no class of ours
        brier = ((shares - targets) ** 2).sum(axis=1) + unknown
        of_true = np.clip((shares * targets).sum(axis=1), MIN_PROBABILITY, 1)
        log_losses = np.where(unknown > 0, np.inf, -np.log(of_true))
        weights = np.ones(len(true)) if w is None else w
        log_loss = float((weights * log_losses)[weights > 0].sum())
        names = judged.names[0], judged.class_names
        counts = ClassDetails.count(*names, codes, true, predicted, w, log_loss)
        remembered = shares if len(codes) <= SAMPLED_CLASSES else shares[:, :0]
        columns = [predicted, shares.max(axis=1), brier, weights, remembered]
        return Found(counts, true[:, None], np.column_stack(columns))

    @override
    def constant_error(self, mean: Rows, variances: Rows) -> float:
        # of the most frequent class
        return 1.0 - float(mean.max())

    @override
    def describe(self) -> dict[str, Any]:
        return {self.key: list(self.columns_in_words)}

    @override
    def identify(self) -> dict[str, Any]:
        return {self.key: list(self.classes)}

    @override
    def to_dict(self) -> dict[str, Any]:
        more: dict[str, Any] = {}
        if self.class_names:
            more["class_names"] = list(self.class_names)
        if self.probability_map is not None:
            more[PROBABILITIES] = self.probability_map.to_dict()
        return {**self.identify(), **more}

    @classmethod
    @override
    def from_dict(cls, values: Mapping[str, Any], names: tuple[str, ...], k: int) -> Self:
        # models saved by earlier versions have no class names
        classes, class_names = values[cls.key], values.get("class_names", [])
        if len(classes) != k or len(class_names) not in (0, k):
            raise ValueError(f"{k} rows of coefficients, but classes {classes} {class_names}")
        probabilities = values.get(PROBABILITIES)
        return cls(
            tuple(np.array(classes).tolist()),
            names,
            tuple(map(str, class_names)),
            None if probabilities is None else read_saved(ProbabilityMap, probabilities),
        )
