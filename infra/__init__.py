"""The deployment of the app: Bicep, and the programs of azd's hooks. None of it is deployed."""
