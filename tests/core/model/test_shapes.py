import subprocess
import sys

# Threads that meet at the first reading of a class, again and again: each class is new.
RACE = """
import sys, threading
from dataclasses import make_dataclass
from typing import Literal, NewType
from core.model.shapes import converted
from core.tasks.task import report_of
sys.setswitchinterval(1e-7)
Number, null = NewType("Number", int), None
for _ in range(400):
    inner = make_dataclass("Inner", [("number", Number)])
    fields = [("move", Literal["retry", "discard"]), ("inner", inner | None), ("numbers", tuple[Number, ...] | None)]
    kind, gate = make_dataclass("Report", fields), threading.Barrier(6)
    def read():
        gate.wait()
        READ
    threads = [threading.Thread(target=read) for _ in range(6)]
    for one in threads: one.start()
    for one in threads: one.join()
"""


def test_threads_that_read_a_class_for_the_first_time_do_not_end_the_process() -> None:
    given = '{"move": "retry", "inner": null, "numbers": [1]}'
    for read in (f"report_of('{given}', kind)", f"converted([{given}], list[kind])"):
        race = RACE.replace("READ", read)
        done = subprocess.run([sys.executable, "-c", race], capture_output=True, text=True, check=False)
        assert (done.returncode, done.stderr) == (0, ""), read
