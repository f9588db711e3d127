"""Before `azd provision`: check the choices, and set the address and the administrator of the deployer."""

import runpy
import sys
from pathlib import Path

sys.path[0] = str(Path(__file__).resolve().parents[2])
sys.argv[1:] = ["preprovision"]
runpy.run_module("infra.hooks", run_name="__main__", alter_sys=True)
