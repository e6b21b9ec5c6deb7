/*
 * The reference: the cost of accepting telemetry pushes with one thread of C and epoll, and nothing else.
 *
 * It answers ApiVersions v3, GetTelemetrySubscriptions v0 and PushTelemetry v0. A push is parsed (request header
 * v2), its client instance id is looked up in a hash table, the subscription id is compared, the clock is read as
 * for throttling, and the payload is copied to its own memory. Nothing is decompressed, checked, labeled or kept.
 *
 * Usage: epoll_server        listens on 127.0.0.1, prints "ready port=N", ends when standard input closes.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/tcp.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

enum { API_VERSIONS = 18, GET_SUBSCRIPTIONS = 71, PUSH_TELEMETRY = 72 };
enum { UNKNOWN_SUBSCRIPTION_ID = 117, SUBSCRIPTION_ID = 714, ID_BYTES = 16 };
enum { BUCKETS = 1 << 16, READ_BYTES = 1 << 18, MAX_FRAME_BYTES = 100 << 20, EVENTS = 512 };

typedef struct instance {
    struct instance *next;
    uint8_t id[ID_BYTES];
    uint8_t *payload;
    int64_t pushed_ns;
} instance;

typedef struct {
    int fd;
    uint8_t *rest; /* the beginning of a frame whose end has not arrived */
    size_t length, capacity;
} connection;

typedef struct {
    const uint8_t *at, *end;
    int bad;
} reader;

static instance *table[BUCKETS];
static uint8_t chunk[READ_BYTES], out[READ_BYTES];
static size_t out_length;

static const uint8_t *take(reader *r, size_t n) {
    static const uint8_t zeros[ID_BYTES];
    if ((size_t)(r->end - r->at) < n) {
        r->bad = 1;
        return zeros;
    }
    r->at += n;
    return r->at - n;
}

static uint32_t u32(const uint8_t *p) { return (uint32_t)p[0] << 24 | p[1] << 16 | p[2] << 8 | p[3]; }
static uint16_t u16(const uint8_t *p) { return (uint16_t)(p[0] << 8 | p[1]); }

static uint32_t varint(reader *r) {
    uint32_t value = 0;
    for (int shift = 0; shift < 35 && !r->bad; shift += 7) {
        uint8_t byte = *take(r, 1);
        value |= (uint32_t)(byte & 0x7f) << shift;
        if (!(byte & 0x80)) return value;
    }
    r->bad = 1;
    return 0;
}

static void skip_tags(reader *r) {
    for (uint32_t n = varint(r); n && !r->bad; n--) {
        varint(r);
        take(r, varint(r));
    }
}

static void put(const void *bytes, size_t n) {
    memcpy(out + out_length, bytes, n);
    out_length += n;
}
static void put8(uint8_t v) { out[out_length++] = v; }
static void put16(uint16_t v) { v = htons(v), put(&v, 2); }
static void put32(uint32_t v) { v = htonl(v), put(&v, 4); }

static uint32_t bucket(const uint8_t *id) {
    uint64_t a, b;
    memcpy(&a, id, 8), memcpy(&b, id + 8, 8);
    return (uint32_t)(((a ^ b) * 0x9e3779b97f4a7c15u) >> 48) & (BUCKETS - 1);
}

static instance *find(const uint8_t *id) {
    instance *found = table[bucket(id)];
    while (found && memcmp(found->id, id, ID_BYTES)) found = found->next;
    return found;
}

static instance *create(void) {
    instance *made = calloc(1, sizeof *made);
    for (int i = 0; i < ID_BYTES; i++) made->id[i] = (uint8_t)(rand() >> 7);
    made->next = table[bucket(made->id)];
    return table[bucket(made->id)] = made;
}

static void answer_api_versions(void) {
    static const uint16_t keys[][3] = {{API_VERSIONS, 0, 3}, {GET_SUBSCRIPTIONS, 0, 0}, {PUSH_TELEMETRY, 0, 0}};
    put16(0), put8(4);
    for (int i = 0; i < 3; i++) put16(keys[i][0]), put16(keys[i][1]), put16(keys[i][2]), put8(0);
    put32(0), put8(0);
}

static void answer_get(void) {
    static const uint8_t codecs[] = {5, 4, 3, 1, 2};
    put8(0), put32(0), put16(0), put(create()->id, ID_BYTES), put32(SUBSCRIPTION_ID);
    put(codecs, sizeof codecs), put32(1), put32(1 << 20), put8(1);
    put8(2), put8(2), put8('*'), put8(0);
}

