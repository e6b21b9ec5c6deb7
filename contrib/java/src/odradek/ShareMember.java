package odradek;

import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import org.apache.kafka.clients.consumer.AcknowledgeType;
import org.apache.kafka.clients.consumer.ConsumerConfig;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaShareConsumer;
import org.apache.kafka.common.KafkaException;
import org.apache.kafka.common.TopicIdPartition;
import org.apache.kafka.common.serialization.StringDeserializer;

/**
 * A member of a share group that does what the lines of its standard input say.
 *
 * <p>Arguments: bootstrap servers, group, topic, then further settings as {@code key=value}. Lines:
 *
 * <ul>
 *   <li>{@code poll N MS}: poll until N records came, or for so long; prints {@code record PARTITION OFFSET
 *       DELIVERIES VALUE} for each, then {@code polled N}.
 *   <li>{@code accept P O}, {@code release P O}, {@code reject P O}, {@code renew P O}: acknowledge one record of
 *       the last poll.
 *   <li>{@code commit}: send the acknowledgements; prints {@code committed} and the errors.
 *   <li>{@code drain N MS}: poll, accept and commit until N records came, or none for so long; prints
 *       {@code got VALUE} for each record, and {@code value VALUE} for each whose commit went well.
 *   <li>{@code close}: leave the group; prints {@code closed}.
 * </ul>
 */
public final class ShareMember {
    private final KafkaShareConsumer<String, String> consumer;
    private final Map<String, ConsumerRecord<String, String>> held = new HashMap<>();

    private ShareMember(KafkaShareConsumer<String, String> consumer) {
        this.consumer = consumer;
    }

    public static void main(String[] args) throws IOException {
        Map<String, Object> config = new HashMap<>();
        config.put(ConsumerConfig.BOOTSTRAP_SERVERS_CONFIG, args[0]);
        config.put(ConsumerConfig.GROUP_ID_CONFIG, args[1]);
        config.put("share.acknowledgement.mode", "explicit");
        for (int i = 3; i < args.length; i++) {
            String[] setting = args[i].split("=", 2);
            config.put(setting[0], setting[1]);
        }
        StringDeserializer text = new StringDeserializer();
        try (KafkaShareConsumer<String, String> consumer = new KafkaShareConsumer<>(config, text, text)) {
            consumer.subscribe(List.of(args[2]));
            new ShareMember(consumer).follow(new InputStreamReader(System.in, StandardCharsets.US_ASCII));
        }
        System.out.println("closed");
    }

    private void follow(InputStreamReader input) throws IOException {
        BufferedReader lines = new BufferedReader(input);
        for (String line = lines.readLine(); line != null && !line.equals("close"); line = lines.readLine()) {
            String[] words = line.split(" ");
            switch (words[0]) {
                case "poll" -> poll(Integer.parseInt(words[1]), Long.parseLong(words[2]));
                case "commit" -> System.out.println("committed" + commit());
                case "drain" -> drain(Integer.parseInt(words[1]), Long.parseLong(words[2]));
                default -> consumer.acknowledge(
                    held.get(words[1] + " " + words[2]), AcknowledgeType.valueOf(words[0].toUpperCase()));
            }
            System.out.flush();
        }
    }

    private void poll(int count, long waitMs) {
        held.clear();
        long deadline = System.nanoTime() + waitMs * 1_000_000;
        while (held.size() < count && System.nanoTime() < deadline) {
            for (ConsumerRecord<String, String> record : consumer.poll(Duration.ofMillis(200))) {
                String place = record.partition() + " " + record.offset();
                held.put(place, record);
                System.out.println("record " + place + " " + record.deliveryCount().orElse((short) 0) + " " + record.value());
            }
            if (!held.isEmpty()) {
                break; // all of them must be acknowledged before the next poll
            }
        }
        System.out.println("polled " + held.size());
    }

    private String commit() {
        StringBuilder errors = new StringBuilder();
        Map<TopicIdPartition, Optional<KafkaException>> outcome = consumer.commitSync();
        outcome.forEach((partition, error) -> error.ifPresent(each ->
            errors.append(' ').append(each.getClass().getSimpleName())));
        return errors.toString();
    }

    private void drain(int count, long idleMs) {
        int read = 0;
        long last = System.nanoTime();
        while (read < count && System.nanoTime() - last < idleMs * 1_000_000) {
            List<String> values = new ArrayList<>();
            for (ConsumerRecord<String, String> record : consumer.poll(Duration.ofMillis(200))) {
                System.out.println("got " + record.value());
                values.add(record.value());
                consumer.acknowledge(record, AcknowledgeType.ACCEPT);
            }
            if (values.isEmpty()) {
                continue;
            }
            last = System.nanoTime();
            if (commit().isEmpty()) {
                values.forEach(value -> System.out.println("value " + value));
                read += values.size();
            }
            System.out.flush();
        }
        System.out.println("drained " + read);
    }
}
