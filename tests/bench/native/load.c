/*
 * A load generator: N connections that each keep D telemetry pushes in flight, of several instances in turn, in a
 * closed loop.
 *
 * Usage: load PORT CONNECTIONS INSTANCES DEPTH STRIDE PAYLOADS_FILE
 *
 * The file holds payloads, each after its codec (a byte) and its length (four bytes, big-endian). Each connection
 * has INSTANCES client instances; the i-th of all sends the payloads i, i + STRIDE, i + 2 STRIDE and so on, modulo their
 * count.
 *
 * Every connection sends ApiVersions v3 and GetTelemetrySubscriptions v0 (nil id) first, then pushes with the
 * instance and subscription ids that it got. Every response is checked: length, order of correlation ids, error
 * code. "ready" is printed when all connections are set up and the load is on. For each line on standard input one
 * line of JSON is printed, about the time since the previous line: requests, errors by code, seconds, latencies. The
 * load ends when standard input closes; a response out of order or a closed connection ends it with status 1.
 */
#include <arpa/inet.h>
#include <netinet/tcp.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

enum { API_VERSIONS = 18, GET_SUBSCRIPTIONS = 71, PUSH_TELEMETRY = 72, ID_BYTES = 16, UNSUPPORTED_VERSION = 35 };
enum { PUSH_HEADER_BYTES = 64, RESPONSE_BYTES = 16, MAX_DEPTH = 64, EVENTS = 512, MAX_PAYLOADS = 4096, MAX_INSTANCES = 64 };
enum { STEPS = 64, SLOTS = STEPS * 40, CODES = 256 };

typedef struct {
    int fd;
    size_t first; /* the number of its first instance */
    uint32_t sent, received; /* correlation ids of the next request and the next response */
    uint8_t headers[MAX_INSTANCES][PUSH_HEADER_BYTES];
    size_t header_length;
    uint8_t rest[RESPONSE_BYTES];
    size_t rest_length;
    int64_t sent_ns[MAX_DEPTH];
} connection;

static const char CLIENT_ID[] = "bench", SOFTWARE[] = "odradek-bench", VERSION[] = "1.0";
static struct { uint8_t *bytes; size_t length; int codec; } payloads[MAX_PAYLOADS];
static size_t payload_count, instances, stride;
static int depth;
static uint64_t requests, throttled, codes[CODES], latencies[SLOTS];
static int64_t since_ns;

static void fail(const char *what) {
    fprintf(stderr, "load: %s\n", what);
    exit(1);
}

static int64_t now_ns(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * 1000000000LL + t.tv_nsec;
}

static uint32_t u32(const uint8_t *p) { return (uint32_t)p[0] << 24 | p[1] << 16 | p[2] << 8 | p[3]; }
static uint8_t *put8(uint8_t *p, uint32_t v) { return *p = (uint8_t)v, p + 1; }
static uint8_t *put16(uint8_t *p, uint32_t v) { return put8(put8(p, v >> 8), v); }
static uint8_t *put32(uint8_t *p, uint32_t v) { return put16(put16(p, v >> 16), v); }
static uint8_t *put_bytes(uint8_t *p, const void *bytes, size_t n) { return memcpy(p, bytes, n), p + n; }

static uint8_t *put_varint(uint8_t *p, uint32_t v) {
    for (; v > 0x7f; v >>= 7) p = put8(p, v | 0x80);
    return put8(p, v);
}

static uint8_t *put_compact(uint8_t *p, const char *text) {
    return put_bytes(put_varint(p, (uint32_t)strlen(text) + 1), text, strlen(text));
}

/* Request header v2 after four bytes reserved for the length. */
static uint8_t *put_header(uint8_t *p, int key, int version, uint32_t correlation) {
    p = put32(put16(put16(p + 4, (uint32_t)key), (uint32_t)version), correlation);
    p = put_bytes(put16(p, sizeof CLIENT_ID - 1), CLIENT_ID, sizeof CLIENT_ID - 1);
    return put8(p, 0);
}

/* Latency slots are a 64th of a power of two wide: an error below 2 %. */
static int slot(int64_t ns) {
    if (ns < STEPS) return 0;
    int power = 63 - __builtin_clzll((uint64_t)ns);
    int at = (power - 6) * STEPS + (int)(ns >> (power - 6)) - STEPS;
    return at < SLOTS ? at : SLOTS - 1;
}

