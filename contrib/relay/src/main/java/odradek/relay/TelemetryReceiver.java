package odradek.relay;

import org.apache.kafka.server.telemetry.ClientTelemetry;
import org.apache.kafka.server.telemetry.ClientTelemetryReceiver;

/** The relay for Kafka 3.7 to 4.1, which do not tell a plugin the push interval (KIP-714). It also runs in later 4.x. */
@SuppressWarnings({"deprecation", "removal"})
public final class TelemetryReceiver extends RelayReporter implements ClientTelemetry {
    @Override
    public ClientTelemetryReceiver clientReceiver() {
        Relay relay = relay();
        return (context, payload) -> relay.take(context, payload, Relay.NOT_KNOWN);
    }
}
