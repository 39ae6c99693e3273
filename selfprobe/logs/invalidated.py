"""Samples that somebody invalidated, with Inspect's `invalidate_samples`: they stay in a log, and
count nowhere.
"""

import json
from collections import Counter
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

from inspect_ai.log import EvalLog, EvalResults, ProvenanceData, read_eval_log, recompute_metrics

from selfprobe.logs.files import read_header, stamp
from selfprobe.logs.packed import member_text, refuse_bomb, resolved, sample_texts

SamplePlace = tuple[int | str, int]
"""Id and epoch of a sample."""

NO_METRICS: dict[str, Any] = {"metrics": {}, "scored_samples": None, "unscored_samples": None}
FIELDS_WITHOUT_METRICS = {"messages", "output", "events", "events_data", "timelines", "store"}
"""Parts of a sample that no metric needs."""
MOST_NAMED_AUTHORS = 2
"""Largest number of authors that a sentence names."""


@dataclass(frozen=True)
class InvalidatedSamples:
    """The invalidated samples of a log."""

    provenance: Mapping[SamplePlace, ProvenanceData] = field(default_factory=dict)
    """Sample → by whom it was invalidated, when and why."""
    places: Collection[SamplePlace] = ()
    """All samples of the log, invalidated ones too."""

    @property
    def are_all(self) -> bool:
        """True if no sample of the log is left."""
        return 0 < len(self.places) == len(self.provenance)

    def of_items(self, items: Collection[str]) -> "InvalidatedSamples":
        """Those of these items alone."""
        places = [place for place in self.places if str(place[0]) in items]
        provenance = {place: self.provenance[place] for place in places if place in self.provenance}
        return InvalidatedSamples(provenance, places)

    def __str__(self) -> str:
        """Sentence without its end: "20 of 30 samples are invalidated, by ada (wrong data)"; ""
        where none is.
        """
        if not self.provenance:
            return ""
        author_counts = Counter(map(author_and_reason, self.provenance.values())).most_common()
        verb = "is" if len(self.provenance) == 1 else "are"
        sentence = f"{len(self.provenance)} of {len(self.places)} samples {verb} invalidated"
        if len(author_counts) == 1:
            only_author, _ = author_counts[0]
            return f"{sentence}, {only_author}"
        parts = [f"{count} {author}" for author, count in author_counts[:MOST_NAMED_AUTHORS]]
        if len(author_counts) > MOST_NAMED_AUTHORS:
            other_count = sum(count for _, count in author_counts[MOST_NAMED_AUTHORS:])
            parts.append(f"{other_count} others")
        return f"{sentence}, {', '.join(parts)}"


def author_and_reason(provenance: ProvenanceData) -> str:
    """Text on who invalidated a sample, and why: "by ada (wrong data)"."""
    author = " ".join(provenance.author.split())
    reason = " ".join((provenance.reason or "").split())
    return f"by {author} ({reason})" if reason else f"by {author}"


def invalidated_samples(log: str) -> InvalidatedSamples:
    """The invalidated samples of a log; its header says whether there are any.

    Raises:
        Errors of `UNREADABLE`: It cannot be read.
    """
    return _invalidated_samples(log, stamp(log))


@lru_cache(maxsize=1024)
def _invalidated_samples(log: str, stamp: str) -> InvalidatedSamples:
    if not _is_flagged(log):
        return InvalidatedSamples()
    provenance = dict[SamplePlace, ProvenanceData]()
    places = list[SamplePlace]()
    for sample in _sample_fields(log):
        place = (sample["id"], sample["epoch"])
        places.append(place)
        if sample["invalidation"]:
            provenance[place] = ProvenanceData.model_validate(sample["invalidation"])
    return InvalidatedSamples(provenance, places)


def _is_flagged(log: str) -> bool:
    if not log.endswith(".eval"):
        return read_header(log).invalidated
    header = member_text(log, "header.json")  # a run that was killed has none
    return header is not None and bool(json.loads(header).get("invalidated"))


INVALIDATION_FIELDS = ("id", "epoch", "invalidation")


def _sample_fields(log: str) -> list[dict[str, Any]]:
    """INVALIDATION_FIELDS of each sample of a log."""
    sample_fields = list[dict[str, Any]]()
    if log.endswith(".eval"):
        for text in sample_texts(log):
            sample = json.loads(text)
            sample_fields.append({name: sample.get(name) for name in INVALIDATION_FIELDS})
        return sample_fields
    refuse_bomb(log, samples=True)
    for logged_sample in read_eval_log(log).samples or []:
        sample_fields.append(logged_sample.model_dump(include=set(INVALIDATION_FIELDS)))
    return sample_fields


def with_valid_results(header: EvalLog) -> EvalLog:
    """The header of a log with the metrics of its valid samples, where Inspect's are of all.

    A metric that is not installed here is left out.
    """
    if not header.invalidated:
        return header
    results = _valid_results(header.location, stamp(header.location))
    return header.model_copy(update={"results": results})


@lru_cache(maxsize=256)
def _valid_results(log: str, stamp: str) -> EvalResults | None:
    whole_log = read_eval_log(log, exclude_fields=FIELDS_WITHOUT_METRICS)
    valid_samples = [sample for sample in whole_log.samples or [] if sample.invalidation is None]
    whole_log.samples = [resolved(sample) for sample in valid_samples]
    return results_of_samples(whole_log)


def results_of_samples(log: EvalLog) -> EvalResults | None:
    """Metrics of the samples that a log holds. One that is not installed here is left out.

    Args:
        log: A log with samples; it stays as it is.
    """
    if log.results is None:
        return None
    # Inspect would run the file that the log names, to find its metrics.
    spec_without_file = log.eval.model_copy(update={"task_file": None})
    computed_log = log.model_copy(update={"eval": spec_without_file})
    try:
        recompute_metrics(computed_log)
    except (LookupError, ValueError, TypeError):
        scores = [score.model_copy(update=NO_METRICS) for score in log.results.scores]
        return log.results.model_copy(update={"scores": scores})
    return computed_log.results
