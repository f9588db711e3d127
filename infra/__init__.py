"""The deployment of the app: Bicep, the programs of azd's hooks, the capacity calculator. None of it is deployed."""