static double slot_us(int at) { return (double)((int64_t)(at % STEPS + STEPS) << (at / STEPS)) / 1000; }

static double percentile_us(double part) {
    uint64_t seen = 0;
    for (int at = 0; at < SLOTS; at++)
        if ((seen += latencies[at]) > (uint64_t)(part * (double)requests)) return slot_us(at);
    return 0;
}

static void report(void) {
    const char *comma = "";
    printf("{\"requests\": %lu, \"throttled\": %lu, \"errors\": {", requests, throttled);
    for (int i = 0; i < CODES; i++)
        if (codes[i] && i != 1) printf("%s\"%d\": %lu", comma, i - 1, codes[i]), comma = ", ";
    printf("}, \"seconds\": %.6f, \"p50_us\": %.1f, \"p99_us\": %.1f}\n", (double)(now_ns() - since_ns) / 1e9,
           percentile_us(0.5), percentile_us(0.99));
    fflush(stdout);
    requests = throttled = 0, since_ns = now_ns();
    memset(codes, 0, sizeof codes), memset(latencies, 0, sizeof latencies);
}

static void send_all(int fd, struct iovec *parts, int n) {
    while (n) { /* blocking: the peer reads, and its answers fit into the socket's buffer */
        ssize_t sent = writev(fd, parts, n);
        if (sent < 0) fail("connection lost while sending");
        for (; n && (size_t)sent >= parts->iov_len; n--) sent -= (ssize_t)parts++->iov_len;
        if (n) parts->iov_base = (char *)parts->iov_base + sent, parts->iov_len -= (size_t)sent;
    }
}

static void ask(int fd, uint8_t *frame, uint8_t *end, uint8_t *response, size_t capacity) {
    uint8_t length[4];
    put32(frame, (uint32_t)(end - frame - 4));
    send_all(fd, &(struct iovec){frame, (size_t)(end - frame)}, 1);
    if (recv(fd, length, 4, MSG_WAITALL) != 4 || u32(length) > capacity) fail("no answer while setting up");
    if (recv(fd, response, u32(length), MSG_WAITALL) != u32(length)) fail("a short answer while setting up");
}

static void set_up(connection *c, int port) {
    struct sockaddr_in peer = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
    uint8_t frame[256], response[65536], *p;
    int one = 1;
    peer.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    c->fd = socket(AF_INET, SOCK_STREAM, 0);
    if (connect(c->fd, (struct sockaddr *)&peer, sizeof peer)) fail("cannot connect");
    setsockopt(c->fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);

    p = put_header(frame, API_VERSIONS, 3, 1);
    ask(c->fd, frame, put8(put_compact(put_compact(p, SOFTWARE), VERSION), 0), response, sizeof response);
    if (response[5] == UNSUPPORTED_VERSION) /* as clients do: the oldest version, whose header has no tags */
        ask(c->fd, frame, put_header(frame, API_VERSIONS, 0, 1) - 1, response, sizeof response);
    if (response[4] || response[5]) fail("ApiVersions refused");

    for (size_t i = 0; i < instances; i++) {
        p = put_header(frame, GET_SUBSCRIPTIONS, 0, 2);
        memset(p, 0, ID_BYTES);
        ask(c->fd, frame, put8(p + ID_BYTES, 0), response, sizeof response);
        if (response[9] || response[10]) fail("GetTelemetrySubscriptions refused");

        p = put_header(c->headers[i], PUSH_TELEMETRY, 0, 0);
        p = put_bytes(p, response + 11, ID_BYTES + 4); /* instance id, subscription id */
        p = put8(p, 0);
        c->header_length = (size_t)(p - c->headers[i]);
    }
}

