"""What every page of ours is made of: figures as files and inside the page, tables as files, the template."""

import base64
import io
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pandas as pd
from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from selfprobe import plots

if TYPE_CHECKING:
    from matplotlib.figure import Figure


@dataclass(frozen=True)
class Picture:
    """A figure in the page and beside it."""

    name: str
    alt: str
    caption: str
    figure: "Figure"

    @property
    def source(self) -> str:
        """The figure as an SVG data URL."""
        return f"data:image/svg+xml;base64,{base64.b64encode(self.rendered('svg')).decode()}"

    def rendered(self, kind: str) -> bytes:
        """The figure as "svg" or "png"; the same bytes for the same numbers."""
        if kind not in self._drawn:
            import matplotlib

            out = io.BytesIO()
            if not self._drawn:  # the layout costs as much as the drawing, and is the same for every kind
                self.figure.draw_without_rendering()
                self.figure.set_layout_engine("none")
            with matplotlib.rc_context({"svg.hashsalt": "selfprobe", "svg.fonttype": "none"}):
                self.figure.savefig(out, format=kind, metadata={"Date": None} if kind == "svg" else None)
            self._drawn[kind] = out.getvalue()
        return self._drawn[kind]

    @cached_property
    def _drawn(self) -> dict[str, bytes]:
        """By kind: page and file hold the same bytes, and drawing ten models takes a second."""
        return {}


def save_pictures(pictures: Sequence[Picture], folder: Path) -> None:
    """Write each figure as SVG and PNG."""
    folder.mkdir(parents=True, exist_ok=True)
    for picture in pictures:
        for kind in ("svg", "png"):
            (folder / f"{picture.name}.{kind}").write_bytes(picture.rendered(kind))


def save_tables(tables: Mapping[str, pd.DataFrame], folder: Path) -> None:
    """Write each table as CSV and JSON."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, table in tables.items():
        table.to_csv(folder / f"{name}.csv", index=False)
        (folder / f"{name}.json").write_text(table.to_json(orient="records", indent=1), encoding="utf-8")


def render(template: str, **content: Any) -> str:
    """A page from one of the package's templates, everything that a model or a user wrote escaped."""
    environment = Environment(
        loader=PackageLoader("selfprobe", "."),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters["number"] = _number
    environment.filters["p_value"] = lambda p: "p < 0.0001" if p < 0.0001 else f"p = {_number(p, 4)}"
    environment.filters["percent"] = lambda x: "–" if x is None or math.isnan(x) else f"{100 * x:.1f} %"
    environment.filters["short"] = plots.short
    style = Markup((Path(__file__).parent / "report.css").read_text(encoding="utf-8"))
    return environment.get_template(template).render(style=style, **content)


def _number(x: float | None, digits: int = 3) -> str:
    return "–" if x is None or math.isnan(x) else f"{x:.{digits}f}"
