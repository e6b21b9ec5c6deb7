package odradek;

import java.time.Duration;
import java.util.Map;
import org.apache.kafka.clients.producer.ProducerConfig;
import org.apache.kafka.common.Uuid;

/**
 * Produces ten records a second and prints the client instance id the broker gave it.
 *
 * <p>Arguments: bootstrap servers, topic, seconds, client id. Output: {@code client.instance.id=BASE64URL}, then
 * {@code acknowledged=N}. Closing the producer sends the terminating push of KIP-714.
 */
public final class TelemetryProducer {
    private static final Duration ID_TIMEOUT = Duration.ofSeconds(20);
    private static final long PAUSE_MS = 100;

    private TelemetryProducer() { }

    public static void main(String[] args) throws Exception {
        if (args.length != 4) {
            throw new IllegalArgumentException("usage: TelemetryProducer BOOTSTRAP TOPIC SECONDS CLIENT_ID");
        }
        try (LastPushProducer producer = new LastPushProducer(config(args[0], args[3]), args[1])) {
            Uuid id = producer.clientInstanceId(ID_TIMEOUT);
            System.out.println("client.instance.id=" + id);
            System.out.println("acknowledged=" + produce(producer, Double.parseDouble(args[2])));
            producer.closeWithLastPush();
        }
    }

    private static Map<String, Object> config(String bootstrap, String clientId) {
        return Map.of(
            ProducerConfig.BOOTSTRAP_SERVERS_CONFIG, bootstrap,
            ProducerConfig.CLIENT_ID_CONFIG, clientId,
            ProducerConfig.ENABLE_METRICS_PUSH_CONFIG, true,
            ProducerConfig.DELIVERY_TIMEOUT_MS_CONFIG, 10_000,
            ProducerConfig.REQUEST_TIMEOUT_MS_CONFIG, 5_000,
            ProducerConfig.MAX_BLOCK_MS_CONFIG, 10_000);
    }

    private static int produce(LastPushProducer producer, double seconds) throws Exception {
        long end = System.nanoTime() + (long) (seconds * 1e9);
        int acknowledged = 0;
        while (System.nanoTime() < end) {
            producer.sendNow("value " + acknowledged).get();
            acknowledged++;
            Thread.sleep(PAUSE_MS);
        }
        return acknowledged;
    }
}
