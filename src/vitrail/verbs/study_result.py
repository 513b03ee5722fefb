"""The result of a study: a row for each cell, means and spreads, tests of its claims, fits."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from vitrail.base.table import Table, Tabular
from vitrail.studies.statistics import PairedTest, PowerLaw, Spread, paired_test, power_law, spread
from vitrail.studies.study import Claim, Study, Variant


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

    def values(self, variant: str, measure: str | None = None) -> dict[int, float]:
        """Return a figure of a variant by seed; cells that diverged have none."""
        name = measure or self.measure
        return {
            cell.seed: cell.figures[name] for cell in self.cells if cell.variant == variant and name in cell.figures
        }

    def spread(self, variant: str, measure: str | None = None) -> Spread | None:
        """Return mean and deviation of a figure over the seeds."""
        return spread(list(self.values(variant, measure).values()))

    @cached_property
    def tests(self) -> dict[Claim, PairedTest | None]:
        """The paired test of each claim; None with fewer than two seeds of both."""
        return {claim: paired_test(self.values(claim.better), self.values(claim.worse)) for claim in self.study.claims}

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
        measures = [*self.study.measures, *(["largest_batch"] if self.study.task == "speed" else ["exaflops"])]
        rows = []
        for variant in self.variants:
            paper = next((point for point in self.study.points if point.name == variant.name), None)
            cells = [written(self.spread(variant.name, name), name) for name in measures]
            lost = self.diverged(variant.name)
            rows.append(
                (variant.name, *cells, f"{lost} diverged" if lost else "", f"{paper.value:.3f}" if paper else "")
            )
        notes = [f"{self.study.question} {self.steps} steps for each run; mean and standard deviation over seeds."]
        notes += [f"The paper ({self.study.source}): {self.study.paper}"] if self.study.source else []
        notes += [f"not finished: {name}: {reason}" for name, reason in self.failed.items()]
        columns = ("variant", *(name.replace("_", " ") for name in measures), "diverged", "paper")
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
            rows.append((text, f"{100 * test.difference:+.2f}", interval, f"{test.p:.3f}", verdict))
        note = (
            "Differences in points over the seeds that both have; Student's paired test, two-sided, "
            "not corrected for several claims."
        )
        columns = ("claim", "difference", "95% interval", "p", "note")
        return Table(title="Claims", columns=columns, rows=tuple(rows), notes=(note,))

    def _fits_table(self) -> Table:
        best = max((1 - self.values(v.name).get(0, 0.0), v.line) for v in self.variants)[0]
        rows = tuple(
            (line, f"{law.exponent:.3f}", f"{law.low:.3f} to {law.high:.3f}", f"{law.compute_for(best):.3g}")
            for line, law in self.fits.items()
        )
        note = f"error = a C^-b; the last column is the compute C, in exaFLOPs, for an error of {best:.3f} by each fit."
        return Table(title="Power laws", columns=("line", "b", "95% interval", "exaFLOPs"), rows=rows, notes=(note,))


def written(over: Spread | None, measure: str) -> str:
    """Write a figure with its spread; shares in percent."""
    if over is None:
        return "-"
    if measure in ("accuracy", "fewshot"):
        return f"{100 * over.mean:.2f}%" + ("" if over.deviation is None else f" +- {100 * over.deviation:.2f}")
    return f"{over.mean:.3g}" + ("" if not over.deviation else f" +- {over.deviation:.1g}")
