"""What does an introspective prompt do inside the model? The command `mechanism read`: lens, attention and patch."""

from collections.abc import Mapping
from functools import cached_property
from typing import Any, ClassVar, Self

from pydantic import Field, model_validator

from selfprobe.errors import InputError
from selfprobe.errors.arguments import one_of
from selfprobe.page import Page
from selfprobe.studies.attention import Attention
from selfprobe.studies.lens import Found, Lens, tables_of
from selfprobe.studies.patch import Patch
from selfprobe.study.local import GOING_ON, Blocks, Progress, said_plainly

PARTS: Mapping[str, type[Lens]] = {"lens": Lens, "attention": Attention, "patch": Patch}
"""Parts of the folder, each with all that the one before it reads."""


class Read(Patch):
    """What does an introspective prompt do inside the model? Logit lens, attention, one run's patterns in the other.

    lens: the block where direct and introspective runs part (paper 003, Figure 5). attention: where the last token
    looks, and how widely (Figures 6, 7). patch: how much of the change its pattern brings (23.9 %). What is in the
    folder is not read again.
    """

    reads: ClassVar[frozenset[str]] = frozenset()

    parts: tuple[str, ...] = Field(tuple(PARTS), description="Parts to make: lens, attention, patch.")
    layers: Blocks = Field(
        "",
        description="Blocks, as 8,16,24 or 0-31:4, from 0: with patch those that are patched (default: where the runs "
        "part), else those that are read (default: all).",
    )

    @model_validator(mode="after")
    def _has_parts(self) -> Self:
        for name in self.parts or ("none",):
            one_of("--parts", name, tuple(PARTS))
        if "patch" not in self.parts and (self.into, self.positions) != ("direct", "last"):
            raise InputError("--into and --positions go with --parts patch")
        return self

    @property
    def loading(self) -> dict[str, Any]:
        """Every block is read where some are patched."""
        return super().loading if "patch" in self.parts else super(Patch, self).loading

    @cached_property
    def studies(self) -> dict[str, Lens]:
        """The parts by name; the last reads what the others need."""
        given = self.model_dump() | ({"layers": ""} if "patch" in self.parts else {})
        made = dict[str, Lens]()
        for name, part in PARTS.items():
            if name in self.parts:
                own = given | ({"layers": self.layers} if name == "patch" else {})
                made[name] = part(**{key: own[key] for key in part.model_fields.keys() & own})
                vars(made[name])["judge"] = self.judge
        return made

    @property
    def last(self) -> Lens:
        """The part that reads most."""
        return list(self.studies.values())[-1]

    @property
    def needs(self) -> list[str]:
        """Lines on what its last part takes."""
        return self.last.needs

    def work(self, progress: Progress) -> None:
        """Read what its last part needs."""
        self.last.work(progress)

    def shown(self) -> Page:
        """The page of its parts, and of those that the folder had."""
        there = tables_of(self.folder)
        with said_plainly(GOING_ON):
            pages = {name: part.page(part.found()) for name, part in self.studies.items()}
        tables = {**there, **{name: table for page in pages.values() for name, table in page.tables.items()}}
        told = next(iter(pages.values())).lines if len(pages) == 1 else [page.answer for page in pages.values()]
        pages |= {
            name: part.page(Found(self.held, tables))
            for name, part in PARTS.items()
            if name in there and name not in pages
        }
        if len(pages) == 1:
            return next(iter(pages.values()))
        return Page("What happens inside the model?", parts=pages, tables=tables, told=told)
