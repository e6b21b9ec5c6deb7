package odradek;

import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.security.plain.PlainLoginModule;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;
import org.apache.kafka.common.serialization.ByteArraySerializer;
import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.streams.KafkaStreams;
import org.apache.kafka.streams.StreamsBuilder;
import org.apache.kafka.streams.StreamsConfig;

/**
 * Java clients in one process, which obey the lines of its standard input.
 *
 * <p>{@code start NAME key=value ...} starts one, {@code set NAME key=value ...} changes keys of a running one, and {@code close NAME}
 * closes it as its application would: a producer flushes first. At the end of the input, all are closed. Keys: {@code role} (consumer,
 * producer, streams), {@code topic}, {@code group}; {@code rate} in records per second, 0 for an idle producer; {@code size} of a record in
 * bytes; {@code work_ms} for each record; and with dots, settings of the client. For each client a line says {@code NAME ready} and
 * {@code NAME closed}, or {@code NAME failed ERROR}.
 */
public final class Members {
    private static final Duration POLL = Duration.ofMillis(200);
    private static final Duration PATIENCE = Duration.ofSeconds(10);

    private Members() { }

    public static void main(String[] args) throws IOException, InterruptedException {
        Map<String, Member> members = new ConcurrentHashMap<>();
        BufferedReader lines = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line = lines.readLine(); line != null; line = lines.readLine()) {
            List<String> words = List.of(line.trim().split(" +"));
            String name = words.get(1);
            Member member = members.computeIfAbsent(name, Member::new);
            words.stream().skip(2).map(each -> each.split("=", 2)).forEach(each -> member.settings.put(each[0], each[1]));
            switch (words.get(0)) {
                case "start" -> member.start();
                case "close" -> member.leaving.countDown();
                default -> { }
            }
        }
        members.values().forEach(member -> member.leaving.countDown());
        for (Member member : members.values()) {
            member.join(2 * PATIENCE.toMillis());
        }
        System.exit(0);
    }

    private static final class Member extends Thread {
        private final Map<String, String> settings =
            new ConcurrentHashMap<>(Map.of("rate", "20", "size", "20", "work_ms", "0"));
        private final CountDownLatch leaving = new CountDownLatch(1);

        private Member(String name) {
            super(name);
            setDaemon(true);
        }

        @Override
        public void run() {
            try {
                switch (settings.get("role")) {
                    case "consumer" -> consume();
                    case "producer" -> produce();
                    case "streams" -> stream();
                    default -> throw new IllegalArgumentException(settings.get("role"));
                }
                tell("closed");
            } catch (RuntimeException | LinkageError | InterruptedException error) {
                tell("failed " + error);
            }
        }

        private void consume() throws InterruptedException {
            Properties config = config();
            config.put("group.id", settings.get("group"));
            config.put("auto.offset.reset", "earliest");
            try (KafkaConsumer<byte[], byte[]> consumer =
                    new KafkaConsumer<>(config, new ByteArrayDeserializer(), new ByteArrayDeserializer())) {
                consumer.subscribe(List.of(settings.get("topic")));
                tell("ready");
                while (stays(0)) {
                    for (ConsumerRecord<byte[], byte[]> record : consumer.poll(POLL)) {
                        work();
                    }
                }
            }
        }

        private void produce() throws InterruptedException {
            try (KafkaProducer<byte[], byte[]> producer =
                    new KafkaProducer<>(config(), new ByteArraySerializer(), new ByteArraySerializer())) {
                tell("ready");
                for (double rate = rate(); stays(rate == 0 ? POLL.toMillis() : (long) (1_000 / rate)); rate = rate()) {
                    if (rate > 0) {
                        producer.send(new ProducerRecord<>(settings.get("topic"), new byte[Integer.parseInt(settings.get("size"))]));
                    }
                }
                producer.flush();
            }
        }

        private void stream() throws InterruptedException {
            Properties config = config();
            config.put(StreamsConfig.APPLICATION_ID_CONFIG, settings.get("group"));
            config.put(StreamsConfig.DEFAULT_KEY_SERDE_CLASS_CONFIG, Serdes.ByteArraySerde.class);
            config.put(StreamsConfig.DEFAULT_VALUE_SERDE_CLASS_CONFIG, Serdes.ByteArraySerde.class);
            config.put("auto.offset.reset", "earliest");
            StreamsBuilder builder = new StreamsBuilder();
            builder.<byte[], byte[]>stream(settings.get("topic")).foreach((key, value) -> {
                try {
                    work();
                } catch (InterruptedException error) {
                    Thread.currentThread().interrupt();
                }
            });
            try (KafkaStreams streams = new KafkaStreams(builder.build(), config)) {
                streams.start();
                tell("ready");
                leaving.await();
                streams.close(PATIENCE);
            }
        }

        private double rate() {
            return Double.parseDouble(settings.get("rate"));
        }

        private boolean stays(long pauseMs) throws InterruptedException {
            return !leaving.await(pauseMs, TimeUnit.MILLISECONDS);
        }

        /** What the application does with a record. */
        private void work() throws InterruptedException {
            long workMs = Long.parseLong(settings.get("work_ms"));
            if (workMs > 0) {
                leaving.await(workMs, TimeUnit.MILLISECONDS);
            }
        }

        private Properties config() {
            Properties config = new Properties();
            settings.forEach((key, value) -> {
                if (key.contains(".")) {
                    config.put(key, value);
                }
            });
            if (config.containsKey("sasl.username")) {
                config.put("sasl.jaas.config", String.format("%s required username=\"%s\" password=\"%s\";",
                    PlainLoginModule.class.getName(), config.remove("sasl.username"), config.remove("sasl.password")));
            }
            return config;
        }

        private void tell(String state) {
            System.out.println(getName() + " " + state);
        }
    }
}
