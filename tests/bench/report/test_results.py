"""bench/report/results.py and machine.py: a file that holds whole results, and names no person and no place."""

import getpass
import json
import math
import platform
from dataclasses import replace
from pathlib import Path

import pytest

from bench.report.machine import machine
from bench.report.part import measure_part
from bench.report.results import PartResult, ResultsRefused, read_results, results_of, text_of, write_result
from tests.bench.report.parts import SPEED, good


@pytest.fixture(scope="module")
def result() -> PartResult:
    return measure_part("good", good)


def test_a_result_is_read_as_it_was_written_in_place_of_the_one_of_its_part_and_size(
    tmp_path: Path, result: PartResult
) -> None:
    path, large, other = tmp_path / "results.json", replace(result, size="full"), replace(result, part="better")
    for one in (large, replace(result, seconds=7.0), replace(large, size="server"), other, result):
        write_result(path, one)
    assert read_results(path) == {"": [other, result], "full": [large], "server": [replace(large, size="server")]}


def test_a_file_that_is_cut_off_at_any_place_is_refused_with_its_name(tmp_path: Path, result: PartResult) -> None:
    text = text_of([result]).rstrip()
    for length in range(0, len(text), 17):
        (tmp_path / "results.json").write_text(text[:length], encoding="utf-8")
        with pytest.raises(ResultsRefused, match=r"results\.json is no whole file of results"):
            read_results(tmp_path / "results.json")


def test_a_value_that_is_no_finite_number_is_null_and_never_a_broken_file(result: PartResult) -> None:
    for value in (math.inf, math.nan):
        text = text_of([replace(result, figures=(replace(SPEED, value=value),))])
        assert json.loads(text)[0]["figures"][0]["value"] is None
        assert math.isnan(results_of(text)[0].figures[0].value)


def test_the_machine_names_no_host_and_no_user() -> None:
    said = json.dumps(machine())
    assert platform.node() not in said
    assert getpass.getuser() not in said.split('"')
    assert "/" not in said
