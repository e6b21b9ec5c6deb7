import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import kafkajs from "kafkajs";
import { startHost } from "./odradek.mjs";

let host;
before(async () => (host = await startHost()));
after(() => host.stop());

test("it tries again", async () => {
  await host.call("topics/create", { name: "orders" });
  const fault = await host.call("fault", { api: "Produce", error: "NOT_ENOUGH_REPLICAS" });

  const kafka = new kafkajs.Kafka({ clientId: "orders-app", brokers: [host.bootstrap], logLevel: 0 });
  const producer = kafka.producer({ createPartitioner: kafkajs.Partitioners.DefaultPartitioner });
  await producer.connect();
  await producer.send({ topic: "orders", messages: [{ value: "one" }] });
  await producer.disconnect();

  await host.call("fault/wait", { id: fault.id });
  assert.equal((await host.call("requests/of", { api: "Produce", client_id: "orders-app" })).length, 2);
  const records = await host.call("topics/records", { name: "orders" });
  assert.deepEqual(records.map((record) => record.value), ["one"]);
});
