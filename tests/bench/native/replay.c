/*
 * A load generator that repeats recorded requests: N connections with one request in flight on each.
 *
 * Usage: replay PORT CONNECTIONS FRAMES_FILE ANSWER_BYTES
 *
 * The file holds requests of any API with their length prefixes; connection number i repeats number i modulo their
 * count, with a new correlation id each time. Every answer must have ANSWER_BYTES bytes with its length prefix, and the
 * correlation id of its request. "ready" is printed when the load is on. For each line on standard input one line of
 * JSON is printed, about the time since the previous line: requests, and the answers that differ from the first one of
 * their connection. The load ends when standard input closes; a wrong answer ends it with status 1.
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

enum { MAX_FRAMES = 4096, EVENTS = 512, ANSWER_ID = 4, REQUEST_ID = 8, AFTER_ID = 8 };

typedef struct {
    int fd;
    uint32_t correlation;
    uint8_t *frame, *answer, *first;
    size_t frame_length, received;
} connection;

static size_t answer_bytes;
static uint64_t requests, different;

static void fail(const char *what) {
    fprintf(stderr, "replay: %s\n", what);
    exit(1);
}

static double now_s(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static uint32_t u32(const uint8_t *p) {
    uint32_t v;
    memcpy(&v, p, 4);
    return ntohl(v);
}

static void put32(uint8_t *p, uint32_t v) {
    v = htonl(v);
    memcpy(p, &v, 4);
}

static size_t read_file(const char *path, uint8_t **bytes) {
    FILE *file = fopen(path, "rb");
    if (!file || fseek(file, 0, SEEK_END)) fail("cannot read the requests");
    size_t size = (size_t)ftell(file);
    rewind(file);
    *bytes = malloc(size);
    if (fread(*bytes, 1, size, file) != size) fail("cannot read the requests");
    fclose(file);
    return size;
}

static void ask(connection *c) {
    put32(c->frame + REQUEST_ID, ++c->correlation);
    for (size_t sent = 0; sent < c->frame_length;) { /* never sleeps: waking the load would be charged to the server */
        ssize_t n = send(c->fd, c->frame + sent, c->frame_length - sent, MSG_DONTWAIT | MSG_NOSIGNAL);
        if (n < 0 && errno != EAGAIN) fail("connection lost while sending");
        if (n > 0) sent += (size_t)n;
    }
}

static void readable(connection *c) {
    ssize_t n = recv(c->fd, c->answer + c->received, answer_bytes - c->received, MSG_DONTWAIT);
    if (n < 0 && errno == EAGAIN) return;
    if (n <= 0) fail("connection lost");
    c->received += (size_t)n;
    if (c->received >= 4 && u32(c->answer) + 4 != answer_bytes) fail("an answer of another length");
    if (c->received < answer_bytes) return;
    if (u32(c->answer + ANSWER_ID) != c->correlation) fail("an answer out of order");
    if (!c->first) c->first = memcpy(malloc(answer_bytes), c->answer, answer_bytes);
    different += memcmp(c->first + AFTER_ID, c->answer + AFTER_ID, answer_bytes - AFTER_ID) != 0;
    requests++, c->received = 0;
    ask(c);
}

static void set_up(connection *c, int port, const uint8_t *frame) {
    struct sockaddr_in peer = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
    int one = 1;
    peer.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    c->fd = socket(AF_INET, SOCK_STREAM, 0);
    if (connect(c->fd, (struct sockaddr *)&peer, sizeof peer)) fail("cannot connect");
    setsockopt(c->fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
    c->frame_length = u32(frame) + 4;
    c->frame = memcpy(malloc(c->frame_length), frame, c->frame_length);
    c->answer = malloc(answer_bytes);
}

int main(int argc, char **argv) {
    if (argc != 5) fail("usage: replay PORT CONNECTIONS FRAMES_FILE ANSWER_BYTES");
    int port = atoi(argv[1]), n = atoi(argv[2]), poll = epoll_create1(0), count = 0;
    uint8_t *bytes, *frames[MAX_FRAMES];
    size_t size = read_file(argv[3], &bytes);
    answer_bytes = (size_t)atoll(argv[4]);
    for (size_t at = 0; at + 12 <= size && count < MAX_FRAMES; at += u32(bytes + at) + 4) frames[count++] = bytes + at;
    if (n < 1 || !count || answer_bytes < AFTER_ID) fail("nothing to send, or no room for an answer");

    connection *all = calloc((size_t)n, sizeof *all);
    struct epoll_event events[EVENTS], event = {.events = EPOLLIN};
    epoll_ctl(poll, EPOLL_CTL_ADD, 0, &event);
    for (int i = 0; i < n; i++) {
        set_up(&all[i], port, frames[i % count]);
        event.data.ptr = &all[i];
        epoll_ctl(poll, EPOLL_CTL_ADD, all[i].fd, &event);
    }
    for (int i = 0; i < n; i++) ask(&all[i]);
    double since_s = now_s();
    puts("ready"), fflush(stdout);

    for (char line[64];;) {
        int ready = epoll_wait(poll, events, EVENTS, 0);
        for (int i = 0; i < ready; i++) {
            if (events[i].data.ptr) {
                readable(events[i].data.ptr);
            } else if (read(0, line, sizeof line) <= 0) {
                return 0;
            } else {
                printf("{\"requests\": %lu, \"different\": %lu, \"seconds\": %.6f}\n", requests, different,
                       now_s() - since_s);
                fflush(stdout);
                requests = different = 0, since_s = now_s();
            }
        }
    }
}
