// What Microsoft's JavaScript client of Event Hubs does with an emulator: `node javascript.cjs ACT CONNECTION_STRING`
// prints one line of JSON. NODE_PATH has the client.
"use strict";
const {
  EventHubBufferedProducerClient,
  EventHubConsumerClient,
  EventHubProducerClient,
  earliestEventPosition,
} = require("@azure/event-hubs");

const [act, connection] = process.argv.slice(2);
const HUB = "telemetry";
const GROUP = "$Default";
const producer = () => new EventHubProducerClient(connection, HUB);
const fail = (error) => {
  console.error(error);
  process.exit(1);
};
const refusal = (error) => ({ code: error.code, message: error.message });

// Read partition 0 from its first event; `seen` gets each event, and its true ends the reading.
function read(seen, options = {}) {
  const client = new EventHubConsumerClient(GROUP, connection, HUB);
  return new Promise((resolve, reject) => {
    let subscription;
    const end = (settle, value) => subscription.close().then(() => client.close()).then(() => settle(value), reject);
    subscription = client.subscribe(
      "0",
      {
        processEvents: async (events) => {
          if (events.map(seen).some(Boolean)) end(resolve);
        },
        processError: async (error) => end(reject, error),
      },
      { startPosition: earliestEventPosition, maxWaitTimeInSeconds: 1, ownerLevel: options.ownerLevel },
    );
  });
}

const acts = {
  async epochs() {
    let isOpen;
    const opened = new Promise((resolve) => (isOpen = resolve));
    const client = producer();
    await client.sendBatch([{ body: "first" }], { partitionId: "0" });
    await client.close();
    const former = read(() => void isOpen(), { ownerLevel: 3 }).catch(refusal);
    await opened;
    await read(() => true, { ownerLevel: 5 });
    return former;
  },

  // The state that idempotent producers of one group see, as the client's own tests set them up.
  async producers() {
    const idempotent = (options) => {
      const client = new EventHubProducerClient(connection, HUB, { retryOptions: { maxRetries: 0 } });
      return Object.assign(client, { _enableIdempotentRetries: true, _partitionOptions: { 0: options } });
    };
    const send = (client, count) => client.sendBatch(Array(count).fill({ body: "x" }), { partitionId: "0" });
    const first = idempotent();
    const state = async () => (await first.getPartitionPublishingProperties("0")).lastPublishedSequenceNumber;
    const numbers = [await state()];
    await send(first, 5);
    numbers.push(await state());
    const { producerGroupId } = await first.getPartitionPublishingProperties("0");
    const refused = [];
    const code = (error) => error.code ?? error.message; // the client has no code for a number out of order
    for (const options of [{ startingSequenceNumber: 0 }, { ownerLevel: -1, startingSequenceNumber: 5 }]) {
      const other = idempotent({ producerGroupId, ...options });
      refused.push(code(await send(other, 1).catch(refusal)));
      await other.close();
    }
    await send(first, 1);
    numbers.push(await state());
    const next = idempotent({ producerGroupId, ownerLevel: 4, startingSequenceNumber: 6 });
    await send(next, 2);
    refused.push(code(await send(first, 1).catch(refusal)));
    await Promise.all([first.close(), next.close()]);
    return { numbers, refused };
  },

  // Publish numbers, each in a batch of its own; the emulator cuts the connection before it answers one of them.
  async idempotent() {
    const client = new EventHubBufferedProducerClient(connection, HUB, {
      enableIdempotentRetries: true,
      maxWaitTimeInMs: 10,
      retryOptions: { timeoutInMs: 1000, retryDelayInMs: 20 },
      onSendEventsErrorHandler: async ({ error }) => fail(error),
    });
    for (let number = 0; number < 10; number++) {
      await client.enqueueEvent({ body: number }, { partitionId: "0" });
      await client.flush();
    }
    await client.close();
    const found = [];
    await read((event) => found.push(event.body) && event.body === 9);
    return found;
  },
};

acts[act]().then(
  (found) => {
    console.log(JSON.stringify(found));
    process.exit(0);
  },
  fail,
);
