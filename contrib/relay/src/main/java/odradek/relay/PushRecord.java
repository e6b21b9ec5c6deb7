package odradek.relay;

import static java.nio.charset.StandardCharsets.UTF_8;

import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.List;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import java.util.zip.CRC32;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.Uuid;
import org.apache.kafka.common.header.Header;
import org.apache.kafka.common.header.internals.RecordHeader;
import org.apache.kafka.common.requests.RequestContext;
import org.apache.kafka.server.authorizer.AuthorizableRequestContext;
import org.apache.kafka.server.telemetry.ClientTelemetryPayload;

/**
 * One push as a record of the telemetry topic. The format is that of
 * {@code host/docs/reference/telemetry-topic.md}; {@code odradek.plugin.decode_record} reads it.
 */
final class PushRecord {
    /** About the size of key, headers and objects, which count against the bound of the queue. */
    static final int OVERHEAD_BYTES = 1024;
    static final String SOURCE = "relay";

    /** Brokers do not tell it. */
    private static final int SUBSCRIPTION_ID = 0;
    private static final String NO_NAME = "unknown";
    /** Kafka's connection ids are {@code local host:port-remote host:port-processor-serial}. */
    private static final Pattern REMOTE_PORT = Pattern.compile(":(\\d+)(?:-\\d+)+$");

    final long bytes;
    private final Uuid clientInstanceId;
    private final long receivedMs;
    private final byte[] value;
    private final List<Header> headers;

    /** Copy a push: the broker uses its buffer again after the call. */
    PushRecord(
        Origin origin, AuthorizableRequestContext context, ClientTelemetryPayload payload, int pushIntervalMs, long receivedMs
    ) {
        ByteBuffer data = payload.data().duplicate();
        this.value = new byte[data.remaining()];
        data.get(value);
        this.bytes = size(payload);
        this.clientInstanceId = payload.clientInstanceId();
        this.receivedMs = receivedMs;
        this.headers = headers(origin, context, pushIntervalMs, receivedMs, payload.isTerminating());
    }

    /** The bytes that a push uses while it waits. */
    static long size(ClientTelemetryPayload payload) {
        return payload.data().remaining() + (long) OVERHEAD_BYTES;
    }

    ProducerRecord<byte[], byte[]> toTopic(String topic, int partitions) {
        byte[] key = clientInstanceId.toString().getBytes(UTF_8);
        return new ProducerRecord<>(topic, partition(partitions), receivedMs, key, value, headers);
    }

    /** The partition: pushes of one client instance stay in order. */
    private int partition(int partitions) {
        ByteBuffer id = ByteBuffer.allocate(16);
        id.putLong(clientInstanceId.getMostSignificantBits()).putLong(clientInstanceId.getLeastSignificantBits());
        CRC32 crc = new CRC32();
        crc.update(id.array());
        return (int) (crc.getValue() % partitions);
    }

    private static List<Header> headers(
        Origin origin, AuthorizableRequestContext context, int pushIntervalMs, long receivedMs, boolean terminating
    ) {
        RequestContext request = context instanceof RequestContext ? (RequestContext) context : null;
        String connectionId = request == null || request.connectionId == null ? "" : request.connectionId;
        boolean isNamed = request != null && request.clientInformation != null;
        List<Header> headers = new ArrayList<>();
        headers.add(header("client_id", context.clientId()));
        headers.add(header("client_software_name", isNamed ? request.clientInformation.softwareName() : NO_NAME));
        headers.add(header("client_software_version", isNamed ? request.clientInformation.softwareVersion() : NO_NAME));
        headers.add(header("client_source_address", context.clientAddress().getHostAddress()));
        headers.add(header("client_source_port", remotePort(connectionId)));
        headers.add(header("principal", context.principal()));
        headers.add(header("listener", context.listenerName()));
        headers.add(header("security_protocol", context.securityProtocol().name));
        headers.add(header("connection_id", connectionId));
        headers.add(header("broker_id", origin.nodeId));
        headers.add(header("api_version", context.requestVersion()));
        headers.add(header("push_interval_ms", pushIntervalMs));
        headers.add(header("subscription_id", SUBSCRIPTION_ID));
        headers.add(header("labeled", false));
        headers.add(header("source", SOURCE));
        if (origin.clusterId != null) {
            headers.add(header("cluster_id", origin.clusterId));
        }
        headers.add(header("received_ms", receivedMs));
        // the broker hands the push over unpacked, and does not say how it was compressed
        headers.add(header("codec", "none"));
        headers.add(header("terminating", terminating));
        return headers;
    }

    private static String remotePort(String connectionId) {
        Matcher found = REMOTE_PORT.matcher(connectionId);
        return found.find() ? found.group(1) : "-1";
    }

    private static Header header(String name, Object content) {
        return new RecordHeader(name, content == null ? null : content.toString().getBytes(UTF_8));
    }

    /** The broker that a push came to. */
    static final class Origin {
        final int nodeId;
        /** Null if the broker has not said it. */
        final String clusterId;

        Origin(int nodeId, String clusterId) {
            this.nodeId = nodeId;
            this.clusterId = clusterId;
        }
    }
}
