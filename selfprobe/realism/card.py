"""From a card's logs to its page."""

from collections.abc import Sequence

from selfprobe.described import identities_of
from selfprobe.errors import NoLogs
from selfprobe.page import Page
from selfprobe.page import write as write_page
from selfprobe.realism.numbers import numbers_of
from selfprobe.realism.page import page_of
from selfprobe.realism.run import PAIRS, Card
from selfprobe.realism.table import load


def page(logs: Sequence[str]) -> Page:
    """The page of judges' logs alone, without a subject; raises as `load`."""
    logged = load(logs)
    about = next(iter(logged.logs.values())).eval.metadata or {}
    left_out = [str(about["left_out"])] if about.get("left_out") else []
    return page_of(logged, numbers_of(logged), name=str(about.get("dataset")), left_out=left_out)


def write(card: Card, *, name: str, left_out: Sequence[str], out: str) -> tuple[Page, str]:
    """The page of what lies in the card's log folder, written to `out`; the page, and its address.

    Args:
        card: What was asked for.
        name: Of the set and of what it is held against.
        left_out: What was not compared, as sentences.
        out: Folder to write.

    Raises:
        NoLogs: No judge's run is finished.
    """
    logged, subject = load([f"{card.base}/{PAIRS}"], identities_of(card.pair_runs)), None
    if card.study is not None:
        try:
            subject = card.study.shown()
        except NoLogs:
            left_out = [*left_out, f"{card.model} has no finished run: the page is of the judges alone."]
    made = page_of(logged, numbers_of(logged), name=name, left_out=left_out, subject=subject)
    return made, write_page(made, out)
