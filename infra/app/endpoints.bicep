// Private endpoints in the virtual network for the services that the app calls, and their names there.

@description('Region and tags of the environment.')
param common { location: string, tags: { *: string } }

@description('Resource ids of the virtual network, and of its subnet for the endpoints.')
param network { id: string, subnetId: string }

@description('Resources that get a private endpoint.')
param targets { name: string, resourceId: string, service: string, zone: string }[]

@description('Private DNS zones of those services.')
param zones string[]

module zone 'br/public:avm/res/network/private-dns-zone:0.7.1' = [
  for each in zones: {
    name: take('${deployment().name}-${each}', 64) // of the environment, beside those of others in the group
    params: {
      name: each
      tags: common.tags
      enableTelemetry: false
      virtualNetworkLinks: [{ virtualNetworkResourceId: network.id, registrationEnabled: false }]
    }
  }
]

module endpoint 'br/public:avm/res/network/private-endpoint:0.11.1' = [
  for each in targets: {
    name: take('${deployment().name}-${each.name}', 64)
    params: {
      name: each.name
      location: common.location
      tags: common.tags
      enableTelemetry: false
      subnetResourceId: network.subnetId
      privateLinkServiceConnections: [
        { name: each.name, properties: { privateLinkServiceId: each.resourceId, groupIds: [each.service] } }
      ]
      privateDnsZoneGroup: {
        privateDnsZoneGroupConfigs: [
          { privateDnsZoneResourceId: resourceId('Microsoft.Network/privateDnsZones', each.zone) }
        ]
      }
    }
    dependsOn: [zone]
  }
]
