"""What deploys the app: Bicep, the programs behind azd's hooks, and the capacity calculator. None of it is deployed."""
