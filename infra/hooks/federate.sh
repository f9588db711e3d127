#!/bin/sh
# Let the jobs of GitHub environments sign in as the identity of `azd pipeline config`: federate.sh OWNER/REPOSITORY ENVIRONMENT...
# azd admits branches and pull requests only, and a job with `environment:` presents the environment instead. Safe to run again.
set -eu
refuse() {
    echo "federate: $1" >&2
    exit 1
}

repository="${1:-}"
case "$repository" in
    */*/* | *[!A-Za-z0-9._/-]*) repository="" ;;
    ?*/?*) ;;
    *) repository="" ;;
esac
if [ -z "$repository" ] || [ $# -lt 2 ]; then
    refuse "name the repository and its environments: infra/hooks/federate.sh OWNER/REPOSITORY ENVIRONMENT..."
fi
shift
for environment in "$@"; do
    case "$environment" in
        "" | *[!A-Za-z0-9._-]*)
            refuse "an environment may have letters, digits, '.', '_' and '-' in its name, not '$environment'"
            ;;
    esac
done

if ! application="${AZURE_PIPELINE_CLIENT_ID:-$(azd env get-value AZURE_PIPELINE_CLIENT_ID 2>/dev/null)}"; then
    refuse "run \`azd pipeline config\` first: it makes the identity"
fi

# The subject of a repository that was made, renamed or moved since July 2026 has ids: repo:OWNER@ID/REPOSITORY@ID. Only GitHub
# knows; its `use_immutable_subject` can be false all the same. `azd pipeline config` keeps a gh of its own.
PATH="$PATH:${AZD_CONFIG_DIR:-${HOME:-}/.azd}/bin"
template='if .use_default then .sub_claim_prefix // "without ids" else "of its own" end'
if ! prefix="$(gh api "repos/$repository/actions/oidc/customization/sub" --jq "$template")"; then
    refuse "GitHub did not say how the subjects of $repository begin: install gh, and sign in with \`gh auth login\`"
fi
case "$prefix" in
    "without ids")
        echo "federate: GitHub names no prefix of the subjects, so they have the names alone" >&2
        prefix="repo:$repository"
        ;;
    *[!A-Za-z0-9._:/@-]*) prefix="" ;;
    repo:?*) ;;
    *) prefix="" ;;
esac
if [ -z "$prefix" ]; then
    refuse "$repository has a template of its own for subjects: admit the subject that the sign-in of a job names (AADSTS700213)"
fi

known="$(az ad app federated-credential list --id "$application" --query '[].subject' --output tsv)"
for environment in "$@"; do
    subject="$prefix:environment:$environment"
    if printf '%s\n' "$known" | grep -Fqx "$subject"; then
        echo "$subject may already sign in"
        continue
    fi
    name="$(printf '%s' "${prefix#repo:}-environment-$environment" | tr -c 'A-Za-z0-9-' '-')"
    az ad app federated-credential create --id "$application" --output none --parameters "{
        \"name\": \"$name\", \"subject\": \"$subject\", \"audiences\": [\"api://AzureADTokenExchange\"],
        \"issuer\": \"https://token.actions.githubusercontent.com\"}"
    echo "$subject may sign in"
done
