package odradek.relay;

/** The reasons why a push is dropped. The name is the key in the metric {@code Dropped}. */
enum Reason {
    /** The cluster takes fewer pushes than the clients send, or none: the memory for waiting pushes is used up. */
    QUEUE_FULL("queue.full"),
    /** The record is larger than the producer or the topic allows. */
    TOO_LARGE("too.large"),
    /** The cluster refused the record, or did not confirm it in time. */
    DELIVERY("delivery"),
    /** The content is not OTLP. */
    CONTENT_TYPE("content.type"),
    /** The relay's configuration is invalid. */
    NOT_CONFIGURED("not.configured"),
    /** The relay was closed before the push was delivered. */
    CLOSED("closed"),
    /** An unexpected exception. */
    FAILED("failed");

    final String key;

    Reason(String key) {
        this.key = key;
    }
}
