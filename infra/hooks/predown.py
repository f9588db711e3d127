"""Before `azd down`: refuse it where it would delete what others made."""

import runpy
import sys
from pathlib import Path

sys.path[0] = str(Path(__file__).resolve().parents[2])
sys.argv[1:] = ["deletable"]
runpy.run_module("infra.hooks", run_name="__main__", alter_sys=True)
