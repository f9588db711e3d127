// A virtual network for the app's outgoing calls, and private endpoints for the services that it calls.

@description('Name of the network.')
@minLength(2)
@maxLength(64)
param name string

@description('Azure region.')
@minLength(2)
@maxLength(40)
param location string

@description('Tags of the environment.')
param tags { *: string }

@description('Address space of the network, at least a /24.')
@minLength(9)
@maxLength(18)
param addressPrefix string

@description('Resources that get a private endpoint.')
@minLength(1)
@maxLength(20)
param targets { name: string, resourceId: string, service: string, zone: string }[]

@description('Private DNS zones of those services.')
@minLength(1)
@maxLength(20)
param zones string[]

var appSubnet = 'app'
var endpointSubnet = 'endpoints'
var workerSubnet = 'worker' // Container Apps and Flex Consumption cannot share one

module network 'br/public:avm/res/network/virtual-network:0.7.1' = {
  name: 'virtual-network'
  params: {
    name: name
    location: location
    tags: tags
    enableTelemetry: false
    addressPrefixes: [addressPrefix]
    subnets: [
      { name: appSubnet, addressPrefix: cidrSubnet(addressPrefix, 26, 0), delegation: 'Microsoft.App/environments' }
      { name: endpointSubnet, addressPrefix: cidrSubnet(addressPrefix, 26, 1) }
      { name: workerSubnet, addressPrefix: cidrSubnet(addressPrefix, 26, 2), delegation: 'Microsoft.App/environments' }
    ]
  }
}

module zone 'br/public:avm/res/network/private-dns-zone:0.7.1' = [
  for each in zones: {
    name: take('zone-${each}', 64)
    params: {
      name: each
      tags: tags
      enableTelemetry: false
      virtualNetworkLinks: [{ virtualNetworkResourceId: network.outputs.resourceId, registrationEnabled: false }]
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
      subnetResourceId: '${network.outputs.resourceId}/subnets/${endpointSubnet}'
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

@description('Resource id of the subnet for the app.')
output appSubnetId string = '${network.outputs.resourceId}/subnets/${appSubnet}'

@description('Resource id of the subnet for the worker.')
output workerSubnetId string = '${network.outputs.resourceId}/subnets/${workerSubnet}'
