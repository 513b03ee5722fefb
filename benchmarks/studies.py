"""Every study on real data, one after the other, and the part of docs/studies.md that shows them.

    python benchmarks/studies.py OUT [--data sample] [--other OTHER] [--minutes 8 | --steps N] [--only NAME ...]

Each study gets --minutes, or each of its cells --steps; --other is the second data set of `transfer`, which is left out
without one. Called again, what is finished is read and the rest resumes. OUT/studies.md has for each study its command,
its table, the paper's finding, and which claims the seeds show, at 5%, and which not; OUT/study-NAME.png its figure in
few colours, so that it is small.
"""

import argparse
import io
import sys
import time
from pathlib import Path

from PIL import Image

import vitrail
from vitrail.base.files import write_whole
from vitrail.studies.catalogue import STUDIES
from vitrail.training.endings import StoppedError
from vitrail.verbs.study_result import StudyResult

ORDER = (
    "positions",
    "pooling",
    "optimiser",
    "mixers",
    "recipe",
    "shape",
    "masking",
    "resolution",
    "data-size",
    "scaling",
    "axial",
    "transfer",
    "speed",
)
COLOURS = 64


def main() -> None:
    """Run the studies and write what they show."""
    args = parsed()
    sections = []
    for name in args.only or ORDER:
        data = [args.data, *([args.other] if name == "transfer" else [])]
        if None in data:
            continue
        length = {"steps": args.steps} if args.steps else {"minutes": args.minutes}
        try:
            result = vitrail.study(
                name, data, **length, seeds=args.seeds, out=args.out / name, threads=args.threads, note=say
            )
        except StoppedError:
            say("stopped; the same command resumes.")
            sys.exit(130)
        except vitrail.VitrailError as error:
            say(f"{name}: {error}")
            continue
        words = " ".join(["--data", *data, *(f"--{key} {value:g}" for key, value in length.items())])
        sections.append(section(result, f"vitrail study {name} {words} --seeds {args.seeds}"))
        write_whole(args.out / f"study-{name}.png", small(result.folder / "study.png"))
        write_whole(args.out / "studies.md", "\n".join(sections).encode())


def section(result: StudyResult, command: str) -> str:
    """Write what a study shows."""
    study, day = result.study, time.strftime("%Y-%m-%d")
    lines = [f"### {study.name}: {study.question}", "", f"`{command}` ({day}, {result.steps} steps for each cell)", ""]
    lines += [f"![{study.question}](study-{study.name}.png)", ""]
    table = result.tables()[0]
    lines += ["| " + " | ".join(table.columns) + " |", "|" + "---|" * len(table.columns)]
    lines += ["| " + " | ".join(row) + " |" for row in table.rows]
    lines += ["", f"*The paper:* {result.paper}", "", f"*Here:* {verdicts(result)}", ""]
    return "\n".join(lines)


def verdicts(result: StudyResult) -> str:
    """Write which claims the seeds show, which they reverse, and which they leave open."""
    kinds: dict[str, list[str]] = {"Shown": [], "The reverse is shown": [], "Not shown": []}
    for claim, test in result.tests.items():
        if test is None:
            kinds["Not shown"].append(f"{claim.better} above {claim.worse} (too few seeds)")
            continue
        reverse = test.p < 0.05 and not test.shown
        kind = "Shown" if test.shown else "The reverse is shown" if reverse else "Not shown"
        one, other = (claim.worse, claim.better) if reverse else (claim.better, claim.worse)
        points = abs(test.difference) if reverse else test.difference
        kinds[kind].append(f"{one} above {other} ({100 * points:+.1f} points, {test.chance}, {test.count} seeds)")
    return " ".join(f"{kind}: {'; '.join(parts)}." for kind, parts in kinds.items() if parts) or "No claim is tested."


def small(path: Path) -> bytes:
    """Return a picture in few colours."""
    picture = io.BytesIO()
    with Image.open(path) as image:
        image.convert("RGB").quantize(COLOURS).save(picture, format="png", optimize=True)
    return picture.getvalue()


def parsed() -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out", type=Path)
    parser.add_argument("--data", default="sample")
    parser.add_argument("--other")
    parser.add_argument("--minutes", type=float, default=8.0)
    parser.add_argument("--steps", type=int)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--threads", type=int)
    parser.add_argument("--only", nargs="+", choices=STUDIES)
    return parser.parse_args()


def say(sentence: str) -> None:
    """Print a note at once."""
    print(f"{time.strftime('%H:%M:%S')} {sentence}", file=sys.stderr, flush=True)


if __name__ == "__main__":
    main()
