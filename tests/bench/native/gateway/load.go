package main

import (
	"bufio"
	"crypto/tls"
	"encoding/binary"
	"fmt"
	"net"
	"os"
	"slices"
	"sync"
	"time"
)

const mostLatencies = 1 << 20

// window counts since the last mark.
type window struct {
	sync.Mutex
	since     time.Time
	requests  int
	latencies []time.Duration
}

func (w *window) add(latencies []time.Duration) {
	w.Lock()
	w.requests += len(latencies)
	if len(w.latencies) < mostLatencies {
		w.latencies = append(w.latencies, latencies...)
	}
	w.Unlock()
}

// mark prints the counts as the other load generators do, and begins again.
func (w *window) mark() {
	w.Lock()
	defer w.Unlock()
	slices.Sort(w.latencies)
	quantile := func(part float64) float64 {
		if len(w.latencies) == 0 {
			return 0
		}
		return float64(w.latencies[int(part*float64(len(w.latencies)-1))].Nanoseconds()) / 1000
	}
	fmt.Printf(`{"requests": %d, "throttled": 0, "errors": {}, "seconds": %f, "p50_us": %f, "p99_us": %f}`+"\n",
		w.requests, time.Since(w.since).Seconds(), quantile(0.5), quantile(0.99))
	w.since, w.requests, w.latencies = time.Now(), 0, w.latencies[:0]
}

func load(address, api string, partitions, size, connections, depth int, secure bool) {
	request, response := produceRequest(partitions, size), len(produceResponse(partitions))
	if api == "fetch" {
		request, response = fetchRequest(partitions, size), len(fetchResponse(partitions, size))
	}
	w := &window{since: time.Now()}
	for range connections {
		connection, err := net.Dial("tcp", address)
		check(err)
		if secure {
			connection = tls.Client(connection, &tls.Config{InsecureSkipVerify: true})
		}
		go drive(connection, slices.Clone(request), response, depth, w)
	}
	fmt.Println("running")
	lines := bufio.NewScanner(os.Stdin)
	for lines.Scan() {
		w.mark()
	}
}

// drive keeps so many requests in flight. It sends the next ones for all responses that have arrived together.
func drive(connection net.Conn, request frame, response, depth int, w *window) {
	reader := bufio.NewReaderSize(connection, brokerBuffer)
	sent := make([]time.Time, depth)
	latencies := make([]time.Duration, 0, depth)
	out := make([]byte, 0, depth*len(request))
	next, answered := 0, 0
	for ready := depth; ; ready = len(latencies) {
		out = out[:0]
		now := time.Now()
		for range ready {
			binary.BigEndian.PutUint32(request[8:], uint32(next))
			sent[next%depth] = now
			out = append(out, request...)
			next++
		}
		_, err := connection.Write(out)
		check(err)
		latencies = latencies[:0]
		for len(latencies) == 0 || (reader.Buffered() >= response && answered < next) {
			head, err := reader.Peek(8)
			check(err)
			size, correlation := binary.BigEndian.Uint32(head), binary.BigEndian.Uint32(head[4:])
			if int(size)+4 != response || correlation != uint32(answered) {
				fail(fmt.Sprintf("response %d of %d bytes, expected %d of %d", correlation, size+4, answered, response))
			}
			_, err = reader.Discard(response)
			check(err)
			latencies = append(latencies, time.Since(sent[answered%depth]))
			answered++
		}
		w.add(latencies)
	}
}
