"""The result of a study: a row for each cell, means and spreads, tests of its claims, fits."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from vitrail.base.table import Table, Tabular
from vitrail.studies.statistics import PairedTest, PowerLaw, Spread, paired_test, power_law, spread
from vitrail.studies.study import Claim, Study, Variant

SHARES = ("accuracy", "fewshot", "finetuned")
"""Measures that are written in percent."""
WORDS = {
    "fewshot": "accuracy, 5 images of each class",
    "finetuned": "accuracy after fine-tuning",
    "images_per_second": "images/s",
    "largest_batch": "largest batch",
    "teraflops": "teraFLOPs",
    "gmacs": "GMACs",
}
"""Measures in words, where these are others than their names."""


@dataclass(frozen=True, kw_only=True)
class CellResult:
    """The end of one cell: `cell.json` is this."""

    variant: str
    seed: int
    figures: Mapping[str, float]
    """Empty where it diverged."""
    diverged: str | None = None
    """Why it has no figures; None where it has some."""


@dataclass(frozen=True, kw_only=True, repr=False)
class StudyResult(Tabular):
    """Everything that a study measured."""

    study: Study
    variants: Sequence[Variant]
    cells: tuple[CellResult, ...]
    """Finished cells, those that diverged among them."""
    failed: Mapping[str, str]
    """Cells that ended for another reason, by name, with the reason: the same command tries them again."""
    folder: Path
    steps: int

    @property
    def measure(self) -> str:
        """The figure that decides."""
        return self.study.measures[0]

    @property
    def page(self) -> Path:
        """The page with the figure."""
        return self.folder / "study.html"

    @property
    def csv(self) -> Path:
        """A row for each cell."""
        return self.folder / "study.csv"

    @property
    def paper(self) -> str:
        """The paper's finding, where it stands, and whether it has numbers to draw."""
        study = self.study
        parts = [f"{study.paper} ({study.source})" if study.source else study.paper]
        if study.source.startswith(("App.", "Sec.", "Fig.", "Table")) and not study.points:
            parts.append("It gives no numbers for this figure, so none of its points are drawn here.")
        return " ".join(parts)

    def values(self, variant: str, measure: str | None = None) -> dict[int, float]:
        """Return a figure of a variant by seed; cells that diverged have none."""
        name = measure or self.measure
        return {
            cell.seed: cell.figures[name] for cell in self.cells if cell.variant == variant and name in cell.figures
        }

    def teraflops(self, variant: str) -> Spread | None:
        """Return the compute of a variant's cells."""
        return spread([1e6 * value for value in self.values(variant, "exaflops").values()])

    def spread(self, variant: str, measure: str | None = None) -> Spread | None:
        """Return mean and deviation of a figure over the seeds."""
        return spread(list(self.values(variant, measure).values()))

    @cached_property
    def tests(self) -> dict[Claim, PairedTest | None]:
        """The paired test of each claim; None with fewer than two seeds of both."""
        return {
            claim: paired_test(self.values(claim.better), self.values(claim.worse))
            for claim in self.study.claims_about(self.variants)
        }

    @cached_property
    def fits(self) -> dict[str, PowerLaw]:
        """The power law of each line, of a study that fits one."""
        if not self.study.fit:
            return {}
        fits: dict[str, PowerLaw] = {}
        for line in dict.fromkeys(variant.line for variant in self.variants):
            names = {variant.name for variant in self.variants if variant.line == line}
            cells = [
                cell for cell in self.cells if cell.variant in names and {self.measure, "exaflops"} <= set(cell.figures)
            ]
            law = power_law(
                [cell.figures["exaflops"] for cell in cells], [1 - cell.figures[self.measure] for cell in cells]
            )
            fits |= {} if law is None else {line: law}
        return fits

    def diverged(self, variant: str) -> int:
        """Count the cells of a variant that diverged."""
        return sum(cell.variant == variant and cell.diverged is not None for cell in self.cells)

    def to_dict(self) -> dict[str, Any]:
        """Return everything as plain values for JSON."""
        return {
            "study": self.study.name,
            "question": self.study.question,
            "paper": self.study.paper,
            "steps": self.steps,
            "measure": self.measure,
            "variants": [self._variant(variant) for variant in self.variants],
            "claims": [
                {"better": claim.better, "worse": claim.worse}
                | (
                    {}
                    if test is None
                    else {
                        "difference": test.difference,
                        "low": test.low,
                        "high": test.high,
                        "p": test.p,
                        "seeds": test.count,
                        "shown": test.shown,
                    }
                )
                for claim, test in self.tests.items()
            ],
            "fits": {
                line: {"factor": law.factor, "exponent": law.exponent, "low": law.low, "high": law.high}
                for line, law in self.fits.items()
            },
            "failed": dict(self.failed),
            "page": str(self.page),
            "csv": str(self.csv),
        }

    def _variant(self, variant: Variant) -> dict[str, Any]:
        figures = {}
        for name in dict.fromkeys(name for cell in self.cells if cell.variant == variant.name for name in cell.figures):
            over = self.spread(variant.name, name)
            if over is not None:
                figures[name] = {"mean": over.mean, "deviation": over.deviation, "seeds": over.count}
        return {"name": variant.name, "line": variant.line, "diverged": self.diverged(variant.name), "figures": figures}

    def tables(self) -> list[Table]:
        """Return the variants, the tests of the claims, and the fits."""
        tables = [self._variants_table()]
        if self.tests:
            tables.append(self._tests_table())
        if self.fits:
            tables.append(self._fits_table())
        return tables

    def _variants_table(self) -> Table:
        speed = self.study.task == "speed"
        measures = [*self.study.measures, "gmacs" if speed else "teraflops"]
        lost = any(self.diverged(variant.name) for variant in self.variants)
        points = {point.name: f"{100 * point.value:.2f}%" for point in self.study.points}
        paper = any(variant.name in points for variant in self.variants)
        rows = []
        for variant in self.variants:
            cells = [
                written(self.teraflops(variant.name) if name == "teraflops" else self.spread(variant.name, name), name)
                for name in measures
            ]
            cells += [str(self.diverged(variant.name) or "")] if lost else []
            rows.append((variant.name, *cells, *([points.get(variant.name, "")] if paper else [])))
        length = "" if speed else f" {self.steps} steps for each cell;"
        notes = [f"{self.study.question}{length} Mean and standard deviation over seeds.".replace("; M", "; m")]
        notes += [f"The paper: {self.paper}"] if self.paper else []
        notes += [f"not finished: {name}: {reason}" for name, reason in self.failed.items()]
        words = [WORDS.get(name, name) for name in measures]
        columns = ("variant", *words, *(["diverged"] if lost else []), *(["the paper"] if paper else []))
        return Table(title=f"Study: {self.study.name}", columns=columns, rows=tuple(rows), notes=tuple(notes))

    def _tests_table(self) -> Table:
        rows = []
        for claim, test in self.tests.items():
            text = f"{claim.better} above {claim.worse}"
            if test is None:
                rows.append((text, "-", "-", "-", "needs two seeds of both"))
                continue
            verdict = "yes" if test.shown else "the reverse" if test.p < 0.05 else "not shown"
            interval = f"{100 * test.low:+.2f} to {100 * test.high:+.2f}"
            rows.append((text, f"{100 * test.difference:+.2f}", interval, test.chance.removeprefix("p = "), verdict))
        note = (
            "Differences in points over the seeds that both have; Student's paired test, two-sided, "
            "not corrected for several claims."
        )
        columns = ("claim", "difference", "95% interval", "p", "note")
        return Table(title="Claims", columns=columns, rows=tuple(rows), notes=(note,))

    def _fits_table(self) -> Table:
        lowest: dict[str, float] = {}
        for variant in self.variants:
            over = self.spread(variant.name)
            if over is not None:
                lowest[variant.line] = min(lowest.get(variant.line, 1.0), 1 - over.mean)
        error = max(lowest.values())  # each line has reached it
        needs = {line: law.compute_for(error) for line, law in self.fits.items()}
        first = next(iter(needs))
        rows = tuple(
            (
                line,
                f"{law.exponent:.3f}",
                f"{law.low:.3f} to {law.high:.3f}",
                f"{1e6 * needs[line]:.3g}",
                f"{needs[line] / needs[first]:.2f}",
            )
            for line, law in self.fits.items()
        )
        note = (
            f"error = a C^-b, fitted to all cells; the interval is over cells drawn again. teraFLOPs: the C for "
            f"an error of {error:.3f}, the lowest that every line has reached; then beside that of {first}."
        )
        columns = ("line", "b", "95% interval", "teraFLOPs", f"of {first}")
        return Table(title="Power laws", columns=columns, rows=rows, notes=(note,))


def written(over: Spread | None, measure: str) -> str:
    """Write a figure with its spread; shares in percent."""
    if over is None:
        return "-"
    if measure in SHARES:
        return f"{100 * over.mean:.2f}%" + ("" if over.deviation is None else f" +- {100 * over.deviation:.2f}")
    if over.deviation is None or over.deviation <= 1e-6 * over.mean:
        return _short(over.mean)
    return f"{_short(over.mean)} +- {_short(over.deviation, digits=2)}"


def _short(value: float, *, digits: int = 3) -> str:
    """Write a number with a few digits, and without an exponent where it is large."""
    return f"{value:,.0f}" if value >= 10**digits - 0.5 else f"{value:.{digits}g}"
