// One managed identity. The resources sign in to each other with managed identities only.

@description('Name of the identity.')
@minLength(3)
@maxLength(128)
param name string

@description('Azure region.')
@minLength(2)
@maxLength(40)
param location string

@description('Tags of the environment.')
param tags { *: string }

resource identity 'Microsoft.ManagedIdentity/userAssignedIdentities@2023-01-31' = {
  name: name
  location: location
  tags: tags
}

@description('Name of the identity; its database user has the same name.')
output name string = identity.name

@description('Resource id, for the resources that use the identity.')
output resourceId string = identity.id

@description('Object id, for role assignments.')
output principalId string = identity.properties.principalId

@description('Client id, for settings and for the SID of its database user.')
output clientId string = identity.properties.clientId
