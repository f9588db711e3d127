# Run a step of `python -m infra.hooks` in its own virtual environment. $env:PYTHON names a different interpreter.
param(
    [Parameter(Mandatory = $true)]
    [ValidateSet('preprovision', 'provisioned', 'deployable', 'deployed')]
    [string] $Step
)
$ErrorActionPreference = 'Stop'
Set-Location (Join-Path $PSScriptRoot '..\..')
$venv = Join-Path '.local-run' 'hooks-venv' # azd takes every folder in .azure for an environment of its own
$inVenv = Join-Path $venv (Join-Path 'Scripts' 'python.exe')

# Write the path of the Python that a command starts, if it is one of the supported versions.
function Find-Python([string] $Command, [string[]] $Options = @()) {
    if (-not $Command -or -not (Get-Command $Command -ErrorAction SilentlyContinue)) { return }
    $found = & $Command @Options -c 'import ensurepip, sys, venv; print(sys.executable); sys.exit(not (3, 11) <= sys.version_info < (3, 15))' 2>$null
    if ($LASTEXITCODE -eq 0) { $found }
}

$whole = $false # an environment without pip is one that was made half
if (Test-Path $inVenv) {
    & $inVenv -m pip --version *> $null
    $whole = $LASTEXITCODE -eq 0
}
if (-not $whole) {
    $python = @(
        Find-Python -Command $env:PYTHON
        foreach ($version in '3.14', '3.13', '3.12', '3.11') { Find-Python -Command 'py' -Options "-$version" }
        Find-Python -Command 'python'
    ) | Select-Object -First 1
    if (-not $python) {
        Write-Error 'hooks: Python 3.11 to 3.14 is needed; name one with $env:PYTHON'
        exit 1
    }
    & $python -m venv --clear $venv
    if ($LASTEXITCODE -ne 0) { exit $LASTEXITCODE }
}
& $inVenv -m pip install --quiet --disable-pip-version-check -r (Join-Path 'infra' (Join-Path 'hooks' 'requirements.txt'))
if ($LASTEXITCODE -ne 0) { exit $LASTEXITCODE }
& $inVenv -m infra.hooks $Step
exit $LASTEXITCODE
