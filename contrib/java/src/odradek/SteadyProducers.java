package odradek;

import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerConfig;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.serialization.ByteArraySerializer;

/**
 * Idempotent producers that send a record each after every pause, until a line comes on standard input.
 *
 * <p>Arguments: bootstrap servers, topic, producers, pause in milliseconds. Output, a line each: {@code sent VALUE},
 * {@code acknowledged VALUE}, {@code failed VALUE ERROR}. The value is the number of the producer, a hyphen, and the
 * number of the record.
 */
public final class SteadyProducers {
    private SteadyProducers() { }

    public static void main(String[] args) throws IOException, InterruptedException {
        if (args.length != 4) {
            System.err.println("usage: SteadyProducers BOOTSTRAP TOPIC PRODUCERS PAUSE_MS");
            System.exit(2);
        }
        List<KafkaProducer<byte[], byte[]>> producers = new ArrayList<>();
        for (int client = 0; client < Integer.parseInt(args[2]); client++) {
            producers.add(new KafkaProducer<>(config(args[0], client)));
        }
        for (int number = 0; System.in.available() == 0; number++) {
            for (int client = 0; client < producers.size(); client++) {
                send(producers.get(client), args[1], client + "-" + number);
            }
            Thread.sleep(Long.parseLong(args[3]));
        }
        producers.forEach(KafkaProducer::close);
    }

    private static void send(KafkaProducer<byte[], byte[]> producer, String topic, String value) {
        System.out.println("sent " + value);
        producer.send(new ProducerRecord<>(topic, value.getBytes(StandardCharsets.US_ASCII)), (metadata, error) ->
            System.out.println(error == null ? "acknowledged " + value : "failed " + value + " " + error));
    }

    private static Map<String, Object> config(String bootstrap, int client) {
        return Map.of(
            ProducerConfig.BOOTSTRAP_SERVERS_CONFIG, bootstrap,
            ProducerConfig.CLIENT_ID_CONFIG, "steady-" + client,
            ProducerConfig.ENABLE_IDEMPOTENCE_CONFIG, true,
            ProducerConfig.KEY_SERIALIZER_CLASS_CONFIG, ByteArraySerializer.class,
            ProducerConfig.VALUE_SERIALIZER_CLASS_CONFIG, ByteArraySerializer.class);
    }
}
