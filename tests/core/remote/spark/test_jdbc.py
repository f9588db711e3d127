"""core/remote/spark/job_package.py: the same database for Spark."""

import pytest

from core.remote.spark.job_package import jdbc_address

HERE = "jdbc:sqlserver://s.database.windows.net:1433;databaseName=d;encrypt=true;trustServerCertificate=false"


def test_an_odbc_string_of_azure_sql_is_an_address_without_secrets() -> None:
    odbc = "Driver={ODBC Driver 18 for SQL Server};Server=tcp:s.database.windows.net,1433;Database=d;Encrypt=yes"
    assert jdbc_address(odbc) == jdbc_address(f"{odbc};")
    assert (jdbc_address(odbc).url, jdbc_address(odbc).user, jdbc_address(odbc).password) == (HERE, None, None)


def test_a_name_and_a_password_stay_out_of_the_address() -> None:
    address = jdbc_address("SERVER=host;DATABASE=d;UID=app;PWD={a;b};TrustServerCertificate=yes;Encrypt=no")
    assert (address.user, address.password) == ("app", "a;b")
    assert address.url == "jdbc:sqlserver://host:1433;databaseName=d;encrypt=false;trustServerCertificate=true"


@pytest.mark.parametrize("odbc", ["DSN=hubledger", "Server=host", "Database=d", "Server=;Database=d", "nonsense"])
def test_a_string_that_names_no_server_or_database_is_refused(odbc: str) -> None:
    with pytest.raises(ValueError, match="names no Server and Database"):
        jdbc_address(odbc)
