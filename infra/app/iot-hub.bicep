// The two consumer groups at the built-in endpoint of an IoT Hub of somebody else: all that this file makes. No role can be assigned
// on the endpoint: who knows its connection string reads.

@description('Name of the IoT Hub.')
param name string

@description('Names of its consumer groups: of the trigger, which no other reader may use, and of the reader of gaps and replays.')
param names { hub: string, triggerGroup: string, readerGroup: string }

@description('True makes a group; false takes the one that exists.')
param makes { triggerGroup: bool, readerGroup: bool }

resource trigger 'Microsoft.Devices/IotHubs/eventHubEndpoints/ConsumerGroups@2023-06-30' = if (makes.triggerGroup) {
  name: '${name}/events/${names.triggerGroup}'
  properties: { name: names.triggerGroup }
}

resource reader 'Microsoft.Devices/IotHubs/eventHubEndpoints/ConsumerGroups@2023-06-30' = if (makes.readerGroup) {
  name: '${name}/events/${names.readerGroup}'
  properties: { name: names.readerGroup }
  dependsOn: [trigger] // an IoT Hub refuses two changes of it at a time
}