static void answer_push(reader *r) {
    instance *who = find(take(r, ID_BYTES));
    uint32_t subscription = u32(take(r, 4));
    take(r, 2); /* terminating, codec */
    uint32_t length = varint(r);
    const uint8_t *payload = take(r, length ? length - 1 : 0);
    int known = who && subscription == SUBSCRIPTION_ID && !r->bad;
    if (known) {
        struct timespec now;
        clock_gettime(CLOCK_REALTIME, &now);
        who->pushed_ns = now.tv_sec * 1000000000LL + now.tv_nsec;
        free(who->payload);
        who->payload = memcpy(malloc(length), payload, length ? length - 1 : 0);
    }
    put8(0), put32(0), put16(known ? 0 : UNKNOWN_SUBSCRIPTION_ID), put8(0);
}

/* Answer one whole frame, without its length; 0 means that the connection must be closed. */
static int answer(const uint8_t *frame, size_t length) {
    reader r = {frame, frame + length, 0};
    uint16_t key = u16(take(&r, 2));
    take(&r, 2);
    uint32_t correlation = u32(take(&r, 4));
    uint16_t client_id = u16(take(&r, 2));
    if (client_id != 0xffff) take(&r, client_id);
    skip_tags(&r);
    if (r.bad) return 0;
    size_t start = out_length;
    put32(0), put32(correlation);
    if (key == API_VERSIONS) answer_api_versions();
    else if (key == GET_SUBSCRIPTIONS) answer_get();
    else if (key == PUSH_TELEMETRY) answer_push(&r);
    else return 0;
    uint32_t size = htonl((uint32_t)(out_length - start - 4));
    memcpy(out + start, &size, 4);
    return !r.bad;
}

static int flush(int fd) {
    size_t sent = 0;
    while (sent < out_length) { /* answers are tiny and the peer reads them: blocking is short */
        ssize_t n = send(fd, out + sent, out_length - sent, MSG_NOSIGNAL);
        if (n < 0) return 0;
        sent += (size_t)n;
    }
    out_length = 0;
    return 1;
}

/* Answers every whole frame; returns the bytes used, or -1. */
static ssize_t serve(int fd, const uint8_t *data, size_t length) {
    size_t used = 0;
    while (length - used >= 4) {
        uint32_t size = u32(data + used);
        if (size > MAX_FRAME_BYTES) return -1;
        if (length - used - 4 < size) break;
        if (!answer(data + used + 4, size)) return -1;
        used += 4 + size;
        if (out_length > READ_BYTES / 2 && !flush(fd)) return -1;
    }
    return flush(fd) ? (ssize_t)used : -1;
}

static void keep(connection *c, const uint8_t *data, size_t length) {
    if (c->length + length > c->capacity) {
        c->capacity = (c->length + length) * 2;
        c->rest = realloc(c->rest, c->capacity);
    }
    memcpy(c->rest + c->length, data, length);
    c->length += length;
}

static int readable(connection *c) {
    ssize_t n = recv(c->fd, chunk, sizeof chunk, MSG_DONTWAIT);
    if (n <= 0) return n < 0 && errno == EAGAIN;
    if (!c->length) {
        ssize_t used = serve(c->fd, chunk, (size_t)n);
        if (used >= 0 && used < n) keep(c, chunk + used, (size_t)(n - used));
        return used >= 0;
    }
    keep(c, chunk, (size_t)n);
    ssize_t used = serve(c->fd, c->rest, c->length);
    if (used < 0) return 0;
    c->length -= (size_t)used;
    memmove(c->rest, c->rest + used, c->length);
    return 1;
}

static void add(int poll, int fd, void *data) {
    struct epoll_event event = {.events = EPOLLIN, .data.ptr = data};
    epoll_ctl(poll, EPOLL_CTL_ADD, fd, &event);
}

static void accept_all(int poll, int listener) {
    int fd, one = 1;
    while ((fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC)) >= 0) {
        setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
        connection *c = calloc(1, sizeof *c);
        c->fd = fd;
        add(poll, fd, c);
    }
}

int main(void) {
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t size = sizeof address;
    int listener = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0), poll = epoll_create1(0);
    if (bind(listener, (struct sockaddr *)&address, size) || listen(listener, 4096)) return perror("listen"), 1;
    getsockname(listener, (struct sockaddr *)&address, &size);
    printf("ready port=%d\n", ntohs(address.sin_port)), fflush(stdout);
    static int listening, standard_input;
    add(poll, listener, &listening), add(poll, 0, &standard_input);
    for (struct epoll_event events[EVENTS];;) {
        int n = epoll_wait(poll, events, EVENTS, -1);
        for (int i = 0; i < n; i++) {
            connection *c = events[i].data.ptr;
            if ((void *)c == &standard_input) return 0;
            if ((void *)c == &listening) accept_all(poll, listener);
            else if (!readable(c)) close(c->fd), free(c->rest), free(c), out_length = 0;
        }
    }
}
