package odradek.relay;

import java.lang.management.ManagementFactory;
import java.net.InetAddress;
import java.nio.ByteBuffer;
import java.util.Base64;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.TreeMap;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.Future;
import java.util.concurrent.LinkedBlockingQueue;
import javax.management.ObjectName;
import javax.management.openmbean.CompositeData;
import javax.management.openmbean.TabularData;
import odradek.relay.RelayConfig.Listener;
import org.apache.kafka.clients.producer.Callback;
import org.apache.kafka.clients.producer.MockProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.clients.producer.RecordMetadata;
import org.apache.kafka.common.Cluster;
import org.apache.kafka.common.KafkaException;
import org.apache.kafka.common.PartitionInfo;
import org.apache.kafka.common.Uuid;
import org.apache.kafka.common.config.ConfigException;
import org.apache.kafka.common.errors.RecordTooLargeException;
import org.apache.kafka.common.header.Header;
import org.apache.kafka.common.network.ClientInformation;
import org.apache.kafka.common.network.ListenerName;
import org.apache.kafka.common.protocol.ApiKeys;
import org.apache.kafka.common.requests.RequestContext;
import org.apache.kafka.common.requests.RequestHeader;
import org.apache.kafka.common.security.auth.KafkaPrincipal;
import org.apache.kafka.common.security.auth.SecurityProtocol;
import org.apache.kafka.common.serialization.ByteArraySerializer;
import org.apache.kafka.server.authorizer.AuthorizableRequestContext;
import org.apache.kafka.server.telemetry.ClientTelemetryContext;
import org.apache.kafka.server.telemetry.ClientTelemetryExporter;
import org.apache.kafka.server.telemetry.ClientTelemetryPayload;

/** Prints what the relay does without a broker, for a test to compare: a line for each fact, {@code name=value}. */
public final class RelayCheck {
    private static final String ID = "AAECAwQFBgcICQoLDA0ODw";
    private static final byte[] METRICS = {0x0a, 0x00};

    private RelayCheck() { }

    /** Arguments: settings as {@code key=value}, each of which makes a configuration invalid. */
    public static void main(String[] args) throws Exception {
        encode();
        take("idle", Map.of("node.id", "7", "odradek.relay.topic", "a/b"));
        take("full", Map.of(
            "node.id", "7", "odradek.relay.bootstrap.servers", "127.0.0.1:1",
            "odradek.relay.queue.max.records", "3", "odradek.relay.queue.max.bytes", 1 << 20));
        refuse();
        for (String setting : args) {
            String[] pair = setting.split("=", 2);
            System.out.println("problem." + pair[0] + "=" + problem(Map.of(pair[0], pair[1])));
        }
        Map<String, Object> broker = Map.of(
            "listeners", List.of("CONTROLLER://:9093", "INSIDE://0.0.0.0:9095"),
            "advertised.listeners", "OUTSIDE://b1.example:9094,inside://[::1]:9095",
            "inter.broker.listener.name", "INSIDE",
            "listener.security.protocol.map", "CONTROLLER:PLAINTEXT,INSIDE:SSL");
        System.out.println("own=" + Listener.betweenBrokers(broker));
        System.out.println("default=" + Listener.betweenBrokers(Map.of()));
    }

    private static String problem(Map<String, Object> config) {
        try {
            new RelayConfig(config);
            return "none";
        } catch (ConfigException invalid) {
            return invalid.getMessage();
        }
    }

    private static void encode() throws Exception {
        RequestContext context = context("orders", "127.0.0.1:9092-10.1.2.3:40000-0-7");
        PushRecord.Origin origin = new PushRecord.Origin(7, "a-cluster");
        PushRecord push = new PushRecord(origin, context, payload(METRICS, "OTLP", true), 5000, 1_760_000_000_000L);
        ProducerRecord<byte[], byte[]> record = push.toTopic("a-topic", 11);
        System.out.println("topic=" + record.topic());
        System.out.println("partition=" + record.partition());
        System.out.println("timestamp=" + record.timestamp());
        System.out.println("key=" + new String(record.key(), "UTF-8"));
        System.out.println("value=" + Base64.getEncoder().encodeToString(record.value()));
        for (Header header : record.headers()) {
            System.out.println("header." + header.key() + "=" + Base64.getEncoder().encodeToString(header.value()));
        }
    }

    /** Take four pushes, one of another content type, a broken one, and one that is too large for the queue. */
    private static void take(String name, Map<String, Object> config) throws Exception {
        TelemetryExporter reporter = new TelemetryExporter();
        reporter.configure(config);
        ClientTelemetryExporter exporter = reporter.clientTelemetryExporter();
        RequestContext context = context(null, "127.0.0.1:9092-127.0.0.1:40000-0");
        for (int push = 0; push < 4; push++) {
            exporter.exportMetrics(context(context), payload(METRICS, "OTLP", false));
        }
        exporter.exportMetrics(context(context), payload(METRICS, "another", false));
        exporter.exportMetrics(context(context), null);
        exporter.exportMetrics(context(context), payload(new byte[(1 << 20) - 4 * PushRecord.OVERHEAD_BYTES], "OTLP", false));
        print(name);
        long start = System.nanoTime();
        reporter.close();
        System.out.println(name + ".closed.s=" + (System.nanoTime() - start) / 1_000_000_000);
        exporter.exportMetrics(context(context), payload(METRICS, "OTLP", false));
    }

