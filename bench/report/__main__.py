"""`python -m bench.report`: make the pictures, and the parts of pages that show results, from bench/results.json."""

import sys
from pathlib import Path

from bench.report.machine import ROOT
from bench.report.pages import IMAGES, pages_of
from bench.report.pictures import pictures_of
from bench.report.results import ResultsRefused, read_results, write_whole

RESULTS = Path("bench/results.json")


def made(root: Path = ROOT) -> dict[Path, str]:
    """Return the files that the results make, with their texts."""
    results = read_results(root / RESULTS)
    pictures = pictures_of(results)
    drawn = {root / IMAGES / picture.name: picture.svg for picture in pictures.values()}
    return {**drawn, **pages_of(root, results, pictures)}


def main(root: Path = ROOT) -> int:
    """Write each file that differs. Return 1 when a file of results is broken, and write none then."""
    try:
        files = made(root)
        for path, text in files.items():
            if not path.exists() or path.read_text(encoding="utf-8") != text:
                write_whole(path, text)
                print(f"made {path.relative_to(root)}")
    except (ResultsRefused, OSError) as error:
        print(f"bench.report: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
