package odradek;

import java.time.Duration;
import java.util.HashMap;
import java.util.Map;
import java.util.concurrent.Future;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerConfig;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.clients.producer.RecordMetadata;
import org.apache.kafka.common.serialization.StringSerializer;

/**
 * A producer of one topic that always sends the terminating push of KIP-714 when it closes.
 *
 * <p>Kafka's producer sends that push in the next turn of its sender thread, and an idle sender takes none after {@code close()}. So this
 * one leaves a record to be sent: with a long linger it waits for {@code close()}, however late the machine comes to it.
 */
final class LastPushProducer extends KafkaProducer<String, String> {
    private static final int LINGER_MS = 5_000;
    private static final Duration CLOSE_TIMEOUT = Duration.ofSeconds(10);

    private final String topic;

    LastPushProducer(Map<String, Object> config, String topic) {
        super(lingering(config), new StringSerializer(), new StringSerializer());
        this.topic = topic;
    }

    private static Map<String, Object> lingering(Map<String, Object> config) {
        Map<String, Object> all = new HashMap<>(config);
        all.put(ProducerConfig.LINGER_MS_CONFIG, LINGER_MS);
        return all;
    }

    /** Sends a record at once, and returns when it is acknowledged or has failed. */
    Future<RecordMetadata> sendNow(String value) {
        Future<RecordMetadata> sent = send(new ProducerRecord<>(topic, "key", value));
        flush();
        return sent;
    }

    /** Closes the producer, with a last record and a last push. */
    void closeWithLastPush() {
        send(new ProducerRecord<>(topic, "key", "last"));
        close(CLOSE_TIMEOUT);
    }
}
