package odradek.relay;

import java.util.Map;

/**
 * The relay's metrics over JMX, as {@code odradek.relay:type=Relay,node=<id>}.
 *
 * <p>At any time, received = delivered + the sum of dropped + waiting.
 */
public interface RelayMXBean {
    /** The pushes that the broker handed over. */
    long getReceived();

    /** The pushes that the cluster confirmed. */
    long getDelivered();

    /** The pushes that were dropped, by reason. */
    Map<String, Long> getDropped();

    /** The pushes that are queued or not confirmed yet. */
    long getWaiting();

    /** The memory that the waiting pushes use, in bytes. */
    long getWaitingBytes();

    /** How often the producer could not be created, or the topic could not be found. */
    long getProblems();
}
