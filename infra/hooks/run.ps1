# Run a step of `python -m infra.hooks` in its own virtual environment. $env:PYTHON names a different interpreter.
param(
    [Parameter(Mandatory = $true)]
    [ValidateSet('preprovision', 'provisioned', 'deployable', 'deployed')]
    [string] $Step
)
$ErrorActionPreference = 'Stop'
Set-Location (Join-Path $PSScriptRoot '..\..')
$venv = Join-Path '.azure' 'hooks-venv'
$inVenv = Join-Path $venv (Join-Path 'Scripts' 'python.exe')

if (-not (Test-Path $inVenv)) {
    $candidates = @($env:PYTHON, 'python', 'py') | Where-Object { $_ -and (Get-Command $_ -ErrorAction SilentlyContinue) }
    $chosen = $candidates | Where-Object {
        & $_ -c 'import sys; sys.exit(not (3, 11) <= sys.version_info < (3, 13))' 2>$null
        $LASTEXITCODE -eq 0
    } | Select-Object -First 1
    if (-not $chosen) {
        Write-Error 'hooks: Python 3.11 or 3.12 is needed; name one with $env:PYTHON'
        exit 1
    }
    & $chosen -m venv $venv
    if ($LASTEXITCODE -ne 0) { exit $LASTEXITCODE }
}
& $inVenv -m pip install --quiet --disable-pip-version-check -r (Join-Path 'infra' (Join-Path 'hooks' 'requirements.txt'))
if ($LASTEXITCODE -ne 0) { exit $LASTEXITCODE }
& $inVenv -m infra.hooks $Step
exit $LASTEXITCODE