    /** Records that a cluster refuses: one is too large, then the producer fails for good, then a second one works. */
    private static void refuse() throws Exception {
        RelayConfig config = new RelayConfig(Map.of(
            "odradek.relay.topic", "a-topic", "odradek.relay.producer.security.protocol", "SSL"));
        RelayAccounts accounts = new RelayAccounts(10, 1 << 20);
        BlockingQueue<FailingProducer> producers = new LinkedBlockingQueue<>();
        RecordSender sender = new RecordSender(config, accounts, options -> {
            FailingProducer producer = new FailingProducer(options);
            producers.add(producer);
            return producer;
        });
        PushRecord.Origin origin = new PushRecord.Origin(7, null);
        RequestContext context = context("orders", "127.0.0.1:9092-10.1.2.3:40000-0-7");
        for (int number = 0; number < 4; number++) {
            PushRecord record = new PushRecord(origin, context, payload(METRICS, "OTLP", false), 1000, 0);
            accounts.reserve(record.bytes);
            sender.enqueue(record);
            while (accounts.getWaiting() > 0) {
                Thread.sleep(1);
            }
        }
        sender.close();
        System.out.println("refused.producers=" + producers.size());
        System.out.println("refused.security.protocol=" + producers.peek().options.get("security.protocol"));
        System.out.println("refused.Delivered=" + accounts.getDelivered());
        accounts.getDropped().forEach((reason, count) -> System.out.println("refused.Dropped." + reason + "=" + count));
    }

    /** Fails with the second and all further records if it is the first producer. */
    private static final class FailingProducer extends MockProducer<byte[], byte[]> {
        private static int created;
        final Map<String, Object> options;
        private final boolean isFirst;
        private int sent;

        FailingProducer(Map<String, Object> options) {
            super(cluster(), true, null, new ByteArraySerializer(), new ByteArraySerializer());
            this.options = options;
            isFirst = created++ == 0;
        }

        @Override
        public synchronized Future<RecordMetadata> send(ProducerRecord<byte[], byte[]> record, Callback callback) {
            sent++;
            if (isFirst && sent > 1) {
                throw new KafkaException("in an error state");
            }
            if (isFirst) {
                callback.onCompletion(null, new RecordTooLargeException("too large for the topic"));
                return null;
            }
            return super.send(record, callback);
        }

        private static Cluster cluster() {
            PartitionInfo partition = new PartitionInfo("a-topic", 0, null, null, null);
            return new Cluster("c", List.of(), List.of(partition), Set.of(), Set.of());
        }
    }

    /** What JMX shows. */
    private static void print(String when) throws Exception {
        ObjectName name = new ObjectName("odradek.relay:type=Relay,node=7");
        for (String attribute : new String[] {"Received", "Delivered", "Waiting"}) {
            System.out.println(when + "." + attribute + "="
                + ManagementFactory.getPlatformMBeanServer().getAttribute(name, attribute));
        }
        TabularData dropped = (TabularData) ManagementFactory.getPlatformMBeanServer().getAttribute(name, "Dropped");
        Map<String, Object> counts = new TreeMap<>();
        for (Object row : dropped.values()) {
            counts.put((String) ((CompositeData) row).get("key"), ((CompositeData) row).get("value"));
        }
        counts.forEach((reason, count) -> System.out.println(when + ".Dropped." + reason + "=" + count));
    }

    private static RequestContext context(String clientId, String connectionId) throws Exception {
        return new RequestContext(
            new RequestHeader(ApiKeys.PUSH_TELEMETRY, (short) 0, clientId, 5), connectionId,
            InetAddress.getByName("10.1.2.3"), Optional.empty(), new KafkaPrincipal("User", "alice"),
            new ListenerName("EDGE"), SecurityProtocol.SASL_SSL, new ClientInformation("a-client", "1.2"), false);
    }

    private static ClientTelemetryContext context(AuthorizableRequestContext request) {
        return new ClientTelemetryContext() {
            @Override
            public int pushIntervalMs() {
                return 1000;
            }

            @Override
            public AuthorizableRequestContext authorizableRequestContext() {
                return request;
            }
        };
    }

    private static ClientTelemetryPayload payload(byte[] data, String contentType, boolean terminating) {
        return new ClientTelemetryPayload() {
            @Override
            public Uuid clientInstanceId() {
                return Uuid.fromString(ID);
            }

            @Override
            public boolean isTerminating() {
                return terminating;
            }

            @Override
            public String contentType() {
                return contentType;
            }

            @Override
            public ByteBuffer data() {
                return ByteBuffer.wrap(data);
            }
        };
    }
}
