package odradek;

import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Collection;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.atomic.AtomicInteger;
import org.apache.kafka.clients.consumer.ConsumerConfig;
import org.apache.kafka.clients.consumer.ConsumerRebalanceListener;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;

/**
 * Reads what {@link NumberedProducer} wrote with a group of three; halfway one member leaves and another joins.
 *
 * <p>Arguments: bootstrap servers, topic, partitions, records, group protocol (also the group's id). Output:
 * {@code read=N}, {@code assignments=N}, {@code surprises=N} (records that were repeated, too early or missing).
 * Members commit before their partitions go to another, and read slowly while the group rebalances.
 */
public final class NumberedGroup {
    private static final int MEMBERS = 3;
    private static final long PAUSE_MS = 50;
    private static final long TIMEOUT_NANOS = 180_000_000_000L;

    private final String[] args;
    private final int records;
    private final int[] expected;
    private final Map<String, Set<Integer>> owned = new ConcurrentHashMap<>();
    private final AtomicInteger assignments = new AtomicInteger();
    private final long deadline = System.nanoTime() + TIMEOUT_NANOS;
    private int read;
    private int surprises;

    private NumberedGroup(String[] args) {
        this.args = args;
        this.expected = new int[Integer.parseInt(args[2])];
        this.records = Integer.parseInt(args[3]);
    }

    public static void main(String[] args) throws Exception {
        if (args.length != 5) {
            System.err.println("usage: NumberedGroup BOOTSTRAP TOPIC PARTITIONS RECORDS PROTOCOL");
            System.exit(2);
        }
        new NumberedGroup(args).run();
    }

    private void run() throws InterruptedException {
        int half = records / 2;
        List<Thread> threads = List.of(
            member("one", 0, records), member("two", 0, records), member("leaves", 0, half), member("comes", half, records));
        for (Thread thread : threads) {
            thread.start();
        }
        for (Thread thread : threads) {
            thread.join();
        }
        System.out.println("read=" + total());
        System.out.println("assignments=" + assignments.get());
        System.out.println("surprises=" + surprises);
    }

    private Thread member(String name, int from, int to) {
        return new Thread(() -> {
            while (!reached(from)) {
                pause();
            }
            owned.put(name, ConcurrentHashMap.newKeySet());
            try (KafkaConsumer<byte[], byte[]> consumer = new KafkaConsumer<>(config(name))) {
                consumer.subscribe(List.of(args[1]), new Listener(consumer, owned.get(name)));
                while (!reached(to)) {
                    for (ConsumerRecord<byte[], byte[]> record : consumer.poll(Duration.ofMillis(PAUSE_MS))) {
                        take(record);
                    }
                    if (!settled()) {
                        pause();
                    }
                }
            }
            owned.remove(name);
        }, name);
    }

    private synchronized void take(ConsumerRecord<byte[], byte[]> record) {
        int number = Integer.parseInt(new String(record.value(), StandardCharsets.US_ASCII).trim());
        if (number != expected[record.partition()]) {
            surprises++;
        }
        expected[record.partition()] = number + 1;
        read++;
    }

    private synchronized int total() {
        return read;
    }

    private boolean reached(int count) {
        return total() >= count || System.nanoTime() > deadline;
    }

    private boolean settled() {
        List<Integer> all = new ArrayList<>();
        owned.values().forEach(all::addAll);
        return owned.size() == MEMBERS && all.size() == expected.length;
    }

    private static void pause() {
        try {
            Thread.sleep(PAUSE_MS);
        } catch (InterruptedException error) {
            Thread.currentThread().interrupt();
        }
    }

    private Map<String, Object> config(String name) {
        return Map.of(
            ConsumerConfig.BOOTSTRAP_SERVERS_CONFIG, args[0],
            ConsumerConfig.CLIENT_ID_CONFIG, name,
            ConsumerConfig.GROUP_ID_CONFIG, args[4],
            ConsumerConfig.GROUP_PROTOCOL_CONFIG, args[4],
            ConsumerConfig.AUTO_OFFSET_RESET_CONFIG, "earliest",
            ConsumerConfig.ENABLE_AUTO_COMMIT_CONFIG, false,
            ConsumerConfig.KEY_DESERIALIZER_CLASS_CONFIG, ByteArrayDeserializer.class,
            ConsumerConfig.VALUE_DESERIALIZER_CLASS_CONFIG, ByteArrayDeserializer.class);
    }

    private final class Listener implements ConsumerRebalanceListener {
        private final KafkaConsumer<byte[], byte[]> consumer;
        private final Set<Integer> mine;

        private Listener(KafkaConsumer<byte[], byte[]> consumer, Set<Integer> mine) {
            this.consumer = consumer;
            this.mine = mine;
        }

        @Override
        public void onPartitionsAssigned(Collection<TopicPartition> partitions) {
            assignments.incrementAndGet();
            partitions.forEach(partition -> mine.add(partition.partition()));
        }

        @Override
        public void onPartitionsRevoked(Collection<TopicPartition> partitions) {
            consumer.commitSync();
            partitions.forEach(partition -> mine.remove(partition.partition()));
        }
    }
}
