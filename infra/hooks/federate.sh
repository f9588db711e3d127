#!/bin/sh
# Let the jobs of GitHub environments sign in as the identity of `azd pipeline config`: federate.sh OWNER/REPOSITORY ENVIRONMENT...
# azd admits branches and pull requests only, and a job with `environment:` presents the environment instead. Safe to run again.
set -eu
repository="${1:-}"
case "$repository" in
    */*/* | *[!A-Za-z0-9._/-]*) repository="" ;;
    ?*/?*) ;;
    *) repository="" ;;
esac
if [ -z "$repository" ] || [ $# -lt 2 ]; then
    echo "federate: name the repository and its environments: infra/hooks/federate.sh OWNER/REPOSITORY ENVIRONMENT..." >&2
    exit 1
fi
shift
for environment in "$@"; do
    case "$environment" in
        "" | *[!A-Za-z0-9._-]*)
            echo "federate: an environment may have letters, digits, '.', '_' and '-' in its name, not '$environment'" >&2
            exit 1
            ;;
    esac
done

if ! application="${AZURE_PIPELINE_CLIENT_ID:-$(azd env get-value AZURE_PIPELINE_CLIENT_ID 2>/dev/null)}"; then
    echo "federate: run \`azd pipeline config\` first: it makes the identity" >&2
    exit 1
fi
known="$(az ad app federated-credential list --id "$application" --query '[].subject' --output tsv)"
for environment in "$@"; do
    subject="repo:$repository:environment:$environment"
    if printf '%s\n' "$known" | grep -Fqx "$subject"; then
        echo "$subject may already sign in"
        continue
    fi
    name="$(printf '%s' "$repository-environment-$environment" | tr -c 'A-Za-z0-9-' '-')"
    az ad app federated-credential create --id "$application" --output none --parameters "{
        \"name\": \"$name\", \"subject\": \"$subject\", \"audiences\": [\"api://AzureADTokenExchange\"],
        \"issuer\": \"https://token.actions.githubusercontent.com\"}"
    echo "$subject may sign in"
done
