"""Contrast probes as a scikit-learn classifier: fit, predict_proba, score; clone and grid search;
save, load.

states = harvest(load_model("smollm2"), pairs)                       # or arrays of your own
probe = ContrastProbe(kind="unsupervised").fit(states[:200])          # labels are the pairs' own
probe.score(states[200:]), probe.predict_proba(states[200:])
probe.save("p.safetensors")
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from importlib.metadata import version
from numbers import Integral, Real
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Self, get_args

import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.multiclass import check_classification_targets, type_of_target
from sklearn.utils.validation import check_array, check_is_fitted, column_or_1d, validate_data

from selfprobe.probes.fit import (
    LABELLED,
    FloatArray,
    Kind,
    Orders,
    Supervision,
    best_layer,
    calibrated,
    check_labels,
    learn,
    parse_orientation,
)
from selfprobe.stats.estimate import accuracy

if TYPE_CHECKING:
    from selfprobe.probes.probe_file import Card

Floats = npt.NDArray[np.float64]
LAYOUTS = {
    2: "[pair, d_model] (differences of the sides)",
    4: "[pair, order, side, d_model]",
    5: "[pair, layer, order, side, d_model]",
}


@dataclass(frozen=True)
class Layers:
    """States of some pairs, read layer by layer."""

    numbers: Sequence[int]
    """Numbers of the layers, from 0; a single layer answers to any number."""
    width: int
    """Width of a state (d_model)."""
    read: Callable[[int], FloatArray]
    """Function from a layer's number to its states [pair, order, side, d_model]."""
    differences: bool = False
    """Whether the layout is [pair, d_model], which has one order."""

    def number(self, layer: int | str) -> int:
        """The layer that `layer` means: a number or "last"."""
        if isinstance(layer, str) or (len(self.numbers) == 1 and layer < 0):
            return self.numbers[-1]
        if len(self.numbers) > 1 and layer not in self.numbers:
            raise ValueError(
                f"layer must be one of {', '.join(map(str, self.numbers))}, got {layer}"
            )
        return int(layer)


def _layers_of_array(x: npt.NDArray[np.floating[Any]]) -> Layers:
    """Layers of an array in one of `LAYOUTS`; ValueError for any other shape."""
    if x.ndim not in LAYOUTS or (x.ndim > 2 and (x.shape[-2] != 2 or x.shape[-3] not in (1, 2))):
        raise ValueError(
            f"states must be a Harvest or an array {', '.join(LAYOUTS.values())}, got shape {x.shape}"
        )
    if x.ndim == 5:
        return Layers(range(x.shape[1]), x.shape[-1], lambda number: x[:, number])
    states = x if x.ndim == 4 else np.stack([x / 2, -x / 2], axis=1)[:, None]
    return Layers([0], x.shape[-1], lambda _: states, differences=x.ndim == 2)


