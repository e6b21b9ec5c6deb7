package main

import (
	"encoding/binary"
	"io"
	"net"
	"sync"
	"time"
)

const relayBuffer = 64 << 10

// The relays, by name: both ends of a pair of connections in, nothing out.
var relays = map[string]func(client, upstream net.Conn){"copy": copyBytes, "frames": copyFrames}

// copyBytes looks at nothing. Without TLS the kernel moves the bytes (splice).
func copyBytes(client, upstream net.Conn) {
	go func() {
		io.Copy(upstream, client)
		upstream.Close()
		client.Close()
	}()
	io.Copy(client, upstream)
	client.Close()
	upstream.Close()
}

// request is what a gateway knows of a request until its response has come.
type request struct {
	correlation  int32
	key, version int16
	received     time.Time
}

// pair has the requests without a response, oldest first.
type pair struct {
	lock        sync.Mutex
	outstanding []request
	first       int
	latency     time.Duration
	responses   int
}

func (p *pair) add(r request) {
	p.lock.Lock()
	if p.first == len(p.outstanding) {
		p.outstanding, p.first = p.outstanding[:0], 0
	}
	p.outstanding = append(p.outstanding, r)
	p.lock.Unlock()
}

func (p *pair) take(correlation int32, now time.Time) bool {
	p.lock.Lock()
	defer p.lock.Unlock()
	if p.first == len(p.outstanding) || p.outstanding[p.first].correlation != correlation {
		return false
	}
	p.latency += now.Sub(p.outstanding[p.first].received)
	p.responses++
	p.first++
	return true
}

// copyFrames counts frames in the chunks that it passes whole, and matches responses with requests.
func copyFrames(client, upstream net.Conn) {
	p := &pair{}
	go func() {
		passFrames(upstream, client, 12, func(head []byte, now time.Time) bool {
			p.add(request{
				int32(binary.BigEndian.Uint32(head[8:])),
				int16(binary.BigEndian.Uint16(head[4:])), int16(binary.BigEndian.Uint16(head[6:])), now,
			})
			return true
		})
		upstream.Close()
		client.Close()
	}()
	passFrames(client, upstream, 8, func(head []byte, now time.Time) bool {
		return p.take(int32(binary.BigEndian.Uint32(head[4:])), now)
	})
	client.Close()
	upstream.Close()
}

// passFrames calls seen with the first bytes of each frame before it passes them.
func passFrames(to io.Writer, from io.Reader, headBytes int, seen func(head []byte, now time.Time) bool) {
	buffer := make([]byte, relayBuffer)
	head := make([]byte, 0, headBytes)
	rest := 0 // bytes of the current frame after its head
	for {
		count, err := from.Read(buffer)
		if count > 0 {
			now := time.Now()
			for at := 0; at < count; {
				if rest > 0 {
					step := min(rest, count-at)
					rest -= step
					at += step
					continue
				}
				step := min(headBytes-len(head), count-at)
				head = append(head, buffer[at:at+step]...)
				at += step
				if len(head) == headBytes {
					size := int(int32(binary.BigEndian.Uint32(head)))
					if size < headBytes-4 || !seen(head, now) {
						return
					}
					rest = size + 4 - headBytes
					head = head[:0]
				}
			}
			if _, err := to.Write(buffer[:count]); err != nil {
				return
			}
		}
		if err != nil {
			return
		}
	}
}
