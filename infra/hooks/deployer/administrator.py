"""The administrator of the database server: the deployer, or the group or application that a person chose."""

import uuid
from collections.abc import Mapping

from infra.hooks.deployer.sign_in import Account, in_pipeline
from infra.hooks.errors import HookRefused

ID, TYPE = "SQL_ADMINISTRATOR_ID", "SQL_ADMINISTRATOR_TYPE"
GROUP, USER, APPLICATION = "Group", "User", "ServicePrincipal"
PAGE = "docs/deploy.md, The administrator of the database"


def choose_administrator(environment: Mapping[str, str], account: Account) -> dict[str, str]:
    """Return the values of azd's environment that have to change so that the hooks can sign in to the database.

    Azure SQL knows an application by its application id, and azd tells only its object id. Raise HookRefused for a
    choice with which the hooks could not sign in.
    """
    given, kind = environment.get(ID, ""), environment.get(TYPE) or GROUP
    if given:
        _refuse_unfit(_uuid(given), kind, account)
        return {}
    if not account.application_id and environment.get("AZURE_PRINCIPAL_TYPE") != APPLICATION:
        return {}
    application = account.application_id or (environment.get("AZURE_CLIENT_ID", "") if in_pipeline(environment) else "")
    if not application:
        raise HookRefused(
            f"azd deploys as a service principal, and its application id is unknown: `azd env set {ID} <id>` and"
            f" `azd env set {TYPE} {APPLICATION}`, or name a group ({PAGE})"
        )
    print(f"the administrator of the database is the application {_uuid(application)}")
    return {ID: str(_uuid(application)), TYPE: APPLICATION}


def _refuse_unfit(given: uuid.UUID, kind: str, account: Account) -> None:
    ids = {USER: "" if account.application_id else account.object_id, APPLICATION: account.application_id}
    if kind not in (GROUP, *ids):
        raise HookRefused(f"{TYPE} must be {GROUP}, {USER} or {APPLICATION}, not {kind!r}")
    is_object_id = str(given) == account.object_id.lower()
    if kind == GROUP and str(given) in (account.object_id.lower(), account.application_id.lower()):
        raise HookRefused(f"{ID} is {account.name} and not a group: set {TYPE}, or the object id of a group")
    if kind == APPLICATION and is_object_id and account.application_id:
        raise HookRefused(
            f"{ID} is the object id of a service principal, and Azure SQL takes its application id:"
            f" `azd env set {ID} {account.application_id}`"
        )
    if kind != GROUP and account.object_id and str(given) != ids[kind].lower():
        raise HookRefused(
            f"{ID} is not {account.name}, who is signed in and has to create the users of the database: sign in as the"
            f" administrator, or make a group the administrator ({PAGE})"
        )


def _uuid(text: str) -> uuid.UUID:
    try:
        return uuid.UUID(text)
    except ValueError as error:
        raise HookRefused(
            f"{ID} must be an id of the form 00000000-0000-0000-0000-000000000000, not {text!r}"
        ) from error
