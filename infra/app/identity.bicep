// One managed identity: the only way in which anything here signs in to anything else.

@description('Name of the identity.')
@minLength(3)
@maxLength(128)
param name string

@description('Azure region.')
@minLength(2)
@maxLength(40)
param location string

@description('Tags of the environment.')
param tags object

resource identity 'Microsoft.ManagedIdentity/userAssignedIdentities@2023-01-31' = {
  name: name
  location: location
  tags: tags
}

@description('Name of the identity; its database user bears the same one.')
output name string = identity.name

@description('Resource id, for whoever wears the identity.')
output resourceId string = identity.id

@description('Object id, for role assignments.')
output principalId string = identity.properties.principalId

@description('Client id, for settings and for the SID of its database user.')
output clientId string = identity.properties.clientId
