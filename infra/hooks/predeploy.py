"""Before `azd deploy`: refuse a package that would not start, or a schema on which it would not run."""

import runpy
import sys
from pathlib import Path

sys.path[0] = str(Path(__file__).resolve().parents[2])
sys.argv[1:] = ["deployable"]
runpy.run_module("infra.hooks", run_name="__main__", alter_sys=True)
