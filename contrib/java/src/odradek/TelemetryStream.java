package odradek;

import java.nio.file.Files;
import java.time.Duration;
import java.util.Map;
import java.util.Properties;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.common.serialization.StringSerializer;
import org.apache.kafka.streams.KafkaStreams;
import org.apache.kafka.streams.StreamsBuilder;
import org.apache.kafka.streams.StreamsConfig;

/**
 * A Kafka Streams application of one thread that counts records by key in a store, until it reads a line from standard input.
 *
 * <p>Arguments: bootstrap servers, topic, client id of its consumer, which ends with {@link #CONSUMER}. It feeds the topic itself.
 */
public final class TelemetryStream {
    static final String CONSUMER = "-StreamThread-1-consumer";
    private static final Duration CLOSE_TIMEOUT = Duration.ofSeconds(10);
    private static final Duration PAUSE = Duration.ofMillis(50);

    private TelemetryStream() { }

    public static void main(String[] args) throws Exception {
        if (args.length != 3 || !args[2].endsWith(CONSUMER)) {
            System.err.println("usage: TelemetryStream BOOTSTRAP TOPIC NAME" + CONSUMER);
            System.exit(2);
        }
        String name = args[2].substring(0, args[2].length() - CONSUMER.length());
        StreamsBuilder builder = new StreamsBuilder();
        builder.stream(args[1]).groupByKey().count();
        Map<String, Object> feeding = Map.of("bootstrap.servers", args[0], "enable.metrics.push", false);
        StringSerializer texts = new StringSerializer();
        try (KafkaStreams streams = new KafkaStreams(builder.build(), config(args[0], name));
                KafkaProducer<String, String> feeder = new KafkaProducer<>(feeding, texts, texts)) {
            streams.start();
            while (System.in.available() == 0) {
                feeder.send(new ProducerRecord<>(args[1], "key", "value"));
                Thread.sleep(PAUSE.toMillis());
            }
            streams.close(CLOSE_TIMEOUT);
        }
    }

    private static Properties config(String bootstrap, String name) throws Exception {
        Properties config = new Properties();
        config.put(StreamsConfig.BOOTSTRAP_SERVERS_CONFIG, bootstrap);
        config.put(StreamsConfig.APPLICATION_ID_CONFIG, name);
        config.put(StreamsConfig.CLIENT_ID_CONFIG, name);
        config.put(StreamsConfig.STATE_DIR_CONFIG, Files.createTempDirectory(name).toString());
        config.put(StreamsConfig.NUM_STREAM_THREADS_CONFIG, 1);
        config.put(StreamsConfig.COMMIT_INTERVAL_MS_CONFIG, 1_000);
        config.put(StreamsConfig.DEFAULT_KEY_SERDE_CLASS_CONFIG, Serdes.StringSerde.class);
        config.put(StreamsConfig.DEFAULT_VALUE_SERDE_CLASS_CONFIG, Serdes.StringSerde.class);
        // RocksDB is not on the class path
        config.put(StreamsConfig.DSL_STORE_SUPPLIERS_CLASS_CONFIG,
            "org.apache.kafka.streams.state.BuiltInDslStoreSuppliers$InMemoryDslStoreSuppliers");
        return config;
    }
}
