"""One run as `selfprobe check` reads it: whether it is complete, and how much of it is scored."""

from collections import Counter
from dataclasses import dataclass

from inspect_ai.log import EvalSampleSummary, EvalScore

from selfprobe.errors import one_line
from selfprobe.logs import Run, cause, counted, cut_in, target_of
from selfprobe.scorers.decision import Judged
from selfprobe.studies.check_cases import COMPLETE_SUITE, Case, CaseKind
from selfprobe.studies.check_pairs import target_suffix
from selfprobe.studies.check_table import TableRow, header_disagreement, judged_table
from selfprobe.text.counts import count_text

UNFINISHED_WORDS = {"started": "still running, or killed", "cancelled": "interrupted"}
"""Status of a run that is no success → what is said of it; "failed" of others."""
INTERRUPT_ERROR = "CancelledError"
"""Error that every interrupt leaves in the samples that were under way."""


@dataclass(frozen=True)
class ReadRun:
    """One run: its log, and what its samples say."""

    run: Run
    planned_samples: int
    """Samples that it was to have, epochs counted."""
    finished_samples: list[EvalSampleSummary]
    """Valid samples that did not fail."""
    table: list[TableRow]
    """Values of all valid samples; see `judged_table`."""
    error: str
    """The first error, or ""."""

    @property
    def values(self) -> list[Judged]:
        """Judged values of the samples that did not fail, unscored ones too."""
        return [(row.item, row.decision) for row in self.table if not row.failed]

    @property
    def logged_scores(self) -> list[EvalScore]:
        """Scores of the log's header."""
        return self.run.results.scores if self.run.results else []

    @property
    def scored_after_error(self) -> int:
        """Number of samples that ended in an error and were scored all the same."""
        return sum(bool(sample.error) for sample in self.finished_samples)

    @property
    def task(self) -> str:
        """Name of the task without its package."""
        return self.run.identity.task

    @property
    def model(self) -> str:
        """Name of the evaluated model."""
        return self.run.header.eval.model

    @property
    def name(self) -> str:
        """Name for people: the task, its model, and a target that is not its model."""
        return f"{self.task} of {self.models}"

    @property
    def models(self) -> str:
        """Name of the model, and of a target that is not it."""
        return self.model + target_suffix(self.model, target_of(self.run.header))

    @property
    def applied_settings(self) -> Counter[str]:
        """Settings that the evaluated model was really asked with (`reply_notes`) → samples; none
        for other suites.
        """
        counts = Counter[str]()
        for sample in self.finished_samples:
            settings_by_role = sample.metadata.get("applied")
            if not isinstance(settings_by_role, dict):
                continue
            settings = settings_by_role.get("observer", settings_by_role.get("target"))
            if settings:
                counts["; ".join(sorted(str(settings).split("; ")))] += 1
        return counts

    @property
    def reasons(self) -> dict[str, float]:
        """Why values are unscored, with the share of all, the most frequent first."""
        counts = Counter(decision.unscored for _, decision in self.values if decision.unscored)
        return {reason: count / len(self.values) for reason, count in counts.most_common()}

    @property
    def scored_count(self) -> int:
        """Number of values that are scored."""
        return sum(not decision.unscored for _, decision in self.values)

    @property
    def keys_without_score(self) -> list[str]:
        """Keys, or scorers, that are unscored in every sample."""
        all_keys = dict.fromkeys(decision.key for _, decision in self.values)
        scored_keys = {decision.key for _, decision in self.values if not decision.unscored}
        return [key for key in all_keys if key not in scored_keys]

    def faults(self, largest_unscored: float) -> list[str]:
        """Faults of the run if a share of up to `largest_unscored` of its values may be unscored;
        empty for a good run.
        """
        faults = self._sample_faults()
        if self.run.invalidated.are_all:
            return faults
        score_fault = self._score_fault(largest_unscored)
        if score_fault:
            faults.append(score_fault)
        disagreement = header_disagreement(self.run)
        if disagreement:
            faults.append(disagreement)
        for argument, share in cut_in(self.run.results).items():
            faults.append(
                f"{share:.0%} of replies ended at the token limit; -T {argument}=… raises it"
            )
        return faults

    def _sample_faults(self) -> list[str]:
        """Faults of the run's samples and its end, whatever their scores."""
        invalidated = self.run.invalidated
        status = self.run.header.status
        missing_count = (
            self.planned_samples - len(self.finished_samples) - len(invalidated.provenance)
        )
        faults = list[str]()
        if invalidated.provenance:
            faults.append(f"{invalidated}; run them again")
        if status != "success":
            faults.append(UNFINISHED_WORDS.get(status, "failed"))
        if missing_count > 0:
            fault = f"{missing_count} of {self.planned_samples} samples failed or missing"
            if self.error and not self.error.startswith(INTERRUPT_ERROR):
                fault += f", the first: {self.error}"
            faults.append(fault)
        elif self.error and not self.scored_after_error:
            faults.append(self.error)
        return faults

    def _score_fault(self, largest_unscored: float) -> str:
        """What is wrong with the number of scored values, or ""."""
        if not self.scored_count or counted(self.run.results) == 0:
            first_reasons = ", ".join(list(self.reasons)[:3])
            return f"nothing scored ({first_reasons})" if first_reasons else "nothing scored"
        unscored_share = 1 - self.scored_count / len(self.values)
        if unscored_share > largest_unscored:
            share = share_text(unscored_share, largest_unscored)
            return (
                f"unscored {share} ({self.reasons_text}), more than {share_text(largest_unscored)}"
            )
        if largest_unscored < 1 and self.keys_without_score:
            return f"no sample has a score of {', '.join(self.keys_without_score[:3])}"
        return ""

    @property
    def reasons_text(self) -> str:
        """The three most frequent reasons with their shares."""
        shares = [f"{reason} {share_text(share)}" for reason, share in self.reasons.items()]
        return ", ".join(shares[:3])

    def case(self, largest_unscored: float) -> "Case":
        """The run in the form that every output takes."""
        faults = self.faults(largest_unscored)
        text = f"bad: {'; '.join(faults)}" if faults else self._good_text
        data = {
            "log": self.run.log,
            "task": self.task,
            "model": self.model,
            "target": target_of(self.run.header),
            "status": self.run.header.status,
            "wanted": self.planned_samples,
            "done": len(self.finished_samples),
            "error": self.error,
            "invalidated": len(self.run.invalidated.provenance),
            "asked": len(self.values),
            "scored": self.scored_count,
            "reasons": self.reasons,
            "wrong": faults,
        }
        return Case(
            suite=COMPLETE_SUITE,
            group=COMPLETE_SUITE,
            name=self.name,
            kind=CaseKind.ERROR if faults else CaseKind.GOOD,
            text=text,
            line=(self.task, f"{self.models}  {text}"),
            row=(self.name, text),
            data=data,
        )

    @property
    def _good_text(self) -> str:
        unscored_share = sum(self.reasons.values())
        text = f"good: {len(self.finished_samples)} samples, unscored {share_text(unscored_share)}"
        if self.reasons:
            text += f" ({self.reasons_text})"
        if self.scored_after_error:
            sample_count = count_text(self.scored_after_error, "sample")
            text += f"; {sample_count} ended in an error, and counted as scored (score_on_error)"
        return text


def read_checked_run(run: Run) -> ReadRun:
    samples = run.summaries
    header = run.header
    finished_samples = [judged.summary for judged in run.judged_samples() if not judged.failed]
    samples_in_error = [sample for sample in samples if sample.error]
    error = ""
    if samples_in_error:
        error = cause(run.log, samples_in_error[0])
    elif header.error:
        error = header.error.message
    logged_count = len(samples) + len(run.invalidated.provenance)
    result_count = run.results.total_samples if run.results else 0
    planned_samples = max(run.planned_samples, logged_count, result_count)
    return ReadRun(
        run, planned_samples, finished_samples, judged_table(run), one_line(error) if error else ""
    )


def share_text(share: float, *further_shares: float) -> str:
    """Two decimals, or as many as tell a share from none, all, and `further_shares`."""
    shares = (0.0, 1.0, *further_shares)
    for digits in range(2, 6):
        text = f"{share:.{digits}f}"
        other_texts = [
            f"{share_apart:.{digits}f}" for share_apart in shares if share_apart != share
        ]
        if text not in other_texts:
            break
    return text
