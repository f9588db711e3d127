"""Sign in to Azure SQL from a job: with a name and a password, or with a token of the place where the job runs."""

from collections.abc import Callable, Mapping

from core.remote.spark.job_package import JdbcAddress

RESOURCE = "https://database.windows.net/"
SignIn = Callable[[], Mapping[str, str]]


class SignInRefused(Exception):
    """No way to sign in gives a token. The message names why each failed."""


def sign_in_of(address: JdbcAddress | None) -> SignIn:
    """Return a function that gives the properties of a connection. A token is fetched at each call: it lives for about
    an hour, and a job may run longer."""
    if address is not None and address.user is not None:
        given = {"user": address.user, "password": address.password or ""}
        return lambda: given
    return lambda: {"accessToken": entra_token()}


def entra_token() -> str:
    """Return a token for Azure SQL from the first of Fabric, Synapse and azure-identity that gives one."""
    failures = []
    for name, get in WAYS.items():
        try:
            token = get()
        except Exception as error:  # noqa: BLE001 - the tools of a workspace raise errors of their own kinds
            failures.append(f"{name}: {type(error).__name__}: {(str(error).splitlines() or [''])[0]}")
            continue
        if token:
            return token
        failures.append(f"{name}: it gave no token")
    raise SignInRefused(f"no way to sign in to Azure SQL works: {'; '.join(failures)}")


def _fabric() -> str:
    from notebookutils import credentials

    return str(credentials.getToken(RESOURCE) or "")


def _synapse() -> str:
    """Ask with the short name of the audience: Synapse answers an address with "Audience has invalid characters"."""
    from notebookutils import mssparkutils

    return str(mssparkutils.credentials.getToken("DW") or "")


def _identity() -> str:
    from azure.identity import DefaultAzureCredential

    return str(DefaultAzureCredential().get_token(f"{RESOURCE}.default").token)


WAYS: Mapping[str, Callable[[], str]] = {
    "notebookutils (Fabric)": _fabric,
    'mssparkutils.credentials.getToken("DW") (Synapse)': _synapse,
    "azure-identity": _identity,
}
