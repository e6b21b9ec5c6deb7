package odradek.relay;

import java.util.HashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Set;
import org.apache.kafka.clients.producer.ProducerConfig;
import org.apache.kafka.common.config.AbstractConfig;
import org.apache.kafka.common.config.ConfigDef;
import org.apache.kafka.common.config.ConfigDef.Importance;
import org.apache.kafka.common.config.ConfigDef.Range;
import org.apache.kafka.common.config.ConfigDef.Type;
import org.apache.kafka.common.config.ConfigException;
import org.apache.kafka.common.errors.InvalidTopicException;
import org.apache.kafka.common.internals.Topic;
import org.apache.kafka.common.serialization.ByteArraySerializer;

/** The relay's part of a broker's configuration: the keys that start with {@code odradek.relay.}. */
final class RelayConfig {
    static final String PREFIX = "odradek.relay.";
    static final String BOOTSTRAP = "bootstrap.servers";
    static final String TOPIC = "topic";
    static final String MAX_BYTES = "queue.max.bytes";
    static final String MAX_RECORDS = "queue.max.records";
    static final String PUSH_INTERVAL_MS = "push.interval.ms";
    static final String PRODUCER = "producer.";

    private static final int MAX_REQUEST_BYTES = 16 << 20;
    private static final String MAX_BLOCK_MS = "5000";
    /** The client logs each attempt. */
    private static final String RECONNECT_MAX_MS = "10000";
    private static final ConfigDef KEYS = new ConfigDef()
        .define(BOOTSTRAP, Type.STRING, "", Importance.HIGH, "Servers of the cluster that has the topic")
        .define(TOPIC, Type.STRING, "client_telemetry", new ConfigDef.NonEmptyString(), Importance.HIGH, "The topic")
        .define(MAX_BYTES, Type.LONG, 32L << 20, Range.between(1 << 20, 1L << 40), Importance.MEDIUM,
            "Memory for pushes that are not confirmed yet, in bytes")
        .define(MAX_RECORDS, Type.LONG, 10_000L, Range.between(1, 10_000_000), Importance.MEDIUM,
            "Pushes that are not confirmed yet")
        .define(PUSH_INTERVAL_MS, Type.INT, 300_000, Range.atLeast(1), Importance.LOW,
            "The push interval of clients, for brokers that do not tell it");
    /** A producer that pushed its own metrics to this cluster would have them relayed. */
    private static final String PUSHES_METRICS = "enable.metrics.push";
    private static final Set<String> OURS = Set.of(
        ProducerConfig.BOOTSTRAP_SERVERS_CONFIG, ProducerConfig.KEY_SERIALIZER_CLASS_CONFIG,
        ProducerConfig.VALUE_SERIALIZER_CLASS_CONFIG, ProducerConfig.TRANSACTIONAL_ID_CONFIG, PUSHES_METRICS);

    final String topic;
    final long maxBytes;
    final long maxRecords;
    final int pushIntervalMs;
    /** The complete options of the producer. May hold secrets. */
    final Map<String, Object> producer;

    /**
     * Read the configuration.
     *
     * @throws ConfigException a value or a key is invalid
     */
    RelayConfig(Map<String, ?> broker) {
        Map<String, Object> own = new HashMap<>();
        Map<String, Object> given = new HashMap<>();
        broker.forEach((key, value) -> {
            if (key.startsWith(PREFIX + PRODUCER)) {
                given.put(key.substring((PREFIX + PRODUCER).length()), value);
            } else if (key.startsWith(PREFIX)) {
                own.put(key.substring(PREFIX.length()), value);
            }
        });
        for (String key : own.keySet()) {
            if (!KEYS.names().contains(key)) {
                throw new ConfigException("unknown key " + PREFIX + key + "; the keys are " + KEYS.names());
            }
        }
        AbstractConfig read = new AbstractConfig(KEYS, own, false);
        topic = read.getString(TOPIC).trim();
        try {
            Topic.validate(topic);
        } catch (InvalidTopicException invalid) {
            throw new ConfigException(PREFIX + TOPIC + ": " + invalid.getMessage());
        }
        maxBytes = read.getLong(MAX_BYTES);
        maxRecords = read.getLong(MAX_RECORDS);
        pushIntervalMs = read.getInt(PUSH_INTERVAL_MS);
        producer = producer(broker, read.getString(BOOTSTRAP).trim(), given);
    }

