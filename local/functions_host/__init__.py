"""Run the `function_app.py` of a folder on this machine, by the rules of the Azure Functions host."""

from local.functions_host.errors import HostError, IndexingFailed, NotEmulated, SettingsFault
from local.functions_host.host import FunctionsHost, HostOptions

__all__ = ["FunctionsHost", "HostError", "HostOptions", "IndexingFailed", "NotEmulated", "SettingsFault"]