static void push(connection *c, int n) {
    uint8_t headers[MAX_DEPTH][PUSH_HEADER_BYTES];
    struct iovec parts[2 * MAX_DEPTH];
    int64_t now = now_ns();
    for (int i = 0; i < n; i++, c->sent++) {
        size_t instance = c->sent % instances, turn = c->sent / instances;
        size_t at = (c->first + instance + stride * turn) % payload_count, length = payloads[at].length;
        uint8_t *end = put_bytes(headers[i], c->headers[instance], c->header_length);
        end = put_varint(put8(end, (uint32_t)payloads[at].codec), (uint32_t)length + 1);
        put32(headers[i] + 8, c->sent);
        put32(headers[i], (uint32_t)((size_t)(end - headers[i]) + length + 1 - 4));
        parts[2 * i] = (struct iovec){headers[i], (size_t)(end - headers[i])};
        parts[2 * i + 1] = (struct iovec){payloads[at].bytes, length + 1}; /* and the empty tag section */
        c->sent_ns[c->sent % (uint32_t)depth] = now;
    }
    send_all(c->fd, parts, 2 * n);
}

/* length, correlation id, empty tags, throttle time, error code, empty tags */
static void check(connection *c, const uint8_t *response, int64_t now) {
    if (u32(response) != RESPONSE_BYTES - 4) fail("a response of another length");
    if (u32(response + 4) != c->received || response[8] || response[15]) fail("a response out of order");
    int at = (int16_t)(response[13] << 8 | response[14]) + 1;
    codes[at >= 0 && at < CODES ? at : 0]++;
    throttled += u32(response + 9) != 0;
    latencies[slot(now - c->sent_ns[c->received++ % (uint32_t)depth])]++;
    requests++;
}

static void readable(connection *c) {
    uint8_t chunk[RESPONSE_BYTES * (MAX_DEPTH + 1)], *at = chunk;
    memcpy(chunk, c->rest, c->rest_length);
    ssize_t n = recv(c->fd, chunk + c->rest_length, sizeof chunk - c->rest_length, MSG_DONTWAIT);
    if (n <= 0) fail("connection lost");
    uint8_t *end = chunk + c->rest_length + n;
    int64_t now = now_ns();
    for (; end - at >= RESPONSE_BYTES; at += RESPONSE_BYTES) check(c, at, now);
    memcpy(c->rest, at, c->rest_length = (size_t)(end - at));
    if (at != chunk) push(c, (int)(at - chunk) / RESPONSE_BYTES);
}

static void read_payloads(const char *path) {
    FILE *file = fopen(path, "rb");
    uint8_t head[5];
    if (!file) fail("cannot read the payloads");
    for (; payload_count < MAX_PAYLOADS && fread(head, 1, 5, file) == 5; payload_count++) {
        size_t length = u32(head + 1);
        uint8_t *bytes = calloc(1, length + 1);
        if (fread(bytes, 1, length, file) != length) fail("a payload is cut off");
        payloads[payload_count].bytes = bytes, payloads[payload_count].length = length;
        payloads[payload_count].codec = head[0];
    }
    fclose(file);
    if (!payload_count) fail("no payloads");
}

int main(int argc, char **argv) {
    if (argc != 7) fail("usage: load PORT CONNECTIONS INSTANCES DEPTH STRIDE PAYLOADS_FILE");
    int port = atoi(argv[1]), n = atoi(argv[2]), poll = epoll_create1(0);
    instances = (size_t)atoi(argv[3]), depth = atoi(argv[4]), stride = (size_t)atoi(argv[5]);
    if (n < 1 || depth < 1 || depth > MAX_DEPTH) fail("CONNECTIONS from 1, DEPTH from 1 to 64");
    if (instances < 1 || instances > MAX_INSTANCES) fail("INSTANCES from 1 to 64");
    read_payloads(argv[6]);

    connection *all = calloc((size_t)n, sizeof *all);
    struct epoll_event events[EVENTS], event = {.events = EPOLLIN};
    epoll_ctl(poll, EPOLL_CTL_ADD, 0, &event);
    for (int i = 0; i < n; i++) {
        set_up(&all[i], port), all[i].first = (size_t)i * instances;
        event.data.ptr = &all[i];
        epoll_ctl(poll, EPOLL_CTL_ADD, all[i].fd, &event);
    }
    for (int i = 0; i < n; i++) push(&all[i], depth);
    since_ns = now_ns();
    puts("ready"), fflush(stdout);

    for (char line[64];;) {
        int ready = epoll_wait(poll, events, EVENTS, 0); /* never sleep: waking the load would be charged to the server */
        for (int i = 0; i < ready; i++) {
            if (events[i].data.ptr) readable(events[i].data.ptr);
            else if (read(0, line, sizeof line) <= 0) return 0;
            else report();
        }
    }
}