    private Map<String, Object> producer(Map<String, ?> broker, String servers, Map<String, Object> given) {
        for (String key : given.keySet()) {
            if (OURS.contains(key)) {
                throw new ConfigException(PREFIX + PRODUCER + key + " cannot be set: the relay sets it");
            }
        }
        Map<String, Object> options = new HashMap<>();
        options.put(ProducerConfig.CLIENT_ID_CONFIG, "odradek-relay-" + nodeId(broker));
        options.put(ProducerConfig.ACKS_CONFIG, "all");
        options.put(ProducerConfig.COMPRESSION_TYPE_CONFIG, "zstd");
        options.put(ProducerConfig.LINGER_MS_CONFIG, "100");
        options.put(ProducerConfig.MAX_BLOCK_MS_CONFIG, MAX_BLOCK_MS);
        options.put(ProducerConfig.RECONNECT_BACKOFF_MAX_MS_CONFIG, RECONNECT_MAX_MS);
        options.put(ProducerConfig.BUFFER_MEMORY_CONFIG, maxBytes);
        options.put(ProducerConfig.MAX_REQUEST_SIZE_CONFIG, MAX_REQUEST_BYTES);
        if (servers.isEmpty()) {
            Listener own = Listener.betweenBrokers(broker);
            options.put(ProducerConfig.BOOTSTRAP_SERVERS_CONFIG, own.address);
            options.put("security.protocol", own.securityProtocol);
        } else {
            options.put(ProducerConfig.BOOTSTRAP_SERVERS_CONFIG, servers);
        }
        options.putAll(given);
        options.put(ProducerConfig.KEY_SERIALIZER_CLASS_CONFIG, ByteArraySerializer.class);
        options.put(ProducerConfig.VALUE_SERIALIZER_CLASS_CONFIG, ByteArraySerializer.class);
        options.put(PUSHES_METRICS, "false");
        new ProducerConfig(options);
        return options;
    }

    /** The id of the broker; -1 if the configuration does not have it. */
    static int nodeId(Map<String, ?> broker) {
        for (String key : List.of("node.id", "broker.id")) {
            Object value = broker.get(key);
            if (value != null) {
                try {
                    return Integer.parseInt(value.toString().trim());
                } catch (NumberFormatException unreadable) {
                    return -1;
                }
            }
        }
        return -1;
    }

    /** One of the broker's own listeners. */
    static final class Listener {
        final String address;
        final String securityProtocol;

        private Listener(String address, String securityProtocol) {
            this.address = address;
            this.securityProtocol = securityProtocol;
        }

        /**
         * The listener that brokers use among themselves, as other brokers see it.
         *
         * @throws ConfigException there is no such listener
         */
        static Listener betweenBrokers(Map<String, ?> broker) {
            String protocol = text(broker, "security.inter.broker.protocol", "PLAINTEXT");
            String name = text(broker, "inter.broker.listener.name", protocol).toUpperCase(Locale.ROOT);
            String own = text(broker, "listeners", "PLAINTEXT://:9092");
            for (String listeners : List.of(text(broker, "advertised.listeners", own), own)) {
                for (String each : listeners.split(",")) {
                    String[] parts = each.trim().split("://", 2);
                    if (parts.length == 2 && parts[0].toUpperCase(Locale.ROOT).equals(name)) {
                        return new Listener(reachable(parts[1]), protocolOf(broker, name));
                    }
                }
            }
            throw new ConfigException("the broker has no listener " + name + "; set " + PREFIX + BOOTSTRAP);
        }

        /** The address of a listener on all interfaces is that of this machine. */
        private static String reachable(String address) {
            int colon = address.lastIndexOf(':');
            String host = address.substring(0, Math.max(colon, 0));
            boolean isAny = host.isEmpty() || host.equals("0.0.0.0") || host.equals("[::]");
            return isAny ? "localhost" + address.substring(colon) : address;
        }

        private static String protocolOf(Map<String, ?> broker, String name) {
            for (String pair : text(broker, "listener.security.protocol.map", "").split(",")) {
                String[] parts = pair.trim().split(":", 2);
                if (parts.length == 2 && parts[0].toUpperCase(Locale.ROOT).equals(name)) {
                    return parts[1];
                }
            }
            return name;
        }

        @Override
        public String toString() {
            return securityProtocol + "://" + address;
        }

        private static String text(Map<String, ?> broker, String key, String otherwise) {
            Object value = broker.get(key);
            String text = value instanceof List ? joined((List<?>) value) : value == null ? "" : value.toString();
            return text.isBlank() ? otherwise : text.trim();
        }

        private static String joined(List<?> parts) {
            StringBuilder text = new StringBuilder();
            parts.forEach(part -> text.append(text.length() == 0 ? "" : ",").append(part));
            return text.toString();
        }
    }
}
