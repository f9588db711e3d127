// One managed identity. The resources sign in to each other with managed identities only.

@description('Name of the identity; its database user has the same name.')
param name string

@description('Region and tags of the environment.')
param common { location: string, tags: { *: string } }

resource identity 'Microsoft.ManagedIdentity/userAssignedIdentities@2023-01-31' = {
  name: name
  location: common.location
  tags: common.tags
}

@description('Ids of the identity: of the resource for those that use it, of the client for settings and the SID of its database user, of the principal for roles.')
output ids { resource: string, client: string, principal: string } = {
  resource: identity.id
  client: identity.properties.clientId
  principal: identity.properties.principalId
}
