import pytest

from core.model.policies import address_fault, dialect_at

GOOD = {
    "apache": ("https://livy.example.com:8998", "http://localhost:8998", "http://127.0.0.1:8998", "http://[::1]:1"),
    "synapse": ("https://ws.dev.azuresynapse.net/livyApi/versions/1/sparkPools/p", "http://127.0.0.2:1"),
    "fabric": ("https://api.fabric.microsoft.com/v1", "https://w.z1.w.api.fabric.microsoft.com/v1"),
    "databricks": ("https://adb-1.2.azuredatabricks.net", "HTTPS://ADB-1.2.AZUREDATABRICKS.NET", "http://localhost:1"),
}
NOWHERE = ("", "https://", "https:///x", "adb", "ftp://localhost", "https://host:port/", "https://[::1", "//host")
OPEN = ("http://livy.example.com", "http://localhost.example.com", "http://127.0.0.1.example.com", "http://10.0.0.1")
SECRET = ("https://user:secret@host", "https://host?code=1", "https://host#x", "http://localhost@example.com")
FOREIGN = {
    "synapse": ("https://ws.dev.azuresynapse.net.evil.example", "https://evil.example/.dev.azuresynapse.net", "https://dev.azuresynapse.net"),
    "fabric": ("https://fabric.microsoft.com.evil.example", "https://evil-api.fabric.microsoft.com", "https://evil.example/fabric.microsoft.com"),
    "databricks": ("https://azuredatabricks.net.evil.example", "https://evilazuredatabricks.net", "https://livy.example.com"),
}  # fmt: skip


@pytest.mark.parametrize(("service", "address"), [(name, one) for name, all in GOOD.items() for one in all])
def test_an_address_of_a_service_or_of_this_machine_is_good(service: str, address: str) -> None:
    assert address_fault(address, service) is None


@pytest.mark.parametrize("address", [*NOWHERE, *OPEN, *SECRET])
def test_an_address_off_this_machine_is_https_and_holds_no_secret(address: str) -> None:
    assert {(address_fault(address, service) or "").startswith("must be an address") for service in GOOD} == {True}


@pytest.mark.parametrize(("service", "address"), [(name, one) for name, all in FOREIGN.items() for one in all])
def test_a_token_goes_to_no_host_that_only_looks_like_the_service(service: str, address: str) -> None:
    assert "sends it a token" in (address_fault(address, service) or "")
    assert dialect_at(address) == "apache"
