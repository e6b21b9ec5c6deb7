import { spawn } from "node:child_process";
import { once } from "node:events";
import { createInterface } from "node:readline";

/** Starts a Kafka broker for tests. It stops with `stop()`, or when this process ends. */
export async function startHost(...options) {
  const child = spawn("odradek", ["serve", "--ephemeral", ...options], { stdio: ["pipe", "pipe", "inherit"] });
  const lines = createInterface({ input: child.stdout });
  const [line] = await Promise.race([once(lines, "line"), once(lines, "close")]);
  if (!line) throw new Error("odradek has not started; its log on stderr says why");
  const [, bootstrap, control] = line.match(/listeners=PLAINTEXT:\/\/([^ ,]+).* control=(\S+)/);
  return {
    bootstrap,
    /** Calls an operation of the control port. */
    async call(operation, args = {}) {
      const response = await fetch(`${control}/${operation}`, { method: "POST", body: JSON.stringify(args) });
      const result = await response.json();
      if (!response.ok) throw new Error(result.error);
      return result;
    },
    async stop() {
      child.stdin.end();
      await once(child, "exit");
    },
  };
}
