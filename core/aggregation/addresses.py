"""The addresses of Spark engines: https except on this machine, and exactly a service's host where a token goes."""

from ipaddress import ip_address
from urllib.parse import SplitResult, urlsplit

# The hosts to which the app sends a token of Entra: a name that begins with a dot stands for every host below it.
HOSTS = {
    "synapse": (".dev.azuresynapse.net",),
    "fabric": ("api.fabric.microsoft.com", ".api.fabric.microsoft.com"),
    "databricks": (".azuredatabricks.net",),
}


def address_fault(address: str, service: str) -> str | None:
    """Return the end of a sentence that says why the app does not use an address, or None for a good one."""
    parts = _split(address)
    if parts is None or not parts.hostname or "@" in parts.netloc or parts.query or parts.fragment:
        return "must be an address, https://..."
    if not (parts.scheme == "https" or (parts.scheme == "http" and _is_here(parts.hostname))):
        return "must be an address, https://... (http only on this machine)"
    if service in HOSTS and not (_is_host_of(service, parts.hostname) or _is_here(parts.hostname)):
        known = " or ".join(f"HOST{name}" if name.startswith(".") else name for name in HOSTS[service])
        return f"must be an address at {known}, because the app sends it a token"
    return None


def dialect_at(livy_address: str) -> str:
    """Return the dialect of Livy that the host of an address speaks."""
    parts = _split(livy_address)
    host = "" if parts is None else parts.hostname or ""
    return next((service for service in ("synapse", "fabric") if _is_host_of(service, host)), "apache")


def _split(address: str) -> SplitResult | None:
    try:
        parts = urlsplit(address)
        _ = parts.port  # a port that is no number is reported here
    except ValueError:
        return None
    return parts


def _is_host_of(service: str, host: str) -> bool:
    return any(host == name or (name.startswith(".") and host.endswith(name)) for name in HOSTS[service])


def _is_here(host: str) -> bool:
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"
