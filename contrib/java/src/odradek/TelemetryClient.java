package odradek;

import java.io.IOException;
import java.time.Duration;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.consumer.KafkaShareConsumer;
import org.apache.kafka.common.MetricName;
import org.apache.kafka.common.metrics.Metrics;
import org.apache.kafka.common.serialization.StringDeserializer;

/**
 * One client of a given kind that runs until it reads a line from standard input, and is then closed properly.
 *
 * <p>Arguments: bootstrap servers, topic, client id, kind: {@code producer}, {@code consumer}, {@code admin}, {@code share},
 * or {@code application}, which is a consumer that also pushes metrics of its application (KIP-1076), called as those of Kafka Streams. With a fifth argument,
 * {@code totals}, a producer or consumer prints the totals of its last push when it has closed ({@link PushedTotals}).
 */
public final class TelemetryClient {
    private static final Duration CLOSE_TIMEOUT = Duration.ofSeconds(10);
    private static final Duration PAUSE = Duration.ofMillis(50);

    private TelemetryClient() { }

    public static void main(String[] args) throws Exception {
        if (args.length != 4 && !(args.length == 5 && args[4].equals("totals"))) {
            System.err.println("usage: TelemetryClient BOOTSTRAP TOPIC CLIENT_ID KIND [totals]");
            System.exit(2);
        }
        Map<String, Object> config = new HashMap<>(Map.of("bootstrap.servers", args[0], "client.id", args[2]));
        config.put("metadata.cluster.check.enable", true); // off by default, and unknown before Kafka 4.4
        switch (args[3]) {
            case "producer" -> produce(config, args[1], args.length == 5);
            case "consumer" -> consume(config, args[1], false, args.length == 5);
            case "application" -> consume(config, args[1], true, false);
            case "share" -> share(config, args[1]);
            case "admin" -> administer(config);
            default -> throw new IllegalArgumentException(args[3]);
        }
    }

    private static void produce(Map<String, Object> config, String topic, boolean withTotals) throws Exception {
        PushedTotals totals = null;
        try (Metrics metrics = new Metrics();
                LastPushProducer producer = new LastPushProducer(config, topic)) {
            if (withTotals) {
                totals = PushedTotals.of(metrics, producer::metrics, producer::registerMetricForSubscription);
            }
            while (!ended()) {
                producer.sendNow("value");
                Thread.sleep(PAUSE.toMillis());
            }
            producer.closeWithLastPush();
        }
        if (withTotals) {
            totals.print();
        }
    }

    private static void consume(Map<String, Object> config, String topic, boolean withApplication, boolean withTotals)
            throws Exception {
        config.put("group.id", config.get("client.id") + "-group");
        config.put("group.instance.id", "first");
        config.put("client.rack", "rack-1");
        config.put("auto.offset.reset", "earliest");
        PushedTotals totals = null;
        try (Metrics metrics = new Metrics();
                KafkaConsumer<String, String> consumer =
                    new KafkaConsumer<>(config, new StringDeserializer(), new StringDeserializer())) {
            if (withApplication) {
                register(metrics, consumer);
            }
            if (withTotals) {
                totals = PushedTotals.of(metrics, consumer::metrics, consumer::registerMetricForSubscription);
            }
            consumer.subscribe(List.of(topic));
            while (!ended()) {
                consumer.poll(PAUSE);
                consumer.commitAsync();
            }
        }
        if (withTotals) {
            totals.print();
        }
    }

    private static void share(Map<String, Object> config, String topic) throws Exception {
        config.put("group.id", config.get("client.id") + "-group");
        config.put("client.rack", "rack-1");
        StringDeserializer text = new StringDeserializer();
        try (KafkaShareConsumer<String, String> consumer = new KafkaShareConsumer<>(config, text, text)) {
            consumer.subscribe(List.of(topic));
            while (!ended()) {
                consumer.poll(PAUSE);
            }
        }
    }

    private static void register(Metrics metrics, KafkaConsumer<String, String> consumer) {
        Map<String, String> thread = Map.of("thread-id", "application-StreamThread-1");
        Map<String, String> task = Map.of("thread-id", "application-StreamThread-1", "task-id", "0_0");
        gauge(metrics, consumer, metrics.metricName("process-rate", "stream-thread-metrics", thread), 12.5);
        gauge(metrics, consumer, metrics.metricName("process-latency-avg", "stream-thread-metrics", thread), 0.25);
        gauge(metrics, consumer, metrics.metricName("active-buffer-count", "stream-task-metrics", task), 3);
    }

    private static void gauge(
            Metrics metrics, KafkaConsumer<String, String> consumer, MetricName name, double value) {
        metrics.addMetric(name, (config, now) -> value);
        consumer.registerMetricForSubscription(metrics.metric(name));
    }

    private static void administer(Map<String, Object> config) throws Exception {
        config.put("enable.metrics.push", true); // off by default for an admin client
        try (Admin admin = Admin.create(config)) {
            while (!ended()) {
                admin.describeCluster().nodes().get();
                Thread.sleep(PAUSE.toMillis());
            }
            admin.close(CLOSE_TIMEOUT);
        }
    }

    private static boolean ended() throws IOException {
        return System.in.available() > 0;
    }
}
