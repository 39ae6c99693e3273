"""Contrast probes as a scikit-learn classifier: fit, predict_proba, score; clone and grid search;
save, load.

states = harvest(load_model("smollm2"), pairs)                       # or differences of your own
probe = ContrastProbe(kind="unsupervised").fit(states[:200])          # labels are the pairs' own
probe.score(states[200:]), probe.predict_proba(states[200:])
probe.save("p.safetensors")
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from importlib.metadata import version
from numbers import Integral, Real
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Self, get_args

import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.multiclass import check_classification_targets, type_of_target
from sklearn.utils.validation import check_is_fitted, column_or_1d, validate_data

from selfprobe.probes.fit import (
    LABELLED,
    FloatArray,
    Kind,
    Orders,
    Probe,
    Supervision,
    best_layer,
    check_labels,
    fit_probe,
    parse_orientation,
    probability_scale,
)
from selfprobe.stats.estimate import accuracy

if TYPE_CHECKING:
    from selfprobe.probes.harvesting import StatesIdentity
    from selfprobe.probes.probe_file import Card

Floats = npt.NDArray[np.float64]


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
        is_single = len(self.numbers) == 1
        if isinstance(layer, str) or (is_single and layer < 0):
            return self.numbers[-1]
        if not is_single and layer not in self.numbers:
            known_layers = ", ".join(str(number) for number in self.numbers)
            raise ValueError(f"layer must be one of {known_layers}, got {layer}")
        return int(layer)


class ContrastProbe(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """Classifier: which of two texts does a model prefer, by a direction in its states at one
    layer? (latent-preference probes)

    X is a `Harvest`, or an array [pair, d_model] of differences of the two sides, of one layer and
    order.

    y is [pair]: 1 where text 1 is better and 2 where text 2 is, or any two classes, of which the
    first in sorted order stands for text 1. A Harvest has its labels and groups with it.

    Parameters:
        kind: supervised, mean_difference, unsupervised; see `fit`.
        layer: "chosen" by what the kind has for it on the training pairs (the last one where it
            has nothing), "last", or the number of a block, from 0.
        orders: Fit and score pairs from both orders, which removes position, or from the first
            alone.
        orientation: Sign of unsupervised: few:K (K labelled training pairs), logit (the model's own
            answers, which a Harvest holds) or none.
        c: Inverse regularisation of supervised as in scikit-learn; None: chosen in grouped folds.
        folds: Inside the training pairs, for c, the layer and the probabilities.
        random_state: Draws the few pairs; a whole number.

    Attributes:
        probe_: The fitted `Probe`: direction [d_model], layer, means [d_model].
        layer_scores_: What each layer was chosen by [layer]; NaN where nothing speaks for one.
        classes_: The two classes.
        card_: The `Card` of a probe that was loaded.
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "kind": [StrOptions(set(get_args(Kind)))],
        "layer": [StrOptions({"chosen", "last"}), Interval(Integral, 0, None, closed="left")],
        "orders": [StrOptions(set(get_args(Orders)))],
        "orientation": [str],
        "c": [Interval(Real, 0, None, closed="neither"), None],
        "folds": [Interval(Integral, 2, None, closed="left")],
        "random_state": [Interval(Integral, 0, None, closed="left")],
    }

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
                unsupervised under orientation none does without.
            groups: Source question of each pair [pair]: folds keep it together. Default: a
                Harvest's, or one per pair.

        Raises:
            ValueError: A parameter is wrong, X is neither or not finite, there are other than two classes,
                or too few pairs.
        """
        self._validate_params()
        parse_orientation(self.orientation)
        layers = self._layers(X, reset=True)
        states = X if hasattr(X, "identity") else np.asarray(X)
        supervision = self._supervision(states, y, groups)
        orders: Orders = "first" if layers.differences else self.orders
        if self.layer == "chosen":
            candidate_numbers = list(layers.numbers)
        else:
            candidate_numbers = [layers.number(self.layer)]

        probes: list[Probe] = []
        for number in candidate_numbers:
            layer_states = layers.read(number)
            probes.append(
                fit_probe(self.kind, layer_states, supervision, layer=number, orders=orders)
            )
        self.layer_scores_ = np.array([probe.train_score for probe in probes])
        best_probe = probes[best_layer(self.layer_scores_)]
        scale = probability_scale(best_probe, layers.read(best_probe.layer), supervision)
        self.probe_ = replace(best_probe, scale=scale)
        self.origin_ = _origin(states, supervision.groups if groups is not None else ())
        return self

    def preference(self, X: Any) -> Floats:
        """Scores [pair] of states X: above 0, text 1 (the first class) is preferred; 0 is no
        preference.

        Raises ValueError for a Harvest of another model than the probe's; an array says nothing of
        its model.
        """
        check_is_fitted(self)
        if hasattr(X, "identity"):
            self._check_model(X.identity)
        layers = self._layers(X, reset=False)
        probe_width = len(self.probe_.direction)
        if layers.width != probe_width:
            raise ValueError(
                f"X has states of width {layers.width}, the probe is of width {probe_width}"
            )
        if layers.differences and self.probe_.orders == "both":
            raise ValueError(
                "the probe was fitted to both orders, and differences are of one: give a Harvest, "
                "or fit with orders='first'"
            )
        return self.probe_.score(layers.read(layers.number(self.probe_.layer)))

    def _check_model(self, identity: "StatesIdentity") -> None:
        """ValueError unless the states are of the model that the probe was fitted to."""
        card = self.card()
        if card.revision not in ("", identity.revision):
            raise ValueError(
                f"the probe was fitted to {card.model} ({card.revision}), and these are states of "
                f"{identity.model} ({identity.revision}), in which its direction means nothing: "
                "fit one to them"
            )

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
                "this probe saw no labels of both kinds, so it has no probabilities: "
                "use preference()"
            )
        first_probability = 1 / (1 + np.exp(-self.probe_.scale * self.preference(X)))
        return np.column_stack([first_probability, 1 - first_probability])

    def score(self, X: Any, y: Any = None, sample_weight: Any = None) -> float:
        """Accuracy on states X against classes y [pair] (default: a Harvest's labels); no
        preference counts half.
        """
        labels = getattr(X, "labels", None) if y is None else y
        truth = np.asarray(labels)
        scores = self.preference(X)
        if truth.shape != scores.shape or not np.isin(truth, self.classes_).all():
            raise ValueError(
                f"y must be one of {self.classes_.tolist()} for each of the {len(scores)} pairs"
            )
        is_first = truth == self.classes_[0]
        if sample_weight is None:
            return float(accuracy(is_first, scores))
        right_scores = np.where(is_first, scores, -scores)
        outcomes = (np.sign(right_scores) + 1) / 2  # 1: right, 0: wrong, ½: no preference
        return float(np.average(outcomes, weights=sample_weight))

    def card(self, *, dataset: str = "", test_scores: Mapping[str, float] | None = None) -> "Card":
        """What must be known to use this probe; states of unknown origin leave model and revision
        empty.
        """
        from selfprobe.probes.probe_file import Card

        check_is_fitted(self)
        if hasattr(self, "card_"):
            file_card: Card = self.card_
            return replace(
                file_card,
                dataset=dataset or file_card.dataset,
                test_scores=dict(test_scores or file_card.test_scores),
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
        probe = file.probe
        orientation = "few:32" if probe.orientation == "labels" else probe.orientation
        estimator = cls(probe.kind, layer=probe.layer, orders=probe.orders, orientation=orientation)
        estimator.probe_ = probe
        estimator.card_ = file.card
        estimator.classes_ = np.array([1, 2])
        estimator.n_features_in_ = len(probe.direction)
        return estimator

    @classmethod
    def from_hub(
        cls, repository: str, *, revision: str | None = None, token: str | None = None
    ) -> Self:
        """A fitted probe, uploaded as probe.safetensors to `repository` ("owner/name") on the
        Hugging Face hub.
        """
        from selfprobe.probes.probe_file import fetch_probe

        return cls.load(fetch_probe(repository, revision=revision, token=token))

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = False
        return tags

    def _layers(self, X: Any, *, reset: bool) -> Layers:
        if hasattr(X, "identity"):
            layers = Layers(X.layers, X.identity.d_model, X.layer)
        else:
            differences = validate_data(self, X, reset=reset, dtype=np.float64)
            sides = np.stack([differences / 2, -differences / 2], axis=1)
            width = differences.shape[1]
            layers = Layers([0], width, lambda _: sides[:, None], differences=True)
        if reset:
            self.n_features_in_ = layers.width
        return layers

    def _supervision(self, X: Any, y: Any, groups: Any) -> Supervision:
        """What there is to learn from; sets `classes_`."""
        is_harvest = hasattr(X, "identity")
        if y is None and is_harvest and X.labels.any():
            y = X.labels
            unlabelled_count = int((y == 0).sum())
            if unlabelled_count:
                raise ValueError(
                    f"{unlabelled_count} of {len(y)} pairs have no label: leave them out of the fit"
                )
        sign_source, _ = parse_orientation(self.orientation)
        needs_labels = self.kind in LABELLED or sign_source == "few"
        if y is None and needs_labels:
            raise ValueError(
                f"kind {self.kind!r}, orientation {self.orientation!r} requires y to be passed, "
                "but the target y is None: give labels, or kind unsupervised with orientation logit "
                "or none"
            )

        pair_count = len(X)
        labels = None if y is None else column_or_1d(y, warn=True)
        if groups is not None:
            group_names = np.asarray(groups)
        elif is_harvest:
            group_names = X.groups
        else:
            group_names = np.arange(pair_count)
        if len(group_names) != pair_count or (labels is not None and len(labels) != pair_count):
            label_count = "no" if labels is None else len(labels)
            raise ValueError(
                f"inconsistent numbers of samples: {pair_count} pairs, "
                f"{len(group_names)} groups, {label_count} labels"
            )

        self.classes_ = np.array([1, 2])
        first_better = None
        if labels is not None:
            first_better = self._first_class_is_right(labels)
            if needs_labels:
                check_labels(first_better, group_names, folds=self.folds)
        model_answers = None
        if is_harvest and sign_source == "logit":
            from selfprobe.probes.evaluate import own_answers

            model_answers = own_answers(X).mean(axis=1) - 0.5
        return Supervision(
            first_better=first_better,
            groups=group_names,
            model_answers=model_answers,
            orientation=self.orientation,
            c=self.c,
            folds=self.folds,
            seed=self.random_state,
        )

    def _first_class_is_right(self, labels: Any) -> npt.NDArray[np.bool_]:
        """Whether the first class is right [pair]; sets `classes_`."""
        check_classification_targets(labels)
        target_type = type_of_target(labels)
        if target_type != "binary":
            raise ValueError(
                f"Only binary classification is supported. The type of the target is {target_type}."
            )
        self.classes_ = np.unique(labels)
        if len(self.classes_) < 2:
            raise ValueError(
                f"there is one class alone, {self.classes_.tolist()[0]!r}: nothing to learn from"
            )
        return np.asarray(labels == self.classes_[0])


def _origin(X: Any, groups: Any) -> dict[str, Any]:
    """What a card says of the states that a probe was fitted to."""
    if not hasattr(X, "identity"):
        unknown = dict.fromkeys(("model", "revision", "template", "dtype", "data_hash"), "")
        group_names = sorted({str(name) for name in groups})
        return unknown | {"train_groups": tuple(group_names), "train_pairs": len(X)}

    from selfprobe.data.pairs import data_hash
    from selfprobe.probes.fit import groups_and_questions

    return {
        "model": X.identity.model,
        "revision": X.identity.revision,
        "template": X.identity.template,
        "dtype": X.identity.dtype,
        "question": X.pairs[0].criterion,
        "item": X.pairs[0].item,
        "system": X.chat.system,
        "template_arguments": dict(X.chat.arguments),
        "data_hash": data_hash(X.pairs),
        "train_groups": tuple(sorted(groups_and_questions(X.pairs))),
        "train_pairs": len(X),
    }
