// Private endpoints in the virtual network for the services that the app calls, and their names there.

@description('Azure region.')
@minLength(2)
@maxLength(40)
param location string

@description('Tags of the environment.')
param tags { *: string }

@description('Resource id of the virtual network.')
@minLength(10)
@maxLength(400)
param networkId string

@description('Resource id of its subnet for the endpoints.')
@minLength(10)
@maxLength(400)
param subnetId string

@description('Resources that get a private endpoint.')
@minLength(1)
@maxLength(20)
param targets { name: string, resourceId: string, service: string, zone: string }[]

@description('Private DNS zones of those services.')
@minLength(1)
@maxLength(20)
param zones string[]

module zone 'br/public:avm/res/network/private-dns-zone:0.7.1' = [
  for each in zones: {
    name: take('zone-${each}', 64)
    params: {
      name: each
      tags: tags
      enableTelemetry: false
      virtualNetworkLinks: [{ virtualNetworkResourceId: networkId, registrationEnabled: false }]
    }
  }
]

module endpoint 'br/public:avm/res/network/private-endpoint:0.11.1' = [
  for each in targets: {
    name: take('endpoint-${each.name}', 64)
    params: {
      name: each.name
      location: location
      tags: tags
      enableTelemetry: false
      subnetResourceId: subnetId
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