class ContrastProbe(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """Classifier: which of two texts does a model prefer, by a direction in its states at one
    layer? (paper 004)

    X is a `Harvest`, or an array in one of three layouts:

        [pair, layer, order, side, d_model]   states after the blocks, as a Harvest has them; order 1: the texts swapped
        [pair, order, side, d_model]          of one layer
        [pair, d_model]                       differences of the two sides, of one layer and order

    y is [pair]: 1 where text 1 is better and 2 where text 2 is, or any two classes, of which the
    first in sorted order stands for text 1. A Harvest has its labels and groups with it.

    Parameters:
        kind: supervised, mean_difference, unsupervised, ccs; see `kinds`.
        layer: "chosen" by what the kind has for it on the training pairs (the last one where it has nothing), "last",
            or the number of a block, from 0.
        orders: Fit and score pairs from both orders, which removes position, or from the first alone.
        orientation: Sign of unsupervised and ccs: few:K (K labelled training pairs), logit (the model's own answers,
            which a Harvest holds) or none.
        c: Inverse regularisation of supervised as in scikit-learn; None: chosen in grouped folds.
        folds: Inside the training pairs, for c, the layer and the probabilities.
        random_state: Draws the few pairs and the starts of ccs; a whole number.

    Attributes:
        probe_: The fitted `Probe`: direction [d_model], layer, means [d_model].
        layer_scores_: What each layer was chosen by [layer]; NaN where nothing speaks for one.
        classes_: The two classes.
        card_: The `Card` of a probe that was loaded.
    """

    def __init__(
        self,
        kind: Kind = "supervised",
        *,
        layer: int | Literal["chosen", "last"] = "chosen",
        orders: Orders = "both",
        orientation: str = "few:32",
        c: float | None = None,
        folds: int = 4,
        random_state: int = 0,
    ) -> None:
        self.kind = kind
        self.layer = layer
        self.orders = orders
        self.orientation = orientation
        self.c = c
        self.folds = folds
        self.random_state = random_state

    def fit(self, X: Any, y: Any = None, *, groups: Any = None) -> Self:
        """Fit to states X, see the class.

        Args:
            X: A Harvest or an array.
            y: Classes [pair]. Default: a Harvest's labels. None with an array: no labels, which
                unsupervised and ccs under orientation logit or none do without.
            groups: Source question of each pair [pair]: folds keep it together. Default: a
                Harvest's, or one per pair.

        Raises:
            ValueError: X is in none of the layouts or not finite, there are other than two classes,
                or too few pairs.
        """
        self._check_parameters()
        given = self._layers(X, reset=True)
        X = X if hasattr(X, "identity") else np.asarray(X)
        supervision = self._supervision(X, y, groups)
        orders: Orders = "first" if given.differences else self.orders
        numbers = given.numbers if self.layer == "chosen" else [given.number(self.layer)]
        fitted = [
            learn(self.kind, given.read(n), supervision, layer=n, orders=orders) for n in numbers
        ]
        self.layer_scores_ = np.array([probe.train_score for probe in fitted])
        best = fitted[best_layer(self.layer_scores_)]
        self.probe_ = replace(best, scale=calibrated(best, given.read(best.layer), supervision))
        self.origin_ = _origin(X, supervision.groups if groups is not None else ())
        return self

    def preference(self, X: Any) -> Floats:
        """Scores [pair] of states X: above 0, text 1 (the first class) is preferred; 0 is no
        preference.

        Raises ValueError for a Harvest of another model than the probe's; an array says nothing of
        its model.
        """
        check_is_fitted(self)
        if hasattr(X, "identity") and (ours := self.card()).revision not in (
            "",
            (theirs := X.identity).revision,
        ):
            raise ValueError(
                f"the probe was fitted to {ours.model} ({ours.revision}), and these are states of {theirs.model} "
                f"({theirs.revision}), in which its direction means nothing: fit one to them"
            )
        given = self._layers(X, reset=False)
        if given.width != len(self.probe_.direction):
            raise ValueError(
                f"X has states of width {given.width}, the probe is of width {len(self.probe_.direction)}"
            )
        return self.probe_.score(given.read(given.number(self.probe_.layer)))

    def decision_function(self, X: Any) -> Floats:
        """Scores [pair] as scikit-learn has them: above 0 speaks for the second class, so this is
        −`preference`.
        """
        return -self.preference(X)

    def predict(self, X: Any) -> npt.NDArray[Any]:
        """The preferred class of each pair [pair]; the second one where there is no preference (a
        score of 0).
        """
        check_is_fitted(self)
        return np.asarray(self.classes_[(self.preference(X) <= 0).astype(int)])

    def predict_proba(self, X: Any) -> Floats:
        """Probabilities [pair, class] in the order of `classes_`, calibrated on the training pairs.

        Raises ValueError where no label was there to calibrate with: orientation logit or none.
        """
        check_is_fitted(self)
        if np.isnan(self.probe_.scale):
            raise ValueError(
                "this probe saw no labels of both kinds, so it has no probabilities: use preference()"
            )
        first = 1 / (1 + np.exp(-self.probe_.scale * self.preference(X)))
        return np.column_stack([first, 1 - first])

    def score(self, X: Any, y: Any = None, sample_weight: Any = None) -> float:
        """Accuracy on states X against classes y [pair] (default: a Harvest's labels); no
        preference counts half.
        """
        y = np.asarray(getattr(X, "labels", None) if y is None else y)
        scores = self.preference(X)
        if y.shape != scores.shape or not np.isin(y, self.classes_).all():
            raise ValueError(
                f"y must be one of {self.classes_.tolist()} for each of the {len(scores)} pairs"
            )
        if sample_weight is not None:
            signed = np.where(y == self.classes_[0], scores, -scores)
            return float(np.average((np.sign(signed) + 1) / 2, weights=sample_weight))
        return float(accuracy(y == self.classes_[0], scores))

    def card(self, *, dataset: str = "", test_scores: Mapping[str, float] | None = None) -> "Card":
        """What must be known to use this probe; states of unknown origin leave model and revision
        empty.
        """
        from selfprobe.probes.probe_file import Card

        check_is_fitted(self)
        if hasattr(self, "card_"):
            held: Card = self.card_
            return replace(
                held,
                dataset=dataset or held.dataset,
                test_scores=dict(test_scores or held.test_scores),
            )
        return Card(
            dataset=dataset,
            settings=f"ContrastProbe({self.kind!r})",
            split_seed=0,
            test_scores=dict(test_scores or {}),
            selfprobe=version("selfprobe"),
            **self.origin_,
        )

    def save(
        self, path: str | Path, *, dataset: str = "", test_scores: Mapping[str, float] | None = None
    ) -> None:
        """Write the probe and its card as `path` (.safetensors), which `selfprobe probe score` and
        `load` read.

        Raises ValueError unless the classes are 1 and 2 (a file says which text is better), or the
        direction is all 0.
        """
        from selfprobe.probes.probe_file import save_probe

        card = self.card(dataset=dataset, test_scores=test_scores)
        if list(self.classes_) != [1, 2]:
            raise ValueError(
                f"a probe's file says text 1 or 2, but the classes are {self.classes_.tolist()}"
            )
        if not self.probe_.direction.any():
            raise ValueError(
                "the probe's direction is all 0: its states do not differ from pair to pair"
            )
        save_probe(Path(path), self.probe_, card)

    @classmethod
    def load(cls, path: str | Path) -> Self:
        """A fitted probe from a file of `save` or of `selfprobe probe run`; never from a pickle."""
        from selfprobe.probes.probe_file import load_probe

        file = load_probe(Path(path))
        probe, orientation = (
            file.probe,
            "few:32" if file.probe.orientation == "labels" else file.probe.orientation,
        )
        made = cls(probe.kind, layer=probe.layer, orders=probe.orders, orientation=orientation)
        made.probe_, made.card_, made.classes_ = probe, file.card, np.array([1, 2])
        made.n_features_in_ = len(probe.direction)
        return made

    @classmethod
    def from_hub(
        cls, repository: str, *, revision: str | None = None, token: str | None = None
    ) -> Self:
        """A fitted probe, uploaded as probe.safetensors to `repository` ("owner/name") on the
        Hugging Face hub.
        """
        from selfprobe.probes.probe_file import fetched

        return cls.load(fetched(repository, revision=revision, token=token))

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = False
        return tags

    def _check_parameters(self) -> None:
        parse_orientation(str(self.orientation))
        for name, known in (("kind", get_args(Kind)), ("orders", get_args(Orders))):
            if getattr(self, name) not in known:
                raise ValueError(
                    f"{name} must be one of {', '.join(known)}, got {getattr(self, name)!r}"
                )
        if self.layer not in ("chosen", "last") and not _whole(self.layer):
            raise ValueError(
                f"layer must be chosen, last or a block's number from 0, got {self.layer!r}"
            )
        if not _whole(self.folds, 2):
            raise ValueError(f"folds must be 2 or more, got {self.folds!r}")
        if not _whole(self.random_state):
            raise ValueError(
                f"random_state must be a whole number from 0, got {self.random_state!r}"
            )
        if self.c is not None and not (isinstance(self.c, Real) and 0 < self.c < np.inf):
            raise ValueError(f"c must be a number above 0, or None to choose it, got {self.c!r}")

    def _layers(self, X: Any, *, reset: bool) -> Layers:
        if hasattr(X, "identity"):
            found = Layers(X.layers, X.identity.d_model, X.layer)
        elif (X if hasattr(X, "ndim") else np.asarray(X)).ndim <= 2:
            return _layers_of_array(validate_data(self, X, reset=reset, dtype=np.float64))
        else:
            found = _layers_of_array(
                check_array(X, allow_nd=True, dtype=np.float64, ensure_min_samples=0)
            )
        if reset:
            self.n_features_in_ = found.width
        return found

    def _supervision(self, X: Any, y: Any, groups: Any) -> Supervision:
        """What there is to learn from; sets `classes_`."""
        harvested = hasattr(X, "identity")
        if y is None and harvested and X.labels.any():
            y = X.labels
            if not y.all():
                raise ValueError(
                    f"{int((y == 0).sum())} of {len(y)} pairs have no label: leave them out of the fit"
                )
        needed = self.kind in LABELLED or parse_orientation(self.orientation)[0] == "few"
        if y is None and needed:
            raise ValueError(
                f"kind {self.kind!r}, orientation {self.orientation!r} requires y to be passed, but the target y is "
                "None: give labels, or kind unsupervised or ccs with orientation logit or none"
            )
        y = None if y is None else column_or_1d(y, warn=True)
        size = len(X)
        names = (
            X.groups
            if groups is None and harvested
            else np.arange(size)
            if groups is None
            else np.asarray(groups)
        )
        if len(names) != size or (y is not None and len(y) != size):
            given = f"{len(names)} groups, {'no' if y is None else len(y)} labels"
            raise ValueError(f"inconsistent numbers of samples: {size} pairs, {given}")
        self.classes_ = np.array([1, 2])
        first = None if y is None else self._first(y)
        if first is not None and needed:
            check_labels(first, names, folds=self.folds)
        own = None
        if harvested and parse_orientation(self.orientation)[0] == "logit":
            from selfprobe.probes.evaluate import own_answers

            own = own_answers(X).mean(axis=1) - 0.5
        return Supervision(
            first, names, own, self.orientation, self.c, self.folds, self.random_state
        )

    def _first(self, y: Any) -> npt.NDArray[np.bool_]:
        """Whether the first class is right [pair]; sets `classes_`."""
        check_classification_targets(y)
        if (kind := type_of_target(y)) != "binary":
            raise ValueError(
                f"Only binary classification is supported. The type of the target is {kind}."
            )
        self.classes_ = np.unique(y)
        if len(self.classes_) < 2:
            raise ValueError(
                f"there is one class alone, {self.classes_.tolist()[0]!r}: nothing to learn from"
            )
        return np.asarray(y == self.classes_[0])


def _whole(given: Any, least: int = 0) -> bool:
    return isinstance(given, Integral) and not isinstance(given, bool) and int(given) >= least


def _origin(X: Any, groups: Any) -> dict[str, Any]:
    """What a card says of the states that a probe was fitted to."""
    if not hasattr(X, "identity"):
        blank = dict.fromkeys(("model", "revision", "template", "dtype", "data_hash"), "")
        return blank | {
            "train_groups": tuple(sorted({str(name) for name in groups})),
            "train_pairs": len(X),
        }
    from selfprobe.data.pairs import data_hash
    from selfprobe.probes.fit import questions

    told = {name: getattr(X.identity, name) for name in ("model", "revision", "template", "dtype")}
    told |= {"question": X.pairs[0].criterion, "item": X.pairs[0].item, "system": X.chat.system}
    told |= {"template_arguments": dict(X.chat.arguments), "data_hash": data_hash(X.pairs)}
    return told | {"train_groups": tuple(sorted(questions(X.pairs))), "train_pairs": len(X)}
