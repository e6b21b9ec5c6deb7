package odradek;

import java.io.IOException;
import java.time.Duration;
import java.util.Properties;
import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.streams.KafkaStreams;
import org.apache.kafka.streams.StreamsBuilder;
import org.apache.kafka.streams.StreamsConfig;
import org.apache.kafka.streams.kstream.KStream;
import org.apache.kafka.streams.kstream.Produced;

/**
 * A Kafka Streams application with exactly-once processing, until it reads a line from standard input.
 *
 * <p>Arguments: bootstrap servers, application id, topic of the records, topic for copies of them, topic for the number of records of
 * each key, folder for state, and any number of further settings KEY=VALUE. Keys and values are strings. The count goes through a
 * repartition topic and a store with a changelog.
 * Output: {@code state=NAME} for each state of the application. Exit status 1 after an error that ends it.
 */
public final class ExactlyOnceStream {
    private static final Duration CLOSE_TIMEOUT = Duration.ofSeconds(20);

    private ExactlyOnceStream() { }

    public static void main(String[] args) throws IOException {
        if (args.length < 6) {
            System.err.println("usage: ExactlyOnceStream BOOTSTRAP APPLICATION_ID FROM COPIES COUNTS FOLDER [KEY=VALUE]...");
            System.exit(2);
        }
        StreamsBuilder builder = new StreamsBuilder();
        KStream<String, String> records = builder.stream(args[2]);
        records.to(args[3]);
        records.groupBy((key, value) -> key).count().toStream().to(args[4], Produced.with(Serdes.String(), Serdes.Long()));

        KafkaStreams streams = new KafkaStreams(builder.build(), config(args));
        streams.setStateListener((state, before) -> System.out.println("state=" + state));
        streams.start();
        int read = System.in.read();
        boolean failed = streams.state() == KafkaStreams.State.ERROR;
        boolean closed = streams.close(CLOSE_TIMEOUT);
        System.exit(failed || !closed || read < 0 ? 1 : 0);
    }

    private static Properties config(String[] args) {
        Properties config = new Properties();
        config.put(StreamsConfig.BOOTSTRAP_SERVERS_CONFIG, args[0]);
        config.put(StreamsConfig.APPLICATION_ID_CONFIG, args[1]);
        config.put(StreamsConfig.STATE_DIR_CONFIG, args[5]);
        config.put(StreamsConfig.PROCESSING_GUARANTEE_CONFIG, StreamsConfig.EXACTLY_ONCE_V2);
        config.put(StreamsConfig.NUM_STREAM_THREADS_CONFIG, 2);
        config.put(StreamsConfig.DEFAULT_KEY_SERDE_CLASS_CONFIG, Serdes.StringSerde.class);
        config.put(StreamsConfig.DEFAULT_VALUE_SERDE_CLASS_CONFIG, Serdes.StringSerde.class);
        // RocksDB is not on the class path
        config.put(StreamsConfig.DSL_STORE_SUPPLIERS_CLASS_CONFIG,
            "org.apache.kafka.streams.state.BuiltInDslStoreSuppliers$InMemoryDslStoreSuppliers");
        config.put("consumer.auto.offset.reset", "earliest");
        // gateways are killed, and this process is not: a busy machine must not end its membership or transactions
        config.put("consumer.session.timeout.ms", 60_000);
        config.put("consumer.heartbeat.interval.ms", 500);
        config.put("producer.transaction.timeout.ms", 60_000);
        for (int i = 6; i < args.length; i++) {
            String[] setting = args[i].split("=", 2);
            config.put(setting[0], setting[1]);
        }
        if ("streams".equals(config.get("group.protocol"))) {
            // the broker's in this protocol
            config.remove("consumer.session.timeout.ms");
            config.remove("consumer.heartbeat.interval.ms");
        }
        return config;
    }
}
