"""Tables of the logs under files and folders, as `Study.page_of_logs` has them."""

from collections.abc import Sequence

from selfprobe.logs import runs
from selfprobe.papers import similar_replies
from selfprobe.stats.claim import Claim, Verdict
from selfprobe.studies.matrix.table import Results, matrices_of
from selfprobe.study._registry import measures


def read_matrices(paths: Sequence[str]) -> Results:
    """`matrices_of` all logs under these paths."""
    return matrices_of(runs(paths), paths)


def replies_in(paths: Sequence[str]) -> similar_replies.Drawn:
    """`similar_replies.replies_of` all logs under these paths."""
    matrix_runs = runs(paths, {*measures(), similar_replies.OPEN_TASK})
    return similar_replies.replies_of(matrix_runs, paths)


def named_models(claims: Sequence[Claim]) -> tuple[str, ...]:
    """The subjects that are answered Yes."""
    return tuple(claim.subject for claim in claims if claim.verdict is Verdict.YES)
