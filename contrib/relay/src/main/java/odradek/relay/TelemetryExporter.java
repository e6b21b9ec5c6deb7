package odradek.relay;

import org.apache.kafka.server.telemetry.ClientTelemetryExporter;
import org.apache.kafka.server.telemetry.ClientTelemetryExporterProvider;

/** The relay for Kafka 4.2 and later (KIP-1217). */
public final class TelemetryExporter extends RelayReporter implements ClientTelemetryExporterProvider {
    @Override
    public ClientTelemetryExporter clientTelemetryExporter() {
        Relay relay = relay();
        return (context, payload) ->
            relay.take(context.authorizableRequestContext(), payload, context.pushIntervalMs());
    }
}
